//! The systems that are compared: how each is installed, what store it needs, and how a holder is started.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

use super::support::redis::RedisServer;
use super::support::wait::until;
use super::{TTL, installed, lives, root, run};

/// The lock, or the job.
const NAME: &str = "outbound";
const PYTHON_REDIS_LOCK: &str = "4.0.0";
/// Of the time of that release: it waits without a time-out of its own, as the lock relies on.
const REDIS_PY: &str = "5.0.8";
const REDLOCK: &str = "5.0.0-beta.2";
const IOREDIS: &str = "5.4.1";
/// As `benches/peers/rslock/Cargo.toml` pins it.
const RSLOCK: &str = "0.10.0";

/// One of them.
pub(crate) struct System {
    pub name: &'static str,
    /// Its own lease and renewal, when nobody says otherwise.
    pub defaults: &'static str,
    /// Installs it; its version, or why it cannot be measured.
    pub prepare: fn() -> Result<String, String>,
    /// A fresh store for a round.
    pub place: fn(&TempDir) -> Place,
    /// The command that wants the lock: directory, the children's record, which holder, the port of its store.
    pub holder: fn(&TempDir, &Path, &str, u16) -> Command,
}

/// A store for one round.
pub(crate) struct Place {
    pub port: u16,
    _store: Store,
}

enum Store {
    Redis { _server: RedisServer },
    Etcd(Child),
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Self::Etcd(child) = self {
            child.kill().expect("our own child");
            child.wait().expect("and waited for");
        }
    }
}

pub(crate) fn all() -> [System; 5] {
    [
        System {
            name: "Soloist",
            defaults: "5 s, renewed every sixth",
            prepare: || Ok(env!("CARGO_PKG_VERSION").to_owned()),
            place: soloist_place,
            holder: soloist,
        },
        System {
            name: "python-redis-lock",
            defaults: "none; renewed at two thirds",
            prepare: prepare_python,
            place: redis,
            holder: |_, log, _, port| {
                let python = installed().join("python/bin/python");
                let ttl = TTL.as_secs().to_string();
                wrapped(Command::new(python).arg(wrapper("python_redis_lock.py")), &ttl, log, port)
            },
        },
        System {
            name: "redlock (node)",
            defaults: "the caller's; renewed 500 ms before the end",
            prepare: prepare_node,
            place: redis,
            holder: |_, log, _, port| {
                let mut node = Command::new("node");
                node.current_dir(installed().join("node")).arg(wrapper("redlock.mjs"));
                wrapped(&mut node, &TTL.as_millis().to_string(), log, port)
            },
        },
        System {
            name: "rslock (Rust)",
            defaults: "the caller's; renewed 500 ms before the end",
            prepare: prepare_rslock,
            place: redis,
            holder: |_, log, _, port| {
                let ttl = TTL.as_millis().to_string();
                let program = installed().join("rslock/release/rslock-holder");
                wrapped(&mut Command::new(program), &ttl, log, port)
            },
        },
        System {
            name: "etcdctl lock",
            defaults: "10 s, renewed every third",
            prepare: || {
                run(Command::new("etcd").arg("--version"))
                    .map_err(|why| format!("{why}; Debian: apt-get install etcd-server"))?;
                let said = run(Command::new("etcdctl").arg("version"))
                    .map_err(|why| format!("{why}; Debian: apt-get install etcd-client"))?;
                Ok(said.lines().next().unwrap_or("").replace("etcdctl version: ", ""))
            },
            place: etcd,
            holder: |_, log, _, port| {
                let mut command = Command::new("etcdctl");
                command.arg(format!("--endpoints=127.0.0.1:{port}"));
                command.arg("lock").arg(format!("--ttl={}", TTL.as_secs())).arg(NAME);
                command.arg(own()).arg(lives::WORD).arg(log);
                command
            },
        },
    ]
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("our own path")
}

fn wrapper(file: &str) -> std::path::PathBuf {
    root().join("benches/peers").join(file)
}

