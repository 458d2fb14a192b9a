//! The rules against random histories: each seed is printed, and fails again by itself.

use std::time::Duration;

use super::super::*;
use crate::time::Stamp;

const US: Duration = Duration::from_micros(1);

/// The constants of Knuth's MMIX generator: random enough, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }

    fn roll32(&mut self, sides: u32) -> u32 {
        u32::try_from(self.roll(u64::from(sides))).unwrap()
    }

    fn span(&mut self, most_us: u64) -> Duration {
        Duration::from_micros(self.roll(most_us + 1))
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    fn rules(&mut self) -> Rules {
        let window = Window { count: 1 + self.roll32(5), span: US + self.span(60) };
        let first = self.span(20);
        let rules = Rules {
            gap: if self.chance(2) { Duration::ZERO } else { self.span(30) },
            window: (!self.chance(3)).then_some(window),
            cap: (!self.chance(3)).then_some(1 + self.roll32(6)),
            lease: US * 50,
            max_attempts: self.roll32(4),
            backoff: Backoff { first, max: first + self.span(200) },
            ..Rules::default()
        };
        Rules { paused: self.chance(20), ..rules }
    }
}

fn with_seeds(law: impl Fn(&mut Dice)) {
    for seed in 0..400 {
        // Shown when the law fails.
        println!("seed {seed}");
        law(&mut Dice(seed));
    }
}

/// Everything that happened to a source.
#[derive(Default)]
struct History {
    starts: Vec<Stamp>,
    /// When the lease of each task in flight ends.
    ends: Vec<Stamp>,
    blocked_until: Stamp,
}

impl History {
    fn standing(&self, rules: &Rules, now: Stamp) -> Standing {
        let recent: Vec<_> = self
            .starts
            .iter()
            .copied()
            .filter(|start| rules.window.is_some_and(|window| *start + window.span > now))
            .collect();
        Standing {
            blocked_until: self.blocked_until,
            last_start: self.starts.last().copied(),
            recent: u32::try_from(recent.len()).unwrap(),
            oldest_recent: recent.first().copied().unwrap_or_default(),
            in_flight: u32::try_from(self.ends.len()).unwrap(),
            first_end: self.ends.iter().min().copied(),
        }
    }

    /// Whether the newest start keeps gap and window, judged from all starts there ever were.
    fn keeps(&self, rules: &Rules) -> bool {
        let newest = self.starts.len() - 1;
        let gap = newest == 0 || self.starts[newest - 1] + rules.gap <= self.starts[newest];
        let window = rules.window.is_none_or(|window| {
            let count = usize::try_from(window.count).unwrap();
            newest < count || self.starts[newest - count] + window.span <= self.starts[newest]
        });
        gap && window
    }

    fn start(&mut self, rules: &Rules, now: Stamp) {
        self.starts.push(now);
        self.ends.push(now + rules.lease);
    }
}

#[test]
fn room_allows_exactly_what_gap_window_and_cap_permit() {
    with_seeds(|dice| {
        let rules = dice.rules();
        let mut history = History::default();
        let mut now = Stamp(1_000_000);
        for _ in 0..200 {
            now = now + dice.span(25);
            history.ends.retain(|end| *end > now);
            if dice.chance(3) {
                history.ends.pop();
            }
            if dice.chance(30) {
                history.blocked_until = now + dice.span(50);
            }
            match rules.room(&history.standing(&rules, now), now) {
                Ok(room) => {
                    assert!(room > 0 && !rules.paused && history.blocked_until <= now, "{rules:?}");
                    for _ in 0..room.min(1 + dice.roll32(4)) {
                        history.start(&rules, now);
                        assert!(history.keeps(&rules), "{rules:?} {:?}", history.starts);
                    }
                    let flying = history.ends.len();
                    assert!(rules.cap.is_none_or(|cap| flying <= cap as usize), "{rules:?}");
                }
                Err(shut) => refused_with_reason(&rules, &mut history, shut, now),
            }
        }
    });
}

/// Nothing is refused that could be allowed, and at the said instant it is allowed.
fn refused_with_reason(rules: &Rules, history: &mut History, shut: Shut, now: Stamp) {
    match shut.reason {
        Reason::Paused => assert!(rules.paused && shut.until.is_none()),
        Reason::Blocked => assert_eq!(shut.until, Some(history.blocked_until)),
        Reason::Cap => {
            assert_eq!(rules.cap.map(|cap| cap as usize), Some(history.ends.len()));
            assert_eq!(shut.until, history.ends.iter().min().copied());
        }
        Reason::Gap => {
            let until = shut.until.expect("known");
            assert!(until > now, "{rules:?}");
            assert!(rules.room(&history.standing(rules, until), until).is_ok(), "{rules:?}");
            // One microsecond sooner would be too soon.
            history.starts.push(Stamp(until.0 - 1));
            assert!(!history.keeps(rules), "{rules:?} {:?}", history.starts);
            history.starts.pop();
        }
        Reason::Empty => panic!("whether any is ready is not asked here"),
    }
    assert!(shut.until.is_none_or(|until| until > now), "{shut:?} at {now:?}");
}

