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
        (json!([1]), "no JSON of a life line"),
        (json!({"auth": 1}), "no JSON of a life line"),
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
    let refused = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "python3", "-c"])
        .arg("import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])")
        .arg(site.socket())
        .output()
        .expect("setpriv");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("PermissionError"), "{refused:?}");
    std::os::unix::fs::chown(site.socket(), None, Some(nobody::UID)).expect("root may");
    let mut program = Program::of(nobody::UID);
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
