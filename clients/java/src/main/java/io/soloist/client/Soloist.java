package io.soloist.client;

import static io.soloist.client.Hold.*;

import io.soloist.client.Line.Instant;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Run this while I am the one: a cluster of Soloist nodes, by the addresses of some of them. May be used by any number
 * of threads. Nothing beyond the JDK; it stores nothing and decides nothing: the node says who may work.
 *
 * <table>
 *   <caption>What stands where</caption>
 *   <tr><td>{@code Soloist}</td><td>leases, turns and tasks for programs; loops, options, what may fail</td></tr>
 *   <tr><td>{@link Hold}</td><td>may this program still work? The deadline, the interrupt, the watchdog</td></tr>
 *   <tr><td>{@code Line}</td><td>the clocks; HTTP to one of several nodes, with time-outs and fail-over</td></tr>
 *   <tr><td>{@code Json}</td><td>reads and writes JSON</td></tr>
 * </table>
 */
@SuppressWarnings("serial")
public final class Soloist {
    /** A comment comes every 15 s on the live stream: one that is silent for longer is dead. */
    private static final double SILENT = 40_000;
    private static final String RESULTS = "/api/v1/results";

    final List<URI> urls;
    final String token;

    /** @param addresses of some nodes, {@code http://a:8080} */
    public Soloist(List<String> addresses, String token) {
        if (addresses.isEmpty()) throw new IllegalArgumentException("name at least one node, as http://HOST:PORT");
        this.urls = addresses.stream().map(URI::create).toList();
        this.token = token;
    }

