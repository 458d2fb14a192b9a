package io.soloist.client;

import static io.soloist.client.Hold.*;

import java.io.*;
import java.net.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.*;

/**
 * Run this while I am the one: a cluster of Soloist nodes, by the addresses of some of them. May be used by any number
 * of threads. Nothing beyond the JDK; it stores nothing and decides nothing: the node says who may work.
 *
 * <table>
 *   <caption>What stands where</caption>
 *   <tr><td>{@code Soloist}</td><td>leases, turns and tasks for programs; loops, options, what may fail</td></tr>
 *   <tr><td>{@link Hold}</td><td>may this program still work? The clocks, the deadline, the interrupt, the watchdog</td></tr>
 *   <tr><td>{@code Keeper}</td><td>renews and watches all that is held, by a fixed number of threads</td></tr>
 *   <tr><td>{@code LifeLine}</td><td>tells the watcher of a node on this machine under what this process works</td></tr>
 *   <tr><td>{@code Line}</td><td>HTTP to one of several nodes, with time-outs and fail-over</td></tr>
 *   <tr><td>{@code Wire}</td><td>the connections: HTTP/1.1, at most eight</td></tr>
 *   <tr><td>{@code Json}</td><td>reads and writes JSON</td></tr>
 * </table>
 */
@SuppressWarnings("serial") public final class Soloist {
    private static final String RESULTS = "/api/v1/results";
    private static final Predicate<Object> DONE = Line.has(Map.of("results", Line.listed(Map.of("id", Line.TEXT, "status", Line.TEXT)))),
            NO_WORK = Line.has(Map.of("reason", Line.TEXT)),
            WORK = Line.has(Map.of("claim", Line.TEXT, "tasks", Line.listed(Map.of("id", Line.TEXT, "key", Line.TEXT, "source", Line.TEXT,
                    "payload", any -> true, "token", Line.WHOLE, "attempt", Line.WHOLE)))),
            HANDED = DONE.and(Line.has(Map.of("claim", WORK.or(NO_WORK.and(Line.has(Map.of("tasks", List.of()::equals)))))));

    /**
     * Whether the end of the program (SIGTERM, Ctrl C, {@code System.exit}, the end of {@code main}) asks all work to stop and
     * gives back what is held, within the grace of the work. To be set to false by who does that himself, as Spring does.
     */
    public static volatile boolean closeOnExit = true;

    /** What is to be asked to stop when the program ends, beside all that is held. */
    private static final Set<Loop> LOOPS = ConcurrentHashMap.newKeySet();

    static {
        try { Runtime.getRuntime().addShutdownHook(new Thread(Soloist::leave, "soloist leaves")); }
        catch (IllegalStateException itEndsAlready) { closeOnExit = false; }
    }

    private static void leave() {
        if (!closeOnExit) return;
        List<Hold> holds = List.copyOf(Keeper.held());
        List<Loop> loops = List.copyOf(LOOPS);
        loops.forEach(loop -> loop.lines.forEach(Line::cut));
        holds.forEach(hold -> hold.interrupt("the program ends", NEVER));
        Instant end = Instant.in(holds.stream().mapToDouble(hold -> hold.options.grace.toMillis()).max().orElse(0));
        try {
            for (Hold hold : holds) if (!(hold instanceof Task)) hold.gone(end);
            for (Loop loop : loops)
                for (Thread thread : loop.threads) while (thread.isAlive() && end.left() > 0 && !exits(thread)) thread.join(20);
        } catch (Exception error) { Loop.tell(System.Logger.Level.WARNING, "not all was given back at the end", error); }
    }

    /** Who answered last is asked first. Clients that start together do not all begin at the same node. */
    volatile int answers = ThreadLocalRandom.current().nextInt(1000);
    /** Failures in a row, and when that was said. */
    volatile int failed;
    volatile Instant complained = Instant.in(-NEVER);
    final List<URI> urls;
    final String token;
    /** Null, or {@code leave}: the watcher of the life line never kills this process, as for one under a debugger. */
    final String overrun;

    /** @param addresses of some nodes, {@code http://a:8080} */
    public Soloist(List<String> addresses, String token) { this(addresses, token, null); }

