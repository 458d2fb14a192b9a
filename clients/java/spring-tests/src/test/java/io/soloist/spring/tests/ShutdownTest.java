package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.client.Hold;
import io.soloist.spring.Collect;
import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.SoloistRunner;
import io.soloist.spring.test.FakeSoloist;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;

/** The end: the work first, then its lease, then the beans that it uses. */
@ExtendWith(OutputCaptureExtension.class)
class ShutdownTest {
    private static final List<String> SAID = new CopyOnWriteArrayList<>();
    private static volatile FakeSoloist fake;

    static class Stock implements DisposableBean {
        @Override public void destroy() { SAID.add("stock destroyed, held " + fake.isHeld("outbound") + ", end " + fake.end("outbound")); }
    }

    static class Shipping implements DisposableBean {
        @Autowired Stock stock;
        volatile boolean ran;

        @RunWhileLeader("outbound") void ship(Hold.Lease lease) throws InterruptedException {
            ran = true;
            try { Thread.sleep(60_000); }
            finally {
                SAID.add("interrupted: " + lease.reason());
                Thread.sleep(100); // it finishes the order in its hands
                SAID.add("work ended, held " + fake.isHeld("outbound"));
            }
        }

        @Override public void destroy() { SAID.add("shipping destroyed, held " + fake.isHeld("outbound")); }
    }

    static class Deaf {
        volatile boolean ran, ends;

        @RunWhileLeader("outbound") void ship() {
            ran = true;
            while (!ends) Thread.onSpinWait();
        }
    }

    static class Quits {
        @Autowired ConfigurableApplicationContext context;
        volatile boolean ran;

        @RunWhileLeader("outbound") void ship() {
            context.close();
            ran = true;
        }
    }

    static class Crawler {
        volatile String state = "";

        @Collect("pages") void fetch(Hold.Task task) throws InterruptedException {
            state = "began";
            Thread.sleep(task.key.equals("short") ? 300 : 60_000);
            state = "done";
        }
    }

    @Test void the_work_ends_then_its_lease_then_the_beans() throws Exception {
        SAID.clear();
        try (FakeSoloist node = fake = new FakeSoloist(true)) {
            var app = Apps.start(node, List.of(), Stock.class, Shipping.class);
            Shipping shipping = app.getBean(Shipping.class);
            Apps.until("it runs", () -> shipping.ran);
            app.close();
            assertThat(SAID).containsExactly("interrupted: closed", "work ended, held true", "shipping destroyed, held false", "stock destroyed, held false, end unused");
        }
    }

    @Test void a_context_that_is_started_again_runs_the_work_again() throws Exception {
        try (FakeSoloist node = fake = new FakeSoloist(true); var app = Apps.start(node, List.of(), Stock.class, Shipping.class)) {
            Shipping shipping = app.getBean(Shipping.class);
            Apps.until("it runs", () -> shipping.ran);
            app.stop();
            assertThat(node.isHeld("outbound")).isFalse();
            shipping.ran = false;
            app.start();
            Apps.until("it runs again", () -> shipping.ran);
        }
    }

    @Test void work_that_does_not_hear_holds_up_the_end_for_its_grace_and_keeps_its_lease(CapturedOutput output) throws Exception {
        try (FakeSoloist node = fake = new FakeSoloist(true)) {
            var app = Apps.start(node, List.of("soloist.shutdown-grace=300ms"), Deaf.class);
            Deaf deaf = app.getBean(Deaf.class);
            Apps.until("it runs", () -> deaf.ran);
            long began = System.nanoTime();
            app.close();
            assertThat((System.nanoTime() - began) / 1_000_000).isBetween(300L, 10_000L);
            assertThat(node.isHeld("outbound")).isTrue();
            assertThat(output.getAll()).contains("has not ended within soloist.shutdown-grace (300 ms)", "Deaf.ship");
            deaf.ends = true;
            node.awaitFree("outbound");
        }
    }

    @Test void work_may_close_the_context_itself() throws Exception {
        try (FakeSoloist node = fake = new FakeSoloist(false)) {
            var app = Apps.start(node, List.of(), Quits.class);
            Quits quits = app.getBean(Quits.class);
            long began = System.nanoTime();
            node.lead("outbound");
            Apps.until("it has gone on", () -> quits.ran);
            assertThat((System.nanoTime() - began) / 1_000_000).isLessThan(15_000);
            node.awaitFree("outbound");
            assertThat(app.isActive()).isFalse();
            int asked = node.asked("/outbound");
            Thread.sleep(500);
            assertThat(node.asked("/outbound")).isEqualTo(asked);
        }
    }

    @Test void a_task_is_finished_if_there_is_time_and_given_to_another_if_not() throws Exception {
        for (String key : new String[] {"short", "long"}) {
            try (FakeSoloist node = fake = new FakeSoloist(true)) {
                var app = Apps.start(node, List.of("soloist.shutdown-grace=" + (key.equals("short") ? "20s" : "1s")), Crawler.class);
                Crawler crawler = app.getBean(Crawler.class);
                node.put("pages", key, Map.of());
                Apps.until("it has begun", () -> crawler.state.equals("began"));
                app.close();
                assertThat(node.end(key)).isEqualTo(key.equals("short") ? "done" : "retry");
            }
        }
    }

    @Test void the_runner_ends_before_the_beans_also_without_a_context_lifecycle() {
        try (FakeSoloist node = fake = new FakeSoloist(true); var app = Apps.start(node, List.of(), Stock.class, Shipping.class)) {
            assertThat(app.getBeanFactory().getDependentBeans(app.getBeanNamesForType(Shipping.class)[0])).contains("soloistRunner");
            assertThat(app.getBean(SoloistRunner.class).getPhase()).isEqualTo(Integer.MAX_VALUE);
        }
    }
}
