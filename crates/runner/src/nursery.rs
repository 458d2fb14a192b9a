//! The node's end of its nursery: guards that are forked, contained and wait for their plan.
//!
//! Four guards wait at any time. When a run takes one, the node orders another. When runs want more guards than wait, the nursery makes
//! them as fast as the machine can. The node restarts a dead nursery. Until then a run starts its guard from this program, which takes
//! some milliseconds longer.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, send, socketpair,
};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::sweep;
use soloist_guard::descriptors;
use soloist_guard::kernel;
use soloist_guard::message::{LARGEST_ORDER, NURSERY, Nursing, Offer, WORD, Wanted};

use soloist_process::sabotage;

/// How many guards wait for a plan. Each costs two processes that touch little memory of their own (docs/measured.md).
const WARM: usize = 4;
/// How many are made at the same time: more would only take turns on the cores.
const UNDER_WAY: usize = 16;
/// How long after a guard was taken another is ordered in its place: the script that is about to start has the cores first.
const REFILL_AFTER: Duration = Duration::from_millis(50);
/// How long a run waits for a guard of the nursery before one is started for it alone.
const PATIENCE: Duration = Duration::from_secs(2);
/// Before a nursery that ended is started again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A guard that waits for its plan.
pub(super) struct Warm {
    /// Its process, a child of this one that no other code reaps.
    pub(super) pid: Pid,
    /// Readable when it has ended.
    pub(super) process: AsyncFd<OwnedFd>,
    pub(super) socket: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Warm {
    /// It is not needed: it ends, and is reaped.
    async fn dismiss(self) {
        let Self { pid, process, socket, .. } = self;
        drop(socket);
        while !reap(pid) {
            drop(process.readable().await);
        }
    }
}

/// A handle to the nursery of this process; cheap to clone. With the last one the nursery ends.
#[derive(Clone)]
pub struct Nursery {
    warm: Waiting,
    asks: mpsc::UnboundedSender<Ask>,
}

/// The guards that wait, first come first served.
type Waiting = Arc<Mutex<VecDeque<Warm>>>;

enum Ask {
    /// One that waited was taken.
    Taken,
    /// None waited: the next one is for this run.
    Next(oneshot::Sender<Warm>),
}

impl Nursery {
    /// Starts one.
    #[must_use]
    pub fn start(nursing: Nursing) -> Self {
        let (asks, inbox) = mpsc::unbounded_channel();
        let warm = Waiting::default();
        tokio::spawn(keep(nursing, Arc::clone(&warm), inbox));
        Self { warm, asks }
    }

