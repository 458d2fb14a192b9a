//! [`Leases`], [`Jobs`] and [`Journal`] on any engine: the decision and the kind of commit of each call.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::record::{self, Case, kept_text};
use super::{About, Kind, decide, decide_unlisted, entry};
use super::{audit, line, log};
use crate::engine::{Engine, Keep, Part, StoredLease, Unsafe, Way};
use crate::jobs::{Jobs, Snapshot};
use crate::journal::{
    AuditEntry, AuditFilter, AuditPage, Ended, Journal, LogFilter, LogFrom, LogLine, LogPage,
    Output, RunEntry, Started,
};
use crate::leases::{
    Acquire, Acquired, Condition, HeldLease, Leases, Observed, Released, Renewal, Renewed,
};
use crate::records::{Found, Look};
use crate::{Result, StoreError};
use soloist_domain::job::LeaseRecord;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist_domain::spent::Outcome;
use soloist_domain::time::StoreTime;
use soloist_domain::transition::{Now, drill, handover, lease, output, participation, run};
use soloist_process::sabotage::{Bug, planted};

#[async_trait]
impl Leases for dyn Engine + '_ {
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired> {
        acquire(self, ask, None).await?.ok_or_else(|| {
            StoreError::Corrupt(format!("{}: a line that nobody asked about", ask.job))
        })
    }

    async fn acquire_if_no_line(&self, ask: &Acquire) -> Result<Option<Acquired>> {
        let line = line::list(&ask.job);
        if self.sees_lists() {
            return acquire(self, ask, Some(&line)).await;
        }
        match self.look(&[Look::First(line, 1)]).await?.found.as_slice() {
            [Found::Entries(first)] if first.is_empty() => self.acquire(ask).await.map(Some),
            _ => Ok(None),
        }
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let keeps: Vec<Keep<'_>> = renewals
            .iter()
            .map(|ask| {
                let text = kept_text(&ask.job, &asserted(ask), ask.run.as_ref())?;
                Ok(Keep { job: &ask.job, text, ttl: ask.ttl, reach: reach(&ask.owner, ask.ttl) })
            })
            .collect::<Result<_>>()?;
        let left = self.keep(&keeps).await?;
        let lost = renewals.iter().zip(&left).filter(|(_, left)| left.is_none());
        let asserted = try_join_all(lost.map(|(ask, _)| assert_again(self, ask))).await?;
        let mut asserted = asserted.into_iter();
        let kept = |(ask, left): (&Renewal, Option<Duration>)| match left {
            Some(left) => Some(Renewed::Kept { margin: left.min(ask.ttl), forgot: false }),
            None => asserted.next(),
        };
        Ok(renewals.iter().zip(left).filter_map(kept).collect())
    }

    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()> {
        let kind = Kind::of(Way::Lease);
        decide(self, job, kind, |job, look| Ok(((), lease::release(job, owner, look.now))))
            .await
            .map(drop)
    }

    async fn release_under(
        &self,
        job: &JobName,
        owner: &Owner,
        token: Token,
        outcome: Outcome,
    ) -> Result<Released> {
        let kind = Kind::of(Way::Lease);
        let decided = decide(self, job, kind, |job, look| {
            Ok(lease::release_under(job, owner, token, outcome, look.now))
        })
        .await;
        Ok(decided?.0)
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>> {
        let read = Engine::observe(self, jobs).await?;
        Ok(jobs
            .iter()
            .zip(read)
            .map(|(job, (version, left))| {
                // More than the whole of it: the clock was set back.
                let ttl = || self.known().ttl(job).unwrap_or(Duration::MAX);
                let clock = self.estimate(job, self.boot());
                Observed { version, lease_left: left.map(|left| left.min(ttl())), clock }
            })
            .collect())
    }

    async fn held(&self) -> Result<Vec<HeldLease>> {
        let mut held = Vec::new();
        for (name, StoredLease { text, left }) in self.every_lease().await? {
            let lease = record::lease(&name, &text, left)?;
            held.push(HeldLease { name, lease });
        }
        Ok(held)
    }
}

