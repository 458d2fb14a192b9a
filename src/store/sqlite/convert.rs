//! Files from before jobs were records (schema 7): what stood in columns becomes texts.
//!
//! Part of the migration to schema 8, and of its transaction. The tables of before are dropped in it: a process of the version before that
//! had the file open all the same finds no table any more, and cannot write what is not read.

use rusqlite::{Connection, Row, params};
use serde::de::DeserializeOwned;

use super::deadline::Deadline;
use super::fault::{Fault, SqliteResult};
use super::file::Place;
use super::row::{corrupt, int, json, ms, uint, word};
use super::step::Moment;
use crate::domain::job::{Exit, JobRecord, LeaseRecord};
use crate::domain::lease::Token;
use crate::domain::log::LogKept;
use crate::domain::name::{JobName, NodeName, Owner, RunId};
use crate::domain::time::StoreTime;
use crate::domain::transition::Job;
use crate::store::core::{as_text, entry_text};
use crate::store::journal::RunEntry;

/// The deadline comes first: see [`Deadline::read`].
const JOBS: &str = "SELECT lease_ttl_ms, lease_expires_ns, lease_boot, lease_expires, name, version, token, participants, hold, \
    lease_node, lease_owner, lease_token, lease_since, run, last_exit, last_switch, crashes, next, given_up, moving, \
    drill, last_line, log_seq FROM jobs ORDER BY name";

const RUNS: &str = "SELECT id, node, token, started, ended, exit_code, signal, how, killed, folded FROM runs \
    WHERE job = ? AND ended IS NOT NULL ORDER BY token, n";

/// The texts of `domain::journal::LogLine`. In SQL, because there may be millions.
const LINES: &str = "INSERT INTO output (job, number, text) SELECT job, seq, json_object('seq', seq, 'at', at, 'run', run, \
    'node', node, 'stream', stream, 'text', text) FROM lines";

/// Fills the tables of schema 8 and drops those that they replace.
pub(super) fn convert(db: &Connection, place: &Place) -> SqliteResult<()> {
    let at = Moment::now(place);
    let mut jobs = db.prepare(JOBS)?;
    let mut rows = jobs.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get("name")?;
        let name = JobName::new(&name)
            .map_err(|why| corrupt(&format!("job {name}, name"), &why.to_string()))?;
        job(db, &name, row, &at)?;
    }
    db.execute_batch(LINES)?;
    db.execute_batch("DROP TABLE jobs; DROP TABLE runs; DROP TABLE lines")?;
    Ok(())
}

fn job(db: &Connection, name: &JobName, row: &Row<'_>, at: &Moment) -> SqliteResult<()> {
    let (job, until) = read(name, row, at)?;
    let newest = runs(db, name)?;
    let ended: i64 = db
        .prepare_cached("SELECT count(*) FROM entries WHERE job = ?")?
        .query_row([name.as_str()], |row| row.get(0))?;
    let ended = usize::try_from(ended).unwrap_or(usize::MAX);
    let (body, lease) = as_text(&job, newest.as_deref(), ended)?;
    let head = format!("{} {}", job.record.version, at.micros);
    db.prepare_cached("INSERT INTO records (job, head, body) VALUES (?, ?, ?)")?.execute([
        name.as_str(),
        &head,
        &body,
    ])?;
    if let (Some(text), Some(until)) = (lease, until) {
        db.prepare_cached(
            "INSERT INTO leases (job, text, ttl_ms, expires_ns, boot, expires) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            name.as_str(),
            text,
            ms(until.ttl),
            int(until.boot.0),
            until.boot_id,
            until.wall.0
        ])?;
    }
    Ok(())
}

/// Writes the entries of the history; the newest.
fn runs(db: &Connection, job: &JobName) -> SqliteResult<Option<String>> {
    let mut runs = db.prepare_cached(RUNS)?;
    let mut rows = runs.query([job.as_str()])?;
    let mut newest = None;
    while let Some(row) = rows.next()? {
        let entry = run_entry(job, row)?;
        let text = entry_text(&entry)?;
        db.prepare_cached("INSERT OR REPLACE INTO entries (job, number, text) VALUES (?, ?, ?)")?
            .execute(params![job.as_str(), int(entry.token.0), text])?;
        newest = Some(text);
    }
    Ok(newest)
}

fn run_entry(job: &JobName, row: &Row<'_>) -> SqliteResult<RunEntry> {
    let node: String = row.get("node")?;
    let end: Option<String> = row.get("how")?;
    Ok(RunEntry {
        id: RunId(row.get("id")?),
        job: job.clone(),
        node: NodeName::new(&node).map_err(|why| corrupt("runs, node", &why.to_string()))?,
        token: Token(uint(row.get("token")?)),
        started: StoreTime(row.get("started")?),
        ended: row.get::<_, Option<i64>>("ended")?.map(StoreTime),
        exit: Exit { code: row.get("exit_code")?, signal: row.get("signal")? },
        end: end.map(|end| word("runs, how", &end)).transpose()?,
        processes_killed: row.get("killed")?,
        folded: row.get("folded")?,
    })
}

