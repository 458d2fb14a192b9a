package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.client.Hold;
import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.test.FakeSoloist;
import io.soloist.spring.test.SoloistTest;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.ApplicationContext;

/** The slice, as the documentation prints it: no node, no web server, no database. */
@SoloistTest(SliceTest.Shipping.class)
class SliceTest {
    static class Shipping {
        final CountDownLatch shipped = new CountDownLatch(1);

        @RunWhileLeader("outbound") void ship(Hold.Lease lease) throws InterruptedException {
            shipped.countDown();
            Thread.sleep(60_000);
        }
    }

    @Autowired Shipping shipping;
    @Autowired FakeSoloist soloist;
    @Autowired ApplicationContext context;

    @Test void the_test_is_the_leader_at_once() throws Exception {
        assertThat(shipping.shipped.await(30, TimeUnit.SECONDS)).isTrue();
        soloist.standBy("outbound");
        soloist.awaitFree("outbound");
        assertThat(context.containsBean("dataSource")).isFalse();
    }
}
