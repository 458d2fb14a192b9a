package io.soloist.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.soloist.client.Soloist.Loop;
import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.DoubleConsumer;

/**
 * The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing
 * of HTTP.
 *
 * <p>The watcher is told under which lease the work is and until when it must be over. It kills the process by then, and
 * when the kernel says that the process is dead the lease is given back. It comes on top of the deadline that {@link Hold} keeps.
 *
 * <p>One connection serves all leases of a process, in a thread of its own. Nobody waits for it: who renews, or watches the
 * deadline, leaves a word and goes on. What is not answered within a second is no watch; then it connects anew, and says all
 * again.
 *
 * <p>All times are in milliseconds, but for those whose name ends with {@code Ns}.
 */
final class LifeLine {
    /** Where packages and images have it. The variable names another; empty, it names none. */
    private static final String USUAL = "/run/soloist/lifeline.sock", NAMED = "SOLOIST_LIFELINE";
    /** An answer that comes later is none; and so long an end is waited for before the lease is given back. */
    private static final double PATIENCE = 1000, PARTING = 100;
    /** Lines that wait for their answers; bytes of one answer. */
    private static final int AT_ONCE = 64, MOST = 1 << 16;

    /** What the watcher is told of one lease. {@code armed} is called with the time between the kill and the instant that was told. */
    static final class Work {
        final String name, secret;
        final DoubleConsumer armed;
        volatile double until;
        /** Passed: what was told was over already. */
        volatile boolean over, passed;
        /** Done when it was answered, or when no answer is to be waited for. */
        volatile CompletableFuture<Boolean> known = new CompletableFuture<>();
        volatile String state = "";

        Work(String name, String secret, double until, DoubleConsumer armed) {
            this.name = name;
            this.secret = secret;
            this.until = until;
            this.armed = armed;
        }

        void await(double most) {
            try { known.get((long) most, TimeUnit.MILLISECONDS); }
            catch (InterruptedException error) { Thread.currentThread().interrupt(); }
            catch (ExecutionException | TimeoutException error) { return; } // then it is not waited for
        }
    }

    private record Asked(double at, Work work, long untilNs) { }

    private static final Map<String, Work> WORKS = new ConcurrentHashMap<>();
    private static final Queue<Work> DIRTY = new ConcurrentLinkedQueue<>();
    private static final AtomicBoolean STARTED = new AtomicBoolean();
    private static volatile Selector selector;
    private static volatile String state = "";
    private static volatile boolean up, down;

    private final Deque<Asked> asked = new ArrayDeque<>();
    private final ByteArrayOutputStream heard = new ByteArrayOutputStream();
    private ByteBuffer out = ByteBuffer.allocate(0);
    /** The watcher's clock less ours, and never more than that. */
    private double offset = Double.NEGATIVE_INFINITY;

    /** Before the work begins. Waits for the answer, for a second at most. */
    static void begin(Soloist nodes, Work work) {
        String named = System.getenv(NAMED), where = named != null ? named : Files.exists(Path.of(USUAL)) ? USUAL : "";
        if (where.isEmpty()) {
            note(null, "not watched: there is no " + USUAL + ", and " + NAMED + " names none", true);
            return;
        }
        WORKS.put(work.name, work);
        if (STARTED.compareAndSet(false, true)) {
            try {
                selector = Selector.open();
                Loop.thread("life line", () -> run(where, nodes));
            } catch (IOException | OutOfMemoryError error) {
                STARTED.set(false);
                note(null, "not watched: " + error, false);
                return;
            }
        }
        say(work);
        if (!down) work.await(PATIENCE);
    }

    /** Something is new. Waits for nothing. */
    static void say(Work work) {
        if (WORKS.get(work.name) != work) return;
        DIRTY.add(work);
        Selector ears = selector;
        if (ears != null) ears.wakeup();
    }

    /** The work has ended. */
    static void end(Work work) {
        if (WORKS.get(work.name) != work) return;
        work.known = new CompletableFuture<>();
        work.over = true;
        say(work);
        if (up) work.await(PARTING);
    }

    /** Says how it is watched, once, and when that changes. */
    private static void note(Work work, String now, boolean good) {
        String before = work == null || work.state.isEmpty() ? state : work.state;
        if (work == null) state = now;
        else work.state = now;
        if (!now.equals(before))
            Loop.tell(good ? System.Logger.Level.INFO : System.Logger.Level.WARNING, "life line: " + (work == null ? "" : work.name + ": ") + now, null);
    }

