//! The port of jobs on an SQL server: a record and its lease are one row. A commit is one statement if possible, else one packet (`job.rs`).
//!
//! Leases are granted, kept and read only while the store is as `domain::doubt` judged it (`trust.rs`).

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;

use super::follow::{Hint, TOLD, told};
use super::job::{self, stored};
use super::packet::{Packet, Repeat, outcome};
use super::row::int;
use super::session::{Dialect, Row, Value};
use super::{SqlStore, trust};
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::{Boot, Stamp, StoreTime};
use soloist_process::clock;
use soloist_store::core::{FOLDED, Known, version};
use soloist_store::engine::{
    Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, Stored, StoredLease, Unsafe, Way,
};
use soloist_store::{Result, StoreError};

/// Jobs in one packet.
const BATCH: usize = 500;
/// So long a process that may end soon waits until all followers were told; then the sweep tells it.
const RUNG: Duration = Duration::from_secs(1);

/// What [`stored`] reads; the lease is the last three columns.
pub(super) const COLUMNS: &str = "job, head, body, lease, ends";

#[async_trait]
impl Engine for SqlStore {
    fn known(&self) -> &Known {
        &self.shared.known
    }

    fn estimate(&self, _: &JobName, now: Boot) -> Option<(StoreTime, Duration)> {
        self.memory().estimate(now)
    }

    async fn read(&self, jobs: &[JobName], way: Way) -> Result<Reading> {
        let dialect = self.shared.server.dialect();
        let names = names(jobs)?;
        let trusted = self
            .trusted(way, Duration::ZERO, None, |_| {
                let mut packet = Packet::look(dialect);
                trust::ask(&mut packet);
                let each = dialect.each_text();
                packet.add(
                    format!("SELECT {COLUMNS} FROM jobs JOIN {each} ON job = one"),
                    vec![names.clone()],
                );
                packet
            })
            .await?;
        let now = micros(&trusted.answers)?;
        let found = by_name(trusted.answers.get(1), now)?;
        // One may be asked for twice.
        let records = jobs.iter().map(|job| found.get(job.as_str()).cloned().unwrap_or_default());
        Ok(Reading {
            epoch: trusted.epoch,
            at: trusted.now,
            quarantine: trusted.quarantine,
            records: records.collect(),
        })
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let dialect = self.shared.server.dialect();
        let names = names(jobs)?;
        let trusted = self
            .trusted(Way::Lease, Duration::ZERO, None, |_| {
                let mut packet = Packet::look(dialect);
                trust::ask(&mut packet);
                let each = dialect.each_text();
                packet.add(
                    format!("SELECT job, head, '', lease, ends FROM jobs JOIN {each} ON job = one"),
                    vec![names.clone()],
                );
                packet
            })
            .await?;
        let now = micros(&trusted.answers)?;
        let found = by_name(trusted.answers.get(1), now)?;
        let each = jobs.iter().map(|job| {
            let Stored { head, lease, .. } = found.get(job.as_str()).cloned().unwrap_or_default();
            let version = if head.is_empty() { Some(0) } else { version(&head) };
            let version = version.ok_or_else(|| {
                StoreError::Corrupt(format!("job {job}, head: it does not begin with a version"))
            })?;
            Ok((version, lease.map(|lease| lease.left)))
        });
        each.collect()
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        let (at, jumped) = match self.commit_at_once(change).await? {
            Some(done) => done,
            None => match self.commit_in_a_packet(change).await? {
                Ok(done) => done,
                Err(refused) => return Ok(refused),
            },
        };
        let rung = self.shared.server.ring(Hint::of_jobs(change.tell));
        // Who acts may be a command, and who gives back the agent of a node that was killed: both end soon, and take the ringer with them.
        if !change.notes.is_empty() || change.lease_write == LeaseWrite::Drop {
            tokio::time::timeout(RUNG, rung).await.ok();
        }
        let head = match change.record {
            Some((version, _)) => format!("{version} {at}"),
            None => change.head.to_owned(),
        };
        let granted = change.grant.is_some() && matches!(change.lease_write, LeaseWrite::For(..));
        let unsafe_grant = (granted && jumped).then_some(Unsafe::Jumped);
        Ok(Commit::Done { head, unsafe_grant })
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let mut all = Vec::with_capacity(leases.len());
        for batch in leases.chunks(BATCH) {
            all.extend(self.keep_batch(batch).await?);
        }
        Ok(all)
    }

