//! The frames of `/live` and `/api/v1/live` as types: what a client may say is read by them, and the AsyncAPI document is made of
//! them.
//!
//! Frames that many readers share are put together as text (`frames`); here stands their shape all the same, and a test
//! holds the real ones to it. This file knows no caller's rights and sends nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use soloist_view::words::At;
use soloist_view::{JobView, LogLineView};

/// A frame with its `type`.
#[derive(Debug, Serialize)]
pub(super) struct Tagged<T> {
    pub(super) r#type: &'static str,
    #[serde(flatten)]
    pub(super) frame: T,
}

/// The first frame of every connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct Hello {
    /// The node that answers.
    pub node: String,
    /// Its program and version.
    pub server: String,
    /// The store's clock; null while the store was never read.
    pub at: Option<At>,
}

/// Everything as it is now: replaces all that was said before.
#[derive(Debug, Serialize, ToSchema)]
pub struct Snapshot {
    /// Another than before: the store began anew, so versions begin anew too.
    pub epoch: String,
    /// Every job that the reader may see, in the order of the configuration.
    pub jobs: Vec<JobView>,
}

/// A job changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobChange {
    /// The newest there is of it; some before it may have been left out.
    pub job: JobView,
}

/// Output of a followed job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewLines {
    /// Its name.
    pub job: String,
    /// The lines.
    pub lines: Vec<LogLineView>,
    /// Lines before these that are not told, because the reader was too slow; left out when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
}

/// Whether the node reaches its store. While it does not, everything else that was said is old.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoreReach {
    /// It does.
    pub reachable: bool,
    /// Since when, by the store's clock.
    pub since: At,
    /// What is wrong; null when nothing is.
    pub detail: Option<String>,
}

/// The answer to a frame of the client.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reply {
    /// As in the frame that is answered; null when it had none.
    pub id: Value,
    /// It was done.
    pub ok: bool,
    /// A word for programs; only when it was not done.
    #[schema(example = "forbidden")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What went wrong and what to do; only when it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a client may say: switch a job, follow its log or the aggregates of dispatch and rotations, and stop following.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said {
    Participation(Switch),
    Follow(Following),
    Unfollow(Following),
}

/// Switches a participation.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Switch {
    /// The job's name.
    #[schema(format = "name")]
    pub(super) job: String,
    /// Wanted from now on, or not.
    pub(super) on: bool,
    /// Why; stands in the audit.
    pub(super) reason: Option<String>,
    /// Whose switch, for admins; the caller's own when left out.
    #[schema(format = "name")]
    pub(super) user: Option<String>,
}

/// What is followed: one of these.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Following {
    /// The output of this job.
    #[schema(format = "name")]
    pub(super) job: Option<String>,
    /// Sources and collectors, instead of a job.
    #[serde(default)]
    pub(super) dispatch: bool,
    /// Longer lists of them; only pages have any.
    #[serde(default)]
    pub(super) all: bool,
    /// Rotations, instead of a job.
    #[serde(default)]
    pub(super) rotations: bool,
    /// The rings of jobs that are members of rotations, instead of a job; only pages have any.
    #[serde(default)]
    pub(super) rings: bool,
    /// Only lines after this one; the newest kept when left out.
    pub(super) after: Option<u64>,
}
