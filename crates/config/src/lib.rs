//! The configuration: one TOML file on the node, checked as a whole before anything starts.
//!
//! Scripts are defined here and nowhere else; nothing that arrives over the network can add or change one.
//! [`load`] reports every problem at once, each with its place and a remedy; [`examine`] gives the warnings too.
//! It starts nothing and does not touch the store.

mod address;
mod alerts;
mod check;
mod closed;
mod current;
mod definition;
mod document;
mod doors;
mod elsewhere;
mod entrusted;
mod follows;
mod groups;
mod history;
mod job;
mod limits;
mod listening;
mod load;
mod log;
mod oidc;
pub mod params;
mod problem;
mod reload;
mod schedule;
mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use soloist_domain::backoff::Backoff;
use soloist_domain::containment::Containment;
use soloist_domain::lease::Timing;
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, NodeName, RotationName, UserName};

pub use address::own_node_name;
pub use alerts::{Alerting, Channel, Way};
pub use check::{Found, program as find_program};
pub use current::Current;
pub use definition::digest;
pub use doors::{Doors, TlsFiles};
pub use elsewhere::{Telling, elsewhere};
pub use entrusted::{account as find_account, secret as read_secret};
pub use groups::in_groups;
pub use listening::{Listening, listening};
pub use load::{Environment, Examination, Overrides, WithoutJobs, examine, load};
pub use oidc::{DefaultRole, Oidc, RolesOfGroups, Secret};
pub use params::{Param, ParamKind};
pub use problem::{Place, Problem, Problems};
pub use schedule::{Scheduled, ticks};

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it came from; `None` when there was none and the defaults rule.
    pub file: Option<PathBuf>,
    /// Store URL; relative SQLite paths are already resolved against the file's directory.
    pub store: String,
    /// URL of the ZooKeeper that has the leases; `None`: the store has them.
    pub coordination: Option<String>,
    /// Key prefix in Redis (`soloist:`).
    pub prefix: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// The origin browsers use, without a trailing slash.
    pub public_url: String,
    /// This node's name.
    pub node: NodeName,
    /// Default lease.
    pub timing: Timing,
    /// The longest lease that a program may ask for under a name of its own.
    pub lease_ttl_max: Duration,
    /// Where programs on this machine are watched (contract 15); `None`: nowhere.
    pub lifeline: Option<PathBuf>,
    /// How long it is kept who held a job and who wanted it.
    pub history: Duration,
    /// The level of containment that is demanded; `None` takes the strongest that works.
    pub containment: Option<Containment>,
    /// Caps of live connections.
    pub live: LiveLimits,
    /// How much output of each job is kept.
    pub log: LogBounds,
    /// Caps and times of connections, proxies, host names, certificates.
    pub doors: Doors,
    /// Single sign-on, where it is set up.
    pub oidc: Option<Arc<Oidc>>,
    /// Which alerts are sent, and where.
    pub alerting: Arc<Alerting>,
    /// Called every minute by one node that sees the store.
    pub heartbeat_url: Option<Secret>,
    /// Jobs, in the order of the file.
    pub jobs: Vec<JobConfig>,
}

/// Caps of `/live`, so that clients cost bounded memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LiveLimits {
    pub sockets_per_node: usize,
    pub sockets_per_user: usize,
    pub sockets_per_address: usize,
}

/// A job's title in each language.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Title {
    pub en: String,
    pub zh: String,
}

/// What follows exit 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Again after this long.
    After(Duration),
    /// Done until switched on again.
    Never,
}

/// Who does the work of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// Soloist starts a command.
    Soloist,
    /// An external program takes the lease and does the work; Soloist starts nothing.
    External,
}

impl Runner {
    /// The word in the file and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Soloist => "soloist",
            Self::External => "external",
        }
    }
}

