//! Rotations on records in memory, on a clock that only the test moves: random histories of hours, by several processes that
//! remember old records, with answers that are lost, answered as the transitions of `domain::rotation` are beside them.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::MemoryRecords;
use soloist_domain::dispatch::Window;
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, Waiter};
use soloist_domain::rotation::in_memory::{self, ask};
use soloist_domain::rotation::{
    Kept, Memory, PROMISE, Pass, Reason, Rules, Skip, Taken, Turn, TurnOutcome, TypeRules,
};
use soloist_domain::time::Stamp;
use soloist_store::StoreError;
use soloist_store::records::{OfAnyKind as _, Records, Tell};
use soloist_store::rotation::Rotations as _;

const HISTORIES: u64 = 60;
const STEPS: usize = 150;
const KINDS: [&str; 3] = ["apple", "berry", "cherry"];
const INCARNATIONS: [&str; 3] = ["node-a/x", "node-b/y", "node-c/z"];
const MINUTE: Duration = Duration::from_secs(60);

/// Its rotations.
fn by(process: &MemoryRecords) -> &dyn Records {
    process.rows()
}

fn supplier() -> RotationName {
    "supplier".parse().expect("a name")
}

fn rules(dice: &mut StdRng) -> Rules {
    let mut span = |one_in: u32, most: u32| {
        let some = dice.random_ratio(1, one_in);
        if some { MINUTE * dice.random_range(1..=most) } else { Duration::ZERO }
    };
    let gaps = [span(2, 200), span(2, 200), span(2, 20)];
    let windows = [span(2, 600), span(2, 600), span(2, 600)];
    let min_gap = span(2, 8);
    let lease = Duration::from_secs(if dice.random_bool(0.5) { 30 } else { 36_000 });
    let first = dice.random_range(0..2);
    let types = (first..3).map(|nth| TypeRules {
        name: KINDS[nth].parse().expect("a name"),
        gap: gaps[nth],
        quota: (!windows[nth].is_zero())
            .then(|| Window { count: dice.random_range(1..=3), span: windows[nth] }),
    });
    let types = types.collect();
    let skip = if dice.random_bool(0.2) { Skip::Never } else { Skip::Absent };
    Rules { types, min_gap, lease, skip }
}

/// A store with its processes, and the rotation in memory that must answer as it does.
struct Play {
    processes: Vec<MemoryRecords>,
    kept: in_memory::Store,
    dice: StdRng,
    tokens: Vec<Token>,
    seed: u64,
    step: usize,
    /// The time of a holder or waiter is over, and it may be counted still.
    over: bool,
    /// How many of them there were: one that comes again has a new name.
    gone: usize,
}

impl Play {
    async fn new(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let rules = rules(&mut dice);
        let store = MemoryRecords::new();
        let processes = vec![store.another(Duration::ZERO), store.another(Duration::ZERO), store];
        let by = by(&processes[0]);
        by.put_rotation(&supplier(), &rules).await.expect("it is put");
        let kept = in_memory::Store::new(&rules, Memory::default());
        Self { processes, kept, dice, tokens: Vec::new(), seed, step: 0, over: false, gone: 0 }
    }

    fn token(&mut self) -> Token {
        let back = if self.dice.random_bool(0.8) { 0 } else { self.dice.random_range(0..3) };
        let at = self.tokens.len().checked_sub(back + 1);
        at.map_or(Token(7), |at| self.tokens[at])
    }

    fn same<T: std::fmt::Debug + PartialEq>(&self, act: &impl std::fmt::Debug, real: T, is: T) {
        let (seed, step) = (self.seed, self.step);
        assert!(real == is, "seed {seed}, step {step}: {act:?}\nsaid {real:#?}\nnot {is:#?}");
    }

