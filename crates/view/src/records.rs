//! History, output, nodes, leases and audit in the JSON shapes of the API.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::At;
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::{StoreTime, millis};
use soloist_domain::timeline::{Timeline, WantKind, Wanted};
use soloist_store::journal::{AuditEntry, LogLine, RunEntry, Stream};
use soloist_store::leases::HeldLease;
use soloist_store::nodes::{NodeRecord, Vitals};

/// How the newest run ended, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LastExit)]
pub struct ExitView {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: At,
}

/// An exit code, or the signal that killed; both null while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    pub id: String,
    pub job: String,
    pub node: String,
    pub token: u64,
    pub started: At,
    /// Null while it runs.
    pub ended: Option<At>,
    pub exit: RunExit,
    /// Null while it runs.
    #[schema(value_type = Option<String>, example = "exited")]
    pub end: Option<RunEnd>,
    /// What is known beside `end`: `the program died`, of a program that was watched (docs/lifeline.md), or `its guard died`, of a tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub processes_killed: u32,
    /// How many runs alike this stands for, when it is more than one: in a row on one node, each with exit code 0 and
    /// without output. It begins with the first and ends with the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<u32>,
}

impl From<RunEntry> for RunView {
    fn from(run: RunEntry) -> Self {
        Self {
            id: run.id.to_string(),
            job: run.job.to_string(),
            node: run.node.to_string(),
            token: run.token.0,
            started: At(run.started),
            ended: run.ended.map(At),
            exit: run.exit.into(),
            end: run.end.map(RunEnd::shown),
            // A script has a signal: that of its guard.
            why: (run.end == Some(RunEnd::Died)).then(|| match run.exit.signal {
                Some(_) => "its guard died".to_owned(),
                None => "the program died".to_owned(),
            }),
            processes_killed: run.processes_killed,
            folded: (run.folded > 1).then_some(run.folded),
        }
    }
}

/// Who held a job from when to when: in one run, or in several alike, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Span)]
pub struct SpanView {
    pub node: String,
    /// The token of the last of its runs.
    pub token: u64,
    pub from: At,
    /// Null while it goes on.
    pub to: Option<At>,
    /// Null while it goes on; else how the last of its runs ended.
    #[schema(value_type = Option<String>, example = "stopped")]
    pub end: Option<RunEnd>,
    /// How many runs this is.
    pub runs: u32,
    /// How many of them crashed, were lost, fenced or timed out.
    pub failed: u32,
    /// How long its runs lasted together; null while it goes on.
    pub held_ms: Option<u64>,
    /// When it took over from another node, or after a loss: milliseconds from that recorded end to its start.
    pub takeover_ms: Option<u64>,
}

/// Who wanted a job, or forbade it, from when to when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Wanted)]
pub struct WantedView {
    pub user: String,
    pub from: At,
    /// Null while it goes on.
    pub to: Option<At>,
}

/// A timeline as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Timeline)]
pub struct TimelineView {
    /// Who held it, oldest first.
    pub spans: Vec<SpanView>,
    /// Who wanted it, in the order of their beginnings.
    pub participations: Vec<WantedView>,
    /// Who forbade it, likewise.
    pub holds: Vec<WantedView>,
    /// Participations and holds are known from here on; null when they are known of no time.
    pub known_since: Option<At>,
}

