//! Encoding and decoding of change events: the event, and the record with it.
//!
//! An engine that publishes messages sends [`members`] with the record, and [`understood`] reads them. One with a table of events beside the records
//! passes the record on with [`record`]. A record that cannot be read is left out, for an event only saves time; the next call that reads the job
//! says what is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Known;
use crate::dispatch::Waiter;
use crate::engine::{Stored, StoredLease};
use crate::events::{StoreEvent, Told};
use soloist_domain::event::{EventKind, JobEvent};
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;

/// Some changes of one step as members of a JSON object: the job, its version after them, the last event, and all of them if
/// there are more. Empty when nothing is to be told.
pub fn members(events: &[JobEvent]) -> String {
    let Some(last) = events.last() else { return String::new() };
    let mut told = format!(
        "\"job\":\"{}\",\"version\":{},\"event\":\"{}\"",
        last.job,
        last.version,
        last.event.as_str()
    );
    if events.len() > 1 {
        let words: Vec<String> =
            events.iter().map(|event| format!("\"{}\"", event.event.as_str())).collect();
        told += &format!(",\"events\":[{}]", words.join(","));
    }
    told
}

/// What is published on the channels of jobs and waiters.
#[derive(serde::Deserialize)]
struct Message {
    job: Option<JobName>,
    #[serde(default)]
    version: u64,
    event: Option<EventKind>,
    /// All that happened in one step, if it was more than one thing; `event` is the last of them.
    #[serde(default)]
    events: Vec<EventKind>,
    /// When, in microseconds.
    at: Option<i64>,
    record: Option<Box<RawValue>>,
    lease: Option<Box<RawValue>>,
    /// Of the lease, in milliseconds.
    #[serde(default)]
    left: i64,
    #[serde(default)]
    wake: Vec<Waiter>,
}

/// What a message says, in order; a newer Soloist may publish words that this one does not know.
pub fn understood(payload: &[u8], known: &Known) -> Vec<StoreEvent> {
    let said = match serde_json::from_slice::<Message>(payload) {
        Ok(said) => said,
        Err(error) => {
            tracing::debug!(%error, "an event that is not understood");
            return Vec::new();
        }
    };
    let (Some(job), Some(last)) = (&said.job, said.event) else {
        return vec![StoreEvent::Wake(said.wake)];
    };
    let kinds = if said.events.is_empty() { vec![last] } else { said.events };
    let before = said.version.saturating_sub(kinds.len() as u64);
    let mut events = Vec::with_capacity(kinds.len() + 1);
    if let (Some(body), Some(at)) = (said.record, said.at) {
        let text = said.lease.map(|text| text.get().to_owned());
        let stored = Stored {
            head: format!("{} {at}", said.version),
            body: body.get().to_owned(),
            lease: text.map(|text| StoredLease { text, left: left_of(said.left) }),
        };
        events.extend(record(known, job, stored, StoreTime(at.div_euclid(1_000))));
    }
    for (event, version) in kinds.into_iter().zip(before + 1..) {
        events.push(StoreEvent::Job(JobEvent { job: job.clone(), version, event }));
    }
    events
}

/// The record of `job` as it was at `at`, for the followers of the job. `None` when there is none, or none that can be read.
pub fn record(known: &Known, job: &JobName, stored: Stored, at: StoreTime) -> Option<StoreEvent> {
    if stored.head.is_empty() {
        return None;
    }
    match known.heard(job, stored) {
        Ok(record) => Some(StoreEvent::Record(Told { record: Arc::new(record), at })),
        Err(error) => {
            tracing::debug!(%error, "a record that is not understood");
            None
        }
    }
}

/// What is left of a lease, from milliseconds. Without an end it would outlive its length, as after the clock was set back.
pub fn left_of(left: i64) -> Duration {
    u64::try_from(left).map_or(Duration::MAX, Duration::from_millis)
}
