//! A real node under something like an init system: whenever it dies it is started again after a moment.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::time::Boot;

use crate::ensemble::Ways;
use crate::network::Port;
use crate::proxy::{Direction, Flow, HEALTHY, Proxy};

/// The program under test.
pub(crate) const SOLOIST: &str = env!("CARGO_BIN_EXE_soloist");

/// Of what a node is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Store,
    /// ZooKeeper, if the leases are there.
    Ensemble,
}

impl Side {
    pub(crate) const ALL: [Self; 3] = [Self::Both, Self::Store, Self::Ensemble];

    /// That of three things that is for this side, in the order of [`Self::ALL`].
    pub(crate) fn of<T: Copy>(self, all: [T; 3]) -> T {
        match self {
            Self::Both => all[0],
            Self::Store => all[1],
            Self::Ensemble => all[2],
        }
    }
}

/// What a node is started with, each time.
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// As the node sees it: through its relay.
    pub(crate) store: String,
    /// The relay and the cable to the store; none for a store that is a file.
    pub(crate) proxy: Option<Proxy>,
    /// Those to ZooKeeper, if its leases are there.
    pub(crate) ways: Option<Ways>,
    pub(crate) port: Option<Port>,
    /// A wall clock of its own.
    pub(crate) clock: Option<WallClock>,
}

/// A node and who starts it again.
pub(crate) struct Node {
    pub(crate) plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
    init: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    child: Option<Child>,
    address: Option<SocketAddr>,
    frozen: bool,
    not_before: Boot,
    over: bool,
    /// What keeps others from harming this node, or a guard of it, in a way that is known not to be covered.
    node_faults: usize,
    guard_faults: usize,
}

/// libfaketime for one process: only what CLOCK_REALTIME says is false.
pub(crate) struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    /// # Panics
    /// When Debian's package is not installed.
    pub(crate) fn new(file: PathBuf) -> Self {
        let found = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().find_map(|dir| {
            let library = dir.path().join("faketime/libfaketimeMT.so.1");
            library.is_file().then_some(library)
        });
        let library = found.expect(
            "libfaketime is not installed: use tests/run, or `apt-get install libfaketime`",
        );
        let clock = Self { library, file };
        clock.step(0);
        clock
    }

    /// The clock is that many seconds off from now on.
    pub(crate) fn step(&self, seconds: i64) {
        let text = format!("{seconds:+}\n");
        // Renamed into place: a reader must never see half of it.
        let new = self.file.with_extension("new");
        std::fs::write(&new, text).expect("the clock's file");
        std::fs::rename(&new, &self.file).expect("the clock's file");
    }

    /// What makes a process believe it.
    pub(crate) fn apply(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    }
}

impl Node {
    /// Starts it, and again whenever it dies.
    pub(crate) fn start(plan: Plan) -> Arc<Self> {
        let node = Arc::new(Self {
            plan,
            state: Mutex::default(),
            changed: Condvar::new(),
            init: Mutex::default(),
        });
        let there = Arc::clone(&node);
        let init = thread::spawn(move || there.keep_up());
        *node.init.lock().unwrap_or_else(PoisonError::into_inner) = Some(init);
        node
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_up(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            if state.over {
                return;
            }
            if let Some(child) = &mut state.child {
                if child.try_wait().expect("our own child").is_some() {
                    state.child = None;
                    state.address = None;
                    state.frozen = false;
                    state.not_before = boot() + Duration::from_millis(300);
                }
            } else if boot() >= state.not_before {
                state.child = Some(self.spawn());
            }
            let look_again = Duration::from_millis(20);
            drop(self.changed.wait_timeout(state, look_again));
        }
    }

