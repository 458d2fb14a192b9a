//! A real MariaDB for the tests: one server for all that only need a database, and servers of their own for those that break it. With
//! `$SOLOIST_TEST_MYSQL` (`tests/mysql`) it is MySQL itself, from the programs in that directory.
//!
//! It listens on a free port of the loopback, in a directory of its own, and runs as the user `mysql` of Debian's package when we are
//! root. It is killed by its process id at the end, and by the kernel should the test process end without an end.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid};
use tempfile::TempDir;

use super::service;
use super::small_disk::SmallDisk;
use super::wait::until;

/// A running server.
pub(crate) struct MariaServer {
    port: u16,
    options: Vec<String>,
    /// By how much its clock is off, if it can be set.
    clock: bool,
    disk: Option<Arc<SmallDisk>>,
    directory: TempDir,
    process: Option<Child>,
}

/// Whose server it is. They have other programs, and other words for an administrator.
pub(crate) enum Make {
    MariaDb,
    /// `mysqld` and `mysql` stand in this directory; the root of their package below it.
    Mysql(PathBuf),
}

/// The one that this run of the tests is about.
pub(crate) static MAKE: LazyLock<Make> =
    LazyLock::new(|| match std::env::var_os("SOLOIST_TEST_MYSQL") {
        None => Make::MariaDb,
        Some(directory) => Make::Mysql(directory.into()),
    });

impl Make {
    pub(crate) fn is_mysql(&self) -> bool {
        matches!(self, Self::Mysql(_))
    }

    /// The server, with what it must be told wherever its files are.
    fn server(&self) -> Command {
        let Self::Mysql(directory) = self else {
            let mut command = Command::new("mariadbd");
            command.args(["--no-defaults", "--innodb-log-file-size=8M"]);
            return command;
        };
        let mut command = Command::new(directory.join("mysqld"));
        let base = directory.join("root/usr");
        command.arg("--no-defaults").arg(format!("--basedir={}", base.display()));
        command.arg(format!("--lc-messages-dir={}", base.join("share/mysql").display()));
        command.args(["--secure-file-priv=NULL", "--mysqlx=OFF", "--innodb-redo-log-capacity=16M"]);
        command
    }

    /// What makes the files of a new server.
    fn installer(&self) -> Command {
        if self.is_mysql() {
            let mut command = self.server();
            command.arg("--initialize-insecure");
            return command;
        }
        let mut command = Command::new("mariadb-install-db");
        command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        command.args(["--skip-test-db", "--innodb-log-file-size=8M"]);
        command
    }

    fn client(&self) -> Command {
        match self {
            Self::MariaDb => Command::new("mariadb"),
            Self::Mysql(directory) => Command::new(directory.join("mysql")),
        }
    }
}

/// What docs/stores.md gives the user.
pub(crate) const RIGHTS: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE";

