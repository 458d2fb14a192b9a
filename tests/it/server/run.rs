//! `run --server`, against what answers as a node does: what is asked, in which order, and what follows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use super::Away;
use crate::support::wait::until;

/// What a request was: the last part of its path, and its body.
type Asked = (String, Value);

/// Answers every request with what `answer` says of it; the requests are heard at the receiver.
fn node(
    answer: impl Fn(&str, usize) -> (u16, Value) + Send + 'static,
) -> (String, mpsc::Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (asked, heard) = mpsc::channel();
    // It ends with the test's process, or with the first request that nobody hears.
    std::thread::spawn(move || {
        for (nth, stream) in listener.incoming().flatten().enumerate() {
            let Some((what, body)) = request(&stream) else { continue };
            let (status, text) = answer(&what, nth);
            respond(stream, status, &text.to_string());
            if asked.send((what, body)).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

fn request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let what = path.rsplit('/').next()?.to_owned();
    Some((what, serde_json::from_slice(&body).ok()?))
}

fn respond(mut stream: TcpStream, status: u16, text: &str) {
    let head = format!(
        "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    // Who does not read it has gone.
    stream.write_all(format!("{head}{text}").as_bytes()).ok();
}

fn granted() -> (u16, Value) {
    let lease = json!({"name": "nightly", "token": 4_711, "secret": "s3cret-of-the-lease", "run": null,
        "ttl_ms": 5_000, "expires_in_ms": 5_000, "renew_every_ms": 1_000});
    (200, lease)
}

fn kept() -> (u16, Value) {
    (200, json!({"expires_in_ms": 2_000, "stop": null}))
}

const RUN: [&str; 6] = ["run", "--name", "nightly", "--ttl", "5s", "--"];

#[test]
fn a_command_runs_under_a_lease_that_is_renewed_before_it_starts() {
    let (url, heard) = node(|what, _| match what {
        "nightly" => granted(),
        "renew" => kept(),
        _ => (200, json!({"name": "nightly", "released": true})),
    });
    let away = Away::at(&url, "sol_x1y2z3");
    let words = [&RUN[..], &["sh", "-c", "env; exit 7"]].concat();
    let output = away.run(&words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("SOLOIST_TOKEN=4711"), "{said}");
    assert!(!said.contains("s3cret") && !said.contains("sol_x1y2z3"), "{said}");
    let asked: Vec<Asked> = heard.try_iter().collect();
    let names: Vec<&str> = asked.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!((names[0], names[1], names[names.len() - 1]), ("nightly", "renew", "release"));
    assert_eq!(asked[0].1["ttl_ms"], 5_000);
    assert_eq!(asked[1].1["secret"], "s3cret-of-the-lease");
    let end = &asked[asked.len() - 1].1;
    assert_eq!((&end["end"], &end["code"]), (&"failed".into(), &7.into()));
}

#[test]
fn a_lease_that_is_lost_kills_the_command() {
    let over = json!({"type": "about:blank", "title": "Conflict", "status": 409, "detail": "over"});
    let (url, _heard) = node(move |what, nth| match (what, nth) {
        ("nightly", _) => granted(),
        ("renew", 0..3) => kept(),
        _ => (409, over.clone()),
    });
    let words = [&RUN[..], &["sleep", "300"]].concat();
    let said = Away::at(&url, "sol_x1y2z3").fails(&words, 76);
    assert!(said.contains("lost to another, and the command was killed"), "{said}");
}

#[test]
fn a_command_is_stopped_when_the_node_says_so() {
    let (url, heard) = node(|what, nth| match (what, nth) {
        ("nightly", _) => granted(),
        ("renew", 0..3) => kept(),
        ("renew", _) => {
            (200, json!({"expires_in_ms": 2_000, "stop": {"why": "removed", "within_ms": 1_000}}))
        }
        _ => (200, json!({"name": "nightly", "released": true})),
    });
    let words = [&RUN[..], &["sleep", "300"]].concat();
    let said = Away::at(&url, "sol_x1y2z3").fails(&words, 128 + 15);
    assert!(said.contains("nightly is to end: removed"), "{said}");
    assert_eq!(heard.try_iter().last().expect("requests").0, "release");
}

#[test]
fn a_lease_that_another_has_is_not_had_in_time() {
    let (url, _heard) = node(|_, _| {
        let busy =
            json!({"name": "nightly", "reason": "busy", "holder": "shop-7f", "retry_in_ms": 100});
        (200, busy)
    });
    let words = [&["run", "--name", "nightly", "--wait", "300ms", "--"][..], &["true"]].concat();
    assert!(Away::at(&url, "sol_x1y2z3").fails(&words, 75).contains("shop-7f holds it"));
}

/// Tokens, in the order in which commands under one name began.
fn begun(away: &Away) -> Vec<u64> {
    let text = std::fs::read_to_string(away.directory.path().join("acts")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

const ACT: [&str; 3] = ["sh", "-c", "echo $SOLOIST_TOKEN >>acts; exec sleep 300"];

#[test]
fn at_real_nodes_a_command_outlives_a_node_and_is_followed_at_once_by_the_one_that_waits() {
    let ground = super::ground();
    let (mut a, b) = (ground.start("node-a"), ground.start("node-b"));
    let away = Away::new(&[&a, &b], &ground.token("li"));
    let words = [&["run", "--name", "nightly", "--ttl", "3s"][..]].concat();
    let first = away.start(&[&words[..], &["--"], &ACT].concat());
    until("the first one works", || (begun(&away).len() == 1).then_some(()));
    let late = [&words[..], &["--wait", "100ms", "--"], &ACT].concat();
    assert!(away.fails(&late, 75).contains("holds it"));
    let _second = away.start(&[&words[..], &["--wait", "60s", "--"], &ACT].concat());
    a.kill();
    let sent = soloist::clock::boot();
    until("its lease was renewed at the other node", || {
        let whole = std::time::Duration::from_secs(4);
        let held: Value = serde_json::from_str(&away.must(&["lease", "list", "--json"])).ok()?;
        assert_eq!(held["leases"][0]["name"], "nightly", "{held}");
        (soloist::clock::boot().since(sent) > whole).then_some(())
    });
    assert_eq!(begun(&away).len(), 1, "nobody else while it lives");
    let guards = first.guards();
    first.signal(Signal::SIGKILL);
    let tokens = until("the second one works", || {
        let tokens = begun(&away);
        (tokens.len() == 2).then_some(tokens)
    });
    assert!(tokens[1] > tokens[0], "{tokens:?}");
    for guard in guards {
        until("the guard of the first is gone", || kill(guard, None).is_err().then_some(()));
    }
    drop(b);
}
