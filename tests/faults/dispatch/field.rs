//! The field of the load: store, nodes, collectors, whoever starts them again, and the reader of the sources.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use soloist::store::Options;
use soloist::store::dispatch::Sources as _;

use super::collector::{ADDRESSES, LEDGER, OVER, TOKEN, WORD};
use super::http::Client;
use super::ledger::Line;
use super::{all_tasks, key, sources};
use crate::dice::Dice;
use crate::node::{self, Node, Plan, SOLOIST, WallClock};
use crate::redis::RedisServer;
use crate::wait::until;

const COLLECTORS: usize = 10;
/// As many tasks in one call as the API takes.
const AT_ONCE: usize = 1_000;
/// The sums of `sources()` and `collectors()` are two readings: so often they may be of different instants.
const TRIES: usize = 200;

/// Everything that runs.
pub(super) struct Field {
    directory: PathBuf,
    seed: u64,
    store: String,
    redis: Option<RedisServer>,
    nodes: Vec<Arc<Node>>,
    collectors: Vec<Collector>,
    operator: Client,
    wrongs: Vec<String>,
    compared: bool,
    /// Of each source: the newest reading.
    pub(super) newest: BTreeMap<String, Value>,
    pub(super) started: BTreeMap<String, u64>,
    pub(super) readings: usize,
}

struct Collector {
    child: Child,
    ahead: Option<WallClock>,
    lives: u64,
}

impl Field {
    pub(super) fn start(store: &str, seed: u64, directory: &Path) -> Self {
        let redis = (store == "redis").then(|| RedisServer::start(&[]));
        let url = redis
            .as_ref()
            .map_or_else(|| format!("sqlite:{}/soloist.db", directory.display()), RedisServer::url);
        let text = format!("store = {url:?}\nlisten = \"127.0.0.1:0\"\n");
        std::fs::write(directory.join("soloist.toml"), text).expect("a configuration");
        let operator = account(directory, "li", "operator");
        let token = account(directory, "robot", "collector");
        std::fs::write(directory.join(TOKEN), token).expect("a file");
        let plan = |name: &str| Plan {
            name: name.to_owned(),
            directory: directory.to_owned(),
            store: url.clone(),
            proxy: None,
            ways: None,
            port: None,
            // The clock that counts is Redis'. With SQLite it is that of the nodes.
            clock: (redis.is_some() && name == "node-b").then(|| {
                let clock = WallClock::new(directory.join(format!("{name}.clock")));
                clock.step(-3_600);
                clock
            }),
        };
        let nodes: Vec<_> = ["node-a", "node-b"].map(|name| Node::start(plan(name))).into();
        let field = Self {
            directory: directory.to_owned(),
            seed,
            store: url,
            redis,
            nodes,
            collectors: Vec::new(),
            operator: Client::new(&operator),
            wrongs: Vec::new(),
            compared: false,
            newest: BTreeMap::new(),
            started: BTreeMap::new(),
            readings: 0,
        };
        until("both nodes listen", || (field.write_addresses() == field.nodes.len()).then_some(()));
        field
    }

    /// Makes the sources and puts every task; gives id and source of each.
    pub(super) fn put_tasks(&mut self) -> BTreeMap<String, String> {
        let node = self.nodes[0].address().expect("it listens");
        for source in &sources::ALL {
            let path = format!("/api/v1/sources/{}", source.name);
            self.must(node, "PUT", &path, &source.rules());
            let numbers: Vec<usize> = (0..source.tasks).collect();
            for numbers in numbers.chunks(AT_ONCE) {
                let tasks: Vec<Value> = numbers
                    .iter()
                    .map(|&n| {
                        json!({
                            "key": key(n), "source": source.name, "payload": { "n": n },
                            "priority": n % 3
                        })
                    })
                    .collect();
                let answer = self.must(node, "POST", "/api/v1/tasks", &json!({ "tasks": tasks }));
                let created = answer["tasks"].as_array().into_iter().flatten();
                let created = created.filter(|task| task["status"] == "created").count();
                assert_eq!(created, numbers.len(), "each is new: {answer}");
            }
        }
        all_tasks()
    }

