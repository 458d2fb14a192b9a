//! What no store can be brought to by its interface alone, or only one of them. The rest is `tests/it/conformance`.

use std::time::Duration;

use super::forget::{KEPT, may_be_forgotten};
use super::history::Past;
use super::lease::{self, Tenure};
use super::{Job, Now, Write, handover, output, participation, run};
use crate::event::EventKind;
use crate::grant::{Acquire, Acquired, Condition, Released, Renewal, Renewed};
use crate::job::{Exit, LeaseRecord, Next, NextWhat, RunEnd};
use crate::journal::{Ended, NewLine, Output, Started, Stream, Then};
use crate::lease::{Stale, Token};
use crate::log::LogBounds;
use crate::name::{JobName, Owner, RunId, UserName};
use crate::tick::Clock;
use crate::time::{Began, Boot, StoreTime};

const TTL: Duration = Duration::from_secs(5);
const NOW: Now = Now { at: StoreTime(1_000_000), boot: Boot(0) };
/// Above every token that the clock of [`NOW`] makes.
const FAR: Token = Token(4_000_000_000_000_000);

fn name() -> JobName {
    "outbound".parse().expect("a name")
}

fn ask(owner: &str) -> Acquire {
    Acquire {
        job: name(),
        owner: Owner(owner.to_owned()),
        node: "node-a".parse().expect("a name"),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    }
}

fn acquire(job: &mut Job, ask: &Acquire, quarantine: Duration) -> Acquired {
    lease::acquire(job, &Past::default(), ask, quarantine, NOW).0
}

