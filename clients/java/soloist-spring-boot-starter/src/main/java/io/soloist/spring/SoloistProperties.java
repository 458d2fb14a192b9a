package io.soloist.spring;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What stands below {@code soloist} in the configuration of the application. The token is {@code api-token}, never {@code token}:
 * the environment's {@code SOLOIST_TOKEN} is the fencing token that a script is given.
 *
 * @param enabled Whether annotated methods run. If false, none does and no node is asked.
 * @param nodes Addresses of some nodes, as http://HOST:PORT.
 * @param apiToken An API token that may hold these leases; in the environment SOLOIST_API_TOKEN.
 * @param holder Name by which people find this process. Different in each instance. Default: the host and the process id.
 * @param ttl How long a lease lasts unrenewed whose name is not a job. A job's own lease_ttl wins.
 * @param grace How long before the deadline of a lease the work is asked to stop; at most a fifth of the lease.
 * @param shutdownGrace How long the work may take to end when the application stops. Keep it below spring.lifecycle.timeout-per-shutdown-phase.
 * @param startTimeout How long the start waits for a node to say whether the token is valid. Without an answer the application starts, and waits for the nodes.
 */
@ConfigurationProperties("soloist")
public record SoloistProperties(@DefaultValue("true") boolean enabled, @DefaultValue List<String> nodes, String apiToken, String holder,
        @DefaultValue("10s") Duration ttl, @DefaultValue("1s") Duration grace, @DefaultValue("20s") Duration shutdownGrace,
        @DefaultValue("2s") Duration startTimeout) {
    /** Without the token. */
    @Override public String toString() { return "soloist nodes " + nodes; }
}
