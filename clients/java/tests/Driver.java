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

    private static void overrun(Hold hold) {
        say(hold.token(), now(), "overrun");
        called = true;
    }

    private static void work(Lease lease, String mode) throws Exception {
        say(lease.token(), now(), "start");
        if (mode.equals("fail")) throw new IllegalStateException("about to fail");
        try {
            for (int number = 0; !called; ) {
                String at = now();
                if (mode.equals("polite")) lease.check();
                number++;
                say(lease.token(), at, "beat");
                lease.progress(number, 100_000, "step " + number);
                lease.log("this is step " + number);
                try {
                    Thread.sleep(mode.equals("asleep") ? 60_000 : 20);
                } catch (InterruptedException error) {
                    if (mode.equals("polite") || mode.equals("asleep")) throw error;
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
        if (payload.get("fail") instanceof Long fail && fail >= task.attempt) throw new Retry("not yet", 10L);
        if (payload.get("dead") != null) throw new Dead("never");
        say(task.token(), now(), task.key);
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

    public static void main(String[] args) throws Exception {
        String what = args[0], name = args[3], mode = args.length > 5 ? args[5] : "polite";
        file = Path.of(args[4]);
        Soloist client = new Soloist(List.of(args[1].split(",")), args[2]);
        Options options = new Options();
        options.name = "java-" + ProcessHandle.current().pid();
        Loop loop = null;
        switch (what) {
            case "lease" -> {
                if (mode.equals("callback")) options.onOverrun = Driver::overrun;
                options.ttl = Duration.ofSeconds(2);
                loop = client.runWhileLeader(name, lease -> work(lease, mode), options);
            }
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
        if (loop != null) loop.close();
    }
}
