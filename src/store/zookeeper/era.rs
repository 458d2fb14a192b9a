//! May the ensemble be believed? The node `era`, compared with what this process saw before and with the leader's epoch.
//!
//! An ensemble that was emptied, restored or lost its newest writes has a leader of another epoch afterwards: the upper half of the
//! number of every write. The first process that sees another epoch, or no `era`, writes a new one. Every grant is made on condition
//! that `era` is as this process knows it. In a new era nothing is granted for as long as a forgotten lease may last, while living
//! holders assert theirs again. An election that lost nothing costs the same wait, for jobs without a holder.
//!
//! A process that sees the era change counts from then, by its own CLOCK_BOOTTIME. One that comes later takes the age of the era from the
//! clock of the record store, by which the era is dated after its election.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use zookeeper_client::{CreateMode, Error};

use super::Locks;
use super::bell::WAKES;
use super::locks::{LEASES, TERMS};
use crate::clock;
use crate::domain::time::Boot;
use crate::store::Result;

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
#[derive(Debug, Clone)]
pub(super) struct Era {
    text: Text,
    /// Of the node.
    pub(super) version: i32,
    /// Nothing is granted before.
    quiet_until: Boot,
    /// The newest number of a write that was seen in it.
    newest: i64,
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

    /// What is left of the wait.
    pub(super) fn quiet(&self) -> Duration {
        self.quiet_until.since(clock::boot())
    }
}

impl Locks {
    /// The era that is known here, or the present one.
    pub(super) async fn era(&self) -> Result<Era> {
        match self.known_era() {
            Some(era) => Ok(era),
            None => self.look_at_era(false).await,
        }
    }

    /// As [`Self::era`], if it is known.
    pub(super) fn known_era(&self) -> Option<Era> {
        self.lock(&self.era).clone()
    }

    /// Looks which era it is, and begins a new one if the leader is another. `unused`: no lease was ever held there.
    pub(super) async fn look_at_era(&self, unused: bool) -> Result<Era> {
        let _one = self.looks.lock().await;
        self.look(unused).await
    }

    /// One look after the other: the numbers of their writes are compared.
    async fn look(&self, unused: bool) -> Result<Era> {
        let looking = self.ensemble.looking().await?;
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
                Ok(self.learn(text, version, now))
            }
            found => self.begin(found, now, unused).await,
        }
    }

    /// Takes in what stands there.
    fn learn(&self, text: Text, version: i32, newest: i64) -> Era {
        let known = self.known_era();
        let quiet_until = match &known {
            Some(known) if known.text.id == text.id => known.quiet_until,
            Some(_) => clock::boot() + text.reach().max(self.longest),
            None if text.at == 0 => Boot(0),
            None => {
                let age = self.clock().map_or(0, |(at_least, _)| at_least.saturating_sub(text.at));
                let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
                clock::boot() + text.reach().max(self.longest).saturating_sub(age)
            }
        };
        let era = Era { text, version, quiet_until, newest };
        *self.lock(&self.era) = Some(era.clone());
        era
    }

    /// Begins a new era; another process may be faster.
    async fn begin(&self, old: Option<(Text, i32)>, now: i64, unused: bool) -> Result<Era> {
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
        self.write_era(text, old.map(|(_, version)| version)).await
    }

    /// Notes that leases of this length are granted, before the first one is.
    pub(super) async fn reach_for(&self, era: Era, ttl: Duration) -> Result<Era> {
        if millis(ttl) <= era.text.longest {
            return Ok(era);
        }
        let _one = self.looks.lock().await;
        let text = Text { longest: millis(ttl), ..era.text };
        self.write_era(text, Some(era.version)).await
    }

    async fn write_era(&self, text: Text, version: Option<i32>) -> Result<Era> {
        let looking = self.ensemble.looking().await?;
        let data = serde_json::to_vec(&text).unwrap_or_default();
        let written = match version {
            Some(version) => {
                let set = looking.client.set_data(ERA, &data, Some(version));
                self.ensemble.within(set).await.map(|stat| (stat.version, stat.mzxid))
            }
            None => {
                let options = CreateMode::Persistent.with_acls(self.ensemble.acls());
                let create = looking.client.create(ERA, &data, &options);
                self.ensemble.within(create).await.map(|(stat, _)| (0, stat.czxid))
            }
        };
        match written {
            Ok((version, zxid)) => Ok(self.learn(text, version, zxid)),
            Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => {
                Box::pin(self.look(false)).await
            }
            Err(error) => Err(self.ensemble.told(&error)),
        }
    }
}
