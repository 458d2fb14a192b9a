//! Detects a store that was restarted, emptied or replaced, by comparing its identity and clock with what we saw before. Such a store grants nothing
//! for one lease, while living holders assert theirs again.
//!
//! Kept: the store's last record of itself, the epoch and the longest lease that this process knows, and the store's clock set against this machine's
//! CLOCK_BOOTTIME. The store cannot see its own clock jump; every reply lets the client check its progress. `domain::doubt` decides what follows.

use std::collections::HashMap;
use std::time::Duration;

use soloist_domain::doubt::{Epoch, Look, judge};
use soloist_domain::time::{Boot, StoreTime, signed_millis};

/// Two readings of the clocks may differ by this much before it is called a jump, plus 1 % of what lies between.
const SLACK_MS: i64 = 250;

/// What is remembered under each epoch record: one on a single server, one for each job on a cluster.
#[derive(Debug, Default)]
pub struct Memories {
    each: HashMap<String, Memory>,
    /// How many of them were found emptied or replaced so far.
    pub replaced: u64,
    /// The first epoch seen of the record that belongs to no job.
    begun: Option<String>,
}

impl Memories {
    /// Under the record `epoch_key`.
    pub fn of(&mut self, epoch_key: &str) -> &mut Memory {
        self.each.entry(epoch_key.to_owned()).or_default()
    }

    /// One epoch for all jobs of a cluster: another one whenever any of them began anew. `global` is the record that
    /// belongs to no job.
    pub fn whole(&mut self, global: &str) -> String {
        if self.begun.is_none() {
            self.begun = self.each.get(global).map(|memory| memory.epoch.clone());
        }
        format!("{}.{}", self.begun.as_deref().unwrap_or_default(), self.replaced)
    }
}

/// One process's memory of one record.
#[derive(Debug, Default)]
pub struct Memory {
    /// Epoch of the last reply; empty before the first.
    pub epoch: String,
    /// Longest lease that may be out there, in milliseconds.
    /// Longest lease that may be out there.
    pub longest_ms: u64,
    /// The clock jumped, and the store has not been told yet.
    pub suspect: bool,
    /// What the store says of itself; `None` before the first look.
    seen: Option<Seen>,
    last: Option<Reading>,
    /// By how much the store's clock is ahead of this machine's, in milliseconds, at least: by the reading that was answered
    /// soonest, and when that was.
    ahead: Option<(i64, Boot)>,
}

/// The record of a store, and who had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `None`: there is none.
    pub record: Option<Epoch>,
    /// Run id of the server.
    pub server: String,
    /// How long that has been running.
    pub up: Duration,
}

/// A store that may be new is being opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Nothing shows that it was ever used.
    pub unused: bool,
    /// Longest lease that may be out there, in milliseconds.
    pub longest_ms: u64,
}

/// What a call says of the store to its server.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What was seen; `None`: the call is to learn that.
    pub seen: Option<Seen>,
    /// The record from now on.
    pub judged: Epoch,
    /// It must be written first.
    pub write: bool,
    /// It tells the store that its clock jumped.
    suspect: bool,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    store: StoreTime,
    sent: Boot,
    received: Boot,
}

impl Memory {
    /// The store's clock at `now`, as well as it is known: never later than it is, unless one of the two clocks was set or is
    /// fast. And how far it may be off without a jump. `None` before the first reading.
    pub fn estimate(&self, now: Boot) -> Option<(StoreTime, Duration)> {
        let (last, (ahead, _)) = (self.last?, self.ahead?);
        let took = last.received.since(last.sent);
        let slack =
            Duration::from_millis(SLACK_MS.unsigned_abs()) + now.since(last.sent) / 100 + took;
        // It has been later than the last reading ever since.
        Some((StoreTime(in_ms(now) + ahead).max(last.store), slack))
    }

    /// What a call at `now` has to say. `ttl_ms` is the longest lease that it asks for; `fresh` names a new epoch.
    pub fn ask(&self, now: Boot, ttl_ms: u64, fresh: &str, opening: Option<Opening>) -> Asked {
        let (Some(seen), Some((at, _)), Some(last)) =
            (self.seen.clone(), self.estimate(now), self.last)
        else {
            return Asked::default();
        };
        let look = Look {
            known: &self.epoch,
            remembered: signed(self.longest_ms),
            server: &seen.server,
            ttl: signed(ttl_ms),
            suspect: self.suspect,
            fresh,
            now: at.0,
        };
        let (judged, write) = match opening {
            Some(opening) if seen.record.is_none() && self.epoch.is_empty() => {
                // The seconds of the wall clock that began since its start: a server that says `1` may be a millisecond old.
                let up = seen.up.saturating_sub(Duration::from_secs(1));
                let up = if opening.unused { up } else { Duration::ZERO };
                let lost = last.store.0 - signed_millis(up);
                (Epoch::begin(&look, lost, signed(opening.longest_ms)), true)
            }
            _ => judge(seen.record.as_ref(), &look),
        };
        Asked { seen: Some(seen), judged, write, suspect: self.suspect }
    }

