package io.soloist.spring.test;

import java.lang.annotation.*;

/** On a test, beside {@code @SpringBootTest}: the application finds a {@link FakeSoloist} in place of all nodes, which can be injected. */
@Target(ElementType.TYPE) @Retention(RetentionPolicy.RUNTIME) @Documented @Inherited
public @interface AutoConfigureSoloist {
    /** Whether the application is the leader at once, of whatever it asks for. Else when the test says {@link FakeSoloist#lead}. */
    boolean leader() default true;
}
