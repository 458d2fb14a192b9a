//! One transition of a rotation: it begins with the record and ends with one act. Nothing here reads a clock or knows a
//! store.
//!
//! A store loads the record, [begins](Round::begin), loads who waits
//! [if the act looks at that](Round::looks_at_queues), calls one of the acts, and commits what the act says in one atomic
//! step, on condition that nothing it read has changed: the record, and who is first in the queues that it loaded. When
//! an act refuses, the store writes nothing.
//!
//! The laws:
//!
//! - **One holder.** A turn begins only when no other lasts, after the gap of the rotation, the gap and the quota of its
//!   type and the instant that the last holder named, and in the cyclic order of types
//!   ([`Ring::choose`](super::Ring::choose)). Its token exceeds every earlier one.
//! - **Only the present holder counts.** A former holder can neither extend nor pass a turn; the answer says how its own
//!   ended.
//! - **A turn ends with its lease**, whichever act comes next. It is reported as lost once.
//! - **The same request has the same turn** until a minute after its lease. A turn that never reached its worker can be
//!   given back together with its request, unless the request was answered again.
//! - **First come, first served** within a type. The transition that opens the turn for a type promises it to the first
//!   waiter of that type and wakes it. No other waiter gets the turn meanwhile.
//! - **A promise lapses** after [`PROMISE`], when a caller other than its waiter comes. The waiter loses its place, and the
//!   other waiters of the same node incarnation are suspended until that incarnation renews itself or asks: it may have died
//!   with a thousand waiters. Then they stand where they stood. A waiter that comes late, but before all others, still gets
//!   its turn. New rules end a promise, too.
//! - **No turn begins in doubt.** When the store may have forgotten a turn, none begins for the longest time that one may
//!   last.
//!
//! Each transition looks at the doubt first. A store for which that look is costly may do it only before a turn may begin
//! or when a turn is extended; then the wait counts from that later instant.

use super::record::{Change, Memory, Promise, Queues, Rotation, Write};
use super::turns::{Kept, PROMISE, Pass, PastTurn, REQUEST_KEPT, SILENT_FOR, Taken, TurnAsk};
use super::{Choice, Ending, Reason, Rules, Skip, Turn};
use crate::lease::Token;
use crate::name::{TypeName, Waiter, WorkerName};
use crate::time::Stamp;

/// The rotation has no such type: nothing is to be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no type {0}")]
pub struct UnknownType(pub TypeName);

