//! Random faults over six jobs that know the time: what ran is held against what is told.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

use crate::support::machine::judged;
use crate::support::node::{Ground, Node};
use crate::support::postgres::{PostgresServer, descendants};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until, within};

judged! {
    whatever_fails_on_redis_no_tick_runs_twice_and_each_is_told
    whatever_fails_on_sqlite_no_tick_runs_twice_and_each_is_told
    whatever_fails_on_postgresql_no_tick_runs_twice_and_each_is_told
}

/// The six jobs: name, keys, what the script does after it has begun.
const JOBS: [(&str, &str, &str); 6] = [
    ("plain", "every = \"1s\"", "sleep 0.3"),
    ("spent", "every = \"2s\"\non_loss = \"spent\"", "sleep 1"),
    ("all", "every = \"1s\"\nmissed = \"all\"\nmissed_window = \"1m\"", "sleep 0.2"),
    ("skip", "every = \"1s\"\nmissed = \"skip\"\noverlap = \"queue\"", "sleep 1.3"),
    ("replace", "every = \"2s\"\noverlap = \"replace\"\nstop_grace = \"500ms\"", "sleep 3"),
    (
        "retry",
        "every = \"2s\"\nretries = 3\nbackoff = { first = \"100ms\", max = \"1s\" }",
        "[ $(($$ % 3)) != 0 ]",
    ),
];

/// So many on one ground; then everything begins anew, so that no list outgrows what is kept.
const A_ROUND: u64 = 25;

/// The store and its server.
enum Place {
    Sqlite,
    Redis(RedisServer),
    Postgres(PostgresServer),
}

impl Place {
    fn url(&self) -> String {
        match self {
            Self::Sqlite => "sqlite:soloist.db".to_owned(),
            Self::Redis(server) => server.url(),
            Self::Postgres(server) => server.database(),
        }
    }

    /// Nobody is answered for so long.
    fn pause(&self, ground: &Ground, span: Duration) {
        match self {
            Self::Sqlite => {
                let file = rusqlite::Connection::open(ground.path("soloist.db")).expect("a file");
                file.busy_timeout(PATIENCE).expect("a patience");
                file.execute_batch("BEGIN IMMEDIATE").expect("no other writes");
                std::thread::sleep(span);
                file.execute_batch("ROLLBACK").expect("others write");
            }
            Self::Redis(server) => {
                server.pause();
                std::thread::sleep(span);
                server.resume();
            }
            Self::Postgres(server) => {
                server.signal(Signal::SIGSTOP);
                std::thread::sleep(span);
                server.signal(Signal::SIGCONT);
            }
        }
    }

    /// `kill -9` of the server, which comes back after so long; of a file the same as a pause.
    fn restart(&mut self, ground: &Ground, span: Duration) {
        match self {
            Self::Sqlite => return self.pause(ground, span),
            Self::Redis(server) => server.kill(),
            Self::Postgres(server) => server.kill(),
        }
        std::thread::sleep(span);
        match self {
            Self::Sqlite => {}
            Self::Redis(server) => server.restart(),
            Self::Postgres(server) => server.restart(),
        }
    }
}

async fn whatever_fails_on_redis_no_tick_runs_twice_and_each_is_told() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    rounds(|| Place::Redis(RedisServer::start(&durable)));
}

async fn whatever_fails_on_sqlite_no_tick_runs_twice_and_each_is_told() {
    rounds(|| Place::Sqlite);
}

async fn whatever_fails_on_postgresql_no_tick_runs_twice_and_each_is_told() {
    rounds(|| Place::Postgres(PostgresServer::start(&[])));
}

/// 12 faults, or as many as `SOLOIST_TEST_FAULTS` says.
fn rounds(place: impl Fn() -> Place) {
    let told = std::env::var_os("SOLOIST_TEST_FAULTS");
    let mut left = told.and_then(|text| text.to_str()?.parse().ok()).unwrap_or(12);
    while left > 0 {
        let now = A_ROUND.min(left);
        round(place(), now, rand::random());
        left -= now;
        println!("{left} faults are left");
    }
}

