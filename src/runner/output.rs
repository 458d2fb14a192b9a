//! Reads a script's output: bytes become lines, progress lines become progress, a flood becomes a count.
//!
//! Secrets that the script was given are replaced before anything is made of a line: in the whole line, so that one that
//! came in two pieces, or lies across the place where a long line is cut, is found as well.
//!
//! Memory is bounded whatever the script writes: a line is cut at 4 KiB, and when the reader of the events is slow,
//! lines are left out and counted instead of queued.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event::ChildEvent;
use super::hidden::Hidden;
use crate::domain::job::Progress;
use crate::store::journal::{NewLine, Stream};

/// Longest line in bytes; the rest of a longer one is dropped and marked.
const LONGEST: usize = NewLine::LONGEST;

/// Reads `pipe` to its end.
pub(super) async fn read(
    mut pipe: impl AsyncRead + Unpin,
    stream: Stream,
    events: mpsc::Sender<ChildEvent>,
    hidden: Hidden,
) {
    let (line, cut) = (Vec::new(), false);
    let mut lines = Lines { stream, events, hidden, line, cut, left_out: 0, progress: None };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        for piece in buffer[..length].split_inclusive(|&b| b == b'\n') {
            match piece.split_last() {
                Some((b'\n', text)) => {
                    lines.add(text);
                    lines.end();
                }
                _ => lines.add(piece),
            }
        }
    }
    if !lines.line.is_empty() {
        lines.end();
    }
    lines.confess().await;
}

struct Lines {
    stream: Stream,
    events: mpsc::Sender<ChildEvent>,
    hidden: Hidden,
    /// As it came: [`LONGEST`] bytes, and as many as a secret that begins there may need.
    line: Vec<u8>,
    cut: bool,
    left_out: u64,
    /// The newest that found no room; an older one is worth nothing.
    progress: Option<Progress>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        let room = LONGEST + self.hidden.longest() - self.line.len();
        self.cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        self.cut |= self.line.len() > LONGEST;
        let line = self.hidden.replaced(&self.line, LONGEST);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\r').replace('\0', "\u{fffd}");
        let progress = (self.stream == Stream::Stdout).then(|| progress(&text)).flatten();
        let event = match progress {
            Some(progress) => ChildEvent::Progress(progress),
            None => ChildEvent::Line(NewLine::cut(self.stream, text, self.cut)),
        };
        self.line.clear();
        self.cut = false;
        if self.left_out > 0 && self.events.capacity() > 1 {
            let remark = self.remark();
            if self.events.try_send(remark).is_ok() {
                self.left_out = 0;
            }
        }
        if let Some(progress) = self.progress.take()
            && !matches!(event, ChildEvent::Progress(_))
        {
            self.offer(ChildEvent::Progress(progress));
        }
        self.offer(event);
    }

    /// Never waits: a slow reader must not stop the script.
    fn offer(&mut self, event: ChildEvent) {
        match self.events.try_send(event) {
            Err(TrySendError::Full(ChildEvent::Progress(progress))) => {
                self.progress = Some(progress);
            }
            Err(TrySendError::Full(_)) => self.left_out += 1,
            // The receiver is gone only when the node is.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
        }
    }

    fn remark(&self) -> ChildEvent {
        let text = format!(
            "{} lines were left out: they came faster than they can be kept",
            self.left_out
        );
        ChildEvent::Line(NewLine { stream: Stream::Soloist, text })
    }

    async fn confess(mut self) {
        let remark = (self.left_out > 0).then(|| self.remark());
        let progress = self.progress.take().map(ChildEvent::Progress);
        for event in [progress, remark].into_iter().flatten() {
            // The receiver is gone only when the node is.
            drop(self.events.send(event).await);
        }
    }
}

