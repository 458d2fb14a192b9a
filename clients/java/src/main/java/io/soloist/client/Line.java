package io.soloist.client;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The clocks; HTTP to one of several nodes: time-outs, fail-over, jitter. Knows nothing of leases.
 *
 * <p>Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply made again.
 *
 * <p>Java has no clock that goes on while the machine is suspended: on Linux {@code System.nanoTime} is CLOCK_MONOTONIC, which stands
 * still then. So the wall clock is a second witness: of the two, the one by which more time has passed counts. A wall clock that
 * is set forward ends a lease too early, which is safe; one that is set back changes nothing.
 *
 * <p>All times are in milliseconds. Used by one thread; {@link #cut} may be called by any.
 */
final class Line {
    /** Not now. */
    static final List<Integer> AGAIN = List.of(408, 429);
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(2)).build();

    /** An instant, by both clocks. */
    record Instant(double mono, long wall) {
        static Instant now() {
            return new Instant(System.nanoTime() / 1e6, System.currentTimeMillis());
        }

        double since() {
            Instant now = now();
            return Math.max(now.mono - mono, now.wall - wall);
        }
    }

    private final List<URI> nodes;
    private final String token;
    // Clients that start together do not all begin at the same node.
    int nth = ThreadLocalRandom.current().nextInt(1000);
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile CompletableFuture<?> asked;

    Line(List<URI> nodes, String token) {
        this.nodes = nodes;
        this.token = token;
    }

    /** To the same nodes. */
    Line another() {
        return new Line(nodes, token);
    }

    /** Ends the call under way, and every later one, with {@code Unreachable}. */
    void cut() {
        over.countDown();
        if (asked != null) asked.cancel(true);
    }

    boolean isOver() {
        return over.getCount() == 0 || Thread.currentThread().isInterrupted();
    }

    /** Waits, at most until {@link #cut} or an interrupt; whether that came. */
    boolean sleep(double ms) {
        try {
            return over.await((long) (ms * 1000), TimeUnit.MICROSECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    /** Sends a request to the present node. */
    <T> HttpResponse<T> open(String method, String path, Object body, double timeout, BodyHandler<T> handler) {
        HttpRequest.Builder request = HttpRequest.newBuilder(nodes.get(nth % nodes.size()).resolve(path));
        request.header("Authorization", "Bearer " + token).header("Content-Type", "application/json");
        request.method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)));
        CompletableFuture<HttpResponse<T>> answer = HTTP.sendAsync(request.build(), handler);
        asked = answer;
        try {
            if (over.getCount() == 0) throw new TimeoutException("closed");
            return answer.get((long) timeout, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new SoloistException.Unreachable("interrupted");
        } catch (ExecutionException | TimeoutException | RuntimeException error) {
            throw new SoloistException.Unreachable(String.valueOf(error.getCause() == null ? error : error.getCause()));
        } finally {
            answer.cancel(true);
        }
    }

    /** One try at one node; after a failure the next try goes to the next node. */
    @SuppressWarnings("unchecked")
    Map<String, Object> once(String method, String path, Object body, double timeout) {
        try {
            HttpResponse<String> answer = open(method, path, body, timeout, BodyHandlers.ofString());
            Object value = Json.read(answer.body().isEmpty() ? "{}" : answer.body());
            Map<String, Object> map = value instanceof Map<?, ?> ? (Map<String, Object>) value : Map.of();
            int status = answer.statusCode();
            if (status < 300) return map;
            String detail = String.valueOf(map.get("detail"));
            if (status < 500 && !AGAIN.contains(status)) throw new SoloistException.Refused(status, detail);
            throw new SoloistException.Unreachable(detail + " (HTTP " + status + ")");
        } catch (SoloistException.Unreachable error) {
            nth++;
            throw error;
        } catch (IllegalArgumentException error) {
            // Something between us and the node said it.
            nth++;
            throw new SoloistException.Unreachable(error.getMessage());
        }
    }

    /** Tries {@link #once} until it is answered; no new try begins after {@code patience}. */
    Map<String, Object> call(String method, String path, Object body, double timeout, double patience) {
        Instant began = Instant.now();
        for (int failed = 1; ; failed++) {
            try {
                return once(method, path, body, timeout);
            } catch (SoloistException.Unreachable error) {
                if (sleep(pause(failed)) || began.since() >= patience) throw error;
            }
        }
    }

    /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
    double pause(int failed) {
        int rounds = Math.min(failed / nodes.size(), 8);
        return between(0.25, 1) * (rounds > 0 ? Math.min(2000, 100 * Math.pow(2, rounds)) : 20);
    }

    static double between(double from, double to) {
        return ThreadLocalRandom.current().nextDouble(from, to);
    }
}