    /** @param overrun {@code leave}: the watcher of the life line never kills this process, as for one under a debugger; or null */
    public Soloist(List<String> addresses, String token, String overrun) {
        if (overrun != null && !overrun.equals("leave")) throw new IllegalArgumentException("overrun is \"leave\" or null, not " + overrun);
        if (addresses.isEmpty()) throw new IllegalArgumentException("name at least one node, as http://HOST:PORT");
        if (!token.matches("[!-~]+"))
            throw new IllegalArgumentException("the token is empty, or has a blank, a line end or a letter that is not ASCII: give it as it was made");
        this.urls = addresses.stream().map(URI::create).toList();
        this.overrun = overrun;
        this.token = token;
    }

    static String encode(String name) {
        if (List.of("", ".", "..").contains(name)) throw new IllegalArgumentException('"' + name + "\" is no name");
        if (!java.nio.charset.StandardCharsets.UTF_8.newEncoder().canEncode(name)) throw new IllegalArgumentException("no encoder takes the name " + name);
        return URLEncoder.encode(name, java.nio.charset.StandardCharsets.UTF_8);
    }

    /**
     * Waits for a lease, which the calling thread then works under, and gives back by {@link Lease#close}.
     *
     * @throws Failure {@link NotGranted} after the patience, {@link Refused} when a node says no for good,
     *     {@link Unreachable} when none answers in time, or the thread is interrupted
     */
    public Lease lease(String name, Options options) { return new Lease(new Line(this, false), name, options); }

    /**
     * Runs the work in a thread of its own whenever this process has the lease, again and again until {@link
     * Loop#close}.
     */
    public Loop runWhileLeader(String name, Work<Lease> work, Options options) {
        encode(name); // what no encoder takes, or leads to another path, is the caller's error, and is not tried again and again
        return new Loop(this, name, 1, (line, loop) -> {
            Lease lease = loop.hold = new Lease(line, name, options);
            if (line.over.isDone()) lease.drop(); // no work begins after close()
            else try { work.run(lease); }
            catch (Throwable error) { throw lease.fail(error); }
            finally { lease.close(); }
        });
    }

    /**
     * Runs the work in a thread of its own once for each tick of a job with a schedule that this process is granted, until {@link Loop#close}.
     * Returning is done; what it throws is a failed tick, tried again by the job's {@code retries}. A tick that its own program stops
     * (the work throws {@link Stopped} or the interrupt) is a loss, and the job's {@code on_loss} follows.
     */
    public Loop scheduled(String job, Work<Tick> work, Options options) {
        encode(job);
        return new Loop(this, job, 1, (line, loop) -> {
            Tick tick = new Tick(line, job, options);
            loop.hold = tick;
            if (line.over.isDone()) tick.drop();
            else tick.does(work);
        });
    }

    /** As that, with the default options. */
    public Loop scheduled(String job, Work<Tick> work) { return scheduled(job, work, new Options()); }

    /** Waits for a turn of a rotation, which is passed by {@link Turn#close}. Throws as {@link #lease} does. */
    public Turn turn(String rotation, String type, Options options) { return new Turn(new Line(this, false), encode(rotation), type, options); }

    /**
     * Tasks of a source, in threads of their own, until {@link Loop#close}: returning is done; throwing {@link
     * Retry} or {@link Dead} says so; anything else that is thrown is another try. A result travels with the next
     * request for work.
     */
    @SuppressWarnings("unchecked") public Loop collect(String source, Work<Task> work, Options options) {
        return new Loop(this, "collect " + source, options.parallel, (line, loop) -> {
            var ask = Json.map("collector", options.name, "sources", List.of(source), "wait_ms", 0L);
            List<Object> results = new ArrayList<>();
            double length = 0; // until a node has said it
            try {
                while (!line.over.isDone()) {
                    Instant sent = Instant.in(0);
                    ask.put("request_id", UUID.randomUUID());
                    // A result waits for nothing. Who cannot wait at the node asks in between: all together once a second.
                    boolean waits = results.isEmpty() && Wire.take(Wire.WAITING, line, IN_LINE * options.parallel);
                    ask.put("wait_ms", waits ? (long) WAIT : 0L);
                    Map<?, ?> claim;
                    try { claim = (Map<?, ?>) line.call(RESULTS, Map.of("results", results, "claim", ask), (waits ? WAIT : 0) + SLACK, NEVER, HANDED).get("claim"); }
                    finally { if (waits) Wire.WAITING.release(); }
                    results.clear();
                    for (Object each : (List<?>) claim.get("tasks")) {
                        Task task = new Task(line, claim.get("claim"), length, options, (Map<String, Object>) each);
                        if (!task.confirm(line, sent, Instant.in(NEVER))) return; // lost before it began: the rules may be others by now
                        results.add(task.does(work));
                        length = task.length;
                    }
                    if (waits && results.isEmpty() && sent.left() > -WAIT / 2) line.sleep(Line.between(200, 1000));
                }
            } finally { if (!results.isEmpty()) new Line(this, false).call(RESULTS, Map.of("results", results), SLACK, WAIT, DONE); }
        });
    }