/// Who calls for a transition.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// A worker who asks for a turn.
    Asker(&'a TurnAsk),
    /// A waiter who waits no more.
    Leaver(&'a Waiter),
    /// A node incarnation renews itself.
    Node(&'a str),
    /// The present rules are replaced, and with them every promise.
    Rules,
    /// A holder, or the pump because something is due.
    Clock,
}

/// A transition under way.
#[derive(Debug, Clone)]
pub struct Round {
    rotation: Rotation,
    now: Stamp,
    writes: Vec<Write>,
    /// Nobody begins before the record is due, nor does who asks: who waits makes no difference.
    rests: bool,
}

impl Round {
    /// Begins at `now`: looks at what the store may have forgotten, ends a promise that was not taken up, and ends the
    /// suspension of the caller's incarnation.
    #[must_use]
    pub fn begin(rotation: Rotation, memory: &Memory, caller: Caller<'_>, now: Stamp) -> Self {
        let mut round = Self { rotation, now, writes: Vec::new(), rests: false };
        let found_out = round.look(memory);
        round.lapse(caller);
        let silent = round.rotation.silent.len();
        round.rotation.silent.retain(|_, until| *until > now);
        let incarnation = match caller {
            Caller::Asker(ask) => ask.waiter().map(Waiter::incarnation),
            Caller::Node(incarnation) => Some(incarnation),
            Caller::Leaver(_) | Caller::Rules | Caller::Clock => None,
        };
        if let Some(incarnation) = incarnation {
            round.rotation.silent.remove(incarnation);
        }
        let same = !found_out && round.rotation.silent.len() == silent;
        round.rests = same && round.nobody_begins(caller);
        round
    }

    /// As it is known so far: which incarnations are silent is decided.
    #[must_use]
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// The instant of this transition.
    #[must_use]
    pub fn now(&self) -> Stamp {
        self.now
    }

    /// Whether an act looks at the waiters: not while the turn is held and goes on, nor while it is promised to another than
    /// who calls, nor for who asks during a gap. `ends` is the turn that the act is meant to end.
    #[must_use]
    pub fn looks_at_queues(&self, caller: Caller<'_>, ends: Option<Token>) -> bool {
        let Rotation { ring, rules, promise, .. } = &self.rotation;
        if self.rests {
            return false;
        }
        if let Some(Promise { waiter, .. }) = promise {
            return match caller {
                // Whether the type that comes first has a waiter is said to who waits, if types are not skipped.
                Caller::Asker(ask) => ask.waiter() == Some(waiter) || rules.skip == Skip::Never,
                Caller::Leaver(leaver) => leaver == waiter,
                Caller::Rules => true,
                Caller::Node(_) | Caller::Clock => false,
            };
        }
        let goes_on = |turn: &Turn| turn.until > self.now && ends != Some(turn.token);
        !ring.turn.as_ref().is_some_and(goes_on)
    }

    /// Whether the turn is promised to the waiter that asks. Then no place in a queue matters, if the request had no turn
    /// before.
    #[must_use]
    pub fn is_promised_to(&self, ask: &TurnAsk) -> bool {
        let promise = self.rotation.promise.as_ref();
        promise.is_some_and(|it| ask.waiter() == Some(&it.waiter) && ask.kind == it.kind)
    }

    /// Answers a request for a turn. `had` is the turn that this request has or had, if it is known. `ahead` of the
    /// answer is left at 0, for [`Rotation::ahead`].
    ///
    /// # Errors
    /// [`UnknownType`].
    pub fn take(
        mut self,
        ask: &TurnAsk,
        had: Option<Token>,
        queues: &Queues,
    ) -> Result<Change<Taken>, UnknownType> {
        self.check(&ask.kind)?;
        self.expire();
        if let Some(token) = had {
            self.strike(ask.waiter());
            let answer = match self.rotation.ring.turn.clone().filter(|turn| turn.token == token) {
                Some(turn) => {
                    self.rotation.seen = true;
                    Taken::Granted(turn)
                }
                None => Taken::Over(token),
            };
            return Ok(self.settle(answer, queues));
        }
        let answer = if self.is_turn_of(ask, queues) {
            self.strike(ask.waiter());
            Taken::Granted(self.start(ask))
        } else {
            self.wait(ask, queues)
        };
        Ok(self.settle(answer, queues))
    }

    /// The turn lasts for another lease from now. `past` is how it ended, if it did and that is remembered.
    #[must_use]
    pub fn extend(
        mut self,
        token: Token,
        only: Option<&WorkerName>,
        past: Option<PastTurn>,
        queues: &Queues,
    ) -> Change<Kept> {
        self.expire();
        let mut kept = self.own(token, only, past);
        if let Kept::Yes(answer) = &mut kept
            && let Some(turn) = self.rotation.ring.extend(self.now)
        {
            answer.clone_from(turn);
            self.writes.push(Write::Note(turn.clone(), turn.until + REQUEST_KEPT));
        }
        self.settle(kept, queues)
    }

    /// The turn ends by its holder's word. `past` as in [`Self::extend`].
    ///
    /// # Errors
    /// [`UnknownType`]: the holder names as next what is none.
    pub fn pass(
        mut self,
        pass: &Pass,
        past: Option<PastTurn>,
        queues: &Queues,
    ) -> Result<Change<Kept>, UnknownType> {
        if let Some(next) = &pass.next {
            self.check(next)?;
        }
        self.expire();
        let kept = self.own(pass.turn, pass.only.as_ref(), past);
        if let Kept::Yes(turn) = &kept {
            self.rotation.ring.pass(pass.next.clone(), pass.not_before);
            self.end(turn, self.now, pass.outcome.into());
        }
        Ok(self.settle(kept, queues))
    }

    /// Ends the turn if only its node knows of it; says whether it did. Its request can be made again, also when its lease
    /// is over and no transition has noticed.
    #[must_use]
    pub fn give_back(mut self, token: Token, queues: &Queues) -> Change<bool> {
        let unseen = |turn: &Turn| turn.token == token && !self.rotation.seen;
        let unseen = self.rotation.ring.turn.as_ref().is_some_and(unseen);
        if unseen && let Some(turn) = self.rotation.ring.pass(None, None) {
            self.end(&turn, self.now, Ending::Lost);
            self.writes.push(Write::Forget(turn));
        }
        self.settle(unseen, queues)
    }

    /// A waiter waits no more, and makes way if it was promised the turn.
    #[must_use]
    pub fn leave(mut self, waiter: &Waiter, queues: &Queues) -> Change<()> {
        self.strike(Some(waiter));
        self.settle((), queues)
    }

    /// The rules are these from now on. The holder of the turn keeps it; a waiter for a type that is gone is woken, and
    /// finds it gone.
    #[must_use]
    pub fn define(mut self, rules: &Rules, queues: &Queues) -> Change<()> {
        self.expire();
        let old = std::mem::replace(&mut self.rotation.rules, rules.clone());
        self.rotation.ring.adapt(&old, rules);
        let gone = old.types.into_iter().filter(|kind| rules.of(&kind.name).is_none());
        self.writes.extend(gone.map(|kind| Write::Dismiss(kind.name)));
        // Under these it may be another type's turn, or no type's yet.
        self.rotation.promise = None;
        self.settle((), queues)
    }

    /// What the clock alone has made due. Done twice it does no more than once.
    #[must_use]
    pub fn pump(mut self, queues: &Queues) -> Change<()> {
        self.expire();
        self.settle((), queues)
    }

    /// No turn begins until each turn that the store may have forgotten has run out. An earlier promise may have lapsed,
    /// and another turn may have begun. `true`: that was found out just now.
    fn look(&mut self, memory: &Memory) -> bool {
        let Rotation { known, ring, rules, promise, .. } = &mut self.rotation;
        let forgot = if known.server == memory.server {
            memory.forgot.filter(|at| known.forgot.is_none_or(|known| known < *at))
        } else {
            Some(self.now)
        };
        let Some(forgot) = forgot else { return false };
        *known = Memory { server: memory.server.clone(), forgot: Some(forgot) };
        *promise = None;
        let lease = ring.turn.as_ref().map_or(rules.lease, |turn| turn.lease.max(rules.lease));
        ring.recovered_at = ring.recovered_at.max(forgot + lease.max(rules.min_gap));
        true
    }

    /// A promise that was not taken up in time lapses, unless its own waiter calls.
    fn lapse(&mut self, caller: Caller<'_>) {
        let now = self.now;
        let spared = |promise: &Promise| match caller {
            Caller::Asker(ask) => ask.waiter() == Some(&promise.waiter) && ask.kind == promise.kind,
            Caller::Leaver(waiter) => *waiter == promise.waiter,
            Caller::Rules => true,
            Caller::Node(_) | Caller::Clock => false,
        };
        let over = |promise: &mut Promise| promise.until <= now && !spared(promise);
        if let Some(promise) = self.rotation.promise.take_if(over) {
            self.rotation.silent.insert(promise.waiter.incarnation().to_owned(), now + SILENT_FOR);
            self.writes.push(Write::Strike(promise.waiter));
        }
    }

    /// Whether the record is due later, and the type of who asks opens no sooner. Who left since may have made it due too early:
    /// then the clock finds nothing to do.
    fn nobody_begins(&self, caller: Caller<'_>) -> bool {
        let Caller::Asker(ask) = caller else { return false };
        let Rotation { ring, rules, promise, due, .. } = &self.rotation;
        let opens = rules.of(&ask.kind).map(|kind| ring.earliest(rules, kind, self.now).0);
        let later = due.zip(opens).is_some_and(|(due, opens)| self.now < due && due <= opens);
        later && ring.turn.is_none() && promise.is_none()
    }

    /// Ends a turn whose lease has run out.
    fn expire(&mut self) {
        if let Some(turn) = self.rotation.ring.expire(self.now) {
            self.end(&turn, turn.until, Ending::Lost);
            self.writes.push(Write::Report(turn));
        }
    }

    fn end(&mut self, turn: &Turn, ended: Stamp, ending: Ending) {
        let Turn { token, kind, worker, since, .. } = turn.clone();
        self.writes.push(Write::Remember(PastTurn { token, kind, worker, since, ended, ending }));
    }

    /// The waiter waits no more; what it was promised is free.
    fn strike(&mut self, waiter: Option<&Waiter>) {
        if let Some(waiter) = waiter {
            self.rotation.promise.take_if(|promise| promise.waiter == *waiter);
            self.writes.push(Write::Strike(waiter.clone()));
        }
    }

    fn check(&self, kind: &TypeName) -> Result<(), UnknownType> {
        self.rotation.rules.of(kind).map(drop).ok_or_else(|| UnknownType(kind.clone()))
    }

    /// Whether that turn is the present one, and this worker's.
    fn own(&self, token: Token, only: Option<&WorkerName>, past: Option<PastTurn>) -> Kept {
        match &self.rotation.ring.turn {
            Some(own) if own.token == token && only.is_none_or(|only| *only == own.worker) => {
                Kept::Yes(own.clone())
            }
            holder => {
                let just_now = self.writes.iter().find_map(|write| match write {
                    Write::Remember(past) if past.token == token => Some(past.clone()),
                    _ => None,
                });
                Kept::Stale { past: just_now.or(past), holder: holder.clone() }
            }
        }
    }

    /// Whether who asks now has the turn.
    fn is_turn_of(&self, ask: &TurnAsk, queues: &Queues) -> bool {
        let Rotation { ring, rules, promise, .. } = &self.rotation;
        if promise.is_some() {
            return self.is_promised_to(ask);
        }
        let waits = |kind: &TypeName| *kind == ask.kind || self.first(queues, kind).is_some();
        ring.choose(rules, waits, self.now) == Choice::Now(ask.kind.clone())
            && self.first(queues, &ask.kind).is_none_or(|first| Some(first) == ask.waiter())
    }

    fn start(&mut self, ask: &TurnAsk) -> Turn {
        let Rotation { ring, rules, seen, .. } = &mut self.rotation;
        *seen = false;
        let turn = ring.start(rules, &ask.kind, &ask.worker, &ask.request, self.now).clone();
        self.writes.push(Write::Note(turn.clone(), turn.until + REQUEST_KEPT));
        turn
    }

    /// The asker waits, if it may, and is told what it waits for.
    fn wait(&mut self, ask: &TurnAsk, queues: &Queues) -> Taken {
        let Rotation { ring, rules, .. } = &self.rotation;
        let (earliest_at, blocked) = match rules.of(&ask.kind) {
            Some(kind) => ring.earliest(rules, kind, self.now),
            None => (self.now, Reason::Order),
        };
        let absent = || {
            let first = ring.order(rules).next().filter(|first| first.name != ask.kind);
            rules.skip == Skip::Never
                && first.is_some_and(|first| self.first(queues, &first.name).is_none())
        };
        let reason = match blocked {
            _ if ring.turn.is_some() => Reason::Held,
            Reason::Order if absent() => Reason::Absent,
            blocked => blocked,
        };
        let holder = ring.turn.clone();
        if let Some((waiter, patience)) = ask.wait.clone() {
            let (kind, worker, until) = (ask.kind.clone(), ask.worker.clone(), self.now + patience);
            self.writes.push(Write::Enter { waiter, kind, worker, until });
        }
        Taken::Waiting { holder, earliest_at, ahead: 0, reason }
    }

    /// The first who waits for `kind` and counts, with who came and without who left in this transition.
    fn first<'a>(&'a self, queues: &'a Queues, kind: &TypeName) -> Option<&'a Waiter> {
        let silent = |waiter: &Waiter| self.rotation.silent.contains_key(waiter.incarnation());
        let left = |waiter: &Waiter| {
            self.writes.iter().any(|write| matches!(write, Write::Strike(gone) if gone == waiter))
        };
        let came = self.writes.iter().find_map(|write| match write {
            Write::Enter { waiter, kind: of, .. } if of == kind => Some(waiter),
            _ => None,
        });
        let stand = queues.0.get(kind).into_iter().flatten();
        stand.filter(|waiter| !left(waiter) && !silent(waiter)).chain(came).next()
    }

    /// Promises the turn to the waiter whose turn it is, and notes when the clock alone changes something.
    fn settle<T>(mut self, answer: T, queues: &Queues) -> Change<T> {
        if self.rests {
            return Change { answer, rotation: self.rotation, writes: self.writes };
        }
        let waits = |kind: &TypeName| self.first(queues, kind).is_some();
        let Rotation { ring, rules, promise, .. } = &self.rotation;
        self.rotation.due = match (promise, ring.choose(rules, waits, self.now)) {
            (Some(promise), _) => Some(promise.until),
            (None, Choice::Later { until, .. }) => until,
            (None, Choice::Now(kind)) => {
                let until = self.now + PROMISE;
                if let Some(waiter) = self.first(queues, &kind).cloned() {
                    self.writes.push(Write::Wake(waiter.clone()));
                    self.rotation.promise = Some(Promise { waiter, kind, until });
                }
                Some(until)
            }
        };
        Change { answer, rotation: self.rotation, writes: self.writes }
    }
}
