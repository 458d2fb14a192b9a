//! The drivers of the client libraries: started, paused, ended by their process ids. They end with their standard input, so none outlives
//! the tests.

use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::wait::until;

/// A language that has a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Node,
    Java,
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Java];

    /// As it stands in a driver's acts, and in `clients/`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Java => "java",
        }
    }
}

/// A file below `clients/`.
pub(super) fn clients(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(path)
}

/// Where the Java library and its driver are compiled to, once for all tests.
fn java() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("java-{}", std::process::id()));
        let library = clients("java/soloist-client/src/main/java/io/soloist/client");
        let sources = std::fs::read_dir(library).expect("the library").flatten();
        let output = Command::new("javac")
            .args(["-Xlint:all", "-Werror", "--release", "17", "-d"])
            .arg(&classes)
            .args(sources.map(|entry| entry.path()))
            .arg(clients("java/soloist-client/tests/Driver.java"))
            .output()
            .expect("javac: install default-jdk-headless");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        classes
    })
}

/// A driver that runs.
pub(super) struct Driver {
    pub language: Language,
    child: Child,
    stdin: Option<ChildStdin>,
    errors: Option<JoinHandle<String>>,
    /// What nobody reads of it.
    _unread: Option<PipeReader>,
}

/// A pipe of 4,096 bytes that is full.
fn full_pipe() -> (PipeReader, File) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4096)).expect("a small pipe");
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe that is not waited for");
    let mut file = File::from(OwnedFd::from(writer));
    while file.write(b"unread ").is_ok() {}
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).expect("a pipe that is waited for");
    (reader, file)
}

impl Driver {
    /// Starts `WHAT ADDRESSES TOKEN NAME FILE MODE`.
    pub(super) fn start(
        language: Language,
        what: &str,
        addresses: &[&str],
        token: &str,
        name: &str,
        file: &Path,
        mode: &str,
    ) -> Self {
        let command = Self::command(language, what, addresses, token, name, file, mode);
        Self::spawn(language, command, None)
    }

    /// As [`Self::start`], in this environment.
    pub(super) fn start_in(
        (language, what): (Language, &str),
        addresses: &[&str],
        token: &str,
        name: &str,
        file: &Path,
        mode: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = Self::command(language, what, addresses, token, name, file, mode);
        command.envs(environment.iter().copied());
        Self::spawn(language, command, None)
    }

    /// As [`Self::start`] with a lease; its output and its errors are a full pipe that nobody reads.
    pub(super) fn start_unread(
        language: Language,
        addresses: &[&str],
        token: &str,
        name: &str,
        file: &Path,
        mode: &str,
    ) -> Self {
        let (unread, full) = full_pipe();
        let mut command = Self::command(language, "lease", addresses, token, name, file, mode);
        command.stdout(full.try_clone().expect("another descriptor")).stderr(full);
        Self::spawn(language, command, Some(unread))
    }

    /// As [`Self::start`] with a lease, as the first process of a container; none where the machine allows no such thing.
    pub(super) fn start_first(
        language: Language,
        addresses: &[&str],
        token: &str,
        name: &str,
        file: &Path,
        mode: &str,
    ) -> Option<Self> {
        let first = ["--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
        let tried = Command::new("unshare").args(first).arg("true").stderr(Stdio::null()).status();
        if !tried.is_ok_and(|status| status.success()) {
            return None;
        }
        let inner = Self::command(language, "lease", addresses, token, name, file, mode);
        let mut command = Command::new("unshare");
        command.args(first).arg(inner.get_program()).args(inner.get_args());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        Some(Self::spawn(language, command, None))
    }

    /// Runs the driver of Node by another command than its usual one: as a text, or without a file of the library.
    pub(super) fn start_by(mut command: Command, arguments: &[&str]) -> Self {
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env("SOLOIST_LIFELINE", "");
        Self::spawn(Language::Node, command, None)
    }

    fn command(
        language: Language,
        what: &str,
        addresses: &[&str],
        token: &str,
        name: &str,
        file: &Path,
        mode: &str,
    ) -> Command {
        let mut command = match language {
            Language::Python => {
                let mut command = Command::new("python3");
                command.arg("-B").arg(clients("python/tests/driver.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(clients("node/tests/driver.mjs"));
                command
            }
            Language::Java => {
                let mut command = Command::new("java");
                command
                    .args(["-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp"])
                    .arg(java())
                    .arg("Driver");
                command
            }
        };
        command.args([what, &addresses.join(","), token, name]).arg(file).arg(mode);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // No life line, whatever this machine has.
        command.env("SOLOIST_LIFELINE", "");
        command
    }

    fn spawn(language: Language, mut command: Command, unread: Option<PipeReader>) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{language:?} cannot be started ({error}): apt-get install python3 nodejs default-jdk-headless")
        });
        let errors = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // What is no UTF-8 is no message of ours.
                stderr.read_to_string(&mut text).ok();
                text
            })
        });
        Self { language, stdin: child.stdin.take(), child, errors, _unread: unread }
    }

    /// Its process id.
    pub(super) fn id(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// Sends a signal to it.
    pub(super) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id()), signal).expect("our own child");
    }

    /// The most memory that it has had, in MiB.
    pub(super) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("our own child");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<u64>().ok());
        peak.expect("a number of KiB") / 1024
    }

    /// Whether it still runs.
    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }

    /// Waits until it has ended; how, and what it said.
    pub(super) fn wait(&mut self) -> (ExitStatus, String) {
        let language = self.language;
        let status = until(&format!("the driver of {language:?} ends"), || {
            self.child.try_wait().expect("our own child")
        });
        let said = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        (status, said)
    }

    /// Ends its standard input, and waits; how it ended, and what it said.
    pub(super) fn end(&mut self) -> (ExitStatus, String) {
        self.stdin.take();
        self.wait()
    }

    /// Writes a line to its standard input.
    pub(super) fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("its standard input is open");
        writeln!(stdin, "{line}").expect("it reads");
    }

    /// Ends its standard input.
    pub(super) fn ends(&mut self) {
        self.stdin.take();
    }

    /// Tells it to end, and waits; what it said.
    ///
    /// # Panics
    /// When it fails.
    pub(super) fn close(&mut self) -> String {
        self.stdin.take();
        let (status, said) = self.wait();
        assert!(status.success(), "{:?}: {status} {said}", self.language);
        said
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
