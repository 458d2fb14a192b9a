//! May the ensemble be trusted? The node `era`, compared with what this process saw before and with the leader's epoch.
//!
//! An ensemble that was emptied, restored or lost its newest writes has a leader of another epoch afterwards: the upper half of the number of
//! every write. The first process that sees another epoch, or no `era`, writes a new one. Every grant is made on condition that `era` is as this
//! process knows it. In a new era nothing is granted for as long as a forgotten lease may last, while living holders assert theirs again. An
//! election that lost nothing costs the same wait, for jobs without a holder.
//!
//! The version of `era` alone does not distinguish an ensemble from itself before it was emptied. So each session has the era that was read in it.
//!
//! A process that sees the era change counts from then, by its own CLOCK_BOOTTIME. A later one takes the age of the era from the clock of the
//! record store, which dates the era after its election.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use zookeeper_client::CreateMode::Persistent;

use super::Locks;
use super::events::WAKES;
use super::link::{Op, Session, Written};
use super::locks::{ATTEMPTS, LEASES, Mine, TERMS};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::{Result, StoreError};

const ERA: &str = "/era";
/// Written to see the number of a write.
const PROBE: &str = "/probe";

/// The era: as in the node, and what this process knows of it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Era {
    id: String,
    /// The leader's.
    epoch: i64,
    /// Milliseconds of the record store's clock, after the election; 0: nothing was ever held before.
    at: i64,
    /// The longest lease since then.
    longest: Duration,
    /// The longest one before that may still have lasted then.
    before: Duration,
    /// Of the node.
    #[serde(skip)]
    version: i32,
    /// Nothing is granted before.
    #[serde(skip)]
    quiet_until: Boot,
    /// The newest number of a write that was seen in it.
    #[serde(skip)]
    newest: i64,
}

/// The leader's epoch, from the number of a write.
fn epoch(zxid: i64) -> i64 {
    zxid >> 32
}

