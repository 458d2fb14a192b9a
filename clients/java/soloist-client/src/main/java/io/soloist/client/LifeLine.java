package io.soloist.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.soloist.client.Hold.Lease;
import io.soloist.client.Soloist.Loop;
import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing
 * of HTTP.
 *
 * <p>The watcher is told under which lease the work is and until when it must be over. It kills the process by then, and
 * when the kernel says that the process is dead the lease is given back. It comes on top of the deadline that {@link Hold} keeps.
 *
 * <p>One connection serves all leases of a process; a thread of its own reads. Nobody waits for it: who renews, or watches the
 * deadline, writes what can be written at once and goes on. What is not answered within a second is no watch; then it connects anew, and says all
 * again.
 *
 * <p>All times are in milliseconds, but for those whose name ends with {@code Ns}.
 */
final class LifeLine {
    /** Where packages and images have it. The variable names another; empty, it names none. */
    private static final String USUAL = "/run/soloist/lifeline.sock", NAMED = "SOLOIST_LIFELINE";
    /** An answer that comes later is none, as is looked after so often; so long an end is waited for before the lease is given back. */
    private static final long PATIENCE = 1000, LOOK = 250, PARTING = 100;
    /** Lines that wait for their answers when all is said again; bytes of one answer. */
    private static final int AT_ONCE = 64, MOST = 1 << 16;

    private record Asked(double at, Lease lease, long untilNs) { }

    private static final Map<String, Lease> LEASES = new ConcurrentHashMap<>();
    private static final AtomicReference<Soloist> NODES = new AtomicReference<>();
    private static volatile String state = "";
    /** The connection whose first line was answered; and whether there was none when it was tried. */
    private static volatile LifeLine up;
    private static volatile boolean down;

    private final Deque<Asked> asked = new ConcurrentLinkedDeque<>();
    private final Set<Lease> again = ConcurrentHashMap.newKeySet();
    private final SocketChannel channel;
    /** The watcher's clock less ours, and never more than that. */
    private volatile double offset = Double.NEGATIVE_INFINITY;

    private LifeLine(SocketChannel channel) { this.channel = channel; }

    /** Before the work begins. Waits for the answer, for a second at most. */
    static void begin(Soloist nodes, Lease lease) {
        String named = System.getenv(NAMED), where = named != null ? named : Files.exists(Path.of(USUAL)) ? USUAL : "";
        if (where.isEmpty()) {
            note(null, "not watched, because there is no " + USUAL + " and " + NAMED + " names none: if this process dies, its leases run out by themselves", true);
            return;
        }
        LEASES.put(lease.name, lease);
        if (NODES.getAndSet(nodes) == null) {
            try { Loop.thread("life line", () -> run(where)); }
            catch (Throwable noMoreThreads) {
                NODES.set(null);
                note(null, "not watched: " + noMoreThreads, false);
                return;
            }
        }
        say(lease);
        if (!down) await(lease, PATIENCE);
    }

    /** Something is new. Waits for nothing. */
    static void say(Lease lease) {
        LifeLine line = up;
        if (line == null || LEASES.get(lease.name) != lease) return; // it will be said; or another has its name
        // Who renews tells of many at once, and the socket takes so many: the others are said when these are answered.
        if (line.asked.size() >= AT_ONCE) {
            line.again.add(lease);
            return;
        }
        long untilNs = lease.over ? 0 : (long) ((lease.until() + line.offset) * 1e6);
        if (lease.over) line.ask(lease, 0, "end", lease.name);
        else line.ask(lease, untilNs, "under", lease.name, "secret", lease.grant.get("secret"), "until_ns", untilNs);
    }

    /** The work has ended. */
    static void end(Lease lease) {
        if (LEASES.get(lease.name) != lease) return;
        lease.known = new CompletableFuture<>();
        lease.over = true;
        say(lease);
        if (up != null) await(lease, PARTING);
    }

    static void await(Lease lease, long most) {
        try { lease.known.get(most, TimeUnit.MILLISECONDS); }
        catch (InterruptedException error) { Thread.currentThread().interrupt(); }
        catch (ExecutionException | TimeoutException error) { return; } // then it is not waited for
    }