impl From<&Timeline> for TimelineView {
    fn from(line: &Timeline) -> Self {
        let takeovers = line.takeovers();
        let took = |token: Token| {
            let found = takeovers.iter().find(|one| one.token == token);
            found.map(|one| millis(one.took))
        };
        let spans = line.spans.iter().map(|span| SpanView {
            node: span.node.to_string(),
            token: span.token.0,
            from: At(span.from),
            to: Some(At(span.to)),
            end: Some(span.end),
            runs: span.runs,
            failed: span.failed,
            held_ms: Some(span.held_ms),
            takeover_ms: took(span.first),
        });
        let present = line.present.iter().map(|run| SpanView {
            node: run.node.to_string(),
            token: run.token.0,
            from: At(run.from),
            to: None,
            end: None,
            runs: 1,
            failed: 0,
            held_ms: None,
            takeover_ms: took(run.token),
        });
        let wants = |kind: WantKind| {
            let of_kind = line.wants.iter().filter(|want| want.kind == kind);
            let view = |want: &Wanted| WantedView {
                user: want.who.to_string(),
                from: At(want.from),
                to: want.to.map(At),
            };
            of_kind.map(view).collect::<Vec<WantedView>>()
        };
        Self {
            spans: spans.chain(present).collect(),
            participations: wants(WantKind::Participation),
            holds: wants(WantKind::Hold),
            known_since: line.since.map(At),
        }
    }
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LogLine)]
pub struct LogLineView {
    pub seq: u64,
    pub at: At,
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
            at: At(line.at),
            run: line.run.to_string(),
            node: line.node.to_string(),
            stream: line.stream,
            text: line.text,
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Reported lately.
    pub alive: bool,
    /// Age of its newest heartbeat.
    pub age_ms: u64,
    /// The version of the program.
    pub version: String,
    /// When its process started.
    pub started: At,
    /// How surely it kills a script's descendants.
    pub containment: String,
    /// Since when it has not reported; null while it is alive.
    pub silent_since: Option<At>,
    /// Being emptied and kept empty.
    pub draining: bool,
    /// Every job it defines, with a hash of the definition (of `env` only the names count); an empty one from a node that
    /// has not told it yet.
    pub jobs: BTreeMap<String, String>,
    /// Jobs it may run.
    pub offers: Vec<String>,
    /// Jobs it holds, by their leases. A silent node holds nothing.
    pub holds: Vec<String>,
    /// Where browsers reach it; null when it does not say so.
    #[serde(default)]
    pub url: Option<String>,
    /// How its machine was when it reported; null when it does not say so.
    #[serde(default)]
    pub vitals: Option<VitalsView>,
    /// How many programs of this machine it watches (docs/lifeline.md); null when it has no life line.
    #[serde(default)]
    pub watched: Option<u32>,
}

/// How the machine of a node is; null is what it does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Vitals)]
pub struct VitalsView {
    /// Its load in the last minute, in hundredths.
    pub load_percent: Option<u32>,
    /// Its processors.
    pub cores: Option<u32>,
    /// Its memory, in MiB.
    pub memory_mb: Option<u64>,
    /// What of it is available, in MiB.
    pub free_mb: Option<u64>,
    /// The file system in which the node works, in MiB.
    pub disk_mb: Option<u64>,
    /// What of it is free, in MiB.
    pub disk_free_mb: Option<u64>,
    /// How far its clock is ahead of the store's; the way of the report to the store is in it.
    pub clock_ahead_ms: Option<i64>,
}

impl From<&Vitals> for VitalsView {
    fn from(vitals: &Vitals) -> Self {
        Self {
            load_percent: vitals.load_percent,
            cores: vitals.cores,
            memory_mb: vitals.memory_mb,
            free_mb: vitals.free_mb,
            disk_mb: vitals.disk_mb,
            disk_free_mb: vitals.disk_free_mb,
            clock_ahead_ms: vitals.ahead_ms,
        }
    }
}

impl NodeView {
    /// All `nodes`, where `held` says who has which lease and `now` is the store's clock.
    #[must_use]
    pub fn list(
        nodes: &[NodeRecord],
        held: &[(JobName, NodeName)],
        now: Option<StoreTime>,
    ) -> Vec<Self> {
        let mut holds: HashMap<&NodeName, Vec<String>> = HashMap::new();
        for (job, node) in held {
            holds.entry(node).or_default().push(job.to_string());
        }
        let view = |node: &NodeRecord| {
            let mut holds = holds.remove(&node.beat.node).unwrap_or_default();
            holds.sort_unstable();
            Self::of(node, holds, now)
        };
        nodes.iter().map(view).collect()
    }