    fn must(&mut self, node: SocketAddr, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.operator.call(node, method, path, body).expect("an answer");
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    pub(super) fn send_collectors(&mut self) {
        for number in 0..COLLECTORS {
            let ahead = (number % 2 == 1).then(|| {
                let clock = WallClock::new(self.directory.join(format!("c{number}.clock")));
                clock.step(3_600);
                clock
            });
            let child = self.send(number, 0, ahead.as_ref());
            self.collectors.push(Collector { child, ahead, lives: 1 });
        }
    }

    fn send(&self, number: usize, life: u64, ahead: Option<&WallClock>) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let seed = self.seed.wrapping_mul(1_000) + number as u64 * 50 + life;
        command
            .arg(WORD)
            .arg(&self.directory)
            .args([format!("c{number}"), seed.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(clock) = ahead {
            clock.apply(&mut command);
        }
        command.spawn().expect("a collector starts")
    }

    /// Tells where nodes listen, and starts dead collectors again.
    pub(super) fn keep_up(&mut self) {
        self.write_addresses();
        for number in 0..self.collectors.len() {
            let one = &mut self.collectors[number];
            if one.child.try_wait().expect("our own child").is_some() {
                let one = &self.collectors[number];
                let child = self.send(number, one.lives, one.ahead.as_ref());
                let one = &mut self.collectors[number];
                one.child = child;
                one.lives += 1;
            }
        }
    }

    fn write_addresses(&self) -> usize {
        let all: Vec<_> = self.nodes.iter().filter_map(|node| node.address()).collect();
        let text: String = all.iter().map(|address| format!("{address}\n")).collect();
        let (new, file) = (self.directory.join("addresses.new"), self.directory.join(ADDRESSES));
        std::fs::write(&new, text).expect("a file");
        std::fs::rename(&new, file).expect("a file");
        all.len()
    }

    /// One fault, by the dice; its name.
    pub(super) fn harm(&mut self, dice: &mut Dice) -> &'static str {
        let (node, collector) = (dice.index(self.nodes.len()), dice.index(self.collectors.len()));
        let short = dice.between(0, 600);
        match dice.below(10) {
            0..3 => {
                self.nodes[node].kill(short);
                "kill -9 of a node"
            }
            3 => {
                self.nodes[node].freeze(true);
                std::thread::sleep(short / 2);
                self.nodes[node].freeze(false);
                "SIGSTOP of a node"
            }
            4..6 if self.redis.is_some() => {
                let redis = self.redis.as_ref().expect("as just seen");
                redis.run::<i64>(&["CLIENT", "KILL", "TYPE", "normal"]);
                "connections to Redis cut"
            }
            6 if self.redis.is_some() => {
                let redis = self.redis.as_ref().expect("as just seen");
                redis.try_run::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).ok();
                "subscriptions to Redis cut"
            }
            7 => {
                let collector = &mut self.collectors[collector];
                signal(&collector.child, Signal::SIGSTOP);
                // Longer than any lease: it awakes with results that nobody wants any more.
                std::thread::sleep(Duration::from_millis(900));
                signal(&collector.child, Signal::SIGCONT);
                "SIGSTOP of a collector"
            }
            _ => {
                let collector = &mut self.collectors[collector];
                collector.child.kill().expect("our own child");
                collector.child.wait().expect("and waited for");
                "kill -9 of a collector"
            }
        }
    }

    /// Reads the sources and holds them against what must always be so; revives the dead. Whether all is done.
    pub(super) fn look(&mut self) -> bool {
        let Some(node) = self.nodes.iter().find_map(|node| node.address()) else { return false };
        let Ok((200, answer)) = self.operator.call(node, "GET", "/api/v1/sources", &Value::Null)
        else {
            return false;
        };
        let list = answer["sources"].as_array().cloned().unwrap_or_default();
        let mut done = list.len() == sources::ALL.len();
        for source in &sources::ALL {
            let Some(view) = list.iter().find(|view| view["name"] == source.name) else {
                self.wrongs.push(format!("{} is not among the sources", source.name));
                continue;
            };
            let number = |name: &str| view[name].as_u64().unwrap_or(u64::MAX / 8);
            let states = ["ready", "due", "in_flight", "dead", "done"].map(number);
            if states.iter().sum::<u64>() != source.tasks as u64 {
                self.wrongs
                    .push(format!("{} had {} tasks and has {view}", source.name, source.tasks));
            }
            if source.cap.is_some_and(|cap| number("in_flight") > cap as u64) {
                self.wrongs.push(format!("more in flight than {:?}: {view}", source.cap));
            }
            done &= number("done") == source.tasks as u64;
            self.started.insert(source.name.to_owned(), number("started"));
            self.newest.insert(source.name.to_owned(), view.clone());
        }
        self.readings += 1;
        if list.iter().any(|view| view["dead"].as_u64() > Some(0)) {
            self.revive(node);
        }
        done
    }

