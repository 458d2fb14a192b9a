//! The port of jobs on SQLite: records, leases, entries of the history and lines of output as texts in tables of their own.
//!
//! One commit is one transaction, which compares the conditions and writes everything. It decides nothing and never looks inside a text. The
//! store's clock is this machine's wall clock, which people see and can set; a lease ends by CLOCK_BOOTTIME, which cannot be set
//! (`deadline.rs`). When something is in doubt: see `same.rs`.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::deadline::Deadline;
use super::fault::SqliteResult;
use super::row::{corrupt, find, int};
use super::step::{Moment, Step};
use super::{SqliteStore, clock, records};
use soloist_domain::event::JobEvent;
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::{Boot, StoreTime, signed_millis};
use soloist_store::core::{self, Known};
use soloist_store::engine::{
    Beside, Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, Stored, StoredLease, Way,
};
use soloist_store::records::Write;
use soloist_store::{Result, StoreError};

/// The wall clock is read again in the commit. If it differs by more than this, and by the time that a commit may be on its way, it was
/// set, or the writer waited so long that the decision is made anew.
const SLACK: Duration = Duration::from_millis(250);

/// The columns of a lease that [`lasting`] reads.
const LEASE: &str = "text, ttl_ms, expires_ns, boot, expires";

#[async_trait]
impl Engine for SqliteStore {
    fn known(&self) -> &Known {
        &self.inner.known
    }

    fn estimate(&self, _: &JobName, _: Boot) -> Option<(StoreTime, Duration)> {
        Some((Moment::now(&self.inner.place).wall, SLACK))
    }

    async fn read(&self, jobs: &[JobName], _: Way) -> Result<Reading> {
        let jobs = jobs.to_vec();
        self.read(move |db, at| {
            let epoch = find(db, "SELECT value FROM meta WHERE key = 'epoch'", [])?;
            let epoch = epoch.ok_or_else(|| StoreError::Corrupt("meta, epoch: missing".into()))?;
            let records =
                jobs.iter().map(|job| stored(db, job, at)).collect::<SqliteResult<_>>()?;
            Ok(Reading { epoch, at: at.wall, quarantine: at.quarantine, records })
        })
        .await
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let jobs = jobs.to_vec();
        self.read(move |db, at| observed(db, &jobs, at)).await
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        let change = Owned::of(change);
        self.write(move |step| change.commit(step)).await
    }

    fn sees_lists(&self) -> bool {
        true
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let leases: Vec<(JobName, String, Duration)> =
            leases.iter().map(|keep| (keep.job.clone(), keep.text.clone(), keep.ttl)).collect();
        self.write(move |step| keep(step, &leases)).await
    }

