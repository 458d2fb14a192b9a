package io.soloist.spring;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.context.annotation.Bean;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;

/** Health as Spring Boot 3.5 names it. */
@AutoConfiguration(after = SoloistAutoConfiguration.class) @ConditionalOnClass(name = "org.springframework.boot.actuate.health.HealthIndicator")
@ConditionalOnExpression("${management.health.soloist.enabled:${management.health.defaults.enabled:true}}")
class SoloistHealthBoot3AutoConfiguration {
    @Bean HealthIndicator soloistHealthIndicator(SoloistRunner runner) {
        return () -> Health.up().withDetails(SoloistHealth.details(runner)).build();
    }
}