impl Era {
    /// Whether a write with this number belongs to it: the leader is the same, and what was seen before is not forgotten.
    pub(super) fn has(&self, zxid: i64) -> bool {
        self.epoch == epoch(zxid) && zxid >= self.newest
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Locks {
    /// The present era, as this session sees it.
    pub(super) async fn era(&self, session: &Session) -> Result<Era> {
        let known = session.era.lock().clone();
        match known {
            Some(era) => Ok(era),
            None => self.look_at_era(session, false).await,
        }
    }

    /// How much longer nothing is granted, as far as this process knows.
    pub(super) fn quiet(&self) -> Duration {
        let known = self.era.lock();
        known.as_ref().map_or(Duration::ZERO, |era| era.quiet_until.since(clock::boot()))
    }

    /// The same, after the session that holds nothing has seen an era.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(crate) async fn quiet_for(&self) -> Result<Duration> {
        let looking = self.ensemble.looking().await?;
        self.era(&looking).await?;
        Ok(self.quiet())
    }

    /// Looks which era it is, and begins a new one if the leader is another. `unused`: no lease was ever held there.
    pub(super) async fn look_at_era(&self, session: &Session, unused: bool) -> Result<Era> {
        // One look after the other: the numbers of their writes are compared.
        let _one = self.looks.lock().await;
        for _ in 0..ATTEMPTS {
            let (synced, read) = (session.sync(), session.read(ERA));
            synced.await?;
            let found: Option<Era> = read.await?.and_then(|(text, stat)| {
                let era = serde_json::from_str(&text).ok()?;
                Some(Era { version: stat.version, ..era })
            });
            if found.is_none() {
                self.ensemble.reach(self.makes).await?;
                let make = |name: &str| Op::Create(name.to_owned(), String::new(), Persistent);
                // Each by itself: some of them may be there.
                for name in [LEASES, TERMS, WAKES, PROBE] {
                    session.write(&[make(name)]).await?;
                }
            }
            let probe = Op::Set(PROBE.to_owned(), String::new(), None);
            let Written::Done(now) = session.write(&[probe]).await? else { continue };
            let known = self.era.lock().clone();
            let back = known.as_ref().is_some_and(|known| now < known.newest);
            if let Some(era) = found.as_ref().filter(|era| era.epoch == epoch(now) && !back) {
                return Ok(self.learn(session, era.clone(), now));
            }
            let era = self.next(found.as_ref(), known.as_ref(), epoch(now), unused);
            let begin = match &found {
                Some(old) => Op::Set(ERA.to_owned(), era.text(), Some(old.version)),
                None => Op::Create(ERA.to_owned(), era.text(), Persistent),
            };
            // Else another process was faster.
            if let Written::Done(_) = session.write(&[begin]).await? {
                return Ok(self.learn(session, era, now));
            }
        }
        Err(StoreError::Unavailable("other processes change the era at this moment".to_owned()))
    }

    /// Reads the node.
    fn learn(&self, session: &Session, mut era: Era, zxid: i64) -> Era {
        let now = clock::boot();
        let reach = era.longest.max(era.before).max(self.longest);
        let mut last = self.era.lock();
        (era.newest, era.quiet_until) = match &*last {
            Some(known) if known.id == era.id => (zxid.max(known.newest), known.quiet_until),
            // Who began it may have known less of what was held before.
            Some(known) => {
                let held = known.longest.max(known.quiet_until.since(now));
                (zxid, now + reach.max(held))
            }
            None if era.at == 0 => (zxid, Boot(0)),
            None => {
                let age = self.clock().map_or(0, |(at_least, _)| at_least.saturating_sub(era.at));
                let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
                (zxid, now + reach.saturating_sub(age))
            }
        };
        *last = Some(era.clone());
        *session.era.lock() = Some(era.clone());
        era
    }

    /// The era that follows.
    fn next(&self, old: Option<&Era>, known: Option<&Era>, epoch: i64, unused: bool) -> Era {
        let lasts = |mine: &&Mine| mine.until > clock::boot();
        let longest = self.mine.lock().values().filter(lasts).map(|mine| mine.ttl).max();
        let longest = longest.unwrap_or_default();
        let mut before = self.longest.max(longest);
        // What was forgotten before may matter as long as that era was young.
        let young = known.is_none() || !self.quiet().is_zero();
        for era in old.into_iter().chain(known) {
            before = before.max(era.longest).max(if young { era.before } else { Duration::ZERO });
        }
        let first = unused && old.is_none() && known.is_none();
        if !first {
            tracing::warn!(
                ensemble = %self.ensemble.place().name(), wait = ?before,
                "ZooKeeper has another leader: no lease is granted until every old one has run out"
            );
        }
        // Not known: no process takes it for old.
        let now = self.clock().map_or(i64::MAX, |(_, at_most)| at_most);
        let (id, at) = (ulid::Ulid::generate().to_string(), if first { 0 } else { now });
        let version = old.map_or(0, |old| old.version + 1);
        Era { id, epoch, at, longest, before, version, quiet_until: Boot(0), newest: 0 }
    }

    /// Carries out `ops` if the era is still that one, which says from then on that leases are so long: then the wait after the next is long
    /// enough for these. If it is another one, that is looked at, and the first operation is refused.
    pub(super) async fn write_in(
        &self,
        era: &Era,
        session: &Session,
        ttl: Duration,
        mut ops: Vec<Op>,
    ) -> Result<Written> {
        let longer = ttl > era.longest;
        let next = Era { longest: ttl, version: era.version + 1, ..era.clone() };
        let condition = match longer {
            true => Op::Set(ERA.to_owned(), next.text(), Some(era.version)),
            false => Op::Check(ERA.to_owned(), era.version),
        };
        ops.insert(0, condition);
        let written = session.write(&ops).await?;
        match written {
            Written::Done(zxid) if longer && era.has(zxid) => drop(self.learn(session, next, zxid)),
            Written::Refused(0) => drop(self.look_at_era(session, false).await?),
            Written::Done(_) | Written::Refused(_) => {}
        }
        Ok(written)
    }
}
