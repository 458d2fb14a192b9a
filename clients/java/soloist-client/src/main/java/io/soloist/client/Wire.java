package io.soloist.client;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.soloist.client.Hold.Instant;
import java.io.*;
import java.net.*;
import java.nio.channels.SocketChannel;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.*;

/**
 * One connection to a node: HTTP/1.1, one question at a time, kept for the next one. It is the body of the answer, too. Knows no JSON, no token, and no
 * second node.
 *
 * <p>A process has eight: two for the threads that renew, and {@link #ANY} for all else. At most {@link #WAITING} of those wait at the node, so
 * that who gives back or asks does not stand behind who waits.
 *
 * <p>Why not {@code java.net.http}: it has threads of its own, no limit of connections, and costs a program more than half of its calls.
 */
final class Wire extends InputStream {
    static final Semaphore ANY = new Semaphore(6, true), WAITING = new Semaphore(3, true);
    /** Bytes: of a head; of a request, which so fits in a buffer of the system, and no write waits for a node that is paused. */
    private static final int MOST_OF_HEAD = 1 << 16, BUFFER = 1 << 18;
    /** How long a connection may take; how soon who waits for one sees that it was {@link Line#cut}. */
    private static final double CONNECT = 2_000, SLICE = 250;
    private static final Deque<Wire> IDLE = new ConcurrentLinkedDeque<>();
    /** Those that ask: Java bounds neither a write nor a handshake of TLS. */
    private static final Set<Wire> ASKS = ConcurrentHashMap.newKeySet();
    /** Names are looked up by a thread of its own: Java has no time-out for that. */
    private static final ThreadPoolExecutor NAMES = Soloist.Loop.pool("names", 1, 50);

    final URI to;
    private final SocketChannel channel = SocketChannel.open();
    private final Socket socket;
    /** Read, and not yet used. */
    private final byte[] heard = new byte[1 << 13];
    private int at, size, room, frame;
    private volatile Instant end;
    /** It was kept after an answer. */
    boolean used;
    /** The answer, what is left of its body or of this chunk of it, and whether that ends with the connection. */
    int status;
    Map<String, String> head;
    private boolean chunked, open;
    private long left;

