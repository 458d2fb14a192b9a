//! Stores of the versions before. In schema 1 a job was a hash of fields and some keys beside it: each becomes a record. In
//! schema 2 instants stood before the JSON of credentials (`convert_shared.rs`).
//!
//! Done at the first start of this version, while no process of the version before is connected; such a process would go on
//! with the fields, and see none of what this one writes. What is left in the middle is finished by the next start.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::time::Duration;

use ::redis::{Value, from_redis_value};
use serde::de::DeserializeOwned;

use super::link::Repeat;
use super::record::parsed;
use super::server::{Use, others};
use super::{RedisStore, scripts};
use crate::domain::drill::Drill;
use crate::domain::job::{
    Exit, Hold, JobRecord, LastExit, LastSwitch, LeaseRecord, Move, Next, NextWhat, Participant,
    RunEnd, RunPhase, RunRecord,
};
use crate::domain::lease::Token;
use crate::domain::log::LogKept;
use crate::domain::name::{JobName, Owner, RunId};
use crate::domain::time::StoreTime;
use crate::domain::transition::Job;
use crate::store::core::as_text;
use crate::store::{Result, StoreError};

/// The schema since which a job is a record.
const JOBS_ARE_RECORDS: u32 = 2;
/// A job that changes while it is converted is read again, so often at most.
const ATTEMPTS: usize = 10;

impl RedisStore {
    /// Makes the present schema of `found`, which is older.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] while others are connected; [`StoreError::Corrupt`], [`StoreError::Unavailable`].
    pub(super) async fn convert(&self, found: u32) -> Result<()> {
        let name = self.shared.name();
        match others(&self.shared).await? {
            Use::Unused => {}
            Use::Used | Use::Unknown => {
                return Err(StoreError::Unsupported(format!(
                    "the store at {name} was written by the version before, and other processes use it: stop every node of that version, then start this one, which converts the store (back it up before: the version before cannot read it afterwards)"
                )));
            }
        }
        if found < JOBS_ARE_RECORDS {
            self.convert_jobs().await?;
        }
        self.convert_shared().await
    }

    async fn convert_jobs(&self) -> Result<()> {
        let mut jobs = BTreeSet::new();
        for server in self.shared.rest.links().await? {
            let of = |key: &[u8]| self.keys().old_job(key);
            jobs.extend(self.jobs_by_keys(&server, &self.keys().old_pattern(), of).await?);
        }
        tracing::info!(jobs = jobs.len(), "converting the jobs of the version before");
        for job in &jobs {
            self.convert_job(job).await?;
        }
        Ok(())
    }

    async fn convert_job(&self, job: &JobName) -> Result<()> {
        let keys = self.keys();
        let old: Vec<String> = ["state", "lease", "participants", "token"]
            .iter()
            .map(|part| keys.old(job, part))
            .collect();
        for _ in 0..ATTEMPTS {
            let mut read = self.call(&scripts::READ_OLD_JOB);
            for key in &old {
                read.key(key);
            }
            read.key(keys.runs(job));
            let read: Value = self.shared.rest.script(&read, Repeat::Harmless).await?;
            let (version, whole, newest, ended) = old_job(&old[0], job, read)?;
            let (body, lease) = as_text(&whole, newest.as_deref(), ended)?;
            let mut convert = self.call(&scripts::CONVERT_JOB);
            for key in &old {
                convert.key(key);
            }
            convert.key(keys.record(job));
            convert.arg(version).arg(body).arg(lease.unwrap_or_default());
            let done: u8 = self.shared.rest.script(&convert, Repeat::Harmless).await?;
            if done == 1 {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable(format!("{job} changes while it is converted")))
    }
}

/// The fields of one hash.
struct Fields {
    key: String,
    map: HashMap<String, String>,
}

impl Fields {
    fn new(key: String, value: Value) -> Result<Self> {
        let map = from_redis_value(value)
            .map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))?;
        Ok(Self { key, map })
    }

    fn corrupt(&self, field: &str, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt(format!("{}, field {field}: {why}", self.key))
    }

    fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    /// An absent or empty field is `None`.
    fn get<T: FromStr<Err: std::fmt::Display>>(&self, field: &str) -> Result<Option<T>> {
        match self.map.get(field).map(String::as_str) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error| self.corrupt(field, &error)),
        }
    }

    fn need<T: FromStr<Err: std::fmt::Display>>(&self, field: &str) -> Result<T> {
        self.get(field)?.ok_or_else(|| self.corrupt(field, &"missing"))
    }

    fn time(&self, field: &str) -> Result<StoreTime> {
        self.need(field).map(StoreTime)
    }

    fn json<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>> {
        self.map
            .get(field)
            .map(|text| serde_json::from_str(text).map_err(|error| self.corrupt(field, &error)))
            .transpose()
    }
}