/// `::progress 120/830 shipping order 10248`; anything malformed is an ordinary line.
fn progress(line: &str) -> Option<Progress> {
    let rest = line.strip_prefix("::progress ")?.trim_start();
    let (numbers, note) = rest.split_once(' ').unwrap_or((rest, ""));
    let (done, total) = numbers.split_once('/')?;
    Some(Progress::new(done.parse().ok()?, total.parse().ok()?, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(bytes: &[u8]) -> Vec<ChildEvent> {
        let (events, mut inbox) = mpsc::channel(64);
        read(bytes, Stream::Stdout, events, Hidden::default()).await;
        let mut all = Vec::new();
        while let Some(event) = inbox.recv().await {
            all.push(event);
        }
        all
    }

    fn line(text: &str) -> ChildEvent {
        ChildEvent::Line(NewLine { stream: Stream::Stdout, text: text.to_owned() })
    }

    #[tokio::test]
    async fn bytes_become_lines_and_the_last_partial_line_counts() {
        assert_eq!(
            read_all(b"a\r\n\nb\xff\nc").await,
            [line("a"), line(""), line("b\u{fffd}"), line("c")]
        );
    }

    #[tokio::test]
    async fn a_progress_line_is_progress_and_a_malformed_one_is_a_line() {
        let events = read_all(b"::progress 3/8 order 10248\n::progress x/8\n").await;
        let progress = Progress { done: 3, total: 8, note: "order 10248".to_owned() };
        assert_eq!(events, [ChildEvent::Progress(progress), line("::progress x/8")]);
    }

    #[tokio::test]
    async fn a_secret_is_hidden_wherever_it_stands_in_lines_and_notes() {
        let secret = "correct horse";
        let across = format!("{}{secret}{secret}\n", "x".repeat(LONGEST - 6));
        let text = format!("a {secret} b{secret}\n::progress 1/2 with {secret}\n{across}{secret}");
        let (events, mut inbox) = mpsc::channel(64);
        let (ours, theirs) = tokio::io::duplex(3);
        let writing = tokio::spawn(async move {
            let mut ours = ours;
            tokio::io::AsyncWriteExt::write_all(&mut ours, text.as_bytes()).await
        });
        let hidden = Hidden::of([secret.to_owned()].iter());
        read(theirs, Stream::Stdout, events, hidden).await;
        writing.await.unwrap().unwrap();
        assert_eq!(inbox.recv().await.unwrap(), line("a *** b***"));
        let note = "with ***".to_owned();
        let progress = ChildEvent::Progress(Progress { done: 1, total: 2, note });
        assert_eq!(inbox.recv().await.unwrap(), progress);
        let Some(ChildEvent::Line(NewLine { text, .. })) = inbox.recv().await else { panic!() };
        assert!(text.starts_with("xxx") && text.ends_with("***…"), "{text}");
        assert_eq!(inbox.recv().await.unwrap(), line("***"));
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_marked_and_a_flood_is_counted() {
        let events = read_all(format!("{}\n", "é".repeat(5_000)).as_bytes()).await;
        let [ChildEvent::Line(NewLine { text, .. })] = &events[..] else { panic!("{events:?}") };
        assert!(text.len() <= LONGEST && text.ends_with('…'));
        let (events, mut inbox) = mpsc::channel(64);
        let reading = tokio::spawn(async move {
            let flood = "x\n".repeat(1_000);
            read(flood.as_bytes(), Stream::Stdout, events, Hidden::default()).await;
        });
        let mut all = Vec::new();
        while let Some(event) = inbox.recv().await {
            all.push(event);
        }
        reading.await.unwrap();
        let kept = all.iter().filter(|e| **e == line("x")).count();
        let left_out: usize = all
            .iter()
            .filter_map(|e| match e {
                ChildEvent::Line(l) if l.stream == Stream::Soloist => {
                    l.text.split(' ').next()?.parse::<usize>().ok()
                }
                _ => None,
            })
            .sum();
        assert_eq!(kept + left_out, 1_000);
    }
}
