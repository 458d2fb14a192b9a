package io.soloist.spring;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.springframework.boot.json.JsonParserFactory;

/**
 * Asks the nodes whether this token may do what the methods need, for the start and for the health of the application. Changes
 * nothing there: each question lacks what an act would need. It is not on the way of the work.
 */
final class Nodes {
    /** A node's answer: the status is 0 when none came, or what came is no node's. */
    record Said(String node, int status, String detail) {
        boolean isAnswer() { return status != 0; }

        /** For good, until somebody changes the token or its account. */
        boolean isRefusal() { return status == 401 || status == 403; }
    }

    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(2)).build();

    private final List<String> addresses;
    private final String token;

    Nodes(SoloistProperties properties) {
        this.addresses = properties.nodes();
        this.token = properties.apiToken();
    }

    /** Asks every node about this work at the same time, and waits so long; in the order of their addresses. */
    List<Said> ask(Work work, Duration timeout) {
        List<CompletableFuture<Said>> asked = addresses.stream().map(address -> ask(address, work, timeout)).toList();
        return asked.stream().map(CompletableFuture::join).toList();
    }

    private CompletableFuture<Said> ask(String address, Work work, Duration timeout) {
        String path = switch (work.kind) {
            case LEASE, TICK -> "/api/v1/leases/" + encode(work.name);
            case TASK -> "/api/v1/claims";
            case TURN -> "/api/v1/rotations/" + encode(work.name.split("/", 2)[0]) + "/turns/0/extend";
        };
        String body = switch (work.kind) {
            case LEASE, TICK -> "{\"holder\":\"asks\",\"request_id\":\"\"}";
            case TASK -> "{\"collector\":\"asks\",\"request_id\":\"asks\",\"sources\":[\"" + work.name.replace("\"", "") + "\",\"\"]}";
            case TURN -> "{\"token\":0}";
        };
        try {
            var request = HttpRequest.newBuilder(URI.create(address).resolve(path)).timeout(timeout)
                    .header("Authorization", "Bearer " + token).header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body));
            return HTTP.sendAsync(request.build(), BodyHandlers.ofString()).thenApply(answer -> read(address, answer))
                    .exceptionally(error -> new Said(address, 0, "does not answer: " + plain(error)))
                    .completeOnTimeout(new Said(address, 0, "does not answer within " + timeout.toMillis() + " ms"), timeout.toMillis(), java.util.concurrent.TimeUnit.MILLISECONDS);
        } catch (IllegalArgumentException error) { return CompletableFuture.completedFuture(new Said(address, 0, "is no address: " + error.getMessage())); }
    }

    private static String encode(String name) { return java.net.URLEncoder.encode(name, java.nio.charset.StandardCharsets.UTF_8); }

    private static String plain(Throwable error) {
        Throwable cause = error.getCause() == null ? error : error.getCause();
        return cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
    }

    /** Only a node's own words count: a portal in between says 403, too. */
    private static Said read(String node, HttpResponse<String> answer) {
        boolean isOurs = answer.headers().firstValue("content-type").filter(kind -> kind.startsWith("application/problem+json")).isPresent();
        try {
            Map<String, Object> said = isOurs ? JsonParserFactory.getJsonParser().parseMap(answer.body()) : Map.of();
            if (said.get("status") instanceof Number status && status.intValue() == answer.statusCode() && answer.statusCode() / 100 == 4 && said.get("detail") != null)
                return new Said(node, answer.statusCode(), "" + said.get("detail"));
        } catch (RuntimeException notJson) { /* no node's */ }
        return new Said(node, 0, "answers with HTTP " + answer.statusCode() + ", which is no answer of a node that is ready");
    }
}
