//! Between one process and its server: what the process sends can end anywhere, as if the process had been stopped there, and connections
//! can be cut, silently or by a reset. The server hears of nothing but what it is sent.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

/// A running relay. New connections go through, whatever became of others.
pub(crate) struct Relay {
    port: u16,
    state: Arc<State>,
}

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing arrives any more in either direction, and nobody is told.
    Silent,
    /// Both ends are reset.
    Reset,
}

#[derive(Default)]
struct State {
    lines: Mutex<Vec<Arc<Line>>>,
    stop: Mutex<Option<Stop>>,
    stopped: AtomicBool,
    /// Milliseconds that each text of the server takes longer.
    slow: AtomicU64,
}

/// Where the process will stop.
struct Stop {
    /// After so many texts more.
    texts: usize,
    /// In the middle of the last one.
    half: bool,
}

struct Line {
    process: TcpStream,
    server: TcpStream,
    mute: AtomicBool,
    said: Mutex<Vec<u8>>,
}

impl Relay {
    /// Before the server that listens at `port` of this machine.
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("its address").port();
        let state = Arc::new(State::default());
        let there = Arc::clone(&state);
        std::thread::spawn(move || {
            for process in listener.incoming().map_while(Result::ok) {
                // A server that was killed refuses; then so do we.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    begin(process, server, &there);
                }
            }
        });
        Self { port: own, state }
    }

    /// The store at `url` by this way.
    pub(crate) fn url_of(&self, url: &str) -> String {
        let (before, database) = url.rsplit_once('/').expect("its database");
        let (host, _) = before.rsplit_once(':').expect("its port");
        format!("{host}:{}/{database}", self.port)
    }

    /// From now on the process says so many texts more, of the last one perhaps only half; then nothing more, on no connection.
    pub(crate) fn stop_after(&self, texts: usize, half: bool) {
        *lock(&self.state.stop) = Some(Stop { texts, half });
    }

    /// Whether it has come to that.
    pub(crate) fn has_stopped(&self) -> bool {
        self.state.stopped.load(Ordering::SeqCst)
    }

    /// From now on each text of the server comes so much later.
    #[allow(dead_code, reason = "not every program of tests is in no hurry")]
    pub(crate) fn slow(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).expect("some milliseconds");
        self.state.slow.store(ms, Ordering::SeqCst);
    }

    /// Cuts what is open; how many connections it were.
    pub(crate) fn cut(&self, how: Cut) -> usize {
        self.cut_those_that_said("", how)
    }

    /// Cuts those on which the process once said `word`; how many it were.
    pub(crate) fn cut_those_that_said(&self, word: &str, how: Cut) -> usize {
        let mut lines = lock(&self.state.lines);
        let is_meant = |line: &Arc<Line>| {
            let said = lock(&line.said);
            let said =
                word.is_empty() || said.windows(word.len()).any(|some| some == word.as_bytes());
            said && !line.mute.load(Ordering::SeqCst)
        };
        let (meant, others): (Vec<_>, Vec<_>) = lines.drain(..).partition(is_meant);
        *lines = others;
        for line in &meant {
            line.mute.store(true, Ordering::SeqCst);
            if how == Cut::Reset {
                line.reset_at_its_end();
            }
        }
        let count = meant.len();
        if how == Cut::Silent {
            lines.extend(meant);
        }
        count
    }
}

impl Line {
    /// Its threads end, and with the last of them its ends are closed: by this option each is reset then.
    fn reset_at_its_end(&self) {
        for end in [&self.process, &self.server] {
            let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            setsockopt(&end.as_fd(), sockopt::Linger, &at_once).expect("a socket");
            // It says nothing to the other side, and wakes who reads.
            end.shutdown(Shutdown::Read).ok();
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin(process: TcpStream, server: TcpStream, state: &Arc<State>) {
    process.set_nodelay(true).expect("a socket");
    server.set_nodelay(true).expect("a socket");
    let line =
        Arc::new(Line { process, server, mute: AtomicBool::new(false), said: Mutex::default() });
    lock(&state.lines).push(Arc::clone(&line));
    let (there, back, slow) = (Arc::clone(state), Arc::clone(&line), Arc::clone(state));
    std::thread::spawn(move || {
        pass(&line.process, &line.server, &line, |text| there.passes(&line, text));
        there.forget(&line);
    });
    std::thread::spawn(move || {
        pass(&back.server, &back.process, &back, |text| {
            std::thread::sleep(Duration::from_millis(slow.slow.load(Ordering::SeqCst)));
            text.len()
        });
    });
}

/// Passes bytes on, of each text as many as `passes` says, until either end closes. A mute line passes nothing, not even the end.
fn pass(mut from: &TcpStream, mut to: &TcpStream, line: &Line, passes: impl Fn(&[u8]) -> usize) {
    let mut bytes = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let passing = if line.mute.load(Ordering::SeqCst) { 0 } else { passes(&bytes[..count]) };
        if to.write_all(&bytes[..passing]).is_err() {
            break;
        }
    }
    if !line.mute.load(Ordering::SeqCst) {
        to.shutdown(Shutdown::Both).ok();
    }
}

impl State {
    /// How many bytes of what the process says go on.
    fn passes(&self, line: &Line, text: &[u8]) -> usize {
        lock(&line.said).extend_from_slice(text);
        let mut stop = lock(&self.stop);
        match stop.as_mut() {
            None => text.len(),
            Some(_) if self.stopped.load(Ordering::SeqCst) => 0,
            Some(Stop { texts: 0, half }) => {
                let passing = if *half { text.len() / 2 } else { text.len() };
                self.stopped.store(true, Ordering::SeqCst);
                for line in lock(&self.lines).iter() {
                    line.mute.store(true, Ordering::SeqCst);
                }
                passing
            }
            Some(Stop { texts, .. }) => {
                *texts -= 1;
                text.len()
            }
        }
    }

    /// The process has closed it. A mute line stays: the server must not hear of its end.
    fn forget(&self, line: &Arc<Line>) {
        if !line.mute.load(Ordering::SeqCst) {
            lock(&self.lines).retain(|other| !Arc::ptr_eq(other, line));
        }
    }
}
