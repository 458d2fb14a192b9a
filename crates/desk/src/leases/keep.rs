//! Renewals of programs' leases, and when a holder must stop.
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

/// What is known of a lease that is to be extended.
enum Known {
    Holder(NodeName),
    Answered(Answer),
    /// The store must be asked.
    Unread,
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

/// A lease that is renewed.
pub struct Holding {
    /// On which terms.
    pub terms: Terms,
    /// Granted with it.
    pub secret: Secret,
    /// What its holder sends.
    pub renewal: Renewal,
}

type Answer = Result<Renewed, DeskError>;

impl LeaseDesk {
    /// As [`Self::renew_all`], of one lease.
    ///
    /// # Errors
    /// [`DeskError`]: then it is not known whether the lease was extended.
    pub async fn renew(
        &self,
        terms: &Terms,
        secret: &Secret,
        renewal: Renewal,
        wait: Duration,
    ) -> Answer {
        let (terms, secret) = (terms.clone(), secret.clone());
        let answers = self.renew_all(vec![Holding { terms, secret, renewal }], wait).await;
        answers.into_iter().next().unwrap_or(Ok(Renewed::Over))
    }

    /// Extends leases, keeps what their holders say, and answers as soon as one of them must stop or is over, or when all have waited long
    /// enough: one answer each, in order. An error says that it is not known whether that lease was extended.
    pub async fn renew_all(&self, mut all: Vec<Holding>, wait: Duration) -> Vec<Answer> {
        let mut changes = self.shared.feed.subscribe();
        // A program that waits for longer would come too late with its next renewal.
        let shortest = all.iter().map(|one| one.terms.timing.ttl / 3).min().unwrap_or_default();
        let deadline = clock::boot() + wait.min(shortest);
        let mut answers = self.extend_all(&mut all).await;
        let mut closing = self.shared.room.closing();
        loop {
            let now = clock::boot();
            let mut ends = Duration::MAX;
            for (one, answer) in all.iter().zip(&mut answers) {
                let Ok(Renewed::Kept { stop: stop @ None, .. }) = answer else { continue };
                let terms = self.as_now(&one.terms);
                let seen = self.seen(&terms.name);
                let seen = seen.filter(|seen| held(seen, &one.secret).is_some());
                if let Some(why) = reason(&terms, &one.secret, seen.as_ref(), now) {
                    match self.stopping(&terms, &one.secret, seen.as_ref()).await {
                        Ok(within) => *stop = Some(Stop { why, within }),
                        Err(error) => *answer = Err(error),
                    }
                }
                ends = ends.min(ends_in(&terms, seen.as_ref(), now));
            }
            let patience = left(deadline);
            let goes_on = |one: &Answer| matches!(one, Ok(Renewed::Kept { stop: None, .. }));
            if patience.is_zero() || *closing.borrow() || !answers.iter().all(goes_on) {
                return answers;
            }
            let over = sleep(patience.min(ends));
            tokio::pin!(over);
            loop {
                tokio::select! {
                    () = &mut over => break,
                    change = changes.recv() => match change {
                        Ok(Change::Job(changed)) if all.iter().any(|one| one.terms.name == changed) => break,
                        Ok(Change::Resynced) | Err(broadcast::error::RecvError::Lagged(_)) => break,
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Closed) => return answers,
                    },
                    _ = closing.wait_for(|closing| *closing) => break,
                }
            }
        }
    }

    /// Extends all of them by one call, and keeps what was said.
    async fn extend_all(&self, all: &mut [Holding]) -> Vec<Answer> {
        let mut holders: Vec<_> = all.iter().map(|one| self.known(one)).collect();
        let unknown = all.iter().zip(&holders).filter(|(_, known)| matches!(known, Known::Unread));
        let unknown: Vec<JobName> = unknown.map(|(one, _)| one.terms.name.clone()).collect();
        let read = match unknown.as_slice() {
            [] => Ok(Vec::new()),
            names => self.records(names).await,
        };
        for (one, known) in all.iter().zip(&mut holders) {
            if matches!(known, Known::Unread) {
                *known = match &read {
                    Ok(records) => {
                        let record = records.iter().find(|record| record.name == one.terms.name);
                        let lease = record.and_then(|record| record.lease.as_ref());
                        let mine = lease.filter(|lease| is_of(lease, &one.secret));
                        mine.map_or(Known::Answered(Ok(Renewed::Over)), |lease| {
                            Known::Holder(lease.node.clone())
                        })
                    }
                    Err(error) => Known::Answered(Err(error.clone())),
                };
            }
        }
        let mut renewals = Vec::new();
        for (one, known) in all.iter().zip(&holders) {
            if let Known::Holder(holder) = known {
                renewals.push(self.renewal(one, holder));
            }
        }
        let kept = match self.store() {
            _ if renewals.is_empty() => Ok(Vec::new()),
            Ok(store) => store.renew(&renewals).await.map_err(DeskError::from),
            Err(error) => Err(error),
        };
        let mut renewed = renewals.iter().zip(kept.iter().flatten());
        let mut answers = Vec::with_capacity(all.len());
        for (one, known) in all.iter_mut().zip(holders) {
            answers.push(match known {
                Known::Answered(answer) => answer,
                Known::Holder(holder) => match (&kept, renewed.next()) {
                    (Err(error), _) => Err(error.clone()),
                    (_, Some((renewal, leases::Renewed::Kept { forgot, .. }))) => {
                        self.go_on(one, &holder, renewal, *forgot).await
                    }
                    _ => Ok(Renewed::Over),
                },
                Known::Unread => Ok(Renewed::Over),
            });
        }
        answers
    }

