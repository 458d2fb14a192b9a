//! Gaps, windows, leases and promises that run out, tasks that become due: every store answers as the pure transitions of
//! `domain::dispatch` do, which are played beside it on a few maps.
//!
//! A store says by its own clock when it did something, or between which two readings; at that instant the transitions
//! are asked the same. So answers, tasks, histories and sources are compared to the microsecond, leases may be a few
//! milliseconds, and the machine may be slow: only a step that lies too close to the end of a promise or of somebody's
//! patience, whose beginning nobody said, proves nothing, and ends its history.
//!
//! Not compared, because stores may differ in it (ADR 0014): tokens (only that they are the same again and grow), the order
//! of what is due at one microsecond, when collectors were seen.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use soloist::domain::dispatch::{
    Answer, Backoff, ClaimAsk, ClaimId, ClaimOwner, Exchange, Extended, Halt, Kept, NewTask,
    PROMISE, Report, Reported, Rules, Task, TaskId, TaskOutcome, TaskState, Window,
};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, SourceName, Waiter};
use soloist::domain::time::Stamp;
use soloist::store::dispatch::{Claimed, Dispatch, Handed, SourceView, Sources, TaskView};
use soloist::store::events::{Events, StoreEvent};
use soloist::store::jobs::Jobs as _;
use soloist::store::{Store, StoreError};
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;

use super::{MS, blur, pass, unit};
use soloist::domain::dispatch::in_memory;

const STEPS: usize = 120;
const OWNERS: [&str; 2] = ["o-0", "o-1"];
const SOURCES: [&str; 3] = ["a", "b", "c"];
/// Where more may have happened, nothing more is compared.
const MOST_WORLDS: usize = 16;
const LONG: Duration = Duration::from_secs(3_600);

/// One thing that happens.
#[derive(Debug, Clone)]
enum Act {
    Put(Vec<NewTask>),
    Exchange(Exchange),
    /// Of several callers at the same time, in the order in which they came.
    Together(Vec<Exchange>),
    Extend(ClaimId, Option<ClaimOwner>),
    GiveBack(ClaimId, bool),
    Leave(Waiter),
    Define(SourceName, Rules),
    Pause(SourceName, bool),
    Block(SourceName, Duration),
    Revive(TaskId),
    Pump,
}

/// What came of it, with what can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Put(Vec<bool>),
    Exchanged(Vec<Reported>, Option<Claimed>),
    Together(Vec<Self>),
    Extended(Option<Extended>),
    Count(u64),
    Nothing,
}

/// All that can be seen.
struct Seen {
    sources: Vec<SourceView>,
    tasks: Vec<TaskView>,
    woken: Vec<Waiter>,
}

fn source(name: &str) -> SourceName {
    name.parse().expect("a name")
}

/// `a` has no limits, `b` a gap, `c` a window, whatever else changes: what a store counts of starts that no rule limits is its
/// own business.
fn rules(name: &str, dice: &mut StdRng, unit: Duration) -> Rules {
    let lease = if dice.random_bool(0.5) { unit * dice.random_range(20..40) } else { LONG };
    let first = unit * dice.random_range(0..3);
    let window = Window { count: dice.random_range(1..=3), span: unit * 40 };
    Rules {
        gap: if name == "b" { unit * dice.random_range(1..12) } else { Duration::ZERO },
        window: (name == "c").then_some(window),
        cap: (name != "a" && dice.random_bool(0.5)).then(|| dice.random_range(1..4)),
        lease: lease.max(unit * 20),
        max_attempts: dice.random_range(0..4),
        backoff: Backoff { first, max: first * 3 },
        ..Rules::default()
    }
}

/// A thread that hands a store exchanges at the same time: nothing runs between, so that on Redis they share a call.
struct Callers(mpsc::UnboundedSender<(Vec<Exchange>, oneshot::Sender<Vec<Said>>)>);

