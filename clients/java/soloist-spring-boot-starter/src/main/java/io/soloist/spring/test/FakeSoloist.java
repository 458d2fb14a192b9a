package io.soloist.spring.test;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;
import org.springframework.boot.json.JsonParserFactory;

/**
 * A node that is none: for tests of an application, which is the leader at once or when the test says so. It speaks the calls that the library makes, on
 * loopback, and forgets everything. No store, no clock, no second program: it proves nothing about Soloist.
 *
 * <p>May be used by any thread. Everything that waits, waits for 30 s at most.
 */
public final class FakeSoloist implements AutoCloseable {
    private static final long TTL = 10_000, PATIENCE = 30_000;

    private final HttpServer server;
    private final boolean leader;
    private final Map<String, Boolean> wanted = new HashMap<>();
    private final Set<String> noJobs = new HashSet<>();
    private final Map<String, Long> held = new HashMap<>();
    private final Map<String, String> ends = new HashMap<>(), holders = new HashMap<>();
    private final Map<String, List<String>> lines = new HashMap<>();
    private final Map<String, Deque<Map<String, Object>>> tasks = new HashMap<>();
    private final Map<String, Deque<Map<String, Object>>> ticks = new HashMap<>();
    private final Map<String, Integer> asked = new TreeMap<>();
    private long token;
    private int refusal;
    private boolean away, closed;

