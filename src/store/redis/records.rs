//! The port of what belongs to no job, on Redis: tables are hashes, lists are sorted sets, logs are lists with a counter beside.
//!
//! Two generic scripts, which know no rule. On a cluster all of it lies under one tag, on one master.

use std::collections::BTreeMap;
use std::ops::Range;

use ::redis::{Value, from_redis_value};
use serde::Serialize;

use super::link::Repeat;
use super::record::parsed;
use super::{Keys, RedisStore, scripts};
use crate::clock;
use crate::domain::time::{Boot, Stamp, StoreTime};
use crate::store::journal::AuditEntry;
use crate::store::records::{Changed, Check, Found, Look, Looked, Plan, Records, Tell, Write};
use crate::store::{Result, StoreError};

/// A look; the words are those of `look_at.lua`.
#[derive(Serialize)]
#[serde(untagged)]
enum Instruction<'a> {
    Row(&'static str, String, &'a str),
    Table(&'static str, String),
    First(&'static str, String, usize),
    Log(&'static str, String, String, u64, usize),
}

/// What a check must find.
#[derive(Serialize)]
#[serde(untagged)]
enum Wanted<'a> {
    Text(&'a str),
    Texts(&'a [String]),
    Nothing(bool),
}

/// A write; the words are those of `change_records.lua` and `commit_plan.lua`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Step<'a> {
    Log(&'static str, String, String, &'a str, usize),
    Tell(&'static str, String, String),
    Command(Vec<String>),
}

/// The counter of a log.
fn numbers(keys: &Keys, log: &str) -> String {
    keys.global(&format!("{log}_seq"))
}

fn instruction<'a>(keys: &Keys, look: &'a Look) -> Instruction<'a> {
    match look {
        Look::Row(table, row) => Instruction::Row("row", keys.global(table), row),
        Look::Rows(table) => Instruction::Table("rows", keys.global(table)),
        Look::First(list, most) => Instruction::First("first", keys.global(list), *most),
        Look::Log(log, below, most) => {
            let below = below.unwrap_or(0);
            Instruction::Log("log", keys.global(log), numbers(keys, log), below, *most)
        }
    }
}

fn check<'a>(keys: &Keys, check: &'a Check) -> (Instruction<'a>, Wanted<'a>) {
    match check {
        Check::Row { table, row, is } => (
            Instruction::Row("row", keys.global(table), row),
            is.as_deref().map_or(Wanted::Nothing(false), Wanted::Text),
        ),
        Check::Empty { table } => {
            (Instruction::Table("none", keys.global(table)), Wanted::Nothing(false))
        }
        Check::First { list, most, are } => {
            (Instruction::First("first", keys.global(list), *most), Wanted::Texts(are))
        }
    }
}

pub(super) fn step<'a>(keys: &Keys, write: &'a Write) -> Result<Step<'a>> {
    let command = |words: [&str; 4]| {
        Step::Command(
            words.iter().filter(|word| !word.is_empty()).map(ToString::to_string).collect(),
        )
    };
    Ok(match write {
        // A text may be empty.
        Write::Set { table, row, text } => {
            Step::Command(vec!["HSET".into(), keys.global(table), row.clone(), text.clone()])
        }
        Write::Unset { table, row } => command(["HDEL", &keys.global(table), row, ""]),
        Write::Add { list, number, text } => {
            command(["ZADD", &keys.global(list), &number.to_string(), text])
        }
        Write::Strike { list, text } => command(["ZREM", &keys.global(list), text, ""]),
        Write::Cut { list, kept } => {
            let last = format!("-{}", kept + 1);
            command(["ZREMRANGEBYRANK", &keys.global(list), "0", &last])
        }
        Write::Log { log, entry, kept } => {
            let inside = entry.strip_prefix('{').and_then(|entry| entry.strip_suffix('}'));
            let inside = inside.ok_or_else(|| {
                StoreError::Corrupt(format!("{log}: {entry:?} is no JSON object"))
            })?;
            Step::Log("log", keys.global(log), numbers(keys, log), inside, *kept)
        }
    })
}

