//! Laws of taking and giving back a lease.

use std::time::Duration;

use soloist::domain::job::RunEnd;
use soloist::domain::lease::Token;
use soloist::domain::name::Owner;
use soloist::store::journal::{Journal, Then};
use soloist::store::leases::{Acquire, Acquired, Leases, Released};

use super::*;
use crate::support::machine::holds;

pub(super) async fn the_token_only_grows(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut newest = Token(0);
    for _ in 0..5 {
        let ask = ask("outbound", "node-a");
        let token = granted(&store, &ask).await;
        assert!(token > newest, "{token} after {newest}");
        newest = token;
        store.release(&ask.job, &ask.owner).await.expect("released");
        assert_eq!(record(&store, "outbound").await.token, newest, "kept after the release");
    }
    // The same owner word does not bring the old token back once it was given back.
    let again = Acquire { owner: Owner("same".to_owned()), ..ask("outbound", "node-a") };
    let first = granted(&store, &again).await;
    store.release(&again.job, &again.owner).await.expect("released");
    let second = granted(&store, &again).await;
    assert!(first > newest && second > first);
    let fits = 1_u64 << 53;
    assert!(second.0 < fits, "{second} does not fit a JavaScript number");
}

pub(super) async fn the_token_exceeds_the_highest_one_seen_even_in_a_store_that_forgot(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let seen = Token(9_000_000_000_000_000);
    let token = granted(&store, &Acquire { seen, ..ask("outbound", "node-a") }).await;
    assert!(token > seen);
    assert_eq!(record(&store, "outbound").await.token, token, "with every digit");
}

/// The clock of the store was set back, or the token before was minted by one that ran ahead.
pub(super) async fn the_token_exceeds_the_one_before_whatever_the_clock_says(fresh: Fresh) {
    let store = fresh.connect().await;
    let ahead = Acquire { seen: Token(8_000_000_000_000_000), ..ask("outbound", "node-a") };
    let token = granted(&store, &ahead).await;
    store.release(&ahead.job, &ahead.owner).await.expect("released");
    // By a process that has seen none of it.
    let next = granted(&fresh.connect().await, &ask("outbound", "node-b")).await;
    assert!(next > token, "{next} after {token}");
}

pub(super) async fn the_same_owner_gets_the_same_token_again(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = Acquire { ttl: Duration::from_secs(5), ..ask("outbound", "node-a") };
    let first = acquire(&store, &ask).await;
    let again = acquire(&store, &Acquire { ttl: LONG, ..ask.clone() }).await;
    assert_eq!(first, again, "token and instant of the grant");
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert!(lease.expires_in > Duration::from_secs(5), "extended by asking again: {lease:?}");
}

