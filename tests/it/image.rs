//! The image without an engine: its first process and its health check as the Dockerfile names them, and what it says of itself.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::doors::{TLS, certify};
use crate::support::node::{Ground, SOLOIST, password_of};
use crate::support::wait::until;

fn text(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands in brackets behind a word of the Dockerfile: the program and its arguments.
fn words(instruction: &str) -> Vec<String> {
    let dockerfile = text("Dockerfile");
    let mut lines = dockerfile.lines().filter(|line| line.starts_with(instruction));
    let line = lines.next_back().unwrap_or_else(|| panic!("no {instruction}"));
    let list = &line[line.find('[').expect("a list")..];
    serde_json::from_str(list).expect("a list of words")
}

/// A program of the image, with this program in front of `PATH` and the image's paths those of the repository.
fn of_image(ground: &Ground, words: &[String]) -> Command {
    let root = env!("CARGO_MANIFEST_DIR");
    let here = |word: &String| word.replace("/usr/local/lib/soloist/", &format!("{root}/deploy/"));
    let programs = Path::new(SOLOIST).parent().expect("a directory").display();
    let mut command = Command::new(here(&words[0]));
    command.args(words[1..].iter().map(here)).current_dir(ground.path("")).env_clear();
    command.env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
    command
}

/// `docker run IMAGE ARGS`: the entry point behind tini, which only hands signals on and reaps.
fn run(ground: &Ground, args: &[&str]) -> Command {
    let entry = words("ENTRYPOINT");
    assert_eq!(entry[..2], ["tini", "--"]);
    let mut command = of_image(ground, &entry[2..]);
    command.args(args);
    command
}

fn health(ground: &Ground, listen: &str) -> Output {
    let mut check = of_image(ground, &words("HEALTHCHECK"));
    check.env("SOLOIST_LISTEN", listen).output().expect("it starts")
}

/// A container, killed at the end if it still lives.
struct Container {
    first: Child,
    log: PathBuf,
}

impl Drop for Container {
    fn drop(&mut self) {
        let node = children(self.pid());
        self.first.kill().ok();
        self.first.wait().ok();
        for node in node {
            kill(node, Signal::SIGKILL).ok();
        }
    }
}

fn children(of: Pid) -> Vec<Pid> {
    let list = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

impl Container {
    fn start(ground: &Ground, listen: &str) -> Self {
        let log = ground.path("log");
        let mut command = run(ground, &["serve", "--node", "node-a"]);
        command.env("SOLOIST_LISTEN", listen).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log).expect("a log"));
        let container = Self { first: command.spawn().expect("it starts"), log };
        container.until_said("listening on");
        container
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.first.id()).expect("a process id"))
    }

    fn until_said(&self, what: &str) -> String {
        until(&format!("the log says {what:?}"), || {
            let said = std::fs::read_to_string(&self.log).ok()?;
            said.contains(what).then_some(said)
        })
    }

    /// Where it really listens.
    fn address(&self) -> String {
        let said = self.until_said("listening on");
        let (_, line) = said.split_once("listening on ").expect("the line");
        let (_, rest) = line.split_once("://").expect("an address");
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
        rest[..end.unwrap_or(rest.len())].to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("our own child");
    }

    fn code(&mut self) -> Option<i32> {
        until("the container ends", || self.first.try_wait().expect("our own child")).code()
    }
}

#[test]
fn standard_input_reaches_a_command_and_its_exit_code_comes_back() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let mut command = run(&ground, &["user", "add", "li", "--role", "viewer", "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{}", password_of("li")).expect("it is read");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert!(ground.must(&["user", "list"]).contains("li"));
    for (args, code) in [(&["runs", "nothing"][..], 3), (&["frobnicate"], 2), (&["check"], 0)] {
        let output = run(&ground, args).stdin(Stdio::null()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn the_health_check_follows_the_configuration_and_sees_a_node_that_hangs() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let mut container = Container::start(&ground, "0.0.0.0:0");
    let port = container.address().rsplit(':').next().expect("a port").to_owned();
    let listen = format!("0.0.0.0:{port}");
    let said = health(&ground, &listen);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    // A file that became wrong while the node runs does not make it ill; and it says the port, too.
    std::fs::write(ground.path("soloist.toml"), format!("listen = \"{listen}\"\ncolour = 1\n"))
        .expect("written");
    assert!(health(&ground, "").status.success());
    let node = children(container.pid())[0];
    kill(node, Signal::SIGSTOP).expect("our own");
    let hangs = health(&ground, &listen);
    kill(node, Signal::SIGCONT).expect("our own");
    assert_eq!(hangs.status.code(), Some(1), "{hangs:?}");
    container.signal(Signal::SIGTERM);
    assert_eq!(container.code(), Some(0));
    let gone = health(&ground, &listen);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains(&port), "{gone:?}");
}

#[test]
fn the_health_check_speaks_tls_where_the_node_does() {
    let ground = Ground::new("sqlite:soloist.db", TLS);
    certify(&ground.path(""));
    let container = Container::start(&ground, "127.0.0.1:0");
    let said = health(&ground, &container.address());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("https://"));
}

