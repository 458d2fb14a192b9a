//! `/api/v1/rotations`: types of work that take turns, by which rules, and how far they have come.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::{self, Bytes};
use serde::{Deserialize, Serialize};

use super::sources::{millis, not_after, not_before};
use super::{Answer, answer, clamp, query, read, whole};
use crate::domain::dispatch::Window;
use crate::domain::name::{RotationName, TypeName};
use crate::domain::rotation::{Choice, Reason, Ring, Rules, Skip, Turn, TypeRules};
use crate::store::rotation::{
    PastTurn, RotationView, Rotations as _, TURNS_KEPT, TypeView, WaiterView,
};
use crate::web::Web;
use crate::web::acts;
use crate::web::auth::Caller;
use crate::web::error::WebError;

/// How many past turns are shown of one rotation, unless more or less are asked for.
const TURNS_SHOWN: usize = 50;
/// How many of each in the list of all.
pub(in crate::web) const TURNS_LISTED: usize = 10;
/// How long a turn lasts, unless the rules say otherwise.
const LEASE: Duration = Duration::from_secs(30);

/// At most `count` starts in any stretch of `ms` milliseconds.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Starts.
    #[schema(minimum = 1, maximum = 1_000)]
    #[serde(deserialize_with = "whole::number")]
    pub count: u32,
    /// The stretch.
    #[schema(minimum = 1, maximum = 31_622_400_000_u64)]
    #[serde(deserialize_with = "whole::number")]
    pub ms: u64,
}

/// A type of work.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeBody {
    /// Unique within the rotation: 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.
    #[schema(example = "orders", format = "name")]
    pub name: String,
    /// Least time between two starts of this type; 0 for none of its own.
    #[schema(default = 0, minimum = 0, maximum = 31_622_400_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub gap_ms: Option<u64>,
    /// Most starts of this type; no limit when null or left out.
    pub quota: Option<Quota>,
}

/// What becomes of a type that nobody waits for when its turn comes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkipRule {
    /// It is passed over; so is one inside its own gap, or whose quota is used up.
    Absent,
    /// Everybody waits for it.
    Never,
}

/// All rules of a rotation; what is left out gets its default.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotationBody {
    /// In the order in which they take turns, 1 to 50.
    #[schema(min_items = 1, max_items = 50)]
    pub types: Vec<TypeBody>,
    /// Least time between the starts of two turns, whatever their types; 0 for none.
    #[schema(default = 0, minimum = 0, maximum = 31_622_400_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub min_gap_ms: Option<u64>,
    /// How long a turn lasts that is neither extended nor passed.
    #[schema(default = 30_000, minimum = 100, maximum = 86_400_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub lease_ms: Option<u64>,
    /// `absent` when left out.
    pub skip: Option<SkipRule>,
    /// Why, for the audit; at most 500 characters. When left out the audit says which the rules are now.
    pub reason: Option<String>,
}

impl TryFrom<RotationBody> for Rules {
    type Error = WebError;

    fn try_from(body: RotationBody) -> Result<Self, WebError> {
        let ms = Duration::from_millis;
        let types = body.types.into_iter().enumerate().map(|(nth, kind)| {
            Ok(TypeRules {
                name: TypeName::new(&kind.name)
                    .map_err(|error| WebError::bad(format!("types[{nth}].name: {error}")))?,
                gap: kind.gap_ms.map(ms).unwrap_or_default(),
                quota: kind.quota.map(|rule| Window { count: rule.count, span: ms(rule.ms) }),
            })
        });
        Ok(Self {
            types: types.collect::<Result<_, WebError>>()?,
            min_gap: body.min_gap_ms.map(ms).unwrap_or_default(),
            lease: body.lease_ms.map_or(LEASE, ms),
            skip: match body.skip {
                Some(SkipRule::Never) => Skip::Never,
                Some(SkipRule::Absent) | None => Skip::Absent,
            },
        })
    }
}

