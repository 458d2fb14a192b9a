//! `--server`: every command from a machine that is no node, by a token and nothing else.

mod acts;
mod drill;
mod errors;
mod looks;
mod run;
mod tls;
mod ways;
mod work;

use std::process::{Command, Output, Stdio};

use crate::support::node::{Ground, Node};
use crate::support::worker::Running;

/// A job that says something and lives.
const JOB: &str = r#"
[[job]]
name = "outbound"
command = ["sh", "-c", "echo shipping; exec sleep 300"]
lease_ttl = "5s"
"#;

/// Where there is neither a store nor a configuration: only nodes, and a token.
struct Away {
    directory: tempfile::TempDir,
    servers: String,
    token: String,
}

impl Away {
    fn new(nodes: &[&Node], token: &str) -> Self {
        let servers: Vec<&str> = nodes.iter().map(|node| node.url.as_str()).collect();
        Self::at(&servers.join(","), token)
    }

    fn at(servers: &str, token: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // It would fail if it were read.
        std::fs::write(directory.path().join("soloist.toml"), "no = toml = at = all")
            .expect("written");
        Self { directory, servers: servers.to_owned(), token: token.to_owned() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(crate::support::node::SOLOIST);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SOLOIST_") {
                command.env_remove(name);
            }
        }
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.args(words).env("SOLOIST_SERVER", &self.servers);
        command.env("SOLOIST_API_TOKEN", &self.token);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("soloist starts")
    }

    fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "soloist {words:?}: {} {errors}", output.status);
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// What it says on standard error when it ends with this code.
    fn fails(&self, words: &[&str], code: i32) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "soloist {words:?}: {said}");
        assert!(!said.contains(&self.token), "soloist {words:?} said the token: {said}");
        said
    }

    fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("soloist starts") }
    }
}

/// A file as the store, the job, and the accounts `ada` (admin), `li` (operator) and `robot` (collector).
fn ground() -> Ground {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    accounts(&ground);
    ground
}

fn accounts(ground: &Ground) {
    ground.add_user("ada", "admin");
    ground.add_user("li", "operator");
    ground.must(&["user", "add", "robot", "--role", "viewer", "--invite"]);
    ground.must(&["user", "role", "robot", "collector"]);
}
