//! Sources and rotations as JSON: what the API, the live socket and the command line show of them, defined once.

use serde::{Deserialize, Serialize};

use crate::rules::shown;
use crate::words::At;
use soloist_domain::dispatch::{Reason, Rules};
use soloist_domain::fields::Given;
use soloist_domain::name::TypeName;
use soloist_domain::rotation::{self, Choice, Reason as Why, Ring, Turn, TypeRules};
use soloist_domain::time::Stamp;
use soloist_store::dispatch::SourceView;
use soloist_store::rotation::{PastTurn, RotationView, TypeView, WaiterView};

/// An instant at which something may begin: never said too early.
#[must_use]
pub fn not_before(at: Stamp) -> At {
    At(at.ceil())
}

/// An instant at which something ends: never said too late.
#[must_use]
pub fn not_after(at: Stamp) -> At {
    At(at.floor())
}

/// A source: its rules, what it has, and whether it is served.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its rules.
    #[serde(flatten)]
    #[schema(schema_with = shown::<Rules>)]
    pub rules: Given<Rules>,
    /// No collector is served before this; null when it is not blocked.
    pub blocked_until: Option<At>,
    /// Tasks that may be claimed.
    pub ready: u64,
    /// Tasks that wait for an instant.
    pub due: u64,
    /// Tasks in collectors' hands.
    pub in_flight: u64,
    /// Tasks given up.
    pub dead: u64,
    /// Tasks done for good, ever.
    pub done: u64,
    /// Starts, ever.
    pub started: u64,
    /// Accepted as done, ever; recrawls too.
    pub finished: u64,
    /// Reported for another try, ever.
    pub retried: u64,
    /// Leases that ran out, ever.
    pub expired: u64,
    /// Why no collector is served now: `empty`, `gap`, `cap`, `paused` or `blocked`; null when it can be served.
    #[schema(value_type = Option<String>, example = "gap")]
    pub reason: Option<Reason>,
    /// When that may be over, as far as is known.
    pub next_at: Option<At>,
}

impl From<SourceView> for Source {
    fn from(view: SourceView) -> Self {
        let blocked = view.blocked_until > view.now;
        Self {
            name: view.name.to_string(),
            rules: Given::of(&view.rules),
            blocked_until: blocked.then(|| not_before(view.blocked_until)),
            ready: view.ready,
            due: view.due,
            in_flight: view.in_flight,
            dead: view.dead,
            done: view.done,
            started: view.started,
            finished: view.finished,
            retried: view.retried,
            expired: view.expired,
            reason: view.shut.map(|shut| shut.reason),
            next_at: view.shut.and_then(|shut| shut.until).map(not_before),
        }
    }
}

/// Sources, by name.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SourceList {
    /// The sources.
    pub sources: Vec<Source>,
    /// The store's clock when they were read; left out when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<At>,
}

impl From<Vec<SourceView>> for SourceList {
    fn from(views: Vec<SourceView>) -> Self {
        let now = views.first().map(|view| not_after(view.now));
        Self { sources: views.into_iter().map(Source::from).collect(), now }
    }
}

/// A type: its rules, who waits for it, and how its turns ended.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RotationType {
    /// Its name.
    pub name: String,
    /// Its rules.
    #[serde(flatten)]
    #[schema(schema_with = shown::<TypeRules>)]
    pub rules: Given<TypeRules>,
    /// How many wait for it.
    pub waiting: u64,
    /// Turns passed as done, ever.
    pub done: u64,
    /// Turns passed as empty, ever.
    pub empty: u64,
    /// Turns passed as failed, ever.
    pub failed: u64,
    /// Turns whose lease ran out, or whose grant no worker received, ever.
    pub lost: u64,
    /// What a start of this type waits for besides the order: `gap`, `quota`, `not_before` or `recovery`; left out when that is
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "quota")]
    pub reason: Option<String>,
    /// Until when; left out with `reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_at: Option<At>,
}

/// Who has the turn.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Holder {
    /// The turn's id; not told to collectors who wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// For which type.
    pub r#type: String,
    /// Who, as it calls itself.
    pub worker: String,
    /// When it started.
    pub since: At,
    /// Until when, unless it is extended or passed.
    pub lease_until: At,
}

impl Holder {
    /// As shown to those who may know the turn's id, or not.
    #[must_use]
    pub fn of(turn: &Turn, with_id: bool) -> Self {
        Self {
            turn: with_id.then(|| turn.token.to_string()),
            r#type: turn.kind.to_string(),
            worker: turn.worker.to_string(),
            since: not_after(turn.since),
            lease_until: not_after(turn.until),
        }
    }
}

/// Who comes next.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NextTurn {
    /// Of those that workers wait for, or with `skip` `never` the first in order; null when there is none.
    pub r#type: Option<String>,
    /// When it may start; null when it can start now, or when that is not known.
    pub at: Option<At>,
    /// What it waits for: `held`, `gap`, `quota`, `not_before`, `recovery` or `absent`; `idle` when no worker waits; null when it can
    /// start now.
    #[schema(example = "gap")]
    pub reason: Option<String>,
}

