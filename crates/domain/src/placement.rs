//! Who tries first for a free lease.
//!
//! A rendezvous hash of job and node, weighted by load (Thaler and Ravishankar 1998; Schindelhauer and Schomaker
//! 2005 for weights): every node computes the same order without talking, jobs spread evenly, and a free lease sees
//! one attempt at a time instead of a stampede. The order is a courtesy; the store's atomic step decides.

use std::collections::BTreeMap;
use std::time::Duration;

use super::name::{JobName, NodeName};

/// How long each later node waits for the one before it: some store round trips, so that it learns of the grant before
/// it asks itself. A shorter wait costs the store one more refusal; with a longer one, a job waits when the first is dead.
const STEP: Duration = Duration::from_millis(5);
/// Longest courtesy, however many nodes there are: dead ones that still count must not delay the living. Nodes that
/// are later in line than this ask at the same moment; the store refuses all but one.
const LONGEST: Duration = Duration::from_millis(25);

/// A node that may run a job, and how many jobs it holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Candidate {
    pub node: NodeName,
    pub holds: usize,
}

/// How long `me` lets others go first; zero for the first in line, or when `me` is not among `candidates`.
#[must_use]
pub fn courtesy(job: &JobName, me: &NodeName, candidates: &[Candidate]) -> Duration {
    let Some(mine) = candidates.iter().find(|c| &c.node == me) else { return Duration::ZERO };
    let mine = (score(job, mine), me);
    let ahead = candidates
        .iter()
        .filter(|c| (score(job, c), &c.node).partial_cmp(&mine).is_some_and(|o| o.is_lt()))
        .count();
    (STEP * u32::try_from(ahead).unwrap_or(u32::MAX)).min(LONGEST)
}

/// Where each of `jobs` is expected to go when `from` gives them up: the first in line of those that may take it, each of them
/// counted with what it has got by then. `None`: it has nowhere to go. `holds` says how many jobs each node has now.
#[must_use]
pub fn departures<'a>(
    from: &NodeName,
    jobs: &'a [JobName],
    takers: impl Fn(&JobName) -> Vec<NodeName>,
    mut holds: BTreeMap<NodeName, usize>,
) -> Vec<(&'a JobName, Option<NodeName>)> {
    let go = |job: &'a JobName| {
        let candidate = |node: NodeName| {
            let held = holds.get(&node).copied().unwrap_or(0);
            Candidate { node, holds: held }
        };
        let there = takers(job).into_iter().filter(|node| node != from).map(candidate);
        let first = there.min_by(|one, other| {
            let scores = score(job, one).total_cmp(&score(job, other));
            scores.then_with(|| one.node.cmp(&other.node))
        });
        let goal = first.map(|first| first.node);
        if let Some(goal) = &goal {
            *holds.entry(goal.clone()).or_default() += 1;
        }
        (job, goal)
    };
    jobs.iter().map(go).collect()
}

/// Lower is earlier: an exponential variate with rate `1 / (1 + holds)`.
#[expect(clippy::cast_precision_loss, reason = "53 bits are plenty for an order")]
fn score(job: &JobName, candidate: &Candidate) -> f64 {
    let hash = mix(fnv(job.as_str()) ^ fnv(candidate.node.as_str()).rotate_left(32));
    let uniform = ((hash >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    -uniform.ln() * (1 + candidate.holds) as f64
}

/// FNV-1a, 64 bits: the same on every build, unlike the standard library's hasher.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finaliser of `SplitMix64`: FNV alone leaves the high bits of short names alike.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(holds: &[usize]) -> Vec<Candidate> {
        let named =
            |(i, &holds)| Candidate { node: NodeName::new(&format!("node-{i}")).unwrap(), holds };
        holds.iter().enumerate().map(named).collect()
    }

    fn first(job: usize, candidates: &[Candidate]) -> usize {
        let job = JobName::new(&format!("job-{job}")).unwrap();
        let delays: Vec<_> =
            candidates.iter().map(|c| courtesy(&job, &c.node, candidates)).collect();
        let firsts: Vec<_> = (0..delays.len()).filter(|&i| delays[i].is_zero()).collect();
        assert_eq!(firsts.len(), 1, "exactly one node goes first: {delays:?}");
        firsts[0]
    }

    #[test]
    fn nobody_waits_longer_than_a_take_over_may_last_however_many_are_ahead() {
        let candidates = nodes(&[0; 40]);
        let job = JobName::new("job").unwrap();
        let mut waits: Vec<_> =
            candidates.iter().map(|c| courtesy(&job, &c.node, &candidates)).collect();
        waits.sort_unstable();
        assert_eq!(waits[..3], [Duration::ZERO, STEP, STEP * 2], "one at a time at first");
        assert_eq!(waits[39], LONGEST);
        let stranger = NodeName::new("stranger").unwrap();
        assert_eq!(courtesy(&job, &stranger, &candidates), Duration::ZERO);
    }

    #[test]
    fn what_a_node_gives_up_goes_to_the_first_in_line_each_or_nowhere() {
        let node = |nth: usize| NodeName::new(&format!("node-{nth}")).unwrap();
        let jobs: Vec<_> =
            (0..40).map(|nth| JobName::new(&format!("job-{nth}")).unwrap()).collect();
        let takers = |job: &JobName| match job.as_str() {
            "job-7" => vec![node(0)],
            "job-8" => vec![],
            "job-9" => vec![node(0), node(2)],
            _ => (0..3).map(node).collect(),
        };
        let goals = departures(&node(0), &jobs, takers, BTreeMap::from([(node(2), 3)]));
        assert_eq!(goals.len(), jobs.len());
        let goal = |nth: usize| goals[nth].1.clone();
        assert_eq!((goal(7), goal(8), goal(9)), (None, None, Some(node(2))));
        assert!(goals.iter().all(|(_, goal)| *goal != Some(node(0))), "it gives them up");
        let got = |nth| goals.iter().filter(|(_, goal)| *goal == Some(node(nth))).count();
        assert!(got(1) >= 12 && got(2) >= 12, "they spread: {} and {}", got(1), got(2));
        // The same that the nodes decide: the node that waits for no other is the first.
        let candidates = [(1, 0), (2, 3)].map(|(nth, holds)| Candidate { node: node(nth), holds });
        let first = candidates.iter().find(|c| courtesy(&jobs[0], &c.node, &candidates).is_zero());
        assert_eq!(goal(0), first.map(|first| first.node.clone()));
    }

    #[test]
    fn jobs_spread_evenly_and_a_loaded_node_gets_fewer() {
        let count = |holds: &[usize]| {
            let candidates = nodes(holds);
            (0..1_000).filter(|&job| first(job, &candidates) == 0).count()
        };
        assert!((280..390).contains(&count(&[0, 0, 0])), "{}", count(&[0, 0, 0]));
        assert!(count(&[9, 0, 0]) < 100, "{}", count(&[9, 0, 0]));
    }
}
