//! The subscription on a cluster: a connection to every master that has a followed channel, moved when slots move.
//!
//! Sharded channels have no patterns, so each job's channel is subscribed to by name. A master that is lost takes only
//! its own channels along: those of the others are heard meanwhile. [`StoreEvent::Subscribed`] is said again when all
//! of them are confirmed again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ::redis::{AsyncConnectionConfig, FromRedisValue, PushInfo, PushKind};
use futures_util::future::try_join_all;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Shared;
use super::cluster::Cluster;
use super::events::{PING_EVERY, WAITING, of_the_cluster};
use super::fault::in_words;
use super::members::HashSlot;
use super::route::Master;
use soloist_domain::name::JobName;
use soloist_store::core::understood;
use soloist_store::events::StoreEvent;
use soloist_store::outlet::Outlet;
use soloist_store::{Result, StoreError};

/// How often it is compared who has which channel; also the pause before a lost connection is made again.
const COMPARE: Duration = Duration::from_millis(200);

/// What an ear reports, under its number.
enum Heard {
    Confirmed,
    Message { channel: String, payload: Vec<u8> },
    Lost(String),
}

/// A connection to one master.
struct Ear {
    number: u64,
    channels: BTreeSet<String>,
    confirmed: bool,
    task: tokio::task::AbortHandle,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is to be heard at one master, which may be unknown at this moment.
#[derive(Default)]
struct Wanted {
    master: Option<Arc<Master>>,
    channels: BTreeSet<String>,
}

/// All of them.
struct Ears {
    shared: Arc<Shared>,
    cluster: Arc<Cluster>,
    patience: Duration,
    channels: Vec<(String, HashSlot)>,
    nodes: String,
    each: HashMap<Arc<str>, Ear>,
    next: u64,
    sender: mpsc::UnboundedSender<(u64, Heard)>,
    heard: mpsc::UnboundedReceiver<(u64, Heard)>,
    why: Option<String>,
}

/// Subscribes to the channels of `jobs`, of nodes and of waiters. Masters that are lost at this moment follow later, and a
/// [`StoreEvent::Interrupted`] says so.
///
/// # Errors
/// [`StoreError::Unavailable`] when none of them confirms in time.
pub(super) async fn subscribe(
    shared: &Arc<Shared>,
    cluster: &Arc<Cluster>,
    jobs: &[JobName],
) -> Result<mpsc::Receiver<StoreEvent>> {
    let mut names: BTreeSet<String> = jobs.iter().map(|job| shared.keys.events(job)).collect();
    let nodes = shared.keys.nodes_events();
    names.insert(nodes.clone());
    names.insert(shared.keys.dispatch("wake"));
    let (ear_sender, heard) = mpsc::unbounded_channel();
    let mut ears = Ears {
        shared: Arc::clone(shared),
        cluster: Arc::clone(cluster),
        patience: shared.timeout,
        channels: names.into_iter().map(|name| (name.clone(), HashSlot::of(&name))).collect(),
        nodes,
        each: HashMap::new(),
        next: 0,
        sender: ear_sender,
        heard,
        why: None,
    };
    let confirming = async {
        // The first answer of the masters, so that there is something to compare.
        ears.cluster.masters().await?;
        let mut compare = interval(COMPARE);
        while !ears.are_whole() {
            tokio::select! {
                _ = compare.tick() => ears.arrange(),
                Some((number, heard)) = ears.heard.recv() => drop(ears.take(number, heard)),
            }
        }
        Ok::<(), StoreError>(())
    };
    match timeout(shared.timeout, confirming).await {
        Ok(result) => result?,
        Err(_) if ears.each.values().any(|ear| ear.confirmed) => {}
        Err(_) => {
            let why = ears.why.as_deref().unwrap_or("no answer in time");
            return Err(StoreError::Unavailable(format!(
                "no master of {} confirmed the subscription: {why}",
                cluster.name()
            )));
        }
    }
    let (sender, receiver) = mpsc::channel(WAITING);
    let mut outlet = Outlet::new(sender);
    outlet.deliver(StoreEvent::Subscribed);
    tokio::spawn(keep(ears, outlet));
    Ok(receiver)
}

/// Passes events on, and keeps the connections where the channels are, until no reader listens.
async fn keep(mut ears: Ears, mut outlet: Outlet) {
    let mut whole = true;
    let mut compare = interval(COMPARE);
    compare.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if ears.are_whole() != whole {
            whole = !whole;
            if whole {
                tracing::info!("subscribed again");
                outlet.deliver(StoreEvent::Subscribed);
            } else {
                let why = ears.why.as_deref().unwrap_or("another master has the slot");
                tracing::warn!(why, "a part of the subscription is interrupted");
                outlet.deliver(StoreEvent::Interrupted);
            }
        }
        tokio::select! {
            Some((number, heard)) = ears.heard.recv() => {
                for event in ears.take(number, heard) {
                    outlet.deliver(event);
                }
            }
            _ = compare.tick() => ears.arrange(),
            listened = outlet.settle() => if !listened { return },
        }
    }
}

