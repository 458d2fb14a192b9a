//! What the laws of dispatch have in common: sources, tasks, claims and reports in few words.

use std::time::Duration;

use soloist::domain::dispatch::{Reason, Rules, TaskOutcome};
use soloist::domain::name::{CollectorName, RequestId, SourceName};
pub(super) use soloist::domain::time::Stamp;
use soloist::store::Store;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch, Exchange, Handed, NewTask, Report, Reported,
    SourceView, Sources, TaskId, TaskView,
};

use super::{LONG, eventually, jump, nap, unique};

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) fn source(name: &str) -> SourceName {
    SourceName::new(name).expect("a good name")
}

pub(super) fn collector(name: &str) -> CollectorName {
    CollectorName::new(name).expect("a good name")
}

/// No limits, and a lease that outlasts the test.
pub(super) fn free() -> Rules {
    Rules { lease: LONG, ..Rules::default() }
}

pub(super) async fn define(store: &Store, name: &str, rules: &Rules) -> SourceView {
    store.put_source(&source(name), rules).await.expect("defined")
}

/// A store with one source, `shop`, under `rules`.
pub(super) async fn shop(fresh: &super::Fresh, rules: &Rules) -> Store {
    let store = fresh.connect().await;
    define(&store, "shop", rules).await;
    store
}

pub(super) fn task(name: &str, key: &str) -> NewTask {
    NewTask {
        key: key.to_owned(),
        source: source(name),
        payload: format!("{{\"key\":\"{key}\"}}"),
        priority: 0,
        at: None,
        every: None,
    }
}

pub(super) async fn put(store: &Store, tasks: &[NewTask]) -> Vec<bool> {
    store.put_tasks(tasks).await.expect("put")
}

/// Puts `count` tasks: `NAME-0000`, `NAME-0001` and so on.
pub(super) async fn put_many(store: &Store, name: &str, count: usize) {
    let tasks: Vec<_> = (0..count).map(|n| task(name, &format!("{name}-{n:04}"))).collect();
    for some in tasks.chunks(1_000) {
        assert!(put(store, some).await.iter().all(|new| *new));
    }
}

/// A new request for at most `max` tasks of any source, final if it gets nothing.
pub(super) fn request(max: u32) -> ClaimAsk {
    ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: collector("c-1"),
        request: RequestId::new(&unique("request")).expect("a good label"),
        max,
        sources: Vec::new(),
        wait: None,
    }
}

/// The same by `who`, the owner of what is granted too.
pub(super) fn request_by(who: &str, max: u32) -> ClaimAsk {
    ClaimAsk { owner: ClaimOwner::of(who), collector: collector(who), ..request(max) }
}

pub(super) async fn claim(store: &Store, ask: &ClaimAsk) -> Claimed {
    let exchange = Exchange { claim: Some(ask.clone()), ..Exchange::default() };
    let answer = store.exchange(&exchange).await.expect("the store answers");
    assert_eq!(answer.reports, []);
    answer.claimed.expect("an answer to the claim")
}

/// Claims what must be there.
pub(super) async fn handed(store: &Store, ask: &ClaimAsk) -> Vec<Handed> {
    match claim(store, ask).await {
        Claimed::Granted { claim, tasks, .. } => {
            assert_eq!(claim, ask.id());
            assert!(!tasks.is_empty() && tasks.len() <= ask.max as usize, "{tasks:?}");
            tasks
        }
        other => panic!("nothing was granted: {other:?}"),
    }
}

/// One task under a claim of its own.
pub(super) async fn take(store: &Store) -> Handed {
    handed(store, &request(1)).await.remove(0)
}

/// Claims where nothing must be had.
pub(super) async fn nothing(store: &Store, ask: &ClaimAsk) -> (Reason, Option<Stamp>) {
    match claim(store, ask).await {
        Claimed::Nothing { reason, next_at } => (reason, next_at),
        other => panic!("something was granted: {other:?}"),
    }
}

pub(super) fn report(task: &Handed, outcome: TaskOutcome) -> Report {
    Report { id: task.id.clone(), token: task.token, outcome, delay: None, error: None }
}

pub(super) fn done(task: &Handed) -> Report {
    report(task, TaskOutcome::Done)
}

pub(super) async fn say(store: &Store, reports: &[Report]) -> Vec<Reported> {
    let exchange = Exchange { reports: reports.to_vec(), ..Exchange::default() };
    let answer = store.exchange(&exchange).await.expect("the store answers");
    assert_eq!(answer.claimed, None);
    answer.reports
}

pub(super) async fn say_one(store: &Store, one: Report) -> Reported {
    let answers = say(store, &[one]).await;
    assert_eq!(answers.len(), 1);
    answers[0]
}

/// The source, after its counts were checked against each other.
pub(super) async fn view(store: &Store, name: &str) -> SourceView {
    let mut found = store.sources(Some(&source(name))).await.expect("known");
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// Ready, due, in flight, dead, done.
pub(super) async fn counts(store: &Store, name: &str) -> [u64; 5] {
    let view = view(store, name).await;
    [view.ready, view.due, view.in_flight, view.dead, view.done]
}

pub(super) async fn look(store: &Store, id: &TaskId) -> TaskView {
    store.task(id).await.expect("the store answers").expect("the task is known")
}

/// Returns when the store's clock shows `at` or later.
pub(super) async fn reach(store: &Store, at: Stamp) {
    if jump(store, at) {
        return;
    }
    eventually(store, "the store's clock gets there", async || {
        let sources = store.sources(None).await.expect("sources");
        (sources.first().expect("a source").now >= at).then_some(())
    })
    .await;
}

/// Pumps until `count` leases have run out.
pub(super) async fn expire(store: &Store, count: u64) {
    let mut expired = 0;
    for _ in 0..6_000 {
        expired += store.pump().await.expect("pumped").expired;
        if expired >= count {
            assert_eq!(expired, count);
            return;
        }
        nap(store).await;
    }
    panic!("only {expired} of {count} leases ran out");
}
