//! Requests the lease of a job, and releases a lease under which nothing was started.

use std::time::Duration;

use tokio::time::timeout;

use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, Owner};
use soloist_domain::tick::{Granted, Schedule, Sight};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::Store;
use soloist_store::leases::{Acquire, Acquired, Leases as _};
use soloist_store::ticks::TickBook as _;

/// What came of it.
pub(super) enum Asked {
    /// The lease was granted to a request sent at `sent`; trust counts from there.
    Granted { token: Token, since: StoreTime, sent: Boot, tick: Option<Box<Granted>> },
    /// No use asking before this is over.
    Refused(Duration),
    /// No answer: it may be held or not.
    Unknown,
}

/// What is asked for: the lease, of a job with a schedule for its next tick.
pub(super) struct Question {
    pub(super) lease: Acquire,
    pub(super) schedule: Option<Schedule>,
    /// What this node saw last of its ticks.
    pub(super) seen: Option<Sight>,
}

/// Asks once, for as long as `patience`.
pub(super) async fn ask(store: &Store, question: &Question, patience: Duration) -> Asked {
    let sent = clock::boot();
    let Question { lease: ask, schedule, seen } = question;
    let answer = async {
        match schedule {
            None => store.acquire(ask).await.map(|answer| (answer, None)),
            Some(schedule) => store.acquire_tick(ask, schedule, seen.as_ref()).await,
        }
    };
    let answer = match timeout(patience, answer).await {
        Ok(answer) => answer,
        Err(_) => return Asked::Unknown,
    };
    match answer {
        Ok((Acquired::Granted { token, since }, tick)) => {
            Asked::Granted { token, since, sent, tick: tick.map(Box::new) }
        }
        Ok((Acquired::Busy { remaining, .. }, _)) => Asked::Refused(remaining),
        Ok((Acquired::NotWanted | Acquired::Exhausted, _)) => {
            Asked::Refused(Duration::from_secs(1))
        }
        Ok((
            Acquired::NotYet { wait }
            | Acquired::Reserved { wait }
            | Acquired::Quarantined { wait },
            _,
        )) => Asked::Refused(wait),
        Err(error) => {
            tracing::warn!(job = %ask.job, %error, "no answer to the request for a lease");
            Asked::Unknown
        }
    }
}

/// Gives back a lease that nothing was started under.
pub(super) async fn give_back(store: &Store, job: &JobName, owner: &Owner) {
    if let Err(error) = store.release(job, owner).await {
        tracing::warn!(%job, %error, "an unused lease is left to run out");
    }
}
