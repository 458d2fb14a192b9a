//! The rules that may be broken on purpose, to see that the model would notice.

use super::world::Scope;

/// `false` everywhere is how Soloist works.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    /// Trust counts from the reply and not from before the request.
    pub trust_from_reply: bool,
    /// The end is recorded when TERM goes out, not when the tree is gone.
    pub release_before_proof: bool,
    /// A store that forgot grants at once.
    pub no_quarantine: bool,
    /// A renewal puts back a lease that was given back.
    pub renewal_resurrects: bool,
    /// A renewal or an end is not compared with the newest token.
    pub token_not_compared: bool,
    /// A token is the one before plus one, whatever the store forgot.
    pub token_counts_only: bool,
    /// A grant starts the script although nobody wants it any more.
    pub start_although_unwanted: bool,
    /// The word is made without looking at the lease.
    pub off_too_early: bool,
    /// Nobody comes back at the time the supervisor asked for.
    pub no_wake: bool,
    /// A renewal of a client is believed as that of a node is.
    pub clients_are_believed: bool,
    /// A move that keeps the job for another node is believed until the record changes, also after it has lapsed.
    pub lapse_unseen: bool,
}

/// What is planted, where it shows, and the promises it may be found by.
pub(crate) fn planted() -> Vec<(&'static str, Rules, Scope, &'static [&'static str])> {
    use Scope::{Lapses, Leases};
    let none = Rules::default();
    vec![
        ("trust from the reply", Rules { trust_from_reply: true, ..none }, Leases, &[ONE, OFF]),
        ("release before proof", Rules { release_before_proof: true, ..none }, Leases, &[ONE, OFF]),
        ("no quarantine", Rules { no_quarantine: true, ..none }, Leases, &[ONE]),
        ("a renewal resurrects", Rules { renewal_resurrects: true, ..none }, Leases, &[HOLDER]),
        (
            "tokens are not compared",
            Rules { token_not_compared: true, ..none },
            Leases,
            &[ONE, HOLDER],
        ),
        ("tokens are only counted", Rules { token_counts_only: true, ..none }, Leases, &[TOKENS]),
        (
            "start although unwanted",
            Rules { start_although_unwanted: true, ..none },
            Leases,
            &[STOP],
        ),
        ("off too early", Rules { off_too_early: true, ..none }, Leases, &[OFF]),
        ("nobody wakes up", Rules { no_wake: true, ..none }, Leases, &[RUNS]),
        ("clients are believed", Rules { clients_are_believed: true, ..none }, Leases, &[GRANTED]),
        ("a lapsed move is not seen", Rules { lapse_unseen: true, ..none }, Lapses, &[RUNS]),
    ]
}

/// Never two process trees.
pub(crate) const ONE: &str = "two process trees live";
/// The store's lease belongs to the newest token, and to nobody who gave it back.
pub(crate) const HOLDER: &str = "a lease is held under a token that was superseded or given back";
/// Only the store makes holders.
pub(crate) const GRANTED: &str = "an act of a client makes a holder that the store did not grant";
/// Tokens only grow.
pub(crate) const TOKENS: &str = "a token does not exceed every earlier one";
/// `off` means no process.
pub(crate) const OFF: &str = "off is shown while a process lives";
/// Stop beats restart.
pub(crate) const STOP: &str = "something is started that this node knows to be unwanted";
/// A wanted job with a living node is eventually run.
pub(crate) const RUNS: &str = "a wanted job with a living node is never run";
/// The other way round.
pub(crate) const ENDS: &str = "a job that nobody wants never ends";