impl Callers {
    fn of(store: Store) -> Self {
        let (sender, mut asked) =
            mpsc::unbounded_channel::<(Vec<Exchange>, oneshot::Sender<Vec<Said>>)>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        std::thread::spawn(move || {
            runtime.block_on(async {
                while let Some((asks, told)) = asked.recv().await {
                    // All are asked before the first is sent. One that asks nothing is among them, and has its answer too.
                    let all = [vec![Exchange::default()], asks].concat();
                    let said = all.iter().map(|ask| exchanged(&store, ask));
                    told.send(join_all(said).await.split_off(1)).expect("it listens");
                }
            });
        });
        Self(sender)
    }

    async fn exchange(&self, asks: Vec<Exchange>) -> Vec<Said> {
        let (told, hears) = oneshot::channel();
        assert!(self.0.send((asks, told)).is_ok(), "the thread lives");
        hears.await.expect("answers")
    }
}

/// A store, and the one in memory that must answer as it does.
struct Play {
    real: Store,
    /// Where exchanges at the same time have one instant.
    callers: Option<Callers>,
    heard: Receiver<StoreEvent>,
    on: bool,
    /// More than one where nothing tells yet what happened.
    kept: Vec<in_memory::Store>,
    dice: StdRng,
    unit: Duration,
    /// Makes names and instants that do not tie.
    unique: u32,
    asks: Vec<ClaimAsk>,
    woken: Vec<Waiter>,
    /// The longest that was not known when something happened.
    unsure: Duration,
}

impl Play {
    async fn new(real: Store, seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let (unit, unsure) = (unit(&real, seed), blur(&real));
        let mut kept = in_memory::Store::default();
        let what = real.describe().await.expect("a store").what;
        let at_one_instant = soloist_store_memory::world(&real).is_some() || what.contains("Redis");
        let callers = at_one_instant.then(|| Callers::of(real.clone()));
        let mut heard = real.subscribe(&[job()]).await.expect("subscribed");
        assert_eq!(heard.recv().await, Some(StoreEvent::Subscribed));
        for name in SOURCES {
            let rules = rules(name, &mut dice, unit);
            real.put_source(&source(name), &rules).await.expect("it is put");
            kept.define(&source(name), &rules, Stamp(0));
        }
        let (kept, asks, woken) = (vec![kept], Vec::new(), Vec::new());
        Self { real, callers, heard, on: false, kept, dice, unit, unique: 0, asks, woken, unsure }
    }

    /// A little time, no two alike.
    fn span(&mut self, most: u32) -> Duration {
        self.unique += 1;
        self.unit * self.dice.random_range(0..=most) + Duration::from_micros(self.unique.into())
    }

    fn act(&mut self, now: Stamp) -> Act {
        let name = *SOURCES.choose(&mut self.dice).expect("some");
        match self.dice.random_range(0..40) {
            0..=7 => {
                let count = self.dice.random_range(1..4);
                Act::Put((0..count).map(|_| self.task(now)).collect())
            }
            8..=11 if self.callers.is_some() => {
                let count = self.dice.random_range(2..6);
                Act::Together((0..count).map(|_| self.exchange()).collect())
            }
            8..=27 => Act::Exchange(self.exchange()),
            28 | 29 => match self.asks.choose(&mut self.dice) {
                Some(ask) => {
                    let other = ClaimOwner::of(OWNERS[0]);
                    let only = self.dice.random_bool(0.3).then_some(other);
                    Act::Extend(ask.id(), only)
                }
                None => Act::Pump,
            },
            30 | 31 => match self.asks.choose(&mut self.dice) {
                Some(ask) => Act::GiveBack(ask.id(), self.dice.random_bool(0.5)),
                None => Act::Pump,
            },
            32 => match self.kept[0].queue.first() {
                Some(one) => Act::Leave(one.waiter.clone()),
                None => Act::Pump,
            },
            33 => Act::Define(source(name), rules(name, &mut self.dice, self.unit)),
            34 => Act::Pause(source(name), self.dice.random_bool(0.3)),
            35 => {
                let lasting = self.unit * [0, 9][self.dice.random_range(0..2)];
                Act::Block(source(name), lasting)
            }
            36 => {
                let dead = |task: &&Task| task.state == TaskState::Dead;
                let found = self.kept[0].tasks.values().find(dead);
                found.map_or(Act::Pump, |task| Act::Revive(task.id.clone()))
            }
            _ => Act::Pump,
        }
    }

