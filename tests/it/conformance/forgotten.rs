//! Laws of a store that forgot a living run: its holder tells it again, and everything is shown as before.
//!
//! To a fresh store every job is unknown, as after it was emptied.

use std::time::Duration;

use soloist::domain::job::{JobRecord, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::RunId;
use soloist::domain::time::{Began, StoreTime};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Journal, Then};
use soloist::store::leases::{Acquire, Leases, Renewal, Renewed};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// The store's clock.
/// By the clock that the record of `outbound` has: on a cluster each master has its own.
async fn now(store: &Store) -> StoreTime {
    store.snapshot(&[job("outbound")]).await.expect("a snapshot").at
}

/// A minute ago, as the store said it then (with milliseconds that nobody would count back to).
async fn a_minute_ago(store: &Store) -> Began {
    let at = StoreTime(now(store).await.0 - 60_123);
    Began { boot: boot(store) - MINUTE, at: Some(at) }
}

/// Of a lease that this store never granted.
fn renewal(ask: &Acquire, since: Began, run: Option<&RunId>) -> Renewal {
    Renewal {
        job: ask.job.clone(),
        owner: ask.owner.clone(),
        node: ask.node.clone(),
        token: Token(4_000_000_000_000_000),
        ttl: LONG,
        since,
        run: run.cloned(),
    }
}

async fn renew_one(store: &Store, renewal: &Renewal) -> Renewed {
    let answers = store.renew(std::slice::from_ref(renewal)).await.expect("the store answers");
    assert_eq!(answers.len(), 1);
    answers[0]
}

fn forgot(answer: Renewed) -> bool {
    match answer {
        Renewed::Kept { forgot, .. } => forgot,
        Renewed::Lost => panic!("lost"),
    }
}

/// A lease and a run of a minute ago, told to a store that knows nothing.
async fn told_again(store: &Store) -> (Acquire, Renewal, Started) {
    let ask = ask("outbound", "node-a");
    let began = a_minute_ago(store).await;
    let renewal = renewal(&ask, began, None);
    assert!(forgot(renew_one(store, &renewal).await));
    let run = Started { began, ..started(store, &ask, renewal.token) };
    assert_eq!(store.record_started(&run).await.expect("told"), began.at.expect("said"));
    (ask, Renewal { run: Some(run.run.clone()), ..renewal }, run)
}

pub(super) async fn a_lease_that_is_asserted_again_shows_when_it_was_granted(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let since = a_minute_ago(&store).await;
    assert!(forgot(renew_one(&store, &renewal(&ask, since, None)).await));
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert_eq!(Some(lease.since), since.at);
    assert!(!forgot(renew_one(&store, &renewal(&ask, since, None)).await), "it is known now");
}

pub(super) async fn a_renewal_says_that_the_run_is_not_known(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    let run = started(&store, &ask, token);
    let mine = Renewal { token, ..renewal(&ask, run.began, Some(&run.run)) };
    // The lease is known, as after a fail-over to a replica that had confirmed it and nothing more.
    match renew_one(&store, &mine).await {
        Renewed::Kept { margin, forgot } => assert!(forgot && margin > LONG / 4, "{margin:?}"),
        Renewed::Lost => panic!("lost"),
    }
    store.record_started(&run).await.expect("started");
    assert!(!forgot(renew_one(&store, &mine).await));
    let nothing_runs = Renewal { run: None, ..mine };
    assert!(!forgot(renew_one(&store, &nothing_runs).await));
}

fn shown(record: &JobRecord) -> (RunId, u32, StoreTime, Token) {
    let run = record.run.clone().expect("a run");
    (run.id, run.pid, run.started, run.token)
}

pub(super) async fn a_run_that_is_reported_again_is_shown_as_before(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, renewal, run) = told_again(&store).await;
    let after = record(&store, "outbound").await;
    let started = run.began.at.expect("said");
    assert_eq!(shown(&after), (run.run.clone(), run.pid, started, renewal.token));
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    assert_eq!((runs.len(), &runs[0].id, runs[0].started), (1, &run.run, started));
    assert_eq!((runs[0].ended, runs[0].end), (None, None));
}