    fn spawn(self: &Arc<Self>) -> Child {
        let plan = &self.plan;
        let listen =
            plan.port.as_ref().map_or("127.0.0.1".parse().expect("an address"), Port::node_side);
        let enter = plan.port.as_ref().map(Port::enter);
        let words: Vec<String> = enter.into_iter().flatten().chain([SOLOIST.to_owned()]).collect();
        let mut command = Command::new(&words[0]);
        without_settings(&mut command);
        command
            .args(&words[1..])
            .arg("--config")
            .arg(plan.directory.join("soloist.toml"))
            .args(["--store", &plan.store, "serve", "--node", &plan.name])
            .args(["--listen", &SocketAddr::new(listen, 0).to_string()])
            .current_dir(&plan.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(ways) = &plan.ways {
            command.env("SOLOIST_COORDINATION", ways.url());
        }
        if let Some(clock) = &plan.clock {
            clock.apply(&mut command);
        }
        let mut child = command.spawn().expect("soloist starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let log = plan.directory.join(format!("{}.log", plan.name));
        let mut log = File::options().create(true).append(true).open(log).expect("a log");
        writeln!(log, "--- started as {} at {}", child.id(), boot().0).expect("the log");
        let (there, pid) = (Arc::clone(self), child.id());
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(at) = line.find("listening on http://") {
                    let rest = &line[at + "listening on http://".len()..];
                    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
                    let address = rest[..end.unwrap_or(rest.len())].parse().ok();
                    let mut state = there.state();
                    if state.child.as_ref().is_some_and(|child| child.id() == pid) {
                        state.address = address;
                    }
                    there.changed.notify_all();
                }
                writeln!(log, "{} {line}", boot().0).expect("the log");
            }
        });
        child
    }

    /// Where it listens now, if it does.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let state = self.state();
        state.address.filter(|_| !state.frozen)
    }

    /// Its process id, while it lives and is awake.
    pub(crate) fn awake(&self) -> Option<i32> {
        let state = self.state();
        let pid = state.child.as_ref().filter(|_| !state.frozen).map(Child::id);
        pid.and_then(|pid| i32::try_from(pid).ok())
    }

    /// `kill -9`; it stays dead for `rest` at least. Gives the instant right before.
    pub(crate) fn kill(&self, rest: Duration) -> Option<Boot> {
        let mut state = self.state();
        let mut child = state.child.take()?;
        state.address = None;
        state.frozen = false;
        state.not_before = boot() + rest;
        let at = boot();
        child.kill().expect("our own child");
        drop(state);
        child.wait().expect("and waited for");
        Some(at)
    }

    /// SIGTERM, and its exit code. It is not started again before `rest`.
    pub(crate) fn terminate(&self, rest: Duration) -> Option<i32> {
        let mut child = {
            let mut state = self.state();
            let child = state.child.take()?;
            state.address = None;
            // The next one is awake, whatever became of this one.
            state.frozen = false;
            state.not_before = boot() + Duration::from_secs(3_600);
            child
        };
        signal(&child, Signal::SIGTERM);
        // It may have been frozen by another fault, which does not find it any more.
        signal(&child, Signal::SIGCONT);
        let status = child.wait().expect("our own child");
        self.state().not_before = boot() + rest;
        status.code()
    }

    /// SIGSTOP or SIGCONT, if it lives.
    pub(crate) fn freeze(&self, frozen: bool) -> Option<Boot> {
        let mut state = self.state();
        let Some(child) = state.child.as_ref() else {
            // Ended meanwhile by another fault.
            state.frozen = false;
            return None;
        };
        let at = boot();
        signal(child, if frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
        state.frozen = frozen;
        Some(at)
    }

    /// Packets or bytes of that direction are lost from now on, or are not any more, from or to everything.
    pub(crate) fn cut(&self, direction: Direction, cut: bool) {
        self.cut_from(Side::Both, direction, cut);
    }

    /// The same, from or to one side.
    pub(crate) fn cut_from(&self, side: Side, direction: Direction, cut: bool) {
        let Plan { port, proxy, ways, .. } = &self.plan;
        if side != Side::Ensemble {
            match (port, proxy) {
                (Some(port), _) => port.cut(direction, cut),
                (None, Some(proxy)) => {
                    proxy.set(direction, if cut { Flow::Silent } else { HEALTHY });
                }
                (None, None) => {}
            }
        }
        if side != Side::Store {
            match (port, ways) {
                (Some(port), Some(_)) => port.cut_ensemble(direction, cut),
                (None, Some(ways)) => ways.silence(direction, cut),
                (_, None) => {}
            }
        }
    }

    /// Both directions, from everything.
    pub(crate) fn cut_off(&self, cut: bool) {
        self.cut_off_from(Side::Both, cut);
    }

    /// Both directions.
    pub(crate) fn cut_off_from(&self, side: Side, cut: bool) {
        self.cut_from(side, Direction::ToStore, cut);
        self.cut_from(side, Direction::FromStore, cut);
    }

    /// All answers come that much later.
    pub(crate) fn slow_down(&self, side: Side, flow: Flow) {
        if side != Side::Ensemble {
            self.proxy().set(Direction::FromStore, flow);
        }
        if let Some(ways) = self.plan.ways.as_ref().filter(|_| side != Side::Store) {
            ways.set(Direction::FromStore, flow);
        }
    }

    /// Breaks every connection.
    pub(crate) fn reset(&self, side: Side) {
        if side != Side::Ensemble {
            self.proxy().reset();
        }
        if let Some(ways) = self.plan.ways.as_ref().filter(|_| side != Side::Store) {
            ways.reset();
        }
    }

    /// The relay to the store.
    pub(crate) fn proxy(&self) -> &Proxy {
        self.plan.proxy.as_ref().expect("a store that is reached over the network")
    }

    /// Takes the right to kill or freeze this node, unless a guard of it is being harmed: when both cannot act nobody
    /// is left who could (reliability, row 7), which is a documented limit and not a fault to survive.
    pub(crate) fn may_harm_node(&self) -> bool {
        let mut state = self.state();
        let free = state.guard_faults == 0;
        state.node_faults += usize::from(free);
        free
    }

    /// Gives it back.
    pub(crate) fn node_is_well(&self) {
        self.state().node_faults -= 1;
    }

    /// As [`Self::may_harm_node`], for a guard of a node that is well.
    pub(crate) fn may_harm_guard(&self) -> bool {
        let mut state = self.state();
        let free = state.node_faults == 0 && state.child.is_some();
        state.guard_faults += usize::from(free);
        free
    }

    /// Gives it back.
    pub(crate) fn guard_is_well(&self) {
        self.state().guard_faults -= 1;
    }

    /// Ends it for good.
    pub(crate) fn stop(&self) {
        {
            let mut state = self.state();
            state.over = true;
            if let Some(mut child) = state.child.take() {
                child.kill().ok();
                child.wait().ok();
            }
        }
        self.changed.notify_all();
        let init = self.init.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(init) = init {
            init.join().ok();
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("our own child");
}

/// Nothing of the caller's own Soloist may reach the program under test.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SOLOIST_") {
            command.env_remove(name);
        }
    }
}