    /** @param leader whether it grants whatever is asked for, until the test says otherwise */
    public FakeSoloist(boolean leader) {
        this.leader = leader;
        try { server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0); }
        catch (IOException error) { throw new UncheckedIOException(error); }
        server.setExecutor(Executors.newCachedThreadPool(run -> {
            Thread thread = new Thread(run, "fake soloist");
            thread.setDaemon(true);
            return thread;
        }));
        server.createContext("/", this::answer);
        server.start();
    }

    /** {@code http://127.0.0.1:PORT}. */
    public String address() { return "http://127.0.0.1:" + server.getAddress().getPort(); }

    /** From now on this lease, or turns of this rotation, may be had. */
    public synchronized void lead(String name) { want(name, true); }

    /** From now on it may not be had; whoever has it is asked to end, as when the last person switches it off. */
    public synchronized void standBy(String name) { want(name, false); }

    private void want(String name, boolean now) {
        wanted.put(name, now);
        notifyAll();
    }

    /** This name is no job: a lease of its own, which has no switch. */
    public synchronized void noJob(String name) { noJobs.add(name); }

    /** Whether it is held now. */
    public synchronized boolean isHeld(String name) { return held.containsKey(name); }

    /** The fencing token under which it is held. */
    public synchronized long token(String name) { return held.getOrDefault(name, 0L); }

    /** Who holds it now, by the name of the process. */
    public synchronized String holder(String name) { return held.containsKey(name) ? holders.get(name) : null; }

    /** Forgets who has it: the next renewal is refused, as when the store was lost. */
    public synchronized void forget(String name) { held.remove(name); }

    /** How it ended the last time: {@code done}, {@code failed}, of a turn perhaps {@code empty}, of a task {@code retry} or {@code dead}; null before. */
    public synchronized String end(String name) { return ends.get(name); }

    /** What was logged under it. */
    public synchronized List<String> lines(String name) { return List.copyOf(lines.getOrDefault(name, List.of())); }

    /** Gives a collector of this source something to do; {@link #end} is asked for by the key. */
    public synchronized void put(String source, String key, Object payload) {
        tasks.computeIfAbsent(source, any -> new ArrayDeque<>()).add(new HashMap<>(map("id", key, "key", key, "source", source, "payload", payload, "attempt", 1)));
        notifyAll();
    }

    /** A tick of this job is due now, with these parameters; whoever is scheduled does it once, as attempt 1, and {@link #end} says how it ended. None is due before. */
    public synchronized String tick(String job, Map<String, String> params) {
        var due = java.time.Instant.now().truncatedTo(java.time.temporal.ChronoUnit.MILLIS);
        String name = job + "@hand:" + ++token;
        ticks.computeIfAbsent(job, any -> new ArrayDeque<>()).add(map("tick", name, "due", "" + due, "attempt", 1, "late_ms", 0, "params", params));
        ends.remove(job);
        notifyAll();
        return name;
    }

    /** As that, of a job without parameters. */
    public String tick(String job) { return tick(job, Map.of()); }

    /** While true, no call is answered, as when all nodes are away. */
    public synchronized void away(boolean now) { away = now; }

    /** Every call is refused with this status, 401 or 403; 0: none. */
    public synchronized void refuse(int status) { refusal = status; }

    /** How many calls there were whose path ends so. */
    public synchronized int asked(String end) { return asked.entrySet().stream().filter(call -> call.getKey().endsWith(end)).mapToInt(Map.Entry::getValue).sum(); }

    /** Waits until it is held. */
    public void awaitHeld(String name) { await(name + " is held", () -> isHeld(name)); }

    /** Waits until it is free. */
    public void awaitFree(String name) { await(name + " is free", () -> !isHeld(name)); }

    /** Waits until something that the fake knows is so. */
    public synchronized void await(String what, BooleanSupplier is) {
        long end = System.nanoTime() + PATIENCE * 1_000_000;
        while (!is.getAsBoolean()) {
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) throw new AssertionError("waited 30 s in vain until " + what);
            pause(Math.min(left, 20));
        }
    }

    @Override public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        server.stop(0);
    }

    private void pause(long ms) {
        try { wait(ms); }
        catch (InterruptedException error) { Thread.currentThread().interrupt(); throw new AssertionError("interrupted", error); }
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String path = exchange.getRequestURI().getPath(), body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            Answer answer;
            synchronized (this) {
                asked.merge(path, 1, Integer::sum);
                if (away) return; // the connection is cut
                answer = refusal != 0 ? problem(refusal, "refused by the test") : of(path.substring(1).split("/"), body.isBlank() ? Map.of() : JsonParserFactory.getJsonParser().parseMap(body));
                notifyAll();
            }
            byte[] bytes = json(answer.body).getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", answer.status == 200 ? "application/json" : "application/problem+json");
            exchange.sendResponseHeaders(answer.status, bytes.length);
            exchange.getResponseBody().write(bytes);
        }
    }

    private record Answer(int status, Object body) {}

    private static Answer problem(int status, String detail) { return new Answer(status, map("type", "about:blank", "title", "No", "status", status, "detail", detail)); }

    /** One call: {@code api/v1/NOUN/...}. */
    private Answer of(String[] path, Map<String, Object> body) {
        String noun = path.length > 3 ? path[2] + "/" + path[path.length - 1] : path[path.length - 1], name = path.length > 3 ? path[3] : "";
        if ("".equals(body.get("request_id")) || path[path.length - 2].equals("0") || body.get("sources") instanceof List<?> sources && sources.contains("")) return problem(400, "only asked");
        return switch (path[path.length - 1]) {
            case "renew", "extend" -> path[2].equals("claims") ? new Answer(200, map("kept", List.of(name), "lost", List.of(), "expires_in_ms", TTL)) : kept(name, body);
            case "release", "pass" -> ended(name, body);
            case "results" -> results(body);
            case "turns" -> granted(name, body);
            default -> path[2].equals("leases") ? granted(name, body) : problem(404, "the fake has no " + noun);
        };
    }

    private Answer granted(String name, Map<String, Object> ask) {
        long end = System.nanoTime() + ms(ask, "wait_ms") * 1_000_000;
        // As the library names what asks for a tick.
        Deque<?> due = ("" + ask.get("request_id")).startsWith("tick-") ? ticks.computeIfAbsent(name, any -> new ArrayDeque<>()) : null;
        while ((!isFree(name) || due != null && due.isEmpty()) && System.nanoTime() < end && !closed) pause(20);
        String reason = held.containsKey(name) ? "busy" : !isFree(name) ? "not_wanted" : due != null && due.isEmpty() ? "not_due" : null;
        if (reason != null) return new Answer(200, map("name", name, "reason", reason, "holder", holder(name), "retry_in_ms", 200, "ahead", 0));
        held.put(name, ++token);
        holders.put(name, "" + ask.getOrDefault("holder", ask.get("worker")));
        var grant = grant(name);
        if (due != null) ((Map<?, ?>) due.poll()).forEach((field, value) -> grant.put("" + field, value));
        return new Answer(200, grant);
    }

    private Map<String, Object> grant(String name) {
        long now = held.get(name);
        return map("name", name, "token", now, "secret", "s" + now, "run", noJobs.contains(name) ? null : "run-" + now, "ttl_ms", TTL, "expires_in_ms", TTL, "renew_every_ms", 500, "stop", null,
                "turn", "" + now, "lease_until", "2026-01-01T00:00:00Z", "lease_ms", TTL);
    }

    private boolean isFree(String name) { return wanted.getOrDefault(name, leader) && !held.containsKey(name); }

    private Answer kept(String name, Map<String, Object> body) {
        if (body.get("lines") instanceof List<?> said) said.forEach(line -> lines.computeIfAbsent(name, any -> new ArrayList<>()).add("" + line));
        long end = System.nanoTime() + ms(body, "wait_ms") * 1_000_000;
        while (held.containsKey(name) && wanted.getOrDefault(name, leader) && System.nanoTime() < end && !closed) pause(20);
        if (!held.containsKey(name)) return problem(409, "it is over or another's");
        var kept = grant(name);
        if (!wanted.getOrDefault(name, leader)) kept.put("stop", map("why", "off", "within_ms", 5000));
        return new Answer(200, kept);
    }

    private Answer ended(String name, Map<String, Object> body) {
        held.remove(name);
        ends.put(name, "" + body.getOrDefault("end", body.get("outcome")));
        return new Answer(200, map("name", name, "released", true, "turn", "0"));
    }

    private Answer results(Map<String, Object> body) {
        List<Object> results = new ArrayList<>();
        for (Object each : (List<?>) body.get("results")) {
            Map<?, ?> result = (Map<?, ?>) each;
            ends.put("" + result.get("id"), "" + result.get("outcome"));
            results.add(map("id", result.get("id"), "status", "ok"));
        }
        notifyAll();
        if (!(body.get("claim") instanceof Map<?, ?> ask)) return new Answer(200, map("results", results));
        String source = "" + ((List<?>) ask.get("sources")).get(0);
        var queue = tasks.computeIfAbsent(source, any -> new ArrayDeque<>());
        long end = System.nanoTime() + (results.isEmpty() ? 500 : 0) * 1_000_000L;
        while (queue.isEmpty() && System.nanoTime() < end && !closed) pause(20);
        if (queue.isEmpty()) return new Answer(200, map("results", results, "claim", map("reason", "empty", "tasks", List.of())));
        var task = queue.poll();
        task.put("token", ++token);
        return new Answer(200, map("results", results, "claim", map("claim", task.get("id"), "lease_until", "2026-01-01T00:00:00Z", "tasks", List.of(task))));
    }

    private static long ms(Map<String, Object> body, String field) { return body.get(field) instanceof Number number ? number.longValue() : 0; }

    private static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int nth = 0; nth < pairs.length; nth += 2) map.put((String) pairs[nth], pairs[nth + 1]);
        return map;
    }

    private static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) return "" + value;
        var text = new StringJoiner(",", value instanceof Map ? "{" : "[", value instanceof Map ? "}" : "]");
        if (value instanceof Map<?, ?> map) map.forEach((name, part) -> text.add(json(name) + ":" + json(part)));
        else if (value instanceof List<?> list) list.forEach(part -> text.add(json(part)));
        else {
            var quoted = new StringBuilder("\"");
            for (char c : ("" + value).toCharArray()) quoted.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : "" + c);
            return quoted.append('"').toString();
        }
        return text.toString();
    }
}
