//! Laws of names that were used and never again: their records go, and nothing tells them from names that were never used.

use std::time::Duration;

use soloist::domain::transition::forget::KEPT;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::journal::Journal;
use soloist::store::leases::{Acquire, Leases, Renewal, Renewed};

use super::*;

/// Removes what says nothing of these names, however new it is; how many.
async fn forget(store: &Store, names: &[&str]) -> usize {
    let names: Vec<JobName> = names.iter().map(|name| job(name)).collect();
    store.forget_void(&names, Duration::ZERO).await.expect("the store answers")
}

/// A lease that is taken and given back.
async fn used(store: &Store, name: &str) -> Token {
    let ask = ask(name, "node-a");
    let token = granted(store, &ask).await;
    store.release(&ask.job, &ask.owner).await.expect("released");
    token
}

pub(super) async fn a_name_that_was_forgotten_is_as_one_that_was_never_used(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let before = used(&store, "order-7").await;
    // Both remember it.
    assert_eq!(record(&other, "order-7").await.version, 2);
    assert_eq!(forget(&other, &["order-7", "never-used"]).await, 1);
    assert_eq!(forget(&other, &["order-7"]).await, 0, "once");
    for store in [&store, &other, &fresh.connect().await] {
        assert_eq!(record(store, "order-7").await, JobRecord::untouched(job("order-7")));
        let observed = store.observe(&[job("order-7")]).await.expect("the store answers");
        assert_eq!((observed[0].version, observed[0].lease_left), (0, None));
    }
    assert!(!store.every_name().await.expect("the store answers").contains(&job("order-7")));
    pass(&store, Duration::from_millis(2)).await;
    let after = used(&store, "order-7").await;
    assert!(after > before, "{after} after {before}");
    assert_eq!(record(&other, "order-7").await.version, 2);
    assert!(used(&other, "order-7").await > after);
}

pub(super) async fn a_record_that_says_anything_is_not_forgotten(fresh: Fresh) {
    let store = fresh.connect().await;
    granted(&store, &ask("held", "node-a")).await;
    for on in [true, false] {
        switch(&store, "switched", "li", on).await;
        switch(&store, "wanted", "li", true).await;
    }
    store.hold(&job("forbidden"), &user("li"), "stock-taking").await.expect("held");
    let (to, li) = (node("node-b"), user("li"));
    store.request_move(&job("moved"), Some(&to), &li, LONG).await.expect("asked for");
    let worked = ask("worked", "node-a");
    let token = granted(&store, &worked).await;
    let run = started(&store, &worked, token);
    store.record_started(&run).await.expect("started");
    let end = ended(&worked, token, &run.run, Then::Nothing);
    store.record_ended(&end).await.expect("ended");
    let names = ["held", "switched", "wanted", "forbidden", "moved", "worked"];
    let mut before = Vec::new();
    for name in names {
        before.push(JobRecord { lease: None, ..record(&store, name).await });
    }
    assert_eq!(forget(&store, &names).await, 0);
    for (name, before) in names.iter().zip(before) {
        assert_eq!(JobRecord { lease: None, ..record(&store, name).await }, before);
    }
    assert_eq!(store.held().await.expect("the store answers").len(), 1);
    assert_eq!(store.runs(&job("worked"), None, 9).await.expect("the history").len(), 1);
}

pub(super) async fn what_was_just_used_is_kept_for_a_month(fresh: Fresh) {
    let store = fresh.connect().await;
    let before = used(&store, "order-7").await;
    let names = [job("order-7")];
    assert_eq!(store.forget_void(&names, KEPT).await.expect("the store answers"), 0);
    assert_eq!(record(&store, "order-7").await.token, before);
    if let Some(world) = soloist_store_memory::world(&store) {
        world.pass(KEPT);
        assert_eq!(version(&store, "order-7").await, 0, "it has gone by itself");
        assert!(used(&store, "order-7").await > before);
        world.pass(KEPT - LONG);
        // Used again, it begins anew.
        used(&store, "order-7").await;
        world.pass(LONG * 2);
        assert_eq!(version(&store, "order-7").await, 4);
    }
}

pub(super) async fn a_lease_that_ran_out_keeps_no_record_and_its_holder_goes_on_all_the_same(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let silent = Acquire { ttl: SHORT, ..ask("silent", "node-a") };
    let token = granted(&store, &silent).await;
    assert_eq!(forget(&store, &["silent"]).await, 0, "it is held");
    eventually(&store, "it ran out", async || {
        (forget(&store, &["silent"]).await == 1).then_some(())
    })
    .await;
    assert_eq!(version(&store, "silent").await, 0);
    let late = Renewal {
        job: silent.job.clone(),
        owner: silent.owner.clone(),
        node: silent.node.clone(),
        token,
        ttl: LONG,
        since: Began::at_boot(boot(&store)),
        run: None,
    };
    let answers = store.renew(&[late]).await.expect("the store answers");
    assert!(matches!(answers[..], [Renewed::Kept { .. }]), "{answers:?}");
    assert_eq!(forget(&store, &["silent"]).await, 0, "it is held again");
    let lease = record(&store, "silent").await.lease.expect("a lease");
    assert_eq!((lease.token, lease.owner), (token, silent.owner));
}

pub(super) async fn a_name_that_is_used_again_after_it_was_forgotten_is_heard_of(fresh: Fresh) {
    let store = fresh.connect().await;
    for _ in 0..3 {
        used(&store, "outbound").await;
    }
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(events::next(&mut heard).await, StoreEvent::Subscribed);
    assert_eq!(forget(&store, &["outbound"]).await, 1);
    granted(&store, &ask("outbound", "node-b")).await;
    let StoreEvent::Job(event) = events::next(&mut heard).await else { panic!("another event") };
    assert_eq!((event.job, event.version), (job("outbound"), 1));
}