    static String encode(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8); }

    /**
     * Waits for a lease, which the calling thread then works under, and gives back by {@link Lease#close}.
     *
     * @throws Failure {@link NotGranted} after the patience, {@link Refused} when a node says no for good,
     *     {@link Unreachable} when none answers in time, or the thread is interrupted
     */
    public Lease lease(String name, Options options) { return new Lease(new Line(this), encode(name), options); }

    /**
     * Runs the work in a thread of its own whenever this process has the lease, again and again until {@link
     * Loop#close}.
     */
    public Loop runWhileLeader(String name, Work<Lease> work, Options options) {
        return new Loop(this, name, 1, (line, loop) -> {
            Lease lease = new Lease(line, encode(name), options);
            loop.hold = lease;
            try {
                if (!line.isOver()) work.run(lease); // no work begins after close()
            } catch (Throwable error) {
                lease.fail(error);
                throw error;
            } finally { lease.close(); }
        });
    }

    /** Waits for a turn of a rotation, which is passed by {@link Turn#close}. Throws as {@link #lease} does. */
    public Turn turn(String rotation, String type, Options options) {
        return new Turn(new Line(this), encode(rotation), type, options);
    }

    /**
     * Tasks of a source, in threads of their own, until {@link Loop#close}: returning is done; throwing {@link
     * Task.Retry} or {@link Task.Dead} says so; anything else that is thrown is another try. A result travels with
     * the next request for work.
     */
    @SuppressWarnings("unchecked")
    public Loop collect(String source, Work<Task> work, Options options) {
        return new Loop(this, "collect " + source, options.parallel, (line, loop) -> {
            var ask = Json.map("collector", options.name, "sources", List.of(source), "wait_ms", (long) WAIT);
            List<Object> results = new ArrayList<>();
            double length = 0; // until a node has said it
            try {
                while (!line.isOver()) {
                    Instant sent = Instant.now();
                    ask.put("request_id", UUID.randomUUID().toString());
                    var both = Map.of("results", results, "claim", ask);
                    var claim = (Map<?, ?>) line.call(RESULTS, both, WAIT + SLACK, NEVER).get("claim");
                    results.clear();
                    for (Object each : (List<?>) claim.get("tasks")) {
                        Task task = new Task(line, claim.get("claim"), length, options, (Map<String, Object>) each);
                        if (!task.confirm(line, sent)) return; // lost before it began: the rules may be others by now
                        results.add(task.does(work));
                        length = task.length;
                    }
                    if (results.isEmpty() && sent.left() > -WAIT / 2) line.sleep(Line.between(200, 1000));
                }
            } finally {
                if (!results.isEmpty()) line.another().call(RESULTS, Map.of("results", results), SLACK, WAIT);
            }
        });
    }

    /**
     * Gives the frames of the live stream to {@code reader}, in a thread of its own, until {@link Loop#close}; with
     * the log lines of the jobs {@code logs}. After every gap a snapshot comes first.
     */
    public Loop follow(Consumer<Map<String, Object>> reader, String... logs) {
        String path = "/api/v1/live" + (logs.length == 0 ? "" : "?follow=" + encode(String.join(",", logs)));
        return new Loop(this, "live", 1, (line, loop) -> {
            double retry = 1000;
            var silent = new AtomicReference<>(Instant.in(SILENT));
            Stream<String> lines = line.once(path, null, WAIT, BodyHandlers.ofLines());
            Loop.thread("hears " + path, () -> {
                while (silent.get().left() > 0 && !line.sleep(1000)) continue;
                lines.close(); // whoever reads has an error then
            });
            try {
                for (String text : (Iterable<String>) lines::iterator) {
                    silent.set(Instant.in(SILENT));
                    if (text.startsWith("data:")) reader.accept(Json.read(text.substring(5)));
                    else if (text.startsWith("retry:")) retry = Double.parseDouble(text.substring(6));
                }
            } catch (UncheckedIOException error) {
                line.nth++; // a gap: the next stream, from another node, begins with a snapshot
            } finally { lines.close(); }
            line.sleep(Line.between(retry / 2, retry * 1.5));
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
        public String name = ManagementFactory.getRuntimeMXBean().getName().toLowerCase()
                .replaceAll("[^a-z0-9]+", "-").replaceAll("^(\\d+)-(.{0,40}\\w).*", "$2-$1");
        /** How many tasks at once. */
        public int parallel = 1;
        /** What happens when the work has not ended in time. Default: the process ends with code 76 and says why. */
        public Consumer<Hold> onOverrun = Hold::exit;
    }

    /** Threads that do the same again and again until {@link #close}. */
    @SuppressWarnings("try") // close() may be interrupted
    public static final class Loop implements AutoCloseable {
        interface Once { void run(Line line, Loop loop) throws Exception; }

        volatile Hold hold;
        private final List<Line> lines;
        private final List<Thread> threads;

        Loop(Soloist nodes, String what, int count, Once once) {
            lines = Stream.generate(() -> new Line(nodes)).limit(count).toList();
            threads = lines.stream().map(line -> thread(what, () -> run(what, line, once))).toList();
        }

        static Thread thread(String what, Runnable run) {
            Thread thread = new Thread(run, "soloist " + what);
            thread.setDaemon(true);
            thread.start();
            return thread;
        }

        /** The lease, while it is held and the work runs, and the last one afterwards; null before the first. */
        public Hold hold() { return hold; }

        /** Asks the work to stop, begins nothing more, and waits until all has ended. */
        @Override public void close() throws InterruptedException {
            lines.forEach(Line::cut);
            if (hold != null) hold.interrupt("closed", NEVER);
            for (Thread thread : threads) thread.join();
        }

        private void run(String what, Line line, Once once) {
            for (int failed = 0; !line.isOver(); ) {
                try {
                    once.run(line, this);
                    failed = 0;
                } catch (Throwable error) {
                    failed = error instanceof Stopped || error instanceof InterruptedException ? 0 : failed + 1;
                    if (failed > 0 && !line.isOver()) LOG.log(System.Logger.Level.WARNING, what + " failed", error);
                }
                Thread.interrupted(); // what was meant for the work is over with it
                // Work that ends at once, or fails again and again, costs the cluster little.
                line.sleep(Line.between(100, 200) * Math.min(150, Math.pow(2, failed)));
            }
        }
    }

    /** Why something was not done, or is not to be. */
    public static class Failure extends RuntimeException {
        /** HTTP's, of {@link Refused}; else 0. */
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
    public static class Unreachable extends Failure { Unreachable(String why) { super(why, 0, Map.of()); } }

    /** It was not had in time. */
    public static class NotGranted extends Failure {
        NotGranted(String what, Map<String, Object> answer) { super(what + ": " + answer.get("reason"), 0, answer); }
    }

    /** The work must end now: somebody asked for it, or the deadline is near or over. */
    public static class Stopped extends Failure { Stopped(String why) { super(why, 0, Map.of()); } }
}
