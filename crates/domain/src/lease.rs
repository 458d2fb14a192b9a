//! The lease and the window in which its holder may trust it.
//!
//! Trust counts from *before* the request was sent, on this machine's CLOCK_BOOTTIME, and ends early enough
//! to kill a process tree before the store's own deadline:
//!
//! ```text
//! t_send                         trusted_until            expiry at the store (at the earliest)
//!   |---- ttl - 1 % - kill_time -------|---- kill_time + 1 % ----|
//! ```

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::{Boot, StoreTime};

/// The fencing token: grows with every grant, never repeats, never goes back, fits 53 bits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Token(pub u64);

impl Token {
    /// No token is above it: Lua and JavaScript count no further (2^53 - 1).
    pub const LARGEST: Self = Self((1 << 53) - 1);

    /// The smallest one that is granted at that instant of the store's clock.
    #[must_use]
    pub fn at(instant: StoreTime) -> Self {
        Self(u64::try_from(instant.0).unwrap_or(0).saturating_mul(1_024))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A writer that a newer token has replaced: it must kill its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("token {sent} is stale: the newest is {current}")]
pub struct Stale {
    /// The writer's.
    pub sent: Token,
    /// The store's.
    pub current: Token,
}

/// The highest tokens that one node has seen of one job.
///
/// The store is told of them and mints above them; so a grant that is not newer than all that was seen before it was
/// asked for comes from a store that is broken or another one, and nothing may start under it. A record whose token went
/// back comes from a store that forgot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokensSeen {
    /// Of all.
    highest: Token,
    /// Of records; grants are known sooner than the records that show them.
    recorded: Token,
    /// When the present owner was chosen. Asked again, the store gives it the same token, which records may show by then.
    before_owner: Token,
}

/// A token that went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("token {token} is not newer than {seen}, which this node saw before")]
pub struct WentBack {
    /// What the store says.
    pub token: Token,
    /// What it said.
    pub seen: Token,
}

impl TokensSeen {
    /// The highest of all.
    #[must_use]
    pub fn highest(&self) -> Token {
        self.highest
    }

    /// A new owner is about to ask.
    pub fn begin(&mut self) {
        self.before_owner = self.highest;
    }

    /// Takes in the token of a record.
    ///
    /// # Errors
    /// [`WentBack`], once for each time that it does.
    pub fn read(&mut self, token: Token) -> Result<(), WentBack> {
        self.highest = self.highest.max(token);
        let seen = std::mem::replace(&mut self.recorded, token);
        if token < seen { Err(WentBack { token, seen }) } else { Ok(()) }
    }

    /// Takes in the token of a grant to the present owner.
    ///
    /// # Errors
    /// [`WentBack`]: nothing may start under it.
    pub fn grant(&mut self, token: Token) -> Result<(), WentBack> {
        if token <= self.before_owner {
            return Err(WentBack { token, seen: self.before_owner });
        }
        self.highest = self.highest.max(token);
        Ok(())
    }
}

/// The times that follow from one `lease_ttl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    /// How long the store keeps a lease that is not renewed.
    pub ttl: Duration,
    /// How often the keeper renews.
    pub renew_every: Duration,
    /// How long one call to the store may take before it counts as failed.
    pub store_timeout: Duration,
    /// What is set aside at the end of a lease for killing the tree: 500 ms or 5 %, and 1 % for clock rates.
    pub kill_time: Duration,
}

/// A lease too short to be safe; the text shows the arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "lease_ttl {ttl:?} is too short: renewal period {renew:?} + 3 x store time-out {timeout:?} + kill time {kill:?} = {sum:?} must be less than the lease; use 1s or more"
)]
pub struct UnsafeTiming {
    ttl: Duration,
    renew: Duration,
    timeout: Duration,
    kill: Duration,
    sum: Duration,
}

impl Timing {
    /// Shortest store time-out that is worth trying.
    const SHORTEST_CALL: Duration = Duration::from_millis(80);
    const LONGEST_CALL: Duration = Duration::from_secs(1);
    /// Ten thousand long leases must not keep the store busy (`benches/ten_thousand.rs`, `benches/stores.rs`).
    const LONGEST_RENEWAL: Duration = Duration::from_secs(5);

