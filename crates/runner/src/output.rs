//! Reads a script's output: bytes become lines, progress lines become progress, a flood becomes a count.
//!
//! Output is kept as a terminal shows it. A line ends with LF. A carriage return that is not before LF restarts the line, so only the last
//! state of a progress bar is kept. A line without an end (a question, a bar) is shown after a second, then after two more, four, and so
//! on, up to once a minute; the rest becomes the next line. Any output is a sign of life.
//!
//! Secrets of the script are replaced before a line is processed: in the whole line, so that a secret in two pieces, or across the cut of
//! a long line, is found as well. The end of an unfinished line may become one: it waits.
//!
//! Memory is bounded whatever the script writes: a line is cut at 4 KiB, and when the reader of the events is slow, lines are dropped and
//! counted instead of queued.

use std::future::pending;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, sleep_until};

use super::event::ChildEvent;
use super::redact::Redactor;
use soloist_domain::job::Progress;
use soloist_store::journal::{NewLine, Stream};

/// Longest line in bytes; the rest of a longer one is dropped and marked.
const LONGEST: usize = NewLine::LONGEST;
/// A line that does not end is shown so long after it began, and then ever more rarely until it ends.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const RAREST_LOOK: Duration = Duration::from_secs(60);
/// An unfinished line is reported as a sign of life at most this often: well within the shortest `max_silence`.
const HEARD_EVERY: Duration = Duration::from_millis(250);
/// How a line of progress begins.
const PROGRESS: &str = "::progress ";

/// Reads `pipe` to its end.
pub(super) async fn read(
    mut pipe: impl AsyncRead + Unpin,
    stream: Stream,
    events: mpsc::Sender<ChildEvent>,
    hidden: Redactor,
) {
    let mut lines = Lines::new(stream, events, hidden, Instant::now());
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let due = lines.look_at;
        let look = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            read = pipe.read(&mut buffer) => match read {
                Ok(length @ 1..) => lines.take(&buffer[..length], Instant::now()),
                Ok(_) | Err(_) => break,
            },
            () = look => {}
        }
        // Also when it writes all the time.
        let now = Instant::now();
        if lines.look_at.is_some_and(|at| at <= now) {
            lines.look(now);
        }
    }
    if !lines.line.is_empty() {
        lines.end(Instant::now());
    }
    lines.confess().await;
}

struct Lines {
    stream: Stream,
    events: mpsc::Sender<ChildEvent>,
    hidden: Redactor,
    /// As it came: [`LONGEST`] bytes, and as many as a secret that begins there may need.
    line: Vec<u8>,
    cut: bool,
    /// It was cut and shown: the rest of it is dropped.
    dropping: bool,
    /// A carriage return came: what comes next begins the line anew, unless it ends it.
    returned: bool,
    /// A part of this line was shown.
    continues: bool,
    /// When the line is shown though it has not ended, and how long after that again.
    look_at: Option<Instant>,
    pause: Duration,
    left_out: u64,
    /// The newest that found no room; an older one is of no use.
    progress: Option<Progress>,
    /// When the newest event was told; at first, when the script was about to start.
    told_at: Instant,
}

impl Lines {
    fn new(
        stream: Stream,
        events: mpsc::Sender<ChildEvent>,
        hidden: Redactor,
        now: Instant,
    ) -> Self {
        Self {
            stream,
            events,
            hidden,
            line: Vec::new(),
            cut: false,
            dropping: false,
            returned: false,
            continues: false,
            look_at: None,
            pause: FIRST_LOOK,
            left_out: 0,
            progress: None,
            told_at: now,
        }
    }

