//! How a program's lease ends: given back by its holder, or silent until it ran out.

use std::time::Duration;

use tokio::time::sleep;

use super::secret::Secret;
use super::{Kind, LeaseDesk, Terms};
use crate::waiting::DeskError;
use soloist_config::JobConfig;
use soloist_domain::job::{Exit, JobRecord, RunEnd, RunPhase, RunRecord};
use soloist_domain::journal::Stream;
use soloist_domain::name::{NodeName, Owner};
use soloist_domain::time::StoreTime;
use soloist_process::clock;
use soloist_store::journal::{Ended, Journal as _, NewLine, Output, Then};
use soloist_store::leases::{Leases as _, Released};
use soloist_store::{Result as Stored, StoreError};

/// How often a node looks for runs whose holder is silent.
const SWEEP: Duration = Duration::from_millis(500);

/// How a holder says that its work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub how: How,
    /// Exit code; 0 for done and 1 for failed unless it says so.
    pub code: Option<i32>,
    /// What went wrong.
    pub error: Option<String>,
}

/// How work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// As it should.
    Done,
    /// It did not.
    Failed,
    /// Nothing was begun.
    Unused,
    /// Its own program stopped it in the middle: nobody knows how far it came.
    Lost,
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
        let error = ending.error.iter().flat_map(|error| error.lines());
        let line = |text: &str| NewLine { stream: Stream::Stderr, text: text.to_owned() };
        let ended = |record: &JobRecord, now| ended(terms, secret, record, ending, now);
        close(self, terms, secret, error.map(line).collect(), ended).await
    }

    /// The last words of a run.
    async fn say(
        &self,
        terms: &Terms,
        secret: &Secret,
        node: NodeName,
        lines: Vec<NewLine>,
    ) -> Result<(), DeskError> {
        let output = Output {
            job: terms.name.clone(),
            token: secret.token,
            run: secret.run(&terms.name),
            node,
            lines,
            progress: None,
            heard: false,
        };
        match self.store()?.record_output(&output).await {
            Ok(()) | Err(StoreError::Stale { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends what was held with `secret`, by what `ended` says of the record; `last_words` are kept with the run. Twice is harmless.
pub(super) async fn close(
    desk: &LeaseDesk,
    terms: &Terms,
    secret: &Secret,
    last_words: Vec<NewLine>,
    ended: impl Fn(&JobRecord, StoreTime) -> Ended,
) -> Result<Released, DeskError> {
    if terms.kind_of(secret) == Kind::Program {
        return free(desk, terms, secret).await;
    }
    let (record, at) = desk.record(&terms.name).await?;
    let own = secret.owner();
    let held = record.lease.as_ref();
    if held.is_some_and(|lease| lease.owner == own.kept_back()) {
        return free(desk, terms, secret).await;
    }
    if held.is_some_and(|lease| lease.owner != own || lease.token != secret.token)
        || record.token > secret.token
    {
        return Ok(Released::Another);
    }
    let run = record.run.as_ref().filter(|run| run.id == secret.run(&terms.name));
    if run.is_none() && held.is_none() {
        return Ok(Released::Nothing);
    }
    if !last_words.is_empty() {
        let holder = run.map_or_else(NodeName::unknown, |run| run.node.clone());
        desk.say(terms, secret, holder, last_words).await?;
    }
    match desk.store()?.record_ended(&ended(&record, at)).await {
        Ok(()) => {
            desk.sightings().gave_back(&terms.name, secret.token);
            Ok(Released::Yes)
        }
        Err(StoreError::Stale { .. }) => Ok(Released::Another),
        Err(error) => Err(error.into()),
    }
}

/// Gives back a lease under which no run is.
async fn free(desk: &LeaseDesk, terms: &Terms, secret: &Secret) -> Result<Released, DeskError> {
    let Terms { name, .. } = terms;
    let released = desk.store()?.release_under(name, &secret.owner(), secret.token).await?;
    if released != Released::Another {
        desk.sightings().gave_back(name, secret.token);
        desk.call_next(name).await;
    }
    Ok(released)
}

/// What the journal is told.
fn ended(
    terms: &Terms,
    secret: &Secret,
    record: &JobRecord,
    ending: &Ending,
    now: StoreTime,
) -> Ended {
    let run = record.run.as_ref().filter(|run| run.id == secret.run(&terms.name));
    let (code, end) = match ending.how {
        How::Done => (Some(0), how(terms.job.as_deref(), record, run, true, now)),
        How::Failed => (Some(1), how(terms.job.as_deref(), record, run, false, now)),
        How::Unused => (None, RunEnd::Stopped),
        How::Lost => match how(terms.job.as_deref(), record, run, false, now) {
            // As a node that ends stops its script.
            RunEnd::Crashed => (None, RunEnd::Stopped),
            end => (None, end),
        },
    };
    let exit = Exit { code: ending.code.or(code), signal: None };
    let uptime = run.map_or(Duration::ZERO, |run| now.since(run.started));
    let jitter = rand::random::<f64>();
    let then = match &terms.job {
        _ if ending.how == How::Unused => Then::Unused,
        Some(job) => job.follows(end, record.crashes, uptime, jitter),
        None => Then::Nothing,
    };
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
        then: Then::Unused,
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
            if let Err(error) = close_lost(&desk, job, run).await {
                tracing::debug!(job = %job.name, %error, "the end of a silent program is not written down yet");
            }
        }
    }
}

async fn close_lost(desk: &LeaseDesk, job: &JobConfig, run: &RunRecord) -> Result<(), DeskError> {
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
