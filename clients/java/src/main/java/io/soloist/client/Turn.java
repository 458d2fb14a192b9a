package io.soloist.client;

import java.util.Map;

/** A turn of a rotation. Passed by {@link #close}. The work may set the three fields. */
public final class Turn extends Hold {
    /**
     * How it ended, {@code done}, {@code empty} or {@code failed}; the type that comes next; RFC 3339: no turn starts
     * before.
     */
    public volatile String outcome = "done", next, notBefore;

    Turn(Line way, String path, String type, String worker, double length, Options options) {
        super(way, "turn " + type + " of " + path, path + "/turns", length, options, Map.of());
        acquire(way, Json.map("type", type, "worker", worker));
    }

    private String its(String act) { return path + "/" + grant.get("turn") + act; }

    @Override void renew(Line line, double wait) { post(line, its("/extend"), Map.of("token", token()), 0); }

    @Override public void close() {
        double left = finish();
        end(its("/pass"), Json.map("token", token(), "outcome", outcome, "next", next, "not_before", notBefore), left);
    }
}
