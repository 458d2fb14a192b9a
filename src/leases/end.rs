//! How a program's lease ends: given back by its holder, or silent until it ran out.

use std::time::Duration;

use tokio::time::sleep;

use super::secret::Secret;
use super::{Kind, LeaseDesk, Terms};
use crate::clock;
use crate::config::JobConfig;
use crate::domain::job::{Exit, JobRecord, RunEnd, RunPhase, RunRecord};
use crate::domain::journal::Stream;
use crate::domain::name::{NodeName, Owner};
use crate::domain::time::StoreTime;
use crate::store::journal::{Ended, Journal as _, NewLine, Output, Then};
use crate::store::leases::Leases as _;
use crate::store::{Result as Stored, StoreError};
use crate::waiting::DeskError;

/// How often a node looks for runs whose holder is silent.
const SWEEP: Duration = Duration::from_millis(500);

/// How a holder says that its work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// As it should.
    pub done: bool,
    /// Exit code; 0 for done and 1 for failed unless it says so.
    pub code: Option<i32>,
    /// What went wrong.
    pub error: Option<String>,
}

/// What [`LeaseDesk::release`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The lease is free, or was already.
    Yes,
    /// The lease is another's: nothing was changed.
    Another,
}

impl LeaseDesk {
    /// Gives a lease back. The same release twice is harmless.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn release(
        &self,
        terms: &Terms,
        secret: &Secret,
        ending: &Ending,
    ) -> Result<Released, DeskError> {
        let (record, at) = self.record(&terms.name).await?;
        let own = secret.owner();
        let held = record.lease.as_ref();
        if held.is_some_and(|lease| lease.owner != own || lease.token != secret.token)
            || record.token > secret.token
        {
            return Ok(Released::Another);
        }
        if terms.kind_of(secret) == Kind::Program {
            self.store()?.release(&terms.name, &own).await?;
            self.call_next(&terms.name).await;
            return Ok(Released::Yes);
        }
        let run = record.run.as_ref().filter(|run| run.id == secret.run(&terms.name));
        if run.is_none() && held.is_none() {
            // It was given back before.
            return Ok(Released::Yes);
        }
        if let Some(error) = &ending.error {
            let holder = run.map_or_else(NodeName::unknown, |run| run.node.clone());
            self.say(terms, secret, holder, error).await?;
        }
        let ended = ended(terms, secret, &record, run, ending, at);
        match self.store()?.record_ended(&ended).await {
            Ok(()) => Ok(Released::Yes),
            Err(StoreError::Stale { .. }) => Ok(Released::Another),
            Err(error) => Err(error.into()),
        }
    }

    /// The last words of a run.
    async fn say(
        &self,
        terms: &Terms,
        secret: &Secret,
        node: NodeName,
        error: &str,
    ) -> Result<(), DeskError> {
        let lines =
            error.lines().map(|text| NewLine { stream: Stream::Stderr, text: text.to_owned() });
        let output = Output {
            job: terms.name.clone(),
            token: secret.token,
            run: secret.run(&terms.name),
            node,
            lines: lines.collect(),
            progress: None,
        };
        match self.store()?.record_output(&output).await {
            Ok(()) | Err(StoreError::Stale { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What the journal is told.
fn ended(
    terms: &Terms,
    secret: &Secret,
    record: &JobRecord,
    run: Option<&RunRecord>,
    ending: &Ending,
    now: StoreTime,
) -> Ended {
    let default = i32::from(!ending.done);
    let exit = Exit { code: Some(ending.code.unwrap_or(default)), signal: None };
    let end = how(terms.job.as_deref(), record, run, ending.done, now);
    let uptime = run.map_or(Duration::ZERO, |run| now.since(run.started));
    let jitter = rand::random::<f64>();
    let then = terms
        .job
        .as_ref()
        .map_or(Then::Nothing, |job| job.follows(end, record.crashes, uptime, jitter));
    Ended {
        job: terms.name.clone(),
        owner: secret.owner(),
        token: secret.token,
        run: secret.run(&terms.name),
        exit,
        end,
        processes_killed: 0,
        then,
        began: None,
    }
}

/// How a run ended. What its holder says counts only if it was not told to stop.
fn how(
    job: Option<&JobConfig>,
    record: &JobRecord,
    run: Option<&RunRecord>,
    done: bool,
    now: StoreTime,
) -> RunEnd {
    let Some(job) = job else { return RunEnd::Stopped };
    let stopping = run.is_some_and(|run| matches!(run.phase, RunPhase::Stopping { .. }));
    let overdue = run.and_then(|run| job.must_end_by(run.started)).is_some_and(|by| by <= now);
    if !record.wanted() {
        RunEnd::Stopped
    } else if stopping && overdue {
        RunEnd::TimedOut
    } else if stopping {
        RunEnd::Stopped
    } else if done {
        RunEnd::Exited
    } else {
        RunEnd::Crashed
    }
}

/// Gives back a lease that no program received: none works under it.
pub(super) async fn give_back(desk: &LeaseDesk, terms: &Terms, secret: &Secret) -> Stored<()> {
    let Ok(store) = desk.store() else { return Ok(()) };
    if terms.job.is_none() {
        store.release(&terms.name, &secret.owner()).await?;
        desk.call_next(&terms.name).await;
        return Ok(());
    }
    let nothing = Ended {
        job: terms.name.clone(),
        owner: secret.owner(),
        token: secret.token,
        run: secret.run(&terms.name),
        exit: Exit::default(),
        end: RunEnd::Stopped,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    match store.record_ended(&nothing).await {
        Err(StoreError::Stale { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Records runs of programs as lost when their lease ran out, until the room closes. Any node may; the store takes it once.
pub(super) async fn close_silent(desk: LeaseDesk) {
    let mut closing = desk.shared.room.closing();
    loop {
        tokio::select! {
            () = sleep(SWEEP) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        let config = desk.shared.config.get();
        for job in config.jobs.iter().filter(|job| job.is_external()) {
            let Some(seen) = desk.seen(&job.name) else { continue };
            let now = clock::boot();
            if seen.record.lease.is_some() || !seen.doubted_until.since(now).is_zero() {
                continue;
            }
            let Some(run) = &seen.record.run else { continue };
            if let Err(error) = close(&desk, job, run).await {
                tracing::debug!(job = %job.name, %error, "the end of a silent program is not written down yet");
            }
        }
    }
}

async fn close(desk: &LeaseDesk, job: &JobConfig, run: &RunRecord) -> Result<(), DeskError> {
    let (record, _) = desk.record(&job.name).await?;
    let open = record.run.as_ref().is_some_and(|known| known.id == run.id);
    if record.lease.is_some() || !open {
        return Ok(());
    }
    let lost = Ended {
        job: job.name.clone(),
        owner: Owner(String::new()),
        token: run.token,
        run: run.id.clone(),
        exit: Exit::default(),
        end: RunEnd::Lost,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    match desk.store()?.record_ended(&lost).await {
        Ok(()) => {
            tracing::warn!(job = %job.name, holder = %run.node, token = %run.token,
                "the program that held the job was silent until its lease ran out");
            Ok(())
        }
        Err(StoreError::Stale { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
