package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.SoloistException.Refused;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** One task in this collector's hands. */
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
    public static final class Dead extends Exception {
        public Dead(String text) {
            super(text);
        }
    }

    /** Does a task. */
    public interface Handler {
        void handle(Task task) throws Exception;
    }

    /** As put. */
    public final String id, key, source;
    /** As put: any JSON, as maps, lists, strings, {@code Long}, {@code Double}, booleans, null. */
    public final Object payload;
    /** From 1. */
    public final long attempt;
    private final String claim;
    private final double length;

    Task(Line line, String claim, double length, Map<?, ?> task) {
        super(line, "task " + task.get("key"), new Options().onOverrun(hold -> {}));
        id = (String) task.get("id");
        key = (String) task.get("key");
        source = (String) task.get("source");
        payload = task.get("payload");
        attempt = (Long) task.get("attempt");
        token = (Long) task.get("token");
        this.claim = claim;
        this.length = length;
    }

    @Override
    double length() {
        return length;
    }

    @Override
    boolean take(Map<String, Object> answer) {
        return true;
    }

    @Override
    void renew(double wait) {
        Instant sent = Instant.now();
        Object kept = post("/api/v1/claims/" + claim + "/extend", null, 0).get("kept");
        if (!((List<?>) kept).contains(id)) throw new Refused(409, key + " is another's by now");
        trust(sent, length);
    }

    Map<String, Object> work(Handler handler) {
        Map<String, Object> result = new HashMap<>(Map.of("id", id, "token", token, "outcome", "done"));
        start();
        try {
            handler.handle(this);
        } catch (Exception error) {
            String text = String.valueOf(error);
            result.putAll(Map.of("outcome", error instanceof Dead ? "dead" : "retry", "error", text.substring(0, Math.min(300, text.length()))));
            if (error instanceof Retry retry && retry.delay != null) result.put("delay_ms", retry.delay);
        }
        finish();
        return result;
    }

    @Override
    public void close() {
        finish();
    }
}
