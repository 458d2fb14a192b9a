//! The bell: one NOTIFY for all commits since the last, and a connection that listens.
//!
//! Commits that notify wait for each other until each is on disk: so a ringer notifies after the commit (`../sql/listen.rs`).

use std::sync::Arc;

use super::link::{self, Heard};
use super::place::Place;
use super::session::Conn;
use crate::sql::SqlStore;
use crate::sql::follow::{Follower, Hint};
use crate::sql::listen::{self, SWEEP_EVERY};
use soloist_domain::event::JobEvent;
use soloist_store::outlet::Outlet;
use soloist_store::{Result, StoreError};

/// A NOTIFY takes less than 8,000 bytes.
const ROOM: usize = 7_800;
/// Of a hint in one NOTIFY; names have 64 bytes at most.
const MOST_JOBS: usize = 40;
const MOST_WAITERS: usize = 30;

/// The hint in pieces that fit. What one commit did stays together: the follower knows it by its version.
pub(super) fn payloads(hint: Hint) -> Vec<String> {
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

/// A listening connection, and what was published of its notifications.
pub(super) struct Ear {
    conn: Conn,
    heard: Heard,
    follower: Follower,
    timeout: std::time::Duration,
}

impl listen::Ear for Ear {
    type Place = Place;

    async fn open(place: &Arc<Place>, store: &SqlStore) -> Result<Self> {
        let timeout = store.shared.server.timeout();
        let name = &place.name;
        let (conn, heard) =
            link::connect(place, timeout, "soloist").await.map_err(|fault| fault.told(name))?;
        let listen = format!("LISTEN \"{}\"", place.schema);
        let listening = tokio::time::timeout(timeout, conn.client.batch_execute(&listen));
        match listening.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(crate::sql::fault::Fault::from(error).told(name)),
            Err(_) => {
                return Err(StoreError::Unavailable(format!(
                    "PostgreSQL at {name} did not confirm the subscription within {timeout:?}"
                )));
            }
        }
        // Behind LISTEN: what is committed from now on is heard.
        let follower = Follower::start(store.clone()).await?;
        Ok(Self { conn, heard, follower, timeout })
    }

    async fn follow(&mut self, outlet: &mut Outlet) -> String {
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
                    // Whether the connection lives; perhaps nothing was said on it.
                    let pong = self.conn.query("SELECT 1", &[]);
                    match tokio::time::timeout(self.timeout, pong).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(fault)) => return fault.told("PostgreSQL").to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::event::EventKind;
    use soloist_domain::name::{JobName, Waiter};

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
