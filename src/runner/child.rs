//! The node's end of a guard: starts it, moves its deadline, reads the script's output, and steps in when it fails.
//!
//! Whatever happens, the last event is [`ChildEvent::Gone`] or [`ChildEvent::Failed`], and after it no process of the
//! run is left; when that cannot be known the channel just ends, and the lease must run out by itself. A guard that
//! misses three acknowledgements or dies without a last word is killed, and the tree with it, by this side.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::output;
use crate::domain::job::{Exit, Progress};
use crate::domain::lease::{Timing, Token};
use crate::domain::name::{JobName, NodeName, Owner, RunId};
use crate::domain::time::Boot;
pub use crate::guard::message::Cause;
use crate::guard::message::{FromGuard, LARGEST, Plan, Start, ToGuard};
use crate::store::journal::{NewLine, Stream};

/// How many events may wait; beyond it lines are left out and counted.
const EVENTS: usize = 1_024;
/// Deadlines that a guard may leave without acknowledgement.
const MISSED_ACKS: u64 = 3;
/// How long the last output may take to arrive after the tree is gone (a pipe may have been passed to a stranger).
const LAST_OUTPUT: Duration = Duration::from_millis(300);

/// What to run, and under which lease.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in JobConfig and Acquire")]
pub struct Spec {
    pub argv: Vec<String>,
    pub dir: PathBuf,
    /// The script's environment, besides the four names of the contract.
    pub env: BTreeMap<String, String>,
    pub job: JobName,
    pub run: RunId,
    pub node: NodeName,
    pub token: Token,
    pub owner: Owner,
    pub store_url: String,
    pub prefix: String,
    pub timing: Timing,
    pub stop_grace: Duration,
}

/// What a child says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEvent {
    /// The script runs.
    Started {
        /// Its first process.
        pid: u32,
    },
    /// A line of output.
    Line(NewLine),
    /// A progress line.
    Progress(Progress),
    /// It could not be started; nothing lives. The last event.
    Failed {
        /// With the remedy.
        error: String,
    },
    /// No process of the tree is left. The last event.
    Gone {
        /// Of the first process.
        exit: Exit,
        /// Others that had to be killed.
        processes_killed: u32,
        /// What ended it.
        cause: Cause,
    },
}

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
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let term_before = spec.timing.term_before_deadline(spec.stop_grace);
        let start = Start {
            plan: Plan {
                argv: spec.argv,
                dir: spec.dir,
                env: spec.env,
                job: spec.job.clone(),
                run: spec.run.clone(),
                node: spec.node,
                token: spec.token,
                owner: spec.owner,
                store_url: spec.store_url,
                prefix: spec.prefix,
                term_before_deadline: term_before,
            },
            deadline,
        };
        let start = serde_json::to_vec(&start)?;
        if start.len() > LARGEST {
            return Err(io::Error::other(
                "the command and its environment are larger than 128 KiB",
            ));
        }
        send(ours.as_raw_fd(), &start, MsgFlags::MSG_NOSIGNAL)?;
        set_nonblocking(&ours)?;
        let mut guard = Command::new(exe)
            .arg0(format!("soloist guard of {}", spec.job))
            .arg(crate::guard::WORD)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let guard_pid = guard.id().unwrap_or_default();
        let (orders, inbox) = mpsc::unbounded_channel();
        let (events_tx, events) = mpsc::channel(EVENTS);
        let readers =
            [
                guard.stdout.take().map(|pipe| {
                    tokio::spawn(output::read(pipe, Stream::Stdout, events_tx.clone()))
                }),
                guard.stderr.take().map(|pipe| {
                    tokio::spawn(output::read(pipe, Stream::Stderr, events_tx.clone()))
                }),
            ];
        let line = Line {
            // A stream by type only: it is read and written message by message, through recv and send.
            socket: UnixStream::from_std(std::os::unix::net::UnixStream::from(ours))?,
            run: spec.run,
            term_before,
            sent: 0,
            acknowledged: 0,
        };
        tokio::spawn(async move {
            let last = attend(line, inbox, &mut guard, guard_pid, &events_tx).await;
            for reader in readers.into_iter().flatten() {
                let stop = reader.abort_handle();
                if timeout(LAST_OUTPUT, reader).await.is_err() {
                    stop.abort();
                }
            }
            let Some((last, line, mut inbox)) = last else { return };
            // The receiver is gone only when the node is: then the guard does what is left.
            drop(events_tx.send(last).await);
            drop(events_tx);
            while let Some(order) = inbox.recv().await {
                if matches!(order, Order::Dismiss) {
                    line.say(&ToGuard::Dismissed);
                    break;
                }
            }
            drop(line);
            drop(guard.wait().await);
        });
        Ok((Self { orders, guard_pid }, events))
    }

    fn order(&self, order: Order) {
        // Nobody listens any more when everything is over.
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

/// Makes orphans of dead guards children of this process, so that they can be found and reaped.
pub fn become_subreaper() {
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!(%error, "cannot become a subreaper: leftovers of a killed guard are found by name only");
    }
}

