//! The port of jobs on Redis: records and leases as texts, changed by one generic script (`commit_plan.lua`).
//!
//! The script knows no rule. What grants, keeps or reads leases goes behind `trust_store.lua`: it is done only while the store is as
//! `domain::doubt` judged it. A lease that was granted must besides be confirmed by a replica, where there are any.

use std::time::Duration;

use ::redis::{Value, from_redis_value};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde::Serialize;

use super::lane::{Call, Lane, Sent};
use super::link::Repeat;
use super::record::parsed;
use super::records::{Step, step};
use super::{Guarded, RedisStore, millis, scripts};
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::backend::Backend as _;
use soloist_store::core::{self, Known, left_of};
use soloist_store::engine::{
    Beside, Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, Stored, StoredLease,
    Unsafe, Way,
};
use soloist_store::records::{self, Plan, Records as _};
use soloist_store::{Result, StoreError};

/// For a replica's word, at most; a twentieth of a shorter lease, so that it fits into the caller's patience.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Shorter, a busy machine would refuse what is in order.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);

/// No arguments.
const NOTHING: &[String] = &[];

/// A condition of a plan; the words are those of `commit_plan.lua`.
#[derive(Serialize)]
#[serde(untagged)]
enum Check<'a> {
    Is(&'static str, &'a str, &'a str),
    Within(&'static str, i64, i64),
    Calm((&'static str,)),
    Unlisted(&'static str, String),
}

/// A write of a plan.
#[derive(Serialize)]
#[serde(untagged)]
enum Write<'a> {
    Lease(&'static str, &'a str, &'a str, u64),
    Put(&'static str, &'a str, String, &'a str, u64),
    Tell(&'static str, &'a str, &'a str, &'a str, &'a str),
    Command(Vec<&'a str>),
    Note(Step<'a>),
}

#[async_trait]
impl Engine for RedisStore {
    fn known(&self) -> &Known {
        &self.shared.known
    }

    fn estimate(&self, job: &JobName, now: Boot) -> Option<(StoreTime, Duration)> {
        let epoch = self.keys().epoch(Some(job));
        self.memories().of(&epoch).estimate(now)
    }

    async fn read(&self, jobs: &[JobName], way: Way) -> Result<Reading> {
        // Without any job, the epoch and the clock are still read.
        let batches =
            if jobs.is_empty() { vec![jobs] } else { jobs.chunks(self.batch()).collect() };
        let parts =
            try_join_all(batches.into_iter().map(|batch| self.read_batch(batch, way))).await?;
        let mut whole: Option<Reading> = None;
        for part in parts {
            match &mut whole {
                None => whole = Some(part),
                Some(whole) if whole.epoch == part.epoch => {
                    whole.quarantine = whole.quarantine.max(part.quarantine);
                    whole.records.extend(part.records);
                }
                Some(_) => {
                    return Err(StoreError::Unavailable(
                        "the store was emptied while it was read: read it again".to_owned(),
                    ));
                }
            }
        }
        whole.ok_or_else(|| StoreError::Corrupt("read_records: no answer".to_owned()))
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let batches = jobs.chunks(self.batch()).map(|batch| self.observe_batch(batch));
        Ok(try_join_all(batches).await?.concat())
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        let keys = self.keys();
        let (record, lease) = (keys.record(change.job), keys.lease(change.job));
        let (runs, log) = (keys.runs(change.job), keys.log(change.job));
        let events = keys.events(change.job);
        let head =
            if change.head.is_empty() { String::new() } else { format!("{}\n", change.head) };
        let mut checks = vec![
            Check::Is("is", &record, &head),
            Check::Is("is", &lease, change.lease),
            Check::Within("within", change.window.start.0, change.window.end.0),
        ];
        if change.calm {
            checks.push(Check::Calm(("calm",)));
        }
        if let Some(list) = change.unlisted {
            checks.push(Check::Unlisted("unlisted", keys.global(list)));
        }
        let texts = Texts::of(&change.beside);
        let told = core::members(change.tell);
        let mut writes = texts.writes(&runs, &log);
        match &change.lease_write {
            LeaseWrite::None => {}
            LeaseWrite::For(text, ttl) => {
                writes.push(Write::Lease("lease", &lease, text, millis(*ttl).max(1)));
            }
            LeaseWrite::Text(text) => writes.push(Write::Lease("lease", &lease, text, 0)),
            LeaseWrite::Drop => writes.push(Write::Command(vec!["DEL", &lease])),
        }
        if let Some((version, body)) = change.record {
            let ends = change.expires.map_or(0, millis);
            writes.push(Write::Put("put", &record, version.to_string(), body, ends));
            if !told.is_empty() {
                writes.push(Write::Tell("tell", &events, &told, body, &lease));
            }
        }
        let apart = self.is_sharded();
        for note in change.notes.iter().filter(|_| !apart) {
            writes.push(Write::Note(step(keys, note)?));
        }
        let plan = rmp_serde::to_vec(&(checks, writes))
            .map_err(|error| StoreError::Corrupt(format!("a plan for {record}: {error}")))?;
        let Guarded { values, quarantine, jumped, replicas, by, .. } =
            self.plan(change, &record, plan).await?;
        let mut values = values.into_iter();
        let (done, at): (String, i64) = (
            parsed(&record, values.next().unwrap_or(Value::Nil))?,
            parsed(&record, values.next().unwrap_or(Value::Nil))?,
        );
        if done == "2" {
            return Ok(Commit::Listed);
        }
        if done != "1" {
            let newest: (Option<String>, i64, Option<String>, i64) =
                parsed(&record, Value::Array(values.collect()))?;
            let (text, _, lease, left) = newest;
            return Ok(Commit::Refused { stored: stored(&record, text, lease, left)?, quarantine });
        }
        if apart && !change.notes.is_empty() {
            self.note_apart(change.notes.clone()).await;
        }
        let head = match change.record {
            Some((version, _)) => format!("{version} {at}"),
            None => change.head.to_owned(),
        };
        let granted = change.grant.filter(|_| matches!(change.lease_write, LeaseWrite::For(..)));
        let unsafe_grant = match granted {
            Some(_) if jumped => Some(Unsafe::Jumped),
            Some(ttl) if replicas > 0 => {
                self.unconfirmed(ttl, by.as_ref()).await.map(Unsafe::Unconfirmed)
            }
            _ => None,
        };
        Ok(Commit::Done { head, unsafe_grant })
    }

    fn sees_lists(&self) -> bool {
        !self.is_sharded()
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let batches = leases.chunks(self.batch()).map(|batch| self.keep_batch(batch));
        Ok(try_join_all(batches).await?.concat())
    }

    async fn forget(&self, job: &JobName, head: &str) -> Result<bool> {
        let (record, lease) = (self.keys().record(job), self.keys().lease(job));
        let head = format!("{head}\n");
        let checks = [Check::Is("is", &record, &head), Check::Is("is", &lease, "")];
        let writes = [Write::Command(vec!["DEL", &record])];
        let plan = rmp_serde::to_vec(&(checks, writes))
            .map_err(|error| StoreError::Corrupt(format!("a plan for {record}: {error}")))?;
        let mut call = self.call(&scripts::COMMIT_PLAN);
        call.key(&record).arg(plan);
        let epoch = self.keys().epoch(Some(job));
        let answer = self.unguarded(&self.shared.rest, &call, &epoch, Repeat::Harmless).await?;
        let done: String = parsed(&record, answer.values.into_iter().next().unwrap_or(Value::Nil))?;
        Ok(done == "1")
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        let record = self.keys().record(job);
        let mut call = self.call(&scripts::READ_RUNS);
        call.key(&record).key(self.keys().runs(job));
        call.arg(before.map(RunId::as_str).unwrap_or_default()).arg(limit.max(1));
        let (text, entries): (Option<String>, Vec<String>) =
            self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(Page { stored: stored(&record, text, None, 0)?, entries })
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        let mut call = self.call(&scripts::READ_OLDEST);
        call.key(self.keys().runs(job)).arg(number).arg(mark);
        let (this, oldest, marked) = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok([this, oldest, marked])
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        self.leases_by_keys().await
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        let (which, number) = match part {
            Part::Newest => ("newest", 0),
            Part::After(seq) => ("after", seq),
            Part::Before(seq) => ("before", seq),
        };
        let mut call = self.call(&scripts::READ_LOG);
        call.key(self.keys().log(job)).arg(which).arg(number).arg(limit);
        self.shared.rest.script(&call, Repeat::Harmless).await
    }

    fn log_bounds(&self) -> LogBounds {
        self.shared.log
    }
}

/// How often, once a second, an entry that could not be written is tried again.
const NOTED_AGAIN: u32 = 60;

impl RedisStore {
    /// Writes the entry of an act on a job that is done already, on a cluster. An entry that may be there twice is better than
    /// none: it is tried again for a while, until this process ends.
    async fn note_apart(&self, writes: Vec<records::Write>) {
        let plan = Plan { writes, once: true, ..Plan::default() };
        let Err(error) = self.change(&plan).await else { return };
        tracing::error!(%error, entry = ?plan.writes, "an act is done and not in the audit yet");
        let store = self.clone();
        tokio::spawn(async move {
            for _ in 0..NOTED_AGAIN {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if store.change(&plan).await.is_ok() {
                    return;
                }
            }
            tracing::error!(entry = ?plan.writes, "an act is not in the audit");
        });
    }
}

/// Numbers and texts of what is written beside a record, as Redis takes them.
struct Texts<'a> {
    lines: Vec<&'a str>,
    others: Vec<(&'a Beside, String)>,
}

impl<'a> Texts<'a> {
    fn of(beside: &'a [Beside]) -> Self {
        let (mut lines, mut others) = (Vec::new(), Vec::new());
        for one in beside {
            match one {
                Beside::Append { text, .. } => lines.push(text.as_str()),
                Beside::Index { number, .. } | Beside::Unindex { number } => {
                    others.push((one, number.to_string()));
                }
                Beside::Trim(kept) => others.push((one, format!("-{kept}"))),
            }
        }
        Self { lines, others }
    }

    fn writes<'b>(&'b self, runs: &'b str, log: &'b str) -> Vec<Write<'b>> {
        let mut writes = Vec::with_capacity(self.others.len() + 4);
        if !self.lines.is_empty() {
            let push = ["RPUSH", log].into_iter().chain(self.lines.iter().copied());
            writes.push(Write::Command(push.collect()));
        }
        for (one, number) in &self.others {
            writes.push(Write::Command(match one {
                Beside::Index { text, .. } => vec!["ZADD", runs, number, text],
                Beside::Unindex { .. } => vec!["ZREMRANGEBYSCORE", runs, number, number],
                Beside::Append { .. } | Beside::Trim(_) => vec!["LTRIM", log, number, "-1"],
            }));
        }
        writes
    }
}

/// The record under `key` as it was read.
fn stored(key: &str, text: Option<String>, lease: Option<String>, left: i64) -> Result<Stored> {
    let (head, body) = match &text {
        None => ("", ""),
        Some(text) => text.split_once('\n').ok_or_else(|| {
            StoreError::Corrupt(format!("{key}: it does not begin with its version"))
        })?,
    };
    let lease = lease.map(|text| StoredLease { text, left: left_of(left) });
    Ok(Stored { head: head.to_owned(), body: body.to_owned(), lease })
}

impl RedisStore {
    fn lane(&self, way: Way) -> &Lane {
        match way {
            Way::Grant => &self.shared.grants,
            Way::Lease => &self.shared.leases,
            Way::Rest => &self.shared.rest,
        }
    }

    async fn read_batch(&self, batch: &[JobName], way: Way) -> Result<Reading> {
        let names = self.keys();
        let keys: Vec<String> =
            batch.iter().flat_map(|job| [names.record(job), names.lease(job)]).collect();
        let epoch = names.epoch(batch.first());
        let lane = self.lane(way);
        let answer = self
            .guarded(lane, &scripts::READ_RECORDS, epoch, &keys, Duration::ZERO, NOTHING)
            .await?;
        let Guarded { epoch, now: at, quarantine, values, .. } = answer;
        if values.len() != batch.len() * 3 {
            return Err(StoreError::Corrupt("read_records: an answer is missing".to_owned()));
        }
        let mut values = values.into_iter();
        let mut records = Vec::with_capacity(batch.len());
        for job in batch {
            let key = names.record(job);
            let three: Vec<Value> = values.by_ref().take(3).collect();
            let (text, lease, left) = parsed(&key, Value::Array(three))?;
            records.push(stored(&key, text, lease, left)?);
        }
        Ok(Reading { epoch, at, quarantine, records })
    }

    async fn observe_batch(&self, batch: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let names = self.keys();
        let keys: Vec<String> =
            batch.iter().flat_map(|job| [names.record(job), names.lease(job)]).collect();
        let epoch = names.epoch(batch.first());
        let lane = &self.shared.leases;
        let answer = self
            .guarded(lane, &scripts::OBSERVE_RECORDS, epoch, &keys, Duration::ZERO, NOTHING)
            .await?;
        let mut values = answer.values.into_iter();
        let mut observed = Vec::with_capacity(batch.len());
        for job in batch {
            let key = names.record(job);
            let two: Vec<Value> = values.by_ref().take(2).collect();
            let (head, left): (String, i64) = parsed(&key, Value::Array(two))?;
            let version = if head.is_empty() { Some(0) } else { core::version(&head) };
            let version = version.ok_or_else(|| {
                StoreError::Corrupt(format!("{key}: it does not begin with its version"))
            })?;
            observed.push((version, (left != -2).then(|| left_of(left))));
        }
        Ok(observed)
    }

    async fn keep_batch(&self, batch: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let names = self.keys();
        let mut keys = Vec::with_capacity(batch.len() * 2);
        let mut arguments = Vec::with_capacity(batch.len() * 2);
        for keep in batch {
            keys.extend([names.lease(keep.job), names.record(keep.job)]);
            arguments.extend([keep.text.clone(), millis(keep.ttl).to_string()]);
        }
        let reach = batch.iter().map(|keep| keep.reach).max().unwrap_or_default();
        let epoch = names.epoch(batch.first().map(|keep| keep.job));
        let lane = &self.shared.leases;
        let answer =
            self.guarded(lane, &scripts::KEEP_LEASES, epoch, &keys, reach, &arguments).await?;
        if answer.values.len() != batch.len() {
            return Err(StoreError::Corrupt("keep_leases: an answer is missing".to_owned()));
        }
        let left = answer.values.into_iter().map(|left| {
            let left: i64 = parsed("keep_leases", left)?;
            Ok((left != -3).then(|| left_of(left)))
        });
        left.collect()
    }

    /// Runs a plan: behind `trust_store.lua` if it asks for a lease, else by itself.
    async fn plan(&self, change: &Change<'_>, record: &str, plan: Vec<u8>) -> Result<Guarded> {
        let lane = self.lane(change.way);
        let epoch = self.keys().epoch(Some(change.job));
        if change.grant.is_some() {
            let (keys, reach) = ([record.to_owned()], change.reach);
            return self.guarded(lane, &scripts::COMMIT_GRANT, epoch, &keys, reach, &[plan]).await;
        }
        let mut call = self.call(&scripts::COMMIT_PLAN);
        call.key(record).arg(plan);
        let repeat = if change.once { Repeat::Never } else { Repeat::Harmless };
        self.unguarded(lane, &call, &epoch, repeat).await
    }

    /// Runs a script that begins with `believe_store.lua`. Its clock is as good as that of any other.
    async fn unguarded(
        &self,
        lane: &Lane,
        call: &Call,
        epoch_key: &str,
        repeat: Repeat,
    ) -> Result<Guarded> {
        let sent = clock::boot();
        let values: Vec<Value> = lane.script(call, repeat).await?;
        let received = clock::boot();
        let at: i64 = match values.get(2).cloned().map(from_redis_value) {
            Some(Ok(at)) => at,
            _ => {
                return Err(StoreError::Corrupt(
                    "commit_plan: an answer without an instant".into(),
                ));
            }
        };
        let now = StoreTime(at.div_euclid(1_000));
        let jumped = self.read_clock(epoch_key, now, sent, received);
        Ok(Guarded {
            epoch: String::new(),
            now,
            quarantine: Duration::ZERO,
            jumped,
            replicas: 0,
            by: None,
            values: values.into_iter().skip(1).collect(),
        })
    }

    /// Why no replica confirmed what was written on the connection of `by`: a lease that no replica has would be forgotten by a
    /// fail-over. Outside the script, because WAIT does not wait inside one.
    async fn unconfirmed(&self, ttl: Duration, by: Option<&Sent>) -> Option<StoreError> {
        let patience = (ttl / 20).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let mut wait = ::redis::cmd("WAIT");
        wait.arg(1).arg(millis(patience));
        // WAIT counts what this connection wrote: on another one it would confirm nothing.
        match by?.command::<u64>(&wait).await {
            Ok(1..) => None,
            Ok(0) => {
                let name = self.shared.name();
                Some(StoreError::Unavailable(format!(
                    "no replica of Redis at {name} confirmed the new lease within {patience:?}: look at `redis-cli INFO replication` there"
                )))
            }
            Err(error) => Some(error),
        }
    }
}
