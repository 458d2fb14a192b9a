//! Two nodes of one program with a store of their own, one of which runs a job.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use soloist::clock;
use soloist::domain::time::Boot;
use soloist::store::nodes::{ALIVE_FOR, BEAT_EVERY};

use super::processes::Family;
use super::script::Starts;
use super::support::api::Api;
use super::support::node::{Ground, Node, SOLOIST};
use super::support::redis::RedisServer;
use super::support::wait::until_async;

pub(crate) const JOB: &str = "outbound";

/// One of the programs that are compared.
#[derive(Clone)]
pub(crate) struct Side {
    /// What tables call it.
    pub label: &'static str,
    program: PathBuf,
}

impl Side {
    /// The program at `beside`, if there is one, then the one that cargo built.
    pub(crate) fn all(beside: Option<&Path>) -> Vec<Self> {
        let older = beside.map(|path| {
            let program = path.canonicalize();
            let program = program.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Self { label: "beside", program }
        });
        let this = Self { label: "this", program: SOLOIST.into() };
        older.into_iter().chain([this]).collect()
    }

    /// A ground whose nodes are this program.
    pub(crate) fn ground(&self, store: &str, jobs: &str) -> Ground {
        Ground::new(store, jobs).with_program(&self.program)
    }
}

/// How a holder leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Kill,
    /// The script ends at once on TERM, so all of it is the hand-over.
    Terminate,
}

/// A take-over.
pub(crate) struct TakenOver {
    /// From before the signal to the first act of the other node's script.
    pub took: Duration,
    /// Before the signal, in microseconds of the wall clock.
    pub from_us: i64,
    dead: String,
    left_behind: Family,
}

/// Two nodes, and a third when one of them is dead. The order of the fields is the order of their ends.
pub(crate) struct Pair<S = RedisServer> {
    pub side: Side,
    pub nodes: Vec<Node>,
    pub starts: Starts,
    pub ground: Ground,
    pub server: S,
    token: String,
    born: usize,
}

impl Pair {
    /// Starts both on a Redis, with a lease of so many seconds.
    pub(crate) fn start(side: &Side, lease_seconds: usize) -> Self {
        let redis = RedisServer::start(&[]);
        let url = redis.url();
        Self::on(redis, &url, side, lease_seconds)
    }
}

impl<S> Pair<S> {
    /// Starts both on the store at `url`, whose server ends with them.
    pub(crate) fn on(server: S, url: &str, side: &Side, lease_seconds: usize) -> Self {
        let starts = Starts::new();
        let jobs = format!(
            "lease_ttl = \"{lease_seconds}s\"\n[[job]]\nname = \"{JOB}\"\ncommand = {}\n",
            starts.command()
        );
        let ground = side.ground(url, &jobs);
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let (side, nodes) = (side.clone(), Vec::new());
        let mut pair = Self { side, nodes, starts, ground, server, token, born: 0 };
        pair.complete();
        pair
    }

    /// Starts what is missing to two. The name of a dead one is taken for as long as its last report is fresh.
    pub(crate) fn complete(&mut self) {
        while self.nodes.len() < 2 {
            self.born += 1;
            self.nodes.push(self.ground.start(&format!("node-{}", self.born)));
        }
    }

    /// The first node, asked by `li`.
    pub(crate) fn api(&self) -> Api {
        self.nodes[0].api(&self.token)
    }

    /// Waits until the nodes know each other by reports, and count on nobody who is dead: until then a node lets the dead
    /// one go first, which is no part of a take-over between two.
    pub(crate) async fn settle(&self, dead: Option<&str>) {
        let living: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        know_each_other(&self.api(), &living, dead).await;
    }

    /// Takes the node with the newest run away, and waits until the other one runs it.
    pub(crate) async fn take_over(&mut self, how: Leaving) -> TakenOver {
        let (runs, holder) = (self.starts.all().len(), self.holder().await);
        let at = self.nodes.iter().position(|node| node.name == holder).expect("one of ours");
        let mut leaving = self.nodes.remove(at);
        let left_behind = Family::of(leaving.pid());
        let (from_us, from) = (wall_us(), clock::boot());
        match how {
            Leaving::Kill => leaving.kill(),
            Leaving::Terminate => leaving.signal(Signal::SIGTERM),
        }
        let took = self.starts.nth(runs + 1).since(from);
        if let Leaving::Terminate = how {
            leaving.wait();
        }
        TakenOver { took, from_us, dead: holder, left_behind }
    }

    /// Makes it two nodes again after a take-over, as at the beginning.
    pub(crate) async fn recover(&mut self, from: TakenOver, how: Leaving) {
        from.left_behind.ended();
        self.complete();
        if let Leaving::Kill = how {
            self.settle(Some(&from.dead)).await;
        }
    }

    /// The node whose run is shown under the newest token.
    async fn holder(&self) -> String {
        let newest = self.starts.all().last().map(|(token, _)| *token);
        let mut live = self.api().live().await;
        let job = live.until(JOB, "the newest run is shown", |job| {
            job["lease"]["token"].as_u64() == newest && job["run"]["pid"].is_u64()
        });
        job.await["lease"]["node"].as_str().expect("a holder").to_owned()
    }

    /// Switches the job on and waits until it runs.
    pub(crate) async fn switch_on(&self) -> Boot {
        let runs = self.starts.all().len();
        self.api().switch(JOB, true).await;
        self.starts.nth(runs + 1)
    }
}

impl<S> Drop for Pair<S> {
    /// The server must outlive the guards, which have something to tell it.
    fn drop(&mut self) {
        end(&mut self.nodes);
    }
}

/// `kill -9` of nodes, and waits until nothing of them is left.
pub(crate) fn end(nodes: &mut Vec<Node>) {
    let nobody = Family::default();
    let left = nodes.iter().fold(nobody, |all, node| all.and(Family::of(node.pid())));
    nodes.clear();
    // After a failure nothing more is waited for: what is left is killed by the end of `left`.
    if !std::thread::panicking() {
        left.ended();
    }
}

/// Waits until all `living` have reported, and what `dead` did last is too old for anybody to care.
pub(crate) async fn know_each_other(api: &Api, living: &[&str], dead: Option<&str>) {
    // A node that is not mentioned for so long is neither expected nor excused any more (`runner::candidates`): its last
    // report, and the end of its run, which came up to a report later.
    let forgotten = ALIVE_FOR + 2 * BEAT_EVERY;
    let age = |nodes: &serde_json::Value, name: &str| {
        let node = nodes["nodes"].as_array()?.iter().find(|node| node["name"] == name)?;
        node["age_ms"].as_u64().map(Duration::from_millis)
    };
    until_async("the nodes know each other", async || {
        let nodes = api.get("/api/v1/nodes").await;
        let here = living.iter().all(|name| age(&nodes, name).is_some_and(|age| age < BEAT_EVERY));
        let gone = dead.is_none_or(|name| age(&nodes, name).is_none_or(|age| age > forgotten));
        (here && gone).then_some(())
    })
    .await;
}

/// The wall clock, which Redis reads too, in microseconds.
pub(crate) fn wall_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
