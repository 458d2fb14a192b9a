//! A job's row: read as a [`Job`], and written back as transitions leave it.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::deadline::Deadline;
use super::fault::{Fault, Outcome};
use super::step::Moment;
use crate::domain::job::{JobRecord, LeaseRecord};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, Owner};
use crate::domain::time::StoreTime;
use crate::domain::transition::Job;
use crate::store::StoreError;

/// SQLite's integers are signed; ours never come near the difference.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The way back.
pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Milliseconds, as columns keep durations.
pub(super) fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// A job's row: the job, as it was read and as transitions leave it.
pub(super) struct Row {
    pub(super) job: Job,
    before: Job,
    /// Of the lease that was read.
    until: Option<Deadline>,
}

const SELECT: &str = "SELECT version, token, participants, hold, lease_node, lease_owner, lease_token, lease_since, \
    lease_ttl_ms, lease_expires_ns, lease_boot, lease_expires, run, last_exit, last_switch, crashes, next, \
    given_up, moving, drill, last_line, log_seq FROM jobs WHERE name = ?";

const SAVE: &str = "INSERT INTO jobs (name, version, token, participants, hold, lease_node, lease_owner, \
    lease_token, lease_since, lease_ttl_ms, lease_expires_ns, lease_boot, lease_expires, run, last_exit, last_switch, \
    crashes, next, given_up, moving, drill, last_line, log_seq) \
    VALUES (:name, :version, :token, :participants, :hold, :lease_node, :lease_owner, :lease_token, :lease_since, \
    :lease_ttl_ms, :lease_expires_ns, :lease_boot, :lease_expires, :run, :last_exit, :last_switch, :crashes, :next, :given_up, \
    :moving, :drill, :last_line, :log_seq) \
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, token = excluded.token, \
    participants = excluded.participants, hold = excluded.hold, lease_node = excluded.lease_node, \
    lease_owner = excluded.lease_owner, lease_token = excluded.lease_token, lease_since = excluded.lease_since, \
    lease_ttl_ms = excluded.lease_ttl_ms, lease_expires_ns = excluded.lease_expires_ns, \
    lease_boot = excluded.lease_boot, lease_expires = excluded.lease_expires, run = excluded.run, last_exit = excluded.last_exit, \
    last_switch = excluded.last_switch, crashes = excluded.crashes, next = excluded.next, \
    given_up = excluded.given_up, moving = excluded.moving, drill = excluded.drill, last_line = excluded.last_line, \
    log_seq = excluded.log_seq";

impl Row {
    /// Reads the row; an untouched job when there is none.
    pub(super) fn load(db: &Connection, name: &JobName, at: &Moment) -> Outcome<Self> {
        let mut statement = db.prepare_cached(SELECT)?;
        let mut rows = statement.query([name.as_str()])?;
        let (job, until) = match rows.next()? {
            Some(row) => Self::read(name, row, at)?,
            None => (Job::untouched(name.clone()), None),
        };
        Ok(Self { before: job.clone(), job, until })
    }

    fn read(
        name: &JobName,
        row: &rusqlite::Row<'_>,
        at: &Moment,
    ) -> Outcome<(Job, Option<Deadline>)> {
        let bad = |column: &str, why: &str| corrupt(&format!("job {name}, {column}"), why);
        let crashes: i64 = row.get("crashes")?;
        let Held { token, lease, lapsed, released, until } = Held::read(name, row, at)?;
        let record = JobRecord {
            name: name.clone(),
            version: uint(row.get("version")?),
            participants: json(row, "participants", &bad)?.unwrap_or_default(),
            hold: json(row, "hold", &bad)?,
            lease,
            run: json(row, "run", &bad)?,
            last_exit: json(row, "last_exit", &bad)?,
            last_switch: json(row, "last_switch", &bad)?,
            crashes: u32::try_from(crashes).unwrap_or(u32::MAX),
            next: json(row, "next", &bad)?,
            given_up: row.get("given_up")?,
            moving: json(row, "moving", &bad)?,
            drill: json(row, "drill", &bad)?,
            token,
            last_line: row.get("last_line")?,
            log_seq: uint(row.get("log_seq")?),
        };
        Ok((Job { record, lapsed, released }, until))
    }

