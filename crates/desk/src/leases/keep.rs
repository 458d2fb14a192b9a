//! Renewals of a program's lease, and when its holder must stop.
//!
//! A renewal extends the lease when it arrives. Then it waits, as long as the program wants, for a reason to stop. So the program is told
//! at once and polls nothing. After a holder was told to stop, its lease is extended until its grace is over and no longer: then it runs
//! out, the program's own clock ends its work, and the job passes on.

use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::sleep;

use super::secret::Secret;
use super::{Kind, LeaseDesk, Terms};
use crate::waiting::{DeskError, left};
use soloist_domain::handover::is_for_another;
use soloist_domain::job::{JobRecord, LeaseRecord, Progress, RunPhase, RunRecord};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::StoreError;
use soloist_store::feed::{Change, Seen};
use soloist_store::journal::{Journal as _, NewLine, Output, Started};
use soloist_store::leases::{self, Leases as _};

/// The grace of a job that is in no configuration any more.
const GRACE: Duration = Duration::from_secs(2);

/// What a holder sends.
#[derive(Debug, Clone, Default)]
pub struct Renewal {
    /// How long to wait for a reason to stop.
    pub wait: Duration,
    /// How far it is.
    pub progress: Option<Progress>,
    /// What it says.
    pub lines: Vec<NewLine>,
}

/// That the holder must end its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// `off`, `held`, `moved`, `drained`, `removed` or `timed_out`.
    pub why: &'static str,
    /// So long from now it is given time.
    pub within: Duration,
}

/// What [`LeaseDesk::renew`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is the holder's.
    Kept {
        /// So long from the arrival of the renewal.
        expires_in: Duration,
        /// It must stop.
        stop: Option<Stop>,
    },
    /// The lease is over, or another's.
    Over,
}

/// Why a holder must stop; `None`: it need not.
fn reason(terms: &Terms, secret: &Secret, seen: Option<&Seen>, now: Boot) -> Option<&'static str> {
    if terms.kind_of(secret) == Kind::Program {
        return None;
    }
    let Some(job) = &terms.job else { return Some("removed") };
    let seen = seen?;
    let record: &JobRecord = &seen.record;
    let lease = record.lease.as_ref()?;
    if record.hold.is_some() {
        return Some("held");
    }
    if record.participants.is_empty() {
        return Some("off");
    }
    let moving = record.moving.as_ref();
    let leaves = moving.filter(|moving| moving.until > seen.store_now(now));
    if leaves.is_some_and(|moving| is_for_another(moving, &lease.node)) {
        return Some("moved");
    }
    let run = record.run.as_ref()?;
    if job.must_end_by(run.started).is_some_and(|by| by <= seen.store_now(now)) {
        return Some("timed_out");
    }
    // It was told to stop, and what it was told for has changed since.
    matches!(run.phase, RunPhase::Stopping { .. }).then_some("off")
}

