package io.soloist.client;

import java.util.Map;

/** Anything that Soloist, or the way to it, says no to. */
public class SoloistException extends RuntimeException {
    SoloistException(String text) {
        super(text);
    }

    /** A node understood and refused; the text says what to do. */
    public static final class Refused extends SoloistException {
        /** HTTP's status. */
        public final int status;

        Refused(int status, String detail) {
            super(detail + " (HTTP " + status + ")");
            this.status = status;
        }
    }

    /** No node answered: what was asked may or may not have been done. */
    public static final class Unreachable extends SoloistException {
        Unreachable(String text) {
            super(text);
        }
    }

    /** It was not had in time. */
    public static final class NotGranted extends SoloistException {
        /** The node's: {@code reason} is one word ({@code busy}, {@code not_wanted}), {@code holder} who has it. */
        public final transient Map<String, Object> answer;

        NotGranted(String what, Map<String, Object> answer) {
            super(what + ": " + answer.get("reason"));
            this.answer = answer;
        }
    }

    /** The work must end now: somebody asked for it, or the deadline is near or over. */
    public static final class Stopped extends SoloistException {
        Stopped(String reason) {
            super(reason);
        }
    }
}
