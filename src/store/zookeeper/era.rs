//! May the ensemble be believed? The node `era`, compared with what this process saw before and with the leader's epoch.
//!
//! An ensemble that was emptied, restored or lost its newest writes has a leader of another epoch afterwards: the upper half of the
//! number of every write. The first process that sees another epoch, or no `era`, writes a new one. Every grant is made on condition
//! that `era` is as this process knows it. In a new era nothing is granted for as long as a forgotten lease may last, while living
//! holders assert theirs again. An election that lost nothing costs the same wait, for jobs without a holder.
//!
//! The version of `era` alone does not tell an ensemble from the one that it was before it was emptied. So what this process knows of the era
//! counts only in sessions that began before it was read; for others it is read again.
//!
//! A process that sees the era change counts from then, by its own CLOCK_BOOTTIME. One that comes later takes the age of the era from the
//! clock of the record store, by which the era is dated after its election.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zookeeper_client::{CreateMode, Error};

use super::Locks;
use super::bell::WAKES;
use super::link::{Reading, Session};
use super::locks::{ATTEMPTS, LEASES, TERMS};
use crate::clock;
use crate::domain::time::Boot;
use crate::store::{Result, StoreError};

pub(super) const ERA: &str = "/era";
/// Written to see the number of a write.
const PROBE: &str = "/probe";
/// What is made once and stays.
const DIRECTORIES: [&str; 4] = [LEASES, TERMS, WAKES, PROBE];

/// As it stands in the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Text {
    id: String,
    /// The leader's.
    epoch: i64,
    /// Milliseconds of the record store's clock, after the election; 0: nothing was ever held before.
    at: i64,
    /// The longest lease since then, in milliseconds.
    longest: u64,
    /// The longest one before that may still have lasted then.
    before: u64,
}

impl Text {
    fn reach(&self) -> Duration {
        Duration::from_millis(self.longest.max(self.before))
    }
}

/// The era as this process knows it.
#[derive(Clone)]
pub(super) struct Era {
    text: Text,
    /// Of the node.
    pub(super) version: i32,
    /// Nothing is granted before.
    quiet_until: Boot,
    /// The newest number of a write that was seen in it.
    newest: i64,
    read: Reading,
}

/// The leader's epoch, from the number of a write.
fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Era {
    /// Whether a write with this number belongs to it: the leader is the same, and what was seen before is not forgotten.
    pub(super) fn has(&self, zxid: i64) -> bool {
        self.text.epoch == epoch(zxid) && zxid >= self.newest
    }

    /// Whether it was read after this session began: then it is the era of what is asked in it.
    pub(super) fn is_of(&self, session: &Session) -> bool {
        self.read.is_of(session)
    }

    /// Whether the wait after it is long enough for a lease of this length.
    pub(super) fn reaches(&self, ttl: Duration) -> bool {
        millis(ttl) <= self.text.longest
    }

    /// What is left of the wait.
    pub(super) fn quiet(&self) -> Duration {
        self.quiet_until.since(clock::boot())
    }
}

impl Locks {
    /// The present era, as the session sees it that holds nothing.
    pub(super) async fn era(&self) -> Result<Era> {
        let looking = self.ensemble.looking().await?;
        self.era_of(&looking).await
    }

    /// The present era, as this session sees it.
    pub(super) async fn era_of(&self, session: &Session) -> Result<Era> {
        match self.known_era().filter(|era| era.is_of(session)) {
            Some(era) => Ok(era),
            None => self.look_at_era(false).await,
        }
    }

    /// The era that was read last.
    fn known_era(&self) -> Option<Era> {
        self.lock(&self.era).clone()
    }

    /// Looks which era it is, and begins a new one if the leader is another. `unused`: no lease was ever held there.
    pub(super) async fn look_at_era(&self, unused: bool) -> Result<Era> {
        let _one = self.looks.lock().await;
        self.look(unused).await
    }

    /// One look after the other: the numbers of their writes are compared.
    async fn look(&self, unused: bool) -> Result<Era> {
        let reading = self.ensemble.reading().await?;
        let looking = Arc::clone(&reading.looking);
        let sync = looking.client.sync("/");
        let read = looking.client.get_data(ERA);
        self.ensemble.bounded(sync).await?;
        let found: Option<(Text, i32)> = match self.ensemble.within(read).await {
            Ok((data, stat)) => serde_json::from_slice(&data).ok().map(|text| (text, stat.version)),
            Err(Error::NoNode) => None,
            Err(error) => return Err(self.ensemble.told(&error)),
        };
        let mut probed = self.ensemble.within(looking.client.set_data(PROBE, b"", None)).await;
        if probed == Err(Error::NoNode) {
            // It was emptied.
            self.ensemble.make(&DIRECTORIES, self.makes).await?;
            probed = self.ensemble.within(looking.client.set_data(PROBE, b"", None)).await;
        }
        let now = probed.map_err(|error| self.ensemble.told(&error))?.mzxid;
        let back = self.known_era().is_some_and(|known| now < known.newest);
        match found {
            Some((text, version)) if text.epoch == epoch(now) && !back => {
                Ok(self.learn(text, version, now, reading))
            }
            found => self.begin(found, now, unused, reading).await,
        }
    }

