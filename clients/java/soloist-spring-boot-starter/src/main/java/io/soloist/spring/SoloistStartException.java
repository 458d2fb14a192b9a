package io.soloist.spring;

/** Why the application does not start, and what to do: shown by Spring Boot instead of a stack trace. */
public final class SoloistStartException extends RuntimeException {
    private static final long serialVersionUID = 1;
    /** What is to be done. */
    private final String action;

    SoloistStartException(String problem, String action) {
        super(problem);
        this.action = action;
    }

    /** Shows both under "APPLICATION FAILED TO START". */
    static final class Analyzer extends org.springframework.boot.diagnostics.AbstractFailureAnalyzer<SoloistStartException> {
        @Override protected org.springframework.boot.diagnostics.FailureAnalysis analyze(Throwable root, SoloistStartException cause) {
            return new org.springframework.boot.diagnostics.FailureAnalysis(cause.getMessage(), cause.action, cause);
        }
    }
}
