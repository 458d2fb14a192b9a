//! Hints made into events: what a hint names is read, and told with its record.
//!
//! A hint may be lost, come twice or late. Once a second the heads of all jobs are compared with what was told; one that differs
//! twice in a row was changed without a hint that arrived.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Server, SqlStore};
use crate::domain::event::{EventKind, JobEvent};
use crate::domain::name::JobName;
use crate::store::Result;
use crate::store::core::{record, version};
use crate::store::dispatch::Waiter;
use crate::store::events::StoreEvent;
use crate::store::outlet::Outlet;

/// What happened, for whoever follows: everything since the hint before.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct Hint {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) jobs: Vec<JobEvent>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) nodes: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) accounts: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) wake: Vec<Waiter>,
}

/// What one subscription was told.
pub(in crate::store) struct Follower<S> {
    store: SqlStore<S>,
    heads: HashMap<String, String>,
    /// Differed at the last sweep.
    suspects: HashMap<String, String>,
    /// How often something was told about nodes, and about accounts.
    told: [i64; 2],
}

impl<S: Server> Follower<S> {
    /// From now on: what is there already is read by whoever subscribed.
    pub(in crate::store) async fn start(store: SqlStore<S>) -> Result<Self> {
        let (heads, told) = store.heads().await?;
        Ok(Self { store, heads: heads.into_iter().collect(), suspects: HashMap::new(), told })
    }

    /// Tells what a hint says.
    pub(in crate::store) async fn hear(&mut self, hint: Hint, outlet: &mut Outlet) -> Result<()> {
        self.tell_jobs(&hint.jobs, outlet).await?;
        if hint.nodes {
            outlet.deliver(StoreEvent::Nodes);
        }
        if hint.accounts {
            outlet.deliver(StoreEvent::Accounts);
        }
        if !hint.wake.is_empty() {
            outlet.deliver(StoreEvent::Wake(hint.wake));
        }
        Ok(())
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
                self.heads.insert(event.job.to_string(), stored.head.clone());
                let told = record(&self.store.shared.known, &event.job, stored, at);
                told.into_iter().for_each(|record| outlet.deliver(record));
            }
            outlet.deliver(StoreEvent::Job(event.clone()));
        }
        Ok(())
    }

    /// Finds what no hint told.
    pub(in crate::store) async fn sweep(&mut self, outlet: &mut Outlet) -> Result<()> {
        let (heads, told) = self.store.heads().await?;
        let mut missed = Vec::new();
        let mut suspects = HashMap::new();
        for (job, head) in heads {
            if self.heads.get(&job) == Some(&head) {
                continue;
            }
            if self.suspects.get(&job) == Some(&head) {
                missed.push((job, head));
            } else {
                suspects.insert(job, head);
            }
        }
        self.suspects = suspects;
        let events: Vec<JobEvent> = missed
            .iter()
            .filter_map(|(job, head)| {
                let version = version(head)?;
                let job = JobName::new(job).ok()?;
                // What happened is not known; whoever hears it reads the record.
                Some(JobEvent { job, version, event: EventKind::RunProgressed })
            })
            .collect();
        self.heads.extend(missed);
        self.tell_jobs(&events, outlet).await?;
        for (before, now, event) in [
            (self.told[0], told[0], StoreEvent::Nodes),
            (self.told[1], told[1], StoreEvent::Accounts),
        ] {
            if before != now {
                outlet.deliver(event);
            }
        }
        self.told = told;
        Ok(())
    }
}
