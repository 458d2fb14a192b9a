package io.soloist.spring;

import java.lang.annotation.*;

/**
 * The method does one task of a source. It takes a {@code Hold.Task} and returns nothing: returning is done; throwing {@code
 * Soloist.Retry} or {@code Soloist.Dead} says so; anything else that is thrown is another try.
 *
 * <p>When the application stops, no task is begun any more; one that is under way is interrupted shortly before the grace of the
 * shutdown is over, and another collector has it then.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE}) @Retention(RetentionPolicy.RUNTIME) @Documented
public @interface Collect {
    /** Name of the source. May be a {@code ${placeholder}}. */
    String value();

    /** How many tasks at once. */
    int parallel() default 1;
}
