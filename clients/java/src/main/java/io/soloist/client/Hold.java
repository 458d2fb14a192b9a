package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.Soloist.*;
import java.util.*;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Something that is held until a deadline: a lease, a turn, a task. Kept by a thread of its own; another watches the
 * deadline.
 *
 * <p>The deadline counts from before the last renewal that was answered was sent. An answer that says no (409) ends
 * the hold at once. No answer means nothing: the next node is asked, until the deadline. What the node says of the
 * length counts, never what this program wished. What was waited for is renewed once before the work begins: it may
 * be as old as the question.
 *
 * <p>All times are in milliseconds. Every method may be called by any thread.
 */
public abstract class Hold implements AutoCloseable {
    /** Of the process, as {@code soloist run} when its lease was lost. */
    public static final int EXIT_CODE = 76;
    /**
     * Clocks may run 1 % apart. A wait of the system stands still with a suspended machine: so the clocks are read
     * each tick. The last chance is what the work has when it could not be told before the deadline, as after a
     * pause.
     */
    private static final double TRUST = 0.99, TICK = 100, LAST_CHANCE = 100;
    /**
     * One long poll, and for its answer: a node that is paused hides a grant no longer. So long a renewal may wait at
     * the node for an order to stop.
     */
    static final double WAIT = 10_000, SLACK = 2_000, POLL = 1_500, NEVER = Double.POSITIVE_INFINITY;
    /** HTTP: it is over, or another's; or not for us. */
    private static final List<Integer> LOST = List.of(404, 409), FINAL = List.of(401, 403, 404, 409);
    static final System.Logger LOG = System.getLogger("soloist");

    final Line line;
    final Options options;
    final String what, path;
    /** What the node says of the grant; empty before it answers. */
    volatile Map<String, Object> grant;
    volatile double length;
    volatile Instant deadline = Instant.now();
    private volatile Instant stop = Instant.in(NEVER), lastChance = stop;
    private volatile String reason;
    private Thread worker;

    Hold(Line way, String what, String path, Options options, Map<String, Object> grant) {
        this.line = way.another();
        this.what = what;
        this.path = path;
        this.options = options;
        this.grant = grant;
    }

    @Override public abstract void close();

    /** One try at one node, which may wait for so long. */
    abstract void renew(Line line, double wait);

    /** Between an answer and the next renewal. */
    double pause() { return length / 3; }

    /** The fencing token: grows with every grant. A sink can refuse older ones. */
    public long token() { return (Long) grant.get("token"); }

    /** Whether this program may still work. Reads the clocks, so it is right at once after a pause. */
    public boolean held() { return remaining() > 0; }

    /** Until the deadline; never negative. */
    public double remaining() { return line.isOver() ? 0 : Math.max(0, deadline.left()); }

    /** Whether the work must end. Its thread was interrupted then. */
    public boolean stopping() { return reason != null; }

    /**
     * Why: {@code off}, {@code held}, {@code moved}, {@code drained}, {@code removed}, {@code timed_out},
     * {@code closed}, or a sentence; else null.
     */
    public String reason() { return reason; }

    /**
     * To be called before every act that must not be done twice.
     *
     * @throws Stopped unless the work may go on
     */
    public void check() {
        if (!held()) interrupt("the deadline is over", NEVER);
        if (stopping()) throw new Stopped(reason);
    }

    synchronized void interrupt(String why, double within) {
        if (within < stop.left()) stop = Instant.in(within);
        if (stopping()) return;
        reason = why;
        lastChance = Instant.in(LAST_CHANCE);
        if (worker != null) worker.interrupt();
    }

    /** One try to renew. Its time is bounded so that another node can still be asked before the deadline. */
    void post(Line line, String path, Object body, double wait) {
        Instant sent = Instant.now();
        var answer = line.call(path, body, wait + Math.max(250, Math.min(1000, (deadline.left() - wait) / 3)), 0);
        if (answer.get("kept") instanceof List<?> kept && kept.isEmpty()) throw new Refused(409, "it is another's now");
        hear(answer, sent);
        if (answer.get("stop") instanceof Map<?, ?> now) interrupt("" + now.get("why"), (Long) now.get("within_ms"));
    }

    /** The deadline, by what a node said. */
    private void hear(Map<String, Object> answer, Instant since) {
        if (answer.getOrDefault("expires_in_ms", answer.get("lease_ms")) instanceof Long ms) length = ms;
        deadline = since.plus(length * TRUST);
    }

    void warn(String text, Throwable error) { LOG.log(System.Logger.Level.WARNING, what + ": " + text, error); }