    /** By the {@code nth} address of the name; a certificate is for the name. */
    private Wire(URI to, int nth, Instant end) throws Exception {
        this.to = to;
        this.end = end;
        try {
            String host = Objects.requireNonNull(to.getHost(), "no address of a node: " + to);
            var all = host.matches("[\\d.]+|\\[.*") ? InetAddress.getAllByName(host) : NAMES.submit(() -> InetAddress.getAllByName(host)).get(left(), TimeUnit.MILLISECONDS);
            boolean secret = to.getScheme().equals("https");
            int port = to.getPort() >= 0 ? to.getPort() : secret ? 443 : 80;
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true).setOption(StandardSocketOptions.SO_SNDBUF, BUFFER);
            channel.socket().connect(new InetSocketAddress(all[secret ? 0 : nth % all.length], port), (int) Math.min(CONNECT, left()));
            socket = secret ? ((SSLSocketFactory) SSLSocketFactory.getDefault()).createSocket(channel.socket(), host, port, true) : channel.socket();
            socket.setSoTimeout(left());
            if (!(socket instanceof SSLSocket named)) return;
            var checks = named.getSSLParameters();
            checks.setEndpointIdentificationAlgorithm("HTTPS");
            named.setSSLParameters(checks);
        } catch (Throwable error) {
            close();
            throw error;
        }
    }

    /** Waits for one of them, for so long; whether it was had. */
    static boolean take(Semaphore some, Line line, double most) {
        try { for (Instant end = Instant.in(most); !line.over.isDone() && end.left() > 0; ) if (some.tryAcquire((long) Math.min(SLICE, end.left()), TimeUnit.MILLISECONDS)) return true; }
        catch (InterruptedException error) { Thread.currentThread().interrupt(); }
        return false;
    }

    /** An idle one, unless it must be fresh; else a new one, in the place of an idle one. */
    static Wire to(URI url, int nth, boolean fresh, Instant end) throws Exception {
        for (Wire wire : IDLE) if (!fresh && wire.to.equals(url) && IDLE.remove(wire)) return wire;
        Wire other = IDLE.pollLast();
        if (other != null) other.close();
        return new Wire(url, nth, end);
    }

    /** Something in between may have forgotten all connections: no kept one is used any more. */
    static void forget() { for (Wire wire; (wire = IDLE.poll()) != null; wire.close()) continue; }

    /** Ends what has not been answered in time. Waits for nobody. */
    static void late() { for (Wire wire : ASKS) if (wire.end.left() < 0) wire.close(); }

    /** After an answer: kept for the next question if all was read and the node keeps it, too. */
    void done() {
        used = true;
        ASKS.remove(this);
        if (at < size || left != 0 || chunked || open || head.getOrDefault("connection", "").equalsIgnoreCase("close")) close();
        else IDLE.addFirst(this);
    }

    /** Waits for nobody: of TLS no farewell is said. */
    @Override public void close() {
        ASKS.remove(this);
        try { channel.close(); }
        catch (IOException error) { return; } // then it is gone already
    }

    private int left() throws IOException {
        if (end.left() < 1) throw new SocketTimeoutException("no answer in time");
        return (int) Math.min(1e9, end.left());
    }

    /** For a stream, whose connection is used for nothing else: the answer may go on for so long from now, and by so many bytes. */
    void goesOn(double ms, int most) {
        end = Instant.in(ms);
        frame = most;
        open = true;
    }

    /** Sends a request and reads the head of the answer. */
    void ask(byte[] request, Instant until) throws IOException {
        end = until;
        room = MOST_OF_HEAD;
        ASKS.add(this);
        socket.getOutputStream().write(request);
        do {
            status = Integer.parseInt(line().substring(9, 12));
            head = new HashMap<>();
            for (String line; !(line = line()).isEmpty(); ) head.put(line.split(":")[0].toLowerCase(Locale.ROOT), line.substring(line.indexOf(':') + 1).strip());
        } while (status < 200);
        chunked = head.getOrDefault("transfer-encoding", "").equalsIgnoreCase("chunked");
        String length = status == 204 || status == 304 ? "0" : head.get("content-length");
        open = !chunked && length == null;
        left = chunked ? 0 : open ? Long.MAX_VALUE : Long.parseLong(length);
    }

    private boolean hears() throws IOException {
        if (at < size) return true;
        socket.setSoTimeout(left());
        at = 0;
        size = socket.getInputStream().read(heard);
        return size > 0;
    }

    private String line() throws IOException {
        var text = new ByteArrayOutputStream(80);
        for (byte one; ; text.write(one)) {
            if (!hears() || --room < 0) throw new EOFException("the connection has ended, or a head does not end");
            if ((one = heard[at++]) == '\n') return text.toString(ISO_8859_1).stripTrailing();
        }
    }

    @Override public int read() { throw new UnsupportedOperationException(); }

    @Override public int read(byte[] into, int from, int most) throws IOException {
        if (left == 0 && chunked) {
            room = MOST_OF_HEAD;
            left = Long.parseLong(line().split(";")[0].strip(), 16);
            if (left == 0) while (!line().isEmpty()) continue;
            chunked = left > 0;
        }
        if (left == 0 || !hears() && open) return -1;
        if (size < 0 || left < 0) throw new EOFException("the connection has ended");
        int count = (int) Math.min(Math.min(most, left), size - at);
        System.arraycopy(heard, at, into, from, count);
        at += count;
        left -= count;
        if (frame > 0 && (frame -= count) <= 0) throw new IOException("a frame without end");
        if (left == 0 && chunked) line();
        return count;
    }
}
