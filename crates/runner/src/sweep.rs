//! What the node does when a guard is lost: it kills the guard and everything that the guard had to kill.
//!
//! A run's processes are found in three ways, because none is enough: below the guard while it still lives (it may be frozen), by the mark
//! `SOLOIST_RUN` in their environment, and, in a process that is a subreaper and starts nothing but guards, as orphans that came to it:
//! the orphan of a living guard goes to that guard and never comes here. Where the run has a cgroup, the kernel kills what is in it; where
//! it has a pid namespace, the kernel did so when the guard died. Only two empty searches in a row count as proof.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid};
use parking_lot::{Mutex, MutexGuard};

use soloist_domain::name::RunId;
use soloist_guard::cgroup::RunCgroup;
use soloist_guard::walk::{Descendants, Walk, began, everybody, group_of, session_of};

/// Between two looks.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Empty looks in a row that count as proof: the environment of a process in the middle of an exec reads as empty.
pub(super) const EMPTY_LOOKS: u32 = 2;

static GUARDS: Mutex<Guards> = Mutex::new(Guards { living: Vec::new(), nurseries: Vec::new() });
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The children of this process that it has on purpose.
#[derive(Debug)]
pub(super) struct Guards {
    /// Guards that may have a plan.
    living: Vec<Pid>,
    /// Nurseries. A guard without a plan is in the session of its nursery.
    nurseries: Vec<Pid>,
}

impl Guards {
    /// A guard is about to get its plan.
    pub(super) fn employ(&mut self, guard: Pid) {
        self.living.push(guard);
    }

    /// A nursery lives.
    pub(super) fn nurse(&mut self, nursery: Pid) {
        self.nurseries.push(nursery);
    }

    /// A nursery is reaped.
    pub(super) fn nurse_no_more(&mut self, nursery: Pid) {
        self.nurseries.retain(|known| *known != nursery);
    }

    fn knows(&self, child: Pid) -> bool {
        self.living.contains(&child)
            || self.nurseries.contains(&child)
            || session_of(child).is_some_and(|session| self.nurseries.contains(&session))
    }
}

/// Makes orphans of dead guards children of this process, so that they can be found and reaped. Only for a process
/// that starts nothing but guards: any other process that it starts later would be taken for such an orphan.
pub(super) fn become_subreaper() {
    match nix::sys::prctl::set_child_subreaper(true) {
        Ok(()) => ADOPTS.store(true, Ordering::Release),
        Err(error) => tracing::warn!(
            %error,
            "cannot become a subreaper: leftovers of a killed guard are found by their environment only"
        ),
    }
}

/// The living guards of this process. Hold it while starting one: a child that is not listed counts as an orphan.
pub(super) fn guards() -> MutexGuard<'static, Guards> {
    GUARDS.lock()
}

/// To be called once the guard is reaped.
pub(super) fn forget(guard: Pid) {
    guards().living.retain(|known| *known != guard);
}

/// Kills `guard`, not yet reaped, and all of `run`. When none is left it returns how many there were in addition to the guard
/// and the script's `first` process. Blocks until then, so call it where blocking is allowed.
pub(super) fn sweep(guard: Pid, run: &RunId, first: Option<Pid>, cgroup: Option<&Path>) -> u32 {
    let since = began(guard);
    let mut killed = HashSet::new();
    // First what is below a guard that only froze: once it is dead, nothing says which guard they belonged to.
    kill_tree(guard, &mut killed);
    // Not reaped yet, so the number is still its own.
    kill(guard, Signal::SIGKILL).ok();
    let mark = format!("SOLOIST_RUN={run}");
    let mut empty_looks = 0;
    while empty_looks < EMPTY_LOOKS {
        let before = killed.len();
        let mut found = kill_marked(mark.as_bytes(), &mut killed);
        found |= kill_orphans(since, &mut killed);
        if let Some(cgroup) = cgroup.and_then(RunCgroup::existing) {
            cgroup.kill().ok();
            found |= cgroup.populated();
        }
        found |= !reap(&killed);
        empty_looks = if found || killed.len() > before { 0 } else { empty_looks + 1 };
        std::thread::sleep(LOOK_AGAIN);
    }
    if let Some(cgroup) = cgroup.and_then(RunCgroup::existing) {
        cgroup.remove();
    }
    let besides = killed.iter().filter(|pid| Some(**pid) != first).count();
    u32::try_from(besides).unwrap_or(u32::MAX)
}

pub(super) fn kill_tree(root: Pid, killed: &mut HashSet<Pid>) {
    let tree = Descendants::of(root, Walk::Complete);
    killed.extend(tree.iter().filter(|pid| tree.signal(*pid, &[Signal::SIGKILL])));
}

/// Kills every process that carries `mark`, with everything below; false when none does. A dead process has no environment.
pub(super) fn kill_marked(mark: &[u8], killed: &mut HashSet<Pid>) -> bool {
    let mut found = false;
    for pid in everybody().into_iter().filter(|pid| carries(*pid, mark)) {
        found = true;
        let group = group_of(pid).filter(|group| group.as_raw() > 1 && *group != getpgrp());
        kill_tree(pid, killed);
        // Looked at again right before: the number may have a new bearer.
        if carries(pid, mark) && kill(pid, Signal::SIGKILL).is_ok() {
            killed.insert(pid);
        }
        // A process that forks and ends for ever is gone when its own number is signalled; a group cannot be missed. A
        // script has a session, and so groups, of its own. Last, so that those above are counted.
        group.map(|group| killpg(group, Signal::SIGKILL)).and_then(Result::ok);
    }
    found
}

fn carries(pid: Pid, mark: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|entry| entry == mark))
}

/// Kills children of this process that it never started; false when there are none. Those from before the guard was
/// started cannot be of its run: a shell may have become this process and left its children to it.
fn kill_orphans(since: Option<u64>, killed: &mut HashSet<Pid>) -> bool {
    let Some(since) = since else { return false };
    if !ADOPTS.load(Ordering::Acquire) {
        return false;
    }
    // Held to the end: a guard that is just being started must not look like an orphan.
    let guards = guards();
    let below = Descendants::of(getpid(), Walk::Complete);
    let mut found = false;
    for pid in below.children_of_root() {
        if guards.knows(pid) || began(pid).is_none_or(|at| at < since) {
            continue;
        }
        found = true;
        kill_tree(pid, killed);
        if below.signal(pid, &[Signal::SIGKILL]) {
            killed.insert(pid);
        }
    }
    found
}

/// Reaps the adopted children of this process; false while some of them are still dying.
fn reap(killed: &HashSet<Pid>) -> bool {
    let mut all_gone = true;
    for pid in killed {
        let alive = waitpid(*pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive);
        all_gone &= !alive;
    }
    all_gone
}
