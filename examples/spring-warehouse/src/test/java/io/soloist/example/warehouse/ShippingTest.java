package io.soloist.example.warehouse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.soloist.spring.test.AutoConfigureSoloist;
import io.soloist.spring.test.FakeSoloist;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;

/** The service without a node: the test is the leader when it says so. */
@SpringBootTest(properties = {"warehouse.orders=../outbound/orders.csv", "warehouse.state=target", "warehouse.pause-ms=1",
        "spring.datasource.url=jdbc:sqlite:file:test?mode=memory&cache=shared", "spring.datasource.hikari.maximum-pool-size=1"})
@AutoConfigureSoloist(leader = false)
class ShippingTest {
    @Autowired FakeSoloist soloist;
    @Autowired Orders orders;

    @Test void every_order_is_shipped_once_and_an_older_token_is_refused() {
        assertThat(orders.shipped()).isEmpty();
        soloist.lead("outbound");
        soloist.await("all orders are shipped", () -> orders.open().isEmpty());
        assertThat(orders.shipped()).hasSize(orders.all());
        soloist.standBy("outbound");
        soloist.awaitFree("outbound");
        orders.refuseOlderThan(100);
        assertThatThrownBy(() -> orders.ship("1", "a former leader", 99)).hasMessageContaining("token 99 is refused");
    }
}
