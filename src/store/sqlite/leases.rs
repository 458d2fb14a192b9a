//! Leases in SQLite: what `domain::transition::lease` decides, carried out.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params};

use super::SqliteStore;
use super::deadline::Deadline;
use super::fault::Outcome;
use super::history::past;
use super::row::{Held, Row, corrupt, int, ms, uint};
use super::step::Step;
use super::transition::decide;
use crate::domain::job::LeaseRecord;
use crate::domain::name::{JobName, Owner, RunId};
use crate::domain::transition::lease::{self, Tenure};
use crate::store::Result;
use crate::store::leases::{Acquire, Acquired, HeldLease, Leases, Observed, Renewal, Renewed};

/// This store cannot forget on its own, so it grants at once.
const NO_QUARANTINE: Duration = Duration::ZERO;

/// What a renewal looks at.
const TENURE: &str = "SELECT token, lease_node, lease_owner, lease_token, lease_since, lease_ttl_ms, lease_expires_ns, \
    lease_boot, lease_expires, run ->> '$.id' AS run FROM jobs WHERE name = ?";

/// What it writes: thousands of them a second need not write the whole row.
const RENEW: &str = "UPDATE jobs SET token = :token, lease_node = :node, lease_owner = :owner, lease_token = :token, \
    lease_since = :since, lease_ttl_ms = :ttl_ms, lease_expires_ns = :expires_ns, lease_boot = :boot, \
    lease_expires = :expires WHERE name = :name";

impl Leases for SqliteStore {
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired> {
        let ask = ask.clone();
        self.write(move |step| {
            decide(step, &ask.job, |job, now| {
                // Needed only where a lease is free although a run is shown.
                let lost = job.record.run.as_ref().filter(|_| job.record.lease.is_none());
                let past =
                    lost.map(|run| past(step, job, &run.id)).transpose()?.unwrap_or_default();
                Ok(lease::acquire(job, &past, &ask, NO_QUARANTINE, now))
            })
        })
        .await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let renewals = renewals.to_vec();
        self.write(move |step| renewals.iter().map(|one| renew(step, one)).collect()).await
    }

    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()> {
        let (name, owner) = (job.clone(), owner.clone());
        self.write(move |step| decide(step, &name, |job, _| Ok(((), lease::release(job, &owner)))))
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
                "SELECT name, token, lease_node, lease_owner, lease_token, lease_since, lease_ttl_ms, \
                 lease_expires_ns, lease_boot, lease_expires FROM jobs WHERE lease_boot IS NOT NULL ORDER BY name",
            )?;
            let mut rows = statement.query([])?;
            let mut held = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get("name")?;
                let name = JobName::new(&name).map_err(|why| corrupt(&format!("job {name}"), &why.to_string()))?;
                if let Some(lease) = Held::read(&name, row, at)?.lease {
                    held.push(HeldLease { name, lease });
                }
            }
            Ok(held)
        })
        .await
    }
}

fn renew(step: &Step<'_>, ask: &Renewal) -> Outcome<Renewed> {
    let known = tenure(step, &ask.job)?;
    let (answer, lease) = lease::renew(&known, ask, step.at.instant());
    if let Some(lease) = lease {
        keep(step, &ask.job, lease)?;
    }
    Ok(answer)
}

fn tenure(step: &Step<'_>, job: &JobName) -> Outcome<Tenure> {
    let mut statement = step.prepare_cached(TENURE)?;
    let mut rows = statement.query([job.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(Tenure::default()) };
    let Held { token, lease, lapsed, released, .. } = Held::read(job, row, &step.at)?;
    let run = row.get::<_, Option<String>>("run")?.map(RunId);
    Ok(Tenure { token, lease, lapsed, released, run })
}

fn keep(step: &Step<'_>, job: &JobName, lease: LeaseRecord) -> Outcome<()> {
    let until = Deadline::after(&step.at, lease.expires_in);
    let kept = step.prepare_cached(RENEW)?.execute(named_params! {
        ":name": job.as_str(),
        ":token": int(lease.token.0),
        ":node": lease.node.as_str(),
        ":owner": lease.owner.as_str(),
        ":since": lease.since.0,
        ":ttl_ms": ms(lease.ttl),
        ":expires_ns": int(until.boot.0),
        ":boot": until.boot_id,
        ":expires": until.wall.0,
    })?;
    if kept == 0 {
        let mut row = Row::load(step, job, &step.at)?;
        (row.job.record.token, row.job.record.lease) = (lease.token, Some(lease));
        row.save(step, &step.at)?;
    }
    Ok(())
}
