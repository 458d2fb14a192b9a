//! What ended, and which request had which turn.

use super::super::fault::Outcome;
use super::super::row::{corrupt, find, int, text, uint};
use super::super::step::Step;
use crate::domain::lease::Token;
use crate::domain::name::RotationName;
use crate::domain::rotation::{PastTurn, TURNS_KEPT, Turn, TurnAsk};
use crate::domain::time::Stamp;

/// Most requests that one pump forgets.
const MOST: u32 = 256;

/// Remembers how a turn ended, and forgets the oldest.
pub(super) fn remember(step: &Step<'_>, rotation: &RotationName, past: &PastTurn) -> Outcome<()> {
    step.prepare_cached("INSERT INTO past_turns (rotation, token, turn) VALUES (?, ?, ?)")?
        .execute((rotation.as_str(), int(past.token.0), text(past)?))?;
    step.prepare_cached(
        "DELETE FROM past_turns WHERE n IN \
         (SELECT n FROM past_turns WHERE rotation = ? ORDER BY n DESC LIMIT -1 OFFSET ?)",
    )?
    .execute((rotation.as_str(), i64::try_from(TURNS_KEPT).unwrap_or(i64::MAX)))?;
    step.prepare_cached(
        "INSERT INTO turn_counts (rotation, kind, ending, count) VALUES (?, ?, ?, 1) \
         ON CONFLICT (rotation, kind, ending) DO UPDATE SET count = count + 1",
    )?
    .execute((rotation.as_str(), past.kind.as_str(), past.ending.as_str()))?;
    Ok(())
}

/// Whoever pumps next says that this turn was lost.
pub(super) fn report(step: &Step<'_>, rotation: &RotationName, turn: &Turn) -> Outcome<()> {
    step.prepare_cached("INSERT INTO lost_turns (rotation, turn) VALUES (?, ?)")?
        .execute((rotation.as_str(), text(turn)?))?;
    Ok(())
}

/// What [`report`] left, some at a time; it is gone by that.
pub(super) fn reported(step: &Step<'_>, most: u32) -> Outcome<Vec<(RotationName, Turn)>> {
    let rows: Vec<(String, String)> = step
        .prepare_cached(
            "DELETE FROM lost_turns WHERE n IN (SELECT n FROM lost_turns ORDER BY n LIMIT ?) \
             RETURNING rotation, turn",
        )?
        .query_map([most], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let bad = |why: String| corrupt("lost_turns", &why);
    let read = |(rotation, json): (String, String)| {
        let rotation = RotationName::new(&rotation).map_err(|why| bad(why.to_string()))?;
        Ok((rotation, serde_json::from_str(&json).map_err(|why| bad(why.to_string()))?))
    };
    rows.into_iter().map(read).collect()
}

/// How that turn ended, while it is remembered.
pub(super) fn of(
    step: &Step<'_>,
    rotation: &RotationName,
    token: Token,
) -> Outcome<Option<PastTurn>> {
    let found: Option<String> = find(
        step,
        "SELECT turn FROM past_turns WHERE rotation = ? AND token = ?",
        (rotation.as_str(), int(token.0)),
    )?;
    found.map(|json| read(&json)).transpose()
}

pub(super) fn read(json: &str) -> Outcome<PastTurn> {
    serde_json::from_str(json).map_err(|why| corrupt("past_turns.turn", &why.to_string()))
}

/// The request of that turn has it, until then.
pub(super) fn note(
    step: &Step<'_>,
    rotation: &RotationName,
    turn: &Turn,
    until: Stamp,
) -> Outcome<()> {
    step.prepare_cached(
        "INSERT OR REPLACE INTO turn_requests (rotation, kind, worker, request, token, until) VALUES (?, ?, ?, ?, ?, ?)",
    )?
    .execute((
        rotation.as_str(),
        turn.kind.as_str(),
        turn.worker.as_str(),
        turn.request.as_str(),
        int(turn.token.0),
        until.0,
    ))?;
    Ok(())
}

/// As if the request of that turn had never been made.
pub(super) fn forget(step: &Step<'_>, rotation: &RotationName, turn: &Turn) -> Outcome<()> {
    step.prepare_cached(
        "DELETE FROM turn_requests WHERE rotation = ? AND kind = ? AND worker = ? AND request = ?",
    )?
    .execute((
        rotation.as_str(),
        turn.kind.as_str(),
        turn.worker.as_str(),
        turn.request.as_str(),
    ))?;
    Ok(())
}

/// The turn that this request had.
pub(super) fn had(step: &Step<'_>, ask: &TurnAsk, now: Stamp) -> Outcome<Option<Token>> {
    let token: Option<i64> = find(
        step,
        "SELECT token FROM turn_requests WHERE rotation = ? AND kind = ? AND worker = ? AND request = ? AND until > ?",
        (
            ask.rotation.as_str(),
            ask.kind.as_str(),
            ask.worker.as_str(),
            ask.request.as_str(),
            now.0,
        ),
    )?;
    Ok(token.map(|token| Token(uint(token))))
}

/// Forgets the requests whose time is over, some at a time.
pub(super) fn forget_requests(step: &Step<'_>, now: Stamp) -> Outcome<()> {
    step.prepare_cached(
        "DELETE FROM turn_requests WHERE (rotation, kind, worker, request) IN \
         (SELECT rotation, kind, worker, request FROM turn_requests WHERE until <= ? ORDER BY until LIMIT ?)",
    )?
    .execute((now.0, MOST))?;
    Ok(())
}
