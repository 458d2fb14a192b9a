//! The subscription: a connection of its own, kept alive until no reader listens.
//!
//! Redis publishes at most once, so a subscription is never more than a hint. What must not happen is silence
//! that looks like peace: the link is pinged every few seconds, and after every interruption, and whenever the
//! reader was too slow, [`StoreEvent::Subscribed`] tells it to read everything again.

use std::sync::Arc;
use std::time::Duration;

use ::redis::AsyncConnectionConfig;
use ::redis::aio::{PubSubSink, PubSubStream};
use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::fault::in_words;
use super::link;
use super::route::{Master, Route};
use super::{Place, RedisStore, Shared, shards};
use soloist_domain::name::JobName;
use soloist_store::core::understood;
use soloist_store::events::{Events, StoreEvent};
use soloist_store::outlet::Outlet;
use soloist_store::{Result, StoreError};

/// Events that wait for a slow reader before it is told to read everything again.
pub(super) const WAITING: usize = 1_024;
/// A link that is silent for this long is pinged.
pub(super) const PING_EVERY: Duration = Duration::from_secs(2);
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

#[async_trait]
impl Events for RedisStore {
    async fn subscribe(&self, jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        let route = match &self.shared.place {
            Place::Server(route) => Arc::clone(route),
            Place::Cluster(cluster) => return shards::subscribe(&self.shared, cluster, jobs).await,
        };
        // One pattern for all jobs: cheaper than a name for each, and the reader knows which are its own.
        let subscription = subscribe(&self.shared, &route).await?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut outlet = Outlet::new(sender);
        outlet.deliver(StoreEvent::Subscribed);
        tokio::spawn(keep(Arc::clone(&self.shared), route, subscription, outlet));
        Ok(receiver)
    }
}

/// What the channel of nodes says: who is there, or who may look.
pub(super) fn of_the_cluster(payload: &[u8]) -> StoreEvent {
    match payload {
        br#"{"event":"accounts"}"# => StoreEvent::Accounts,
        _ => StoreEvent::Nodes,
    }
}

/// A confirmed subscription.
struct Subscription {
    sink: PubSubSink,
    stream: PubSubStream,
    /// Where it leads.
    master: Arc<Master>,
}

/// Subscribes and waits for every acknowledgement.
async fn subscribe(shared: &Shared, route: &Route) -> Result<Subscription> {
    let attempt = async {
        let master = route.master().await?;
        let words = |error| in_words(&error, &master.address);
        if route.may_move() {
            expect_master(&master).await?;
        }
        let (mut sink, stream) = master.client.get_async_pubsub().await.map_err(words)?.split();
        sink.psubscribe(shared.keys.events_pattern()).await.map_err(words)?;
        sink.subscribe(shared.keys.nodes_events()).await.map_err(words)?;
        sink.subscribe(shared.keys.dispatch("wake")).await.map_err(words)?;
        Ok(Subscription { sink, stream, master: Arc::clone(&master) })
    };
    let result = tokio::time::timeout(shared.timeout, attempt).await.unwrap_or_else(|_| {
        Err(StoreError::Unavailable(format!(
            "Redis at {} did not confirm the subscription within {:?}",
            route.name(),
            shared.timeout
        )))
    });
    if result.is_err() {
        route.doubt();
    }
    result
}

/// A connection that subscribes cannot ask for the role.
async fn expect_master(master: &Master) -> Result<()> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let mut connection = master
        .client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .map_err(|error| in_words(&error, &master.address))?;
    link::expect_master(&mut connection, &master.address).await
}

/// Follows one subscription after the other until no reader listens any more.
async fn keep(
    shared: Arc<Shared>,
    route: Arc<Route>,
    mut subscription: Subscription,
    mut outlet: Outlet,
) {
    loop {
        let why = follow(&shared, &route, &mut subscription, &mut outlet).await;
        if outlet.is_closed() {
            return;
        }
        tracing::warn!(address = %route.name(), why, "the subscription is interrupted");
        outlet.deliver(StoreEvent::Interrupted);
        let mut wait = Duration::ZERO;
        subscription = loop {
            let pause = tokio::time::sleep(wait);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    listened = outlet.settle() => if !listened { return },
                    () = &mut pause => break,
                }
            }
            match subscribe(&shared, &route).await {
                Ok(subscription) => break subscription,
                Err(error) => tracing::debug!(%error, "not subscribed yet"),
            }
            wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        };
        tracing::info!(address = %route.name(), "subscribed again");
        outlet.deliver(StoreEvent::Subscribed);
    }
}

/// Passes events on until the link is lost (says why) or no reader listens.
async fn follow(
    shared: &Shared,
    route: &Route,
    subscription: &mut Subscription,
    outlet: &mut Outlet,
) -> &'static str {
    let nodes = shared.keys.nodes_events();
    let mut ping = tokio::time::interval(PING_EVERY);
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = subscription.stream.next() => {
                let Some(message) = message else { return "the connection was closed" };
                if message.get_channel_name() == nodes {
                    outlet.deliver(of_the_cluster(message.get_payload_bytes()));
                    continue;
                }
                for event in understood(message.get_payload_bytes(), &shared.known) {
                    outlet.deliver(event);
                }
            }
            _ = ping.tick() => {
                let pong = subscription.sink.ping::<::redis::Value>();
                match tokio::time::timeout(shared.timeout, pong).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(_)) => return "the connection is broken",
                    Err(_) => return "the server does not answer",
                }
                // A server that was the master once may answer pings for ever, and publish nothing.
                match route.master().await {
                    Ok(master) if Arc::ptr_eq(&master, &subscription.master) => {}
                    Ok(_) => return "another server is the master",
                    Err(_) => return "the master is not known",
                }
            }
            listened = outlet.settle() => if !listened { return "no reader listens" },
        }
    }
}
