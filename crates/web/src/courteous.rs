//! A connection on which no answer goes out without the headers that every answer carries.
//!
//! A request that the framework cannot read is answered by it alone, before any service of ours: a status, three headers, no body, and the
//! connection ends. It offers no hook there. So this stream knows such an answer by its bytes, and sends a whole one instead.
//! Nothing of ours can be taken for one: our answers carry more headers than these three, and no body of ours holds a carriage return
//! that a user or a program wrote. JSON and frames escape it, a page ends with its own tag, and the text of a log replaces it
//! (`words::visible`). A body that did not would let its author end it with such bytes: keep it so. Frames of a socket may hold any bytes:
//! behind the answer that begins one, nothing is looked at any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_web::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Counted;

/// Headers of the framework's own answers.
const BARE: [&str; 3] = ["content-length", "connection", "date"];
/// No such answer is longer.
const LONGEST: usize = 256;
/// No answer that makes a socket is longer.
const LONGEST_SWITCH: usize = 4_096;

/// The lines that every answer carries, each with its line end.
pub type Always = Arc<dyn Fn() -> String + Send + Sync>;

/// A stream that sends no bare answer.
pub struct Courteous<T> {
    io: T,
    always: Always,
    /// What was taken from the framework and not yet by the peer.
    rest: Vec<u8>,
    /// The connection became a socket.
    switched: bool,
    /// Its place among the connections, for as long as it lasts.
    _counted: Option<Counted>,
}

impl<T> Courteous<T> {
    /// Over `io`, with these lines.
    pub fn new(io: T, always: Always, counted: Option<Counted>) -> Self {
        Self { io, always, rest: Vec::new(), switched: false, _counted: counted }
    }
}

impl<T: AsyncWrite + Unpin> Courteous<T> {
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let sent = ready!(Pin::new(&mut self.io).poll_write(cx, &self.rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Courteous<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Courteous<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(cx))?;
        self.switched |= switches(bytes);
        let Some(bare) = bare(bytes).filter(|_| !self.switched) else {
            return Pin::new(&mut self.io).poll_write(cx, bytes);
        };
        self.rest = [&bytes[..bare.start], bare.whole(&(self.always)()).as_bytes()].concat();
        match self.poll_rest(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// An answer of the framework's own.
#[derive(Debug, PartialEq, Eq)]
struct Bare<'b> {
    /// Where the answer begins.
    start: usize,
    status: StatusCode,
    /// Its `date`, as a line.
    date: &'b str,
}

/// The framework's own answer that `bytes` end with.
fn bare(bytes: &[u8]) -> Option<Bare<'_>> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail = bytes.len().saturating_sub(LONGEST);
    let start = tail + bytes[tail..].windows(9).rposition(|part| part == b"HTTP/1.1 ")?;
    let head = std::str::from_utf8(&bytes[start..bytes.len() - 4]).ok()?;
    let (first, headers) = head.split_once("\r\n")?;
    let status: StatusCode = first["HTTP/1.1 ".len()..].split(' ').next()?.parse().ok()?;
    let is_bare = headers.split("\r\n").all(|line| {
        line.split_once(": ").is_some_and(|(name, value)| {
            BARE.contains(&name) && (name != "content-length" || value == "0")
        })
    });
    let is_error = status.is_client_error() || status.is_server_error();
    let date = headers.split("\r\n").find(|line| line.starts_with("date: "))?;
    (is_error && is_bare).then_some(Bare { start, status, date })
}

/// Whether `bytes` have the answer that makes a socket of the connection; no body of ours holds its line end.
fn switches(bytes: &[u8]) -> bool {
    const FIRST: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\n";
    let tail = &bytes[bytes.len().saturating_sub(LONGEST_SWITCH)..];
    tail.windows(FIRST.len()).any(|part| part == FIRST)
}

/// What the peer can do about it.
fn remedy(status: StatusCode) -> &'static str {
    match status {
        StatusCode::REQUEST_TIMEOUT => {
            "the head of the request did not arrive within five seconds: send it at once"
        }
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "the head of the request is too large: send fewer and shorter headers and cookies"
        }
        StatusCode::BAD_REQUEST => {
            "this is no request that can be read: check its first line, its headers, and the length of its body"
        }
        _ => "the connection could not go on: send the request again",
    }
}

