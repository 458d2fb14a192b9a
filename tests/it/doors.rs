//! A real node and strangers: slow ones, silent ones, those who guess; and its own TLS.

use std::fs::{File, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Socket, Type};
use soloist::clock;

use crate::support::api::Api;
use crate::support::machine::{judged, within};
use crate::support::nobody;
use crate::support::node::{Ground, SOLOIST};
use crate::support::wait::{until, until_async};

judged! {
    strangers_who_begin_no_handshake_hold_up_no_new_connection_of_others
    strangers_whose_handshakes_never_end_hold_up_no_new_connection_of_others
    strangers_who_send_no_request_hold_up_no_new_connection_of_others_without_tls
}

/// A job that runs until it is killed.
const JOB: &str = "[[job]]\nname = \"ship\"\ncommand = [\"sh\", \"-c\", \"ulimit -Sn > limit; exec sleep 1000\"]\nrepeat = \"10ms\"\nmin_uptime = \"0s\"\nbackoff = { first = \"10ms\", max = \"10ms\" }\n";

/// `soloist` under limits of the shell.
fn limited(ground: &Ground, limits: &str) -> PathBuf {
    let program = ground.path("limited");
    let text = format!("#!/bin/sh\nulimit {limits}\nexec {SOLOIST} \"$@\"\n");
    std::fs::write(&program, text).expect("a program");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("executable");
    program
}

/// How many files a process has open.
fn open_files(pid: Pid) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("our own child").count()
}

/// The inodes of the accepted sockets whose peers are these.
fn sockets_towards(peers: &[TcpStream]) -> Vec<String> {
    // Both ends: other connections of this machine may have the port of one of them.
    let port = |address: std::io::Result<SocketAddr>| address.expect("an address").port();
    let ends: Vec<[String; 2]> = peers
        .iter()
        .map(|peer| [port(peer.peer_addr()), port(peer.local_addr())])
        .map(|ends| ends.map(|port| format!(":{port:04X}")))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // A socket that nobody has accepted yet has the inode 0.
    lines
        .filter(|line| {
            let here =
                |[own, theirs]: &[String; 2]| line[1].ends_with(own) && line[2].ends_with(theirs);
            ends.iter().any(here) && line[9] != "0"
        })
        .map(|line| line[9].to_owned())
        .collect()
}

/// How many of these sockets a process has open.
fn open_sockets(pid: Pid, inodes: &[String]) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("our own child");
    let links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let names: Vec<PathBuf> =
        inodes.iter().map(|inode| format!("socket:[{inode}]").into()).collect();
    links.filter(|link| names.contains(link)).count()
}

/// A line of `/proc/PID/status`, in KiB.
fn memory(pid: Pid, line: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("our own child");
    let found = status.lines().find_map(|one| one.strip_prefix(line));
    let number = found.and_then(|rest| rest.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok());
    number.unwrap_or_else(|| panic!("{status}"))
}

