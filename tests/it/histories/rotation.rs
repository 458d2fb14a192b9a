//! Gaps, quotas, turns and promises that run out, waiters who give up: every store answers as the pure transitions of
//! `domain::rotation` do, which are played beside it on a rotation kept in memory.
//!
//! A store says by its own clock when it did something, or between which two readings; at that instant the
//! transitions are asked the same. So everything is compared to the microsecond, gaps may be a few milliseconds, and
//! the machine may be slow. When a promise or a waiter's patience ends is not always known so exactly, and is seen only
//! by what a later step does. Where such an end lies too close to a step, both are played: it has come, it has not.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use soloist::domain::dispatch::Window;
use soloist::domain::lease::Token;
use soloist::domain::name::{RotationName, Waiter, WorkerName};
use soloist::domain::rotation::{
    Kept, Memory, PROMISE, Pass, Rules, Skip, Taken, Turn, TurnAsk, TurnOutcome, TypeRules,
};
use soloist::domain::time::Stamp;
use soloist::store::rotation::{RotationView, Rotations};
use soloist::store::{Store, StoreError};

use super::{MS, blur, pass, unit};
use soloist::domain::rotation::in_memory;

const STEPS: usize = 100;
const KINDS: [&str; 3] = ["apple", "berry", "cherry"];
const LIVES: [&str; 2] = ["node-a/x", "node-b/y"];
/// Where more may have happened, nothing more is compared.
const MOST_WORLDS: usize = 8;
/// The same before a step, when each uncertain end is played both ways.
const MOST_FORKS: usize = 100;

/// One thing that happens. Turns are counted from the newest.
#[derive(Debug, Clone)]
enum Act {
    Take(TurnAsk),
    Pass(Pass),
    Extend(Token),
    GiveBack(Token),
    Leave(Waiter),
    Put(Rules),
    Pump(&'static str),
}

/// What came of it, with what can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Taken(Result<Taken, String>),
    Kept(Result<Kept, String>),
    Done(bool),
    Lost(Vec<Turn>),
}

fn rotation() -> RotationName {
    "supplier".parse().expect("a name")
}

fn rules(dice: &mut StdRng, unit: Duration) -> Rules {
    let mut span = |one_in: u32, most: u32| {
        let some = dice.random_ratio(1, one_in);
        if some { unit * dice.random_range(1..=most) } else { Duration::ZERO }
    };
    let gaps = [span(2, 25), span(2, 25), span(2, 25)];
    let windows = [span(2, 120), span(2, 120), span(2, 120)];
    let min_gap = span(2, 8);
    let lease = if dice.random_bool(0.5) { unit * 30 } else { unit * 3_600_000 };
    let first = dice.random_range(0..2);
    let types = (first..3).map(|nth| TypeRules {
        name: KINDS[nth].parse().expect("a name"),
        gap: gaps[nth],
        quota: (!windows[nth].is_zero())
            .then(|| Window { count: dice.random_range(1..=2), span: windows[nth] }),
    });
    let types = types.collect();
    let skip = if dice.random_bool(0.2) { Skip::Never } else { Skip::Absent };
    Rules { types, min_gap, lease, skip }
}

/// A store, and the rotation in memory that must answer as it does.
struct Play {
    real: Store,
    /// More than one where nothing tells yet what happened: whether a promise was made, or to whom.
    kept: Vec<in_memory::Store>,
    dice: StdRng,
    unit: Duration,
    tokens: Vec<Token>,
    /// Whose time is over: until when a store still lists and counts them is its own business. Who waits then has a new name.
    over: Vec<WorkerName>,
    doubts: Doubts,
}

/// How far from the truth an end may be.
struct Doubts {
    /// At least, on a store that has a clock of its own.
    blur: Duration,
    /// Where it is more.
    more: BTreeMap<Stamp, Duration>,
}

impl Doubts {
    fn of(&self, end: Stamp) -> Duration {
        self.more.get(&end).map_or(self.blur, |doubt| *doubt)
    }

    /// The same end is known as `one` and as `other`: from here on as `one`.
    fn merge(&mut self, one: Stamp, other: Stamp) {
        let apart = one.max(other).since(one.min(other));
        let doubt = self.of(one).max(apart + self.of(other));
        self.more.insert(one, doubt);
    }
}

