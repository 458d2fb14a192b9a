//! Who is woken: heard as every node hears it.

use std::time::Duration;

use soloist::store::Store;
use soloist::store::events::{Events, StoreEvent};
use tokio::sync::mpsc::Receiver;

use super::{events, job, switch};

/// Everything woken until the change of `outbound` is heard that is made now: so nothing else was.
pub(super) struct Ear {
    pub(super) heard: Receiver<StoreEvent>,
    on: bool,
}

impl Ear {
    pub(super) async fn new(store: &Store) -> Self {
        let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
        assert_eq!(events::next(&mut heard).await, StoreEvent::Subscribed);
        Self { heard, on: false }
    }

    /// Who has been woken since the last look, in order.
    pub(super) async fn woken(&mut self, store: &Store) -> Vec<String> {
        self.on = !self.on;
        switch(store, "outbound", "li", self.on).await;
        let mut woken = Vec::new();
        loop {
            match events::next(&mut self.heard).await {
                StoreEvent::Wake(some) => woken.extend(some),
                StoreEvent::Job(_) => break,
                other => panic!("{other:?}"),
            }
        }
        // On a cluster the two may come from different masters, one later than the other.
        while store.is_sharded() {
            match tokio::time::timeout(Duration::from_millis(50), events::next(&mut self.heard))
                .await
            {
                Ok(StoreEvent::Wake(some)) => woken.extend(some),
                Ok(other) => panic!("{other:?}"),
                Err(_) => break,
            }
        }
        woken.iter().map(|one| one.0.rsplit('/').next().expect("a name").to_owned()).collect()
    }
}