pub(super) async fn another_owner_is_told_who_holds_it_and_for_how_long(fresh: Fresh) {
    let store = fresh.connect().await;
    let holder = ask("outbound", "node-a");
    let token = granted(&store, &holder).await;
    match acquire(&store, &ask("outbound", "node-b")).await {
        Acquired::Busy { node, remaining } => {
            assert_eq!(node, holder.node);
            assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    // Even the same node, with an owner of its own.
    assert!(matches!(acquire(&store, &ask("outbound", "node-a")).await, Acquired::Busy { .. }));
    let lease = record(&store, "outbound").await.lease.expect("a lease");
    assert_eq!((lease.node, lease.owner, lease.token), (holder.node, holder.owner, token));
    assert_eq!(lease.ttl, LONG);
    assert!(lease.since.0 > 1_600_000_000_000, "wall clock in milliseconds: {:?}", lease.since);
}

pub(super) async fn a_released_lease_is_taken_at_once(fresh: Fresh) {
    let store = fresh.connect().await;
    let first = ask("outbound", "node-a");
    let token = granted(&store, &first).await;
    store.release(&first.job, &first.owner).await.expect("released");
    assert_eq!(record(&store, "outbound").await.lease, None);
    let newer = granted(&store, &ask("outbound", "node-b")).await;
    assert!(newer > token);
}

pub(super) async fn a_release_by_another_owner_changes_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let holder = ask("outbound", "node-a");
    granted(&store, &holder).await;
    let before = version(&store, "outbound").await;
    let stranger = Owner(unique("owner"));
    store.release(&holder.job, &stranger).await.expect("no error");
    let after = record(&store, "outbound").await;
    assert_eq!(after.lease.expect("still held").owner, holder.owner);
    assert_eq!(after.version, before);
}

pub(super) async fn a_release_of_nothing_is_harmless(fresh: Fresh) {
    let store = fresh.connect().await;
    let nobody = ask("outbound", "node-a");
    store.release(&nobody.job, &nobody.owner).await.expect("no error");
    granted(&store, &nobody).await;
    for _ in 0..2 {
        store.release(&nobody.job, &nobody.owner).await.expect("no error");
    }
    assert_eq!(record(&store, "outbound").await.lease, None);
}

pub(super) async fn a_release_under_a_token_says_whose_the_lease_is(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let (first, second) = (ask("outbound", "node-a"), ask("outbound", "node-b"));
    let release = async |store: &Store, ask: &Acquire, token| {
        store
            .release_under(&ask.job, &ask.owner, token, Outcome::UNUSED)
            .await
            .expect("the store answers")
    };
    assert_eq!(release(&store, &first, Token(1)).await, Released::Nothing, "never granted");
    let token = granted(&store, &first).await;
    for wrong in [Token(token.0 - 1), Token(token.0 + 1)] {
        assert_eq!(release(&store, &first, wrong).await, Released::Another);
    }
    assert_eq!(release(&other, &second, token).await, Released::Another);
    assert_eq!(record(&store, "outbound").await.lease.map(|lease| lease.token), Some(token));
    assert_eq!(release(&other, &first, token).await, Released::Yes);
    assert_eq!(record(&store, "outbound").await.lease, None);
    // What this process remembers is old.
    assert_eq!(release(&store, &first, token).await, Released::Nothing, "given back before");
    granted(&other, &second).await;
    assert_eq!(release(&store, &first, token).await, Released::Another);
}

/// A process may remember a lease longer than it lasts.
pub(super) async fn the_same_owner_gets_a_new_token_once_its_lease_ran_out(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let asked = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let old = granted(&store, &asked).await;
    eventually(&store, "its lease is over", async || {
        let seen = other.observe(std::slice::from_ref(&asked.job)).await.expect("observed");
        seen[0].lease_left.is_none().then_some(())
    })
    .await;
    let longer = Acquire { ttl: SHORT * 2, ..asked };
    let token = granted(&store, &longer).await;
    assert!(token > old, "{token} after {old}");
}

pub(super) async fn an_expired_lease_is_taken_and_its_run_closed_as_lost(fresh: Fresh) {
    let store = fresh.connect().await;
    let old = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let old_token = granted(&store, &old).await;
    let run = started(&store, &old, old_token);
    store.record_started(&run).await.expect("recorded");
    let newer = ask("outbound", "node-b");
    let token = granted_in_time(&store, &newer).await;
    assert!(token > old_token);

    let after = record(&store, "outbound").await;
    assert_eq!(after.run, None, "the old run is not the new holder's");
    assert_eq!(after.lease.expect("a lease").node, newer.node);
    let last = after.last_exit.expect("the lost run is the newest that ended");
    assert_eq!((last.end, last.node), (RunEnd::Lost, old.node.clone()));
    let runs = store.runs(&old.job, None, 10).await.expect("runs");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((runs[0].end, runs[0].id.clone()), (Some(RunEnd::Lost), run.run.clone()));
    assert_eq!((runs[0].token, runs[0].node.clone()), (old_token, old.node.clone()));
    assert!(runs[0].ended.expect("closed") >= runs[0].started);

    let late = store.record_ended(&ended(&old, old_token, &run.run, Then::Nothing)).await;
    match late {
        Err(soloist::store::StoreError::Stale { sent, current }) => {
            assert_eq!((sent, current), (old_token, token));
        }
        other => panic!("the old run wrote: {other:?}"),
    }
    assert!(record(&store, "outbound").await.lease.is_some(), "and released nothing");
}

pub(super) async fn an_expired_lease_without_a_run_is_taken_without_ado(fresh: Fresh) {
    let store = fresh.connect().await;
    let old = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let old_token = granted(&store, &old).await;
    eventually(&store, "the lease runs out", async || {
        record(&store, "outbound").await.lease.is_none().then_some(())
    })
    .await;
    let token = granted(&store, &ask("outbound", "node-b")).await;
    assert!(token > old_token);
    assert_eq!(store.runs(&old.job, None, 10).await.expect("runs"), []);
    assert_eq!(record(&store, "outbound").await.last_exit, None);
}

pub(super) async fn of_twenty_concurrent_owners_one_is_granted(fresh: Fresh) {
    let store = fresh.connect().await;
    let other = fresh.connect().await;
    for round in 0..5 {
        let name = format!("job-{round}");
        let tasks: Vec<_> = (0..20)
            .map(|i| {
                let store = if i % 2 == 0 { store.clone() } else { other.clone() };
                let ask = ask(&name, &format!("node-{i}"));
                tokio::spawn(async move { (acquire(&store, &ask).await, ask.node) })
            })
            .collect();
        let mut winners = Vec::new();
        let mut told = Vec::new();
        for task in tasks {
            match task.await.expect("no panic") {
                (Acquired::Granted { .. }, node) => winners.push(node),
                (Acquired::Busy { node, .. }, _) => told.push(node),
                (other, _) => panic!("{other:?}"),
            }
        }
        holds(winners.len() == 1, || format!("more than one was granted: {winners:?}"));
        assert_eq!(told.len(), 19);
        assert!(told.iter().all(|node| *node == winners[0]), "everybody is told the winner");
    }
}

pub(super) async fn leases_of_different_jobs_are_independent(fresh: Fresh) {
    let store = fresh.connect().await;
    let first = ask("outbound", "node-a");
    granted(&store, &first).await;
    granted(&store, &ask("inbound", "node-a")).await;
    granted(&store, &ask("outbound.2", "node-b")).await;
    store.release(&first.job, &first.owner).await.expect("released");
    assert!(record(&store, "inbound").await.lease.is_some());
    assert!(record(&store, "outbound.2").await.lease.is_some());
}

pub(super) async fn observing_tells_version_and_time_left_in_order(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut names = Vec::new();
    for i in 0..150 {
        names.push(job(&format!("job-{i}")));
    }
    granted(&store, &ask("job-149", "node-a")).await;
    switch(&store, "job-3", "li", true).await;
    let seen = store.observe(&names).await.expect("observed");
    assert_eq!(seen.len(), 150);
    for (i, one) in seen.iter().enumerate() {
        match i {
            149 => assert!(one.lease_left.is_some_and(|left| left > LONG / 2), "{one:?}"),
            _ => assert_eq!(one.lease_left, None, "job-{i}"),
        }
        assert_eq!(one.version > 0, i == 149 || i == 3, "job-{i}: {one:?}");
    }
    assert_eq!(seen[149].version, version(&store, "job-149").await);
    assert_eq!(store.observe(&[]).await.expect("observed"), []);
}