    /// Takes in what stands there.
    fn learn(&self, text: Text, version: i32, newest: i64, read: Reading) -> Era {
        let known = self.known_era();
        let quiet_until = match &known {
            Some(known) if known.text.id == text.id => known.quiet_until,
            Some(known) => {
                // Who began it may have known less of what was held before.
                let held = Duration::from_millis(known.text.longest).max(known.quiet());
                clock::boot() + text.reach().max(self.longest).max(held)
            }
            None if text.at == 0 => Boot(0),
            None => {
                let age = self.clock().map_or(0, |(at_least, _)| at_least.saturating_sub(text.at));
                let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
                clock::boot() + text.reach().max(self.longest).saturating_sub(age)
            }
        };
        let era = Era { text, version, quiet_until, newest, read };
        *self.lock(&self.era) = Some(era.clone());
        era
    }

    /// Begins a new era; another process may be faster.
    async fn begin(
        &self,
        old: Option<(Text, i32)>,
        now: i64,
        unused: bool,
        reading: Reading,
    ) -> Result<Era> {
        let known = self.known_era();
        let mut before = millis(self.longest).max(self.longest_held());
        for text in old.iter().map(|(text, _)| text).chain(known.as_ref().map(|era| &era.text)) {
            // What was forgotten before may matter as long as that era was young.
            let young = known.as_ref().is_none_or(|era| !era.quiet().is_zero());
            before = before.max(text.longest).max(if young { text.before } else { 0 });
        }
        let first = unused && old.is_none() && known.is_none();
        // Not known: no process takes it for old.
        let now_at_most = || self.clock().map_or(i64::MAX, |(_, at_most)| at_most);
        let at = if first { 0 } else { now_at_most() };
        let id = ulid::Ulid::generate().to_string();
        let text = Text { id, epoch: epoch(now), at, longest: self.longest_held(), before };
        if !first {
            tracing::warn!(
                ensemble = %self.ensemble.place.name(), wait = ?text.reach(),
                "ZooKeeper has another leader: no lease is granted until every old one has run out"
            );
        }
        self.write_era(text, old.map(|(_, version)| version), reading).await
    }

    /// Notes that leases of this length are granted, before the first one is. Another process may be faster with something else: then it
    /// is another era that does not [reach](Era::reaches) so far.
    pub(super) async fn reach_for(&self, era: Era, ttl: Duration) -> Result<Era> {
        let ended = !era.reaches(ttl) && era.read.looking.is_over();
        let era = if ended { self.look_at_era(false).await? } else { era };
        if era.reaches(ttl) {
            return Ok(era);
        }
        let _one = self.looks.lock().await;
        let text = Text { longest: millis(ttl), ..era.text };
        self.write_era(text, Some(era.version), era.read).await
    }

    /// The same for a lease in this session that is held already, whatever the era is.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn reach_surely(&self, session: &Session, ttl: Duration) -> Result<Era> {
        for _ in 0..ATTEMPTS {
            let era = self.reach_for(self.era_of(session).await?, ttl).await?;
            if era.reaches(ttl) {
                return Ok(era);
            }
        }
        Err(StoreError::Unavailable("another process changes the era at this moment".to_owned()))
    }

    /// In the session in which it was read, or not at all: in another one it may be the era of another ensemble.
    async fn write_era(&self, text: Text, version: Option<i32>, reading: Reading) -> Result<Era> {
        let client = &reading.looking.client;
        let data = serde_json::to_vec(&text).unwrap_or_default();
        let written = match version {
            Some(version) => {
                let set = client.set_data(ERA, &data, Some(version));
                self.ensemble.within(set).await.map(|stat| (stat.version, stat.mzxid))
            }
            None => {
                let options = CreateMode::Persistent.with_acls(self.ensemble.acls());
                let create = client.create(ERA, &data, &options);
                self.ensemble.within(create).await.map(|(stat, _)| (0, stat.czxid))
            }
        };
        match written {
            Ok((version, zxid)) => Ok(self.learn(text, version, zxid, reading)),
            Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => {
                Box::pin(self.look(false)).await
            }
            Err(error) => Err(self.ensemble.told(&error)),
        }
    }
}