    /// A guard; `None` when none is ready in time.
    pub(super) async fn take(&self) -> Option<Warm> {
        // No other task stands between a run and a guard that is there.
        if let Some(warm) = pop(&self.warm) {
            self.asks.send(Ask::Taken).ok();
            return Some(warm);
        }
        let (give, taken) = oneshot::channel();
        self.asks.send(Ask::Next(give)).ok()?;
        timeout(PATIENCE, taken).await.ok()?.ok()
    }
}

/// The first that lives: one may have been killed while it waited.
fn pop(warm: &Waiting) -> Option<Warm> {
    loop {
        let first = warm.lock().pop_front()?;
        if !reap(first.pid) {
            return Some(first);
        }
    }
}

/// Keeps a nursery until the last handle is dropped.
async fn keep(nursing: Nursing, warm: Waiting, mut asks: mpsc::UnboundedReceiver<Ask>) {
    loop {
        match NurserySocket::open(&nursing, Arc::clone(&warm)) {
            Ok(line) => match line.serve(&mut asks).await {
                Ended::Unwanted => return,
                Ended::Died(error) => tracing::warn!(
                    %error,
                    "the nursery of guards ended: it is started again, and until then a run starts some milliseconds later"
                ),
            },
            Err(error) => tracing::warn!(
                %error,
                "no nursery of guards can be started: a run starts some milliseconds later"
            ),
        }
        let again = Instant::now() + AGAIN_AFTER;
        loop {
            tokio::select! {
                () = sleep_until(again) => break,
                // A caller that asks now learns at once that there is none.
                ask = asks.recv() => if ask.is_none() { return },
            }
        }
    }
}

enum Ended {
    /// The last handle was dropped.
    Unwanted,
    Died(io::Error),
}

/// The socket to a nursery, and the guards that wait.
struct NurserySocket {
    socket: UnixStream,
    process: tokio::process::Child,
    pid: Pid,
    warm: Waiting,
    queue: VecDeque<oneshot::Sender<Warm>>,
    /// Not here yet.
    ordered: usize,
    /// When those that were taken are replaced.
    refill_at: Instant,
}

impl NurserySocket {
    fn open(nursing: &Nursing, warm: Waiting) -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let mut command = Command::new(Path::new("/proc/self/exe"));
        command
            // With room for the title of every guard.
            .arg0(format!("{:160}", format!("soloist nursery of {}", nursing.node)))
            .args([WORD, NURSERY])
            .env_clear()
            .envs(sabotage::inherited())
            .envs(descriptors::inherited())
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null());
        let mut guards = sweep::guards();
        let process = command.spawn()?;
        let pid = process.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number was started"))?;
        guards.nurse(pid);
        drop(guards);
        let first = serde_json::to_vec(nursing)?;
        send(ours.as_raw_fd(), &first, MsgFlags::MSG_NOSIGNAL)?;
        // A stream by type only, as with guards.
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let queue = VecDeque::new();
        let refill_at = Instant::now();
        Ok(Self { socket, process, pid, warm, queue, ordered: 0, refill_at })
    }

    async fn serve(mut self, asks: &mut mpsc::UnboundedReceiver<Ask>) -> Ended {
        let ended = loop {
            if let Err(error) = self.deal() {
                break Ended::Died(error);
            }
            tokio::select! {
                biased;
                ask = asks.recv() => match ask {
                    Some(Ask::Taken) => self.refill_at = Instant::now() + REFILL_AFTER,
                    Some(Ask::Next(ask)) => self.queue.push_back(ask),
                    None => break Ended::Unwanted,
                },
                offer = self.hear() => match offer {
                    Ok(warm) => {
                        self.ordered = self.ordered.saturating_sub(1);
                        self.warm.lock().push_back(warm);
                    }
                    Err(error) => break Ended::Died(error),
                },
                () = sleep_until(self.refill_at), if self.is_short() => {}
            }
        };
        // Runs that wait for a guard start one of their own now.
        self.queue.clear();
        // The end of their line is what they go by; guards that wait go with their nursery.
        let left: Vec<Warm> = self.warm.lock().drain(..).collect();
        drop(self.socket);
        drop(self.process.wait().await);
        for warm in left {
            warm.dismiss().await;
        }
        // Not before: until they are reaped their session says which nursery they belong to.
        sweep::guards().nurse_no_more(self.pid);
        ended
    }

    /// Gives what there is to who waits, and orders what is missing.
    fn deal(&mut self) -> io::Result<()> {
        while !self.queue.is_empty() {
            let Some(warm) = pop(&self.warm) else { break };
            let Some(ask) = self.queue.pop_front() else { break };
            match ask.send(warm) {
                Ok(()) => self.refill_at = Instant::now() + REFILL_AFTER,
                Err(warm) => self.warm.lock().push_front(warm),
            }
        }
        let spare = if Instant::now() >= self.refill_at { WARM } else { 0 };
        let there = self.warm.lock().len() + self.ordered;
        let missing = (self.queue.len() + spare).saturating_sub(there);
        let more = missing.min(UNDER_WAY.saturating_sub(self.ordered));
        if more > 0 {
            let order = Wanted { guards: u32::try_from(more).unwrap_or(1) };
            send(
                self.socket.as_raw_fd(),
                &serde_json::to_vec(&order)?,
                MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            )?;
            self.ordered += more;
        }
        Ok(())
    }

    /// Fewer wait than should.
    fn is_short(&self) -> bool {
        self.warm.lock().len() + self.ordered < WARM
    }

    /// The next guard. Nothing is lost when it is not awaited to the end.
    async fn hear(&self) -> io::Result<Warm> {
        loop {
            self.socket.readable().await?;
            let heard = self.socket.try_io(Interest::READABLE, || self.receive());
            match heard {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                heard => return heard,
            }
        }
    }

    fn receive(&self) -> io::Result<Warm> {
        let mut text = [0; LARGEST_ORDER];
        let mut control = cmsg_space!([RawFd; 3]);
        let mut parts = [IoSliceMut::new(&mut text)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let length = message.bytes;
        let mut ends = Vec::new();
        for one in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(fds) = one {
                ends.extend(fds.into_iter().map(kernel::received));
            }
        }
        let Ok([socket, stdout, stderr]) = <[OwnedFd; 3]>::try_from(ends) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let offer: Offer = serde_json::from_slice(text.get(..length).unwrap_or_default())?;
        let pid = Pid::from_raw(offer.pid);
        Ok(Warm { pid, process: kernel::end_of(pid)?, socket, stdout, stderr })
    }
}

/// Reaps a guard that has ended; false while it lives.
pub(super) fn reap(guard: Pid) -> bool {
    match waitpid(guard, Some(WaitPidFlag::WNOHANG)) {
        Ok(nix::sys::wait::WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
        Ok(_) | Err(_) => true,
    }
}
