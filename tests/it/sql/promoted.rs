//! A replica that was promoted while its former primary still takes writes: two stores, and what is true of their tokens.

use std::time::Duration;

use soloist::store::leases::{Acquired, Leases as _, Renewed};

use crate::postgres::{ask, granted, options, renew};
use crate::support::wait::until_async;

const BRIEF: Duration = Duration::from_secs(2);

/// A lease at the store at `old`; then `promote` makes the store at `new` one that takes writes and never saw it.
pub(crate) async fn the_newer_store_has_the_greater_token(
    old: &str,
    new: &str,
    promote: impl FnOnce(),
) {
    let holder = soloist::stores::connect(old, &options()).await.expect("it opens");
    let mine = ask("node-a", BRIEF);
    let first = granted(&holder, &mine).await;
    promote();
    let fresh = soloist::stores::connect(new, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", BRIEF)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    // What nobody fenced goes on: only the token tells the two apart.
    let second = until_async("the promoted one grants", async || {
        assert!(matches!(renew(&holder, &mine, first).await, Renewed::Kept { .. }));
        match fresh.acquire(&ask("node-b", BRIEF)).await.expect("an answer") {
            Acquired::Granted { token, .. } => Some(token),
            _ => None,
        }
    })
    .await;
    assert!(second > first, "{second:?} after {first:?}");
}
