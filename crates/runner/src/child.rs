//! The node's end of a guard: starts it, moves its deadline, reads the script's output, and steps in when it fails.
//!
//! In every case the last event is [`ChildEvent::Gone`] or [`ChildEvent::Failed`], and after it no process of the run is left. If that
//! is unknown the channel just ends, and the lease must expire by itself. If a guard misses three acknowledgements or dies without a
//! last message, this side kills it and its tree.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

pub use super::event::ChildEvent;
use super::guard_process::{Guard, Process};
use super::guard_socket::Line;
pub use super::guard_socket::in_force;
use super::leftovers::Noted;
use super::nursery::Warm;
use super::readers::Readers;
use super::spec::Run;
pub use super::spec::{Spec, Streams};
use super::sweep;
use soloist_domain::job::Exit;
use soloist_domain::time::Boot;
pub use soloist_guard::containment::available;
pub use soloist_guard::message::{Cause, Turn, Work};
use soloist_guard::message::{FromGuard, ToGuard};
use soloist_process::sabotage::{Bug, planted};

/// How many events may wait; beyond it lines are left out and counted.
const EVENTS: usize = 1_024;
enum Order {
    Extend(Boot),
    Stop(Duration),
    Kill,
    Dismiss,
}

/// A handle to a guarded script. Dropping it without [`Child::dismiss`] is what the death of the node looks like: the
/// guard kills the tree and releases the lease.
pub struct Child {
    orders: mpsc::UnboundedSender<Order>,
    guard_pid: u32,
}

impl Child {
    /// Starts a guard from this very program and has it start the script.
    ///
    /// # Errors
    /// When no process can be started at all; what is wrong with the command itself arrives as [`ChildEvent::Failed`].
    pub fn spawn(spec: Spec, deadline: Boot) -> io::Result<(Self, mpsc::Receiver<ChildEvent>)> {
        // Not current_exe(): after an upgrade replaced the file, this still is the program that runs now.
        Self::spawn_with(Path::new("/proc/self/exe"), spec, deadline)
    }

    /// As [`Child::spawn`], with the program given (tests are not Soloist themselves).
    ///
    /// # Errors
    /// As [`Child::spawn`].
    pub fn spawn_with(
        exe: &Path,
        spec: Spec,
        deadline: Boot,
    ) -> io::Result<(Self, mpsc::Receiver<ChildEvent>)> {
        let run = Run::of(spec, deadline)?;
        let guard = Guard::started(exe, &run.spec)?;
        Self::employ(guard, run)
    }

    /// As [`Child::spawn`], with a guard that has been waiting for its plan. A dead one is no error: another
    /// is started. The script's streams are read.
    pub(super) fn spawn_warm(
        warm: Warm,
        spec: Spec,
        deadline: Boot,
    ) -> io::Result<(Self, mpsc::Receiver<ChildEvent>)> {
        let run = Run::of(spec.clone(), deadline)?;
        match Self::employ(Guard::warm(warm)?, run) {
            Err(error) => {
                tracing::debug!(%error, "a guard died while it waited for its plan");
                Self::spawn(spec, deadline)
            }
            employed => employed,
        }
    }

    /// Gives a guard its plan and has it attended to.
    fn employ(guard: Guard, run: Run) -> io::Result<(Self, mpsc::Receiver<ChildEvent>)> {
        let Guard { socket, process, stdout, stderr } = guard;
        let pid = process.pid;
        // Before the guard knows what to start: nothing may run that is not noted.
        let noted = note(&run, &process);
        let mut line = match GuardSocket::open(socket, pid, &run) {
            Ok(line) => line,
            Err(error) => {
                // It sees the end of its socket and ends.
                tokio::spawn(process.reaped());
                noted.iter().for_each(Noted::erase);
                return Err(error);
            }
        };
        line.noted = noted;
        let (orders, inbox) = mpsc::unbounded_channel();
        let (events, heard) = mpsc::channel(EVENTS);
        let (readers, gate) = Readers::start(
            [stdout, stderr],
            (run.spec.streams, run.spec.program.entrusted.hidden),
            &events,
        );
        line.gate = gate;
        tokio::spawn(Employed { process, readers, events, orders: inbox }.until_it_is_reaped(line));
        Ok((Self { orders, guard_pid: pid.as_raw().unsigned_abs() }, heard))
    }

    fn order(&self, order: Order) {
        // The receiver is gone when everything is over.
        drop(self.orders.send(order));
    }

    /// A renewal succeeded: the script may live until `deadline`.
    pub fn extend(&self, deadline: Boot) {
        self.order(Order::Extend(deadline));
    }

