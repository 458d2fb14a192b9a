//! A tiny web site to crawl politely: 24 pages that link to each other, and no patience.
//!
//!     cargo run --example site -- ADDRESS GAP_MS LOG
//!
//! Who asks sooner than GAP_MS after the page before gets 429 and `Retry-After`. Every request is a line of LOG:
//! milliseconds since the start, status, path. Nothing but the standard library, one connection at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Pages from `/0` to `/23`.
const PAGES: u32 = 24;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, gap, log] = &arguments[..] else {
        eprintln!("usage: site ADDRESS GAP_MS LOG, for example: site 127.0.0.1:0 200 site.log");
        std::process::exit(2);
    };
    let Ok(gap) = gap.parse() else {
        eprintln!("site: GAP_MS is a number of milliseconds, not {gap:?}");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(address)?;
    println!("http://{}", listener.local_addr()?);
    Site::new(Duration::from_millis(gap), Path::new(log))?.serve(&listener)
}

/// The site, and when it was last asked for a page.
pub struct Site {
    gap: Duration,
    log: File,
    started: Instant,
    last: Option<Instant>,
}

impl Site {
    /// A site that writes to `log`.
    ///
    /// # Errors
    /// When `log` cannot be written.
    #[allow(clippy::disallowed_methods, reason = "an example has no clock of its own")]
    pub fn new(gap: Duration, log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        Ok(Self { gap, log, started: Instant::now(), last: None })
    }

    /// Answers whoever connects; never ends.
    ///
    /// # Errors
    /// When nobody can connect any more.
    pub fn serve(mut self, listener: &TcpListener) -> io::Result<()> {
        for connection in listener.incoming() {
            // Somebody who hung up early is no reason to stop.
            if let Err(error) = connection.and_then(|connection| self.answer(connection)) {
                eprintln!("site: {error}");
            }
        }
        Ok(())
    }

    #[allow(clippy::disallowed_methods, reason = "an example has no clock of its own")]
    fn answer(&mut self, mut connection: TcpStream) -> io::Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut lines = BufReader::new((&connection).take(16 * 1024)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let now = Instant::now();
        let too_soon = self.last.is_some_and(|last| now - last < self.gap);
        self.last = Some(now);
        let page = path.trim_start_matches('/').parse().ok().filter(|page| *page < PAGES);
        let (status, headers, body) = match page {
            _ if too_soon => {
                ("429 Too Many Requests", "Retry-After: 1\r\n", "too soon\n".to_owned())
            }
            Some(page) => ("200 OK", "", text_of(page)),
            None => ("404 Not Found", "", "no such page\n".to_owned()),
        };
        let milliseconds = (now - self.started).as_millis();
        writeln!(self.log, "{milliseconds} {} {path}", &status[..3])?;
        write!(
            connection,
            "HTTP/1.1 {status}\r\n{headers}Content-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

/// A page with two links, so that all are found from the first.
fn text_of(page: u32) -> String {
    let link = |to: u32| format!("<a href=\"/{to}\">page {to}</a>\n");
    let links: String =
        [page * 2 + 1, page * 2 + 2].into_iter().filter(|to| *to < PAGES).map(link).collect();
    format!("<title>Page {page}</title>\n{links}")
}
