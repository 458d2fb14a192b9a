//! A TCP relay between one node and its store that can go silent, slow, one-way or away.
//!
//! Silent means what a lost network looks like from a program: nothing arrives, nothing is closed, and what was on its
//! way arrives after healing, as TCP would retransmit it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;

/// What happens to bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They are forwarded this much later; zero for a healthy network.
    After(Duration),
    /// They stay where they are.
    Silent,
}

pub(crate) const HEALTHY: Flow = Flow::After(Duration::ZERO);

/// The two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToStore,
    FromStore,
}

/// A running relay.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    now: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    target: SocketAddr,
    to_store: Flow,
    from_store: Flow,
    open: Vec<[TcpStream; 2]>,
    closed: bool,
}

impl State {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now());
        self.changed.notify_all();
    }

    /// Waits until a chunk that was read at `read` may go on.
    fn wait_for_turn(&self, direction: Direction, read: Boot) {
        let mut now = self.now();
        while !now.closed {
            let flow = match direction {
                Direction::ToStore => now.to_store,
                Direction::FromStore => now.from_store,
            };
            now = match flow {
                Flow::Silent => self.changed.wait(now).unwrap_or_else(PoisonError::into_inner),
                Flow::After(delay) => {
                    let left = (read + delay).since(boot());
                    if left.is_zero() {
                        return;
                    }
                    self.changed.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Proxy {
    /// Listens on a free port of `listen` and relays to `target`.
    pub(crate) fn start(listen: IpAddr, target: SocketAddr) -> Self {
        let listener = TcpListener::bind((listen, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let now =
            Now { target, to_store: HEALTHY, from_store: HEALTHY, open: Vec::new(), closed: false };
        let state = Arc::new(State { now: Mutex::new(now), changed: Condvar::new() });
        let there = Arc::clone(&state);
        thread::spawn(move || {
            for node in listener.incoming().flatten() {
                if there.now().closed {
                    return;
                }
                let there = Arc::clone(&there);
                thread::spawn(move || relay(node, &there));
            }
        });
        Self { address, state }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes one direction, for open connections and later ones.
    pub(crate) fn set(&self, direction: Direction, flow: Flow) {
        self.state.change(|now| match direction {
            Direction::ToStore => now.to_store = flow,
            Direction::FromStore => now.from_store = flow,
        });
    }

    /// Breaks every open connection, whatever is on its way.
    pub(crate) fn reset(&self) {
        self.state.change(|now| {
            for stream in now.open.drain(..).flatten() {
                // The other side may have closed it first.
                stream.shutdown(Shutdown::Both).ok();
            }
        });
    }

    /// Relays new connections to another server, and breaks the open ones.
    pub(crate) fn turn_to(&self, target: SocketAddr) {
        self.state.change(|now| now.target = target);
        self.reset();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.change(|now| now.closed = true);
        self.reset();
        // So that the listening thread looks.
        TcpStream::connect(self.address).ok();
    }
}

fn relay(node: TcpStream, state: &Arc<State>) {
    let target = state.now().target;
    let Ok(store) = TcpStream::connect(target) else { return };
    let (Ok(node_too), Ok(store_too)) = (node.try_clone(), store.try_clone()) else { return };
    let (Ok(node_end), Ok(store_end)) = (node.try_clone(), store.try_clone()) else { return };
    node.set_nodelay(true).ok();
    store.set_nodelay(true).ok();
    state.now().open.push([node_end, store_end]);
    let there = Arc::clone(state);
    thread::spawn(move || pump(node_too, store_too, Direction::ToStore, there));
    pump(store, node, Direction::FromStore, Arc::clone(state));
}

/// One thread reads and one writes, so that a delay holds up time and not the amount.
fn pump(mut from: TcpStream, mut to: TcpStream, direction: Direction, state: Arc<State>) {
    let (sender, chunks) = mpsc::sync_channel::<(Boot, Vec<u8>)>(1_024);
    thread::spawn(move || {
        for (read, chunk) in chunks {
            state.wait_for_turn(direction, read);
            if to.write_all(&chunk).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Both).ok();
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if sender.send((boot(), buffer[..length].to_vec())).is_err() {
            break;
        }
    }
}