    /// TERM now, KILL after `grace`.
    pub fn stop(&self, grace: Duration) {
        self.order(Order::Stop(grace));
    }

    /// KILL now.
    pub fn kill(&self) {
        self.order(Order::Kill);
    }

    /// The end is recorded: the guard may go without releasing anything.
    pub fn dismiss(self) {
        self.order(Order::Dismiss);
    }

    /// The guard's process.
    #[must_use]
    pub fn guard_pid(&self) -> u32 {
        self.guard_pid
    }
}

/// Makes orphans of dead guards children of this process, so that they can be found and reaped. Only for a process
/// that starts nothing but guards: any other process that it starts later would be taken for such an orphan.
pub fn become_subreaper() {
    sweep::become_subreaper();
}

/// Notes a run for the process that cleans up when node and guard are both dead.
fn note(run: &Run, guard: &Process) -> Option<Noted> {
    let Run { spec, notes, cgroup, .. } = run;
    let of = (&spec.job, &spec.run, &spec.program.node);
    let noted = Noted::new(notes, of, guard.pid, cgroup.clone());
    noted
        .map_err(|error| {
            tracing::warn!(run = %spec.run, %error, "a run is not noted in {}: if node and guard are killed at once, the next start will not find what is left", notes.display());
        })
        .ok()
}

/// A guard that has its plan.
struct Employed {
    process: Process,
    readers: Readers,
    events: mpsc::Sender<ChildEvent>,
    orders: mpsc::UnboundedReceiver<Order>,
}

impl Employed {
    /// From the plan to the end of the guard's process.
    async fn until_it_is_reaped(mut self, mut line: GuardSocket) {
        let Some(last) = attend(&mut line, &mut self.orders).await else {
            // This node's side is gone: the guard sees it, and does what is left.
            drop(line);
            self.readers.end().await;
            drop(self.events);
            return self.process.reaped().await;
        };
        // If it never started, the readers have waited for nothing.
        line.gate = None;
        match last {
            ChildEvent::Failed { .. } => self.readers.end_unused().await,
            _ => self.readers.end().await,
        }
        // The receiver is gone only when the node is: then the guard does what is left.
        drop(self.events.send(last).await);
        drop(self.events);
        while let Some(order) = self.orders.recv().await {
            if matches!(order, Order::Dismiss) {
                line.say(&ToGuard::Dismissed);
                break;
            }
        }
        let noted = line.noted.take();
        drop(line);
        // Only now may another process get its number.
        self.process.reaped().await;
        noted.iter().for_each(Noted::erase);
    }
}

/// Attends to a guard until the tree is proved gone; `None` when that cannot be known, or this node's side was dropped
/// first.
async fn attend(
    line: &mut GuardSocket,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<ChildEvent> {
    let trouble = loop {
        tokio::select! {
            // What the guard has said counts before what it has not: this process may have been paused.
            biased;
            heard = line.hear() => match heard {
                Some(FromGuard::Started { pid, containment, weaker_because }) => {
                    line.started(pid, containment, weaker_because);
                }
                Some(FromGuard::Ack { seq }) => line.acknowledge(seq),
                Some(FromGuard::Failed { error }) => return Some(ChildEvent::Failed { error }),
                Some(FromGuard::Gone { exit, processes_killed, cause }) => {
                    return Some(ChildEvent::Gone { exit, processes_killed, cause });
                }
                None => break "it is dead",
            },
            order = orders.recv() => match order? {
                Order::Extend(deadline) => line.extend(deadline),
                Order::Stop(grace) => line.say(&ToGuard::Stop { grace }),
                Order::Kill => line.say(&ToGuard::Kill),
                Order::Dismiss => {}
            },
            trouble = line.trouble() => if !line.has_more_to_say() {
                break trouble;
            }
        }
    };
    let (guard, run) = (line.guard, line.run.clone());
    tracing::error!(%run, %guard, "the guard is lost ({trouble}): this node kills it and its tree");
    let mut processes_killed = 0;
    if !planted(Bug::GuardDeathIsProof) {
        let (first, cgroup) = (line.first, line.cgroup.clone());
        let sweep = move || sweep::sweep(guard, &run, first, cgroup.as_deref());
        processes_killed = tokio::task::spawn_blocking(sweep).await.ok()?;
    }
    let exit = Exit { code: None, signal: Some(Signal::SIGKILL as i32) };
    Some(ChildEvent::Gone { exit, processes_killed, cause: Cause::GuardLost })
}
