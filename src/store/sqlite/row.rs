//! A job's row: read, shown as a [`JobRecord`], written back.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::deadline::Deadline;
use super::fault::{Fault, Outcome};
use super::step::Moment;
use crate::domain::job::{JobRecord, LeaseRecord};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, Owner};
use crate::domain::time::StoreTime;
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

/// A lease as it stands in the row: it may have run out.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) node: NodeName,
    pub(super) owner: Owner,
    pub(super) token: Token,
    pub(super) since: StoreTime,
    pub(super) until: Deadline,
}

impl Lease {
    /// From the columns of `jobs`; `None` when there is none.
    pub(super) fn read(row: &Row<'_>, bad: &dyn Fn(&str, &str) -> Fault) -> Outcome<Option<Self>> {
        let Some(until) = Deadline::read(row)? else { return Ok(None) };
        let node: String = row.get("lease_node")?;
        Ok(Some(Self {
            node: NodeName::new(&node).map_err(|why| bad("lease_node", &why.to_string()))?,
            owner: Owner(row.get("lease_owner")?),
            token: Token(uint(row.get("lease_token")?)),
            since: StoreTime(row.get("lease_since")?),
            until,
        }))
    }

    /// As everybody outside sees it; `None` when it has run out.
    pub(super) fn shown(self, at: &Moment) -> Option<LeaseRecord> {
        let expires_in = self.until.left(at)?;
        let Self { node, owner, token, since, until } = self;
        Some(LeaseRecord { node, owner, token, since, expires_in, ttl: until.ttl })
    }
}

/// A job's row. The lease is kept beside the record, because a record shows only one that lasts.
pub(super) struct Job {
    pub(super) record: JobRecord,
    pub(super) lease: Option<Lease>,
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

impl Job {
    /// Reads the row; an untouched job when there is none.
    pub(super) fn load(db: &Connection, name: &JobName) -> Outcome<Self> {
        let mut statement = db.prepare_cached(SELECT)?;
        let mut rows = statement.query([name.as_str()])?;
        match rows.next()? {
            Some(row) => Self::from_row(name, row),
            None => Ok(Self { record: JobRecord::untouched(name.clone()), lease: None }),
        }
    }

    fn from_row(name: &JobName, row: &Row<'_>) -> Outcome<Self> {
        let bad = |column: &str, why: &str| corrupt(&format!("job {name}, {column}"), why);
        let crashes: i64 = row.get("crashes")?;
        let record = JobRecord {
            name: name.clone(),
            version: uint(row.get("version")?),
            participants: json(row, "participants", &bad)?.unwrap_or_default(),
            hold: json(row, "hold", &bad)?,
            lease: None,
            run: json(row, "run", &bad)?,
            last_exit: json(row, "last_exit", &bad)?,
            last_switch: json(row, "last_switch", &bad)?,
            crashes: u32::try_from(crashes).unwrap_or(u32::MAX),
            next: json(row, "next", &bad)?,
            given_up: row.get("given_up")?,
            moving: json(row, "moving", &bad)?,
            drill: json(row, "drill", &bad)?,
            token: Token(uint(row.get("token")?)),
            last_line: row.get("last_line")?,
            log_seq: uint(row.get("log_seq")?),
        };
        let lease = Lease::read(row, &bad)?;
        Ok(Self { record, lease })
    }

    /// As everybody outside sees it.
    pub(super) fn shown(self, at: &Moment) -> JobRecord {
        let lease = self.lease.and_then(|lease| lease.shown(at));
        JobRecord { lease, ..self.record }
    }

    /// The lease, if it lasts, and what is left of it.
    pub(super) fn living_lease(&self, at: &Moment) -> Option<(&Lease, Duration)> {
        let lease = self.lease.as_ref()?;
        Some((lease, lease.until.left(at)?))
    }

    /// No crash of the past counts any more.
    pub(super) fn forgive(&mut self) {
        self.record.given_up = false;
        self.record.crashes = 0;
        self.record.next = None;
    }

    /// Refuses a writer that a newer token has replaced.
    pub(super) fn check_token(&mut self, sent: Token) -> Outcome<()> {
        let current = self.record.token;
        if sent < current {
            return Err(StoreError::Stale { sent, current }.into());
        }
        self.record.token = sent;
        Ok(())
    }

    /// Writes the row.
    pub(super) fn save(&self, db: &Connection) -> Outcome<()> {
        let record = &self.record;
        let lease = self.lease.as_ref();
        db.prepare_cached(SAVE)?.execute(named_params! {
            ":name": record.name.as_str(),
            ":version": int(record.version),
            ":token": int(record.token.0),
            ":participants": text(&record.participants)?,
            ":hold": optional(record.hold.as_ref())?,
            ":lease_node": lease.map(|lease| lease.node.as_str()),
            ":lease_owner": lease.map(|lease| lease.owner.as_str()),
            ":lease_token": lease.map(|lease| int(lease.token.0)),
            ":lease_since": lease.map(|lease| lease.since.0),
            ":lease_ttl_ms": lease.map(|lease| ms(lease.until.ttl)),
            ":lease_expires_ns": lease.map(|lease| int(lease.until.boot.0)),
            ":lease_boot": lease.map(|lease| lease.until.boot_id.as_str()),
            ":lease_expires": lease.map(|lease| lease.until.wall.0),
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

/// `what` cannot be read, because of `why`.
pub(super) fn corrupt(what: &str, why: &str) -> Fault {
    StoreError::Corrupt(format!("{what}: {why}")).into()
}

/// A text column that holds JSON, or nothing.
pub(super) fn json<T: DeserializeOwned>(
    row: &Row<'_>,
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

/// One value of one row, if there is one.
pub(super) fn find<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Outcome<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}