fn address(url: &str) -> SocketAddr {
    url.rsplit_once('/').expect("a URL").1.parse().expect("an address")
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_hold_connections_keep_no_job_from_restarting_and_no_user_from_answers() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let program = limited(&ground, "-n 256");
    let ground = ground.with_program(&program);
    let node = ground.start("node-a");
    let api = node.api(&token);
    api.switch("ship", true).await;
    let pid_of = async |api: &Api| {
        let job = api.get("/api/v1/jobs/ship").await;
        job["run"]["pid"].as_i64().filter(|_| job["state"] == "running")
    };
    let first = until_async("it runs", async || pid_of(&api).await).await;
    let head = b"POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 9000\r\n\r\nname=";
    let slow: Vec<TcpStream> = (0..300)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(address(&node.url)).ok()?;
            stream.write_all(head).ok()?;
            Some(stream)
        })
        .collect();
    assert!(slow.len() > 250, "{} strangers", slow.len());
    // A new connection of a user, and another guard.
    let second = Api::new(&node.url, &token);
    assert_eq!(pid_of(&second).await, Some(first));
    kill(Pid::from_raw(i32::try_from(first).expect("a pid")), Signal::SIGKILL).expect("the script");
    until_async("it runs again", async || pid_of(&second).await.filter(|pid| *pid != first)).await;
    assert!(open_files(node.pid()) < 256);
    drop(slow);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_raises_its_own_limit_of_files_and_a_script_keeps_the_old_one() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let program = limited(&ground, "-Sn 500");
    let ground = ground.with_program(&program);
    let node = ground.start("node-a");
    node.api(&token).switch("ship", true).await;
    let script = until("the script says it", || {
        let said = std::fs::read_to_string(ground.path("limit")).ok()?;
        said.trim().parse::<u64>().ok()
    });
    assert_eq!(script, 500);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", node.pid())).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (soft, hard) = (numbers.next().expect("soft"), numbers.next().expect("hard"));
    assert_eq!(soft, hard.min(65_536), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_who_never_read_are_let_go() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let ask = format!(
        "GET /api/v1/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    // More than the kernel's buffers take.
    let all = ask.repeat(300);
    let address = address(&node.url);
    let readers: Vec<TcpStream> = (0..50)
        .map(|_| {
            let stream = TcpStream::connect(address).expect("a connection");
            stream.set_nonblocking(true).expect("non-blocking");
            (&stream).write_all(all.as_bytes()).ok();
            stream
        })
        .collect();
    let sockets = until("they are connected", || {
        Some(sockets_towards(&readers)).filter(|all| all.len() == readers.len())
    });
    let held = || open_sockets(node.pid(), &sockets);
    until("the node has accepted them", || (held() == sockets.len()).then_some(()));
    until("their connections are over", || (held() == 0).then_some(()));
    drop(readers);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_do_not_fill_the_memory() {
    let ground = Ground::new("sqlite:soloist.db", "trusted_proxies = [\"127.0.0.1\"]\n");
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let client = crate::support::http::client().build().expect("a client");
    let guess = async |nth: usize| {
        let body = format!("name=somebody-{nth}&password=wrong-{nth}-password");
        let request = client
            .post(format!("{}/login", node.url))
            .header("origin", &node.url)
            .header("x-forwarded-for", format!("203.0.113.{nth}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(guess(0).await, 401, "it is warm");
    let before = memory(node.pid(), "VmRSS");
    let guesses = futures_util::stream::iter((1..=24).map(guess)).buffer_unordered(8);
    let answers: Vec<u16> = guesses.collect().await;
    assert!(answers.iter().all(|status| *status == 401), "each is checked: {answers:?}");
    let peak = memory(node.pid(), "VmHWM");
    assert!(peak < before + 64 * 1_024, "{before} KiB before, {peak} KiB at most");
    until("the memory is given back", || {
        (memory(node.pid(), "VmRSS") < before + 20 * 1_024).then_some(())
    });
}

/// A new certificate for this machine, with its key.
pub(crate) fn certify(dir: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "new-key.pem", "-out", "new-cert.pem"])
        .current_dir(dir)
        .output()
        .expect("openssl starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let key = dir.join("new-key.pem");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("its mode");
    std::fs::rename(key, dir.join("key.pem")).expect("the key");
    std::fs::rename(dir.join("new-cert.pem"), dir.join("cert.pem")).expect("the certificate");
}

/// What openssl sees of the server.
fn hello(address: SocketAddr, args: &[&str]) -> String {
    let client = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string()])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("openssl starts");
    String::from_utf8_lossy(&client.stdout).into_owned()
}

fn certificate(address: SocketAddr) -> Option<String> {
    let seen = hello(address, &[]);
    let from = seen.find("-----BEGIN CERTIFICATE-----")?;
    let to = seen.find("-----END CERTIFICATE-----")?;
    Some(seen[from..to].to_owned())
}

fn curl(ground: &Ground, args: &[&str]) -> String {
    let curl = Command::new("curl")
        .args(["-s", "-i", "--max-time", "20", "--cacert"])
        .arg(ground.path("cert.pem"))
        .args(args)
        .output()
        .expect("curl starts");
    String::from_utf8_lossy(&curl.stdout).into_owned()
}

/// A node with its log in a file, ended with the test.
pub(crate) struct Secure {
    child: Child,
    log: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Secure {
    pub(crate) fn start(ground: &Ground) -> Self {
        let log = ground.path("log");
        let child = ground
            .command(&["serve", "--node", "node-a"])
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("soloist starts");
        let address = until("it listens", || {
            let text = std::fs::read_to_string(&log).ok()?;
            let rest = text.split_once("listening on https://")?.1;
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))?;
            rest[..end].parse().ok()
        });
        Self { child, log, address }
    }

    fn until_said(&self, what: &str) {
        until(&format!("the log says {what:?}"), || {
            let mut text = String::new();
            File::open(&self.log).ok()?.read_to_string(&mut text).ok()?;
            text.contains(what).then_some(())
        });
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) const TLS: &str = "tls = { cert = \"cert.pem\", key = \"key.pem\" }\n";

/// Connections from that address of this machine, which say `first` and nothing more.
fn strangers(at: SocketAddr, from: [u8; 4], count: usize, first: &[u8]) -> Vec<TcpStream> {
    let connected = |_| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
        socket.bind(&SocketAddr::from((from, 0)).into()).ok()?;
        socket.connect(&at.into()).ok()?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(first).ok()?;
        Some(stream)
    };
    (0..count).filter_map(connected).collect()
}

/// How long the slowest of some new connections of another address waits for its answer.
fn slowest(ground: &Ground, url: &str) -> Duration {
    let look = |_| {
        let begun = clock::boot();
        let answer = curl(ground, &["--interface", "127.0.0.3", &format!("{url}/healthz")]);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
        clock::boot().since(begun)
    };
    (0..8).map(look).max().unwrap_or_default()
}

/// So many strangers of one address, under these limits.
const CROWDS: [(&str, usize); 3] = [
    ("", 600),
    ("limits = { max_connections = 200, connections_per_address = 40 }\n", 300),
    // From this machine any number is let in otherwise: it may be a proxy.
    ("limits = { max_connections = 200 }\n", 300),
];
/// A new connection takes some milliseconds. Before handshakes were counted it took until those of the strangers were given up.
const AT_ONCE: Duration = Duration::from_millis(1_500);

async fn strangers_who_begin_no_handshake_hold_up_no_new_connection_of_others() {
    // Nothing; the head of a record of 512 bytes, of which no more come.
    for first in [&b""[..], &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]] {
        for (limits, count) in CROWDS {
            let ground = Ground::new("sqlite:soloist.db", &format!("{limits}{TLS}"));
            certify(&ground.path(""));
            let node = Secure::start(&ground);
            let url = format!("https://{}", node.address);
            slowest(&ground, &url);
            let crowd = strangers(node.address, [127, 0, 0, 2], count, first);
            assert!(crowd.len() * 10 > count * 9, "{} strangers", crowd.len());
            within(slowest(&ground, &url), AT_ONCE, &format!("{count} strangers, {limits:?}"));
        }
    }
}

