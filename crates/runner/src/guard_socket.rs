//! The socket to one guard, and the guard's health.
//!
//! A guard must acknowledge each deadline, and must not outlive its own: otherwise it counts as lost.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::event::ChildEvent;
use super::leftovers::Noted;
use super::readers::Gate;
use super::spec::Run;
use soloist_domain::containment::Containment;
use soloist_domain::lease::Timing;
use soloist_domain::name::RunId;
use soloist_domain::time::Boot;
use soloist_guard::message::{FromGuard, LARGEST_ORDER, ToGuard};
use soloist_process::clock;
use soloist_process::sabotage::{Bug, planted};
use soloist_store::journal::{NewLine, Stream};

/// Acknowledgements, one expected in each renewal period, that a guard may miss in a row. Counted in time and not in
/// messages: several renewals in a burst, after the store was away, say nothing about the guard.
const MISSED_ACKS: u32 = 3;
/// The weakest level that a guard of this process had to fall back to; 0 is the strongest.
static WEAKEST: AtomicU8 = AtomicU8::new(0);

/// The level that is really in force where `planned` was: what the page and the command line may say.
#[must_use]
pub fn in_force(planned: Containment) -> Containment {
    let weakest = usize::from(WEAKEST.load(Ordering::Acquire));
    Containment::ALL.get(weakest).map_or(planned, |weakest| planned.max(*weakest))
}

/// The socket to one guard, and what is known of the guard's health.
pub(super) struct GuardSocket {
    socket: UnixStream,
    pub(super) guard: Pid,
    pub(super) run: RunId,
    pub(super) noted: Option<Noted>,
    /// Where the run's cgroup is, if it has one.
    pub(super) cgroup: Option<PathBuf>,
    timing: Timing,
    term_before: Duration,
    /// The newest one sent.
    deadline: Boot,
    sent: u64,
    acknowledged: u64,
    /// When the oldest deadline was sent that has no acknowledgement.
    unanswered_since: Option<Boot>,
    /// For the start.
    pub(super) gate: Option<Gate>,
    /// The script's first process.
    pub(super) first: Option<Pid>,
}

impl GuardSocket {
    /// Gives the guard at the other end of `socket` its plan.
    pub(super) fn open(socket: OwnedFd, guard: Pid, run: &Run) -> io::Result<Self> {
        send(socket.as_raw_fd(), &run.start, MsgFlags::MSG_NOSIGNAL)?;
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            // A stream by type only: it is read and written message by message, through recv and send.
            socket: UnixStream::from_std(socket)?,
            guard,
            run: run.spec.run.clone(),
            noted: None,
            cgroup: run.cgroup.clone(),
            timing: run.spec.timing,
            term_before: run.term_before,
            deadline: run.deadline,
            sent: 0,
            acknowledged: 0,
            unanswered_since: None,
            gate: None,
            first: None,
        })
    }

    /// Sends without waiting; a guard that does not read is noticed by its missing acknowledgements.
    pub(super) fn say(&self, message: &ToGuard) {
        let Ok(bytes) = serde_json::to_vec(message) else { return };
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        if let Err(error) = send(self.socket.as_raw_fd(), &bytes, flags) {
            tracing::debug!(run = %self.run, %error, "a guard does not listen");
        }
    }

    /// The script runs as `pid`.
    pub(super) fn started(
        &mut self,
        pid: u32,
        containment: Containment,
        weaker_because: Option<String>,
    ) {
        self.first = i32::try_from(pid).ok().map(Pid::from_raw);
        // First what others wait for.
        let opening = self.gate.take().map(|gate| gate.open(ChildEvent::Started { pid }));
        if let (Some(noted), Some(first)) = (&mut self.noted, self.first) {
            noted.started(first);
        }
        let (Some(opening), Some(why)) = (opening, weaker_because) else { return };
        WEAKEST.fetch_max(containment as u8, Ordering::AcqRel);
        let text = format!("this run is contained by {containment} only: {why}");
        tracing::warn!(run = %self.run, "{text}");
        opening.tell(ChildEvent::Line(NewLine { stream: Stream::Soloist, text }));
    }

    pub(super) fn extend(&mut self, deadline: Boot) {
        self.sent += 1;
        self.deadline = self.deadline.max(deadline);
        self.unanswered_since.get_or_insert_with(clock::boot);
        let (seq, term_before) = (self.sent, self.term_before);
        self.say(&ToGuard::Deadline { seq, deadline, term_before });
    }

    pub(super) fn acknowledge(&mut self, seq: u64) {
        self.acknowledged = self.acknowledged.max(seq);
        self.unanswered_since = (self.acknowledged < self.sent).then(clock::boot);
    }

    /// The next message; `None` when the guard is gone.
    pub(super) async fn hear(&self) -> Option<FromGuard> {
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

    /// Whether a message, or the end, waits to be received.
    pub(super) fn has_more_to_say(&self) -> bool {
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
    pub(super) async fn trouble(&self) -> &'static str {
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