    /// One step by one process, played beside it at the same instant.
    async fn step(&mut self) {
        let nth = self.dice.random_range(0..self.processes.len());
        let store = self.processes[nth].clone();
        let wait = match self.dice.random_range(0..12) {
            0 => MINUTE * self.dice.random_range(1..120),
            1 => PROMISE + Duration::from_micros(self.dice.random_range(0..2)),
            2..=4 => Duration::from_secs(self.dice.random_range(0..60)),
            _ => Duration::from_millis(self.dice.random_range(0..40)),
        };
        store.pass(wait);
        // A pass is never sent again, so its answer must not be lost here.
        let now = store.now();
        let real = by(&store);
        let name = supplier();
        let listed = real.rotations(Some(&name), 0).await.expect("there").remove(0).types;
        self.over = listed.iter().any(|one| {
            let waits = self.kept.queue.iter();
            let waits = waits.filter(|it| it.kind == one.kind && it.until > now);
            one.waiting != waits.count() as u64
        });
        let token = self.token();
        let kind = KINDS[self.dice.random_range(0..KINDS.len())];
        let worker = self.dice.random_range(0..6);
        match self.dice.random_range(0..24) {
            0..=9 => {
                let kind = if self.dice.random_bool(0.8) { KINDS[worker % 3] } else { kind };
                let who = format!("{worker}{kind}-{}", self.gone);
                let patience = Duration::from_secs(if self.dice.random_bool(0.2) { 2 } else { 30 });
                let waiter = format!("{}/{who}", INCARNATIONS[worker % 3]);
                let wait = self.dice.random_bool(0.8).then_some((waiter.as_str(), patience));
                let some = format!("r{}", self.dice.random_range(0..200));
                let request = if self.dice.random_bool(0.7) { who.clone() + "r" } else { some };
                let ask = ask(kind, &who, &request, wait);
                let words = |error| match error {
                    StoreError::NotFound(_) => "no such type".to_owned(),
                    other => panic!("{other}"),
                };
                let said = real.take_turn(&ask).await.map_err(words);
                let is = self.kept.take(&ask, now).map_err(|_| "no such type".to_owned());
                if let Ok(Taken::Granted(turn)) = &said
                    && !self.tokens.contains(&turn.token)
                {
                    assert!(self.tokens.iter().all(|older| *older < turn.token));
                    self.tokens.push(turn.token);
                }
                // Who is over is counted until it is struck out, here and there in its own time.
                let ahead = !self.over;
                let plain = |said: Result<Taken, String>| match said {
                    Ok(Taken::Waiting { holder, earliest_at, reason, .. }) if !ahead => {
                        Ok(Taken::Waiting { holder, earliest_at, reason, ahead: 0 })
                    }
                    other => other,
                };
                self.same(&ask, plain(said), plain(is));
            }
            10..=15 => {
                let pass = Pass {
                    rotation: name,
                    turn: token,
                    only: None,
                    outcome: [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed]
                        [worker % 3],
                    next: self.dice.random_bool(0.2).then(|| kind.parse().expect("a name")),
                    not_before: self.dice.random_bool(0.2).then(|| now + MINUTE),
                };
                let said = real.pass_turn(&pass).await.map_err(|error| error.to_string()).ok();
                let is = self.kept.pass(&pass, now).ok();
                self.same(&pass, said, is);
            }
            16 | 17 => {
                let said = real.extend_turn(&name, token, None).await.expect("an answer");
                let is = self.kept.extend(token, None, now);
                self.same(&token, said, is);
            }
            18 => {
                let said = real.give_back_unseen_turn(&name, token).await.expect("an answer");
                let is = self.kept.give_back(token, now);
                self.same(&token, said, is);
            }
            19 => {
                let Some(one) = self.kept.queue.first().cloned() else { return };
                real.leave_queue(&name, &one.waiter).await.expect("left");
                self.kept.leave(&one.waiter, now);
            }
            20 if self.dice.random_bool(0.3) => {
                let rules = rules(&mut self.dice);
                real.put_rotation(&name, &rules).await.expect("put");
                self.kept.define(&rules, now);
            }
            _ => {
                let incarnation = INCARNATIONS[worker % 3];
                let lost = real.pump_turns(incarnation).await.expect("pumped").lost;
                let lost: Vec<Turn> = lost.into_iter().map(|(_, turn)| turn).collect();
                self.kept.pump(incarnation, now);
                let is = std::mem::take(&mut self.kept.lost);
                self.same(&"pump", lost, is);
            }
        }
        self.compare(now).await;
    }