/// A byte now and then is no handshake either.
async fn strangers_whose_handshakes_never_end_hold_up_no_new_connection_of_others() {
    let ground = Ground::new("sqlite:soloist.db", TLS);
    certify(&ground.path(""));
    let node = Secure::start(&ground);
    let url = format!("https://{}", node.address);
    slowest(&ground, &url);
    let over = Arc::new(AtomicBool::new(false));
    let crowd = strangers(node.address, [127, 0, 0, 2], 600, &[0x16, 3, 1, 2, 0]);
    let (all, ended) = (crowd.len(), Arc::clone(&over));
    let dribbling = thread::spawn(move || {
        let mut crowd = crowd;
        while !ended.load(Ordering::Relaxed) && !crowd.is_empty() {
            crowd.retain_mut(|stream| stream.write_all(&[1]).is_ok());
            thread::sleep(Duration::from_millis(100));
        }
        crowd.len()
    });
    within(slowest(&ground, &url), AT_ONCE, "a byte at a time");
    // And they are given up in time, however often a byte comes.
    until("every handshake is given up", || dribbling.is_finished().then_some(()));
    over.store(true, Ordering::Relaxed);
    assert_eq!(dribbling.join().expect("it ended"), 0, "of {all}");
}

async fn strangers_who_send_no_request_hold_up_no_new_connection_of_others_without_tls() {
    for (limits, count) in &CROWDS[..2] {
        let ground = Ground::new("sqlite:soloist.db", limits);
        let node = ground.start("node-a");
        slowest(&ground, &node.url);
        let crowd = strangers(address(&node.url), [127, 0, 0, 2], *count, b"GET /");
        within(slowest(&ground, &node.url), AT_ONCE, &format!("{count} strangers, {limits:?}"));
        drop(crowd);
    }
}

