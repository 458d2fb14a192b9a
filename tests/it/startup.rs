//! What keeps a node from starting: one clear message, the right exit code, and nothing left behind.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use reqwest::{Method, StatusCode};

use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until_async};

/// A node whose words the test reads itself.
fn spawned(ground: &Ground, name: &str, stdout: Stdio, stderr: Stdio) -> Child {
    let mut command = ground.command(&["serve", "--listen", "127.0.0.1:0", "--node", name]);
    command.stdout(stdout).stderr(stderr).spawn().expect("soloist starts")
}

/// Runs `soloist ARGS`, which must fail with `code`; gives what it said.
fn refusal(ground: &Ground, args: &[&str], code: i32) -> String {
    let output = ground.run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "nothing but errors: {:?}", output.stdout);
    assert!(!said.contains("panicked"), "{said}");
    said
}

const JOB: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"60\"]\n";

#[test]
fn every_mistake_in_a_configuration_is_reported_at_once() {
    let jobs = "colour = \"red\"\nlease_ttl = \"600ms\"\n\
        [[job]]\nname = \"outbound\"\ncommand = [\"no-such-command-here\"]\n\
        [[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"1\"]\n\
        [[job]]\nname = \"Inbound\"\ncommand = \"sleep 1\"\ncolor = 1\n";
    let ground = Ground::new("sqlite:soloist.db", jobs);
    for args in [&["check"][..], &["serve"], &[]] {
        let said = refusal(&ground, args, 2);
        for part in [
            "soloist.toml",
            "colour",
            "600ms",
            "no-such-command-here",
            "outbound",
            "Inbound",
            "command",
            "color",
        ] {
            assert!(said.contains(part), "{args:?} does not name {part}:\n{said}");
        }
    }
    assert!(!ground.path("soloist.db").exists(), "nothing was started");
}

#[test]
fn an_unreadable_configuration_is_named() {
    let ground = Ground::new("sqlite:soloist.db", "");
    std::fs::remove_file(ground.path("soloist.toml")).expect("removed");
    assert!(refusal(&ground, &["check"], 2).contains("soloist.toml"));
    std::fs::write(ground.path("soloist.toml"), "store = \"sqlite:x.db\"\nlisten = [[[\n")
        .expect("written");
    let said = refusal(&ground, &["serve"], 2);
    assert!(said.contains("soloist.toml") && said.contains('2'), "the line is named: {said}");
}

#[test]
fn stores_that_cannot_be_are_refused() {
    for url in [
        "redis+sentinel://h:1",
        "redis+cluster://h:1/3",
        "postgres://h",
        "mysql://h",
        "oracle://h/db",
    ] {
        let ground = Ground::new(url, JOB);
        assert!(refusal(&ground, &["serve"], 2).contains("use "), "{url}: says what to use");
    }
}

#[test]
fn an_occupied_port_is_named_with_a_remedy() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let said = refusal(&ground, &["serve", "--listen", &address], 1);
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
}

/// What `path` of a node answers to a stranger.
async fn look(node: &Node, path: &str) -> (StatusCode, String) {
    let answer =
        crate::support::http::get(format!("{}{path}", node.url)).await.expect("the node answers");
    (answer.status(), answer.text().await.expect("a whole answer"))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_while_a_node_begins_waits_and_finds_it_ready() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("its address").to_string();
    drop(free);
    let ready = format!("http://{address}/readyz");
    let first = tokio::spawn(tokio::time::timeout(PATIENCE, async move {
        loop {
            if let Ok(answer) = crate::support::http::get(&ready).await {
                return answer;
            }
        }
    }));
    let _node = tokio::task::block_in_place(|| ground.start_at("node-a", &address));
    let answer = first.await.expect("it ran").expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "{:?}", answer.text().await);
}

