import io.soloist.client.Hold;
import io.soloist.client.Hold.*;
import io.soloist.client.Soloist;
import io.soloist.client.Soloist.*;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * What the tests of Soloist drive: does a little work under a lease, a turn or tasks, and writes every act down.
 *
 * <p>{@code Driver WHAT ADDRESSES TOKEN NAME FILE [MODE]}, as clients/python/tests/driver.py says.
 */
public final class Driver {
    private static Path file;
    private static volatile boolean called;
    /** What is left of a text that was cut inside a pair. */
    private static final String HALF = "caf\ud83d.csv";
    private static volatile Loop loop;

    private static String now() {
        try {
            return Files.readString(Path.of("/proc/uptime")).split(" ")[0];
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** One write with O_APPEND. */
    private static void say(long of, String at, String word) {
        String line = of + " java " + ProcessHandle.current().pid() + " " + at + " " + word + "\n";
        try {
            Files.write(file, line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A handler of the library's log. */
    private static void handled(String mode) {
        if (mode.equals("log-raises")) throw new IllegalStateException("the collector is gone");
        if (loop != null && loop.hold() != null) loop.hold().check();
        while (mode.equals("log-hangs")) java.util.concurrent.locks.LockSupport.park();
    }

    private static java.util.logging.Logger handle(String mode) {
        var logger = java.util.logging.Logger.getLogger("soloist");
        logger.setLevel(java.util.logging.Level.ALL);
        logger.addHandler(new java.util.logging.Handler() {
            @Override public void publish(java.util.logging.LogRecord record) { handled(mode); }
            @Override public void flush() { }
            @Override public void close() { }
        });
        return logger;
    }

    private static void overrun(Hold hold) {
        say(hold.token(), now(), "overrun");
        called = true;
    }

    private static void work(Lease lease, String mode) throws Exception {
        say(lease.token(), now(), "start");
        if (mode.equals("fail")) throw new IllegalStateException("about to fail");
        if (mode.equals("dies")) throw new StackOverflowError();
        try {
            for (int number = 0; !called; ) {
                String at = now();
                if (List.of("polite", "exits", "leaves", "many").contains(mode) || mode.startsWith("log-")) lease.check();
                number++;
                if (mode.equals("exits") && number > 5) System.exit(7);
                if (mode.equals("interrupted") && number > 5) {
                    Thread.currentThread().interrupt();
                    return;
                }
                if (mode.equals("closes") && number > 5) {
                    loop.close();
                    return;
                }
                if (mode.equals("halves") && number > 150) throw new IllegalStateException(HALF);
                say(lease.token(), at, "beat");
                lease.progress(number, 100_000, "step " + number);
                lease.log("this is step " + number);
                if (mode.equals("halves")) {
                    lease.progress(number, 1000, HALF);
                    lease.log(HALF + " " + number + "\n" + "x".repeat(499) + "\ud83d\ude00");
                }
                try {
                    Thread.sleep(mode.equals("asleep") ? 60_000 : 20);
                } catch (InterruptedException error) {
                    if (!mode.equals("hog") && !mode.equals("callback")) throw error;
                }
            }
            say(lease.token(), now(), "ended");
        } finally {
            System.err.println("ends: " + lease.reason());
        }
    }

    private static void handle(Task task) throws Exception {
        Map<?, ?> payload = task.payload instanceof Map<?, ?> map ? map : Map.of();
        if (payload.get("slow") instanceof Number slow) Thread.sleep(slow.longValue() * 1000);
        task.check();
        if (payload.get("fail") instanceof Long fail && fail >= task.attempt && payload.containsKey("exit")) throw new StackOverflowError();
        if (payload.get("fail") instanceof Long fail && fail >= task.attempt) throw new Retry("not yet", 10L);
        if (payload.get("dead") != null) throw new Dead(payload.get("dead").equals("half") ? "y".repeat(860) + HALF + "\ud83d\ude00" : "never");
        say(task.token(), now(), task.key);
    }

    /** Kept: a local that nobody has is forgotten. */
    private static final java.util.concurrent.atomic.AtomicReference<Full> FULL = new java.util.concurrent.atomic.AtomicReference<>();

    /** Of the threads that keep a lease the nth, and each later one, cannot be made: it is asked about each. */
    private static final class Full extends InheritableThreadLocal<Integer> {
        private int left = Integer.parseInt(System.getenv("DRIVER_THREADS"));

        @Override protected Integer childValue(Integer parent) {
            List<String> calls = StackWalker.getInstance().walk(all -> all.map(StackWalker.StackFrame::getMethodName).toList());
            if (calls.contains("thread") && calls.contains("confirm") && !calls.contains("drop") && --left <= 0) throw new OutOfMemoryError("unable to create native thread");
            return parent;
        }
    }

    private static void scheduled(Tick tick, String mode) throws Exception {
        long since = System.currentTimeMillis() - tick.due().toEpochMilli();
        String params = String.join(",", new java.util.TreeMap<>(tick.params()).entrySet().stream().map(each -> each.getKey() + "=" + each.getValue()).toList());
        say(tick.token(), now(), "begin|" + tick.name() + "|" + tick.attempt() + "|" + tick.lateMs() + "|" + since + "|" + params);
        if (mode.startsWith("fail-") && tick.attempt() <= Long.parseLong(mode.substring(5))) throw new IllegalStateException("about to fail");
        try {
            while (mode.equals("polite")) {
                String at = now();
                tick.check();
                say(tick.token(), at, "beat");
                Thread.sleep(20);
            }
            Thread.sleep(50);
            say(tick.token(), now(), "ended");
        } finally {
            System.err.println("ends: " + tick.reason());
        }
    }

    private static void turns(Soloist client, String name, Options options, Thread main) throws Exception {
        String[] parts = name.split("/");
        while (main.isAlive()) {
            try (Turn turn = client.turn(parts[0], parts[1], options)) {
                for (int nth = 0; nth < 5; nth++) {
                    String at = now();
                    turn.check();
                    say(turn.token(), at, parts[1]);
                    Thread.sleep(10);
                }
            } catch (NotGranted error) {
                // Again.
            }
        }
    }

    private static final java.util.concurrent.ConcurrentSkipListMap<Integer, Lease> MANY = new java.util.concurrent.ConcurrentSkipListMap<>();

    /** Does it for each number below {@code count}, 16 at a time. */
    private static void each(List<Integer> numbers, java.util.function.IntConsumer what) throws InterruptedException {
        var left = new java.util.concurrent.ConcurrentLinkedQueue<>(numbers);
        List<Thread> threads = new ArrayList<>();
        for (int nth = 0; nth < 16; nth++) {
            threads.add(new Thread(() -> {
                for (Integer number; (number = left.poll()) != null; ) what.accept(number);
            }));
            threads.get(nth).start();
        }
        for (Thread thread : threads) thread.join();
    }

    private static Options patient() {
        Options options = new Options();
        options.ttl = Duration.ofSeconds(Long.parseLong(System.getenv("DRIVER_TTL")));
        options.patience = Duration.ofSeconds(60);
        return options;
    }

    private static Lease one(Soloist client, String name, int nth, boolean few) {
        Options options = patient();
        options.ttl = options.ttl.multipliedBy(1 + nth % 2);
        options.onOverrun = hold -> say(hold.token(), now(), "overrun-" + nth);
        Lease lease = client.lease(name + "-" + nth, options);
        if (few) say(lease.token(), now(), "took-" + nth);
        return lease;
    }

    /** As tests/it/clients/light.rs says. */
    private static void light(Soloist client, String name, int count) throws Exception {
        var input = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, StandardCharsets.UTF_8));
        say(0, now(), "ready");
        input.readLine();
        if (count <= 100) {
            Thread looks = new Thread(() -> {
                java.util.Set<Integer> lost = new java.util.HashSet<>();
                while (true) {
                    String at = now();
                    MANY.forEach((nth, lease) -> {
                        if (!lease.stopping() || !lost.add(nth)) return;
                        say(lease.token(), at, "lost-" + nth);
                        System.err.println("lost " + nth + ": " + lease.reason());
                    });
                    java.util.concurrent.locks.LockSupport.parkNanos(10_000_000);
                }
            });
            looks.setDaemon(true);
            looks.start();
        }
        each(java.util.stream.IntStream.range(0, count).boxed().toList(), nth -> MANY.put(nth, one(client, name, nth, count <= 100)));
        say(0, now(), "held");
        for (String line; (line = input.readLine()) != null; ) {
            String at = now();
            if (line.equals("look")) say(0, at, "holds-" + MANY.values().stream().filter(lease -> !lease.stopping()).count());
            if (line.startsWith("storm ")) {
                long end = System.nanoTime() + Long.parseLong(line.substring(6)) * 1_000_000_000L;
                each(java.util.stream.IntStream.range(0, 16).boxed().toList(), nth -> {
                    while (System.nanoTime() < end) client.lease(name + "-storm-" + nth, patient()).close();
                });
                say(0, now(), "stormed");
            }
            if (!line.startsWith("give ")) continue;
            int nth = Integer.parseInt(line.substring(5));
            MANY.remove(nth).close();
            say(0, now(), "gave-" + nth);
        }
        each(List.copyOf(MANY.keySet()), nth -> MANY.remove(nth).close());
    }

    private static void await(Soloist client, String name, Options options) {
        options.patience = Duration.ofSeconds(1);
        long began = System.nanoTime();
        String came = "granted", why = "";
        try {
            client.lease(name, options).close();
        } catch (Throwable error) {
            came = error.getClass().getSimpleName();
            why = error.getMessage();
        }
        System.err.printf("waited: %s %.2f s %s%n", came, (System.nanoTime() - began) / 1e9, why);
    }

    public static void main(String[] args) throws Exception {
        String what = args[0], name = args[3], mode = args.length > 5 ? args[5] : "polite";
        file = Path.of(args[4]);
        Soloist client = new Soloist(List.of(args[1].split(",")), args[2], System.getenv("DRIVER_OVERRUN"));
        Options options = new Options();
        options.name = "java-" + ProcessHandle.current().pid();
        options.ttl = Duration.ofSeconds(Long.parseLong(System.getenv().getOrDefault("DRIVER_TTL", "2")));
        // Kept: a logger that nobody has is forgotten, with its handlers.
        Object kept = mode.startsWith("log-") ? handle(mode) : null;
        if (mode.equals("many")) {
            List<Lease> ten = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int nth = 0; nth < 10; nth++) {
                String its = name + "-" + nth;
                threads.add(new Thread(() -> {
                    Lease lease = client.lease(its, options);
                    synchronized (ten) { ten.add(lease); }
                }));
                threads.get(nth).start();
            }
            for (Thread thread : threads) thread.join();
            // All at once: each gives back over a connection of its own.
            ten.parallelStream().forEach(Lease::close);
        }
        switch (what) {
            case "lease" -> {
                if (mode.equals("callback")) options.onOverrun = Driver::overrun;
                loop = client.runWhileLeader(name, lease -> work(lease, mode), options);
            }
            case "scheduled" -> loop = client.scheduled(name, tick -> scheduled(tick, mode), options);
            case "collect" -> {
                options.parallel = 3;
                loop = client.collect(name, Driver::handle, options);
            }
            case "follow" -> loop = client.follow(frame -> {
                System.out.println(frame.get("type"));
                List<Object> jobs = new ArrayList<>();
                if (frame.get("jobs") instanceof List<?> all) jobs.addAll(all);
                if (frame.get("type").equals("job")) jobs.add(frame.get("job"));
                for (Object job : jobs) say((Long) ((Map<?, ?>) job).get("version"), now(), (String) ((Map<?, ?>) job).get("state"));
            }, name);
            case "light" -> {
                light(client, name, Integer.parseInt(mode));
                return;
            }
            case "whole" -> {
                loop = client.runWhileLeader(name, lease -> work(lease, mode), options);
                loop.join();
                return;
            }
            case "wait" -> {
                if (System.getenv("DRIVER_THREADS") == null) {
                    await(client, name, options);
                    return;
                }
                FULL.set(new Full());
                FULL.get().set(1);
                await(client, name, options);
                say(0, now(), "waited");
            }
            default -> {
                options.patience = Duration.ofSeconds(1);
                Thread main = Thread.currentThread();
                new Thread(() -> {
                    try {
                        turns(client, name, options, main);
                    } catch (Exception error) {
                        throw new IllegalStateException(error);
                    }
                }).start();
            }
        }
        while (System.in.read() >= 0) continue;
        if (mode.equals("leaves")) return;
        if (loop != null) loop.close();
        java.lang.ref.Reference.reachabilityFence(kept);
    }
}
