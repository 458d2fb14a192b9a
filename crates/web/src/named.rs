//! What the names in addresses name, and who may know of it: the one table, asked before any handler.
//!
//! The door has let in whom the line of the URL table admits by role; here it is asked for the very thing. What the caller may not see
//! answers as a name that nobody ever used. What a *body* names (forms, turns, tasks, leases) is asked for where it is read, by the
//! same functions.

use std::rc::Rc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, web};
use serde::Deserialize;

use super::auth::{Admitted, Caller};
use super::error::WebError;
use super::{Web, acts, api};
use soloist_domain::name::{RotationName, SourceName};
use soloist_ops as ops;

/// What a place in an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A job: its `viewers` see it.
    Job,
    /// A rotation: who may see every job that takes turns in it, or has its name among the types.
    Rotation,
    /// An alert: who may see one of the jobs that it is about.
    Alert,
    /// A source: all accounts, but no token that is bound to others.
    Source,
    /// A task: as its source, which the store says.
    Task,
    /// A lease: its holder, by the secret; whoever asks for one is asked about the job of that name (`ops/leases.rs`).
    Lease,
    /// A claim or a turn: who was granted it, by what only they can repeat.
    Grant,
    /// An account or a credential of one: its owner and admins.
    Account,
    /// A node, a channel or a file: whom the URL table admits.
    Open,
}

/// By the part of an address that stands before the name, and the name's place.
const TABLE: &[(&str, Named)] = &[
    ("jobs/{job}", Named::Job),
    ("badge/{job}", Named::Job),
    ("rotations/{rotation}", Named::Rotation),
    ("ring/{rotation}", Named::Rotation),
    ("alerts/{alert}", Named::Alert),
    ("sources/{source}", Named::Source),
    ("tasks/{id}", Named::Task),
    ("dead/{id}", Named::Task),
    ("leases/{name}", Named::Lease),
    ("claims/{claim}", Named::Grant),
    ("turns/{turn}", Named::Grant),
    ("people/{user}", Named::Account),
    ("users/{user}", Named::Account),
    ("sessions/{id}", Named::Account),
    ("tokens/{id}", Named::Account),
    // Of the job before it.
    ("runs/{tick}", Named::Open),
    ("nodes/{node}", Named::Open),
    ("channels/{channel}", Named::Open),
    ("static/{hash}", Named::Open),
    ("{hash}/{path:.*}", Named::Open),
];

/// The places of a pattern, and what each names; `None` for one that is not in the table.
pub fn of(pattern: &str) -> impl Iterator<Item = (&str, Option<Named>)> {
    let parts = pattern.split('/').zip(pattern.split('/').skip(1));
    parts.filter_map(|(before, part)| {
        let end = part.find('}')?;
        let place = part.get(1..end).filter(|_| part.starts_with('{'))?;
        let key = format!("{before}/{}", &part[..=end]);
        let named = TABLE.iter().find(|(known, _)| *known == key).map(|(_, named)| *named);
        Some((place, named))
    })
}

/// Whether anything in this pattern is asked about here.
pub(super) fn is_asked(pattern: &str) -> bool {
    use Named::{Alert, Job, Rotation, Source};
    let asked = |named| matches!(named, Some(Job | Rotation | Alert | Source) | None);
    of(pattern).any(|(_, named)| asked(named))
}

/// The middleware of every address with names that are asked about.
///
/// # Errors
/// Never by itself: refusals are answers.
pub async fn ask(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match may_know(&mut request).await {
        Ok(()) => Ok(next.call(request).await?.map_into_boxed_body()),
        // `into_response` would lose the error, of which a page is made.
        Err(error) => Ok(request.error_response(error)),
    }
}

/// The names that are asked about; of a path there are some.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names {
    job: String,
    rotation: String,
    alert: String,
    source: String,
}

async fn may_know(request: &mut ServiceRequest) -> Result<(), WebError> {
    let web = request.app_data::<web::Data<Web>>().cloned();
    let caller = request.extensions().get::<Admitted>().map(|Admitted(caller)| Rc::clone(caller));
    let (Some(web), Some(caller), Some(pattern)) = (web, caller, request.match_pattern()) else {
        return Err(WebError::Unauthorized);
    };
    // Read as handlers read it, so that no other spelling of a name passes.
    let names = request.extract::<web::Path<Names>>().await;
    let names = names.map_err(|error| WebError::from_framework(&error))?.into_inner();
    for (place, named) in of(&pattern) {
        match named {
            Some(Named::Job) => web.job(&caller, &names.job).map(drop)?,
            Some(Named::Rotation) => {
                let may_be_new = request.method() == Method::PUT;
                rotation(&web, &caller, &names.rotation, may_be_new).await?;
            }
            Some(Named::Alert) => {
                caller.bound.check_unbound("alerts")?;
                ops::alerts::rule(&api::alerts::known(&web, &caller), &names.alert)?;
            }
            Some(Named::Source) => {
                if let Ok(name) = SourceName::new(&names.source) {
                    caller.bound.check_source(&name)?;
                }
            }
            Some(_) => {}
            None => {
                return Err(WebError::Internal {
                    detail: format!("no line of web/named.rs says what {place} in {pattern} names"),
                });
            }
        }
    }
    Ok(())
}

async fn rotation(
    web: &Web,
    caller: &Caller,
    name: &str,
    may_be_new: bool,
) -> Result<(), WebError> {
    match RotationName::new(name) {
        Ok(name) => acts::rotation::check_seen(web, caller, &name, may_be_new).await,
        // What cannot be a name is refused by the handler in its own words.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn the_table_says_of_every_name_in_every_address_what_it_names() {
        for route in ROUTES {
            let places = of(route.path);
            let named: Vec<_> = places.collect();
            assert_eq!(named.len(), route.path.matches('{').count(), "{}: {named:?}", route.path);
            assert!(named.iter().all(|(_, named)| named.is_some()), "{}: {named:?}", route.path);
        }
        let unused =
            TABLE.iter().filter(|(key, _)| !ROUTES.iter().any(|route| route.path.contains(key)));
        assert_eq!(unused.count(), 0);
    }

    #[test]
    fn what_is_asked_about_has_the_place_that_is_read() {
        for (key, named) in TABLE {
            let place = match named {
                Named::Job => "{job}",
                Named::Rotation => "{rotation}",
                Named::Alert => "{alert}",
                Named::Source => "{source}",
                _ => continue,
            };
            assert!(key.ends_with(place), "{key}");
        }
    }

    #[test]
    fn an_address_that_the_table_does_not_know_is_asked_about_and_so_refused() {
        assert!(is_asked("/api/v1/secrets/{secret}") && !is_asked("/api/v1/nodes/{node}/drain"));
        assert!(is_asked("/badge/{job}.svg"));
    }
}
