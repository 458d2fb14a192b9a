//! One job on one node: what to do next.
//!
//! [`step`] takes what this node is doing, what just happened and the time, and answers what it does now and which
//! effects the runner must carry out. It never does anything itself. The laws it keeps:
//!
//! - a script is started only under a lease that can still be trusted;
//! - a lost lease kills at once; any other reason to stop is TERM, grace, KILL;
//! - the lease is given back only after the whole tree is proved gone;
//! - stop beats restart: nothing is acquired for a job that is not wanted here.

use std::time::Duration;

use super::lease::Token;
use super::time::Boot;

/// What the feed says of the job, translated to this node and this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Facts {
    /// A participant, no hold, not given up.
    pub wanted: bool,
    /// This node may run it: listed in `nodes`, not draining, not shutting down.
    pub eligible: bool,
    /// Until when a move asks this node to let go, or keeps the job for another. It expires by itself: no event says so.
    pub reserved_until: Option<Boot>,
    /// No node may start before this.
    pub not_before: Option<Boot>,
    /// When the lease of another owner runs out unless it is renewed; `None` when it is free.
    pub held_until: Option<Boot>,
    /// How long this node lets others go first.
    pub courtesy: Duration,
}

impl Facts {
    fn may_run(&self, now: Boot) -> bool {
        self.wanted && self.eligible && self.reserved_until.is_none_or(|until| until <= now)
    }
}

/// Numbers this node's acquisitions of this job; the runner keeps the random owner that belongs to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Attempt(pub u64);

/// What this node is doing about the job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Nothing; not trying again before `pause_until`.
    Idle {
        /// Set by a refusal.
        pause_until: Boot,
        /// Since when the job could be taken; the courtesy counts from here.
        free_since: Option<Boot>,
    },
    /// An acquire is on its way, or its answer was lost and it is asked again with the same owner.
    Acquiring,
    /// The lease is held and a script may live.
    Holding {
        /// Under which token.
        token: Token,
        /// How far.
        run: Run,
    },
    /// The tree is proved gone; the end is being recorded, which releases the lease.
    Ending,
}

/// How far a held run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// The guard was told to start it.
    Alive,
    /// TERM, grace, KILL are under way.
    Stopping,
    /// KILL is under way because the lease is lost.
    Killing,
}

/// A job's slot on a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobSlot {
    /// The newest facts.
    pub facts: Facts,
    /// What is being done.
    pub doing: Doing,
    /// The newest attempt.
    pub attempt: Attempt,
}

impl Default for JobSlot {
    fn default() -> Self {
        let doing = Doing::Idle { pause_until: Boot(0), free_since: None };
        Self { facts: Facts::default(), doing, attempt: Attempt(0) }
    }
}

/// What just happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Input {
    /// The feed has something newer.
    Facts(Facts),
    /// The time asked for by [`Effect::Wake`] has come (or any other time).
    Tick,
    /// The store granted the lease; it may be trusted until then.
    Granted {
        /// Under which token.
        token: Token,
        /// From before the request was sent.
        trusted_until: Boot,
    },
    /// The store refused it; no use asking before `wait` from now.
    Refused {
        /// From now.
        wait: Duration,
    },
    /// No answer: it may be held or not.
    AcquireUnknown,
    /// The store says that the lease is another's.
    LeaseLost,
    /// The whole process tree is proved gone (or nothing could be started).
    Gone,
    /// The end is recorded, or a newer holder has closed the run.
    Recorded,
    /// The node must not wait for any grace.
    Hurry,
}

/// What the runner must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask the store for the lease, with the owner of this attempt.
    Acquire(Attempt),
    /// Give back a lease that no script was started under.
    Release(Attempt),
    /// Start the script under a guard, and renew.
    Start(Attempt),
    /// TERM, grace, KILL.
    Stop,
    /// KILL now.
    Kill,
    /// Record the end, which releases the lease; retry until the store has answered.
    RecordEnd(Attempt),
    /// Come back at this time.
    Wake(Boot),
}

/// How soon to ask again when an answer was lost.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// A waiting node asks again at least this often, in case a hint was lost.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A lease with less trust left than this is not worth starting a script under.
const LEAST_TRUST: Duration = Duration::from_millis(100);