    async fn forget(&self, job: &JobName, head: &str) -> Result<bool> {
        let (packet, said) = job::forgetting(self.shared.server.dialect(), job, head);
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        Ok(outcome(&answers, said)?.0)
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        let mut packet = Packet::look(self.shared.server.dialect());
        packet.add("SELECT {clock}", Vec::new());
        packet.add(format!("SELECT {COLUMNS} FROM jobs WHERE job = ?"), vec![text(job)]);
        let limit = Value::Int(int(limit as u64));
        match before {
            None => packet.add(
                "SELECT text FROM runs WHERE job = ? ORDER BY number DESC LIMIT ?",
                vec![text(job), limit],
            ),
            // An id says nothing about the order. Nothing is older than one that is not known.
            Some(id) => packet.add(
                "SELECT text FROM runs WHERE job = ? AND number < \
                 (SELECT number FROM runs WHERE job = ? AND left(text, char_length(?)) = ?) \
                 ORDER BY number DESC LIMIT ?",
                {
                    let id = Value::Text(format!("{id} "));
                    vec![text(job), text(job), id.clone(), id, limit]
                },
            ),
        };
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let stored = by_name(answers.get(1), micros(&answers)?)?.remove(job.as_str());
        Ok(Page { stored: stored.unwrap_or_default(), entries: texts(answers.get(2))? })
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        debug_assert_eq!(mark, FOLDED, "the only mark that has a column");
        let mut packet = Packet::look(self.shared.server.dialect());
        let name = text(job);
        let number = Value::Int(int(number));
        packet
            .add("SELECT text FROM runs WHERE job = ? AND number = ?", vec![name.clone(), number]);
        let newest = "(SELECT max(number) FROM runs WHERE job = ?)";
        packet.add(
            format!(
                "SELECT text FROM runs WHERE job = ? AND number < {newest} ORDER BY number LIMIT 1"
            ),
            vec![name.clone(), name.clone()],
        );
        packet.add(
            format!("SELECT text FROM runs WHERE job = ? AND folded = 1 AND number < {newest} ORDER BY number LIMIT 1"),
            vec![name.clone(), name],
        );
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let one = |nth| Ok::<_, StoreError>(texts(answers.get(nth))?.into_iter().next());
        Ok([one(0)?, one(1)?, one(2)?])
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        let mut packet = Packet::look(self.shared.server.dialect());
        packet.add("SELECT {clock}", Vec::new());
        packet.add(
            "SELECT job, head, '', lease, ends FROM jobs WHERE lease IS NOT NULL ORDER BY job",
            Vec::new(),
        );
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let now = micros(&answers)?;
        let mut all = Vec::new();
        for row in answers.get(1).into_iter().flatten() {
            let name = row.text(0)?;
            let Some(lease) = stored(row, now)?.lease else { continue };
            let name = JobName::new(name)
                .map_err(|why| StoreError::Corrupt(format!("job {name}: {why}")))?;
            all.push((name, lease));
        }
        Ok(all)
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        let mut packet = Packet::look(self.shared.server.dialect());
        let (sql, number) = match part {
            Part::After(seq) => (
                "SELECT text FROM output WHERE job = ? AND number > ? ORDER BY number LIMIT ?",
                int(seq),
            ),
            Part::Before(seq) => (NEWEST_LINES, int(seq)),
            Part::Newest => (NEWEST_LINES, i64::MAX),
        };
        packet.add(sql, vec![text(job), Value::Int(number), Value::Int(int(limit as u64))]);
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let mut lines = texts(answers.first())?;
        if !matches!(part, Part::After(_)) {
            lines.reverse();
        }
        Ok(lines)
    }

    fn log_bounds(&self) -> LogBounds {
        self.shared.log
    }
}

const NEWEST_LINES: &str =
    "SELECT text FROM output WHERE job = ? AND number < ? ORDER BY number DESC LIMIT ?";

/// The instant of a commit in microseconds, and whether the server's clock jumped.
type Done = (i64, bool);

