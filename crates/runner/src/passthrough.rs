//! Passes the output of several commands to this process's own, unchanged except that whole lines stay whole.
//!
//! One thread writes; the readers of the commands' pipes wait for it. So a slow reader slows the commands down, as a pipe would, and never
//! the renewal of their leases. When the reader is gone, the rest is discarded. A line without an end (a question, a progress bar) is
//! passed on after a second.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::event::ChildEvent;
use soloist_process::outlet::{self, STDERR, STDOUT};
use soloist_store::dispatch::LONGEST_ERROR;
use soloist_store::journal::{NewLine, Stream};

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 256 * 1024;
/// Pieces that wait for the writing thread.
const WAITING: usize = 16;
/// A line that has not ended is passed on so long after it began.
const UNENDED: Duration = Duration::from_secs(1);

/// A reader that takes nothing for so long is not waited for once this process was told to end.
const STALLED: Duration = Duration::from_secs(1);

/// The way to this process's own standard output and error.
#[derive(Debug, Clone)]
pub struct Passthrough {
    pieces: mpsc::Sender<(Stream, Vec<u8>)>,
    pace: Pace,
}

/// How the reader of this process gets on.
#[derive(Debug, Clone)]
struct Pace {
    /// Grows with each piece that it took.
    written: watch::Receiver<u64>,
    /// This process was told to end.
    ending: watch::Sender<bool>,
}

/// The thread that writes.
pub(super) struct Writing {
    done: oneshot::Receiver<()>,
    pace: Pace,
}

impl Passthrough {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start() -> std::io::Result<(Self, Writing)> {
        let (pieces, mut inbox) = mpsc::channel::<(Stream, Vec<u8>)>(WAITING);
        let (finished, done) = oneshot::channel();
        let (count, written) = watch::channel(0);
        outlet::thread("output", move || {
            let mut gone = [false; 2];
            while let Some((stream, bytes)) = inbox.blocking_recv() {
                let error = stream == Stream::Stderr;
                let gone = &mut gone[usize::from(error)];
                if !*gone {
                    let outlet = if error { &STDERR } else { &STDOUT };
                    let written = outlet.write_now(&bytes);
                    *gone = written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
                }
                count.send_modify(|count| *count += 1);
            }
            finished.send(()).ok();
        })?;
        let pace = Pace { written, ending: watch::Sender::new(false) };
        Ok((Self { pieces, pace: pace.clone() }, Writing { done, pace }))
    }

    /// This process was told to end: a reader that stands still is not waited for any more.
    pub(super) fn ending(&self) {
        self.pace.ending.send_replace(true);
    }

    /// Returns when this process was told to end and the reader stands still.
    pub(super) async fn given_up(self) {
        self.pace.given_up().await;
    }

    /// Reads `pipe` to its end. The last line that is not empty is reported, too, if it is of standard error.
    pub(super) async fn pass_on(
        self,
        mut pipe: impl AsyncRead + Unpin,
        stream: Stream,
        events: mpsc::Sender<ChildEvent>,
    ) {
        let (mut rest, mut last) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; 32 * 1024];
        // When `rest` began; and whether a part of its line was passed on.
        let (mut begun, mut open) = (Instant::now(), false);
        loop {
            let whole = tokio::select! {
                read = pipe.read(&mut buffer) => {
                    let Ok(length @ 1..) = read else { break };
                    if rest.is_empty() {
                        begun = Instant::now();
                    }
                    rest.extend_from_slice(&buffer[..length]);
                    match rest.iter().rposition(|byte| *byte == b'\n') {
                        Some(end) => end + 1,
                        None if rest.len() > LONGEST => rest.len(),
                        None => continue,
                    }
                }
                () = sleep_until(begun + UNENDED), if !rest.is_empty() => rest.len(),
            };
            let left = rest.split_off(whole);
            remember(&mut last, &rest);
            open = !rest.ends_with(b"\n");
            begun = Instant::now();
            self.send(stream, std::mem::replace(&mut rest, left)).await;
        }
        if open || !rest.is_empty() {
            remember(&mut last, &rest);
            rest.push(b'\n');
            self.send(stream, rest).await;
        }
        if stream == Stream::Stderr && !last.is_empty() {
            let text = String::from_utf8_lossy(&last).into_owned();
            // The receiver is gone only when this process ends.
            events.send(ChildEvent::Line(NewLine { stream, text })).await.ok();
        }
    }

    async fn send(&self, stream: Stream, bytes: Vec<u8>) {
        // The thread ends only after the last relay.
        self.pieces.send((stream, bytes)).await.ok();
    }
}

