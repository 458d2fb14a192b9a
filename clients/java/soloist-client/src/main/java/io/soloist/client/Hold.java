package io.soloist.client;

import io.soloist.client.Soloist.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.*;
import java.util.stream.Stream;

/**
 * Something that is held until a deadline: a lease, a turn, a task. {@link Keeper} renews it and watches the deadline, of all that the
 * process holds: what is only held costs no thread and no connection.
 *
 * <p>The deadline counts from before the last renewal that was answered was sent. An answer that says no (409) ends
 * the hold at once. No answer means nothing: the next node is asked, until the deadline. What the node says of the
 * length counts, never what this program wished. What was waited for is renewed once before the work begins: it may
 * be as old as the question.
 *
 * <p>From "the deadline is near" to the end of the process no lock is taken that others keep while they wait, nothing is
 * logged, and nobody is waited for: not for a handler of logs, not for who reads standard error.
 *
 * <p>All times are in milliseconds. Every method may be called by any thread.
 */
public abstract class Hold {
    /** Of the process, as {@code soloist run} when its lease was lost. */
    public static final int EXIT_CODE = 76;
    /**
     * Clocks may run 1 % apart. The last chance is what the work has when it could not be told before the deadline, as after a
     * pause. The process begins to end so long ahead of the deadline, a tenth of the lease
     * within bounds: a halt takes its time on a busy machine. Its reason is written so long before that. Nobody is told later than soon before the deadline. So long before
     * the watcher kills is the deadline of what is watched, less for a short lease: a JVM that halts waits 300 ms for threads in native code,
     * such as any that waits for a socket, while no thread does anything more.
     */
    private static final double TRUST = 0.99, LAST_CHANCE = 100, AHEAD = 50, MOST_AHEAD = 200, WORDS = 50, SOON = 150, BEFORE_KILL = 400;
    /**
     * One long poll, and for its answer: a node that is paused hides a grant no longer. So long a program waits for a connection to wait at; then it
     * asks in between. A comment comes every 15 s on the live stream: one that is silent for longer is dead.
     */
    static final double WAIT = 10_000, SLACK = 2_000, IN_LINE = 1_000, BETWEEN = 50, SILENT = 40_000, NEVER = Double.POSITIVE_INFINITY;
    /** HTTP: it is over, or another's; or not for us. */
    private static final List<Integer> LOST = List.of(404, 409), FINAL = List.of(401, 403, 404, 409);
    private static final List<String> OWN_END = List.of("closed", "the program ends");
    static final Consumer<Hold> EXIT = Hold::exit;
    /**
     * What a node says. A longer length than was granted is not trusted, and one that is so many times as long is no
     * node's.
     */
    private static final Predicate<Object> TURN = Line.has(Map.of("turn", Line.TEXT, "token", Line.WHOLE, "lease_until", Line.TEXT)),
            STOP = Line.has(Map.of("why", Line.TEXT, "within_ms", Line.WHOLE));
    private static final long LONGER = 10;

    /** Interrupts: by threads of their own, because a thread may have an interrupt() that waits. */
    private static final ThreadPoolExecutor INTERRUPTS = Loop.pool("interrupts", 2, Integer.MAX_VALUE);

    final Line line;
    final Options options;
    final String what, path;
    private final double grace;
    /** What the node says of the grant; empty before it answers. */
    volatile Map<String, Object> grant;
    volatile double length;
    private volatile double margin;
    private volatile Instant deadline = Instant.in(0), stop = Instant.in(NEVER), lastChance = stop;
    /** Of the keeper: when it is renewed next, and how often in a row that was not answered. */
    volatile Instant due = stop;
    volatile int failed;
    /** Of who watches: its deadline is over, and nothing is left to do. */
    private boolean done, spoke;
    private volatile String reason;
    /** A node asked it to stop. */
    volatile boolean told;
    /** Null before the work begins and after it has ended: then nobody is interrupted. */
    private volatile Thread worker;
    /** Kept for moments only: the first by whoever tells, the second while the worker is interrupted. */
    private final Object telling = new Object(), waking = new Object();
    private final AtomicBoolean ending = new AtomicBoolean();
    private final CompletableFuture<Boolean> given = new CompletableFuture<>();

