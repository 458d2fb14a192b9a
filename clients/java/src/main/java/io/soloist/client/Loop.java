package io.soloist.client;

import io.soloist.client.SoloistException.Stopped;
import java.util.List;
import java.util.stream.Stream;

/** Threads that do the same again and again until {@link #close}. */
@SuppressWarnings("try") // close() may be interrupted
public final class Loop implements AutoCloseable {
    interface Once { void run(Line line, Loop loop) throws Exception; }

    volatile Hold hold;
    private final List<Line> lines;
    private final List<Thread> threads;

    Loop(Soloist nodes, String what, int count, Once once) {
        lines = Stream.generate(() -> new Line(nodes)).limit(count).toList();
        threads = lines.stream().map(line -> thread(what, () -> run(what, line, once))).toList();
    }

    static Thread thread(String what, Runnable run) {
        Thread thread = new Thread(run, "soloist " + what);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** The lease, while it is held and the work runs, and the last one afterwards; null before the first. */
    public Hold hold() { return hold; }

    /** Asks the work to stop, begins nothing more, and waits until all has ended. */
    @Override public void close() throws InterruptedException {
        lines.forEach(Line::cut);
        if (hold != null) hold.interrupt("closed", Hold.NEVER);
        for (Thread thread : threads) thread.join();
    }

    private void run(String what, Line line, Once once) {
        for (int failed = 0; !line.isOver(); ) {
            try {
                once.run(line, this);
                failed = 0;
            } catch (Throwable error) {
                failed = error instanceof Stopped || error instanceof InterruptedException ? 0 : failed + 1;
                if (failed > 0 && !line.isOver()) Hold.LOG.log(System.Logger.Level.WARNING, what + " failed", error);
            }
            Thread.interrupted(); // what was meant for the work is over with it
            // Work that ends at once, or fails again and again, costs the cluster little.
            line.sleep(Line.between(100, 200) * Math.min(150, Math.pow(2, failed)));
        }
    }
}
