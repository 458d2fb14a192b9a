//! A job in the supervisor of this node: the newest lease and run that it knows, and what follows for the keeper, the guard and the
//! journal.
//!
//! It only remembers; `domain` decides, and the supervisor acts.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::attend::Command;
use super::child::{Spec, Streams, Work};
use super::ending::{Last, ending};
use super::entrusted::{Entrusted, OF_THE_USER};
use super::job_run::Gone;
use super::node_context::NodeContext;
use super::program::Program;
use soloist_config::JobConfig;
use soloist_domain::job::{JobRecord, RunEnd};
use soloist_domain::lease::{Token, TokensSeen};
use soloist_domain::name::{JobName, NodeName, Owner, RunId};
use soloist_domain::supervise::{Attempt, Doing, JobSlot};
use soloist_domain::tick::Granted;
use soloist_domain::time::{Began, Boot};
use soloist_domain::transition::drill::must_crash;
use soloist_process::clock;
use soloist_process::outlet;
use soloist_process::telemetry::Metrics;
use soloist_store::journal::Ended;
use soloist_store::leases::{Acquire, Condition, Renewal};

/// A job as this node deals with it.
pub(super) struct LocalJob {
    /// The definition of the newest run.
    pub(super) config: Arc<JobConfig>,
    /// The definition of the next run, if it is another.
    newer: Option<Arc<JobConfig>>,
    /// The configuration has it no more: nothing is started.
    pub(super) removed: bool,
    pub(super) slot: JobSlot,
    pub(super) wake: Option<Boot>,
    pub(super) owner: Owner,
    pub(super) run: RunId,
    pub(super) tokens: TokensSeen,
    /// The token of the newest run here.
    pub(super) held: Token,
    pub(super) commands: Option<mpsc::UnboundedSender<Command>>,
    /// When the newest lease was asked for.
    pub(super) asked: Boot,
    /// When it was granted.
    pub(super) granted: Began,
    /// When the script of the newest run started.
    pub(super) started: Option<Boot>,
    pub(super) gone: Option<Gone>,
    /// The newest lease or turn was lost.
    pub(super) lost: bool,
    /// Nothing was started under the newest lease.
    pub(super) unused: bool,
    /// Since when this node has been willing to run the job without a break, if it were free.
    pub(super) willing_since: Option<Boot>,
    /// When the newest lease of another runs out, or ran out.
    pub(super) anothers_until: Option<Boot>,
    /// When the lost holder's lease ended that this node is about to follow.
    pub(super) vacant_since: Option<Boot>,
    /// What the newest lease was granted for.
    pub(super) tick: Option<Box<Granted>>,
}

impl LocalJob {
    pub(super) fn new(config: JobConfig) -> Self {
        Self {
            config: Arc::new(config),
            newer: None,
            removed: false,
            slot: JobSlot::default(),
            wake: None,
            owner: Owner(String::new()),
            run: RunId(String::new()),
            tokens: TokensSeen::default(),
            held: Token(0),
            commands: None,
            asked: Boot(0),
            granted: Began::at_boot(Boot(0)),
            started: None,
            gone: None,
            lost: false,
            unused: false,
            willing_since: None,
            anothers_until: None,
            vacant_since: None,
            tick: None,
        }
    }

    /// The lease was granted for this tick.
    pub(super) fn took(&mut self, tick: Option<Box<Granted>>) {
        self.tick = tick;
    }

    /// The next run is by this definition.
    pub(super) fn redefine(&mut self, config: &JobConfig) {
        self.removed = false;
        self.newer = (*self.config != *config).then(|| Arc::new(config.clone()));
    }

    /// The definition in force: of the next run.
    pub(super) fn newest(&self) -> &JobConfig {
        self.newer.as_ref().unwrap_or(&self.config)
    }

    /// No run is under way: the definition in force is the one.
    pub(super) fn take_newest(&mut self) {
        if let Some(newer) = self.newer.take() {
            self.config = newer;
        }
    }

