package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.client.Hold;
import io.soloist.spring.Collect;
import io.soloist.spring.OptionsCustomizer;
import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.SoloistProperties;
import io.soloist.spring.SoloistRunner;
import io.soloist.spring.SoloistStartException;
import io.soloist.spring.Turn;
import io.soloist.spring.test.FakeSoloist;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.aop.support.AopUtils;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Scope;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.scheduling.annotation.Async;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** What ends the start, in words, and what does not. */
@ExtendWith(OutputCaptureExtension.class)
class StartTest {
    static class Shipping {
        volatile boolean ran;

        @RunWhileLeader("outbound") void ship() throws InterruptedException {
            ran = true;
            Thread.sleep(60_000);
        }
    }

    static class Again {
        @RunWhileLeader("outbound") void shipToo() {}
    }

    static class Wrong {
        @RunWhileLeader("text") void takesText(String text) {}
        @RunWhileLeader("value") int givesValue() { return 1; }
        @RunWhileLeader(" ") void noName() {}
        @RunWhileLeader("${nothing.here:}") void noNameAfterAll(Hold.Lease lease) {}
        @RunWhileLeader("async") @Async void later() {}
        @RunWhileLeader("secret") private void hidden() {}
        @Collect("pages") void noTask() {}
        @Collect(value = "none", parallel = 0) void noThread(Hold.Task task) {}
        @Turn(rotation = "calls", type = "") void noType() {}
        @Turn(rotation = "calls", type = "a") void wrongHold(Hold.Lease lease) {}
    }

    static class Many {
        @Bean @Scope("prototype") Shipping shipping() { return new Shipping(); }
    }

    interface Ships { void ship() throws InterruptedException; }

    static class ByInterface implements Ships {
        static volatile boolean ran, inTransaction;

        @RunWhileLeader("outbound") @Transactional @Override public void ship() throws InterruptedException {
            inTransaction = TransactionSynchronizationManager.isActualTransactionActive();
            ran = true;
            Thread.sleep(60_000);
        }
    }

    static class BesideInterface implements Ships {
        @Transactional @Override public void ship() {}

        @RunWhileLeader("outbound") public void other() {}
    }

    static class Final {
        @Transactional public void write() {}

        @RunWhileLeader("outbound") final void ship() {}
    }

