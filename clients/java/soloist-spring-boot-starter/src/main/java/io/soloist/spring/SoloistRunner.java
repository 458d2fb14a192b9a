package io.soloist.spring;

import io.soloist.client.Soloist;
import io.soloist.client.Soloist.Options;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Starts the annotated methods with the context, after everything else, and ends them before everything else: the work is
 * interrupted, given its grace, and its lease released, while the beans that it uses still live.
 */
public final class SoloistRunner implements SmartLifecycle, SmartInitializingSingleton, DisposableBean {
    private static final Log LOG = LogFactory.getLog(SoloistRunner.class);
    /** How long an answer about the nodes is told again. */
    private static final long FRESH = TimeUnit.SECONDS.toNanos(5);

    private final ConfigurableListableBeanFactory beans;
    private final SoloistProperties properties;
    private final ObjectProvider<Soloist> soloist;
    private final List<OptionsCustomizer> customizers;
    private final Nodes nodes;
    private volatile List<Work> works;
    private volatile boolean running;
    /** Counted down when the methods have ended. */
    private CountDownLatch over;
    private List<Nodes.Said> seen = List.of();
    private long seenAt;

    SoloistRunner(ConfigurableListableBeanFactory beans, SoloistProperties properties, ObjectProvider<Soloist> soloist, List<OptionsCustomizer> customizers) {
        this.beans = beans;
        this.properties = properties;
        this.soloist = soloist;
        this.customizers = customizers;
        this.nodes = new Nodes(properties);
    }

    /** Whether this process runs the method of this lease now. */
    public boolean leads(String name) { return works().stream().anyMatch(work -> work.kind.isLease() && work.name.equals(name) && work.held() > 0); }

    /** Every annotated method; metrics may ask before the context is ready. */
    List<Work> works() {
        if (works == null) works = Methods.of(beans).stream().map(Work::new).toList();
        return works;
    }

    @Override public void afterSingletonsInstantiated() { works(); }

    @Override public boolean isAutoStartup() { return properties.enabled(); }

    @Override public boolean isRunning() { return running; }

    @Override public synchronized void start() {
        if (running) return;
        if (!works().isEmpty()) {
            Soloist.closeOnExit = false; // the context does that, in its order
            Soloist client = soloist.getObject();
            check();
            for (Work work : works()) work.start(client, options(work));
            keepAlive();
        }
        running = true;
    }

    /** The threads of the work are daemons: without a web server this one keeps the process alive, as a scheduler of Spring does. */
    private void keepAlive() {
        CountDownLatch end = over = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            while (true)
                try {
                    end.await();
                    return;
                } catch (InterruptedException error) { continue; } // whoever means all threads does not mean this one
        }, "soloist keeps this process alive");
        thread.setDaemon(false); // whoever starts the context may be one
        thread.start();
    }

    private Options options(Work work) {
        Options options = new Options();
        options.ttl = properties.ttl();
        options.grace = properties.grace();
        if (properties.holder() != null && !properties.holder().isBlank()) options.name = properties.holder();
        options.onWaiting = work::waits;
        customizers.forEach(each -> each.customize(work.name, options));
        return options;
    }

    /** Only a node's 401 or 403 ends the start; a node that is away does not. */
    private void check() {
        if (properties.nodes().isEmpty()) return; // the client is a bean of the application's own
        for (Work work : works()) {
            List<Nodes.Said> answers = nodes.ask(work, properties.startTimeout());
            var first = answers.stream().filter(Nodes.Said::isAnswer).findFirst();
            if (first.isEmpty()) {
                LOG.warn("no node of Soloist answers (" + words(answers) + "): the application starts, and the annotated methods wait until one does");
                return;
            }
            var refusal = answers.stream().filter(Nodes.Said::isRefusal).findFirst();
            if (refusal.isPresent()) throw refused(work, refusal.get());
            if (first.get().status() == 404 && work.kind.isLease()) LOG.warn("the lease " + work.name + " is refused: " + first.get().detail());
        }
    }

    private static SoloistStartException refused(Work work, Nodes.Said said) {
        String what = switch (work.kind) { case LEASE, TICK -> "lease"; case TASK -> "source"; case TURN -> "rotation"; } + " " + work.name.split("/")[0];
        boolean isUnknown = said.status() == 401;
        String problem = "The node " + said.node() + " refuses " + (isUnknown ? "the API token of this application" : "the " + what) + " (HTTP " + said.status() + "): " + said.detail();
        String action = "Set soloist.api-token (in the environment: SOLOIST_API_TOKEN) to a token that " + (isUnknown ? "is valid" : "may use the " + what) + ". On a node, make one with: "
                + "soloist token new --user USER --name NAME --" + what + "\nUSER is an account with the role collector or operator. SOLOIST_TOKEN is something else: the fencing token of a script.";
        return new SoloistStartException(problem, action);
    }

    static String words(List<Nodes.Said> answers) {
        List<String> words = answers.stream().map(said -> said.node() + " " + said.detail()).toList();
        return String.join("; ", words);
    }

    /** What each node says of the first method, at most 5 s old; empty while nothing runs. */
    List<Nodes.Said> look() {
        if (!running || works.isEmpty()) return List.of();
        synchronized (nodes) {
            if (seen.isEmpty() || System.nanoTime() - seenAt > FRESH) {
                seen = nodes.ask(works.get(0), Duration.ofSeconds(1));
                seenAt = System.nanoTime();
            }
            return seen;
        }
    }

    @Override public void stop(Runnable done) {
        // Before the next bean is stopped, and not longer than the grace.
        Thread closer = new Thread(() -> {
            try { stop(); } finally { done.run(); }
        }, "soloist stops");
        closer.start();
    }

    @Override public synchronized void stop() {
        if (!running) return;
        running = false;
        List<Work> all = works();
        var ended = new CountDownLatch(all.size());
        for (Work work : all) {
            Thread closer = new Thread(() -> {
                try { work.close(properties.shutdownGrace()); }
                catch (Exception error) { LOG.warn(work.name + " did not end well", error); }
                finally { ended.countDown(); }
            }, "soloist ends " + work.name);
            closer.setDaemon(true);
            closer.start();
        }
        try {
            if (ended.await(properties.shutdownGrace().toMillis(), TimeUnit.MILLISECONDS)) return;
            for (Work work : all)
                if (work.hold().isPresent())
                    LOG.warn(work.name + " was interrupted, and has not ended within soloist.shutdown-grace (" + properties.shutdownGrace().toMillis()
                            + " ms): its lease is kept, and runs out when this process has ended. It is at\n" + work.stack());
        } catch (InterruptedException error) { Thread.currentThread().interrupt(); }
        finally { if (over != null) over.countDown(); }
    }

    @Override public void destroy() { stop(); }
}
