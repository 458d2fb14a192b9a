//! From what the scripts of dispatch answer to views; what cannot be read names the script or the task.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use ::redis::{FromRedisValue, Value, from_redis_value};

use soloist_domain::dispatch::{Place, Reason, Rules, Shut, Task, TaskState};
use soloist_domain::fields::{Field, Fields as _, Given};
use soloist_domain::lease::Token;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;
use soloist_store::dispatch::{
    BATCH, ClaimId, Claimed, CollectorView, Handed, Past, SourceView, TaskId, TaskView,
};
use soloist_store::portable::StoredTask;
use soloist_store::{Result, StoreError};

/// An answer, taken apart from front to back.
pub(crate) struct Answer {
    script: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl Answer {
    pub(crate) fn of(script: &'static str, value: Value) -> Result<Self> {
        let values: Vec<Value> = read(script, value)?;
        Ok(Self { script, values: values.into_iter() })
    }

    fn next<T: FromRedisValue>(&mut self) -> Result<T> {
        let value = self.values.next();
        read(
            self.script,
            value.ok_or_else(|| corrupt(self.script, &"an answer that is too short"))?,
        )
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        self.next()
    }

    pub(crate) fn texts(&mut self) -> Result<Vec<String>> {
        self.next()
    }

    pub(crate) fn number(&mut self) -> Result<i64> {
        self.next()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.values.len() == 0
    }

    pub(crate) fn rest(&mut self) -> impl Iterator<Item = Value> {
        self.values.by_ref()
    }

    fn stamp(&mut self) -> Result<Option<Stamp>> {
        Ok(Some(self.number()?).filter(|at| *at > 0).map(Stamp))
    }
}

fn read<T: FromRedisValue>(script: &str, value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| corrupt(script, &error))
}

fn corrupt(what: &str, why: &dyn Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {why}"))
}

fn word<T: FromStr<Err: Display>>(what: &str, text: &str) -> Result<T> {
    text.parse().map_err(|error| corrupt(what, &error))
}

/// A record as `move_tasks.lua` writes it.
struct Record<'r> {
    fields: [&'r str; 12],
    key: &'r str,
    error: &'r str,
    payload: &'r str,
}

impl<'r> Record<'r> {
    fn of(id: &TaskId, text: &'r str) -> Result<Self> {
        let bad = || corrupt(&format!("task {}", id.0), &"its record is cut short");
        let mut lines = text.splitn(4, '\n');
        let mut line = || lines.next().ok_or_else(bad);
        let (head, key, error, payload) = (line()?, line()?, line()?, line()?);
        let fields: Vec<&str> = head.split(' ').collect();
        Ok(Self { fields: fields.try_into().map_err(|_| bad())?, key, error, payload })
    }
}

fn reason(text: &str) -> Result<Reason> {
    Ok(match text {
        "empty" => Reason::Empty,
        "gap" => Reason::Gap,
        "cap" => Reason::Cap,
        "paused" => Reason::Paused,
        "blocked" => Reason::Blocked,
        other => return Err(corrupt("reason", &other)),
    })
}

/// The part of an answer of `exchange_tasks.lua` that follows the statuses.
pub(super) fn claimed(answer: &mut Answer, claim: ClaimId) -> Result<Claimed> {
    match answer.text()?.as_str() {
        "nothing" => {
            let reason = reason(&answer.text()?)?;
            Ok(Claimed::Nothing { reason, next_at: answer.stamp()? })
        }
        "granted" => {
            let lease_until = Stamp(answer.number()?);
            let mut tasks = Vec::new();
            while !answer.is_over() {
                let id = TaskId(answer.text()?);
                let text = answer.text()?;
                let record = Record::of(&id, &text)?;
                let [_, source, attempt, token, ..] = record.fields;
                tasks.push(Handed {
                    key: record.key.to_owned(),
                    source: word(&id.0, source)?,
                    payload: record.payload.to_owned(),
                    token: Token(word(&id.0, token)?),
                    attempt: word(&id.0, attempt)?,
                    id,
                });
            }
            Ok(Claimed::Granted { claim, lease_until, tasks })
        }
        "missing" => Err(super::missing(&answer.text()?)),
        other => Err(corrupt("exchange_tasks", &other)),
    }
}

