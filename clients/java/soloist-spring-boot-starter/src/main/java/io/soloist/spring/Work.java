package io.soloist.spring;

import io.soloist.client.Hold;
import io.soloist.client.Soloist;
import io.soloist.client.Soloist.*;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.LongAdder;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * One annotated method at work: it is begun, counted and ended here. Who may work is decided by the library and the nodes.
 *
 * <p>May be started again after it was closed, as a context may.
 */
final class Work {
    /** What a method holds while it runs. */
    enum Kind {
        LEASE, TICK, TASK, TURN;

        /** Whether it is the lease of its name. */
        boolean isLease() { return this == LEASE || this == TICK; }
    }

    private static final Log LOG = LogFactory.getLog(Work.class);
    private static final String HERE = "here ";
    /** Why it waits, where the node's word says too little. */
    private static final Map<String, String> WORDS = Map.of("not_wanted", "off: nobody wants it", "not_due", "no tick is due", "held", "on hold", "resting", "it rests between two runs");
    /** Why it waits between two runs. */
    private static final Set<String> BETWEEN = Set.of("not_due", "resting");
    /** With any other reason the hold was lost. */
    private static final Set<String> ORDERLY = Set.of("off", "held", "moved", "drained", "removed", "timed_out", "closed");

    final Kind kind;
    final String name;
    final LongAdder grants = new LongAdder(), lost = new LongAdder(), failures = new LongAdder();
    private final Methods.Found method;
    /** What is held now, and the thread that works under it. */
    private final Map<Hold, Thread> working = new ConcurrentHashMap<>();
    private volatile boolean closing;
    /** Where the work is, as the log said last: {@link #HERE}, or why it waits. */
    private volatile String place = "";
    /** That its name is no job was said. */
    private volatile boolean warned;
    private volatile AutoCloseable loop;

    Work(Methods.Found method) {
        this.method = method;
        this.kind = method.kind();
        this.name = method.name();
    }

    /** How many are held: of tasks perhaps several. */
    long held() { return working.keySet().stream().filter(Hold::held).count(); }

    /** In seconds: how long the first of them lasts unrenewed. */
    double left() { return working.keySet().stream().mapToDouble(Hold::remaining).min().orElse(0) / 1000; }

    /** One that is held now. */
    Optional<Hold> hold() { return working.keySet().stream().findAny(); }

    void start(Soloist soloist, Options options) {
        closing = false;
        options.parallel = method.parallel();
        loop = switch (kind) {
            case LEASE -> soloist.runWhileLeader(name, this::run, options);
            case TICK -> soloist.scheduled(name, this::run, options);
            case TASK -> soloist.collect(name, this::run, options);
            case TURN -> new Turns(soloist, options);
        };
    }

    /** Asks the work to end, and waits for it. */
    void close(Duration grace) throws Exception {
        closing = true;
        for (var each : working.entrySet()) if (endsItself(each.getKey(), each.getValue())) return;
        AutoCloseable its = loop;
        if (kind == Kind.TASK) daemon("asks tasks of " + name + " to end", () -> {
            // A task is finished if there is time; else another collector has it at once. A context that was started again has others.
            if (sleeps(grace.toMillis() * 4 / 5) && loop == its) working.keySet().forEach(task -> task.stop("closed"));
        });
        if (loop != null) loop.close();
    }

    /**
     * Whether this work called {@code System.exit}, or {@code close()} of the context: then it waits for whoever would wait for it.
     * The first does nothing any more, so its lease is released; the second goes on when the context is closed.
     */
    private boolean endsItself(Hold hold, Thread thread) {
        var stack = List.of(thread.getStackTrace());
        boolean exits = stack.stream().anyMatch(at -> at.getClassName().equals("java.lang.Shutdown"));
        if (exits && hold instanceof Hold.Lease lease) lease.close();
        if (exits || stack.stream().noneMatch(at -> at.getClassName().endsWith(".AbstractApplicationContext") && at.getMethodName().equals("close"))) return exits;
        daemon("ends " + name, () -> {
            while (working.containsValue(thread) && sleeps(20)) continue;
            try { loop.close(); }
            catch (Exception error) { LOG.warn(name + " did not end well", error); }
        });
        return true;
    }

    /** Where the work stands that has not ended. */
    String stack() {
        var text = new StringBuilder();
        working.forEach((hold, thread) -> {
            text.append(thread.getName());
            for (StackTraceElement at : thread.getStackTrace()) text.append("\n    at ").append(at);
        });
        return text.toString();
    }