    async fn forget(&self, job: &JobName, head: &str) -> Result<bool> {
        let (job, head) = (job.clone(), head.to_owned());
        self.write(move |step| {
            if lease(step, &job, &step.at)?.is_some() {
                return Ok(false);
            }
            let gone = step
                .prepare_cached("DELETE FROM records WHERE job = ? AND head = ?")?
                .execute([job.as_str(), &head])?;
            if gone > 0 {
                step.prepare_cached("DELETE FROM leases WHERE job = ?")?.execute([job.as_str()])?;
            }
            Ok(gone > 0)
        })
        .await
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        let (job, before, limit) = (job.clone(), before.cloned(), int(limit as u64));
        self.read(move |db, at| {
            let stored = stored(db, &job, at)?;
            let before = match before {
                None => i64::MAX,
                Some(id) => {
                    // An id says nothing about the order. Nothing is older than one that is not known.
                    let number = "SELECT number FROM entries WHERE job = ? AND instr(text, ?) = 1";
                    find(db, number, [job.as_str(), &format!("{id} ")])?.unwrap_or(i64::MIN)
                }
            };
            let mut page = db.prepare_cached(
                "SELECT text FROM entries WHERE job = ? AND number < ? ORDER BY number DESC LIMIT ?",
            )?;
            let entries = page.query_map(params![job.as_str(), before, limit], |row| row.get(0))?;
            Ok(Page { stored, entries: entries.collect::<rusqlite::Result<_>>()? })
        })
        .await
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        let (job, number, mark) = (job.clone(), int(number), mark.replace('\'', "''"));
        self.read(move |db, _| {
            let job = job.as_str();
            let this = "SELECT text FROM entries WHERE job = ? AND number = ?";
            let oldest = "SELECT text FROM entries WHERE job = ?1 \
                AND number < (SELECT max(number) FROM entries WHERE job = ?1) ORDER BY number LIMIT 1";
            // The index knows one mark; another would be refused here and not looked for in a thousand texts. When it stands in the newest of
            // all, it stands in no other.
            let marked = format!(
                "SELECT number, text FROM entries INDEXED BY entries_marked \
                 WHERE job = ? AND instr(text, '{mark}') > 0 ORDER BY number LIMIT 1"
            );
            let marked: Option<(i64, String)> = db
                .prepare_cached(&marked)?
                .query_row([job], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let newest: Option<i64> =
                find(db, "SELECT max(number) FROM entries WHERE job = ?", [job])?.flatten();
            let marked = marked.filter(|(number, _)| Some(*number) != newest);
            Ok([
                find(db, this, params![job, number])?,
                find(db, oldest, [job])?,
                marked.map(|(_, text)| text),
            ])
        })
        .await
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        self.read(all_leases).await
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        let (name, limit) = (job.clone(), int(limit as u64));
        self.read(move |db, _| {
            let (which, order) = match part {
                Part::After(_) => (">", "ASC"),
                Part::Newest | Part::Before(_) => ("<", "DESC"),
            };
            let number = match part {
                Part::After(seq) | Part::Before(seq) => int(seq),
                Part::Newest => i64::MAX,
            };
            let mut found = db.prepare_cached(&format!(
                "SELECT text FROM output WHERE job = ? AND number {which} ? ORDER BY number {order} LIMIT ?"
            ))?;
            let lines = found.query_map(params![name.as_str(), number, limit], |row| row.get(0))?;
            let mut lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
            if order == "DESC" {
                lines.reverse();
            }
            Ok(lines)
        })
        .await
    }

    fn log_bounds(&self) -> LogBounds {
        self.inner.log
    }
}

/// The record of `job` and the lease beside it.
pub(super) fn stored(db: &Connection, job: &JobName, at: &Moment) -> SqliteResult<Stored> {
    let (head, body) = db
        .prepare_cached("SELECT head, body FROM records WHERE job = ?")?
        .query_row([job.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    Ok(Stored { head, body, lease: lease(db, job, at)? })
}

fn lease(db: &Connection, job: &JobName, at: &Moment) -> SqliteResult<Option<StoredLease>> {
    let found = db
        .prepare_cached(&format!("SELECT {LEASE} FROM leases WHERE job = ?"))?
        .query_row([job.as_str()], |row| lasting(row, 0, at))
        .optional()?;
    Ok(found.flatten())
}

/// The lease whose columns, [`LEASE`], begin at `first`; none when it is over.
fn lasting(row: &Row<'_>, first: usize, at: &Moment) -> rusqlite::Result<Option<StoredLease>> {
    let Some(left) = Deadline::read(row, first + 1)?.left(at) else { return Ok(None) };
    Ok(Some(StoredLease { text: row.get(first)?, left }))
}

/// Every lease that lasts, by name.
fn all_leases(db: &Connection, at: &Moment) -> SqliteResult<Vec<(JobName, StoredLease)>> {
    let mut leases = db.prepare_cached(&format!("SELECT job, {LEASE} FROM leases ORDER BY job"))?;
    let mut rows = leases.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(lease) = lasting(row, 1, at)? else { continue };
        all.push((name(&row.get::<_, String>(0)?)?, lease));
    }
    Ok(all)
}

fn name(job: &str) -> SqliteResult<JobName> {
    JobName::new(job).map_err(|why| corrupt(&format!("job {job}"), &why.to_string()))
}

/// Version and time left of the lease, of each.
fn observed(
    db: &Connection,
    jobs: &[JobName],
    at: &Moment,
) -> SqliteResult<Vec<(u64, Option<Duration>)>> {
    let mut heads = db.prepare_cached("SELECT head FROM records WHERE job = ?")?;
    let mut ends =
        db.prepare_cached("SELECT ttl_ms, expires_ns, boot, expires FROM leases WHERE job = ?")?;
    let each = jobs.iter().map(|job| {
        let version = |row: &Row<'_>| Ok(core::version(row.get_ref(0)?.as_str()?));
        let version = match heads.query_row([job.as_str()], version).optional()? {
            None => 0,
            Some(version) => version.ok_or_else(|| {
                corrupt(&format!("job {job}, head"), "it does not begin with a version")
            })?,
        };
        let left = |row: &Row<'_>| Ok(Deadline::read(row, 0)?.left(at));
        Ok((version, ends.query_row([job.as_str()], left).optional()?.flatten()))
    });
    each.collect()
}

/// A [`Change`] on its way to the writing thread.
struct Owned {
    job: JobName,
    head: String,
    lease: String,
    window: std::ops::Range<StoreTime>,
    /// A free lease is granted.
    calm: bool,
    unlisted: Option<String>,
    record: Option<(u64, String)>,
    lease_write: LeaseWrite,
    beside: Vec<Beside>,
    tell: Vec<JobEvent>,
    notes: Vec<Write>,
}

impl Owned {
    fn of(change: &Change<'_>) -> Self {
        Self {
            job: change.job.clone(),
            head: change.head.to_owned(),
            lease: change.lease.to_owned(),
            window: change.window.clone(),
            calm: change.calm,
            unlisted: change.unlisted.map(str::to_owned),
            record: change.record.map(|(version, body)| (version, body.to_owned())),
            lease_write: change.lease_write.clone(),
            beside: change.beside.clone(),
            tell: change.tell.to_vec(),
            notes: change.notes.clone(),
        }
    }

    fn commit(self, step: &Step<'_>) -> SqliteResult<Commit> {
        let quarantine = step.at.quarantine;
        if self.calm && !quarantine.is_zero() || !self.holds(step)? {
            let stored = stored(step, &self.job, &step.at)?;
            return Ok(Commit::Refused { stored, quarantine });
        }
        if let Some(list) = &self.unlisted
            && find::<i64>(step, "SELECT 1 FROM lists WHERE list = ? LIMIT 1", [list])?.is_some()
        {
            return Ok(Commit::Listed);
        }
        self.write_lease(step)?;
        for one in &self.beside {
            write_beside(step, &self.job, one)?;
        }
        for event in &self.tell {
            step.publish(event)?;
        }
        for note in &self.notes {
            records::write(step, note, clock::of_writer(step)?)?;
        }
        let Some((version, body)) = self.record else {
            return Ok(Commit::Done { head: self.head, unsafe_grant: None });
        };
        let head = format!("{version} {}", step.at.micros);
        step.prepare_cached(
            "INSERT INTO records (job, head, body) VALUES (?, ?, ?) \
             ON CONFLICT (job) DO UPDATE SET head = excluded.head, body = excluded.body",
        )?
        .execute([self.job.as_str(), &head, &body])?;
        Ok(Commit::Done { head, unsafe_grant: None })
    }

    fn holds(&self, step: &Step<'_>) -> SqliteResult<bool> {
        let head: Option<String> =
            find(step, "SELECT head FROM records WHERE job = ?", [self.job.as_str()])?;
        let lease = match lease(step, &self.job, &step.at)? {
            Some(lease) => !self.lease.is_empty() && lease.text.starts_with(&self.lease),
            None => self.lease.is_empty(),
        };
        let same = head.unwrap_or_default() == self.head;
        Ok(same && lease && self.window.contains(&step.at.wall))
    }

    fn write_lease(&self, step: &Step<'_>) -> SqliteResult<()> {
        let job = self.job.as_str();
        match &self.lease_write {
            LeaseWrite::None => 0,
            LeaseWrite::For(text, ttl) => {
                let until = Deadline::after(&step.at, *ttl);
                step.prepare_cached(
                    "INSERT INTO leases (job, text, ttl_ms, expires_ns, boot, expires) VALUES (?, ?, ?, ?, ?, ?) \
                     ON CONFLICT (job) DO UPDATE SET text = excluded.text, ttl_ms = excluded.ttl_ms, \
                     expires_ns = excluded.expires_ns, boot = excluded.boot, expires = excluded.expires",
                )?
                .execute(params![
                    job,
                    text,
                    signed_millis(until.ttl),
                    int(until.boot.0),
                    until.boot_id,
                    until.wall.0
                ])?
            }
            LeaseWrite::Text(text) => step
                .prepare_cached("UPDATE leases SET text = ? WHERE job = ?")?
                .execute([text, job])?,
            LeaseWrite::Drop => {
                step.prepare_cached("DELETE FROM leases WHERE job = ?")?.execute([job])?
            }
        };
        Ok(())
    }
}

fn write_beside(step: &Step<'_>, job: &JobName, one: &Beside) -> SqliteResult<()> {
    let job = job.as_str();
    match one {
        Beside::Index { number, text } => step
            .prepare_cached("INSERT OR REPLACE INTO entries (job, number, text) VALUES (?, ?, ?)")?
            .execute(params![job, int(*number), text])?,
        Beside::Unindex { number } => step
            .prepare_cached("DELETE FROM entries WHERE job = ? AND number = ?")?
            .execute(params![job, int(*number)])?,
        // The record counts the lines. One that was put back by hand counts some again; that must not stop the output.
        Beside::Append { number, text } => step
            .prepare_cached("INSERT OR REPLACE INTO output (job, number, text) VALUES (?, ?, ?)")?
            .execute(params![job, int(*number), text])?,
        Beside::Trim(kept) => step
            .prepare_cached(
                "DELETE FROM output WHERE job = ?1 AND number <= (SELECT max(number) FROM output WHERE job = ?1) - ?2",
            )?
            .execute(params![job, int(*kept as u64)])?,
    };
    Ok(())
}

/// What was left of each lease that is kept.
fn keep(
    step: &Step<'_>,
    leases: &[(JobName, String, Duration)],
) -> SqliteResult<Vec<Option<Duration>>> {
    let mut find = step.prepare_cached(&format!(
        "SELECT {LEASE} FROM leases WHERE job = ?1 AND EXISTS (SELECT 1 FROM records WHERE job = ?1)"
    ))?;
    let mut keep = step.prepare_cached(
        "UPDATE leases SET ttl_ms = ?, expires_ns = ?, boot = ?, expires = ? WHERE job = ?",
    )?;
    let each = leases.iter().map(|(job, begins, ttl)| {
        let left = |row: &Row<'_>| {
            let same = row.get_ref(0)?.as_str()?.starts_with(begins);
            Ok(Deadline::read(row, 1)?.left(&step.at).filter(|_| same))
        };
        let Some(left) = find.query_row([job.as_str()], left).optional()?.flatten() else {
            return Ok(None);
        };
        let Deadline { ttl, boot, boot_id, wall } = Deadline::after(&step.at, *ttl);
        keep.execute(params![signed_millis(ttl), int(boot.0), boot_id, wall.0, job.as_str()])?;
        Ok(Some(left))
    });
    let kept: Vec<_> = each.collect::<SqliteResult<_>>()?;
    if kept.iter().any(Option::is_some) {
        step.has_kept()?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::name::UserName;
    use soloist_store::Options;
    use soloist_store::jobs::Jobs as _;
    use soloist_store::journal::Journal as _;
    use soloist_store::records::OfAnyKind as _;

    /// The wall clock was set between the decision and its commit, or the writer waited for long.
    #[tokio::test]
    async fn a_commit_outside_its_window_writes_nothing_and_says_what_is_newest() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
        let store = SqliteStore::connect(&url, &Options::default()).await.unwrap();
        let (job, li) = (JobName::new("outbound").unwrap(), UserName::new("li").unwrap());
        store.law().participate(&job, &li, true, None).await.unwrap();
        let (now, slack) = store.estimate(&job, soloist_process::clock::boot()).unwrap();
        let newest = Engine::read(&store, std::slice::from_ref(&job), Way::Rest)
            .await
            .unwrap()
            .records
            .remove(0);
        for window in [StoreTime(0)..StoreTime(now.0 - 1), now + slack * 1_000..StoreTime(i64::MAX)]
        {
            let change = Change {
                job: &job,
                way: Way::Rest,
                head: &newest.head,
                lease: "",
                window,
                grant: None,
                reach: Duration::ZERO,
                calm: false,
                unlisted: None,
                record: Some((7, "{}")),
                expires: None,
                lease_write: LeaseWrite::For("{}".to_owned(), Duration::from_secs(9)),
                beside: vec![Beside::Append { number: 1, text: "{}".to_owned() }],
                tell: &[],
                once: true,
                notes: Vec::new(),
            };
            let refused = store.commit(&change).await.unwrap();
            let Commit::Refused { stored, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(stored, newest);
        }
        assert_eq!(store.law().log(&job, None, 9).await.unwrap(), []);
        // The next attempt reads the clock anew.
        assert!(store.law().participate(&job, &li, false, None).await.unwrap());
    }
}