/// One `[[job]]`, or a job that only other nodes define ([`JobConfig::is_elsewhere`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobConfig {
    /// Its name.
    pub name: JobName,
    /// Its title.
    pub title: Title,
    /// Who does its work.
    pub runner: Runner,
    /// Only other nodes define it, so nothing here says how to run it.
    pub elsewhere: bool,
    /// The heading under which pages show it.
    pub group: Option<String>,
    /// The command and its arguments; never a shell string. Empty for a job that a program runs.
    pub command: Vec<String>,
    /// Absolute working directory.
    pub dir: PathBuf,
    /// Added to the small environment a script gets.
    pub env: BTreeMap<String, String>,
    /// Lease times.
    pub timing: Timing,
    /// Between TERM and KILL; how long a program has that was told to stop.
    pub stop_grace: Duration,
    /// After exit 0.
    pub repeat: Repeat,
    /// It runs at ticks; `None`: continuously, again and again.
    pub schedule: Option<Scheduled>,
    /// After a crash; holds `min_uptime` too.
    pub backoff: Backoff,
    /// A run that lasts longer is stopped, which counts as a crash.
    pub max_runtime: Option<Duration>,
    /// So is one that says nothing for so long.
    pub max_silence: Option<Duration>,
    /// One that stands still for so long is stuck, by the rules of `[[alert]]`; nothing stops it.
    pub stuck_after: Option<Duration>,
    /// So long nobody need look when it is wanted and no program has asked for it, by the same rules.
    pub missing_after: Option<Duration>,
    /// Which nodes may run it; `*` any.
    pub nodes: Vec<String>,
    /// Which operators may switch it: account names, `@` and the name of a group, `*` any.
    pub operators: Vec<String>,
    /// Which accounts may see it, beside its operators and admins; as `operators`.
    pub viewers: Vec<String>,
    /// The user of the machine that it runs as; `None`: the node's own.
    pub user: Option<String>,
    /// Absolute paths of files, by the environment variables in which a run gets their content.
    pub secrets: BTreeMap<String, PathBuf>,
    /// Each run is a turn of this rotation, as the type of the job's own name.
    pub rotation: Option<RotationName>,
    /// Called after each success.
    pub heartbeat_url: Option<Secret>,
}

impl JobConfig {
    /// Whether an external program takes its lease: no node ever asks for it, and nothing is started.
    #[must_use]
    pub fn is_external(&self) -> bool {
        self.runner == Runner::External
    }

    /// Whether `node` may run it; no node runs what a program runs.
    #[must_use]
    pub fn runs_on(&self, node: &NodeName) -> bool {
        !self.is_external() && self.nodes.iter().any(|n| n == "*" || n == node.as_str())
    }

    /// Whether `user`, a member of these groups, is among its operators (the role is checked elsewhere).
    #[must_use]
    pub fn operated_by(&self, user: &UserName, groups: &[String]) -> bool {
        lists(&self.operators, user, groups)
    }

    /// Whether `user` may see it: `viewers` lists them, or `operators` names them. A `*` in `operators` names no account.
    #[must_use]
    pub fn viewed_by(&self, user: &UserName, groups: &[String]) -> bool {
        lists(&self.viewers, user, groups) || names(&self.operators, user, groups)
    }

    /// Whether every account may see it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.viewers.iter().any(|name| name == "*")
    }
}

/// Whether a list of `operators` or `viewers` has this account, by its name, by a group, or because it has `*`.
fn lists(list: &[String], user: &UserName, groups: &[String]) -> bool {
    list.iter().any(|entry| entry == "*") || names(list, user, groups)
}

/// The same by its name or by a group only.
fn names(list: &[String], user: &UserName, groups: &[String]) -> bool {
    list.iter().any(|entry| match entry.strip_prefix('@') {
        Some(group) => groups.iter().any(|own| own == group),
        None => entry == user.as_str(),
    })
}

/// What a lease may be like when no job says.
const LEASE_WITHOUT_JOBS: Duration = Duration::from_secs(10);

impl Config {
    /// The job of that name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&JobConfig> {
        self.jobs.iter().find(|job| job.name.as_str() == name)
    }

    /// By what a store is opened: the store, with its coordination.
    #[must_use]
    pub fn address(&self) -> String {
        soloist_domain::ensemble::joined(&self.store, self.coordination.as_deref())
    }

    /// The longest lease of any job.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        let longest = self.jobs.iter().map(|job| job.timing.ttl).max();
        longest.unwrap_or(LEASE_WITHOUT_JOBS)
    }
}