    /// Derives the times from `ttl`.
    ///
    /// # Errors
    /// [`UnsafeTiming`] when renewal period + three store time-outs + kill time do not fit inside `ttl`.
    pub fn from_ttl(ttl: Duration) -> Result<Self, UnsafeTiming> {
        let kill_time = Self::kill_time_of(ttl);
        let renew_every = (ttl / 6).min(Self::LONGEST_RENEWAL);
        let room = ttl.saturating_sub(kill_time + renew_every);
        let store_timeout = (room * 2 / 7).clamp(Self::SHORTEST_CALL, Self::LONGEST_CALL);
        let sum = renew_every + store_timeout * 3 + kill_time;
        if sum < ttl {
            Ok(Self { ttl, renew_every, store_timeout, kill_time })
        } else {
            Err(UnsafeTiming {
                ttl,
                renew: renew_every,
                timeout: store_timeout,
                kill: kill_time,
                sum,
            })
        }
    }

    /// What is set aside for killing at the end of a lease of this length.
    #[must_use]
    pub fn kill_time_of(ttl: Duration) -> Duration {
        (ttl / 20).max(Duration::from_millis(500)) + ttl / 100
    }

    /// Until when a lease may be trusted whose grant or renewal was *sent* at `sent`.
    #[must_use]
    pub fn trusted_until(&self, sent: Boot) -> Boot {
        sent + self.ttl.saturating_sub(self.kill_time)
    }

    /// When TERM goes out if no renewal succeeds: the grace, cut to what renewal and three time-outs leave.
    #[must_use]
    pub fn term_before_deadline(&self, stop_grace: Duration) -> Duration {
        let spare =
            self.ttl.saturating_sub(self.kill_time + self.renew_every + self.store_timeout * 3);
        stop_grace.min(spare)
    }

    /// A holder whose lease was not renewed for this long is called silent.
    #[must_use]
    pub fn silent_after(&self) -> Duration {
        self.renew_every * 2 + Duration::from_millis(200).min(self.ttl / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_lease_leaves_room_for_a_renewal_three_timeouts_and_the_kill() {
        for ms in (1_000..120_000).step_by(37) {
            let t = Timing::from_ttl(Duration::from_millis(ms)).expect("one second is enough");
            assert!(t.renew_every + t.store_timeout * 3 + t.kill_time < t.ttl);
            let sent = Boot(1_000_000);
            assert!(t.trusted_until(sent) + t.kill_time <= sent + t.ttl);
        }
    }

    #[test]
    fn a_grant_that_is_not_newer_than_what_was_seen_is_refused() {
        let mut seen = TokensSeen::default();
        assert_eq!(seen.read(Token(7)), Ok(()));
        seen.begin();
        for token in [Token(0), Token(6), Token(7)] {
            assert_eq!(seen.grant(token), Err(WentBack { token, seen: Token(7) }));
        }
        assert_eq!(seen.highest(), Token(7));
        assert_eq!(seen.grant(Token(9)), Ok(()));
        // The first answer was lost, its record was read, and the same owner asked again.
        assert_eq!(seen.read(Token(9)), Ok(()));
        assert_eq!(seen.grant(Token(9)), Ok(()));
        seen.begin();
        assert_eq!(seen.grant(Token(9)), Err(WentBack { token: Token(9), seen: Token(9) }));
    }

    #[test]
    fn a_record_that_went_back_is_told_once_and_forgets_nothing() {
        let mut seen = TokensSeen::default();
        seen.begin();
        assert_eq!(seen.grant(Token(5)), Ok(()));
        // The record that shows the grant is still on its way.
        assert_eq!(seen.read(Token(3)), Ok(()));
        assert_eq!(seen.read(Token(5)), Ok(()));
        assert_eq!(seen.read(Token(0)), Err(WentBack { token: Token(0), seen: Token(5) }));
        assert_eq!(seen.read(Token(0)), Ok(()));
        assert_eq!(seen.highest(), Token(5));
    }

    #[test]
    fn a_lease_too_short_is_refused_with_the_arithmetic() {
        let error =
            Timing::from_ttl(Duration::from_millis(600)).expect_err("600 ms cannot be safe");
        let text = error.to_string();
        for part in ["600ms", "100ms", "80ms", "506ms", "846ms"] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
    }
}
