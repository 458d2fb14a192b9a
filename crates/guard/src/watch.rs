//! One script under one guard: started when the plan arrives, killed in time, and proved gone.
//!
//! The deadline is an absolute instant of CLOCK_BOOTTIME that only messages of the node move, and only forwards. Even after an error
//! this ends with the proof (`ECHILD`) and not before.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::begin::{Begun, begin};
use super::init::Init;
use super::kernel;
use super::message::{Cause, FromGuard, LARGEST, LARGEST_ORDER, Plan, Start, ToGuard, Work};
use super::release::{Agent, Lost};
use super::shield;
use super::socket::{Heard, receive, say};
use super::tree::{Reaped, Tree};
use soloist_domain::job::Exit;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_process::sabotage::{self, Bug, planted};
use soloist_store::Opener;

/// What has no run lets those that have one go first when their node died: the cores are theirs.
pub(super) const AFTER_THE_OTHERS: Duration = Duration::from_millis(100);
/// How soon to look again when the kernel cannot wait for us.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Why a guard never came to start anything.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error(
        "this command is started by a node, never by hand (its standard input is not a node's socket): use `soloist run --name NAME -- CMD` to run a command under a lease"
    )]
    ByHand,
    #[error("the node was gone before it said what to run")]
    NoNode,
    #[error("the guard could not be set up: {0}")]
    Kernel(#[from] Errno),
}

/// Waits for its plan and guards it to the end. A warm guard has an init `ready`; `agent` gives leases back for it, and
/// `introduce` is called once its script runs.
pub(super) fn guard(
    open: Opener,
    ready: Option<Init>,
    agent: Option<&Agent>,
    introduce: impl FnOnce(&Plan),
) -> Result<(), NotStarted> {
    let Heard::Message(Start { mut plan, deadline }) = receive::<Start>(LARGEST) else {
        // A guard with a run has something to do now that another node waits for.
        std::thread::sleep(agent.map_or(Duration::ZERO, |_| AFTER_THE_OTHERS));
        ready.iter().for_each(Init::end);
        return Err(NotStarted::NoNode);
    };
    // A node without a limit of its own left the one that this guard was started with.
    plan.core = plan.core.or_else(shield::core_before);
    let deadline = sabotage::deadline(deadline, clock::boot());
    // A guard that leads a group already gets EPERM and keeps its session; its script gets one of its own anyway.
    nix::unistd::setsid().ok();
    nix::sys::prctl::set_child_subreaper(true)?;
    let signals =
        SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let timer =
        TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
    let Begun { script, held, containment, weaker_because } = match begin(&plan, deadline, ready) {
        Ok(begun) => begun,
        Err(error) => {
            let end = Lost::of(&plan, Exit::default(), 0, deadline);
            hand_over(open, &plan, &FromGuard::Failed { error }, &end, agent);
            return Ok(());
        }
    };
    // From here on nothing may end this process but the proof that the tree is gone: no `?` below.
    if let Err(error) = kernel::let_go_of_output() {
        super::remark(&format!("guard: the end of the output will be seen late: {error}"));
    }
    let pid = script.as_raw().unsigned_abs();
    say(&FromGuard::Started { pid, containment, weaker_because });
    introduce(&plan);
    let mut watch = Watch {
        deadline,
        term_at: deadline - plan.term_before_deadline,
        kill_at: None,
        cause: None,
        exit: None,
        node_is_gone: false,
        tree: Tree::new(script, held),
    };
    watch.until_all_are_gone(&signals, &timer);
    watch.tree.clear_away();
    let exit = watch.exit.unwrap_or_default();
    let processes_killed = watch.tree.killed_besides_the_first();
    let cause = watch.cause.unwrap_or(Cause::Itself);
    let last = FromGuard::Gone { exit, processes_killed, cause };
    // Of a run that is lost, exit code 0 says that it came to its own end. One that was asked to stop may say so, too.
    let cut_short = exit.is_success() && cause != Cause::Itself && matches!(plan.work, Work::Run);
    let signal = Some(Signal::SIGTERM as i32);
    let exit = if cut_short { Exit { code: None, signal } } else { exit };
    let end = Lost::of(&plan, exit, processes_killed, watch.deadline);
    hand_over(open, &plan, &last, &end, agent);
    Ok(())
}

