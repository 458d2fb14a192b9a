//! How far a rotation has come, and whose turn it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Rules, Skip, TypeRules};
use crate::lease::Token;
use crate::name::{RequestId, TypeName, WorkerName};
use crate::time::Stamp;

/// A turn that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Turn {
    /// Names the turn, too: no other turn of this rotation has it.
    pub token: Token,
    pub kind: TypeName,
    pub worker: WorkerName,
    pub request: RequestId,
    pub since: Stamp,
    pub until: Stamp,
    /// How long it lasts from each extension: as the rules were when it began. Its holder trusts that long, and must not be told
    /// later that it was less.
    pub lease: Duration,
}

/// Starts of one type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Starts {
    /// The newest.
    pub newest: Stamp,
    /// The newest of them, oldest first, as many as the quota counts.
    pub recent: VecDeque<Stamp>,
}

/// The state of a rotation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Ring {
    /// Of the newest turn; 0 before the first.
    pub token: Token,
    /// Who has it.
    pub turn: Option<Turn>,
    /// The type of the newest turn: the order goes on behind it.
    pub after: Option<TypeName>,
    /// When the newest turn started.
    pub last_start: Option<Stamp>,
    /// Who comes next by the word of who passed; then the order goes on behind that one.
    pub next: Option<TypeName>,
    /// No turn starts before this, by the same word.
    pub not_before: Stamp,
    /// Nor before this: the store may have forgotten a turn that lasts until then.
    #[serde(default)]
    pub recovered_at: Stamp,
    /// Of each type that ever had a turn.
    pub starts: BTreeMap<TypeName, Starts>,
}

/// Why a worker waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A worker holds the turn.
    Held,
    /// The gap of the rotation or of the type is not over.
    Gap,
    /// The type's quota is used up for now.
    Quota,
    /// The last holder said so.
    NotBefore,
    /// The store may have forgotten a turn that a worker still holds.
    Recovery,
    /// Another comes first.
    Order,
    /// The type that comes first has no waiter, and types are not skipped.
    Absent,
    /// No worker waits.
    Idle,
}

/// Whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This type's, now.
    Now(TypeName),
    /// No type's yet.
    Later {
        /// Why.
        reason: Reason,
        /// When looking again may help if nothing else happens before.
        until: Option<Stamp>,
        /// Whose it will be then, if that is known.
        kind: Option<TypeName>,
    },
}

/// How a turn ended, as its holder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TurnOutcome {
    Done,
    /// There was nothing to do.
    Empty,
    Failed,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "as in TurnOutcome")]
pub enum Ending {
    Done,
    Empty,
    Failed,
    /// Its lease ran out, or no worker received it.
    Lost,
}

impl Ending {
    /// The word for it in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Empty => "empty",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

impl From<TurnOutcome> for Ending {
    fn from(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Done => Self::Done,
            TurnOutcome::Empty => Self::Empty,
            TurnOutcome::Failed => Self::Failed,
        }
    }
}