impl Play {
    async fn new(real: Store, seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let unit = unit(&real, seed);
        let rules = rules(&mut dice, unit);
        real.put_rotation(&rotation(), &rules).await.expect("it is put");
        let kept = vec![in_memory::Store::new(&rules, Memory::default())];
        let doubts = Doubts { blur: blur(&real), more: BTreeMap::new() };
        Self { real, kept, dice, unit, tokens: Vec::new(), over: Vec::new(), doubts }
    }

    /// Counted from the newest; mostly that.
    fn token(&mut self) -> Token {
        let back = if self.dice.random_bool(0.8) { 0 } else { self.dice.random_range(0..3) };
        let at = self.tokens.len().checked_sub(back + 1);
        at.map_or(Token(7), |at| self.tokens[at])
    }

    fn act(&mut self, now: Stamp) -> Act {
        let (token, unit) = (self.token(), self.unit);
        for kept in &mut self.kept {
            let doubts = &self.doubts;
            let over = kept.queue.extract_if(.., |one| one.until + doubts.of(one.until) < now);
            self.over.extend(over.map(|one| one.worker));
        }
        let dice = &mut self.dice;
        let kind = KINDS[dice.random_range(0..KINDS.len())];
        let worker = dice.random_range(0..5);
        match dice.random_range(0..24) {
            0..=9 => {
                let kind = if dice.random_bool(0.8) { KINDS[worker % 3] } else { kind };
                let name = format!("{worker}{kind}-{}", self.over.len());
                // A store may have struck a waiter out just after its time, or not yet: it does not ask again then.
                let ends = |one: &in_memory::Standing| {
                    let doubt = self.doubts.of(one.until);
                    one.worker.as_str() == name && one.until <= now + doubt + MS * 5
                };
                if self.kept.iter().flat_map(|kept| &kept.queue).any(ends) {
                    return Act::Pump(LIVES[worker % 2]);
                }
                let patience = unit * if dice.random_bool(0.2) { 20 } else { 30_000 };
                let waiter = format!("{}/{name}", LIVES[worker % 2]);
                let wait = dice.random_bool(0.8).then_some((waiter.as_str(), patience));
                let request = format!("r{}", dice.random_range(0..200));
                let request = if dice.random_bool(0.7) { name.clone() + "r" } else { request };
                Act::Take(in_memory::ask(kind, &name, &request, wait))
            }
            10..=15 => Act::Pass(Pass {
                rotation: rotation(),
                turn: token,
                only: None,
                outcome: [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed][worker % 3],
                next: dice.random_bool(0.2).then(|| kind.parse().expect("a name")),
                not_before: dice.random_bool(0.2).then(|| now + unit * 15),
            }),
            16 => Act::Extend(token),
            17 => Act::GiveBack(token),
            18 => match self.kept[0].queue.first() {
                Some(one) => Act::Leave(one.waiter.clone()),
                None => Act::Pump(LIVES[0]),
            },
            19 if dice.random_bool(0.3) => Act::Put(rules(dice, unit)),
            _ => Act::Pump(LIVES[worker % 2]),
        }
    }

    async fn view(&self) -> RotationView {
        let mut views = self.real.rotations(Some(&rotation()), 50).await.expect("it exists");
        views.pop().expect("it exists")
    }

    /// One step; `false` when nothing more can be compared.
    async fn step(&mut self) -> bool {
        let before = self.view().await.now;
        let act = self.act(before);
        let real = self.really(&act).await;
        let view = self.view().await;
        let after = view.now;
        if let Said::Taken(Ok(Taken::Granted(turn))) = &real
            && !self.tokens.contains(&turn.token)
        {
            self.tokens.push(turn.token);
        }
        let mut may_be: Vec<in_memory::Store> = Vec::new();
        let mut tries = Vec::new();
        let worlds = self.forks(before, after);
        if worlds.len() > MOST_FORKS {
            return false;
        }
        for world in &worlds {
            for at in instants(world, &view, before, after) {
                let mut kept = world.clone();
                let said = play(&mut kept, &act, at);
                kept.woken.clear();
                if !self.is_so(world, &kept, &said, &real, &view) {
                    tries.push((at, said, kept.rotation));
                    continue;
                }
                match may_be.iter_mut().find(|other| timeless(other) == timeless(&kept)) {
                    Some(other) => {
                        for (one, same) in ends(other).into_iter().zip(ends(&mut kept)) {
                            self.doubts.merge(*one, *same);
                        }
                    }
                    None => may_be.push(kept),
                }
            }
        }
        if may_be.is_empty() {
            panic!(
                "{act:?} between {before:?} and {after:?}\nsaid {real:#?}\n{view:#?}\nnot {tries:#?}\nbefore {:#?}",
                self.kept
            );
        }
        self.kept = may_be;
        self.kept.len() <= MOST_WORLDS
    }

