//! Cleans up after dead processes: each run is recorded in a small file, and a node (or `soloist run`) kills the remains of runs whose
//! node and guard are both dead, before it reports to the store or asks for a lease.
//!
//! While one of the two lives nothing is left: a guard kills when its node dies, a node kills when its guard dies, and in a pid namespace
//! the kernel kills when both die. Without a namespace a later process must clean up. Until then the lease expires by itself (no process
//! is left to release it), and only its token keeps the remains away from sinks. The same holds on a machine whose node never starts
//! again.
//!
//! A process is killed only as one of a recorded run: in its cgroup, with its mark `SOLOIST_RUN` in the environment, or in the session of
//! its first process. A process that left all three can be found in a pid namespace only. A number alone proves nothing: it counts
//! together with the start of the process, the boot and the pid namespace of the node. Files of living processes are left alone,
//! whichever node they belong to.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::sweep::{EMPTY_LOOKS, LOOK_AGAIN, kill_marked, kill_tree};
use soloist_domain::name::{JobName, NodeName, RunId};
use soloist_guard::cgroup::RunCgroup;
use soloist_guard::walk::{Descendants, Walk, began, everybody, lives_since, session_of};
use soloist_process::clock;

/// How long a living guard whose node is dead may take to end its script: it needs milliseconds, unless it is frozen.
const GUARD_PATIENCE: Duration = Duration::from_secs(1);
/// How long a killed process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a directory is made that vanishes at once.
const ATTEMPTS: u32 = 10;

/// A process, distinct from every other that was or will be given its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Who {
    pid: i32,
    began: u64,
}

impl Who {
    fn is(pid: Pid) -> Option<Self> {
        Some(Self { pid: pid.as_raw(), began: began(pid)? })
    }

    fn lives(self) -> bool {
        lives_since(Pid::from_raw(self.pid), self.began)
    }
}

/// A run, as far as it takes to find its processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    /// Of this machine since it was started, and of this pid namespace.
    world: String,
    job: JobName,
    run: RunId,
    node_name: NodeName,
    node: Who,
    guard: Who,
    first: Option<Who>,
    cgroup: Option<PathBuf>,
}

/// The file of a run under way.
#[derive(Debug)]
pub(super) struct Noted {
    note: Note,
    file: PathBuf,
}

/// What was killed.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Swept {
    pub job: JobName,
    pub run: RunId,
    pub node: NodeName,
    pub processes: usize,
}

impl Noted {
    /// Notes a run whose guard has just been started.
    pub(super) fn new(
        notes: &Path,
        (job, run, node_name): (&JobName, &RunId, &NodeName),
        guard: Pid,
        cgroup: Option<PathBuf>,
    ) -> io::Result<Self> {
        let gone = || io::Error::other("a process is gone that has just been started");
        let note = Note {
            world: world()?,
            job: job.clone(),
            run: run.clone(),
            node_name: node_name.clone(),
            node: Who::is(getpid()).ok_or_else(gone)?,
            guard: Who::is(guard).ok_or_else(gone)?,
            first: None,
            cgroup,
        };
        let noted = Self { note, file: notes.join(run.as_str()) };
        let mut attempts = 0;
        loop {
            // Another run that ends may just be removing the directory, empty as it was.
            match make_private(notes).and_then(|()| noted.write()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS => {
                    attempts += 1;
                }
                result => return result.map(|()| noted),
            }
        }
    }

    /// The script's first process is known.
    pub(super) fn started(&mut self, first: Pid) {
        self.note.first = Who::is(first);
        if let Err(error) = self.write() {
            tracing::warn!(run = %self.note.run, %error, "the note of a run is not up to date");
        }
    }

    /// Nothing is left of it.
    pub(super) fn erase(&self) {
        fs::remove_file(&self.file).ok();
        // Stays while another run is noted in it.
        self.file.parent().map(fs::remove_dir).and_then(Result::ok);
    }

    fn write(&self) -> io::Result<()> {
        // Whole or not at all. A boot ends every process, so the disk need not have it.
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(&self.note)?)?;
        fs::rename(&fresh, &self.file)
    }
}

/// Where runs on the store `url` are noted: one directory for all nodes of this user on this machine.
#[must_use]
pub fn notes_of(url: &str, prefix: &str) -> PathBuf {
    let uid = geteuid();
    let own = PathBuf::from(format!("/run/user/{uid}"));
    let base = match () {
        () if uid.is_root() && Path::new("/run").is_dir() => PathBuf::from("/run/soloist"),
        () if own.is_dir() => own.join("soloist"),
        () => std::env::temp_dir().join(format!("soloist-{uid}")),
    };
    // Whatever has its leases, it is the same store.
    let (url, _) = soloist_domain::ensemble::split(url);
    let digest = Sha256::digest(format!("{url}\n{prefix}"));
    let store: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    base.join(store)
}

