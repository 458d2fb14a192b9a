//! What node and guard say to each other, one JSON text per SEQPACKET message.
//!
//! Deadlines are absolute instants of CLOCK_BOOTTIME, the same clock in both processes: a relative one overlapped by
//! 645 ms when the node was paused between renewal and message.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use super::raw;
use soloist_domain::account::Account;
use soloist_domain::containment::Containment;
use soloist_domain::job::Exit;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RotationName, RunId, TypeName};
use soloist_domain::rotation::TurnOutcome;
use soloist_domain::time::Boot;
use soloist_remote::Access;
use soloist_store::dispatch::TaskId;
use soloist_store::rotation::Pass;

/// The first argument that makes this binary a guard. Useless without the node's socket as standard input.
pub const WORD: &str = "__guard";
/// The second argument that makes a guard a nursery.
pub const NURSERY: &str = "nursery";
/// The second argument that makes a guard only try what is possible here.
pub(super) const PROBE: &str = "containment";
/// Largest message in bytes; a start message with a very large environment is refused by the node. It holds the largest
/// payload of a task, every sign of it escaped, and stays below what a socket takes at once (net.core.wmem_default).
pub const LARGEST: usize = 192 * 1024;
/// Largest message after the first one, in either direction.
pub const LARGEST_ORDER: usize = 4 * 1024;

/// The first message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// What to run, and how to give the lease back when the node is dead.
    pub plan: Plan,
    /// The first deadline.
    pub deadline: Boot,
}

/// A run, as its guard needs to know it. Travels over the socket only: it holds the store's credentials.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in Spec of runner::child")]
pub struct Plan {
    #[serde(with = "raw::list")]
    pub argv: Vec<OsString>,
    #[serde(with = "raw::path")]
    pub dir: PathBuf,
    /// The script's whole environment.
    #[serde(with = "raw::pairs")]
    pub env: BTreeMap<OsString, OsString>,
    pub job: JobName,
    pub run: RunId,
    pub node: NodeName,
    pub token: Token,
    pub owner: Owner,
    pub store_url: String,
    /// The nodes that release it, instead of the store.
    #[serde(default)]
    pub server: Option<Access>,
    pub prefix: String,
    pub containment: Choice,
    /// The file in which the node has noted this run: the guard removes it when the node cannot.
    #[serde(with = "raw::path")]
    pub note: PathBuf,
    /// TERM goes out this long before a deadline that no renewal has moved.
    pub term_before_deadline: Duration,
    /// Its kind, which decides how its lease is released under [`Plan::token`].
    pub work: Work,
    /// The user that the script is to be; `None`: the guard's own.
    pub account: Option<Account>,
    /// The limit for core dumps that the script is to have, in bytes; guards have none.
    pub core: Option<u64>,
}

/// What is held while the command runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Work {
    /// A lease of its own: released by recording the end of the run.
    Run,
    /// A claimed task: returned by reporting its result.
    Task {
        /// Which.
        id: TaskId,
        /// What the command reads on its standard input.
        input: String,
    },
    /// A turn of a rotation: passed.
    Turn(Turn),
}

/// A turn, and how it is passed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// Of which rotation.
    pub rotation: RotationName,
    /// As a node calls the worker that it is passed to.
    #[serde(default)]
    pub name: Option<String>,
    /// Who is to come next.
    pub next: Option<TypeName>,
    /// The exit code that says that there was nothing to do.
    pub empty_code: Option<i32>,
}

impl Turn {
    /// The pass of the turn `token` after its command ended so.
    #[must_use]
    pub fn pass(&self, token: Token, exit: &Exit) -> Pass {
        let outcome = match exit.code {
            // Before 0: a user who calls 0 empty means it.
            Some(code) if Some(code) == self.empty_code => TurnOutcome::Empty,
            Some(0) => TurnOutcome::Done,
            _ => TurnOutcome::Failed,
        };
        Pass {
            rotation: self.rotation.clone(),
            turn: token,
            only: None,
            outcome,
            next: self.next.clone(),
            not_before: None,
        }
    }
}

/// What a nursery is for: its first message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Nursing {
    /// The node that it belongs to.
    pub node: NodeName,
    /// The level that guards are made ready for.
    pub containment: Choice,
    /// Where their leases are, with credentials.
    pub store_url: String,
    /// Key prefix.
    pub prefix: String,
}

/// The node orders guards from its nursery.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wanted {
    /// So many more.
    pub guards: u32,
}

/// A guard that waits for its plan. The node's ends of its socket, its standard output and its standard error come with
/// the message, in this order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Offer {
    /// Its process, a child of the node.
    pub pid: i32,
}

/// From the node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum ToGuard {
    /// A renewal succeeded.
    Deadline {
        /// To be acknowledged.
        seq: u64,
        /// Absolute.
        deadline: Boot,
        /// As in [`Plan::term_before_deadline`].
        term_before: Duration,
    },
    /// TERM now, KILL after `grace`.
    Stop {
        /// From now.
        grace: Duration,
    },
    /// KILL now.
    Kill,
    /// The end is recorded: nothing is left to do.
    Dismissed,
}

/// From the guard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromGuard {
    /// The script runs.
    Started {
        /// Its first process.
        pid: u32,
        /// The level it is contained by.
        containment: Containment,
        /// Why that is weaker than planned, if it is.
        weaker_because: Option<String>,
    },
    /// A deadline arrived.
    Ack {
        /// Which.
        seq: u64,
    },
    /// The script could not be started; no process of it exists.
    Failed {
        /// With the remedy.
        error: String,
    },
    /// No process of the tree is left (`ECHILD`).
    Gone {
        /// Of the first process.
        exit: Exit,
        /// Others that had to be killed.
        processes_killed: u32,
        /// What ended it.
        cause: Cause,
    },
}

/// What ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The script.
    Itself,
    /// The node asked for TERM, grace, KILL.
    Stopped,
    /// No renewal came in time.
    Deadline,
    /// The node asked for KILL.
    Kill,
    /// The guard itself was killed or silent, and the node killed the tree.
    GuardLost,
}
