//! What a user and a job notice while strangers attack one node.
//!
//! `cargo bench --features full --bench flood [-- --beside OLD]`
//!
//! Against a real node with an embedded store: 600 bodies of `POST /login` that never come to their end, 1,000 connections that
//! say nothing, 50 readers that ask for pages and never read, 400 wrong passwords at once; each by itself and then all together.
//! Then 600 connections that begin no handshake, at a node with TLS of its own. Meanwhile somebody who is signed in loads the dashboard
//! again and again, each time by a new connection, and the script of a job is killed, which the node must start again. Printed are
//! milliseconds, and what the node's memory came to. `--beside` measures another program first.

#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest of it")]
mod support;

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use soloist::clock;
use support::node::{Ground, Node};

const JOBS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"1000000\"]\nmin_uptime = \"0s\"\nbackoff = { first = \"1ms\", max = \"1ms\" }\n";
/// For how long each attack is looked at.
const LOOK: Duration = Duration::from_secs(12);
/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    println!(
        "{:<10} {:<34} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9}",
        "program", "attack", "p50", "p99", "max", "failed", "restart", "RSS MiB"
    );
    let beside = words.iter().position(|word| word == "--beside");
    if let Some(old) = beside.and_then(|at| words.get(at + 1)) {
        measure("old", Some(PathBuf::from(old)));
    }
    measure("today", None);
}

fn measure(name: &str, program: Option<PathBuf>) {
    for attack in ["none", "bodies", "idle", "readers", "passwords", "all", "tls", "handshakes"] {
        let tls = matches!(attack, "tls" | "handshakes");
        let ground =
            Ground::new("sqlite:soloist.db", &format!("{}{JOBS}", if tls { TLS } else { "" }));
        if tls {
            certify(&ground);
        }
        let ground = match &program {
            Some(program) => ground.with_program(program),
            None => ground,
        };
        ground.add_user("li", "admin");
        let node = ground.start("node-a");
        ground.must(&["on", "outbound", "--user", "li"]);
        let token = ground.token("li");
        let (_, address) = node.url.split_once("://").expect("a URL");
        let user = Person { address: address.to_owned(), token, tls };
        user.script(None);
        let over = Arc::new(AtomicBool::new(false));
        let attackers = attackers(attack, &user.address, &over);
        let (times, failed, restart) = user.live_on();
        let memory = resident(&node);
        over.store(true, Ordering::Release);
        attackers.into_iter().for_each(|attacker| drop(attacker.join()));
        let at = |share: usize| {
            let nth = (times.len() * share / 100).min(times.len().saturating_sub(1));
            times.get(nth).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        println!(
            "{name:<10} {:<34} {:>8.1} {:>8.1} {:>8.1} {failed:>7} {:>9} {memory:>9}",
            words_of(attack),
            at(50),
            at(99),
            at(100),
            restart.map_or("never".to_owned(), |took| format!("{:.0}", took.as_secs_f64() * 1e3)),
        );
    }
}

fn words_of(attack: &str) -> &'static str {
    match attack {
        "bodies" => "600 bodies without an end",
        "idle" => "1,000 connections that say nothing",
        "readers" => "50 readers that never read",
        "passwords" => "400 wrong passwords at once",
        "tls" => "none, with TLS",
        "handshakes" => "600 that begin no handshake",
        "all" => "all of these together",
        _ => "none",
    }
}

