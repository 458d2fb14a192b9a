//! Moves: whether one may be requested, and how long it reserves a job for another node.
//!
//! One rule for page, API, command line and supervisor. An impossible move is refused with the reason. One that has become impossible
//! (its target node has died since) keeps no node from running the job.

use std::time::Duration;

use super::detail::Detail;
use super::job::{JobRecord, Move};
use super::name::{JobName, NodeName, UserName};
use super::time::StoreTime;

/// How long a job is kept for the node that it moves to, once it has been stopped where it was.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// A node, as far as a hand-over of one job depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// Which node.
    pub node: NodeName,
    /// For how long it has not reported, when that is too long to count on it.
    pub silent_for: Option<Duration>,
    /// It is being emptied.
    pub draining: bool,
    /// It says that it may run the job.
    pub offers: bool,
}

impl Taker {
    /// It may take the job now.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.silent_for.is_none() && !self.draining && self.offers
    }
}

/// Why a move is refused; each says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentence says what each field is")]
pub enum NoMove {
    #[error(
        "{job} is held by {by}, so no node may run it: nothing to move (soloist resume {job} allows it again)"
    )]
    Held { job: JobName, by: UserName },
    #[error("nobody wants {0}, so there is nothing to move: soloist on {0}")]
    NotWanted(JobName),
    #[error("{0} has given up after its crashes, so there is nothing to move: switch it on again")]
    GivenUp(JobName),
    #[error("{0} has not run yet, so there is nobody to move it from: soloist why {0}")]
    NeverRan(JobName),
    #[error("there is no node {node}; {}", known(.nodes))]
    NoSuchNode { node: NodeName, nodes: Vec<NodeName> },
    #[error("{job} is on {node} already")]
    AlreadyThere { job: JobName, node: NodeName },
    #[error("{node} has not reported for {} s: is it running?", .silent_for.as_secs())]
    Silent { node: NodeName, silent_for: Duration },
    #[error("{0} is being drained: soloist undrain {0}")]
    Draining(NodeName),
    #[error("{job} may not run on {node}: see its `nodes` in the configuration")]
    NotOffered { job: JobName, node: NodeName },
    #[error("no other living node may run {job}: it stays on {node} (soloist nodes shows them)")]
    Alone { job: JobName, node: NodeName },
}

impl NoMove {
    /// The same for programs and for people.
    #[must_use]
    pub fn detail(&self) -> Detail {
        let text = Detail::new(self.to_string());
        match self {
            Self::Held { job, by } => text.told("refused-move-held", &[("job", job), ("user", by)]),
            Self::NotWanted(job) => text.told("refused-move-unwanted", &[("job", job)]),
            Self::GivenUp(job) => text.told("refused-move-given-up", &[("job", job)]),
            Self::NeverRan(job) => text.told("refused-move-never-ran", &[("job", job)]),
            Self::NoSuchNode { node, .. } => text.told("refused-no-node", &[("node", node)]),
            Self::AlreadyThere { job, node } => {
                text.told("refused-move-there", &[("job", job), ("node", node)])
            }
            Self::Silent { node, silent_for } => {
                let s = silent_for.as_secs();
                text.told("refused-move-silent", &[("node", node), ("s", &s)])
            }
            Self::Draining(node) => text.told("refused-move-draining", &[("node", node)]),
            Self::NotOffered { job, node } => {
                text.told("refused-move-not-offered", &[("job", job), ("node", node)])
            }
            Self::Alone { job, node } => {
                text.told("refused-move-alone", &[("job", job), ("node", node)])
            }
        }
    }
}

fn known(nodes: &[NodeName]) -> String {
    if nodes.is_empty() {
        return "none has reported: start one with soloist serve".to_owned();
    }
    let names: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
    format!("the store knows: {}", names.join(", "))
}

/// Who may take a job that moves.
#[derive(Debug, Clone, Copy)]
pub enum Takers<'a> {
    /// A node: these are known.
    Nodes(&'a [Taker]),
    /// A program that asks for the lease. No node knows which programs there are, so any name may be meant.
    Programs,
}

/// Where a job is now, or was last if it rests: the holder that a move takes it from.
#[must_use]
pub fn place(record: &JobRecord) -> Option<&NodeName> {
    let held = record.lease.as_ref().map(|lease| &lease.node);
    held.or_else(|| record.last_exit.as_ref().map(|last| &last.node))
}

