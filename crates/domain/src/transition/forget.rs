//! Which records a store may forget, and when.
//!
//! Programs make names (a lease for each order, each upload), use each of them once and never return. The record that is left says nothing:
//! it has no holder, no participant and no hold, and nothing ever ran. A store that kept it would grow for ever.
//!
//! Its newest token is deleted with it. The next grant of that name gets a token from the store's clock alone, and from what the asking node
//! saw ([`super::lease`], `mint`). The deleted token is at most `AHEAD` ahead of the clock when the record is written, and the record is
//! deleted [`KEPT`] later by that same clock. So the next token is greater, unless the store's clock is set back by more than the
//! difference, 29 days, after it has shown the later instant. Nothing guards against that here, and no more is lost than in an emptied
//! store, which also has only that clock: the clock's jump stops all grants for a while (`domain::doubt`), a node that saw the token asks
//! for a greater one, and a sink that has seen the greater token refuses the smaller one. The clock of a SQLite file's jobs may be set as
//! well; only that of dispatch never goes back.

use std::time::Duration;

use super::Job;
use crate::lease::Token;
use crate::time::StoreTime;

/// A record that says nothing is kept for so long after it was written.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A record stays whose token is further ahead of the clock: that was set back since, or the token came from elsewhere.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether nothing is lost with the record of `job`, which was `written` by the store's clock and has so many `runs` in its history, when
/// it is forgotten [`KEPT`] later.
#[must_use]
pub fn may_be_forgotten(job: &Job, runs: usize, written: StoreTime) -> bool {
    let Job { record, lapsed, released: _, log } = job;
    let says_nothing = record.is_void() && lapsed.is_none() && log.is_empty() && runs == 0;
    says_nothing && record.token <= Token::at(written + AHEAD)
}
