//! The two ends of a server's bell: the ringer of this process, and its listener.
//!
//! A ringer rings after the commit, one ring at a time, in the order of this process' commits: commits that notify would wait for each other. If
//! the process dies in between, the sweep of every listener finds the change (`follow.rs`); a collector whose wake is lost asks again about a
//! second later (`desk/dispatch/claim.rs`). Only a caller that may end right after a commit, for an act of a person or a released lease,
//! waits for the ring.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::SqlStore;
use super::follow::Hint;
use super::link::{Link, Wire};
use soloist_process::clock;
use soloist_store::Result;
use soloist_store::events::StoreEvent;
use soloist_store::outlet::Outlet;

/// How many events wait for a slow reader before it must read everything again.
const WAITING: usize = 1_024;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How often what no hint told is looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Rings for this process.
pub(crate) struct Ringer<W: Wire> {
    place: Arc<W::Place>,
    timeout: Duration,
    /// Begun by the first ring.
    hints: OnceLock<mpsc::UnboundedSender<Ring>>,
}

/// A hint, and who waits until it was told.
type Ring = (Hint, oneshot::Sender<()>);

impl<W: Wire> Ringer<W> {
    pub(crate) fn new(place: &Arc<W::Place>, timeout: Duration) -> Self {
        Self { place: Arc::clone(place), timeout, hints: OnceLock::new() }
    }

    /// Tells everybody, soon; what it returns ends when that was done or has failed.
    pub(crate) fn ring(&self, hint: Hint) -> oneshot::Receiver<()> {
        let (done, rung) = oneshot::channel();
        if hint == Hint::default() {
            return rung;
        }
        let hints = self.hints.get_or_init(|| {
            let (hints, todo) = mpsc::unbounded_channel();
            let link = Link::<W>::new(Arc::clone(&self.place), self.timeout);
            tokio::spawn(ring_on(link, self.timeout, todo));
            hints
        });
        // It ends with this process only.
        drop(hints.send((hint, done)));
        rung
    }
}

/// One ring at a time, for everything that came meanwhile.
async fn ring_on<W: Wire>(
    link: Link<W>,
    timeout: Duration,
    mut todo: mpsc::UnboundedReceiver<Ring>,
) {
    while let Some((mut hint, done)) = todo.recv().await {
        let mut waiting = vec![done];
        while let Ok((more, done)) = todo.try_recv() {
            hint.add(more);
            waiting.push(done);
        }
        let place = Arc::clone(&link.place);
        let rung = link
            .call(clock::boot() + timeout, move |conn: &mut W| {
                Box::pin(async move { conn.tell(&place, hint).await })
            })
            .await;
        if let Err(fault) = rung {
            tracing::debug!(?fault, "nobody was told; the sweep finds it");
        }
    }
}

/// Who listens, and passes on what is heard.
pub(crate) trait Ear: Sized + Send + 'static {
    /// Where the server is.
    type Place: Send + Sync + 'static;

    /// From now on; what is there already is read by the subscriber.
    fn open(
        place: &Arc<Self::Place>,
        store: &SqlStore,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Passes events on until the connection is lost (says why) or no subscriber is left.
    fn follow(&mut self, outlet: &mut Outlet) -> impl Future<Output = String> + Send;
}

/// Subscribes by such an ear.
pub(crate) async fn subscribe<E: Ear>(
    place: &Arc<E::Place>,
    store: &SqlStore,
) -> Result<mpsc::Receiver<StoreEvent>> {
    let ear = E::open(place, store).await?;
    let (sender, receiver) = mpsc::channel(WAITING);
    let mut outlet = Outlet::new(sender);
    outlet.deliver(StoreEvent::Subscribed);
    tokio::spawn(keep(Arc::clone(place), store.clone(), ear, outlet));
    Ok(receiver)
}

/// Listens on one connection after the other until no subscriber is left.
async fn keep<E: Ear>(place: Arc<E::Place>, store: SqlStore, mut ear: E, mut outlet: Outlet) {
    let server = &store.shared.server;
    loop {
        let why = ear.follow(&mut outlet).await;
        if outlet.is_closed() {
            return;
        }
        tracing::warn!(store = %server.name(), why, "the subscription is interrupted");
        outlet.deliver(StoreEvent::Interrupted);
        let mut wait = Duration::ZERO;
        ear = loop {
            let pause = tokio::time::sleep(wait);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    listened = outlet.settle() => if !listened { return },
                    () = &mut pause => break,
                }
            }
            match E::open(&place, &store).await {
                Ok(ear) => break ear,
                Err(error) => tracing::debug!(%error, "not subscribed yet"),
            }
            wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        };
        tracing::info!(store = %server.name(), "subscribed again");
        outlet.deliver(StoreEvent::Subscribed);
    }
}
