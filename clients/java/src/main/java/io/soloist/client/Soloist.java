package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.SoloistException.Refused;
import io.soloist.client.SoloistException.Unreachable;
import java.net.InetAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.net.UnknownHostException;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** A cluster of Soloist nodes, by the addresses of some of them. May be used by any number of threads. */
public final class Soloist {
    /** Work under a lease. It must end soon after its thread is interrupted; what it throws otherwise is a failed run. */
    public interface Work {
        void run(Lease lease) throws Exception;
    }

    /** A comment comes every 15 s on the live stream: one that is silent for longer is dead. */
    private static final long SILENT = 40_000;

    private final Line nodes;
    private final String holder;

    /** @param addresses of some nodes, {@code http://a:8080} */
    public Soloist(List<String> addresses, String token) {
        this(addresses, token, hostname() + "-" + ProcessHandle.current().pid());
    }

    /** @param holder the name by which people find this process */
    public Soloist(List<String> addresses, String token, String holder) {
        if (addresses.isEmpty()) throw new IllegalArgumentException("no address: name at least one node, each as http://HOST:PORT");
        this.nodes = new Line(addresses.stream().map(URI::create).toList(), token);
        this.holder = holder;
    }

    private static String hostname() {
        try {
            String name = InetAddress.getLocalHost().getHostName().toLowerCase().replaceAll("[^a-z0-9]+", "-").replaceAll("^-|-$", "");
            return name.substring(0, Math.min(40, name.length()));
        } catch (UnknownHostException error) {
            return "host";
        }
    }

    static String encode(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8);
    }

    /**
     * Waits for a lease, which the calling thread then works under, and gives back by {@link Lease#close}.
     *
     * @throws SoloistException {@code NotGranted} after the patience, {@code Refused} when a node says no for good, {@code Unreachable} when
     *     none answers in time, or the thread is interrupted
     */
    public Lease lease(String name, Options options) {
        return new Lease(nodes.another(), name, options).acquired(nodes.another(), holder);
    }

    /** Runs the work in a thread of its own whenever this process has the lease, again and again until {@link Loop#close}. */
    public Loop runWhileLeader(String name, Work work, Options options) {
        Loop loop = new Loop();
        return loop.start(name, 1, nodes, line -> {
            try (Lease lease = new Lease(nodes.another(), name, options).acquired(line, holder)) {
                loop.hold = lease;
                try {
                    // No work begins after close().
                    if (!loop.isOver()) work.run(lease);
                } catch (Throwable error) {
                    lease.fail(error);
                    throw error;
                }
            }
        });
    }

    /** Waits for a turn of a rotation, which is passed by {@link Turn#close}. Throws as {@link #lease} does. */
    public Turn turn(String rotation, String type, Options options) {
        String path = "/api/v1/rotations/" + encode(rotation);
        Line line = nodes.another();
        String worker = options.name == null ? holder : options.name;
        return new Turn(nodes.another(), path, type, length(line, path, options), options).acquired(line, type, worker);
    }

    /** The end of a turn or claim is said by the store's clock, which is not ours: so its length must be known. */
    private static double length(Line line, String path, Options options) {
        if (options.lease != null) return options.lease.toMillis();
        return (Long) line.call("GET", path, null, Hold.SLACK, options.patience).get("lease_ms");
    }

    /**
     * Tasks of a source, in threads of their own, until {@link Loop#close}: returning is done; throwing {@link Task.Retry} or
     * {@link Task.Dead} says so; anything else that is thrown is another try. A result travels with the next request for work.
     */
    public Loop collect(String source, Task.Handler handler, Options options) {
        Loop loop = new Loop();
        return loop.start("collect " + source, options.parallel, nodes, line -> {
            double length = length(line, "/api/v1/sources/" + encode(source), options);
            List<Object> results = new ArrayList<>();
            try {
                while (!loop.isOver()) {
                    Instant sent = Instant.now();
                    Map<String, Object> ask = Map.of("collector", options.name == null ? holder : options.name, "max", 1, "sources", List.of(source),
                            "wait_ms", (long) Hold.WAIT, "request_id", UUID.randomUUID().toString());
                    Map<?, ?> claim = (Map<?, ?>) line.call("POST", "/api/v1/results", Map.of("results", results, "claim", ask),
                            Hold.WAIT + Hold.SLACK, Double.POSITIVE_INFINITY).get("claim");
                    results.clear();
                    List<?> tasks = (List<?>) claim.get("tasks");
                    for (Object each : tasks) {
                        Task task = new Task(nodes.another(), (String) claim.get("claim"), length, (Map<?, ?>) each);
                        if (!task.confirm(line, sent)) return; // lost before it began: the rules may be others by now
                        results.add(task.work(handler));
                    }
                    if (tasks.isEmpty() && sent.since() < Hold.WAIT / 2) line.sleep(Line.between(200, 1000));
                }
            } finally {
                if (!results.isEmpty()) nodes.another().call("POST", "/api/v1/results", Map.of("results", results), Hold.SLACK, Hold.WAIT);
            }
        });
    }

    /**
     * Gives the frames of the live stream to {@code reader}, in a thread of its own, until {@link Loop#close}; with the log lines of the jobs
     * {@code logs}. After every gap a snapshot comes first.
     */
    @SuppressWarnings("unchecked")
    public Loop follow(Consumer<Map<String, Object>> reader, String... logs) {
        String path = "/api/v1/live" + (logs.length == 0 ? "" : "?follow=" + encode(String.join(",", logs)));
        Loop loop = new Loop();
        return loop.start("live", 1, nodes, line -> {
            double retry = 1000;
            try {
                HttpResponse<Stream<String>> answer = line.open("GET", path, null, Hold.WAIT, BodyHandlers.ofLines());
                int status = answer.statusCode();
                if (status >= 400 && status < 500 && !Line.AGAIN.contains(status)) throw new Refused(status, path);
                BlockingQueue<String> heard = new ArrayBlockingQueue<>(100);
                Stream<String> lines = status == 200 ? answer.body() : Stream.empty();
                Loop.thread("soloist hears", () -> {
                    try (lines) {
                        for (String text : (Iterable<String>) lines::iterator) heard.put(text);
                    } catch (InterruptedException | RuntimeException error) {
                        Thread.currentThread().interrupt(); // a gap, or the end
                    } finally {
                        heard.offer("end");
                    }
                }).start();
                StringBuilder data = new StringBuilder();
                for (String text = ""; text != null && !text.equals("end"); text = line.isOver() ? null : heard.poll(SILENT, TimeUnit.MILLISECONDS)) {
                    if (text.startsWith("data:")) data.append(text.substring(5));
                    else if (text.startsWith("retry:")) retry = Double.parseDouble(text.substring(6).trim());
                    else if (text.isEmpty() && data.length() > 0) {
                        reader.accept((Map<String, Object>) Json.read(data.toString()));
                        data.setLength(0);
                    }
                }
                lines.close();
            } catch (Unreachable error) {
                // A gap: the next stream begins with a snapshot.
            }
            line.nth++;
            line.sleep(Line.between(retry / 2, retry * 1.5));
        });
    }
}
