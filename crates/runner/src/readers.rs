//! The readers of a script's output. They start after the report of its start: no line may be reported before that.

use std::future::pending;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncRead;
use tokio::net::unix::pipe::Receiver as Pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::event::ChildEvent;
use super::output;
use super::passthrough::Passthrough;
use super::redact::Redactor;
use super::spec::Streams;
use soloist_store::journal::Stream;

/// How long the last output may take to arrive after the tree is gone (a pipe may have been passed to a stranger).
const LAST_OUTPUT: Duration = Duration::from_millis(300);
/// The same for output that another process reads, at its own speed.
const LAST_RELAYED: Duration = Duration::from_secs(10);

/// The tasks that read.
pub(super) struct Readers {
    tasks: [Option<JoinHandle<()>>; 2],
    /// The way to the process that reads it, if one does.
    relay: Option<Passthrough>,
}

/// WaitingRoom for the first event, which is the start; the readers begin when this and what it becomes are dropped.
pub(super) struct Gate {
    room: mpsc::OwnedPermit<ChildEvent>,
    reading: watch::Sender<()>,
}

/// The start was told.
pub(super) struct Opening {
    events: mpsc::Sender<ChildEvent>,
    _reading: watch::Sender<()>,
}

impl Readers {
    /// Gets ready to read standard output and error; `None` when there is no room in `events`, which must be new.
    pub(super) fn start(
        [stdout, stderr]: [Option<Pipe>; 2],
        (streams, hidden): (Streams, Redactor),
        events: &mpsc::Sender<ChildEvent>,
    ) -> (Self, Option<Gate>) {
        let relay = match &streams {
            Streams::Relayed(relay) => Some(relay.clone()),
            Streams::Read | Streams::Inherited => None,
        };
        let (reading, now) = watch::channel(());
        let reader = Reader { now, events: events.clone(), streams, hidden };
        let tasks = [
            stdout.map(|pipe| tokio::spawn(reader.clone().read(pipe, Stream::Stdout))),
            stderr.map(|pipe| tokio::spawn(reader.read(pipe, Stream::Stderr))),
        ];
        let room = events.clone().try_reserve_owned().ok();
        (Self { tasks, relay }, room.map(|room| Gate { room, reading }))
    }

    /// Waits for the last output of a script that is gone, but not for ever.
    pub(super) async fn end(mut self) {
        let patience = if self.relay.is_some() { LAST_RELAYED } else { LAST_OUTPUT };
        let relay = self.relay.take();
        tokio::select! {
            () = self.read_to_the_end(patience) => {}
            () = async {
                match relay {
                    Some(relay) => relay.given_up().await,
                    None => pending().await,
                }
            } => {}
        }
        self.stop();
    }

    /// The same for a script that never started: its guard holds the pipes until it is dismissed.
    pub(super) async fn end_unused(mut self) {
        self.read_to_the_end(LAST_OUTPUT).await;
        self.stop();
    }

    async fn read_to_the_end(&mut self, patience: Duration) {
        let tasks = self.tasks.iter_mut().flatten();
        drop(timeout(patience, join_all(tasks)).await);
    }

    fn stop(self) {
        self.tasks.into_iter().flatten().for_each(|reader| reader.abort());
    }
}

impl Gate {
    /// Tells the start. Nothing has been read before it: there is room for it, so the caller need not wait.
    pub(super) fn open(self, start: ChildEvent) -> Opening {
        Opening { events: self.room.send(start), _reading: self.reading }
    }
}

impl Opening {
    /// Tells something else before the first output.
    pub(super) fn tell(&self, event: ChildEvent) {
        // The readers begin after this: there is room.
        self.events.try_send(event).ok();
    }
}

/// Reads one stream of a script from its start on.
#[derive(Clone)]
struct Reader {
    now: watch::Receiver<()>,
    events: mpsc::Sender<ChildEvent>,
    streams: Streams,
    hidden: Redactor,
}

impl Reader {
    async fn read(mut self, pipe: impl AsyncRead + Unpin, stream: Stream) {
        // An error: the sender was dropped, which is the sign.
        self.now.changed().await.ok();
        match self.streams {
            Streams::Relayed(relay) => relay.pass_on(pipe, stream, self.events).await,
            Streams::Read | Streams::Inherited => {
                output::read(pipe, stream, self.events, self.hidden).await;
            }
        }
    }
}
