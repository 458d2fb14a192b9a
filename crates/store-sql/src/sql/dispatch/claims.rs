//! Claims as rows: the answers to requests, and the tasks that each still names.
//!
//! A row of `grants` has no token: it is that of its task, as long as that is in the same claim. One that was handed out
//! again under another claim stays named, under no token, because it is lost. `request` is the owner of the claim and what that
//! called its request: two owners may call theirs the same.

use super::super::row::{corrupt, uint, word};
use super::super::session::{Dialect, Row, Statement, Value};
use super::desk::Desk;
use super::ink::Ink;
use super::source;
use super::task::collector;
use soloist_domain::dispatch::{Claim, ClaimId, Kept, Sets, TaskId};
use soloist_domain::lease::Token;
use soloist_domain::name::RequestId;
use soloist_domain::time::Stamp;
use soloist_store::Result;

/// The newest number of a claim.
pub(super) const NEWEST: &str = "SELECT max(n) FROM claims";
/// Claims that are too old to be remembered.
pub(super) const OLD: &str = "SELECT n FROM claims WHERE forget <= ? ORDER BY forget LIMIT ?";
/// A new claim; its number comes first.
pub(super) const ADD: &str = "INSERT INTO claims (n, claim, collector, request, until, reason, next_at, repeated, forget) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// What [`read`] reads of the claims of these ids, then what [`named`] reads; a row for each task that a claim names, or one without.
pub(super) const CLAIMS: &str = "SELECT c.n, c.claim, c.collector, c.request, c.until, c.reason, c.next_at, c.repeated, c.forget, g.task \
     FROM claims c LEFT JOIN grants g ON g.claim = c.n WHERE c.claim";

/// What [`read`] reads of the claims in which the tasks of these ids are leased: what stands before the ids, and behind them.
pub(super) const CLAIMS_OF: (&str, &str) = (
    "SELECT n, claims.claim, collector, request, until, reason, next_at, repeated, forget FROM claims \
     JOIN (SELECT DISTINCT claim FROM tasks WHERE state = 'leased' AND id",
    ") o ON n = o.claim",
);
/// The tasks that those claims name, for [`task`]; the claim last.
pub(super) const GRANTED_OF: (&str, &str) = (
    "SELECT t.id, CASE t.claim WHEN g.claim THEN t.token ELSE 0 END, c.claim FROM \
     (SELECT DISTINCT claim FROM tasks WHERE state = 'leased' AND id",
    ") o JOIN claims c ON c.n = o.claim JOIN grants g ON g.claim = c.n JOIN tasks t ON t.n = g.task \
     ORDER BY g.claim, t.token, t.n",
);

/// A claim, and the number of its row; [`granted`] says which tasks it names.
pub(super) fn read(mut row: Row) -> Result<(i64, Claim)> {
    // Before it stands whose it is.
    let request = row.text(3)?.rsplit(' ').next().unwrap_or_default();
    let request =
        RequestId::new(request).map_err(|why| corrupt("claims.request", &why.to_string()))?;
    let kept = match row.opt_text(5)? {
        Some(reason) => Kept::Nothing {
            reason: word("claims.reason", reason)?,
            next_at: row.opt_int(6)?.map(Stamp),
        },
        None => Kept::Granted {
            tasks: Vec::new(),
            until: Stamp(row.opt_int(4)?.unwrap_or_default()),
            repeated: row.int(7)? != 0,
        },
    };
    let (collector, forget) = (collector(row.text(2)?)?, Stamp(row.int(8)?));
    let claim = Claim { id: ClaimId(row.take(1)?), collector, request, kept, forget };
    Ok((row.int(0)?, claim))
}

/// The row of a task that the claim of this row of [`CLAIMS`] names.
pub(super) fn named(row: &Row) -> Result<Option<i64>> {
    row.opt_int(9)
}

/// The tasks that the claim in that row names, for [`task`].
pub(super) fn granted(n: i64) -> Statement {
    Statement::new(
        "SELECT t.id, CASE t.claim WHEN g.claim THEN t.token ELSE 0 END FROM grants g \
         JOIN tasks t ON t.n = g.task WHERE g.claim = ? ORDER BY t.token, t.n",
        vec![n.into()],
    )
}

/// One of them.
pub(super) fn task(mut row: Row) -> Result<(TaskId, Token)> {
    Ok((TaskId(row.take(0)?), Token(uint(row.int(1)?))))
}

