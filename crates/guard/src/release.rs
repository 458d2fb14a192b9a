//! Releases the lease for a dead node, after the tree is proved gone: it records the end of a run, reports the result of a task, or
//! passes a turn.
//!
//! A guard of a node that runs jobs asks the node's agent: one process with an open connection. So two hundred guards of a dead node do
//! not connect at once, and another node is notified a millisecond after the proof. A guard without an agent, or whose agent does not
//! answer, connects by itself. Either way it retries while the lease could still block another node, then lets it expire. A second
//! attempt to release is refused: its token is gone.
//!
//! Only here does a guard start a runtime: nothing is left to kill, so nothing can be late.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    send, sendmsg, setsockopt, socketpair, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::kernel;
use super::message::{LARGEST_ORDER, Nursing, Plan, Turn, Work};
use soloist_domain::dispatch::TaskOutcome;
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, Owner, RunId};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_remote::{Access, Call, Client, part};
use soloist_store::dispatch::{Dispatch, Exchange, Report, TaskId};
use soloist_store::journal::{Ended, Journal, Then};
use soloist_store::rotation::{Pass, Rotations};
use soloist_store::{For, Opener, Options, Store, StoreError};

/// Beyond its trusted time a lease lives a little longer at the store.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);
/// Between two attempts, doubling: at first every millisecond counts for the node that waits; later a store that comes
/// back must not be met by all guards of a dead node at once.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long a node may take before another is asked.
const NODE_PATIENCE: Duration = Duration::from_secs(2);
/// How long an agent may take before its guard tries by itself.
const AGENT_PATIENCE: Duration = Duration::from_secs(2);
/// How often the agent's connection is used, so that it is there when it is needed.
const STAY_CONNECTED: Duration = Duration::from_secs(10);

/// What is released, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lost {
    job: JobName,
    owner: Owner,
    token: Token,
    run: RunId,
    store_url: String,
    #[serde(default)]
    server: Option<Access>,
    prefix: String,
    held: Held,
    exit: Exit,
    processes_killed: u32,
    /// When the lease was trusted for the last time.
    deadline: Boot,
}

/// As [`Work`], without what the command reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Held {
    Run,
    Task(TaskId),
    Turn(Turn),
}

impl Lost {
    pub(super) fn of(plan: &Plan, exit: Exit, processes_killed: u32, deadline: Boot) -> Self {
        Self {
            job: plan.job.clone(),
            owner: plan.owner.clone(),
            token: plan.token,
            run: plan.run.clone(),
            store_url: plan.store_url.clone(),
            server: plan.server.clone(),
            prefix: plan.prefix.clone(),
            held: match &plan.work {
                Work::Run => Held::Run,
                Work::Task { id, .. } => Held::Task(id.clone()),
                Work::Turn(turn) => Held::Turn(turn.clone()),
            },
            exit,
            processes_killed,
            deadline,
        }
    }

