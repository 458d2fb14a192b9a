package io.soloist.example.warehouse;

import io.soloist.spring.SoloistRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A web service that must ship every order once, however many copies of it run. */
@SpringBootApplication @RestController
public class Warehouse {
    private final Orders orders;
    private final SoloistRunner soloist;

    Warehouse(Orders orders, SoloistRunner soloist) {
        this.orders = orders;
        this.soloist = soloist;
    }

    @GetMapping(value = "/", produces = "text/plain") String status() {
        return (soloist.leads("outbound") ? "ships" : "waits") + ": " + orders.shipped().size() + " of " + orders.all() + " orders are shipped\n";
    }

    /** Each line: the order, the copy that shipped it, its token. */
    @GetMapping(value = "/shipped", produces = "text/csv") String shipped() { return String.join("", orders.shipped()); }

    public static void main(String[] arguments) { SpringApplication.run(Warehouse.class, arguments); }
}
