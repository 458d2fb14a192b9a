//! The heartbeat: reports to the store that this node lives, what it may run and what it defines, and detects a second process of the
//! same name. Leases do not depend on it; the feed says whether the node is to be drained.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::fitness::Unfit;
use soloist_config::{Config, Current, digest};
use soloist_domain::containment::Containment;
use soloist_domain::definition::Definitions;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::StoreTime;
use soloist_store::nodes::{BEAT_EVERY, Beat, Heard, Nodes, Told, Watched};
use soloist_store::{Result, Store};

/// How often it is looked whether another month has begun.
const MONTH_EVERY: Duration = Duration::from_secs(60);

/// Reports once at start; another living process of the same name is an error of the operator.
///
/// # Errors
/// As [`Nodes::beat`].
pub async fn first(store: &Store, beat: &Beat) -> Result<Heard> {
    // A node that was killed and started again at once finds its own old report for a moment.
    let patience = soloist_store::nodes::ALIVE_FOR + Duration::from_secs(1);
    let begun = soloist_process::clock::boot();
    loop {
        let heard = store.beat(beat).await?;
        if heard != Heard::Duplicate || soloist_process::clock::boot().since(begun) > patience {
            return Ok(heard);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Reports every second, and at once when what is offered changes. The leases say what it holds; `holds` is sent for
/// nodes of version 0.1.
pub async fn go_on(
    store: Store,
    mut beat: Beat,
    planned: Containment,
    holds: watch::Receiver<BTreeSet<JobName>>,
    (mut offer, mut unfit): Offered,
    mut watched: watch::Receiver<Option<Watched>>,
) {
    let mut every = interval(BEAT_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut complained = false;
    let mut disk = super::vitals::Disk::default();
    loop {
        tokio::select! {
            _ = every.tick() => {}
            Ok(()) = offer.changed() => {}
            Ok(()) = unfit.changed() => {}
            Ok(()) = watched.changed() => {}
        }
        let offer = Arc::clone(&offer.borrow_and_update());
        offer.put_into(&mut beat, &unfit.borrow_and_update());
        // A guard may have fallen back since.
        beat.containment = super::child::in_force(planned).to_string();
        beat.holds = holds.borrow().iter().cloned().collect();
        beat.vitals = Some(super::vitals::read(disk.room()));
        beat.watched = watched.borrow_and_update().as_ref().map(Watched::reported);
        match store.beat(&beat).await {
            Ok(Heard::Welcome { told, .. }) => {
                complained = false;
                if !told {
                    offer.tell(&store, &beat.node).await;
                }
            }
            Ok(Heard::Duplicate) => complain(&mut complained, &beat.node),
            // The feed says once that the store is away.
            Err(error) => tracing::debug!(%error, "no heartbeat"),
        }
    }
}

/// What a node may run, and what of it this machine cannot start, both as they are now.
pub type Offered = (watch::Receiver<Arc<Offer>>, watch::Receiver<Arc<Unfit>>);

/// What a node may run, and what it defines: from its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The origin that browsers use.
    url: String,
    /// Jobs that may run here.
    jobs: BTreeSet<JobName>,
    digest: String,
    definitions: Definitions,
}

impl Offer {
    /// Of this configuration, in this month.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let own = config.jobs.iter().filter(|job| job.runs_on(&config.node));
        let now = StoreTime(jiff::Timestamp::now().as_millisecond());
        let definitions = config.definitions(now);
        Self {
            url: config.public_url.clone(),
            jobs: own.map(|job| job.name.clone()).collect(),
            digest: digest(&definitions),
            definitions,
        }
    }

    /// Makes `beat` a report of it, on a machine that cannot start what is `unfit`.
    pub fn put_into(&self, beat: &mut Beat, unfit: &Unfit) {
        beat.url.clone_from(&self.url);
        beat.jobs = self.jobs.iter().filter(|job| !unfit.contains_key(*job)).cloned().collect();
        beat.unfit = unfit.clone();
        beat.unfit.retain(|job, _| self.jobs.contains(job));
        beat.digest.clone_from(&self.digest);
    }

    /// Tells the others what is defined here.
    async fn tell(&self, store: &Store, node: &NodeName) {
        let (digest, definitions) = (self.digest.clone(), self.definitions.clone());
        let told = Told { node: node.clone(), digest, definitions };
        if let Err(error) = store.define(&told).await {
            tracing::debug!(%error, "the definitions are told with the next report");
        }
    }
}

/// Tells what is offered anew when something of it depends on the month: what zone tables say.
pub async fn follow_the_month(config: Current, offer: watch::Sender<Arc<Offer>>) {
    let mut every = interval(MONTH_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let new = Offer::of(&config.get());
        offer.send_if_modified(|old| {
            let changed = **old != new;
            if changed {
                *old = Arc::new(new);
            }
            changed
        });
    }
}

fn complain(complained: &mut bool, node: &NodeName) {
    if !std::mem::replace(complained, true) {
        tracing::error!(%node, "another process reports under this node's name: give each node its own `node`");
    }
}
