//! The limit of open files: a node raises its own to the maximum, and every process it starts gets the old limit back.
//!
//! A script may use select(2), which fails above 1,024. So a node raises only its own soft limit, and passes the old one to its guards
//! and nurseries, which set it before they do anything else.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More than this is of no use to a node, and makes some programs slow that close everything.
const MOST: u64 = 65_536;
/// Says the old soft limit to a guard.
const VARIABLE: &str = "SOLOIST_DESCRIPTORS";

static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of this process to the hard one, at most `MOST`; returns what it may have open now.
///
/// # Errors
/// When the kernel refuses.
pub fn raise() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = hard.min(MOST);
    if soft >= wanted {
        return Ok(soft);
    }
    // Before the limit: a child that starts in between must know.
    BEFORE.set(soft).ok();
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    Ok(wanted)
}

/// What a guard or nursery must find in its environment.
#[must_use]
pub fn inherited() -> Option<(&'static str, OsString)> {
    BEFORE.get().map(|soft| (VARIABLE, soft.to_string().into()))
}

/// In a guard or nursery: takes the soft limit of the node from before it raised its own.
pub(super) fn restore() {
    let said = std::env::var_os(VARIABLE);
    let Some(soft) = said.as_deref().and_then(OsStr::to_str).and_then(|text| text.parse().ok())
    else {
        return;
    };
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Lowering a limit is never refused.
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(soft), hard).ok();
    }
}