    /**
     * Gives the frames of the live stream to {@code reader}, in a thread of its own, until {@link Loop#close}; with
     * the log lines of the jobs {@code logs}. After every gap a snapshot comes first.
     */
    public Loop follow(Consumer<Map<String, Object>> reader, String... logs) {
        return new Loop(this, "live", 1, (line, loop) -> {
            var retry = new java.util.concurrent.atomic.AtomicReference<>(1000.0);
            String path = "/api/v1/live?follow=" + (logs.length == 0 ? "" : encode(String.join(",", logs)));
            try {
                line.once(path, null, Instant.in(WAIT), answer -> {
                    if (answer.status != 200) throw new Unreachable("no stream (HTTP " + answer.status + ")", answer.status);
                    answer.goesOn(SILENT, Line.MOST_OF_FRAME);
                    var lines = new BufferedReader(new InputStreamReader(answer, java.nio.charset.StandardCharsets.UTF_8));
                    for (String text; (text = lines.readLine()) != null; answer.goesOn(SILENT, Line.MOST_OF_FRAME))
                        if (text.startsWith("data:")) reader.accept(Json.read(text.substring(5)));
                        else if (text.startsWith("retry:")) retry.set(Double.valueOf(text.substring(6)));
                    return null;
                });
            } catch (IOException error) { Loop.tell(System.Logger.Level.DEBUG, "a gap: the next stream is another node's", error); }
            line.sleep(retry.get() * Line.between(0.5, 1.5));
        });
    }

    /** Is done under a hold. It must end soon after its thread is interrupted; what else it throws is its failure. */
    public interface Work<H extends Hold> { void run(H hold) throws Exception; }

    /** How to wait, and what to do at the deadline. Set before it is given to a call. */
    public static final class Options {
        /** Of a lease whose name is no job: how long it lasts unrenewed. */
        public Duration ttl = Duration.ofSeconds(10);
        /** How long to wait; then {@link NotGranted}. Default: for ever. */
        public Duration patience = Duration.ofMillis(Long.MAX_VALUE);
        /** So long before the deadline the work is asked to stop, at most a fifth of the lease. */
        public Duration grace = Duration.ofSeconds(1);
        /**
         * By which people find this process: the holder of a lease, the worker of a turn, the collector of tasks.
         * Default: the host and the process id, which the JVM says the other way round.
         */
        public String name = java.lang.management.ManagementFactory.getRuntimeMXBean().getName().toLowerCase()
                .replaceAll("[^a-z0-9]+", "-").replaceAll("^(\\d+)-(.{0,40}\\w).*", "$2-$1");
        /** How many tasks at once. */
        public int parallel = 1;
        /**
         * Is told, each time that a node says it, why this process must wait, as the map {@code answer} of {@link NotGranted}. It must
         * neither wait nor throw.
         */
        public Consumer<Map<String, Object>> onWaiting = answer -> { };
        /** What happens when the work has not ended in time. Default: the process ends with code 76 and says why. */
        public Consumer<Hold> onOverrun = Hold.EXIT;
    }

    /** Threads that do the same again and again until {@link #close}. */
    @SuppressWarnings("try") public static final class Loop implements AutoCloseable { // close() may be interrupted
        interface Once { void run(Line line, Loop loop) throws Throwable; }

        volatile Lease hold;
        private final List<Line> lines;
        private final List<Thread> threads;

        Loop(Soloist nodes, String what, int count, Once once) {
            lines = Collections.nCopies(count, nodes).stream().map(each -> new Line(each, false)).toList();
            threads = new CopyOnWriteArrayList<>();
            LOOPS.add(this);
            try { for (Line line : lines) threads.add(thread(what, () -> run(what, line, once))); }
            catch (Throwable noMoreThreads) {
                lines.forEach(Line::cut);
                LOOPS.remove(this);
                throw noMoreThreads;
            }
        }

