package io.soloist.spring;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;

/** Metrics of each annotated method, with the tags {@code kind} (lease, tick, task, turn) and {@code name}. */
@AutoConfiguration(after = SoloistAutoConfiguration.class) @ConditionalOnClass(MeterBinder.class)
class SoloistMetricsAutoConfiguration {
    @Bean MeterBinder soloistMetrics(SoloistRunner runner) {
        return registry -> runner.works().forEach(work -> bind(registry, work));
    }

    private static void bind(MeterRegistry registry, Work work) {
        Tags tags = Tags.of("kind", work.kind.name().toLowerCase(), "name", work.name);
        Gauge.builder("soloist.held", work, Work::held).tags(tags).description("How many this process holds now").register(registry);
        TimeGauge.builder("soloist.time.left", work, TimeUnit.SECONDS, Work::left).tags(tags).description("How long what is held lasts unrenewed").register(registry);
        FunctionCounter.builder("soloist.grants", work, its -> its.grants.sum()).tags(tags).description("How often the work began").register(registry);
        FunctionCounter.builder("soloist.lost", work, its -> its.lost.sum()).tags(tags).description("How often it was lost before the work had ended").register(registry);
        FunctionCounter.builder("soloist.work.failures", work, its -> its.failures.sum()).tags(tags).description("How often the work threw").register(registry);
    }
}
