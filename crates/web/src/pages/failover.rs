//! How a fail-over can be seen on this very installation: the commands, with its own file, address and a job of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::Web;
use crate::auth::Caller;
use soloist_config::Config;
use soloist_domain::name::NodeName;

/// What the card says.
pub(super) struct Failover {
    /// More than one node lives already.
    pub(super) several: bool,
    /// Starts a second node on this machine; `None` where the configuration has no file that it could read.
    pub(super) second: Option<String>,
    /// Kills the node that holds a job; `None` where only programs hold jobs, which Soloist cannot kill.
    pub(super) drill: Option<String>,
}

impl Failover {
    pub(super) fn of(web: &Web, caller: &Caller) -> Self {
        let config = web.config();
        let living = web.feed.nodes().iter().filter(|node| node.is_alive()).count();
        // One that is held is a better example than one that no node runs.
        let all = web.live.jobs_for(caller);
        let programs_only = !all.is_empty() && all.iter().all(|job| job.is_external());
        let jobs: Vec<_> = all.iter().filter(|job| !job.is_external()).collect();
        let held = web.feed.held();
        let known = |name: &str| jobs.iter().any(|job| job.name.as_str() == name);
        let example = held.iter().map(|(job, _)| job.to_string()).find(|name| known(name));
        let example = example.or_else(|| jobs.first().map(|job| job.name.to_string()));
        let example = example.unwrap_or_else(|| "JOB".to_owned());
        Self::with(&config, living > 1, (!programs_only).then_some(&*example))
    }

    /// `job`: one that a node holds, or may.
    fn with(config: &Config, several: bool, job: Option<&str>) -> Self {
        let whole = config.file.as_ref().and_then(|file| std::path::absolute(file).ok());
        let file = whole.map(|file| quoted(&file.display().to_string()));
        let program = match &file {
            Some(file) => format!("soloist --config {file}"),
            None => "soloist".to_owned(),
        };
        let drill = job.map(|job| format!("{program} drill {job}"));
        let second = file.is_some().then(|| {
            let (name, listen) = (other_name(&config.node), beside(config.listen));
            format!("{program} serve --node {name} --listen {listen}")
        });
        Self { several, second, drill }
    }
}

/// A name that is not this node's.
fn other_name(node: &NodeName) -> &'static str {
    if node.as_str() == "node-b" { "node-c" } else { "node-b" }
}

/// The next port, on this machine only.
fn beside(listen: SocketAddr) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port().checked_add(1).unwrap_or(8081))
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_word_whatever_is_in_its_name() {
        assert_eq!(quoted("/etc/soloist/soloist.toml"), "/etc/soloist/soloist.toml");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }

    #[test]
    fn the_second_node_has_another_name_and_another_port() {
        assert_eq!(other_name(&NodeName::new("node-b").unwrap()), "node-c");
        assert_eq!(beside("0.0.0.0:8080".parse().unwrap()).to_string(), "127.0.0.1:8081");
        assert_eq!(beside("[::1]:65535".parse().unwrap()).to_string(), "127.0.0.1:8081");
    }
}
