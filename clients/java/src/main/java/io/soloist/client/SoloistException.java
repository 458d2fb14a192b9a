package io.soloist.client;

import java.util.Map;

/** Anything that Soloist, or the way to it, says no to. */
@SuppressWarnings("serial")
public class SoloistException extends RuntimeException {
    /** HTTP's, of {@link Refused}; else 0. */
    public final int status;
    /**
     * The node's, of {@link NotGranted}: {@code reason} is one word ({@code busy}), {@code holder} who has it; else
     * empty.
     */
    public final transient Map<String, Object> answer;

    SoloistException(String text, int status, Map<String, Object> answer) {
        super(text);
        this.status = status;
        this.answer = answer;
    }

    /** A node understood and refused; the text says what to do. */
    public static final class Refused extends SoloistException {
        Refused(int status, String detail) { super(detail, status, Map.of()); }
    }

    /** No node answered: what was asked may or may not have been done. */
    public static final class Unreachable extends SoloistException {
        Unreachable(String why) { super(why, 0, Map.of()); }
    }

    /** It was not had in time. */
    public static final class NotGranted extends SoloistException {
        NotGranted(String what, Map<String, Object> answer) { super(what + ": " + answer.get("reason"), 0, answer); }
    }

    /** The work must end now: somebody asked for it, or the deadline is near or over. */
    public static final class Stopped extends SoloistException {
        Stopped(String why) { super(why, 0, Map.of()); }
    }
}