impl MariaServer {
    /// The one that tests share; each makes a database of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<MariaServer> = LazyLock::new(|| {
            let server = MariaServer::start(&[]);
            service::sweep_behind(server.directory.path());
            server
        });
        &SHARED
    }

    /// Starts a server with `options` (`["log-bin"]`).
    ///
    /// # Panics
    /// When MariaDB is not installed, or does not come up.
    #[must_use]
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_with(options, false, None)
    }

    /// Starts one whose clock [`MariaServer::set_clock`] can set.
    #[must_use]
    pub(crate) fn start_with_a_clock() -> Self {
        Self::start_with(&[], true, None)
    }

    /// Starts one on a disk of its own, of so many megabytes.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[allow(dead_code, reason = "tests/faults fills no server's disk")]
    #[must_use]
    pub(crate) fn start_on_a_small_disk(megabytes: u32) -> Self {
        Self::start_with(&[], false, Some(megabytes))
    }

    /// Starts a node of a Galera cluster: its first, or one more beside the one that others find at `other`. With
    /// it comes where it is found itself.
    ///
    /// # Panics
    /// When Galera is not installed, or does not come up.
    #[allow(dead_code, reason = "tests/faults has no cluster of servers")]
    #[must_use]
    pub(crate) fn start_in_galera(other: Option<u16>) -> (Self, u16) {
        let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let ports =
            [free(), free(), free()].map(|one| one.local_addr().expect("its address").port());
        let [group, increments, files] = ports;
        let members = other.map_or(String::new(), |port| format!("127.0.0.1:{port}"));
        let options = [
            "binlog-format=ROW".to_owned(),
            "innodb-autoinc-lock-mode=2".to_owned(),
            "wsrep-on=ON".to_owned(),
            "wsrep-provider=/usr/lib/galera/libgalera_smm.so".to_owned(),
            format!("wsrep-cluster-address=gcomm://{members}"),
            "wsrep-node-address=127.0.0.1".to_owned(),
            "wsrep-sst-method=rsync".to_owned(),
            format!("wsrep-sst-receive-address=127.0.0.1:{files}"),
            format!(
                "wsrep-provider-options=base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};\
                 ist.recv_addr=127.0.0.1:{increments};pc.recovery=false"
            ),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        (Self::start(&options), group)
    }

    fn start_with(options: &[&str], clock: bool, megabytes: Option<u32>) -> Self {
        let directory = place();
        // Making the files takes the server seconds: they are made once, and copied.
        static MADE: LazyLock<TempDir> = LazyLock::new(|| {
            let made = place();
            install(made.path());
            service::sweep_behind(made.path());
            made
        });
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--sparse=always"]).arg(MADE.path().join("data"));
        let copied = copy.arg(directory.path()).status().expect("cp runs");
        assert!(copied.success(), "the files of MariaDB could not be copied");
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let data = directory.path().join("data");
        let disk = megabytes.map(|some| Arc::new(SmallDisk::at(&data, some)));
        let mut server = Self { port: 0, options, clock, disk, directory, process: None };
        server.set_clock("+0");
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            server.port = free.local_addr().expect("its address").port();
            drop(free);
            if server.spawn() {
                server.sql("CREATE USER IF NOT EXISTS soloist@'127.0.0.1' IDENTIFIED BY 'sesame'");
                return server;
            }
        }
        panic!("MariaDB did not start: {}", server.said());
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
        std::fs::File::create(path.join("log")).expect("a log");
        let mut command = MAKE.server();
        command.current_dir(path);
        for (name, value) in
            [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid"), ("tmpdir", "")]
        {
            command.arg(format!("--{name}={}", path.join(value).display()));
        }
        command.arg(format!("--port={}", self.port));
        command.args(["--bind-address=127.0.0.1", "--max-connections=400"]);
        command.arg("--innodb-buffer-pool-size=64M");
        for option in &self.options {
            command.arg(format!("--{option}"));
        }
        if self.clock {
            service::give_a_clock(&mut command, &path.join("clock"));
        }
        self.process =
            Some(service::spawn_on(self.disk.as_deref(), command, service::user("mysql")));
        let child = self.process.as_mut().expect("started just now");
        let mut gone = false;
        // Of a table: a member of a Galera cluster answers less before it is ready.
        let asked = "SELECT count(*) FROM mysql.user";
        until("MariaDB answers, or has ended", || {
            gone = child.try_wait().expect("its state").is_some();
            (gone || ask(path, asked).is_ok()).then_some(())
        });
        !gone
    }

    /// A new database in which the user `soloist` has what docs/stores.md gives it, and its URL for that user.
    #[must_use]
    pub(crate) fn database(&self) -> String {
        let name = self.empty_database();
        self.sql(&format!("GRANT {RIGHTS} ON {name}.* TO soloist@'127.0.0.1'"));
        self.url_of(&name)
    }

    /// A new database in which nobody has any right.
    #[must_use]
    pub(crate) fn empty_database(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("law{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE DATABASE {name}"));
        name
    }

    /// Of a database there.
    #[must_use]
    pub(crate) fn url_of(&self, database: &str) -> String {
        self.url_at(self.port, database)
    }

    /// The same by another port that leads to it.
    #[must_use]
    pub(crate) fn url_at(&self, port: u16, database: &str) -> String {
        format!("mysql://soloist:sesame@127.0.0.1:{port}/{database}")
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What `sql` answers to an administrator, without ornament.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn sql(&self, sql: &str) -> String {
        ask(self.directory.path(), sql).unwrap_or_else(|why| panic!("{sql}: {why}"))
    }

    /// Ends every connection of the user that there is now. By their numbers: `KILL USER` goes by the name that an address was
    /// resolved to, and may find none.
    pub(crate) fn cut_all(&self) {
        let ids = self.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'soloist'");
        for id in ids.split_whitespace() {
            // It may have ended by itself.
            drop(ask(self.directory.path(), &format!("KILL CONNECTION {id}")));
        }
    }

    /// Of its process.
    ///
    /// # Panics
    /// When it was killed.
    #[allow(dead_code, reason = "benches/stores asks what it costs")]
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// Sends `signal` to its process.
    #[allow(dead_code, reason = "tests/faults freezes it")]
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            kill(Pid::from_raw(i32::try_from(process.id()).expect("a pid")), signal).ok();
        }
    }

    /// kill -9, as a power cut without the disk.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("ours");
            process.wait().expect("it has ended");
        }
    }

    /// Starts it again on the same port and files, if it has ended by itself.
    #[allow(dead_code, reason = "tests/faults fills no server's disk")]
    pub(crate) fn come_back(&mut self) {
        let (path, mut gone) = (self.directory.path(), false);
        let process = self.process.as_mut().expect("it was started");
        until("MariaDB answers, or has ended", || {
            gone = process.try_wait().expect("its state").is_some();
            (gone || ask(path, "SELECT 1").is_ok()).then_some(())
        });
        if gone {
            assert!(self.spawn(), "MariaDB did not come back: {}", self.said());
        }
    }

    /// From now on it is another server, with the same tables.
    pub(crate) fn become_another(&mut self) {
        if MAKE.is_mysql() {
            // It has its name from this file, and gives itself a new one.
            self.kill();
            std::fs::remove_file(self.directory.path().join("data/auto.cnf")).expect("its name");
            assert!(self.spawn(), "MySQL did not come back: {}", self.said());
        } else {
            self.sql("SET GLOBAL server_id = 7");
        }
    }

    /// Kills it and starts it again on the same port and files.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.spawn(), "MariaDB did not come back: {}", self.said());
    }
}

impl Drop for MariaServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A directory that the server's user may write.
fn place() -> TempDir {
    let directory = TempDir::new().expect("a directory");
    if let Some((uid, gid)) = service::user("mysql") {
        let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        nix::unistd::chown(directory.path(), owner.0, owner.1).expect("given to mysql");
    }
    directory
}

/// Makes the files of a new server below `directory`.
fn install(directory: &Path) {
    let mut install = MAKE.installer();
    install.arg(format!("--datadir={}", directory.join("data").display()));
    if let Some((uid, gid)) = service::user("mysql") {
        install.uid(uid).gid(gid);
    }
    let made = install.current_dir(directory).output();
    let made = made.expect("MariaDB is installed: apt-get install mariadb-server");
    let said = String::from_utf8_lossy(&made.stdout) + String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "its files were not made: {said}");
    // What a MySQL is known by: each copy gives itself another name.
    std::fs::remove_file(directory.join("data/auto.cnf")).ok();
}

fn ask(directory: &Path, sql: &str) -> Result<String, String> {
    let mut client = MAKE.client();
    client.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
    client.arg(format!("--socket={}", directory.join("socket").display()));
    let output = client.args(["--execute", sql]).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