#[test]
fn a_node_serves_tls_itself_and_takes_a_new_certificate_while_it_runs() {
    let ground = Ground::new("sqlite:soloist.db", TLS);
    let dir = ground.path("");
    certify(&dir);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = Secure::start(&ground);
    let url = format!("https://{}", node.address);
    let page = curl(&ground, &[&format!("{url}/login")]);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let lower = page.to_lowercase();
    assert!(lower.contains("strict-transport-security: max-age="), "{page}");
    assert!(page.contains("__Host-soloist-login=") && page.contains("Secure"), "{page}");
    let socket = curl(
        &ground,
        &[
            "--http1.1",
            "--max-time",
            "1",
            "-H",
            "Connection: Upgrade",
            "-H",
            "Upgrade: websocket",
            "-H",
            "Sec-WebSocket-Version: 13",
            "-H",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "-H",
            &format!("Authorization: Bearer {token}"),
            &format!("{url}/live"),
        ],
    );
    assert!(socket.starts_with("HTTP/1.1 101"), "{socket}");
    assert!(hello(node.address, &["-tls1_3"]).contains("TLSv1.3"));
    assert!(hello(node.address, &["-tls1_2"]).contains("TLSv1.2"));
    assert!(hello(node.address, &["-alpn", "h2,http/1.1"]).contains("ALPN protocol: http/1.1"));
    let old = hello(node.address, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
    assert!(!old.contains("BEGIN CERTIFICATE"), "{old}");

    let first = certificate(node.address).expect("a certificate");
    certify(&dir);
    until("the new certificate is served", || {
        certificate(node.address).filter(|now| *now != first)
    });
    let second = certificate(node.address).expect("a certificate");
    std::fs::write(ground.path("cert.pem"), "-----BEGIN NOTHING-----").expect("written");
    node.until_said("the new certificate is not taken");
    assert_eq!(certificate(node.address).as_ref(), Some(&second), "the one before goes on");
    certify(&dir);
    until("a good one is taken again", || certificate(node.address).filter(|now| *now != second));
}

#[test]
fn a_certificate_as_kubernetes_makes_it_is_served_and_followed_when_its_link_is_swapped() {
    let tls = "tls = { cert = \"vol/cert.pem\", key = \"vol/key.pem\" }\n";
    let Some(ground) = nobody::ground("sqlite:soloist.db", tls) else { return };
    let made = tempfile::tempdir().expect("a directory");
    let publish = |version: &str| {
        certify(made.path());
        let text = |name: &str| std::fs::read_to_string(made.path().join(name)).expect("PEM");
        let (cert, key) = (text("cert.pem"), text("key.pem"));
        nobody::publish(&ground.path("vol"), version, &[("cert.pem", &cert), ("key.pem", &key)]);
    };
    publish("1");
    let checked = ground.run(&["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let node = Secure::start(&ground);
    let first = certificate(node.address).expect("a certificate");
    publish("2");
    until("the new certificate is served", || {
        certificate(node.address).filter(|now| *now != first)
    });
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_before_the_start() {
    let ground = Ground::new("sqlite:soloist.db", TLS);
    let dir = ground.path("");
    let refused = |why: &[&str]| {
        let checked = ground.run(&["check"]);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned()
            + &String::from_utf8_lossy(&checked.stdout);
        assert_eq!(checked.status.code(), Some(2), "{said}");
        why.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    };
    refused(&["soloist.toml:3", "tls", "cert.pem cannot be read"]);
    certify(&dir);
    assert!(ground.run(&["check"]).status.success());
    let key = ground.path("key.pem");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("its mode");
    refused(&["others may read", "chmod 600"]);
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("its mode");
    let cert = std::fs::read(ground.path("cert.pem")).expect("a certificate");
    certify(&dir);
    std::fs::write(ground.path("cert.pem"), cert).expect("the certificate of the other key");
    refused(&["does not belong to the certificate", "made together"]);
}
