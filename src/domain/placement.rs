//! Who tries first for a free lease.
//!
//! A rendezvous hash of job and node, weighted by load (Thaler and Ravishankar 1998; Schindelhauer and Schomaker
//! 2005 for weights): every node computes the same order without talking, jobs spread evenly, and a free lease sees
//! one attempt at a time instead of a stampede. The order is a courtesy; the store's atomic step decides.

use std::time::Duration;

use super::name::{JobName, NodeName};

/// How long each later node waits for the one before it: some store round trips, so that it hears of the grant before
/// it asks itself. Shorter than that costs the store one more refusal; longer, a job waits when the first is dead.
const STEP: Duration = Duration::from_millis(5);
/// Longest courtesy, however many nodes there are: dead ones that still count must not hold the living up. Whoever is
/// later in line than this asks at the same moment as its neighbours; the store refuses all but one.
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
    fn jobs_spread_evenly_and_a_loaded_node_gets_fewer() {
        let count = |holds: &[usize]| {
            let candidates = nodes(holds);
            (0..1_000).filter(|&job| first(job, &candidates) == 0).count()
        };
        assert!((280..390).contains(&count(&[0, 0, 0])), "{}", count(&[0, 0, 0]));
        assert!(count(&[9, 0, 0]) < 100, "{}", count(&[9, 0, 0]));
    }
}
