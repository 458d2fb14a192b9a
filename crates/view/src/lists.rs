//! The lists that `GET /api/v1/...` and `--json` answer with, defined once.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{HeldLeaseView, JobView, LogLineView, NodeView, RunView};

/// Every job, by group in the order of the configuration; those without a group come last.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    /// The jobs.
    pub jobs: Vec<JobView>,
}

/// Runs, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Runs {
    /// The runs.
    pub runs: Vec<RunView>,
}

/// Lines, oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Log {
    /// The lines.
    pub lines: Vec<LogLineView>,
    /// Give this as `before` for those that are older; left out when there are none, or when lines `after` one are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
    /// Give this as `after` for those that are newer; left out when there are none, or when no lines `after` one are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

/// Nodes, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Nodes {
    /// The nodes.
    pub nodes: Vec<NodeView>,
}

/// Leases, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Leases)]
pub struct Held {
    /// The leases.
    pub leases: Vec<HeldLeaseView>,
    /// Give this as `after` for those that follow; left out when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// What came of putting one task.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PutTask {
    /// Made of source and key.
    pub id: String,
    /// As given.
    pub key: String,
    /// `created`, or `exists`: then it was left as it is, whatever its state.
    #[schema(example = "created")]
    pub status: String,
}

/// What came of putting tasks, in their order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PutTasks {
    /// One for each.
    pub tasks: Vec<PutTask>,
}
