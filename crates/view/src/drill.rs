//! A drill as people meet it: what it will do, and what came of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::At;
use soloist_domain::drill::Drill;
use soloist_domain::name::JobName;

/// What happens to whom; said before anything is done.
#[must_use]
pub fn warning(node: &str) -> String {
    format!(
        "the node process {node} is killed with kill -9; all its jobs move; it comes back only if a service manager (systemd, Docker restart policy) starts it again"
    )
}

/// A drill and its result; `takeover_ms` counts from the order, by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Drill)]
pub struct DrillView {
    /// Which job.
    pub job: String,
    /// The token of the lease whose holder was ordered to crash.
    pub token: u64,
    /// Who ordered it.
    pub by: String,
    /// When the order was written.
    pub ordered: At,
    /// The node that took over; null until then.
    pub to: Option<String>,
    /// When its run started; null until then.
    pub started: Option<At>,
    /// From `ordered` to `started`; null until then.
    pub takeover_ms: Option<u64>,
}

impl DrillView {
    /// As the API and `--json` show it.
    #[must_use]
    pub fn of(job: &JobName, drill: &Drill) -> Self {
        Self {
            job: job.to_string(),
            token: drill.token.0,
            by: drill.by.to_string(),
            ordered: At(drill.at),
            to: drill.to.as_ref().map(ToString::to_string),
            started: drill.started.map(At),
            takeover_ms: drill.takeover().map(super::millis),
        }
    }
}
