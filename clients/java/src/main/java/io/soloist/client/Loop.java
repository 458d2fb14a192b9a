package io.soloist.client;

import io.soloist.client.SoloistException.Stopped;
import java.util.ArrayList;
import java.util.List;

/** Threads that do the same again and again until {@link #close}. */
public final class Loop implements AutoCloseable {
    interface Once {
        void run(Line line) throws Exception;
    }

    volatile Hold hold;
    private volatile boolean over;
    private final List<Line> lines = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    static Thread thread(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.setDaemon(true);
        return thread;
    }

    Loop start(String what, int count, Line first, Once once) {
        for (int nth = 0; nth < count; nth++) {
            Line line = first.another();
            lines.add(line);
            threads.add(thread("soloist " + what, () -> run(what, line, once)));
        }
        threads.forEach(Thread::start);
        return this;
    }

    /** The lease, while it is held and the work runs, and the last one afterwards; null before the first. */
    public Hold hold() {
        return hold;
    }

    boolean isOver() {
        return over;
    }

    /** Asks the work to stop, begins nothing more, and waits until all has ended. */
    @Override
    public void close() throws InterruptedException {
        over = true;
        lines.forEach(Line::cut);
        Hold now = hold;
        if (now != null) now.interrupt("closed", Double.POSITIVE_INFINITY);
        for (Thread thread : threads) thread.join();
    }

    private void run(String what, Line line, Once once) {
        for (int failed = 0; !over; ) {
            try {
                once.run(line);
                failed = 0;
            } catch (Stopped | InterruptedException error) {
                failed = 0;
            } catch (Exception | Error error) {
                failed++;
                if (!over) Hold.LOG.log(System.Logger.Level.WARNING, what + " failed", error);
            }
            Thread.interrupted(); // what was meant for the work is over with it
            // Work that ends at once, or fails again and again, costs the cluster little.
            line.sleep(Line.between(100, 200) * Math.min(150, Math.pow(2, Math.min(failed, 8))));
        }
    }
}
