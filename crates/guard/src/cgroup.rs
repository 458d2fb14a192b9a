//! One cgroup (version 2) for each run: the kernel finds and kills every process in it at once, also a racy forker.
//!
//! It lies below the node's own cgroup, `soloist/NODE/RUN`, so that a service manager that ends the node's cgroup ends
//! it too. No controller is switched on: that would forbid the node to live where it lives ("no internal processes").
//! Sources: cgroups(7), Documentation/admin-guide/cgroup-v2.rst (`cgroup.kill`, Linux 5.14).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::kernel;

/// A directory that vanished between two steps is made again this often.
const ATTEMPTS: u32 = 3;

/// The cgroup of one run.
#[derive(Debug)]
pub struct RunCgroup {
    path: PathBuf,
}

impl RunCgroup {
    /// Makes the cgroup `path`.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        for _ in 1..ATTEMPTS {
            // Another guard of this node may just be removing the directory above, empty as it was.
            if fs::create_dir_all(&path).is_ok() {
                break;
            }
        }
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// One that exists, left by an earlier incarnation of the node or held by a guard.
    pub fn existing(path: &Path) -> Option<Self> {
        path.join("cgroup.procs").exists().then(|| Self { path: path.to_owned() })
    }

    /// What a process writes "0" to in order to enter.
    pub(super) fn door(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))
    }

    /// The kernel sends KILL to every process in it and in cgroups below.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Who is in it, cgroups below left out.
    pub fn members(&self) -> Vec<Pid> {
        let members = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        members.lines().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
    }

    /// Whether a process is in it or below it.
    pub fn populated(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events"))
            .is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }

    /// Removes it, if no process is left in it. What a script made below it goes too.
    pub fn remove(&self) {
        remove_below(&self.path);
        if let Some(node) = self.path.parent() {
            // Stays while another run of this node lives.
            fs::remove_dir(node).ok();
        }
    }
}

fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    fs::remove_dir(path).ok();
}

/// Where cgroups for runs can be made, after having made one and killed a process in it.
///
/// # Errors
/// Why not, with the remedy where there is one.
pub(super) fn probe() -> Result<PathBuf, String> {
    let base = own().ok_or("no cgroup version 2 is mounted here")?.join("soloist");
    let trial = RunCgroup { path: base.join(format!("probe-{}", std::process::id())) };
    fs::create_dir_all(&trial.path).map_err(|error| {
        format!(
            "{} cannot be made ({error}): run the node as root, or delegate its cgroup to it (systemd: Delegate=yes)",
            base.display()
        )
    })?;
    let tried = try_out(&trial);
    trial.remove();
    tried.map(|()| base)
}

fn try_out(trial: &RunCgroup) -> Result<(), String> {
    if !trial.path.join("cgroup.kill").exists() {
        return Err("this kernel has no cgroup.kill: it needs Linux 5.14".to_owned());
    }
    let victim = kernel::idle_child().map_err(|error| format!("no process to try it: {error}"))?;
    let entered = fs::write(trial.path.join("cgroup.procs"), victim.to_string());
    let killed = entered.and_then(|()| trial.kill());
    if killed.is_err() {
        kill(victim, Signal::SIGKILL).ok();
    }
    // It dies either way: by the cgroup or by the line above.
    waitpid(victim, None).ok();
    killed
        .map_err(|error| format!("a process could not be moved into a cgroup and killed: {error}"))
}

/// The directory of this process's own cgroup in the version 2 hierarchy, which may be mounted beside version 1.
fn own() -> Option<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (root, point) = mounts.lines().find_map(mount_of_cgroup2)?;
    // A mount may show only a part of the hierarchy, and a cgroup namespace may have moved its root.
    let below = Path::new(&own).strip_prefix(&root).ok()?;
    if below.components().any(|part| part.as_os_str() == "..") {
        return None;
    }
    Some(Path::new(&point).join(below))
}

/// Root and mount point, if a line of mountinfo (proc_pid_mountinfo(5)) is of cgroup version 2.
fn mount_of_cgroup2(line: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    (after.split(' ').next() == Some("cgroup2")).then(|| (root.to_owned(), point.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mount_of_version_2_counts() {
        let of = mount_of_cgroup2;
        let v2 = "35 24 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(of(v2), Some(("/".to_owned(), "/sys/fs/cgroup/unified".to_owned())));
        let v1 = "36 24 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        assert_eq!(of(v1), None);
        assert_eq!(of("nonsense"), None);
    }
}
