//! Jobs and records from one store to another, through the ports.
//!
//! A job is copied as its stored texts: record, history, output. Its record keeps version and token, so both continue to grow. Leases are not
//! copied: none is held during a copy. Everything else is copied as rows, lists and entries of the audit.

use std::time::Duration;

use super::audit::{Way as AuditWay, page};
use super::shared::{AUDIT, noted, parsed, row, set, still, unset};
use super::{Case, entry, version};
use crate::engine::{Beside, Change, Commit, Engine, LeaseWrite, Part, Stored, Way};
use crate::journal::{AuditEntry, AuditFilter, LogLine};
use crate::portable::AT_ONCE;
use crate::records::{Changed, Entry, Found, Look, Plan, Records, Write};
use crate::{Result, StoreError};
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::{Stamp, StoreTime};
use soloist_domain::transition::forget::{KEPT, may_be_forgotten};

pub use super::accounts::USERS;
pub use super::credentials::TOKENS;

/// Tables of which all is copied. What nodes say of themselves is not among them, nor who waits: both say it again.
const TABLES: [&str; 13] = [
    USERS,
    TOKENS,
    super::credentials::SESSIONS,
    super::credentials::LINKS,
    super::credentials::FAILURES,
    super::sign_in::HOMES,
    super::nodes::DRAINING,
    super::alerts::INCIDENTS,
    super::alerts::MUTED,
    super::alerts::CHANNELS,
    super::timeline::MARKS,
    super::throughput::THROUGHPUT,
    super::hidden::HIDDEN,
];

/// Lists of which all is copied, beside those of each job.
const LISTS: [&str; 2] = [super::credentials::COUNTED, super::alerts::PAST];

/// No list is longer.
const LONGEST: usize = 1_000_000;

/// A job as its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTexts {
    /// The job.
    pub name: JobName,
    /// What a change of it would change.
    pub head: String,
    version: u64,
    body: String,
    /// It says nothing any more, and goes after so long.
    expires: Option<Duration>,
    /// History and output, in the order in which they are written.
    beside: Vec<Beside>,
}

impl JobTexts {
    /// It was there when it was read.
    pub fn is_there(&self) -> bool {
        !self.head.is_empty()
    }

    /// How many runs, and how many lines of output.
    pub fn counts(&self) -> (usize, usize) {
        let runs = self.beside.iter().filter(|one| matches!(one, Beside::Index { .. })).count();
        (runs, self.beside.len() - runs)
    }
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Of its record.
    pub head: String,
    /// Its lease lasts.
    pub held: bool,
    /// It says nothing any more, and may be gone at the next look.
    pub void: bool,
    /// So long the store may have forgotten a lease of it that lasts.
    pub doubted: Duration,
}

/// How jobs stand, in their order.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn standing(engine: &dyn Engine, jobs: &[JobName]) -> Result<Vec<Standing>> {
    let mut all = Vec::with_capacity(jobs.len());
    for some in jobs.chunks(AT_ONCE) {
        let reading = engine.read(some, Way::Rest).await?;
        let doubted = reading.quarantine;
        for (name, stored) in some.iter().zip(reading.records) {
            let case = Case::read(name, stored)?;
            let (held, void) = (case.lease.is_some(), case.job.record.is_void());
            all.push(Standing { head: case.head, held, void, doubted });
        }
    }
    Ok(all)
}

/// A job with its history and its output.
///
/// # Errors
/// [`StoreError::Unavailable`], [`StoreError::Corrupt`].
pub async fn read_job(engine: &dyn Engine, name: &JobName) -> Result<JobTexts> {
    let reading = engine.read(std::slice::from_ref(name), Way::Rest).await?;
    let stored = reading.records.into_iter().next().unwrap_or_default();
    let case = Case::read(name, stored.clone())?;
    let mut beside = Vec::new();
    let mut before: Option<RunId> = None;
    loop {
        let texts = engine.history(name, before.as_ref(), AT_ONCE).await?.entries;
        let full = texts.len() >= AT_ONCE;
        for text in texts {
            let run = entry(&case.job.record, &text)?;
            beside.push(Beside::Index { number: run.token.0, text });
            before = Some(run.id);
        }
        if !full {
            break;
        }
    }
    // The oldest one first, as they came.
    beside.reverse();
    let mut after = 0;
    loop {
        let texts = engine.lines(name, Part::After(after), AT_ONCE).await?;
        let full = texts.len() >= AT_ONCE;
        for text in texts {
            let line: LogLine = parsed(&format!("log of {name}"), &text)?;
            beside.push(Beside::Append { number: line.seq, text });
            after = line.seq;
        }
        if !full {
            break;
        }
    }
    let Stored { head, body, .. } = stored;
    let version = version(&head).unwrap_or_default();
    let void = may_be_forgotten(&case.job, case.history.ended, reading.at);
    let expires = void.then_some(KEPT);
    Ok(JobTexts { name: name.clone(), head, version, body, expires, beside })
}