/// Whether `record`'s job may be moved to `to`, or to any other holder: the holder that it leaves.
///
/// # Errors
/// [`NoMove`].
pub fn may_move<'a>(
    record: &'a JobRecord,
    to: Option<&NodeName>,
    takers: Takers<'_>,
) -> Result<&'a NodeName, NoMove> {
    let job = || record.name.clone();
    let (takers, programs) = match takers {
        Takers::Nodes(takers) => (takers, false),
        Takers::Programs => (&[][..], true),
    };
    let there = match to {
        _ if programs => None,
        None => None,
        Some(to) => Some(takers.iter().find(|taker| &taker.node == to).ok_or_else(|| {
            let nodes = takers.iter().map(|taker| taker.node.clone()).collect();
            NoMove::NoSuchNode { node: to.clone(), nodes }
        })?),
    };
    if let Some(hold) = &record.hold {
        return Err(NoMove::Held { job: job(), by: hold.by.clone() });
    }
    if !record.wanted() {
        return Err(NoMove::NotWanted(job()));
    }
    if record.given_up && record.lease.is_none() {
        return Err(NoMove::GivenUp(job()));
    }
    let from = place(record).ok_or_else(|| NoMove::NeverRan(job()))?;
    let node = |taker: &Taker| taker.node.clone();
    match there {
        None if programs => match to {
            Some(to) if to == from => Err(NoMove::AlreadyThere { job: job(), node: to.clone() }),
            _ => Ok(from),
        },
        None if takers.iter().any(|taker| &taker.node != from && taker.is_fit()) => Ok(from),
        None => Err(NoMove::Alone { job: job(), node: from.clone() }),
        Some(taker) if &taker.node == from => {
            Err(NoMove::AlreadyThere { job: job(), node: node(taker) })
        }
        Some(taker @ Taker { silent_for: Some(silent_for), .. }) => {
            Err(NoMove::Silent { node: node(taker), silent_for: *silent_for })
        }
        Some(taker @ Taker { draining: true, .. }) => Err(NoMove::Draining(node(taker))),
        Some(taker @ Taker { offers: false, .. }) => {
            Err(NoMove::NotOffered { job: job(), node: node(taker) })
        }
        Some(_) => Ok(from),
    }
}

/// How long a move is valid: as long as the job may take to stop, and 10 s to be taken by the other node.
#[must_use]
pub fn lasts(stop_grace: Duration) -> Duration {
    stop_grace + KEPT_FOR
}

/// The move of `record` that still counts at `now`: it has not lapsed, and a node lives that may take the job.
#[must_use]
pub fn standing<'a>(record: &'a JobRecord, takers: &[Taker], now: StoreTime) -> Option<&'a Move> {
    let moving = record.moving.as_ref().filter(|moving| moving.until > now)?;
    let taken_by = |taker: &&Taker| taker.is_fit() && !is_for_another(moving, &taker.node);
    takers.iter().find(taken_by).map(|_| moving)
}