    Hold(Line way, String what, String path, Options options, Map<String, Object> grant) {
        this.line = new Line(way.nodes, false);
        this.what = what;
        this.path = path;
        this.options = options;
        this.grace = Math.max(options.grace.toMillis(), SOON);
        this.grant = grant;
    }

    /** One try at one node, which may wait for so long: one {@link #post}. */
    abstract void renew(Line line, double wait);

    /** Between two renewals. */
    double every() { return grant.get("renew_every_ms") instanceof Long ms ? ms : length / 3; }

    /** Whether a renewal waits at the node, where the work may be asked to stop: then the next one follows at once. */
    boolean polls() { return grant.get("run") != null; }

    /** Whether there is something to say that was not sent yet. */
    boolean hasNews() { return false; }

    /** The fencing token: grows with every grant. A sink can refuse older ones. */
    public long token() { return (Long) grant.get("token"); }

    /** Whether this program may still work. Reads the clocks, so it is right at once after a pause. */
    public boolean held() { return remaining() > 0; }

    /** Until the deadline; never negative. */
    public double remaining() { return line.over.isDone() ? 0 : Math.max(0, left()); }

    private double left() { return deadline.left() - margin; }

    Instant deadline() { return deadline; }

    /** Whether the work must end. Its thread was interrupted then. */
    public boolean stopping() { return reason() != null; }

    /**
     * Why: {@code off}, {@code held}, {@code moved}, {@code drained}, {@code removed}, {@code timed_out},
     * {@code closed}, or a sentence; else null.
     */
    public String reason() { return reason != null || held() ? reason : "it is over"; }

    /**
     * To be called before every act that must not be done twice.
     *
     * @throws Stopped unless the work may go on
     */
    public void check() { if (stopping()) throw new Stopped(reason()); }

    /** Asks the work to end, as a node does: its thread is interrupted, and it is given until the deadline. May be called by any thread. */
    public void stop(String why) { interrupt(why, NEVER); }

    /** Asks the work to end. Before it begins that is not kept: an order to stop that is still true comes again. */
    void interrupt(String why, double within) {
        synchronized (telling) {
            if (worker != null && within < stop.left()) stop = Instant.in(within);
            if (worker == null || reason != null) return;
            lastChance = Instant.in(LAST_CHANCE);
            reason = why;
        }
        try { INTERRUPTS.execute(this::wake); }
        catch (Throwable noMoreThreads) { wake(); }
    }

    private void wake() {
        synchronized (waking) { if (worker != null) worker.interrupt(); } // it becomes null under the same lock
    }

    /** How long a renewal may take, so that another node can still be asked before the deadline. */
    static double patience(double left, double wait, int many) { return wait + Math.max(250, Math.min(1000 + many, (left - wait) / 3)); }

    /** Says that it goes on, by names and values. */
    void post(Line line, String act, double wait, Predicate<Object> shape, Object... body) {
        Instant sent = Instant.in(0);
        var answer = line.call(path + act, Json.map(body), patience(left(), wait, 0), 0, shape);
        if (answer.get("kept") instanceof List<?> kept && kept.isEmpty()) throw new Refused(409, "it is another's now");
        hear(answer, sent);
    }

    /** What the life line is told: the work is about to begin, its end has moved, it has ended. */
    void begins() { }
    void moved() { }
    void ended() { }

    /** Nothing was begun. */
    void drop() { finish(); }

    /** The watcher kills so long before the end of the lease: the work is over before. */
    void arm(double before) { margin = before + Math.min(BEFORE_KILL, Math.max(50, length / 25)); }

