//! May this store be trusted? One pure function on the record that a store keeps about itself.
//!
//! A store that forgot leases grants them a second time. FLUSHALL, a restart without persistence, a promoted replica and a clock that was
//! set each make a store forget, or end leases too early. A process detects each of them:
//!
//! - the record is gone, or differs from the one that a process remembers: the store was emptied or replaced;
//! - the server is another process than the record names: it restarted, or another one took over, and the newest writes may be lost;
//! - a process saw the store's clock jump ([`Look::suspect`]).
//!
//! Then nothing is granted until every lease that may have been forgotten is over (*quarantine*), while living holders assert theirs
//! again. The record says how long that is: it keeps the longest lease of those that are asserted again (of jobs and commands, not of
//! programs) in two buckets that rotate more slowly than any lease lasts, so that one long lease of last week does not lengthen the
//! quarantine of today.
//!
//! Another server is another epoch: versions are not compared across it. All instants are milliseconds of the store's clock.

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Epoch {
    /// Names the epoch; never empty.
    pub id: String,
    /// The server process that wrote this.
    pub server: String,
    /// When the newest loss was noticed, or 0.
    pub since: i64,
    /// The end of the quarantine, or an instant that is past.
    pub until: i64,
    /// The longest lease of the present bucket.
    pub longest: i64,
    /// The longest lease of the bucket before.
    pub before: i64,
    /// When the present bucket began.
    pub turned: i64,
    /// When it was found last that something may be lost, or 0: for rotations, which wait on their own.
    pub doubted: i64,
    /// Grows with each writing; tells two records of one epoch apart.
    pub version: u64,
}

/// Who reads the record, and what.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The epoch that this process remembers; empty before its first look.
    pub known: &'a str,
    /// The longest lease that this process remembers.
    pub remembered: i64,
    /// The server process that answers now.
    pub server: &'a str,
    /// The longest lease that is asked for or kept now; 0 when none is.
    pub ttl: i64,
    /// This process saw the store's clock jump.
    pub suspect: bool,
    /// The name of a new epoch, should there be one.
    pub fresh: &'a str,
    /// The store's clock; not later than it is.
    pub now: i64,
}

/// A bucket lasts so long at least.
const BUCKET: i64 = 60_000;
/// A store is doubted for so long at least: nodes keep the names of forgotten leases of programs back meanwhile (`leases/forgotten.rs`).
/// No lease is shorter.
const SHORTEST: i64 = 1_000;

impl Epoch {
    /// The first record of a store that has none, made by a process that remembers none.
    ///
    /// What the store may have forgotten was written before `lost`: before its server began, if no process uses it and nothing shows
    /// that it was used, else before now. Leases may be as long as `longest`.
    #[must_use]
    pub fn begin(look: &Look<'_>, lost: i64, longest: i64) -> Self {
        let (began, _) = judge(None, look);
        Self { since: lost, until: lost + longest, longest: began.longest.max(longest), ..began }
    }

    /// The longest lease that may last.
    #[must_use]
    pub fn reach(&self) -> i64 {
        self.longest.max(self.before)
    }

    /// What is left of the quarantine at `now`.
    #[must_use]
    pub fn quarantine(&self, now: i64) -> i64 {
        (self.until - now).max(0)
    }
}

/// The record as it is after a look, and whether it must be written before anything in the store is trusted.
#[must_use]
pub fn judge(record: Option<&Epoch>, look: &Look<'_>) -> (Epoch, bool) {
    let now = look.now;
    let mut epoch = record.cloned().unwrap_or_else(|| Epoch { turned: now, ..Epoch::default() });
    let begun = record.is_none();
    let replaced = !begun && epoch.server != look.server;
    let emptied = !look.known.is_empty() && look.known != epoch.id;
    let mut write = begun;
    if begun || replaced || emptied {
        epoch.longest = epoch.longest.max(look.remembered);
    }
    if look.ttl > 0 && now >= epoch.turned + BUCKET + 2 * epoch.reach() {
        (epoch.before, epoch.longest, epoch.turned, write) = (epoch.longest, look.ttl, now, true);
    } else if look.ttl > epoch.longest {
        (epoch.longest, write) = (look.ttl, true);
    }
    let reach = epoch.reach().max(SHORTEST);
    if emptied {
        // The first process that notices begins the quarantine; later ones only make sure that it is long enough.
        if epoch.since == 0 {
            epoch.since = now;
        }
        if epoch.since > epoch.doubted {
            (epoch.doubted, write) = (epoch.since, true);
        }
        if epoch.until < epoch.since + reach {
            (epoch.until, write) = (epoch.since + reach, true);
        }
    }
    if replaced || look.suspect {
        (epoch.since, epoch.until, epoch.doubted, write) = (now, now + reach, now, true);
    }
    if begun || replaced {
        look.fresh.clone_into(&mut epoch.id);
    }
    if epoch.since > 0 {
        // The process that noticed may not know of a lease as long as the one that is asked for now.
        epoch.until = epoch.until.max(epoch.since + look.ttl);
    }
    // The clock may have been set back since.
    epoch.until = epoch.until.min(now + reach);
    look.server.clone_into(&mut epoch.server);
    epoch.version += u64::from(write);
    (epoch, write)
}

#[cfg(test)]
#[path = "doubt_tests.rs"]
mod tests;