/// `PROGRAM... URL NAME TTL CHILD...`, as every wrapper takes it.
fn wrapped(program: &mut Command, ttl: &str, log: &Path, port: u16) -> Command {
    let mut command = Command::new(program.get_program());
    command.args(program.get_args());
    if let Some(directory) = program.get_current_dir() {
        command.current_dir(directory);
    }
    command.arg(format!("redis://127.0.0.1:{port}/0")).args([NAME, ttl]);
    command.arg(own()).arg(lives::WORD).arg(log);
    command
}

fn redis(_: &TempDir) -> Place {
    let server = RedisServer::start(&[]);
    Place { port: server.port(), _store: Store::Redis { _server: server } }
}

fn etcd(directory: &TempDir) -> Place {
    let free = || {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("its address").port()
    };
    let (client, peer) = (free(), free());
    let own = |port: u16| format!("http://127.0.0.1:{port}");
    let log = std::fs::File::create(directory.path().join("etcd.log")).expect("a log");
    let child = Command::new("etcd")
        .args(["--name", "only", "--data-dir"])
        .arg(directory.path().join("etcd"))
        .args(["--listen-client-urls", &own(client), "--advertise-client-urls", &own(client)])
        .args(["--listen-peer-urls", &own(peer), "--initial-advertise-peer-urls", &own(peer)])
        .args(["--initial-cluster", &format!("only={}", own(peer))])
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("etcd starts");
    let place = Place { port: client, _store: Store::Etcd(child) };
    until("etcd answers", || {
        let endpoint = format!("--endpoints=127.0.0.1:{client}");
        run(Command::new("etcdctl").args([&endpoint, "endpoint", "health"])).ok()
    });
    place
}

/// A store in which li wants the job, and the configuration of both nodes.
fn soloist_place(directory: &TempDir) -> Place {
    let place = redis(directory);
    let (own, log) = (own().display().to_string(), directory.path().join("beats"));
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[job]]\nname = \"{NAME}\"\nlease_ttl = \"{}s\"\ncommand = [{own:?}, {:?}, {:?}]\n",
        TTL.as_secs(),
        lives::WORD,
        log.display().to_string(),
    );
    std::fs::write(directory.path().join("soloist.toml"), text).expect("a configuration");
    let password = directory.path().join("password");
    std::fs::write(&password, "amber ferry under 9 moons\n").expect("a file");
    for line in ["user add li --role operator --password-stdin", "on outbound --user li"] {
        let mut command = soloist_command(directory, place.port);
        command.stdin(std::fs::File::open(&password).expect("a file"));
        run(command.args(line.split(' '))).expect("li switches the job on");
    }
    place
}

fn soloist(directory: &TempDir, _: &Path, holder: &str, port: u16) -> Command {
    let mut command = soloist_command(directory, port);
    command.args(["serve", "--node", holder]);
    command
}

fn soloist_command(directory: &TempDir, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.arg("--config").arg(directory.path().join("soloist.toml"));
    command.args(["--store", &format!("redis://127.0.0.1:{port}/0")]);
    command.current_dir(directory.path());
    command
}

fn prepare_python() -> Result<String, String> {
    let venv = installed().join("python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        .map_err(|why| format!("{why}; Debian: apt-get install python3-venv"))?;
    run(Command::new(venv.join("bin/pip"))
        .args(["install", "--quiet"])
        .args([format!("python-redis-lock=={PYTHON_REDIS_LOCK}"), format!("redis=={REDIS_PY}")]))?;
    Ok(PYTHON_REDIS_LOCK.to_owned())
}

fn prepare_node() -> Result<String, String> {
    run(Command::new("node").arg("--version"))
        .map_err(|why| format!("{why}; Debian: apt-get install nodejs npm"))?;
    let directory = installed().join("node");
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    run(Command::new("npm")
        .current_dir(&directory)
        .args(["install", "--no-audit", "--no-save"])
        .args([format!("redlock@{REDLOCK}"), format!("ioredis@{IOREDIS}")]))?;
    Ok(REDLOCK.to_owned())
}

fn prepare_rslock() -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = root().join("benches/peers/rslock/Cargo.toml");
    run(Command::new(cargo)
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(installed().join("rslock")))?;
    Ok(RSLOCK.to_owned())
}