    /// All that can be seen is the same.
    async fn compare(&mut self, now: Stamp) {
        let nth = self.dice.random_range(0..self.processes.len());
        let store = by(&self.processes[nth]);
        let view = store.rotations(Some(&supplier()), 50).await.expect("it exists").remove(0);
        self.same(&"ring", view.ring, self.kept.rotation.ring.clone());
        let past: Vec<_> = self.kept.past.iter().take(50).cloned().collect();
        self.same(&"past", view.past, past);
        let over = |worker: &_| {
            self.kept.queue.iter().any(|one| one.worker == *worker && one.until <= now)
        };
        let known = |worker: &_| self.kept.queue.iter().any(|one| one.worker == *worker);
        let waits = view.waiters.iter().filter(|one| !over(&one.worker) && known(&one.worker));
        let waits: Vec<_> = waits.map(|one| (one.worker.clone(), one.since)).collect();
        let is = self.kept.queue.iter().filter(|one| one.until > now);
        let is: Vec<_> = is.map(|one| (one.worker.clone(), one.since)).collect();
        self.same(&"queue", waits, is);
        let told = self.processes[0].told();
        let woken = told.into_iter().flat_map(|tell| match tell {
            Tell::Wake(waiters) => waiters,
            _ => Vec::new(),
        });
        let mut woken: Vec<Waiter> = woken.collect();
        let mut is = std::mem::take(&mut self.kept.woken);
        woken.sort();
        is.sort();
        self.same(&"wakes", woken, is);
        // Struck out in their own time, so that nothing but that differs.
        let before = self.kept.queue.len();
        self.kept.queue.retain(|one| one.until > now);
        self.gone += before - self.kept.queue.len();
    }
}

#[tokio::test]
async fn rotations_on_records_answer_for_hours_as_the_domain_does() {
    for seed in 0..HISTORIES {
        let mut play = Play::new(seed).await;
        for step in 0..STEPS {
            play.step = step;
            play.step().await;
        }
    }
}

fn plain(lease: Duration, gap: Duration) -> Rules {
    let kind = |name: &&str| TypeRules {
        name: name.parse().expect("a name"),
        gap: Duration::ZERO,
        quota: None,
    };
    Rules { types: KINDS.iter().map(kind).collect(), min_gap: gap, lease, skip: Skip::Absent }
}

async fn defined(rules: &Rules) -> MemoryRecords {
    let store = MemoryRecords::new();
    by(&store).put_rotation(&supplier(), rules).await.expect("put");
    store
}

fn pass(turn: &Turn) -> Pass {
    Pass {
        rotation: supplier(),
        turn: turn.token,
        only: None,
        outcome: TurnOutcome::Done,
        next: None,
        not_before: None,
    }
}

