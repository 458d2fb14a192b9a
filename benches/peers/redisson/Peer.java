import io.soloist.client.Hold.Lease;
import io.soloist.client.Soloist;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A program that wants a lock, of Redisson or of Soloist, each used as its own page shows it. The bench drives it.
 *
 * <p>{@code Peer redisson|soloist ADDRESSES TOKEN TTL_MS HOLDER FILE AHEAD_NS}. A TTL of 0 is the library's own default. AHEAD_NS is what CLOCK_BOOTTIME is
 * ahead of {@code System.nanoTime}. Each line of standard input is a command and is answered by one line; with the end of its input the program ends.
 *
 * <table>
 *   <caption>Commands</caption>
 *   <tr><td>{@code work NAME}</td><td>takes the lock in a thread of its own and writes an act to FILE every 5 ms: {@code HOLDER PID BOOT_NS}</td></tr>
 *   <tr><td>{@code ask NAME}</td><td>the same, and asks the library before each act whether the lock is still its own</td></tr>
 *   <tr><td>{@code take NAME}</td><td>waits for the lock; answers with the instant at which it has it</td></tr>
 *   <tr><td>{@code give}</td><td>gives it back; answers with the instant at which it began to</td></tr>
 *   <tr><td>{@code pairs THREADS MS}</td><td>takes and gives a lock of each thread's own; answers with the number of pairs</td></tr>
 * </table>
 */
public final class Peer {
    private static final long BETWEEN_ACTS_MS = 5;
    private static final long PID = ProcessHandle.current().pid();
    private static String holder;
    private static long ahead;
    private static FileChannel acts;

    /** Waits for the lock of that name. */
    private interface Library { Held take(String name); }

    private interface Held {
        boolean still();

        /** By the thread that took it, as Redisson wants it. */
        void give();
    }

    private static Library redisson(String address, long ttlMs) {
        Config config = new Config();
        if (ttlMs > 0) config.setLockWatchdogTimeout(ttlMs);
        config.useSingleServer().setAddress(address);
        RedissonClient client = Redisson.create(config);
        return name -> {
            RLock lock = client.getLock(name);
            lock.lock();
            return new Held() {
                @Override public boolean still() { return lock.isHeldByCurrentThread(); }
                @Override public void give() { lock.unlock(); }
            };
        };
    }

    private static Library soloist(String addresses, String token, long ttlMs) {
        Soloist client = new Soloist(List.of(addresses.split(",")), token);
        Soloist.Options options = new Soloist.Options();
        if (ttlMs > 0) options.ttl = Duration.ofMillis(ttlMs);
        return name -> {
            Lease lease = client.lease(name, options);
            return new Held() {
                @Override public boolean still() { return !lease.stopping(); }
                @Override public void give() { lease.close(); }
            };
        };
    }

    private static long now() { return System.nanoTime() + ahead; }

    /** One write with O_APPEND. */
    private static void act() throws IOException {
        acts.write(ByteBuffer.wrap((holder + " " + PID + " " + now() + "\n").getBytes(StandardCharsets.UTF_8)));
    }

    private static void work(Library library, String name, boolean asks) {
        Held held = library.take(name);
        try {
            while (!asks || held.still()) {
                act();
                Thread.sleep(BETWEEN_ACTS_MS);
            }
        } catch (IOException | InterruptedException error) { System.err.println("asked to end: " + error); }
        finally { held.give(); }
    }

    private static long pairs(Library library, int threads, long ms) throws Exception {
        ExecutorService all = Executors.newFixedThreadPool(threads);
        long until = System.nanoTime() + ms * 1_000_000;
        List<Future<Long>> counts = new ArrayList<>();
        for (int nth = 0; nth < threads; nth++) {
            String name = "pairs-" + PID + "-" + nth;
            Callable<Long> pairs = () -> {
                long count = 0;
                for (; System.nanoTime() < until; count++) library.take(name).give();
                return count;
            };
            counts.add(all.submit(pairs));
        }
        long sum = 0;
        for (Future<Long> count : counts) sum += count.get();
        all.shutdown();
        return sum;
    }

    public static void main(String[] args) throws Exception {
        long ttlMs = Long.parseLong(args[3]);
        holder = args[4];
        acts = FileChannel.open(Path.of(args[5]), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        ahead = Long.parseLong(args[6]);
        Library library = args[0].equals("redisson") ? redisson(args[1], ttlMs) : soloist(args[1], args[2], ttlMs);
        Held held = null;
        var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ");
            Object answer = "works";
            switch (words[0]) {
                case "work", "ask" -> new Thread(() -> work(library, words[1], words[0].equals("ask"))).start();
                case "take" -> {
                    held = library.take(words[1]);
                    answer = now();
                }
                case "give" -> {
                    answer = now();
                    held.give();
                }
                case "pairs" -> answer = pairs(library, Integer.parseInt(words[1]), Long.parseLong(words[2]));
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0);
    }
}