/// Takes one step. Effects are to be carried out in order.
pub fn step(slot: &mut JobSlot, input: Input, now: Boot) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Input::Facts(facts) = input {
        slot.facts = facts;
    }
    let facts = slot.facts;
    match (&mut slot.doing, input) {
        (Doing::Acquiring, Input::Granted { token, trusted_until }) => {
            if facts.may_run(now) && trusted_until.since(now) >= LEAST_TRUST {
                slot.doing = Doing::Holding { token, run: Run::Alive };
                effects.push(Effect::Start(slot.attempt));
            } else {
                effects.push(Effect::Release(slot.attempt));
                slot.doing = Doing::Idle { pause_until: now + ASK_AGAIN, free_since: None };
            }
        }
        // A grant that arrived after its own release was sent: give it back, this node will not use it.
        (Doing::Idle { .. }, Input::Granted { .. }) => effects.push(Effect::Release(slot.attempt)),
        (Doing::Acquiring, Input::Refused { wait }) => {
            let pause_until = now + wait.min(LOOK_AGAIN).max(Duration::from_millis(5));
            slot.doing = Doing::Idle { pause_until, free_since: None };
        }
        (Doing::Acquiring, Input::AcquireUnknown) => {
            effects.push(Effect::Wake(now + ASK_AGAIN));
        }
        (Doing::Acquiring, Input::Tick) => {
            if facts.may_run(now) {
                effects.push(Effect::Acquire(slot.attempt));
            } else {
                // It may have been granted: giving back what was never held is harmless.
                effects.push(Effect::Release(slot.attempt));
                slot.doing = Doing::Idle { pause_until: now, free_since: None };
            }
        }
        (Doing::Holding { run, .. }, Input::LeaseLost) if *run != Run::Killing => {
            *run = Run::Killing;
            effects.push(Effect::Kill);
        }
        (Doing::Holding { run, .. }, Input::Hurry) => {
            *run = if *run == Run::Killing { Run::Killing } else { Run::Stopping };
            effects.push(Effect::Kill);
        }
        (Doing::Holding { .. }, Input::Gone) => {
            slot.doing = Doing::Ending;
            effects.push(Effect::RecordEnd(slot.attempt));
        }
        (Doing::Ending, Input::Recorded) => {
            slot.doing = Doing::Idle { pause_until: now, free_since: None };
        }
        _ => {}
    }
    match &mut slot.doing {
        Doing::Holding { run, .. } if *run == Run::Alive && !facts.may_run(now) => {
            *run = Run::Stopping;
            effects.push(Effect::Stop);
        }
        Doing::Idle { pause_until, free_since } if facts.may_run(now) => {
            let free = facts.held_until.is_none_or(|until| until <= now);
            if !free {
                *free_since = None;
                // A node that was refused because of this lease need not wait for the end of its pause once the lease is released.
                *pause_until = now;
                effects.push(Effect::Wake(facts.held_until.unwrap_or(now).min(now + LOOK_AGAIN)));
                return effects;
            }
            let since = *free_since.get_or_insert(now);
            let begin = facts.not_before.unwrap_or(since).max(since) + facts.courtesy;
            let begin = begin.max(*pause_until);
            if begin <= now {
                slot.attempt.0 += 1;
                slot.doing = Doing::Acquiring;
                effects.push(Effect::Acquire(slot.attempt));
            } else {
                effects.push(Effect::Wake(begin));
            }
        }
        Doing::Idle { free_since, .. } => {
            *free_since = None;
            if let (true, Some(until)) = (facts.wanted && facts.eligible, facts.reserved_until) {
                effects.push(Effect::Wake(until));
            }
        }
        _ => {}
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(4);

    fn wanted() -> Facts {
        Facts { wanted: true, eligible: true, ..Facts::default() }
    }

    fn holding(slot: &mut JobSlot, now: Boot) {
        assert_eq!(step(slot, Input::Facts(wanted()), now), [Effect::Acquire(slot.attempt)]);
        let granted = Input::Granted { token: Token(1), trusted_until: now + TTL };
        assert_eq!(step(slot, granted, now), [Effect::Start(slot.attempt)]);
    }

    #[test]
    fn a_lease_is_released_only_after_the_tree_is_gone() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        holding(&mut slot, now);
        assert_eq!(step(&mut slot, Input::Facts(Facts::default()), now), [Effect::Stop]);
        assert_eq!(step(&mut slot, Input::Tick, now + TTL), []);
        let attempt = slot.attempt;
        assert_eq!(step(&mut slot, Input::Gone, now), [Effect::RecordEnd(attempt)]);
    }

    #[test]
    fn stop_beats_restart_at_every_moment() {
        let now = Boot(1);
        let mut slot = JobSlot::default();
        holding(&mut slot, now);
        step(&mut slot, Input::Facts(Facts::default()), now);
        step(&mut slot, Input::Gone, now);
        assert_eq!(step(&mut slot, Input::Recorded, now), []);
        // switched off while the acquire was on its way
        let mut slot = JobSlot::default();
        step(&mut slot, Input::Facts(wanted()), now);
        assert_eq!(step(&mut slot, Input::Facts(Facts::default()), now), []);
        let granted = Input::Granted { token: Token(1), trusted_until: now + TTL };
        assert_eq!(step(&mut slot, granted, now), [Effect::Release(slot.attempt)]);
    }

    #[test]
    fn a_lost_answer_is_asked_again_with_the_same_owner_and_given_back_when_unwanted() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        step(&mut slot, Input::Facts(wanted()), now);
        let attempt = slot.attempt;
        let again = now + ASK_AGAIN;
        assert_eq!(step(&mut slot, Input::AcquireUnknown, now), [Effect::Wake(again)]);
        assert_eq!(step(&mut slot, Input::Tick, again), [Effect::Acquire(attempt)]);
        step(&mut slot, Input::AcquireUnknown, again);
        step(&mut slot, Input::Facts(Facts::default()), again);
        assert_eq!(step(&mut slot, Input::Tick, again), [Effect::Release(attempt)]);
    }

    #[test]
    fn a_grant_that_comes_too_late_is_not_used() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        step(&mut slot, Input::Facts(wanted()), now);
        let granted = Input::Granted { token: Token(1), trusted_until: now + TTL };
        let effects = step(&mut slot, granted, now + TTL);
        assert_eq!(effects[0], Effect::Release(Attempt(1)));
        assert!(!effects.contains(&Effect::Start(Attempt(1))));
    }

    #[test]
    fn a_grant_that_arrives_after_it_was_given_up_is_given_back() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        step(&mut slot, Input::Facts(wanted()), now);
        step(&mut slot, Input::Facts(Facts::default()), now);
        assert_eq!(step(&mut slot, Input::Tick, now), [Effect::Release(slot.attempt)]);
        let granted = Input::Granted { token: Token(1), trusted_until: now + TTL };
        assert_eq!(step(&mut slot, granted, now), [Effect::Release(slot.attempt)]);
    }

    #[test]
    fn a_lost_lease_kills_at_once_even_during_a_graceful_stop() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        holding(&mut slot, now);
        step(&mut slot, Input::Facts(Facts::default()), now);
        assert_eq!(step(&mut slot, Input::LeaseLost, now), [Effect::Kill]);
        assert_eq!(step(&mut slot, Input::LeaseLost, now), []);
    }

    #[test]
    fn who_lost_a_race_asks_again_as_soon_as_the_winner_is_gone() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        let later = |ms| now + Duration::from_millis(ms);
        step(&mut slot, Input::Facts(wanted()), now);
        step(&mut slot, Input::Refused { wait: TTL }, later(1));
        let held = Facts { held_until: Some(now + TTL), ..wanted() };
        step(&mut slot, Input::Facts(held), later(2));
        let effects = step(&mut slot, Input::Facts(wanted()), later(3));
        assert_eq!(effects, [Effect::Acquire(Attempt(2))]);
    }

    #[test]
    fn a_node_comes_back_when_a_move_to_another_lapses() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        let until = now + TTL;
        let moving = Facts { reserved_until: Some(until), ..wanted() };
        assert_eq!(step(&mut slot, Input::Facts(moving), now), [Effect::Wake(until)]);
        assert_eq!(step(&mut slot, Input::Tick, until), [Effect::Acquire(Attempt(1))]);
        let unwanted = Facts { reserved_until: Some(until), ..Facts::default() };
        assert_eq!(step(&mut JobSlot::default(), Input::Facts(unwanted), now), []);
    }

    #[test]
    fn a_node_waits_for_the_lease_of_another_and_for_the_due_time() {
        let (mut slot, now) = (JobSlot::default(), Boot(1));
        let until = now + Duration::from_millis(700);
        let facts = Facts { held_until: Some(until), ..wanted() };
        assert_eq!(step(&mut slot, Input::Facts(facts), now), [Effect::Wake(until)]);
        assert_eq!(step(&mut slot, Input::Tick, until), [Effect::Acquire(Attempt(1))]);
        let mut slot = JobSlot::default();
        let due = now + TTL;
        let facts = Facts { not_before: Some(due), ..wanted() };
        assert_eq!(step(&mut slot, Input::Facts(facts), now), [Effect::Wake(due)]);
    }
}