/// Version, job, newest run and number of runs, as `read_old_job.lua` read them.
fn old_job(key: &str, name: &JobName, read: Value) -> Result<(u64, Job, Option<String>, usize)> {
    type Read = (Value, Value, i64, Value, u64, String, usize);
    let (state, lease, left, participants, token, newest, ended): Read = parsed(key, read)?;
    let state = Fields::new(key.to_owned(), state)?;
    let lease = Fields::new(format!("the lease beside {key}"), lease)?;
    let participants = Fields::new(format!("the participants beside {key}"), participants)?;
    let version = state.get("version")?.unwrap_or(0);
    let mut record = JobRecord {
        name: name.clone(),
        version,
        participants: participations(&participants)?,
        hold: hold(&state)?,
        lease: lease_record(&lease, left)?,
        run: run(&state)?,
        last_exit: last_exit(&state)?,
        last_switch: last_switch(&state)?,
        crashes: state.get("crashes")?.unwrap_or(0),
        next: next(&state)?,
        given_up: state.has("given_up"),
        moving: moving(&state)?,
        drill: drill(&state)?,
        token: Token(token),
        last_line: state.map.get("last_line").cloned(),
        log_seq: state.get("log_seq")?.unwrap_or(0),
    };
    record.participants.sort_by(|a, b| (a.since, &a.user).cmp(&(b.since, &b.user)));
    let released = Token(state.get("released")?.unwrap_or(0));
    let newest = Some(newest).filter(|newest| !newest.is_empty());
    let job = Job { record, lapsed: None, released, log: LogKept::default() };
    Ok((version, job, newest, ended))
}

fn participations(fields: &Fields) -> Result<Vec<Participant>> {
    fields
        .map
        .keys()
        .map(|user| {
            Ok(Participant {
                user: user.parse().map_err(|error| fields.corrupt(user, &error))?,
                since: fields.time(user)?,
            })
        })
        .collect()
}

fn hold(state: &Fields) -> Result<Option<Hold>> {
    let Some(by) = state.get("hold_by")? else { return Ok(None) };
    Ok(Some(Hold {
        by,
        reason: state.map.get("hold_reason").cloned().unwrap_or_default(),
        since: state.time("hold_since")?,
    }))
}

fn lease_record(lease: &Fields, left: i64) -> Result<Option<LeaseRecord>> {
    let Some(owner) = lease.get::<String>("owner")? else { return Ok(None) };
    let ttl = Duration::from_millis(lease.need("ttl")?);
    // No TTL, or more than the whole of it: the clock was set back; a lease never lasts longer than its ttl.
    let expires_in = u64::try_from(left).map_or(ttl, Duration::from_millis).min(ttl);
    Ok(Some(LeaseRecord {
        node: lease.need("node")?,
        owner: Owner(owner),
        token: Token(lease.need("token")?),
        since: lease.time("since")?,
        expires_in,
        ttl,
    }))
}

fn run(state: &Fields) -> Result<Option<RunRecord>> {
    let Some(id) = state.get::<String>("run_id")? else { return Ok(None) };
    let phase = match state.need::<String>("run_phase")?.as_str() {
        "running" => RunPhase::Running,
        "stopping" => RunPhase::Stopping { kill_at: state.time("run_kill_at")? },
        other => return Err(state.corrupt("run_phase", &other)),
    };
    Ok(Some(RunRecord {
        id: RunId(id),
        token: Token(state.need("run_token")?),
        node: state.need("run_node")?,
        pid: state.need("run_pid")?,
        started: state.time("run_started")?,
        phase,
        progress: state.json("run_progress")?,
        last_output: state.get("run_last_output")?.map(StoreTime),
    }))
}

fn last_exit(state: &Fields) -> Result<Option<LastExit>> {
    let Some(end) = state.get::<String>("exit_end")? else { return Ok(None) };
    Ok(Some(LastExit {
        exit: Exit { code: state.get("exit_code")?, signal: state.get("exit_signal")? },
        end: word::<RunEnd>(state, "exit_end", &end)?,
        node: state.need("exit_node")?,
        at: state.time("exit_at")?,
    }))
}

fn last_switch(state: &Fields) -> Result<Option<LastSwitch>> {
    let Some(user) = state.get("switch_user")? else { return Ok(None) };
    Ok(Some(LastSwitch {
        user,
        on: state.need::<u8>("switch_on")? == 1,
        at: state.time("switch_at")?,
        reason: state.map.get("switch_reason").cloned(),
    }))
}

fn next(state: &Fields) -> Result<Option<Next>> {
    let Some(what) = state.get::<String>("next_what")? else { return Ok(None) };
    Ok(Some(Next {
        what: word::<NextWhat>(state, "next_what", &what)?,
        at: state.time("next_at")?,
    }))
}

fn moving(state: &Fields) -> Result<Option<Move>> {
    let Some(by) = state.get("move_by")? else { return Ok(None) };
    Ok(Some(Move {
        from: state.get("move_from")?,
        to: state.get("move_to")?,
        by,
        until: state.time("move_until")?,
    }))
}

fn drill(state: &Fields) -> Result<Option<Drill>> {
    let Some(token) = state.get("drill_token")? else { return Ok(None) };
    Ok(Some(Drill {
        token: Token(token),
        by: state.need("drill_by")?,
        at: state.time("drill_at")?,
        to: state.get("drill_to")?,
        started: state.get("drill_started")?.map(StoreTime),
    }))
}

/// One of the words that serde knows for `T`.
fn word<T: DeserializeOwned>(fields: &Fields, field: &str, text: &str) -> Result<T> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|error| fields.corrupt(field, &error))
}
