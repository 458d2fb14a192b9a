//! A thread that owns one connection and runs what it is sent in order.
//!
//! SQLite blocks, and a connection belongs to one thread; the async side only waits, for a limited time. Work whose caller stopped waiting before
//! it began is skipped.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::SqliteResult;
use super::file::Place;
use soloist_store::{Result, StoreError};

type Work = Box<dyn FnOnce(&mut Connection, &Place) + Send>;

/// The async end. The thread ends, and closes its connection, when this is dropped.
pub(super) struct Worker {
    work: mpsc::Sender<Work>,
    place: Arc<Place>,
    timeout: Duration,
}

impl Worker {
    /// Starts a thread on the connection that `open` makes; returns when it is open. Who writes `looks_after` what it wrote.
    pub(super) async fn start(
        name: &str,
        place: Arc<Place>,
        timeout: Duration,
        looks_after: bool,
        open: impl FnOnce() -> SqliteResult<Connection> + Send + 'static,
    ) -> Result<Self> {
        let (work, todo) = mpsc::channel::<Work>();
        let (opened, ready) = oneshot::channel();
        let inside = Arc::clone(&place);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut db = match open() {
                Ok(db) => db,
                Err(fault) => {
                    drop(opened.send(Err(fault.at(&inside.to_string()))));
                    return;
                }
            };
            if opened.send(Ok(())).is_err() {
                return;
            }
            while let Ok(mut work) = todo.recv() {
                loop {
                    work(&mut db, &inside);
                    let Ok(more) = todo.try_recv() else { break };
                    work = more;
                }
                // The callers have their answers already, so nothing waits for this.
                if looks_after {
                    inside.look_again();
                }
            }
            inside.close(db);
        });
        thread.map_err(|error| {
            StoreError::Unavailable(format!("no thread for {place}: {error}; raise ulimit -u"))
        })?;
        // Opening may have to upgrade the schema, which takes longer than a call.
        match tokio::time::timeout(timeout.max(Duration::from_secs(30)), ready).await {
            Ok(Ok(opened)) => opened?,
            Ok(Err(_)) => return Err(gone(&place)),
            Err(_) => return Err(place.too_slow(timeout)),
        }
        Ok(Self { work, place, timeout })
    }

    /// Has `work` done and returns its outcome.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection, &Place) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let whole: Work = Box::new(move |db, place| {
            if answer.is_closed() {
                return;
            }
            let outcome = match place.check_same() {
                Ok(()) => work(db, place),
                Err(lost) => {
                    place.save(db);
                    Err(lost)
                }
            };
            // A caller that stopped waiting has been told "unknown" already.
            drop(answer.send(outcome.map_err(|fault| fault.at(&place.to_string()))));
        });
        self.work.send(whole).map_err(|_| gone(&self.place))?;
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(gone(&self.place)),
            Err(_) => Err(self.place.too_slow(self.timeout)),
        }
    }
}

fn gone(place: &Place) -> StoreError {
    StoreError::Unavailable(format!(
        "{place}: its thread has ended; restart this node and report the panic in its log"
    ))
}
