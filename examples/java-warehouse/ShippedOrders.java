import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

/**
 * Where orders are shipped to: a file that several processes append to, and that refuses who has an older token than it has seen.
 *
 * <p>To ship is to append one line, under a lock, after the fence was asked. So nothing is shipped without being recorded, nothing twice, and a
 * copy that was paused for a minute and believes that it is still the one is refused. In a database the fence is a column; see
 * examples/fencing.
 */
final class ShippedOrders {
    private final Path file;
    private final Path fence;

    ShippedOrders(Path directory) {
        file = directory.resolve("shipped.csv");
        fence = directory.resolve("fence");
    }

    /** The number of an order: its first column. */
    static String number(String record) {
        return record.substring(0, (record + ",").indexOf(','));
    }

    /** From now on nobody with an older token ships. */
    void refuseOlderThan(long token) throws IOException {
        try (FileChannel lock = FileChannel.open(fence, CREATE, WRITE); var held = lock.lock()) {
            admit(token);
        }
    }

    /** Ships an order. */
    void ship(String order, String copy, long token) throws IOException {
        try (FileChannel lock = FileChannel.open(fence, CREATE, WRITE); var held = lock.lock()) {
            admit(token);
            if (numbers().contains(number(order))) throw new IllegalStateException("order " + number(order) + " is shipped already");
            Files.writeString(file, order + "," + Instant.now() + "," + copy + "," + token + "\n", CREATE, APPEND);
        }
    }

    private void admit(long token) throws IOException {
        String text = Files.readString(fence).strip();
        long newest = text.isEmpty() ? 0 : Long.parseLong(text);
        if (token < newest) throw new IllegalStateException("token " + token + " is refused: " + newest + " was seen, so another ships");
        if (token > newest) Files.writeString(fence, Long.toString(token));
    }

    /** What is shipped. */
    Set<String> numbers() {
        try {
            List<String> lines = Files.exists(file) ? Files.readAllLines(file) : List.of();
            Set<String> numbers = new HashSet<>();
            for (String line : lines) numbers.add(number(line));
            return numbers;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    int count() {
        return numbers().size();
    }
}