/// The socket to one guard.
struct Line {
    socket: UnixStream,
    run: RunId,
    term_before: Duration,
    sent: u64,
    acknowledged: u64,
}

impl Line {
    /// Sends without waiting; a guard that does not read is noticed by its missing acknowledgements.
    fn say(&self, message: &ToGuard) {
        let Ok(bytes) = serde_json::to_vec(message) else { return };
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        if let Err(error) = send(self.socket.as_raw_fd(), &bytes, flags) {
            tracing::debug!(run = %self.run, %error, "a guard does not listen");
        }
    }

    /// The next message; `None` when the guard is gone.
    async fn hear(&self) -> Option<FromGuard> {
        let mut buffer = vec![0; 4_096];
        loop {
            self.socket.readable().await.ok()?;
            let fd = self.socket.as_raw_fd();
            let read = self.socket.try_io(Interest::READABLE, || {
                recv(fd, &mut buffer, MsgFlags::MSG_DONTWAIT).map_err(io::Error::from)
            });
            match read {
                Ok(0) => return None,
                Ok(length) => return serde_json::from_slice(&buffer[..length]).ok(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    fn is_silent(&self) -> bool {
        self.sent.saturating_sub(self.acknowledged) >= MISSED_ACKS
    }
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Attends to a guard until the tree is proved gone; `None` when this node's side was dropped first.
async fn attend(
    mut line: Line,
    mut orders: Orders,
    guard: &mut tokio::process::Child,
    guard_pid: u32,
    events: &mpsc::Sender<ChildEvent>,
) -> Option<(ChildEvent, Line, Orders)> {
    loop {
        tokio::select! {
            biased;
            heard = line.hear() => match heard {
                Some(FromGuard::Started { pid }) => {
                    drop(events.send(ChildEvent::Started { pid }).await);
                }
                Some(FromGuard::Ack { seq }) => line.acknowledged = line.acknowledged.max(seq),
                Some(FromGuard::Failed { error }) => {
                    return Some((ChildEvent::Failed { error }, line, orders));
                }
                Some(FromGuard::Gone { exit, processes_killed, cause }) => {
                    let last = ChildEvent::Gone { exit, processes_killed, cause };
                    return Some((last, line, orders));
                }
                None => break,
            },
            order = orders.recv() => match order {
                Some(Order::Extend(deadline)) => {
                    if line.is_silent() {
                        tracing::error!(run = %line.run, guard_pid, "the guard does not answer: killing it and its tree");
                        break;
                    }
                    line.sent += 1;
                    let (seq, term_before) = (line.sent, line.term_before);
                    line.say(&ToGuard::Deadline { seq, deadline, term_before });
                }
                Some(Order::Stop(grace)) => line.say(&ToGuard::Stop { grace }),
                Some(Order::Kill) => line.say(&ToGuard::Kill),
                Some(Order::Dismiss) => {}
                None => return None,
            },
        }
    }
    let run = line.run.clone();
    let killed = tokio::task::spawn_blocking(move || sweep(guard_pid, &run)).await.ok()?;
    drop(guard.wait().await);
    tracing::error!(run = %line.run, guard_pid, killed, "the guard is lost; its tree was killed by the node");
    let exit = Exit { code: None, signal: Some(Signal::SIGKILL as i32) };
    let last = ChildEvent::Gone { exit, processes_killed: killed, cause: Cause::GuardLost };
    Some((last, line, orders))
}

/// Kills a lost guard and everything that carries the run's mark, until two scans in a row find nobody.
fn sweep(guard_pid: u32, run: &RunId) -> u32 {
    if let Ok(pid) = i32::try_from(guard_pid)
        && pid > 1
    {
        // It may be gone already.
        kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
    }
    let mark = format!("SOLOIST_RUN={run}");
    let (mut killed, mut clean) = (std::collections::HashSet::new(), 0);
    while clean < 2 {
        let found = marked(mark.as_bytes());
        clean = if found.is_empty() { clean + 1 } else { 0 };
        for pid in found {
            kill(pid, Signal::SIGKILL).ok();
            // Orphans of the guard are this node's children; others are somebody else's to reap.
            waitpid(pid, Some(WaitPidFlag::WNOHANG)).ok();
            killed.insert(pid);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for pid in &killed {
        waitpid(*pid, Some(WaitPidFlag::WNOHANG)).ok();
    }
    u32::try_from(killed.len()).unwrap_or(u32::MAX)
}

/// Living processes whose environment holds `mark` (a zombie's is empty).
fn marked(mark: &[u8]) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|&b| b == 0).any(|entry| entry == mark))
        })
        .map(Pid::from_raw)
        .collect()
}

fn set_nonblocking(socket: &OwnedFd) -> Result<(), Errno> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop)
}
