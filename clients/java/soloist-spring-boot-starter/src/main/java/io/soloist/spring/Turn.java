package io.soloist.spring;

import java.lang.annotation.*;

/**
 * The method does one turn of a rotation, again and again. It takes a {@code Hold.Turn}, whose fields say how it ended, or
 * nothing, and returns nothing; when it throws, the turn has failed. Its thread is interrupted when it must end.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE}) @Retention(RetentionPolicy.RUNTIME) @Documented
public @interface Turn {
    /** Name of the rotation. May be a {@code ${placeholder}}. */
    String rotation();

    /** The type of which its turns are. May be a {@code ${placeholder}}. */
    String type();
}
