//! A store of one object that knows conditional writes, as S3 does: ETag, If-Match, If-None-Match, one header of
//! metadata. It can hold one answer back, which is what a pause of its client looks like.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Past this a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "x-amz-meta-soloist-token";

/// Runs until the test program ends; cheap to clone.
#[derive(Clone)]
pub(super) struct ObjectStore {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    object: Option<Object>,
    /// Numbers every write: the ETag.
    writes: u64,
    hold: Option<(Sender<()>, Receiver<()>)>,
}

struct Object {
    etag: String,
    token: String,
    body: Vec<u8>,
}

/// An answer that is held back.
pub(super) struct Pause {
    reached: Receiver<()>,
    end: Sender<()>,
}

impl Pause {
    /// Waits until somebody has asked and not been answered.
    pub(super) fn reached(&self) {
        self.reached.recv_timeout(PATIENCE).expect("somebody asks");
    }

    /// Sends the answer.
    pub(super) fn end(self) {
        self.end.send(()).expect("it waits for that");
    }
}

impl ObjectStore {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let store = Self { port, shared: Arc::default() };
        let there = store.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let there = there.clone();
                std::thread::spawn(move || there.serve(connection));
            }
        });
        store
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/bucket/report.csv", self.port)
    }

    pub(super) fn body(&self) -> String {
        let shared = self.shared.lock().expect("no panic");
        let object = shared.object.as_ref().expect("an object");
        String::from_utf8(object.body.clone()).expect("UTF-8")
    }

    /// Deletes the object.
    pub(super) fn clear(&self) {
        self.shared.lock().expect("no panic").object = None;
    }

    /// Of whatever request comes next.
    pub(super) fn hold_the_next_answer(&self) -> Pause {
        let ((say, reached), (end, wait)) = (channel(), channel());
        self.shared.lock().expect("no panic").hold = Some((say, wait));
        Pause { reached, end }
    }

    /// One request, one answer.
    fn serve(&self, connection: TcpStream) {
        let mut reader = BufReader::new(connection.try_clone().expect("a socket"));
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = reader.read_line(&mut line).expect("a request");
            if read == 0 || line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let header = |name: &str| {
            let value = |line: &String| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            };
            lines.iter().find_map(value)
        };
        let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");

        let method = lines.first().and_then(|line| line.split(' ').next()).unwrap_or_default();
        let (answer, hold) = {
            let mut shared = self.shared.lock().expect("no panic");
            let answer = match method {
                "PUT" => {
                    shared.put(header("if-match"), header("if-none-match"), header(TOKEN), body)
                }
                _ => shared.head(),
            };
            (answer, shared.hold.take())
        };
        if let Some((say, wait)) = hold {
            say.send(()).expect("the test waits");
            wait.recv_timeout(PATIENCE).expect("the test lets it go");
        }
        let text = format!("HTTP/1.1 {answer}Content-Length: 0\r\nConnection: close\r\n\r\n");
        (&connection).write_all(text.as_bytes()).expect("it listens");
    }
}

impl Shared {
    fn head(&self) -> String {
        match &self.object {
            None => "404 Not Found\r\n".to_owned(),
            Some(Object { etag, token, .. }) => {
                format!("200 OK\r\nETag: {etag}\r\n{TOKEN}: {token}\r\n")
            }
        }
    }

    fn put(
        &mut self,
        only_over: Option<String>,
        only_if_none: Option<String>,
        token: Option<String>,
        body: Vec<u8>,
    ) -> String {
        let present = self.object.as_ref().map(|object| object.etag.clone());
        let failed = (only_over.is_some() && only_over != present)
            || (only_if_none.is_some() && present.is_some());
        if failed {
            return "412 Precondition Failed\r\n".to_owned();
        }
        self.writes += 1;
        let etag = format!("\"{}\"", self.writes);
        self.object = Some(Object { etag, token: token.unwrap_or_default(), body });
        "200 OK\r\n".to_owned()
    }
}