    fn task(&mut self, now: Stamp) -> NewTask {
        let at = self.dice.random_bool(0.2).then(|| now + self.span(20));
        let every = self.dice.random_bool(0.2).then(|| self.span(20));
        NewTask {
            key: self.dice.random_range(0..12).to_string(),
            source: source(SOURCES[self.dice.random_range(0..3)]),
            payload: "{}".to_owned(),
            priority: [0, 0, 0, 5, 9][self.dice.random_range(0..5)],
            at,
            every,
        }
    }

    fn exchange(&mut self) -> Exchange {
        let held = self.kept[0].tasks.values().filter(|task| task.token > Token(0));
        let tasks: Vec<Task> = held.cloned().collect();
        let count = self.dice.random_range(0..3).min(tasks.len());
        let some: Vec<Task> = tasks.sample(&mut self.dice, count).cloned().collect();
        let mut reports: Vec<Report> = some.iter().map(|task| self.report(task)).collect();
        if let [one] = reports.as_mut_slice() {
            // Of several that wait for the same backoff nobody knows which is first.
            one.delay.take_if(|_| self.dice.random_bool(0.4));
        }
        let only = self.dice.random_bool(0.1).then(|| ClaimOwner::of(OWNERS[0]));
        let asks = self.dice.random_bool(0.8);
        Exchange { reports, only, claim: asks.then(|| self.ask()) }
    }

    fn report(&mut self, task: &Task) -> Report {
        let wrong = self.dice.random_bool(0.1);
        let later = self.dice.random_bool(0.7);
        let delay = Some(if later { self.span(8) } else { Duration::ZERO });
        Report {
            id: task.id.clone(),
            token: if wrong { Token(task.token.0 + 1) } else { task.token },
            outcome: [TaskOutcome::Done, TaskOutcome::Retry, TaskOutcome::Retry, TaskOutcome::Dead]
                [self.dice.random_range(0..4)],
            delay,
            error: self.dice.random_bool(0.5).then(|| format!("error {}", self.unique)),
        }
    }

    /// A new request, or one of before: of somebody who was woken, or any.
    fn ask(&mut self) -> ClaimAsk {
        let waits = |ask: &ClaimAsk| ask.wait.as_ref().map(|(waiter, _)| waiter.clone());
        if self.dice.random_bool(0.5)
            && let Some(woken) = self.woken.pop()
            && let Some(ask) = self.asks.iter().find(|ask| waits(ask) == Some(woken.clone()))
        {
            return ask.clone();
        }
        let brief = |ask: &&ClaimAsk| ask.wait.as_ref().is_none_or(|(_, long)| *long > LONG / 2);
        let known: Vec<&ClaimAsk> = self.asks.iter().filter(brief).collect();
        if self.dice.random_bool(0.2)
            && let Some(ask) = known.choose(&mut self.dice)
        {
            return (*ask).clone();
        }
        self.unique += 1;
        let patience = if self.dice.random_bool(0.2) { self.unit * 15 } else { LONG };
        let waiter = Waiter(format!("n/x/{}", self.unique));
        let mut sources: Vec<SourceName> = Vec::new();
        if self.dice.random_bool(0.5) {
            let count = self.dice.random_range(1..3);
            sources = SOURCES.sample(&mut self.dice, count).map(|name| source(name)).collect();
        }
        let ask = ClaimAsk {
            owner: ClaimOwner::of(OWNERS[self.dice.random_range(0..2)]),
            collector: format!("c-{}", self.dice.random_range(0..2)).parse().expect("a label"),
            request: self.unique.to_string().parse().expect("a label"),
            max: self.dice.random_range(1..6),
            sources,
            wait: self.dice.random_bool(0.5).then_some((waiter, patience)),
        };
        self.asks.push(ask.clone());
        ask
    }