    /// What is known of a lease without a look at the store.
    fn known(&self, one: &Holding) -> Known {
        let Holding { terms, secret, .. } = one;
        let Some(seen) = self.seen(&terms.name) else { return Known::Unread };
        let Some(lease) = held(&seen, secret) else { return Known::Unread };
        match self.grace_over(terms, secret, &seen, lease) {
            Some(over) => Known::Answered(Ok(over)),
            None => Known::Holder(lease.node.clone()),
        }
    }

    fn renewal(&self, one: &Holding, holder: &NodeName) -> leases::Renewal {
        let Holding { terms, secret, .. } = one;
        let boot = clock::boot();
        let now = self.shared.feed.store_time(boot).or_else(|| self.shared.feed.store_now());
        // Before the first word of the store's clock: then the token says the instant of the grant, and nothing is later.
        let now = now.unwrap_or(StoreTime(i64::MAX));
        leases::Renewal {
            job: terms.name.clone(),
            owner: secret.owner(),
            node: holder.clone(),
            token: secret.token,
            ttl: terms.timing.ttl,
            since: secret.since(now, boot),
            run: (terms.kind_of(secret) == Kind::Job).then(|| secret.run(&terms.name)),
        }
    }

    /// After the store has extended the lease.
    async fn go_on(
        &self,
        one: &mut Holding,
        holder: &NodeName,
        renewal: &leases::Renewal,
        forgot: bool,
    ) -> Answer {
        let Holding { terms, secret, renewal: said } = one;
        self.saw(&terms.name, secret.token);
        let lease = terms.lease(&secret.owner(), holder, secret.token);
        self.sightings().saw(&terms.name, &lease, 0, clock::boot());
        if let (true, Some(run)) = (forgot, renewal.run.clone()) {
            let (job, node) = (terms.name.clone(), holder.clone());
            let began = renewal.since;
            let started = Started { job, token: secret.token, run, node, pid: 0, began };
            match self.store()?.record_started(&started).await {
                Ok(_) => {}
                Err(StoreError::Stale { .. }) => return Ok(Renewed::Over),
                Err(error) => return Err(error.into()),
            }
        }
        if terms.job.is_some() && !self.report(terms, secret, holder, std::mem::take(said)).await? {
            return Ok(Renewed::Over);
        }
        Ok(Renewed::Kept { expires_in: terms.timing.ttl, stop: None })
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

    /// Whether the store has the lease under that secret.
    pub(super) async fn is_holder(
        &self,
        terms: &Terms,
        secret: &Secret,
    ) -> Result<bool, DeskError> {
        let (record, _) = self.record(&terms.name).await?;
        Ok(record.lease.is_some_and(|lease| is_of(&lease, secret)))
    }

    /// Keeps what a holder says; whether it is the newest.
    async fn report(
        &self,
        terms: &Terms,
        secret: &Secret,
        holder: &NodeName,
        renewal: Renewal,
    ) -> Result<bool, DeskError> {
        let Renewal { progress, lines } = renewal;
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
    seen.record.lease.as_ref().filter(|lease| is_of(lease, secret))
}

fn is_of(lease: &LeaseRecord, secret: &Secret) -> bool {
    lease.token == secret.token && lease.owner == secret.owner()
}

/// When the run will have lasted as long as it may.
fn ends_in(terms: &Terms, seen: Option<&Seen>, now: Boot) -> Duration {
    let by = seen.and_then(|seen| {
        let run = seen.record.run.as_ref()?;
        Some(terms.job.as_ref()?.must_end_by(run.started)?.since(seen.store_now(now)))
    });
    by.unwrap_or(Duration::MAX)
}
