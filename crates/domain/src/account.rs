//! A Unix user for scripts. It looks up nothing.

use serde::{Deserialize, Serialize};

/// A user with everything that a process needs to become it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in passwd(5)")]
pub struct Account {
    pub name: String,
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// All groups, the primary one among them.
    pub groups: Vec<u32>,
    pub home: String,
}
