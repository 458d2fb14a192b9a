package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.spring.RunWhileLeader;
import io.soloist.spring.test.FakeSoloist;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;

/** The end of a process of its own: by a signal, and by the work itself. */
class ExitTest {
    static class Shipping {
        @RunWhileLeader("outbound") void ship() throws InterruptedException { Thread.sleep(60_000); }

        @RunWhileLeader("exit") void exit() { System.exit(7); }
    }

    /** {@code App ADDRESS}. */
    static class App {
        public static void main(String[] arguments) {
            SpringApplication app = new SpringApplication(Apps.Base.class, Shipping.class);
            app.setWebApplicationType(org.springframework.boot.WebApplicationType.NONE);
            app.run("--soloist.nodes=" + arguments[0], "--soloist.api-token=t");
        }
    }

    private static Process start(FakeSoloist fake) throws Exception {
        return new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx128m", "-XX:TieredStopAtLevel=1",
                "-cp", System.getProperty("java.class.path"), App.class.getName(), fake.address()).inheritIO().start();
    }

    private static int ended(Process process) throws Exception {
        try {
            assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
            return process.exitValue();
        } finally { process.destroyForcibly(); }
    }

    /** Neither a web server nor {@code spring.main.keep-alive}: its main has returned long before it leads. */
    @Test void an_application_that_waits_lives_without_a_web_server() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(false)) {
            Process process = start(fake);
            fake.await("it waits", () -> fake.asked("/leases/outbound") > 2);
            assertThat(process.waitFor(2, TimeUnit.SECONDS)).isFalse();
            process.destroy();
            assertThat(ended(process)).isEqualTo(143);
        }
    }

    @Test void a_signal_ends_the_work_and_releases_its_lease() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(false)) {
            fake.lead("outbound");
            Process process = start(fake);
            fake.await("it is held", () -> fake.isHeld("outbound"));
            process.destroy();
            assertThat(ended(process)).isEqualTo(143);
            assertThat(fake.isHeld("outbound")).isFalse();
            assertThat(fake.end("outbound")).isEqualTo("unused");
        }
    }

    @Test void work_that_exits_does_not_wait_for_itself_and_its_lease_is_released() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(false)) {
            Process process = start(fake);
            fake.lead("exit");
            assertThat(ended(process)).isEqualTo(7);
            assertThat(fake.isHeld("exit")).isFalse();
            assertThat(fake.asked("/release")).isEqualTo(1);
        }
    }
}
