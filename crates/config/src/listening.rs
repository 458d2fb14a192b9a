//! Where a node of this configuration listens, and nothing else.
//!
//! For a command that asks a running node whether it is alive. The node keeps its configuration, whatever happens to the file. So
//! nothing is checked here, and the default replaces what cannot be read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::Environment;

/// A node's door as this machine reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Address and port; loopback where the node listens on every address.
    pub at: SocketAddr,
    /// Whether the node speaks TLS there.
    pub tls: bool,
}

/// `listen` of the command line, else `$SOLOIST_LISTEN`, else the file's, else the default; and whether `tls` is set.
#[must_use]
pub fn listening(
    file: Option<&Path>,
    listen: Option<SocketAddr>,
    env: Environment<'_>,
) -> Listening {
    let env = |key: &str| env(key).filter(|value| !value.is_empty());
    let file = file.map(Path::to_owned).or_else(|| env("SOLOIST_CONFIG").map(PathBuf::from));
    let text = std::fs::read_to_string(file.unwrap_or_else(|| PathBuf::from("soloist.toml")));
    let table: toml::Table = text.ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let in_file = || table.get("listen")?.as_str()?.parse().ok();
    let in_env = || env("SOLOIST_LISTEN")?.parse().ok();
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
    let mut at = listen.or_else(in_env).or_else(in_file).unwrap_or(default);
    if at.ip().is_unspecified() {
        at.set_ip(match at.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Listening { at, tls: env("SOLOIST_TLS").is_some() || table.contains_key("tls") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(toml: &str, listen: Option<&str>, variable: Option<&str>) -> (String, bool) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.toml");
        std::fs::write(&file, toml).unwrap();
        let env = |key: &str| {
            if key == "SOLOIST_LISTEN" { variable.map(str::to_owned) } else { None }
        };
        let listen = listen.map(|text| text.parse().unwrap());
        let Listening { at, tls } = listening(Some(&file), listen, &env);
        (at.to_string(), tls)
    }

    #[test]
    fn the_command_line_goes_before_the_environment_before_the_file_before_the_default() {
        let file = "listen = \"10.0.0.1:1\"\n";
        let at = |text: &str| (text.to_owned(), false);
        assert_eq!(found(file, Some("10.0.0.3:3"), Some("10.0.0.2:2")), at("10.0.0.3:3"));
        assert_eq!(found(file, None, Some("10.0.0.2:2")), at("10.0.0.2:2"));
        assert_eq!(found(file, None, Some("")), at("10.0.0.1:1"));
        assert_eq!(found("", None, None), at("127.0.0.1:8080"));
    }

    #[test]
    fn a_file_that_became_wrong_is_no_reason_to_call_a_node_dead() {
        assert_eq!(
            found("listen = [[[", None, Some("0.0.0.0:2")),
            ("127.0.0.1:2".to_owned(), false)
        );
        let odd = "listen = \"[::]:3\"\ncolour = 1\ntls = { cert = \"gone.pem\" }\n";
        assert_eq!(found(odd, None, None), ("[::1]:3".to_owned(), true));
    }
}
