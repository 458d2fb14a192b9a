//! Laws of the end of a run, and of the history.

use std::time::Duration;

use soloist::domain::job::{Exit, Next, NextWhat, RunEnd};
use soloist::domain::name::RunId;
use soloist::store::journal::{Ended, Journal, Then};
use soloist::store::leases::{Acquire, Acquired};

use super::*;

async fn running(store: &Store, on: &str) -> (Acquire, Started) {
    let ask = ask("outbound", on);
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    (ask, run)
}

pub(super) async fn an_end_releases_the_lease_and_is_shown(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "node-a").await;
    let end = Ended {
        exit: Exit { code: None, signal: Some(9) },
        end: RunEnd::Fenced,
        processes_killed: 3,
        ..ended(&ask, run.token, &run.run, Then::Nothing)
    };
    store.record_ended(&end).await.expect("ended");
    let after = record(&store, "outbound").await;
    assert_eq!((after.lease, after.run), (None, None));
    let last = after.last_exit.expect("an exit");
    assert_eq!((last.exit, last.end, last.node), (end.exit, RunEnd::Fenced, ask.node.clone()));
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    assert_eq!(runs.len(), 1);
    assert_eq!((&runs[0].id, runs[0].token, &runs[0].node), (&run.run, run.token, &ask.node));
    assert_eq!((runs[0].exit, runs[0].end), (end.exit, Some(RunEnd::Fenced)));
    assert_eq!((runs[0].processes_killed, runs[0].ended), (3, Some(last.at)));
    granted(&store, &super::ask("outbound", "node-b")).await;
}

pub(super) async fn what_follows_an_end_is_kept(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let wait = Duration::from_millis(61_234);
    let cases = [
        (Then::Retry { crashes: 2, wait }, 2, Some(NextWhat::Retry), false),
        (Then::Repeat(wait), 0, Some(NextWhat::Repeat), false),
        (Then::Retry { crashes: 1, wait }, 1, Some(NextWhat::Retry), false),
        (Then::Nothing, 0, None, false),
        (Then::GiveUp { crashes: 5 }, 5, None, true),
    ];
    for (then, crashes, what, given_up) in cases {
        let (ask, run) = running(&store, "node-a").await;
        store.record_ended(&ended(&ask, run.token, &run.run, then)).await.expect("ended");
        let after = record(&store, "outbound").await;
        assert_eq!((after.crashes, after.given_up), (crashes, given_up), "{then:?}");
        let at = after.last_exit.expect("an exit").at;
        assert_eq!(after.next, what.map(|what| Next { what, at: at + wait }), "{then:?}");
        assert_eq!(after.participants.len(), 1);
    }
}

pub(super) async fn done_switches_everybody_off(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    switch(&store, "outbound", "wang", true).await;
    let (ask, run) = running(&store, "node-a").await;
    let end = ended(&ask, run.token, &run.run, Then::Done);
    store.record_ended(&end).await.expect("ended");
    let after = record(&store, "outbound").await;
    assert!(after.participants.is_empty() && after.lease.is_none() && after.next.is_none());
    let next = acquire(&store, &ask_wanted("outbound", "node-a")).await;
    assert_eq!(next, Acquired::NotWanted);

    // The answer was lost, somebody has switched it on meanwhile, the end is reported again.
    switch(&store, "outbound", "li", true).await;
    store.record_ended(&end).await.expect("harmless");
    assert!(record(&store, "outbound").await.participates(&user("li")), "switched off twice");
}

pub(super) async fn an_end_recorded_twice_is_harmless(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "node-a").await;
    let then = Then::Retry { crashes: 1, wait: LONG };
    let end = ended(&ask, run.token, &run.run, then);
    store.record_ended(&end).await.expect("ended");
    let before = record(&store, "outbound").await;
    pass(&store, Duration::from_millis(3)).await;
    store.record_ended(&end).await.expect("harmless");
    assert_eq!(record(&store, "outbound").await, before, "not even a later next run");
    assert_eq!(store.runs(&ask.job, None, 10).await.expect("runs").len(), 1);
}

pub(super) async fn an_end_without_a_start_is_recorded(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    let run = RunId(unique("run"));
    let then = Then::Retry { crashes: 1, wait: LONG };
    store.record_ended(&ended(&ask, token, &run, then)).await.expect("ended");
    let after = record(&store, "outbound").await;
    assert_eq!((after.lease, after.run, after.crashes), (None, None, 1));
    assert_eq!(after.last_exit.expect("an exit").node, ask.node);
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    assert_eq!(runs.len(), 1, "it is in the history");
    assert_eq!((&runs[0].id, runs[0].end), (&run, Some(RunEnd::Crashed)));
    assert_eq!((runs[0].token, &runs[0].node), (token, &ask.node));
}

pub(super) async fn an_end_after_the_lease_ran_out_unclaimed_is_recorded(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let token = granted(&store, &ask).await;
    let run = started(&store, &ask, token);
    store.record_started(&run).await.expect("started");
    eventually(&store, "the lease runs out", async || {
        record(&store, "outbound").await.lease.is_none().then_some(())
    })
    .await;
    assert!(record(&store, "outbound").await.run.is_some(), "the run outlives the lease");
    store.record_ended(&ended(&ask, token, &run.run, Then::Nothing)).await.expect("ended");
    let after = record(&store, "outbound").await;
    assert_eq!(after.run, None);
    assert_eq!(after.last_exit.expect("an exit").end, RunEnd::Stopped);
}

pub(super) async fn a_start_reported_after_its_end_revives_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "node-a").await;
    let end = ended(&ask, run.token, &run.run, Then::Nothing);
    store.record_ended(&end).await.expect("ended");
    store.record_started(&run).await.expect("harmless");
    assert_eq!(record(&store, "outbound").await.run, None, "a dead process is shown as running");
    let runs = store.runs(&ask.job, None, 10).await.expect("runs");
    assert_eq!((runs.len(), runs[0].end), (1, Some(RunEnd::Stopped)));
}

pub(super) async fn runs_are_paged_newest_first_with_the_present_one(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.runs(&job("outbound"), None, 10).await.expect("runs"), []);
    let mut ids = Vec::new();
    for _ in 0..4 {
        let (ask, run) = running(&store, "node-a").await;
        let end = ended(&ask, run.token, &run.run, Then::Nothing);
        store.record_ended(&end).await.expect("ended");
        ids.insert(0, run.run);
    }
    let (ask, present) = running(&store, "node-b").await;
    ids.insert(0, present.run.clone());

    let page = store.runs(&ask.job, None, 3).await.expect("runs");
    let listed: Vec<_> = page.iter().map(|run| run.id.clone()).collect();
    assert_eq!(listed, ids[..3]);
    assert_eq!((page[0].ended, page[0].end, page[0].exit), (None, None, Exit::default()));
    assert!(page[1].ended.is_some() && page[1].end == Some(RunEnd::Stopped));
    let rest = store.runs(&ask.job, Some(&ids[2]), 10).await.expect("runs");
    let listed: Vec<_> = rest.iter().map(|run| run.id.clone()).collect();
    assert_eq!(listed, ids[3..]);
    let older = store.runs(&ask.job, Some(&ids[0]), 2).await.expect("runs");
    assert_eq!(older.first().map(|run| run.id.clone()), Some(ids[1].clone()));
    assert_eq!(store.runs(&ask.job, Some(&ids[4]), 10).await.expect("runs"), []);
    assert_eq!(store.runs(&job("inbound"), None, 10).await.expect("runs"), []);
}
