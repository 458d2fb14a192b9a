package io.soloist.spring;

import io.soloist.client.Soloist.Options;

/** A bean that changes how one method waits, and what happens when its work does not end in time; after the properties were read. */
@FunctionalInterface public interface OptionsCustomizer {
    /** @param name of the lease or source; {@code rotation/type} for a turn */
    void customize(String name, Options options);
}