    /** The deadline, and perhaps an order to stop, by what a node said. */
    void hear(Map<?, ?> answer, Instant since) {
        if ((answer.get("expires_in_ms") == null ? answer.get("lease_ms") : answer.get("expires_in_ms")) instanceof Long ms)
            length = grant.get("expires_in_ms") instanceof Long most ? Math.min(ms, most) : ms;
        deadline = new Instant(since.mono + length * TRUST, since.wall + length * TRUST);
        moved();
        if (!(answer.get("stop") instanceof Map<?, ?> now)) return;
        told = true;
        interrupt("" + now.get("why"), (Long) now.get("within_ms"));
    }

    /** Waits until it is granted. What its requests are named begins with its kind, which no node looks at, and whoever takes a node's place in a test may. */
    void acquire(Line way, String path, Map<String, Object> ask, Predicate<Object> shape, String kind) {
        Instant end = Instant.in(options.patience.toMillis()), last = Instant.in(options.patience.toMillis() + SLACK);
        ask.put("request_id", kind + UUID.randomUUID());
        for (int failed = 0, asked = 0; ; asked++) {
            Instant sent = Instant.in(0);
            // Of what is left so much is kept that another node can still be asked.
            double timeout = Math.min(WAIT + SLACK, Math.max(250, last.left() * 2 / 3)), left = Math.max(0, end.left());
            double poll = Math.max(0, Math.min(Math.min(WAIT, left), timeout - SLACK / 2));
            // What is free is had at once, and needs no place where one waits.
            boolean waits = asked > 0 && poll > 0 && Wire.take(Wire.WAITING, way, Math.min(IN_LINE, poll));
            if (!waits) poll = asked > 0 ? Math.min(BETWEEN, poll) : 0;
            ask.put("wait_ms", (long) poll);
            try { grant = way.call(path, ask, Math.min(timeout, poll + SLACK), 0, shape); }
            catch (Unreachable error) {
                if (way.sleep(Math.min(way.pause(++failed), Math.max(0, last.left()))) || last.left() <= 0) throw error;
                continue;
            } finally { if (waits) Wire.WAITING.release(); }
            failed = 0;
            if (!grant.containsKey("token")) options.onWaiting.accept(grant);
            double soon = grant.get("retry_in_ms") instanceof Long ms ? Math.min(5000, Math.max(200, ms)) : 200;
            if (grant.containsKey("token") && confirm(way, sent, last)) return;
            if (grant.containsKey("token")) ask.put("request_id", kind + UUID.randomUUID()); // it is over; another is another
            else if (end.left() <= 0) throw new NotGranted(what + ": " + grant.get("reason"), grant);
            // If it did not wait, the node knows that it cannot be soon.
            else if (sent.left() > -poll / 2) way.sleep(Line.between(0.5, 1) * Math.min(soon, left));
        }
    }

    /**
     * Renews a grant that was first asked for at {@code sent}, unless that was just now; keeps it if it is worth
     * something, as is known before {@code last}.
     */
    boolean confirm(Line way, Instant sent, Instant last) {
        hear(grant, sent);
        boolean sure = sent.left() > -length / 10;
        if (!sure) deadline = Instant.in(length > 0 ? length : WAIT); // so long it is worth asking
        for (int failed = 0; !sure && held() && last.left() > 0 && !way.sleep(failed == 0 ? 0 : way.pause(failed)); failed++) sure = attempt(() -> renew(line, 0));
        if (!sure) return false;
        worker = Thread.currentThread();
        due = Instant.in(polls() ? 0 : every());
        try { Keeper.add(this); }
        catch (Throwable noMoreThreads) {
            drop();
            throw noMoreThreads;
        }
        begins();
        return true;
    }

    /** One try; whether it was answered. An answer of a shape that nobody knows is as good as none. */
    boolean attempt(Runnable once) {
        try {
            once.run();
            return true;
        } catch (Refused error) {
            if (LOST.contains(error.status)) deadline = Instant.in(0); // it may be another's already
            interrupt("refused: " + error.getMessage(), NEVER);
        } catch (RuntimeException error) { Loop.tell(System.Logger.Level.DEBUG, what + ": not renewed yet: " + error, null); }
        return false;
    }

