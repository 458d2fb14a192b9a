//! A real PostgreSQL for the tests: one server for all that only need a database, and servers of their own for those that break it.
//!
//! It listens on a free port of the loopback, in a directory of its own, and refuses to run as root: then it runs as the user `postgres`
//! of Debian's package. It is killed by its process id at the end, and by the kernel should the test process end without an end.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid};
use tempfile::TempDir;

use super::service;
use super::small_disk::SmallDisk;
use super::wait::until;

/// A running server.
pub(crate) struct PostgresServer {
    port: u16,
    options: Vec<String>,
    /// Whether its clock can be set.
    clock: bool,
    disk: Option<Arc<SmallDisk>>,
    directory: TempDir,
    process: Option<Child>,
}

/// Who may run it, when we are root.
fn user() -> Option<(u32, u32)> {
    service::user("postgres")
}

/// A program of the newest server that is installed.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter(|entry| entry.path().join("bin").join(name).exists())
        .max_by_key(|entry| entry.file_name().to_string_lossy().parse::<u32>().unwrap_or(0));
    let newest = newest.expect("PostgreSQL is installed: apt-get install postgresql");
    newest.path().join("bin").join(name)
}

/// As that user, and no longer than the thread that starts it.
fn as_user(command: &mut Command) -> &mut Command {
    if let Some((uid, gid)) = user() {
        command.uid(uid).gid(gid);
    }
    command
}

impl PostgresServer {
    /// The one that tests share; each makes a database of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<PostgresServer> = LazyLock::new(|| {
            let server = PostgresServer::start(&[]);
            service::sweep_behind(server.directory.path());
            server
        });
        &SHARED
    }

    /// Starts a server with `options` (`["fsync=off"]`).
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not come up.
    #[must_use]
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_in(Self::made(), options, false, None)
    }

    /// Starts one whose clock [`PostgresServer::set_clock`] can set.
    #[allow(dead_code, reason = "tests/faults sets no server's clock")]
    #[must_use]
    pub(crate) fn start_with_a_clock() -> Self {
        Self::start_in(Self::made(), &[], true, None)
    }

    /// Starts one on a disk of its own.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[allow(dead_code, reason = "tests/faults fills no server's disk")]
    #[must_use]
    pub(crate) fn start_on_a_small_disk() -> Self {
        let directory = Self::made();
        let disk = SmallDisk::at(&directory.path().join("data"), 160);
        Self::start_in(directory, &["max_wal_size=48MB", "min_wal_size=32MB"], false, Some(disk))
    }

    /// The files of a new server, in a directory.
    fn made() -> TempDir {
        let directory = TempDir::new().expect("a directory");
        if let Some((uid, gid)) = user() {
            let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            nix::unistd::chown(directory.path(), owner.0, owner.1).expect("given to postgres");
        }
        let data = directory.path().join("data");
        let mut initdb = Command::new(program("initdb"));
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "-D"]);
        initdb.arg(&data).current_dir(directory.path()).stdout(Stdio::null());
        let made = as_user(&mut initdb).status().expect("initdb runs");
        assert!(made.success(), "initdb failed");
        directory
    }

    fn start_in(
        directory: TempDir,
        options: &[&str],
        clock: bool,
        disk: Option<SmallDisk>,
    ) -> Self {
        let server = Self::run_in(directory, options, clock, disk);
        server.psql("postgres", "CREATE ROLE soloist LOGIN");
        server
    }

    /// A copy of this server's files as they are now, under a server of its own that follows nobody.
    #[must_use]
    pub(crate) fn replica(&self) -> Self {
        let directory = TempDir::new().expect("a directory");
        if let Some((uid, gid)) = user() {
            let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            nix::unistd::chown(directory.path(), owner.0, owner.1).expect("given to postgres");
        }
        let mut copy = Command::new(program("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-U", "postgres", "--checkpoint=fast", "-p"]);
        copy.arg(self.port.to_string()).arg("-D").arg(directory.path().join("data"));
        let copied = as_user(copy.current_dir(directory.path())).status();
        assert!(copied.expect("pg_basebackup runs").success(), "pg_basebackup failed");
        let signal = directory.path().join("data/standby.signal");
        let mut touch = Command::new("touch");
        as_user(touch.arg(signal).current_dir("/")).status().expect("a standby");
        Self::run_in(directory, &[], false, None)
    }

    fn run_in(directory: TempDir, options: &[&str], clock: bool, disk: Option<SmallDisk>) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let disk = disk.map(Arc::new);
        let mut server = Self { port: 0, options, clock, disk, directory, process: None };
        server.set_clock("+0");
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            server.port = free.local_addr().expect("its address").port();
            drop(free);
            if server.spawn() {
                return server;
            }
        }
        panic!("PostgreSQL did not start: {}", server.said());
    }

    /// Sets its clock, if it has one of its own: `+3600`.
    pub(crate) fn set_clock(&self, offset: &str) {
        std::fs::write(self.directory.path().join("clock"), offset).expect("written");
    }

    /// The disk of its own.
    ///
    /// # Panics
    /// When it has none.
    #[allow(dead_code, reason = "tests/faults fills no server's disk")]
    pub(crate) fn disk(&self) -> Arc<SmallDisk> {
        Arc::clone(self.disk.as_ref().expect("started with one"))
    }

    /// What it wrote.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn spawn(&mut self) -> bool {
        let path = self.directory.path();
        let log = std::fs::File::create(path.join("log")).expect("a log");
        let mut command = Command::new(program("postgres"));
        command.arg("-D").arg(path.join("data")).current_dir(path);
        let socket = format!("unix_socket_directories={}", path.display());
        let port = format!("port={}", self.port);
        let own = ["listen_addresses=127.0.0.1", "max_connections=300", "shared_buffers=16MB"];
        let own = own.iter().copied().chain([socket.as_str(), port.as_str()]);
        for option in own.chain(self.options.iter().map(String::as_str)) {
            command.args(["-c", option]);
        }
        command.stdout(Stdio::null()).stderr(log);
        if self.clock {
            service::give_a_clock(&mut command, &path.join("clock"));
        }
        self.process = Some(service::spawn_on(self.disk.as_deref(), command, user()));
        let child = self.process.as_mut().expect("started just now");
        let port = self.port;
        let mut gone = false;
        until("PostgreSQL answers, or has ended", || {
            gone = child.try_wait().expect("its state").is_some();
            (gone || psql_at(port, "postgres", "SELECT 1").is_ok()).then_some(())
        });
        !gone
    }

    /// A new database in which the user `soloist` has what docs/stores.md gives it, and its URL for that user.
    #[must_use]
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("law_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.closed_database(&name);
        self.psql("postgres", &format!("GRANT CONNECT ON DATABASE {name} TO soloist"));
        self.psql(&name, "CREATE SCHEMA soloist AUTHORIZATION soloist");
        self.url_of(&name)
    }

    /// A new database in which nobody has any right.
    pub(crate) fn closed_database(&self, name: &str) {
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.psql("postgres", &format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC"));
    }

    /// Of a database there.
    #[must_use]
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://soloist@127.0.0.1:{}/{database}", self.port)
    }

    /// Where it listens.
    #[allow(dead_code, reason = "tests/faults puts a proxy before it")]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Of the process that all its others descend from.
    ///
    /// # Panics
    /// When it was killed.
    #[allow(dead_code, reason = "benches/stores asks what it costs")]
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// Sends `signal` to all of its processes.
    #[allow(dead_code, reason = "tests/faults freezes it")]
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(process) = &self.process else { return };
        for pid in std::iter::once(process.id()).chain(descendants(process.id())) {
            kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), signal).ok();
        }
    }

    /// What `sql` answers, as psql prints it without ornament.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        psql_at(self.port, database, sql).unwrap_or_else(|why| panic!("{sql}: {why}"))
    }

    /// kill -9 of all of it, as a power cut without the disk.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = Pid::from_raw(i32::try_from(process.id()).expect("a pid"));
            let children = descendants(process.id());
            kill(pid, Signal::SIGKILL).ok();
            for child in children {
                kill(Pid::from_raw(i32::try_from(child).expect("a pid")), Signal::SIGKILL).ok();
            }
            process.wait().expect("it has ended");
        }
    }

    /// Starts it again on the same port and files, if it has ended by itself.
    #[allow(dead_code, reason = "tests/faults fills no server's disk")]
    pub(crate) fn come_back(&mut self) {
        let (port, mut gone) = (self.port, false);
        let process = self.process.as_mut().expect("it was started");
        until("PostgreSQL answers, or has ended", || {
            gone = process.try_wait().expect("its state").is_some();
            (gone || psql_at(port, "postgres", "SELECT 1").is_ok()).then_some(())
        });
        if gone {
            assert!(self.spawn(), "PostgreSQL did not come back: {}", self.said());
        }
    }

    /// Kills it and starts it again on the same port and files.
    pub(crate) fn restart(&mut self) {
        self.kill();
        std::fs::remove_file(self.directory.path().join("data/postmaster.pid")).ok();
        assert!(self.spawn(), "PostgreSQL did not come back: {}", self.said());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes below `pid`.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
    let children: Vec<String> = threads.flat_map(of).collect();
    let children = children.iter().flat_map(|pids| pids.split_whitespace());
    let children: Vec<u32> = children.flat_map(str::parse).collect();
    let below = children.iter().flat_map(|child| descendants(*child));
    let below: Vec<u32> = below.collect();
    children.into_iter().chain(below).collect()
}

