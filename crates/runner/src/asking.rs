//! One request for the lease of a job, and one that gives back what nothing was started under.

use std::time::Duration;

use tokio::time::timeout;

use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, Owner};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::Store;
use soloist_store::leases::{Acquire, Acquired, Leases as _};

/// What came of it.
pub(super) enum Asked {
    /// The lease was granted to a request sent at `sent`; trust counts from there.
    Granted { token: Token, since: StoreTime, sent: Boot },
    /// No use asking before this is over.
    Refused(Duration),
    /// No answer: it may be held or not.
    Unknown,
}

/// Asks once, for as long as `patience`.
pub(super) async fn ask(store: &Store, ask: &Acquire, patience: Duration) -> Asked {
    let sent = clock::boot();
    match timeout(patience, store.acquire(ask)).await {
        Ok(Ok(Acquired::Granted { token, since })) => Asked::Granted { token, since, sent },
        Ok(Ok(Acquired::Busy { remaining, .. })) => Asked::Refused(remaining),
        Ok(Ok(Acquired::NotWanted | Acquired::Exhausted)) => Asked::Refused(Duration::from_secs(1)),
        Ok(Ok(
            Acquired::NotYet { wait }
            | Acquired::Reserved { wait }
            | Acquired::Quarantined { wait },
        )) => Asked::Refused(wait),
        Ok(Err(error)) => {
            tracing::warn!(job = %ask.job, %error, "no answer to the request for a lease");
            Asked::Unknown
        }
        Err(_) => Asked::Unknown,
    }
}

/// Gives back a lease that nothing was started under.
pub(super) async fn give_back(store: &Store, job: &JobName, owner: &Owner) {
    if let Err(error) = store.release(job, owner).await {
        tracing::warn!(%job, %error, "an unused lease is left to run out");
    }
}
