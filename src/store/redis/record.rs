//! From the fields that a snapshot reads to a [`JobRecord`]; what cannot be read names its key.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use ::redis::{FromRedisValue, Value, from_redis_value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys::Keys;
use crate::domain::drill::Drill;
use crate::domain::job::{
    Exit, Hold, JobRecord, LastExit, LastSwitch, LeaseRecord, Move, Next, NextWhat, Participant,
    RunEnd, RunPhase, RunRecord,
};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, Owner, RunId};
use crate::domain::time::StoreTime;
use crate::store::leases::HeldLease;
use crate::store::{Result, StoreError};

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

/// Parses what `snapshot_jobs.lua` read of one job at `now`.
pub(super) fn job_record(
    keys: &Keys,
    name: &JobName,
    read: Value,
    now: StoreTime,
) -> Result<JobRecord> {
    let (state, lease, left, participants, token): (Value, Value, i64, Value, String) =
        parsed(&keys.state(name), read)?;
    let state = Fields::new(keys.state(name), state)?;
    let lease = Fields::new(keys.lease(name), lease)?;
    let participants = Fields::new(keys.participants(name), participants)?;
    let mut record = JobRecord {
        name: name.clone(),
        version: state.get("version")?.unwrap_or(0),
        participants: participations(&participants)?,
        hold: hold(&state)?,
        lease: lease_record(&lease, left)?,
        run: run(&state)?,
        last_exit: last_exit(&state)?,
        last_switch: last_switch(&state)?,
        crashes: state.get("crashes")?.unwrap_or(0),
        next: next(&state)?,
        given_up: state.has("given_up"),
        moving: moving(&state)?.filter(|moving| moving.until > now),
        drill: drill(&state)?,
        token: Token(
            token
                .parse()
                .map_err(|error| StoreError::Corrupt(format!("{}: {error}", keys.token(name))))?,
        ),
        last_line: state.map.get("last_line").cloned(),
        log_seq: state.get("log_seq")?.unwrap_or(0),
    };
    record.participants.sort_by(|a, b| (a.since, &a.user).cmp(&(b.since, &b.user)));
    Ok(record)
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

/// Parses what `read_leases.lua` read of the lease of `name`; `None` when there is none any more.
pub(super) fn held_lease(keys: &Keys, name: &JobName, read: Value) -> Result<Option<HeldLease>> {
    let key = keys.lease(name);
    let (fields, left): (Value, i64) = parsed(&key, read)?;
    let lease = lease_record(&Fields::new(key, fields)?, left)?;
    Ok(lease.map(|lease| HeldLease { name: name.clone(), lease }))
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

/// Converts a reply; what cannot be converted names `key`.
pub(super) fn parsed<T: FromRedisValue>(key: &str, value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))
}

/// Parses JSON that came out of `key`.
pub(super) fn from_json<T: DeserializeOwned>(key: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))
}

/// JSON on its way to `key`.
pub(super) fn to_json(key: &str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))
}

/// The inside of a JSON object without the members that the store fills in itself.
pub(super) fn inside(key: &str, value: &impl Serialize, without: &[&str]) -> Result<String> {
    let mut value = serde_json::to_value(value)
        .map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))?;
    if let Some(object) = value.as_object_mut() {
        for member in without {
            object.remove(*member);
        }
    }
    let text = value.to_string();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    Ok(inner.unwrap_or(&text).to_owned())
}