    /// Gives it back by a connection of its own. It returns when that is done, or is not possible any more.
    pub(super) fn give_back(&self, open: Opener) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        match &self.server {
            Some(access) => runtime.block_on(self.try_at_nodes(access)),
            None => runtime.block_on(self.try_by(&Door::new(open, &self.store_url, &self.prefix))),
        }
    }

    /// As [`Self::try_by`], over HTTP by any of the nodes.
    async fn try_at_nodes(&self, access: &Access) {
        let Ok(client) = Client::new(access.clone()) else { return };
        let Some(call) = self.call() else { return };
        let mut pause = FIRST_PAUSE;
        while clock::boot() < self.deadline + AFTER_DEADLINE {
            match client.tell(call.clone()).await {
                Err(error) if error.may_pass() => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                // Given back, or not held any more.
                Ok(()) | Err(_) => return,
            }
        }
    }

    /// The report to a node; idempotent. `None`: there is nothing to report.
    fn call(&self) -> Option<Call> {
        let call = match &self.held {
            Held::Task(id) => {
                let report = self.report(id.clone());
                let outcome = match report.outcome {
                    TaskOutcome::Done => "done",
                    TaskOutcome::Retry => "retry",
                    TaskOutcome::Dead => "dead",
                };
                let delay = report.delay.map(|_| 0);
                Call::post("/api/v1/results").with(&json!({"results": [{
                    "id": report.id, "token": report.token, "outcome": outcome, "delay_ms": delay,
                    "error": report.error,
                }]}))
            }
            Held::Turn(turn) => {
                let (name, rotation) = (turn.name.as_deref()?, turn.rotation.as_str());
                let path =
                    format!("/api/v1/rotations/{}/turns/{}/pass", part(rotation), part(name));
                let outcome = turn.pass(self.token, &self.exit).outcome;
                Call::post(path).with(&json!({
                    "token": self.token, "outcome": outcome, "next": turn.next,
                }))
            }
            Held::Run => {
                let path = format!("/api/v1/leases/{}/release", part(self.job.as_str()));
                let well = self.exit.is_success();
                Call::post(path).with(&json!({
                    "secret": self.owner, "end": if well { "done" } else { "failed" },
                    "code": self.exit.code, "error": (!well).then_some("its holder died"),
                }))
            }
        };
        Some(call.repeatable().within(NODE_PATIENCE))
    }

    async fn try_by(&self, door: &Door) {
        let mut pause = FIRST_PAUSE;
        while clock::boot() < self.deadline + AFTER_DEADLINE {
            let tried = match door.store().await {
                Ok(store) => self.record(&store).await,
                Err(error) => Err(error),
            };
            match tried {
                Ok(()) => return,
                Err(StoreError::Unavailable(_)) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(_) => return,
            }
        }
    }

    async fn record(&self, store: &Store) -> Result<(), StoreError> {
        let id = match &self.held {
            Held::Run => {
                let ended = Ended {
                    job: self.job.clone(),
                    owner: self.owner.clone(),
                    token: self.token,
                    run: self.run.clone(),
                    exit: self.exit,
                    end: RunEnd::Lost,
                    processes_killed: self.processes_killed,
                    then: Then::Nothing,
                    // The store knows it. Should it have forgotten it since the last renewal, it takes the start of the
                    // lease.
                    began: None,
                };
                return store.record_ended(&ended).await;
            }
            Held::Turn(turn) => return pass(store, turn.pass(self.token, &self.exit)).await,
            Held::Task(id) => id.clone(),
        };
        let report = self.report(id);
        store.exchange(&Exchange { reports: vec![report], ..Exchange::default() }).await.map(drop)
    }

    fn report(&self, id: TaskId) -> Report {
        let outcome = TaskOutcome::of(&self.exit);
        Report {
            id,
            token: self.token,
            outcome,
            // Killed because its collector died: that is no reason to wait.
            delay: (self.exit.code.is_none() && outcome == TaskOutcome::Retry)
                .then_some(Duration::ZERO),
            error: (outcome != TaskOutcome::Done).then(|| "its collector died".to_owned()),
        }
    }
}

/// Passes a turn; one who is to come next and is gone from the rules is no reason to keep it.
async fn pass(store: &Store, mut pass: Pass) -> Result<(), StoreError> {
    match store.pass_turn(&pass).await {
        Err(StoreError::NotFound(_)) if pass.next.take().is_some() => {
            store.pass_turn(&pass).await.map(drop)
        }
        passed => passed.map(drop),
    }
}

/// The way to the store: opened when it is needed, and kept.
struct Door {
    opener: Opener,
    url: String,
    options: Options,
    open: tokio::sync::OnceCell<Store>,
}

impl Door {
    fn new(opener: Opener, url: &str, prefix: &str) -> Self {
        // The node has checked the store; every round trip less, another node starts sooner.
        let options =
            Options { prefix: prefix.to_owned(), checked: true, make: false, ..Options::default() };
        Self { opener, url: url.to_owned(), options, open: tokio::sync::OnceCell::new() }
    }

    async fn store(&self) -> Result<Store, StoreError> {
        self.open.get_or_try_init(|| (self.opener)(&self.url, &self.options)).await.cloned()
    }
}

/// The process that releases for all guards of one node, as they and the nursery know it.
pub(super) struct Agent {
    line: OwnedFd,
    pid: Pid,
}

