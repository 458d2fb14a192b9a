package io.soloist.client;

import io.soloist.client.SoloistException.*;
import java.util.*;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;

/** The right to be the only one. Given back by {@link #close}, when the work has ended. */
public final class Lease extends Hold {
    /**
     * Lines that wait to be sent, the oldest go first; lines in a renewal, characters in a line: a node takes 64 KiB.
     */
    private static final int KEPT = 1000, AT_ONCE = 30, LONGEST = 500;

    private final Queue<String> lines = new ArrayBlockingQueue<>(KEPT);
    private final AtomicReference<Map<String, Object>> progress = new AtomicReference<>();
    private volatile String failure;

    Lease(Line way, String name, String holder, Options options) {
        super(way, "lease " + name, "/api/v1/leases/" + Soloist.encode(name), 0, options, Map.of());
        acquire(way, Json.map("holder", holder, "ttl_ms", options.ttl));
    }

    /** The run of the job that this grant is, if its name is a job; else null. */
    public String run() { return (String) grant.get("run"); }

    /** Moves the job's progress bar, with the next renewal. */
    public void progress(long done, long total, String note) {
        progress.set(Json.map("done", done, "total", total, "note", note));
    }

    /** A line of the job's output, sent with the next renewal: at least once. */
    public void log(String text) {
        for (String line : text.split("\\R"))
            while (!lines.offer(line.substring(0, Math.min(LONGEST, line.length())))) lines.poll();
    }

    /** The work has failed. To end because one was asked to is no failure. */
    public void fail(Throwable error) {
        boolean isAsked = stopping() && (error instanceof Stopped || error instanceof InterruptedException);
        if (!isAsked) failure = error.toString();
    }

    @Override public void close() {
        double left = finish();
        // The last words are worth one try.
        try { while (left > 0 && (progress.get() != null || !lines.isEmpty())) renew(line.another(), 0); }
        catch (SoloistException error) { warn("its last words were not taken", error); }
        String end = failure == null ? "done" : "failed";
        end(path + "/release", Json.map("secret", grant.get("secret"), "end", end, "error", failure), left);
    }

    @Override void renew(Line line, double most) {
        var far = progress.get();
        List<String> said = lines.stream().limit(AT_ONCE).toList();
        long wait = (long) Math.min(most, (Long) grant.get("renew_every_ms"));
        var body = Json.map("secret", grant.get("secret"), "wait_ms", wait, "progress", far, "lines", said);
        try { post(line, path + "/renew", body, wait); }
        catch (Refused error) {
            if (FINAL.contains(error.status) || far == null && said.isEmpty()) throw error;
            // What the work says must not cost it the lease.
            warn("its output was refused and is dropped", error);
        }
        said.forEach(lines::remove);
        progress.compareAndSet(far, null);
    }

    @Override double pause() { return stopping() ? (Long) grant.get("renew_every_ms") / 2 : 0; }
}
