//! History, output, nodes and audit in the JSON shapes of contract section 4.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::job::{Exit, RunEnd};
use crate::store::journal::{AuditEntry, LogLine, RunEntry, Stream};
use crate::store::nodes::NodeRecord;
use crate::words::iso;

/// How the newest run ended, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LastExit)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ExitView {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: String,
}

/// An exit code, or the signal that killed; both null while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Exit)]
pub struct RunExit {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal number.
    pub signal: Option<i32>,
}

impl From<Exit> for RunExit {
    fn from(exit: Exit) -> Self {
        Self { code: exit.code, signal: exit.signal }
    }
}

/// A run in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Run)]
#[expect(missing_docs, reason = "as in contract section 4")]
pub struct RunView {
    pub id: String,
    pub job: String,
    pub node: String,
    pub token: u64,
    pub started: String,
    /// Null while it runs.
    pub ended: Option<String>,
    pub exit: RunExit,
    /// Null while it runs.
    #[schema(value_type = Option<String>, example = "exited")]
    pub end: Option<RunEnd>,
    pub processes_killed: u32,
}

impl From<RunEntry> for RunView {
    fn from(run: RunEntry) -> Self {
        Self {
            id: run.id.to_string(),
            job: run.job.to_string(),
            node: run.node.to_string(),
            token: run.token.0,
            started: iso(run.started),
            ended: run.ended.map(iso),
            exit: run.exit.into(),
            end: run.end,
            processes_killed: run.processes_killed,
        }
    }
}

/// Who held a job from when to when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Span)]
#[expect(missing_docs, reason = "as in contract section 4")]
pub struct SpanView {
    pub node: String,
    pub token: u64,
    pub from: String,
    /// Null while it goes on.
    pub to: Option<String>,
    /// Null while it goes on.
    #[schema(value_type = Option<String>, example = "stopped")]
    pub end: Option<RunEnd>,
}

impl From<RunEntry> for SpanView {
    fn from(run: RunEntry) -> Self {
        Self {
            node: run.node.to_string(),
            token: run.token.0,
            from: iso(run.started),
            to: run.ended.map(iso),
            end: run.end,
        }
    }
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LogLine)]
#[expect(missing_docs, reason = "as in contract section 4")]
pub struct LogLineView {
    pub seq: u64,
    pub at: String,
    pub run: String,
    pub node: String,
    #[schema(value_type = String, example = "stdout")]
    pub stream: Stream,
    pub text: String,
}

impl From<LogLine> for LogLineView {
    fn from(line: LogLine) -> Self {
        Self {
            seq: line.seq,
            at: iso(line.at),
            run: line.run.to_string(),
            node: line.node.to_string(),
            stream: line.stream,
            text: line.text,
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Reported lately.
    pub alive: bool,
    /// Age of its newest heartbeat.
    pub age_ms: u64,
    /// Of the program.
    pub version: String,
    /// When its process started.
    pub started: String,
    /// How surely it kills a script's descendants.
    pub containment: String,
    /// Being emptied and kept empty.
    pub draining: bool,
    /// Jobs it may run.
    pub jobs: Vec<String>,
    /// Jobs it holds.
    pub holds: Vec<String>,
}

impl From<&NodeRecord> for NodeView {
    fn from(node: &NodeRecord) -> Self {
        let beat = &node.beat;
        Self {
            name: beat.node.to_string(),
            alive: super::is_alive(node),
            age_ms: node.age_ms,
            version: beat.version.clone(),
            started: iso(beat.started),
            containment: beat.containment.clone(),
            draining: node.draining,
            jobs: beat.jobs.iter().map(ToString::to_string).collect(),
            holds: beat.holds.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<NodeRecord> for NodeView {
    fn from(node: NodeRecord) -> Self {
        Self::from(&node)
    }
}

/// One act of a person or program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Act)]
#[expect(missing_docs, reason = "as in AuditEntry")]
pub struct AuditView {
    pub id: u64,
    pub at: String,
    pub who: String,
    pub from: String,
    pub act: String,
    pub target: String,
    pub reason: Option<String>,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: iso(entry.at),
            who: entry.who,
            from: entry.from,
            act: entry.act,
            target: entry.target,
            reason: entry.reason,
        }
    }
}
