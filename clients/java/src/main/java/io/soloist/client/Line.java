package io.soloist.client;

import io.soloist.client.Soloist.*;
import java.net.http.*;
import java.net.http.HttpResponse.*;
import java.util.Map;
import java.util.concurrent.*;

/**
 * HTTP to one of several nodes: time-outs, fail-over, jitter. Knows nothing of leases.
 *
 * <p>Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply
 * made again.
 *
 * <p>All times are in milliseconds. Used by one thread; {@link #cut} may be called by any.
 */
final class Line {
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(java.time.Duration.ofSeconds(2)).build();

    final Soloist nodes;
    /** Done when nothing is to be asked any more. */
    final CompletableFuture<Boolean> over = new CompletableFuture<>();
    // Clients that start together do not all begin at the same node.
    int nth = ThreadLocalRandom.current().nextInt(1000);

    Line(Soloist nodes) { this.nodes = nodes; }

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
        var request = HttpRequest.newBuilder(nodes.urls.get(nth++ % nodes.urls.size()).resolve(path)).headers(nodes.headers);
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        var asked = HTTP.sendAsync(request.build(), handler);
        try { CompletableFuture.anyOf(asked, over).get((long) timeout, TimeUnit.MILLISECONDS); }
        finally { asked.cancel(true); }
        var answer = asked.join();
        int status = answer.statusCode();
        String detail = (answer.body() instanceof Map<?, ?> said ? said.get("detail") : path) + " (HTTP " + status + ")";
        if (status >= 500 || status == 408 || status == 429) throw new Unreachable(detail); // not now
        nth--;
        if (status >= 300) throw new Refused(status, detail);
        return answer.body();
    }

    /** Tries until it is answered; no new try begins after {@code patience}. */
    Map<String, Object> call(String path, Object body, double timeout, double patience) {
        var end = Hold.Instant.in(patience);
        for (int failed = 1; ; failed++) {
            // What is no JSON was said by something between us and the node.
            try { return once(path, body, timeout, head -> BodySubscribers.mapping(BodyHandlers.ofString().apply(head), Json::read)); }
            catch (Refused error) { throw error; }
            catch (InterruptedException error) { Thread.currentThread().interrupt(); }
            catch (Exception error) { if (end.left() <= 0) throw new Unreachable(error.toString()); }
            if (sleep(pause(failed))) throw new Unreachable("closed or interrupted");
        }
    }

    /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
    double pause(int failed) { return between(0.25, 1) * Math.min(2000, 20 * Math.pow(5, failed / nodes.urls.size())); }

    static double between(double from, double to) { return ThreadLocalRandom.current().nextDouble(from, to); }
}
