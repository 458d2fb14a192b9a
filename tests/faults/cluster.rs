//! The cluster under test: three nodes, their store, a few jobs, and the operator who wants them to run.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use soloist::clock::boot;
use soloist::domain::name::{RotationName, TypeName};
use soloist::domain::rotation::{Rules, Skip, TypeRules};
use soloist::domain::time::Boot;
use soloist::store::Options as StoreOptions;
use soloist::store::rotation::Rotations as _;

use crate::acts::{Judge, Records, Run};
use crate::ensemble::{Ensemble, Ways};
use crate::file;
use crate::machine;
use crate::members::Members;
use crate::network::Network;
use crate::node::{self, Node, Plan, SOLOIST, WallClock};
use crate::processes::{self, Process};
use crate::proxy::Proxy;
use crate::sql::{Kind, Sql};
use crate::store::Redis;
use crate::wait::{PATIENCE, until};
use crate::witness::{self, Mode};

/// What a node says to an operator when it was granted a token that is not newer than one it had seen.
const WENT_BACK: &str = "not starting: look whether every node uses the same store";
/// Of jobs that take turns.
const ROTATION: &str = "together";
/// The operator.
const USER: &str = "li";

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) mode: Mode,
}

/// The four of every random round.
pub(crate) const FOUR: [Job; 4] = [
    Job { name: "plain", mode: Mode::Plain },
    Job { name: "stubborn", mode: Mode::Stubborn },
    Job { name: "chatty", mode: Mode::Chatty },
    Job { name: "short", mode: Mode::Short },
];

/// Which store a cluster has.
#[derive(Debug, Clone)]
pub(crate) enum StoreKind {
    Redis {
        append_only: bool,
        replica: bool,
    },
    /// A Redis Cluster.
    Members,
    /// A file in this directory.
    Sqlite(PathBuf),
    /// A server of its own.
    Sql(Kind),
}

/// What to build.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) store: StoreKind,
    pub(crate) lease: Duration,
    pub(crate) jobs: Vec<Job>,
    pub(crate) nodes: usize,
    /// The last node believes a clock of its own.
    pub(crate) own_clock: bool,
    /// All jobs are members of one rotation, whose turns last so long.
    pub(crate) turns: Option<Duration>,
    /// Leases are in a ZooKeeper beside the store.
    pub(crate) zookeeper: bool,
}

impl Options {
    /// One job, three nodes, a lease of two seconds, Redis without persistence.
    pub(crate) fn one(mode: Mode) -> Self {
        Self {
            store: StoreKind::Redis { append_only: false, replica: false },
            lease: Duration::from_secs(2),
            jobs: vec![Job { name: "outbound", mode }],
            nodes: 3,
            own_clock: false,
            turns: None,
            zookeeper: false,
        }
    }
}

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) nodes: Vec<Arc<Node>>,
    redis: Option<Arc<Mutex<Redis>>>,
    members: Option<Arc<Mutex<Members>>>,
    file: Option<Mutex<PathBuf>>,
    sql: Option<Mutex<Sql>>,
    ensemble: Option<Mutex<Ensemble>>,
    records: Vec<Mutex<Records>>,
    /// For the operator: whether the jobs are wanted now.
    wanted: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    operator: Option<JoinHandle<()>>,
    token: String,
    // After the nodes, whose ends of the cables go with them.
    _network: Option<Network>,
}

fn next_number() -> u8 {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // 10.0 is nobody's, and a soak of many rounds comes round again long after the first is gone.
    if number == 0 { next_number() } else { number }
}

