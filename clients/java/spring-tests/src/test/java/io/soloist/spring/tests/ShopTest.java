package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.client.Hold;
import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.SoloistRunner;
import io.soloist.spring.SoloistScheduled;
import io.soloist.spring.test.AutoConfigureSoloist;
import io.soloist.spring.test.FakeSoloist;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** A shop with a web server, a database, health and metrics: as users have it. */
@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT, classes = ShopTest.Shop.class) @AutoConfigureSoloist(leader = false)
class ShopTest {
    @Configuration @EnableAutoConfiguration @Import({Shipping.class, Settling.class, Orders.class}) static class Shop {}

    static class Shipping {
        final AtomicInteger rounds = new AtomicInteger();
        volatile long token;

        @RunWhileLeader("outbound") void ship(Hold.Lease lease) throws InterruptedException {
            token = lease.token();
            lease.log("ships under " + token);
            while (true) {
                lease.check();
                rounds.incrementAndGet();
                Thread.sleep(5);
            }
        }
    }

    static class Settling {
        @SoloistScheduled("settle") void settle() { }
    }

    static class Orders {
        @Autowired JdbcTemplate jdbc;
        volatile boolean inTransaction, fails = true;

        @RunWhileLeader("${names.invoices:invoices}") @Transactional public void write() throws InterruptedException {
            inTransaction = TransactionSynchronizationManager.isActualTransactionActive();
            jdbc.execute("create table if not exists invoices (id int)"); // H2 commits with it
            jdbc.update("insert into invoices values (1)");
            if (fails) throw new IllegalStateException("the printer is out of paper");
            Thread.sleep(60_000);
        }
    }

    @Autowired FakeSoloist soloist;
    @Autowired Shipping shipping;
    @Autowired Orders orders;
    @Autowired SoloistRunner runner;
    @Autowired JdbcTemplate jdbc;
    @Autowired Environment environment;

    @BeforeEach void nobodyLeads() {
        soloist.away(false);
        soloist.standBy("outbound");
        soloist.standBy("invoices");
        soloist.awaitFree("outbound");
        soloist.awaitFree("invoices");
    }

    private String get(String path) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + environment.getProperty("local.server.port") + path)).build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    }

    private double metric(String name, String of) throws Exception {
        return Double.parseDouble(get("/actuator/metrics/" + name + "?tag=name:" + of).replaceAll("(?s).*\"value\":([0-9.E]+).*", "$1"));
    }

    @Test void the_method_runs_while_the_application_leads_and_is_interrupted_when_it_must_end() throws Exception {
        assertThat(runner.leads("outbound")).isFalse();
        soloist.lead("outbound");
        soloist.awaitHeld("outbound");
        Apps.until("it runs", () -> runner.leads("outbound") && shipping.token == soloist.token("outbound"));
        soloist.standBy("outbound");
        soloist.awaitFree("outbound");
        assertThat(soloist.end("outbound")).isEqualTo("done");
        int rounds = shipping.rounds.get();
        Thread.sleep(50);
        assertThat(shipping.rounds.get()).isEqualTo(rounds);
        assertThat(soloist.lines("outbound")).contains("ships under " + shipping.token);
    }

    @Test void a_transactional_method_is_called_through_its_proxy_and_what_it_wrote_is_rolled_back_when_it_fails() throws Exception {
        assertThat(AopUtils.isAopProxy(orders)).isTrue();
        double failures = metric("soloist.work.failures", "invoices");
        soloist.lead("invoices");
        Apps.until("it has failed", () -> "failed".equals(soloist.end("invoices")));
        Orders itself = (Orders) org.springframework.test.util.AopTestUtils.getTargetObject(orders);
        assertThat(itself.inTransaction).isTrue();
        assertThat(jdbc.queryForObject("select count(*) from invoices", Integer.class)).isZero();
        assertThat(metric("soloist.work.failures", "invoices")).isGreaterThan(failures);
        itself.fails = false;
        soloist.awaitHeld("invoices");
    }

    @Test void health_is_up_on_standby_and_as_leader_and_while_no_node_answers_and_is_no_part_of_liveness_and_readiness() throws Exception {
        Apps.until("health tells of standby", () -> health().contains("\"lease outbound\":\"standby\""));
        assertThat(health()).contains("\"tick settle\":\"standby\"");
        assertThat(health()).startsWith("{\"").contains("\"status\":\"UP\"").doesNotContain("DOWN");
        soloist.lead("outbound");
        soloist.awaitHeld("outbound");
        Apps.until("health tells of the lease", () -> health().contains("\"lease outbound\":\"held, token "));
        soloist.away(true);
        Apps.until("health tells that no node answers", () -> health().contains("no node answers"));
        String health = health();
        assertThat(health.replaceAll("(?s).*(\"soloist\":\\{.*?\"status\":\"[A-Z]+\").*", "$1")).endsWith("\"UP\"");
        assertThat(health).doesNotContain("DOWN");
        for (String group : new String[] {"liveness", "readiness"})
            assertThat(get("/actuator/health/" + group)).contains("\"UP\"").doesNotContain("soloist");
    }

    private String health() {
        try { return get("/actuator/health"); }
        catch (Exception error) { throw new IllegalStateException(error); }
    }

    @Test void metrics_tell_of_what_is_held_granted_and_lost() throws Exception {
        double grants = metric("soloist.grants", "outbound"), lost = metric("soloist.lost", "outbound");
        assertThat(metric("soloist.held", "outbound")).isZero();
        assertThat(metric("soloist.time.left", "outbound")).isZero();
        soloist.lead("outbound");
        soloist.awaitHeld("outbound");
        Apps.until("it runs", () -> runner.leads("outbound"));
        assertThat(metric("soloist.held", "outbound")).isEqualTo(1);
        assertThat(metric("soloist.time.left", "outbound")).isBetween(1.0, 10.0);
        assertThat(metric("soloist.grants", "outbound")).isEqualTo(grants + 1);
        assertThat(metric("soloist.lost", "outbound")).isEqualTo(lost);
        soloist.forget("outbound");
        Apps.until("it is granted again", () -> grants(grants) >= 2);
        assertThat(metric("soloist.lost", "outbound")).isEqualTo(lost + 1);
    }

    private double grants(double before) {
        try { return metric("soloist.grants", "outbound") - before; }
        catch (Exception error) { throw new IllegalStateException(error); }
    }
}