/// A type: its rules, who waits for it, and how its turns ended.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RotationType {
    /// Its name.
    pub name: String,
    /// As in the rules.
    pub gap_ms: u64,
    /// As in the rules.
    pub quota: Option<Quota>,
    /// How many wait for it.
    pub waiting: u64,
    /// Turns passed as done, ever.
    pub done: u64,
    /// Turns passed as empty, ever.
    pub empty: u64,
    /// Turns passed as failed, ever.
    pub failed: u64,
    /// Turns whose lease ran out, or whose grant nobody received, ever.
    pub lost: u64,
}

/// Who has the turn.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Holder {
    /// The turn's id; not told to collectors who wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// For which type.
    pub r#type: String,
    /// Who, as it calls itself.
    pub worker: String,
    /// When it started.
    #[schema(format = DateTime)]
    pub since: String,
    /// Until when, unless it is extended or passed.
    #[schema(format = DateTime)]
    pub lease_until: String,
}

impl Holder {
    /// As shown to those who may know the turn's id, or not.
    pub(super) fn of(turn: &Turn, with_id: bool) -> Self {
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
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct NextTurn {
    /// Of those somebody waits for, or with `skip` `never` the first in order; null when that is nobody.
    pub r#type: Option<String>,
    /// When it may start; null when it can start now, or when that is not known.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// What it waits for: `held`, `gap`, `quota`, `not_before`, `recovery` or `absent`; `idle` when nobody waits; null when it can
    /// start now.
    #[schema(example = "gap")]
    pub reason: Option<&'static str>,
}

impl NextTurn {
    fn of(view: &RotationView) -> Self {
        let waits =
            |kind: &TypeName| view.types.iter().any(|one| one.kind == *kind && one.waiting > 0);
        let held = view.ring.turn.is_some();
        // Who comes next is known also while somebody has the turn, but not when.
        let free = Ring { turn: None, ..view.ring.clone() };
        let (kind, at, reason) = match free.choose(&view.rules, waits, view.now) {
            Choice::Now(kind) => (Some(kind), None, None),
            Choice::Later { reason, until, kind } => (kind, until, Some(reason)),
        };
        Self {
            r#type: kind.map(|kind| kind.to_string()),
            at: at.filter(|_| !held).map(not_before),
            reason: if held { Some(word(Reason::Held)) } else { reason.map(word) },
        }
    }
}

/// Somebody who waits.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct WaitingWorker {
    /// For which type.
    pub r#type: String,
    /// Who, as it calls itself.
    pub worker: String,
    /// At which node.
    pub node: String,
    /// Since when.
    #[schema(format = DateTime)]
    pub since: String,
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
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EndedTurn {
    /// Its id.
    pub turn: String,
    /// For which type.
    pub r#type: String,
    /// Whose it was.
    pub worker: String,
    /// When it started.
    #[schema(format = DateTime)]
    pub since: String,
    /// When it was passed, or its lease ended.
    #[schema(format = DateTime)]
    pub ended: String,
    /// `done`, `empty`, `failed` or `lost`.
    #[schema(example = "done")]
    pub outcome: &'static str,
}

impl From<PastTurn> for EndedTurn {
    fn from(past: PastTurn) -> Self {
        Self {
            turn: past.token.to_string(),
            r#type: past.kind.to_string(),
            worker: past.worker.to_string(),
            since: not_after(past.since),
            ended: not_after(past.ended),
            outcome: past.ending.as_str(),
        }
    }
}

/// A rotation: its rules, who has the turn, who comes next, who waits, and the last turns.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Rotation {
    /// Its name.
    pub name: String,
    /// In the order of the rules.
    pub types: Vec<RotationType>,
    /// As in the rules.
    pub min_gap_ms: u64,
    /// As in the rules.
    pub lease_ms: u64,
    /// As in the rules.
    pub skip: SkipRule,
    /// Who has the turn; null when nobody has.
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
        let types = view.rules.types.into_iter().zip(view.types).map(|(rules, counts)| {
            let TypeView { waiting, done, empty, failed, lost, .. } = counts;
            let quota = rules.quota.map(|rule| Quota { count: rule.count, ms: millis(rule.span) });
            let (name, gap_ms) = (rules.name.to_string(), millis(rules.gap));
            RotationType { name, gap_ms, quota, waiting, done, empty, failed, lost }
        });
        Self {
            name: view.name.to_string(),
            types: types.collect(),
            min_gap_ms: millis(view.rules.min_gap),
            lease_ms: millis(view.rules.lease),
            skip: match view.rules.skip {
                Skip::Absent => SkipRule::Absent,
                Skip::Never => SkipRule::Never,
            },
            holder: view.ring.turn.as_ref().map(|turn| Holder::of(turn, true)),
            order,
            next,
            waiters: view.waiters.into_iter().map(WaitingWorker::from).collect(),
            turns: view.past.into_iter().map(EndedTurn::from).collect(),
        }
    }
}