    /** Renews it by a call of its own; {@code apart}: because its node knows no other, so nothing can wait there for many. */
    void alone(Line line, double wait, boolean apart) {
        line.waits = wait > 0;
        again(attempt(() -> renew(line, wait)), line.hungUp ? 0 : line.pause(failed + 1)); // what was hung up is asked again at once, and waits for nothing
        if (failed == 0 && apart) due = Instant.in(every() / 2);
    }

    /** The next renewal: after so long if the last one was not answered. */
    void again(boolean answered, double pause) {
        failed = answered ? 0 : failed + 1;
        due = Instant.in(!answered ? pause : stopping() ? every() / 2 : polls() ? 0 : every());
    }

    /** Does what is due at the deadline, and waits for nothing; how long that is off. */
    double watch() {
        double ahead = options.onOverrun == EXIT ? Math.max(AHEAD, Math.min(MOST_AHEAD, length / 10)) : 0, near = left() - Math.min(grace, length / 5);
        if (done) return NEVER;
        if (near <= 0) interrupt("it was not renewed in time", NEVER);
        double left = Math.max(Math.min(left(), stop.left()) - ahead, lastChance.left());
        done = left <= 0;
        boolean ends = options.onOverrun == EXIT && !(this instanceof Task);
        if (ends && reason != null && left <= WORDS && !spoke) speak();
        // A task that outlives its lease harms nobody: its result is refused.
        try {
            if (done && ends) exit();
            else if (done && !(this instanceof Task)) Loop.thread("tells that " + what + " is over", () -> options.onOverrun.accept(this));
        } catch (Throwable noMoreThreads) { exit(); }
        return Math.max(2, reason == null ? near : ends && !spoke ? left - WORDS : left);
    }

    /** Why the process is about to end, by a thread that nobody waits for: it is started before, for a start and a wait take longer than all else. */
    private void speak() {
        spoke = true;
        Thread its = worker;
        if (its == null) return;
        try {
            Loop.thread("last words", () -> {
                // In one write: printf makes one of each piece.
                System.err.println(String.format("soloist: %s (token %d): %s, and the work has not ended in time. This process "
                        + "ends now: another may begin. Call check() between the acts, or set onOverrun.", what, token(), reason));
                for (StackTraceElement at : its.getStackTrace()) System.err.println("    at " + at);
            });
        } catch (Throwable noMoreThreads) { return; } // without a word, then
    }

    /** Ends this process, unless the work has ended meanwhile. */
    void exit() {
        if (worker != null) Runtime.getRuntime().halt(EXIT_CODE); // no hooks: one of them may wait for the work
    }

    /** The work has ended: no interrupt from here comes any more. */
    void finish() {
        line.cut();
        synchronized (waking) { worker = null; }
        if (reason != null) Thread.interrupted(); // it was ours, and is done with
        Keeper.remove(this);
    }

    /** Whether this thread called {@code System.exit}: then it does nothing more, and waits for who would wait for it. */
    static boolean exits(Thread thread) { return Stream.of(thread.getStackTrace()).anyMatch(at -> at.getClassName().equals("java.lang.Shutdown")); }

    /** The program ends: waits until the work has ended, and was given back. */
    void gone(Instant end) throws Exception {
        for (Thread its; end.left() > 0 && (its = worker) != null; Thread.sleep(5))
            if (exits(its) && this instanceof AutoCloseable held) held.close();
        if (worker == null) given.get((long) SLACK, TimeUnit.MILLISECONDS);
    }

