//! `GET /api/v1/collectors`: who asks for work, and what they hold.

use actix_web::web;
use serde::Serialize;

use super::{Answer, answer};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use soloist_store::dispatch::{CollectorView, Sources as _};
use soloist_view::json::not_after;
use soloist_view::words::At;

/// A task that a collector holds.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Holding {
    /// The id of the task.
    pub id: String,
    /// The key of the task.
    pub key: String,
    /// The source of the task.
    pub source: String,
    /// Until when, unless it is extended.
    pub lease_until: At,
}

/// A collector.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Collector {
    /// As it calls itself.
    pub name: String,
    /// When it last asked for anything.
    pub seen: At,
    /// How many tasks it holds.
    pub in_flight: u64,
    /// The first 100 of them, by the end of their leases.
    pub holds: Vec<Holding>,
}

/// Collectors, by name.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Collectors {
    /// The collectors.
    pub collectors: Vec<Collector>,
}

impl From<CollectorView> for Collector {
    fn from(view: CollectorView) -> Self {
        let holds = view.holds.into_iter().map(|(id, key, source, until)| Holding {
            id: id.0,
            key,
            source: source.to_string(),
            lease_until: not_after(until),
        });
        Self {
            name: view.name.to_string(),
            seen: not_after(view.seen),
            in_flight: view.in_flight,
            holds: holds.collect(),
        }
    }
}

/// Every collector seen within a day, and what it holds.
#[utoipa::path(get, path = "/api/v1/collectors", tag = "dispatch", operation_id = "list_collectors",
    responses((status = 200, description = "The collectors.", body = Collectors)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<Collectors> {
    let mut views = web.desk.store()?.collectors().await.map_err(acts::source::trouble)?;
    if caller.bound.names_any() {
        for view in &mut views {
            view.holds.retain(|(_, _, source, _)| caller.bound.reads_source(source.as_str()));
            view.in_flight = view.holds.len() as u64;
        }
        views.retain(|view| view.in_flight > 0);
    }
    answer(Collectors { collectors: views.into_iter().map(Collector::from).collect() })
}
