//! A lease that ended, told to the followers of the store: a watch on all leases beside the events of the store.
//!
//! The store's records come without the lease that is here. So they are read again before they are told, all that came at once together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::Locks;
use super::bell::woken;
use super::engine::{Coordinated, stored};
use super::locks::LEASES;
use crate::domain::name::JobName;
use crate::store::Result;
use crate::store::core::lease;
use crate::store::engine::Engine;
use crate::store::events::{Events, StoreEvent, Told};
use crate::store::outlet::Outlet;

/// Events that wait for a slow reader before it is told to read everything again.
const WAITING: usize = 1_024;
/// Of the store, in one reading.
const AT_ONCE: usize = 256;
const TRY_AGAIN: Duration = Duration::from_millis(200);

impl<E: Engine + Events> Events for Coordinated<E> {
    async fn subscribe(&self, jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        // First: what is heard behind the confirmation must have no gap.
        let watch = self.locks.watch().await?;
        let heard = self.records.subscribe(jobs).await?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let locks = Arc::clone(&self.locks);
        tokio::spawn(follow(locks, watch, heard, Outlet::new(sender)));
        Ok(receiver)
    }
}

impl Locks {
    async fn watch(&self) -> Result<PersistentWatcher> {
        let looking = self.ensemble.looking().await?;
        let watch = looking.client.watch("/", AddWatchMode::PersistentRecursive);
        self.ensemble.bounded(watch).await
    }
}

async fn follow(
    locks: Arc<Locks>,
    watch: PersistentWatcher,
    mut heard: mpsc::Receiver<StoreEvent>,
    mut outlet: Outlet,
) {
    let (mut watch, mut again) = (Some(watch), Instant::now());
    loop {
        tokio::select! {
            // Who is woken hears it before what happened after it.
            biased;
            event = next(&mut watch, again) => match event {
                Some(event) => {
                    if event.session_state.is_terminated() {
                        watch = None;
                    }
                    tell(&locks, &event, &mut outlet).await;
                }
                None => {
                    if let Ok(new) = locks.watch().await {
                        watch = Some(new);
                        // Another leader is best known soon.
                        locks.look_at_era(false).await.ok();
                        outlet.deliver(StoreEvent::Subscribed);
                    }
                    again = Instant::now() + TRY_AGAIN;
                }
            },
            event = heard.recv() => {
                let Some(first) = event else { return };
                let mut events = vec![first];
                while events.len() < AT_ONCE && let Ok(more) = heard.try_recv() {
                    events.push(more);
                }
                with_leases(&locks, &mut events).await;
                events.into_iter().for_each(|event| outlet.deliver(event));
            }
            listened = outlet.settle() => if !listened { return },
        }
    }
}

/// The next event of the watch; `None`, at `again`, when there is no watch.
async fn next(watch: &mut Option<PersistentWatcher>, again: Instant) -> Option<WatchedEvent> {
    match watch {
        Some(watch) => Some(watch.changed().await),
        None => {
            tokio::time::sleep_until(again).await;
            None
        }
    }
}

/// Tells what an event of the watch means.
async fn tell(locks: &Locks, event: &WatchedEvent, outlet: &mut Outlet) {
    match event.event_type {
        EventType::Session if event.session_state == SessionState::SyncConnected => {
            locks.look_at_era(false).await.ok();
            outlet.deliver(StoreEvent::Subscribed);
        }
        EventType::Session => outlet.deliver(StoreEvent::Interrupted),
        EventType::NodeCreated => {
            let woken = woken(&event.path).map(StoreEvent::Wake);
            woken.into_iter().for_each(|event| outlet.deliver(event));
        }
        EventType::NodeDeleted => {
            let name = event.path.strip_prefix(LEASES).and_then(|name| name.strip_prefix('/'));
            if let Some(Ok(job)) = name.map(JobName::new) {
                outlet.deliver(StoreEvent::Lease(job));
            }
        }
        EventType::NodeDataChanged | EventType::NodeChildrenChanged => {}
    }
}

/// Gives the records that came their leases; those of which these cannot be read are left out, as an event is a hint.
async fn with_leases(locks: &Locks, events: &mut Vec<StoreEvent>) {
    let jobs: Vec<JobName> = events
        .iter()
        .filter_map(|event| match event {
            StoreEvent::Record(told) => Some(told.record.name.clone()),
            _ => None,
        })
        .collect();
    if jobs.is_empty() {
        return;
    }
    let texts: Option<HashMap<_, _>> =
        locks.texts(Some(&jobs)).await.ok().map(|texts| texts.into_iter().collect());
    events.retain_mut(|event| {
        let StoreEvent::Record(Told { record, .. }) = event else { return true };
        let Some(texts) = &texts else { return false };
        let Some(text) = texts.get(record.name.as_str()) else { return true };
        let stored = stored(text.clone());
        let Ok(lease) = lease(&record.name, &stored.text, stored.left) else { return false };
        Arc::make_mut(record).lease = Some(lease);
        true
    });
}