    fn revive(&mut self, node: SocketAddr) {
        let dead = self.operator.call(node, "GET", "/api/v1/dead?limit=100", &Value::Null);
        let Ok((200, dead)) = dead else { return };
        for task in dead["tasks"].as_array().into_iter().flatten() {
            let id = task["id"].as_str().unwrap_or_default();
            // A node that dies meanwhile is asked again the next time.
            self.operator.call(node, "POST", &format!("/api/v1/dead/{id}/revive"), &json!({})).ok();
        }
    }

    /// While every collector is frozen: what the sources call in flight is what the collectors hold. Once is enough; but
    /// what was frozen may have held nothing, and then it is done again the next time.
    pub(super) fn compare_holdings_once(&mut self) {
        if self.compared {
            return;
        }
        for collector in &mut self.collectors {
            signal(&collector.child, Signal::SIGSTOP);
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        match runtime.block_on(holdings(&self.store)) {
            Ok(compared) => self.compared = compared,
            Err(wrong) => {
                self.compared = true;
                self.wrongs.push(wrong);
            }
        }
        for collector in &mut self.collectors {
            signal(&collector.child, Signal::SIGCONT);
        }
    }

    pub(super) fn ledger(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(self.directory.join(LEDGER)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
    }

    /// Ends everything; what was seen to be wrong.
    pub(super) fn end(&mut self) -> Vec<String> {
        std::fs::write(self.directory.join(OVER), "").expect("a file");
        until("every collector has ended", || {
            let all = &mut self.collectors;
            all.iter_mut().all(|one| matches!(one.child.try_wait(), Ok(Some(_)))).then_some(())
        });
        if !self.compared {
            self.wrongs.push("all was done before in flight was held against leases".to_owned());
        }
        std::mem::take(&mut self.wrongs)
    }
}

/// Reads until no transition lies between the readings; `false` when that did not come to pass with anything in flight.
async fn holdings(url: &str) -> Result<bool, String> {
    let store = soloist::stores::connect(url, &Options::default())
        .await
        .map_err(|error| error.to_string())?;
    for _ in 0..TRIES {
        let read = async || store.sources(None).await;
        let (before, held, after) = (read().await, store.collectors().await, read().await);
        let (Ok(before), Ok(held), Ok(after)) = (before, held, after) else { continue };
        let moves = |all: &[soloist::store::dispatch::SourceView]| -> Vec<(u64, u64)> {
            all.iter().map(|one| (one.started, one.in_flight)).collect()
        };
        let sum: u64 = before.iter().map(|one| one.in_flight).sum();
        let held: u64 = held.iter().map(|one| one.in_flight).sum();
        if moves(&before) == moves(&after) && sum > 0 {
            return if sum == held {
                Ok(true)
            } else {
                Err(format!("the sources have {sum} in flight, the collectors hold {held}"))
            };
        }
    }
    Ok(false)
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    // It may have just ended by itself.
    kill(pid, signal).ok();
}

/// Makes an account and a token of it.
fn account(directory: &Path, name: &str, role: &str) -> String {
    let command = |words: &[&str]| {
        let mut command = Command::new(SOLOIST);
        node::without_settings(&mut command);
        command.arg("--config").arg(directory.join("soloist.toml")).args(words);
        command.current_dir(directory).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut adding = command(&["user", "add", name, "--role", role, "--password-stdin"]);
    let adding = adding.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut adding = adding.expect("soloist starts");
    let mut stdin = adding.stdin.take().expect("a pipe");
    writeln!(stdin, "amber ferry of {name} under 9 moons").expect("the password is read");
    drop(stdin);
    assert!(adding.wait().expect("it ends").success(), "no account {name} could be made");
    let output = command(&["token", "new", "--user", name, "--name", "load"]).output();
    let output = output.expect("soloist starts");
    assert!(output.status.success(), "no token for {name}");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

impl Drop for Field {
    fn drop(&mut self) {
        for collector in &mut self.collectors {
            collector.child.kill().ok();
            collector.child.wait().ok();
        }
        for node in &self.nodes {
            node.stop();
        }
    }
}
