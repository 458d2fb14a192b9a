//! Which nodes are expected to try for a free lease: only those get the head start of [`soloist_domain::placement`].
//!
//! Being wrong costs a refusal at the store or a few milliseconds, never a second run.

use std::collections::HashMap;
use std::time::Duration;

use soloist_domain::job::{JobRecord, RunEnd};
use soloist_domain::name::NodeName;
use soloist_domain::placement::Candidate;
use soloist_domain::time::StoreTime;
use soloist_store::nodes::{ALIVE_FOR, BEAT_EVERY, NodeRecord};

/// A node that reported within this is expected to try for a free lease; who missed a report is not waited for.
const PROMPT: Duration = BEAT_EVERY.saturating_mul(2);

/// Nodes that may run the job now. Not counted on: a node that missed a report, one whose lease of this job ran out a
/// moment ago or that was made to stop it (a hand-over), and one in `lost`, whose guards said that it is dead. `loads`
/// says how many leases each has.
pub(super) fn candidates(
    record: &JobRecord,
    now: StoreTime,
    nodes: &[NodeRecord],
    loads: &HashMap<NodeName, usize>,
    lost: &HashMap<NodeName, StoreTime>,
) -> Vec<Candidate> {
    let recent = |at: StoreTime| now.since(at) < ALIVE_FOR;
    let gone = record
        .last_exit
        .as_ref()
        .filter(|last| matches!(last.end, RunEnd::Lost | RunEnd::Fenced | RunEnd::Stopped))
        .filter(|last| recent(last.at))
        .map(|last| &last.node);
    nodes
        .iter()
        .filter(|n| Duration::from_millis(n.age_ms) < PROMPT && !n.draining)
        .filter(|n| n.beat.jobs.contains(&record.name) && Some(&n.beat.node) != gone)
        .filter(|n| !lost.get(&n.beat.node).is_some_and(|&at| recent(at)))
        .map(|n| &n.beat.node)
        .map(|node| Candidate { node: node.clone(), holds: loads.get(node).copied().unwrap_or(0) })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use soloist_domain::job::{Exit, LastExit};
    use soloist_store::nodes::Beat;

    const NOW: StoreTime = StoreTime(1_000_000);

    fn ago(ms: i64) -> StoreTime {
        StoreTime(NOW.0 - ms)
    }

    fn node(name: &str, age_ms: u64) -> NodeRecord {
        let beat = Beat {
            node: name.parse().unwrap(),
            boot: String::new(),
            version: String::new(),
            started: StoreTime(0),
            containment: String::new(),
            url: String::new(),
            jobs: ["outbound".parse().unwrap()].into(),
            digest: String::new(),
            holds: Vec::new(),
            unfit: Default::default(),
            vitals: None,
            watched: None,
        };
        NodeRecord { beat, age_ms, draining: false, told: Arc::default() }
    }

    /// Who is expected to try, after a run on `node-a` ended so, `ms` ago.
    fn expected(end: RunEnd, ms: i64, lost: &[(&str, i64)]) -> Vec<String> {
        let mut record = JobRecord::untouched("outbound".parse().unwrap());
        let (exit, node_a) = (Exit::default(), "node-a".parse().unwrap());
        record.last_exit = Some(LastExit { exit, end, node: node_a, at: ago(ms), early: false });
        let lost = lost.iter().map(|(name, ms)| (name.parse().unwrap(), ago(*ms))).collect();
        let nodes = [node("node-a", 900), node("node-b", 900), node("node-c", 900)];
        let found = candidates(&record, NOW, &nodes, &HashMap::new(), &lost);
        found.into_iter().map(|candidate| candidate.node.to_string()).collect()
    }

    #[test]
    fn a_node_whose_run_of_the_job_just_ended_against_its_will_is_not_waited_for() {
        for end in [RunEnd::Lost, RunEnd::Fenced, RunEnd::Stopped] {
            assert_eq!(expected(end, 10, &[]), ["node-b", "node-c"], "{end:?}");
            assert_eq!(expected(end, 60_000, &[]).len(), 3, "{end:?}, long ago");
        }
        for end in [RunEnd::Exited, RunEnd::Crashed] {
            assert_eq!(expected(end, 10, &[]).len(), 3, "{end:?}");
        }
    }

    #[test]
    fn a_node_that_lost_any_run_just_now_is_not_waited_for() {
        let lost = [("node-b", 2_000), ("node-c", 60_000)];
        assert_eq!(expected(RunEnd::Lost, 10, &lost), ["node-c"]);
    }

    #[test]
    fn a_node_that_missed_a_report_is_not_waited_for() {
        let record = JobRecord::untouched("outbound".parse().unwrap());
        let nodes = [node("node-a", 2_100), node("node-b", 1_100)];
        let found = candidates(&record, NOW, &nodes, &HashMap::new(), &HashMap::new());
        assert_eq!(found[0].node.as_str(), "node-b");
        assert_eq!(found.len(), 1);
    }
}