/// `moving` keeps the job for another node than `node`.
#[must_use]
pub fn is_for_another(moving: &Move, node: &NodeName) -> bool {
    match &moving.to {
        Some(to) => to != node,
        None => moving.from.as_ref() == Some(node),
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{Exit, Hold, LastExit, LeaseRecord, Participant, RunEnd};
    use super::super::lease::Token;
    use super::super::name::Owner;
    use super::*;

    const NOW: StoreTime = StoreTime(1_000);

    fn node(name: &str) -> NodeName {
        name.parse().expect("a name")
    }

    fn taker(name: &str) -> Taker {
        Taker { node: node(name), silent_for: None, draining: false, offers: true }
    }

    /// Wanted by li, running on node-a.
    fn running() -> JobRecord {
        let mut record = JobRecord::untouched("outbound".parse().expect("a name"));
        let user = "li".parse().expect("a name");
        record.participants.push(Participant { user, since: StoreTime(0) });
        record.lease = Some(LeaseRecord {
            node: node("node-a"),
            owner: Owner(String::new()),
            token: Token(1),
            since: StoreTime(0),
            expires_in: Duration::from_secs(4),
            ttl: Duration::from_secs(5),
        });
        record
    }

    fn moving(to: Option<&str>, until: i64) -> Option<Move> {
        let by = "li".parse().expect("a name");
        Some(Move { from: Some(node("node-a")), to: to.map(node), by, until: StoreTime(until) })
    }

    #[test]
    fn a_move_goes_only_to_a_living_node_that_may_take_the_job() {
        let record = running();
        let mut there = taker("node-b");
        let b = node("node-b");
        let takers = |there: &Taker| vec![taker("node-a"), there.clone()];
        for to in [None, Some(&b)] {
            assert_eq!(may_move(&record, to, Takers::Nodes(&takers(&there))), Ok(&node("node-a")));
        }
        there.silent_for = Some(Duration::from_secs(5));
        let silent = NoMove::Silent { node: b.clone(), silent_for: Duration::from_secs(5) };
        assert_eq!(may_move(&record, Some(&b), Takers::Nodes(&takers(&there))), Err(silent));
        let alone = NoMove::Alone { job: record.name.clone(), node: node("node-a") };
        assert_eq!(may_move(&record, None, Takers::Nodes(&takers(&there))), Err(alone));
        there = Taker { draining: true, ..taker("node-b") };
        let draining = Err(NoMove::Draining(b.clone()));
        assert_eq!(may_move(&record, Some(&b), Takers::Nodes(&takers(&there))), draining);
        there = Taker { offers: false, ..taker("node-b") };
        let refused = may_move(&record, Some(&b), Takers::Nodes(&takers(&there)));
        assert!(matches!(refused, Err(NoMove::NotOffered { .. })));
        let refused = may_move(&record, Some(&node("node-z")), Takers::Nodes(&takers(&there)));
        assert!(matches!(refused, Err(NoMove::NoSuchNode { .. })));
        let refused = may_move(&record, Some(&node("node-a")), Takers::Nodes(&takers(&there)));
        assert!(matches!(refused, Err(NoMove::AlreadyThere { .. })));
    }

    #[test]
    fn what_a_program_runs_moves_to_any_name_but_the_one_that_has_it() {
        let mut record = running();
        let (there, other) = (node("node-a"), node("shop-9c"));
        assert_eq!(may_move(&record, Some(&other), Takers::Programs), Ok(&there));
        assert_eq!(may_move(&record, None, Takers::Programs), Ok(&there), "some other program");
        let refused = may_move(&record, Some(&there), Takers::Programs);
        assert!(matches!(refused, Err(NoMove::AlreadyThere { .. })));
        record.participants.clear();
        let refused = may_move(&record, Some(&other), Takers::Programs);
        assert!(matches!(refused, Err(NoMove::NotWanted(_))), "every other law counts");
    }

    #[test]
    fn a_job_that_rests_moves_from_where_it_ran_last() {
        let mut record = running();
        record.lease = None;
        let takers = [taker("node-a"), taker("node-b")];
        assert!(matches!(
            may_move(&record, None, Takers::Nodes(&takers)),
            Err(NoMove::NeverRan(_))
        ));
        let (exit, end, at) = (Exit::default(), RunEnd::Exited, StoreTime(1));
        record.last_exit = Some(LastExit { exit, end, node: node("node-b"), at, early: false });
        assert_eq!(may_move(&record, None, Takers::Nodes(&takers)), Ok(&node("node-b")));
        record.given_up = true;
        assert!(matches!(may_move(&record, None, Takers::Nodes(&takers)), Err(NoMove::GivenUp(_))));
        let hold = Hold { by: "li".parse().expect("a name"), reason: "x".into(), since: NOW };
        record.hold = Some(hold);
        assert!(matches!(
            may_move(&record, None, Takers::Nodes(&takers)),
            Err(NoMove::Held { .. })
        ));
        (record.hold, record.participants) = (None, Vec::new());
        assert!(matches!(
            may_move(&record, None, Takers::Nodes(&takers)),
            Err(NoMove::NotWanted(_))
        ));
    }

    #[test]
    fn a_move_counts_until_it_lapses_and_only_while_a_node_could_take_the_job() {
        let mut record = running();
        let dead = Taker { silent_for: Some(Duration::from_secs(9)), ..taker("node-b") };
        for to in [None, Some("node-b")] {
            record.moving = moving(to, 1_001);
            let living = [taker("node-a"), taker("node-b")];
            assert!(standing(&record, &living, NOW).is_some());
            assert!(standing(&record, &living, StoreTime(1_001)).is_none(), "it has lapsed");
            assert!(standing(&record, &[taker("node-a"), dead.clone()], NOW).is_none());
            assert!(standing(&record, &[taker("node-a")], NOW).is_none(), "it is unknown");
        }
    }
}
