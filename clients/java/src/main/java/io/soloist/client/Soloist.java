package io.soloist.client;

import static io.soloist.client.Hold.*;

import io.soloist.client.Line.Instant;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** A cluster of Soloist nodes, by the addresses of some of them. May be used by any number of threads. */
public final class Soloist {
    /**
     * Work under a lease. It must end soon after its thread is interrupted; what it throws otherwise is a failed run.
     */
    public interface Work { void run(Lease lease) throws Exception; }

    private static final String RESULTS = "/api/v1/results";
    private static final long WAIT_MS = (long) WAIT;
    /** A comment comes every 15 s on the live stream: one that is silent for longer is dead. */
    private static final double SILENT = 40_000;

    final List<URI> urls;
    final String token;
    private final String holder;

    /** @param addresses of some nodes, {@code http://a:8080} */
    public Soloist(List<String> addresses, String token) {
        this(addresses, token, here());
    }

    /** @param holder the name by which people find this process; else the host and its id */
    public Soloist(List<String> addresses, String token, String holder) {
        if (addresses.isEmpty()) throw new IllegalArgumentException("name at least one node, as http://HOST:PORT");
        this.urls = addresses.stream().map(URI::create).toList();
        this.token = token;
        this.holder = holder;
    }

    /** Host and process id, which the JVM says the other way round. */
    private static String here() {
        String[] name = ManagementFactory.getRuntimeMXBean().getName().toLowerCase().split("@", 2);
        String host = name[1].replaceAll("[^a-z0-9]+", "-").replaceAll("^-|-$", "");
        return (host.isEmpty() ? "host" : host.substring(0, Math.min(40, host.length()))) + "-" + name[0];
    }

    static String encode(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8); }

    /**
     * Waits for a lease, which the calling thread then works under, and gives back by {@link Lease#close}.
     *
     * @throws SoloistException {@code NotGranted} after the patience, {@code Refused} when a node says no for good,
     *     {@code Unreachable} when none answers in time, or the thread is interrupted
     */
    public Lease lease(String name, Options options) { return new Lease(new Line(this), name, holder, options); }

    /**
     * Runs the work in a thread of its own whenever this process has the lease, again and again until {@link
     * Loop#close}.
     */
    public Loop runWhileLeader(String name, Work work, Options options) {
        return new Loop(this, name, 1, (line, loop) -> {
            Lease lease = new Lease(line, name, holder, options);
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
        Line line = new Line(this);
        String path = "/api/v1/rotations/" + encode(rotation);
        return new Turn(line, path, type, name(options), length(line, path, options), options);
    }

    /** The end of a turn or claim is said by the store's clock, which is not ours: so its length must be known. */
    private static double length(Line line, String path, Options options) {
        if (options.lease != null) return options.lease;
        return (Long) line.call(path, null, SLACK, options.patience).get("lease_ms");
    }

    private String name(Options options) { return options.name == null ? holder : options.name; }

    /**
     * Tasks of a source, in threads of their own, until {@link Loop#close}: returning is done; throwing {@link
     * Task.Retry} or {@link Task.Dead} says so; anything else that is thrown is another try. A result travels with
     * the next request for work.
     */
    @SuppressWarnings("unchecked")
    public Loop collect(String source, Task.Handler handler, Options options) {
        return new Loop(this, "collect " + source, options.parallel, (line, loop) -> {
            double length = length(line, "/api/v1/sources/" + encode(source), options);
            var ask = Json.map("collector", name(options), "max", 1, "sources", List.of(source), "wait_ms", WAIT_MS);
            List<Object> results = new ArrayList<>();
            try {
                while (!line.isOver()) {
                    Instant sent = Instant.in(0);
                    ask.put("request_id", UUID.randomUUID().toString());
                    var both = Map.of("results", results, "claim", ask);
                    var claim = (Map<?, ?>) line.call(RESULTS, both, WAIT + SLACK, NEVER).get("claim");
                    results.clear();
                    for (Object each : (List<?>) claim.get("tasks")) {
                        Task task = new Task(line, claim.get("claim"), length, (Map<String, Object>) each);
                        if (!task.confirm(line, sent)) return; // lost before it began: the rules may be others by now
                        results.add(task.work(handler));
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
            try (Stream<String> lines = line.once(path, null, WAIT, BodyHandlers.ofLines())) {
                for (String text : (Iterable<String>) lines::iterator) {
                    line.closing(lines, SILENT);
                    if (text.startsWith("data:")) reader.accept(Json.read(text.substring(5)));
                    else if (text.startsWith("retry:")) retry = Double.parseDouble(text.substring(6));
                }
            } catch (UncheckedIOException error) {
                line.nth++; // a gap: the next stream, from another node, begins with a snapshot
            }
            line.sleep(Line.between(retry / 2, retry * 1.5));
        });
    }
}
