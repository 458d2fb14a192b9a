//! Finds the watcher of a socket file, or starts one. Two nodes that start at once find one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream as Blocking;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::Flock;
use serde_json::json;
use tokio::net::UnixStream;

use soloist_domain::name::NodeName;
use soloist_guard::watcher::said::{LONGEST_OF_NODES, ToNode};
use soloist_guard::watcher::{Watching, alone, connect};

/// Starts a watcher, and waits until it listens; or why it does not.
pub type Start = fn(&Watching) -> Result<(), String>;

/// A watcher answers at once; one that is stopped does not.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether another node has found its watcher.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A line to the watcher of `path`, which serves this node from now on.
pub(super) async fn attach(
    path: &Path,
    node: &NodeName,
    start: Start,
) -> Result<UnixStream, String> {
    let (path, node) = (path.to_owned(), node.to_string());
    let taken = tokio::task::spawn_blocking(move || {
        let _alone = wait_alone(&path)?;
        match connect(&path) {
            Ok(line) => return take(line, &node),
            // Somebody is there, and stands still.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(format!("{}: the watcher does not answer", path.display()));
            }
            Err(_) => {}
        }
        // The listener of the file is gone, or there is no file.
        let old_kernel =
            cfg!(debug_assertions) && std::env::var_os("LIFELINE_OF_AN_OLD_KERNEL").is_some();
        start(&Watching { path: path.clone(), old_kernel })?;
        let line = connect(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        take(line, &node)
    });
    let line = taken.await.map_err(|error| error.to_string())??;
    line.set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(line))
        .map_err(|error| error.to_string())
}

/// No other node, and no watcher, begins to listen there meanwhile.
fn wait_alone(path: &Path) -> Result<Flock<File>, String> {
    let mut tries = PATIENCE.as_millis() / LOOK_AGAIN.as_millis();
    loop {
        match alone(path) {
            Ok(alone) => return Ok(alone),
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries > 0 => tries -= 1,
            Err(error) => {
                return Err(format!(
                    "{}.lock: {error}: make this directory, and let the node's user write in it, or choose another path for `lifeline`",
                    path.display()
                ));
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn take(mut line: Blocking, node: &str) -> Result<Blocking, String> {
    match ask_line(&mut line, &json!({"node": node}).to_string()).map(|text| serde_json::from_str(&text)) {
        Ok(Ok(ToNode::Taken(Ok(())))) => Ok(line),
        Ok(Ok(ToNode::Taken(Err(why)))) => Err(why),
        Ok(_) => Err("what listens there is no watcher of this version: end it, or choose another path for `lifeline`".to_owned()),
        Err(error) => Err(format!("the watcher does not answer: {error}")),
    }
}

/// Sends one line and returns the next. Not a byte more is read.
fn ask_line(line: &mut Blocking, text: &str) -> std::io::Result<String> {
    line.set_read_timeout(Some(PATIENCE))?;
    line.set_write_timeout(Some(PATIENCE))?;
    line.write_all(format!("{text}\n").as_bytes())?;
    let mut answer = Vec::new();
    // What follows is read by others, so it is taken byte by byte.
    let mut byte = [0];
    while answer.len() < LONGEST_OF_NODES {
        line.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => break,
            [other] => answer.push(other),
        }
    }
    String::from_utf8(answer).map_err(std::io::Error::other)
}

/// As a program: what the watcher of `path` answers to one line.
///
/// # Errors
/// Why there is no answer.
pub fn ask(path: &Path, text: &str) -> Result<serde_json::Value, String> {
    let no = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut line = connect(path).map_err(|error| no(&error))?;
    line.set_read_timeout(Some(PATIENCE)).map_err(|error| no(&error))?;
    line.write_all(format!("{text}\n").as_bytes()).map_err(|error| no(&error))?;
    let mut answer = String::new();
    BufReader::new(line).read_line(&mut answer).map_err(|error| no(&error))?;
    serde_json::from_str(&answer).map_err(|error| no(&error))
}