impl SqlStore {
    /// As one statement. `None`: it is none, or something does not hold, which a packet finds out.
    async fn commit_at_once(&self, change: &Change<'_>) -> Result<Option<Done>> {
        let asked = match change.grant {
            None => None,
            Some(_) => match self.relied_on(change.reach) {
                Some(asked) => Some(asked),
                None => return Ok(None),
            },
        };
        let dialect = self.shared.server.dialect();
        let Some(packet) = job::at_once(dialect, change, asked.as_ref()) else { return Ok(None) };
        let sent = clock::boot();
        let answers = self.shared.server.send(change.way, &packet, repeat(change)).await?;
        let Some(at) = job::done_at(&answers)? else { return Ok(None) };
        let jumped = self.read_clock(Stamp(at), sent);
        if let Some(asked) = &asked {
            self.accept(asked);
        }
        Ok(Some((at, jumped)))
    }

    /// As a transaction that locks, compares, and writes or says what is newest.
    async fn commit_in_a_packet(
        &self,
        change: &Change<'_>,
    ) -> Result<std::result::Result<Done, Commit>> {
        let dialect = self.shared.server.dialect();
        let (answers, quarantine, jumped) = match change.grant {
            Some(_) => {
                let packet = |asked: &_| job::packet(dialect, change, Some(asked));
                // Refused before it is sent, if at all.
                job::packet(dialect, change, None)?;
                let trusted = self
                    .trusted(change.way, change.reach, None, |asked| {
                        packet(asked).unwrap_or_else(|_| Packet::change(dialect))
                    })
                    .await?;
                (trusted.answers, trusted.quarantine, trusted.jumped)
            }
            None => {
                let packet = job::packet(dialect, change, None)?;
                let sent = clock::boot();
                let answers = self.shared.server.send(change.way, &packet, repeat(change)).await?;
                let (_, at, _) = job::outcome(&answers)?;
                (answers, Duration::ZERO, self.read_clock(Stamp(at), sent))
            }
        };
        let (done, at, stored) = job::outcome(&answers)?;
        Ok(if done { Ok((at, jumped)) } else { Err(Commit::Refused { stored, quarantine }) })
    }

    /// Usually no lease of a batch is lost, and all are to last equally long. MySQL extends such a batch at half the price, so it tries
    /// that first.
    async fn keep_batch(&self, batch: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let alike = batch.windows(2).all(|pair| pair[0].ttl == pair[1].ttl);
        if alike
            && self.shared.server.dialect() == Dialect::Mysql
            && let Some(left) = self.keep_if(batch, Found::All).await?
        {
            return Ok(left);
        }
        let left = self.keep_if(batch, Found::Any).await?;
        Ok(left.unwrap_or_else(|| vec![None; batch.len()]))
    }

