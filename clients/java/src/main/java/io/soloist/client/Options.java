package io.soloist.client;

import java.time.Duration;
import java.util.function.Consumer;

/** How to wait, and what to do at the deadline. What is not set has its default. */
public final class Options {
    Long ttl, lease;
    double patience = Hold.NEVER, grace = 1000;
    String name;
    int parallel = 1;
    Consumer<Hold> onOverrun = Hold::exit;

    /** Of a lease whose name is no job: how long it lasts unrenewed. */
    public Options ttl(Duration ttl) { return with(() -> this.ttl = ttl.toMillis()); }

    /**
     * Of a turn or of tasks: the {@code lease_ms} of the rules, or a shorter time. Left out, the rules are asked for,
     * which a collector's token may not.
     */
    public Options lease(Duration lease) { return with(() -> this.lease = lease.toMillis()); }

    /** How long to wait; then {@code NotGranted}. Default: for ever. */
    public Options patience(Duration patience) { return with(() -> this.patience = patience.toMillis()); }

    /** So long before the deadline the work is asked to stop, at most a fifth of the lease. Default: a second. */
    public Options grace(Duration grace) { return with(() -> this.grace = grace.toMillis()); }

    /** The worker of a turn, the collector of tasks. Default: the client's holder. */
    public Options name(String name) { return with(() -> this.name = name); }

    /** How many tasks at once. Default: 1. */
    public Options parallel(int parallel) { return with(() -> this.parallel = parallel); }

    /** What happens when the work has not ended in time. Default: the process ends with code 76 and says why. */
    public Options onOverrun(Consumer<Hold> onOverrun) { return with(() -> this.onOverrun = onOverrun); }

    private Options with(Runnable change) {
        change.run();
        return this;
    }
}
