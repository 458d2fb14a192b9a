//! The journal in SQLite: runs, output, audit.

use std::time::Duration;

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{Job, corrupt, int, uint};
use super::step::Step;
use crate::domain::event::EventKind;
use crate::domain::job::{Exit, JobRecord, LastExit, Next, NextWhat, RunEnd, RunPhase, RunRecord};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, RunId};
use crate::domain::time::StoreTime;
use crate::store::Result;
use crate::store::journal::{
    AUDIT_KEPT, AuditEntry, Ended, Journal, LOG_LINES, LogLine, Output, RUNS_KEPT, RunEntry,
    Started, Stream, Then,
};

impl Journal for SqliteStore {
    async fn record_started(&self, started: &Started) -> Result<StoreTime> {
        let started = started.clone();
        self.write(move |step| record_started(step, &started)).await
    }

    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()> {
        let name = job.clone();
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            job.check_token(token)?;
            let Some(run) = job.record.run.as_mut().filter(|run| run.token == token) else {
                return Ok(());
            };
            run.phase = RunPhase::Stopping { kill_at: step.at.wall + grace };
            step.publish(&mut job, EventKind::RunProgressed)?;
            job.save(step)
        })
        .await
    }

    async fn record_output(&self, output: &Output) -> Result<()> {
        let output = output.clone();
        self.write(move |step| record_output(step, &output)).await
    }

    async fn record_ended(&self, ended: &Ended) -> Result<()> {
        let ended = ended.clone();
        self.write(move |step| record_ended(step, &ended)).await
    }

    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>> {
        let (name, before) = (job.clone(), before.cloned());
        self.read(move |db, _| {
            let mut statement = db.prepare_cached(
                "SELECT id, node, token, started, ended, exit_code, signal, how, killed, folded FROM runs \
                 WHERE job = ?1 AND (?2 IS NULL OR n < (SELECT n FROM runs WHERE job = ?1 AND id = ?2)) \
                 ORDER BY n DESC LIMIT ?3",
            )?;
            let before = before.as_ref().map(RunId::as_str);
            let limit = int(limit as u64);
            let mut rows = statement.query(params![name.as_str(), before, limit])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                runs.push(run_entry(&name, row)?);
            }
            Ok(runs)
        })
        .await
    }

    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>> {
        let (name, limit) = (job.clone(), int(limit as u64));
        self.read(move |db, _| {
            let order = if after.is_some() { "ASC" } else { "DESC" };
            let mut statement = db.prepare_cached(&format!(
                "SELECT seq, at, run, node, stream, text FROM lines WHERE job = ? AND seq > ? \
                 ORDER BY seq {order} LIMIT ?"
            ))?;
            let mut rows =
                statement.query(params![name.as_str(), int(after.unwrap_or(0)), limit])?;
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                lines.push(log_line(&name, row)?);
            }
            if after.is_none() {
                lines.reverse();
            }
            Ok(lines)
        })
        .await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        let entry = entry.clone();
        self.write(move |step| {
            step.prepare_cached(
                "INSERT INTO audit (at, who, origin, act, target, reason) VALUES (?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                step.at.wall.0,
                entry.who,
                entry.from,
                entry.act,
                entry.target,
                entry.reason
            ])?;
            let id = step.last_insert_rowid();
            if id % 64 == 0 {
                let oldest = id - int(AUDIT_KEPT as u64);
                step.prepare_cached("DELETE FROM audit WHERE id <= ?")?.execute([oldest])?;
            }
            Ok(())
        })
        .await
    }

    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let target = target.map(str::to_owned);
        self.read(move |db, _| {
            let only = if target.is_some() { "target = ?1" } else { "?1 IS NULL" };
            let mut statement = db.prepare_cached(&format!(
                "SELECT id, at, who, origin, act, target, reason FROM audit WHERE {only} AND id < ?2 \
                 ORDER BY id DESC LIMIT ?3"
            ))?;
            let before = before.map_or(i64::MAX, int);
            let entries = statement.query_map(params![target, before, int(limit as u64)], |row| {
                Ok(AuditEntry {
                    id: uint(row.get(0)?),
                    at: StoreTime(row.get(1)?),
                    who: row.get(2)?,
                    from: row.get(3)?,
                    act: row.get(4)?,
                    target: row.get(5)?,
                    reason: row.get(6)?,
                })
            })?;
            Ok(entries.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

fn record_started(step: &Step<'_>, started: &Started) -> Outcome<StoreTime> {
    let mut job = Job::load(step, &started.job)?;
    job.check_token(started.token)?;
    let began = started.began.on(step.at.wall, step.at.boot);
    if let Some(run) = job.record.run.as_ref().filter(|run| run.id == started.run) {
        return Ok(run.started);
    }
    let listed = find_run(step, &started.job, &started.run)?;
    if listed.is_some_and(|ended| ended.is_some()) {
        return Ok(began);
    }
    close_as_lost(step, &mut job)?;
    let run = RunRecord {
        id: started.run.clone(),
        token: started.token,
        node: started.node.clone(),
        pid: started.pid,
        started: began,
        phase: RunPhase::Running,
        progress: None,
        last_output: None,
    };
    if listed.is_none() {
        insert_run(step, &started.job, &run)?;
    }
    end_drill(&mut job.record, &run);
    job.record.run = Some(run);
    step.publish(&mut job, EventKind::RunStarted)?;
    job.save(step)?;
    Ok(began)
}

/// A drill ends with the first run after it; one whose run did not crash measured nothing and is forgotten.
fn end_drill(record: &mut JobRecord, run: &RunRecord) {
    let Some(drill) = &mut record.drill else { return };
    if drill.started.is_some() || drill.token >= run.token {
        return;
    }
    if record.last_exit.as_ref().is_some_and(|last| last.end == RunEnd::Lost) {
        drill.to = Some(run.node.clone());
        drill.started = Some(run.started);
    } else {
        record.drill = None;
    }
}

fn record_output(step: &Step<'_>, output: &Output) -> Outcome<()> {
    let mut job = Job::load(step, &output.job)?;
    job.check_token(output.token)?;
    if output.lines.is_empty() && output.progress.is_none() {
        return Ok(());
    }
    let at = step.at.wall;
    let mut insert = step.prepare_cached(
        "INSERT INTO lines (job, seq, at, run, node, stream, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for line in &output.lines {
        job.record.log_seq += 1;
        insert.execute(params![
            output.job.as_str(),
            int(job.record.log_seq),
            at.0,
            output.run.as_str(),
            output.node.as_str(),
            line.stream.as_str(),
            line.text
        ])?;
    }
    if let Some(newest) = output.lines.last() {
        job.record.last_line = Some(newest.text.clone());
        let oldest = int(job.record.log_seq) - int(LOG_LINES as u64);
        step.prepare_cached("DELETE FROM lines WHERE job = ? AND seq <= ?")?
            .execute(params![output.job.as_str(), oldest])?;
    }
    if let Some(run) = job.record.run.as_mut().filter(|run| run.id == output.run) {
        if output.progress.is_some() {
            run.progress.clone_from(&output.progress);
        }
        if !output.lines.is_empty() {
            run.last_output = Some(at);
        }
    }
    step.publish(&mut job, EventKind::RunProgressed)?;
    job.save(step)
}

fn record_ended(step: &Step<'_>, ended: &Ended) -> Outcome<()> {
    let mut job = Job::load(step, &ended.job)?;
    job.check_token(ended.token)?;
    let at = step.at.wall;
    let known = find_run(step, &ended.job, &ended.run)?;
    if known.is_some_and(|ended| ended.is_some()) {
        return Ok(());
    }
    let lease = job.lease.clone().filter(|lease| lease.token == ended.token);
    let mut idle = ended.end == RunEnd::Exited && ended.exit.is_success();
    idle &= ended.processes_killed == 0;
    let run = match job.record.run.take_if(|run| run.id == ended.run) {
        Some(run) => {
            idle &= run.is_silent();
            run
        }
        None => {
            idle = false;
            let node = lease.as_ref().map(|lease| lease.node.clone());
            let node = node.map_or_else(|| NodeName::new("unknown"), Ok);
            RunRecord {
                id: ended.run.clone(),
                token: ended.token,
                node: node.map_err(|why| corrupt("a node", &why.to_string()))?,
                pid: 0,
                started: match ended.began {
                    Some(began) => began.on(at, step.at.boot),
                    None => lease.as_ref().map_or(at, |lease| lease.since),
                },
                phase: RunPhase::Running,
                progress: None,
                last_output: None,
            }
        }
    };
    if known.is_none() {
        insert_run(step, &ended.job, &run)?;
    }
    close_run(step, &ended.job, &ended.run, ended.exit, ended.end, ended.processes_killed)?;
    if idle {
        fold(step, &job.record, &run)?;
    }
    trim(step, &ended.job)?;
    job.record.last_exit = Some(LastExit { exit: ended.exit, end: ended.end, node: run.node, at });
    job.lease = job.lease.filter(|lease| lease.token != ended.token);
    job.forgive();
    match ended.then {
        Then::Nothing => {}
        Then::Repeat(wait) => {
            job.record.next = Some(Next { what: NextWhat::Repeat, at: at + wait });
        }
        Then::Done => job.record.participants.clear(),
        Then::Retry { crashes, wait } => {
            job.record.crashes = crashes;
            job.record.next = Some(Next { what: NextWhat::Retry, at: at + wait });
        }
        Then::GiveUp { crashes } => {
            job.record.crashes = crashes;
            job.record.given_up = true;
        }
    }
    step.publish(&mut job, EventKind::RunEnded)?;
    step.publish(&mut job, EventKind::LeaseReleased)?;
    if ended.then == Then::Done {
        step.publish(&mut job, EventKind::ParticipationChanged)?;
    }
    job.save(step)
}

/// Closes the run that the record still shows, which nobody can report any more, and publishes the loss.
pub(super) fn close_as_lost(step: &Step<'_>, job: &mut Job) -> Outcome<()> {
    let Some(run) = job.record.run.take() else { return Ok(()) };
    let exit = Exit::default();
    close_run(step, &job.record.name, &run.id, exit, RunEnd::Lost, 0)?;
    trim(step, &job.record.name)?;
    let at = step.at.wall;
    job.record.last_exit = Some(LastExit { exit, end: RunEnd::Lost, node: run.node, at });
    step.publish(job, EventKind::LeaseLost)
}

/// Whether a run is in the history, and when it ended.
fn find_run(step: &Step<'_>, job: &JobName, id: &RunId) -> Outcome<Option<Option<i64>>> {
    Ok(step
        .prepare_cached("SELECT ended FROM runs WHERE job = ? AND id = ?")?
        .query_row([job.as_str(), id.as_str()], |row| row.get(0))
        .optional()?)
}

fn insert_run(step: &Step<'_>, job: &JobName, run: &RunRecord) -> Outcome<()> {
    let job = job.as_str();
    let n: i64 = step
        .prepare_cached("SELECT coalesce(max(n), 0) + 1 FROM runs WHERE job = ?")?
        .query_row([job], |row| row.get(0))?;
    step.prepare_cached(
        "INSERT INTO runs (job, n, id, node, token, started, killed) VALUES (?, ?, ?, ?, ?, ?, 0)",
    )?
    .execute(params![
        job,
        n,
        run.id.as_str(),
        run.node.as_str(),
        int(run.token.0),
        run.started.0
    ])?;
    Ok(())
}

/// Marks an idle run, and takes the entry before it in if this one only goes on with it: idle too, on the same node,
/// nobody switched in between.
fn fold(step: &Step<'_>, record: &JobRecord, run: &RunRecord) -> Outcome<()> {
    let (job, id) = (record.name.as_str(), run.id.as_str());
    let switched = record.last_switch.as_ref().map_or(0, |last| last.at.0);
    let before: Option<(i64, i64, u32)> = step
        .prepare_cached(
            "SELECT n, started, folded FROM (SELECT * FROM runs WHERE job = ?1 \
             AND n < (SELECT n FROM runs WHERE job = ?1 AND id = ?2) ORDER BY n DESC LIMIT 1) \
             WHERE folded > 0 AND node = ?3 AND ended >= ?4",
        )?
        .query_row(params![job, id, run.node.as_str(), switched], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let (started, folded) = match before {
        None => (run.started.0, 1),
        Some((n, started, folded)) => {
            step.prepare_cached("DELETE FROM runs WHERE job = ? AND n = ?")?
                .execute(params![job, n])?;
            (started, folded + 1)
        }
    };
    step.prepare_cached("UPDATE runs SET started = ?, folded = ? WHERE job = ? AND id = ?")?
        .execute(params![started, folded, job, id])?;
    Ok(())
}

/// Entries of idle runs go first, the oldest of them before the others; all else stays for as long as there is one. The
/// newest entry always stays: by it an end that is reported twice is known.
fn trim(step: &Step<'_>, job: &JobName) -> Outcome<()> {
    step.prepare_cached(
        "DELETE FROM runs WHERE job = ?1 AND n IN (SELECT n FROM runs WHERE job = ?1 AND ended IS NOT NULL \
         AND n < (SELECT max(n) FROM runs WHERE job = ?1) \
         ORDER BY folded = 0, n LIMIT max(0, (SELECT count(*) FROM runs WHERE job = ?1) - ?2))",
    )?
    .execute(params![job.as_str(), int(RUNS_KEPT as u64)])?;
    Ok(())
}

fn close_run(
    step: &Step<'_>,
    job: &JobName,
    id: &RunId,
    exit: Exit,
    end: RunEnd,
    killed: u32,
) -> Outcome<()> {
    step.prepare_cached(
        "UPDATE runs SET ended = ?, exit_code = ?, signal = ?, how = ?, killed = ? WHERE job = ? AND id = ?",
    )?
    .execute(params![
        step.at.wall.0,
        exit.code,
        exit.signal,
        end.as_str(),
        killed,
        job.as_str(),
        id.as_str()
    ])?;
    Ok(())
}

/// The variant whose word stands in the column.
fn word<T: serde::de::DeserializeOwned>(what: &str, word: &str) -> Outcome<T> {
    let value = serde_json::Value::String(word.to_owned());
    serde_json::from_value(value).map_err(|why| corrupt(what, &why.to_string()))
}

fn run_entry(job: &JobName, row: &Row<'_>) -> Outcome<RunEntry> {
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

fn log_line(job: &JobName, row: &Row<'_>) -> Outcome<LogLine> {
    let node: String = row.get(3)?;
    let stream: String = row.get(4)?;
    let what = format!("lines of {job}");
    Ok(LogLine {
        seq: uint(row.get(0)?),
        at: StoreTime(row.get(1)?),
        run: RunId(row.get(2)?),
        node: NodeName::new(&node).map_err(|why| corrupt(&what, &why.to_string()))?,
        stream: word::<Stream>(&what, &stream)?,
        text: row.get(5)?,
    })
}
