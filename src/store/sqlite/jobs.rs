//! Jobs in SQLite.

use std::time::Duration;

use super::SqliteStore;
use super::row::{Job, find};
use crate::domain::drill::Drill;
use crate::domain::event::EventKind;
use crate::domain::job::{Hold, LastSwitch, Move, Participant};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, UserName};
use crate::domain::time::StoreTime;
use crate::store::jobs::{Jobs, Snapshot};
use crate::store::{Result, StoreError};

impl Jobs for SqliteStore {
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot> {
        let names = jobs.to_vec();
        self.read(move |db, at| {
            let epoch = find(db, "SELECT value FROM meta WHERE key = 'epoch'", [])?;
            let epoch = epoch.ok_or_else(|| StoreError::Corrupt("meta, epoch: missing".into()))?;
            let mut jobs = Vec::with_capacity(names.len());
            for name in &names {
                jobs.push(Job::load(db, name)?.shown(at));
            }
            Ok(Snapshot { epoch, at: at.wall, quarantine: Duration::ZERO, jobs })
        })
        .await
    }

    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool> {
        let (name, user, reason) = (job.clone(), user.clone(), reason.map(str::to_owned));
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            let at = step.at.wall;
            let changed = job.record.participates(&user) != on;
            let record = &mut job.record;
            let blamed = record.given_up || record.crashes > 0 || record.next.is_some();
            if changed {
                if on {
                    record.participants.push(Participant { user: user.clone(), since: at });
                } else {
                    record.participants.retain(|participant| participant.user != user);
                }
                record.last_switch = Some(LastSwitch { user, on, at, reason });
            }
            if on {
                job.forgive();
            }
            if changed || (on && blamed) {
                step.publish(&mut job, EventKind::ParticipationChanged)?;
                job.save(step)?;
            }
            Ok(changed)
        })
        .await
    }

    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()> {
        let (name, by, reason) = (job.clone(), by.clone(), reason.to_owned());
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            job.record.hold = Some(Hold { by, reason, since: step.at.wall });
            step.publish(&mut job, EventKind::Held)?;
            job.save(step)
        })
        .await
    }

    async fn resume(&self, job: &JobName) -> Result<()> {
        let name = job.clone();
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            job.record.hold = None;
            job.forgive();
            step.publish(&mut job, EventKind::Resumed)?;
            job.save(step)
        })
        .await
    }

    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()> {
        let (name, to, by) = (job.clone(), to.cloned(), by.clone());
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            let holder = job.living_lease(&step.at).map(|(lease, _)| lease.node.clone());
            // A job that rests leaves the node of its newest run, when its next one is due.
            let from =
                holder.or_else(|| job.record.last_exit.as_ref().map(|last| last.node.clone()));
            let due = job.record.next.map_or(step.at.wall, |next| next.at.max(step.at.wall));
            job.record.moving = Some(Move { from, to, by, until: due + lasts });
            step.publish(&mut job, EventKind::MoveRequested)?;
            job.save(step)
        })
        .await
    }

    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>> {
        let (name, by) = (job.clone(), by.clone());
        self.write(move |step| {
            let mut job = Job::load(step, &name)?;
            if let Some(known) = job.record.drill.as_ref().filter(|drill| drill.token == token) {
                return Ok(Some(known.at));
            }
            if job.living_lease(&step.at).is_none_or(|(lease, _)| lease.token != token) {
                return Ok(None);
            }
            let at = step.at.wall;
            job.record.drill = Some(Drill { token, by, at, to: None, started: None });
            step.publish(&mut job, EventKind::DrillRequested)?;
            job.save(step)?;
            Ok(Some(at))
        })
        .await
    }
}
