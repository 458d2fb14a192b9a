//! What this process handed out: the source and the claim of each task that it has not heard of since.
//!
//! It says what a report mostly comes to, so that this is found by its name, in one go with the task. Nothing is decided by it: the rows
//! say where a task is, and what was not looked for is found after them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::dispatch::{ClaimId, Report, Reported, Task, TaskId};
use crate::domain::name::SourceName;

/// More than the collectors of a node hold at the same time.
const MOST: usize = 20_000;

/// By the tasks.
#[derive(Debug, Default)]
pub(in crate::store) struct InHand(Mutex<HashMap<TaskId, (SourceName, ClaimId)>>);

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
        let (in_hand, mut hints) = (self.lock(), Hints::default());
        for report in reports {
            if let Some((source, claim)) = in_hand.get(&report.id) {
                hints.tasks.insert(report.id.clone());
                hints.sources.insert(source.clone());
                hints.claims.insert(claim.clone());
            }
        }
        hints
    }

    /// These were handed out.
    pub(super) fn note(&self, claim: &ClaimId, tasks: &[Task]) {
        let mut in_hand = self.lock();
        if in_hand.len() + tasks.len() > MOST {
            in_hand.clear();
        }
        let noted =
            tasks.iter().map(|task| (task.id.clone(), (task.source.clone(), claim.clone())));
        in_hand.extend(noted);
    }

    /// Those that count are in nobody's hands any more.
    pub(super) fn forget(&self, reports: &[Report], answers: &[Reported]) {
        let mut in_hand = self.lock();
        for (report, _) in reports.iter().zip(answers).filter(|(_, one)| **one == Reported::Ok) {
            in_hand.remove(&report.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, (SourceName, ClaimId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::{TaskOutcome, TaskState};
    use crate::domain::lease::Token;
    use crate::domain::time::Stamp;

    fn task(id: usize) -> Task {
        Task {
            id: TaskId(format!("task-{id}")),
            source: "shop".parse().expect("a name"),
            state: TaskState::Leased,
            priority: 0,
            place: None,
            at: None,
            until: None,
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
    fn it_does_not_grow_beyond_its_bound() {
        let (in_hand, claim) = (InHand::default(), ClaimId("claim".to_owned()));
        let all: Vec<Task> = (0..MOST).map(task).collect();
        in_hand.note(&claim, &all);
        assert_eq!(in_hand.lock().len(), MOST);
        in_hand.note(&claim, &[task(MOST)]);
        assert_eq!(in_hand.lock().len(), 1);
    }
}