/// Who comes next, when and why then. Known also while a worker has the turn, but not when.
#[must_use]
pub fn coming(view: &RotationView) -> (Option<TypeName>, Option<Stamp>, Option<Why>) {
    let waits = |kind: &TypeName| view.types.iter().any(|one| one.kind == *kind && one.waiting > 0);
    let held = view.ring.turn.is_some();
    let free = Ring { turn: None, ..view.ring.clone() };
    match free.choose(&view.rules, waits, view.now) {
        Choice::Now(kind) => (Some(kind), None, held.then_some(Why::Held)),
        Choice::Later { kind, .. } if held => (kind, None, Some(Why::Held)),
        Choice::Later { reason, until, kind } => (kind, until, Some(reason)),
    }
}

impl NextTurn {
    fn of(view: &RotationView) -> Self {
        let (kind, at, reason) = coming(view);
        let r#type = kind.map(|kind| kind.to_string());
        Self { r#type, at: at.map(not_before), reason: reason.map(|why| word(why).to_owned()) }
    }
}

/// A worker that waits.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitingWorker {
    /// For which type.
    pub r#type: String,
    /// Who, as it calls itself.
    pub worker: String,
    /// At which node.
    pub node: String,
    /// Since when.
    pub since: At,
}

impl From<WaiterView> for WaitingWorker {
    fn from(view: WaiterView) -> Self {
        Self {
            r#type: view.kind.to_string(),
            worker: view.worker.to_string(),
            node: view.node.to_string(),
            since: not_after(view.since),
        }
    }
}

/// A turn that ended.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EndedTurn {
    /// Its id.
    pub turn: String,
    /// For which type.
    pub r#type: String,
    /// Whose it was.
    pub worker: String,
    /// When it started.
    pub since: At,
    /// When it was passed, or its lease ended.
    pub ended: At,
    /// `done`, `empty`, `failed` or `lost`.
    #[schema(example = "done")]
    pub outcome: String,
}

impl From<PastTurn> for EndedTurn {
    fn from(past: PastTurn) -> Self {
        Self {
            turn: past.token.to_string(),
            r#type: past.kind.to_string(),
            worker: past.worker.to_string(),
            since: not_after(past.since),
            ended: not_after(past.ended),
            outcome: past.ending.as_str().to_owned(),
        }
    }
}

/// A rotation: its rules, who has the turn, who comes next, who waits, and the last turns.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rotation {
    /// Its name.
    pub name: String,
    /// In the order of the rules.
    pub types: Vec<RotationType>,
    /// Its rules.
    #[serde(flatten)]
    #[schema(schema_with = shown::<rotation::Rules>)]
    pub rules: Given<rotation::Rules>,
    /// Who has the turn; null when it has no holder.
    pub holder: Option<Holder>,
    /// The types in the order in which their turns come, beginning with the next.
    pub order: Vec<String>,
    /// Who comes next.
    pub next: NextTurn,
    /// In the order in which they came; the first 100.
    pub waiters: Vec<WaitingWorker>,
    /// The last turns that ended, newest first.
    pub turns: Vec<EndedTurn>,
}

impl From<RotationView> for Rotation {
    fn from(view: RotationView) -> Self {
        let next = NextTurn::of(&view);
        let order = view.ring.order(&view.rules).map(|kind| kind.name.to_string()).collect();
        let types = view.rules.types.iter().zip(view.types).map(|(kind, counts)| {
            let TypeView { waiting, done, empty, failed, lost, .. } = counts;
            let (reason, earliest_at) = match view.ring.earliest(&view.rules, kind, view.now) {
                (_, Why::Order) => (None, None),
                (at, reason) => (Some(word(reason).to_owned()), Some(not_before(at))),
            };
            let (name, rules) = (kind.name.to_string(), Given::of(kind));
            RotationType { name, rules, waiting, done, empty, failed, lost, reason, earliest_at }
        });
        Self {
            name: view.name.to_string(),
            types: types.collect(),
            rules: Given::of(&view.rules),
            holder: view.ring.turn.as_ref().map(|turn| Holder::of(turn, true)),
            order,
            next,
            waiters: view.waiters.into_iter().map(WaitingWorker::from).collect(),
            turns: view.past.into_iter().map(EndedTurn::from).collect(),
        }
    }
}

/// As in the answers.
#[must_use]
pub fn word(reason: Why) -> &'static str {
    match reason {
        Why::Held => "held",
        Why::Gap => "gap",
        Why::Quota => "quota",
        Why::NotBefore => "not_before",
        Why::Recovery => "recovery",
        Why::Order => "order",
        Why::Absent => "absent",
        Why::Idle => "idle",
    }
}

/// Rotations, by name.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RotationList {
    /// The rotations, with the last 10 turns of each.
    pub rotations: Vec<Rotation>,
    /// The store's clock when they were read; left out when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<At>,
}

impl From<Vec<RotationView>> for RotationList {
    fn from(views: Vec<RotationView>) -> Self {
        let now = views.first().map(|view| not_after(view.now));
        Self { rotations: views.into_iter().map(Rotation::from).collect(), now }
    }
}
