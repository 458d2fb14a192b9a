//! Turns hints into events: reads what a hint names, and publishes it with its record.
//!
//! A hint may be lost, come twice or late. Once a second the state of the store is compared with what was published: the versions of all jobs,
//! and counters of changes to nodes and accounts. A job that differs twice in a row changed without a hint. What was published that way is not
//! published again when its hint arrives.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::SqlStore;
use super::session::Row;
use soloist_domain::event::{EventKind, JobEvent};
use soloist_domain::name::JobName;
use soloist_store::Result;
use soloist_store::core::{record, version};
use soloist_store::dispatch::Waiter;
use soloist_store::events::StoreEvent;
use soloist_store::outlet::Outlet;
use soloist_store::records::Tell;

/// What [`told`] reads.
pub(super) const TOLD: &str =
    "SELECT name, newest FROM numbers WHERE name IN ('told:nodes', 'told:accounts')";

/// How often something was told about nodes, and about accounts.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt).
pub(super) fn told(rows: Option<&Vec<Row>>) -> Result<[i64; 2]> {
    let mut told = [0, 0];
    for row in rows.into_iter().flatten() {
        told[usize::from(row.text(0)? == "told:accounts")] = row.int(1)?;
    }
    Ok(told)
}

/// What happened, for the followers: everything since the hint before.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hint {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) jobs: Vec<JobEvent>,
    /// The how manieth time something happened to nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<i64>,
    /// The same of accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accounts: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wake: Vec<Waiter>,
}

impl Hint {
    /// Of a commit of a job.
    pub(crate) fn of_jobs(jobs: &[JobEvent]) -> Self {
        Self { jobs: jobs.to_vec(), ..Self::default() }
    }

    /// Of a plan; `rows` are those of [`TOLD`], read in its transaction.
    ///
    /// # Errors
    /// As [`told`].
    pub(super) fn of_records(tells: &[Tell], rows: Option<&Vec<Row>>) -> Result<Self> {
        let [nodes, accounts] = told(rows)?;
        let mut hint = Self::default();
        for tell in tells {
            match tell {
                Tell::Nodes => hint.nodes = Some(nodes),
                Tell::Accounts => hint.accounts = Some(accounts),
                Tell::Wake(waiters) => hint.wake.extend(waiters.iter().cloned()),
            }
        }
        Ok(hint)
    }

    /// And what happened after it.
    pub(crate) fn add(&mut self, more: Self) {
        self.jobs.extend(more.jobs);
        self.nodes = self.nodes.max(more.nodes);
        self.accounts = self.accounts.max(more.accounts);
        self.wake.extend(more.wake);
    }
}

/// What one subscription was told.
pub(crate) struct Follower {
    store: SqlStore,
    jobs: HashMap<String, Versions>,
    /// The versions that differed at the last sweep.
    suspects: HashMap<String, u64>,
    /// How often something was told about nodes, and about accounts.
    told: [i64; 2],
}

/// Of a job.
#[derive(Debug, Default, Clone, Copy)]
struct Versions {
    /// The newest that was told.
    newest: u64,
    /// Known without a hint, as everything before it: a hint of it says nothing new.
    known: u64,
}

impl Follower {
    /// From now on: what is there already is read by the subscriber.
    pub(crate) async fn start(store: SqlStore) -> Result<Self> {
        let (heads, told) = store.heads().await?;
        let known = |(job, head): (String, String)| {
            version(&head).map(|version| (job, Versions { newest: version, known: version }))
        };
        let jobs = heads.into_iter().filter_map(known).collect();
        Ok(Self { store, jobs, suspects: HashMap::new(), told })
    }

    /// Tells what a hint says.
    pub(crate) async fn hear(&mut self, hint: Hint, outlet: &mut Outlet) -> Result<()> {
        let Hint { mut jobs, nodes, accounts, wake } = hint;
        if !wake.is_empty() {
            outlet.deliver(StoreEvent::Wake(wake));
        }
        let [before_nodes, before_accounts] = &mut self.told;
        for (before, now, event) in [
            (before_nodes, nodes, StoreEvent::Nodes),
            (before_accounts, accounts, StoreEvent::Accounts),
        ] {
            // The sweep may have been faster.
            if let Some(now) = now.filter(|now| *now > *before) {
                *before = now;
                outlet.deliver(event);
            }
        }
        jobs.retain(|event| {
            self.jobs.get(event.job.as_str()).is_none_or(|job| event.version > job.known)
        });
        self.tell_jobs(&jobs, outlet).await
    }

    async fn tell_jobs(&mut self, events: &[JobEvent], outlet: &mut Outlet) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let jobs: HashSet<&JobName> = events.iter().map(|event| &event.job).collect();
        let jobs: Vec<&JobName> = jobs.into_iter().collect();
        let (at, mut found) = self.store.peek(&jobs).await?;
        for event in events {
            // The record goes before the first event of its job.
            if let Some(stored) = found.remove(event.job.as_str()) {
                let told = record(&self.store.shared.known, &event.job, stored, at);
                told.into_iter().for_each(|record| outlet.deliver(record));
            }
            let job = self.jobs.entry(event.job.to_string()).or_default();
            job.newest = job.newest.max(event.version);
            outlet.deliver(StoreEvent::Job(event.clone()));
        }
        Ok(())
    }

    /// A name that was forgotten begins anew, with a first version that is news. And names that come and go must not fill the memory.
    fn forget_what_is_gone(&mut self, heads: &[(String, String)]) {
        let new = heads.iter().filter(|(name, _)| !self.jobs.contains_key(name)).count();
        if self.jobs.len() + new > heads.len() {
            let there: HashSet<&str> = heads.iter().map(|(name, _)| name.as_str()).collect();
            self.jobs.retain(|name, _| there.contains(name.as_str()));
        }
    }

    /// Finds what no hint told.
    pub(crate) async fn sweep(&mut self, outlet: &mut Outlet) -> Result<()> {
        let (heads, told) = self.store.heads().await?;
        self.forget_what_is_gone(&heads);
        let mut missed = Vec::new();
        let mut suspects = HashMap::new();
        for (name, head) in heads {
            let (Some(version), Ok(job)) = (version(&head), JobName::new(&name)) else { continue };
            if self.jobs.get(&name).is_some_and(|job| job.newest == version) {
                continue;
            }
            if self.suspects.get(&name) == Some(&version) {
                self.jobs.insert(name, Versions { newest: version, known: version });
                // What happened is not known; a follower that hears it reads the record.
                missed.push(JobEvent { job, version, event: EventKind::RunProgressed });
            } else {
                suspects.insert(name, version);
            }
        }
        self.suspects = suspects;
        for (before, now, event) in [
            (self.told[0], told[0], StoreEvent::Nodes),
            (self.told[1], told[1], StoreEvent::Accounts),
        ] {
            if before != now {
                outlet.deliver(event);
            }
        }
        self.told = told;
        self.tell_jobs(&missed, outlet).await
    }
}
