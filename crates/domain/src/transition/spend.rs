//! A lease for one run of a tick that its caller names. The law of ticks that are spent is in [`crate::spent`]; here it meets the lease.

use std::time::Duration;

use super::history::Past;
use super::{Job, Now, Write, lease};
use crate::event::EventKind;
use crate::grant::{Acquire, Acquired};
use crate::lease::Stale;
use crate::name::Owner;
use crate::spent::{self, Once, Spent, Standing};

/// What becomes of a request for such a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// As for any lease; a grant has spent the tick.
    Lease(Acquired),
    /// Somebody spent the tick before.
    Spent {
        /// Who, and when.
        spent: Box<Spent>,
        /// How it stands with that.
        standing: Standing,
        /// The asker still holds the lease, and must release it.
        own: bool,
    },
}

/// As [`lease::acquire`], for one run of a tick: whatever else is in the way, who comes when the tick is spent is told so. `beside` is what stands
/// beside the record of that tick.
pub fn acquire(
    job: &mut Job,
    past: &Past,
    ask: &Acquire,
    once: &Once,
    beside: Option<&Spent>,
    quarantine: Duration,
    now: Now,
) -> (Answer, Vec<Write>) {
    let held = job.record.lease.as_ref();
    let own = held.filter(|held| held.owner == ask.owner).map(|held| held.token);
    let known = spent::known(&job.record, &once.tick, beside);
    let open = known.filter(|known| known.ended.is_none()).map(|known| known.token);
    // The answer to the first request was lost on its way.
    let is_noted = own.is_some() && open == own;
    // So late that its lease is over. A process of Soloist that asks has started nothing; a program may have, before it died.
    let lapsed = job.lapsed.as_ref().filter(|lapsed| lapsed.owner == ask.owner);
    let is_unused = !ask.owner.is_program()
        && lapsed.is_some_and(|lapsed| held.is_none() && Some(lapsed.token) == open);
    if let Some(spent) = known.filter(|_| !is_noted && !is_unused)
        && let Some(standing) = spent.standing(held, now.at)
        && once.is_refused(standing)
    {
        let spent = Box::new(spent.clone());
        return (Answer::Spent { spent, standing, own: own.is_some() }, Vec::new());
    }
    let (acquired, mut writes) = lease::acquire(job, past, ask, quarantine, now);
    if let Acquired::Granted { token, .. } = acquired
        && !is_noted
    {
        let (tick, by) = (once.tick.clone(), ask.node.clone());
        spent::spend(&mut job.record, Spent { tick, token, by, at: now.at, ended: None });
        if writes.is_empty() {
            writes.push(job.publish(EventKind::LeaseAcquired));
        }
    }
    (Answer::Lease(acquired), writes)
}

