//! Pictures: replaced by the branch that owns them.
#![expect(missing_docs, reason = "a placeholder until the merge")]

use serde::Serialize;

use crate::clock;
use crate::config::JobConfig;
use crate::domain::job::{State, state};
use crate::domain::time::{Boot, StoreTime};
use crate::feed::Seen;
use crate::store::journal::{AuditEntry, LogLine, RunEntry};
use crate::store::nodes::NodeRecord;
use crate::words::Language;

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct JobView {
    pub name: String,
    pub title: String,
    pub state: String,
    pub wanted: bool,
    pub version: u64,
    pub participants: Vec<ParticipantView>,
    pub why: String,
}

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct ParticipantView {
    pub user: String,
    pub since: String,
}

impl JobView {
    pub fn of(
        seen: &Seen,
        job: &JobConfig,
        _nodes: &[NodeRecord],
        lang: Language,
        now: Boot,
    ) -> Self {
        let view = seen.viewpoint(now, &job.timing, job.backoff.min_uptime);
        let word: State = state(&seen.record, &view);
        Self {
            name: job.name.to_string(),
            title: if lang == Language::Zh { job.title.zh.clone() } else { job.title.en.clone() },
            state: word.as_str().to_owned(),
            wanted: seen.record.wanted(),
            version: seen.record.version,
            participants: seen
                .record
                .participants
                .iter()
                .map(|p| ParticipantView { user: p.user.to_string(), since: instant(p.since) })
                .collect(),
            why: String::new(),
        }
    }
}

fn instant(at: StoreTime) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|t| format!("{t:.3}")).unwrap_or_default()
}

macro_rules! views {
    ($($view:ident: $from:ident { $($field:ident: $type:ty = $make:expr),* };)*) => {$(
        #[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
        pub struct $view { $(pub $field: $type),* }
        impl From<$from> for $view {
            fn from(x: $from) -> Self {
                $(let $field = ($make)(&x);)*
                Self { $($field),* }
            }
        }
    )*};
}

views! {
    RunView: RunEntry {
        id: String = |x: &RunEntry| x.id.to_string(),
        job: String = |x: &RunEntry| x.job.to_string(),
        node: String = |x: &RunEntry| x.node.to_string(),
        token: u64 = |x: &RunEntry| x.token.0,
        started: String = |x: &RunEntry| instant(x.started),
        ended: Option<String> = |x: &RunEntry| x.ended.map(instant)
    };
    LogLineView: LogLine {
        seq: u64 = |x: &LogLine| x.seq,
        at: String = |x: &LogLine| instant(x.at),
        run: String = |x: &LogLine| x.run.to_string(),
        node: String = |x: &LogLine| x.node.to_string(),
        stream: String = |x: &LogLine| x.stream.as_str().to_owned(),
        text: String = |x: &LogLine| x.text.clone()
    };
    NodeView: NodeRecord {
        node: String = |x: &NodeRecord| x.beat.node.to_string(),
        version: String = |x: &NodeRecord| x.beat.version.clone(),
        age_ms: u64 = |x: &NodeRecord| x.age_ms,
        draining: bool = |x: &NodeRecord| x.draining,
        holds: Vec<String> = |x: &NodeRecord| x.beat.holds.iter().map(ToString::to_string).collect()
    };
    AuditView: AuditEntry {
        id: u64 = |x: &AuditEntry| x.id,
        at: String = |x: &AuditEntry| instant(x.at),
        who: String = |x: &AuditEntry| x.who.clone(),
        from: String = |x: &AuditEntry| x.from.clone(),
        act: String = |x: &AuditEntry| x.act.clone(),
        target: String = |x: &AuditEntry| x.target.clone(),
        reason: Option<String> = |x: &AuditEntry| x.reason.clone()
    };
    SpanView: RunEntry {
        node: String = |x: &RunEntry| x.node.to_string(),
        token: u64 = |x: &RunEntry| x.token.0,
        from: String = |x: &RunEntry| instant(x.started),
        to: Option<String> = |x: &RunEntry| x.ended.map(instant),
        end: Option<String> = |x: &RunEntry| x.end.map(|e| e.as_str().to_owned())
    };
}

pub fn now() -> Boot {
    clock::boot()
}