    fn of(node: &NodeRecord, holds: Vec<String>, now: Option<StoreTime>) -> Self {
        let beat = &node.beat;
        let alive = node.is_alive();
        let last = |now: StoreTime| {
            At(StoreTime(now.0.saturating_sub(i64::try_from(node.age_ms).unwrap_or(i64::MAX))))
        };
        Self {
            name: beat.node.to_string(),
            alive,
            silent_since: now.filter(|_| !alive).map(last),
            age_ms: node.age_ms,
            version: beat.version.clone(),
            started: At(beat.started),
            containment: beat.containment.clone(),
            draining: node.draining,
            jobs: {
                let offered = beat.jobs.iter().map(|job| (job.to_string(), String::new()));
                let told = node.told.iter().map(|(job, told)| (job.to_string(), told.hash.clone()));
                offered.chain(told).collect()
            },
            offers: beat.jobs.iter().map(ToString::to_string).collect(),
            // A silent node may still have a lease for a moment. Others may take it; the node itself may not use it.
            holds: if alive { holds } else { Vec::new() },
            url: Some(beat.url.clone()).filter(|url| !url.is_empty()),
            vitals: beat.vitals.as_ref().map(VitalsView::from),
            watched: beat.watched.as_ref().map(|watched| watched.programs),
        }
    }
}

/// What a lease is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseKind {
    /// A job that is listed: of this configuration, or defined by other nodes.
    Job,
    /// What `soloist run` holds while its command runs, under a name of its own.
    Command,
    /// What a program holds under a name of its own.
    Program,
}

impl LeaseKind {
    /// The word of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Command => "command",
            Self::Program => "program",
        }
    }
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HeldLease)]
pub struct HeldLeaseView {
    /// Of the job, or what `soloist run --name` was told.
    pub name: String,
    /// `job`: the name is that of a job under `/api/v1/jobs`, with a command or of a program. `command`: `soloist run` holds it. `program`: a
    /// program holds it under a name of its own.
    pub kind: LeaseKind,
    /// Who holds it: the node that runs the job's command, the node of `soloist run`, or the program.
    pub holder: String,
    /// The node that has the job, or `node` of the configuration that `soloist run` was started with; null for what a program holds, which may
    /// renew at any node.
    pub node: Option<String>,
    /// The fencing token.
    pub token: u64,
    /// When it was granted.
    pub since: At,
    /// Time left unless it is renewed.
    pub expires_in_ms: u64,
    /// Whether the death of its process gives it back at once: a script under its guard, or a program on a life line.
    #[serde(default)]
    pub watched: bool,
}

impl HeldLeaseView {
    /// One of `held`; `is_job` knows the names of jobs, `watched` which leases of programs are watched, by the token.
    #[must_use]
    pub fn of(
        held: &HeldLease,
        is_job: impl Fn(&JobName) -> bool,
        watched: impl Fn(&JobName, Token) -> bool,
    ) -> Self {
        let HeldLease { name, lease } = held;
        Self {
            name: name.to_string(),
            kind: match (is_job(name), lease.owner.is_program()) {
                (true, _) => LeaseKind::Job,
                (false, true) => LeaseKind::Program,
                (false, false) => LeaseKind::Command,
            },
            holder: lease.node.to_string(),
            node: (!lease.owner.is_program()).then(|| lease.node.to_string()),
            token: lease.token.0,
            since: At(lease.since),
            expires_in_ms: millis(lease.expires_in),
            watched: !lease.owner.is_program() || watched(name, lease.token),
        }
    }
}

/// One act of a person or program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Act)]
pub struct AuditView {
    pub id: u64,
    pub at: At,
    /// `person`, `program` (an API token) or `refusal`.
    #[schema(example = "person")]
    pub kind: String,
    pub who: String,
    /// `null`: you may not see it.
    pub from: Option<String>,
    pub act: String,
    pub target: String,
    pub reason: Option<String>,
    /// How often, from `at` to `until`: programs' acts that are alike and refusals that are alike are counted for a minute.
    pub count: u64,
    /// When it was done last; absent: once only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: At(entry.at),
            kind: entry.kind.as_str().to_owned(),
            who: entry.who,
            from: Some(entry.from),
            act: entry.act,
            target: entry.target,
            reason: entry.reason,
            count: entry.count,
            until: entry.until.map(At),
        }
    }
}
