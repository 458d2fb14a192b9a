package io.soloist.client;

import io.soloist.client.Line.Instant;
import io.soloist.client.SoloistException.Refused;
import io.soloist.client.SoloistException.Stopped;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The right to be the only one. Given back by {@link #close}, when the work has ended. */
public final class Lease extends Hold {
    /** Lines that wait to be sent, the oldest go first; lines in a renewal and characters in a line: a node takes 64 KiB. */
    private static final int KEPT = 1000, AT_ONCE = 30, LONGEST = 500;

    private final String path;
    private final List<String> lines = new ArrayList<>();
    private Map<String, Object> progress;
    private volatile String secret, run;
    private volatile double first, every;
    private volatile Throwable failure;

    Lease(Line line, String name, Options options) {
        super(line, "lease " + name, options);
        path = "/api/v1/leases/" + Soloist.encode(name);
    }

    /** The run of the job that this grant is, if its name is a job; else null. */
    public String run() {
        return run;
    }

    /** Moves the job's progress bar, with the next renewal. */
    public void progress(long done, long total, String note) {
        synchronized (lines) {
            progress = Map.of("done", done, "total", total, "note", note);
        }
    }

    /** A line of the job's output, sent with the next renewal: at least once. */
    public void log(String line) {
        synchronized (lines) {
            line.lines().forEach(each -> lines.add(each.substring(0, Math.min(LONGEST, each.length()))));
            lines.subList(0, Math.max(0, lines.size() - KEPT)).clear();
        }
    }

    /** The work has failed. To end because one was asked to is no failure. */
    public void fail(Throwable error) {
        if (!(stopping() && (error instanceof Stopped || error instanceof InterruptedException))) failure = error;
    }

    @Override
    public void close() {
        double left = finish();
        Map<String, Object> body = new HashMap<>(Map.of("secret", secret, "end", failure == null ? "done" : "failed"));
        if (failure != null) body.put("error", String.valueOf(failure));
        try {
            for (Said last = said(); left > 0 && last.isSomething(); last = said()) {
                line.another().once("POST", path + "/renew", last.body(0), Math.min(1000, left));
                last.wasHeard();
            }
        } catch (SoloistException error) {
            LOG.log(System.Logger.Level.DEBUG, what + ": its last words were not taken: " + error.getMessage());
        }
        end(path + "/release", body, left);
    }

    /** What is to be said with a renewal. */
    private record Said(Lease lease, List<String> text, Map<String, Object> far) {
        boolean isSomething() {
            return far != null || !text.isEmpty();
        }

        Map<String, Object> body(double wait) {
            Map<String, Object> body = new HashMap<>(Map.of("secret", lease.secret, "wait_ms", (long) wait));
            if (!text.isEmpty()) body.put("lines", text);
            if (far != null) body.put("progress", far);
            return body;
        }

        void wasHeard() {
            synchronized (lease.lines) {
                lease.lines.subList(0, Math.min(text.size(), lease.lines.size())).clear();
                if (lease.progress == far) lease.progress = null;
            }
        }
    }

    private Said said() {
        synchronized (lines) {
            return new Said(this, List.copyOf(lines.subList(0, Math.min(AT_ONCE, lines.size()))), progress);
        }
    }

    Lease acquired(Line way, String holder) {
        Map<String, Object> ask = new HashMap<>(Map.of("holder", holder));
        if (options.ttl != null) ask.put("ttl_ms", options.ttl.toMillis());
        acquire(way, path, ask);
        return this;
    }

    @Override
    boolean take(Map<String, Object> answer) {
        if (!answer.containsKey("secret")) return false;
        secret = (String) answer.get("secret");
        token = (Long) answer.get("token");
        run = (String) answer.get("run");
        every = (Long) answer.get("renew_every_ms");
        first = (Long) answer.get("expires_in_ms");
        return true;
    }

    @Override
    double length() {
        return super.length() > 0 ? super.length() : first;
    }

    @Override
    void renew(double most) {
        Said said = said();
        double wait = Math.min(most, every);
        Instant sent = Instant.now();
        Map<String, Object> answer = null;
        try {
            answer = post(path + "/renew", said.body(wait), wait);
        } catch (Refused error) {
            if (LOST.contains(error.status) || error.status == 401 || error.status == 403 || !said.isSomething()) throw error;
            // What the work says must not cost it the lease.
            LOG.log(System.Logger.Level.WARNING, what + ": its output was refused and is dropped: " + error.getMessage());
        }
        said.wasHeard();
        if (answer == null) {
            renew(0);
            return;
        }
        trust(sent, (Long) answer.get("expires_in_ms"));
        if (answer.get("stop") instanceof Map<?, ?> stop) interrupt((String) stop.get("why"), (Long) stop.get("within_ms"));
    }

    @Override
    double pause() {
        return stopping() ? every / 2 : 0;
    }
}
