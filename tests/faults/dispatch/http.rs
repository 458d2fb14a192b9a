//! As little of HTTP as a collector needs, so that it can hang up wherever it wants to.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than any long poll here: a node that does not answer by then is dead or asleep.
const PATIENCE: Duration = Duration::from_secs(3);

/// A caller with one connection, which it opens anew when it has to.
pub(crate) struct Client {
    token: String,
    open: Option<(SocketAddr, TcpStream)>,
}

impl Client {
    pub(crate) fn new(token: &str) -> Self {
        Self { token: token.to_owned(), open: None }
    }

    /// One call, once: status and JSON.
    pub(crate) fn call(
        &mut self,
        to: SocketAddr,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let answer = self.send(to, method, path, body).and_then(|mut stream| {
            let answer = read(&mut stream)?;
            self.open = Some((to, stream));
            Ok(answer)
        });
        answer.inspect_err(|_| self.open = None)
    }

    /// Sends a call and hangs up without waiting for the answer.
    pub(crate) fn hang_up(&mut self, to: SocketAddr, method: &str, path: &str, body: &Value) {
        // Whether it arrived is what nobody is to know.
        drop(self.send(to, method, path, body));
    }

    fn send(
        &mut self,
        to: SocketAddr,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<TcpStream> {
        let mut stream = match self.open.take() {
            Some((address, stream)) if address == to => stream,
            _ => TcpStream::connect_timeout(&to, PATIENCE)?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

fn read(stream: &mut TcpStream) -> Result<(u16, Value)> {
    let broken = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let mut more = |bytes: &mut Vec<u8>| -> Result<()> {
        match stream.read(&mut chunk)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            read => {
                bytes.extend_from_slice(&chunk[..read]);
                Ok(())
            }
        }
    };
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        more(&mut bytes)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let status = text.get(9..12).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken("no status"))?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = match length {
        Some(length) => length.trim().parse().map_err(|_| broken("a length"))?,
        None if status == 204 => 0,
        None => return Err(broken("an answer without a length")),
    };
    while bytes.len() < head + 4 + length {
        more(&mut bytes)?;
    }
    let body = &bytes[head + 4..];
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(body)? };
    Ok((status, value))
}