    /// Whether a lease of it is held here.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.slot.doing, Doing::Holding { .. } | Doing::Ending)
    }

    /// Ends this process if a drill was ordered that means it.
    pub(super) fn obey_a_drill(&self, record: &JobRecord) {
        if must_crash(record, &self.owner, self.held) {
            crash(&self.config.name);
        }
    }

    /// Chooses an owner for a new attempt; `false` for one that is asked again, under the same owner.
    pub(super) fn begin_attempt(&mut self, attempt: Attempt) -> bool {
        let is_new = self.slot.attempt == attempt
            && !self.owner.as_str().ends_with(&format!("/{}", attempt.0));
        if is_new {
            self.owner = Owner(format!("{:032x}/{}", rand::random::<u128>(), attempt.0));
            self.tokens.begin();
        }
        is_new
    }

    /// What is asked of the store to get the lease; `despite_move`: a move of the job counts no more.
    pub(super) fn request(&self, node: &NodeName, despite_move: bool) -> Acquire {
        Acquire {
            job: self.config.name.clone(),
            owner: self.owner.clone(),
            node: node.clone(),
            ttl: self.config.timing.ttl,
            condition: match despite_move {
                true => Condition::WantedDespiteMove,
                false => Condition::Wanted,
            },
            seen: self.tokens.highest(),
        }
    }

    /// A new run under a new lease.
    pub(super) fn begin(&mut self, token: Token) {
        self.run = RunId(ulid::Ulid::generate().to_string());
        self.held = token;
        (self.gone, self.started) = (None, None);
        (self.lost, self.unused) = (false, false);
    }

    /// What keeps the lease of the newest run.
    pub(super) fn renewal(&self, node: &NodeName) -> Renewal {
        Renewal {
            job: self.config.name.clone(),
            owner: self.owner.clone(),
            node: node.clone(),
            token: self.held,
            ttl: self.config.timing.ttl,
            since: self.granted,
            run: None,
        }
    }

    /// The orders to the guard of the newest run.
    pub(super) fn spec(&self, around: &NodeContext) -> Spec {
        let config = &self.config;
        let mut env = around.env.clone();
        if config.user.is_some() {
            // The node's own; the other user's come when it is looked up.
            OF_THE_USER.iter().for_each(|name| drop(env.remove(OsStr::new(name))));
        }
        env.extend(config.env.iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(self.tick.iter().flat_map(|tick| variables(tick)));
        let program = Program {
            argv: config.command.iter().map(OsString::from).collect(),
            dir: config.dir.clone(),
            env,
            stop_grace: config.stop_grace,
            node: around.node.clone(),
            store_url: around.store_url.clone(),
            server: None,
            prefix: around.prefix.clone(),
            containment: around.containment.clone(),
            entrusted: Entrusted::of(config.user.clone(), config.secrets.clone()),
        };
        Spec {
            program,
            job: config.name.clone(),
            run: self.run.clone(),
            token: self.held,
            owner: self.owner.clone(),
            timing: config.timing,
            streams: Streams::Read,
            work: Work::Run,
        }
    }

    /// What is written of the newest run, after so many `crashes` in a row.
    pub(super) fn last(&self, crashes: u32, stopping: bool, metrics: &Metrics) -> Last {
        let job = &self.config.name;
        if self.unused {
            tracing::info!(%job, "it waits for its turn no more: the lease goes back");
            return Last::Nothing(job.clone(), self.owner.clone());
        }
        let gone = self.gone.clone().unwrap_or_else(Gone::unstarted);
        let uptime = self.started.map_or(Duration::ZERO, |at| clock::boot().since(at));
        let (end, then) = ending(&self.config, &gone, stopping, self.lost, crashes, uptime);
        match end {
            RunEnd::Crashed => metrics.run_crashed(job),
            RunEnd::TimedOut => metrics.run_timed_out(job),
            _ => {}
        }
        tracing::info!(%job, run = %self.run, ?end, exit = ?gone.exit,
            processes_killed = gone.processes_killed, "the script is gone");
        Last::Run(Ended {
            job: job.clone(),
            owner: self.owner.clone(),
            token: self.held,
            run: self.run.clone(),
            exit: gone.exit,
            end,
            processes_killed: gone.processes_killed,
            then,
            began: gone.began,
        })
    }
}

/// Ends this process as `kill -9` would: no line of a shutdown runs, which is what a drill is to measure.
fn crash(job: &JobName) {
    tracing::error!(%job, "a drill was ordered: this process kills itself now and does not come back by itself");
    // A reader that stands still does not put it off.
    outlet::STDERR.flush(Duration::from_millis(100));
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).ok();
    // No process survives that; but an ordered drill must never be ignored.
    std::process::abort();
}

/// The environment of a script for its tick.
fn variables(granted: &Granted) -> impl Iterator<Item = (OsString, OsString)> {
    let time = jiff::Timestamp::from_millisecond(granted.tick.due.0).unwrap_or_default();
    let own = [
        ("SOLOIST_TICK".to_owned(), granted.tick.name.0.clone()),
        (
            "SOLOIST_TICK_TIME".to_owned(),
            granted.tick.name.time().unwrap_or_else(|| time.to_string()),
        ),
        ("SOLOIST_ATTEMPT".to_owned(), granted.attempt.to_string()),
        ("SOLOIST_LATE_MS".to_owned(), granted.late_ms.to_string()),
    ];
    let params = granted.params.iter();
    let params = params
        .map(|(name, value)| (format!("SOLOIST_PARAM_{}", name.to_uppercase()), value.clone()));
    let all: Vec<_> = own.into_iter().chain(params).collect();
    all.into_iter().map(|(name, value)| (name.into(), value.into()))
}