    private void run(Hold hold) throws Exception {
        working.put(hold, Thread.currentThread());
        grants.increment();
        if (hold instanceof Hold.Lease lease) begins(lease);
        // The library does not know of turns one after the other; of the others it does this by itself.
        if (closing && kind == Kind.TURN) hold.stop("closed");
        try {
            if (method.method().getParameterCount() == 0) method.method().invoke(method.bean());
            else method.method().invoke(method.bean(), hold);
        } catch (Throwable thrown) {
            Throwable error = plain(thrown);
            // A driver or a pool wraps the interrupt in an exception of its own: that is no failure of the work.
            if (hold.stopping() && isInterrupt(error)) throw new InterruptedException();
            if (!(error instanceof Retry || error instanceof Dead)) failures.increment();
            if (error instanceof Error fatal) throw fatal;
            throw (Exception) error;
        } finally {
            working.remove(hold);
            if (hold.stopping() && !ORDERLY.contains(hold.reason())) lost.increment();
        }
    }

    /** Why a node does not grant the lease. What comes between two runs of one copy is no news. */
    void waits(Map<String, Object> answer) {
        String why = "" + answer.get("reason");
        if (!kind.isLease() || place.startsWith(HERE) && BETWEEN.contains(why)) return;
        String words = answer.get("holder") instanceof String holder ? holder + " has it" : WORDS.getOrDefault(why, why);
        place(words, name + ": this copy waits (" + words + ")");
    }

    private void begins(Hold.Lease lease) {
        if (lease instanceof Hold.Tick tick) place(HERE + tick.token(), tick.name() + " begins here, token " + tick.token());
        else place(HERE, name + " begins here, token " + lease.token());
        // Who forgot the job, or mistyped its name, has a lease that is free at once.
        boolean isNoJob = kind == Kind.LEASE && lease.run() == null;
        if (isNoJob && !warned) LOG.warn(name + " is no job of the cluster: the method runs at once, and nobody can switch it off. "
                + "For a switch add [[job]] with name = \"" + name + "\" and runner = \"external\" to soloist.toml of each node, and reload the nodes.");
        warned = isNoJob;
    }

    /** The log says where the work is, whenever that changes. */
    private void place(String now, String words) {
        if (!place.equals(now)) LOG.info(words);
        place = now;
    }

    /** What the method threw, without what reflection and proxies put around it. */
    private static Throwable plain(Throwable error) {
        while (error.getCause() != null && (error instanceof InvocationTargetException || error instanceof UndeclaredThrowableException)) error = error.getCause();
        return error;
    }

    private static boolean isInterrupt(Throwable error) {
        for (int depth = 0; error != null && depth < 20; error = error.getCause(), depth++)
            if (error instanceof InterruptedException || error instanceof Stopped || error instanceof java.nio.channels.ClosedByInterruptException
                    || error instanceof java.io.InterruptedIOException) return true;
        return false;
    }

    private static Thread daemon(String what, Runnable run) {
        Thread thread = new Thread(run, "soloist " + what);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static boolean sleeps(long ms) {
        try { Thread.sleep(ms); }
        catch (InterruptedException error) { return false; }
        return true;
    }

    /** Turn after turn, until {@link #close}: the library has one turn at a time. */
    private final class Turns implements AutoCloseable {
        private final Soloist soloist;
        private final Options options;
        private final Thread thread;
        /** Only while it waits is the thread interrupted from here: what it sends in between must arrive. */
        private volatile boolean over;
        private boolean waits;

        Turns(Soloist soloist, Options options) {
            this.soloist = soloist;
            this.options = options;
            this.thread = daemon("turn " + name, this::again);
        }

        private void again() {
            String[] parts = name.split("/", 2);
            for (int failed = 1; waiting(true); ) {
                try (Hold.Turn turn = soloist.turn(parts[0], parts[1], options)) {
                    try {
                        if (waiting(false)) run(turn);
                        else turn.outcome = "empty";
                    }
                    catch (Throwable error) {
                        if (!turn.stopping()) turn.outcome = "failed";
                        throw error;
                    }
                    failed = 1;
                } catch (Throwable error) {
                    if (over || error instanceof InterruptedException || error instanceof Stopped) continue;
                    LOG.warn("turn " + name + " failed", error);
                    failed = Math.min(failed + 1, 8);
                    if (waiting(true)) sleeps((long) (ThreadLocalRandom.current().nextDouble(50, 100) * Math.pow(2, failed)));
                }
            }
        }

        /** Whether it goes on. */
        private synchronized boolean waiting(boolean now) {
            waits = now;
            Thread.interrupted(); // what came while it waited is known by `over`
            return !over;
        }

        @Override public void close() throws InterruptedException {
            synchronized (this) {
                over = true;
                if (waits) thread.interrupt();
            }
            working.keySet().forEach(turn -> turn.stop("closed"));
            thread.join();
        }
    }
}