/// Says the last word. The node records the end and dismisses the guard; if it dies before, or is dead already, the
/// guard releases the lease. A node that is paused is waited for: it may hold other leases, and this one runs out.
fn hand_over(open: Opener, plan: &Plan, last: &FromGuard, end: &Lost, agent: Option<&Agent>) {
    say(last);
    loop {
        match receive(LARGEST_ORDER) {
            Heard::Message(ToGuard::Dismissed) => return,
            Heard::Message(_) => {}
            Heard::NodeGone => break,
        }
    }
    // First what another node waits for.
    if !agent.is_some_and(|agent| agent.give_back(end)) {
        end.give_back(open);
    }
    // Nothing is left of it to be swept at the next start.
    std::fs::remove_file(&plan.note).ok();
    plan.note.parent().map(std::fs::remove_dir).and_then(Result::ok);
}

struct Watch {
    deadline: Boot,
    term_at: Boot,
    kill_at: Option<Boot>,
    cause: Option<Cause>,
    exit: Option<Exit>,
    node_is_gone: bool,
    tree: Tree,
}

impl Watch {
    /// Returns only with the proof, whatever fails meanwhile.
    fn until_all_are_gone(&mut self, signals: &SignalFd, timer: &TimerFd) {
        while !self.reap() {
            let now = clock::boot();
            let killing = self.decide(now);
            if killing {
                self.tree.kill();
            }
            let kill_at = self.kill_at.map(|at| at.min(self.deadline));
            let wake = if killing {
                now + self.tree.look_again()
            } else {
                kill_at.unwrap_or(self.term_at)
            };
            // Without a timer the clock is polled.
            let limit =
                if set(timer, wake).is_ok() { PollTimeout::NONE } else { PollTimeout::from(2u8) };
            let stdin = std::io::stdin();
            let mut fds = vec![
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(timer.as_fd(), PollFlags::POLLIN),
            ];
            // A socket without another end is always "ready"; it is left out once that is known.
            if !self.node_is_gone {
                fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
            }
            fds.extend(self.tree.line().map(|line| PollFd::new(line, PollFlags::POLLIN)));
            if let Err(error) = poll(&mut fds, limit)
                && error != Errno::EINTR
            {
                std::thread::sleep(LOOK_AGAIN);
            }
            while matches!(signals.read_signal(), Ok(Some(_))) {}
            let node_speaks = fds[2..].first().is_some_and(|node| {
                !self.node_is_gone && node.revents().is_none_or(|events| !events.is_empty())
            });
            drop(fds);
            if node_speaks {
                self.listen();
            }
        }
    }

    /// What the clock says: TERM when it is time, and whether it is time for KILL.
    fn decide(&mut self, now: Boot) -> bool {
        if self.kill_at.is_none() {
            if self.exit.is_some() {
                // What the script left behind has no claim to a grace.
                self.kill_at = Some(now);
            } else if now >= self.term_at.min(self.deadline) && !planted(Bug::NoDeadline) {
                self.cause = Some(Cause::Deadline);
                if now < self.deadline {
                    self.tree.terminate();
                }
                self.kill_at = Some(self.deadline);
            }
        }
        self.kill_at.is_some_and(|at| now >= at.min(self.deadline))
    }

    fn listen(&mut self) {
        match receive(LARGEST_ORDER) {
            Heard::Message(ToGuard::Deadline { seq, deadline, term_before }) => {
                let deadline = sabotage::deadline(deadline, clock::boot());
                // Never backwards: a late message of an earlier renewal must not shorten, nor a wrong one.
                if deadline > self.deadline {
                    self.deadline = deadline;
                    self.term_at = deadline - term_before;
                }
                say(&FromGuard::Ack { seq });
            }
            Heard::Message(ToGuard::Stop { grace }) => {
                self.cause.get_or_insert(Cause::Stopped);
                let at = clock::boot() + grace;
                if self.kill_at.is_none() {
                    self.tree.terminate();
                }
                // A second stop can only hurry.
                self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
            }
            Heard::Message(ToGuard::Kill) => {
                self.cause.get_or_insert(Cause::Kill);
                self.kill_at = Some(clock::boot());
            }
            Heard::Message(ToGuard::Dismissed) => {}
            Heard::NodeGone => {
                // The node died, however it died: the script dies now, so that another node can start now.
                self.node_is_gone = true;
                if !planted(Bug::NodeDeathUnseen) {
                    self.kill_at = Some(clock::boot());
                }
            }
        }
    }

    /// Reaps whatever ended; true when no child is left, which is the proof.
    fn reap(&mut self) -> bool {
        loop {
            match self.tree.reap() {
                Reaped::First(exit) => self.exit = Some(exit),
                Reaped::Other => {}
                Reaped::NothingYet => return false,
                Reaped::NobodyLeft => return true,
            }
        }
    }
}

fn set(timer: &TimerFd, at: Boot) -> Result<(), Errno> {
    let at = TimeSpec::from(Duration::from_nanos(at.0.max(1)));
    timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
}
