//! `soloist doctor` at a life line: whether programs on this machine are watched, as the node sees it and as a program does.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use nix::unistd::{Gid, Group};

use soloist_config::Config;
use soloist_guard::watcher::GROUP;
use soloist_lifeline::ask;
use soloist_store::examine::Finding;

const CHECK: &str = "life line";
const ASKS: &str = "{\"doctor\":true}";

/// As the node's user: is there a watcher, and who may reach it?
pub(super) fn of_a_node(config: &Config) -> Vec<Finding> {
    let Some(path) = &config.lifeline else {
        let programs = config.jobs.iter().any(|job| job.is_external());
        return Vec::from_iter(programs.then(|| {
            Finding::ok(CHECK, "none: a program that dies keeps its lease until that ends; lifeline = \"/run/soloist/lifeline.sock\" changes that")
        }));
    };
    let shown = path.display();
    let Ok(file) = std::fs::symlink_metadata(path) else {
        let dir = path.parent().filter(|dir| dir.is_dir());
        return vec![match dir {
            Some(_) => Finding::warn(
                CHECK,
                format!("{shown} is not there: no node of this configuration runs"),
                "start the node; its log says why if the file does not come",
            ),
            None => Finding::bad(
                CHECK,
                format!("{shown}: its directory is not there, so programs are not watched"),
                "make the directory for the node's user (systemd: RuntimeDirectory=soloist)",
            ),
        }];
    };
    if !file.file_type().is_socket() {
        return vec![Finding::bad(
            CHECK,
            format!("{shown} is no socket, so programs are not watched"),
            "remove it, or choose another path for `lifeline`",
        )];
    }
    let mut findings = vec![match ask(path, ASKS) {
        Ok(said) => match said["node"].as_str() {
            // Its name may have come from an option that is not given here.
            Some(node) => {
                Finding::ok(CHECK, format!("programs are watched at {shown}, for the node {node}"))
            }
            None => Finding::warn(
                CHECK,
                format!(
                    "the watcher of {shown} waits for a node: it kills in time, and gives nothing back until one is there"
                ),
                "start the node",
            ),
        },
        Err(why) => Finding::bad(
            CHECK,
            format!("nobody answers: {why}"),
            "start the node; its log says what is wrong with its watcher",
        ),
    }];
    let members = Group::from_name(GROUP).ok().flatten().map(|group| group.gid);
    let (mode, gid) = (file.permissions().mode() & 0o777, Gid::from_raw(file.gid()));
    if mode & 0o002 != 0 {
        findings.push(Finding::warn(
            CHECK,
            format!("every user may connect to {shown}"),
            format!("chmod 0660 {shown}"),
        ));
    }
    if members.is_some_and(|members| members != gid) {
        findings.push(Finding::warn(
            CHECK,
            format!("{shown} is not of the group {GROUP}, so its members cannot connect"),
            format!("add the node's user to {GROUP} and start the node again (systemd: SupplementaryGroups={GROUP})"),
        ));
    }
    findings
}

/// As a program of this user: would it be watched?
pub(super) fn as_a_program(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let said = match ask(path, ASKS) {
        Ok(said) => said,
        Err(why) => {
            let remedy = format!(
                "is the node there, with lifeline = \"{shown}\"? Is this user a member of {GROUP} (usermod -aG {GROUP} USER, then log in again)?"
            );
            return vec![Finding::bad(
                CHECK,
                format!("a program here is not watched: {why}"),
                remedy,
            )];
        }
    };
    let mut findings = vec![match said["why"].as_str() {
        None => Finding::ok(
            CHECK,
            "a program of this user is watched: it is killed when its work is not over in time, and its death gives its leases back",
        ),
        Some(why) if why.contains("pid namespace") => Finding::bad(
            CHECK,
            format!("a program here is not watched: {why}"),
            "see docs/lifeline.md",
        ),
        Some(why) => Finding::warn(
            CHECK,
            format!(
                "the death of a program of this user gives its leases back; it is not killed when it is paused beyond them: {why}"
            ),
            "see docs/lifeline.md; the library's own deadline holds all the same",
        ),
    }];
    if said["node"].is_null() {
        findings.push(Finding::warn(
            CHECK,
            "no node is there now: what dies is given back by the next one",
            "start the node",
        ));
    }
    findings
}
