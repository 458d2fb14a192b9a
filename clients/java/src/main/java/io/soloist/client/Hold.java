package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.SoloistException.NotGranted;
import io.soloist.client.SoloistException.Refused;
import io.soloist.client.SoloistException.Stopped;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Something that is held until a deadline: a lease, a turn, a task. Kept by a thread of its own; another one watches the deadline.
 *
 * <p>The deadline counts from before the last renewal that was answered was sent. An answer that says no (409) ends the hold at once. No
 * answer means nothing: the next node is asked, until the deadline. What the node says of the length counts, never what this
 * program wished. What was waited for is renewed once before the work begins: it may be as old as the question.
 *
 * <p>All times are in milliseconds. Every method may be called by any thread.
 */
public abstract class Hold implements AutoCloseable {
    /** Of the process, as {@code soloist run} when its lease was lost. */
    public static final int EXIT_CODE = 76;
    /** Clocks may run 1 % apart. */
    private static final double TRUST = 0.99;
    /** A wait of the system stands still with a suspended machine: so the clocks are read this often. */
    private static final double TICK = 100;
    /** What the work has when it could not be told before the deadline, as after a pause. */
    private static final double LAST_CHANCE = 100;
    /** One long poll, and for its answer: a node that is paused hides a grant no longer. */
    static final double WAIT = 10_000, SLACK = 2_000;
    /** So long a renewal may wait at the node for an order to stop. */
    static final double POLL = 1_500;
    /** It is over, or another's. */
    static final List<Integer> LOST = List.of(404, 409);
    static final System.Logger LOG = System.getLogger("soloist");

    private record Deadline(Instant sent, double length) {
        double left() {
            return length * TRUST - sent.since();
        }
    }

    final String what;
    final Line line;
    final Options options;
    final CountDownLatch ended = new CountDownLatch(1);
    volatile long token;
    private volatile Deadline deadline = new Deadline(Instant.now(), 0);
    private volatile String reason;
    private volatile Instant told, stop;
    private volatile double within = Double.POSITIVE_INFINITY;
    private Thread worker;

    Hold(Line line, String what, Options options) {
        this.line = line;
        this.what = what;
        this.options = options;
    }

    /** One try at one node, which may wait for so long. */
    abstract void renew(double wait);

    /** Takes what is granted; false when the answer grants nothing. */
    abstract boolean take(Map<String, Object> answer);

    /** Between an answer and the next renewal. */
    double pause() {
        return length() / 3;
    }

    /** The fencing token: grows with every grant. A sink can refuse older ones. */
    public long token() {
        return token;
    }

    /** Whether this program may still work. Reads the clocks, so it is right at once after a pause. */
    public boolean held() {
        return remaining() > 0;
    }

    /** Until the deadline; never negative. */
    public double remaining() {
        return ended.getCount() == 0 ? 0 : Math.max(0, deadline.left());
    }

    /** Whether the work must end. Its thread was interrupted then. */
    public boolean stopping() {
        return reason != null;
    }

    /** Why: {@code off}, {@code held}, {@code moved}, {@code drained}, {@code removed}, {@code closed}, or a sentence; else null. */
    public String reason() {
        return reason;
    }

    /**
     * To be called before every act that must not be done twice.
     *
     * @throws Stopped unless the work may go on
     */
    public void check() {
        if (!held()) interrupt("the deadline is over", Double.POSITIVE_INFINITY);
        if (stopping()) throw new Stopped(reason);
    }

    double length() {
        return deadline.length;
    }

    /** One try. Its time is bounded so that another node can still be asked before the deadline. */
    Map<String, Object> post(String path, Object body, double wait) {
        return line.once("POST", path, body, wait + Math.max(250, Math.min(1000, (remaining() - wait) / 3)));
    }

    /** Moves the deadline: {@code length}, counted from before the request was sent. */
    void trust(Instant sent, double length) {
        deadline = new Deadline(sent, length);
    }

    synchronized void interrupt(String why, double within) {
        if (stop == null || within < this.within - stop.since()) {
            this.within = within;
            stop = Instant.now();
        }
        if (reason != null) return;
        reason = why;
        told = Instant.now();
        if (worker != null) worker.interrupt();
    }

