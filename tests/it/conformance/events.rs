//! Laws of the published changes.

use std::time::Duration;

use soloist::domain::event::EventKind::{self, *};
use soloist::store::events::{Events, StoreEvent};
use soloist::store::journal::{Journal, NewLine, Output, Stream, Then};
use soloist::store::leases::{Acquire, Leases};
use tokio::sync::mpsc::Receiver;

use super::*;

/// The next event; fails when none comes. Records come beside them, and so does the end of a lease that is beside its record.
pub(super) async fn next(heard: &mut Receiver<StoreEvent>) -> StoreEvent {
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(20), heard.recv())
            .await
            .expect("something is heard in time")
            .expect("the subscription lives");
        if !matches!(heard, StoreEvent::Record(_) | StoreEvent::Lease(_)) {
            return heard;
        }
    }
}

/// A confirmed subscription.
async fn listen(store: &Store) -> Receiver<StoreEvent> {
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(next(&mut heard).await, StoreEvent::Subscribed);
    heard
}

/// Expects exactly these events of `outbound`, in order, ending at its present version.
async fn expect(store: &Store, heard: &mut Receiver<StoreEvent>, kinds: &[EventKind]) {
    let mut newest = 0;
    for kind in kinds {
        match next(heard).await {
            StoreEvent::Job(event) => {
                assert_eq!((event.event, event.job), (*kind, job("outbound")));
                assert!(event.version >= newest, "{} after {newest}", event.version);
                newest = event.version;
            }
            other => panic!("{other:?} instead of {kind:?}"),
        }
    }
    assert_eq!(newest, version(store, "outbound").await, "{kinds:?}");
}

pub(super) async fn the_first_thing_heard_is_the_confirmation(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    // Confirmed means: nothing that happens from now on is missed.
    switch(&store, "outbound", "wang", true).await;
    assert_eq!(next(&mut heard).await, StoreEvent::Subscribed);
    expect(&store, &mut heard, &[ParticipationChanged]).await;
}

/// Makes every kind of change and expects its event on `heard`, which may belong to another connection.
async fn every_change(store: &Store, heard: &mut Receiver<StoreEvent>) {
    let outbound = job("outbound");
    let ops = user("ops");
    switch(store, "outbound", "li", true).await;
    expect(store, heard, &[ParticipationChanged]).await;
    store.hold(&outbound, &ops, "stock-taking").await.expect("held");
    expect(store, heard, &[Held]).await;
    store.resume(&outbound).await.expect("resumed");
    expect(store, heard, &[Resumed]).await;
    let given_back = ask_wanted("outbound", "node-a");
    granted(store, &given_back).await;
    expect(store, heard, &[LeaseAcquired]).await;
    store.request_move(&outbound, None, &ops, SOON).await.expect("asked");
    expect(store, heard, &[MoveRequested]).await;
    store.release(&outbound, &given_back.owner).await.expect("released");
    expect(store, heard, &[LeaseReleased]).await;

    let ask = ask_wanted("outbound", "node-b");
    let token = granted(store, &ask).await;
    expect(store, heard, &[LeaseAcquired]).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    expect(store, heard, &[RunStarted]).await;
    let lines = vec![NewLine { stream: Stream::Stderr, text: "hello".to_owned() }];
    let output = Output {
        job: outbound.clone(),
        token,
        run: run.run.clone(),
        node: ask.node.clone(),
        lines,
        progress: None,
        heard: false,
    };
    store.record_output(&output).await.expect("kept");
    expect(store, heard, &[RunProgressed]).await;
    store.record_stopping(&outbound, token, LONG).await.expect("recorded");
    expect(store, heard, &[RunProgressed]).await;
    store.record_ended(&ended(&ask, token, &run.run, Then::Done)).await.expect("ended");
    expect(store, heard, &[RunEnded, LeaseReleased, ParticipationChanged]).await;
}

pub(super) async fn every_change_is_published_with_its_version_and_kind(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut heard = listen(&store).await;
    every_change(&store, &mut heard).await;
}

pub(super) async fn a_lost_run_is_published_before_the_new_lease(fresh: Fresh) {
    let store = fresh.connect().await;
    let old = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let token = granted(&store, &old).await;
    store.record_started(&started(&store, &old, token)).await.expect("started");
    let mut heard = listen(&store).await;
    granted_in_time(&store, &ask("outbound", "node-b")).await;
    expect(&store, &mut heard, &[LeaseLost, LeaseAcquired]).await;
}

pub(super) async fn another_connection_hears_every_change(fresh: Fresh) {
    let writer = fresh.connect().await;
    let reader = fresh.connect().await;
    let mut heard = listen(&reader).await;
    every_change(&writer, &mut heard).await;
}

pub(super) async fn every_subscriber_hears(fresh: Fresh) {
    let store = fresh.connect().await;
    let other = fresh.connect().await;
    let mut ears = [listen(&store).await, listen(&store).await, listen(&other).await];
    drop(listen(&store).await);
    for on in [true, false, true] {
        switch(&store, "outbound", "li", on).await;
        for heard in &mut ears {
            expect(&store, heard, &[ParticipationChanged]).await;
        }
    }
}

pub(super) async fn a_slow_reader_is_told_to_take_a_snapshot(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut slow = listen(&store).await;
    let mut quick = listen(&store).await;
    // More than twice as many as wait for a reader.
    let changes = 2_500;
    let counting = tokio::spawn(async move {
        let mut newest = 0;
        while newest < changes {
            if let StoreEvent::Job(event) = next(&mut quick).await {
                newest = event.version;
            }
        }
    });
    for i in 0..changes {
        switch(&store, "outbound", "li", i % 2 == 0).await;
    }
    let last = version(&store, "outbound").await;
    assert_eq!(last, changes);
    counting.await.expect("one slow reader does not harm the others");

    // It reads at last: either it finds everything, or it is told that something is missing.
    let mut heard = 0;
    loop {
        match next(&mut slow).await {
            StoreEvent::Job(event) => {
                assert_eq!(event.version, heard + 1, "a gap without a word");
                heard = event.version;
                if heard == last {
                    break;
                }
            }
            StoreEvent::Subscribed => break,
            StoreEvent::Interrupted => {}
            StoreEvent::Nodes
            | StoreEvent::Accounts
            | StoreEvent::Wake(_)
            | StoreEvent::Lease(_)
            | StoreEvent::Record(_) => {
                panic!("no node did anything")
            }
        }
    }
    // And is up to date again from then on.
    switch(&store, "outbound", "wang", true).await;
    let newest = version(&store, "outbound").await;
    loop {
        match next(&mut slow).await {
            StoreEvent::Job(event) if event.version == newest => break,
            StoreEvent::Nodes | StoreEvent::Accounts => panic!("no node did anything"),
            _ => {}
        }
    }
}

pub(super) async fn a_refused_write_publishes_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let holder = ask("outbound", "node-a");
    let token = granted(&store, &holder).await;
    let mut heard = listen(&store).await;
    acquire(&store, &ask("outbound", "node-b")).await;
    acquire(&store, &ask_wanted("inbound", "node-b")).await;
    let stale = Token(token.0 - 1);
    let run = started(&store, &holder, stale);
    store.record_started(&run).await.expect_err("stale");
    store.record_ended(&ended(&holder, stale, &run.run, Then::Nothing)).await.expect_err("stale");
    switch(&store, "outbound", "li", false).await;
    switch(&store, "outbound", "li", true).await;
    expect(&store, &mut heard, &[ParticipationChanged]).await;
}