    /** What people read when the start has failed. */
    private static SoloistStartException refused(List<String> arguments, Class<?>... beans) {
        try (var app = Apps.start(arguments, beans)) {
            throw new AssertionError("it has started: " + app.isActive());
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause != null && !(cause instanceof SoloistStartException)) cause = cause.getCause();
            if (cause == null) throw new AssertionError("another failure", error);
            return (SoloistStartException) cause;
        }
    }

    private static List<String> at(FakeSoloist fake) { return List.of("soloist.nodes=" + fake.address(), "soloist.api-token=sol_test"); }

    @Test void a_token_that_is_not_known_ends_the_start_and_the_words_say_what_to_do(CapturedOutput output) {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            fake.refuse(401);
            refused(at(fake), Shipping.class);
            assertThat(output.getAll()).contains("APPLICATION FAILED TO START", fake.address() + " refuses the API token", "HTTP 401", "soloist token new", "soloist.api-token")
                    .doesNotContain("sol_test");
        }
    }

    @Test void a_token_that_may_not_hold_the_lease_ends_the_start(CapturedOutput output) {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            fake.refuse(403);
            refused(at(fake), Shipping.class);
            assertThat(output.getAll()).contains("refuses the lease outbound (HTTP 403): refused by the test", "--lease outbound");
        }
    }

    @Test void while_the_nodes_are_away_the_application_starts_and_waits(CapturedOutput output) throws Exception {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            fake.away(true);
            try (var app = Apps.start(fake, List.of(), Shipping.class)) {
                assertThat(output.getAll()).contains("no node of Soloist answers");
                assertThat(app.getBean(SoloistRunner.class).leads("outbound")).isFalse();
                fake.away(false);
                Apps.until("it runs", () -> app.getBean(Shipping.class).ran);
            }
        }
    }

    @Test void a_node_that_is_down_does_not_end_the_start_either() {
        try (var app = Apps.start(List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=sol_test"), Shipping.class)) {
            assertThat(app.isRunning()).isTrue();
        }
    }

    @Test void every_wrong_method_is_named_at_once(CapturedOutput output) {
        assertThat(refused(List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=t"), Wrong.class).getMessage().lines()).hasSize(10);
        assertThat(output.getAll()).contains("APPLICATION FAILED TO START",
                "Wrong.takesText (bean startTest.Wrong): @RunWhileLeader needs a method that takes a Hold.Lease or nothing and returns void, as in: void takesText(Hold.Lease lease).",
                "Wrong.givesValue", "Wrong.noName (bean startTest.Wrong): @RunWhileLeader has an empty name", "Wrong.noNameAfterAll",
                "Wrong.later (bean startTest.Wrong): @RunWhileLeader and @Async exclude each other", "must not be private",
                "Wrong.noTask (bean startTest.Wrong): @Collect needs a method that takes a Hold.Task and returns void", "parallel = 0",
                "Wrong.noType (bean startTest.Wrong): @Turn has an empty name", "Wrong.wrongHold");
    }

    @Test void two_methods_with_one_name_are_refused() {
        String words = refused(List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=t"), Shipping.class, Again.class).getMessage();
        assertThat(words).contains("has the name \"outbound\", which another method has, too", "Shipping.ship", "Again.shipToo");
    }

    @Test void a_proxy_of_an_interface_is_called_by_its_interface() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of("spring.aop.proxy-target-class=false"), ByInterface.class)) {
            assertThat(AopUtils.isJdkDynamicProxy(app.getBean(Ships.class))).isTrue();
            Apps.until("it runs", () -> ByInterface.ran);
            assertThat(ByInterface.inTransaction).isTrue();
        }
    }

    @Test void a_method_that_the_proxy_cannot_be_asked_for_is_refused() {
        List<String> nowhere = List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=t");
        assertThat(refused(nowhere, Final.class).getMessage()).contains("Final.ship", "it must not be final");
        var byInterface = new java.util.ArrayList<>(nowhere);
        byInterface.add("spring.aop.proxy-target-class=false");
        assertThat(refused(byInterface, BesideInterface.class).getMessage()).contains("BesideInterface.other", "declare the method in an interface of the bean");
    }

    @Test void a_bean_of_which_there_are_many_is_refused() {
        assertThat(refused(List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=t"), Many.class).getMessage()).contains("needs a singleton");
    }

    @Test void without_nodes_or_token_the_words_name_the_property() {
        assertThat(refused(List.of(), Shipping.class).getMessage()).contains("soloist.nodes");
        assertThat(refused(List.of("soloist.nodes=http://127.0.0.1:1"), Shipping.class).getMessage()).contains("soloist.api-token");
        assertThat(refused(List.of("soloist.nodes=http://127.0.0.1:1", "soloist.api-token=two words"), Shipping.class).getMessage()).contains("not valid");
    }

    static class Renames {
        @Bean OptionsCustomizer customizer() { return (name, options) -> options.name += "-" + name + "-" + options.ttl.toSeconds(); }
    }

    @Test void the_holder_has_the_name_of_the_properties_and_a_bean_may_change_the_options() {
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of("soloist.holder=shop-1", "soloist.ttl=30s"), Shipping.class, Renames.class)) {
            fake.awaitHeld("outbound");
            assertThat(fake.holder("outbound")).isEqualTo("shop-1-outbound-30");
            assertThat(app.isActive()).isTrue();
        }
    }

    @Test void a_name_that_is_no_job_is_warned_of_once_and_a_job_is_not(CapturedOutput output) throws Exception {
        String words = "outbound is no job of the cluster: the method runs at once, and nobody can switch it off.";
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of(), Shipping.class)) {
            Apps.until("it runs", () -> app.getBean(Shipping.class).ran);
            assertThat(output.getAll()).doesNotContain(words);
        }
        try (FakeSoloist fake = new FakeSoloist(true)) {
            fake.noJob("outbound");
            try (var app = Apps.start(fake, List.of(), Shipping.class)) {
                Apps.until("it runs", () -> app.getBean(Shipping.class).ran);
                fake.forget("outbound");
                Apps.until("it runs again", () -> fake.token("outbound") > 1);
                Apps.until("it is here again", () -> app.getBean(SoloistRunner.class).leads("outbound"));
                assertThat(output.getAll()).containsOnlyOnce(words).contains("[[job]]", "name = \"outbound\"", "runner = \"external\"");
            }
        }
    }

    @Test void the_log_says_once_why_a_copy_waits_and_when_the_work_begins_here(CapturedOutput output) throws Exception {
        try (FakeSoloist fake = new FakeSoloist(false); var app = Apps.start(fake, List.of("logging.level.io.soloist=info"), Shipping.class)) {
            fake.await("it has asked more than once", () -> fake.asked("/leases/outbound") > 2);
            assertThat(output.getAll()).containsOnlyOnce("outbound: this copy waits (off: nobody wants it)").doesNotContain("begins here");
            fake.lead("outbound");
            fake.awaitHeld("outbound");
            Apps.until("it runs", () -> app.getBean(Shipping.class).ran);
            assertThat(output.getAll()).containsOnlyOnce("outbound begins here, token " + fake.token("outbound"));
            try (var second = Apps.start(fake, List.of("logging.level.io.soloist=info"), Shipping.class)) {
                Apps.until("the second says who has it", () -> output.getAll().contains("outbound: this copy waits (" + fake.holder("outbound") + " has it)"));
                assertThat(second.getBean(Shipping.class).ran).isFalse();
            }
        }
    }

    @Test void methods_of_beans_that_are_made_late_run_too() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of("spring.main.lazy-initialization=true"), Shipping.class)) {
            Apps.until("it runs", () -> app.getBean(Shipping.class).ran);
        }
    }

    @Test void an_application_without_a_method_needs_no_nodes() {
        try (var app = Apps.start(List.of())) { assertThat(app.isRunning()).isTrue(); }
    }

    @Test void what_is_not_enabled_asks_no_node() {
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of("soloist.enabled=false"), Shipping.class)) {
            assertThat(app.getBean(Shipping.class).ran).isFalse();
            assertThat(fake.asked("")).isZero();
        }
    }

    /** Of the environment SOLOIST_API_TOKEN is taken, and never SOLOIST_TOKEN, which a script has. */
    @Test void the_fencing_token_of_a_script_is_never_taken_for_the_api_token() {
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().replace(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME, new SystemEnvironmentPropertySource(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME, Map.of("SOLOIST_TOKEN", "17", "SOLOIST_JOB", "outbound", "SOLOIST_NODE", "a", "SOLOIST_RUN", "r")));
        ConfigurationPropertySources.attach(environment);
        var bound = Binder.get(environment).bindOrCreate("soloist", SoloistProperties.class);
        assertThat(bound.apiToken()).isNull();
        assertThat(bound.nodes()).isEmpty();
        environment.getPropertySources().addFirst(new SystemEnvironmentPropertySource("more-" + StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                Map.of("SOLOIST_API_TOKEN", "sol_a", "SOLOIST_NODES", "http://a:8080,http://b:8080")));
        bound = Binder.get(environment).bindOrCreate("soloist", SoloistProperties.class);
        assertThat(bound.apiToken()).isEqualTo("sol_a");
        assertThat(bound.nodes()).containsExactly("http://a:8080", "http://b:8080");
        assertThat(bound.toString()).doesNotContain("sol_a");
    }
}