/// As in the answers.
pub(super) fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Held => "held",
        Reason::Gap => "gap",
        Reason::Quota => "quota",
        Reason::NotBefore => "not_before",
        Reason::Recovery => "recovery",
        Reason::Order => "order",
        Reason::Absent => "absent",
        Reason::Idle => "idle",
    }
}

/// Rotations, by name.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RotationList {
    /// The rotations, with the last 10 turns of each.
    pub rotations: Vec<Rotation>,
}

/// The name in an address; what cannot be a name is not found.
pub(super) fn named(text: &str) -> Result<RotationName, WebError> {
    RotationName::new(text)
        .map_err(|wrong| WebError::not_found(format!("there is no rotation {wrong}")))
}

/// All rotations.
#[utoipa::path(get, path = "/api/v1/rotations", tag = "rotations", operation_id = "list_rotations",
    responses((status = 200, description = "The rotations.", body = RotationList)))]
pub async fn list(web: web::Data<Web>) -> Answer<RotationList> {
    let views = web.turns.store()?.rotations(None, TURNS_LISTED).await?;
    answer(RotationList { rotations: views.into_iter().map(Rotation::from).collect() })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<u64>,
}

/// One rotation.
#[utoipa::path(get, path = "/api/v1/rotations/{rotation}", tag = "rotations", operation_id = "get_rotation",
    params(
        ("rotation" = String, Path, description = "Its name."),
        ("limit" = Option<u64>, Query, description = "How many of the last turns: 1 to 200, 50 when absent; what is outside is moved inside.")),
    responses((status = 200, description = "The rotation.", body = Rotation)))]
pub async fn one(
    web: web::Data<Web>,
    request: HttpRequest,
    rotation: web::Path<String>,
) -> Answer<Rotation> {
    let rotation = named(&rotation)?;
    let page: Page = query(&request)?;
    let past = clamp(page.limit, TURNS_SHOWN, TURNS_KEPT);
    answer(Rotation::from(acts::rotation::one(&web, &rotation, past).await?))
}

/// Makes a rotation, or changes its rules: all of them, so what is left out gets its default. Whoever has the turn keeps
/// it, also when its type is gone; gaps and those who wait are kept, but whoever waits for a type that is gone is told so.
#[utoipa::path(put, path = "/api/v1/rotations/{rotation}", tag = "rotations", operation_id = "put_rotation",
    params(("rotation" = String, Path, description = "Its name: 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.")),
    request_body = RotationBody,
    responses((status = 200, description = "The rotation.", body = Rotation)))]
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    rotation: web::Path<String>,
    body: Bytes,
) -> Answer<Rotation> {
    let rotation = RotationName::new(&rotation)?;
    let mut body: RotationBody = read(&body)?;
    let reason = body.reason.take();
    let (rules, reason) = (Rules::try_from(body)?, reason.as_deref());
    answer(Rotation::from(acts::rotation::put(&web, &caller, &rotation, &rules, reason).await?))
}