    /** The work has ended: says so by names and values, once, if it is still ours; without an act nothing. Its last words are worth one try. */
    void end(String act, String shown, Object... body) {
        if (!ending.compareAndSet(false, true)) return;
        finish();
        // What is meant for the thread does not keep what it held.
        boolean interrupted = Thread.interrupted();
        try {
            ended();
            while (hasNews() && left() > 0 && attempt(() -> renew(new Line(line.nodes, false), 0))) continue;
            for (boolean said = act == null; !said && left() > 0; interrupted |= Thread.interrupted()) {
                try {
                    new Line(line.nodes, false).call(path + act, Json.map(body), Math.min(SLACK, left() / 2), left(), Line.has(Map.of(shown, Objects::nonNull)));
                    said = true;
                } catch (Failure error) {
                    said = !Thread.currentThread().isInterrupted();
                    if (said) Loop.tell(System.Logger.Level.WARNING, what + ": not given back, so it runs out by itself", error);
                }
            }
        } finally {
            given.complete(true);
            if (interrupted) Thread.currentThread().interrupt();
        }
    }

    /**
     * An instant, by both clocks.
     *
     * <p>Java has no clock that goes on while the machine is suspended: on Linux {@code System.nanoTime} is
     * CLOCK_MONOTONIC, which stands still then. So the wall clock is a second witness: of the two, the one by which
     * more time has passed counts. A wall clock that is set forward ends a lease too early, which is safe; one that
     * is set back changes nothing.
     */
    record Instant(double mono, double wall) {
        /** So long from now. */
        static Instant in(double ms) { return new Instant(System.nanoTime() / 1e6 + ms, System.currentTimeMillis() + ms); }

        /** How long until then; negative afterwards. */
        double left() { return Math.min(mono - System.nanoTime() / 1e6, wall - System.currentTimeMillis()); }
    }

    /** The right to be the only one. Given back by {@link #close}, when the work has ended. */
    public static sealed class Lease extends Hold implements AutoCloseable permits Tick {
        /**
         * Lines that wait to be sent, the oldest go first; lines in a renewal, characters in a line: a node takes
         * 64 KiB.
         */
        private static final int KEPT = 1000, AT_ONCE = 30, LONGEST = 500;

        final String name;
        private final Queue<String> lines = new ArrayBlockingQueue<>(KEPT);
        /** How far the work is, until that is sent. */
        private final Map<String, Object> news = new ConcurrentHashMap<>();
        private volatile String failure;
        /** Of the life line: the work has ended; what was told was over already; done when it was answered or no answer is to be waited for. */
        volatile boolean over, passed;
        volatile CompletableFuture<Boolean> known = new CompletableFuture<>();
        volatile String state = "";

        private static final Predicate<Object> GRANT = Line.has(Map.of("secret", Line.TEXT, "token", Line.WHOLE, "expires_in_ms", Line.SPAN, "renew_every_ms", Line.SPAN)),
                BUSY = Line.has(Map.of("reason", Line.TEXT, "retry_in_ms", Line.WHOLE)), NO = Line.has(Map.of("status", Line.WHOLE, "detail", Line.TEXT));
        private final Predicate<Object> kept = Line.has(Map.of("stop", stop -> stop == null || STOP.test(stop),
                "expires_in_ms", ms -> Line.SPAN.test(ms) && (Long) ms <= LONGER * (Long) grant.get("expires_in_ms")));

        Lease(Line way, String name, Options options) { this(way, name, options, ""); }

        Lease(Line way, String name, Options options, String kind) {
            super(way, "lease " + name, "/api/v1/leases/" + Soloist.encode(name), options, Map.of());
            this.name = name;
            acquire(way, path, Json.map("holder", options.name, "ttl_ms", options.ttl.toMillis()), GRANT.or(BUSY), kind);
        }

        /** The run of the job that this grant is, if its name is a job; else null. */
        public String run() { return (String) grant.get("run"); }

        /** Moves the job's progress bar, with the next renewal. */
        public void progress(long done, long total, String note) { news.put("far", Json.map("done", done, "total", total, "note", Json.cut("" + note, LONGEST))); }

