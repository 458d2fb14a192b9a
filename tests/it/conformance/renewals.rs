//! Laws of renewing leases.

use std::time::Duration;

use soloist::domain::lease::Token;
use soloist::domain::name::Owner;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::leases::{Acquire, Acquired, Leases, Renewal, Renewed};

use super::*;

fn renewal(store: &Store, ask: &Acquire, token: Token, ttl: Duration) -> Renewal {
    Renewal {
        job: ask.job.clone(),
        owner: ask.owner.clone(),
        node: ask.node.clone(),
        token,
        ttl,
        since: Began::at_boot(boot(store)),
        run: None,
    }
}

async fn renew_one(store: &Store, renewal: Renewal) -> Renewed {
    let answers = store.renew(&[renewal]).await.expect("the store answers");
    assert_eq!(answers.len(), 1);
    answers[0]
}

pub(super) async fn a_renewal_extends_the_lease(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = Acquire { ttl: Duration::from_secs(20), ..ask("outbound", "node-a") };
    let token = granted(&store, &ask).await;
    match renew_one(&store, renewal(&store, &ask, token, LONG)).await {
        Renewed::Kept { margin, forgot } => {
            assert!(!forgot);
            assert!(margin <= ask.ttl && margin > ask.ttl / 4, "{margin:?}");
        }
        Renewed::Lost => panic!("lost"),
    }
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert!(lease.expires_in > ask.ttl && lease.expires_in <= LONG, "{lease:?}");
    assert_eq!((lease.ttl, lease.token, lease.owner), (LONG, token, ask.owner));
}

pub(super) async fn a_renewal_by_another_owner_is_lost_and_revives_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let holder = Acquire { ttl: Duration::from_secs(20), ..ask("outbound", "node-a") };
    let token = granted(&store, &holder).await;
    let stranger = Acquire { owner: Owner(unique("owner")), ..holder.clone() };
    assert_eq!(renew_one(&store, renewal(&store, &stranger, token, LONG)).await, Renewed::Lost);
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert!(lease.expires_in <= holder.ttl, "extended by a stranger: {lease:?}");
    assert_eq!(lease.owner, holder.owner);

    // An older token finds the lease run out: it must not come back to life under it.
    store.release(&holder.job, &holder.owner).await.expect("released");
    let next = Acquire { ttl: SHORT, ..ask("outbound", "node-b") };
    granted(&store, &next).await;
    eventually(&store, "the lease runs out", async || {
        record(&store, "outbound").await.lease.is_none().then_some(())
    })
    .await;
    assert_eq!(renew_one(&store, renewal(&store, &holder, token, LONG)).await, Renewed::Lost);
    assert_eq!(record(&store, "outbound").await.lease, None);
}

pub(super) async fn a_renewal_after_the_release_is_lost(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    store.release(&ask.job, &ask.owner).await.expect("released");
    assert_eq!(renew_one(&store, renewal(&store, &ask, token, LONG)).await, Renewed::Lost);
    assert_eq!(record(&store, "outbound").await.lease, None, "nobody is running it");
}

pub(super) async fn a_program_that_comes_after_the_end_of_its_lease_is_too_late(fresh: Fresh) {
    let store = fresh.connect().await;
    for (owner, is_late) in [("program-7f", true), ("node-7f", false)] {
        let owner = Owner(owner.to_owned());
        let ask = Acquire { owner, ttl: SHORT, ..ask("outbound", "shop-7f") };
        let token = granted(&store, &ask).await;
        eventually(&store, "the lease has run out", async || {
            record(&store, "outbound").await.lease.is_none().then_some(())
        })
        .await;
        let answer = renew_one(&store, renewal(&store, &ask, token, LONG)).await;
        assert_eq!(answer == Renewed::Lost, is_late, "{}: {answer:?}", ask.owner);
        store.release(&ask.job, &ask.owner).await.expect("released");
    }
}

pub(super) async fn a_renewal_under_an_older_token_is_lost(fresh: Fresh) {
    let store = fresh.connect().await;
    let old = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let old_token = granted(&store, &old).await;
    let newer = ask("outbound", "node-b");
    let token = granted_in_time(&store, &newer).await;
    assert_eq!(renew_one(&store, renewal(&store, &old, old_token, LONG)).await, Renewed::Lost);
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert_eq!((lease.token, lease.node), (token, newer.node));
}

pub(super) async fn a_lease_the_store_forgot_is_asserted_again_by_its_holder(fresh: Fresh) {
    let store = fresh.connect().await;
    // To this store the job is unknown, as after it was emptied.
    let holder = ask("outbound", "node-a");
    let token = Token(4_000_000_000_000_000);
    assert_eq!(
        renew_one(&store, renewal(&store, &holder, token, LONG)).await,
        Renewed::Kept { margin: Duration::ZERO, forgot: true }
    );
    let after = record(&store, "outbound").await;
    assert_eq!(after.token, token, "with every digit");
    let lease = after.lease.expect("a lease");
    assert_eq!((lease.node, lease.owner, lease.token), (holder.node, holder.owner, token));
    assert!(matches!(acquire(&store, &ask("outbound", "node-b")).await, Acquired::Busy { .. }));
}

pub(super) async fn two_hundred_and_fifty_renewals_are_answered_in_order(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut batch = Vec::new();
    for i in 0..250 {
        let ask = ask(&format!("job-{i}"), "node-a");
        let token = granted(&store, &ask).await;
        batch.push(renewal(&store, &ask, token, LONG));
    }
    batch[137].owner = Owner(unique("owner"));
    let answers = store.renew(&batch).await.expect("the store answers");
    assert_eq!(answers.len(), 250);
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(*answer == Renewed::Lost, i == 137, "job-{i}: {answer:?}");
    }
}

pub(super) async fn no_renewals_are_answered_by_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.renew(&[]).await.expect("the store answers"), []);
}

pub(super) async fn a_renewal_publishes_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    let before = version(&store, "outbound").await;
    let mut heard = store.subscribe(&[job("outbound"), job("inbound")]).await.expect("subscribed");
    assert_eq!(heard.recv().await, Some(StoreEvent::Subscribed));
    for _ in 0..3 {
        renew_one(&store, renewal(&store, &ask, token, LONG)).await;
    }
    assert_eq!(version(&store, "outbound").await, before);
    // The next thing that is heard is the next change.
    switch(&store, "inbound", "li", true).await;
    match events::next(&mut heard).await {
        StoreEvent::Job(event) => assert_eq!(event.job, job("inbound")),
        other => panic!("{other:?}"),
    }
}