#[async_trait]
impl Jobs for dyn Engine + '_ {
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot> {
        let reading = self.read(jobs, Way::Rest).await?;
        let records = jobs
            .iter()
            .zip(reading.records)
            .map(|(job, stored)| Ok(self.known().put(Case::read(job, stored)?).job.record))
            .collect::<Result<_>>()?;
        let (epoch, at, quarantine) = (reading.epoch, reading.at, reading.quarantine);
        Ok(Snapshot { epoch, at, quarantine, jobs: records })
    }

    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool> {
        let kind = Kind { once: true, ..Kind::of(Way::Rest) };
        let decided = decide(self, job, kind, |job, look| {
            Ok(participation::switch(job, user, on, reason, look.now))
        });
        Ok(decided.await?.0)
    }

    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()> {
        decide(self, job, Kind::of(Way::Rest), |job, look| {
            Ok(((), participation::hold(job, by, reason, look.now)))
        })
        .await
        .map(drop)
    }

    async fn resume(&self, job: &JobName) -> Result<()> {
        let kind = Kind::of(Way::Rest);
        decide(self, job, kind, |job, look| Ok(((), participation::resume(job, look.now))))
            .await
            .map(drop)
    }

    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()> {
        decide(self, job, Kind::of(Way::Rest), |job, look| {
            Ok(((), handover::request(job, to, by, lasts, look.now)))
        })
        .await
        .map(drop)
    }

    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>> {
        let decided = decide(self, job, Kind::of(Way::Rest), |job, look| {
            Ok(drill::request(job, token, by, look.now))
        });
        Ok(decided.await?.0)
    }
}

#[async_trait]
impl Journal for dyn Engine + '_ {
    async fn record_started(&self, started: &Started) -> Result<StoreTime> {
        let about = Some(About { id: &started.run, token: started.token, ends: false });
        let kind = Kind { about, ..Kind::of(Way::Rest) };
        let decided = decide(self, &started.job, kind, |job, look| {
            run::started(job, look.past, started, look.now)
        });
        Ok(decided.await?.0)
    }

    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()> {
        decide(self, job, Kind::of(Way::Rest), |job, look| {
            Ok(((), run::stopping(job, token, grace, look.now)?))
        })
        .await
        .map(drop)
    }

    async fn record_output(&self, told: &Output) -> Result<()> {
        let kind = Kind { once: true, ..Kind::of(Way::Rest) };
        decide(self, &told.job, kind, |job, look| {
            Ok(((), output::report(job, told.clone(), self.log_bounds(), look.now)?))
        })
        .await
        .map(drop)
    }

    async fn record_ended(&self, ended: &Ended) -> Result<()> {
        let about = Some(About { id: &ended.run, token: ended.token, ends: true });
        let kind = Kind { about, ..Kind::of(Way::Lease) };
        decide(self, &ended.job, kind, |job, look| {
            Ok(((), run::ended(job, look.past, ended, look.now)?))
        })
        .await
        .map(drop)
    }

    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>> {
        let mut page = self.history(job, before, limit).await?;
        let mut case = Case::read(job, std::mem::take(&mut page.stored))?;
        let mut present = case.job.record.run.take();
        if let Some(before) = before {
            if present.as_ref().is_some_and(|run| run.id == *before) {
                // It is in the record: the history has only what is older.
                page = self.history(job, None, limit).await?;
            }
            present = None;
        }
        let record = &case.job.record;
        let mut entries: Vec<RunEntry> =
            present.iter().map(|run| RunEntry::begun(record, run)).collect();
        for text in &page.entries {
            entries.push(entry(record, text)?);
        }
        if let Some(before) = before {
            entries.retain(|one| one.id != *before);
        }
        entries.truncate(limit);
        Ok(entries)
    }

    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>> {
        log::lines(self, job, after.map_or(Part::Newest, Part::After), limit).await
    }

    async fn log_page(
        &self,
        job: &JobName,
        filter: &LogFilter,
        from: LogFrom,
        limit: usize,
    ) -> Result<LogPage> {
        log::page(self, job, filter, from, limit).await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        audit::add(self, entry).await
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage> {
        audit::page(self, filter, audit::Way::Back(before), limit).await
    }

    async fn audit_after(
        &self,
        filter: &AuditFilter,
        after: u64,
        limit: usize,
    ) -> Result<AuditPage> {
        audit::page(self, filter, audit::Way::On(after), limit).await
    }

    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        audit::newest(self, target, before, limit).await
    }
}

