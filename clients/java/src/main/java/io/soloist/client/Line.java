package io.soloist.client;

import io.soloist.client.Soloist.*;
import java.net.http.*;
import java.net.http.HttpResponse.*;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.*;

/**
 * The clocks; HTTP to one of several nodes: time-outs, fail-over, jitter. Knows nothing of leases.
 *
 * <p>Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply
 * made again.
 *
 * <p>All times are in milliseconds. Used by one thread; {@link #cut} may be called by any.
 */
final class Line {
    /** What is no JSON was said by something between us and the node. */
    private static final BodyHandler<Map<String, Object>> JSON =
            head -> BodySubscribers.mapping(BodyHandlers.ofString().apply(head), Json::read);
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(2)).build();

    private final Soloist nodes;
    private final CompletableFuture<Boolean> over = new CompletableFuture<>();
    // Clients that start together do not all begin at the same node.
    int nth = ThreadLocalRandom.current().nextInt(1000);

    Line(Soloist nodes) { this.nodes = nodes; }

    /** To the same nodes. */
    Line another() { return new Line(nodes); }

    boolean isOver() { return over.isDone(); }

    /** Ends the call under way, and every later one, with {@code Unreachable}. */
    void cut() { over.complete(true); }

    /** Waits, at most until {@link #cut} or an interrupt; whether that came. */
    boolean sleep(double ms) {
        try { return over.get((long) (ms * 1000), TimeUnit.MICROSECONDS); }
        catch (TimeoutException error) { return false; }
        catch (Exception error) { Thread.currentThread().interrupt(); }
        return true;
    }

    /** Asks the next node, which stays the next one if it answers. With a body it is a POST. */
    <T> T once(String path, Object body, double timeout, BodyHandler<T> handler) throws Exception {
        var request = HttpRequest.newBuilder(nodes.urls.get(nth++ % nodes.urls.size()).resolve(path));
        request.headers("Authorization", "Bearer " + nodes.token, "Content-Type", "application/json");
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        var asked = HTTP.sendAsync(request.build(), handler);
        try { CompletableFuture.anyOf(asked, over).get((long) timeout, TimeUnit.MILLISECONDS); }
        finally { asked.cancel(true); }
        var answer = asked.join();
        int status = answer.statusCode();
        Object why = answer.body() instanceof Map<?, ?> said ? said.get("detail") : path;
        String detail = why + " (HTTP " + status + ")";
        if (status >= 500 || status == 408 || status == 429) throw new Unreachable(detail); // not now
        nth--;
        if (status >= 300) throw new Refused(status, detail);
        return answer.body();
    }

    /** Tries until it is answered; no new try begins after {@code patience}. */
    Map<String, Object> call(String path, Object body, double timeout, double patience) {
        Instant end = Instant.in(patience);
        for (int failed = 1; ; failed++) {
            try { return once(path, body, timeout, JSON); }
            catch (Refused error) { throw error; }
            catch (InterruptedException error) { Thread.currentThread().interrupt(); }
            catch (Exception error) { if (end.left() <= 0) throw new Unreachable(error.toString()); }
            if (sleep(pause(failed))) throw new Unreachable("closed or interrupted");
        }
    }

    /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
    double pause(int failed) { return between(0.25, 1) * Math.min(2000, 20 * Math.pow(5, failed / nodes.urls.size())); }

    static double between(double from, double to) { return ThreadLocalRandom.current().nextDouble(from, to); }

    /**
     * An instant, by both clocks.
     *
     * <p>Java has no clock that goes on while the machine is suspended: on Linux {@code System.nanoTime} is
     * CLOCK_MONOTONIC, which stands still then. So the wall clock is a second witness: of the two, the one by which
     * more time has passed counts. A wall clock that is set forward ends a lease too early, which is safe; one that
     * is set back changes nothing.
     */
    record Instant(double mono, double wall) {
        static Instant now() { return new Instant(System.nanoTime() / 1e6, System.currentTimeMillis()); }

        /** So long from now. */
        static Instant in(double ms) { return now().plus(ms); }

        Instant plus(double ms) { return new Instant(mono + ms, wall + ms); }

        /** How long until then; negative afterwards. */
        double left() { return Math.min(mono - System.nanoTime() / 1e6, wall - System.currentTimeMillis()); }
    }
}
