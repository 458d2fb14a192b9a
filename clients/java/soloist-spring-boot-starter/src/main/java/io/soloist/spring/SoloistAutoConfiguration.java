package io.soloist.spring;

import io.soloist.client.Soloist;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** The client, for whoever injects it, and what runs the annotated methods. Neither needs a node to start. */
@AutoConfiguration @EnableConfigurationProperties(SoloistProperties.class)
public class SoloistAutoConfiguration {
    static final String RUNNER = "soloistRunner";

    /** Made when it is needed: an application without an annotated method needs no nodes. */
    @Bean @Lazy @ConditionalOnMissingBean Soloist soloist(SoloistProperties properties) {
        if (properties.nodes().isEmpty()) throw new SoloistStartException("The property soloist.nodes is not set.",
                "Name at least one node of Soloist, as in: soloist.nodes: http://127.0.0.1:8080. In tests use @SoloistTest or @AutoConfigureSoloist. To run no annotated method, set soloist.enabled: false.");
        String token = properties.apiToken();
        if (token == null || token.isBlank()) throw new SoloistStartException("The property soloist.api-token is not set.",
                "Set it, or SOLOIST_API_TOKEN in the environment, to a token of Soloist. On a node, make one with: soloist token new --user USER --name NAME --lease LEASE. SOLOIST_TOKEN is something else: the fencing token of a script.");
        try { return new Soloist(properties.nodes(), token); }
        catch (IllegalArgumentException error) { throw new SoloistStartException("soloist.nodes or soloist.api-token is not valid: " + error.getMessage(), "Correct the property."); }
    }

    @Bean(RUNNER) static SoloistRunner soloistRunner(ConfigurableListableBeanFactory beans, SoloistProperties properties, ObjectProvider<Soloist> soloist,
            ObjectProvider<OptionsCustomizer> customizers) {
        return new SoloistRunner(beans, properties, soloist, customizers.orderedStream().toList());
    }
}
