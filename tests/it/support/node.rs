//! Real nodes: `soloist serve` on free ports, sharing one store and one configuration, ended by their process ids.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::api::Api;
use super::wait::{PATIENCE, until};

/// The program under test.
pub(crate) const SOLOIST: &str = env!("CARGO_BIN_EXE_soloist");

/// A directory with a configuration that several nodes share.
pub(crate) struct Ground {
    directory: TempDir,
    program: PathBuf,
}

impl Ground {
    /// Writes a configuration: `store`, which may be followed by its coordination, and `jobs` as TOML.
    #[must_use]
    pub(crate) fn new(store: &str, jobs: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let (store, coordination) = soloist::domain::ensemble::split(store);
        let coordination = coordination.map(|url| format!("coordination = {url:?}\n"));
        let jobs = format!("{}{jobs}", coordination.unwrap_or_default());
        let text = format!("store = {store:?}\nlisten = \"127.0.0.1:0\"\n{jobs}");
        std::fs::write(directory.path().join("soloist.toml"), text).expect("a configuration");
        Self { directory, program: SOLOIST.into() }
    }

    /// The same with another `soloist` than the one that cargo built.
    #[allow(dead_code, reason = "a bench compares two programs")]
    #[must_use]
    pub(crate) fn with_program(self, program: &Path) -> Self {
        Self { program: program.to_owned(), ..self }
    }

    /// Commands and nodes that are started from now on are of `program`.
    #[allow(dead_code, reason = "one program of tests upgrades nodes")]
    pub(crate) fn change_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// A file in the directory.
    #[must_use]
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `soloist ARGS` with this configuration, not yet started.
    #[must_use]
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SOLOIST_") {
                command.env_remove(name);
            }
        }
        command.arg("--config").arg(self.path("soloist.toml")).args(args);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs what a page of the documentation prints, with `node` in the place of the address that stands there, and this
    /// program in front of `PATH`; it must succeed. Gives its standard output.
    ///
    /// # Panics
    /// When it fails, or names no such address.
    #[allow(dead_code, reason = "not every program of tests reads the pages")]
    pub(crate) fn must_sh(&self, printed: &str, node: &Node) -> String {
        let here = "http://127.0.0.1:8080";
        assert!(printed.contains(here), "{printed}");
        let script = format!("set -eu\n{}\n", printed.replace(here, &node.url));
        let program = self.program.parent().expect("a directory");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.path(""))
            .env("PATH", format!("{}:{}", program.display(), path.display()))
            .env("SOLOIST_CONFIG", self.path("soloist.toml"))
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Runs `soloist ARGS` to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("soloist starts")
    }

    /// As [`Self::run`], and it must succeed. Gives its standard output.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "soloist {args:?}: {} {errors}", output.status);
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Makes an account, by the command line; the password is [`password_of`] it.
    ///
    /// # Panics
    /// When that fails.
    pub(crate) fn add_user(&self, name: &str, role: &str) {
        let mut child = self
            .command(&["user", "add", name, "--role", role, "--password-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("soloist starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "{}", password_of(name)).expect("the password is read");
        drop(stdin);
        assert!(child.wait().expect("it ends").success(), "user add {name} failed");
    }

    /// A fresh API token of `user`, by the command line.
    #[must_use]
    pub(crate) fn token(&self, user: &str) -> String {
        self.must(&["token", "new", "--user", user, "--name", "test"]).trim().to_owned()
    }

    /// Starts a node of that name and waits until it listens.
    ///
    /// # Panics
    /// When it does not, with what it said.
    #[must_use]
    pub(crate) fn start(&self, name: &str) -> Node {
        self.start_at(name, "127.0.0.1:0")
    }

    /// As [`Self::start`], at an address that is known.
    ///
    /// # Panics
    /// As that.
    #[must_use]
    pub(crate) fn start_at(&self, name: &str, listen: &str) -> Node {
        self.start_among(name, listen, &[])
    }

    /// As [`Self::start`], with these variables in its environment.
    ///
    /// # Panics
    /// As that.
    #[allow(dead_code, reason = "not every program of tests does")]
    #[must_use]
    pub(crate) fn start_with(&self, name: &str, env: &[(&str, &Path)]) -> Node {
        self.start_among(name, "127.0.0.1:0", env)
    }

    fn start_among(&self, name: &str, listen: &str, env: &[(&str, &Path)]) -> Node {
        let mut child = self
            .command(&["serve", "--listen", listen, "--node", name])
            .envs(env.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("soloist starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (found, address) = mpsc::channel();
        let (mut said, show) = (Vec::new(), std::env::var_os("SHOW_NODES").is_some());
        let name_there = name.to_owned();
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                for scheme in ["http", "https"] {
                    let Some((_, rest)) = line.split_once(&format!("listening on {scheme}://"))
                    else {
                        continue;
                    };
                    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
                    let address = &rest[..end.unwrap_or(rest.len())];
                    // A test that was told already does not listen any more.
                    found.send(format!("{scheme}://{address}")).ok();
                }
                if show {
                    eprintln!("{name_there}: {line}");
                }
                said.push(line);
            }
            said
        });
        let Ok(url) = address.recv_timeout(PATIENCE) else {
            child.kill().expect("our own child");
            child.wait().expect("and waited for");
            panic!("node {name} does not listen: {:#?}", reader.join().unwrap_or_default());
        };
        Node { name: name.to_owned(), url, process: Some(child) }
    }
}

/// The password of an account that [`Ground::add_user`] made.
#[must_use]
pub(crate) fn password_of(user: &str) -> String {
    format!("{user} sails past the quiet violet harbour")
}

/// A running `soloist serve`.
pub(crate) struct Node {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub url: String,
    process: Option<Child>,
}

impl Node {
    /// A client with `token`.
    #[must_use]
    pub(crate) fn api(&self, token: &str) -> Api {
        Api::new(&self.url, token)
    }

    /// Its process id.
    ///
    /// # Panics
    /// When it has ended.
    #[must_use]
    pub(crate) fn pid(&self) -> Pid {
        let child = self.process.as_ref().expect("it runs");
        Pid::from_raw(i32::try_from(child.id()).expect("a process id"))
    }

    /// Sends a signal to it, and to it alone.
    ///
    /// # Panics
    /// When it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("our own child");
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            child.kill().expect("our own child");
            child.wait().expect("and waited for");
        }
    }

    /// SIGTERM, and its exit code once it has ended.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let child = self.process.as_mut().expect("it runs");
        let status = until("the node ends", || child.try_wait().expect("our own child"));
        self.process = None;
        status.code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