    /** Waits until it is granted. */
    void acquire(Line way, String path, Map<String, Object> ask) {
        Instant end = Instant.in(options.patience.toMillis());
        do {
            if (grant.isEmpty()) ask.put("request_id", UUID.randomUUID().toString());
            Instant sent = Instant.now();
            double left = Math.max(0, end.left()), poll = Math.min(WAIT, left);
            ask.put("wait_ms", (long) poll);
            grant = way.call(path, ask, poll + SLACK, left + SLACK);
            double soon = grant.get("retry_in_ms") instanceof Long ms ? Math.min(5000, Math.max(200, ms)) : 200;
            boolean granted = grant.containsKey("token");
            if (granted && !confirm(way, sent)) grant = Map.of(); // it is over; another is another
            if (!granted && end.left() <= 0) throw new NotGranted(what, grant);
            // If it did not wait, the node knows that it cannot be soon.
            if (!granted && sent.left() > -poll / 2) way.sleep(Line.between(0.5, 1) * Math.min(soon, left));
        } while (!grant.containsKey("token"));
    }

    /**
     * Renews a grant that was first asked for at {@code sent}, unless that was just now; keeps it if it is worth
     * something.
     */
    boolean confirm(Line way, Instant sent) {
        hear(grant, sent);
        boolean sure = sent.left() > -length / 10;
        if (!sure) deadline = Instant.in(length > 0 ? length : WAIT); // so long it is worth asking
        for (int failed = 0; !sure && held() && !way.sleep(way.pause(failed)); failed++) sure = attempt(0);
        reason = null; // an order to stop that is still true comes again
        stop = lastChance = Instant.in(NEVER);
        if (!sure) return false;
        worker = Thread.currentThread();
        Loop.thread("keeps " + what, this::keep);
        Loop.thread("watches " + what, this::watch);
        return true;
    }

    private boolean attempt(double wait) {
        try {
            renew(line, wait);
            return true;
        } catch (Refused error) {
            if (LOST.contains(error.status)) deadline = Instant.now(); // it may be another's already
            interrupt("refused: " + error.getMessage(), NEVER);
        } catch (RuntimeException error) { // also an answer of a shape that nobody knows: as good as none
            LOG.log(System.Logger.Level.DEBUG, what + ": not renewed yet: " + error);
        }
        return false;
    }

    private void keep() {
        // After a failure, and once it stops, nothing is to be waited for at the node.
        for (int failed = 0; !line.sleep(failed == 0 ? pause() : line.pause(failed)) && held(); )
            failed = attempt(failed > 0 || stopping() ? 0 : POLL) ? 0 : failed + 1;
    }

    private void watch() {
        while (Math.max(Math.min(deadline.left(), stop.left()), lastChance.left()) > 0) {
            if (line.sleep(Math.min(TICK, Math.max(2, remaining())))) return;
            double grace = Math.min(options.grace.toMillis(), length / 5);
            if (deadline.left() <= grace) interrupt("it was not renewed in time", NEVER);
        }
        overrun();
    }

    void overrun() { options.onOverrun.accept(this); }

    /** Ends this process, unless the work has ended meanwhile. */
    synchronized void exit() {
        if (line.isOver()) return;
        try {
            System.err.printf("soloist: %s (token %d): %s, and the work has not ended in time. This process ends now: "
                    + "another may begin. Call check() between the acts, or set onOverrun.%n", what, token(), reason);
            for (StackTraceElement at : worker.getStackTrace()) System.err.println("    at " + at);
        } finally { Runtime.getRuntime().halt(EXIT_CODE); } // no hooks: one of them may wait for the work
    }

    /** The work has ended: no interrupt from here comes any more. */
    synchronized void finish() {
        line.cut();
        worker = null;
        if (stopping()) Thread.interrupted(); // it was ours, and is done with
    }

    /** Says that it has ended, if it is still ours. */
    void end(String path, Object body) {
        double left = deadline.left();
        try { if (left > 0) line.another().call(path, body, Math.min(2000, left), left); }
        catch (Failure error) { warn("not given back, so it runs out by itself", error); }
    }

    /** The right to be the only one. Given back by {@link #close}, when the work has ended. */
    public static final class Lease extends Hold {
        /**
         * Lines that wait to be sent, the oldest go first; lines in a renewal, characters in a line: a node takes
         * 64 KiB.
         */
        private static final int KEPT = 1000, AT_ONCE = 30, LONGEST = 500;

        private final Queue<String> lines = new ArrayBlockingQueue<>(KEPT);
        private final AtomicReference<Map<String, Object>> progress = new AtomicReference<>();
        private volatile String failure;

        Lease(Line way, String name, Options options) {
            super(way, "lease " + name, "/api/v1/leases/" + name, options, Map.of());
            acquire(way, path, Json.map("holder", options.name, "ttl_ms", options.ttl.toMillis()));
        }

