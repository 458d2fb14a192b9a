//! Leases in SQLite.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::deadline::Deadline;
use super::fault::Outcome;
use super::journal;
use super::row::{Job, Lease, corrupt, int, ms, uint};
use super::step::{Moment, Step};
use crate::domain::event::EventKind;
use crate::domain::handover::is_for_another;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, Owner};
use crate::store::Result;
use crate::store::leases::{
    Acquire, Acquired, Condition, HeldLease, Leases, Observed, Renewal, Renewed,
};

impl Leases for SqliteStore {
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired> {
        let ask = ask.clone();
        self.write(move |step| acquire(step, &ask)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let renewals = renewals.to_vec();
        self.write(move |step| renewals.iter().map(|one| renew(step, one)).collect()).await
    }

    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()> {
        let (name, owner) = (job.clone(), owner.clone());
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            if job.lease.as_ref().is_none_or(|lease| lease.owner != owner) {
                return Ok(());
            }
            job.lease = None;
            step.publish(&mut job, EventKind::LeaseReleased)?;
            job.save(step)
        })
        .await
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>> {
        let names = jobs.to_vec();
        self.read(move |db, at| {
            let mut statement = db.prepare_cached(
                "SELECT version, lease_ttl_ms, lease_expires_ns, lease_boot, lease_expires FROM jobs \
                 WHERE name = ?",
            )?;
            let mut seen = Vec::with_capacity(names.len());
            for name in &names {
                let found = statement.query_row([name.as_str()], |row| {
                    let until = Deadline::read(row)?;
                    let lease_left = until.and_then(|until| until.left(at));
                    Ok(Observed { version: uint(row.get(0)?), lease_left })
                });
                seen.push(found.optional()?.unwrap_or(Observed { version: 0, lease_left: None }));
            }
            Ok(seen)
        })
        .await
    }

    async fn held(&self) -> Result<Vec<HeldLease>> {
        self.read(move |db, at| {
            let mut statement = db.prepare_cached(
                "SELECT name, lease_node, lease_owner, lease_token, lease_since, lease_ttl_ms, lease_expires_ns, \
                 lease_boot, lease_expires FROM jobs WHERE lease_boot IS NOT NULL ORDER BY name",
            )?;
            let mut rows = statement.query([])?;
            let mut held = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get("name")?;
                let bad = |column: &str, why: &str| corrupt(&format!("job {name}, {column}"), why);
                let Some(lease) = Lease::read(row, &bad)?.and_then(|lease| lease.shown(at)) else {
                    continue;
                };
                let name = JobName::new(&name).map_err(|why| bad("name", &why.to_string()))?;
                held.push(HeldLease { name, lease });
            }
            Ok(held)
        })
        .await
    }
}

fn acquire(step: &Step<'_>, ask: &Acquire) -> Outcome<Acquired> {
    let mut job = Job::load(step, &ask.job)?;
    let at = &step.at;
    if let Some((lease, remaining)) = job.living_lease(at) {
        if lease.owner != ask.owner {
            return Ok(Acquired::Busy { node: lease.node.clone(), remaining });
        }
        // The answer to the first request was lost on its way.
        let granted = Acquired::Granted { token: lease.token, since: lease.since };
        job.lease = Some(Lease { until: Deadline::after(at, ask.ttl), ..lease.clone() });
        job.save(step)?;
        return Ok(granted);
    }
    if let Some(refusal) = refusal(&job, ask, at) {
        return Ok(refusal);
    }
    journal::close_as_lost(step, &mut job)?;
    // Even the same node gets a new token: its paused former self must lose to it.
    let clock = Token(uint(at.wall.0).saturating_mul(1_024));
    let token = clock.max(Token(job.record.token.0 + 1)).max(Token(ask.seen.0 + 1));
    job.record.token = token;
    (job.record.next, job.record.moving) = (None, None);
    job.lease = Some(Lease {
        node: ask.node.clone(),
        owner: ask.owner.clone(),
        token,
        since: at.wall,
        until: Deadline::after(at, ask.ttl),
    });
    step.publish(&mut job, EventKind::LeaseAcquired)?;
    job.save(step)?;
    Ok(Acquired::Granted { token, since: at.wall })
}

/// Why a free lease is not for the asker now.
fn refusal(job: &Job, ask: &Acquire, at: &Moment) -> Option<Acquired> {
    if ask.condition == Condition::None {
        return None;
    }
    let record = &job.record;
    if !record.wanted() || record.given_up {
        return Some(Acquired::NotWanted);
    }
    if let Some(next) = record.next.filter(|next| next.at > at.wall) {
        return Some(Acquired::NotYet { wait: next.at.since(at.wall) });
    }
    let moving = record.moving.as_ref().filter(|_| ask.condition == Condition::Wanted)?;
    let reserved = moving.until > at.wall && is_for_another(moving, &ask.node);
    reserved.then(|| Acquired::Reserved { wait: moving.until.since(at.wall) })
}

fn renew(step: &Step<'_>, ask: &Renewal) -> Outcome<Renewed> {
    struct Found {
        token: Token,
        owner: Option<String>,
        lease_token: Option<i64>,
        left: Duration,
        run: Option<String>,
    }
    let at = &step.at;
    let found = step
        .prepare_cached(
            "SELECT token, lease_owner, lease_token, lease_ttl_ms, lease_expires_ns, lease_boot, lease_expires, \
             run ->> '$.id' FROM jobs WHERE name = ?",
        )?
        .query_row([ask.job.as_str()], |row| {
            let until = Deadline::read(row)?;
            Ok(Found {
                token: Token(uint(row.get(0)?)),
                owner: row.get(1)?,
                lease_token: row.get(2)?,
                left: until.and_then(|until| until.left(at)).unwrap_or_default(),
                run: row.get(7)?,
            })
        })
        .optional()?;
    match found {
        Some(found) if found.token == ask.token => {
            let theirs = found.owner.as_deref() == Some(ask.owner.as_str())
                && found.lease_token == Some(int(ask.token.0));
            if !theirs {
                return Ok(Renewed::Lost);
            }
            let until = Deadline::after(at, ask.ttl);
            step.prepare_cached(
                "UPDATE jobs SET lease_ttl_ms = ?, lease_expires_ns = ?, lease_boot = ?, lease_expires = ? \
                 WHERE name = ?",
            )?
            .execute(params![
                ms(until.ttl),
                int(until.boot.0),
                until.boot_id,
                until.wall.0,
                ask.job.as_str()
            ])?;
            let forgot =
                ask.run.as_ref().is_some_and(|run| found.run.as_deref() != Some(run.as_str()));
            Ok(Renewed::Kept { margin: found.left, forgot })
        }
        // A newer token, or a living lease that was granted by a store that knew less than this holder.
        Some(found) if found.token > ask.token || !found.left.is_zero() => Ok(Renewed::Lost),
        // This token is newer than anything known here: an older file was put back.
        _ => {
            let mut job = Job::load(step, &ask.job)?;
            job.record.token = ask.token;
            job.lease = Some(Lease {
                node: ask.node.clone(),
                owner: ask.owner.clone(),
                token: ask.token,
                since: ask.since.on(at.wall, at.boot),
                until: Deadline::after(at, ask.ttl),
            });
            job.save(step)?;
            Ok(Renewed::Kept { margin: Duration::ZERO, forgot: true })
        }
    }
}