        /** A line of the job's output, sent with the next renewal: at least once. */
        public void log(String text) {
            for (String line : text.split("\\R"))
                while (!lines.offer(Json.cut(line, LONGEST))) lines.poll();
        }

        /** The work has failed; gives the error, to be thrown. To end because one was asked to is no failure. */
        public <E extends Throwable> E fail(E error) {
            if (!asked(error)) failure = Json.cut("" + error, LONGEST);
            return error;
        }

        boolean asked(Throwable error) { return stopping() && (error instanceof Stopped || error instanceof InterruptedException); }

        double until() { return deadline().mono; }

        @Override void moved() { LifeLine.say(this); }

        @Override void begins() {
            LifeLine.begin(line.nodes, this);
            if (!passed) return;
            known = new CompletableFuture<>(); // it is renewed first
            if (passed) LifeLine.await(this, (Long) grant.get("renew_every_ms") + 150);
        }

        @Override void drop() {
            try { end("/release", "released", "secret", grant.get("secret"), "end", "unused"); }
            catch (Throwable noMoreThreads) { return; } // it runs out by itself
        }

        @Override void ended() { LifeLine.end(this); }

        @Override boolean hasNews() { return !news.isEmpty() || !lines.isEmpty(); }

        /** How it ended, without a failure: work that its own program asked to stop is not done: the next may begin at once, and a job that ends with its work is not off. */
        String word() { return reason() != null && OWN_END.contains(reason()) ? "unused" : "done"; }

        @Override public void close() {
            String word = failure == null ? word() : "failed";
            end("/release", "released", "secret", grant.get("secret"), "end", word, "error", failure);
        }

        /** How many characters wait to be sent with the next renewal. */
        int says() { return lines.stream().limit(AT_ONCE).mapToInt(String::length).sum(); }

        Said said() { return new Said(this, news.get("far"), lines.stream().limit(AT_ONCE).toList()); }

        /** What is said with a renewal. */
        record Said(Lease lease, Object far, List<String> lines) {
            Map<String, Object> body() { return Json.map("name", lease.name, "secret", lease.grant.get("secret"), "progress", far, "lines", lines); }

            /** What became of it, among others. */
            void heard(Object answer, Instant sent) {
                if (lease.line.over.isDone()) return;
                boolean answered = lease.attempt(() -> sent(() -> {
                    if (NO.test(answer) && answer instanceof Map<?, ?> no) throw Line.no((Long) no.get("status"), "" + no.get("detail"), (Long) no.get("status"));
                    if (!(lease.kept.test(answer) && answer instanceof Map<?, ?> said)) throw new Unreachable("not the answer of a node", 0);
                    lease.hear(said, sent);
                }));
                lease.again(answered, lease.line.pause(lease.failed + 1));
            }

            void sent(Runnable renewal) {
                try { renewal.run(); }
                catch (Refused error) {
                    if (FINAL.contains(error.status) || far == null && lines.isEmpty()) throw error;
                    // What the work says must not cost it the lease.
                    Loop.tell(System.Logger.Level.WARNING, lease.what + ": its output was refused and is dropped", error);
                }
                lines.forEach(lease.lines::remove);
                if (far != null) lease.news.remove("far", far);
            }
        }

        @Override void renew(Line line, double most) {
            Said said = said();
            said.sent(() -> post(line, "/renew", most, kept, "secret", grant.get("secret"), "wait_ms", (long) most, "progress", said.far, "lines", said.lines));
        }
    }

    /** One tick of a job with a schedule, and the lease under which its work runs. */
    public static final class Tick extends Lease {
        private static final Predicate<Object> DUE = Line.has(Map.of("tick", Line.TEXT, "due", Line.TEXT, "attempt", Line.WHOLE, "late_ms", Line.WHOLE, "params", Map.class::isInstance));

        private volatile boolean begun, returned;

        Tick(Line way, String job, Options options) { super(way, job, options, "tick-"); }

