package io.soloist.client;

import java.util.Map;

/** One task in this collector's hands. */
@SuppressWarnings("serial")
public final class Task extends Hold {
    /** Thrown by a handler: the task is to be tried again, after so long or else (null) after the source's backoff. */
    public static final class Retry extends Exception {
        private final Long delay;

        public Retry(String text, Long delayMs) {
            super(text);
            delay = delayMs;
        }
    }

    /** Thrown by a handler: the task is never to be tried again. */
    public static final class Dead extends Exception { public Dead(String text) { super(text); } }

    /** Does a task. */
    public interface Handler { void handle(Task task) throws Exception; }

    /** What outlives its lease harms nobody: its result is refused. */
    private static final Options UNWATCHED = new Options().onOverrun(hold -> {});

    /** As put. */
    public final String id = of("id"), key = of("key"), source = of("source");
    /** As put: any JSON, as maps, lists, strings, {@code Long}, {@code Double}, booleans, null. */
    public final Object payload = grant.get("payload");
    /** From 1. */
    public final long attempt = (Long) grant.get("attempt");

    Task(Line way, Object claim, double length, Map<String, Object> task) {
        super(way, "task " + task.get("key"), "/api/v1/claims/" + claim, length, UNWATCHED, task);
    }

    private String of(String name) { return (String) grant.get(name); }

    @Override void renew(Line line, double wait) { post(line, path + "/extend", Map.of(), 0); }

    @Override public void close() { finish(); }

    /** Does it; the result. */
    Map<String, Object> work(Handler handler) {
        String outcome = "done", text = null;
        Long delay = null;
        try (this) {
            handler.handle(this);
        } catch (Throwable error) {
            outcome = error instanceof Dead ? "dead" : "retry";
            text = error.toString().substring(0, Math.min(300, error.toString().length()));
            delay = error instanceof Retry retry ? retry.delay : null;
        }
        return Json.map("id", id, "token", token(), "outcome", outcome, "error", text, "delay_ms", delay);
    }
}
