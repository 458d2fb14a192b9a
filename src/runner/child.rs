//! The node's end of a guard: starts it, moves its deadline, reads the script's output, and steps in when it fails.
//!
//! Whatever happens, the last event is [`ChildEvent::Gone`] or [`ChildEvent::Failed`], and after it no process of the
//! run is left; when that cannot be known the channel just ends, and the lease must run out by itself. A guard that
//! misses three acknowledgements or dies without a last word is killed, and the tree with it, by this side.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver as Pipe;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::leftovers::{self, Noted};
use super::nursery::Warm;
use super::program::Program;
use super::relay::Relay;
use super::{nursery, output, sweep};
use crate::clock;
use crate::domain::containment::Containment;
use crate::domain::job::{Exit, Progress};
use crate::domain::lease::{Timing, Token};
use crate::domain::name::{JobName, Owner, RunId};
use crate::domain::time::Boot;
pub use crate::guard::containment::available;
pub use crate::guard::message::{Cause, Turn, Work};
use crate::guard::message::{FromGuard, LARGEST, LARGEST_ORDER, Plan, Start, ToGuard, WORD};
use crate::sabotage::{self, Bug, planted};
use crate::store::journal::{NewLine, Stream};

/// How many events may wait; beyond it lines are left out and counted.
const EVENTS: usize = 1_024;
/// Acknowledgements, one expected in each renewal period, that a guard may miss in a row. Counted in time and not in
/// messages: several renewals in a burst, after the store was away, say nothing about the guard.
const MISSED_ACKS: u32 = 3;
/// How long the last output may take to arrive after the tree is gone (a pipe may have been passed to a stranger).
const LAST_OUTPUT: Duration = Duration::from_millis(300);
/// The same for output that somebody else reads, as fast as they like.
const LAST_RELAYED: Duration = Duration::from_secs(10);

/// What to run, and under which lease.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in JobConfig and Acquire")]
pub struct Spec {
    pub program: Program,
    pub job: JobName,
    pub run: RunId,
    pub token: Token,
    pub owner: Owner,
    pub timing: Timing,
    pub streams: Streams,
    /// Of a task `job` is the name of its source, of a turn that of its rotation.
    pub work: Work,
}

