//! The heartbeat: tells the store that this node lives, what it may run and what it holds, and notices a second
//! process of the same name. Leases do not depend on it; whether the node is to be emptied comes through the feed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::domain::containment::Containment;
use crate::domain::name::{JobName, NodeName};
use crate::store::nodes::{BEAT_EVERY, Beat, Heard, Nodes};
use crate::store::{Result, Store};

/// Reports once at start; another living process of the same name is an error of the operator.
///
/// # Errors
/// As [`Nodes::beat`].
pub async fn first(store: &Store, beat: &Beat) -> Result<Heard> {
    // A node that was killed and started again at once finds its own old report for a moment.
    let patience = crate::store::nodes::ALIVE_FOR + Duration::from_secs(1);
    let begun = crate::clock::boot();
    loop {
        let heard = store.beat(beat).await?;
        if heard != Heard::Duplicate || crate::clock::boot().since(begun) > patience {
            return Ok(heard);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Reports every second, and at once when what it holds changes, until `holds` is dropped.
pub async fn go_on(
    store: Store,
    mut beat: Beat,
    planned: Containment,
    mut holds: watch::Receiver<Vec<JobName>>,
) {
    let mut every = interval(BEAT_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut complained = false;
    loop {
        tokio::select! {
            _ = every.tick() => {}
            changed = holds.changed() => if changed.is_err() { return },
        }
        // A guard may have had to fall back since.
        beat.containment = super::child::in_force(planned).to_string();
        beat.holds.clone_from(&holds.borrow_and_update());
        match store.beat(&beat).await {
            Ok(Heard::Welcome { .. }) => complained = false,
            Ok(Heard::Duplicate) => complain(&mut complained, &beat.node),
            // The feed says once that the store is away.
            Err(error) => tracing::debug!(%error, "no heartbeat"),
        }
    }
}

fn complain(complained: &mut bool, node: &NodeName) {
    if !std::mem::replace(complained, true) {
        tracing::error!(%node, "another process reports under this node's name: give each node its own `node`");
    }
}
