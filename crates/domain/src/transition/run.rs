//! Runs: begun, told to stop, ended. The end of a run releases its lease in the same step.
//!
//! A report that comes twice, late or out of order changes nothing: an ended run stays ended, and no end releases a newer holder's lease. End
//! and release are one step, or another node could start before the end is known.

use std::time::Duration;

use super::history::{Ending, Past, close, close_as_lost};
use super::participation::over;
use super::{Job, Now, Write, drill};
use crate::event::EventKind;
use crate::job::{Next, NextWhat, RunEnd, RunPhase, RunRecord};
use crate::journal::{Ended, RunEntry, Started, Then};
use crate::lease::{Stale, Token};
use crate::name::NodeName;
use crate::spent;
use crate::tick::{self, shifted};
use crate::time::StoreTime;

/// A run began. Answers when, by the store's clock. `past` is about that run.
///
/// Repeated, or after the release of the lease, it changes nothing; a store that forgot the run shows it as before. One that
/// still shows an older run, whose end it forgot, closes that as lost.
///
/// # Errors
/// [`Stale`]; then nothing is to be written.
pub fn started(
    job: &mut Job,
    past: &Past,
    started: &Started,
    now: Now,
) -> Result<(StoreTime, Vec<Write>), Stale> {
    job.check(started.token)?;
    if let Some(run) = job.record.run.as_ref().filter(|run| run.id == started.run) {
        return Ok((run.started, Vec::new()));
    }
    let began = started.began.on(now.at, now.boot);
    let over = past.this.as_ref().is_some_and(|entry| entry.ended.is_some());
    if over || started.token <= job.released {
        return Ok((began, Vec::new()));
    }
    let mut writes = close_as_lost(job, past, now.at);
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
    if past.this.is_none() {
        writes.push(Write::KeepRun(RunEntry::begun(&job.record, &run)));
    }
    drill::end_with(&mut job.record, &run);
    tick::started(&mut job.record, &run);
    job.record.run = Some(run);
    writes.push(job.publish(EventKind::RunStarted));
    Ok((began, writes))
}

/// The run of `token` was told to stop and is killed after `grace`.
///
/// # Errors
/// [`Stale`]; then nothing is to be written.
pub fn stopping(
    job: &mut Job,
    token: Token,
    grace: Duration,
    now: Now,
) -> Result<Vec<Write>, Stale> {
    job.check(token)?;
    let Some(run) = job.record.run.as_mut().filter(|run| run.token == token) else {
        return Ok(Vec::new());
    };
    run.phase = RunPhase::Stopping { kill_at: now.at + grace };
    Ok(vec![job.publish(EventKind::RunProgressed)])
}

/// A run's process tree is proved gone: its end is kept, its lease released, and the answer says what follows. `past` is about that run.
///
/// Works without a start (spawn failed, or the report of it was lost) and when the lease has run out unclaimed.
///
/// # Errors
/// [`Stale`]: a newer holder has closed this run as lost; then nothing is to be written.
pub fn ended(job: &mut Job, past: &Past, ended: &Ended, now: Now) -> Result<Vec<Write>, Stale> {
    let told = past.this.as_ref().and_then(|entry| entry.end);
    if told == Some(ended.end) {
        // The answer was lost on its way; a newer holder may have come meanwhile.
        return Ok(Vec::new());
    }
    job.check(ended.token)?;
    if told.is_some() {
        return Ok(Vec::new());
    }
    let present = job.record.run.take_if(|run| run.id == ended.run);
    let how = Ending {
        exit: ended.exit,
        end: ended.end,
        processes_killed: ended.processes_killed,
        silent: present.as_ref().is_some_and(RunRecord::is_silent),
        at: now.at,
    };
    let known = past.this.clone();
    let known = known.or_else(|| present.map(|run| RunEntry::begun(&job.record, &run)));
    let entry = known.unwrap_or_else(|| unreported(job, ended, now));
    let node = entry.node.clone();
    let mut writes = close(&mut job.record, past, entry, how);
    let told = tick::ended(&mut job.record, &node, ended, now.at);
    spent::ended(&mut job.record, ended, now.at);
    job.give_back(ended.token);
    // What follows a tick is in its record.
    let then = if told.is_some() { Then::Nothing } else { ended.then };
    writes.extend(told.into_iter().flatten());
    writes.extend(follow(job, then, now));
    if let Some(last) = &mut job.record.last_exit {
        last.early = ended.end == RunEnd::Died && ended.then != Then::Nothing;
    }
    writes.push(job.publish(EventKind::RunEnded));
    writes.push(job.publish(EventKind::LeaseReleased));
    if then == Then::Done {
        writes.push(job.publish(EventKind::ParticipationChanged));
    }
    Ok(writes)
}

/// The entry of a run whose start was never reported: it began when the reporter says, or else with its lease.
fn unreported(job: &Job, ended: &Ended, now: Now) -> RunEntry {
    let lease = job.lease_of(ended.token);
    let granted = lease.map_or(now.at, |lease| lease.since);
    let run = RunRecord {
        id: ended.run.clone(),
        token: ended.token,
        node: lease.map_or_else(NodeName::unknown, |lease| lease.node.clone()),
        pid: 0,
        started: ended.began.map_or(granted, |began| began.on(now.at, now.boot)),
        phase: RunPhase::Running,
        progress: None,
        last_output: None,
    };
    RunEntry::begun(&job.record, &run)
}

/// What follows the end of a run.
fn follow(job: &mut Job, then: Then, now: Now) -> Vec<Write> {
    job.forgive();
    let (record, at) = (&mut job.record, now.at);
    match then {
        Then::Nothing | Then::OnceMore | Then::Unused => {}
        Then::Repeat(wait) => record.next = Some(Next { what: NextWhat::Repeat, at: at + wait }),
        Then::Done => {
            let gone = record.participants.drain(..).map(|one| over(one, now)).collect();
            shifted(record, at);
            return gone;
        }
        Then::Retry { crashes, wait } => {
            record.crashes = crashes;
            record.next = Some(Next { what: NextWhat::Retry, at: at + wait });
        }
        Then::GiveUp { crashes } => {
            record.crashes = crashes;
            record.given_up = true;
        }
    }
    Vec::new()
}
