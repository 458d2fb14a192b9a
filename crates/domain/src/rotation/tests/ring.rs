//! The ring against random histories: each seed is printed, and fails again by itself.

use std::time::Duration;

use crate::dispatch::Window;
use crate::lease::Token;
use crate::name::{RequestId, TypeName, WorkerName};
use crate::rotation::*;
use crate::time::Stamp;

const US: Duration = Duration::from_micros(1);

/// The constants of Knuth's MMIX generator: random enough, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.roll(one_in) == 0
    }

    fn span(&mut self, most: u32) -> Duration {
        US * self.roll(most + 1)
    }

    fn rules(&mut self) -> Rules {
        let types = (0..=self.roll(5)).map(|nth| {
            let window = Window { count: 1 + self.roll(3), span: US + self.span(90) };
            let gap = if self.chance(2) { Duration::ZERO } else { self.span(40) };
            TypeRules { name: kind(nth), gap, quota: self.chance(3).then_some(window) }
        });
        let types = types.collect();
        let min_gap = if self.chance(3) { Duration::ZERO } else { self.span(20) };
        let skip = if self.chance(4) { Skip::Never } else { Skip::Absent };
        Rules { types, min_gap, lease: US * 50, skip }
    }

    fn one_of(&mut self, rules: &Rules) -> TypeName {
        let at = self.roll(u32::try_from(rules.types.len()).unwrap());
        rules.types[at as usize].name.clone()
    }
}

fn kind(nth: u32) -> TypeName {
    TypeName::new(&format!("t{nth}")).unwrap()
}

fn with_seeds(law: impl Fn(&mut Dice)) {
    for seed in 0..400 {
        // Shown when the law fails.
        println!("seed {seed}");
        law(&mut Dice(seed));
    }
}

fn start(ring: &mut Ring, rules: &Rules, kind: &TypeName, now: Stamp) -> Turn {
    let worker = WorkerName::new("w").unwrap();
    ring.start(rules, kind, &worker, &RequestId::new("r").unwrap(), now).clone()
}

/// All starts there ever were, and what was said at the last pass.
#[derive(Default)]
struct History {
    starts: Vec<(TypeName, Stamp)>,
    not_before: Stamp,
}

impl History {
    /// Whether a type may start at `now`, judged from everything that happened.
    fn allows(&self, rules: &Rules, kind: &TypeRules, now: Stamp) -> bool {
        let of: Vec<_> =
            self.starts.iter().filter(|(one, _)| *one == kind.name).map(|(_, at)| *at).collect();
        let quota = kind.quota.is_none_or(|quota| {
            let count = usize::try_from(quota.count).unwrap();
            of.len() < count || of[of.len() - count] + quota.span <= now
        });
        quota
            && self.not_before <= now
            && self.starts.last().is_none_or(|(_, at)| *at + rules.min_gap <= now)
            && of.last().is_none_or(|at| *at + kind.gap <= now)
    }
}

/// The type that comes first in the order and may start does so; if none may, the given instant is the first at which one may.
fn judge(ring: &Ring, rules: &Rules, history: &History, waits: &[TypeName], now: Stamp) -> Choice {
    let choice = ring.choose(rules, |kind| waits.contains(kind), now);
    let candidates = |at: Stamp| {
        let count = if rules.skip == Skip::Never { 1 } else { rules.types.len() };
        let order = ring.order(rules).take(count).filter(|kind| waits.contains(&kind.name));
        order.filter(|kind| history.allows(rules, kind, at)).collect::<Vec<_>>()
    };
    match &choice {
        Choice::Now(kind) => assert_eq!(candidates(now)[0].name, *kind, "{rules:?} {ring:?}"),
        Choice::Later { reason: Reason::Idle, until, kind } => {
            assert!(waits.is_empty() && until.is_none() && kind.is_none(), "{rules:?} {ring:?}");
        }
        Choice::Later { reason: Reason::Absent, until, kind } => {
            assert_eq!((rules.skip, *until), (Skip::Never, None));
            assert!(!waits.contains(kind.as_ref().expect("who is waited for")));
        }
        Choice::Later { reason: _, until, kind } => {
            let (until, kind) = (until.expect("known"), kind.as_ref().expect("known"));
            assert!(candidates(now).is_empty() && until > now, "{rules:?} {ring:?}");
            assert!(candidates(Stamp(until.0 - 1)).is_empty(), "not later than it must be");
            assert_eq!(candidates(until)[0].name, *kind, "{rules:?} {ring:?}");
        }
    }
    choice
}

#[test]
fn turns_start_as_soon_as_gaps_and_quotas_allow_and_no_sooner() {
    with_seeds(|dice| {
        let (rules, mut ring, mut history) = (dice.rules(), Ring::default(), History::default());
        let mut now = Stamp(1_000_000);
        for _ in 0..150 {
            now = now + dice.span(15);
            let waits: Vec<_> = rules.types.iter().map(|kind| kind.name.clone()).collect();
            let waits: Vec<_> = waits.into_iter().filter(|_| !dice.chance(3)).collect();
            if let Choice::Now(kind) = judge(&ring, &rules, &history, &waits, now) {
                let turn = start(&mut ring, &rules, &kind, now);
                assert_eq!((turn.since, turn.until), (now, now + rules.lease));
                history.starts.push((kind, now));
                now = now + dice.span(60);
                let next = dice.chance(3).then(|| dice.one_of(&rules));
                let not_before = dice.chance(4).then(|| now + dice.span(30));
                history.not_before = Stamp(0);
                if ring.expire(now).is_some() {
                    assert!(turn.until <= now);
                } else {
                    assert!(turn.until > now && ring.pass(next, not_before).is_some());
                    history.not_before = not_before.unwrap_or_default();
                }
            }
        }
    });
}