/// Where a script's output goes.
#[derive(Debug, Clone)]
pub enum Streams {
    /// To this process, line by line, as [`ChildEvent::Line`] and [`ChildEvent::Progress`].
    Read,
    /// Where this process's own goes, byte by byte and without passing through it.
    Inherited,
    /// To where this process's own goes, unchanged, but whole lines at a time. The last line on standard error comes as
    /// [`ChildEvent::Line`] before the end.
    Relayed(Relay),
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

/// The weakest level that a guard of this process had to fall back to; 0 is the strongest.
static WEAKEST: AtomicU8 = AtomicU8::new(0);

/// The level that is really in force where `planned` was: what the page and the command line may say.
#[must_use]
pub fn in_force(planned: Containment) -> Containment {
    let weakest = usize::from(WEAKEST.load(Ordering::Acquire));
    Containment::ALL.get(weakest).map_or(planned, |weakest| planned.max(*weakest))
}

/// A run, as its guard will be told.
struct Run {
    spec: Spec,
    /// The first message.
    start: Vec<u8>,
    deadline: Boot,
    term_before: Duration,
    notes: PathBuf,
    cgroup: Option<PathBuf>,
}

impl Run {
    fn of(spec: Spec, deadline: Boot) -> io::Result<Self> {
        let term_before = spec.timing.term_before_deadline(spec.program.stop_grace);
        let notes = leftovers::notes_of(&spec.program.store_url, &spec.program.prefix);
        let cgroup = match spec.program.containment.level {
            Containment::Subreaper => None,
            // In a namespace, too: the guard may have to do without one.
            _ => spec.program.containment.cgroup_of(&spec.program.node, &spec.run),
        };
        let Spec { program, job, run, token, owner, work, .. } = spec.clone();
        let plan = Plan {
            argv: program.argv,
            dir: program.dir,
            env: program.env,
            job,
            note: notes.join(run.as_str()),
            run,
            node: program.node,
            token,
            owner,
            store_url: program.store_url,
            prefix: program.prefix,
            containment: program.containment,
            term_before_deadline: term_before,
            work,
        };
        let start = serde_json::to_vec(&Start { plan, deadline })?;
        if start.len() > LARGEST {
            return Err(io::Error::other(
                "the command and its environment are larger than 192 KiB",
            ));
        }
        Ok(Self { spec, start, deadline, term_before, notes, cgroup })
    }
}

/// A guard that waits for its plan.
struct Guard {
    pid: Pid,
    socket: OwnedFd,
    process: Process,
    stdout: Option<Pipe>,
    stderr: Option<Pipe>,
}

/// How the end of a guard is awaited, upon which its number goes to somebody else.
enum Process {
    /// One that this process started.
    Started(tokio::process::Child),
    /// One that its nursery forked.
    Forked(Pid, AsyncFd<OwnedFd>),
}

impl Process {
    async fn wait(&mut self) {
        match self {
            Self::Started(child) => drop(child.wait().await),
            Self::Forked(pid, process) => {
                while !nursery::reap(*pid) {
                    // Readable from its end on.
                    drop(process.readable().await);
                }
            }
        }
    }
}

impl Guard {
    fn started(exe: &Path, spec: &Spec) -> io::Result<Self> {
        let (socket, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let mut command = Command::new(exe);
        command
            .arg0(format!("soloist guard of {}", spec.job))
            .arg(WORD)
            .env_clear()
            .envs(sabotage::inherited())
            .stdin(Stdio::from(theirs));
        if !matches!(spec.streams, Streams::Inherited) {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut guards = sweep::guards();
        let mut guard = command.spawn()?;
        let pid = guard.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number was started"))?;
        guards.employ(pid);
        drop(guards);
        let (stdout, stderr) = (guard.stdout.take(), guard.stderr.take());
        Ok(Self {
            pid,
            socket,
            stdout: stdout.map(|pipe| Pipe::from_owned_fd(pipe.into_owned_fd()?)).transpose()?,
            stderr: stderr.map(|pipe| Pipe::from_owned_fd(pipe.into_owned_fd()?)).transpose()?,
            process: Process::Started(guard),
        })
    }

    fn warm(warm: Warm) -> io::Result<Self> {
        let Warm { pid, process, socket, stdout, stderr } = warm;
        sweep::guards().employ(pid);
        Ok(Self {
            pid,
            socket,
            process: Process::Forked(pid, process),
            stdout: Some(Pipe::from_owned_fd(stdout)?),
            stderr: Some(Pipe::from_owned_fd(stderr)?),
        })
    }
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
        let run = Run::of(spec, deadline)?;
        let guard = Guard::started(exe, &run.spec)?;
        Self::employ(guard, run)
    }

    /// As [`Child::spawn`], with a guard that has been waiting for its plan. One that is dead by now is no error: another
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

    /// Gives a guard its plan and attends to it.
    fn employ(guard: Guard, run: Run) -> io::Result<(Self, mpsc::Receiver<ChildEvent>)> {
        let Run { spec, start, deadline, term_before, notes, cgroup } = run;
        let Guard { pid, socket: ours, mut process, stdout, stderr } = guard;
        // Before the guard knows what to start: nothing may run that is not noted.
        let of = (&spec.job, &spec.run, &spec.program.node);
        let noted = Noted::new(&notes, of, pid, cgroup.clone()).map_err(|error| {
            tracing::warn!(run = %spec.run, %error, "a run is not noted in {}: if node and guard are killed at once, the next start will not find what is left", notes.display());
        });
        let noted = noted.ok();
        let begun = send(ours.as_raw_fd(), &start, MsgFlags::MSG_NOSIGNAL)
            .and_then(|_| set_nonblocking(&ours))
            .map_err(io::Error::from)
            // A stream by type only: it is read and written message by message, through recv and send.
            .and_then(|()| UnixStream::from_std(std::os::unix::net::UnixStream::from(ours)));
        let socket = match begun {
            Ok(socket) => socket,
            Err(error) => {
                // It hears the end of its socket and goes.
                tokio::spawn(async move {
                    process.wait().await;
                    sweep::forget(pid);
                });
                noted.iter().for_each(Noted::erase);
                return Err(error);
            }
        };
        let (orders, inbox) = mpsc::unbounded_channel();
        let (events_tx, events) = mpsc::channel(EVENTS);
        // The start is told first, and before it nothing is read: there is room for it, so nobody has to wait.
        let (reading, read_now) = watch::channel(());
        let room = events_tx.clone().try_reserve_owned().ok().map(|room| (room, reading));
        let reader = Reader { now: read_now, events: events_tx.clone(), streams: spec.streams };
        let last_output = match reader.streams {
            Streams::Relayed(_) => LAST_RELAYED,
            Streams::Read | Streams::Inherited => LAST_OUTPUT,
        };
        let readers = [
            stdout.map(|pipe| tokio::spawn(reader.clone().read(pipe, Stream::Stdout))),
            stderr.map(|pipe| tokio::spawn(reader.clone().read(pipe, Stream::Stderr))),
        ];
        drop(reader);
        let line = Line {
            socket,
            guard: pid,
            run: spec.run,
            noted,
            cgroup,
            timing: spec.timing,
            term_before,
            deadline,
            sent: 0,
            acknowledged: 0,
            unanswered_since: None,
            room,
            first: None,
        };
        tokio::spawn(async move {
            let mut last = attend(line, inbox).await;
            let noted = last.as_mut().and_then(|(_, line, _)| line.noted.take());
            if let Some((_, line, _)) = &mut last {
                // It never started: then the readers have waited for nothing.
                line.room = None;
            }
            // A guard that started nothing holds the pipes until it is dismissed.
            let patience = match &last {
                Some((ChildEvent::Failed { .. }, ..)) => LAST_OUTPUT,
                _ => last_output,
            };
            for reader in readers.into_iter().flatten() {
                let stop = reader.abort_handle();
                if timeout(patience, reader).await.is_err() {
                    stop.abort();
                }
            }
            if let Some((last, line, mut inbox)) = last {
                // The receiver is gone only when the node is: then the guard does what is left.
                drop(events_tx.send(last).await);
                drop(events_tx);
                while let Some(order) = inbox.recv().await {
                    if matches!(order, Order::Dismiss) {
                        line.say(&ToGuard::Dismissed);
                        break;
                    }
                }
            } else {
                drop(events_tx);
            }
            // Only now may its number go to somebody else.
            process.wait().await;
            sweep::forget(pid);
            // Without a last word of the guard nobody knows whether nothing is left.
            noted.iter().for_each(Noted::erase);
        });
        Ok((Self { orders, guard_pid: pid.as_raw().unsigned_abs() }, events))
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

/// Makes orphans of dead guards children of this process, so that they can be found and reaped. Only for a process
/// that starts nothing but guards: whatever else it starts later would be taken for such an orphan.
pub fn become_subreaper() {
    sweep::become_subreaper();
}

/// The socket to one guard, and what is known of the guard's health.
struct Line {
    socket: UnixStream,
    guard: Pid,
    run: RunId,
    noted: Option<Noted>,
    /// Where the run's cgroup is, if it has one.
    cgroup: Option<PathBuf>,
    timing: Timing,
    term_before: Duration,
    /// The newest one sent.
    deadline: Boot,
    sent: u64,
    acknowledged: u64,
    /// When the oldest deadline was sent that has no acknowledgement.
    unanswered_since: Option<Boot>,
    /// For the start; the readers begin when it is dropped.
    room: Option<(mpsc::OwnedPermit<ChildEvent>, watch::Sender<()>)>,
    first: Option<Pid>,
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

    fn started(&mut self, pid: u32, containment: Containment, weaker_because: Option<String>) {
        self.first = i32::try_from(pid).ok().map(Pid::from_raw);
        // First what others wait for.
        let room = self
            .room
            .take()
            .map(|(room, reading)| (room.send(ChildEvent::Started { pid }), reading));
        if let (Some(noted), Some(first)) = (&mut self.noted, self.first) {
            noted.started(first);
        }
        let Some((events, _reading)) = room else { return };
        if let Some(why) = weaker_because {
            WEAKEST.fetch_max(containment as u8, Ordering::AcqRel);
            tracing::warn!(run = %self.run, "this run is contained by {containment} only: {why}");
            let text = format!("this run is contained by {containment} only: {why}");
            // The readers begin after this: there is room.
            events.try_send(ChildEvent::Line(NewLine { stream: Stream::Soloist, text })).ok();
        }
    }

    fn extend(&mut self, deadline: Boot) {
        self.sent += 1;
        self.deadline = self.deadline.max(deadline);
        self.unanswered_since.get_or_insert_with(clock::boot);
        let (seq, term_before) = (self.sent, self.term_before);
        self.say(&ToGuard::Deadline { seq, deadline, term_before });
    }

    fn acknowledge(&mut self, seq: u64) {
        self.acknowledged = self.acknowledged.max(seq);
        self.unanswered_since = (self.acknowledged < self.sent).then(clock::boot);
    }

    /// The next message; `None` when the guard is gone.
    async fn hear(&self) -> Option<FromGuard> {
        let mut buffer = [0; LARGEST_ORDER];
        // First without asking the runtime, which may not have looked since this process was paused.
        let mut received = self.receive(&mut buffer, MsgFlags::empty());
        loop {
            match received {
                Ok(0) => return None,
                Ok(length) => return serde_json::from_slice(&buffer[..length]).ok(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
            self.socket.readable().await.ok()?;
            let receive = || self.receive(&mut buffer, MsgFlags::empty());
            received = self.socket.try_io(Interest::READABLE, receive);
        }
    }

    fn receive(&self, buffer: &mut [u8], flags: MsgFlags) -> io::Result<usize> {
        recv(self.socket.as_raw_fd(), buffer, flags | MsgFlags::MSG_DONTWAIT).map_err(Into::into)
    }

    /// Whether something (the end, too) waits to be heard.
    fn has_more_to_say(&self) -> bool {
        self.receive(&mut [0], MsgFlags::MSG_PEEK).is_ok()
    }

    /// When an answer, or the end of everything, is overdue: from then on the guard counts as lost.
    fn overdue_at(&self) -> (Boot, &'static str) {
        let patience = self.timing.renew_every * MISSED_ACKS;
        let answer = self.unanswered_since.map(|since| (since + patience, "it does not answer"));
        // Also when nothing is renewed: a guard that is frozen while the store is away must not outlive the lease. A
        // quarter of the kill time is for the guard, three are left for this node.
        let end = (self.deadline + self.timing.kill_time / 4, "it let the deadline pass");
        answer.into_iter().chain([end]).min().unwrap_or(end)
    }

    /// Waits until the guard counts as lost; never longer than a moment at a time, as timers stand still in suspend.
    async fn trouble(&self) -> &'static str {
        loop {
            let (at, trouble) = self.overdue_at();
            let left = at.since(clock::boot());
            if planted(Bug::FrozenGuardUnseen) {
                std::future::pending::<()>().await;
            }
            if left.is_zero() {
                return trouble;
            }
            sleep(left.min(self.timing.kill_time / 4)).await;
        }
    }
}

/// Reads one stream of a script from its start on.
#[derive(Clone)]
struct Reader {
    now: watch::Receiver<()>,
    events: mpsc::Sender<ChildEvent>,
    streams: Streams,
}

impl Reader {
    async fn read(mut self, pipe: impl AsyncRead + Unpin, stream: Stream) {
        // An error: the sender was dropped, which is the sign.
        self.now.changed().await.ok();
        match self.streams {
            Streams::Relayed(relay) => relay.pass_on(pipe, stream, self.events).await,
            Streams::Read | Streams::Inherited => output::read(pipe, stream, self.events).await,
        }
    }
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Attends to a guard until the tree is proved gone; `None` when this node's side was dropped first.
async fn attend(mut line: Line, mut orders: Orders) -> Option<(ChildEvent, Line, Orders)> {
    let trouble = loop {
        tokio::select! {
            // What the guard has said counts before what it has not: this process may have been paused.
            biased;
            heard = line.hear() => match heard {
                Some(FromGuard::Started { pid, containment, weaker_because }) => {
                    line.started(pid, containment, weaker_because);
                }
                Some(FromGuard::Ack { seq }) => line.acknowledge(seq),
                Some(FromGuard::Failed { error }) => {
                    return Some((ChildEvent::Failed { error }, line, orders));
                }
                Some(FromGuard::Gone { exit, processes_killed, cause }) => {
                    let last = ChildEvent::Gone { exit, processes_killed, cause };
                    return Some((last, line, orders));
                }
                None => break "it is dead",
            },
            order = orders.recv() => match order {
                Some(Order::Extend(deadline)) => line.extend(deadline),
                Some(Order::Stop(grace)) => line.say(&ToGuard::Stop { grace }),
                Some(Order::Kill) => line.say(&ToGuard::Kill),
                Some(Order::Dismiss) => {}
                None => return None,
            },
            trouble = line.trouble() => if !line.has_more_to_say() {
                break trouble;
            }
        }
    };
    let (guard, run, first) = (line.guard, line.run.clone(), line.first);
    let cgroup = line.cgroup.clone();
    tracing::error!(%run, %guard, "the guard is lost ({trouble}): this node kills it and its tree");
    if planted(Bug::GuardDeathIsProof) {
        let exit = Exit { code: None, signal: Some(Signal::SIGKILL as i32) };
        let last = ChildEvent::Gone { exit, processes_killed: 0, cause: Cause::GuardLost };
        return Some((last, line, orders));
    }
    let sweep =
        tokio::task::spawn_blocking(move || sweep::sweep(guard, &run, first, cgroup.as_deref()));
    let processes_killed = sweep.await.ok()?;
    let exit = Exit { code: None, signal: Some(Signal::SIGKILL as i32) };
    Some((ChildEvent::Gone { exit, processes_killed, cause: Cause::GuardLost }, line, orders))
}

fn set_nonblocking(socket: &OwnedFd) -> Result<(), Errno> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop)
}