pub(super) fn source_view(value: Value, now: Stamp) -> Result<SourceView> {
    let mut answer = Answer::of("read_sources", value)?;
    let name: SourceName = word("read_sources", &answer.text()?)?;
    let hash: HashMap<String, String> = answer.next()?;
    let field = |field: &str| -> Result<u64> {
        let text = hash.get(field).map_or("0", String::as_str);
        text.parse().map_err(|error| corrupt(&format!("source {name}, field {field}"), &error))
    };
    let kept = |rule: &Field<Rules>| match hash.contains_key(rule.kept) {
        true => {
            field(rule.kept).map(|value| Some(value).filter(|n| *n > 0 || rule.default.is_some()))
        }
        false => Ok(None),
    };
    let rules = Rules::FIELDS.iter().map(kept).collect::<Result<Given<Rules>>>()?;
    let mut rules = rules.fill(Rules::default());
    // An earlier build wrote a span also where there is no window.
    rules.window = rules.window.filter(|window| window.count > 0);
    let blocked_until = Stamp(i64::try_from(field("blocked")?).unwrap_or(i64::MAX));
    let [done, recrawled] = [field("done")?, field("recrawled")?];
    let [started, retried, expired] = [field("started")?, field("retried")?, field("expired")?];
    let mut count = || answer.number().map(|n| u64::try_from(n).unwrap_or_default());
    let [ready, due, in_flight, dead] = [count()?, count()?, count()?, count()?];
    let shut = match answer.text()?.as_str() {
        "" => None,
        why => Some(Shut { reason: reason(why)?, until: answer.stamp()? }),
    };
    Ok(SourceView {
        name,
        rules,
        blocked_until,
        ready,
        due,
        in_flight,
        dead,
        done,
        started,
        finished: done + recrawled,
        retried,
        expired,
        shut,
        now,
    })
}

pub(super) fn task_view(id: TaskId, text: &str, history: &[String]) -> Result<TaskView> {
    let what = format!("task {}", id.0);
    let record = Record::of(&id, text)?;
    let [state, source, attempt, token, _, priority, every, created, changed, at, claim, collector] =
        record.fields;
    let state: TaskState = state.parse().map_err(|_| corrupt(&what, &state))?;
    let (at, every) = (Stamp(word(&what, at)?), word::<u64>(&what, every)?);
    let held = match state {
        TaskState::Leased => {
            let claim = claim.split('/').next().unwrap_or_default();
            Some((word(&what, collector)?, ClaimId(claim.to_owned()), at))
        }
        _ => None,
    };
    Ok(TaskView {
        key: record.key.to_owned(),
        source: word(&what, source)?,
        payload: record.payload.to_owned(),
        priority: word(&what, priority)?,
        state,
        attempt: word(&what, attempt)?,
        token: Token(word(&what, token)?),
        every: (every > 0).then_some(Duration::from_micros(every)),
        created: Stamp(word(&what, created)?),
        changed: Stamp(word(&what, changed)?),
        at: (state == TaskState::Due).then_some(at),
        held,
        error: Some(record.error.to_owned()).filter(|error| !error.is_empty()),
        history: history.iter().map(|entry| past(&what, entry)).collect::<Result<_>>()?,
        id,
    })
}

