package io.soloist.spring;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The words of the health of this application's methods. The status is always UP: a shop does not stop because the nodes are
 * away, and who waits for its turn is well. That is why it is no part of liveness and readiness either.
 */
final class SoloistHealth {
    private SoloistHealth() {}

    static Map<String, Object> details(SoloistRunner runner) {
        Map<String, Object> details = new LinkedHashMap<>(), methods = new LinkedHashMap<>(), nodes = new LinkedHashMap<>();
        List<Nodes.Said> seen = runner.look();
        if (!runner.isRunning()) details.put("detail", "no annotated method runs: soloist.enabled is false, or the application starts or stops");
        else if (!seen.isEmpty() && seen.stream().noneMatch(Nodes.Said::isAnswer)) details.put("detail", "no node answers: nothing is begun until one does");
        else seen.stream().filter(Nodes.Said::isRefusal).findFirst().ifPresent(said -> details.put("detail", "refused: " + said.detail()));
        for (Nodes.Said said : seen) nodes.put(said.node(), said.isAnswer() ? "answers" : said.detail());
        for (Work work : runner.works())
            methods.put(work.kind.name().toLowerCase() + " " + work.name, work.held() == 0 ? "standby" : "held, token " + work.hold().map(hold -> hold.token()).orElse(0L));
        details.put("methods", methods);
        details.put("nodes", nodes);
        return details;
    }
}