#[test]
fn while_the_turn_is_had_nobody_elses_comes() {
    with_seeds(|dice| {
        let (rules, mut ring) = (dice.rules(), Ring::default());
        let turn = start(&mut ring, &rules, &dice.one_of(&rules), Stamp(1_000_000));
        let now = Stamp(1_000_000) + dice.span(100);
        let held = Choice::Later { reason: Reason::Held, until: Some(turn.until), kind: None };
        assert_eq!(ring.choose(&rules, |_| true, now), held);
        let until = ring.extend(now).map(|turn| turn.until);
        assert_eq!(until, Some(now + rules.lease));
        assert_eq!(ring.expire(Stamp(now.0 + 49)), None);
        let ended = ring.expire(now + rules.lease).expect("its lease is over");
        assert_eq!((ended.token, ring.turn.as_ref()), (turn.token, None));
        assert_eq!(ring.extend(now), None, "nobody has it");
        assert_eq!(ring.pass(None, None), None);
    });
}

#[test]
fn tokens_follow_the_clock_and_grow_when_it_stands_still() {
    let rules = Rules { types: vec![of(0)], ..free() };
    let mut ring = Ring::default();
    let mut newest = Token(0);
    for now in [0, 999, 1_000, 1_000, 5_000_000, 4_000_000, 4_000_000] {
        let turn = start(&mut ring, &rules, &kind(0), Stamp(now));
        assert!(turn.token > newest, "{turn:?}");
        assert!(turn.token.0 >= u64::try_from(now).unwrap() * 1_024 / 1_000);
        newest = turn.token;
    }
}

#[test]
fn a_ring_made_again_within_the_millisecond_has_newer_tokens() {
    let rules = Rules { types: vec![of(0)], ..free() };
    let token = |now| start(&mut Ring::default(), &rules, &kind(0), Stamp(now)).token;
    for now in [1_790_000_000_000_000, 1_790_000_000_000_001, 1_790_000_000_000_998] {
        assert!(token(now + 1) > token(now));
    }
}

fn of(nth: u32) -> TypeRules {
    TypeRules { name: kind(nth), gap: Duration::ZERO, quota: None }
}

fn free() -> Rules {
    Rules { types: Vec::new(), min_gap: Duration::ZERO, lease: US * 50, skip: Skip::Absent }
}

#[test]
fn new_rules_leave_those_that_stay_in_their_order() {
    with_seeds(|dice| {
        let old = dice.rules();
        let mut ring = Ring::default();
        for nth in 0..dice.roll(4) {
            start(&mut ring, &old, &dice.one_of(&old), Stamp(1_000_000 + i64::from(nth)));
        }
        let mut new = old.clone();
        new.types.retain(|_| !dice.chance(3));
        let stay = |kind: &&TypeRules| new.of(&kind.name).is_some();
        let before: Vec<_> = ring.order(&old).filter(stay).cloned().collect();
        let (turn, last) = (ring.turn.clone(), ring.last_start);
        ring.adapt(&old, &new);
        assert_eq!(ring.order(&new).cloned().collect::<Vec<_>>(), before, "{old:?} {ring:?}");
        assert_eq!((&ring.turn, ring.last_start), (&turn, last), "they are kept");
        assert!(ring.starts.keys().all(|kind| new.of(kind).is_some()));
    });
}

#[test]
fn nobody_begins_while_the_store_may_have_forgotten_a_turn() {
    let rules = Rules { types: vec![of(0), of(1)], ..free() };
    let ring = Ring { recovered_at: Stamp(100), ..Ring::default() };
    let later =
        Choice::Later { reason: Reason::Recovery, until: Some(Stamp(100)), kind: Some(kind(0)) };
    assert_eq!(ring.choose(&rules, |_| true, Stamp(99)), later);
    assert_eq!(ring.choose(&rules, |_| true, Stamp(100)), Choice::Now(kind(0)));
}

#[test]
fn a_named_type_comes_next_unless_it_is_gone() {
    let old = Rules { types: (0..4).map(of).collect(), ..free() };
    let mut ring = Ring::default();
    start(&mut ring, &old, &kind(0), Stamp(1));
    ring.pass(Some(kind(2)), None).expect("it is held");
    let first = |ring: &Ring, rules| ring.order(rules).next().map(|one| one.name.clone());
    assert_eq!(first(&ring, &old), Some(kind(2)));
    let new = Rules { types: [0, 1, 3].map(of).into(), ..free() };
    ring.adapt(&old, &new);
    assert_eq!(first(&ring, &new), Some(kind(1)), "the order goes on");
}
