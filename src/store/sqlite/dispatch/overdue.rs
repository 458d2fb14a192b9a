//! What happens without a client: leases run out, tasks become due, promises lapse, answers are forgotten.

use super::super::fault::Outcome;
use super::super::row::find;
use super::super::step::Step;
use super::desk::Desk;
use super::source::source_name;
use super::task::Task;
use super::{claims, waiters};
use crate::domain::dispatch::Departure;
use crate::domain::time::Stamp;
use crate::store::dispatch::Pumped;

/// Most of each kind in one [`pump`].
const MOST: u32 = 256;

/// Acts on leases that ran out and makes due tasks ready, at most `most` of each. Returns how many leases.
pub(super) fn act(desk: &mut Desk<'_>, most: u32) -> Outcome<usize> {
    let now = desk.now.0;
    let expired = Task::select(
        desk.step,
        "state = 'leased' AND until <= ? ORDER BY until LIMIT ?",
        (now, most),
    )?;
    for task in &expired {
        task.leave(desk, Departure::Expired, None)?;
    }
    let due =
        Task::select(desk.step, "state = 'due' AND at <= ? ORDER BY at, n LIMIT ?", (now, most))?;
    for task in &due {
        task.promote(desk)?;
    }
    Ok(expired.len())
}

/// Everything that is due, at most [`MOST`] of each kind.
pub(super) fn pump(step: &Step<'_>) -> Outcome<Pumped> {
    let mut desk = Desk::open(step)?;
    let now = desk.now;
    let expired = act(&mut desk, MOST)?;
    desk.open_sources(MOST)?;
    let lapsed: Vec<String> = step
        .prepare_cached(
            "SELECT name FROM sources WHERE promised > 0 AND promised_until <= ? ORDER BY promised_until LIMIT ?",
        )?
        .query_map((now.0, MOST), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for name in lapsed {
        // Closing takes the promise back.
        desk.source(&source_name(&name)?)?;
    }
    waiters::expire(step, now, MOST)?;
    claims::forget(step, now, MOST)?;
    desk.close()?;
    let next = next(step)?;
    let expired = u64::try_from(expired).unwrap_or(u64::MAX);
    Ok(Pumped { now, next, expired, more: next.is_some_and(|next| next <= now) })
}

/// The next instant at which something happens by itself.
fn next(step: &Step<'_>) -> Outcome<Option<Stamp>> {
    let mut next = None;
    for first in [
        "SELECT until FROM tasks WHERE state = 'leased' ORDER BY until LIMIT 1",
        "SELECT at FROM tasks WHERE state = 'due' ORDER BY at LIMIT 1",
        "SELECT opens FROM sources WHERE opens IS NOT NULL ORDER BY opens LIMIT 1",
        "SELECT promised_until FROM sources WHERE promised > 0 ORDER BY promised_until LIMIT 1",
    ] {
        next = next.into_iter().chain(find::<i64>(step, first, [])?).min();
    }
    Ok(next.map(Stamp))
}