impl Bare<'_> {
    /// The answer that is sent instead.
    fn whole(&self, always: &str) -> String {
        let (status, date) = (self.status, self.date);
        let title = status.canonical_reason().unwrap_or_default();
        let code = status.as_u16();
        let body = serde_json::json!({
            "type": "about:blank", "title": title, "status": code, "detail": remedy(status),
        })
        .to_string();
        let length = body.len();
        format!(
            "HTTP/1.1 {code} {title}\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\nconnection: close\r\n{always}{date}\r\n\r\n{body}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\ndate: Mon, 23 Nov 2026 07:43:17 GMT\r\n\r\n";

    fn always() -> Always {
        Arc::new(|| "x-content-type-options: nosniff\r\n".to_owned())
    }

    #[test]
    fn only_a_bare_error_at_the_end_is_one() {
        let own = |start| {
            let date = "date: Mon, 23 Nov 2026 07:43:17 GMT";
            Some(Bare { start, status: StatusCode::BAD_REQUEST, date })
        };
        assert_eq!(bare(OWN.as_bytes()), own(0));
        let after = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ndate: now\r\n\r\n{{}}{OWN}");
        assert_eq!(bare(after.as_bytes()), own(after.len() - OWN.len()));
        for other in [
            String::new(),
            "\r\n\r\n".to_owned(),
            format!("{OWN}x"),
            OWN.replace("400 Bad Request", "200 OK"),
            OWN.replace("400 Bad Request", "four hundred"),
            OWN.replace("content-length: 0", "content-length: 10"),
            OWN.replace("connection: close", "x-content-type-options: nosniff"),
            OWN.replace("HTTP/1.1", "HTTP/1.0"),
            OWN.replace("date: ", "date"),
        ] {
            assert_eq!(bare(other.as_bytes()), None, "{other:?}");
        }
    }

    /// Takes `most` bytes at a time, and every other time none.
    struct Slow {
        taken: Vec<u8>,
        most: usize,
        rests: bool,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.rests = !self.rests;
            if self.rests {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let some = self.most.min(bytes.len());
            self.taken.extend(&bytes[..some]);
            Poll::Ready(Ok(some))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn frames_of_a_socket_go_out_as_they_are_whatever_they_look_like() {
        use tokio::io::AsyncWriteExt as _;
        let switch = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\ndate: now\r\n\r\n";
        let pong = "\u{0}\u{1a}HTTP/1.1 400 \r\ndate: x\r\n\r\n";
        for before in ["", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"] {
            let slow = Slow { taken: Vec::new(), most: 4_096, rests: false };
            let mut stream = Courteous::new(slow, always(), None);
            stream.write_all(format!("{before}{switch}").as_bytes()).await.unwrap();
            stream.write_all(pong.as_bytes()).await.unwrap();
            let taken = String::from_utf8(stream.io.taken.clone()).unwrap();
            assert_eq!(taken, format!("{before}{switch}{pong}"));
        }
    }

    #[tokio::test]
    async fn what_goes_out_is_whole_and_in_order_however_slowly_it_is_taken() {
        use tokio::io::AsyncWriteExt as _;
        let first = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\netag: 1\r\n\r\n{}";
        for most in [1, 7, 4_096] {
            let slow = Slow { taken: Vec::new(), most, rests: false };
            let mut stream = Courteous::new(slow, always(), None);
            stream.write_all(first.as_bytes()).await.unwrap();
            stream.write_all(format!("{first}{OWN}").as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let text = String::from_utf8(stream.io.taken.clone()).unwrap();
            let answer = text.strip_prefix(&format!("{first}{first}")).expect(&text);
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
            for line in ["x-content-type-options: nosniff", "connection: close"] {
                assert!(head.lines().any(|one| one == line), "{head}");
            }
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], 400);
        }
    }
}