    /// What may have been before a step. An end that may lie before or after it is played three ways: as it is known, not yet
    /// come, and come.
    fn forks(&mut self, before: Stamp, after: Stamp) -> Vec<in_memory::Store> {
        let mut worlds = self.kept.clone();
        for nth in 0.. {
            if worlds.len() > MOST_FORKS || worlds.iter_mut().all(|world| ends(world).len() <= nth)
            {
                break;
            }
            for mut world in worlds.clone() {
                let Some(end) = ends(&mut world).get(nth).map(|end| **end) else { continue };
                let doubt = self.doubts.of(end);
                if doubt.is_zero() || end + doubt < before || after + doubt < end {
                    continue;
                }
                let was_due = world.rotation.due == Some(end);
                for at in [end.max(Stamp(after.0 + 1)), end.min(Stamp(before.0 - 1))] {
                    *ends(&mut world)[nth] = at;
                    if was_due {
                        world.rotation.due = Some(at);
                    }
                    self.doubts.more.insert(at, doubt);
                    worlds.push(world.clone());
                }
            }
        }
        worlds
    }

    /// Whether all that can be seen is as in memory.
    fn is_so(
        &self,
        before: &in_memory::Store,
        kept: &in_memory::Store,
        said: &Said,
        real: &Said,
        view: &RotationView,
    ) -> bool {
        self.alike(before, said, real, view.now)
            && kept.rotation.ring == view.ring
            && kept.past.iter().take(50).eq(&view.past)
            && self.waiting(kept, view.now) == self.listed(view, kept, view.now)
    }

    /// Who waits still, in order.
    fn waiting(&self, kept: &in_memory::Store, now: Stamp) -> Vec<String> {
        let waits =
            |one: &&in_memory::Standing| one.until > now && !self.over.contains(&one.worker);
        let waits = kept.queue.iter().filter(waits);
        waits.map(|one| format!("{} {} {:?}", one.kind, one.worker, one.since)).collect()
    }

    /// An instant that has come is as good as any other; how many are ahead is known only while nobody's time is over.
    fn alike(&self, kept: &in_memory::Store, said: &Said, real: &Said, now: Stamp) -> bool {
        let known = self.over.is_empty() && kept.queue.iter().all(|one| one.until > now);
        let plain = |said: &Said| match said.clone() {
            Said::Taken(Ok(Taken::Waiting { holder, earliest_at, reason, ahead })) => {
                let earliest_at = if earliest_at <= now { Stamp(0) } else { earliest_at };
                let ahead = if known { ahead } else { 0 };
                Said::Taken(Ok(Taken::Waiting { holder, earliest_at, ahead, reason }))
            }
            other => other,
        };
        plain(said) == plain(real)
    }

    /// Who waits as the store says, without those whose time is over.
    fn listed(&self, view: &RotationView, kept: &in_memory::Store, now: Stamp) -> Vec<String> {
        let over = |worker: &WorkerName| {
            let just_now = |one: &in_memory::Standing| one.worker == *worker && one.until <= now;
            self.over.contains(worker) || kept.queue.iter().any(just_now)
        };
        let waits = view.waiters.iter().filter(|one| !over(&one.worker));
        waits.map(|one| format!("{} {} {:?}", one.kind, one.worker, one.since)).collect()
    }

    async fn really(&self, act: &Act) -> Said {
        let (store, name) = (&self.real, rotation());
        let words = |error: StoreError| match error {
            StoreError::NotFound(_) => "no such type".to_owned(),
            other => panic!("{other}"),
        };
        match act {
            Act::Take(ask) => Said::Taken(store.take_turn(ask).await.map_err(words)),
            Act::Pass(pass) => Said::Kept(store.pass_turn(pass).await.map_err(words)),
            Act::Extend(turn) => {
                Said::Kept(store.extend_turn(&name, *turn, None).await.map_err(words))
            }
            Act::GiveBack(turn) => {
                Said::Done(store.give_back_unseen_turn(&name, *turn).await.expect("an answer"))
            }
            Act::Leave(waiter) => {
                store.leave_queue(&name, waiter).await.expect("an answer");
                Said::Done(true)
            }
            Act::Put(rules) => {
                store.put_rotation(&name, rules).await.expect("it is put");
                Said::Done(true)
            }
            Act::Pump(life) => {
                let lost = store.pump_turns(life).await.expect("pumped").lost;
                Said::Lost(lost.into_iter().map(|(_, turn)| turn).collect())
            }
        }
    }
}

