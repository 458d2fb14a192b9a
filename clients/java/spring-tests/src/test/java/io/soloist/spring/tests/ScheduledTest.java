package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.soloist.client.Hold;
import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.SoloistRunner;
import io.soloist.spring.SoloistScheduled;
import io.soloist.spring.test.FakeSoloist;
import io.soloist.spring.test.SoloistTest;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.test.util.AopTestUtils;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;

/** Ticks of jobs with a schedule, put by the test. */
@SoloistTest({ScheduledTest.Settling.class, ScheduledTest.Manager.class})
class ScheduledTest {
    @EnableTransactionManagement
    static class Settling {
        final List<String> seen = new CopyOnWriteArrayList<>();
        final AtomicInteger nightly = new AtomicInteger(), interrupted = new AtomicInteger();

        @SoloistScheduled("settle") void settle(Hold.Tick tick) throws InterruptedException {
            seen.add(tick.name() + " " + tick.attempt() + " " + tick.params());
            assertThat(tick.due()).isBefore(java.time.Instant.now().plusSeconds(1));
            if ("yes".equals(tick.params().get("fail"))) throw new IllegalStateException("no money");
            if (!"yes".equals(tick.params().get("rest"))) return;
            try { Thread.sleep(60_000); }
            finally { interrupted.incrementAndGet(); }
        }

        @SoloistScheduled("${names.night:night}") @Transactional public void night() { nightly.incrementAndGet(); }
    }

    /** Counts what is committed and rolled back. */
    static class Manager extends AbstractPlatformTransactionManager {
        final AtomicInteger commits = new AtomicInteger();

        @Override protected Object doGetTransaction() { return this; }
        @Override protected void doBegin(Object transaction, org.springframework.transaction.TransactionDefinition definition) { }
        @Override protected void doCommit(DefaultTransactionStatus status) { commits.incrementAndGet(); }
        @Override protected void doRollback(DefaultTransactionStatus status) { }
    }

    static class Twice {
        @SoloistScheduled("settle") @Scheduled(cron = "0 30 2 * * *") void settle() { }

        @RunWhileLeader("settle") void too() { }

        @SoloistScheduled("other") void other(Hold.Lease lease) { }
    }

    @Autowired FakeSoloist soloist;
    @Autowired Settling proxy;
    @Autowired Manager manager;
    @Autowired SoloistRunner runner;
    private Settling settling;

    @BeforeEach void itself() { settling = AopTestUtils.getTargetObject(proxy); }

    @Test void each_tick_that_the_test_puts_is_done_once_and_none_before() {
        soloist.await("it asks", () -> soloist.asked("/leases/settle") > 1);
        assertThat(settling.seen).noneMatch(each -> each.contains("day"));
        String first = soloist.tick("settle", Map.of("day", "2026-11-27")), second = soloist.tick("settle", Map.of("day", "2026-11-28"));
        soloist.await("both are done", () -> settling.seen.stream().filter(each -> each.contains("day")).count() == 2 && "done".equals(soloist.end("settle")));
        assertThat(settling.seen).contains(first + " 1 {day=2026-11-27}", second + " 1 {day=2026-11-28}");
    }

    @Test void one_that_throws_has_failed_and_the_next_does_not_wait() {
        soloist.tick("settle", Map.of("fail", "yes"));
        soloist.await("it has failed", () -> "failed".equals(soloist.end("settle")));
        soloist.tick("settle");
        soloist.await("the next is done", () -> "done".equals(soloist.end("settle")));
    }

    @Test void a_transactional_method_is_called_through_its_proxy() {
        int commits = manager.commits.get();
        assertThat(AopUtils.isAopProxy(proxy)).isTrue();
        soloist.tick("night");
        soloist.await("it is done", () -> "done".equals(soloist.end("night")));
        assertThat(manager.commits.get()).isEqualTo(commits + 1);
    }

    @Test void it_is_interrupted_when_it_is_switched_off() throws Exception {
        int before = settling.interrupted.get();
        soloist.tick("settle", Map.of("rest", "yes"));
        soloist.awaitHeld("settle");
        Apps.until("it runs", () -> runner.leads("settle"));
        soloist.standBy("settle");
        soloist.awaitFree("settle");
        assertThat(soloist.end("settle")).isEqualTo("failed");
        Apps.until("it was interrupted", () -> settling.interrupted.get() > before);
        soloist.lead("settle");
    }

    @Test void one_that_the_end_of_the_application_stops_is_lost() {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            try (var app = Apps.start(fake, List.of(), Settling.class, Manager.class)) {
                fake.tick("settle", Map.of("rest", "yes"));
                fake.awaitHeld("settle");
                fake.await("it runs", () -> app.getBean(SoloistRunner.class).leads("settle"));
            }
            assertThat(fake.end("settle")).isEqualTo("lost");
            assertThat(fake.isHeld("settle")).isFalse();
        }
    }

    @Test void a_method_that_would_run_twice_or_cannot_be_given_a_tick_ends_the_start() {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            assertThatThrownBy(() -> Apps.start(fake, List.of(), Twice.class)).hasStackTraceContaining("@Scheduled exclude each other")
                    .hasStackTraceContaining("takes a Hold.Tick or nothing").hasStackTraceContaining("which another method has, too");
        }
    }
}
