//! A law of renewing many leases at once. ZooKeeper extends none: its leases last as long as the session of their node.

use std::time::Duration;

use soloist::domain::name::Owner;
use soloist::store::leases::{Acquire, Leases as _, Renewal, Renewed};

use super::*;

/// So much more is left of a lease that was extended than of one that was not.
const PASSED: Duration = Duration::from_millis(50);

pub(super) async fn of_a_batch_a_holder_extends_what_is_its_own_and_nothing_else(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut batch = Vec::new();
    for name in ["first", "second", "third"] {
        let ask = Acquire { ttl: LONG, ..ask(name, "node-a") };
        let token = granted(&store, &ask).await;
        let Acquire { job, owner, node, ttl, .. } = ask;
        batch.push(Renewal {
            job,
            owner,
            node,
            token,
            ttl,
            since: Began::at_boot(boot(&store)),
            run: None,
        });
    }
    eventually(&store, "some of each lease has passed", async || {
        let left = record(&store, "third").await.lease.expect("a lease").expires_in;
        (left + PASSED < LONG).then_some(())
    })
    .await;

    let owner = std::mem::replace(&mut batch[1].owner, Owner(unique("owner")));
    let answers = store.renew(&batch).await.expect("the store answers");
    assert_eq!(
        answers.iter().map(|answer| *answer == Renewed::Lost).collect::<Vec<_>>(),
        [false, true, false]
    );
    let [first, second, third] = left(&store).await;
    assert!(
        first.min(third) > second + PASSED / 2,
        "a stranger extends a lease: {second:?}, {first:?}, {third:?}"
    );

    // When nothing of a batch is lost, a store may write it in another way.
    batch[1].owner = owner;
    let answers = store.renew(&batch).await.expect("the store answers");
    let kept = |answer: &Renewed| matches!(answer, Renewed::Kept { forgot: false, .. });
    assert!(answers.iter().all(kept), "{answers:?}");
    let [first, second, third] = left(&store).await;
    assert!(
        second + PASSED / 2 > first.max(third),
        "it is not extended: {second:?}, {first:?}, {third:?}"
    );
}

/// How long each of the three lasts.
async fn left(store: &Store) -> [Duration; 3] {
    let read =
        store.snapshot(&["first", "second", "third"].map(job)).await.expect("the store answers");
    let left: Vec<Duration> =
        read.jobs.into_iter().map(|record| record.lease.expect("a lease").expires_in).collect();
    left.try_into().expect("three")
}
