//! Events for the followers of the store: ended leases, and who has the next turn. A watch on all nodes, beside the events of the store.
//!
//! A wake is the name of a node that is made and deleted in one step. The watch of every process reports that it was made, in order and with
//! everything that is needed; nothing is read for it, and nothing stays. The bell of the store rings as well, in the step of the change: a wake goes
//! both ways, and the first counts. With the watch alone a turn would wait for two services, one after the other, and a promise expires meanwhile.
//!
//! The store's records come without the lease that is here. So they are not passed on, and a listener reads both.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use zookeeper_client::{CreateMode, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::Locks;
use super::engine::Coordinated;
use super::link::{Op, Written};
use super::locks::LEASES;
use soloist_domain::name::{JobName, Waiter};
use soloist_store::Result;
use soloist_store::events::{Events, StoreEvent};
use soloist_store::outlet::Outlet;
use soloist_store::records::Tell;

pub(super) const WAKES: &str = "/wakes";
/// Of the waiters in one name; so a path stays below 8,000 bytes.
const MOST: usize = 30;
/// How many events wait for a slow reader before it must read everything again.
const WAITING: usize = 1_024;
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Waiters of whom only one of the two ways has told; past that all of them are forgotten, and a wake may be told twice.
const UNPAIRED: usize = 4_096;

/// The waiters as a name: numbered, so that no two wakes are one node.
fn name(waiters: &[Waiter]) -> String {
    let escaped =
        |waiter: &Waiter| waiter.0.replace('%', "%25").replace('/', "%2F").replace(',', "%2C");
    let waiters: Vec<String> = waiters.iter().map(escaped).collect();
    format!("{WAKES}/{},{}", ulid::Ulid::generate(), waiters.join(","))
}

/// The way back; nothing if it is no such name.
fn woken(path: &str) -> Option<Vec<Waiter>> {
    let name = path.strip_prefix(WAKES)?.strip_prefix('/')?;
    let plain =
        |text: &str| Waiter(text.replace("%2C", ",").replace("%2F", "/").replace("%25", "%"));
    Some(name.split(',').skip(1).map(plain).collect())
}

#[async_trait]
impl Events for Coordinated {
    async fn subscribe(&self, jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        // First: what is heard behind the confirmation must have no gap.
        let watch = self.locks.watch().await?;
        let mut heard = self.records.subscribe(jobs).await?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let (tell, mut told) = mpsc::channel(WAITING);
        tokio::spawn(follow(Arc::clone(&self.locks), watch, tell));
        tokio::spawn(async move {
            let mut outlet = Outlet::new(sender);
            let mut twice = Twice::default();
            loop {
                let (event, way) = tokio::select! {
                    // A woken waiter gets this before what happened after it.
                    biased;
                    Some(event) = told.recv() => (event, Way::Watch),
                    event = heard.recv() => match event {
                        Some(StoreEvent::Record(_)) => continue,
                        Some(event) => (event, Way::Bell),
                        None => return,
                    },
                    listened = outlet.settle() => if listened { continue } else { return },
                };
                match event {
                    StoreEvent::Wake(waiters) => match twice.first(waiters, way) {
                        news if news.is_empty() => {}
                        news => outlet.deliver(StoreEvent::Wake(news)),
                    },
                    event => outlet.deliver(event),
                }
            }
        });
        Ok(receiver)
    }
}

/// By what a wake was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Watch,
    Bell,
}

/// Each wake comes on two ways, sooner or later: which of them is ahead, and by how many wakes of that waiter.
#[derive(Default)]
struct Twice(HashMap<Waiter, (Way, u32)>);

impl Twice {
    /// Of these, told by `way`, those of whom the other way has not told before.
    fn first(&mut self, mut waiters: Vec<Waiter>, way: Way) -> Vec<Waiter> {
        if self.0.len() > UNPAIRED {
            self.0.clear();
        }
        waiters.retain(|waiter| match self.0.get_mut(waiter) {
            Some((ahead, by)) if *ahead != way => {
                *by -= 1;
                if *by == 0 {
                    self.0.remove(waiter);
                }
                false
            }
            Some((_, by)) => {
                *by += 1;
                true
            }
            None => {
                self.0.insert(waiter.clone(), (way, 1));
                true
            }
        });
        waiters
    }
}

