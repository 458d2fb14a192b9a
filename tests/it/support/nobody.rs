//! Nodes of a user who is not root: everything they do, from their first store to their scripts, is done by that user.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
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

/// Puts a version of `files` into `volume` as the kubelet does: of root and the group of that user, 0440, and by one swap of a link.
///
/// # Panics
/// When root may not do that.
pub(crate) fn publish(volume: &Path, version: &str, files: &[(&str, &str)]) {
    let name = format!("..2026_11_27_{version}");
    let place = volume.join(&name);
    fs::create_dir_all(&place).expect("made");
    for (name, text) in files {
        let file = place.join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o440)).expect("ours");
        chown(&file, Some(0), Some(UID)).expect("root may");
    }
    for dir in [volume, &place] {
        fs::set_permissions(dir, Permissions::from_mode(0o750)).expect("ours");
        chown(dir, Some(0), Some(UID)).expect("root may");
    }
    let next = volume.join("..data_tmp");
    symlink(&name, &next).expect("a link");
    fs::rename(&next, volume.join("..data")).expect("swapped");
    for (name, _) in files {
        // It is there from the first version on.
        symlink(Path::new("..data").join(name), volume.join(name)).ok();
    }
}
