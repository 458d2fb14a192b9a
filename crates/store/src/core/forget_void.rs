//! Removes records that say nothing any more, where a store did not delete them by itself: SQL has no rows that expire, and a lease that expired was
//! written while it was valid.

use std::time::Duration;

use super::record::{Case, written};
use crate::Result;
use crate::engine::{Engine, Way};
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
use soloist_domain::transition::Job;
use soloist_domain::transition::forget::may_be_forgotten;

/// Of the records of `names` those are removed that say nothing and were written longer ago than `kept`; how many. None while the store may
/// have forgotten something itself.
///
/// # Errors
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable).
pub async fn forget_void(engine: &dyn Engine, names: &[JobName], kept: Duration) -> Result<usize> {
    let reading = engine.read(names, Way::Rest).await?;
    let mut forgotten = 0;
    if !reading.quarantine.is_zero() {
        return Ok(forgotten);
    }
    for (name, stored) in names.iter().zip(reading.records) {
        // What cannot be read is for people, who see the error whenever it is used.
        let Ok(Case { head, job, history, lease: None, .. }) = Case::read(name, stored) else {
            continue;
        };
        if is_over(job, history.ended, written(&head), reading.at, kept)
            && engine.forget(name, &head).await?
        {
            engine.known().forget(name);
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

fn is_over(
    job: Job,
    runs: usize,
    written: Option<StoreTime>,
    now: StoreTime,
    kept: Duration,
) -> bool {
    // A lease that ran out and was not given back: only its holder could say so, and a process that comes back so late asserts it as in
    // any store that forgot it.
    let job = Job { lapsed: None, ..job };
    written.is_some_and(|at| now.since(at) >= kept && may_be_forgotten(&job, runs, at))
}