/// Writes a claim that changed or began, or forgets one; not yet its tasks.
pub(super) fn save(desk: &mut Desk<'_>, ink: &mut Ink, id: &ClaimId, claim: Option<&Claim>) {
    let row = desk.claims.get(id).copied();
    let goes_on = claim.is_some_and(|claim| goes_on(&desk.sets, claim));
    if let (Some(row), false) = (row, goes_on) {
        ink.extend(drop_rows(&[row]));
    }
    let Some(claim) = claim else { return };
    let (until, repeated) = match &claim.kept {
        Kept::Granted { until, repeated, .. } => (Some(until.0), *repeated),
        Kept::Nothing { .. } => (None, false),
    };
    let (repeated, forget) = (i64::from(repeated), claim.forget.0);
    if let (Some(row), true) = (row, goes_on) {
        ink.push(Statement::new(
            "UPDATE claims SET until = ?, repeated = ?, forget = ? WHERE n = ?",
            vec![until.into(), repeated.into(), forget.into(), row.into()],
        ));
        return;
    }
    let (reason, next_at) = match &claim.kept {
        Kept::Nothing { reason, next_at } => (Some(source::word(*reason)), *next_at),
        Kept::Granted { .. } => (None, None),
    };
    let n = ink.new_claim();
    ink.push(Statement::new(
        ADD,
        vec![
            n.into(),
            id.0.as_str().into(),
            claim.collector.as_str().into(),
            format!("{} {}", id.owner(), claim.request).into(),
            until.into(),
            reason.into(),
            next_at.map(|at| at.0).into(),
            repeated.into(),
            forget.into(),
        ],
    ));
    desk.claims.insert(id.clone(), n);
}

/// Writes which tasks a claim names.
pub(super) fn save_grants(
    desk: &Desk<'_>,
    dialect: Dialect,
    id: &ClaimId,
    claim: &Claim,
) -> Vec<Statement> {
    let (Some(row), Kept::Granted { tasks, .. }) = (desk.claims.get(id), &claim.kept) else {
        return Vec::new();
    };
    let before = if goes_on(&desk.sets, claim) { before(&desk.sets, id) } else { &[] };
    let row_of = |task: &TaskId| desk.rows.get(task).copied();
    let pair = |task| Some(vec![Value::Int(*row), Value::Int(row_of(task)?)]);
    let gone = before.iter().filter(|one| !tasks.contains(one));
    let gone = gone.filter_map(|(task, _)| pair(task));
    let gone =
        gone.map(|pair| Statement::new("DELETE FROM grants WHERE claim = ? AND task = ?", pair));
    let new = tasks.iter().filter(|one| !before.contains(one));
    let new = new.filter_map(|(task, _)| pair(task)).collect();
    let new = Statement::insert_on(dialect, "INSERT INTO grants (claim, task)", 2, new);
    gone.chain(new).collect()
}

/// Whether it has another row than the one that was loaded, if any.
pub(super) fn begins(sets: &Sets, claim: Option<&Claim>) -> bool {
    claim.is_some_and(|claim| !goes_on(sets, claim))
}

/// Whether it is the one that was loaded, and not begun again.
fn goes_on(sets: &Sets, claim: &Claim) -> bool {
    let before = before(sets, &claim.id);
    match &claim.kept {
        Kept::Granted { tasks, .. } => {
            !before.is_empty() && tasks.iter().all(|one| before.contains(one))
        }
        Kept::Nothing { .. } => false,
    }
}

fn before<'d>(sets: &'d Sets, id: &ClaimId) -> &'d [(TaskId, Token)] {
    match sets.claims.get(id).and_then(Option::as_ref).map(|claim| &claim.kept) {
        Some(Kept::Granted { tasks, .. }) => tasks,
        _ => &[],
    }
}

/// The rows of claims that are too old to be remembered, at most `most`.
pub(super) fn old(now: Stamp, most: usize) -> Statement {
    Statement::new(OLD, vec![now.0.into(), super::super::row::count(most).into()])
}

/// Forgets the claims in these rows.
pub(super) fn drop_rows(rows: &[i64]) -> Vec<Statement> {
    if rows.is_empty() {
        return Vec::new();
    }
    let heads = ["DELETE FROM grants WHERE claim", "DELETE FROM claims WHERE n"];
    heads.map(|head| Statement::of_rows(head, rows)).into()
}
