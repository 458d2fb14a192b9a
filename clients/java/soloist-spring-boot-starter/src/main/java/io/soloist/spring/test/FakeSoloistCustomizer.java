package io.soloist.spring.test;

import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.MergedContextConfiguration;

/** Gives a context its own fake, whatever the application's configuration says of nodes. Contexts are cached by what this is equal to. */
record FakeSoloistCustomizer(boolean leader) implements ContextCustomizer {
    @Override public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration merged) {
        FakeSoloist fake = new FakeSoloist(leader);
        var beans = (DefaultListableBeanFactory) context.getBeanFactory();
        beans.registerSingleton("fakeSoloist", fake);
        // After the methods have ended, which give back what they hold.
        beans.registerDisposableBean("fakeSoloist", fake::close);
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("fakeSoloist", Map.of("soloist.nodes", fake.address(), "soloist.api-token", "fake")));
    }

    /** Found by {@code spring.factories}. */
    static final class Factory implements ContextCustomizerFactory {
        @Override public ContextCustomizer createContextCustomizer(Class<?> test, List<ContextConfigurationAttributes> attributes) {
            var asked = AnnotatedElementUtils.findMergedAnnotation(test, AutoConfigureSoloist.class);
            return asked == null ? null : new FakeSoloistCustomizer(asked.leader());
        }
    }
}