#[test]
fn hup_reloads_and_term_ends_in_order() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let mut container = Container::start(&ground, "127.0.0.1:0");
    container.signal(Signal::SIGHUP);
    container.until_said("the configuration is read again");
    container.signal(Signal::SIGTERM);
    assert_eq!(container.code(), Some(0));
    container.until_said("every script is handed over");
}

/// Where nobody can write but at the volumes and `/tmp`, and who runs is a number.
#[test]
fn the_image_is_for_a_read_only_root_and_a_numeric_user() {
    let dockerfile = text("Dockerfile");
    let user = dockerfile.lines().rfind(|line| line.starts_with("USER ")).expect("a user");
    let numeric = |part: &str| part.parse::<u32>().is_ok_and(|id| id > 0);
    assert!(user["USER ".len()..].split(':').all(numeric), "{user}");
    let volumes = words("VOLUME");
    for volume in &volumes {
        let line = dockerfile.lines().find(|line| line.contains("install -d")).expect("made");
        assert!(line.contains(volume.as_str()), "{volume} is made for the user and group 0");
    }
    for needed in [
        "--profile dist --features full",
        "org.opencontainers.image.revision",
        "org.opencontainers.image.licenses",
    ] {
        assert!(dockerfile.contains(needed), "{needed}");
    }
    assert!(!dockerfile.contains("target=/src/target"), "a shared target is another checkout's");
    assert!(
        dockerfile.lines().filter(|line| line.starts_with("FROM ")).all(|line| line.contains("${"))
    );
    // Everything that is copied is there, and is not kept out.
    let ignored = text(".dockerignore");
    let copied =
        dockerfile.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from"));
    for name in copied.flat_map(|line| {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        words[..words.len() - 1].to_vec()
    }) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        assert!(path.exists(), "COPY {name}");
        let kept_out = ignored.lines().any(|line| line == format!("/{name}"));
        assert!(!kept_out, ".dockerignore keeps {name} out");
    }
}

/// `tests/image` builds the next version of Soloist with `--locked`: its lines raise every crate of the workspace in the lock.
#[test]
fn the_next_version_that_the_image_is_built_of_stands_in_the_lock() {
    let version = env!("CARGO_PKG_VERSION");
    let dir = tempfile::tempdir().expect("a directory");
    let next = dir.path().join("next");
    std::fs::create_dir(&next).expect("made");
    for file in ["Cargo.toml", "Cargo.lock"] {
        std::fs::write(next.join(file), text(file)).expect("written");
    }
    let script = text("tests/image");
    let raising = script.lines().filter(|line| line.starts_with("sed -i"));
    let raising: String = raising.map(|line| format!("{line}\n")).collect();
    let mut shell = Command::new("sh");
    shell.args(["-ec", &raising]).env("work", dir.path());
    shell.env("version", version).env("next", format!("{version}-next"));
    assert!(shell.status().expect("a shell").success());
    let raised = |file: &str| -> toml::Table {
        std::fs::read_to_string(next.join(file)).expect("a file").parse().expect("TOML")
    };
    let version = format!("{version}-next");
    let own = raised("Cargo.toml")["workspace"]["package"]["version"].clone();
    assert_eq!(own.as_str(), Some(version.as_str()));
    let (before, after): (toml::Table, _) =
        (text("Cargo.lock").parse().expect("TOML"), raised("Cargo.lock"));
    let packages = |lock: &toml::Table| lock["package"].as_array().expect("packages").clone();
    for (before, after) in packages(&before).iter().zip(packages(&after)) {
        let ours = before.get("source").is_none();
        assert_eq!(after["version"].as_str() == Some(version.as_str()), ours, "{}", after["name"]);
        assert!(ours || *before == after, "{}", after["name"]);
    }
}

#[test]
fn two_nodes_of_compose_have_no_more_rights_than_they_need() {
    let compose: serde_json::Value = serde_saphyr::from_str(&text("compose.yaml")).expect("YAML");
    let node = &compose["x-node"];
    assert_eq!(node["read_only"], true);
    assert_eq!(node["tmpfs"][0], "/tmp");
    assert_eq!(node["cap_drop"][0], "ALL");
    assert_eq!(node["security_opt"][0], "no-new-privileges:true");
    assert_eq!(node["stop_grace_period"], "20s", "longer than stop_grace of deploy/soloist.toml");
    let environment = &compose["services"]["node-a"]["environment"];
    assert!(environment["SOLOIST_TRUSTED_PROXIES"].is_string());
}
