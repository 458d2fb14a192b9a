//! The way between a client and a node: one listening address that forwards, loses, cuts or answers by itself.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What becomes of what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is forwarded.
    Open,
    /// Nothing arrives on either side, and nobody is told: as when a cable is pulled.
    Hole,
    /// Requests arrive, answers do not.
    Deaf,
    /// Answers arrive, requests do not.
    Mute,
    /// Connections are closed.
    Closed,
    /// Every request is answered with this status, as a node would.
    Says(u16),
    /// Every request is answered by something that is no node: status and content type, and the body.
    Gateway(&'static str, &'static str),
    /// Every request is answered by something that never ends: its beginning, and then a piece again and again, each after so many milliseconds.
    Pours(&'static str, &'static str, u64),
}

struct State {
    way: Way,
    to: SocketAddr,
    open: Vec<TcpStream>,
    answered: usize,
    /// How many connections there were, and how many of the first of them nothing passes any more.
    made: usize,
    forgotten: usize,
}

/// A way to one node. Its threads end with the process.
pub(super) struct Proxy {
    /// What clients are given.
    pub url: String,
    state: Arc<Mutex<State>>,
}

fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().expect("an address")
}

impl Proxy {
    /// An open way to the node at `url`.
    pub(super) fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = format!("http://{}", listener.local_addr().expect("its address"));
        let state = State {
            way: Way::Open,
            to: address(url),
            open: Vec::new(),
            answered: 0,
            made: 0,
            forgotten: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        Self { url: own, state }
    }

    /// From now on so. Connections that exist are cut, except when they are to fall silent, or to be answered without end.
    pub(super) fn set(&self, way: Way) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.way = way;
        if !matches!(way, Way::Hole | Way::Deaf | Way::Mute | Way::Pours(..)) {
            for stream in state.open.drain(..) {
                // It may have ended already.
                stream.shutdown(Shutdown::Both).ok();
            }
        }
    }

    /// As a NAT that starts anew: nothing passes the connections that there are, nobody is told, and new ones work.
    pub(super) fn forget(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forgotten = state.made;
    }

    /// How many requests it has answered by itself.
    pub(super) fn answered(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).answered
    }

    /// The node is elsewhere now.
    pub(super) fn point(&self, url: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).to = address(url);
    }
}

fn way(state: &Mutex<State>) -> Way {
    state.lock().unwrap_or_else(PoisonError::into_inner).way
}

/// Keeps a connection in the list of those that are cut.
fn keep(state: &Mutex<State>, stream: &TcpStream) -> TcpStream {
    let copy = stream.try_clone().expect("another descriptor");
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.open.push(copy.try_clone().expect("another descriptor"));
    copy
}

fn serve(client: TcpStream, state: &Arc<Mutex<State>>) {
    let (way, to, nth) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.made += 1;
        (state.way, state.to, state.made)
    };
    match way {
        Way::Closed => return,
        Way::Says(status) => {
            let body = format!(
                "{{\"type\":\"about:blank\",\"title\":\"So\",\"status\":{status},\"detail\":\"the way says so\"}}"
            );
            return answer(client, state, &format!("{status} So|application/problem+json"), &body);
        }
        Way::Gateway(head, body) => return answer(client, state, head, body),
        Way::Pours(..) => {
            keep(state, &client);
            // Whatever the request is, it has begun.
            if (&client).read(&mut [0; 4096]).is_ok() {
                pour(&client, state);
            }
            return;
        }
        Way::Open | Way::Hole | Way::Deaf | Way::Mute => {}
    }
    let Ok(node) = TcpStream::connect(to) else { return };
    let (back, forth) = (keep(state, &client), keep(state, &node));
    let shared = Arc::clone(state);
    std::thread::spawn(move || pump(forth, back, &shared, nth, false));
    pump(client, node, state, nth, true);
}

/// Answers one request, and counts it.
fn answer(client: TcpStream, state: &Mutex<State>, head: &str, body: &str) {
    say(client, head, body);
    state.lock().unwrap_or_else(PoisonError::into_inner).answered += 1;
}

/// Reads one request, however it is cut into packets, and answers it.
fn say(mut client: TcpStream, head: &str, body: &str) {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let Ok(count @ 1..) = client.read(&mut piece) else { return };
        all.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&all).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if body.len() >= length.and_then(|length| length.trim().parse().ok()).unwrap_or(0) {
            break;
        }
    }
    let (status, kind) = head.split_once('|').expect("status and content type");
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // Who has hung up is not told.
    client.write_all(format!("{head}{body}").as_bytes()).ok();
}

/// Answers without end, until the way is another or the client has hung up.
fn pour(mut client: &TcpStream, state: &Mutex<State>) {
    let (mut begun, began) = (false, way(state));
    while let Way::Pours(head, piece, pause) = way(state)
        && way(state) == began
    {
        let next = if begun { piece } else { head };
        if client.write_all(next.as_bytes()).is_err() {
            break;
        }
        begun = true;
        std::thread::sleep(Duration::from_millis(pause));
    }
    client.shutdown(Shutdown::Both).ok();
}

fn is_forgotten(state: &Mutex<State>, nth: usize) -> bool {
    state.lock().unwrap_or_else(PoisonError::into_inner).forgotten >= nth
}

fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    state: &Mutex<State>,
    nth: usize,
    is_request: bool,
) {
    let mut piece = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let passes = match way(state) {
            Way::Pours(..) if is_request => {
                pour(&from, state);
                break;
            }
            _ if is_forgotten(state, nth) => false,
            Way::Hole => false,
            Way::Deaf => is_request,
            Way::Mute => !is_request,
            _ => true,
        };
        if passes && to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    // One side has ended: so does the other, unless nothing gets through.
    if way(state) != Way::Hole && !is_forgotten(state, nth) {
        to.shutdown(Shutdown::Both).ok();
    }
    from.shutdown(Shutdown::Both).ok();
}
