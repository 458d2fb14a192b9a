//! A tiny supplier to call in turns: it takes its time for each call, and has no patience.
//!
//!     cargo run --example supplier -- ADDRESS GAP_MS LOG
//!
//! Who calls sooner than GAP_MS after the call before, or while that is being answered, gets 429 and `Retry-After`.
//! Every call is a line of LOG: milliseconds since the start, status, path. Nothing but the standard library.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer takes.
const WORK: Duration = Duration::from_millis(40);

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, gap, log] = &arguments[..] else {
        eprintln!(
            "usage: supplier ADDRESS GAP_MS LOG, for example: supplier 127.0.0.1:0 150 supplier.log"
        );
        std::process::exit(2);
    };
    let Ok(gap) = gap.parse() else {
        eprintln!("supplier: GAP_MS is a number of milliseconds, not {gap:?}");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(address)?;
    println!("http://{}", listener.local_addr()?);
    Supplier::new(Duration::from_millis(gap), Path::new(log))?.serve(&listener)
}

/// The supplier; cheap to clone.
#[derive(Clone)]
pub struct Supplier {
    gap: Duration,
    started: Instant,
    calls: Arc<Mutex<Calls>>,
}

/// What it remembers of calls.
struct Calls {
    log: File,
    last: Option<Instant>,
    busy: bool,
}

impl Supplier {
    /// A supplier that writes to `log`.
    ///
    /// # Errors
    /// When `log` cannot be written.
    #[allow(clippy::disallowed_methods, reason = "an example has no clock of its own")]
    pub fn new(gap: Duration, log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let calls = Arc::new(Mutex::new(Calls { log, last: None, busy: false }));
        Ok(Self { gap, started: Instant::now(), calls })
    }

    /// Answers whoever calls; never ends.
    ///
    /// # Errors
    /// When nobody can call any more.
    pub fn serve(self, listener: &TcpListener) -> io::Result<()> {
        for connection in listener.incoming() {
            let (supplier, connection) = (self.clone(), connection?);
            // Whoever calls meanwhile is to hear that it is too soon, not to wait.
            std::thread::spawn(move || {
                if let Err(error) = supplier.answer(connection) {
                    eprintln!("supplier: {error}");
                }
            });
        }
        Ok(())
    }

    fn answer(&self, mut connection: TcpStream) -> io::Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut lines = BufReader::new((&connection).take(16 * 1024)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
        let path = first.split(' ').nth(1).unwrap_or_default();
        let (status, headers, body) = match self.begin(path)? {
            true => {
                std::thread::sleep(WORK);
                self.calls().busy = false;
                ("200 OK", "", "{\"stock\":7}\n")
            }
            false => ("429 Too Many Requests", "Retry-After: 1\r\n", "too soon\n"),
        };
        write!(
            connection,
            "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Notes a call; whether it is served.
    #[allow(clippy::disallowed_methods, reason = "an example has no clock of its own")]
    fn begin(&self, path: &str) -> io::Result<bool> {
        let mut calls = self.calls();
        let now = Instant::now();
        let too_soon = calls.last.is_some_and(|last| now - last < self.gap);
        let served = !too_soon && !calls.busy;
        calls.last = Some(now);
        calls.busy |= served;
        let milliseconds = (now - self.started).as_millis();
        writeln!(calls.log, "{milliseconds} {} {path}", if served { 200 } else { 429 })?;
        Ok(served)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