impl Agent {
    /// Forks it from the nursery; `introduce` is called in it. `None` when that cannot be: guards do without.
    pub(super) fn start(nursing: &Nursing, open: Opener, introduce: impl FnOnce()) -> Option<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (line, its) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).ok()?;
        let patience = TimeVal::milliseconds(i64::try_from(AGENT_PATIENCE.as_millis()).ok()?);
        setsockopt(&line, sockopt::SendTimeout, &patience).ok()?;
        let Some(pid) = kernel::fork(0).ok()? else {
            introduce();
            let code = match serve_from(its, nursing, open) {
                Ok(()) => 0,
                Err(_) => 2,
            };
            std::process::exit(code);
        };
        Some(Self { line, pid })
    }

    /// Whether it must be replaced. Only its parent may ask.
    pub(super) fn has_ended(&self) -> bool {
        waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) != Ok(WaitStatus::StillAlive)
    }

    /// Its line's number: the only one of the nursery's descriptors that a guard keeps open.
    pub(super) fn line(&self) -> RawFd {
        self.line.as_raw_fd()
    }

    /// Lets it release `lost`; false when the caller must do that in another way.
    pub(super) fn give_back(&self, lost: &Lost) -> bool {
        self.ask(lost).unwrap_or(false)
    }

    fn ask(&self, lost: &Lost) -> Result<bool, Errno> {
        let text = serde_json::to_vec(lost).map_err(|_| Errno::EINVAL)?;
        let flags = SockFlag::SOCK_CLOEXEC;
        let (answer, its) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let (parts, ends) = ([IoSlice::new(&text)], [its.as_raw_fd()]);
        let control = [ControlMessage::ScmRights(&ends)];
        sendmsg::<()>(self.line(), &parts, &control, MsgFlags::MSG_NOSIGNAL, None)?;
        // Theirs alone from now on: its end is the end of the agent.
        drop(its);
        let begun = clock::boot();
        loop {
            let left = AGENT_PATIENCE.saturating_sub(clock::boot().since(begun));
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(answer.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, left) {
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
                Ok(0) => return Ok(false),
                Ok(_) => {
                    let mut done = [0];
                    let flags = MsgFlags::MSG_DONTWAIT;
                    return nix::sys::socket::recv(answer.as_raw_fd(), &mut done, flags)
                        .map(|length| length > 0);
                }
            }
        }
    }
}

/// What an agent does, from its fork until the nursery and every guard that could ask it are gone.
fn serve_from(line: OwnedFd, nursing: &Nursing, open: Opener) -> io::Result<()> {
    kernel::let_go_of_output().ok();
    // The line of the nursery to the node must not stay open here.
    kernel::let_go_of_input()?;
    kernel::close_all_but(Some(line.as_raw_fd()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let door = Rc::new(Door::new(open, &nursing.store_url, &nursing.prefix));
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::task::spawn_local(stay_connected(Rc::clone(&door)));
        // A stream by type only, as in `runner::child`.
        let line = std::os::unix::net::UnixStream::from(line);
        line.set_nonblocking(true)?;
        let line = UnixStream::from_std(line)?;
        let mut under_way = tokio::task::JoinSet::new();
        loop {
            line.readable().await?;
            match line.try_io(Interest::READABLE, || receive(line.as_raw_fd())) {
                Ok(Heard::Request(lost, answer)) => {
                    let door = Rc::clone(&door);
                    under_way.spawn_local(async move {
                        lost.try_by(&door).await;
                        // One who has waited too long is gone.
                        send(answer.as_raw_fd(), &[1], MsgFlags::MSG_NOSIGNAL).ok();
                    });
                }
                Ok(Heard::Nonsense) => {}
                Ok(Heard::NobodyLeft) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            while under_way.try_join_next().is_some() {}
        }
        under_way.join_all().await;
        Ok(())
    })
}

enum Heard {
    /// What to release, and where to report that it is done.
    Request(Box<Lost>, OwnedFd),
    /// Answered by the end of its line: the guard does it by itself.
    Nonsense,
    /// No process has the other end any more.
    NobodyLeft,
}

fn receive(line: RawFd) -> io::Result<Heard> {
    let mut text = vec![0; LARGEST_ORDER * 4];
    let mut control = cmsg_space!([RawFd; 1]);
    let mut parts = [IoSliceMut::new(&mut text)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(line, &mut parts, Some(&mut control), flags)?;
    let (length, mut answer) = (message.bytes, None);
    for one in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(ends) = one {
            answer = ends.into_iter().map(kernel::received).next();
        }
    }
    let lost = text.get(..length).map(serde_json::from_slice);
    Ok(match (lost, answer) {
        _ if length == 0 => Heard::NobodyLeft,
        (Some(Ok(lost)), Some(answer)) => Heard::Request(Box::new(lost), answer),
        _ => Heard::Nonsense,
    })
}

/// Opens the connection before it is needed, and uses it now and then.
async fn stay_connected(door: Rc<Door>) {
    loop {
        if let Ok(store) = door.store().await {
            // A store that is away now may be there when it counts.
            store.be_ready(For::GivingBack).await.ok();
        }
        sleep(STAY_CONNECTED).await;
    }
}