    async fn now(&self) -> Stamp {
        self.real.sources(Some(&source("a"))).await.expect("it exists")[0].now
    }

    async fn look(&mut self) -> Seen {
        let sources = self.real.sources(None).await.expect("sources");
        let mut tasks = Vec::new();
        for id in &self.kept[0].order.clone() {
            tasks.extend(self.real.task(id).await.expect("an answer"));
        }
        let woken = self.woken().await;
        Seen { sources, tasks, woken }
    }

    /// Everybody who was woken until a change is heard that is made now.
    async fn woken(&mut self) -> Vec<Waiter> {
        self.on = !self.on;
        let who = "li".parse().expect("a name");
        self.real.participate(&job(), &who, self.on, None).await.expect("switched");
        let mut woken = Vec::new();
        loop {
            match self.heard.recv().await.expect("an event") {
                StoreEvent::Wake(some) => woken.extend(some),
                StoreEvent::Record(_) => {}
                StoreEvent::Job(_) => break,
                other => panic!("{other:?}"),
            }
        }
        // On a cluster the two may come from different masters, one later than the other.
        while self.real.is_sharded() {
            match tokio::time::timeout(MS * 50, self.heard.recv()).await {
                Ok(Some(StoreEvent::Wake(some))) => woken.extend(some),
                Ok(Some(StoreEvent::Record(_))) => {}
                Ok(other) => panic!("{other:?}"),
                Err(_) => break,
            }
        }
        woken
    }

    /// One step; `false` when nothing more can be compared.
    async fn step(&mut self) -> bool {
        let before = self.now().await;
        let act = self.act(before);
        let real = match (&act, &self.callers) {
            (Act::Together(asks), Some(callers)) => {
                Said::Together(callers.exchange(asks.clone()).await)
            }
            _ => really(&self.real, &act).await,
        };
        let after = self.now().await;
        if let Act::Put(tasks) = &act {
            // So that they are looked at.
            for new in tasks {
                let id = TaskId::of(&new.source, &new.key);
                let kept = &mut self.kept[0];
                if !kept.order.contains(&id) && !kept.tasks.contains_key(&id) {
                    kept.order.push(id);
                }
            }
        }
        let seen = self.look().await;
        if let Act::Put(_) = &act {
            let kept = &mut self.kept[0];
            kept.order.retain(|id| kept.tasks.contains_key(id));
        }
        let unsure = self.unsure.max(after.since(before));
        let mut may_be: Vec<in_memory::Store> = Vec::new();
        let mut tries = Vec::new();
        for world in &self.kept {
            for at in instants(world, &act, &seen, before, after) {
                let mut kept = world.clone();
                let said = play(&mut kept, &act, &real, at);
                let differs = difference(&mut kept, &said, &real, &seen);
                if let Some(differs) = differs {
                    tries.push((at, differs));
                } else if !may_be.iter().any(|other| timeless(other) == timeless(&kept)) {
                    may_be.push(kept);
                }
            }
        }
        if may_be.is_empty() {
            let near = |at: Stamp| at + unsure >= before && after + unsure >= at;
            let promised = self.kept.iter().flat_map(|kept| kept.sources.values());
            let patience = self.kept.iter().flat_map(|kept| &kept.queue).map(|one| one.until);
            if promised.map(|source| source.promised_until).chain(patience).any(near) {
                return false;
            }
            panic!(
                "{act:?} between {before:?} and {after:?}\nsaid {real:#?}\nnot {tries:#?}\nbefore {:#?}",
                self.kept
            );
        }
        self.woken.extend(seen.woken);
        (self.kept, self.unsure) = (may_be, unsure);
        self.kept.len() <= MOST_WORLDS
    }
}