fn attackers(attack: &str, address: &str, over: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<()>> {
    let kinds: &[(&str, usize)] = &[
        ("bodies", 600),
        ("idle", 1_000),
        ("readers", 50),
        ("passwords", 400),
        ("handshakes", 600),
    ];
    let chosen = kinds.iter().filter(|(kind, _)| match attack {
        "all" => *kind != "handshakes",
        one => one == *kind,
    });
    chosen
        .flat_map(|&(kind, number)| (0..number).map(move |nth| (kind, nth)))
        .map(|(kind, nth)| {
            let (address, over) = (address.to_owned(), Arc::clone(over));
            let again = move || {
                while !over.load(Ordering::Acquire) {
                    if attacked(kind, nth, &address, &over).is_none() {
                        // Refused: come again, as an attacker would.
                        thread::sleep(Duration::from_millis(50));
                    }
                }
            };
            thread::Builder::new().stack_size(64 * 1024).spawn(again).expect("a thread")
        })
        .collect()
}

/// One connection of an attacker, until it is closed or all is over.
fn attacked(kind: &str, nth: usize, address: &str, over: &AtomicBool) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    let form = "content-type: application/x-www-form-urlencoded";
    let head = |length: usize| {
        format!(
            "POST /login HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n{form}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    match kind {
        "bodies" => stream.write_all(format!("{}name=l", head(10_000)).as_bytes()).ok()?,
        "readers" => {
            let page = format!("GET /login HTTP/1.1\r\nhost: {address}\r\n\r\n");
            stream.write_all(page.repeat(200).as_bytes()).ok()?;
        }
        "passwords" => {
            let body = format!("name=li&password=wrong-{nth}");
            stream.write_all(format!("{}{body}", head(body.len())).as_bytes()).ok()?;
        }
        _ => {}
    }
    let mut answer = [0; 4_096];
    while !over.load(Ordering::Acquire) {
        if kind == "readers" {
            thread::sleep(Duration::from_millis(200));
            // Does it still stand?
            stream.write_all(b" ").ok()?;
            continue;
        }
        match stream.read(&mut answer) {
            Ok(0) => return None,
            Ok(_) if kind == "passwords" => return Some(()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if kind == "bodies" && stream.write_all(b"i").is_err() {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
    Some(())
}

const TLS: &str = "tls = { cert = \"cert.pem\", key = \"key.pem\" }\n";

/// A certificate for this machine, with its key.
fn certify(ground: &Ground) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(ground.path(""))
        .output()
        .expect("openssl starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let ours = Permissions::from_mode(0o600);
    std::fs::set_permissions(ground.path("key.pem"), ours).expect("its mode");
}

/// Who is signed in, by a token.
struct Person {
    address: String,
    token: String,
    tls: bool,
}

impl Person {
    fn get(&self, path: &str) -> Option<String> {
        if self.tls {
            return self.get_by_tls(path);
        }
        let target = self.address.parse().ok()?;
        let mut stream = TcpStream::connect_timeout(&target, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let Self { address, token, .. } = self;
        let ask = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// By `curl`, which adds some milliseconds of its own.
    fn get_by_tls(&self, path: &str) -> Option<String> {
        let Self { address, token, .. } = self;
        let curl = Command::new("curl")
            .args(["-s", "-k", "-i", "--max-time", &PATIENCE.as_secs().to_string()])
            .args(["-H", &format!("authorization: Bearer {token}")])
            .arg(format!("https://{address}{path}"))
            .output()
            .ok()?;
        let answer = String::from_utf8(curl.stdout).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// Waits for the script to run, as another process than `before`; its number.
    fn script(&self, before: Option<i64>) -> Option<i64> {
        let begun = clock::boot();
        while clock::boot().since(begun) < LOOK {
            let answer = self.get("/api/v1/jobs/outbound");
            let body = answer.as_deref().and_then(|text| text.split_once("\r\n\r\n"));
            let job: Option<Value> = body.and_then(|(_, body)| serde_json::from_str(body).ok());
            let pid = job.and_then(|job| job["run"]["pid"].as_i64());
            if pid.is_some() && pid != before {
                return pid;
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Loads the dashboard for as long as is looked, and kills the script in the middle: the times sorted, how many loads
    /// failed, and how long the script's restart took.
    fn live_on(&self) -> (Vec<Duration>, usize, Option<Duration>) {
        let (mut times, mut failed, mut restart) = (Vec::new(), 0, None);
        let begun = clock::boot();
        let mut killed = false;
        while clock::boot().since(begun) < LOOK {
            let asked = clock::boot();
            match self.get("/") {
                Some(_) => times.push(clock::boot().since(asked)),
                None => failed += 1,
            }
            if !killed && clock::boot().since(begun) > LOOK / 3 {
                killed = true;
                if let Some(pid) = self.script(None) {
                    let at = clock::boot();
                    kill(Pid::from_raw(i32::try_from(pid).expect("a number")), Signal::SIGKILL)
                        .ok();
                    restart = self.script(Some(pid)).map(|_| clock::boot().since(at));
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        times.sort();
        (times, failed, restart)
    }
}

/// What the node has in memory now, in MiB.
fn resident(node: &Node) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}
