//! A node under a service manager: what it is told, in which order, and when it is told nothing.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::node::Ground;
use crate::support::wait::{PATIENCE, until};

/// A node, killed at the end if it still lives.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Serving {
    fn start(ground: &Ground, env: &[(&str, &str)]) -> Self {
        let mut command = ground.command(&["serve", "--node", "node-a"]);
        command.envs(env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn terminate(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"));
        kill(pid, Signal::SIGTERM).expect("our own child");
        until("the node ends", || self.0.try_wait().expect("our own child")).code()
    }
}

/// The next message; the socket is patient.
fn next(manager: &UnixDatagram) -> String {
    let mut message = [0; 256];
    let length = manager.recv(&mut message).expect("a message");
    String::from_utf8(message[..length].to_vec()).expect("UTF-8")
}

/// What else is there, without waiting.
fn rest(manager: &UnixDatagram) -> Vec<String> {
    manager.set_nonblocking(true).expect("set");
    let mut message = [0; 256];
    let mut said = Vec::new();
    loop {
        match manager.recv(&mut message) {
            Ok(length) => said.push(String::from_utf8_lossy(&message[..length]).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return said,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_node_says_when_it_is_ready_that_it_lives_and_that_it_ends() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let path = ground.path("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("set");
    let path = path.to_str().expect("UTF-8");
    let mut node = Serving::start(&ground, &[("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "200000")]);
    assert_eq!(next(&manager), "READY=1");
    for _ in 0..3 {
        assert_eq!(next(&manager), "WATCHDOG=1");
    }
    assert_eq!(node.terminate(), Some(0));
    let said: Vec<String> =
        rest(&manager).into_iter().filter(|said| said != "WATCHDOG=1").collect();
    assert_eq!(said, ["STOPPING=1"]);
}

#[test]
fn a_node_whose_store_is_away_is_ready_and_a_watchdog_of_another_process_is_not_fed() {
    // Port 1 refuses: the page is served, and says so.
    let ground = Ground::new("redis://127.0.0.1:1/0", "");
    let name = format!("soloist-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let manager = UnixDatagram::bind_addr(&address).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("set");
    let env =
        [("NOTIFY_SOCKET", &*format!("@{name}")), ("WATCHDOG_USEC", "2"), ("WATCHDOG_PID", "1")];
    let mut node = Serving::start(&ground, &env);
    assert_eq!(next(&manager), "READY=1");
    assert_eq!(node.terminate(), Some(0));
    assert_eq!(rest(&manager), ["STOPPING=1"]);
}

#[test]
fn a_manager_that_is_gone_keeps_no_node_from_serving() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let gone = ground.path("gone");
    let mut command = ground.command(&["serve", "--node", "node-a"]);
    command.env("NOTIFY_SOCKET", &gone).env("WATCHDOG_USEC", "1000");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut node = Serving(command.spawn().expect("it starts"));
    let stdout = node.0.stdout.take().expect("a pipe");
    let mut lines = io::BufRead::lines(io::BufReader::new(stdout)).map_while(Result::ok);
    assert!(lines.any(|line| line.contains("/login")), "it prints the first link");
    assert_eq!(node.terminate(), Some(0));
}
