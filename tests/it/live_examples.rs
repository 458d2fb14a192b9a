//! `docs/live.md` and `examples/live`: what stands there works, as it stands there, against a real node.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use fantoccini::Locator;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::browser::{Driver, Window};
use crate::support::node::{Ground, Node};
use crate::support::wait::{PATIENCE, until_async};

const JOB: &str = "[[job]]\nname = \"outbound\"\ntitle = \"Outbound\"\ncommand = [\"sleep\", \"600\"]\nmin_uptime = \"100ms\"\n";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All commands of the page, in one shell: later ones use what earlier ones set.
#[test]
fn the_commands_that_live_is_explained_with_work() {
    let page = text("docs/live.md");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    assert!(blocks.len() >= 2, "{blocks:?}");
    // The page's own line of configuration, too.
    let toml = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let ground = Ground::new("sqlite:soloist.db", &format!("{}{JOB}", toml.expect("an example")));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let said = ground.must_sh(&blocks.join("\n"), &node);
    for part in [
        "retry: ",
        "data: {\"type\":\"hello\",\"node\":\"node-a\"",
        "data: {\"type\":\"snapshot\",\"epoch\":",
        "\"asyncapi\":\"3.0.0\"",
        "HTTP/1.1 204",
        "access-control-allow-origin: http://127.0.0.1:8000",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// `follow.sh`, and what it prints; ended with its `curl` when dropped.
struct Follower {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Follower {
    fn start(node: &Node, token: &str) -> Self {
        let mut command = Command::new("sh");
        command.arg(file("examples/live/follow.sh")).arg("outbound");
        command.env("NODE", &node.url).env("SOLOIST_API_TOKEN", token);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a shell");
        let (told, lines) = mpsc::channel();
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            // Until it is dropped, or nobody listens.
            for line in out.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// The next frame for which `wanted` holds.
    fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{what}: {error}"));
            let frame: Value = serde_json::from_str(&line).expect(&line);
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.process.id()).expect("a process id"));
        killpg(group, Signal::SIGKILL).ok();
        self.process.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_sh_prints_frames_and_comes_back_to_a_node_that_was_restarted() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut node = ground.start("node-a");
    let follower = Follower::start(&node, &token);
    assert_eq!(follower.until("hello", |_| true)["type"], "hello");
    let snapshot = follower.until("a snapshot", |frame| frame["type"] == "snapshot");
    assert_eq!(snapshot["jobs"][0]["name"], "outbound");
    node.api(&token).switch("outbound", true).await;
    follower.until("it runs", |frame| frame["job"]["state"] == "running");
    let address = node.url.strip_prefix("http://").expect("an address").to_owned();
    assert_eq!(node.terminate(), Some(0));
    let again = ground.start_at("node-a", &address);
    let snapshot = follower.until("another snapshot", |frame| frame["type"] == "snapshot");
    assert_eq!(snapshot["jobs"][0]["wanted"], true);

    // A wrong token is refused for good, so it ends.
    let mut refused = Follower::start(&again, "sol_wrong");
    assert_eq!(refused.process.wait().expect("it ends").code(), Some(1));
}

/// Serves `examples/live` from an origin of its own until it is dropped.
struct Elsewhere {
    origin: String,
    serving: tokio::task::JoinHandle<()>,
}

impl Elsewhere {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 8_192];
                    let got = stream.read(&mut request).await.unwrap_or_default();
                    let line = String::from_utf8_lossy(&request[..got]).into_owned();
                    let name = line.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
                    let (status, body) = match std::fs::read(file("examples/live").join(&name)) {
                        Ok(body) if name.ends_with(".html") => ("200 OK", body),
                        _ => ("404 Not Found", Vec::new()),
                    };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    stream.write_all(&[head.as_bytes(), &body].concat()).await.ok();
                });
            }
        });
        Self { origin, serving }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn shows(window: &Window, css: &str, attribute: &str, value: &str) {
    until_async(&format!("{css} is {value}"), async || {
        let element = window.client.find(Locator::Css(css)).await.ok()?;
        // It may be replaced between finding and asking; then it is looked for again.
        (element.attr(attribute).await.ok()?? == value).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_another_origin_show_and_switch_jobs_in_a_browser() {
    let elsewhere = Elsewhere::open().await;
    let allowed = format!("allowed_origins = [{:?}]\n", elsewhere.origin);
    let ground = Ground::new("sqlite:soloist.db", &format!("{allowed}{JOB}"));
    ground.add_user("li", "operator");
    ground.add_user("vera", "viewer");
    let (li, vera) = (ground.token("li"), ground.token("vera"));
    let mut node = ground.start("node-a");
    let driver = Driver::start();
    let window = driver.window("wall").await;
    let wall = format!("{}/wall.html#node={}&token={vera}", elsewhere.origin, node.url);
    window.client.goto(&wall).await.expect("the page opens");
    shows(&window, "#mark", "data-mark", "live").await;
    shows(&window, "#outbound", "data-state", "off").await;
    node.api(&li).switch("outbound", true).await;
    shows(&window, "#outbound", "data-state", "running").await;

    // The orders page, in the same browser: typed in, and switched off over the API.
    let orders = driver.window("orders").await;
    orders.client.goto(&format!("{}/orders.html", elsewhere.origin)).await.expect("it opens");
    let field = orders.element("input[name=node]").await;
    field.clear().await.expect("cleared");
    field.send_keys(&node.url).await.expect("typed");
    orders.element("input[name=token]").await.send_keys(&li).await.expect("typed");
    orders.element("form button").await.click().await.expect("clicked");
    let off = orders.element("#outbound button + button").await;
    assert_eq!(off.text().await.expect("text"), "Off");
    until_async("the click arrives", async || {
        // A row that is painted anew takes its button with it.
        let button = orders.client.find(Locator::Css("#outbound button + button")).await.ok()?;
        button.click().await.ok()
    })
    .await;
    shows(&window, "#outbound", "data-state", "off").await;

    // The wall says when it is stale, and comes back by itself.
    let address = node.url.strip_prefix("http://").expect("an address").to_owned();
    assert_eq!(node.terminate(), Some(0));
    shows(&window, "#mark", "data-mark", "stale").await;
    let again = ground.start_at("node-a", &address);
    shows(&window, "#mark", "data-mark", "live").await;
    shows(&window, "#outbound", "data-state", "off").await;
    let job = again.api(&li).get("/api/v1/jobs/outbound").await;
    assert_eq!(job["participants"], json!([]));
    orders.close().await;
    window.close().await;
}
