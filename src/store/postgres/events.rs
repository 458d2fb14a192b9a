//! The bell: one NOTIFY for everything that was committed meanwhile, and a connection that listens.
//!
//! Commits that notify wait for each other until each is on disk. So a ringer rings after the commit, one ring at a time, in the order
//! of the commits of this process. A hint that is lost that way, because its process died in between, is found by the sweep of every
//! listener (`../sql/follow.rs`). Only who may end right after a commit, for an act of a person or a lease given back, waits for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::link::{self, Heard, Link};
use super::place::Place;
use super::session::Conn;
use super::{Postgres, PostgresStore};
use crate::clock;
use crate::domain::event::JobEvent;
use crate::domain::name::JobName;
use crate::store::events::{Events, StoreEvent};
use crate::store::outlet::Outlet;
use crate::store::sql::follow::{Follower, Hint};
use crate::store::sql::session::{Session as _, Value};
use crate::store::{Result, StoreError};

/// Events that wait for a slow reader before it is told to read everything again.
const WAITING: usize = 1_024;
/// How often what no hint told is looked for; the connection that listens is asked whether it lives as well.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// A NOTIFY takes less than 8,000 bytes.
const ROOM: usize = 7_800;
/// Of a hint in one NOTIFY; names have 64 bytes at most.
const MOST_JOBS: usize = 40;
const MOST_WAITERS: usize = 30;

/// Rings for this process.
pub(super) struct Ringer {
    place: Arc<Place>,
    timeout: Duration,
    /// Begun by the first ring.
    hints: OnceLock<mpsc::UnboundedSender<Ring>>,
}

/// A hint, and who waits until it was told.
type Ring = (Hint, oneshot::Sender<()>);

impl Ringer {
    pub(super) fn new(place: Arc<Place>, timeout: Duration) -> Self {
        Self { place, timeout, hints: OnceLock::new() }
    }

    /// Tells everybody, soon; what it returns ends when that was done or has failed.
    pub(super) fn ring(&self, hint: Hint) -> oneshot::Receiver<()> {
        let (done, rung) = oneshot::channel();
        if hint == Hint::default() {
            return rung;
        }
        let hints = self.hints.get_or_init(|| {
            let (hints, todo) = mpsc::unbounded_channel();
            let link = Link::new(Arc::clone(&self.place), self.timeout);
            tokio::spawn(ring_on(link, self.place.schema.clone(), self.timeout, todo));
            hints
        });
        // It ends with this process only.
        drop(hints.send((hint, done)));
        rung
    }
}

/// One ring at a time, for everything that came meanwhile.
async fn ring_on(
    link: Link,
    channel: String,
    timeout: Duration,
    mut todo: mpsc::UnboundedReceiver<Ring>,
) {
    while let Some((mut hint, done)) = todo.recv().await {
        let mut waiting = vec![done];
        while let Ok((more, done)) = todo.try_recv() {
            hint.add(more);
            waiting.push(done);
        }
        let payloads = payloads(hint);
        let channel = channel.clone();
        let rung = link
            .call(clock::boot() + timeout, move |conn| {
                Box::pin(async move {
                    for payload in payloads {
                        let notify = "SELECT pg_notify($1, $2)";
                        conn.client.query(notify, &[&channel, &payload]).await?;
                    }
                    Ok(())
                })
            })
            .await;
        if let Err(fault) = rung {
            tracing::debug!(?fault, "nobody was told; the sweep finds it");
        }
    }
}

/// The hint in pieces that fit. What one commit did stays together: the follower knows it by its version.
fn payloads(hint: Hint) -> Vec<String> {
    let Hint { jobs, nodes, accounts, wake } = hint;
    let wakes = wake.chunks(MOST_WAITERS);
    let mut hints: Vec<Hint> =
        wakes.map(|wake| Hint { wake: wake.to_vec(), ..Hint::default() }).collect();
    if nodes.is_some() || accounts.is_some() {
        hints.push(Hint { nodes, accounts, ..Hint::default() });
    }
    let mut piece: Vec<JobEvent> = Vec::new();
    for commit in jobs.chunk_by(|one, next| (&one.job, one.version) == (&next.job, next.version)) {
        if piece.len() + commit.len() > MOST_JOBS {
            hints.push(Hint::of_jobs(&std::mem::take(&mut piece)));
        }
        piece.extend_from_slice(commit);
    }
    hints.push(Hint::of_jobs(&piece));
    hints.retain(|hint| *hint != Hint::default());
    let texts = hints.iter().filter_map(|hint| serde_json::to_string(hint).ok());
    texts.filter(|text| text.len() < ROOM).collect()
}

