//! Events of a guarded script, for the process that started it.

use soloist_domain::job::{Exit, Progress};
use soloist_guard::message::Cause;
use soloist_store::journal::NewLine;

/// What a child says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEvent {
    /// The script runs.
    Started {
        /// Its first process.
        pid: u32,
    },
    /// A line of output.
    Line(NewLine),
    /// A progress line.
    Progress(Progress),
    /// It wrote something that is no line yet; said at most four times a second.
    Heard,
    /// It could not be started; no process of it exists. The last event.
    Failed {
        /// With the remedy.
        error: String,
    },
    /// No process of the tree is left. The last event.
    Gone {
        /// Of the first process.
        exit: Exit,
        /// Others that had to be killed.
        processes_killed: u32,
        /// What ended it.
        cause: Cause,
    },
}
