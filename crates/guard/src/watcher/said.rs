//! The messages on a life line, of programs and between the watcher and its node. Each line is one JSON object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use soloist_domain::lease::Token;

/// The longest line of a program, in bytes.
pub(super) const LONGEST: usize = 16 * 1024;
/// The longest line between watcher and node.
pub const LONGEST_OF_NODES: usize = 4 * 1024 * 1024;

/// A line of a program, or the first of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    /// The API token.
    pub(super) auth: Option<String>,
    /// `leave`: never kill it.
    pub(super) overrun: Option<String>,
    /// Says that it lives, on a kernel without SO_PEERPIDFD.
    pub(super) again: Option<String>,
    pub(super) under: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) until_ns: Option<u64>,
    pub(super) release: Option<bool>,
    pub(super) end: Option<String>,
    /// `soloist doctor` asks how it would be watched.
    pub(super) doctor: bool,
    /// A node takes this watcher.
    pub(super) node: Option<String>,
}

/// What the watcher tells its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToNode {
    /// The node may serve; or why not.
    Taken(Result<(), String>),
    /// Is this an API token?
    Token {
        /// To be repeated in the answer.
        id: u64,
        /// As the program sent it.
        token: String,
    },
    /// Is this the secret of the holder?
    Holds {
        /// To be repeated in the answer.
        id: u64,
        /// Of which lease.
        name: String,
        /// As the program sent it.
        secret: String,
    },
    /// The process that worked under it is dead: give it back.
    Dead {
        /// To be repeated in the answer.
        id: u64,
        /// Of which lease.
        name: String,
        /// As the program sent it.
        secret: String,
        /// Which process.
        pid: i32,
        /// The watcher has killed it, because it did not end in time.
        killed: bool,
    },
    /// What is watched now.
    Watched(Watched),
}

/// What a watcher watches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Processes.
    pub programs: u32,
    /// The leases that their death releases, by name.
    pub leases: BTreeMap<String, Token>,
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromNode {
    /// Of the question.
    pub id: u64,
    /// Yes, no, or not known now.
    pub answer: Option<bool>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
