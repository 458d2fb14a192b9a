package io.soloist.client;

import static io.soloist.client.Hold.*;

import io.soloist.client.Soloist.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;

/**
 * Keeps all that a process holds, by a fixed number of threads. One looks at the deadlines; it asks nobody, and runs no code of the program. Another one
 * renews, for each cluster and account; what is due together travels together. Leases of jobs have a second one, because their renewals wait at
 * the node for an order to stop. Who has nothing to keep sleeps, and ends after a while.
 *
 * <p>All times are in milliseconds.
 */
final class Keeper {
    /** So many in one call, and characters of what their work says: the request fits in the buffer of a connection. */
    private static final int TOGETHER = 500, SAID = 30_000;
    /**
     * A wait of the system stands still with a suspended machine: so the clocks are read each tick. So long a renewal may wait at the node for an order to
     * stop. A thread without work ends after so long.
     */
    private static final double TICK = 100, POLL = 1_500, BORED = 10_000;
    private static final Predicate<Object> ANSWERS = Line.has(Map.of("leases", Line.MANY));
    private static final Map<List<Object>, Keeper> ALL = new ConcurrentHashMap<>();
    private static final Keeper WATCH = new Keeper(null, false);

    private final Set<Hold> holds = ConcurrentHashMap.newKeySet();
    private final Line line;
    private final boolean jobs;
    private volatile Thread thread;
    /** How often something was added; when the thread wakes up by itself, by the clock of {@link Instant#mono}. */
    private volatile int added;
    private volatile double wakes;

    private Keeper(Line line, boolean jobs) {
        this.line = line;
        this.jobs = jobs;
    }

    /** From now on it is watched and renewed. */
    static void add(Hold hold) {
        Soloist nodes = hold.line.nodes;
        Keeper renews = ALL.computeIfAbsent(List.of(nodes.urls, nodes.token, hold.polls(), hold instanceof Lease), any -> new Keeper(new Line(nodes, true), hold.polls()));
        renews.add(hold, "renews", hold.due.left());
        WATCH.add(hold, "watches", TICK);
        if (hold.polls()) renews.line.hangUp(); // an order to stop this one is to be heard, too
    }

    private synchronized void add(Hold hold, String what, double soon) {
        if (thread == null) thread = Loop.thread(what, this::run);
        holds.add(hold);
        added++;
        if (wakes > Instant.in(soon).mono()) LockSupport.unpark(thread);
    }

    static void remove(Hold hold) {
        WATCH.holds.remove(hold);
        ALL.values().forEach(keeper -> keeper.holds.remove(hold));
    }

    static Collection<Hold> held() { return WATCH.holds; }

    private void run() {
        int before;
        double next;
        do {
            before = added;
            next = BORED;
            try {
                if (line == null) Wire.late();
                for (Hold hold : holds) next = Math.min(next, line == null ? Math.min(TICK, hold.watch()) : hold.due.left());
                if (next <= 0) due();
            } catch (Throwable error) { next = TICK / 10; } // as of memory
        } while (next <= 0 || sleep(next, before));
    }

    /** Sleeps, unless something was added since; whether the thread goes on. */
    private boolean sleep(double ms, int before) {
        wakes = Instant.in(ms).mono();
        if (added == before) LockSupport.parkNanos(this, (long) (Math.max(1, ms) * 1e6));
        Thread.interrupted(); // whoever means all threads does not mean this one
        boolean bored = ms >= BORED && wakes <= Instant.in(0).mono();
        wakes = 0;
        if (!bored || !holds.isEmpty()) return true;
        synchronized (this) {
            if (!holds.isEmpty()) return true;
            thread = null;
            ALL.values().remove(this);
            return false;
        }
    }

    /** Renews what is due, and what will be soon. */
    private void due() {
        List<Hold> due = new ArrayList<>();
        double wait = jobs ? POLL : 0;
        for (Hold hold : holds) {
            double left = hold.due.left();
            if (!hold.held()) holds.remove(hold);
            else if (left <= (jobs ? 5 : hold.every() / 2)) due.add(hold);
            else wait = Math.min(wait, left);
        }
        due.sort(Comparator.comparingDouble(hold -> hold.deadline().mono()));
        // After a failure, and once it stops, nothing is to be waited for at the node.
        for (Hold hold : due) wait = hold.failed > 0 || hold.stopping() || due.size() > TOGETHER ? 0 : Math.min(wait, hold.every());
        List<Lease> together = new ArrayList<>();
        int said = 0;
        for (Hold hold : due) {
            if (!(hold instanceof Lease lease)) hold.alone(line, 0, false);
            else {
                together.add(lease);
                said += lease.says();
            }
            if (together.size() < TOGETHER && said < SAID) continue;
            together(together, 0);
            together.clear();
            said = 0;
        }
        together(together, wait);
    }

    /** One call for all of them. */
    private void together(List<Lease> leases, double wait) {
        if (leases.size() == 1) leases.get(0).alone(line, wait, false);
        if (leases.size() < 2) return;
        line.waits = wait > 0;
        Instant sent = Instant.in(0);
        List<Lease.Said> asked = leases.stream().map(Lease::said).toList();
        var body = Json.map("wait_ms", (long) wait, "leases", asked.stream().map(Lease.Said::body).toList());
        try {
            var all = (List<?>) line.call("/api/v1/renewals", body, patience(leases.get(0).remaining(), wait, leases.size()), 0, ANSWERS).get("leases");
            Map<Object, Object> answers = new HashMap<>();
            for (Object each : all) if (each instanceof Map<?, ?> one) answers.put(one.get("name"), one);
            for (Lease.Said each : asked) each.heard(answers.get(each.lease().name), sent);
            if (leases.stream().anyMatch(lease -> lease.failed > 0)) line.nth++; // another node may know more
        } catch (Failure error) {
            // A node that is too old for it, or a word of one of them that is refused: then each is said alone.
            boolean alone = error instanceof Refused || error.status == 404;
            double pause = line.hungUp ? 0 : line.pause(leases.get(0).failed + 1);
            for (Lease lease : leases) {
                if (alone) lease.alone(line, 0, true);
                else lease.again(false, pause);
            }
        }
    }
}
