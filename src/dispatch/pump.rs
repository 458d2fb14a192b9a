//! The loop of a node that does what is due: leases that ran out, gaps that ended, waiters to wake.
//!
//! Every node runs one, because any of them may die, and doing it twice does no more than once. It acts when the store
//! said that there may be something to do, and a few times a second in any case while a source exists: what another node
//! granted is heard of in no other way. While there is no source it only looks for one now and then.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::{Shared, jittered, locked};
use crate::clock;
use crate::domain::time::{Boot, Stamp};
use crate::store::dispatch::{Dispatch, Sources};
use crate::store::{Result, StoreError};

/// How often in any case, while a source exists: a lease is acted on so long after its end at the latest, plus a quarter.
const AT_LEAST_EVERY: Duration = Duration::from_millis(200);
/// How often an unused store is looked at.
const IDLE: Duration = Duration::from_secs(4);
/// Two calls are never closer than this, unless the store says that more is overdue.
const SPACING: Duration = Duration::from_millis(2);
/// How often the set-up of the store is looked at.
const EXAMINE: Duration = Duration::from_secs(3);
/// Longest pause before a store that is away is tried again.
const AWAY: Duration = Duration::from_secs(1);

/// Asks the loop to act sooner than it would.
#[derive(Default)]
pub(super) struct Bell {
    at: Mutex<Option<Boot>>,
    rung: Notify,
}

impl Bell {
    /// Act in `wait` from now, or earlier.
    pub(super) fn ring_in(&self, wait: Duration) {
        let wanted = clock::boot() + wait;
        let mut at = locked(&self.at);
        if at.is_none_or(|at| wanted < at) {
            *at = Some(wanted);
            self.rung.notify_one();
        }
    }

    fn wanted(&self) -> Option<Boot> {
        *locked(&self.at)
    }

    fn heed(&self) {
        *locked(&self.at) = None;
    }
}

/// The store's clock as it was last heard.
#[derive(Default)]
pub(super) struct StoreClock(Mutex<Option<(Stamp, Boot)>>);

impl StoreClock {
    /// The store said `now`. Counted from this moment, when its answer is here: so it is never believed to be further
    /// than it is, and nobody asks too soon.
    fn heard(&self, now: Stamp) {
        *locked(&self.0) = Some((now, clock::boot()));
    }

    /// How long until the store's clock shows `at`; `None` as long as it was never heard.
    pub(super) fn until(&self, at: Stamp) -> Option<Duration> {
        let (now, heard) = (*locked(&self.0))?;
        Some(at.since(now).saturating_sub(clock::boot().since(heard)))
    }
}

/// What the loop remembers from round to round.
#[derive(Default)]
struct Memory {
    examined: Option<Boot>,
    away: Option<Duration>,
}

/// Acts until the desk closes.
pub(super) async fn run(shared: Arc<Shared>, mut closing: watch::Receiver<bool>) {
    let mut memory = Memory::default();
    loop {
        shared.bell.heed();
        let begun = clock::boot();
        let pause = match memory.round(&shared).await {
            Ok(pause) => memory.back(pause),
            Err(error) => memory.gone(&error),
        };
        let due = begun + pause;
        let soonest = begun + SPACING;
        loop {
            let at = shared.bell.wanted().map_or(due, |wanted| due.min(wanted.max(soonest)));
            let left = if pause.is_zero() { pause } else { at.since(clock::boot()) };
            if left.is_zero() && !*closing.borrow() {
                break;
            }
            tokio::select! {
                () = sleep(left) => break,
                () = shared.bell.rung.notified() => {}
                _ = closing.changed() => return,
            }
        }
    }
}

impl Memory {
    /// Does what is due; answers when there is more to do.
    async fn round(&mut self, shared: &Shared) -> Result<Duration> {
        let due = self.examined.is_none_or(|at| clock::boot().since(at) >= EXAMINE);
        if due && self.examine(shared).await {
            return Ok(jittered(EXAMINE / 3));
        }
        if !shared.in_use.load(Ordering::Relaxed) {
            if shared.store.sources(None).await?.is_empty() {
                return Ok(jittered(IDLE));
            }
            shared.in_use.store(true, Ordering::Relaxed);
        }
        let pumped = shared.store.pump().await?;
        shared.clock.heard(pumped.now);
        if pumped.expired > 0 {
            tracing::info!(tasks = pumped.expired, "leases ran out; their tasks go on");
        }
        if pumped.more {
            return Ok(Duration::ZERO);
        }
        let next = pumped.next.map(|next| next.since(pumped.now).max(SPACING));
        Ok(next.unwrap_or(Duration::MAX).min(jittered(AT_LEAST_EVERY)))
    }

    /// Looks whether the store can still keep the promise; `true` while it cannot.
    async fn examine(&mut self, shared: &Shared) -> bool {
        let refusal = match shared.store.describe().await {
            Err(StoreError::Unsupported(why)) => Some(why),
            Err(_) => return false,
            Ok(_) => None,
        };
        // While it is refused it is looked at again in every round.
        self.examined = refusal.is_none().then(clock::boot);
        let mut known = locked(&shared.refusal);
        match (&*known, &refusal) {
            (None, Some(why)) => tracing::error!("dispatch refuses to work on this store: {why}"),
            (Some(_), None) => tracing::info!("the store is set up well again: dispatch goes on"),
            _ => {}
        }
        *known = refusal;
        known.is_some()
    }

    /// After a round that went well.
    fn back(&mut self, pause: Duration) -> Duration {
        if self.away.take().is_some() {
            tracing::info!("the store is back: dispatch goes on");
        }
        pause
    }

    /// After a round that did not.
    fn gone(&mut self, error: &StoreError) -> Duration {
        if self.away.is_none() {
            tracing::warn!(%error, "dispatch stands still until the store is back");
        }
        let pause = self.away.map_or(AT_LEAST_EVERY, |before| (before * 2).min(AWAY));
        self.away = Some(pause);
        jittered(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_never_believed_to_be_further_than_it_is() {
        let known = StoreClock::default();
        assert_eq!(known.until(Stamp(5)), None);
        known.heard(Stamp(1_000_000));
        let left = known.until(Stamp(3_000_000)).unwrap();
        assert!(left <= Duration::from_secs(2) && left > Duration::from_millis(1_500), "{left:?}");
        assert_eq!(known.until(Stamp(999_999)), Some(Duration::ZERO));
    }

    #[test]
    fn of_two_rings_the_earlier_counts_until_it_is_heeded() {
        let bell = Bell::default();
        bell.ring_in(Duration::from_secs(5));
        let late = bell.wanted().unwrap();
        bell.ring_in(Duration::from_secs(1));
        let early = bell.wanted().unwrap();
        assert!(early < late);
        bell.ring_in(Duration::from_secs(9));
        assert_eq!(bell.wanted(), Some(early));
        bell.heed();
        assert_eq!(bell.wanted(), None);
    }
}
