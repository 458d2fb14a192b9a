//! Who waits at this node: a wake that the store sends to all nodes reaches the one request that it names.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};

use super::WaitingRoom;
use soloist_domain::name::NodeName;
use soloist_store::dispatch::Waiter;
use soloist_store::feed::Change;

/// All waiters of this node.
pub(super) struct Waiters {
    /// `NODE/RANDOM`: another incarnation of this node has another prefix.
    prefix: String,
    count: AtomicU64,
    seats: Mutex<HashMap<Waiter, Arc<Notify>>>,
}

impl Waiters {
    pub(super) fn new(node: &NodeName) -> Self {
        let prefix = format!("{node}/{:016x}", rand::random::<u64>());
        Self { prefix, count: AtomicU64::new(0), seats: Mutex::default() }
    }

    /// A name for a new waiter, and what is notified when it is woken. A wake that comes before it sleeps is kept.
    pub(super) fn sit(&self) -> (Waiter, Arc<Notify>) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter(format!("{}/{number}", self.prefix));
        let notify = Arc::new(Notify::new());
        self.seats.lock().insert(waiter.clone(), Arc::clone(&notify));
        (waiter, notify)
    }

    /// They wait no more.
    pub(super) fn leave(&self, waiter: &Waiter) {
        self.seats.lock().remove(waiter);
    }

    /// What the names of all who wait here begin with: `NODE/RANDOM`.
    pub(super) fn incarnation(&self) -> &str {
        &self.prefix
    }

    /// How many wait here.
    pub(super) fn len(&self) -> usize {
        self.seats.lock().len()
    }

    /// Wakes one that waits here; whether it does.
    pub(super) fn call(&self, waiter: &Waiter) -> bool {
        let seats = self.seats.lock();
        seats.get(waiter).inspect(|seat| seat.notify_one()).is_some()
    }

    fn wake(&self, named: &[Waiter]) {
        let seats = self.seats.lock();
        named.iter().filter_map(|waiter| seats.get(waiter)).for_each(|seat| seat.notify_one());
    }
}

/// Hands wakes on until the room closes. One that is lost costs its waiter a second at most: all ask again by themselves.
pub(super) async fn listen(
    room: WaitingRoom,
    mut changes: broadcast::Receiver<Change>,
    mut closing: watch::Receiver<bool>,
) {
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            _ = closing.changed() => return,
        };
        match change {
            Ok(Change::Wake(named)) => {
                room.shared.waiters.wake(&named);
                room.shared.woken.send_replace(());
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {
                room.shared.woken.send_replace(());
            }
            Ok(_) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    #[tokio::test]
    async fn a_wake_reaches_only_whom_it_names_even_before_they_sleep() {
        let waiters = Waiters::new(&NodeName::new("node-a").unwrap());
        let (first, first_bell) = waiters.sit();
        let (second, second_bell) = waiters.sit();
        assert!(first.0.starts_with("node-a/") && first != second);
        waiters.wake(&[second.clone(), Waiter("node-b/0/0".to_owned())]);
        second_bell.notified().await;
        let early = tokio::time::timeout(Duration::from_millis(1), first_bell.notified()).await;
        assert!(early.is_err(), "the other one sleeps on");
        waiters.leave(&second);
        assert_eq!(waiters.len(), 1);
    }
}
