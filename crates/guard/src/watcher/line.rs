//! One connection of a program or of the node: bytes, lines, answers in the order of the lines, and who wrote them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, setsockopt, sockopt};
use nix::unistd::Pid;

use super::said::{LONGEST, LONGEST_OF_NODES, ToNode};
use crate::kernel;
use soloist_domain::time::Boot;
use soloist_process::clock;

/// So many lines of a program may wait for the node at once; then no more is read.
const AT_ONCE: usize = 256;
/// So many lines, and pieces, of one connection are heard before others have their turn.
const IN_TURN: usize = 64;
const PIECES: usize = 4;
/// So much may wait to be written to a program, and to a node.
const MOST_UNREAD: usize = 256 * 1024;
const MOST_UNREAD_BY_NODES: usize = 4 * LONGEST_OF_NODES;

/// Who speaks.
pub(super) enum Role {
    New,
    Program {
        token: String,
        /// The node knows the token.
        checked: bool,
        /// The watcher sees it die.
        release: bool,
    },
    Node(String),
}

/// An answer, in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Said(String),
    /// The node was asked.
    Asked(u64),
}

/// What came in.
pub(super) enum Heard {
    Line(Vec<u8>),
    /// A line of a process that did not connect.
    Foreign(i32),
    TooLong,
    End,
}

/// A connection.
pub(super) struct Connection {
    pub(super) socket: UnixStream,
    /// 0: it is in another pid namespace.
    pub(super) pid: i32,
    pub(super) uid: u32,
    /// When it connected; when it was refused, since then.
    pub(super) since: Boot,
    pub(super) role: Role,
    pub(super) answers: VecDeque<Slot>,
    /// It ends once everything is written, or soon after `since`, whatever is left.
    pub(super) closing: bool,
    /// What the process must repeat on a kernel that does not say who connected.
    pub(super) again: Option<String>,
    process: Option<OwnedFd>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Connection {
    /// The next one; `None` when none waits.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn accept(listener: &UnixListener, old_kernel: bool) -> io::Result<Option<Self>> {
        loop {
            let socket = match listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            // Who is dead already has nothing to say.
            if let Ok(line) = Self::of(socket, old_kernel) {
                return Ok(Some(line));
            }
        }
    }

    fn of(socket: UnixStream, old_kernel: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        let peer = getsockopt(&socket, sockopt::PeerCredentials)?;
        let process = match kernel::peer_pidfd(&socket) {
            _ if old_kernel => None,
            Ok(process) => Some(process),
            Err(Errno::ENOPROTOOPT) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            socket,
            pid: peer.pid(),
            uid: peer.uid(),
            since: clock::boot(),
            role: Role::New,
            answers: VecDeque::new(),
            closing: false,
            again: None,
            process,
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// The node's name.
    pub(super) fn called(&self) -> &str {
        if let Role::Node(name) = &self.role { name } else { "" }
    }

    pub(super) fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref()
    }

    /// Has a handle to the process that connected. On an older kernel it may be that of a later process with the same number: then the
    /// process must speak again.
    pub(super) fn find_process(&mut self) -> Result<(), &'static str> {
        if self.process.is_some() {
            return Ok(());
        }
        let process = kernel::pidfd(Pid::from_raw(self.pid)).map_err(|_| "this process is dead")?;
        self.process = Some(process);
        self.again = Some(format!("{:032x}", rand_bits()));
        Ok(())
    }

    pub(super) fn must_say_again(&self) -> bool {
        self.again.is_some()
    }

    /// It has repeated what it was told, and is not dead.
    pub(super) fn lives_again(&mut self, text: &str) -> bool {
        let Some(process) = &self.process else { return false };
        let dead = kernel::is_dead(process);
        let same = self.again.as_deref() == Some(text);
        if same && !dead {
            self.again = None;
        }
        same && !dead
    }

    /// What is waited for on its socket.
    pub(super) fn wants(&self) -> PollFlags {
        let reads = !self.closing && self.answers.len() < AT_ONCE;
        let mut wants = if reads { PollFlags::POLLIN } else { PollFlags::empty() };
        if !self.output.is_empty() {
            wants |= PollFlags::POLLOUT;
        }
        wants
    }

    /// Reads what is there, as lines; not more than is this connection's turn.
    pub(super) fn read(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let mut bytes = vec![0; 16 * 1024];
        let most = if matches!(self.role, Role::Node(_)) { LONGEST_OF_NODES } else { LONGEST };
        for _ in 0..PIECES {
            if heard.len() >= IN_TURN || heard.len() + self.answers.len() >= AT_ONCE || self.closing
            {
                break;
            }
            let (length, pid) = match self.receive(&mut bytes) {
                Ok((0, _)) => {
                    heard.push(Heard::End);
                    break;
                }
                Ok(received) => received,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => break,
                Err(_) => {
                    heard.push(Heard::End);
                    break;
                }
            };
            if pid != self.pid {
                let lines = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
                heard.extend((0..lines.min(AT_ONCE)).map(|_| Heard::Foreign(pid)));
                continue;
            }
            let mut rest = &bytes[..length];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                self.input.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                let line = std::mem::take(&mut self.input);
                heard.push(if line.len() > most { Heard::TooLong } else { Heard::Line(line) });
            }
            self.input.extend_from_slice(rest);
            if self.input.len() > most {
                self.input = Vec::new();
                heard.push(Heard::TooLong);
                break;
            }
        }
        heard
    }

    /// Bytes of one process, and which; files that come with them are closed by the kernel.
    fn receive(&self, bytes: &mut [u8]) -> Result<(usize, i32), Errno> {
        let mut control = cmsg_space!(nix::sys::socket::UnixCredentials);
        let mut parts = [IoSliceMut::new(bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        if message.bytes == 0 {
            return Ok((0, self.pid));
        }
        let mut pid = None;
        for one in message.cmsgs()? {
            if let ControlMessageOwned::ScmCredentials(who) = one {
                pid = Some(who.pid());
            }
        }
        Ok((message.bytes, pid.ok_or(Errno::EPROTO)?))
    }

    /// Tells a node.
    pub(super) fn tell(&mut self, what: &ToNode) {
        if let Ok(text) = serde_json::to_string(what) {
            self.answers.push_back(Slot::Said(text));
        }
    }

    /// Writes what can be written, without waiting.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while let Some(Slot::Said(_)) = self.answers.front() {
            if let Some(Slot::Said(text)) = self.answers.pop_front() {
                self.output.extend_from_slice(text.as_bytes());
                self.output.push(b'\n');
            }
        }
        let node = matches!(self.role, Role::Node(_));
        if self.output.len() > if node { MOST_UNREAD_BY_NODES } else { MOST_UNREAD } {
            return Err(ErrorKind::WriteZero.into());
        }
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => drop(self.output.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// It was refused, and has been told why.
    pub(super) fn is_over(&self) -> bool {
        self.closing && self.output.is_empty() && self.answers.is_empty()
    }
}

/// Bits that cannot be guessed.
fn rand_bits() -> u128 {
    let mut bits = [0; 16];
    if let Ok(mut random) = File::open("/dev/urandom") {
        random.read_exact(&mut bits).ok();
    }
    u128::from_ne_bytes(bits)
}