#[test]
fn a_node_that_begins_raises_no_alarm_about_a_store_that_is_there() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let mut child = spawned(&ground, "node-a", Stdio::null(), Stdio::piped());
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut said: Vec<String> = Vec::new();
    while !said.last().is_some_and(|line| line.contains("the store is open")) {
        said.push(lines.next().expect("it goes on").expect("a line"));
    }
    child.kill().expect("our own child");
    child.wait().expect("and waited for");
    let alarm = said.iter().find(|line| line.contains("stands still"));
    assert_eq!(alarm, None, "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_store_is_down_serves_what_it_can_and_says_why_without_a_password() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("its address").to_string();
    drop(free);
    for url in [
        format!("redis://:sesame@{address}/0"),
        format!("redis+sentinel://:sesame@{address}/jobs?sentinel_password=sesame"),
        format!("redis+cluster://:sesame@{address}/"),
    ] {
        let ground = Ground::new(&url, JOB);
        let mut node = ground.start("node-a");
        assert_eq!(look(&node, "/healthz").await.0, StatusCode::OK);
        let (status, said) = look(&node, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(said.contains(&address) && !said.contains("sesame"), "{said}");
        let (status, page) = look(&node, "/login").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(page.contains("data-truth") && !page.contains(&address), "strangers: {page}");
        let metrics = look(&node, "/metrics").await.1;
        let unknown = r#"soloist_job_state{job="outbound",state="unknown"} 1"#;
        assert!(metrics.contains(unknown), "{metrics}");
        let answer = node.api("sol_none").call(Method::GET, "/api/v1/jobs", None).await;
        assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.1);
        assert_eq!(node.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_by_itself_when_its_store_comes() {
    let mut redis = RedisServer::start(&[]);
    redis.kill();
    let ground = Ground::new(&redis.url(), JOB);
    let mut child = spawned(&ground, "node-b", Stdio::piped(), Stdio::null());
    let stdout = child.stdout.take().expect("a pipe");
    let node = ground.start("node-a");
    assert_eq!(look(&node, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
    redis.restart();
    until_async("the node is ready", async || {
        (look(&node, "/readyz").await.0 == StatusCode::OK).then_some(())
    })
    .await;
    // The link to the first account comes as it would have come at the start.
    let link = BufReader::new(stdout).lines().map_while(Result::ok).find(|l| l.contains("link="));
    assert!(link.is_some(), "no link was printed");
    ground.add_user("li", "operator");
    let li = node.api(&ground.token("li"));
    let mut live = li.live().await;
    li.switch("outbound", true).await;
    live.until_state("outbound", "starting").await;
    child.kill().expect("our own child");
    child.wait().expect("and waited for");
}

#[test]
fn what_time_does_not_mend_ends_a_start_that_waited() {
    let options = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"];
    let mut redis = RedisServer::start(&options);
    redis.kill();
    let ground = Ground::new(&redis.url(), JOB);
    let mut node = ground.start("node-a");
    redis.restart();
    assert_eq!(node.wait(), Some(2), "it would lose leases");
}

#[test]
fn a_wrong_password_is_not_waited_for() {
    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["CONFIG", "SET", "requirepass", "sesame"]);
    let ground = Ground::new(&redis.url().replace("redis://", "redis://:wrong@"), JOB);
    let said = refusal(&ground, &["serve"], 1);
    assert!(said.contains("password") && !said.contains("wrong@"), "{said}");
}

#[test]
fn a_newer_schema_is_refused() {
    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["SET", "soloist:schema", "soloist 999"]);
    let ground = Ground::new(&redis.url(), JOB);
    let said = refusal(&ground, &["serve"], 1);
    assert!(said.contains("999") && said.contains("newer"), "{said}");
}

#[test]
fn a_redis_that_may_evict_leases_is_refused() {
    let redis = RedisServer::start(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]);
    let ground = Ground::new(&redis.url(), JOB);
    assert!(refusal(&ground, &["serve"], 2).contains("noeviction"));
}

#[test]
fn a_second_node_of_one_name_is_refused() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let _first = ground.start("node-a");
    let said = refusal(&ground, &["serve", "--node", "node-a"], 1);
    assert!(said.contains("node-a") && said.contains("--node"), "{said}");
}
