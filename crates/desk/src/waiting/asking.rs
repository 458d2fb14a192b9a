//! A request on its way, and what becomes of it when its client hangs up.
//!
//! When a client disconnects, actix drops the request's future. That drop is the only signal we get. At that moment the
//! store may be at work on a call, may have noted a waiter, or may have granted something that no client will receive. The
//! drop leaves nothing of that behind: a task carries the call to its end, then removes the waiter or gives the grant back.
//! If the same request has come again meanwhile, the grant is the answer to that one. If it comes while the grant goes back,
//! it waits for that: otherwise it would be answered with what is about to be taken away. If it comes to another node, the
//! store knows: a grant that was answered again does not go back.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::WaitingRoom;
use soloist_store::dispatch::Waiter;
use soloist_store::{Result, Store};

/// What is asked for.
pub trait Errand: Clone + Send + Sync + 'static {
    /// By which the same request is known when it comes again.
    type Name: Clone + Eq + Hash + Send + Sync;
    /// One call to the store.
    type Call: Send + 'static;
    /// What the store answers.
    type Answer: Send;
    /// What can go back.
    type Grant: Clone + Send + Sync;

    /// See [`Errand::Name`].
    fn name(&self) -> Self::Name;
    /// Asks the store.
    fn call(
        store: Store,
        call: Self::Call,
    ) -> impl Future<Output = Result<Self::Answer>> + Send + 'static;
    /// What an answer grants.
    fn granted(answer: &Self::Answer) -> Option<Self::Grant>;
    /// Gives back what no client received.
    fn give_back(
        &self,
        store: &Store,
        grant: &Self::Grant,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Strikes a waiter out.
    fn leave_queues(
        &self,
        store: &Store,
        waiter: &Waiter,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// Under each name the number of the newest request at this node, so that a reply which its client asks for again is not
/// taken back.
pub struct Newest<E: Errand> {
    names: Arc<Mutex<Names<E>>>,
}

impl<E: Errand> Clone for Newest<E> {
    fn clone(&self) -> Self {
        Self { names: Arc::clone(&self.names) }
    }
}

impl<E: Errand> Default for Newest<E> {
    fn default() -> Self {
        let names = Names { count: 0, requests: HashMap::new(), returning: HashMap::new() };
        Self { names: Arc::new(Mutex::new(names)) }
    }
}

struct Names<E: Errand> {
    count: u64,
    requests: HashMap<E::Name, u64>,
    /// The names whose grants are going back; closed when they have.
    returning: HashMap<E::Name, watch::Receiver<()>>,
}

type Call<E> = Pin<Box<dyn Future<Output = Result<<E as Errand>::Answer>> + Send>>;

/// A request on its way.
pub struct Asking<E: Errand> {
    room: WaitingRoom,
    newest: Newest<E>,
    errand: E,
    number: u64,
    call: Option<Call<E>>,
    /// What an earlier one of this name left is going back.
    returning: Option<watch::Receiver<()>>,
    /// The store has been told that this one waits.
    waiter: Option<(Waiter, Arc<Notify>)>,
    granted: Option<E::Grant>,
}

/// A grant that is not delivered yet: it goes back when this is dropped.
pub struct Hand<E: Errand>(Asking<E>);

impl<E: Errand> Hand<E> {
    /// The client has it.
    pub fn delivered(mut self) {
        self.0.granted = None;
    }
}

impl<E: Errand> Asking<E> {
    /// Begins; `newest` is that of the desk.
    pub fn new(room: &WaitingRoom, newest: &Newest<E>, errand: E) -> Self {
        let name = errand.name();
        let mut names = newest.names.lock();
        names.count += 1;
        let number = names.count;
        names.requests.insert(name.clone(), number);
        let returning = names.returning.get(&name).cloned();
        drop(names);
        Self {
            room: room.clone(),
            newest: newest.clone(),
            errand,
            number,
            call: None,
            returning,
            waiter: None,
            granted: None,
        }
    }

    /// The name to wait under.
    pub fn waiter(&mut self) -> Waiter {
        self.waiter.get_or_insert_with(|| self.room.shared.waiters.sit()).0.clone()
    }

    /// The same, if it waits already.
    #[must_use]
    pub fn sitting(&self) -> Option<Waiter> {
        self.waiter.as_ref().map(|(waiter, _)| waiter.clone())
    }

    /// Resolves when it is this one's turn; never, if it does not wait.
    pub async fn woken(&mut self) {
        match &self.waiter {
            Some((_, bell)) => bell.notified().await,
            None => std::future::pending().await,
        }
    }

    /// One call; it is carried to its end even if this future is dropped.
    ///
    /// # Errors
    /// As the store's.
    pub async fn call(&mut self, call: E::Call) -> Result<E::Answer> {
        if let Some(mut returning) = self.returning.take() {
            // It is never sent to, only closed.
            returning.changed().await.ok();
        }
        let store = self.room.shared.store.clone();
        let call = self.call.insert(Box::pin(E::call(store, call)));
        let answer = call.await;
        self.call = None;
        if let Some(granted) = answer.as_ref().ok().and_then(E::granted) {
            self.granted = Some(granted);
            self.sit_no_more();
        }
        answer
    }

    /// To be delivered.
    #[must_use]
    pub fn into_hand(self) -> Hand<E> {
        Hand(self)
    }

    /// The answer was final: the store has forgotten the waiter by itself.
    pub fn sit_no_more(&mut self) -> Option<Waiter> {
        let (waiter, _) = self.waiter.take()?;
        self.room.shared.waiters.leave(&waiter);
        Some(waiter)
    }
}

impl<E: Errand> Drop for Asking<E> {
    fn drop(&mut self) {
        let waiter = self.sit_no_more();
        let (call, granted) = (self.call.take(), self.granted.take());
        let left = Left {
            room: self.room.clone(),
            newest: self.newest.clone(),
            errand: self.errand.clone(),
            number: self.number,
            waiter,
        };
        if call.is_none() && granted.is_none() && left.waiter.is_none() {
            left.is_newest(None);
            return;
        }
        let clearing = Clearing::begin(&self.room);
        self.room.shared.runtime.spawn(async move {
            left.clear_away(call, granted).await;
            drop(clearing);
        });
    }
}

/// Something is being cleared away for as long as this exists; see [`WaitingRoom::cleared`].
struct Clearing(WaitingRoom);

impl Clearing {
    fn begin(room: &WaitingRoom) -> Self {
        room.shared.clearing.send_modify(|count| *count += 1);
        Self(room.clone())
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        self.0.shared.clearing.send_modify(|count| *count -= 1);
    }
}

/// What a request left behind.
struct Left<E: Errand> {
    room: WaitingRoom,
    newest: Newest<E>,
    errand: E,
    number: u64,
    waiter: Option<Waiter>,
}

impl<E: Errand> Left<E> {
    async fn clear_away(self, call: Option<Call<E>>, mut granted: Option<E::Grant>) {
        if let Some(call) = call {
            match call.await {
                Ok(answer) => granted = E::granted(&answer).or(granted),
                // What it did is unknown; its lease ends by itself.
                Err(error) => tracing::debug!(%error, "the request of a client that hung up"),
            }
        }
        let (gone, returning) = watch::channel(());
        let newest = self.is_newest(granted.is_some().then_some(returning));
        let store: &Store = &self.room.shared.store;
        let done = match (&granted, &self.waiter) {
            (Some(_), _) if !newest => Ok(()),
            (Some(granted), _) => {
                let done = self.errand.give_back(store, granted).await;
                self.newest.names.lock().returning.remove(&self.errand.name());
                done
            }
            (None, Some(waiter)) => self.errand.leave_queues(store, waiter).await,
            (None, None) => Ok(()),
        };
        if let Err(error) = done {
            // It ends by itself, after its time.
            tracing::debug!(%error, "nothing could be cleared away after a client that hung up");
        }
        drop(gone);
    }

    /// Whether no newer request came under this name; it is struck out then. If so, in the same step, `returning` is what
    /// newer ones wait for.
    fn is_newest(&self, returning: Option<watch::Receiver<()>>) -> bool {
        let name = self.errand.name();
        let mut names = self.newest.names.lock();
        let is = names.requests.get(&name) == Some(&self.number);
        if is {
            names.requests.remove(&name);
            if let Some(returning) = returning {
                names.returning.insert(name, returning);
            }
        }
        is
    }
}