fn psql_at(port: u16, database: &str, sql: &str) -> Result<String, String> {
    let mut psql = Command::new(program("psql"));
    psql.args(["-h", "127.0.0.1", "-U", "postgres", "-XAtq", "-v", "ON_ERROR_STOP=1", "-p"]);
    psql.arg(port.to_string()).args(["-d", database, "-c", sql]);
    let output = psql.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A pool of connections before a server, as PgBouncer makes it.
pub(crate) struct Pooler {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl Pooler {
    /// Starts one in `mode` (`transaction`).
    ///
    /// # Panics
    /// When PgBouncer is not installed, or does not come up.
    #[must_use]
    pub(crate) fn before(server: &PostgresServer, mode: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path();
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let users = path.join("users");
        std::fs::write(&users, "\"soloist\" \"\"\n\"postgres\" \"\"\n").expect("its users");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\n",
            server.port,
            users.display()
        );
        std::fs::write(path.join("settings"), settings).expect("its settings");
        std::fs::write(path.join("log"), "").expect("a log");
        if let Some((uid, gid)) = user() {
            let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            nix::unistd::chown(path, owner.0, owner.1).expect("given to postgres");
        }
        // It stands in a directory that is on the PATH of root alone.
        let mut command = Command::new("/usr/sbin/pgbouncer");
        command.arg(path.join("settings")).current_dir(path);
        let process = service::spawn(command, user());
        until("PgBouncer answers", || psql_at(port, "postgres", "SELECT 1").ok());
        Self { port, process, _directory: directory }
    }

    /// The same database as at `url`, through the pool.
    #[must_use]
    pub(crate) fn url_of(&self, url: &str) -> String {
        let database = url.rsplit('/').next().expect("its name");
        format!("postgres://soloist@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
