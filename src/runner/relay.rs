//! Passes the output of several commands on to this process's own, unchanged but for this: whole lines stay whole.
//!
//! One thread writes; the readers of the commands' pipes wait for it. So a slow reader slows the commands down,
//! as a pipe would, and never the renewal of their leases. Once the reader has gone, what is left is thrown away.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::event::ChildEvent;
use crate::store::dispatch::LONGEST_ERROR;
use crate::store::journal::{NewLine, Stream};

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 256 * 1024;
/// Pieces that wait for the writing thread.
const WAITING: usize = 16;

/// The way to this process's own standard output and error.
#[derive(Debug, Clone)]
pub struct Relay {
    pieces: mpsc::Sender<(Stream, Vec<u8>)>,
}

/// The thread that writes.
pub(super) struct Writing {
    done: oneshot::Receiver<()>,
}

impl Relay {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start() -> std::io::Result<(Self, Writing)> {
        let (pieces, mut inbox) = mpsc::channel::<(Stream, Vec<u8>)>(WAITING);
        let (finished, done) = oneshot::channel();
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            let mut gone = [false; 2];
            while let Some((stream, bytes)) = inbox.blocking_recv() {
                let error = stream == Stream::Stderr;
                let gone = &mut gone[usize::from(error)];
                if !*gone {
                    *gone = match error {
                        true => write(&mut std::io::stderr().lock(), &bytes),
                        false => write(&mut std::io::stdout().lock(), &bytes),
                    };
                }
            }
            finished.send(()).ok();
        })?;
        Ok((Self { pieces }, Writing { done }))
    }

    /// Reads `pipe` to its end. The last line with something on it is told, too, if it is of standard error.
    pub(super) async fn pass_on(
        self,
        mut pipe: impl AsyncRead + Unpin,
        stream: Stream,
        events: mpsc::Sender<ChildEvent>,
    ) {
        let (mut rest, mut last) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; 32 * 1024];
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            rest.extend_from_slice(&buffer[..length]);
            let whole = match rest.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if rest.len() > LONGEST => rest.len(),
                None => continue,
            };
            let left = rest.split_off(whole);
            remember(&mut last, &rest);
            self.send(stream, std::mem::replace(&mut rest, left)).await;
        }
        if !rest.is_empty() {
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
    /// Waits until everything is written, once every relay is gone, but not for ever for a reader who does not read.
    pub(super) async fn end(self, patience: Duration) {
        timeout(patience, self.done).await.ok();
    }
}

/// True when the reader has gone.
fn write(out: &mut impl Write, bytes: &[u8]) -> bool {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) => error.kind() == ErrorKind::BrokenPipe,
        Ok(()) => false,
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

    async fn relayed(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
        let (pieces, mut inbox) = mpsc::channel(WAITING);
        let (events, mut told) = mpsc::channel(4);
        Relay { pieces }.pass_on(bytes, Stream::Stderr, events).await;
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
}