pub(super) async fn a_run_that_is_reported_again_is_not_a_second_one(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, renewal, run) = told_again(&store).await;
    let before = record(&store, "outbound").await;
    for _ in 0..2 {
        let said = store.record_started(&run).await.expect("harmless");
        assert_eq!(Some(said), run.began.at);
    }
    assert!(!forgot(renew_one(&store, &renewal).await));
    let after = record(&store, "outbound").await;
    assert_eq!((after.version, shown(&after)), (before.version, shown(&before)));
    let end = ended(&ask, renewal.token, &run.run, Then::Nothing);
    store.record_ended(&end).await.expect("ended");
    store.record_started(&run).await.expect("harmless");
    assert_eq!(record(&store, "outbound").await.run, None, "no run rises from the dead");
    assert_eq!(store.runs(&ask.job, None, 10).await.expect("runs").len(), 1);
}

pub(super) async fn the_end_of_a_run_that_was_forgotten_says_when_it_started(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let began = a_minute_ago(&store).await;
    let run = RunId(unique("run"));
    let end = ended(&ask, Token(4_000_000_000_000_000), &run, Then::Nothing);
    let end = Ended { began: Some(began), ..end };
    store.record_ended(&end).await.expect("ended");
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    assert_eq!((runs.len(), &runs[0].id, Some(runs[0].started)), (1, &run, began.at));
    assert!(runs[0].ended.is_some_and(|ended| ended.since(runs[0].started) >= MINUTE));

    // Whoever does not know either says the lease's beginning, as a guard does whose node is dead.
    let (lease, run) =
        (renewal(&super::ask("inbound", "node-a"), began, None), RunId(unique("run")));
    assert!(forgot(renew_one(&store, &lease).await));
    let asked = Acquire { owner: lease.owner.clone(), ..super::ask("inbound", "node-a") };
    store.record_ended(&ended(&asked, lease.token, &run, Then::Nothing)).await.expect("ended");
    let runs = store.runs(&asked.job, None, 10).await.expect("runs");
    assert_eq!((runs.len(), Some(runs[0].started)), (1, began.at));
}

pub(super) async fn a_start_closes_an_older_run_whose_end_was_forgotten(fresh: Fresh) {
    let store = fresh.connect().await;
    // An older copy of the store was put back: it shows a run that ended long ago.
    let old = ask("outbound", "node-b");
    let old_run = started(&store, &old, granted(&store, &old).await);
    store.record_started(&old_run).await.expect("started");
    store.release(&old.job, &old.owner).await.expect("released");
    let (ask, renewal, run) = told_again(&store).await;
    let after = record(&store, "outbound").await;
    assert_eq!(shown(&after).0, run.run);
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    let listed: Vec<_> = runs.iter().map(|run| (run.id.clone(), run.end)).collect();
    assert_eq!(listed, [(run.run, None), (old_run.run, Some(RunEnd::Lost))]);
    assert!(!forgot(renew_one(&store, &renewal).await));
}

pub(super) async fn an_instant_of_another_clock_is_counted_back(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    for hours in [-1, 1] {
        let before = now(&store).await;
        let said = StoreTime(before.0 - 60_000 + hours * 3_600_000);
        let began = Began { boot: boot(&store) - MINUTE, at: Some(said) };
        let run = Started {
            run: RunId(unique("run")),
            began,
            ..started(&store, &ask, Token((7 << 50) + u64::from(hours > 0)))
        };
        let at = store.record_started(&run).await.expect("started");
        let end = ended(&ask, run.token, &run.run, Then::Nothing);
        store.record_ended(&end).await.expect("ended");
        let after = now(&store).await;
        let range = before.0 - 60_000..=after.0 - 60_000;
        assert!(range.contains(&at.0), "{hours} h: {at:?} is not in {range:?}");
    }
}
