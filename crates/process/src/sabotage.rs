//! Planted bugs, to check that the fault suite finds every one of them.
//!
//! Every debug build has them and no release: there each question is answered "no" at compile time. `$SABOTAGE` names the bug of a process,
//! which passes it to its guards. A place that asks [`planted`] says what breaks there; nothing else may be decided by it.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use soloist_domain::time::Boot;

/// The variable that names the bug.
pub const VARIABLE: &str = "SABOTAGE";

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal,)*) => {
        /// A bug, each of which others have had in the field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $bug,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug),*];

            /// As in `$SABOTAGE`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }
        }
    };
}

bugs! {
    /// A guard takes a deadline to count from the arrival of its message.
    RelativeDeadline = "relative_deadline",
    /// A guard has no deadline of its own.
    NoDeadline = "no_deadline",
    /// A guard does not notice the death of its node.
    NodeDeathUnseen = "node_death_unseen",
    /// A guard kills the script's process group and takes the end of its first process for the end of all.
    ProcessGroupOnly = "process_group_only",
    /// While the script's first process lives, a guard reaps no other process.
    NoReaping = "no_reaping",
    /// A node takes the death of a guard for the death of its tree.
    GuardDeathIsProof = "guard_death_is_proof",
    /// A node does not notice that a guard does not answer any more.
    FrozenGuardUnseen = "frozen_guard_unseen",
    /// A node gives the lease back when it sends TERM.
    ReleaseBeforeProof = "release_before_proof",
    /// Trust counts from the answer and not from before the request.
    TrustFromReply = "trust_from_reply",
    /// The first renewal that fails is the last one tried.
    RenewalEndsWithError = "renewal_ends_with_error",
    /// CLOCK_MONOTONIC, which stands still in suspend.
    MonotonicClock = "monotonic_clock",
    /// A store that forgot grants at once.
    NoQuarantine = "no_quarantine",
    /// A stale token is not compared: each renewal and each record is believed.
    TokenNotCompared = "token_not_compared",
    /// A token is one more than the last one that the store remembers.
    TokenForgotten = "token_forgotten",
    /// A lease never runs out.
    LeaseNeverEnds = "lease_never_ends",
    /// `soloist fence` lets every token pass.
    FenceOpen = "fence_open",
}

/// Whether `$SABOTAGE` names a bug, or none; a release does not read it.
///
/// # Errors
/// It names none of them: a person with a typing error would take the program without a bug for one that hides it.
pub fn known() -> Result<(), String> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    std::env::var_os(VARIABLE).map_or(Ok(()), |given| known_as(&given.to_string_lossy()))
}

fn known_as(given: &str) -> Result<(), String> {
    let names: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
    if given.is_empty() || names.contains(&given) {
        return Ok(());
    }
    let names = names.join(", ");
    Err(format!("${VARIABLE}: {given:?} is no planted bug: unset it, or use one of {names}"))
}

/// Whether this process carries `bug`.
#[must_use]
pub fn planted(bug: Bug) -> bool {
    #[cfg(debug_assertions)]
    {
        use std::sync::LazyLock;
        static NAME: LazyLock<Option<String>> =
            LazyLock::new(|| std::env::var_os(VARIABLE)?.into_string().ok());
        NAME.as_deref() == Some(bug.name())
    }
    #[cfg(not(debug_assertions))]
    {
        let _unused = bug;
        false
    }
}

/// Whether the weakest containment must be used: a stronger one would hide the bug that this process carries.
#[must_use]
pub fn needs_the_weakest_containment() -> bool {
    [Bug::ProcessGroupOnly, Bug::NoReaping, Bug::GuardDeathIsProof].into_iter().any(planted)
}

/// The deadline that a guard takes a message to mean: the given one.
#[must_use]
pub fn deadline(given: Boot, now: Boot) -> Boot {
    if !planted(Bug::RelativeDeadline) {
        return given;
    }
    static LENGTH: OnceLock<Duration> = OnceLock::new();
    now + *LENGTH.get_or_init(|| given.since(now))
}

/// What a guard must inherit to carry the same bug; nothing in a release.
#[must_use]
pub fn inherited() -> Option<(&'static str, &'static str)> {
    let carried = Bug::ALL.iter().find(|bug| planted(**bug))?;
    Some((VARIABLE, carried.name()))
}

/// What a bug changes in the Lua scripts: what is right, and what it makes of it.
const IN_LUA: &[(Bug, &str, &str)] = &[
    (Bug::NoQuarantine, "quarantine = math.max(0, ARGV[4] - now)", "quarantine = 0"),
    (Bug::LeaseNeverEnds, "call('SET', w[2], w[3], 'PX', w[4])", "call('SET', w[2], w[3])"),
    (Bug::LeaseNeverEnds, "redis.call('PEXPIRE', lease, ttl)", "redis.call('PERSIST', lease)"),
];

/// A Lua script as this process runs it.
#[must_use]
pub fn lua(text: &'static str) -> Cow<'static, str> {
    let mut changed = Cow::Borrowed(text);
    for (bug, right, wrong) in IN_LUA {
        if planted(*bug) && changed.contains(right) {
            changed = Cow::Owned(changed.replace(right, wrong));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_a_bug_changes_in_lua_is_there() {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../store-redis/src");
        let texts: Vec<String> = std::fs::read_dir(scripts)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "lua"))
            .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
            .collect();
        for (bug, right, _) in IN_LUA {
            assert!(texts.iter().any(|text| text.contains(right)), "{bug:?}: {right}");
        }
    }

    #[test]
    fn a_bug_that_nobody_planted_is_refused_with_the_names_of_all() {
        let said = known_as("nonsense").unwrap_err();
        assert!(said.starts_with("$SABOTAGE: \"nonsense\" is no planted bug"), "{said}");
        assert!(Bug::ALL.iter().all(|bug| said.contains(bug.name())), "{said}");
        for good in Bug::ALL.iter().map(|bug| bug.name()).chain([""]) {
            assert_eq!(known_as(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn nothing_is_planted_unless_it_is_named() {
        assert!(Bug::ALL.iter().all(|bug| !planted(*bug)));
        assert_eq!(inherited(), None);
    }
}
