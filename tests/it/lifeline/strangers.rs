//! Strangers at the socket: nothing happens to others, nothing stays open, and the answer says why.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::unistd::Uid;
use serde_json::{Value, json};

use super::program::{Program, SOCKET, Site, span};
use crate::support::nobody;
use crate::support::node::Ground;
use crate::support::wait::{until, until_async};

/// How many connections the watcher has open.
fn open(site: &Site) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", site.watcher())).expect("its files");
    let links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

fn detail(said: &Value) -> &str {
    said["detail"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_no_valid_word_is_told_why_and_let_go() {
    let site = Site::new("");
    let (mut held, ..) = site.worker("ship").await;
    let before = open(&site);
    let big = "x".repeat(16 * 1024);
    for (first, why) in [
        (json!({"auth": "sol_00000000000000000000000000000000"}), "no valid API token"),
        (json!({"auth": ""}), "no valid API token"),
        (json!({"under": "ship"}), "say {\"auth\":TOKEN} first"),
        (json!({"end": "ship"}), "say {\"auth\":TOKEN} first"),
        (json!({}), "say {\"auth\":TOKEN} first"),
        (json!([1]), "no JSON object"),
        (json!({"auth": 1}), "not understood"),
        (json!({"auth": "x".repeat(1_000)}), "no API token"),
        (json!({"auth": big}), "at most 16384 bytes"),
    ] {
        let mut stranger = Program::start();
        let line = stranger.connect(&site.socket());
        let said = stranger.say(line, &first);
        assert_eq!(said["ok"], false, "{first}: {said}");
        assert!(detail(&said).contains(why), "{first}: {said}");
        assert_eq!(stranger.tell(&json!({"line": line, "read": true})), "end", "{why}");
    }
    // Ten megabytes without a line end, and bytes that are no text.
    for (raw, times, why) in [("y", 10_000_000, "at most 16384 bytes"), ("\u{1}\n", 1, "no JSON")] {
        let mut stranger = Program::start();
        let line = stranger.connect(&site.socket());
        let said = stranger.tell(&json!({"line": line, "raw": raw, "times": times}));
        assert!(said == "end" || detail(&said).contains(why), "{said}");
    }
    until("nothing stays open", || (open(&site) <= before).then_some(()));
    assert!(held.lives() && site.held("ship").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_line_is_let_go_and_a_thousand_connections_keep_nobody_out() {
    let site = Site::new("");
    let (mut held, ..) = site.worker("ship").await;
    let before = open(&site);
    let mut half = UnixStream::connect(site.socket()).expect("it listens");
    half.write_all(b"{\"auth\":").expect("taken");
    let mut many: Vec<UnixStream> = Vec::new();
    for _ in 0..1_000 {
        // Those of one process beyond a few are let go; the last ones are there.
        if let Ok(line) = UnixStream::connect(site.socket()) {
            many.push(line);
        }
    }
    let (_another, _) = site.program();
    assert!(open(&site) < 100, "{}", open(&site));
    let mut said = String::new();
    let mut half = BufReader::new(half);
    half.get_ref().set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    half.read_line(&mut said).ok();
    assert!(said.is_empty() || said.contains("nothing was said for 5 s"), "{said}");
    let mut rest = Vec::new();
    half.read_to_end(&mut rest).ok();
    drop(many);
    drop(_another);
    until("nothing stays open", || (open(&site) <= before).then_some(()));
    assert!(held.lives() && site.held("ship").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_another_is_out_of_reach() {
    let site = Site::new("");
    let (mut held, _, grant, said) = site.worker("ship").await;
    let (mut stranger, line) = site.program();
    let now = said["now_ns"].as_u64().expect("a time");
    let under = |name: &str, secret: &Value| json!({"under": name, "secret": secret, "until_ns": now + 5_000_000_000});
    // With its true secret, which the first process named; under another name; with one that was made up.
    let made_up = grant["secret"].as_str().expect("a secret").replace(['a', '1'], "0");
    for (name, secret, why) in [
        ("ship", &grant["secret"], "another process works under this lease"),
        ("pack", &grant["secret"], "another process works under this lease"),
        ("ship", &json!(made_up), "not the secret of"),
        ("ship", &json!("nonsense"), "not the secret of a lease"),
        ("", &json!(""), "not the secret of a lease"),
    ] {
        let said = stranger.say(line, &under(name, secret));
        assert_eq!(said["ok"], false, "{name} {secret}: {said}");
        assert!(detail(&said).contains(why), "{name} {secret}: {said}");
    }
    // What it ends is its own, whatever it calls it.
    assert_eq!(stranger.say(line, &json!({"end": "ship"}))["ok"], true);
    stranger.kill();
    assert!(held.lives() && site.held("ship").await.is_some());
    held.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_speaks_on_its_parents_line_is_refused() {
    let site = Site::new("");
    let (mut program, line, grant, said) = site.worker("ship").await;
    let now = said["now_ns"].as_u64().expect("a time");
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    for told in [json!({"end": "ship"}), under.clone(), json!({"auth": site.token})] {
        let said = program.tell(&json!({"line": line, "child": told}));
        assert_eq!(said["ok"], false, "{told}: {said}");
        assert!(detail(&said).contains("after a fork, connect anew"), "{said}");
    }
    // The parent is as it was.
    assert_eq!(program.say(line, &under)["ok"], true);
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_socket_of_another_cluster_nothing_is_known() {
    let (here, there) = (Site::new(""), Site::new(""));
    let mut program = Program::start();
    let line = program.connect(&there.socket());
    let said = program.say(line, &json!({"auth": here.token}));
    assert!(detail(&said).contains("in the cluster of node-a"), "{said}");
    // With a token of that cluster, and a lease of this one.
    let (mut program, line) = there.program();
    let grant = here.acquire("ship", "one").await;
    let now = program.say(line, &json!({"end": "x"}))["now_ns"].as_u64().expect("a time");
    let said = program.say(
        line,
        &json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)}),
    );
    assert!(detail(&said).contains("not the secret of its holder in the cluster of"), "{said}");
    program.kill();
    assert!(here.held("ship").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_watched_as_far_as_the_kernel_allows() {
    let config = format!("lifeline = {SOCKET:?}\n");
    // A node of nobody, and a program of root: it is seen, and cannot be killed.
    let Some(ground) = nobody::ground("sqlite:soloist.db", &config) else { return };
    let site = Site::of(ground);
    let file = std::fs::metadata(site.socket()).expect("the file");
    assert_eq!((file.uid(), file.permissions().mode() & 0o777), (nobody::UID, 0o660));
    let mut program = Program::start();
    let line = program.connect(&site.socket());
    let said = program.say(line, &json!({"auth": site.token}));
    assert_eq!((&said["kill"], &said["release"]), (&false.into(), &true.into()), "{said}");
    assert!(said["why"].as_str().expect("why").contains("give the node CAP_KILL"), "{said}");
    let now = said["now_ns"].as_u64().expect("a time");
    let grant = site.acquire("ship", "one").await;
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    let said = program.say(line, &under);
    assert_eq!((&said["kill_ns"], &said["release"]), (&json!(null), &true.into()), "{said}");
    program.kill();
    site.until_free("ship").await;

    // A node of root, and a program of nobody: it may not connect unless the file says so; then it is watched wholly.
    assert!(Uid::effective().is_root());
    let site = Site::new("");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(site.ground.path(""), open).expect("ours");
    let mut program = Program::start();
    program.tell(&json!({"become": nobody::UID}));
    assert_eq!(program.tell(&json!({"connect": site.socket()})), "refused");
    std::os::unix::fs::chown(site.socket(), None, Some(nobody::UID)).expect("root may");
    let line = program.connect(&site.socket());
    let said = program.say(line, &json!({"auth": site.token}));
    assert_eq!((&said["kill"], &said["release"]), (&true.into(), &true.into()), "{said}");
    // It is no node, whatever it says.
    let said = program.say(line, &json!({"node": "node-b"}));
    assert!(said.to_string().contains("is not that of the watcher"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_file_is_not_taken() {
    let ground = Ground::new("sqlite:soloist.db", &format!("lifeline = {SOCKET:?}\n"));
    ground.add_user("ada", "admin");
    std::fs::write(ground.path(SOCKET), "somebody's notes").expect("written");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("ada"));
    until_async("the node works without a life line", async || {
        let nodes = api.get("/api/v1/nodes").await;
        nodes["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()).then_some(())
    })
    .await;
    assert_eq!(std::fs::read_to_string(ground.path(SOCKET)).expect("kept"), "somebody's notes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_understood_otherwise_is_said_and_costs_no_watch() {
    let site = Site::new("");
    let (mut program, line, grant, said) = site.worker("ship").await;
    let long = "x".repeat(300);
    for told in [
        json!({"end": 5}),
        json!({"under": "ship", "secret": grant["secret"], "until_ns": -1}),
        json!({"under": "ship", "secret": grant["secret"], "until_ns": 1.5}),
        json!({"under": "ship", "secret": grant["secret"], "until_ns": "5"}),
        json!({"under": "ship", "secret": long, "until_ns": 5}),
        json!({"under": long, "secret": grant["secret"], "until_ns": 5}),
        json!({}),
    ] {
        let said = program.say(line, &told);
        assert_eq!(said["ok"], false, "{told}: {said}");
        assert!(!detail(&said).is_empty(), "{said}");
    }
    let until = said["now_ns"].as_u64().expect("a time") + span(&grant);
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": until});
    assert_eq!(program.say(line, &under)["release"], true);
    // Within what is set aside for the kill it is refused, and nobody is killed for it.
    let next = site.acquire("pack", "one").await;
    let now = program.say(line, &json!({"end": "x"}))["now_ns"].as_u64().expect("a time");
    let late = json!({"under": "pack", "secret": next["secret"], "until_ns": now + 100_000_000});
    assert!(detail(&program.say(line, &late)).contains("has passed"));
    assert!(program.lives());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_all_and_ends_its_half_is_answered() {
    let site = Site::new("");
    let mut line = UnixStream::connect(site.socket()).expect("it listens");
    line.write_all(
        format!("{}\n{}\n", json!({"auth": site.token}), json!({"end": "x"})).as_bytes(),
    )
    .expect("taken");
    line.shutdown(std::net::Shutdown::Write).expect("its half");
    line.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    let mut said = String::new();
    line.read_to_string(&mut said).expect("answers, and the end");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_has_named_is_nobodys() {
    let site = Site::new("");
    let (mut program, _, grant, said) = site.worker("ship").await;
    let (mut other, line) = site.program();
    site.node.signal(nix::sys::signal::Signal::SIGSTOP);
    program.kill();
    let until = said["now_ns"].as_u64().expect("a time") + span(&grant);
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": until});
    for _ in 0..3 {
        let said = other.say(line, &under);
        assert!(detail(&said).contains("another process works under this lease"), "{said}");
    }
    site.node.signal(nix::sys::signal::Signal::SIGCONT);
    site.until_free("ship").await;
    assert_eq!(other.say(line, &under)["ok"], false, "nor afterwards");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_given_to_junk_gives_the_true_lease_back_all_the_same() {
    let site = Site::new("");
    let (mut program, line, grant, said) = site.worker("ship").await;
    site.node.signal(nix::sys::signal::Signal::SIGSTOP);
    let until = said["now_ns"].as_u64().expect("a time") + span(&grant);
    let junk = "7.10000.p.00000000000000000000000000000000";
    let under = |secret: &Value| json!({"under": "ship", "secret": secret, "until_ns": until});
    assert_eq!(program.say(line, &under(&json!(junk)))["ok"], true);
    let mut other = Program::start();
    let its = other.connect(&site.socket());
    other.say(its, &json!({"auth": site.token}));
    assert!(detail(&other.say(its, &under(&grant["secret"]))).contains("another process"));
    program.kill();
    site.node.signal(nix::sys::signal::Signal::SIGCONT);
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_flood_of_connections_nor_of_lines_delays_a_kill() {
    let jobs = "[[job]]\nname = \"outbound\"\nrunner = \"external\"\nlease_ttl = \"3s\"\n";
    let site = Site::new(jobs);
    site.api.switch("outbound", true).await;
    let over = std::sync::atomic::AtomicBool::new(false);
    let socket = site.socket();
    let goes_on = || !over.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        for nth in 0..4 {
            let (socket, goes_on) = (&socket, &goes_on);
            scope.spawn(move || {
                let line = "{\"under\":\"ship\",\"secret\":\"x\",\"until_ns\":1}\n".repeat(1_000);
                while goes_on() {
                    let Ok(mut stranger) = UnixStream::connect(socket) else { continue };
                    if nth % 2 == 0 {
                        stranger.set_nonblocking(true).ok();
                        stranger.write_all(line.as_bytes()).ok();
                    }
                }
            });
        }
        let runtime = tokio::runtime::Handle::current();
        let (mut program, _, _, said) =
            tokio::task::block_in_place(|| runtime.block_on(site.worker("outbound")));
        program.signal(nix::sys::signal::Signal::SIGSTOP);
        program.wait();
        let late =
            soloist::clock::boot().0.saturating_sub(said["kill_ns"].as_u64().expect("an instant"));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        // Half a second and more is set aside for it.
        assert!(late < 500_000_000, "killed {late} ns late");
    });
}
