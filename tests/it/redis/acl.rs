//! A node whose Redis user may do what `deploy/redis.acl` lists: that is enough for everything, and no more.
//!
//! The conformance laws run as this user, too (`conformance::fresh_redis`).

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::node::Ground;
use crate::support::redis::{RedisServer, ask};
use crate::support::wait::{until, until_async};

const JOBS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", \"echo at work; exec sleep 60\"]\nlease_ttl = \"2s\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_listed_rights_are_enough_for_nodes_jobs_dispatch_rotations_and_doctor() {
    let server = RedisServer::start_narrow();
    let ground = Ground::new(&server.narrow_url(), JOBS);
    ground.add_user("li", "admin");
    let (mut a, b) = (ground.start("node-a"), ground.start("node-b"));
    let token = ground.token("li");
    let mut live = b.api(&token).live().await;
    ground.must(&["on", "outbound", "--user", "li"]);
    let job = live.until_state("outbound", "running").await;
    assert!(job["lease"]["node"].is_string(), "{job}");
    // A node dies: the guard gives the lease back, the other node takes over and shows it.
    a.kill();
    until_async("node-b runs it", async || {
        let job = b.api(&token).get("/api/v1/jobs/outbound").await;
        (job["lease"]["node"] == "node-b" && job["run"].is_object()).then_some(())
    })
    .await;
    assert!(ground.must(&["lease", "list"]).contains("outbound"));
    // Dispatch and a rotation, from outside.
    ground.must(&["source", "set", "shop", "--gap", "1ms"]);
    let mut put = ground
        .command(&["task", "put", "--source", "shop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("soloist starts");
    std::io::Write::write_all(&mut put.stdin.take().expect("a pipe"), b"{\"key\":\"k1\"}\n")
        .expect("the task is read");
    assert!(put.wait().expect("it ends").success());
    let mut collecting = ground
        .command(&["collect", "--source", "shop", "--", "sh", "-c", "touch done"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("soloist starts");
    until("the task was worked on", || ground.path("done").exists().then_some(()));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(collecting.id()).expect("a process id")),
        nix::sys::signal::Signal::SIGTERM,
    )
    .expect("our own child");
    collecting.wait().expect("it ends");
    ground.must(&["rotation", "set", "supplier", "--type", "a", "--type", "b"]);
    ground.must(&["turn", "--rotation", "supplier", "--type", "a", "--", "true"]);
    ground.must(&["doctor"]);
    assert_eq!(server.denied(), Vec::<String>::new(), "deploy/redis.acl lacks these");
}

#[tokio::test]
async fn and_they_are_no_more_than_that() {
    let server = RedisServer::start_narrow();
    let url = server.narrow_url();
    for words in [
        &["SET", "other", "1"][..],
        &["EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "other"],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["FLUSHDB"],
        &["CONFIG", "SET", "appendonly", "no"],
        &["SHUTDOWN", "NOSAVE"],
        &["REPLICAOF", "NO", "ONE"],
        &["MONITOR"],
        &["ACL", "LIST"],
        &["CLIENT", "KILL", "TYPE", "normal"],
        &["SUBSCRIBE", "other"],
        &["MODULE", "LIST"],
    ] {
        let answer = ask::<::redis::Value>(&url, words);
        let error = answer.expect_err("it is refused").to_string();
        assert!(error.contains("NOPERM") || error.contains("permission"), "{words:?}: {error}");
    }
}

#[test]
fn a_user_with_too_few_rights_is_told_which_file_lists_them() {
    let server = RedisServer::start(&["--user", "poor", "on", ">poor", "~*", "&*", "+@read"]);
    let url = server.url().replace("redis://", "redis://poor:poor@");
    let output = Ground::new(&url, JOBS).run(&["status"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("deploy/redis.acl"), "{said}");
}

/// Redis as `compose.yaml` starts it; nobody but `soloist` is let in.
struct Composed {
    directory: TempDir,
    port: u16,
    process: Child,
}

impl Composed {
    fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let process = Self::spawn(directory.path(), port);
        let redis = Self { directory, port, process };
        redis.until_ready();
        redis
    }

    fn spawn(directory: &Path, port: u16) -> Child {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/compose.yaml");
        let text = std::fs::read_to_string(file).expect("compose.yaml");
        let compose: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
        let words = compose["services"]["redis"]["command"].as_array().expect("a command");
        let words = words.iter().map(|word| word.as_str().expect("a word"));
        let rights = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/redis.acl");
        let here = directory.to_str().expect("a path");
        let server = format!("redis-server --port {port} --bind 127.0.0.1 --dir {here}");
        let words: Vec<String> = words
            .map(|word| {
                word.replace("$$", "$")
                    .replace("/etc/soloist/redis.acl", rights)
                    .replace("/tmp/users.acl", &format!("{here}/users.acl"))
                    .replace("redis-server", &server)
            })
            .collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("REDIS_PASSWORD", "narrow");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("a shell")
    }

    fn url(&self) -> String {
        format!("redis://soloist:narrow@127.0.0.1:{}/0", self.port)
    }

    fn until_ready(&self) {
        until("Redis is there", || ask::<String>(&self.url(), &["PING"]).ok());
    }

    fn restart(&mut self) {
        self.process.kill().expect("our own child");
        self.process.wait().expect("and waited for");
        self.process = Self::spawn(self.directory.path(), self.port);
        self.until_ready();
    }
}

impl Drop for Composed {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Redis 7 reads its append-only file as `default`, and drops the transactions which that may not do.
#[test]
fn a_redis_that_lets_nobody_else_in_still_has_everything_after_a_restart() {
    let mut redis = Composed::start();
    let ground = Ground::new(&redis.url(), JOBS);
    ground.add_user("li", "admin");
    ground.must(&["on", "outbound", "--user", "li"]);
    let everybody = format!("redis://127.0.0.1:{}/0", redis.port);
    assert!(ask::<String>(&everybody, &["PING"]).is_err(), "the default user is let in");
    redis.restart();
    assert!(ground.must(&["user", "list"]).contains("li "));
    assert!(ground.must(&["status"]).contains("li"), "the switch");
    assert!(ask::<String>(&everybody, &["PING"]).is_err(), "the default user is let in");
}