impl LeaseDesk {
    /// Extends a lease, keeps what its holder says, and answers as soon as the holder must stop or has waited long enough.
    ///
    /// # Errors
    /// [`DeskError`]: then it is not known whether the lease was extended.
    pub async fn renew(
        &self,
        terms: &Terms,
        secret: &Secret,
        renewal: Renewal,
    ) -> Result<Renewed, DeskError> {
        let mut changes = self.shared.feed.subscribe();
        // A program that waits for longer would come too late with its next renewal.
        let deadline = clock::boot() + renewal.wait.min(terms.timing.ttl / 3);
        let mut holder = None;
        if let Some(seen) = self.seen(&terms.name)
            && let Some(lease) = held(&seen, secret)
        {
            holder = Some(lease.node.clone());
            if let Some(over) = self.grace_over(terms, secret, &seen, lease) {
                return Ok(over);
            }
        }
        let holder = match holder {
            Some(holder) => holder,
            None => match self.holder(terms, secret).await? {
                Some(holder) => holder,
                None => return Ok(Renewed::Over),
            },
        };
        if !self.extend(terms, secret, &holder).await? {
            return Ok(Renewed::Over);
        }
        if terms.job.is_some() && !self.report(terms, secret, &holder, renewal).await? {
            return Ok(Renewed::Over);
        }
        let expires_in = terms.timing.ttl;
        let mut closing = self.shared.room.closing();
        loop {
            let now = clock::boot();
            let terms = self.as_now(terms);
            let seen = self.seen(&terms.name);
            let seen = seen.filter(|seen| held(seen, secret).is_some());
            if let Some(why) = reason(&terms, secret, seen.as_ref(), now) {
                let within = self.stopping(&terms, secret, seen.as_ref()).await?;
                return Ok(Renewed::Kept { expires_in, stop: Some(Stop { why, within }) });
            }
            let (patience, ends) = (left(deadline), ends_in(&terms, seen.as_ref(), now));
            if patience.is_zero() || *closing.borrow() {
                return Ok(Renewed::Kept { expires_in, stop: None });
            }
            let over = sleep(patience.min(ends));
            tokio::pin!(over);
            loop {
                tokio::select! {
                    () = &mut over => break,
                    change = changes.recv() => match change {
                        Ok(Change::Job(changed)) if changed == terms.name => break,
                        Ok(Change::Resynced) | Err(broadcast::error::RecvError::Lagged(_)) => break,
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Closed) => {
                            return Ok(Renewed::Kept { expires_in, stop: None });
                        }
                    },
                    _ = closing.wait_for(|closing| *closing) => break,
                }
            }
        }
    }

    /// The same, with the job as it is configured now.
    fn as_now(&self, terms: &Terms) -> Terms {
        let config = self.shared.config.get();
        let job = config.jobs.iter().find(|job| job.name == terms.name && job.is_external());
        Terms { job: job.cloned().map(std::sync::Arc::new), ..terms.clone() }
    }

    /// Whether this node's configuration has a job of that name.
    pub(super) fn is_job(&self, name: &JobName) -> bool {
        self.shared.config.get().jobs.iter().any(|job| job.name == *name)
    }

    /// The holder of the lease of that secret, as the store has it; `None`: no lease is held under that secret.
    pub(super) async fn holder(
        &self,
        terms: &Terms,
        secret: &Secret,
    ) -> Result<Option<NodeName>, DeskError> {
        let (record, _) = self.record(&terms.name).await?;
        let own = secret.owner();
        let mine = |lease: &LeaseRecord| lease.owner == own && lease.token == secret.token;
        Ok(record.lease.filter(mine).map(|lease| lease.node))
    }

    /// Extends the lease; whether it is the holder's still.
    async fn extend(
        &self,
        terms: &Terms,
        secret: &Secret,
        holder: &NodeName,
    ) -> Result<bool, DeskError> {
        let store = self.store()?;
        let boot = clock::boot();
        let now = self.shared.feed.store_time(boot).or_else(|| self.shared.feed.store_now());
        // Before the first word of the store's clock: then the token says the instant of the grant, and nothing is later.
        let now = now.unwrap_or(StoreTime(i64::MAX));
        let since = secret.since(now, boot);
        let run = (terms.kind_of(secret) == Kind::Job).then(|| secret.run(&terms.name));
        let renewal = leases::Renewal {
            job: terms.name.clone(),
            owner: secret.owner(),
            node: holder.clone(),
            token: secret.token,
            ttl: terms.timing.ttl,
            since,
            run: run.clone(),
        };
        let answer = store.renew(std::slice::from_ref(&renewal)).await?.into_iter().next();
        let Some(leases::Renewed::Kept { forgot, .. }) = answer else { return Ok(false) };
        self.saw(&terms.name, secret.token);
        let lease = terms.lease(&secret.owner(), holder, secret.token);
        self.sightings().saw(&terms.name, &lease, 0, clock::boot());
        if let (true, Some(run)) = (forgot, run) {
            let (job, node) = (terms.name.clone(), holder.clone());
            let started = Started { job, token: secret.token, run, node, pid: 0, began: since };
            match store.record_started(&started).await {
                Ok(_) => {}
                Err(StoreError::Stale { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Keeps what a holder says; whether it is the newest.
    async fn report(
        &self,
        terms: &Terms,
        secret: &Secret,
        holder: &NodeName,
        renewal: Renewal,
    ) -> Result<bool, DeskError> {
        let Renewal { progress, lines, .. } = renewal;
        if progress.is_none() && lines.is_empty() {
            return Ok(true);
        }
        let output = Output {
            job: terms.name.clone(),
            token: secret.token,
            run: secret.run(&terms.name),
            node: holder.clone(),
            lines,
            progress,
            heard: false,
        };
        match self.store()?.record_output(&output).await {
            Ok(()) => Ok(true),
            Err(StoreError::Stale { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes that the holder was told to stop; how much time it has.
    async fn stopping(
        &self,
        terms: &Terms,
        secret: &Secret,
        seen: Option<&Seen>,
    ) -> Result<Duration, DeskError> {
        if let Some((seen, run)) = seen.and_then(|seen| Some((seen, seen.record.run.as_ref()?)))
            && let RunPhase::Stopping { kill_at } = run.phase
        {
            return Ok(kill_at.since(seen.store_now(clock::boot())));
        }
        let grace = terms.job.as_ref().map_or(GRACE, |job| job.stop_grace);
        match self.store()?.record_stopping(&terms.name, secret.token, grace).await {
            Ok(()) | Err(StoreError::Stale { .. }) => Ok(grace),
            Err(error) => Err(error.into()),
        }
    }

    /// The answer to a holder whose time to stop is over: what is left of its lease, which is not extended any more.
    fn grace_over(
        &self,
        terms: &Terms,
        secret: &Secret,
        seen: &Seen,
        lease: &LeaseRecord,
    ) -> Option<Renewed> {
        let now = clock::boot();
        let RunRecord { phase: RunPhase::Stopping { kill_at }, .. } = seen.record.run.as_ref()?
        else {
            return None;
        };
        if *kill_at > seen.store_now(now) {
            return None;
        }
        let why = reason(&self.as_now(terms), secret, Some(seen), now).unwrap_or("off");
        let expires_in = (seen.confirmed + lease.expires_in).since(now);
        if expires_in.is_zero() {
            return Some(Renewed::Over);
        }
        Some(Renewed::Kept { expires_in, stop: Some(Stop { why, within: Duration::ZERO }) })
    }
}

/// The lease of that secret, as it was last seen.
pub(super) fn held<'a>(seen: &'a Seen, secret: &Secret) -> Option<&'a LeaseRecord> {
    let lease = seen.record.lease.as_ref()?;
    (lease.token == secret.token && lease.owner == secret.owner()).then_some(lease)
}

/// When the run will have lasted as long as it may.
fn ends_in(terms: &Terms, seen: Option<&Seen>, now: Boot) -> Duration {
    let by = seen.and_then(|seen| {
        let run = seen.record.run.as_ref()?;
        Some(terms.job.as_ref()?.must_end_by(run.started)?.since(seen.store_now(now)))
    });
    by.unwrap_or(Duration::MAX)
}