    /// Takes what was read.
    fn take(&mut self, bytes: &[u8], now: Instant) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            match piece.split_last() {
                Some((b'\n', text)) => {
                    self.add(text, now);
                    self.end(now);
                }
                Some((b'\r', text)) => {
                    self.add(text, now);
                    self.returned = true;
                }
                _ => self.add(piece, now),
            }
        }
        if now - self.told_at >= HEARD_EVERY {
            self.offer(ChildEvent::Heard, now);
        }
    }

    fn add(&mut self, bytes: &[u8], now: Instant) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            (self.cut, self.dropping, self.continues) = (false, false, false);
        }
        if self.dropping {
            return;
        }
        let room = LONGEST + self.hidden.longest() - self.line.len();
        self.cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.look_at.is_none() {
            self.look_at = Some(now + self.pause);
        }
    }

    /// The line has ended.
    fn end(&mut self, now: Instant) {
        // What was shown to its last byte is no empty line.
        if !(self.continues && self.line.is_empty()) {
            self.tell(self.line.len(), now);
        }
        self.line.clear();
        (self.cut, self.dropping, self.returned, self.continues) = (false, false, false, false);
        (self.look_at, self.pause) = (None, FIRST_LOOK);
    }

    /// The line has not ended, and a reader may wait for its text.
    fn look(&mut self, now: Instant) {
        self.look_at = None;
        let end = match self.cut {
            true => self.line.len(),
            false => whole(&self.line[..self.hidden.settled(&self.line)]),
        };
        if end == 0 || self.may_be_progress() {
            // The rest is examined again when more of it comes, or never.
            return;
        }
        self.tell(end, now);
        self.dropping = std::mem::take(&mut self.cut);
        self.line.drain(..if self.dropping { self.line.len() } else { end });
        self.continues = true;
        self.pause = (self.pause * 2).min(RAREST_LOOK);
        self.look_at = (!self.line.is_empty()).then(|| now + self.pause);
    }

    /// Progress is read when its line has ended: half a number is another number.
    fn may_be_progress(&self) -> bool {
        let begins = self.line.starts_with(PROGRESS.as_bytes())
            || PROGRESS.as_bytes().starts_with(&self.line);
        self.stream == Stream::Stdout && !self.continues && begins
    }

    /// Tells the first `end` bytes of the line.
    fn tell(&mut self, end: usize, now: Instant) {
        let line = &self.line[..end];
        self.cut |= line.len() > LONGEST;
        let line = self.hidden.replaced(line, LONGEST);
        let text = String::from_utf8_lossy(&line).replace('\0', "\u{fffd}");
        let may_be = self.stream == Stream::Stdout && !self.continues;
        let event = match may_be.then(|| progress(&text)).flatten() {
            Some(progress) => ChildEvent::Progress(progress),
            None => ChildEvent::Line(NewLine::cut(self.stream, text, self.cut)),
        };
        if self.left_out > 0 && self.events.capacity() > 1 {
            let remark = self.remark();
            if self.events.try_send(remark).is_ok() {
                self.left_out = 0;
            }
        }
        if let Some(progress) = self.progress.take()
            && !matches!(event, ChildEvent::Progress(_))
        {
            self.offer(ChildEvent::Progress(progress), now);
        }
        self.offer(event, now);
    }

    /// Never waits: a slow reader must not stop the script.
    fn offer(&mut self, event: ChildEvent, now: Instant) {
        self.told_at = now;
        match self.events.try_send(event) {
            // What waits there is a sign of life as well.
            Err(TrySendError::Full(ChildEvent::Heard)) => {}
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

/// The length of `text` without a letter at its end that has not come whole.
fn whole(text: &[u8]) -> usize {
    let end = text.len();
    let first = (1..=end.min(3)).find(|back| text[end - back] & 0xC0 != 0x80);
    let needed = first.map(|back| match text[end - back] {
        0xC0..0xE0 => (back, 2),
        0xE0..0xF0 => (back, 3),
        0xF0..0xF8 => (back, 4),
        _ => (back, 1),
    });
    match needed {
        Some((back, needed)) if needed > back => end - back,
        _ => end,
    }
}

/// `::progress 120/830 shipping order 10248`; anything malformed is an ordinary line.
fn progress(line: &str) -> Option<Progress> {
    let rest = line.strip_prefix(PROGRESS)?.trim_start();
    let (numbers, note) = rest.split_once(' ').unwrap_or((rest, ""));
    let (done, total) = numbers.split_once('/')?;
    Some(Progress::new(done.parse().ok()?, total.parse().ok()?, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(bytes: &[u8]) -> Vec<ChildEvent> {
        let (events, mut inbox) = mpsc::channel(64);
        read(bytes, Stream::Stdout, events, Redactor::default()).await;
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

    /// What is reported when each of these is written, so many milliseconds after the one before; with the milliseconds until the report.
    fn told(written: &[(u64, &str)], hidden: Redactor) -> Vec<(u64, ChildEvent)> {
        let (events, mut inbox) = mpsc::channel(2_048);
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let mut lines = Lines::new(Stream::Stdout, events, hidden, begun);
        let (mut all, mut now) = (Vec::new(), 0);
        let mut hear = |ms: u64| {
            all.extend(std::iter::from_fn(|| inbox.try_recv().ok()).map(|event| (ms, event)));
        };
        for (pause, text) in written {
            now += pause;
            while let Some(look) = lines.look_at.filter(|look| *look <= at(now)) {
                lines.look(look);
                hear(u64::try_from((look - begun).as_millis()).unwrap());
            }
            lines.take(text.as_bytes(), at(now));
            hear(now);
        }
        if !lines.line.is_empty() {
            lines.end(at(now));
        }
        hear(now);
        all
    }

    #[test]
    fn a_question_is_shown_after_a_second_and_completed_and_never_doubled() {
        let none = Redactor::default;
        for (rest, then) in [("y\nok\n", "y"), ("\nok\n", "ok"), ("\r\nok\n", "ok")] {
            let told = told(&[(10, "a\nsure? [y/N] "), (3_000, rest)], none());
            assert_eq!(told[..2], [(10, line("a")), (1_010, line("sure? [y/N] "))], "{rest:?}");
            assert_eq!(told[2], (3_010, line(then)), "{rest:?}");
        }
        let told = told(&[(10, "quick"), (990, " enough\n")], none());
        assert_eq!(told, [(1_000, line("quick enough"))]);
    }

    #[test]
    fn a_line_that_does_not_end_is_shown_ever_more_rarely_and_each_byte_is_a_sign_of_life() {
        let dots = vec![(900, "."); 200];
        let told = told(&dots, Redactor::default());
        let shown: Vec<_> = told.iter().filter(|(_, event)| *event != ChildEvent::Heard).collect();
        let at: Vec<u64> = shown.iter().map(|(at, _)| at / 1_000).collect();
        assert_eq!(at[..6], [1, 4, 9, 17, 34, 66], "{at:?}");
        assert!(at.windows(2).all(|two| two[1] - two[0] <= 62), "{at:?}");
        let texts = shown.iter().map(|(_, event)| match event {
            ChildEvent::Line(line) => line.text.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(texts.sum::<usize>(), 200, "each dot once");
        let silent = told.windows(2).map(|two| two[1].0 - two[0].0).max();
        assert!(silent <= Some(2_000), "{silent:?}");
        assert!(told.len() <= 220, "at most one event a second: {}", told.len());
    }

    #[tokio::test]
    async fn a_carriage_return_begins_a_line_anew_and_the_last_state_of_a_bar_is_kept() {
        let states: Vec<String> = (0..=1_000_i32)
            .map(|n| {
                format!(
                    "\r{:5.1} % [{}]",
                    f64::from(n) / 10.0,
                    "#".repeat(usize::try_from(n / 20).unwrap())
                )
            })
            .collect();
        let mut bar: Vec<(u64, &str)> = states.iter().map(|state| (5, state.as_str())).collect();
        bar.push((5, "\ndone\n"));
        let told = told(&bar, Redactor::default());
        let lines: Vec<&str> = told
            .iter()
            .filter_map(|(_, event)| match event {
                ChildEvent::Line(line) => Some(line.text.as_str()),
                _ => None,
            })
            .collect();
        assert!(lines[0].starts_with(" 19.9 ") || lines[0].starts_with(" 20.0 "), "{lines:?}");
        assert_eq!(lines[lines.len() - 2..], [states[1_000].trim_start_matches('\r'), "done"]);
        assert!(lines.len() <= 5, "{lines:?}");
        assert_eq!(
            read_all(b"a\r\r\nb\rc\n\r\n::p\r::progress 1/2\n").await,
            [
                line("a"),
                line("c"),
                line(""),
                ChildEvent::Progress(Progress { done: 1, total: 2, note: String::new() }),
            ]
        );
    }

    #[test]
    fn half_a_secret_half_a_letter_and_half_a_progress_are_not_shown() {
        let hidden = || Redactor::of(["correct horse".to_owned()].iter());
        let told = told(
            &[
                (0, "key: correct"),
                (2_000, " horse!"),
                (9_000, "\n::progress 1"),
                (9_000, "2/20\n"),
            ],
            hidden(),
        );
        let shown: Vec<_> = told.into_iter().map(|(_, event)| event).collect();
        let shown: Vec<_> = shown.into_iter().filter(|event| *event != ChildEvent::Heard).collect();
        let progress = Progress { done: 12, total: 20, note: String::new() };
        assert_eq!(shown, [line("key: "), line("***!"), ChildEvent::Progress(progress)]);
        assert_eq!(whole("出库".as_bytes()), 6);
        assert_eq!(whole(&"出库".as_bytes()[..5]), 3);
        assert_eq!((whole(b"\xff"), whole(b"a\xe9"), whole(b"")), (1, 1, 0));
    }

    #[test]
    fn the_rest_of_a_long_line_is_dropped_also_after_it_was_shown() {
        let long = "x".repeat(2 * LONGEST);
        let told = told(&[(0, &long), (2_000, &long), (2_000, "\nnext\n")], Redactor::default());
        let lines: Vec<_> = told.iter().filter(|(_, e)| *e != ChildEvent::Heard).collect();
        let [(_, ChildEvent::Line(cut)), (_, next)] = &lines[..] else { panic!("{lines:?}") };
        assert!(cut.text.len() <= LONGEST && cut.text.ends_with('…'));
        assert_eq!(*next, line("next"));
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
        let hidden = Redactor::of([secret.to_owned()].iter());
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
            read(flood.as_bytes(), Stream::Stdout, events, Redactor::default()).await;
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
