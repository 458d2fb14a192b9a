//! A watched program: the leases that one process works under, when it is killed, and what its death releases.
//!
//! The watcher keeps one [`Process`] for each that it watches. Only the kernel can report a death; nothing else releases a lease. Of the
//! instants that a process sends for a secret the greatest counts, whatever connection sent it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crate::lease::{Timing, Token};
use crate::time::Boot;

/// Most names that one process works under.
pub const MOST_NAMES: usize = 10_000;

/// A lease that a process works under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The secret with which it was granted.
    pub secret: String,
    /// The work is over by then.
    pub until: Boot,
    /// Whether the lease is released when the process is dead; otherwise it is only killed in time.
    pub release: bool,
    /// Whether the node said that this is the secret of the holder.
    pub checked: bool,
    ttl: Duration,
    /// Under the same name, until the node has said that this one holds.
    before: Option<Box<Work>>,
}

impl Work {
    /// When the process is killed: as long before the end as a guard kills a script.
    #[must_use]
    pub fn kill_at(&self) -> Boot {
        self.until - Timing::kill_time_of(self.ttl)
    }

    /// The token, as its secret says it.
    #[must_use]
    pub fn token(&self) -> Token {
        told(&self.secret).map(|(token, _)| token).unwrap_or_default()
    }
}

/// Why a process is not watched under a name. Each says what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWatched {
    /// It is no secret of a lease.
    #[error(
        "secret: this is not the secret of a lease: send the `secret` with which it was granted"
    )]
    NoSecret,
    /// The work should be over.
    #[error(
        "until_ns has passed: the work must not begin, or is to end at once; renew the lease first"
    )]
    Over,
    /// No lease lasts so long.
    #[error(
        "until_ns is later than this lease can last: send `now_ns` from before the renewal, plus 99 % of its expires_in_ms"
    )]
    TooLate,
    /// Too many.
    #[error("a process can work under 10,000 names at most: end some first")]
    TooMany,
}

/// What [`Process::under`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Under {
    /// When the process is killed for it.
    pub kill_at: Boot,
    /// The secret is new: the node must be asked whether it holds.
    pub is_new: bool,
}

/// What a process works under, by names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    works: BTreeMap<String, Work>,
}

/// What a secret says of itself: token and length of the lease.
#[must_use]
pub fn told(secret: &str) -> Option<(Token, Duration)> {
    let mut parts = secret.split('.');
    let token = parts.next()?.parse().ok()?;
    let ttl = parts.next()?.parse().ok().filter(|ms| (1..=86_400_000).contains(ms))?;
    (parts.count() == 2).then_some((Token(token), Duration::from_millis(ttl)))
}

impl Process {
    /// It works under `name` until `until`, or extends to it.
    ///
    /// # Errors
    /// [`NotWatched`]: nothing was changed.
    pub fn under(
        &mut self,
        name: &str,
        secret: &str,
        until: Boot,
        release: bool,
        now: Boot,
    ) -> Result<Under, NotWatched> {
        let (_, ttl) = told(secret).ok_or(NotWatched::NoSecret)?;
        if until > now + ttl {
            return Err(NotWatched::TooLate);
        }
        let full = self.works.len() >= MOST_NAMES;
        match self.works.entry(name.to_owned()) {
            Entry::Occupied(mut known) if known.get().secret == secret => {
                let work = known.get_mut();
                work.until = work.until.max(until);
                work.release = release;
                Ok(Under { kill_at: work.kill_at(), is_new: !work.checked })
            }
            _ if until - Timing::kill_time_of(ttl) <= now => Err(NotWatched::Over),
            Entry::Vacant(_) if full => Err(NotWatched::TooMany),
            entry => {
                let mut work = Work {
                    secret: secret.to_owned(),
                    until,
                    release,
                    checked: false,
                    ttl,
                    before: None,
                };
                let kill_at = work.kill_at();
                match entry {
                    Entry::Occupied(mut known) => {
                        let mut before = known.get().clone();
                        // Of several that nobody has checked the last alone can be the holder's.
                        if !before.checked
                            && let Some(checked) = before.before.take()
                        {
                            before = *checked;
                        }
                        work.before = Some(Box::new(before));
                        known.insert(work);
                    }
                    Entry::Vacant(free) => {
                        free.insert(work);
                    }
                }
                Ok(Under { kill_at, is_new: true })
            }
        }
    }

