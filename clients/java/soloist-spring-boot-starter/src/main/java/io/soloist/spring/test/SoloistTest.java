package io.soloist.spring.test;

import io.soloist.spring.SoloistAutoConfiguration;
import java.lang.annotation.*;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.autoconfigure.OverrideAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.core.annotation.AliasFor;

/**
 * A slice: the named classes, and of everything that Spring Boot configures by itself only Soloist, with a {@link FakeSoloist} in
 * place of all nodes. {@code @SoloistTest(Shipping.class) class ShippingTest}.
 */
@Target(ElementType.TYPE) @Retention(RetentionPolicy.RUNTIME) @Documented @Inherited
@SpringBootTest @OverrideAutoConfiguration(enabled = false) @ImportAutoConfiguration(SoloistAutoConfiguration.class) @AutoConfigureSoloist
public @interface SoloistTest {
    /** The beans and configurations of the test. */
    @AliasFor(annotation = SpringBootTest.class, attribute = "classes") Class<?>[] value() default {};

    /** As {@link SpringBootTest#properties}. */
    @AliasFor(annotation = SpringBootTest.class, attribute = "properties") String[] properties() default {};

    /** As {@link AutoConfigureSoloist#leader}. */
    @AliasFor(annotation = AutoConfigureSoloist.class, attribute = "leader") boolean leader() default true;
}