async fn granted(store: &MemoryRecords, kind: &str, request: &str) -> Turn {
    let ask = ask(kind, "w", request, None);
    match by(store).take_turn(&ask).await.expect("an answer") {
        Taken::Granted(turn) => turn,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_process_whose_clock_is_known_badly_begins_no_turn_before_the_gap_is_over() {
    let gap = Duration::from_millis(100);
    let store = defined(&plain(MINUTE, gap)).await;
    let turn = granted(&store, "apple", "r1").await;
    assert!(matches!(by(&store).pass_turn(&pass(&turn)).await, Ok(Kept::Yes(_))));
    // It takes the clock for half a gap further than it may be.
    let other = store.another(gap / 2);
    let next = ask("berry", "w", "r2", None);
    for _ in 0..99 {
        store.pass(Duration::from_millis(1));
        let said = by(&other).take_turn(&next).await.expect("an answer");
        let Taken::Waiting { earliest_at, reason, .. } = said else { panic!("{said:?}") };
        assert_eq!((earliest_at, reason), (turn.since + gap, Reason::Gap));
    }
    store.pass(Duration::from_millis(1));
    let said = by(&other).take_turn(&next).await.expect("an answer");
    assert!(
        matches!(said, Taken::Granted(turn) if turn.since >= store.now()),
        "no instant is early"
    );
}

#[tokio::test]
async fn no_lease_ends_before_its_holder_thinks() {
    let store = defined(&plain(MINUTE, Duration::ZERO)).await;
    let slow = store.another(Duration::from_millis(20));
    granted(&slow, "apple", "r0").await;
    for nth in 0..20 {
        let sent = store.now();
        let turn = match by(&slow).take_turn(&ask("apple", "w", "r0", None)).await {
            Ok(Taken::Granted(turn)) if nth % 2 == 0 => turn,
            _ => continue,
        };
        let kept = by(&slow).extend_turn(&supplier(), turn.token, None).await;
        let Ok(Kept::Yes(turn)) = kept else { panic!("{kept:?}") };
        assert!(turn.until >= sent + MINUTE);
        store.pass(Duration::from_secs(7));
    }
}

#[tokio::test]
async fn a_lost_answer_is_given_again_and_a_pass_of_unknown_end_is_said_to_be_unknown() {
    let store = defined(&plain(MINUTE, Duration::ZERO)).await;
    let first = granted(&store, "apple", "r0").await;
    assert!(matches!(by(&store).pass_turn(&pass(&first)).await, Ok(Kept::Yes(_))));
    store.lose_answers(1);
    let turn = granted(&store, "apple", "r1").await;
    assert_eq!(granted(&store, "apple", "r1").await, turn);
    store.lose_answers(1);
    let passed = by(&store).pass_turn(&pass(&turn)).await;
    assert!(matches!(passed, Err(StoreError::Unavailable(_))), "{passed:?}");
    let again = by(&store).pass_turn(&pass(&turn)).await;
    assert!(matches!(again, Ok(Kept::Stale { past: Some(_), holder: None })), "{again:?}");
}

#[tokio::test]
async fn no_turn_begins_by_a_memory_that_is_another_servers() {
    let store = defined(&plain(MINUTE, Duration::ZERO)).await;
    let turn = granted(&store, "apple", "r1").await;
    assert!(matches!(by(&store).pass_turn(&pass(&turn)).await, Ok(Kept::Yes(_))));
    store.remember_as(Memory { server: "another".to_owned(), forgot: None });
    let next = ask("berry", "w", "r2", None);
    let said = by(&store).take_turn(&next).await.expect("an answer");
    assert!(matches!(said, Taken::Waiting { reason: Reason::Recovery, .. }), "{said:?}");
    store.pass(MINUTE);
    let said = by(&store).take_turn(&next).await.expect("an answer");
    assert!(matches!(said, Taken::Granted(_)), "{said:?}");
}

#[tokio::test]
async fn fifteen_hundred_of_a_silent_incarnation_are_passed_over_and_forgotten_in_the_end() {
    let store = defined(&plain(MINUTE, Duration::ZERO)).await;
    let by = by(&store);
    let turn = granted(&store, "apple", "r0").await;
    let patience = Duration::from_secs(30);
    for nth in 0..1_500 {
        let (who, waiter) = (format!("s{nth}"), format!("{}/{nth}", INCARNATIONS[0]));
        by.take_turn(&ask("berry", &who, "r", Some((&waiter, patience)))).await.expect("waits");
    }
    let waiter = format!("{}/1", INCARNATIONS[1]);
    let alive = ask("berry", "alive", "r", Some((&waiter, patience)));
    let said = by.take_turn(&alive).await.expect("waits");
    assert!(matches!(said, Taken::Waiting { ahead: 1_500, .. }), "{said:?}");
    assert!(matches!(by.pass_turn(&pass(&turn)).await, Ok(Kept::Yes(_))));
    store.pass(PROMISE);
    by.pump_turns(INCARNATIONS[1]).await.expect("pumped");
    let said = by.take_turn(&alive).await.expect("an answer");
    let Taken::Granted(turn) = said else { panic!("{said:?}") };
    assert!(matches!(by.pass_turn(&pass(&turn)).await, Ok(Kept::Yes(_))));
    for _ in 0..20 {
        store.pass(Duration::from_secs(36));
        by.pump_turns(INCARNATIONS[1]).await.expect("pumped");
    }
    let view = by.rotations(Some(&supplier()), 0).await.expect("there").remove(0);
    assert_eq!((view.types[1].waiting, view.waiters.len()), (0, 0));
    assert_eq!(store.leftovers(), [0; 3], "queues, rows of waiters, requests");
}

#[tokio::test]
async fn many_at_once_have_one_turn_after_the_other() {
    let store = defined(&plain(MINUTE, Duration::ZERO)).await;
    let mut turns = Vec::new();
    for round in 0..5 {
        let processes: Vec<_> = (0..20).map(|_| store.another(Duration::ZERO)).collect();
        let takes = processes.iter().enumerate().map(|(nth, store)| async move {
            let request = format!("{round}-{nth}");
            let said = by(store).take_turn(&ask("apple", "w", &request, None)).await;
            said.expect("an answer")
        });
        let said = futures_util::future::join_all(takes).await;
        let mut got = said.into_iter().filter_map(|taken| match taken {
            Taken::Granted(turn) => Some(turn),
            _ => None,
        });
        let turn = got.next().expect("one has it");
        assert!(got.next().is_none(), "and only one");
        assert!(matches!(by(&store).pass_turn(&pass(&turn)).await, Ok(Kept::Yes(_))));
        turns.push(turn.token);
        store.pass(Duration::from_millis(1));
    }
    assert!(turns.is_sorted());
}
