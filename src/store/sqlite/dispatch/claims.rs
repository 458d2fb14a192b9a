//! Claims as rows: the answers to requests, and the tasks that each still names.
//!
//! A row of `grants` has no token: it is that of its task, as long as that is in the same claim. One that was handed out
//! again under another claim stays named, under no token, because it is lost. `request` is the owner of the claim and what that
//! called its request: two owners may call theirs the same.

use rusqlite::Row;

use super::super::fault::Outcome;
use super::super::row::{corrupt, uint, word};
use super::super::step::Step;
use super::decide::Desk;
use super::source;
use super::task::collector;
use crate::domain::dispatch::{Claim, ClaimId, Kept, TaskId};
use crate::domain::lease::Token;
use crate::domain::name::RequestId;
use crate::domain::time::Stamp;

/// Old claims that go whenever a new one comes.
const SOME: u32 = 4;
const COLUMNS: &str = "n, collector, request, claim, until, reason, next_at, repeated, forget";

/// The claim of that id, and its row.
pub(super) fn by_id(step: &Step<'_>, id: &ClaimId) -> Outcome<Option<(i64, Claim)>> {
    let mut found =
        step.prepare_cached(&format!("SELECT {COLUMNS} FROM claims WHERE claim = ?"))?;
    let mut rows = found.query([&id.0])?;
    rows.next()?.map(|row| read(step, row, id)).transpose()
}

fn read(step: &Step<'_>, row: &Row<'_>, id: &ClaimId) -> Outcome<(i64, Claim)> {
    let n: i64 = row.get(0)?;
    // An older program forgot requests that were given back by emptying the column.
    let request = row.get::<_, Option<String>>(2)?.unwrap_or_else(|| "-".to_owned());
    // Before it stands whose it is; an older program wrote the request alone.
    let request = request.rsplit(' ').next().unwrap_or_default();
    let reason: Option<String> = row.get(5)?;
    let kept = match reason {
        Some(reason) => Kept::Nothing {
            reason: word("claims.reason", &reason)?,
            next_at: row.get::<_, Option<i64>>(6)?.map(Stamp),
        },
        None => Kept::Granted {
            tasks: granted(step, n)?,
            until: Stamp(row.get::<_, Option<i64>>(4)?.unwrap_or_default()),
            repeated: row.get(7)?,
        },
    };
    let claim = Claim {
        id: id.clone(),
        collector: collector(&row.get::<_, String>(1)?)?,
        request: RequestId::new(request)
            .map_err(|why| corrupt("claims.request", &why.to_string()))?,
        kept,
        forget: Stamp(row.get(8)?),
    };
    Ok((n, claim))
}

fn granted(step: &Step<'_>, n: i64) -> Outcome<Vec<(TaskId, Token)>> {
    let tasks = step
        .prepare_cached(
            "SELECT t.id, CASE t.claim WHEN g.claim THEN t.token ELSE 0 END FROM grants g \
             JOIN tasks t ON t.n = g.task WHERE g.claim = ? ORDER BY t.token, t.n",
        )?
        .query_map([n], |row| Ok((TaskId(row.get(0)?), Token(uint(row.get(1)?)))))?
        .collect::<Result<_, _>>()?;
    Ok(tasks)
}

/// Writes a claim that changed or began, or forgets one; not yet its tasks.
pub(super) fn save(desk: &mut Desk<'_>, id: &ClaimId, claim: Option<&Claim>) -> Outcome<()> {
    let step = desk.step;
    let row = desk.claims.get(id).copied();
    if let (Some(row), false) = (row, claim.is_some_and(|claim| goes_on(desk, claim))) {
        drop_row(step, row)?;
    }
    let Some(claim) = claim else { return Ok(()) };
    let (until, repeated) = match &claim.kept {
        Kept::Granted { until, repeated, .. } => (Some(until.0), *repeated),
        Kept::Nothing { .. } => (None, false),
    };
    if let (Some(row), true) = (row, goes_on(desk, claim)) {
        step.prepare_cached("UPDATE claims SET until = ?, repeated = ?, forget = ? WHERE n = ?")?
            .execute((until, repeated, claim.forget.0, row))?;
        return Ok(());
    }
    forget(step, desk.now, SOME)?;
    let (reason, next_at) = match &claim.kept {
        Kept::Nothing { reason, next_at } => (Some(source::word(*reason)), *next_at),
        Kept::Granted { .. } => (None, None),
    };
    step.prepare_cached(
        "INSERT INTO claims (claim, collector, request, until, reason, next_at, repeated, forget) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute((
        &id.0,
        claim.collector.as_str(),
        format!("{} {}", id.owner(), claim.request),
        until,
        reason,
        next_at.map(|at| at.0),
        repeated,
        claim.forget.0,
    ))?;
    desk.claims.insert(id.clone(), step.last_insert_rowid());
    Ok(())
}

/// Writes which tasks a claim names.
pub(super) fn save_grants(desk: &Desk<'_>, id: &ClaimId, claim: &Claim) -> Outcome<()> {
    let step = desk.step;
    let (Some(row), Kept::Granted { tasks, .. }) = (desk.claims.get(id), &claim.kept) else {
        return Ok(());
    };
    let before = if goes_on(desk, claim) { before(desk, id) } else { &[] };
    let row_of = |task: &TaskId| desk.rows.get(task).copied();
    for (task, _) in before.iter().filter(|one| !tasks.contains(one)) {
        step.prepare_cached("DELETE FROM grants WHERE claim = ? AND task = ?")?
            .execute((row, row_of(task)))?;
    }
    for (task, _) in tasks.iter().filter(|one| !before.contains(one)) {
        step.prepare_cached("INSERT INTO grants (claim, task) VALUES (?, ?)")?
            .execute((row, row_of(task)))?;
    }
    Ok(())
}

/// Whether it is the one that was loaded, and not begun again.
fn goes_on(desk: &Desk<'_>, claim: &Claim) -> bool {
    let before = before(desk, &claim.id);
    match &claim.kept {
        Kept::Granted { tasks, .. } => {
            !before.is_empty() && tasks.iter().all(|one| before.contains(one))
        }
        Kept::Nothing { .. } => false,
    }
}

fn before<'d>(desk: &'d Desk<'_>, id: &ClaimId) -> &'d [(TaskId, Token)] {
    match desk.sets.claims.get(id).and_then(Option::as_ref).map(|claim| &claim.kept) {
        Some(Kept::Granted { tasks, .. }) => tasks,
        _ => &[],
    }
}

/// Forgets what is old, at most `most`.
pub(super) fn forget(step: &Step<'_>, now: Stamp, most: u32) -> Outcome<()> {
    let old: Vec<i64> = step
        .prepare_cached("SELECT n FROM claims WHERE forget <= ? ORDER BY forget LIMIT ?")?
        .query_map((now.0, most), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    old.into_iter().try_for_each(|n| drop_row(step, n))
}

fn drop_row(step: &Step<'_>, n: i64) -> Outcome<()> {
    step.prepare_cached("DELETE FROM grants WHERE claim = ?")?.execute([n])?;
    step.prepare_cached("DELETE FROM claims WHERE n = ?")?.execute([n])?;
    Ok(())
}
