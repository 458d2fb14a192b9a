//! `/api/v1/rotations`: types of work that take turns, by which rules, and how far they have come.

use actix_web::HttpRequest;
use actix_web::web::{self, Bytes};
use serde::{Deserialize, Serialize};

use super::{Answer, Forced, answer, clamp, query, read};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::fields::{self, Given, InvalidRules};
use soloist_domain::name::{RotationName, TypeName};
use soloist_domain::rotation::{Rules, TypeRules};
use soloist_store::rotation::{Rotations as _, TURNS_KEPT};
use soloist_view::json::{Holder, Rotation, RotationList};
use soloist_view::mended;
use soloist_view::rules::sent;

/// How many past turns are shown of one rotation, unless more or less are asked for.
const TURNS_SHOWN: usize = 50;
/// How many of each in the list of all.
pub(crate) const TURNS_LISTED: usize = 10;

/// A type of work.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct TypeBody {
    /// Unique within the rotation: 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.
    #[schema(example = "orders", format = "name")]
    pub name: String,
    /// Its rules.
    #[serde(flatten, deserialize_with = "fields::strict")]
    #[schema(schema_with = sent::<TypeRules>)]
    pub rules: Given<TypeRules>,
}

/// All rules of a rotation; what is left out gets its default.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct RotationBody {
    /// In the order in which they take turns, 1 to 50.
    #[schema(min_items = 1, max_items = 50)]
    pub types: Vec<TypeBody>,
    /// The others.
    #[serde(flatten, deserialize_with = "fields::strict")]
    #[schema(schema_with = sent::<Rules>)]
    pub rules: Given<Rules>,
    /// Why, for the audit; at most 500 characters. When left out the audit says which the rules are now.
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
}

impl TryFrom<RotationBody> for Rules {
    type Error = WebError;

    fn try_from(body: RotationBody) -> Result<Self, WebError> {
        let wrong = |wrong: InvalidRules| WebError::bad(wrong.to_string());
        let types = body.types.iter().enumerate().map(|(nth, kind)| {
            let name = TypeName::new(&kind.name)
                .map_err(|error| WebError::bad(format!("types[{nth}].name: {error}")))?;
            kind.rules.onto(TypeRules::of(name)).map_err(|error| wrong(error.of_type(nth)))
        });
        let rules = Self { types: types.collect::<Result<_, _>>()?, ..Self::default() };
        body.rules.onto(rules).map_err(wrong)
    }
}

/// The name in an address; what cannot be a name is not found.
pub(super) fn named(text: &str) -> Result<RotationName, WebError> {
    RotationName::new(text).map_err(|wrong| acts::rotation::no_name(&wrong))
}

/// All rotations.
#[utoipa::path(get, path = "/api/v1/rotations", tag = "rotations", operation_id = "list_rotations",
    responses((status = 200, description = "The rotations.", body = RotationList)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<RotationList> {
    let mut views = web.turns.store()?.rotations(None, TURNS_LISTED).await?;
    let hidden = web.live.hidden_from(Some(&caller));
    views.retain(|view| !hidden.has_ring(view));
    answer(RotationList::from(views))
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

/// Makes a rotation, or changes its rules: all of them, so what is left out gets its default. The worker that has the turn keeps
/// it, also when its type is gone; gaps and waiters are kept, but a waiter for a type that is gone is told so.
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

/// What went with a rotation.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RemovedRotation {
    /// Its name.
    pub rotation: String,
    /// Who had the turn; null when it had no holder.
    pub holder: Option<Holder>,
    /// How many waited: they are told at once that it is gone.
    pub waiting: u64,
}

/// Removes a rotation with its turn and its past turns. One that is held or waited for is removed with `force=true` only:
/// what goes on under its turn then goes on until the worker asks again.
#[utoipa::path(delete, path = "/api/v1/rotations/{rotation}", tag = "rotations", operation_id = "remove_rotation",
    params(
        ("rotation" = String, Path, description = "Its name."),
        ("force" = Option<bool>, Query, description = "Also while it is held or waited for.")),
    responses((status = 200, description = "It is gone.", body = RemovedRotation)))]
pub async fn remove(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    rotation: web::Path<String>,
) -> Answer<RemovedRotation> {
    let (rotation, Forced { force }) = (named(&rotation)?, query(&request)?);
    let gone = acts::rotation::remove(&web, &caller, &rotation, force.unwrap_or(false)).await?;
    let holder = gone.turn.as_ref().map(|turn| Holder::of(turn, true));
    answer(RemovedRotation { rotation: rotation.to_string(), holder, waiting: gone.waiting })
}