impl Ears {
    fn are_whole(&self) -> bool {
        let covered: usize =
            self.each.values().filter(|ear| ear.confirmed).map(|ear| ear.channels.len()).sum();
        covered == self.channels.len()
    }

    /// Starts, moves and ends connections so that each channel is heard where it is published.
    fn arrange(&mut self) {
        let mut wanted: HashMap<Arc<str>, Wanted> = HashMap::new();
        for (channel, slot) in &self.channels {
            let master = self.cluster.owner_now(*slot);
            let address = match &master {
                Some(master) => Some(Arc::clone(&master.address)),
                // The owner is not known at this moment: the channel stays where it is.
                None => self
                    .each
                    .iter()
                    .find(|(_, ear)| ear.channels.contains(channel))
                    .map(|(address, _)| Arc::clone(address)),
            };
            if let Some(address) = address {
                let there = wanted.entry(address).or_default();
                there.channels.insert(channel.clone());
                there.master = there.master.take().or(master);
            }
        }
        self.each.retain(|address, ear| {
            wanted.get(address).is_some_and(|there| there.channels == ear.channels)
        });
        for (address, Wanted { master, channels }) in wanted {
            if let Some(master) = master
                && !self.each.contains_key(&address)
            {
                self.next += 1;
                let (number, sender) = (self.next, self.sender.clone());
                let (listened, patience) = (channels.clone(), self.patience);
                let task = tokio::spawn(async move {
                    let why = listen(&master, &listened, patience, |heard| {
                        // Without a receiver the subscription has ended, and with it this task.
                        drop(sender.send((number, heard)));
                    })
                    .await;
                    drop(sender.send((number, Heard::Lost(why))));
                })
                .abort_handle();
                self.each.insert(address, Ear { number, channels, confirmed: false, task });
            }
        }
    }

    /// Notes what an ear reports; what comes from one that is replaced counts no more.
    fn take(&mut self, number: u64, heard: Heard) -> Vec<StoreEvent> {
        let Some(address) = self.each.iter().find(|(_, ear)| ear.number == number) else {
            return Vec::new();
        };
        let address = address.0.clone();
        match heard {
            Heard::Confirmed => {
                if let Some(ear) = self.each.get_mut(&address) {
                    ear.confirmed = true;
                }
                Vec::new()
            }
            Heard::Message { channel, payload } if channel == self.nodes => {
                vec![of_the_cluster(&payload)]
            }
            Heard::Message { payload, .. } => understood(&payload, &self.shared.known),
            Heard::Lost(why) => {
                tracing::debug!(%address, why, "a connection for events is lost");
                self.why = Some(why);
                self.cluster.doubt(&address);
                self.each.remove(&address);
                Vec::new()
            }
        }
    }
}

/// Listens to one master until it is lost; says why.
async fn listen(
    master: &Master,
    channels: &BTreeSet<String>,
    patience: Duration,
    tell: impl Fn(Heard),
) -> String {
    let (push, mut pushes) = mpsc::unbounded_channel::<PushInfo>();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(patience))
        .set_response_timeout(None)
        .set_push_sender(push);
    let confirmed = async {
        let connection =
            master.client.get_multiplexed_async_connection_with_config(&config).await?;
        try_join_all(channels.iter().map(|channel| {
            let mut connection = connection.clone();
            async move {
                // One by one: channels of one command must share a slot.
                ::redis::cmd("SSUBSCRIBE").arg(channel).exec_async(&mut connection).await
            }
        }))
        .await?;
        Ok(connection)
    };
    let mut connection = match timeout(patience, confirmed).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return in_words(&error, &master.address).to_string(),
        Err(_) => return format!("Redis at {} did not confirm in time", master.address),
    };
    tell(Heard::Confirmed);
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            push = pushes.recv() => match push {
                Some(PushInfo { kind: PushKind::SMessage, data }) => {
                    let mut data = data.into_iter();
                    if let (Some(channel), Some(payload)) = (data.next(), data.next())
                        && let Ok(channel) = String::from_redis_value(channel)
                        && let Ok(payload) = Vec::<u8>::from_redis_value(payload)
                    {
                        tell(Heard::Message { channel, payload });
                    }
                }
                Some(PushInfo { kind: PushKind::SUnsubscribe, .. }) => {
                    return format!("Redis at {} handed the slot to another", master.address);
                }
                Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => {
                    return format!("Redis at {} closed the connection", master.address);
                }
                Some(_) => {}
            },
            _ = ping.tick() => {
                let asked = ::redis::cmd("PING");
                let pong = asked.exec_async(&mut connection);
                match timeout(patience, pong).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return format!("the connection to Redis at {} is broken", master.address),
                    Err(_) => return format!("Redis at {} does not answer", master.address),
                }
            }
        }
    }
}
