package io.soloist.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.soloist.client.Soloist.*;
import java.io.IOException;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Predicate;

/**
 * HTTP to one of several nodes: time-outs, fail-over, jitter. Knows nothing of leases.
 *
 * <p>Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply
 * made again. Only a node answers: what is not in the shape of its answers was said by something in between (a gateway, a
 * portal), and is as good as no answer. So is what has not come as a whole when the time for it is over, and what is
 * longer than any answer of a node.
 *
 * <p>All times are in milliseconds. Used by one thread; {@link #cut} may be called by any.
 */
final class Line {
    /** That no node answers is said once, and then so often. */
    private static final double COMPLAINT = 60_000;

    /** Bytes, of an answer and of a frame of the live stream, which may tell of thousands of jobs. */
    static final int MOST = 1 << 20, MOST_OF_FRAME = 1 << 24;
    /** What a field of an answer is; no lease is longer than a day. */
    static final Predicate<Object> TEXT = String.class::isInstance, MANY = List.class::isInstance,
            WHOLE = value -> value instanceof Long number && number >= 0,
            SPAN = value -> value instanceof Long ms && ms > 0 && ms <= 86_400_000;
    private static final Predicate<Object> PROBLEM = has(Map.of("type", TEXT, "title", TEXT, "status", WHOLE, "detail", TEXT));

    final Soloist nodes;
    /** Done when nothing is to be asked any more. */
    final CompletableFuture<Boolean> over = new CompletableFuture<>();
    int nth;
    /** How many addresses in a row of a node's name refused. */
    private int refused;
    /** Of who renews: it needs no turn. */
    private final boolean own;
    private volatile Wire used;
    /** Whether the call under way waits at the node, and so may be hung up; whether it was. */
    volatile boolean waits, hungUp;

    Line(Soloist nodes, boolean own) {
        this.nodes = nodes;
        this.nth = nodes.answers;
        this.own = own;
    }

    /** Ends the call under way, and every later one, with {@code Unreachable}. */
    void cut() {
        over.complete(true);
        Wire its = used;
        if (its != null) its.close();
    }

    /** Ends the call under way, if there is one; it may be made again. */
    void hangUp() {
        Wire its = waits ? used : null;
        hungUp = its != null;
        if (its != null) its.close();
    }

    /** Waits, at most until {@link #cut} or an interrupt; whether that came. */
    boolean sleep(double ms) {
        try { return over.get((long) (ms * 1000), TimeUnit.MICROSECONDS); }
        catch (TimeoutException error) { return false; }
        catch (Exception error) { Thread.currentThread().interrupt(); }
        return true;
    }

    /** Whether it is an object with these fields, each as it must be. */
    static Predicate<Object> has(Map<String, Predicate<Object>> shape) {
        return value -> value instanceof Map<?, ?> map
                && shape.entrySet().stream().allMatch(field -> map.containsKey(field.getKey()) && field.getValue().test(map.get(field.getKey())));
    }

    static Predicate<Object> listed(Map<String, Predicate<Object>> shape) {
        return value -> value instanceof List<?> list && list.stream().allMatch(has(shape));
    }

    /** What is done with an answer. */
    interface Reader<T> { T read(Wire answer) throws Exception; }

    /** Asks the next node. With a body it is a POST. */
    <T> T once(String path, String body, Hold.Instant end, Reader<T> reader) throws Exception {
        URI url = nodes.urls.get(nth++ % nodes.urls.size());
        String text = body == null ? "" : body;
        byte[] request = "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s".formatted(
                body == null ? "GET" : "POST", path, url.getRawAuthority(), nodes.token, text.getBytes(UTF_8).length, text).getBytes(UTF_8);
        for (boolean fresh = false; ; fresh = true) {
            Wire wire = used = Wire.to(url, refused, fresh, end);
            try {
                if (over.isDone()) throw new IOException("closed");
                wire.ask(request, end);
                T read = reader.read(wire);
                wire.done();
                return read;
            } catch (Exception error) {
                wire.close();
                if (error instanceof SocketTimeoutException) Wire.forget();
                // A node may end a connection that nobody uses.
                else if (error instanceof IOException && wire.used && !fresh && !over.isDone() && !hungUp) continue;
                throw error;
            } finally { used = null; }
        }
    }

    /** Tries until it is answered in this shape, or refused; no new try begins after {@code patience}. Who answers stays the next one. */
    Map<String, Object> call(String path, Object asked, double timeout, double patience, Predicate<Object> shape) {
        var end = Hold.Instant.in(patience);
        hungUp = false;
        String data = asked == null ? null : Json.write(asked);
        for (int failed = 1; ; failed++) {
            try {
                var answer = asks(path, data, Hold.Instant.in(timeout), shape);
                nth--;
                nodes.failed = 0;
                nodes.answers = nth;
                return answer;
            }
            catch (Refused error) { nth--; throw error; }
            catch (InterruptedException error) { Thread.currentThread().interrupt(); }
            catch (Exception error) { // also what is no JSON
                if (hungUp) nth--;
                if (hungUp) throw new Unreachable("hung up", 0);
                refused = error instanceof ConnectException ? refused + 1 : 0;
                if (++nodes.failed >= nodes.urls.size() && !over.isDone() && !Thread.currentThread().isInterrupted() && nodes.complained.left() <= -COMPLAINT) {
                    nodes.complained = Hold.Instant.in(0);
                    Soloist.Loop.tell(System.Logger.Level.WARNING, "no node answers at " + nodes.urls + ": " + error, null);
                }
                if (end.left() <= 0) throw error instanceof Unreachable no ? no : new Unreachable(error.toString(), 0);
            }
            if (sleep(pause(failed))) throw new Unreachable("closed or interrupted", 0);
        }
    }

    /** One try. */
    private Map<String, Object> asks(String path, String data, Hold.Instant end, Predicate<Object> shape) throws Exception {
        if (!own && !Wire.take(Wire.ANY, this, end.left())) throw new IOException("no connection is free");
        try {
            return once(path, data, end, answer -> {
                byte[] all = answer.readNBytes(MOST + 1);
                if (all.length > MOST) throw new Unreachable("answered with more than 1 MiB", 0);
                var said = Json.object(new String(all, UTF_8));
                if (answer.status == 200 && shape.test(said)) return said;
                // Only a node's verdict counts, which is RFC 9457 in our own fields.
                boolean isOurs = PROBLEM.test(said) && !said.containsKey("instance") && said.get("status").equals((long) answer.status)
                        && answer.head.getOrDefault("content-type", "").startsWith("application/problem+json");
                throw no(isOurs ? answer.status : 0, (isOurs ? said.get("detail") : "not the answer of a node") + " (HTTP " + answer.status + ")", answer.status);
            });
        } finally { if (!own) Wire.ANY.release(); }
    }

    /** What an answer comes to that gives nothing: a node's verdict, of which {@code ours} is the status; or no answer. */
    static Failure no(long ours, String detail, long status) { return ours / 100 == 4 && ours != 408 && ours != 429 ? new Refused((int) status, detail) : new Unreachable(detail, (int) status); }

    /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
    double pause(int failed) { return between(0.25, 1) * Math.min(2000, 20 * Math.pow(5, failed / nodes.urls.size())); }

    static double between(double from, double to) { return ThreadLocalRandom.current().nextDouble(from, to); }
}
