//! Reading the configuration again while the node runs: all of it is right, or nothing changes.
//!
//! It only hands the newer configuration on: each part of the node takes what concerns it when it can.

use std::sync::Arc;

use tokio::sync::watch;

use super::{followed, with_real_port};
use crate::config::{Config, Current, Examination};
use crate::domain::name::NodeName;
use crate::feed::Followed;
use crate::runner::beat::Offer;
use crate::telemetry::Metrics;

/// Reads the configuration as the command line asked for it; the name is used when neither gives one.
pub type Read<'a> = &'a (dyn Fn(&NodeName) -> Examination + Sync);

/// Where a newer configuration goes.
pub(super) struct Reload<'a> {
    pub(super) read: Read<'a>,
    /// As it was read: the port may be 0.
    pub(super) asked: Config,
    /// The port that was taken.
    pub(super) port: u16,
    pub(super) current: Current,
    pub(super) followed: watch::Sender<Vec<Followed>>,
    pub(super) offer: watch::Sender<Arc<Offer>>,
    pub(super) metrics: Arc<Metrics>,
}

impl Reload<'_> {
    /// Reads it again. Every problem is logged, with file and key.
    pub(super) fn now(&mut self) {
        let Examination { config, warnings } = (self.read)(&self.asked.node);
        let newer = match config {
            Ok(newer) => newer,
            Err(problems) => {
                for problem in &problems.0 {
                    tracing::error!("{problem}");
                }
                let count = problems.0.len();
                tracing::error!(
                    "the configuration is not taken, because of {count} problem(s): everything goes on as before"
                );
                return;
            }
        };
        for warning in &warnings.0 {
            tracing::warn!("{warning}");
        }
        let (taken, restart) = self.asked.taking(newer);
        for key in restart {
            tracing::warn!(
                "{key} has changed in the configuration and needs a restart; the rest is taken"
            );
        }
        say(&self.asked, &taken);
        self.asked = taken.clone();
        let taken = with_real_port(taken, self.port);
        taken.jobs.iter().for_each(|job| self.metrics.know(&job.name));
        self.offer.send_replace(Arc::new(Offer::of(&taken)));
        let followed = followed(&taken);
        self.current.replace(taken);
        // Last: a task that receives it finds the newer configuration in force.
        self.followed.send_replace(followed);
    }
}

/// Says what became of the jobs.
fn say(before: &Config, after: &Config) {
    let names = |jobs: Vec<&str>| match jobs.as_slice() {
        [] => "none".to_owned(),
        jobs => jobs.join(", "),
    };
    let missing = |from: &Config, of: &Config| {
        let missing = of.jobs.iter().filter(|job| from.job(job.name.as_str()).is_none());
        names(missing.map(|job| job.name.as_str()).collect())
    };
    let (added, removed) = (missing(before, after), missing(after, before));
    let changed = after
        .jobs
        .iter()
        .filter(|job| before.job(job.name.as_str()).is_some_and(|known| known != *job));
    let changed = names(changed.map(|job| job.name.as_str()).collect());
    tracing::info!(
        added,
        removed,
        changed,
        "the configuration is read again: a run under way goes on, the next one is by the new definition"
    );
}