    /// The store is not as it was seen: it is so.
    pub fn learn(&mut self, seen: Seen) {
        self.seen = Some(seen);
    }

    /// The store is as `asked` says.
    pub fn accept(&mut self, asked: &Asked) {
        self.epoch.clone_from(&asked.judged.id);
        self.longest_ms = u64::try_from(asked.judged.reach()).unwrap_or(0);
        if let Some(seen) = &asked.seen {
            self.seen = Some(Seen { record: Some(asked.judged.clone()), ..seen.clone() });
        }
        if asked.suspect {
            self.suspect = false;
        }
    }

    /// Notes that a call sent at `sent` and answered at `received` read `store`; returns whether the store's
    /// clock jumped since the reading before.
    pub fn read_clock(&mut self, store: StoreTime, sent: Boot, received: Boot) -> bool {
        let now = Reading { store, sent, received };
        let jumped = self.last.is_some_and(|last| jumped(&last, &now));
        self.suspect |= jumped;
        self.last = Some(now);
        // Rounded up, so that what is estimated is never later than it is.
        let ahead = store.0 - in_ms(received) - 1;
        // The longer ago the best reading was, the less it says: clocks differ by a thousandth at most.
        let best = self.ahead.filter(|_| !jumped);
        let best = best.map(|(best, at)| best - in_ms(received) / 1_000 + in_ms(at) / 1_000);
        if best.is_none_or(|best| ahead >= best) {
            self.ahead = Some((ahead, received));
        }
        jumped
    }
}

/// The store executed each call somewhere between `sent` and `received`, which bounds what may lie between two.
fn jumped(last: &Reading, now: &Reading) -> bool {
    let passed = now.store.0.saturating_sub(last.store.0);
    let least = signed_ms(last.received, now.sent);
    let most = signed_ms(last.sent, now.received);
    let slack = SLACK_MS + most.abs() / 100;
    passed < least - slack || passed > most + slack
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn in_ms(at: Boot) -> i64 {
    i64::try_from(at.0 / 1_000_000).unwrap_or(i64::MAX)
}

fn signed_ms(from: Boot, to: Boot) -> i64 {
    signed_millis(to.since(from)) - signed_millis(from.since(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(ms: u64) -> Boot {
        Boot(ms * 1_000_000)
    }

    #[test]
    fn a_clock_that_goes_on_is_believed_however_slow_the_answers() {
        let mut memory = Memory::default();
        assert!(!memory.read_clock(StoreTime(1_000_000), boot(5_000), boot(5_001)));
        assert!(!memory.read_clock(StoreTime(1_001_000), boot(6_000), boot(6_001)));
        // Answered after 900 ms, executed at once.
        assert!(!memory.read_clock(StoreTime(1_002_000), boot(7_000), boot(7_900)));
        // Executed at the very end.
        assert!(!memory.read_clock(StoreTime(1_003_900), boot(8_000), boot(8_900)));
        // An hour of silence, the clocks 0.5 % apart.
        assert!(!memory.read_clock(
            StoreTime(1_003_900 + 3_618_000),
            boot(8_900 + 3_600_000),
            boot(8_901 + 3_600_000)
        ));
        assert!(!memory.suspect);
    }

    #[test]
    fn an_estimate_is_never_later_than_the_clock_nor_earlier_than_a_reading() {
        let mut memory = Memory::default();
        assert!(memory.estimate(boot(5_000)).is_none());
        // Answered after 40 ms, then after one; the soonest answer is trusted.
        memory.read_clock(StoreTime(1_000_000), boot(5_000), boot(5_040));
        memory.read_clock(StoreTime(1_000_100), boot(5_099), boot(5_101));
        memory.read_clock(StoreTime(1_000_200), boot(5_199), boot(5_240));
        for (now, clock) in [(5_240, 1_000_240), (5_300, 1_000_300), (6_000, 1_001_000)] {
            let (estimate, slack) = memory.estimate(boot(now)).expect("it was read");
            assert!(estimate <= StoreTime(clock), "{now}");
            assert!(estimate >= StoreTime(clock - 5), "{now}: {estimate:?}");
            assert!(slack >= Duration::from_millis(250));
        }
        // At the moment of a reading it is that reading at least.
        memory.read_clock(StoreTime(1_005_000), boot(10_000), boot(10_000));
        assert_eq!(memory.estimate(boot(10_000)).map(|(at, _)| at), Some(StoreTime(1_005_000)));
    }

    #[test]
    fn a_clock_that_jumps_either_way_is_suspect() {
        for jump in [30_000, 400, -400, -3_600_000] {
            let mut memory = Memory::default();
            assert!(!memory.read_clock(StoreTime(9_000_000), boot(5_000), boot(5_001)));
            assert!(
                memory.read_clock(StoreTime(9_001_000 + jump), boot(6_000), boot(6_001)),
                "{jump}"
            );
            assert!(memory.suspect);
            assert!(
                !memory.read_clock(StoreTime(9_002_000 + jump), boot(7_000), boot(7_001)),
                "{jump}"
            );
        }
    }
}
