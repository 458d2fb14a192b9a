package io.soloist.spring;

import java.lang.annotation.*;

/**
 * The method runs once for each tick of a job with a schedule, in one process of all, in a thread of its own: in the place of {@code @Scheduled} with a lock.
 *
 * <p>It takes a {@code Hold.Tick} or nothing, and returns nothing: then the tick is done. When it throws, the tick has failed, and the job's
 * {@code retries} follow. When it must end (switched off, the lease is in danger, the application stops) its thread is interrupted.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE}) @Retention(RetentionPolicy.RUNTIME) @Documented
public @interface SoloistScheduled {
    /** Name of the job, which has {@code runner = "external"} and a schedule. May be a {@code ${placeholder}}. */
    String value();
}
