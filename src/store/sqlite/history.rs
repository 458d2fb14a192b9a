//! The history of runs in SQLite: entries read and written. What becomes of them is decided in `domain::transition::history`.

use rusqlite::{OptionalExtension, Row, params};

use super::fault::Outcome;
use super::row::{corrupt, int, uint, word};
use super::step::Step;
use crate::domain::job::Exit;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, RunId};
use crate::domain::time::StoreTime;
use crate::domain::transition::Job;
use crate::domain::transition::history::Past;
use crate::store::journal::{RUNS_KEPT, RunEntry};

/// The columns of a [`RunEntry`].
pub(super) const ENTRY: &str =
    "id, node, token, started, ended, exit_code, signal, how, killed, folded";

pub(super) fn run_entry(job: &JobName, row: &Row<'_>) -> Outcome<RunEntry> {
    let node: String = row.get(1)?;
    let end: Option<String> = row.get(7)?;
    Ok(RunEntry {
        id: RunId(row.get(0)?),
        job: job.clone(),
        node: NodeName::new(&node).map_err(|why| corrupt("runs, node", &why.to_string()))?,
        token: Token(uint(row.get(2)?)),
        started: StoreTime(row.get(3)?),
        ended: row.get::<_, Option<i64>>(4)?.map(StoreTime),
        exit: Exit { code: row.get(5)?, signal: row.get(6)? },
        end: end.map(|end| word("runs, how", &end)).transpose()?,
        processes_killed: row.get(8)?,
        folded: row.get(9)?,
    })
}

/// Writes an entry, after all others if it is new.
pub(super) fn keep_run(step: &Step<'_>, run: &RunEntry) -> Outcome<()> {
    step.prepare_cached(
        "INSERT INTO runs (job, n, id, node, token, started, ended, exit_code, signal, how, killed, folded) \
         VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM runs WHERE job = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
         ON CONFLICT (job, id) DO UPDATE SET node = excluded.node, token = excluded.token, started = excluded.started, \
         ended = excluded.ended, exit_code = excluded.exit_code, signal = excluded.signal, how = excluded.how, \
         killed = excluded.killed, folded = excluded.folded",
    )?
    .execute(params![
        run.job.as_str(),
        run.id.as_str(),
        run.node.as_str(),
        int(run.token.0),
        run.started.0,
        run.ended.map(|ended| ended.0),
        run.exit.code,
        run.exit.signal,
        run.end.map(|end| end.as_str()),
        run.processes_killed,
        run.folded
    ])?;
    Ok(())
}

/// Takes an entry out.
pub(super) fn drop_run(step: &Step<'_>, job: &JobName, id: &RunId) -> Outcome<()> {
    step.prepare_cached("DELETE FROM runs WHERE job = ? AND id = ?")?
        .execute([job.as_str(), id.as_str()])?;
    Ok(())
}

/// The history as the start of the run `id` needs it: more than its entry matters only to a run that is closed as lost.
pub(super) fn past_of_start(step: &Step<'_>, job: &Job, id: &RunId) -> Outcome<Past> {
    if job.record.run.is_some() {
        return past(step, job, id);
    }
    Ok(Past { this: find(step, &job.record.name, id, "id = ?2")?, ..Past::default() })
}

/// The history as a transition of `job` that closes the run `id` needs it.
pub(super) fn past(step: &Step<'_>, job: &Job, id: &RunId) -> Outcome<Past> {
    let job = &job.record.name;
    let this = find(step, job, id, "id = ?2")?;
    let before = "n < coalesce((SELECT n FROM runs WHERE job = ?1 AND id = ?2), 1 << 62)";
    let before = find(step, job, id, &format!("{before} ORDER BY n DESC LIMIT 1"))?;
    let ended: i64 = step
        .prepare_cached("SELECT count(*) FROM runs WHERE job = ? AND ended IS NOT NULL")?
        .query_row([job.as_str()], |row| row.get(0))?;
    let ended = usize::try_from(ended).unwrap_or(0);
    let (mut oldest_idle, mut oldest) = (None, None);
    if ended >= RUNS_KEPT {
        oldest_idle = find_oldest(step, job, id, "folded > 0")?;
        oldest = find_oldest(step, job, id, "true")?;
    }
    Ok(Past { this, before, ended, oldest_idle, oldest })
}

fn find(step: &Step<'_>, job: &JobName, id: &RunId, which: &str) -> Outcome<Option<RunEntry>> {
    let sql = format!("SELECT {ENTRY} FROM runs WHERE job = ?1 AND {which}");
    let mut statement = step.prepare_cached(&sql)?;
    let mut rows = statement.query([job.as_str(), id.as_str()])?;
    rows.next()?.map(|row| run_entry(job, row)).transpose()
}

/// Of the runs that have ended, `but` and the newest of all left out.
fn find_oldest(step: &Step<'_>, job: &JobName, but: &RunId, which: &str) -> Outcome<Option<RunId>> {
    let sql = format!(
        "SELECT id FROM runs WHERE job = ?1 AND ended IS NOT NULL AND id <> ?2 AND {which} \
         AND n < (SELECT max(n) FROM runs WHERE job = ?1) ORDER BY n LIMIT 1"
    );
    let mut statement = step.prepare_cached(&sql)?;
    Ok(statement.query_row([job.as_str(), but.as_str()], |row| row.get(0).map(RunId)).optional()?)
}