    /** Says how it is watched, once, and when that changes. */
    private static void note(Lease lease, String now, boolean good) {
        String before = lease == null || lease.state.isEmpty() ? state : lease.state;
        if (lease == null) state = now;
        else lease.state = now;
        if (!now.equals(before))
            Loop.tell(good ? System.Logger.Level.INFO : System.Logger.Level.WARNING, "life line: " + (lease == null ? "" : lease.name + ": ") + now, null);
    }

    private static void run(String where) {
        for (int failed = 0; ; ) {
            try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX); Selector selector = Selector.open()) { new LifeLine(channel).talk(selector, where); }
            catch (Exception error) {
                failed = up != null ? 0 : Math.min(failed + 1, 6);
                up = null;
                down = true;
                note(null, "not watched: " + where + ": " + (error.getMessage() == null ? error : error.getMessage()), false);
            }
            for (Lease lease : LEASES.values()) {
                lease.state = "";
                lease.known.complete(false);
                if (lease.over && lease.until() < now()) LEASES.remove(lease.name, lease);
            }
            try { Thread.sleep((long) (Line.between(0.5, 1) * 30 * (1 << failed))); }
            catch (InterruptedException error) { continue; } // whoever means all threads does not mean this one
        }
    }

    private void talk(Selector selector, String where) throws IOException {
        channel.configureBlocking(false);
        channel.connect(UnixDomainSocketAddress.of(where));
        channel.register(selector, SelectionKey.OP_READ);
        Soloist nodes = NODES.get();
        if (nodes.overrun == null) ask(null, 0, "auth", nodes.token);
        else ask(null, 0, "auth", nodes.token, "overrun", nodes.overrun);
        var heard = new ByteArrayOutputStream();
        for (ByteBuffer into = ByteBuffer.allocate(MOST); ; ) {
            Thread.interrupted(); // as in `run`; else it would end the connection
            selector.select(LOOK);
            selector.selectedKeys().clear();
            if (channel.read(into.clear()) < 0) throw new IOException("the watcher has ended the connection");
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
            for (Lease lease : again) if (asked.size() < AT_ONCE && again.remove(lease)) say(lease);
            Asked oldest = asked.peek();
            if (oldest != null && now() > oldest.at + PATIENCE) throw new IOException("it did not answer within a second");
        }
    }

    private static double now() { return System.nanoTime() / 1e6; }

    /** Its lock is kept for moments only: nobody waits under it. */
    private synchronized void ask(Lease lease, long untilNs, Object... words) {
        boolean interrupted = Thread.interrupted(); // it would end the connection
        asked.add(new Asked(now(), lease, untilNs));
        ByteBuffer text = ByteBuffer.wrap((Json.write(Json.map(words)) + '\n').getBytes(UTF_8));
        try {
            channel.write(text);
            if (text.hasRemaining()) channel.close(); // half a line
        } catch (IOException error) { return; } // as is found by who reads
        finally { if (interrupted) Thread.currentThread().interrupt(); }
    }

    private void hear(Map<String, Object> answer) throws IOException {
        Asked of = asked.poll();
        if (of == null || !(answer.get("ok") instanceof Boolean ok) || !(answer.get("now_ns") instanceof Long nowNs)) throw new IOException("this is no watcher");
        Lease lease = of.lease;
        // It was read before this came. A greater one is nearer to the truth.
        offset = Math.max(offset, nowNs / 1e6 - now());
        String detail = "" + answer.getOrDefault("detail", answer.getOrDefault("why", ""));
        if (lease == null) {
            if (!ok) throw new IOException(detail);
            if (answer.containsKey("again")) {
                ask(null, 0, "again", answer.get("again"));
                return;
            }
            up = this;
            down = false;
            again.addAll(LEASES.values());
        }
        if (lease == null || of.untilNs != 0) {
            boolean kills = answer.get("kill_ns") instanceof Long || Boolean.TRUE.equals(answer.get("kill")), frees = Boolean.TRUE.equals(answer.get("release"));
            String lack = !ok || !kills && !frees ? "not watched: " : kills ? "watched, but its death gives nothing back: " : "watched, but it is not killed in time: ";
            note(lease, kills && frees ? "watched" : lack + detail, kills && frees);
            if (lease != null) lease.passed = !ok && detail.startsWith("until_ns has passed");
            if (lease != null && kills) lease.arm((of.untilNs - (Long) answer.get("kill_ns")) / 1e6);
        } else LEASES.remove(lease.name, lease); // its end
        if (lease != null) lease.known.complete(true);
    }
}
