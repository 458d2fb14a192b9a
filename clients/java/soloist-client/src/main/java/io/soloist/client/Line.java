package io.soloist.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.soloist.client.Soloist.*;
import java.io.ByteArrayOutputStream;
import java.net.*;
import java.net.http.*;
import java.net.http.HttpResponse.*;
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
    /**
     * Each has a pool of connections. After a time-out the next one is used: something in between may have forgotten all
     * connections of the last one, and each would cost another time-out.
     */
    private static final HttpClient[] HTTP = new HttpClient[4];
    private static volatile int present;
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

    Line(Soloist nodes) {
        this.nodes = nodes;
        this.nth = nodes.answers;
    }

    /** Ends the call under way, and every later one, with {@code Unreachable}. */
    void cut() { over.complete(true); }

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

    private static HttpClient http(int nth) {
        synchronized (HTTP) {
            if (HTTP[nth] == null) HTTP[nth] = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(java.time.Duration.ofSeconds(2)).build();
            return HTTP[nth];
        }
    }

    /** The next node; by another address than the first that its name has, once that refused. A certificate is for the name, so it stays then. */
    private URI next() throws Exception {
        URI url = nodes.urls.get(nth++ % nodes.urls.size());
        if (refused == 0 || !url.getScheme().equals("http")) return url;
        var all = InetAddress.getAllByName(url.getHost());
        return all.length == 1 ? url : new URI("http", null, all[refused % all.length].getHostAddress(), url.getPort(), null, null, null);
    }

    /** Asks the next node, until {@code enough}. With a body it is a POST. */
    <T> HttpResponse<T> once(String path, String body, double timeout, BodyHandler<T> handler, CompletableFuture<?> enough) throws Exception {
        var request = HttpRequest.newBuilder(next().resolve(path)).headers(nodes.headers);
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(body));
        int used = present;
        var asked = http(used).sendAsync(request.build(), handler);
        try { CompletableFuture.anyOf(asked, over, enough).get((long) timeout, TimeUnit.MILLISECONDS); }
        catch (TimeoutException error) {
            if (used == present) present = (used + 1) % HTTP.length;
            throw error;
        } finally { asked.cancel(true); }
        return asked.join();
    }

    /** Tries until it is answered in this shape, or refused; no new try begins after {@code patience}. Who answers stays the next one. */
    Map<String, Object> call(String path, Object asked, double timeout, double patience, Predicate<Object> shape) {
        var end = Hold.Instant.in(patience);
        String data = asked == null ? null : Json.write(asked);
        for (int failed = 1; ; failed++) {
            try {
                var said = new ByteArrayOutputStream();
                var enough = new CompletableFuture<Void>();
                var body = BodySubscribers.ofByteArrayConsumer(piece -> {
                    if (said.size() + piece.map(bytes -> bytes.length).orElse(0) <= MOST) piece.ifPresent(said::writeBytes);
                    else enough.completeExceptionally(new Unreachable("answered with more than 1 MiB"));
                });
                var answer = once(path, data, timeout, head -> BodySubscribers.mapping(body, all -> Json.read(said.toString(UTF_8))), enough);
                boolean fits = answer.statusCode() == 200 && shape.test(answer.body());
                if (!fits) check(answer);
                nth--;
                nodes.failed = 0;
                nodes.answers = nth;
                return answer.body();
            }
            catch (Refused error) { nth--; throw error; }
            catch (InterruptedException error) { Thread.currentThread().interrupt(); }
            catch (Exception error) { // also what is no JSON
                refused = error.getCause() instanceof ConnectException ? refused + 1 : 0;
                if (++nodes.failed >= nodes.urls.size() && !over.isDone() && nodes.complained.left() <= -COMPLAINT) {
                    nodes.complained = Hold.Instant.in(0);
                    Soloist.Loop.tell(System.Logger.Level.WARNING, "no node answers at " + nodes.urls + ": " + error, null);
                }
                if (end.left() <= 0) throw new Unreachable(error.toString());
            }
            if (sleep(pause(failed))) throw new Unreachable("closed or interrupted");
        }
    }

    /** Throws what an answer comes to that gives nothing. Only a node's counts, which is RFC 9457 in our own fields. */
    private static void check(HttpResponse<Map<String, Object>> answer) {
        Map<String, Object> said = answer.body();
        int status = answer.statusCode();
        boolean isOurs = PROBLEM.test(said) && !said.containsKey("instance") && said.get("status").equals((long) status)
                && answer.headers().firstValue("content-type").filter(kind -> kind.startsWith("application/problem+json")).isPresent();
        String detail = (isOurs ? said.get("detail") : "not the answer of a node") + " (HTTP " + status + ")";
        if (!isOurs || status / 100 != 4 || status == 408 || status == 429) throw new Unreachable(detail);
        throw new Refused(status, detail);
    }

    /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
    double pause(int failed) { return between(0.25, 1) * Math.min(2000, 20 * Math.pow(5, failed / nodes.urls.size())); }

    static double between(double from, double to) { return ThreadLocalRandom.current().nextDouble(from, to); }
}
