//! The readers of a script's output. They begin once its start was reported: no line may be reported before that.

use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::net::unix::pipe::Receiver as Pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::event::ChildEvent;
use super::hidden::Hidden;
use super::output;
use super::spec::Streams;
use crate::store::journal::Stream;

/// How long the last output may take to arrive after the tree is gone (a pipe may have been passed to a stranger).
const LAST_OUTPUT: Duration = Duration::from_millis(300);
/// The same for output that another process reads, at its own speed.
const LAST_RELAYED: Duration = Duration::from_secs(10);

/// The tasks that read.
pub(super) struct Readers {
    tasks: [Option<JoinHandle<()>>; 2],
    last_output: Duration,
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
        (streams, hidden): (Streams, Hidden),
        events: &mpsc::Sender<ChildEvent>,
    ) -> (Self, Option<Gate>) {
        let last_output = match streams {
            Streams::Relayed(_) => LAST_RELAYED,
            Streams::Read | Streams::Inherited => LAST_OUTPUT,
        };
        let (reading, now) = watch::channel(());
        let reader = Reader { now, events: events.clone(), streams, hidden };
        let tasks = [
            stdout.map(|pipe| tokio::spawn(reader.clone().read(pipe, Stream::Stdout))),
            stderr.map(|pipe| tokio::spawn(reader.read(pipe, Stream::Stderr))),
        ];
        let room = events.clone().try_reserve_owned().ok();
        (Self { tasks, last_output }, room.map(|room| Gate { room, reading }))
    }

    /// Waits for the last output of a script that is gone, but not for ever.
    pub(super) async fn end(self) {
        let patience = self.last_output;
        self.end_within(patience).await;
    }

    /// The same for a script that never started: its guard holds the pipes until it is dismissed.
    pub(super) async fn end_unused(self) {
        self.end_within(LAST_OUTPUT).await;
    }

    async fn end_within(self, patience: Duration) {
        for reader in self.tasks.into_iter().flatten() {
            let stop = reader.abort_handle();
            if timeout(patience, reader).await.is_err() {
                stop.abort();
            }
        }
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
    hidden: Hidden,
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
