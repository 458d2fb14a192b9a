import com.sun.net.httpserver.HttpServer;
import io.soloist.client.Hold;
import io.soloist.client.Hold.Lease;
import io.soloist.client.Soloist;
import io.soloist.client.Soloist.Loop;
import io.soloist.client.Soloist.Options;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;

/**
 * A web service that must ship every order once, however many copies of it run.
 *
 * <p>Every copy has a shipping thread; the one that has the lease {@code outbound} ships. Who switches it on and off is Soloist's
 * page, not this program. {@code Warehouse PORT ORDERS STATE}; the environment has {@code SOLOIST_URLS} and {@code SOLOIST_API_TOKEN}.
 */
public final class Warehouse {
    private final List<String> orders;
    private final ShippedOrders shipped;
    private final String copy;
    private final long pause = Long.parseLong(System.getenv().getOrDefault("PAUSE_MS", "1000"));
    private volatile Loop shipping;

    private Warehouse(Path orders, ShippedOrders shipped, String copy) throws IOException {
        this.orders = Files.readAllLines(orders).stream().skip(1).filter(line -> !line.isBlank()).toList();
        this.shipped = shipped;
        this.copy = copy;
    }

    /** Ships what is not shipped, order by order, for as long as this copy is the one. */
    private void ship(Lease lease) throws Exception {
        lease.log(copy + " ships under token " + lease.token());
        // From here on no older holder can ship: what is read now stays true.
        shipped.refuseOlderThan(lease.token());
        Set<String> done = shipped.numbers();
        while (true) {
            for (String order : orders) {
                String number = ShippedOrders.number(order);
                if (done.contains(number)) continue;
                lease.check();
                lease.progress(done.size(), orders.size(), "shipping order " + number);
                Thread.sleep(pause); // an interrupt ends it at once
                lease.check();
                shipped.ship(order, copy, lease.token());
                done.add(number);
                lease.log("shipped order " + number);
            }
            lease.progress(done.size(), orders.size(), "waiting for orders");
            Thread.sleep(1000);
        }
    }

    private String status() {
        Hold lease = shipping == null ? null : shipping.hold();
        String role = lease != null && lease.held() ? "ships under token " + lease.token() : "waits";
        return copy + " " + role + ": " + shipped.count() + " of " + orders.size() + " orders are shipped\n";
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        String copy = "warehouse-" + port;
        Warehouse warehouse = new Warehouse(Path.of(args[1]), new ShippedOrders(Path.of(args[2])), copy);
        Soloist soloist = new Soloist(List.of(System.getenv("SOLOIST_URLS").split(",")), System.getenv("SOLOIST_API_TOKEN"));
        Options options = new Options();
        options.name = copy;

        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] text = warehouse.status().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
            exchange.sendResponseHeaders(200, text.length);
            try (var body = exchange.getResponseBody()) {
                body.write(text);
            }
        });
        server.start();

        // The whole of it: ship while this copy is the one.
        warehouse.shipping = soloist.runWhileLeader("outbound", warehouse::ship, options);

        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                warehouse.shipping.close(); // the order in hand is finished or not begun, and the lease is free at once
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            server.stop(0);
        }));
    }
}
