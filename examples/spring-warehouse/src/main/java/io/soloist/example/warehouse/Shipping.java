package io.soloist.example.warehouse;

import io.soloist.client.Hold.Lease;
import io.soloist.spring.RunWhileLeader;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** The one thread. Who switches it on and off is Soloist's page, not this program. */
@Component
public class Shipping {
    private final Orders orders;
    private final String copy;
    private final long pause;

    Shipping(Orders orders, @Value("${soloist.holder:test}") String copy, @Value("${warehouse.pause-ms:1000}") long pause) {
        this.orders = orders;
        this.copy = copy;
        this.pause = pause;
    }

    @RunWhileLeader("outbound")
    void ship(Lease lease) throws InterruptedException {
        lease.log(copy + " ships under token " + lease.token());
        orders.refuseOlderThan(lease.token()); // so what is read from here on stays true
        while (true) {
            for (String order : orders.open()) {
                lease.progress(orders.shipped().size(), orders.all(), "shipping order " + order);
                Thread.sleep(pause); // interrupted when the work must end
                lease.check();
                orders.ship(order, copy, lease.token());
                lease.log("shipped order " + order);
            }
            lease.progress(orders.shipped().size(), orders.all(), "waiting for orders");
            Thread.sleep(1000);
        }
    }
}
