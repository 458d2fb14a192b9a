package io.soloist.spring;

import java.lang.annotation.*;

/**
 * The method runs in one process of all: while this one has the lease, in a thread of its own, again and again.
 *
 * <p>It takes a {@code Hold.Lease} or nothing, and returns nothing. When it must end (switched off, the lease is in danger,
 * the application stops) its thread is interrupted. The lease is released when the method has returned.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE}) @Retention(RetentionPolicy.RUNTIME) @Documented
public @interface RunWhileLeader {
    /** Name of the lease: a job with {@code runner = "external"}, or a name of your own. May be a {@code ${placeholder}}. */
    String value();
}