fn told<'a>(keys: &Keys, tell: &Tell) -> Result<Step<'a>> {
    let nodes =
        |event: &str| Step::Tell("tell", keys.nodes_events(), format!("{{\"event\":\"{event}\"}}"));
    Ok(match tell {
        Tell::Nodes => nodes("nodes"),
        Tell::Accounts => nodes("accounts"),
        Tell::Wake(waiters) => {
            let waiters = super::record::to_json("wake", waiters)?;
            Step::Tell("tell", keys.dispatch("wake"), format!("{{\"wake\":{waiters}}}"))
        }
    })
}

impl Records for RedisStore {
    fn note(&self) -> Option<&AuditEntry> {
        self.note.as_deref()
    }

    fn clock(&self) -> Option<Range<Stamp>> {
        let epoch = self.keys().epoch(None);
        let (earliest, slack) = self.memories().of(&epoch).estimate(clock::boot())?;
        let earliest = Stamp::from(earliest);
        Some(earliest..earliest + slack)
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        let keys = self.keys();
        let plan: Vec<Instruction<'_>> = looks.iter().map(|look| instruction(keys, look)).collect();
        let mut call = self.call(&scripts::LOOK_RECORDS);
        call.key(keys.global("schema")).arg(packed(&plan)?);
        let sent = clock::boot();
        let values: Vec<Value> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        let mut values = values.into_iter();
        let at = self.shared_clock(values.next(), sent)?;
        let found = looks.iter().map(|look| {
            let value = values.next().ok_or_else(|| corrupt("an answer is missing"))?;
            read(look, value)
        });
        Ok(Looked { at, found: found.collect::<Result<_>>()? })
    }

    async fn change(&self, plan: &Plan) -> Result<Changed> {
        let keys = self.keys();
        let within = plan.within.as_ref().map_or((0, 0), |within| (within.start.0, within.end.0));
        let checks: Vec<_> = plan.checks.iter().map(|one| check(keys, one)).collect();
        let mut steps: Vec<Step<'_>> =
            plan.writes.iter().map(|write| step(keys, write)).collect::<Result<_>>()?;
        for tell in &plan.tells {
            steps.push(told(keys, tell)?);
        }
        let mut call = self.call(&scripts::CHANGE_RECORDS);
        call.key(keys.global("schema")).arg(packed(&(within.0, within.1, checks, steps))?);
        let repeat = if plan.once { Repeat::Never } else { Repeat::Harmless };
        let sent = clock::boot();
        let (done, at): (String, Value) = self.shared.rest.script(&call, repeat).await?;
        self.shared_clock(Some(at), sent)?;
        Ok(if done == "1" { Changed::Done } else { Changed::Refused })
    }
}

fn packed(plan: &impl Serialize) -> Result<Vec<u8>> {
    rmp_serde::to_vec(plan).map_err(|error| corrupt(&format!("a plan: {error}")))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("look_records: {what}"))
}

/// What a look found.
fn read(look: &Look, value: Value) -> Result<Found> {
    Ok(match look {
        Look::Row(table, _) => Found::Row(parsed(table, value)?),
        Look::Rows(table) => Found::Rows(parsed::<BTreeMap<String, String>>(table, value)?),
        Look::First(list, _) => {
            let flat: Vec<(String, u64)> = parsed(list, value)?;
            Found::Entries(flat.into_iter().map(|(text, number)| (number, text)).collect())
        }
        Look::Log(log, ..) => {
            let mut oldest_first: Vec<String> = parsed(log, value)?;
            oldest_first.reverse();
            Found::Log(oldest_first)
        }
    })
}

impl RedisStore {
    /// Notes what the clock of the server said that keeps all this; returns it.
    fn shared_clock(&self, at: Option<Value>, sent: Boot) -> Result<Stamp> {
        let at: i64 = at
            .map(from_redis_value)
            .and_then(std::result::Result::ok)
            .ok_or_else(|| corrupt("an answer without an instant"))?;
        let now = StoreTime(at.div_euclid(1_000));
        self.read_clock(&self.keys().epoch(None), now, sent, clock::boot());
        Ok(Stamp(at))
    }
}
