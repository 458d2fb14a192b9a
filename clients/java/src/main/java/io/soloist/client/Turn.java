package io.soloist.client;

import io.soloist.client.Line.Instant;
import java.util.HashMap;
import java.util.Map;

/** A turn of a rotation. Passed by {@link #close}. The work may set the three fields. */
public final class Turn extends Hold {
    /** How it ended: {@code done}, {@code empty}, {@code failed}. */
    public volatile String outcome = "done";
    /** The type that comes next, or null. */
    public volatile String next;
    /** RFC 3339: no turn starts before. Or null. */
    public volatile String notBefore;

    private final String path;
    private final double length;
    private volatile String turn;

    Turn(Line line, String path, String type, double length, Options options) {
        super(line, "turn " + type + " of " + path, options);
        this.path = path + "/turns";
        this.length = length;
    }

    Turn acquired(Line way, String type, String worker) {
        acquire(way, path, Map.of("type", type, "worker", worker));
        return this;
    }

    @Override
    double length() {
        return length;
    }

    @Override
    boolean take(Map<String, Object> answer) {
        if (!answer.containsKey("turn")) return false;
        token = (Long) answer.get("token");
        turn = path + "/" + answer.get("turn");
        return true;
    }

    @Override
    void renew(double wait) {
        Instant sent = Instant.now();
        post(turn + "/extend", Map.of("token", token), 0);
        trust(sent, length);
    }

    @Override
    public void close() {
        Map<String, Object> body = new HashMap<>(Map.of("token", token, "outcome", outcome));
        if (next != null) body.put("next", next);
        if (notBefore != null) body.put("not_before", notBefore);
        end(turn + "/pass", body, finish());
    }
}
