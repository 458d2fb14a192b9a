//! The model test: the pure rules of `domain` in every interleaving of two nodes, up to three leases, lost requests and
//! replies, expiry, pauses, crashes and fail-overs to a stale replica, breadth-first; and with moves, backoffs and courtesies,
//! which lapse without any event. A node hears only of what changed and wakes only when it asked to, so what it must notice
//! by itself it must have asked for. From many states all goes well from then on, except that a node which is down stays
//! down while another lives: then a wanted job must run within a bound.
//!
//! `supervise::step`, `Timing`, `job::state` and the transitions of `domain::transition`, which decide what the store answers,
//! are the real ones. Around them stand the record keeping of a store, guards that keep their deadline, and a network that may
//! lose or delay anything. A pause needs no action of its own: a node that is not scheduled while time passes is paused.
//!
//! `MODEL_STATES=5_000_000 CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true cargo test --release --features full --test model -- --nocapture` looks deeper
//! than the default; the stores in memory that it plays on are in builds with debug assertions only.
//!
//! `lifeline`, `rotation`, `dispatch` and `ticks` are models of their own: programs that are watched; how types take turns, how tasks are handed out, and which
//! tick is run, decided by the transitions of `domain`.

mod dispatch;
mod explore;
mod lifeline;
mod rotation;
mod rules;
mod search;
mod store;
mod ticks;
mod world;

use explore::{Found, explore};
use rules::Rules;
use world::Scope;

/// States that are visited for each number of faults unless `MODEL_STATES` says otherwise.
const STATES: usize = 120_000;
/// A planted fault must be found among so many.
const STATES_FOR_A_FAULT: usize = 400_000;

fn states() -> usize {
    let given = std::env::var_os("MODEL_STATES").and_then(|text| text.into_string().ok());
    given.map_or(STATES, |text| text.replace('_', "").parse().expect("MODEL_STATES is a number"))
}

#[test]
fn no_interleaving_breaks_a_promise() {
    let mut leases = 0;
    for scope in [Scope::Leases, Scope::Lapses] {
        for faults in 0..=3 {
            let found = explore(Rules::default(), scope, faults, states());
            println!("{scope:?}, at most {faults} faults: {found}");
            assert!(found.broken.is_none(), "{found}");
            leases = leases.max(found.grants);
        }
    }
    assert_eq!(leases, world::GRANTS, "it looked deep enough to see three leases");
}

#[test]
fn every_planted_fault_is_found() {
    for (name, rules, scope, promises) in rules::planted() {
        let found: Found = explore(rules, scope, 3, STATES_FOR_A_FAULT);
        let broken = found.broken.as_ref();
        let broken = broken.unwrap_or_else(|| panic!("{name} was not found: {found}"));
        let steps = broken.trace.len();
        println!("{name}: {} after {} states, {steps} steps", broken.promise, found.states);
        assert!(promises.contains(&broken.promise), "{name} is found by what it breaks: {found}");
    }
}