impl Writing {
    /// Waits until everything is written, once every relay is gone, but not for ever.
    pub(super) async fn end(self, patience: Duration) {
        let Self { done, pace } = self;
        tokio::select! {
            _ = timeout(patience, done) => {}
            () = pace.given_up() => {}
        }
    }
}

impl Pace {
    async fn given_up(mut self) {
        // It has a sender: ours.
        self.ending.subscribe().wait_for(|ending| *ending).await.ok();
        while let Ok(Ok(())) = timeout(STALLED, self.written.changed()).await {}
    }
}

/// Keeps the last line of `bytes` that says something, cut to what the store keeps of an error.
fn remember(last: &mut Vec<u8>, bytes: &[u8]) {
    let line = bytes.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty());
    if let Some(line) = line {
        last.clear();
        last.extend_from_slice(&line[..line.len().min(LONGEST_ERROR)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(pieces: mpsc::Sender<(Stream, Vec<u8>)>) -> Passthrough {
        let pace = Pace { written: watch::channel(0).1, ending: watch::Sender::new(false) };
        Passthrough { pieces, pace }
    }

    async fn relayed(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
        let (pieces, mut inbox) = mpsc::channel(WAITING);
        let (events, mut told) = mpsc::channel(4);
        relay(pieces).pass_on(bytes, Stream::Stderr, events).await;
        let mut all = Vec::new();
        while let Some((_, piece)) = inbox.recv().await {
            all.push(piece);
        }
        let last = told.recv().await.map(|event| match event {
            ChildEvent::Line(line) => line.text,
            other => panic!("{other:?}"),
        });
        (all, last)
    }

    #[tokio::test]
    async fn every_byte_is_passed_on_and_every_piece_ends_with_a_line() {
        let text = b"a\r\n\xff::progress 1/2\n\nlast".as_slice();
        let (pieces, last) = relayed(text).await;
        assert!(pieces.iter().all(|piece| piece.ends_with(b"\n")), "{pieces:?}");
        assert_eq!(pieces.concat(), [text, b"\n"].concat());
        assert_eq!(last.as_deref(), Some("last"));
    }

    #[tokio::test]
    async fn the_last_line_told_is_one_that_says_something() {
        assert_eq!(
            relayed(b"curl: (7) refused \n\n  \n").await.1.as_deref(),
            Some("curl: (7) refused")
        );
        assert_eq!(relayed(b"\n").await.1, None);
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_is_passed_on_after_a_second_and_completed_by_the_rest() {
        let (pieces, mut inbox) = mpsc::channel(WAITING);
        let (events, _told) = mpsc::channel(4);
        let (mut ours, theirs) = tokio::io::duplex(64);
        tokio::spawn(relay(pieces).pass_on(theirs, Stream::Stdout, events));
        let began = Instant::now();
        tokio::io::AsyncWriteExt::write_all(&mut ours, b"a\nsure? [y/N] ").await.unwrap();
        assert_eq!(inbox.recv().await.unwrap().1, b"a\n");
        assert_eq!(inbox.recv().await.unwrap().1, b"sure? [y/N] ");
        assert!(began.elapsed() >= UNENDED);
        drop(ours);
        assert_eq!(inbox.recv().await.unwrap().1, b"\n");
        assert_eq!(inbox.recv().await, None);
    }
}
