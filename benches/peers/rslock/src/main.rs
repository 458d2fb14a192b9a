//! `rslock-holder URL NAME TTL_MS CMD...`: a command under a lock of rslock, the way its own `using` offers it.
//!
//! `using` extends the lock for as long as the future runs and drops the future when that fails; `kill_on_drop` makes
//! that the end of the command. `acquire` is tried again until the lock is free.

use std::time::Duration;

use rslock::{LockError, LockManager};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, ttl, command @ ..] = words.as_slice() else { panic!("URL NAME TTL_MS CMD...") };
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    let locks = LockManager::new(vec![url.as_str()]);
    let mut terminate = signal(SignalKind::terminate()).expect("signals");
    loop {
        let held = locks.using(name.as_bytes(), ttl, async || {
            let mut child = Command::new(&command[0])
                .args(&command[1..])
                .kill_on_drop(true)
                .spawn()
                .expect("the command starts");
            tokio::select! {
                _ = child.wait() => {}
                _ = terminate.recv() => child.kill().await.expect("killed and waited for"),
            }
        });
        match held.await {
            Err(LockError::Unavailable) => {}
            Ok(()) => return,
            Err(error) => {
                eprintln!("rslock: {error}");
                std::process::exit(1);
            }
        }
    }
}