/// Acquires a lease; `None` if something is in the list `unlisted`.
async fn acquire(
    engine: &dyn Engine,
    ask: &Acquire,
    unlisted: Option<&str>,
) -> Result<Option<Acquired>> {
    let reach = reach(&ask.owner, ask.ttl);
    let kind = Kind { grant: Some(ask.ttl), reach, unlisted, ..Kind::of(Way::Grant) };
    let decided = decide_unlisted(engine, &ask.job, kind, |job, look| {
        if planted(Bug::TokenForgotten) {
            let now = Now { at: StoreTime(0), ..look.now };
            let ask = Acquire { seen: Token(0), condition: Condition::None, ..ask.clone() };
            return Ok(lease::acquire(job, look.past, &ask, look.quarantine, now));
        }
        Ok(lease::acquire(job, look.past, ask, look.quarantine, look.now))
    })
    .await?;
    let Some((acquired, unsafe_grant)) = decided else { return Ok(None) };
    settled(engine, ask, reach, acquired, unsafe_grant).await.map(Some)
}

/// For how long a lease that the store forgot may be asserted again, by its holder and after its last renewal. The store doubts itself
/// for so long. The length that a program asks for lengthens no doubt: its lease is never asserted again by itself, and its name alone is
/// kept back (`leases/forgotten.rs`).
pub(super) fn reach(owner: &Owner, ttl: Duration) -> Duration {
    if owner.is_program() { Duration::ZERO } else { ttl }
}

/// The lease that is renewed, as its holder remembers it.
fn asserted(ask: &Renewal) -> LeaseRecord {
    LeaseRecord {
        node: ask.node.clone(),
        owner: ask.owner.clone(),
        token: ask.token,
        since: ask.since.at.unwrap_or_default(),
        expires_in: ask.ttl,
        ttl: ask.ttl,
    }
}

/// Renews a lease of which the store knows something else than its holder.
async fn assert_again(engine: &dyn Engine, ask: &Renewal) -> Result<Renewed> {
    engine.known().forget(&ask.job);
    let decided = decide(engine, &ask.job, Kind::of(Way::Lease), |job, look| {
        Ok((lease::renew_in(job, ask, look.now), Vec::new()))
    });
    Ok(decided.await?.0)
}

/// Checks a grant under which nothing runs yet: an unreliable one is released.
pub(super) async fn settled(
    engine: &dyn Engine,
    ask: &Acquire,
    reach: Duration,
    acquired: Acquired,
    unsafe_grant: Option<Unsafe>,
) -> Result<Acquired> {
    match unsafe_grant {
        None if acquired == Acquired::Exhausted => Err(StoreError::Corrupt(format!(
            "{}: its newest token is the largest that there is ({}), so no newer one can be granted: give the job or lease another name",
            ask.job,
            Token::LARGEST
        ))),
        None => Ok(acquired),
        // Nothing runs under it yet. Should giving it back fail, the caller asks again as the same owner, or it runs out.
        Some(Unsafe::Unconfirmed(why)) => {
            engine.release(&ask.job, &ask.owner).await?;
            Err(why)
        }
        Some(Unsafe::Jumped) => {
            engine.release(&ask.job, &ask.owner).await?;
            let reading = engine.read(std::slice::from_ref(&ask.job), Way::Grant).await?;
            Ok(Acquired::Quarantined { wait: reading.quarantine.max(reach) })
        }
    }
}
