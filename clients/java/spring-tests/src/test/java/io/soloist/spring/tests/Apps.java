package io.soloist.spring.tests;

import io.soloist.spring.test.FakeSoloist;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** Whole applications for tests, without a web server. */
final class Apps {
    @Configuration(proxyBeanMethods = false) @EnableAutoConfiguration static class Base {}

    private Apps() {}

    /** An application of these beans that finds this fake. */
    static ConfigurableApplicationContext start(FakeSoloist fake, List<String> more, Class<?>... beans) {
        List<String> arguments = new ArrayList<>(List.of("--soloist.nodes=" + fake.address(), "--soloist.api-token=sol_test"));
        arguments.addAll(more);
        return start(arguments, beans);
    }

    static ConfigurableApplicationContext start(List<String> arguments, Class<?>... beans) {
        var classes = new ArrayList<Class<?>>(List.of(Base.class));
        classes.addAll(Arrays.asList(beans));
        SpringApplication app = new SpringApplicationBuilder(classes.toArray(Class<?>[]::new)).web(WebApplicationType.NONE).registerShutdownHook(false).build();
        return app.run(arguments.stream().map(each -> each.startsWith("--") ? each : "--" + each).toArray(String[]::new));
    }

    static void until(String what, BooleanSupplier is) throws InterruptedException {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!is.getAsBoolean()) {
            if (System.nanoTime() > end) throw new AssertionError("waited 30 s in vain until " + what);
            Thread.sleep(5);
        }
    }
}
