//! Nodes of a user who is not root: everything they do, from their first store to their scripts, is done by that user.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use nix::unistd::Uid;

use super::node::{Ground, SOLOIST};

/// `nobody` on nearly every machine.
pub(crate) const UID: u32 = 65_534;

/// A ground of that user, for tests that root runs; `None` where this cannot be had, and says so.
#[must_use]
pub(crate) fn ground(store: &str, jobs: &str) -> Option<Ground> {
    let id = UID.to_string();
    let become_it = ["--reuid", &id, "--regid", &id, "--clear-groups"];
    let can = Command::new("setpriv").args(become_it).arg("true").status();
    if !Uid::effective().is_root() || !can.is_ok_and(|status| status.success()) {
        // Past what keeps back the output of a test that passes.
        writeln!(
            std::io::stderr(),
            "NOT TESTED HERE: a node that is not root: it needs root and setpriv"
        )
        .ok();
        return None;
    }
    let ground = Ground::new(store, jobs);
    let program = ground.path("soloist-as-nobody");
    let text = format!("#!/bin/sh\nexec setpriv {} {SOLOIST} \"$@\"\n", become_it.join(" "));
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("ours");
    for path in [ground.path(""), ground.path("soloist.toml")] {
        chown(path, Some(UID), Some(UID)).expect("root may");
    }
    let program = ground.path("soloist-as-nobody");
    Some(ground.with_program(&program))
}