/// A task with all that is kept of it, and its place if it is ready; `None` when there is no record.
pub(crate) fn stored_task(
    id: &TaskId,
    mut answer: Answer,
    place: Option<u64>,
) -> Result<Option<StoredTask>> {
    if answer.is_over() {
        return Ok(None);
    }
    let text = answer.text()?;
    let mut history = Vec::new();
    while !answer.is_over() {
        history.push(answer.text()?);
    }
    let what = format!("task {}", id.0);
    let [.., accepted, _, _, _, _, _, _, collector] = Record::of(id, &text)?.fields;
    let collector = (collector != "-").then(|| word(&what, collector)).transpose()?;
    let accepted = Token(word(&what, accepted)?);
    let view = task_view(id.clone(), &text, &history)?;
    let task = Task {
        id: view.id,
        source: view.source,
        state: view.state,
        priority: view.priority,
        place: place.map(Place),
        at: view.at,
        until: view.held.map(|(_, _, until)| until),
        // It stands with the claim, which is not carried.
        lease: None,
        attempt: view.attempt,
        token: view.token,
        accepted,
        collector,
        claim: None,
        every: view.every,
        created: view.created,
        changed: view.changed,
        error: view.error,
    };
    Ok(Some(StoredTask { task, key: view.key, payload: view.payload, history: view.history }))
}

/// The record of a task, which is in no collector's hands.
pub(crate) fn record_text(one: &StoredTask) -> String {
    let StoredTask { task, key, payload, .. } = one;
    // The collector is of a lease; only what is done is remembered with it.
    let done = task.state == TaskState::Done;
    let collector = task.collector.as_ref().filter(|_| done).map_or("-", CollectorName::as_str);
    let head = [
        task.state.as_str(),
        task.source.as_str(),
        &task.attempt.to_string(),
        &task.token.0.to_string(),
        &task.accepted.0.to_string(),
        &task.priority.to_string(),
        &task.every.map_or(0, super::micros).to_string(),
        &task.created.0.to_string(),
        &task.changed.0.to_string(),
        &task.at.map_or(0, |at| at.0).to_string(),
        "-",
        collector,
    ];
    let error = super::one_line(task.error.as_deref().unwrap_or_default());
    format!("{}\n{key}\n{error}\n{payload}", head.join(" "))
}

/// An entry of its history.
pub(crate) fn past_text(past: &Past) -> Result<String> {
    let mut value = serde_json::to_value(past).map_err(|error| corrupt("a past", &error))?;
    value["at"] = past.at.0.to_string().into();
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    Ok(value.to_string())
}

/// Lua's JSON would lose digits of the instant, so it stands there as text.
fn past(what: &str, entry: &str) -> Result<Past> {
    let mut value: serde_json::Value =
        serde_json::from_str(entry).map_err(|error| corrupt(what, &error))?;
    if let Some(at) = value["at"].as_str().and_then(|at| at.parse::<i64>().ok()) {
        value["at"] = at.into();
    }
    serde_json::from_value(value).map_err(|error| corrupt(what, &error))
}

pub(super) fn collector_views(mut answer: Answer) -> Result<Vec<CollectorView>> {
    answer.number()?;
    let seen: BTreeMap<String, i64> = answer.next()?;
    let mut views: BTreeMap<CollectorName, CollectorView> = BTreeMap::new();
    let view =
        |name: CollectorName, seen| CollectorView { name, seen, holds: Vec::new(), in_flight: 0 };
    for (name, at) in seen {
        let name: CollectorName = word("read_collectors", &name)?;
        views.insert(name.clone(), view(name, Stamp(at)));
    }
    while !answer.is_over() {
        let id = TaskId(answer.text()?);
        let text = answer.text()?;
        let task = task_view(id, &text, &[])?;
        let Some((name, _, until)) = task.held else { continue };
        let holder = views.entry(name.clone()).or_insert_with(|| view(name, task.changed));
        holder.in_flight += 1;
        holder.holds.push((task.id, task.key, task.source, until));
    }
    let mut views: Vec<CollectorView> = views.into_values().collect();
    for view in &mut views {
        view.holds.sort_by_key(|held| held.3);
        view.holds.truncate(BATCH as usize);
    }
    Ok(views)
}