    /// `None`: no lease was extended. Either the server may have forgotten something, or fewer leases were found than `wanted`.
    async fn keep_if(
        &self,
        batch: &[Keep<'_>],
        wanted: Found,
    ) -> Result<Option<Vec<Option<Duration>>>> {
        let dialect = self.shared.server.dialect();
        let asked: Vec<serde_json::Value> = batch
            .iter()
            .map(|keep| {
                let (job, ttl) = (keep.job.as_str(), span(keep.ttl));
                serde_json::json!({ "job": job, "begins": keep.text, "ttl": ttl })
            })
            .collect();
        let leases = Value::Text(serde_json::Value::from(asked).to_string());
        let ttl = batch.iter().map(|keep| keep.ttl).max().unwrap_or_default();
        let reach = batch.iter().map(|keep| keep.reach).max().unwrap_or_default();
        let each = dialect.each_lease();
        let mine = "jobs.lease IS NOT NULL AND jobs.head <> '' \
            AND left(jobs.lease, char_length(asked.begins)) = asked.begins";
        let lock = dialect.lock_of("jobs");
        let counted = if wanted == Found::All { job::COUNTED } else { "" };
        let trusted = self
            .trusted(Way::Lease, reach, None, |seen| {
                let mut packet = Packet::change(dialect);
                let mut conditions = vec![trust::as_seen(seen)];
                if wanted == Found::All {
                    packet.add(job::COUNT, Vec::new());
                    let all = Value::Int(int(batch.len() as u64));
                    conditions.push((job::COUNT_IS.to_owned(), vec![all]));
                }
                // Two batches that overlap wait for each other in one order.
                packet.add(
                    format!("SELECT jobs.job, jobs.ends{counted} FROM jobs JOIN {each} ON asked.job = jobs.job WHERE {mine} ORDER BY jobs.job{lock}"),
                    vec![leases.clone()],
                );
                packet.at_this_instant_if(conditions);
                packet.ask_outcome();
                match wanted {
                    Found::All => packet.statements.push(job::all_kept(batch, ttl)),
                    Found::Any => {
                        packet.add(job::kept(dialect, mine), vec![leases.clone()]);
                    }
                }
                trust::ask(&mut packet);
                packet
            })
            .await?;
        let answers = &trusted.answers;
        let (holds, at) = outcome(answers, answers.len() - 3)?;
        if !holds {
            return Ok(None);
        }
        let mut left = HashMap::new();
        // Behind what counts them.
        for row in answers.get(usize::from(wanted == Found::All)).into_iter().flatten() {
            if let Some(ends) = row.opt_int(1)?.filter(|ends| *ends > at) {
                left.insert(row.text(0)?, micros_span(ends - at));
            }
        }
        Ok(Some(batch.iter().map(|keep| left.get(keep.job.as_str()).copied()).collect()))
    }
}

/// How many leases of a batch must be found for any to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    All,
    Any,
}

fn repeat(change: &Change<'_>) -> Repeat {
    if change.once { Repeat::Never } else { Repeat::Harmless }
}

/// The rows by their names.
fn by_name(rows: Option<&Vec<Row>>, now: i64) -> Result<HashMap<String, Stored>> {
    let rows = rows.into_iter().flatten();
    rows.map(|row| Ok((row.text(0)?.to_owned(), stored(row, now)?))).collect()
}

/// The instant at the begin of the first row.
fn micros(answers: &super::Answers) -> Result<i64> {
    super::packet::only(answers, 0)?.int(0)
}

fn texts(rows: Option<&Vec<Row>>) -> Result<Vec<String>> {
    rows.into_iter().flatten().map(|row| Ok(row.text(0)?.to_owned())).collect()
}

fn names(jobs: &[JobName]) -> Result<Value> {
    let names: Vec<&str> = jobs.iter().map(JobName::as_str).collect();
    serde_json::to_string(&names)
        .map(Value::Text)
        .map_err(|error| StoreError::Corrupt(format!("names: {error}")))
}

fn text(job: &JobName) -> Value {
    job.as_str().into()
}

/// A duration as columns keep it.
pub(super) fn span(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// The way back; nothing when it is over.
pub(super) fn micros_span(left: i64) -> Duration {
    Duration::from_micros(u64::try_from(left).unwrap_or(0))
}

impl SqlStore {
    /// The records of some jobs for the followers, without trust.
    pub(super) async fn peek(
        &self,
        jobs: &[&JobName],
    ) -> Result<(StoreTime, HashMap<String, Stored>)> {
        let dialect = self.shared.server.dialect();
        let mut packet = Packet::look(dialect);
        packet.add("SELECT {clock}", Vec::new());
        let names: Vec<&str> = jobs.iter().map(|job| job.as_str()).collect();
        let names = Value::Text(serde_json::Value::from(names).to_string());
        packet.add(
            format!("SELECT {COLUMNS} FROM jobs JOIN {} ON job = one", dialect.each_text()),
            vec![names],
        );
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let now = micros(&answers)?;
        Ok((Stamp(now).floor(), by_name(answers.get(1), now)?))
    }

    /// Every job and its head.
    pub(super) async fn heads(&self) -> Result<(Vec<(String, String)>, [i64; 2])> {
        let mut packet = Packet::look(self.shared.server.dialect());
        packet.add("SELECT job, head FROM jobs WHERE head <> ''", Vec::new());
        packet.add(TOLD, Vec::new());
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let rows = answers.first().into_iter().flatten();
        let heads = rows.map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
        Ok((heads.collect::<Result<_>>()?, told(answers.get(1))?))
    }
}