/// Tells of a tick that was spent with the lease which `owner` holds: a store that forgot it learns it.
///
/// # Errors
/// [`Stale`]: the lease is another's; then nothing is to be written.
pub fn tell_again(job: &mut Job, owner: &Owner, spent: &Spent) -> Result<Vec<Write>, Stale> {
    let (sent, current) = (spent.token, job.record.token);
    if sent < current {
        return Err(Stale { sent, current });
    }
    let lease = job.record.lease.as_ref();
    let holds = lease.is_some_and(|lease| lease.owner == *owner && lease.token == sent);
    let newest = job.record.spent.as_ref().map(|newest| newest.spent.token);
    if !holds || newest >= Some(sent) {
        return Ok(Vec::new());
    }
    spent::spend(&mut job.record, spent.clone());
    Ok(vec![job.publish(EventKind::LeaseAcquired)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::Condition;
    use crate::job::{Exit, RunEnd};
    use crate::journal::{Ended, Then};
    use crate::lease::Token;
    use crate::name::{RunId, TickText};
    use crate::spent::{How, KEPT, Outcome};
    use crate::time::{Boot, StoreTime};
    use crate::transition::run;

    const TTL: Duration = Duration::from_secs(5);

    fn now(ms: i64) -> Now {
        Now { at: StoreTime(1_800_000_000_000 + ms), boot: Boot(0) }
    }

    fn ask(owner: &str) -> Acquire {
        Acquire {
            job: "nightly".parse().expect("a name"),
            owner: Owner(owner.to_owned()),
            node: owner.parse().expect("a name"),
            ttl: TTL,
            condition: Condition::None,
            seen: Token(0),
        }
    }

    fn once(tick: &str, retry_failed: bool) -> Once {
        Once { tick: TickText::new(tick).expect("a tick"), retry_failed }
    }

    fn asked(job: &mut Job, owner: &str, once: &Once, at: i64) -> Answer {
        acquire(job, &Past::default(), &ask(owner), once, None, Duration::ZERO, now(at)).0
    }

    fn granted(answer: &Answer) -> Token {
        match answer {
            Answer::Lease(Acquired::Granted { token, .. }) => *token,
            other => panic!("{other:?}"),
        }
    }

    fn is_spent(answer: &Answer, by: &str, how: Standing) -> bool {
        matches!(answer, Answer::Spent { spent, standing, .. }
            if spent.by.as_str() == by && *standing == how)
    }

    fn job() -> Job {
        Job::untouched("nightly".parse().expect("a name"))
    }

    fn end(job: &mut Job, owner: &str, token: Token, end: RunEnd, code: i32) {
        let ended = Ended {
            job: "nightly".parse().expect("a name"),
            owner: Owner(owner.to_owned()),
            token,
            run: RunId("run".to_owned()),
            exit: Exit { code: Some(code), signal: None },
            end,
            processes_killed: 0,
            then: Then::Nothing,
            began: None,
        };
        run::ended(job, &Past::default(), &ended, now(50)).expect("its own");
    }

    #[test]
    fn a_grant_spends_its_tick_and_whoever_comes_later_is_told_by_whom() {
        let mut job = job();
        let tick = once("27", false);
        let token = granted(&asked(&mut job, "a", &tick, 0));
        assert!(is_spent(&asked(&mut job, "b", &tick, 1), "a", Standing::Running));
        assert_eq!(granted(&asked(&mut job, "a", &tick, 2)), token, "the same owner asks again");
        assert!(matches!(
            asked(&mut job, "b", &once("28", false), 3),
            Answer::Lease(Acquired::Busy { .. })
        ));
        end(&mut job, "a", token, RunEnd::Exited, 0);
        for retry in [false, true] {
            let answer = asked(&mut job, "b", &once("27", retry), 60);
            assert!(is_spent(&answer, "a", Standing::Done), "{answer:?}");
        }
        granted(&asked(&mut job, "b", &once("28", false), 61));
    }

    #[test]
    fn what_failed_or_was_lost_is_done_again_when_it_is_asked_for() {
        for (how, stands) in [
            (RunEnd::Crashed, Standing::Failed),
            (RunEnd::Stopped, Standing::Failed),
            (RunEnd::Lost, Standing::Lost),
            (RunEnd::Fenced, Standing::Lost),
        ] {
            let mut job = job();
            let token = granted(&asked(&mut job, "a", &once("27", false), 0));
            end(&mut job, "a", token, how, 3);
            let answer = asked(&mut job, "b", &once("27", false), 60);
            assert!(is_spent(&answer, "a", stands), "{how:?}: {answer:?}");
            let again = granted(&asked(&mut job, "b", &once("27", true), 61));
            assert!(again > token);
            let answer = asked(&mut job, "c", &once("27", true), 62);
            assert!(is_spent(&answer, "b", Standing::Running), "{how:?}: {answer:?}");
        }
    }

    #[test]
    fn a_command_that_ended_well_is_done_also_when_only_its_guard_could_say_so() {
        for (how, stands) in [(RunEnd::Lost, Standing::Done), (RunEnd::Fenced, Standing::Lost)] {
            let mut job = job();
            let token = granted(&asked(&mut job, "a", &once("27", false), 0));
            end(&mut job, "a", token, how, 0);
            let answer = asked(&mut job, "b", &once("27", false), 60);
            assert!(is_spent(&answer, "a", stands), "{how:?}: {answer:?}");
        }
    }

    #[test]
    fn one_whose_lease_ran_out_without_a_word_is_lost() {
        let mut job = job();
        granted(&asked(&mut job, "a", &once("27", false), 0));
        job.lapsed = job.record.lease.take();
        assert!(is_spent(&asked(&mut job, "b", &once("27", false), 1), "a", Standing::Lost));
        let doubted = Duration::from_secs(1);
        let unsure = acquire(
            &mut job,
            &Past::default(),
            &ask("b"),
            &once("27", true),
            None,
            doubted,
            now(2),
        );
        let waits = Answer::Lease(Acquired::Quarantined { wait: doubted });
        assert_eq!(unsure.0, waits, "its holder may live");
        granted(&asked(&mut job, "b", &once("27", true), 3));
    }

    #[test]
    fn who_asks_again_after_its_lease_ran_out_has_the_tick_but_a_program_may_have_worked() {
        let tick = once("27", false);
        for (owner, has) in [("a", true), ("program-a", false)] {
            let mut job = job();
            let token = granted(&asked(&mut job, owner, &tick, 0));
            job.lapsed = job.record.lease.take();
            assert!(is_spent(&asked(&mut job, "b", &tick, 1), owner, Standing::Lost));
            let answer = asked(&mut job, owner, &tick, 2);
            assert_eq!(is_spent(&answer, owner, Standing::Lost), !has, "{answer:?}");
            if has {
                assert!(granted(&answer) > token);
            }
        }
    }

    #[test]
    fn a_lease_under_which_nothing_was_started_gives_its_tick_back() {
        let tick = once("27", false);
        let mut job = job();
        granted(&asked(&mut job, "a", &tick, 0));
        lease::release(&mut job, &Owner("b".to_owned()), now(1));
        assert!(is_spent(&asked(&mut job, "b", &tick, 2), "a", Standing::Running));
        lease::release(&mut job, &Owner("a".to_owned()), now(3));
        let token = granted(&asked(&mut job, "b", &tick, 4));
        let done = Outcome { how: How::Done, exit: Exit::default() };
        let owner = Owner("b".to_owned());
        lease::release_under(&mut job, &owner, token, done, now(5));
        assert!(is_spent(&asked(&mut job, "c", &tick, 6), "b", Standing::Done));
    }

    #[test]
    fn an_end_that_comes_after_the_end_of_the_lease_is_noted_for_its_owner_alone() {
        let mut job = job();
        let token = granted(&asked(&mut job, "a", &once("27", false), 0));
        job.lapsed = job.record.lease.take();
        let done = Outcome { how: How::Done, exit: Exit::default() };
        lease::release_under(&mut job, &Owner("b".to_owned()), token, done, now(1));
        assert!(is_spent(&asked(&mut job, "b", &once("27", false), 2), "a", Standing::Lost));
        lease::release_under(&mut job, &Owner("a".to_owned()), token, done, now(3));
        assert!(is_spent(&asked(&mut job, "b", &once("27", true), 4), "a", Standing::Done));
    }

    #[test]
    fn what_stands_beside_the_record_counts_and_a_tick_is_free_after_400_days() {
        let tick = once("27", false);
        let mut before = job();
        let token = granted(&asked(&mut before, "a", &tick, 0));
        end(&mut before, "a", token, RunEnd::Exited, 0);
        let spent = before.record.spent.expect("the newest").spent;
        let kept = i64::try_from(KEPT.as_millis()).expect("a few");
        for (at, free) in [(1, false), (kept - 1, false), (kept, true)] {
            let mut job = job();
            let past = Past::default();
            let beside = Some(&spent);
            let answer =
                acquire(&mut job, &past, &ask("b"), &tick, beside, Duration::ZERO, now(at)).0;
            assert_eq!(is_spent(&answer, "a", Standing::Done), !free, "{at}: {answer:?}");
            assert_eq!(job.record.spent.is_some(), free);
        }
    }

    #[test]
    fn a_holder_whose_tick_turns_out_to_be_spent_is_told_to_give_its_lease_back() {
        let mut job = job();
        let past = Past::default();
        let token = granted(&asked(&mut job, "a", &once("27", false), 0));
        // A lease without a tick is spent with the first that its owner asks for.
        job.record.spent = None;
        assert_eq!(granted(&asked(&mut job, "a", &once("28", false), 1)), token);
        let by = "b".parse().expect("a name");
        let tick = TickText::new("29").expect("a tick");
        let beside = Spent { tick, token: Token(7), by, at: now(0).at, ended: None };
        let twentynine = once("29", false);
        let (answer, writes) =
            acquire(&mut job, &past, &ask("a"), &twentynine, Some(&beside), Duration::ZERO, now(2));
        assert!(matches!(answer, Answer::Spent { own: true, .. }), "{answer:?}");
        assert!(writes.is_empty());
    }

    #[test]
    fn a_store_that_forgot_learns_the_tick_from_its_holder_alone() {
        let tick = once("27", false);
        let mut job = job();
        granted(&asked(&mut job, "a", &tick, 0));
        let spent = job.record.spent.take().expect("the newest").spent;
        let of = |owner: &str| Owner(owner.to_owned());
        assert_eq!(tell_again(&mut job, &of("b"), &spent), Ok(Vec::new()));
        assert_eq!(job.record.spent, None);
        assert_eq!(tell_again(&mut job, &of("a"), &spent).map(|writes| writes.len()), Ok(1));
        assert_eq!(tell_again(&mut job, &of("a"), &spent), Ok(Vec::new()), "known");
        assert!(is_spent(&asked(&mut job, "b", &tick, 1), "a", Standing::Running));
        let older = Spent { token: Token(1), ..spent };
        assert!(tell_again(&mut job, &of("a"), &older).is_err(), "stale");
    }
}