fn granted(job: &mut Job, ask: &Acquire) -> Token {
    match acquire(job, ask, Duration::ZERO) {
        Acquired::Granted { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

fn renewal(owner: &str, token: Token) -> Renewal {
    Renewal {
        job: name(),
        owner: Owner(owner.to_owned()),
        node: "node-a".parse().expect("a name"),
        token,
        ttl: TTL,
        since: Began::at_boot(Boot(0)),
        run: None,
    }
}

fn tenure(job: &Job) -> Tenure {
    let Job { record, lapsed, released, .. } = job.clone();
    let run = record.run.map(|run| run.id);
    Tenure { token: record.token, lease: record.lease, lapsed, released, run }
}

fn renew(job: &Job, owner: &str, token: Token) -> (Renewed, Option<LeaseRecord>) {
    lease::renew(&tenure(job), &renewal(owner, token), NOW)
}

fn ended(owner: &str, token: Token) -> Ended {
    Ended {
        job: name(),
        owner: Owner(owner.to_owned()),
        token,
        run: RunId("run".to_owned()),
        exit: Exit::default(),
        end: RunEnd::Stopped,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    }
}

/// The lease of `job` runs out.
fn lapse(job: &mut Job) {
    let lease = job.record.lease.take();
    job.lapsed = lease.map(|lease| LeaseRecord { expires_in: Duration::ZERO, ..lease });
}

#[test]
fn in_doubt_nothing_is_granted_but_to_whoever_holds_the_lease() {
    let mut job = Job::untouched(name());
    let doubted = Acquired::Quarantined { wait: TTL };
    assert_eq!(acquire(&mut job, &ask("a"), TTL), doubted);
    assert_eq!(job, Job::untouched(name()));
    let token = granted(&mut job, &ask("a"));
    let again = acquire(&mut job, &ask("a"), TTL);
    assert_eq!(again, Acquired::Granted { token, since: NOW.at });
    lapse(&mut job);
    let wanted = Acquire { condition: Condition::Wanted, ..ask("b") };
    assert_eq!(acquire(&mut job, &wanted, TTL), Acquired::NotWanted, "the reason that lasts");
    assert_eq!(acquire(&mut job, &ask("b"), TTL), doubted);
}

#[test]
fn a_token_exceeds_what_the_store_the_asker_and_the_clock_know() {
    let clock = Token(1_024 * 1_000_000);
    let cases = [
        (Token(0), Token(0), clock),
        (clock, Token(0), Token(clock.0 + 1)),
        (Token(7), FAR, Token(FAR.0 + 1)),
        (FAR, Token(7), Token(FAR.0 + 1)),
    ];
    for (newest, seen, token) in cases {
        let mut job = Job::untouched(name());
        job.record.token = newest;
        assert_eq!(granted(&mut job, &Acquire { seen, ..ask("a") }), token);
        assert_eq!(job.record.token, token);
    }
}

#[test]
fn a_sleeper_that_asserted_its_lease_again_gives_way_to_a_newer_one() {
    let mut job = Job::untouched(name());
    // The store was emptied, and the sleeper came first.
    let (kept, lease) = renew(&job, "sleeper", Token(7));
    assert_eq!(kept, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    (job.record.token, job.record.lease) = (Token(7), lease);
    let (kept, lease) = renew(&job, "holder", FAR);
    assert_eq!(kept, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    (job.record.token, job.record.lease) = (FAR, lease);
    assert_eq!(renew(&job, "sleeper", Token(7)), (Renewed::Lost, None));
    assert_eq!(renew(&job, "holder", FAR).0, Renewed::Kept { margin: TTL, forgot: false });
}

#[test]
fn a_report_under_a_token_that_the_store_forgot_does_not_end_its_lease() {
    let mut job = Job::untouched(name());
    let line = NewLine { stream: Stream::Stdout, text: "shipped".to_owned() };
    let said = Output {
        job: name(),
        token: FAR,
        run: RunId("run".to_owned()),
        node: "node-a".parse().expect("a name"),
        lines: vec![line],
        progress: None,
        heard: false,
    };
    output::report(&mut job, said.clone(), LogBounds::default(), NOW).expect("the newest token");
    assert_eq!(job.record.token, FAR);
    let (kept, lease) = renew(&job, "holder", FAR);
    assert!(matches!(kept, Renewed::Kept { .. }) && lease.is_some());
    let older = Output { token: Token(7), ..said };
    let stale = Stale { sent: Token(7), current: FAR };
    assert_eq!(output::report(&mut job, older, LogBounds::default(), NOW), Err(stale));
}

#[test]
fn a_lease_that_ran_out_unclaimed_is_renewed_by_its_owner_alone_and_until_it_is_given_back() {
    let mut job = Job::untouched(name());
    let token = granted(&mut job, &ask("a"));
    lapse(&mut job);
    assert_eq!(renew(&job, "b", token), (Renewed::Lost, None));
    let later = Now { at: NOW.at + TTL * 2, boot: NOW.boot };
    let (kept, lease) = lease::renew(&tenure(&job), &renewal("a", token), later);
    assert_eq!(kept, Renewed::Kept { margin: Duration::ZERO, forgot: false });
    assert_eq!(lease.expect("a lease").since, NOW.at);
    // A store that does not keep what ran out answers the same.
    job.lapsed = None;
    assert_eq!(renew(&job, "a", token).0, kept);
    run::ended(&mut job, &Past::default(), &ended("a", token), NOW).expect("recorded");
    assert_eq!(renew(&job, "a", token), (Renewed::Lost, None));
}

#[test]
fn whoever_renews_a_living_lease_or_asks_again_never_has_less_of_it() {
    for owner in ["a", "program-a"] {
        for (asked, left) in [(2_000, 5_000), (5_000, 5_000), (9_000, 9_000)] {
            let ttl = Duration::from_millis(asked);
            let mut job = Job::untouched(name());
            let token = granted(&mut job, &ask(owner));
            let ask = Renewal { ttl, ..renewal(owner, token) };
            let (_, kept) = lease::renew(&tenure(&job), &ask, NOW);
            let kept = kept.expect("it is kept");
            assert_eq!((kept.expires_in, kept.ttl), (Duration::from_millis(left), kept.expires_in));
            acquire(&mut job, &Acquire { ttl, ..self::ask(owner) }, Duration::ZERO);
            assert_eq!(job.record.lease, Some(kept), "{owner} asks again");
        }
    }
    // What the store says of it is finer than what a record keeps.
    let mut job = Job::untouched(name());
    let token = granted(&mut job, &ask("a"));
    let lease = job.record.lease.as_mut().expect("a lease");
    lease.expires_in = Duration::from_micros(4_000_001);
    let ask = Renewal { ttl: Duration::from_secs(1), ..renewal("a", token) };
    let kept = lease::renew(&tenure(&job), &ask, NOW).1.expect("it is kept");
    assert_eq!((kept.expires_in, kept.ttl), (Duration::from_millis(4_001), kept.expires_in));
}

#[test]
fn a_renewal_of_a_program_makes_no_lease_and_replaces_none() {
    let stranger = "program-0123";
    let empty = Job::untouched(name());
    let mut held = Job::untouched(name());
    let token = granted(&mut held, &ask("a"));
    let mut of_a_program = Job::untouched(name());
    let own = granted(&mut of_a_program, &ask("program-a"));
    let mut lapsed = of_a_program.clone();
    lapse(&mut lapsed);
    let mut given_back = of_a_program.clone();
    lease::release(&mut given_back, &Owner("program-a".to_owned()), NOW);
    for job in [&empty, &held, &of_a_program, &lapsed, &given_back] {
        let around = token.0.saturating_sub(2)..=token.0 + 2;
        let tokens = around.chain([0, 1, FAR.0, Token::LARGEST.0, Token::LARGEST.0 + 1, u64::MAX]);
        for token in tokens.map(Token) {
            assert_eq!(renew(job, stranger, token), (Renewed::Lost, None), "{token}: {job:?}");
            let (answer, lease) = renew(job, "program-a", token);
            let recorded = std::ptr::eq(job, &of_a_program) && token == own;
            assert_eq!((answer != Renewed::Lost, lease.is_some()), (recorded, recorded), "{token}");
        }
        let mut after = job.clone();
        lease::release(&mut after, &Owner(stranger.to_owned()), NOW);
        assert_eq!(after, *job);
    }
}

#[test]
fn a_lease_is_given_back_under_its_own_token_alone_and_so_is_what_is_kept_back_of_it() {
    let own = Owner("program-a".to_owned());
    let mut job = Job::untouched(name());
    let token = granted(&mut job, &ask("program-a"));
    let mut kept_back = job.clone();
    kept_back.record.lease.as_mut().expect("granted").owner = own.kept_back();
    for held in [job, kept_back] {
        let stranger = Owner("program-b".to_owned());
        for (owner, token) in
            [(&own, Token(token.0 - 1)), (&own, Token(token.0 + 1)), (&stranger, token)]
        {
            let mut after = held.clone();
            let (answer, writes) = lease::release_under(&mut after, owner, token, NOW);
            assert_eq!((answer, writes.len(), &after), (Released::Another, 0, &held), "{token}");
        }
        let mut after = held.clone();
        let (answer, writes) = lease::release_under(&mut after, &own, token, NOW);
        assert_eq!((answer, writes.len(), after.record.lease.is_none()), (Released::Yes, 1, true));
        let again = lease::release_under(&mut after, &own, token, NOW);
        assert_eq!(again, (Released::Nothing, Vec::new()));
        let older = lease::release_under(&mut after, &own, Token(token.0 - 1), NOW);
        assert_eq!(older, (Released::Another, Vec::new()), "a newer one was granted since");
    }
}

#[test]
fn a_name_that_is_kept_back_is_granted_to_nobody_and_taken_from_nobody() {
    let kept_back = Owner("program-a".to_owned()).kept_back();
    let mut job = Job::untouched(name());
    let (kept, lease) = renew(&job, kept_back.as_str(), Token(7));
    assert_eq!(kept, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    (job.record.token, job.record.lease) = (Token(7), lease);
    let refused = Acquired::Quarantined { wait: TTL };
    assert_eq!(acquire(&mut job, &ask("program-b"), Duration::ZERO), refused);
    assert_eq!(renew(&job, "program-a", Token(7)), (Renewed::Lost, None), "it asks anew");
    let mut held = Job::untouched(name());
    granted(&mut held, &ask("program-b"));
    assert_eq!(renew(&held, kept_back.as_str(), FAR), (Renewed::Lost, None), "somebody has it");
    lapse(&mut job);
    assert!(granted(&mut job, &ask("program-b")) > Token(7));
}

#[test]
fn no_token_is_minted_above_the_largest_that_every_language_counts_to() {
    for seen in [Token::LARGEST, Token(u64::MAX)] {
        let mut job = Job::untouched(name());
        let before = job.clone();
        let ask = Acquire { seen, ..ask("a") };
        assert_eq!(acquire(&mut job, &ask, Duration::ZERO), Acquired::Exhausted);
        assert_eq!(job, before);
    }
    let mut job = Job::untouched(name());
    let token = granted(&mut job, &Acquire { seen: Token(Token::LARGEST.0 - 1), ..ask("a") });
    assert_eq!(token, Token::LARGEST);
    assert!(matches!(renew(&job, "a", token).0, Renewed::Kept { .. }), "it is kept");
    let late = run::ended(&mut job, &Past::default(), &ended("a", Token(u64::MAX)), NOW);
    assert!(late.is_err(), "none was ever minted above it");
    run::ended(&mut job, &Past::default(), &ended("a", token), NOW).expect("and given back");
}

#[test]
fn an_end_told_again_is_harmless_although_a_newer_holder_came() {
    let mut job = Job::untouched(name());
    let end = ended("a", granted(&mut job, &ask("a")));
    let writes = run::ended(&mut job, &Past::default(), &end, NOW).expect("recorded");
    let [Write::KeepRun(entry), Write::Publish(first), Write::Publish(second)] = &writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!((first.event, second.event), (EventKind::RunEnded, EventKind::LeaseReleased));
    assert_eq!((first.version, second.version), (2, 3));
    let past = Past { this: Some(entry.clone()), ended: 1, ..Past::default() };
    let newer = granted(&mut job, &ask("b"));
    let before = job.clone();
    assert_eq!(run::ended(&mut job, &past, &end, NOW), Ok(Vec::new()));
    let otherwise = Ended { end: RunEnd::Fenced, ..end.clone() };
    let stale = Stale { sent: end.token, current: newer };
    assert_eq!(
        run::ended(&mut job, &past, &otherwise, NOW),
        Err(stale),
        "it was closed by another"
    );
    assert_eq!(job, before);
}

#[test]
fn an_end_takes_away_the_lease_of_a_sleeper() {
    let mut job = Job::untouched(name());
    let (_, lease) = renew(&job, "sleeper", Token(7));
    (job.record.token, job.record.lease) = (Token(7), lease);
    run::ended(&mut job, &Past::default(), &ended("a", FAR), NOW).expect("the newest token");
    assert_eq!((job.record.lease, job.released), (None, FAR));
}

#[test]
fn a_start_reported_after_the_lease_was_given_back_revives_nothing() {
    let mut job = Job::untouched(name());
    let token = granted(&mut job, &ask("a"));
    lease::release(&mut job, &Owner("a".to_owned()), NOW);
    let late = Started {
        job: name(),
        token,
        run: RunId("run".to_owned()),
        node: "node-a".parse().expect("a name"),
        pid: 1,
        began: Began::at_boot(Boot(0)),
    };
    let before = job.clone();
    let said = run::started(&mut job, &Past::default(), &late, NOW);
    assert_eq!(said, Ok((NOW.at, Vec::new())));
    assert_eq!(job, before);
}

/// A name that was taken and given back, as it is a second later.
fn used_once() -> Job {
    let mut job = Job::untouched(name());
    granted(&mut job, &ask("a"));
    lease::release(&mut job, &Owner("a".to_owned()), NOW);
    job
}

const LATER: StoreTime = StoreTime(1_001_000);

#[test]
fn a_record_that_only_counts_may_be_forgotten_and_one_that_is_held_may_not() {
    let mut job = Job::untouched(name());
    granted(&mut job, &ask("a"));
    assert!(!may_be_forgotten(&job, 0, LATER), "it is held");
    assert!(may_be_forgotten(&used_once(), 0, LATER));
    lapse(&mut job);
    assert!(!may_be_forgotten(&job, 0, LATER), "its owner may assert it again");
}

#[test]
fn a_record_that_says_anything_is_not_forgotten() {
    type Says = (&'static str, fn(&mut Job));
    fn li() -> UserName {
        "li".parse().expect("a name")
    }
    let says: [Says; 11] = [
        ("a participation", |job| drop(participation::switch(job, &li(), true, None, NOW))),
        ("a participation that is over", |job| {
            participation::switch(job, &li(), true, None, NOW);
            participation::switch(job, &li(), false, None, NOW);
        }),
        ("a hold", |job| drop(participation::hold(job, &li(), "stock-taking", NOW))),
        ("a move", |job| drop(handover::request(job, None, &li(), TTL, NOW))),
        ("a run that ended", |job| {
            let end = Ended { token: job.record.token, ..ended("a", FAR) };
            run::ended(job, &Past::default(), &end, NOW).expect("the newest token");
        }),
        ("a next run", |job| {
            job.record.next = Some(Next { what: NextWhat::Retry, at: LATER });
        }),
        ("crashes", |job| job.record.crashes = 1),
        ("that it was given up", |job| job.record.given_up = true),
        ("a line", |job| job.record.log_seq = 1),
        ("a lease that nobody has claimed since it ran out", |job| {
            granted(job, &ask("b"));
            lapse(job);
        }),
        ("a clock of ticks", |job| {
            job.record.clock = Some(Box::new(Clock::begin("daily", &job.record.clone(), LATER)))
        }),
    ];
    for (what, say) in says {
        let mut job = used_once();
        say(&mut job);
        assert!(!may_be_forgotten(&job, 0, LATER), "{what}");
    }
    assert!(!may_be_forgotten(&used_once(), 1, LATER), "a history");
}

#[test]
fn the_next_token_of_a_name_that_was_forgotten_is_greater_than_the_last_one_of_any() {
    let used = used_once();
    let mut again = Job::untouched(name());
    let now = Now { at: LATER + KEPT, ..NOW };
    let (acquired, _) = lease::acquire(&mut again, &Past::default(), &ask("b"), TTL - TTL, now);
    let Acquired::Granted { token, .. } = acquired else { panic!("{acquired:?}") };
    assert!(token > used.record.token);
    // One that a clock made which was far ahead stays.
    let day = Duration::from_secs(24 * 60 * 60);
    for (ahead, goes) in [(day, true), (day + Duration::from_millis(1), false), (KEPT, false)] {
        let mut used = used.clone();
        used.record.token = Token::at(LATER + ahead);
        assert_eq!(may_be_forgotten(&used, 0, LATER), goes, "{ahead:?}");
        assert!(!goes || token > used.record.token, "{ahead:?}");
    }
}