fn job() -> JobName {
    "outbound".parse().expect("a name")
}

async fn exchanged(store: &Store, ask: &Exchange) -> Said {
    let answer = store.exchange(ask).await.expect("exchanged");
    Said::Exchanged(answer.reports, answer.claimed)
}

async fn really(store: &Store, act: &Act) -> Said {
    match act {
        Act::Put(tasks) => Said::Put(store.put_tasks(tasks).await.expect("put")),
        Act::Exchange(ask) => exchanged(store, ask).await,
        Act::Together(_) => unreachable!("callers of their own"),
        Act::Extend(claim, only) => match store.extend(claim, only.as_ref()).await {
            Ok(extended) => Said::Extended(Some(sorted(extended))),
            Err(StoreError::NotFound(_)) => Said::Extended(None),
            Err(other) => panic!("{other}"),
        },
        Act::GiveBack(claim, true) => {
            Said::Count(store.give_back_unseen_claim(claim).await.expect("an answer"))
        }
        Act::GiveBack(claim, false) => {
            Said::Count(store.give_back(claim, None).await.expect("an answer"))
        }
        Act::Leave(waiter) => {
            let sources = SOURCES.map(source);
            store.leave_queues(waiter, &sources).await.expect("stopped");
            store.leave_queues(waiter, &[]).await.expect("stopped");
            Said::Nothing
        }
        Act::Define(name, rules) => {
            store.put_source(name, rules).await.expect("defined");
            Said::Nothing
        }
        Act::Pause(name, paused) => {
            store.pause_source(name, *paused).await.expect("paused");
            Said::Nothing
        }
        Act::Block(name, lasting) => {
            store.block_source(name, *lasting).await.expect("blocked");
            Said::Nothing
        }
        Act::Revive(id) => {
            store.revive(id).await.expect("revived");
            Said::Nothing
        }
        Act::Pump => Said::Count(store.pump().await.expect("pumped").expired),
    }
}

fn play_exchange(kept: &mut in_memory::Store, ask: &Exchange, real: &Said, at: Stamp) -> Said {
    let before = kept.tasks.clone();
    let (reports, answer) = kept.exchange(ask, at).expect("known sources");
    let real = match real {
        Said::Exchanged(_, Some(Claimed::Granted { tasks, .. })) => tasks.as_slice(),
        _ => &[],
    };
    Said::Exchanged(reports, answer.map(|answer| claimed(kept, &before, answer, real)))
}

fn play(kept: &mut in_memory::Store, act: &Act, real: &Said, at: Stamp) -> Said {
    match act {
        Act::Put(tasks) => Said::Put(kept.put(tasks, at).expect("known sources")),
        Act::Exchange(ask) => play_exchange(kept, ask, real, at),
        Act::Together(asks) => {
            let Said::Together(all) = real else { unreachable!("one for each") };
            let said = asks.iter().zip(all).map(|(ask, real)| play_exchange(kept, ask, real, at));
            Said::Together(said.collect())
        }
        Act::Extend(claim, only) => match kept.extend(claim, only.as_ref(), at) {
            Ok(extended) => Said::Extended(Some(sorted(extended))),
            Err(Halt::NoClaim(_)) => Said::Extended(None),
            Err(other) => panic!("{other:?}"),
        },
        Act::GiveBack(claim, unseen) => Said::Count(kept.give_back(claim, None, *unseen, at)),
        Act::Leave(waiter) => {
            kept.leave_queues(waiter, at);
            Said::Nothing
        }
        Act::Define(name, rules) => {
            kept.define(name, rules, at);
            Said::Nothing
        }
        Act::Pause(name, paused) => {
            kept.pause(name, *paused, at).expect("a known source");
            Said::Nothing
        }
        Act::Block(name, lasting) => {
            kept.block(name, *lasting, at).expect("a known source");
            Said::Nothing
        }
        Act::Revive(id) => {
            kept.revive(id, at).expect("a known task");
            Said::Nothing
        }
        Act::Pump => Said::Count(kept.pump(at)),
    }
}

