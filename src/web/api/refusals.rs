//! What the calls of dispatch and rotations may answer besides success, written once for the OpenAPI document.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};

const MALFORMED: (&str, &str) =
    ("400", "The request is malformed; the detail names the place and the remedy.");
const NO_LOGIN: (&str, &str) = ("401", "No login.");
const FORBIDDEN: (&str, &str) = (
    "403",
    "Not allowed to this role, or the token is bound to another collector, worker or source.",
);
const NO_SUCH: (&str, &str) =
    ("404", "No such source, task, claim, rotation, type or turn; the detail says which.");
const OVER: (&str, &str) =
    ("409", "The turn has ended, or is another's: nothing was changed. The detail says more.");
const TOO_LARGE: (&str, &str) = ("413", "Larger than 64 KiB, or 1 MiB for tasks and results.");
const AWAY: (&str, &str) = (
    "503",
    "The store is out of reach, or set up so that it may lose tasks and turns; try again after Retry-After.",
);

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: [$($each:ident),*];)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                described(&[$($each),*])
            }
        }
    )*};
}

refusals! {
    /// Of a list without parameters.
    OfList: [NO_LOGIN, FORBIDDEN, AWAY];
    /// Of a list with a query.
    OfQuery: [MALFORMED, NO_LOGIN, FORBIDDEN, AWAY];
    /// Of one thing.
    OfOne: [NO_LOGIN, FORBIDDEN, NO_SUCH, AWAY];
    /// Of one thing, with a query.
    OfLook: [MALFORMED, NO_LOGIN, FORBIDDEN, NO_SUCH, AWAY];
    /// Of an act with a body.
    OfBody: [MALFORMED, NO_LOGIN, FORBIDDEN, TOO_LARGE, AWAY];
    /// Of an act with a body on one thing.
    OfAct: [MALFORMED, NO_LOGIN, FORBIDDEN, NO_SUCH, TOO_LARGE, AWAY];
    /// Of an act on a turn.
    OfTurn: [MALFORMED, NO_LOGIN, FORBIDDEN, NO_SUCH, OVER, TOO_LARGE, AWAY];
}

fn described(all: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let problem = || Content::new(Some(Ref::from_schema_name("Problem")));
    let response = |what: &str| {
        ResponseBuilder::new()
            .description(what)
            .content("application/problem+json", problem())
            .build()
    };
    all.iter().map(|(status, what)| ((*status).to_owned(), RefOr::T(response(what)))).collect()
}