#[test]
fn places_are_ordered_by_priority_and_then_by_age() {
    with_seeds(|dice| {
        let nth = [1, 2, 3, dice.roll(1 << 20) + 1, (1 << 40) + dice.roll(1 << 20)];
        let mut places = Vec::new();
        for priority in (0..=9).rev() {
            let mut sorted = nth;
            sorted.sort_unstable();
            // Returned ones first, the newest of them at the very head; then in the order in which they came.
            places.extend(sorted.iter().rev().map(|nth| Place::before(priority, *nth)));
            places.extend(sorted.iter().map(|nth| Place::behind(priority, *nth)));
        }
        assert!(places.is_sorted(), "{nth:?}");
        for place in places {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                clippy::cast_possible_truncation,
                reason = "is what is tested"
            )]
            let through_a_double = (place.0 as f64) as u64;
            assert_eq!(through_a_double, place.0);
            assert!(place.0 < 1 << 53);
        }
    });
}

#[test]
fn different_tasks_have_different_places_also_at_the_limits() {
    for priority in 0..9 {
        let last = Place::behind(priority + 1, u64::MAX);
        let first = Place::before(priority, u64::MAX);
        assert!(last < first, "{priority}");
        assert!(Place::before(priority, 1) < Place::behind(priority, 0), "{priority}");
    }
    assert_eq!(Place::behind(200, 7), Place::behind(9, 7), "there is nothing more urgent");
}

#[test]
fn shares_leave_room_for_every_source_and_use_all_that_is_wanted() {
    for wanted in 1..=100 {
        for sources in 1..=200 {
            let each = share(wanted, sources);
            assert!(each >= 1 && each <= wanted);
            if sources <= wanted {
                assert!(each * sources <= wanted, "{each} x {sources} of {wanted}");
                assert!(wanted - each * sources < sources, "less than a round is left");
            } else {
                assert_eq!(each, 1);
            }
        }
        assert_eq!(share(wanted, 0), wanted);
    }
}

#[test]
fn a_task_never_goes_anywhere_it_should_not() {
    with_seeds(|dice| {
        let rules = dice.rules();
        let now = Stamp(1_000_000);
        let (attempt, every) = (1 + dice.roll32(6), dice.chance(2).then(|| dice.span(1_000)));
        let used_up = rules.max_attempts > 0 && attempt >= rules.max_attempts;
        let delay = dice.chance(2).then(|| dice.span(1_000));
        let after = |how| rules.after(how, attempt, every, now);
        let said = |outcome| after(Departure::Reported { outcome, delay });
        assert_eq!(after(Departure::Returned), Next::Ready, "it was not tried");
        assert_eq!(after(Departure::Expired), if used_up { Next::Dead } else { Next::Ready });
        assert_eq!(said(TaskOutcome::Dead), Next::Dead);
        let again = every.map_or(Next::Done, |every| Next::Due { at: now + every, again: true });
        assert_eq!(said(TaskOutcome::Done), again);
        match said(TaskOutcome::Retry) {
            Next::Dead => assert!(used_up),
            Next::Due { at, again: false } => {
                assert!(!used_up && at >= now);
                match delay {
                    Some(delay) => assert_eq!(at, now + delay),
                    None => assert!(at <= now + rules.backoff.max),
                }
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_task_dies_after_exactly_as_many_attempts_as_allowed_however_they_fail() {
    with_seeds(|dice| {
        let rules = Rules { max_attempts: 1 + dice.roll32(5), ..dice.rules() };
        let (mut now, mut attempt, mut failed) = (Stamp(1_000_000), 0, 0);
        let mut waited = Duration::ZERO;
        for _ in 0..1_000 {
            attempt += 1;
            let how = match dice.roll(3) {
                0 => Departure::Returned,
                1 => Departure::Expired,
                _ => Departure::Reported { outcome: TaskOutcome::Retry, delay: None },
            };
            failed += u32::from(how != Departure::Returned);
            match rules.after(how, attempt, None, now) {
                Next::Ready if how == Departure::Returned => attempt -= 1,
                Next::Ready => {}
                Next::Due { at, again: false } => {
                    assert!(at.since(now) >= waited, "waits do not become shorter");
                    waited = at.since(now);
                    now = at;
                }
                Next::Dead => {
                    assert_eq!(failed, rules.max_attempts);
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("it never died: {rules:?}");
    });
}

#[test]
fn nothing_waits_longer_than_a_year() {
    let rules = Rules { max_attempts: 0, ..Rules::default() };
    let how = Departure::Reported { outcome: TaskOutcome::Retry, delay: Some(Duration::MAX) };
    assert_eq!(
        rules.after(how, u32::MAX, None, Stamp(0)),
        Next::Due { at: Stamp(0) + LONGEST, again: false }
    );
    let how = Departure::Reported { outcome: TaskOutcome::Retry, delay: None };
    let at = Stamp(0) + rules.backoff.max;
    assert_eq!(rules.after(how, u32::MAX, None, Stamp(0)), Next::Due { at, again: false });
}