impl Cluster {
    /// Starts everything and switches every job on; returns when each acts.
    pub(crate) fn start(directory: &Path, options: Options) -> Self {
        std::fs::create_dir_all(directory).expect("a directory");
        let number = next_number();
        let network = match options.store {
            StoreKind::Redis { .. } | StoreKind::Members | StoreKind::Sql(_) => {
                Network::build(number)
            }
            StoreKind::Sqlite(_) => None,
        };
        let listen = network.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Network::store_side);
        let (mut redis, mut members, mut sql) = (None, None, None);
        let store = match &options.store {
            StoreKind::Sqlite(place) => format!("sqlite:{}", file::store_in(place).display()),
            StoreKind::Members => {
                // Members send nodes to each other: no relay can stand between.
                assert!(network.is_some(), "members cannot be cut off here: run this as root");
                members.insert(Members::start(listen)).url()
            }
            StoreKind::Redis { append_only, replica } => {
                redis.insert(Redis::start(*append_only, *replica)).now().url()
            }
            StoreKind::Sql(kind) => sql.insert(Sql::start(*kind)).url().to_owned(),
        };
        let ensemble = options.zookeeper.then(Ensemble::start);
        let address = redis.as_ref().map(Redis::address).or(sql.as_ref().map(Sql::address));
        let listen_too =
            network.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Network::ensemble_side);
        let coordination = ensemble.as_ref().map(Ensemble::url);
        write_configuration(directory, &store, coordination.as_deref(), &options);
        let nodes = (0..options.nodes).map(|index| {
            let name = format!("node-{}", char::from(b'a' + u8::try_from(index).expect("few")));
            let proxy = address.map(|address| Proxy::start(listen, address));
            let through = proxy.as_ref().map(|proxy| match &sql {
                Some(sql) => sql.url_through(proxy.address()),
                None => format!("redis://{}/0", proxy.address()),
            });
            let own_clock = options.own_clock && index + 1 == options.nodes;
            Plan {
                directory: directory.to_owned(),
                store: through.unwrap_or_else(|| store.clone()),
                proxy,
                ways: ensemble.as_ref().map(|ensemble| Ways::to(ensemble, listen_too)),
                port: network.as_ref().map(|n| n.join(u8::try_from(index).expect("few"))),
                clock: own_clock.then(|| WallClock::new(directory.join(format!("{name}.clock")))),
                name,
            }
        });
        let plans: Vec<Plan> = nodes.collect();
        let records = options.jobs.iter().map(|job| Mutex::new(Records::of(directory, job.name)));
        let file = match &options.store {
            StoreKind::Sqlite(place) => Some(Mutex::new(place.clone())),
            _ => None,
        };
        let mut cluster = Self {
            directory: directory.to_owned(),
            nodes: Vec::new(),
            redis: None,
            members: members.map(|members| Arc::new(Mutex::new(members))),
            file,
            sql: None,
            ensemble: ensemble.map(Mutex::new),
            records: records.collect(),
            wanted: Arc::new(AtomicBool::new(false)),
            over: Arc::new(AtomicBool::new(false)),
            operator: None,
            token: String::new(),
            options,
            _network: network,
        };
        cluster.add_user();
        cluster.define_turns(&store);
        cluster.token =
            cluster.must(&["token", "new", "--user", USER, "--name", "faults"]).trim().to_owned();
        cluster.redis = redis.map(|mut redis| {
            redis.keep_accounts();
            Arc::new(Mutex::new(redis))
        });
        cluster.sql = sql.map(Mutex::new);
        cluster.nodes = plans.into_iter().map(Node::start).collect();
        for node in &cluster.nodes {
            until(&format!("{} listens", node.plan.name), || node.address());
        }
        cluster.operator = Some(cluster.hire_operator());
        cluster.wanted.store(true, Ordering::Release);
        for job in 0..cluster.options.jobs.len() {
            cluster.until_started(job, 1);
        }
        cluster
    }

    fn define_turns(&self, store: &str) {
        let Some(lease) = self.options.turns else { return };
        let name = RotationName::new(ROTATION).expect("a name");
        let kind = |job: &Job| TypeRules {
            name: TypeName::new(job.name).expect("a name"),
            gap: Duration::ZERO,
            quota: None,
        };
        let types = self.options.jobs.iter().map(kind).collect();
        let rules = Rules { types, min_gap: Duration::ZERO, lease, skip: Skip::Absent };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let store =
                soloist::stores::connect(store, &StoreOptions::default()).await.expect("the store");
            store.put_rotation(&name, &rules).await.expect("the rotation is defined");
        });
    }

    fn add_user(&self) {
        let words = ["user", "add", USER, "--role", "operator", "--password-stdin"];
        let mut command = command(&self.directory, &words);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("soloist starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "amber ferry under 9 moons").expect("the password is read");
        drop(stdin);
        assert!(child.wait().expect("it ends").success(), "no account could be made");
    }

    fn must(&self, words: &[&str]) -> String {
        let output = command(&self.directory, words).stdout(Stdio::piped()).output();
        let output = output.expect("soloist starts");
        assert!(output.status.success(), "soloist {words:?} failed");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Switches on whatever is wanted and is not on, for instance after the store was wiped, until told to stop.
    fn hire_operator(&self) -> JoinHandle<()> {
        let (redis, members) = (self.redis.clone(), self.members.clone());
        let over = Arc::clone(&self.over);
        let (wanted, directory) = (Arc::clone(&self.wanted), self.directory.clone());
        let jobs: Vec<&'static str> = self.options.jobs.iter().map(|job| job.name).collect();
        thread::spawn(move || {
            let mut done = vec![false; jobs.len()];
            while !over.load(Ordering::Acquire) {
                for (job, done) in jobs.iter().zip(&mut done) {
                    // Whoever is at work at the store has it alone; later is soon enough.
                    let (missing, store) = match (&redis, &members) {
                        (Some(redis), _) => match redis.try_lock() {
                            Ok(redis) => {
                                let missing = redis.participates(job, USER) == Some(false);
                                (missing && redis.restore_accounts(), Some(redis.now().url()))
                            }
                            Err(_) => (false, None),
                        },
                        (None, Some(members)) => {
                            let looked = members.try_lock().ok();
                            let has = looked.and_then(|members| members.participates(job, USER));
                            (has == Some(false), None)
                        }
                        (None, None) => (!*done, None),
                    };
                    if missing && wanted.load(Ordering::Acquire) {
                        *done = switch(&directory, store.as_deref(), job, true);
                    }
                }
                thread::sleep(Duration::from_millis(100));
            }
        })
    }

    /// The Redis, for whoever is to harm it.
    pub(crate) fn redis(&self) -> MutexGuard<'_, Redis> {
        let redis = self.redis.as_ref().expect("a cluster on Redis");
        redis.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Redis Cluster, for whoever is to harm it.
    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        let members = self.members.as_ref().expect("a cluster on a Redis Cluster");
        members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the SQLite file, for whoever is to harm it.
    pub(crate) fn file(&self) -> MutexGuard<'_, PathBuf> {
        let file = self.file.as_ref().expect("a cluster on a file");
        file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of SQL, for whoever is to harm it.
    pub(crate) fn sql(&self) -> MutexGuard<'_, Sql> {
        let sql = self.sql.as_ref().expect("a cluster on a server of SQL");
        sql.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ZooKeeper, for whoever is to harm it.
    pub(crate) fn ensemble(&self) -> MutexGuard<'_, Ensemble> {
        let ensemble = self.ensemble.as_ref().expect("a cluster with a ZooKeeper");
        ensemble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the records of a job.
    pub(crate) fn judge<T>(&self, job: usize, look: impl FnOnce(&Judge) -> T) -> T {
        look(self.records[job].lock().unwrap_or_else(PoisonError::into_inner).look())
    }

    /// Waits until `count` runs of the job have begun; the token of the newest.
    pub(crate) fn until_started(&self, job: usize, count: usize) -> u64 {
        let name = self.options.jobs[job].name;
        until(&format!("start number {count} of {name}"), || {
            self.judge(job, |judge| {
                judge.newest().filter(|_| judge.starts() >= count).map(|run| run.token)
            })
        })
    }

    /// Waits until the job has acted `count` times more.
    pub(crate) fn until_more(&self, job: usize, count: usize) {
        let acts =
            || self.judge(job, |judge| judge.runs.values().map(|run| run.acts).sum::<usize>());
        let before = acts();
        until("the script goes on", || (acts() >= before + count).then_some(()));
    }

    /// The jobs that `node` runs now, by their newest acts, each with its token.
    pub(crate) fn held_by(&self, node: &Node) -> Vec<(usize, u64)> {
        let newest = |job| self.judge(job, |judge| judge.newest().cloned());
        let runs = (0..self.options.jobs.len()).filter_map(|job| Some((job, newest(job)?)));
        runs.filter(|(_, run)| run.node == node.plan.name)
            .map(|(job, run)| (job, run.token))
            .collect()
    }

    /// Waits until a run newer than that of `token` has begun, and gives it.
    pub(crate) fn until_after(&self, job: usize, token: u64) -> Run {
        let name = self.options.jobs[job].name;
        until(&format!("another run of {name}"), || {
            self.judge(job, |judge| {
                judge.runs.range(token + 1..).next().map(|(_, run)| run.clone())
            })
        })
    }

    /// The node that runs the job now, by its newest act.
    pub(crate) fn holder(&self, job: usize) -> Arc<Node> {
        let name = self.judge(job, |judge| judge.newest().expect("a run").node.clone());
        let node = self.nodes.iter().find(|node| node.plan.name == name);
        Arc::clone(node.expect("one of our nodes"))
    }

    /// The guard of the job now, and its node; `None` while no node that is awake has one.
    pub(crate) fn guard(&self, job: usize) -> Option<(Arc<Node>, Process)> {
        let name = self.options.jobs[job].name;
        self.nodes.iter().find_map(|node| {
            let guard = processes::guard_of(node.awake()?, name)?;
            Some((Arc::clone(node), guard))
        })
    }

    /// The first process of the job's script.
    pub(crate) fn script(&self, job: usize) -> Option<Process> {
        let (_, guard) = self.guard(job)?;
        self.script_under(&guard, job)
    }

    /// The first process of the script of a guard.
    pub(crate) fn script_under(&self, guard: &Process, job: usize) -> Option<Process> {
        processes::script_under(guard, &self.directory, self.options.jobs[job].name)
    }

    /// Processes of any run of the job that can act.
    pub(crate) fn living(&self, job: usize) -> Vec<Process> {
        processes::living(&self.directory, self.options.jobs[job].name)
    }

    /// Those of one run that can act.
    pub(crate) fn left_of(&self, job: usize, token: u64) -> Vec<Process> {
        self.living(job).into_iter().filter(|process| process.has_token(token)).collect()
    }

    /// A page of a node, as JSON; `None` when it does not answer.
    pub(crate) fn page(&self, node: &Node, path: &str) -> Option<Value> {
        let address = node.address()?;
        let text = get(address, path, &self.token).ok()?;
        Some(serde_json::from_str(text.split_once("\r\n\r\n")?.1).unwrap_or(Value::String(text)))
    }

    /// What a node's page says of a job.
    pub(crate) fn state(&self, node: &Node, job: usize) -> Option<String> {
        let page = self.page(node, &format!("/api/v1/jobs/{}", self.options.jobs[job].name))?;
        page["state"].as_str().map(str::to_owned)
    }

    /// How well the nodes can contain a script, as they report it.
    pub(crate) fn containment(&self) -> String {
        let listed = until("a node lists the nodes", || {
            self.page(&self.nodes[0], "/api/v1/nodes").filter(|page| page["nodes"][0].is_object())
        });
        listed["nodes"][0]["containment"].as_str().unwrap_or_default().to_owned()
    }

    /// Switches every job off, and holds one promise against every page: once it says `off`, no process lives.
    pub(crate) fn switch_off(&self) -> Vec<String> {
        self.wanted.store(false, Ordering::Release);
        let mut wrongs = Vec::new();
        let store = self.redis.is_some().then(|| self.redis().now().url());
        for job in &self.options.jobs {
            until("the store takes the switch", || {
                switch(&self.directory, store.as_deref(), job.name, false).then_some(())
            });
        }
        for (index, job) in self.options.jobs.iter().enumerate() {
            for node in &self.nodes {
                let what = format!("{} shows {} as off", node.plan.name, job.name);
                let begun = boot();
                while self.state(node, index).as_deref() != Some("off") {
                    let page = || self.page(node, &format!("/api/v1/jobs/{}", job.name));
                    assert!(boot().since(begun) < PATIENCE, "in vain until {what}: {:?}", page());
                    thread::sleep(Duration::from_millis(5));
                }
                let living = self.living(index);
                if !living.is_empty() {
                    wrongs.push(format!("{what} while these live: {living:?}"));
                }
            }
        }
        wrongs
    }

    /// Wants them all again.
    pub(crate) fn switch_on(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Waits until every job has acted after `since`; how long the slowest took.
    pub(crate) fn until_all_act(&self, since: Boot, bound: Duration) -> Result<Duration, String> {
        let mut slowest = Duration::ZERO;
        for (index, job) in self.options.jobs.iter().enumerate() {
            loop {
                let acted = self.judge(index, |judge| {
                    judge.order.last().and_then(|token| judge.runs.get(token)).map(|run| run.last)
                });
                if let Some(at) = acted.filter(|at| *at > since.0) {
                    slowest = slowest.max(Boot(at).since(since));
                    break;
                }
                if boot().since(since) > bound {
                    return Err(format!("{} did not act again within {bound:?}", job.name));
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(slowest)
    }

    /// Everything that the records show to be wrong.
    pub(crate) fn wrongs(&self) -> Vec<String> {
        let jobs = self.options.jobs.iter().enumerate();
        jobs.flat_map(|(index, job)| {
            let wrongs = self.judge(index, Judge::wrongs);
            wrongs.into_iter().map(|wrong| format!("{}: {wrong}", job.name))
        })
        .collect()
    }

    /// While this is kept, a panic does not hide an overlap.
    pub(crate) fn overlaps_come_first(&self) -> OverlapsComeFirst<'_> {
        OverlapsComeFirst(self)
    }

    /// What nodes logged of a store that granted a token which is not newer than one they had seen. Nothing is started
    /// under it, so the records do not show it.
    pub(crate) fn went_back(&self) -> Vec<String> {
        let log = |node: &Arc<Node>| {
            let file = self.directory.join(format!("{}.log", node.plan.name));
            std::fs::read_to_string(file).unwrap_or_default()
        };
        let logs: Vec<String> = self.nodes.iter().map(log).collect();
        let lines = logs.iter().flat_map(|log| log.lines());
        lines.filter(|line| line.contains(WENT_BACK)).map(str::to_owned).collect()
    }

    /// How long the runs of all jobs lasted, from first to last act.
    pub(crate) fn acted(&self) -> Duration {
        let lasted =
            |judge: &Judge| judge.runs.values().map(|run| run.last - run.first).sum::<u64>();
        let jobs = 0..self.options.jobs.len();
        Duration::from_nanos(jobs.map(|job| self.judge(job, lasted)).sum())
    }

    /// How many runs of all jobs began.
    pub(crate) fn starts(&self) -> usize {
        (0..self.options.jobs.len()).map(|job| self.judge(job, Judge::starts)).sum()
    }
}

/// Whatever else goes wrong, and whatever the machine excuses: overlaps are judged.
pub(crate) struct OverlapsComeFirst<'a>(&'a Cluster);

impl Drop for OverlapsComeFirst<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let wrongs = self.0.wrongs();
            machine::holds(wrongs.is_empty(), || wrongs.join("; "));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(operator) = self.operator.take() {
            operator.join().ok();
        }
        for node in &self.nodes {
            node.stop();
        }
        // One that a failed test left frozen would stay for ever; awake it ends what it guards.
        for guard in processes::guards_in(&self.directory) {
            guard.signal(Signal::SIGCONT);
        }
        // Whoever was frozen with its guard, or escaped because of what we look for, must not outlive the test.
        for job in &self.options.jobs {
            for process in processes::living(&self.directory, job.name) {
                process.signal(Signal::SIGKILL);
            }
        }
        if let StoreKind::Sqlite(place) = &self.options.store {
            file::unmount(place);
        }
    }
}

fn write_configuration(
    directory: &Path,
    store: &str,
    coordination: Option<&str>,
    options: &Options,
) {
    let exe = std::env::current_exe().expect("this program");
    let coordination = coordination.map(|url| format!("coordination = {url:?}\n"));
    let mut text = format!(
        "store = {store:?}\n{}listen = \"127.0.0.1:0\"\nlease_ttl = \"{}ms\"\n",
        coordination.unwrap_or_default(),
        options.lease.as_millis()
    );
    let member = options.turns.map(|_| format!("rotation = {ROTATION:?}\n")).unwrap_or_default();
    for job in &options.jobs {
        let command = [&exe.display().to_string(), witness::WORD, &directory.display().to_string()];
        text += &format!(
            "\n[[job]]\nname = {:?}\ncommand = [{:?}, {:?}, {:?}, {:?}, {:?}]\nmin_uptime = \"200ms\"\n\
             stop_grace = \"300ms\"\nrepeat = \"50ms\"\nbackoff = {{ first = \"50ms\", max = \"400ms\" }}\n{member}",
            job.name,
            command[0],
            command[1],
            command[2],
            job.name,
            job.mode.as_str()
        );
    }
    std::fs::write(directory.join("soloist.toml"), text).expect("a configuration");
}

/// `soloist WORDS` as the operator types it, at the store itself.
fn command(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SOLOIST);
    node::without_settings(&mut command);
    command.arg("--config").arg(directory.join("soloist.toml")).args(words);
    command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
    let log = directory.join("operator.log");
    let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
    command.stderr(log);
    command
}

fn switch(directory: &Path, store: Option<&str>, job: &str, on: bool) -> bool {
    let words = [if on { "on" } else { "off" }, job, "--user", USER];
    let mut command = command(directory, &words);
    if let Some(store) = store {
        // After a fail-over it is not where the configuration says.
        command.args(["--store", store]);
    }
    command.status().is_ok_and(|status| status.success())
}

fn get(address: SocketAddr, path: &str, token: &str) -> std::io::Result<String> {
    let patience = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
