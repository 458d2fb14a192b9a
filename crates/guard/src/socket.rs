//! The guard's end of the socket to its node: standard input, message by message.

use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

use super::message::FromGuard;

/// What came from the node.
pub(super) enum Heard<T> {
    Message(T),
    /// The end of the socket, or something on it that no node of this version says: either way there is no node that
    /// could be trusted with the script.
    NodeGone,
}

/// Receives one message; waits for it.
pub(super) fn receive<T: serde::de::DeserializeOwned>(largest: usize) -> Heard<T> {
    let mut buffer = vec![0; largest];
    loop {
        match recv(std::io::stdin().as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => {
                return serde_json::from_slice(&buffer[..length])
                    .map_or(Heard::NodeGone, Heard::Message);
            }
            Err(Errno::EINTR) => {}
            Err(_) => return Heard::NodeGone,
        }
    }
}

/// Sends one message. A node that is gone or does not read is noticed by other means.
pub(super) fn say(message: &FromGuard) {
    let Ok(bytes) = serde_json::to_vec(message) else { return };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    send(std::io::stdin().as_raw_fd(), &bytes, flags).ok();
}
