//! The loop of a node that does what is due: leases that ran out, gaps that ended, waiters to wake.
//!
//! Every node runs one for dispatch and one for rotations, because any node may die, and doing it twice does no more than
//! once. It acts when the store said that there may be something to do. While there is anything at all, it also acts a few
//! times a second: it learns in no other way what another node granted. While there is nothing it only looks for something
//! now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{WaitingRoom, jittered};
use soloist_domain::time::{Boot, Stamp};
use soloist_process::clock;
use soloist_store::{Result, Store, StoreError};

/// How often in any case: a lease is acted on so long after its end at the latest, plus a quarter.
const AT_LEAST_EVERY: Duration = Duration::from_millis(200);
/// How often an unused store is looked at.
const IDLE: Duration = Duration::from_secs(4);
/// Two calls are never closer than this, unless the store says that more is overdue.
const SPACING: Duration = Duration::from_millis(2);
/// Longest pause before a store that is away is tried again.
const AWAY: Duration = Duration::from_secs(1);

/// Asks the loop to act sooner than it would.
#[derive(Default)]
pub struct Bell {
    at: Mutex<Option<Boot>>,
    rung: Notify,
    /// The loop has found something that could become due; that is never removed.
    in_use: AtomicBool,
}

impl Bell {
    /// Act in `wait` from now, or earlier.
    pub fn ring_in(&self, wait: Duration) {
        let wanted = clock::boot() + wait;
        let mut at = self.at.lock();
        if at.is_none_or(|at| wanted < at) {
            *at = Some(wanted);
            self.rung.notify_one();
        }
    }

    /// A client waits: if there was nothing here so far, there may be something by now, defined at another node.
    pub fn look_around(&self) {
        if !self.in_use.load(Ordering::Relaxed) {
            self.ring_in(Duration::ZERO);
        }
    }

    fn wanted(&self) -> Option<Boot> {
        *self.at.lock()
    }

    fn heed(&self) {
        *self.at.lock() = None;
    }
}

/// The store's clock as of its last answer.
#[derive(Default)]
pub(super) struct StoreClock(Mutex<Option<(Stamp, Boot)>>);

impl StoreClock {
    /// The store said `now`. Counted from this moment, when its answer is here. So our view of its clock is never ahead of
    /// it, and no caller asks too soon.
    fn heard(&self, now: Stamp) {
        *self.0.lock() = Some((now, clock::boot()));
    }

    /// How long until the store's clock shows `at`; `None` before the store's first answer.
    pub(super) fn until(&self, at: Stamp) -> Option<Duration> {
        let (now, heard) = (*self.0.lock())?;
        Some(at.since(now).saturating_sub(clock::boot().since(heard)))
    }
}

/// What a loop does in one round.
pub trait Pump: Send + 'static {
    /// For the log: `dispatch`.
    const WHAT: &'static str;
    /// After a waiter was woken, at this node or another, the store is asked so much later what is due next.
    const AFTER_A_WAKE: Duration;

    /// Whether there is anything in the store that could become due.
    fn in_use(&self, store: &Store) -> impl Future<Output = Result<bool>> + Send;

    /// Does what is due. `incarnation` is what the waiters of this node begin with.
    fn pump(
        &mut self,
        store: &Store,
        incarnation: &str,
    ) -> impl Future<Output = Result<Round>> + Send;
}

/// What came of a round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// The store's clock.
    pub now: Stamp,
    /// When there may be something to do next.
    pub next: Option<Stamp>,
    /// More is overdue than one round does.
    pub more: bool,
}

/// Acts until the room closes.
pub async fn run<P: Pump>(room: WaitingRoom, bell: Arc<Bell>, mut pump: P) {
    let what = P::WHAT;
    let mut closing = room.closing();
    let mut woken = room.shared.woken.subscribe();
    let mut memory = Memory::default();
    loop {
        bell.heed();
        let begun = clock::boot();
        let pause = match memory.round(&room, &bell, &mut pump).await {
            Ok(pause) => memory.back(what, pause),
            Err(error) => memory.gone(what, &error),
        };
        let due = begun + pause;
        let soonest = begun + SPACING;
        loop {
            let at = bell.wanted().map_or(due, |wanted| due.min(wanted.max(soonest)));
            let left = if pause.is_zero() { pause } else { at.since(clock::boot()) };
            if left.is_zero() && !*closing.borrow() {
                break;
            }
            tokio::select! {
                () = sleep(left) => break,
                () = bell.rung.notified() => {}
                Ok(()) = woken.changed() => if room.waiting() > 0 {
                    bell.ring_in(P::AFTER_A_WAKE);
                },
                _ = closing.wait_for(|closing| *closing) => return,
            }
        }
    }
}

/// What the loop remembers from round to round.
#[derive(Default)]
struct Memory {
    away: Option<Duration>,
}

impl Memory {
    /// Does what is due; answers when there is more to do.
    async fn round(
        &self,
        room: &WaitingRoom,
        bell: &Bell,
        pump: &mut impl Pump,
    ) -> Result<Duration> {
        // While the store is refused, nothing is granted, and it is looked at again soon.
        let Ok(store) = room.store() else { return Ok(jittered(AWAY)) };
        // The node has just begun, or says itself that its store is not there.
        if !store.is_open() {
            return Ok(jittered(AT_LEAST_EVERY));
        }
        if !bell.in_use.load(Ordering::Relaxed) {
            if !pump.in_use(store).await? {
                return Ok(jittered(IDLE));
            }
            bell.in_use.store(true, Ordering::Relaxed);
        }
        let pumped = pump.pump(store, room.shared.waiters.incarnation()).await?;
        room.shared.clock.heard(pumped.now);
        if pumped.more {
            return Ok(Duration::ZERO);
        }
        let next = pumped.next.map(|next| next.since(pumped.now).max(SPACING));
        Ok(next.unwrap_or(Duration::MAX).min(jittered(AT_LEAST_EVERY)))
    }

    /// After a round that went well.
    fn back(&mut self, what: &str, pause: Duration) -> Duration {
        if self.away.take().is_some() {
            tracing::info!("the store is back: {what} goes on");
        }
        pause
    }

    /// After a round that did not.
    fn gone(&mut self, what: &str, error: &StoreError) -> Duration {
        if self.away.is_none() {
            tracing::warn!(%error, "{what} stands still until the store is back");
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
