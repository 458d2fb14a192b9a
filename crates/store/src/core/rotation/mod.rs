//! Rotations on any [`Records`]: look, let [`Round`] decide, change on condition.
//!
//! | file | what |
//! | --- | --- |
//! | `names` | where everything stands |
//! | `record` | a rotation and those who wait, as texts |
//! | `known` | what this process remembers |
//! | `look` | what a transition is decided on |
//! | `plan` | what a decision writes, and on which condition |
//! | `calls` | the calls of [`Rotations`](crate::rotation::Rotations) |
//! | `pump` | what is due without a client |
//! | `view` | a rotation as everybody outside sees it |
//! | `fill` | the rotation of another store |
//!
//! Nothing here is a rule of rotations: these are `domain::rotation`'s.
//!
//! **Memory.** A transition is decided first on what this process remembers of the record and of the first who wait. The change
//! is refused when the record is another, or another waiter is first in a queue that mattered; then it is decided again on what
//! is newest, which the refusal carries. An answer that writes nothing is decided on what was read for it.
//!
//! **Clock.** On what is remembered, the instant of a transition is [`Records::latest`]: not earlier than the store's clock was
//! when the caller sent its request, so no lease ends early for its holder. On what was read, it is the instant of the reading, which is
//! later than the request as well. The change must be carried out close to that instant, with no instant between the two that
//! the decision compared with its own ([`Rotation::edges`](soloist_domain::rotation::Rotation::edges)): then it is the decision
//! of the store's clock, too.

mod calls;
mod fill;
mod known;
mod look;
mod names;
mod plan;
mod pump;
mod record;
mod remove;
mod view;

pub use self::fill::fill;
pub use self::known::KnownTurns;
use self::known::News;

use std::time::Duration;

use self::look::{Counts, DEEPEST, DEPTH, Lined, Seen, Unknown, Wanted, deeper, look};
use self::plan::{Decided, Planned};
use super::super::records::{Changed, Records, Write};
use super::super::{Result, StoreError};
use super::noted;
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, Waiter};
use soloist_domain::rotation::{
    Caller, Change, Queues, Rotation, Round, Rules, TurnAsk, UnknownType,
};
use soloist_domain::time::Stamp;

/// How often a change is decided anew. One of those that write at once always wins, so no change comes close to this.
const ATTEMPTS: usize = 64;
/// What was written last was written before now, although a process may have taken its instant for so much later.
const AHEAD: Duration = Duration::from_millis(250);

/// A clock that is behind is waited for so long at a time.
const SHORT: Duration = Duration::from_millis(5);

/// A transition that is asked for.
#[derive(Clone, Copy)]
struct Errand<'a> {
    name: &'a RotationName,
    caller: Caller<'a>,
    /// The turn that it is meant to end.
    ends: Option<Token>,
    /// Of a turn that ended, the answer says how.
    about: Option<Token>,
    /// The rules that the rotation shall have, also when it does not exist.
    rules: Option<&'a Rules>,
    /// Done twice it would be answered otherwise: it is never sent again.
    once: bool,
}

impl<'a> Errand<'a> {
    fn new(name: &'a RotationName, caller: Caller<'a>) -> Self {
        Self { name, caller, ends: None, about: None, rules: None, once: false }
    }

    fn ask(&self) -> Option<&'a TurnAsk> {
        if let Caller::Asker(ask) = self.caller { Some(ask) } else { None }
    }

    /// Who asks and may wait.
    fn sitting(&self) -> Option<(&'a TurnAsk, &'a Waiter)> {
        let ask = self.ask()?;
        Some((ask, ask.waiter()?))
    }

    /// Types that are gone by this.
    fn dismisses(&self, rotation: &Rotation) -> bool {
        let gone =
            |rules: &Rules| rotation.rules.types.iter().any(|kind| rules.of(&kind.name).is_none());
        self.rules.is_some_and(gone)
    }
}

/// What came of a transition.
struct Carried<T> {
    answer: T,
    /// The rotation from now on.
    rotation: Rotation,
    /// Of who asked.
    counts: Option<Counts>,
    /// When it was decided.
    now: Stamp,
}

