//! The port of what belongs to no job, on Redis: tables are hashes, lists are sorted sets, logs are lists with a counter beside.
//!
//! Two generic scripts, which know no rule. On a cluster all of it lies under one tag, on one master.

use std::collections::BTreeMap;

use ::redis::{Value, from_redis_value};
use async_trait::async_trait;
use serde::Serialize;

use super::lane::{Call, Lane};
use super::link::Repeat;
use super::record::parsed;
use super::{Keys, RedisStore, scripts};
use soloist_domain::rotation::Memory;
use soloist_domain::time::{Boot, Stamp, StoreTime};
use soloist_process::clock;
use soloist_store::core::{KnownTurns, noted};
use soloist_store::journal::AuditEntry;
use soloist_store::latest::Latest;
use soloist_store::records::{
    Changed, Check, FOLDS_KEPT, Found, Line, Look, Looked, Plan, Records, Tell, Write, folds,
};
use soloist_store::{Result, StoreError};

/// A look; the words are those of `look_at.lua`.
#[derive(Serialize)]
#[serde(untagged)]
enum Instruction<'a> {
    Row(&'static str, String, &'a str),
    Table(&'static str, String),
    First(&'static str, String, usize),
    Begins(&'static str, String, &'a str, &'a str),
    Described(&'static str, String, String, usize),
    Count(&'static str, Vec<String>),
    Ahead(&'static str, Vec<String>, String, &'a str),
    Remembers(&'static str, String, &'a str, i64),
    Log(&'static str, String, u64, usize),
}

/// What a check must find.
#[derive(Serialize)]
#[serde(untagged)]
enum Wanted<'a> {
    Text(&'a str),
    Texts(&'a [String]),
    /// `false`: nothing.
    Is(bool),
}

/// A write; the words are those of `change_records.lua` and `commit_plan.lua`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Step<'a> {
    Log(LogStep<'a>),
    Tell(&'static str, String, String),
    Command(Vec<String>),
}

/// `log`, log, counter, the inside of a JSON object, how many are kept; then the table of keys under which entries are folded, the
/// key (empty: it is not), within how many milliseconds, how many keys are remembered, how often it happened, and what the newest entry under the key must say, too.
type LogStep<'a> =
    (&'static str, String, String, &'a str, usize, String, &'a str, u64, usize, u64, &'a str);

/// What adds `line` to its log, as `append_log.lua` takes it.
pub(super) fn log_step<'a>(keys: &Keys, line: &'a Line) -> Result<LogStep<'a>> {
    let Line { log, counter, entry, count, kept, fold } = line;
    let inside = entry.strip_prefix('{').and_then(|entry| entry.strip_suffix('}'));
    let inside =
        inside.ok_or_else(|| StoreError::Corrupt(format!("{log}: {entry:?} is no JSON object")))?;
    let fold = fold.as_ref().map(|fold| (&*fold.key, &*fold.same, fold.within_ms));
    let (key, same, within) = fold.unwrap_or(("", "", 0));
    let (counter, table) = (keys.global(&format!("{counter}_seq")), keys.global(&folds(log)));
    Ok((
        "log",
        keys.global(log),
        counter,
        inside,
        *kept,
        table,
        key,
        within,
        FOLDS_KEPT,
        *count,
        same,
    ))
}

fn globals(keys: &Keys, lists: &[String]) -> Vec<String> {
    lists.iter().map(|list| keys.global(list)).collect()
}

fn instruction<'a>(keys: &Keys, look: &'a Look) -> Instruction<'a> {
    match look {
        Look::Row(table, row) => Instruction::Row("row", keys.global(table), row),
        Look::Rows(table) => Instruction::Table("rows", keys.global(table)),
        Look::First(list, most) => Instruction::First("first", keys.global(list), *most),
        Look::Last(list, most) => Instruction::First("last", keys.global(list), *most),
        Look::Described { list, table, most } => {
            let (list, table) = (keys.global(list), keys.global(table));
            Instruction::Described("described", list, table, *most)
        }
        Look::Count(lists) => Instruction::Count("count", globals(keys, lists)),
        Look::Ahead { lists, of, text } => {
            Instruction::Ahead("ahead", globals(keys, lists), keys.global(of), text)
        }
        Look::Memory => Instruction::Table("memory", keys.epoch(None)),
        Look::Log(log, below, most) => {
            Instruction::Log("log", keys.global(log), below.unwrap_or(0), *most)
        }
        Look::LogAfter(log, above, most) => {
            Instruction::Log("after", keys.global(log), *above, *most)
        }
    }
}

fn check<'a>(keys: &Keys, check: &'a Check) -> (Instruction<'a>, Wanted<'a>) {
    match check {
        Check::Row { table, row, is } => (
            Instruction::Row("row", keys.global(table), row),
            is.as_deref().map_or(Wanted::Is(false), Wanted::Text),
        ),
        Check::Begins { table, row, with } => {
            (Instruction::Begins("begins", keys.global(table), row, with), Wanted::Is(true))
        }
        Check::Memory(Memory { server, forgot }) => {
            let forgot = forgot.map_or(0, |at| at.0);
            let remembers = Instruction::Remembers("remembers", keys.epoch(None), server, forgot);
            (remembers, Wanted::Is(true))
        }
        Check::Empty { table } => {
            (Instruction::Table("none", keys.global(table)), Wanted::Is(false))
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
        Write::Join { list, counter, text } => {
            let (list, counter) = (keys.global(list), keys.global(counter));
            Step::Command(vec!["join".into(), list, counter, text.clone()])
        }
        Write::Strike { list, text } => command(["ZREM", &keys.global(list), text, ""]),
        Write::Cut { list, kept } => {
            let last = format!("-{}", kept + 1);
            command(["ZREMRANGEBYRANK", &keys.global(list), "0", &last])
        }
        Write::Log(line) => Step::Log(log_step(keys, line)?),
        Write::Entry(entry) => {
            let counter = keys.global(&format!("{}_seq", entry.counter));
            let (log, id) = (keys.global(&entry.log), entry.id.to_string());
            Step::Command(vec!["entry".into(), log, counter, id, entry.text()?])
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

#[async_trait]
impl Records for RedisStore {
    fn note(&self) -> Option<&AuditEntry> {
        self.note.as_deref()
    }

    fn latest(&self) -> Option<Stamp> {
        self.shared.latest.lock().and_then(|latest| latest.at(clock::boot()))
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        Box::pin(self.look_by(&self.shared.records, looks)).await
    }

    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        Box::pin(self.change_by(&self.shared.records, plan, done, refused)).await
    }

    fn turns(&self) -> &KnownTurns {
        &self.shared.turns
    }
}

fn packed(plan: &impl Serialize) -> Result<Vec<u8>> {
    rmp_serde::to_vec(plan).map_err(|error| corrupt(&format!("a plan: {error}")))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("look_records: {what}"))
}

/// What was found at each look.
fn found(looks: &[Look], mut values: impl Iterator<Item = Value>) -> Result<Vec<Found>> {
    let found = looks.iter().map(|look| {
        let value = values.next().ok_or_else(|| corrupt("an answer is missing"))?;
        read(look, value)
    });
    found.collect()
}

/// What a look found.
fn read(look: &Look, value: Value) -> Result<Found> {
    Ok(match look {
        Look::Last(list, _) => {
            let flat: Vec<(String, u64)> = parsed(list, value)?;
            Found::Entries(flat.into_iter().map(|(text, number)| (number, text)).collect())
        }
        Look::Described { list, .. } => {
            let entries: Vec<(String, u64, Option<String>)> = parsed(list, value)?;
            let ordered = |(text, number, row)| (number, text, row);
            Found::Described(entries.into_iter().map(ordered).collect())
        }
        Look::Count(_) | Look::Ahead { .. } => Found::Count(parsed("a count", value)?),
        Look::Memory => {
            let (server, epoch, doubted): (String, String, i64) = parsed("epoch", value)?;
            let forgot = (doubted > 0).then(|| Stamp::from(StoreTime(doubted)));
            let memory = Memory { server, forgot };
            Found::Memory { memory, emptied: epoch.is_empty() }
        }
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
        Look::LogAfter(log, ..) => Found::Log(parsed(log, value)?),
    })
}

impl RedisStore {
    /// Adds the entry that is to be written in the same step, as the last argument of a script that begins with `note_act.lua`;
    /// returns whether the call may be repeated.
    pub(super) fn with_note(&self, call: &mut Call) -> Result<Repeat> {
        let Some(entry) = self.note() else {
            call.arg("");
            return Ok(Repeat::Harmless);
        };
        let line = noted(entry)?;
        call.arg(packed(&log_step(self.keys(), &line)?)?);
        Ok(Repeat::Never)
    }

    /// Carries out commands of Redis on what belongs to no job, all in one step and once at most.
    pub(super) async fn carry_out(&self, commands: Vec<Vec<String>>) -> Result<()> {
        if commands.is_empty() {
            return Ok(());
        }
        let steps: Vec<Step<'_>> = commands.into_iter().map(Step::Command).collect();
        let none: [u8; 0] = [];
        let mut call = self.call(&scripts::CHANGE_RECORDS);
        call.key(self.keys().global("schema")).arg(packed(&(0, 0, none, steps, none, none))?);
        self.shared.rest.script::<Vec<Value>>(&call, Repeat::Never).await.map(drop)
    }

    async fn look_by(&self, lane: &Lane, looks: &[Look]) -> Result<Looked> {
        let keys = self.keys();
        let plan: Vec<Instruction<'_>> = looks.iter().map(|look| instruction(keys, look)).collect();
        let mut call = self.call(&scripts::LOOK_RECORDS);
        call.key(keys.global("schema")).arg(packed(&plan)?);
        let sent = clock::boot();
        let values: Vec<Value> = lane.script(&call, Repeat::Harmless).await?;
        let mut values = values.into_iter();
        let at = self.shared_clock(values.next(), sent)?;
        Ok(Looked { at, found: found(looks, values)? })
    }

    async fn change_by(
        &self,
        lane: &Lane,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        let keys = self.keys();
        let within = plan.within.as_ref().map_or((0, 0), |within| (within.start.0, within.end.0));
        let checks: Vec<_> = plan.checks.iter().map(|one| check(keys, one)).collect();
        let mut steps: Vec<Step<'_>> =
            plan.writes.iter().map(|write| step(keys, write)).collect::<Result<_>>()?;
        for tell in &plan.tells {
            steps.push(told(keys, tell)?);
        }
        let looks = [done, refused]
            .map(|looks| looks.iter().map(|look| instruction(keys, look)).collect::<Vec<_>>());
        let [at_done, at_refused] = looks;
        let whole = packed(&(within.0, within.1, checks, steps, at_done, at_refused))?;
        let mut call = self.call(&scripts::CHANGE_RECORDS);
        call.key(keys.global("schema")).arg(whole);
        let repeat = if plan.once { Repeat::Never } else { Repeat::Harmless };
        let sent = clock::boot();
        let values: Vec<Value> = lane.script(&call, repeat).await?;
        let mut values = values.into_iter();
        let changed = match parsed::<String>("change_records", values.next().unwrap_or(Value::Nil))?
        {
            done if done == "1" => Changed::Done,
            _ => Changed::Refused,
        };
        let at = self.shared_clock(values.next(), sent)?;
        let looks = if changed == Changed::Done { done } else { refused };
        Ok((changed, Looked { at, found: found(looks, values)? }))
    }

    /// Notes what the clock of the server said that keeps all this; returns it.
    fn shared_clock(&self, at: Option<Value>, sent: Boot) -> Result<Stamp> {
        let at: i64 = at
            .map(from_redis_value)
            .and_then(std::result::Result::ok)
            .ok_or_else(|| corrupt("an answer without an instant"))?;
        let now = StoreTime(at.div_euclid(1_000));
        let received = clock::boot();
        self.read_clock(&self.keys().epoch(None), now, sent, received);
        let mut latest = self.shared.latest.lock();
        *latest = Some(Latest::read(*latest, Stamp(at), sent, received));
        Ok(Stamp(at))
    }
}
