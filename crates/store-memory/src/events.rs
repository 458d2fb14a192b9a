//! What is told of each change, in the order of the changes, and who listens.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::engine::MemoryStore;
use soloist_domain::event::JobEvent;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
use soloist_store::Result;
use soloist_store::core::{self, Known};
use soloist_store::engine::Stored;
use soloist_store::events::{Events, StoreEvent};
use soloist_store::outlet::Outlet;
use soloist_store::records::Tell;

/// Hints that wait for a slow reader.
const WAITING: usize = 1_024;

/// One thing that happened.
#[derive(Debug, Clone)]
pub(super) enum Happened {
    /// A job changed, and how it is since then.
    Job { events: Vec<JobEvent>, stored: Stored, at: StoreTime },
    /// Something else.
    Told(Tell),
}

/// Everybody who listens.
#[derive(Default)]
pub(super) struct Bell(Mutex<Vec<mpsc::UnboundedSender<Happened>>>);

impl Bell {
    pub(super) fn ring(&self, happened: &Happened) {
        self.0.lock().retain(|listener| listener.send(happened.clone()).is_ok());
    }
}

#[async_trait]
impl Events for MemoryStore {
    async fn subscribe(&self, _: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        let (listener, happens) = mpsc::unbounded_channel();
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut outlet = Outlet::new(sender);
        outlet.deliver(StoreEvent::Subscribed);
        self.bell().0.lock().push(listener);
        tokio::spawn(tell(happens, outlet, Arc::clone(self.remembered())));
        Ok(receiver)
    }
}

/// Hands on what happens, until it is not read any more.
async fn tell(
    mut happens: mpsc::UnboundedReceiver<Happened>,
    mut outlet: Outlet,
    known: Arc<Known>,
) {
    loop {
        tokio::select! {
            happened = happens.recv() => match happened {
                Some(happened) => events(happened, &known).into_iter().for_each(|one| outlet.deliver(one)),
                None => return,
            },
            listened = outlet.settle() => if !listened { return },
        }
    }
}

fn events(happened: Happened, known: &Known) -> Vec<StoreEvent> {
    match happened {
        Happened::Job { events, stored, at } => {
            let record = events.first().and_then(|one| core::record(known, &one.job, stored, at));
            record.into_iter().chain(events.into_iter().map(StoreEvent::Job)).collect()
        }
        Happened::Told(Tell::Nodes) => vec![StoreEvent::Nodes],
        Happened::Told(Tell::Accounts) => vec![StoreEvent::Accounts],
        Happened::Told(Tell::Wake(waiters)) => vec![StoreEvent::Wake(waiters)],
    }
}
