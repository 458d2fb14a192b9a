//! The guard: the small process between node and script that kills the script in time when the node cannot.
//!
//! It is this same binary, re-executed and recognised at the very top of `main`, before any other thread or runtime
//! exists. It has a session of its own, blocks every signal, is the subreaper of everything the script leaves behind,
//! and keeps a deadline of its own on CLOCK_BOOTTIME that only the node's successful renewals move. It decides
//! nothing about jobs: it starts one command, kills it when told, when the deadline comes or when the node is gone,
//! and proves the death of the whole tree (`ECHILD` from `waitpid`) before node or guard gives the lease back.
//!
//! A node that runs jobs keeps a few guards warm (`nursery`): copies of a small process that have come as far as a guard
//! can without a plan. A command that starts one script and ends starts one guard process for it.
//!
//! For programs that no node starts there is the watcher (`watcher`), also a process of this binary.
//!
//! The tree is held together by one of three levels, `containment` says which: ADR 0007 says what each of them survives
//! when guard and node are killed at once. A weaker level than the planned one is never used silently.

mod begin;
pub mod cgroup;
pub mod choice;
pub mod containment;
pub mod descriptors;
mod init;
pub mod kernel;
pub mod message;
mod nursery;
mod raw;
mod release;
pub mod shield;
mod socket;
mod title;
mod tree;
pub mod walk;
mod watch;
pub mod watcher;

use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::socket::{SockType, getsockopt, sockopt};

use soloist_store::Opener;

use message::{NURSERY, PROBE, WORD};
use watch::NotStarted;

/// Runs as a guard if this process was started as one; `None` otherwise. Call it first in `main`. `open` opens the store in which the lease is
/// released when the node is gone.
#[must_use]
pub fn entry(open: Opener) -> Option<i32> {
    if std::env::args_os().nth(1).is_none_or(|word| word != WORD) {
        return None;
    }
    // First of all: an exec has made this process readable.
    shield::raise();
    std::panic::set_hook(Box::new(|panic| remark(&panic.to_string())));
    let what = std::env::args_os().nth(2).unwrap_or_default();
    if what == PROBE {
        return Some(try_containment());
    }
    descriptors::restore();
    let ended = enter().and_then(|()| match what.to_str() {
        Some(NURSERY) => nursery::nurse(open),
        Some(watcher::WATCHER) => watcher::run(),
        _ => watch::guard(open, None, None, |_| {}),
    });
    match ended {
        Ok(()) => Some(0),
        Err(error) => {
            remark(&error.to_string());
            Some(2)
        }
    }
}

/// Says something on standard error, unless its reader stands still: a guard kills in time, and its node waits for the end of a nursery,
/// so neither waits for a log. Where there is room a pipe takes 4,096 bytes (PIPE_BUF) at once.
fn remark(text: &str) {
    let text = format!("soloist: {}\n", text.chars().take(1_000).collect::<String>());
    let stderr = std::io::stderr();
    let mut room = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut room, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        nix::unistd::write(&stderr, text.as_bytes()).ok();
    }
}

/// Prints what works here; see [`containment::available`].
fn try_containment() -> i32 {
    kernel::close_inherited().ok();
    match serde_json::to_string(&containment::try_everything()) {
        Ok(text) => {
            println!("{text}");
            0
        }
        Err(_) => 2,
    }
}

/// The first steps of every process that a node starts by this program.
fn enter() -> Result<(), NotStarted> {
    // Before signals are blocked: a person who typed this by hand must be able to interrupt it.
    if !matches!(getsockopt(&std::io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return Err(NotStarted::ByHand);
    }
    // Before Linux 5.9 there is no such call; then they stay, as they would with any other supervisor.
    kernel::close_inherited().ok();
    SigSet::all().thread_block()?;
    kernel::reset_signals()?;
    Ok(())
}