        /** As {@code settle@2026-11-27T02:30+08:00[Asia/Shanghai]}: the same in every attempt. */
        public String name() { return (String) grant.get("tick"); }

        /** When it was due. */
        public java.time.Instant due() { return java.time.Instant.parse((String) grant.get("due")); }

        /** From 1. */
        public long attempt() { return (Long) grant.get("attempt"); }

        /** So long after its time it was granted. */
        public long lateMs() { return (Long) grant.get("late_ms"); }

        /** Every parameter of the job, as text. */
        @SuppressWarnings("unchecked") public Map<String, String> params() { return (Map<String, String>) grant.get("params"); }

        /** Does it; the next tick does not wait for one that failed. */
        void does(Work<Tick> work) throws Throwable {
            try {
                if (!DUE.test(grant)) throw new Failure(name + " has no schedule", 0, Map.of());
                begun = true;
                work.run(this);
                returned = true;
            } catch (Throwable error) {
                if (asked(fail(error)) || !begun) throw error;
                Loop.tell(System.Logger.Level.WARNING, name() + ", attempt " + attempt() + " failed", error);
            } finally { close(); }
        }

        /** Stopped in the middle by its own program it is lost: nobody knows how far it came. */
        @Override String word() {
            if (!returned && begun && !told) Loop.tell(System.Logger.Level.WARNING, name() + ": stopped in the middle (" + reason() + "): it is lost, and its on_loss follows", null);
            return returned ? "done" : !begun ? "unused" : told ? "failed" : "lost";
        }
    }

    /** A turn of a rotation. Passed by {@link #close}. The work may set the three fields. */
    public static final class Turn extends Hold implements AutoCloseable {
        /**
         * How it ended, {@code done}, {@code empty} or {@code failed}; the type that comes next; RFC 3339: no turn
         * starts before.
         */
        public volatile String outcome = "done", next, notBefore;

        Turn(Line way, String rotation, String type, Options options) {
            super(way, "turn " + rotation + "/" + type, "/api/v1/rotations/" + rotation + "/turns", options, Map.of());
            acquire(way, path + "?expires=true", Json.map("type", type, "worker", options.name),
                    TURN.and(Line.has(Map.of("lease_ms", Line.SPAN))).or(Line.has(Map.of("reason", Line.TEXT, "ahead", Line.WHOLE))), "");
        }

        private String its(String act) { return "/" + grant.get("turn") + act; }

        @Override void renew(Line line, double wait) { post(line, its("/extend"), 0, TURN, "token", token()); }

        @Override public void close() { end(its("/pass"), "turn", "token", token(), "outcome", outcome, "next", next, "not_before", notBefore); }
    }

    /** One task in this collector's hands. */
    public static final class Task extends Hold {
        /** As put. */
        public final String id = (String) grant.get("id"), key = (String) grant.get("key"), source = (String) grant.get("source");
        /** As put: any JSON, as maps, lists, strings, {@code Long}, {@code Double}, booleans, null. */
        public final Object payload = grant.get("payload");
        /** From 1. */
        public final long attempt = (Long) grant.get("attempt");

        Task(Line way, Object claim, double length, Options options, Map<String, Object> task) {
            super(way, "task " + task.get("key"), "/api/v1/claims/" + claim, options, task);
            this.length = length;
        }

        @Override void renew(Line line, double wait) { post(line, "/extend?expires=true", 0, Line.has(Map.of("kept", Line.MANY, "lost", Line.MANY))); }

        /** Does it; the result. */
        Map<String, Object> does(Work<Task> work) {
            var result = Json.map("id", id, "token", token(), "outcome", "done");
            try { work.run(this); }
            catch (Throwable error) {
                result.putAll(Json.map("outcome", error instanceof Dead ? "dead" : "retry", "error", Json.cut("" + error, 900)));
                if (error instanceof Retry retry) result.putAll(retry.answer);
            } finally { finish(); }
            return result;
        }
    }
}
