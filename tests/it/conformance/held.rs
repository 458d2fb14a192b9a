//! Laws of the list of everything that is held.

use std::collections::BTreeMap;

use soloist::store::leases::{Acquire, HeldLease, Leases};

use super::*;

/// By name.
async fn held(store: &Store) -> Vec<HeldLease> {
    store.held().await.expect("the store answers")
}

fn names(held: &[HeldLease]) -> Vec<&str> {
    held.iter().map(|held| held.name.as_str()).collect()
}

pub(super) async fn what_is_held_is_listed_as_a_snapshot_has_it_whatever_its_name_stands_for(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    assert_eq!(held(&store).await, [], "nobody has anything");
    switch(&store, "outbound", "li", true).await;
    switch(&store, "resting", "li", true).await;
    let job = ask_wanted("outbound", "node-b");
    let command = Acquire { ttl: LONG * 2, ..ask("deploy", "cron-1") };
    let tokens = [granted(&store, &command).await, granted(&store, &job).await];

    let other = fresh.connect().await;
    let held = held(&other).await;
    assert_eq!(names(&held), ["deploy", "outbound"], "what nobody has is not listed");
    for ((held, ask), token) in held.iter().zip([command, job]).zip(tokens) {
        let HeldLease { name, lease } = held;
        assert_eq!((name, &lease.node, lease.token), (&ask.job, &ask.node, token));
        assert_eq!((&lease.owner, lease.ttl), (&ask.owner, ask.ttl));
        assert!(lease.expires_in <= ask.ttl && lease.expires_in > ask.ttl / 2, "{lease:?}");
        let shown = record(&store, name.as_str()).await.lease.expect("a lease");
        assert_eq!(lease.since, shown.since, "by the store's clock");
    }
}

pub(super) async fn what_was_given_back_or_ran_out_is_not_listed(fresh: Fresh) {
    let store = fresh.connect().await;
    let returned = ask("returned", "node-a");
    granted(&store, &ask("kept", "node-a")).await;
    granted(&store, &returned).await;
    granted(&store, &Acquire { ttl: SHORT, ..ask("silent", "node-a") }).await;
    store.release(&returned.job, &returned.owner).await.expect("released");
    eventually(&store, "the silent one is listed no more", async || {
        (names(&held(&store).await) == ["kept"]).then_some(())
    })
    .await;
    assert_eq!(record(&store, "silent").await.lease, None, "not before it ran out");
    let newer = granted(&store, &ask("silent", "node-b")).await;
    let again = held(&store).await;
    assert_eq!(names(&again), ["kept", "silent"]);
    assert_eq!((&again[1].lease.node, again[1].lease.token), (&node("node-b"), newer));
}

pub(super) async fn more_than_a_batch_is_listed_whole_and_in_order(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut tokens = BTreeMap::new();
    for i in 0..230 {
        let ask = ask(&format!("job-{i}"), &format!("node-{}", i % 3));
        tokens.insert(ask.job.clone(), (ask.node.clone(), granted(&store, &ask).await));
    }
    let listed: Vec<_> =
        held(&store).await.into_iter().map(|h| (h.name, (h.lease.node, h.lease.token))).collect();
    assert_eq!(listed, tokens.into_iter().collect::<Vec<_>>());
}