/// When it may have been: if the store says when, then, else from the later to the earlier and wherever something ends
/// between.
fn instants(
    kept: &in_memory::Store,
    view: &RotationView,
    before: Stamp,
    after: Stamp,
) -> Vec<Stamp> {
    let ring = &view.ring;
    let began = ring.turn.as_ref().map(|turn| Stamp(turn.until.0 - micros(turn.lease)));
    let known = [ring.last_start, began, view.past.first().map(|past| past.ended)];
    let since = view.waiters.iter().map(|one| one.since);
    let rotation = &kept.rotation;
    let ends = [rotation.due, rotation.ring.turn.as_ref().map(|turn| turn.until)];
    let ends = ends.into_iter().flatten();
    let ends = ends.chain(rotation.promise.iter().map(|promise| promise.until));
    let ends = ends.chain(kept.queue.iter().map(|one| one.until));
    // When each type opens, also one for which somebody comes only now.
    let types = &rotation.rules.types;
    let opens = types.iter().map(|kind| rotation.ring.earliest(&rotation.rules, kind, before).0);
    let ends = ends.chain(opens).flat_map(|at| [at, Stamp(at.0 - 1)]);
    let all = known.into_iter().flatten().chain(since).chain([after, before]).chain(ends);
    all.filter(|at| (before..=after).contains(at)).collect()
}

/// The ends that nobody outside sees.
fn ends(kept: &mut in_memory::Store) -> Vec<&mut Stamp> {
    let rotation = &mut kept.rotation;
    let promise = rotation.promise.iter_mut().map(|promise| &mut promise.until);
    let patience = kept.queue.iter_mut().map(|one| &mut one.until);
    promise.chain(rotation.silent.values_mut()).chain(patience).collect()
}

/// Without the instants that nobody outside sees.
fn timeless(kept: &in_memory::Store) -> in_memory::Store {
    let mut kept = kept.clone();
    kept.rotation.due = None;
    kept.rotation.promise.iter_mut().for_each(|promise| promise.until = Stamp(0));
    kept.rotation.silent.values_mut().for_each(|until| *until = Stamp(0));
    kept.queue.iter_mut().for_each(|one| one.until = Stamp(0));
    kept.requests.values_mut().for_each(|(_, until)| *until = Stamp(0));
    kept
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).expect("short")
}

fn play(kept: &mut in_memory::Store, act: &Act, at: Stamp) -> Said {
    let words = |_| "no such type".to_owned();
    match act {
        Act::Take(ask) => Said::Taken(kept.take(ask, at).map_err(words)),
        Act::Pass(pass) => Said::Kept(kept.pass(pass, at).map_err(words)),
        Act::Extend(turn) => Said::Kept(Ok(kept.extend(*turn, None, at))),
        Act::GiveBack(turn) => Said::Done(kept.give_back(*turn, at)),
        Act::Leave(waiter) => {
            kept.leave(waiter, at);
            Said::Done(true)
        }
        Act::Put(rules) => {
            kept.define(rules, at);
            Said::Done(true)
        }
        Act::Pump(life) => {
            kept.pump(life, at);
            Said::Lost(std::mem::take(&mut kept.lost))
        }
    }
}

/// How many steps were compared.
async fn agree(real: Store, seed: u64) -> usize {
    let mut play = Play::new(real, seed).await;
    for step in 0..STEPS {
        let long = play.dice.random_ratio(1, 12);
        // Promises last for milliseconds, whatever else lasts for minutes.
        let unit = if play.dice.random_bool(0.5) { play.unit } else { MS };
        let short = unit * play.dice.random_range(0..8);
        pass(&play.real, if long { PROMISE + MS * 10 } else { short }).await;
        // Shown when they do not agree.
        println!("seed {seed}, step {step}");
        if !play.step().await {
            return step;
        }
    }
    STEPS
}

super::on_every_store!(agree, STEPS, 60, 15, 6);