/// The answer with its texts. A task that is handed out now takes the token that the store gave it.
fn claimed(
    kept: &mut in_memory::Store,
    before: &BTreeMap<TaskId, Task>,
    answer: Answer,
    real: &[Handed],
) -> Claimed {
    let (claim, lease_until, tasks) = match answer {
        Answer::Nothing { reason, next_at } => return Claimed::Nothing { reason, next_at },
        Answer::Granted { claim, lease_until, tasks } => (claim, lease_until, tasks),
    };
    let mut handed = Vec::new();
    for mut task in tasks {
        let again = before.get(&task.id).is_some_and(|known| known.token == task.token);
        let theirs = real.iter().find(|one| one.id == task.id);
        let older = before.get(&task.id).map(|known| known.token);
        // One that does not grow is no answer of this world: the difference says so.
        let grows = |theirs: &&Handed| older.is_none_or(|older| older < theirs.token);
        if let Some(theirs) = theirs.filter(|_| !again).filter(grows) {
            if let Some(claim) = kept.claims.get_mut(&claim)
                && let Kept::Granted { tasks, .. } = &mut claim.kept
            {
                let named = tasks.iter_mut().find(|(id, _)| *id == task.id);
                named.expect("it is named").1 = theirs.token;
            }
            kept.tasks.get_mut(&task.id).expect("known").token = theirs.token;
            task.token = theirs.token;
        }
        let (key, payload) = kept.texts[&task.id].clone();
        let Task { id, source, token, attempt, .. } = task;
        handed.push(Handed { id, key, source, payload, token, attempt });
    }
    Claimed::Granted { claim, lease_until, tasks: handed }
}

/// In what order is nobody's business.
fn sorted(mut extended: Extended) -> Extended {
    extended.kept.sort();
    extended.lost.sort();
    extended
}

/// The first thing that is not as in memory.
fn difference(
    kept: &mut in_memory::Store,
    said: &Said,
    real: &Said,
    seen: &Seen,
) -> Option<String> {
    if said != real {
        return Some(format!("said {said:?}"));
    }
    let woken = std::mem::take(&mut kept.woken);
    if woken != seen.woken {
        return Some(format!("woke {woken:?}, not {:?}", seen.woken));
    }
    for view in &seen.tasks {
        // Whose lease was that is over, and that nobody has noticed yet, is of no interest any more.
        let plain = |view: TaskView| {
            let held = view.held.clone().filter(|held| held.2 > seen.sources[0].now);
            TaskView { held, ..view }
        };
        let task = self::view(kept, &view.id).map(plain);
        let view = plain(view.clone());
        if task.as_ref() != Some(&view) {
            return Some(format!("{task:?}, not {view:?}"));
        }
    }
    for view in &seen.sources {
        let source = &kept.sources[&view.name];
        let mut should = SourceView {
            name: source.name.clone(),
            rules: source.rules.clone(),
            blocked_until: source.blocked_until,
            ready: source.ready,
            due: source.due,
            in_flight: source.in_flight,
            dead: source.dead,
            done: source.done,
            started: source.started,
            finished: source.finished,
            retried: source.retried,
            expired: source.expired,
            shut: kept.shut(&view.name, view.now),
            now: view.now,
        };
        // One that is over is as good as any other.
        let over =
            [view.blocked_until, should.blocked_until].iter().all(|until| *until <= view.now);
        if over {
            should.blocked_until = view.blocked_until;
        }
        if should != *view {
            return Some(format!("{should:?}, not {view:?}"));
        }
    }
    None
}