    void acquire(Line way, String path, Map<String, Object> ask) {
        Instant began = Instant.now();
        String request = UUID.randomUUID().toString();
        while (true) {
            Instant sent = Instant.now();
            double left = Math.max(0, options.patience - began.since()), poll = Math.min(WAIT, left);
            Map<String, Object> body = new HashMap<>(ask);
            body.putAll(Map.of("request_id", request, "wait_ms", (long) poll));
            Map<String, Object> answer = way.call("POST", path, body, poll + SLACK, left + SLACK);
            if (take(answer)) {
                if (confirm(way, sent)) {
                    start();
                    return;
                }
                request = UUID.randomUUID().toString(); // that grant is over; another is another
            } else if (began.since() >= options.patience) {
                throw new NotGranted(what, answer);
            } else if (sent.since() < poll / 2) {
                // It did not wait: the node knows that it cannot be soon.
                double pause = Math.max(200, answer.get("retry_in_ms") instanceof Long ms ? ms : 0);
                way.sleep(Line.between(0.5, 1) * Math.min(Math.min(5000, pause), left));
            }
            if (way.isOver()) throw new SoloistException.Unreachable("closed");
        }
    }

    /** Renews a grant that was first asked for at {@code sent}, unless that was just now; whether it is worth something. */
    boolean confirm(Line way, Instant sent) {
        boolean sure = sent.since() < length() / 10;
        trust(sure ? sent : Instant.now(), length());
        for (int failed = 0; !sure && held() && !way.sleep(failed == 0 ? 0 : way.pause(failed)); failed++) sure = attempt(0);
        // An order to stop that is still true comes again.
        reason = null;
        told = stop = null;
        return sure;
    }

    /** From now on the calling thread is the one that works. */
    void start() {
        worker = Thread.currentThread();
        Loop.thread("soloist keeps " + what, this::keep).start();
        Loop.thread("soloist watches " + what, this::watch).start();
    }

    private boolean attempt(double wait) {
        try {
            renew(wait);
            return true;
        } catch (Refused error) {
            // It may be another's already.
            if (LOST.contains(error.status)) deadline = new Deadline(Instant.now(), 0);
            interrupt("refused: " + error.getMessage(), Double.POSITIVE_INFINITY);
        } catch (RuntimeException error) {
            // Also an answer of a shape that nobody knows: as good as none.
            LOG.log(System.Logger.Level.DEBUG, what + ": not renewed yet: " + error);
        }
        return false;
    }

    private boolean pausing(double ms) {
        try {
            return ended.await((long) (ms * 1000), TimeUnit.MICROSECONDS);
        } catch (InterruptedException error) {
            return false;
        }
    }

    private void keep() {
        // After a failure, and once it stops, nothing is to be waited for at the node.
        for (int failed = 0; !pausing(failed == 0 ? pause() : line.pause(failed)) && held(); ) {
            failed = attempt(failed > 0 || stopping() ? 0 : POLL) ? 0 : failed + 1;
        }
    }

    private void watch() {
        while (!pausing(Math.min(TICK, Math.max(2, remaining())))) {
            if (deadline.left() <= Math.min(options.grace, length() / 5)) interrupt("it was not renewed in time", Double.POSITIVE_INFINITY);
            boolean isOver = !held() || stop != null && stop.since() >= within;
            if (isOver && told != null && told.since() >= LAST_CHANCE) {
                overrun();
                return;
            }
        }
    }

    private void overrun() {
        if (options.onOverrun != null) options.onOverrun.accept(this);
        else end();
    }

    private synchronized void end() {
        if (ended.getCount() == 0) return;
        try {
            StringBuilder text = new StringBuilder("soloist: " + what + " (token " + token + "): " + reason + ", and the work has not ended in time. "
                    + "This process ends now, because another may begin. Call check() between the acts, or give onOverrun a function.\n");
            for (StackTraceElement at : worker.getStackTrace()) text.append("    at ").append(at).append('\n');
            System.err.print(text);
        } finally {
            // No hooks: one of them may wait for the work.
            Runtime.getRuntime().halt(EXIT_CODE);
        }
    }

    /** The work has ended: no interrupt from here comes any more. Whether it is still held, for how long. */
    synchronized double finish() {
        double left = remaining();
        ended.countDown();
        worker = null;
        line.cut();
        if (stopping()) Thread.interrupted(); // it was ours, and is done with
        return left;
    }

    /** Says that it has ended, if it is still ours. */
    void end(String path, Map<String, Object> body, double left) {
        try {
            if (left > 0) line.another().call("POST", path, body, Math.min(2000, left), left);
        } catch (SoloistException error) {
            LOG.log(System.Logger.Level.WARNING, what + ": not given back, so it runs out by itself: " + error.getMessage());
        }
    }
}
