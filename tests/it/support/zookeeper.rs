//! A real ZooKeeper for the tests: one server for all that only need a chroot, and ensembles of their own for those that break them.
//!
//! Debian's package, started by `java` with short ticks on free ports of the loopback. Each server is killed by its process id at the end,
//! and by the kernel should the test process end without an end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::service;
use super::wait::{PATIENCE, until, within};

const JAR: &str = "/usr/share/java/zookeeper.jar";
/// Milliseconds.
const TICK: u64 = 200;
/// How often they are started, on other ports each time, before that is a failure.
const STARTS: usize = 3;

/// Some servers that are one ensemble, or one that stands alone.
pub(crate) struct ZooKeeper {
    servers: Vec<Server>,
    directory: TempDir,
}

struct Server {
    client: u16,
    directory: PathBuf,
    /// Java's own options.
    options: Vec<String>,
    process: Option<Child>,
}

fn free_ports(many: usize) -> Vec<u16> {
    let free: Vec<TcpListener> =
        (0..many).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    free.iter().map(|one| one.local_addr().expect("its address").port()).collect()
}

impl ZooKeeper {
    /// The one that tests share; each takes a chroot of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<ZooKeeper> = LazyLock::new(|| {
            let server = ZooKeeper::start(1, &[], &[]);
            service::sweep_behind(server.directory.path());
            server
        });
        &SHARED
    }

    /// Starts so many servers with further lines in zoo.cfg, and further options for Java.
    ///
    /// # Panics
    /// When ZooKeeper is not installed, or does not come up.
    #[must_use]
    pub(crate) fn start(many: usize, lines: &[&str], options: &[&str]) -> Self {
        assert!(Path::new(JAR).exists(), "apt-get install zookeeper");
        // Until Java is there, another process may take a port that was free: then all begin anew on others.
        for _ in 1..STARTS {
            let ensemble = Self::begin(many, lines, options);
            let serves = |server: &Server| within(PATIENCE / 2, || server.mode()).is_some();
            if ensemble.servers.iter().all(serves) {
                return ensemble;
            }
        }
        let ensemble = Self::begin(many, lines, options);
        ensemble.wait();
        ensemble
    }

    /// They are started, and may not serve yet.
    fn begin(many: usize, lines: &[&str], options: &[&str]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let (clients, quorum, election) = (free_ports(many), free_ports(many), free_ports(many));
        let mut text = format!(
            "tickTime={TICK}\ninitLimit=50\nsyncLimit=20\nmaxSessionTimeout=700000\nmaxClientCnxns=0\n\
             admin.enableServer=false\n4lw.commands.whitelist=srvr,ruok,mntr,conf\n"
        );
        for line in lines {
            text += &format!("{line}\n");
        }
        if many > 1 {
            for (nth, (quorum, election)) in quorum.iter().zip(&election).enumerate() {
                text += &format!("server.{}=127.0.0.1:{quorum}:{election}\n", nth + 1);
            }
        }
        let mut servers = Vec::new();
        for (nth, client) in clients.into_iter().enumerate() {
            let own = directory.path().join(nth.to_string());
            std::fs::create_dir_all(own.join("data")).expect("its directory");
            std::fs::write(own.join("data/myid"), (nth + 1).to_string()).expect("its number");
            let settings = format!(
                "{text}dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={client}\n",
                own.join("data").display()
            );
            std::fs::write(own.join("zoo.cfg"), settings).expect("its settings");
            std::fs::write(own.join("log"), "").expect("its log");
            let options = options.iter().map(|&option| option.to_owned()).collect();
            servers.push(Server { client, directory: own, options, process: None });
        }
        let mut ensemble = Self { servers, directory };
        for server in &mut ensemble.servers {
            server.spawn();
        }
        ensemble
    }

    /// Waits until every server that runs serves.
    pub(crate) fn wait(&self) {
        for server in self.servers.iter().filter(|server| server.process.is_some()) {
            until("ZooKeeper serves", || server.mode());
        }
    }

    /// A URL with a chroot that nobody has used.
    #[must_use]
    pub(crate) fn chroot(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.url(&format!("law-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// A URL with that chroot.
    #[must_use]
    pub(crate) fn url(&self, chroot: &str) -> String {
        let servers: Vec<String> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.client)).collect();
        format!("zookeeper://{}/{chroot}", servers.join(","))
    }

    /// Where the servers are.
    #[allow(dead_code, reason = "not every program of tests stands between")]
    pub(crate) fn addresses(&self) -> Vec<std::net::SocketAddr> {
        let all = self.servers.iter();
        all.map(|server| (std::net::Ipv4Addr::LOCALHOST, server.client).into()).collect()
    }

    /// Which server leads.
    ///
    /// # Panics
    /// When none does in time.
    #[must_use]
    pub(crate) fn leader(&self) -> usize {
        until("there is a leader", || {
            let leads = |server: &Server| server.mode().as_deref() == Some("leader");
            self.servers.iter().position(leads)
        })
    }

    /// Sends `signal` to a server.
    pub(crate) fn signal(&self, nth: usize, signal: Signal) {
        if let Some(process) = &self.servers[nth].process {
            kill(Pid::from_raw(i32::try_from(process.id()).expect("a pid")), signal).ok();
        }
    }

    /// kill -9 of a server.
    pub(crate) fn kill(&mut self, nth: usize) {
        if let Some(mut process) = self.servers[nth].process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }

    /// Starts a server again that was killed; on its files, or as if it had never had any.
    pub(crate) fn start_again(&mut self, nth: usize, emptied: bool) {
        let server = &mut self.servers[nth];
        if emptied {
            std::fs::remove_dir_all(server.directory.join("data/version-2")).ok();
        }
        server.spawn();
    }

    /// A copy of the files of a server that was killed.
    ///
    /// # Panics
    /// When they cannot be copied.
    #[must_use]
    #[allow(dead_code, reason = "tests/faults restores nothing")]
    pub(crate) fn backup(&self, nth: usize) -> TempDir {
        let copy = TempDir::new().expect("a directory");
        copied(&self.servers[nth].directory.join("data/version-2"), copy.path());
        copy
    }

    /// Gives a server that was killed the files of [`ZooKeeper::backup`] in the place of its own.
    ///
    /// # Panics
    /// When they cannot be copied.
    #[allow(dead_code, reason = "tests/faults restores nothing")]
    pub(crate) fn restore(&self, nth: usize, backup: &TempDir) {
        let data = self.servers[nth].directory.join("data/version-2");
        std::fs::remove_dir_all(&data).expect("its files go");
        std::fs::create_dir(&data).expect("a directory");
        copied(backup.path(), &data);
    }

    /// How many there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }
}

/// Copies every file of a directory into another.
fn copied(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).expect("its files") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
    }
}

impl Server {
    fn spawn(&mut self) {
        let mut command = Command::new("/usr/bin/java");
        command.args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.args(&self.options).args(["-cp", JAR]);
        command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
        command.arg(self.directory.join("zoo.cfg")).current_dir(&self.directory);
        self.process = Some(service::spawn(command, None));
    }

    /// `standalone`, `leader` or `follower`, once it serves.
    fn mode(&self) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.client)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        stream.write_all(b"srvr").ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        said.lines().find_map(|line| line.strip_prefix("Mode: ")).map(ToOwned::to_owned)
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        for nth in 0..self.servers.len() {
            self.kill(nth);
        }
    }
}
