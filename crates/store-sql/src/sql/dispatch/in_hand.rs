//! What this process handed out: the source and the claim of each task that it has not heard of since. And when it wrote down a collector last.
//!
//! It says what a report mostly comes to, so that this is found by its name, in one go with the task. Nothing is decided by it: the rows
//! say where a task is, and what was not looked for is found after them. That a collector was seen just now is not asked again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;

use soloist_domain::dispatch::{ClaimId, Report, Reported, SEEN_EVERY, Task, TaskId};
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;

/// More than the collectors of a node hold at the same time.
const MOST: usize = 20_000;

/// With more collectors than that, those are forgotten that were not seen within the last [`SEEN_EVERY`].
const COLLECTORS: usize = 1_000;

/// What this process knows of tasks in hand and of collectors.
#[derive(Debug, Default)]
pub struct InHand(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tasks: HashMap<TaskId, (SourceName, ClaimId)>,
    collectors: HashMap<CollectorName, Stamp>,
}

/// What the reported tasks mostly come to.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The tasks about which something is known.
    pub(super) tasks: BTreeSet<TaskId>,
    /// Their sources.
    pub(super) sources: BTreeSet<SourceName>,
    /// Their claims.
    pub(super) claims: BTreeSet<ClaimId>,
}

impl InHand {
    /// What is known about these.
    pub(super) fn look(&self, reports: &[Report]) -> Hints {
        let (known, mut hints) = (self.0.lock(), Hints::default());
        for report in reports {
            if let Some((source, claim)) = known.tasks.get(&report.id) {
                hints.tasks.insert(report.id.clone());
                hints.sources.insert(source.clone());
                hints.claims.insert(claim.clone());
            }
        }
        hints
    }

    /// These were handed out.
    pub(super) fn note(&self, claim: &ClaimId, tasks: &[Task]) {
        let in_hand = &mut self.0.lock().tasks;
        if in_hand.len() + tasks.len() > MOST {
            in_hand.clear();
        }
        let noted =
            tasks.iter().map(|task| (task.id.clone(), (task.source.clone(), claim.clone())));
        in_hand.extend(noted);
    }

    /// Those that count are in nobody's hands any more.
    pub(super) fn forget(&self, reports: &[Report], answers: &[Reported]) {
        let in_hand = &mut self.0.lock().tasks;
        for (report, _) in reports.iter().zip(answers).filter(|(_, one)| **one == Reported::Ok) {
            in_hand.remove(&report.id);
        }
    }

    /// Whether its row says that this collector was seen less than [`SEEN_EVERY`] ago.
    pub(super) fn was_seen(&self, collector: &CollectorName, now: Stamp) -> bool {
        let seen = self.0.lock().collectors.get(collector).copied();
        seen.is_some_and(|seen| now < seen + SEEN_EVERY)
    }

    /// Notes when collectors were seen. If the transaction fails, their rows say it only with the next call after [`SEEN_EVERY`].
    pub(super) fn note_seen(&self, collectors: BTreeMap<CollectorName, Stamp>, now: Stamp) {
        let known = &mut self.0.lock().collectors;
        known.extend(collectors);
        if known.len() > COLLECTORS {
            known.retain(|_, seen| now < *seen + SEEN_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::dispatch::{TaskOutcome, TaskState};
    use soloist_domain::lease::Token;
    use soloist_domain::time::Stamp;

    fn task(id: usize) -> Task {
        Task {
            id: TaskId(format!("task-{id}")),
            source: "shop".parse().expect("a name"),
            state: TaskState::Leased,
            priority: 0,
            place: None,
            at: None,
            until: None,
            lease: None,
            attempt: 1,
            token: Token(1),
            accepted: Token(0),
            collector: None,
            claim: None,
            every: None,
            created: Stamp(0),
            changed: Stamp(0),
            error: None,
        }
    }

    fn report(id: usize) -> Report {
        let outcome = TaskOutcome::Done;
        Report { id: task(id).id, token: Token(1), outcome, delay: None, error: None }
    }

    #[test]
    fn it_knows_what_was_handed_out_until_a_result_counts() {
        let (in_hand, claim) = (InHand::default(), ClaimId("claim".to_owned()));
        in_hand.note(&claim, &[task(1), task(2)]);
        let reports = [report(1), report(2), report(3)];
        let hints = in_hand.look(&reports);
        assert_eq!(hints.tasks, [task(1).id, task(2).id].into());
        assert_eq!((hints.sources, hints.claims), ([task(1).source].into(), [claim].into()));
        in_hand.forget(&reports, &[Reported::Ok, Reported::Stale, Reported::Unknown]);
        assert_eq!(in_hand.look(&reports).tasks, [task(2).id].into());
    }

    #[test]
    fn a_collector_was_seen_for_a_second() {
        let (in_hand, name) = (InHand::default(), "c-1".parse::<CollectorName>().expect("a name"));
        assert!(!in_hand.was_seen(&name, Stamp(0)));
        in_hand.note_seen([(name.clone(), Stamp(5))].into(), Stamp(5));
        assert!(in_hand.was_seen(&name, Stamp(1_000_004)));
        assert!(!in_hand.was_seen(&name, Stamp(1_000_005)));
        let more =
            (0..COLLECTORS).map(|nth| (format!("c{nth}").parse().expect("a name"), Stamp(9)));
        in_hand.note_seen(more.collect(), Stamp(1_000_005));
        assert_eq!(in_hand.0.lock().collectors.len(), COLLECTORS, "the old one is forgotten");
    }

    #[test]
    fn it_does_not_grow_beyond_its_bound() {
        let (in_hand, claim) = (InHand::default(), ClaimId("claim".to_owned()));
        let all: Vec<Task> = (0..MOST).map(task).collect();
        in_hand.note(&claim, &all);
        assert_eq!(in_hand.0.lock().tasks.len(), MOST);
        in_hand.note(&claim, &[task(MOST)]);
        assert_eq!(in_hand.0.lock().tasks.len(), 1);
    }
}