impl Ring {
    /// The types in the order in which their turns come, beginning with the next.
    pub fn order<'r>(&self, rules: &'r Rules) -> impl Iterator<Item = &'r TypeRules> {
        let place = |kind: &Option<TypeName>| kind.as_ref().and_then(|kind| rules.place(kind));
        let first = place(&self.next).or_else(|| place(&self.after).map(|at| at + 1)).unwrap_or(0);
        let count = rules.types.len().max(1);
        (0..rules.types.len()).map(move |nth| &rules.types[(first + nth) % count])
    }

    /// Whose turn it is at `now`, if workers wait for the types that `waits` names.
    pub fn choose(&self, rules: &Rules, waits: impl Fn(&TypeName) -> bool, now: Stamp) -> Choice {
        if let Some(turn) = &self.turn {
            return Choice::Later { reason: Reason::Held, until: Some(turn.until), kind: None };
        }
        let mut order = self.order(rules);
        if rules.skip == Skip::Never {
            let Some(first) = order.next() else {
                return Choice::Later { reason: Reason::Idle, until: None, kind: None };
            };
            let kind = Some(first.name.clone());
            if !waits(&first.name) {
                return Choice::Later { reason: Reason::Absent, until: None, kind };
            }
            return match self.earliest(rules, first, now) {
                (_, Reason::Order) => Choice::Now(first.name.clone()),
                (until, reason) => Choice::Later { reason, until: Some(until), kind },
            };
        }
        let mut soonest: Option<(Stamp, Reason, &TypeName)> = None;
        for kind in order.filter(|kind| waits(&kind.name)) {
            let (at, reason) = self.earliest(rules, kind, now);
            if reason == Reason::Order {
                return Choice::Now(kind.name.clone());
            }
            if soonest.is_none_or(|(before, ..)| at < before) {
                soonest = Some((at, reason, &kind.name));
            }
        }
        match soonest {
            Some((at, reason, kind)) => {
                Choice::Later { reason, until: Some(at), kind: Some(kind.clone()) }
            }
            None => Choice::Later { reason: Reason::Idle, until: None, kind: None },
        }
    }

    /// The instants before which a type does not start, each with its reason.
    fn limits(&self, rules: &Rules, kind: &TypeRules) -> [(Option<Stamp>, Reason); 5] {
        // Without a gap a clock that was set back delays no type.
        let after = |last: Stamp, gap: Duration| (!gap.is_zero()).then(|| last + gap);
        let starts = self.starts.get(&kind.name);
        let quota = kind.quota.zip(starts).and_then(|(quota, starts)| {
            let count = usize::try_from(quota.count).unwrap_or(usize::MAX);
            let counted = starts.recent.len().checked_sub(count)?;
            Some(*starts.recent.get(counted)? + quota.span)
        });
        [
            (Some(self.recovered_at), Reason::Recovery),
            (self.last_start.and_then(|last| after(last, rules.min_gap)), Reason::Gap),
            (Some(self.not_before), Reason::NotBefore),
            (starts.and_then(|starts| after(starts.newest, kind.gap)), Reason::Gap),
            (quota, Reason::Quota),
        ]
    }

    /// Every instant that anything here is compared with: between two of them the same is decided.
    pub(super) fn edges(&self, rules: &Rules) -> impl Iterator<Item = Stamp> {
        let limits = rules.types.iter().flat_map(|kind| self.limits(rules, kind));
        limits.filter_map(|(at, _)| at).chain(self.turn.iter().map(|turn| turn.until))
    }

    /// The first instant, not before `now`, at which a type could start if the turn were free and no other type came first,
    /// and what it has to wait for until then; [`Reason::Order`] when that is nothing.
    #[must_use]
    pub fn earliest(&self, rules: &Rules, kind: &TypeRules, now: Stamp) -> (Stamp, Reason) {
        // Of equals the first names the reason.
        let mut latest = (now, Reason::Order);
        for (at, reason) in self.limits(rules, kind) {
            if let Some(at) = at.filter(|at| *at > latest.0) {
                latest = (at, reason);
            }
        }
        latest
    }

    /// A turn starts. Only after [`Self::choose`] said so; the token is newer than every other.
    pub fn start(
        &mut self,
        rules: &Rules,
        kind: &TypeName,
        worker: &WorkerName,
        request: &RequestId,
        now: Stamp,
    ) -> &Turn {
        // 1,024 a millisecond, as all tokens; by the microsecond, so that a rotation that was removed and made again in one
        // millisecond, and knows nothing of the one before, has newer tokens.
        let clock = u64::try_from(now.0).unwrap_or(0).saturating_mul(1_024) / 1_000;
        self.token = Token(clock.max(self.token.0 + 1));
        self.last_start = Some(now);
        self.after = Some(kind.clone());
        self.next = None;
        self.not_before = Stamp(0);
        let quota = rules.of(kind).and_then(|kind| kind.quota).map_or(0, |quota| quota.count);
        let starts = self.starts.entry(kind.clone()).or_default();
        starts.newest = now;
        starts.recent.push_back(now);
        while starts.recent.len() > usize::try_from(quota).unwrap_or(usize::MAX) {
            starts.recent.pop_front();
        }
        self.turn.insert(Turn {
            token: self.token,
            kind: kind.clone(),
            worker: worker.clone(),
            request: request.clone(),
            since: now,
            until: now + rules.lease,
            lease: rules.lease,
        })
    }

    /// The turn lasts for another lease from now; `None` if it has no holder.
    pub fn extend(&mut self, now: Stamp) -> Option<&Turn> {
        let turn = self.turn.as_mut()?;
        turn.until = now + turn.lease;
        Some(turn)
    }

    /// The turn ends by its holder's word.
    pub fn pass(&mut self, next: Option<TypeName>, not_before: Option<Stamp>) -> Option<Turn> {
        let turn = self.turn.take()?;
        self.next = next;
        self.not_before = not_before.unwrap_or_default();
        Some(turn)
    }

    /// The turn ends if its lease is over.
    pub fn expire(&mut self, now: Stamp) -> Option<Turn> {
        self.turn.take_if(|turn| turn.until <= now)
    }

    /// The rules change from `old` to `new`. The holder keeps the turn, with its lease, also when its type is gone; the order goes
    /// on behind the last type before it that is left.
    pub fn adapt(&mut self, old: &Rules, new: &Rules) {
        self.next = self.next.take().filter(|kind| new.of(kind).is_some());
        if let Some(after) = self.after.take() {
            let at = old.place(&after);
            let before = at.into_iter().flat_map(|at| {
                let count = old.types.len();
                (0..count).map(move |back| &old.types[(at + count - back) % count].name)
            });
            self.after = before.into_iter().find(|kind| new.of(kind).is_some()).cloned();
        }
        self.starts.retain(|kind, _| new.of(kind).is_some());
    }
}