    /// Writes the row, if it is another than the one that was read. A lease that changed begins anew.
    pub(super) fn save(self, db: &Connection, at: &Moment) -> Outcome<()> {
        let Self { job, before, until } = self;
        if job == before {
            return Ok(());
        }
        let record = &job.record;
        let lease = record.lease.as_ref().or(job.lapsed.as_ref());
        let until = match &record.lease {
            Some(lease) if before.record.lease.as_ref() != Some(lease) => {
                Some(Deadline::after(at, lease.expires_in))
            }
            _ => until.filter(|_| lease.is_some()),
        };
        let until = until.as_ref();
        db.prepare_cached(SAVE)?.execute(named_params! {
            ":name": record.name.as_str(),
            ":version": int(record.version),
            ":token": int(record.token.0),
            ":participants": text(&record.participants)?,
            ":hold": optional(record.hold.as_ref())?,
            ":lease_node": lease.map(|lease| lease.node.as_str()),
            ":lease_owner": lease.map(|lease| lease.owner.as_str()),
            ":lease_token": lease_token(&job).map(|token| int(token.0)),
            ":lease_since": lease.map(|lease| lease.since.0),
            ":lease_ttl_ms": lease.map(|lease| ms(lease.ttl)),
            ":lease_expires_ns": until.map(|until| int(until.boot.0)),
            ":lease_boot": until.map(|until| until.boot_id.as_str()),
            ":lease_expires": until.map(|until| until.wall.0),
            ":run": optional(record.run.as_ref())?,
            ":last_exit": optional(record.last_exit.as_ref())?,
            ":last_switch": optional(record.last_switch.as_ref())?,
            ":crashes": i64::from(record.crashes),
            ":next": optional(record.next.as_ref())?,
            ":given_up": record.given_up,
            ":moving": optional(record.moving.as_ref())?,
            ":drill": optional(record.drill.as_ref())?,
            ":last_line": record.last_line,
            ":log_seq": int(record.log_seq),
        })?;
        Ok(())
    }
}

/// The token of the lease in the row. Without a lease it says up to which token leases were given back, if the newest was not:
/// a report under a token that this file has forgotten must not look like the end of its lease.
fn lease_token(job: &Job) -> Option<Token> {
    let lease = job.record.lease.as_ref().or(job.lapsed.as_ref());
    let released = (job.released < job.record.token).then_some(job.released);
    lease.map(|lease| lease.token).or(released)
}

/// What a row says of the lease.
pub(super) struct Held {
    pub(super) token: Token,
    pub(super) lease: Option<LeaseRecord>,
    pub(super) lapsed: Option<LeaseRecord>,
    pub(super) released: Token,
    until: Option<Deadline>,
}

impl Held {
    pub(super) fn read(name: &JobName, row: &rusqlite::Row<'_>, at: &Moment) -> Outcome<Self> {
        let token = Token(uint(row.get("token")?));
        let lease_token = row.get::<_, Option<i64>>("lease_token")?.map(|token| Token(uint(token)));
        let Some(until) = Deadline::read(row)? else {
            let released = lease_token.unwrap_or(token);
            return Ok(Self { token, lease: None, lapsed: None, released, until: None });
        };
        let node: String = row.get("lease_node")?;
        let node = NodeName::new(&node)
            .map_err(|why| corrupt(&format!("job {name}, lease_node"), &why.to_string()))?;
        let left = until.left(at);
        let lease = LeaseRecord {
            node,
            owner: Owner(row.get("lease_owner")?),
            token: lease_token.unwrap_or_default(),
            since: StoreTime(row.get("lease_since")?),
            expires_in: left.unwrap_or_default(),
            ttl: until.ttl,
        };
        let (lease, lapsed) =
            if left.is_some() { (Some(lease), None) } else { (None, Some(lease)) };
        Ok(Self { token, lease, lapsed, released: Token(0), until: Some(until) })
    }
}

/// `what` cannot be read, because of `why`.
pub(super) fn corrupt(what: &str, why: &str) -> Fault {
    StoreError::Corrupt(format!("{what}: {why}")).into()
}

/// A text column that holds JSON, or nothing.
pub(super) fn json<T: DeserializeOwned>(
    row: &rusqlite::Row<'_>,
    column: &str,
    bad: &dyn Fn(&str, &str) -> Fault,
) -> Outcome<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|why| bad(column, &why.to_string()))
}

/// The JSON of `value`.
pub(super) fn text<T: Serialize>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).map_err(|why| corrupt("a value to be kept", &why.to_string()))
}

fn optional<T: Serialize>(value: Option<&T>) -> Outcome<Option<String>> {
    value.map(text).transpose()
}

/// The variant whose word stands in the column.
pub(super) fn word<T: DeserializeOwned>(what: &str, word: &str) -> Outcome<T> {
    let value = serde_json::Value::String(word.to_owned());
    serde_json::from_value(value).map_err(|why| corrupt(what, &why.to_string()))
}

/// One value of one row, if there is one.
pub(super) fn find<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Outcome<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}