/// A job, and the end of its lease if that lasts.
fn read(name: &JobName, row: &Row<'_>, at: &Moment) -> SqliteResult<(Job, Option<Deadline>)> {
    let lease = Lease::read(name, row, at)?;
    let record = JobRecord {
        name: name.clone(),
        version: uint(row.get("version")?),
        participants: member(name, row, "participants")?.unwrap_or_default(),
        hold: member(name, row, "hold")?,
        lease: lease.lease,
        run: member(name, row, "run")?,
        last_exit: member(name, row, "last_exit")?,
        last_switch: member(name, row, "last_switch")?,
        crashes: row.get("crashes")?,
        next: member(name, row, "next")?,
        given_up: row.get("given_up")?,
        moving: member(name, row, "moving")?,
        drill: member(name, row, "drill")?,
        token: lease.token,
        last_line: row.get("last_line")?,
        log_seq: uint(row.get("log_seq")?),
    };
    let log = LogKept::default();
    Ok((Job { record, lapsed: lease.lapsed, released: lease.released, log }, lease.until))
}

fn member<T: DeserializeOwned>(
    name: &JobName,
    row: &Row<'_>,
    column: &str,
) -> SqliteResult<Option<T>> {
    let bad = |column: &str, why: &str| -> Fault { corrupt(&format!("job {name}, {column}"), why) };
    json(row, column, &bad)
}

/// What the columns of a job say of its lease.
struct Lease {
    token: Token,
    lease: Option<LeaseRecord>,
    lapsed: Option<LeaseRecord>,
    released: Token,
    until: Option<Deadline>,
}

impl Lease {
    fn read(name: &JobName, row: &Row<'_>, at: &Moment) -> SqliteResult<Self> {
        let token = Token(uint(row.get("token")?));
        let lease_token = row.get::<_, Option<i64>>("lease_token")?.map(|token| Token(uint(token)));
        if row.get::<_, Option<String>>("lease_boot")?.is_none() {
            // Without a lease, its token says up to which one leases were given back, if the newest was not.
            let released = lease_token.unwrap_or(token);
            return Ok(Self { token, lease: None, lapsed: None, released, until: None });
        }
        let until = Deadline::read(row, 0)?;
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
        let released = Token(0);
        Ok(match left {
            Some(_) => {
                Self { token, lease: Some(lease), lapsed: None, released, until: Some(until) }
            }
            None => Self { token, lease: None, lapsed: Some(lease), released, until: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{SqliteStore, schema};
    use super::*;
    use crate::store::Options;
    use crate::store::jobs::Jobs as _;

    /// A file that is open elsewhere is not converted. If it happens all the same, the process of before must not go on.
    #[tokio::test]
    async fn a_process_of_the_version_before_cannot_go_on_with_a_file_that_was_converted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.db");
        let raw = |file: &Path| Connection::open(file).unwrap();
        let old = raw(&file);
        old.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        old.execute_batch(include_str!("../../../tests/it/stores/sqlite-schema-7.sql")).unwrap();
        let mut load = old.prepare("SELECT version FROM jobs WHERE name = ?").unwrap();
        let mut save = old.prepare("UPDATE jobs SET version = version + 1 WHERE name = ?").unwrap();
        let mut end = old.prepare("UPDATE runs SET ended = 1 WHERE job = ?").unwrap();
        assert_eq!(load.query_row(["held"], |row| row.get::<_, i64>(0)), Ok(3));
        assert_eq!(save.execute(["held"]), Ok(1));
        let url = format!("sqlite:{}", file.display());
        schema::migrate(&mut raw(&file), &Place::parse(&url).unwrap()).unwrap();
        for (refused, table) in [
            (load.query_row(["held"], |row| row.get::<_, i64>(0)).unwrap_err(), "jobs"),
            (save.execute(["held"]).unwrap_err(), "jobs"),
            (end.execute(["outbound"]).unwrap_err(), "runs"),
        ] {
            assert!(refused.to_string().contains(&format!("no such table: {table}")), "{refused}");
        }
        drop((load, save, end));
        drop(old);
        let store = SqliteStore::connect(&url, &Options::default()).await.unwrap();
        let job = JobName::new("outbound").unwrap();
        assert_eq!(store.snapshot(&[job]).await.unwrap().jobs[0].version, 7);
    }
}
