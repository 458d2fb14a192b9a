//! Standard output and error of this process. A writer never waits for the reader.
//!
//! A reader may stop: a log driver that stalls, a stopped `| tee`, Ctrl-S, a dead ssh session. A plain write waits for it, under a lock,
//! and blocks every thread that writes, also those that hold leases. So one thread for each stream writes from a bounded queue; what does
//! not fit is dropped and counted. The number is logged as soon as the reader has read the queue.
//!
//! Only commands that hold nothing (`cli`) write directly, and guards, which first check that there is room.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use parking_lot::{Condvar, Mutex};

use crate::clock;

/// So many bytes wait for a reader at most.
const MOST: usize = 1 << 20;
/// So long the end of this process waits for a reader.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The way to standard error.
pub static STDERR: Outlet = Outlet::new("stderr", |text| write_all(io::stderr().as_fd(), text));
/// The way to standard output.
pub static STDOUT: Outlet = Outlet::new("stdout", |text| write_all(io::stdout().as_fd(), text));

/// A stream, the queue before it, and the thread between them, which the first text starts.
pub struct Outlet {
    name: &'static str,
    write: fn(&[u8]) -> io::Result<()>,
    /// Held while something is written, so that whole texts stay whole.
    pen: Mutex<()>,
    queue: Mutex<Queue>,
    /// Something was queued, or the queue is empty.
    changed: Condvar,
    /// Whether there is a thread.
    thread: OnceLock<bool>,
}

/// A text, and what is done if it cannot be written.
type Waiting = (Vec<u8>, fn(&io::Error));

struct Queue {
    waiting: VecDeque<Waiting>,
    /// Of what waits, and of what is being written.
    bytes: usize,
    /// Since the queue was full. Until it is empty again everything is dropped, so that one gap is reported as one.
    left_out: u64,
    /// Not everything is written.
    busy: bool,
}

impl Outlet {
    const fn new(name: &'static str, write: fn(&[u8]) -> io::Result<()>) -> Self {
        let queue = Queue { waiting: VecDeque::new(), bytes: 0, left_out: 0, busy: false };
        Self {
            name,
            write,
            pen: Mutex::new(()),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            thread: OnceLock::new(),
        }
    }

    /// Has `text` written, as a whole and in order. Never waits. A stream that cannot be written is no error.
    pub fn put(&'static self, text: &[u8]) {
        self.put_or(text, |_| {});
    }

    /// As [`Self::put`]; `failed` is called if it cannot be written.
    pub fn put_or(&'static self, text: &[u8], failed: fn(&io::Error)) {
        if !*self.thread.get_or_init(|| thread(self.name, || self.write_what_comes()).is_ok()) {
            // A process that is not allowed one more thread holds no lease for long; it shall be able to say why.
            self.write_now(text).unwrap_or_else(|error| failed(&error));
            return;
        }
        let mut queue = self.queue.lock();
        if queue.left_out > 0 || queue.bytes + text.len() > MOST {
            queue.left_out += 1;
        } else {
            queue.bytes += text.len();
            queue.waiting.push_back((text.to_vec(), failed));
        }
        queue.busy = true;
        self.changed.notify_all();
    }

    /// Writes `text` as a whole, for as long as the reader takes: only for a thread that nothing waits for.
    ///
    /// # Errors
    /// When it cannot be written, as when the reader has gone.
    pub fn write_now(&self, text: &[u8]) -> io::Result<()> {
        let _pen = self.pen.lock();
        (self.write)(text)
    }

    /// Waits until everything is written, but not for longer than `patience`.
    pub fn flush(&self, patience: Duration) {
        let mut queue = self.queue.lock();
        self.changed.wait_while_for(&mut queue, |queue| queue.busy, patience);
    }

