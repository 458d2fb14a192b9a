package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.SoloistException.*;
import java.lang.System.Logger.Level;
import java.util.*;

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
    static final List<Integer> LOST = List.of(404, 409), FINAL = List.of(401, 403, 404, 409);
    static final System.Logger LOG = System.getLogger("soloist");

    final Line line;
    final Options options;
    final String what, path;
    /** What the node says of the grant; empty before it answers. */
    volatile Map<String, Object> grant;
    private volatile double length;
    private volatile Instant deadline = Instant.in(0), stop = Instant.in(NEVER), lastChance = stop;
    private volatile String reason;
    private Thread worker;

    Hold(Line way, String what, String path, double length, Options options, Map<String, Object> grant) {
        this.line = way.another();
        this.what = what;
        this.path = path;
        this.length = length;
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
     * Why: {@code off}, {@code held}, {@code moved}, {@code drained}, {@code removed}, {@code timed_out}, {@code closed},
     * or a sentence; else null.
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
        Instant sent = Instant.in(0);
        var answer = line.call(path, body, wait + Math.max(250, Math.min(1000, (deadline.left() - wait) / 3)), 0);
        if (answer.get("kept") instanceof List<?> kept && kept.isEmpty()) throw new Refused(409, "it is another's now");
        hear(answer);
        deadline = sent.plus(length * TRUST);
        if (answer.get("stop") instanceof Map<?, ?> now) interrupt("" + now.get("why"), (Long) now.get("within_ms"));
    }

    private void hear(Map<String, Object> answer) {
        if (answer.get("expires_in_ms") instanceof Long ms) length = ms;
    }

    void warn(String text, Throwable error) { LOG.log(Level.WARNING, what + ": " + text, error); }

    /** Waits until it is granted. */
    void acquire(Line way, Map<String, Object> ask) {
        Instant end = Instant.in(options.patience);
        do {
            if (grant.isEmpty()) ask.put("request_id", UUID.randomUUID().toString());
            Instant sent = Instant.in(0);
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
        hear(grant);
        boolean sure = sent.left() > -length / 10;
        deadline = (sure ? sent : Instant.in(0)).plus(length * TRUST);
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
            if (LOST.contains(error.status)) deadline = Instant.in(0); // it may be another's already
            interrupt("refused: " + error.getMessage(), NEVER);
        } catch (RuntimeException error) {
            // Also an answer of a shape that nobody knows: as good as none.
            LOG.log(Level.DEBUG, what + ": not renewed yet: " + error);
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
            if (deadline.left() <= Math.min(options.grace, length / 5)) interrupt("it was not renewed in time", NEVER);
        }
        options.onOverrun.accept(this);
    }

    /** Ends this process, unless the work has ended meanwhile. */
    synchronized void exit() {
        if (line.isOver()) return;
        try {
            System.err.printf("soloist: %s (token %d): %s, and the work has not ended in time. This process ends now, "
                    + "because another may begin. Call check() between the acts, or give onOverrun a function.%n",
                    what, token(), reason);
            for (StackTraceElement at : worker.getStackTrace()) System.err.println("    at " + at);
        } finally { Runtime.getRuntime().halt(EXIT_CODE); } // no hooks: one of them may wait for the work
    }

    /** The work has ended: no interrupt from here comes any more. For how long it is still held. */
    synchronized double finish() {
        double left = remaining();
        line.cut();
        worker = null;
        if (stopping()) Thread.interrupted(); // it was ours, and is done with
        return left;
    }

    /** Says that it has ended, if it is still ours. */
    void end(String path, Object body, double left) {
        try { if (left > 0) line.another().call(path, body, Math.min(2000, left), left); }
        catch (SoloistException error) { warn("not given back, so it runs out by itself", error); }
    }
}
