//! A request for work on its way, and what becomes of it when its client hangs up.
//!
//! Dropping the future of a request is all that a hang-up is. At that moment the store may be at work on a call, or has
//! a waiter noted, or has granted something that nobody will receive. The drop leaves nothing of that behind: the call is
//! carried to its end elsewhere, then the waiter is struck out or the grant given back. Unless the same request has come
//! again meanwhile: then what was granted is the answer to that one. Should it come while the grant goes back, it waits
//! for that: or it would be answered with what is about to be taken away. At another node the store knows: what was
//! answered again does not go back.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::{Shared, locked};
use crate::domain::name::{CollectorName, RequestId, SourceName};
use crate::store::dispatch::{
    ClaimAsk, ClaimId, Claimed, Dispatch as _, Exchange, Exchanged, Waiter,
};
use crate::store::{Result, Store};

/// Under each name the number of the newest request.
#[derive(Default)]
pub(super) struct Newest {
    count: u64,
    requests: HashMap<(CollectorName, RequestId), u64>,
    /// Whose grants are going back; closed when they have.
    returning: HashMap<(CollectorName, RequestId), watch::Receiver<()>>,
}

type Call = Pin<Box<dyn Future<Output = Result<Exchanged>> + Send>>;

/// A request on its way.
pub(super) struct Asking {
    shared: Arc<Shared>,
    name: (CollectorName, RequestId),
    number: u64,
    sources: Vec<SourceName>,
    call: Option<Call>,
    /// What an earlier one of this name left is going back.
    returning: Option<watch::Receiver<()>>,
    /// The store has been told that this one waits.
    waiter: Option<(Waiter, Arc<Notify>)>,
    granted: Option<ClaimId>,
}

/// A grant that is not delivered yet: it goes back when this is dropped.
pub struct Hand(Asking);

impl Hand {
    /// The client has it.
    pub fn delivered(mut self) {
        self.0.granted = None;
    }
}

impl Asking {
    pub(super) fn new(shared: &Arc<Shared>, ask: &ClaimAsk) -> Self {
        let name = (ask.collector.clone(), ask.request.clone());
        let mut newest = locked(&shared.newest);
        newest.count += 1;
        let number = newest.count;
        newest.requests.insert(name.clone(), number);
        let returning = newest.returning.get(&name).cloned();
        drop(newest);
        Self {
            shared: Arc::clone(shared),
            name,
            number,
            sources: ask.sources.clone(),
            call: None,
            returning,
            waiter: None,
            granted: None,
        }
    }

    /// The name to wait under.
    pub(super) fn waiter(&mut self) -> Waiter {
        self.waiter.get_or_insert_with(|| self.shared.waiters.sit()).0.clone()
    }

    /// Resolves when it is this one's turn; never, if it does not wait.
    pub(super) async fn woken(&self) {
        match &self.waiter {
            Some((_, bell)) => bell.notified().await,
            None => std::future::pending().await,
        }
    }

    /// One call; it is carried to its end whatever becomes of this future.
    pub(super) async fn call(&mut self, ask: Exchange) -> Result<Exchanged> {
        if let Some(mut returning) = self.returning.take() {
            // It is never sent to, only closed.
            returning.changed().await.ok();
        }
        let store = self.shared.store.clone();
        let call = self.call.insert(Box::pin(async move { store.exchange(&ask).await }));
        let answer = call.await;
        self.call = None;
        if let Ok(Exchanged { claimed: Some(Claimed::Granted { claim, .. }), .. }) = &answer {
            self.granted = Some(claim.clone());
            self.sit_no_more();
        }
        answer
    }

    /// To be delivered.
    pub(super) fn into_hand(self) -> Hand {
        Hand(self)
    }

    /// The answer was final: the store has forgotten the waiter by itself.
    pub(super) fn sit_no_more(&mut self) -> Option<Waiter> {
        let (waiter, _) = self.waiter.take()?;
        self.shared.waiters.leave(&waiter);
        Some(waiter)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let waiter = self.sit_no_more();
        let (call, granted) = (self.call.take(), self.granted.take());
        let left = Left {
            shared: Arc::clone(&self.shared),
            name: self.name.clone(),
            number: self.number,
            sources: std::mem::take(&mut self.sources),
            waiter,
        };
        if call.is_none() && granted.is_none() && left.waiter.is_none() {
            left.is_newest();
            return;
        }
        self.shared.runtime.spawn(left.clear_away(call, granted));
    }
}

/// What a request left behind.
struct Left {
    shared: Arc<Shared>,
    name: (CollectorName, RequestId),
    number: u64,
    sources: Vec<SourceName>,
    waiter: Option<Waiter>,
}

impl Left {
    async fn clear_away(self, call: Option<Call>, mut granted: Option<ClaimId>) {
        if let Some(call) = call {
            match call.await {
                Ok(Exchanged { claimed: Some(Claimed::Granted { claim, .. }), .. }) => {
                    granted = Some(claim);
                }
                Ok(_) => {}
                // What it did is unknown; its lease ends by itself.
                Err(error) => tracing::debug!(%error, "the claim of a client that hung up"),
            }
        }
        let (gone, returning) = watch::channel(());
        let newest = self.is_newest_and(granted.is_some().then_some(returning));
        let store: &Store = &self.shared.store;
        let done = match (&granted, &self.waiter) {
            (Some(_), _) if !newest => Ok(()),
            (Some(claim), _) => {
                let done = store.give_back_unseen(claim).await.map(drop);
                locked(&self.shared.newest).returning.remove(&self.name);
                done
            }
            (None, Some(waiter)) => store.stop_waiting(waiter, &self.sources).await,
            (None, None) => Ok(()),
        };
        if let Err(error) = done {
            // It ends by itself, after its time.
            tracing::debug!(%error, "nothing could be cleared away after a client that hung up");
        }
        drop(gone);
    }

    /// Whether no newer request came under this name; it is struck out then.
    fn is_newest(&self) -> bool {
        self.is_newest_and(None)
    }

    /// As [`Self::is_newest`]; if so, in the same step, `returning` is what newer ones wait for.
    fn is_newest_and(&self, returning: Option<watch::Receiver<()>>) -> bool {
        let mut newest = locked(&self.shared.newest);
        let is = newest.requests.get(&self.name) == Some(&self.number);
        if is {
            newest.requests.remove(&self.name);
            if let Some(returning) = returning {
                newest.returning.insert(self.name.clone(), returning);
            }
        }
        is
    }
}