        static Thread thread(String what, Runnable run) {
            Thread thread = daemon(what, run);
            thread.start();
            return thread;
        }

        private static Thread daemon(String what, Runnable run) {
            Thread thread = new Thread(run, "soloist " + what);
            thread.setDaemon(true);
            return thread;
        }

        /** So many threads at most, which end when they have nothing to do; so much may wait for them. */
        static ThreadPoolExecutor pool(String what, int most, int queue) {
            var pool = new ThreadPoolExecutor(most, most, 5, TimeUnit.SECONDS, new LinkedBlockingQueue<>(queue), run -> daemon(what, run));
            pool.allowCoreThreadTimeOut(true);
            return pool;
        }

        private static final AtomicLong LOST = new AtomicLong();
        private static final ThreadPoolExecutor TELLER = pool("log", 1, 200);

        /** Log lines are written by a thread of their own: a handler that hangs holds up nobody. What is too much is left out and counted. */
        static void tell(System.Logger.Level level, String text, Throwable error) {
            try {
                TELLER.execute(() -> {
                    long lost = LOST.getAndSet(0);
                    try { System.getLogger("soloist").log(level, lost == 0 ? text : text + " (" + lost + " lines before it were left out)", error); }
                    catch (Throwable ofAHandler) { LOST.incrementAndGet(); }
                });
            } catch (Throwable noMoreThreadsOrNoRoom) { LOST.incrementAndGet(); }
        }

        /** The lease, while it is held and the work runs, and the last one afterwards; null before the first. */
        public Lease hold() { return hold; }

        /** Asks the work to stop, begins nothing more, and waits until all has ended: of the thread that calls it nothing. */
        @Override public void close() throws InterruptedException {
            LOOPS.remove(this);
            lines.forEach(Line::cut);
            if (hold != null) hold.interrupt("closed", NEVER);
            join();
        }

        /** Waits until all has ended, which is when it was closed: the end of a {@code main} that does nothing else. */
        public void join() throws InterruptedException {
            for (Thread thread : threads) if (thread != Thread.currentThread()) thread.join();
        }

        private void run(String what, Line line, Once once) {
            for (int failed = 1; !line.over.isDone(); failed++) {
                try {
                    once.run(line, this);
                    failed = 0;
                } catch (Stopped | InterruptedException error) { failed = 0; }
                catch (Throwable error) { if (!line.over.isDone()) tell(System.Logger.Level.WARNING, what + " failed", error); }
                Thread.interrupted(); // what was meant for the work is over with it
                // Work that ends at once, or fails again and again, costs the cluster little.
                line.sleep(Line.between(100, 200) * Math.min(150, Math.pow(2, failed)));
            }
        }
    }

    /** Why something was not done, or is not to be. */
    public static class Failure extends RuntimeException {
        /** HTTP's; 0 if there is none. */
        public final int status;
        /**
         * The node's, of {@link NotGranted}: {@code reason} is one word ({@code busy}), {@code holder} who has it;
         * else empty.
         */
        public final transient Map<String, Object> answer;

        Failure(String text, int status, Map<String, Object> answer) {
            super(text);
            this.status = status;
            this.answer = answer;
        }
    }

    /** A node understood and refused; the text says what to do. */
    public static class Refused extends Failure { Refused(int status, String why) { super(why, status, Map.of()); } }

    /** No node answered: what was asked may or may not have been done. */
    public static class Unreachable extends Failure { Unreachable(String why, int status) { super(why, status, Map.of()); } }

    /** It was not had in time. */
    public static class NotGranted extends Failure { NotGranted(String text, Map<String, Object> answer) { super(text, 0, answer); } }

    /** The work must end now: somebody asked for it, or the deadline is near or over. */
    public static class Stopped extends Failure { Stopped(String why) { super(why, 0, Map.of()); } }

    /** Thrown by the work on a task: it is to be tried again, after so long or (null) after the source's backoff. */
    public static class Retry extends Failure { public Retry(String text, Long delayMs) { super(text, 0, Json.map("delay_ms", delayMs)); } }

    /** Thrown by the work on a task: it is never to be tried again. */
    public static class Dead extends Failure { public Dead(String text) { super(text, 0, Map.of()); } }
}
