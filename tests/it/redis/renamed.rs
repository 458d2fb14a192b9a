//! A Redis on which commands were renamed: what is needed is named with a remedy before anything begins, and nobody speaks of damage.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::support::node::Ground;
use crate::support::wait::until;

/// `redis-server` without one of its commands. The usual helper asks it for `INFO`.
struct Renamed {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl Renamed {
    fn without(command: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--rename-command", command, ""])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let renamed = Self { port, process, _directory: directory };
        until("it answers", || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.write_all(b"ECHO there\r\n").ok()?;
            let mut answer = [0; 10];
            stream.read_exact(&mut answer).ok()?;
            (&answer == b"$5\r\nthere\r").then_some(())
        });
        renamed
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

impl Drop for Renamed {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test]
async fn a_command_that_is_needed_and_was_renamed_is_named_with_a_remedy_at_the_start() {
    for command in [
        "INFO",
        "EVALSHA",
        "SCRIPT",
        "TIME",
        "PSUBSCRIBE",
        "SUBSCRIBE",
        "PUBLISH",
        "GET",
        "HSET",
        "ZRANGE",
        "PTTL",
    ] {
        let server = Renamed::without(command);
        let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
        let Some(StoreError::Unsupported(why)) = refused else { panic!("{command}: {refused:?}") };
        for part in [&format!("does not know {command}"), "rename-command", "deploy/redis.acl"] {
            assert!(why.contains(part), "{command}: {why} lacks {part}");
        }
    }
}

#[tokio::test]
async fn without_a_command_that_is_not_needed_leases_are_granted_as_ever() {
    for command in ["CONFIG", "CLIENT", "EVAL", "SCAN", "WAIT", "COMMAND", "ROLE"] {
        let server = Renamed::without(command);
        let store = soloist::stores::connect(&server.url(), &Options::default()).await;
        let store = store.unwrap_or_else(|error| panic!("{command}: {error}"));
        // A server that has just started may have forgotten a lease.
        let answer = store.acquire(&ask("node-a", Duration::from_secs(5))).await.expect(command);
        let granted = matches!(answer, Acquired::Granted { .. } | Acquired::Quarantined { .. });
        assert!(granted, "{command}: {answer:?}");
    }
}

#[test]
fn doctor_and_a_node_say_which_command_is_missing() {
    let server = Renamed::without("EVALSHA");
    let ground = Ground::new(&server.url(), "");
    for words in [&["doctor"][..], &["serve"], &["status"]] {
        let output = ground.run(words);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!output.status.success(), "{words:?}: {said}");
        assert!(said.contains("does not know EVALSHA"), "{words:?}: {said}");
        assert!(!said.contains("unreadable"), "{words:?}: {said}");
    }
}
