//! Load, decide, write: how every transition of a rotation is carried out.
//!
//! The decision is `domain::rotation`'s. Nothing that happens here depends on what is in a record.

use std::collections::BTreeMap;

use rusqlite::OptionalExtension;

use super::super::clock;
use super::super::fault::Outcome;
use super::super::row::{corrupt, text};
use super::super::step::Step;
use super::{past, queue};
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, TypeName};
use crate::domain::rotation::{
    Caller, Change, Memory, Promise, Queues, Rotation, Round, TypeRules, Write,
};
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::Waiter;

/// This store cannot forget on its own.
pub(super) fn memory() -> Memory {
    Memory::default()
}

/// Loads a rotation and carries out one transition of it.
///
/// # Errors
/// [`StoreError::NotFound`].
pub(super) fn decide<T>(
    step: &Step<'_>,
    name: &RotationName,
    caller: Caller<'_>,
    ends: Option<Token>,
    act: impl FnOnce(Round, &Queues) -> Outcome<Change<T>>,
) -> Outcome<T> {
    let loaded = load(step, name)?.ok_or_else(|| unknown(name))?;
    carry_out(step, name, loaded, caller, ends, act)
}

/// Begins a transition, lets `act` decide, and writes what it says. When it refuses, nothing is written. `ends` is
/// the turn that it is meant to end.
pub(super) fn carry_out<T>(
    step: &Step<'_>,
    name: &RotationName,
    (rotation, now): (Rotation, Stamp),
    caller: Caller<'_>,
    ends: Option<Token>,
    act: impl FnOnce(Round, &Queues) -> Outcome<Change<T>>,
) -> Outcome<T> {
    let round = Round::begin(rotation, &memory(), caller, now);
    let mut queues = Queues::default();
    if round.looks_at_queues(ends) {
        let Rotation { rules, silent, .. } = round.rotation();
        let silent = text(&silent.keys().collect::<Vec<_>>())?;
        let asker = if let Caller::Asker(ask) = caller { ask.waiter() } else { None };
        for TypeRules { name: kind, .. } in &rules.types {
            let first = queue::first(step, name, kind, &silent, now, asker)?;
            queues.0.insert(kind.clone(), first);
        }
    }
    commit(step, name, now, act(round, &queues)?)
}

/// A rotation, and the instant.
pub(super) fn load(step: &Step<'_>, name: &RotationName) -> Outcome<Option<(Rotation, Stamp)>> {
    type Row = (String, String, Option<String>, Option<String>, i64, bool, Option<i64>, i64);
    let found: Option<Row> = step
        .prepare_cached(
            "SELECT rules, ring, promised, promised_kind, promised_until, seen, due, d.newest \
             FROM rotations, dispatch d WHERE name = ?",
        )?
        .query_row([name.as_str()], |row| Row::try_from(row))
        .optional()?;
    let Some((rules, ring, waiter, kind, until, seen, due, newest)) = found else {
        return Ok(None);
    };
    let bad = |column: &str, why: String| corrupt(&format!("rotation {name}, {column}"), &why);
    let kind = kind.map(|kind| TypeName::new(&kind)).transpose();
    let kind = kind.map_err(|why| bad("promised_kind", why.to_string()))?;
    let silent: BTreeMap<String, Stamp> = step
        .prepare_cached("SELECT life, until FROM silent_lives WHERE rotation = ?")?
        .query_map([name.as_str()], |r| Ok((r.get(0)?, Stamp(r.get(1)?))))?
        .collect::<Result<_, _>>()?;
    let rotation = Rotation {
        rules: serde_json::from_str(&rules).map_err(|why| bad("rules", why.to_string()))?,
        ring: serde_json::from_str(&ring).map_err(|why| bad("ring", why.to_string()))?,
        promise: waiter.zip(kind).map(|(waiter, kind)| Promise {
            waiter: Waiter(waiter),
            kind,
            until: Stamp(until),
        }),
        seen,
        silent,
        known: memory(),
        due: due.map(Stamp),
    };
    Ok(Some((rotation, clock::take(step, newest)?)))
}

/// Writes what was decided, and answers.
fn commit<T>(step: &Step<'_>, name: &RotationName, now: Stamp, change: Change<T>) -> Outcome<T> {
    let mut woken = Vec::new();
    for one in &change.writes {
        match one {
            Write::Remember(turn) => past::remember(step, name, turn)?,
            Write::Report(turn) => past::report(step, name, turn)?,
            Write::Note(turn, until) => past::note(step, name, turn, *until)?,
            Write::Forget(turn) => past::forget(step, name, turn)?,
            Write::Enter { waiter, kind, worker, until } => {
                queue::enter(step, name, kind, waiter, worker, (now, *until))?;
            }
            Write::Strike(waiter) => queue::strike(step, name, waiter)?,
            Write::Dismiss(kind) => woken.extend(queue::dismiss(step, name, kind)?),
            Write::Wake(waiter) => woken.push(waiter.clone()),
        }
    }
    save(step, name, &change.rotation)?;
    clock::keep(step, now)?;
    if !woken.is_empty() {
        step.publish_wake(&woken)?;
    }
    Ok(change.answer)
}

fn save(step: &Step<'_>, name: &RotationName, rotation: &Rotation) -> Outcome<()> {
    let promise = rotation.promise.as_ref();
    step.prepare_cached(
        "INSERT OR REPLACE INTO rotations \
         (name, rules, ring, promised, promised_kind, promised_until, seen, due) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute((
        name.as_str(),
        text(&rotation.rules)?,
        text(&rotation.ring)?,
        promise.map(|promise| &promise.waiter.0),
        promise.map(|promise| promise.kind.as_str()),
        promise.map_or(0, |promise| promise.until.0),
        rotation.seen,
        rotation.due.map(|due| due.0),
    ))?;
    step.prepare_cached("DELETE FROM silent_lives WHERE rotation = ?")?.execute([name.as_str()])?;
    for (life, until) in &rotation.silent {
        step.prepare_cached("INSERT INTO silent_lives (life, rotation, until) VALUES (?, ?, ?)")?
            .execute((life, name.as_str(), until.0))?;
    }
    Ok(())
}

/// No such rotation.
pub(super) fn unknown(name: &RotationName) -> StoreError {
    StoreError::NotFound(format!("rotation {name}"))
}