impl Events for PostgresStore {
    async fn subscribe(&self, _jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        let ear = Ear::open(self).await?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut outlet = Outlet::new(sender);
        outlet.deliver(StoreEvent::Subscribed);
        tokio::spawn(keep(self.clone(), ear, outlet));
        Ok(receiver)
    }
}

/// A connection that listens, and what was told of what it heard.
struct Ear {
    conn: Conn,
    heard: Heard,
    follower: Follower<Postgres>,
}

impl Ear {
    async fn open(store: &PostgresStore) -> Result<Self> {
        let server = &store.shared.server;
        let name = &server.place.name;
        let (conn, heard) = link::connect(&server.place, server.timeout, "soloist")
            .await
            .map_err(|fault| fault.told(name))?;
        let listen = format!("LISTEN \"{}\"", server.place.schema);
        let listening = tokio::time::timeout(server.timeout, conn.client.batch_execute(&listen));
        match listening.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(super::fault::Fault::from(error).told(name)),
            Err(_) => {
                return Err(StoreError::Unavailable(format!(
                    "PostgreSQL at {name} did not confirm the subscription within {:?}",
                    server.timeout
                )));
            }
        }
        // Behind LISTEN: what is committed from now on is heard.
        let follower = Follower::start(store.clone()).await?;
        Ok(Self { conn, heard, follower })
    }

    /// Passes events on until the connection is lost (says why) or nobody listens.
    async fn follow(&mut self, timeout: Duration, outlet: &mut Outlet) -> String {
        let mut tick = tokio::time::interval(SWEEP_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                said = self.heard.recv() => {
                    let Some(said) = said else { return "the connection was closed".to_owned() };
                    let hint = serde_json::from_str::<Hint>(said.payload()).unwrap_or_else(|error| {
                        tracing::debug!(%error, "a hint that is not understood");
                        Hint::default()
                    });
                    if let Err(error) = self.follower.hear(hint, outlet).await {
                        return error.to_string();
                    }
                }
                _ = tick.tick() => {
                    let pong = self.conn.query("SELECT 1", &[] as &[Value]);
                    match tokio::time::timeout(timeout, pong).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(error)) => return error.to_string(),
                        Err(_) => return "the server does not answer".to_owned(),
                    }
                    if let Err(error) = self.follower.sweep(outlet).await {
                        return error.to_string();
                    }
                }
                listened = outlet.settle() => if !listened { return "nobody listens".to_owned() },
            }
        }
    }
}

/// Listens on one connection after the other until nobody listens any more.
async fn keep(store: PostgresStore, mut ear: Ear, mut outlet: Outlet) {
    let server = &store.shared.server;
    loop {
        let why = ear.follow(server.timeout, &mut outlet).await;
        if outlet.is_closed() {
            return;
        }
        tracing::warn!(store = %server.place.name, why, "the subscription is interrupted");
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
            match Ear::open(&store).await {
                Ok(ear) => break ear,
                Err(error) => tracing::debug!(%error, "not subscribed yet"),
            }
            wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        };
        tracing::info!(store = %server.place.name, "subscribed again");
        outlet.deliver(StoreEvent::Subscribed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::EventKind;
    use crate::domain::name::Waiter;

    #[test]
    fn no_hint_is_longer_than_a_notify_may_be() {
        let job = JobName::new(&"j".repeat(64)).unwrap();
        let event = JobEvent { job, version: 0, event: EventKind::ParticipationChanged };
        let events = (0..500).map(|nth| JobEvent { version: u64::MAX - nth / 3, ..event.clone() });
        let hint = Hint {
            jobs: events.collect(),
            nodes: Some(i64::MAX),
            accounts: Some(i64::MAX),
            wake: vec![Waiter("w".repeat(200)); 100],
        };
        let payloads = payloads(hint);
        let back: Vec<Hint> =
            payloads.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert!(payloads.iter().all(|text| text.len() < 8_000));
        assert_eq!(back.iter().map(|hint| hint.jobs.len()).sum::<usize>(), 500);
        assert_eq!(back.iter().map(|hint| hint.wake.len()).sum::<usize>(), 100);
        assert!(back.iter().any(|hint| hint.nodes.is_some() && hint.accounts.is_some()));
        let ends = back.windows(2).filter_map(|two| two[0].jobs.last().zip(two[1].jobs.first()));
        assert!(ends.into_iter().all(|(last, first)| last.version != first.version), "torn");
    }
}
