//! What the timetables have in common: stocked stores, requests, reports.

use std::time::Duration;

use crate::dispatch::in_memory::Store;
use crate::dispatch::{
    Answer, ClaimAsk, ClaimOwner, NewTask, Reason, Report, Rules, Task, TaskOutcome,
};
use crate::name::{CollectorName, SourceName, Waiter};
use crate::time::Stamp;

pub(super) const START: Stamp = Stamp(1_700_000_000_000_000);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
pub(super) const US: Duration = Duration::from_micros(1);

pub(super) fn source(name: &str) -> SourceName {
    name.parse().unwrap()
}

pub(super) fn collector(name: &str) -> CollectorName {
    name.parse().unwrap()
}

/// No limits, and a lease of a day.
pub(super) fn free() -> Rules {
    Rules { lease: 24 * HOUR, ..Rules::default() }
}

pub(super) fn task(name: &str, key: &str) -> NewTask {
    NewTask {
        key: key.to_owned(),
        source: source(name),
        payload: "1".to_owned(),
        priority: 0,
        at: None,
        every: None,
    }
}

/// A store with these sources, each with so many tasks: `NAME-0`, `NAME-1` and so on.
pub(super) fn stocked(sources: &[(&str, Rules, usize)]) -> Store {
    let mut store = Store::default();
    for (name, rules, count) in sources {
        store.define(&source(name), rules, START);
        let tasks: Vec<_> = (0..*count).map(|nth| task(name, &format!("{name}-{nth}"))).collect();
        assert_eq!(store.put(&tasks, START), Ok(vec![true; *count]));
    }
    store
}

/// A final request for tasks of these sources (none: any).
pub(super) fn ask(request: &str, max: u32, sources: &[&str]) -> ClaimAsk {
    ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: collector("c"),
        request: request.parse().unwrap(),
        max,
        sources: sources.iter().map(|name| source(name)).collect(),
        wait: None,
    }
}

/// A request that waits for so long.
pub(super) fn waiting(name: &str, sources: &[&str], patience: Duration) -> ClaimAsk {
    let wait = Some((Waiter(name.to_owned()), patience));
    ClaimAsk { wait, ..ask(name, 1, sources) }
}

pub(super) fn handed(store: &mut Store, ask: &ClaimAsk, now: Stamp) -> Vec<Task> {
    match store.claim(ask, now) {
        Answer::Granted { tasks, .. } => {
            store.is_sound(now).unwrap();
            tasks
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn nothing(store: &mut Store, ask: &ClaimAsk, now: Stamp) -> (Reason, Option<Stamp>) {
    match store.claim(ask, now) {
        Answer::Nothing { reason, next_at } => (reason, next_at),
        other => panic!("{other:?}"),
    }
}

pub(super) fn keys(store: &Store, tasks: &[Task]) -> Vec<String> {
    tasks.iter().map(|task| store.texts[&task.id].0.clone()).collect()
}

pub(super) fn report(task: &Task, outcome: TaskOutcome) -> Report {
    Report { id: task.id.clone(), token: task.token, outcome, delay: None, error: None }
}

pub(super) fn woken(store: &mut Store) -> Vec<String> {
    std::mem::take(&mut store.woken).into_iter().map(|waiter| waiter.0).collect()
}