/// Looks, lets `act` decide, and carries out what it says. `counted`: of this answer it must be known how many are ahead.
///
/// # Errors
/// [`StoreError::NotFound`] for a rotation or a type, [`StoreError::Unavailable`].
async fn decide<T: Send>(
    store: &dyn Records,
    errand: &Errand<'_>,
    counted: impl Fn(&T) -> bool + Sync,
    act: impl Fn(Round, &Queues, &Seen) -> Decision<T> + Sync,
) -> Result<Carried<T>> {
    let mut answer = None;
    let carried = carry_out(store, errand, &mut |round, queues, seen| {
        Ok(act(round, queues, seen)?.map(|change| {
            let (said, change) = change.apart();
            let counts = counted(&said);
            answer = Some(said);
            Change { answer: counts, rotation: change.rotation, writes: change.writes }
        }))
    })
    .await?;
    let Carried { rotation, counts, now, .. } = carried;
    Ok(Carried { answer: answer.ok_or_else(|| too_often(errand.name))?, rotation, counts, now })
}

/// What an act decides, or that the rotation has no such type.
type Decision<T> = Result<std::result::Result<Change<T>, UnknownType>>;

/// As [`decide`], which keeps the answer. What is decided last counts, and says whether it must be known how many are ahead.
async fn carry_out(
    store: &dyn Records,
    errand: &Errand<'_>,
    act: &mut (dyn FnMut(Round, &Queues, &Seen) -> Decision<bool> + Send),
) -> Result<Carried<()>> {
    let mut depth = DEPTH;
    let mut next = Seen::remembered(store.turns(), errand);
    let gate = store.turns().gate(errand.name);
    let (mut inside, mut entered) = (None, false);
    for attempt in 0..ATTEMPTS {
        let seen = match next.take() {
            Some(seen) => seen,
            None => look(store, errand, None, 0).await?,
        };
        let fresh = seen.at.is_some();
        let Some(now) = instant(store, &seen) else {
            next = Some(look(store, errand, seen.case, 0).await?);
            continue;
        };
        let before = match (&seen.case, errand.rules) {
            (Some(case), _) => case.body.rotation.clone(),
            (None, Some(rules)) => Rotation::new(rules.clone(), &seen.memory),
            (None, None) => return Err(unknown(errand.name)),
        };
        let round = Round::begin(before.clone(), &seen.memory, errand.caller, now);
        let had = seen.had(errand)?.filter(|(_, until)| *until > now);
        let promised = errand.ask().is_some_and(|ask| round.is_promised_to(ask));
        let dismisses = errand.dismisses(&before);
        let matters =
            round.looks_at_queues(errand.caller, errand.ends) && (!promised || had.is_some());
        let wanted_depth = match (dismisses, matters) {
            (true, _) => DEEPEST,
            (false, true) => depth,
            (false, false) => 0,
        };
        let mut lined = Lined::default();
        if wanted_depth > 0 {
            match seen.line(errand, &round) {
                Ok(line) => lined = line,
                Err(why) => {
                    if matches!(why, Unknown::TooFew) && fresh {
                        depth = deeper(depth);
                    }
                    next = Some(look(store, errand, seen.case, wanted_depth.max(depth)).await?);
                    continue;
                }
            }
        }
        let of_a_former_turn = errand
            .about
            .is_some_and(|token| before.ring.turn.as_ref().is_none_or(|turn| turn.token != token));
        if of_a_former_turn && !fresh {
            next = Some(look(store, errand, seen.case, wanted_depth).await?);
            continue;
        }
        let change = match act(round, &lined.queues, &seen)? {
            Ok(change) => change,
            Err(UnknownType(kind)) if fresh => {
                let what = format!("a type {kind} of rotation {}", errand.name);
                return Err(StoreError::NotFound(what));
            }
            Err(_) => {
                next = Some(look(store, errand, None, 0).await?);
                continue;
            }
        };
        let (must_count, change) = change.apart();
        let rotation = change.rotation.clone();
        let entered_now = entered && seen.waiting.is_some();
        let before = &before;
        let decided =
            Decided { errand, seen: &seen, lined, before, now, attempt, entered: entered_now };
        let Some(planned) = decided.plan(change)? else {
            if fresh && (!must_count || seen.counts.is_some()) {
                return Ok(Carried { answer: (), rotation, counts: seen.counts, now });
            }
            next = Some(look(store, errand, seen.case, wanted_depth).await?);
            continue;
        };
        let Planned { mut plan, case, mut news, row, queue, only_enters } = planned;
        if only_enters {
            let wanted = Wanted::entered(errand, &seen, wanted_depth, queue);
            let looks = wanted.looks();
            let (changed, looked) = store.change_and_look(&plan, &looks, &looks).await?;
            entered = changed == Changed::Done;
            let found = wanted.read(looked)?;
            if let (Some((waiter, row)), true) = (row, entered) {
                store.turns().put_row(errand.name, &waiter, row);
            }
            if !entered {
                let starts = plan.within.as_ref().map(|within| within.start);
                wait_for(found.at, starts.filter(|_| fresh)).await;
            }
            // Else another process has found out that the store may have forgotten something.
            next = Some(found).filter(Seen::knows_the_store);
            if let Some(read) = next.as_ref().and_then(Seen::to_remember) {
                store.turns().put(errand.name, read);
            }
            continue;
        }
        if let Some(entry) = store.note() {
            plan.writes.push(Write::Log(noted(entry)?));
            plan.once = true;
        }
        let starts = plan.within.as_ref().map(|within| within.start);
        let after = must_count.then(|| Wanted::after(errand, &case, queue));
        let newest = Wanted::of(errand, seen.case.as_ref(), wanted_depth);
        let done = after.as_ref().map(Wanted::beside).unwrap_or_default();
        let changed = store.change_and_look(&plan, &done, &newest.looks()).await;
        match changed {
            Ok((Changed::Done, looked)) => {
                let mut counts = None;
                if let Some(after) = after {
                    let heads;
                    (heads, counts) = after.read_beside(&mut looked.found.into_iter())?;
                    news.extend(heads.into_iter().map(|(queue, heads)| News::Is(queue, heads)));
                }
                if let Some(decided) = seen.to_remember() {
                    store.turns().done(errand.name, decided, case, news);
                }
                if let Some((waiter, row)) = row {
                    store.turns().put_row(errand.name, &waiter, row);
                }
                return Ok(Carried { answer: (), rotation, counts, now });
            }
            Ok((Changed::Refused, looked)) => {
                let newest = newest.read(looked)?;
                wait_for(newest.at, starts.filter(|_| fresh)).await;
                if let Some(read) = newest.to_remember() {
                    store.turns().put(errand.name, read);
                }
                next = Some(newest);
                if inside.is_none() {
                    inside = Some(gate.lock().await);
                    // Who went before may have changed it since.
                    next = Seen::remembered(store.turns(), errand);
                }
            }
            Err(error) => {
                store.turns().forget(errand.name);
                return Err(error);
            }
        }
    }
    Err(too_often(errand.name))
}

/// What was written last lies ahead of the store's clock by a little: until the clock, which is at `at`, reaches `starts`, too.
async fn wait_for(at: Option<Stamp>, starts: Option<Stamp>) {
    let early = at.zip(starts).map(|(at, starts)| starts.since(at));
    if let Some(early) = early.filter(|early| !early.is_zero()) {
        tokio::time::sleep(early.min(SHORT)).await;
    }
}

fn too_often(rotation: &RotationName) -> StoreError {
    StoreError::Unavailable(format!("{rotation} is changed too often at this moment"))
}

/// The instant at which is decided; `None`: nothing is known of the store's clock.
fn instant(store: &dyn Records, seen: &Seen) -> Option<Stamp> {
    let now = match seen.at {
        Some(at) => at,
        None => store.latest()?,
    };
    let written = seen.case.as_ref().and_then(record::Case::written);
    Some(written.filter(|at| *at <= now + AHEAD).map_or(now, |at| at.max(now)))
}

fn unknown(rotation: &RotationName) -> StoreError {
    StoreError::NotFound(format!("rotation {rotation}"))
}