impl Locks {
    /// Tells every process whose turn it is.
    pub(super) async fn wake(&self, tells: &[Tell]) {
        for tell in tells {
            let Tell::Wake(waiters) = tell else { continue };
            for some in waiters.chunks(MOST) {
                let Ok(looking) = self.ensemble.looking().await else { return };
                let name = name(some);
                let make = Op::Create(name.clone(), String::new(), CreateMode::Persistent);
                let told = looking.write(&[make, Op::Delete(name)]).await;
                if !matches!(told, Ok(Written::Done(_))) {
                    tracing::debug!("a wake is told by the bell of the store alone");
                }
            }
        }
    }

    async fn watch(&self) -> Result<PersistentWatcher> {
        self.ensemble.looking().await?.watch().await
    }

    /// Another leader is best known soon.
    async fn look_soon(&self) {
        let Ok(looking) = self.ensemble.looking().await else { return };
        self.look_at_era(&looking, false).await.ok();
    }
}

/// Passes on what the watch reports, until nobody listens. When its session is over there is another.
async fn follow(locks: Arc<Locks>, mut watch: PersistentWatcher, tell: mpsc::Sender<StoreEvent>) {
    loop {
        let event = tokio::select! {
            event = watch.changed() => event,
            () = tell.closed() => return,
        };
        if let Some(news) = meaning(&locks, &event).await {
            tell.send(news).await.ok();
        }
        if event.session_state.is_terminated() {
            watch = loop {
                tokio::time::sleep(TRY_AGAIN).await;
                match locks.watch().await {
                    Ok(watch) => break watch,
                    Err(_) if tell.is_closed() => return,
                    Err(_) => {}
                }
            };
            locks.look_soon().await;
            tell.send(StoreEvent::Subscribed).await.ok();
        }
    }
}

/// What an event of the watch means.
async fn meaning(locks: &Locks, event: &WatchedEvent) -> Option<StoreEvent> {
    match event.event_type {
        EventType::Session if event.session_state == SessionState::SyncConnected => {
            locks.look_soon().await;
            Some(StoreEvent::Subscribed)
        }
        EventType::Session => Some(StoreEvent::Interrupted),
        EventType::NodeCreated => woken(&event.path).map(StoreEvent::Wake),
        EventType::NodeDeleted => {
            let name = event.path.strip_prefix(LEASES)?.strip_prefix('/')?;
            JobName::new(name).ok().map(StoreEvent::Lease)
        }
        EventType::NodeDataChanged | EventType::NodeChildrenChanged => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_that_comes_on_both_ways_is_told_once_whichever_is_first() {
        let (one, two) = (Waiter("a/0/1".to_owned()), Waiter("a/0/2".to_owned()));
        let both = || vec![one.clone(), two.clone()];
        let mut twice = Twice::default();
        assert_eq!(twice.first(both(), Way::Bell), both());
        assert_eq!(twice.first(vec![two.clone()], Way::Watch), []);
        // Woken once more before the watch has reported the first time.
        assert_eq!(twice.first(vec![one.clone()], Way::Bell), std::slice::from_ref(&one));
        assert_eq!(twice.first(both(), Way::Watch), std::slice::from_ref(&two));
        assert_eq!(twice.first(both(), Way::Watch), std::slice::from_ref(&two));
        assert_eq!(twice.first(both(), Way::Bell), std::slice::from_ref(&one));
        assert_eq!(twice.first(vec![two.clone(); 2], Way::Bell), std::slice::from_ref(&two));
    }

    #[test]
    fn who_is_woken_is_read_from_the_name() {
        let waiters: Vec<Waiter> =
            ["node-a/0af3/1", "odd,name%2F/x/22"].map(|one| Waiter(one.to_owned())).to_vec();
        let name = name(&waiters);
        assert_eq!(name.matches('/').count(), 2, "{name}");
        assert_eq!(woken(&name), Some(waiters));
        assert_eq!(woken("/leases/outbound"), None);
        assert_eq!(woken(WAKES), None);
    }
}
