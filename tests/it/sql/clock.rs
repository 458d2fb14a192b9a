//! A server whose clock is set by an hour while it runs.

use soloist::store::leases::{Acquired, Leases as _, Renewed};

use crate::postgres::{LONG, ask, granted, options, renew};
use crate::support::wait::until_async;

/// The lease of a holder outlives it, and nobody else gets one. `now` is the clock of the server in seconds, which `set` sets.
pub(crate) async fn an_hour_grants_a_held_job_to_nobody(
    url: &str,
    offset: &str,
    set: impl Fn(&str),
    now: impl Fn() -> i64,
) {
    let (holder, other) = (
        soloist::stores::connect(url, &options()).await.expect("it opens"),
        soloist::stores::connect(url, &options()).await.expect("it opens"),
    );
    let mine = ask("node-a", LONG);
    let token = granted(&holder, &mine).await;
    let answer = other.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    let before = now();
    set(offset);
    until_async("the clock is set", async || ((now() - before).abs() > 3_000).then_some(())).await;
    // A server whose time-outs are over at once may cancel what it is asked first.
    let answer =
        until_async("an answer", async || other.acquire(&ask("node-b", LONG)).await.ok()).await;
    assert!(
        matches!(answer, Acquired::Quarantined { .. } | Acquired::Busy { .. }),
        "{offset}: {answer:?}"
    );
    let kept = renew(&holder, &mine, token).await;
    assert!(matches!(kept, Renewed::Kept { .. }), "{offset}: {kept:?}");
    let fresh = soloist::stores::connect(url, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-c", LONG)).await.expect("an answer");
    assert!(!matches!(answer, Acquired::Granted { .. }), "{offset}: {answer:?}");
}
