package io.soloist.example.warehouse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

/** Where orders are shipped to: a database of both copies, which refuses whoever has an older token than it has seen. */
@Component
public class Orders {
    private final JdbcTemplate jdbc;
    private final List<String> numbers;

    Orders(JdbcTemplate jdbc, @Value("${warehouse.orders}") Path file) throws IOException {
        this.jdbc = jdbc;
        this.numbers = Files.readAllLines(file).stream().skip(1).filter(line -> !line.isBlank()).map(line -> line.split(",")[0]).toList();
    }

    /** How many there are. */
    public int all() { return numbers.size(); }

    /** Those that are not shipped yet. */
    public List<String> open() {
        var done = new HashSet<>(jdbc.queryForList("SELECT number FROM shipped", String.class));
        return numbers.stream().filter(number -> !done.contains(number)).toList();
    }

    public List<String> shipped() {
        return jdbc.query("SELECT number, copy, token FROM shipped ORDER BY rowid", (row, nth) -> row.getString(1) + "," + row.getString(2) + "," + row.getLong(3) + "\n");
    }

    /** From now on nobody with an older token ships. */
    @Transactional public void refuseOlderThan(long token) {
        if (jdbc.update("UPDATE fence SET token = ? WHERE token <= ?", token, token) == 0)
            throw new IllegalStateException("token " + token + " is refused: a newer one was seen, so another ships");
    }

    /** Both or nothing: the fence is asked, and the order is shipped. */
    @Transactional public void ship(String number, String copy, long token) {
        refuseOlderThan(token);
        jdbc.update("INSERT INTO shipped VALUES (?, ?, ?)", number, copy, token);
    }
}