        /** The run of the job that this grant is, if its name is a job; else null. */
        public String run() { return (String) grant.get("run"); }

        /** Moves the job's progress bar, with the next renewal. */
        public void progress(long done, long total, String note) {
            progress.set(Json.map("done", done, "total", total, "note", note));
        }

        /** A line of the job's output, sent with the next renewal: at least once. */
        public void log(String text) {
            for (String line : text.split("\\R"))
                while (!lines.offer(line.substring(0, Math.min(LONGEST, line.length())))) lines.poll();
        }

        /** The work has failed. To end because one was asked to is no failure. */
        public void fail(Throwable error) {
            boolean isAsked = stopping() && (error instanceof Stopped || error instanceof InterruptedException);
            if (!isAsked) failure = error.toString();
        }

        private boolean hasNews() { return progress.get() != null || !lines.isEmpty(); }

        @Override public void close() {
            finish();
            // The last words are worth one try.
            try { while (deadline.left() > 0 && hasNews()) renew(line.another(), 0); }
            catch (Failure error) { warn("its last words were not taken", error); }
            String end = failure == null ? "done" : "failed";
            end(path + "/release", Json.map("secret", grant.get("secret"), "end", end, "error", failure));
        }

        @Override void renew(Line line, double most) {
            var far = progress.get();
            List<String> said = lines.stream().limit(AT_ONCE).toList();
            long wait = (long) Math.min(most, (Long) grant.get("renew_every_ms"));
            var body = Json.map("secret", grant.get("secret"), "wait_ms", wait, "progress", far, "lines", said);
            try { post(line, path + "/renew", body, wait); }
            catch (Refused error) {
                if (FINAL.contains(error.status) || far == null && said.isEmpty()) throw error;
                // What the work says must not cost it the lease.
                warn("its output was refused and is dropped", error);
            }
            said.forEach(lines::remove);
            progress.compareAndSet(far, null);
        }

        @Override double pause() { return stopping() ? (Long) grant.get("renew_every_ms") / 2 : 0; }
    }

    /** A turn of a rotation. Passed by {@link #close}. The work may set the three fields. */
    public static final class Turn extends Hold {
        /**
         * How it ended, {@code done}, {@code empty} or {@code failed}; the type that comes next; RFC 3339: no turn
         * starts before.
         */
        public volatile String outcome = "done", next, notBefore;

        Turn(Line way, String rotation, String type, Options options) {
            super(way, "turn " + rotation + "/" + type, "/api/v1/rotations/" + rotation + "/turns", options, Map.of());
            acquire(way, path + "?expires=true", Json.map("type", type, "worker", options.name));
        }

        private String its(String act) { return path + "/" + grant.get("turn") + act; }

        @Override void renew(Line line, double wait) { post(line, its("/extend"), Map.of("token", token()), 0); }

        @Override public void close() {
            finish();
            end(its("/pass"), Json.map("token", token(), "outcome", outcome, "next", next, "not_before", notBefore));
        }
    }

    /** One task in this collector's hands. */
    @SuppressWarnings("serial")
    public static final class Task extends Hold {
        /** Thrown by the work: the task is to be tried again, after so long or (null) after the source's backoff. */
        public static final class Retry extends Failure {
            public Retry(String text, Long delayMs) { super(text, 0, Json.map("delay_ms", delayMs)); }
        }

        /** Thrown by the work: the task is never to be tried again. */
        public static final class Dead extends Failure { public Dead(String text) { super(text, 0, Map.of()); } }

        /** As put. */
        public final String id = of("id"), key = of("key"), source = of("source");
        /** As put: any JSON, as maps, lists, strings, {@code Long}, {@code Double}, booleans, null. */
        public final Object payload = grant.get("payload");
        /** From 1. */
        public final long attempt = (Long) grant.get("attempt");

        Task(Line way, Object claim, double length, Options options, Map<String, Object> task) {
            super(way, "task " + task.get("key"), "/api/v1/claims/" + claim + "/extend?expires=true", options, task);
            this.length = length;
        }

        private String of(String name) { return (String) grant.get(name); }

        @Override void renew(Line line, double wait) { post(line, path, Map.of(), 0); }

        /** What outlives its lease harms nobody: its result is refused. */
        @Override void overrun() {}

        @Override public void close() { finish(); }

        /** Does it; the result. */
        Map<String, Object> does(Work<Task> work) {
            var result = Json.map("id", id, "token", token(), "outcome", "done");
            try (this) { work.run(this); }
            catch (Throwable error) {
                String text = error.toString();
                result.put("outcome", error instanceof Dead ? "dead" : "retry");
                result.put("error", text.substring(0, Math.min(300, text.length())));
                if (error instanceof Retry retry) result.putAll(retry.answer);
            }
            return result;
        }
    }
}