/// Writes a job that is not there.
///
/// # Errors
/// [`StoreError::Unavailable`]: also when it is there.
pub async fn write_job(engine: &dyn Engine, job: &JobTexts) -> Result<()> {
    let mut head = String::new();
    let mut record = Some((job.version, job.body.as_str()));
    let mut portions = job.beside.chunks(AT_ONCE);
    loop {
        let portion = portions.next();
        if record.is_none() && portion.is_none() {
            return Ok(());
        }
        let change = Change {
            job: &job.name,
            way: Way::Rest,
            head: &head,
            lease: "",
            window: StoreTime(0)..StoreTime(i64::MAX / 1_000),
            grant: None,
            reach: Duration::ZERO,
            calm: false,
            unlisted: None,
            record,
            expires: job.expires,
            lease_write: LeaseWrite::None,
            beside: portion.unwrap_or_default().to_vec(),
            tell: &[],
            once: true,
            notes: Vec::new(),
        };
        match engine.commit(&change).await? {
            Commit::Done { head: written, .. } => head = written,
            Commit::Refused { .. } | Commit::Listed => {
                return Err(StoreError::Unavailable(format!(
                    "job {} was changed in the target meanwhile",
                    job.name
                )));
            }
        }
        record = None;
    }
}

/// Rows and entries of lists, as what writes them.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn read_rows(records: &dyn Records, jobs: &[JobName]) -> Result<Vec<Write>> {
    let lists = LISTS.iter().map(|list| (*list).to_owned());
    let of_jobs = jobs.iter().flat_map(|job| {
        [
            super::timeline::spans_of(job),
            super::timeline::wants_of(job),
            super::ticks::ticks_of(job),
        ]
    });
    let lists: Vec<String> = lists.chain(of_jobs).collect();
    let looks: Vec<Look> = TABLES.iter().map(|table| Look::Rows((*table).to_owned())).collect();
    let mut writes = Vec::new();
    for (table, found) in TABLES.iter().zip(records.look(&looks).await?.found) {
        let Found::Rows(rows) = found else { continue };
        let set = |(row, text)| Write::Set { table: (*table).to_owned(), row, text };
        writes.extend(rows.into_iter().map(set));
    }
    for job in jobs {
        writes.extend(read_spent(records, job).await?);
    }
    for some in lists.chunks(AT_ONCE) {
        let looks: Vec<Look> = some.iter().map(|list| Look::First(list.clone(), LONGEST)).collect();
        for (list, found) in some.iter().zip(records.look(&looks).await?.found) {
            let Found::Entries(entries) = found else { continue };
            let add = |(number, text)| Write::Add { list: list.clone(), number, text };
            writes.extend(entries.into_iter().map(add));
        }
    }
    Ok(writes)
}

/// The ticks that were spent under a name, as what writes them.
async fn read_spent(records: &dyn Records, name: &JobName) -> Result<Vec<Write>> {
    let (list, table) = (super::spent::list_of(name), super::spent::table_of(name));
    let look = Look::Described { list: list.clone(), table: table.clone(), most: LONGEST };
    let mut writes = Vec::new();
    if let Some(Found::Described(all)) = records.look(&[look]).await?.found.into_iter().next() {
        for (number, text, row) in all {
            writes.extend(row.map(|row| set(&table, &text, row)));
            writes.push(Write::Add { list: list.clone(), number, text });
        }
    }
    Ok(writes)
}

/// The next entries of the audit behind that number.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn read_audit(records: &dyn Records, after: u64) -> Result<Vec<AuditEntry>> {
    let page = page(records, &AuditFilter::default(), AuditWay::On(after), AT_ONCE).await?;
    Ok(page.entries)
}

/// What writes them.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn audit_writes(entries: &[AuditEntry]) -> Result<Vec<Write>> {
    let write = |entry: &AuditEntry| {
        let line = noted(entry)?;
        Ok(Write::Entry(Entry {
            log: line.log,
            counter: AUDIT.to_owned(),
            id: entry.id,
            at: entry.at,
            count: entry.count,
            until: entry.until,
            entry: line.entry,
        }))
    };
    entries.iter().map(write).collect()
}

/// Writes what has no conditions; once at most.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn write(records: &dyn Records, writes: Vec<Write>) -> Result<()> {
    let plan = Plan { writes, once: true, ..Plan::default() };
    records.change(&plan).await.map(drop)
}

/// A row by its table, and the clock at which it was read.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn look_at_row(
    records: &dyn Records,
    table: &str,
    name: &str,
) -> Result<(Stamp, Option<String>)> {
    let looked = records.look(&[Look::Row(table.to_owned(), name.to_owned())]).await?;
    Ok((looked.at, row(&looked, 0).map(str::to_owned)))
}

/// Changes a row from one text to another; whether it was as expected.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub async fn swap_row(
    records: &dyn Records,
    table: &str,
    row: &str,
    is: Option<&str>,
    shall: Option<&str>,
    note: Option<&AuditEntry>,
) -> Result<bool> {
    let write = match shall {
        Some(text) => set(table, row, text.to_owned()),
        None => unset(table, row),
    };
    let mut plan =
        Plan { checks: vec![still(table, row, is)], writes: vec![write], ..Plan::default() };
    if let Some(entry) = note {
        plan.writes.push(Write::Log(noted(entry)?));
        plan.once = true;
    }
    Ok(records.change(&plan).await? == Changed::Done)
}