    private static void run(String where, Soloist nodes) {
        for (int failed = 0; ; ) {
            try (SocketChannel line = SocketChannel.open(StandardProtocolFamily.UNIX)) { new LifeLine().talk(line, where, nodes); }
            catch (Exception error) {
                failed = up ? 0 : Math.min(failed + 1, 6);
                up = false;
                down = true;
                note(null, "not watched: " + where + ": " + (error.getMessage() == null ? error : error.getMessage()), false);
                for (Work work : WORKS.values()) {
                    work.state = "";
                    work.known.complete(false);
                }
            }
            try {
                Thread.sleep((long) (Line.between(0.5, 1) * 30 * (1 << failed)));
                if (!WORKS.isEmpty()) continue;
                down = false; // nobody needs it
                selector.select();
            } catch (InterruptedException | IOException error) { continue; } // whoever means all threads does not mean this one
        }
    }

    private void talk(SocketChannel line, String where, Soloist nodes) throws IOException {
        line.configureBlocking(false);
        line.connect(UnixDomainSocketAddress.of(where));
        var key = line.register(selector, SelectionKey.OP_READ);
        var auth = Json.map("auth", nodes.headers[1].substring("Bearer ".length()));
        if (nodes.overrun != null) auth.put("overrun", nodes.overrun);
        ask(null, 0, auth);
        for (ByteBuffer into = ByteBuffer.allocate(MOST); ; ) {
            for (Work work; up && asked.size() < AT_ONCE && (work = DIRTY.poll()) != null; ) tellOf(work);
            double left = asked.isEmpty() ? 3_600_000 : asked.element().at + PATIENCE - now();
            if (left <= 0) throw new IOException("it did not answer within a second");
            if (out.hasRemaining()) line.write(out);
            key.interestOps(SelectionKey.OP_READ | (out.hasRemaining() ? SelectionKey.OP_WRITE : 0));
            Thread.interrupted(); // as in `run`; else it would end the connection
            selector.select((long) left + 1);
            selector.selectedKeys().clear();
            if (line.read(into.clear()) < 0) throw new IOException("the watcher has ended the connection");
            for (into.flip(); into.hasRemaining(); ) {
                byte one = into.get();
                if (one != '\n') heard.write(one);
                else {
                    String text = heard.toString(UTF_8);
                    heard.reset();
                    hear(Json.read(text));
                }
                if (heard.size() > MOST) throw new IOException("an answer without end");
            }
        }
    }

    private static double now() { return System.nanoTime() / 1e6; }

    private void ask(Work work, long untilNs, Map<String, Object> words) {
        asked.add(new Asked(now(), work, untilNs));
        byte[] text = (Json.write(words) + '\n').getBytes(UTF_8);
        out = ByteBuffer.allocate(out.remaining() + text.length).put(out).put(text).flip();
    }

    private void tellOf(Work work) {
        if (WORKS.get(work.name) != work) return; // another has its name
        long untilNs = work.over ? 0 : (long) ((work.until + offset) * 1e6);
        ask(work, untilNs, work.over ? Json.map("end", work.name) : Json.map("under", work.name, "secret", work.secret, "until_ns", untilNs));
    }

    private void hear(Map<String, Object> answer) throws IOException {
        if (asked.isEmpty() || !(answer.get("ok") instanceof Boolean ok) || !(answer.get("now_ns") instanceof Long nowNs))
            throw new IOException("this is no watcher");
        Asked of = asked.remove();
        Work work = of.work;
        // It was read before this came. A greater one is nearer to the truth.
        offset = Math.max(offset, nowNs / 1e6 - now());
        String detail = "" + answer.getOrDefault("detail", answer.getOrDefault("why", ""));
        if (work != null && of.untilNs == 0) { // its end
            WORKS.remove(work.name, work);
            work.known.complete(true);
            return;
        }
        if (work == null && !ok) throw new IOException(detail);
        if (work == null && answer.containsKey("again")) {
            ask(null, 0, Json.map("again", answer.get("again")));
            return;
        }
        boolean kills = work == null ? answer.get("kill").equals(true) : answer.get("kill_ns") instanceof Long, frees = answer.get("release") instanceof Boolean yes && yes;
        if (work == null) {
            up = true;
            down = false;
            DIRTY.clear();
            DIRTY.addAll(WORKS.values());
        } else {
            work.passed = !ok && detail.startsWith("until_ns has passed");
            if (kills) work.armed.accept((of.untilNs - (Long) answer.get("kill_ns")) / 1e6);
        }
        if (!ok || !kills && !frees) note(work, "not watched: " + detail, false);
        else if (kills && frees) note(work, "watched", true);
        else note(work, "watched, but " + (kills ? "its death gives nothing back: " : "it is not killed in time: ") + detail, false);
        if (work != null) work.known.complete(true);
    }
}
