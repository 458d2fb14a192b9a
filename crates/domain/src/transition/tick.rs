//! Ticks: a lease for the next one, and what time alone decides. The law is in [`crate::tick`]; here it meets the lease.

use std::time::Duration;

use super::history::{Past, close_as_lost};
use super::lease::{doubt, grant, held, reserved};
use super::{Job, Now, Write};
use crate::event::EventKind;
use crate::grant::{Acquire, Acquired};
use crate::tick::{self, Asked, Entry, Granted, Refused, Schedule, Sight, TickName};

/// As [`super::lease::acquire`], of a job with a schedule: the lease is granted for one tick. Whatever the answer is, what has
/// become certain by then is written.
///
/// `seen` is what the asker saw last: a store that forgot it learns it.
pub fn acquire(
    job: &mut Job,
    past: &Past,
    ask: &Acquire,
    schedule: &Schedule,
    seen: Option<&Sight>,
    quarantine: Duration,
    now: Now,
) -> (Acquired, Option<Granted>, Vec<Write>) {
    if let Some(answer) = held(job, ask) {
        let granted = match answer {
            Acquired::Granted { token, .. } => tick::granted(&job.record, token),
            _ => None,
        };
        return (answer, granted, Vec::new());
    }
    if let Some(refused) = doubt(quarantine) {
        return (refused, None, Vec::new());
    }
    let before = job.record.clock.clone();
    let lapsed = job.lapsed.as_ref().map(|lease| lease.node.clone());
    let mut writes = learn(job, schedule, seen, now);
    writes.extend(tick::settle(&mut job.record, schedule, lapsed.as_ref(), now.at));
    let refused = reserved(&job.record, ask, now.at);
    let settled = job.record.clone();
    // The token is minted by the grant of the lease, so that comes first; a refusal puts all of it back.
    let free = job.clone();
    let (answer, granted) = match refused {
        Some(refused) => (refused, Vec::new()),
        None => grant(job, past, ask, now),
    };
    let Acquired::Granted { token, .. } = answer else {
        (job.record, job.lapsed) = (settled, free.lapsed);
        publish(job, before.as_deref(), &mut writes);
        return (answer, None, writes);
    };
    match tick::grant(&mut job.record, schedule, token, now.at) {
        Ok(ticks) => {
            writes.extend(ticks);
            writes.extend(granted);
            (answer, tick::granted(&job.record, token), writes)
        }
        Err(refused) => {
            *job = free;
            publish(job, before.as_deref(), &mut writes);
            (refused, None, writes)
        }
    }
}

/// Writes what time alone has decided. The loss of a run whose lease expired is recorded as well. `seen` as in [`acquire`]: a store that is in
/// doubt takes that in and decides nothing; from then on its ticks count.
pub fn settle(
    job: &mut Job,
    past: &Past,
    schedule: &Schedule,
    seen: Option<&Sight>,
    quarantine: Duration,
    now: Now,
) -> Vec<Write> {
    let before = job.record.clock.clone();
    let mut writes = learn(job, schedule, seen, now);
    if !quarantine.is_zero() {
        // Nothing is granted before the doubt is over; what becomes due until then is not left out.
        if job.record.clock.is_none() {
            let clock = tick::Clock::begin(&schedule.text, &job.record, now.at);
            job.record.clock = Some(Box::new(clock));
        }
        publish(job, before.as_deref(), &mut writes);
        return writes;
    }
    let lapsed = job.lapsed.as_ref().map(|lease| lease.node.clone());
    writes.extend(tick::settle(&mut job.record, schedule, lapsed.as_ref(), now.at));
    let over = job.record.clock.as_ref().is_none_or(|clock| clock.open().is_none());
    if over && job.record.lease.is_none() {
        writes.extend(close_as_lost(job, past, now.at));
    }
    publish(job, before.as_deref(), &mut writes);
    writes
}

fn learn(job: &mut Job, schedule: &Schedule, seen: Option<&Sight>, now: Now) -> Vec<Write> {
    let Some(seen) = seen else { return Vec::new() };
    // What a store in doubt began is younger than what was seen, and knows nothing.
    let record = &mut job.record;
    let blank = record.clock.take_if(|clock| seen.changed.is_some() && clock.is_blank());
    let writes = tick::learn(record, job.released, schedule, seen, now.at);
    if record.clock.is_none() {
        record.clock = blank;
    }
    writes
}

fn publish(job: &mut Job, before: Option<&tick::Clock>, writes: &mut Vec<Write>) {
    if job.record.clock.as_deref() != before {
        writes.push(job.publish(EventKind::Scheduled));
    }
}

/// A person asks for a run; `entry` is the outcome of its tick, if that is known beside the record. Settles first.
///
/// # Errors
/// [`tick::Refused`].
pub fn ask(
    job: &mut Job,
    schedule: &Schedule,
    asked: Asked,
    entry: Option<&Entry>,
    now: Now,
) -> (Result<TickName, Refused>, Vec<Write>) {
    let before = job.record.clone();
    let lapsed = job.lapsed.as_ref().map(|lease| lease.node.clone());
    let mut writes = tick::settle(&mut job.record, schedule, lapsed.as_ref(), now.at);
    let answer = tick::ask(&mut job.record, schedule, asked, entry, now.at);
    if answer.is_err() {
        // Nothing is written: the act would be noted that was refused.
        job.record = before;
        return (answer, Vec::new());
    }
    publish(job, before.clock.as_deref(), &mut writes);
    (answer, writes)
}

/// A run that waits is taken back. Whether there was one.
pub fn take_back(job: &mut Job, tick: &TickName) -> (bool, Vec<Write>) {
    let gone = tick::take_back(&mut job.record, tick);
    let writes = gone.then(|| job.publish(EventKind::Scheduled)).into_iter().collect();
    (gone, writes)
}

/// The newest tick that was granted lies in the future of the store's clock: that is forgotten. Whether it was so.
pub fn reset(job: &mut Job, now: Now) -> (bool, Vec<Write>) {
    let was = tick::reset(&mut job.record, now.at);
    let writes = was.then(|| job.publish(EventKind::Scheduled)).into_iter().collect();
    (was, writes)
}