/// Kills, stops and starts nodes, their guards and the store, as a seed says.
fn round(mut place: Place, faults: u64, seed: u64) {
    println!("seed {seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    let mut pick = |sides: u64| dice.random_range(0..sides);
    let ms = Duration::from_millis;
    let job = |name, keys| {
        format!(
            "[[job]]\nname = \"{name}\"\ncommand = [\"bash\", \"{name}.sh\"]\nlease_ttl = \"2s\"\n{keys}\n"
        )
    };
    let jobs: String = JOBS.iter().map(|(name, keys, _)| job(name, keys)).collect();
    let ground = Ground::new(&place.url(), &jobs);
    for (name, _, rest) in JOBS {
        // The kernel says whether two are at work at once.
        let script = format!(
            "exec 9>{name}.lock\nflock -n 9 || echo OVERLAP >> {name}.acts\necho \"$SOLOIST_TICK $SOLOIST_ATTEMPT\" >> {name}.acts\n{rest}\n"
        );
        std::fs::write(ground.path(&format!("{name}.sh")), script).expect("a script");
    }
    let names = ["node-a", "node-b", "node-c"];
    let mut nodes: Vec<Option<Node>> = names.map(|name| Some(ground.start(name))).into();
    ground.add_user("li", "operator");
    for (name, ..) in JOBS {
        ground.must(&["on", name, "--user", "li"]);
    }
    for _ in 0..faults {
        let at = usize::try_from(pick(3)).expect("small");
        match (pick(8), &mut nodes[at]) {
            (_, empty @ None) => *empty = Some(ground.start(names[at])),
            (0 | 1, Some(node)) => {
                node.kill();
                nodes[at] = None;
            }
            (2, Some(node)) => {
                node.signal(Signal::SIGSTOP);
                std::thread::sleep(ms(500 + pick(4_000)));
                node.signal(Signal::SIGCONT);
            }
            (3, Some(node)) => {
                node.terminate();
                nodes[at] = None;
            }
            (4, _) => place.pause(&ground, ms(200 + pick(3_000))),
            (5, _) => place.restart(&ground, ms(pick(2_000))),
            (6, Some(node)) => {
                for guard in guards_of(node) {
                    kill(guard, Signal::SIGKILL).ok();
                }
            }
            _ => {
                let job = JOBS[usize::try_from(pick(6)).expect("small")].0;
                let state = if pick(2) == 0 { "off" } else { "on" };
                drop(ground.run(&[state, job, "--user", "li"]));
            }
        }
        std::thread::sleep(ms(100 + pick(1_000)));
    }
    for (at, node) in nodes.iter_mut().enumerate() {
        node.get_or_insert_with(|| ground.start(names[at]));
    }
    for (name, ..) in JOBS {
        until("it is switched off", || {
            ground.run(&["off", name, "--user", "li"]).status.success().then_some(())
        });
    }
    for (name, keys, _) in JOBS {
        judge(&ground, (name, keys), seed);
    }
}

/// The guards that a node started.
pub(super) fn guards_of(node: &Node) -> Vec<Pid> {
    let is_guard = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.starts_with(b"soloist guard of ")
    };
    let below = descendants(node.pid().as_raw().unsigned_abs());
    below.into_iter().filter(is_guard).map(|pid| Pid::from_raw(pid.cast_signed())).collect()
}

fn judge(ground: &Ground, (name, keys): (&str, &str), seed: u64) {
    let acts = std::fs::read_to_string(ground.path(&format!("{name}.acts"))).unwrap_or_default();
    assert!(!acts.contains("OVERLAP"), "{name}: two at once, seed {seed}: {acts}");
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for act in acts.lines() {
        *seen.entry(act).or_default() += 1;
        if keys.contains("spent") {
            assert!(
                act.ends_with(" 1") || !acts.contains(&act.replace(" 2", " 1")),
                "seed {seed}: {act} of {acts}"
            );
        }
    }
    assert!(seen.values().all(|count| *count == 1), "{name}: twice, seed {seed}: {acts}");
    // An entry is written within 5 s.
    let mut wrong = String::new();
    let told = within(PATIENCE, || {
        let output = ground.run(&["ticks", name, "--limit", "500", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).ok()?;
        let checked = check_told(keys, list["ticks"].as_array()?, &acts);
        checked.map_err(|why| wrong = format!("{why}: {list:#}")).ok()
    });
    assert!(told.is_some(), "{name}, seed {seed}: {wrong}");
}

/// Every instant between the first and the last has one entry, and what ran has an entry of its own.
pub(super) fn check_told(keys: &str, told: &[Value], acts: &str) -> Result<(), String> {
    let step = if keys.contains("every = \"1s\"") { 1 } else { 2 };
    let due = |text: &str| {
        let (_, at) = text.split_once('@').expect("a name");
        at.parse::<jiff::Timestamp>().expect("an instant").as_second()
    };
    let mut all: Vec<i64> = Vec::new();
    for tick in told {
        if tick["outcome"] == "running" {
            return Err(format!("{} is open", tick["tick"]));
        }
        // Nobody but the death of a guard kills these scripts: that is a loss, and no crash.
        if tick["why"].as_str().is_some_and(|why| why.contains("signal 9")) {
            return Err(format!("{} crashed with its guard", tick["tick"]));
        }
        let first = due(tick["tick"].as_str().expect("a name"));
        let count = tick["count"].as_i64().expect("a number");
        all.extend((0..count).map(|nth| first + nth * step));
    }
    all.sort_unstable();
    if let Some(two) = all.windows(2).find(|two| two[1] - two[0] != step) {
        return Err(format!("a gap or a double at {}", two[0]));
    }
    let untold = acts.lines().find(|act| {
        let tick = act.split(' ').next().unwrap_or_default();
        !told.iter().any(|entry| entry["tick"] == tick && entry["attempt"] != 0)
    });
    untold.map_or(Ok(()), |act| Err(format!("{act} ran and is not told")))
}