    /// The node said whether `secret` is that of the holder of `name`. If not, all is as it was before it was named.
    pub fn check(&mut self, name: &str, secret: &str, holds: bool) {
        let Entry::Occupied(mut known) = self.works.entry(name.to_owned()) else { return };
        if known.get().secret != secret {
            return;
        }
        match (holds, known.get_mut().before.take()) {
            (true, _) => known.get_mut().checked = true,
            (false, Some(before)) => {
                known.insert(*before);
            }
            (false, None) => {
                known.remove();
            }
        }
    }

    /// What it works under by that name.
    #[must_use]
    pub fn under_name(&self, name: &str) -> Option<&Work> {
        self.works.get(name)
    }

    /// Whether it has named this secret.
    #[must_use]
    pub fn has(&self, secret: &str) -> bool {
        self.all().any(|(_, work)| work.secret == secret)
    }

    /// What it works under, and what it worked under before a secret that no node has checked yet.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Work)> {
        self.works().flat_map(|(name, work)| {
            std::iter::successors(Some(work), |work| work.before.as_deref())
                .map(move |work| (name, work))
        })
    }

    /// The work under `name` has ended.
    pub fn end(&mut self, name: &str) {
        self.works.remove(name);
    }

    /// When it is killed, unless it says more by then.
    #[must_use]
    pub fn kill_at(&self) -> Option<Boot> {
        self.works.values().map(Work::kill_at).min()
    }

    /// What it works under, by names.
    pub fn works(&self) -> impl Iterator<Item = (&str, &Work)> {
        self.works.iter().map(|(name, work)| (name.as_str(), work))
    }

    /// Whether it works under nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.works.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn secret(token: u64) -> String {
        format!("{token}.10000.p.0123456789abcdef0123456789abcdef")
    }

    fn at(seconds: u64) -> Boot {
        Boot(seconds * SECOND)
    }

    #[test]
    fn the_greatest_instant_of_a_secret_counts_and_an_end_disarms() {
        let mut process = Process::default();
        let first = process.under("ship", &secret(1), at(109), true, at(100)).expect("watched");
        assert!(first.is_new && first.kill_at < at(109) && first.kill_at > at(107));
        process.check("ship", &secret(1), true);
        let sooner = process.under("ship", &secret(1), at(105), true, at(101)).expect("watched");
        assert_eq!((sooner.kill_at, sooner.is_new), (first.kill_at, false));
        // Past already, and nothing is taken back by it.
        process.under("ship", &secret(1), at(99), true, at(101)).expect("watched");
        assert_eq!(process.kill_at(), Some(first.kill_at));
        process.under("pack", &secret(2), at(104), true, at(101)).expect("watched");
        assert!(process.kill_at() < Some(first.kill_at), "each name for itself");
        process.end("pack");
        process.end("ship");
        process.end("ship");
        assert_eq!(process.kill_at(), None);
    }

    #[test]
    fn a_secret_that_does_not_hold_changes_nothing() {
        let mut process = Process::default();
        process.under("ship", &secret(1), at(109), true, at(100)).expect("watched");
        process.check("ship", &secret(1), true);
        let before = process.clone();
        process.under("ship", &secret(7), at(103), true, at(100)).expect("asked for");
        process.under("ship", &secret(8), at(102), true, at(100)).expect("asked for");
        process.check("ship", &secret(7), true);
        process.check("ship", &secret(8), false);
        assert_eq!(process, before);
        process.under("ship", &secret(9), at(109), true, at(100)).expect("asked for");
        process.check("ship", &secret(9), true);
        assert_eq!(process.works().map(|(_, work)| work.token()).collect::<Vec<_>>(), [Token(9)]);
        process.under("pack", &secret(9), at(109), true, at(100)).expect("asked for");
        process.check("pack", &secret(9), false);
        assert_eq!(process.works().count(), 1);
    }

    #[test]
    fn no_instant_is_taken_that_no_lease_lasts_to() {
        let mut process = Process::default();
        for (text, until, why) in [
            ("", at(101), NotWatched::NoSecret),
            ("1.0.p.x", at(101), NotWatched::NoSecret),
            ("1.10000.p", at(101), NotWatched::NoSecret),
            (&secret(1), at(111), NotWatched::TooLate),
            (&secret(1), Boot(u64::MAX), NotWatched::TooLate),
            (&secret(1), at(100), NotWatched::Over),
            (&secret(1), Boot(0), NotWatched::Over),
        ] {
            assert_eq!(process.under("ship", text, until, true, at(100)), Err(why), "{text}");
        }
        assert!(process.is_idle());
        for number in 0..MOST_NAMES {
            process.under(&number.to_string(), &secret(1), at(105), true, at(100)).expect("room");
        }
        let refused = process.under("ship", &secret(1), at(105), true, at(100));
        assert_eq!(refused, Err(NotWatched::TooMany));
    }
}