fn view(kept: &in_memory::Store, id: &TaskId) -> Option<TaskView> {
    let task = kept.tasks.get(id)?.clone();
    let (key, payload) = kept.texts[id].clone();
    let held = task.collector.zip(task.claim).zip(task.until);
    Some(TaskView {
        id: task.id,
        key,
        source: task.source,
        payload,
        priority: task.priority,
        state: task.state,
        attempt: task.attempt,
        token: task.token,
        every: task.every,
        created: task.created,
        changed: task.changed,
        at: task.at,
        held: held.map(|((collector, claim), until)| (collector, claim, until)),
        error: task.error,
        history: kept.pasts.get(id).cloned().unwrap_or_default(),
    })
}

/// When it may have been: if the store says when, then, else from the later to the earlier and wherever something ends
/// between.
fn instants(
    kept: &in_memory::Store,
    act: &Act,
    seen: &Seen,
    before: Stamp,
    after: Stamp,
) -> Vec<Stamp> {
    let mut known: Vec<Stamp> = seen.tasks.iter().map(|task| task.changed).collect();
    if let Act::Extend(..) = act {
        let held = seen.tasks.iter().filter_map(|task| Some((task.held.as_ref()?.2, task)));
        known.extend(held.map(|(until, task)| {
            let lease = kept.tasks[&task.id].lease.unwrap_or_default();
            Stamp(until.0 - i64::try_from(lease.as_micros()).expect("short"))
        }));
    }
    if let Act::Block(name, lasting) = act {
        let view = seen.sources.iter().find(|view| view.name == *name).expect("known");
        let lasting = i64::try_from(lasting.as_micros()).expect("short");
        known.push(Stamp(view.blocked_until.0 - lasting));
    }
    known.retain(|at| (before..=after).contains(at));
    known.sort_unstable();
    known.dedup();
    if !known.is_empty() {
        return known;
    }
    let tasks = kept.tasks.values().flat_map(|task| [task.until, task.at]).flatten();
    let sources = kept.sources.values().flat_map(|source| {
        let gap = source.last_start.map(|last| last + source.rules.gap);
        let starts = kept.starts.get(&source.name).into_iter().flatten();
        let span = source.rules.window.map_or(Duration::ZERO, |window| window.span);
        let known = [source.blocked_until, source.promised_until].into_iter();
        known.chain(source.seat.opens).chain(gap).chain(starts.map(move |(at, _)| *at + span))
    });
    let patience = kept.queue.iter().map(|one| one.until);
    let claims = kept.claims.values().filter_map(|claim| match claim.kept {
        Kept::Granted { until, .. } => Some(until),
        Kept::Nothing { .. } => None,
    });
    let ends = tasks.chain(sources).chain(patience).chain(claims);
    let ends = ends.flat_map(|at| [at, Stamp(at.0 - 1)]);
    [after, before].into_iter().chain(ends.filter(|at| (before..=after).contains(at))).collect()
}

/// Without the instants that nobody outside sees.
fn timeless(kept: &in_memory::Store) -> in_memory::Store {
    let mut kept = kept.clone();
    kept.book.token = Token(0);
    for source in kept.sources.values_mut() {
        source.promised_until = Stamp(0);
        if source.blocked_until < Stamp(i64::MAX / 2) && source.seat.opens.is_none() {
            source.blocked_until = Stamp(0);
        }
    }
    kept.queue.iter_mut().for_each(|one| one.until = Stamp(0));
    kept.claims.values_mut().for_each(|claim| claim.forget = Stamp(0));
    kept.seen.clear();
    kept
}

/// How many steps were compared.
async fn agree(real: Store, seed: u64) -> usize {
    let mut play = Play::new(real, seed).await;
    for step in 0..STEPS {
        let long = play.dice.random_ratio(1, 15);
        // Promises last for milliseconds, whatever else lasts for minutes.
        let unit = if play.dice.random_bool(0.5) { play.unit } else { MS };
        let short = unit * play.dice.random_range(0..6);
        pass(&play.real, if long { PROMISE + MS * 10 } else { short }).await;
        // Shown when they do not agree.
        println!("seed {seed}, step {step}");
        if !play.step().await {
            return step;
        }
    }
    STEPS
}

super::on_every_store!(agree, STEPS, 18, 12, 4);
