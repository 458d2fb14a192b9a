//! A server by its connections: shared by all drivers whose connections are [`Wire`]s.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::Server;
use super::converse::{carried, looked};
use super::fault::Outcome;
use super::follow::Hint;
use super::link::{Links, Wire};
use super::listen::Ringer;
use super::packet::{Answers, Packet, Repeat};
use super::queue::Queue;
use super::relay::Asked;
use super::session::Dialect;
use soloist_domain::time::Boot;
use soloist_store::Result;
use soloist_store::dispatch::Waiter;
use soloist_store::engine::Way;

/// The server at a place, and the connections of this process to it.
pub(crate) struct Linked<W: Wire> {
    /// Where it is.
    pub(crate) place: Arc<W::Place>,
    /// One connection for each kind of call.
    pub(crate) links: Links<W>,
    acts: Arc<Queue>,
    ringer: Ringer<W>,
    /// Longest time for one call.
    pub(crate) timeout: Duration,
}

impl<W: Wire> Linked<W> {
    /// The server at `place`. Nothing is sent yet.
    pub(crate) fn new(place: W::Place, timeout: Duration) -> Self {
        let place = Arc::new(place);
        let (links, ringer) = (Links::new(&place, timeout), Ringer::new(&place, timeout));
        Self { place, links, acts: Arc::default(), ringer, timeout }
    }
}

#[async_trait]
impl<W: Wire> Server for Linked<W> {
    fn dialect(&self) -> Dialect {
        W::DIALECT
    }

    fn name(&self) -> &str {
        W::name(&self.place)
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn send(&self, way: Way, packet: &Packet, repeat: Repeat) -> Result<Answers> {
        self.links.send(way, packet, repeat).await
    }

    async fn serve(&self, looks: bool, asked: Asked, until: Boot) -> Outcome<Vec<Waiter>> {
        let link = &self.links.dispatch;
        if looks {
            looked(link, asked, until).await
        } else {
            carried(link, &self.acts, asked, until).await
        }
    }

    fn ring(&self, hint: Hint) -> oneshot::Receiver<()> {
        self.ringer.ring(hint)
    }
}