    fn write_what_comes(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some((text, failed)) = queue.waiting.pop_front() {
                drop(queue);
                self.write_now(&text).unwrap_or_else(|error| failed(&error));
                queue = self.queue.lock();
                queue.bytes -= text.len();
            } else if queue.left_out > 0 {
                let left_out = std::mem::take(&mut queue.left_out);
                drop(queue);
                // In the shape of all other lines of the log.
                tracing::warn!(
                    left_out,
                    "{left_out} lines were left out here: nobody read the {} of this process",
                    self.name
                );
                queue = self.queue.lock();
            } else {
                queue.busy = false;
                self.changed.notify_all();
                self.changed.wait(&mut queue);
            }
        }
    }
}

/// What logs writes whole lines.
impl io::Write for &'static Outlet {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.put(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says something beside a command's own output.
pub fn say(text: &str) {
    STDERR.put(format!("soloist: {text}\n").as_bytes());
}

/// Has panics told like everything else: the usual hook waits for the reader, in whichever thread panicked.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        // As RUST_BACKTRACE asks for.
        let trace = Backtrace::capture();
        let trace = match trace.status() {
            BacktraceStatus::Captured => format!("\nstack backtrace:\n{trace}"),
            _ => String::new(),
        };
        STDERR.put(format!("thread '{name}' {panic}{trace}\n").as_bytes());
    }));
}

/// Held until the end of `main`: then waits until what was said is written, but not for ever.
#[must_use]
pub struct LastWords;

impl Drop for LastWords {
    fn drop(&mut self) {
        let begun = clock::boot();
        for outlet in [&STDERR, &STDOUT] {
            outlet.flush(LAST_WORDS.saturating_sub(clock::boot().since(begun)));
        }
    }
}

/// Starts a thread that may wait for a reader. It receives no signal: a background process that writes to a terminal is sent SIGTTOU
/// (`stty tostop`), which stops all of the process, unless the thread that writes blocks it. Others listen to SIGHUP and the like.
///
/// # Errors
/// When there can be no thread.
pub fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = std::thread::Builder::new().name(format!("soloist-{name}")).spawn(work);
    before.thread_set_mask()?;
    started.map(drop)
}

/// Writes all of `text`, also to a stream that another process has made non-blocking.
fn write_all(stream: BorrowedFd<'_>, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        match nix::unistd::write(stream, text) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => text = &text[written..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                poll(&mut [PollFd::new(stream, PollFlags::POLLOUT)], PollTimeout::NONE).ok();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    static READS: AtomicBool = AtomicBool::new(true);
    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    static PIPE: Outlet = Outlet::new("test", |text| {
        while !READS.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        WRITTEN.lock().extend_from_slice(text);
        match text {
            b"gone\n" => Err(ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    });

    #[test]
    fn who_writes_never_waits_and_what_finds_no_room_is_one_gap_that_is_counted() {
        PIPE.put(b"first\n");
        PIPE.put_or(b"gone\n", |_| {
            FAILED.fetch_add(1, Ordering::AcqRel);
        });
        PIPE.flush(Duration::from_secs(30));
        assert_eq!(WRITTEN.lock().as_slice(), b"first\ngone\n");
        assert_eq!(FAILED.load(Ordering::Acquire), 1);

        READS.store(false, Ordering::Release);
        let line = [b'x'; 1024];
        for _ in 0..MOST / line.len() + 7 {
            PIPE.put(&line);
        }
        PIPE.flush(Duration::from_millis(1));
        let queue = PIPE.queue.lock();
        assert_eq!((queue.left_out, queue.busy, queue.bytes), (7, true, MOST));
        drop(queue);
        READS.store(true, Ordering::Release);
        PIPE.flush(Duration::from_secs(30));
        assert_eq!(WRITTEN.lock().len(), b"first\ngone\n".len() + MOST);
        assert_eq!(PIPE.queue.lock().left_out, 0, "it was told");
        PIPE.put(b"again\n");
        PIPE.flush(Duration::from_secs(30));
        assert!(WRITTEN.lock().ends_with(b"again\n"));
    }
}