/// Makes a directory that only this user can write to: a user who can write a note can have processes killed.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for directory in directory.ancestors().take(2) {
        let about = fs::symlink_metadata(directory)?;
        if !about.is_dir() || about.uid() != geteuid().as_raw() || about.mode() & 0o022 != 0 {
            return Err(io::Error::other(format!(
                "{} is not a directory that this user alone can write to: remove it",
                directory.display()
            )));
        }
    }
    Ok(())
}

/// What processes are numbered in: another boot, or another container, knows no process of this one.
fn world() -> io::Result<String> {
    // It stays what it is for as long as this process lives.
    static WORLD: OnceLock<String> = OnceLock::new();
    match WORLD.get() {
        Some(known) => Ok(known.clone()),
        None => find_world().map(|found| WORLD.get_or_init(|| found).clone()),
    }
}

fn find_world() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let pids = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{} {}", boot.trim(), pids.display()))
}

/// Kills what is left of every noted run whose node is dead; returns what was killed. Blocks, rarely for long.
///
/// # Errors
/// A process that does not die: a node must not ask for leases while it is there. Or notes that cannot be trusted.
pub fn sweep(notes: &Path) -> io::Result<Vec<Swept>> {
    if !notes.exists() {
        return Ok(Vec::new());
    }
    make_private(notes)?;
    let world = world()?;
    let mut swept = Vec::new();
    for file in fs::read_dir(notes)?.flatten().map(|entry| entry.path()) {
        let Some(note) = read(&file) else { continue };
        if note.world != world || note.node.lives() {
            continue;
        }
        if let Some(processes) = end(&note)? {
            fs::remove_file(&file).ok();
            if processes > 0 {
                let Note { job, run, node_name: node, .. } = note;
                swept.push(Swept { job, run, node, processes });
            }
        }
    }
    Ok(swept)
}

/// A file that is being written, or is no note, says nothing.
fn read(file: &Path) -> Option<Note> {
    let note: Note = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    (file.file_name()? == note.run.as_str()).then_some(note)
}

/// Kills all of one run; `None` when a living guard has done so and now gives the lease back.
fn end(note: &Note) -> io::Result<Option<usize>> {
    let mut killed = HashSet::new();
    let guard = Pid::from_raw(note.guard.pid);
    let begun = clock::boot();
    let tree = || Descendants::of(guard, Walk::Complete);
    while note.guard.lives() {
        if tree().iter().next().is_none() {
            return Ok(None);
        }
        if clock::boot().since(begun) > GUARD_PATIENCE {
            kill_tree(guard, &mut killed);
            if note.guard.lives() {
                kill(guard, Signal::SIGKILL).ok();
            }
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let mark = format!("SOLOIST_RUN={}", note.run);
    let begun = clock::boot();
    let mut empty_looks = 0;
    while empty_looks < EMPTY_LOOKS {
        let mut found = kill_marked(mark.as_bytes(), &mut killed);
        found |= kill_session(note.first, &mut killed);
        found |= kill_cgroup(note.cgroup.as_deref(), &mut killed);
        empty_looks = if found { 0 } else { empty_looks + 1 };
        if clock::boot().since(begun) > PATIENCE {
            return Err(io::Error::other(format!(
                "processes of run {} of {} (job {}) outlived their node and their guard and cannot be killed (SOLOIST_RUN={} in /proc/*/environ): end them, or restart this machine",
                note.run, note.node_name, note.job, note.run
            )));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    if let Some(cgroup) = note.cgroup.as_deref().and_then(RunCgroup::existing) {
        cgroup.remove();
    }
    Ok(Some(killed.len()))
}

/// Kills the session of a script's first process, also when that one is dead: no other process can found a session of this
/// number while a member of it lives.
fn kill_session(first: Option<Who>, killed: &mut HashSet<Pid>) -> bool {
    let Some(first) = first else { return false };
    let ours = |pid: Pid| {
        session_of(pid) == Some(Pid::from_raw(first.pid))
            && began(pid).is_some_and(|at| at >= first.began && lives_since(pid, at))
    };
    // A stranger that got the number, and with it founded a session, began later than the first and is its leader.
    let leader = Pid::from_raw(first.pid);
    if began(leader).is_some_and(|at| at != first.began) {
        return false;
    }
    let mut found = false;
    for pid in everybody().into_iter().filter(|pid| ours(*pid)) {
        found = true;
        kill_tree(pid, killed);
        if ours(pid) && kill(pid, Signal::SIGKILL).is_ok() {
            killed.insert(pid);
        }
    }
    found
}

fn kill_cgroup(path: Option<&Path>, killed: &mut HashSet<Pid>) -> bool {
    let Some(cgroup) = path.and_then(RunCgroup::existing) else { return false };
    killed.extend(cgroup.members());
    cgroup.kill().ok();
    cgroup.populated()
}
