//! What the servers of an ensemble report of themselves, and what is refused of them.
//!
//! They are asked with the four-letter words `srvr` and `conf`, each on a connection of its own, and by the admin server's list of system
//! properties. A server may answer none of that: then less is known, and doctor says so.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::link::Ensemble;
use soloist_store::examine::Finding;
use soloist_store::{Result, StoreError};

/// Longer answers are cut.
const MOST: u64 = 64 * 1_024;
const PATIENCE: Duration = Duration::from_millis(500);
/// Where the admin server of a server listens, unless it was told otherwise.
const ADMIN: u16 = 8080;
/// The first version with persistent recursive watches.
const NEEDED: [u32; 2] = [3, 6];

pub(super) const CHECK: &str = "coordination";

/// One server; what it did not say is empty.
struct Server {
    name: String,
    srvr: String,
    /// Its settings and properties, without blanks.
    settings: String,
}

/// What there is to say of an ensemble; first what it is.
///
/// # Errors
/// [`StoreError::Unsupported`]: a server says that it cannot keep the promise. [`StoreError::Unavailable`].
pub(super) async fn findings(ensemble: &Ensemble) -> Result<Vec<Finding>> {
    let place = ensemble.place();
    let servers = join_all(place.servers.iter().map(|name| Server::ask(name))).await;
    if let Some(why) = servers.iter().find_map(Server::unfit) {
        return Err(StoreError::Unsupported(why));
    }
    let version = servers.iter().find_map(Server::version).unwrap_or("of an unknown version");
    let what = format!("ZooKeeper {version} at {}", place.name());
    let mut findings = vec![Finding::ok(CHECK, what)];
    findings.extend(servers.iter().filter_map(Server::unseen));
    let mut warn = |what: String, remedy: &str| findings.push(Finding::warn(CHECK, what, remedy));
    if servers.len() < 3 {
        warn(
            "ZooKeeper has fewer than three servers".to_owned(),
            "while one is down, no lease is granted or renewed; name all of an ensemble of three in `coordination`",
        );
    }
    if place.login.is_none() {
        warn(
            "every client of ZooKeeper can delete leases".to_owned(),
            "give `coordination` a USER:PASSWORD@ before the first start",
        );
    }
    let tick = ensemble.shortest().await? / 2;
    if tick > Duration::from_millis(200) {
        warn(
            format!("ZooKeeper has a tick of {tick:?}"),
            "a machine that dies is noticed up to 2.5 ticks after the end of a lease; set tickTime=200 in zoo.cfg for 500 ms",
        );
    }
    Ok(findings)
}

/// What the server answers to these words; nothing when it does not.
async fn say(server: &str, words: &str) -> String {
    let ask = async {
        let mut stream = TcpStream::connect(server).await.ok()?;
        stream.write_all(words.as_bytes()).await.ok()?;
        let mut said = Vec::new();
        stream.take(MOST).read_to_end(&mut said).await.ok()?;
        Some(String::from_utf8_lossy(&said).into_owned())
    };
    tokio::time::timeout(PATIENCE, ask).await.ok().flatten().unwrap_or_default()
}

impl Server {
    async fn ask(name: &str) -> Self {
        let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
        let admin = format!("{host}:{ADMIN}");
        let get = format!("GET /commands/system_properties HTTP/1.0\r\nHost: {host}\r\n\r\n");
        let (srvr, conf, properties) =
            tokio::join!(say(name, "srvr"), say(name, "conf"), say(&admin, &get));
        let settings = [conf, properties].concat().split_whitespace().collect();
        Self { name: name.to_owned(), srvr, settings }
    }

    fn version(&self) -> Option<&str> {
        let line = self.srvr.lines().find_map(|line| line.strip_prefix("Zookeeper version: "))?;
        line.split(['-', ',', ' ']).next()
    }

    /// Whether it says that it writes to disk before it answers; `None`: it does not say.
    fn forces(&self) -> Option<bool> {
        let no = ["forceSync\":\"no\"", "forceSync=no"];
        if no.iter().any(|text| self.settings.contains(text)) {
            return Some(false);
        }
        self.settings.contains("\"java.version\":").then_some(true)
    }

    /// Why it is refused.
    fn unfit(&self) -> Option<String> {
        let (name, number) = (&self.name, |part: &str| part.parse().unwrap_or(u32::MAX));
        match self.version() {
            Some(version) if version.split('.').map(number).lt(NEEDED) => Some(format!(
                "ZooKeeper {version} at {name} is too old: coordination needs 3.6 or later on every server"
            )),
            _ if self.forces() == Some(false) => Some(format!(
                "ZooKeeper at {name} has forceSync=no and may forget leases that it has confirmed: remove it from zoo.cfg and the system properties, and restart the server"
            )),
            _ => None,
        }
    }

    /// What it does not say.
    fn unseen(&self) -> Option<Finding> {
        let Self { name, .. } = self;
        let (what, remedy) = match (self.version(), self.forces()) {
            (None, _) => (
                format!("{name} does not say what it is"),
                "start it, or allow the word srvr in 4lw.commands.whitelist",
            ),
            (_, None) => (
                format!("whether {name} forces its log to disk could not be seen"),
                "look whether zoo.cfg or its Java options have forceSync=no, and remove it",
            ),
            (Some(_), Some(_)) => return None,
        };
        Some(Finding::warn(CHECK, what, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(srvr: &str, settings: &str) -> Server {
        let settings = settings.split_whitespace().collect();
        Server { name: "zoo1:2181".to_owned(), srvr: srvr.to_owned(), settings }
    }

    #[test]
    fn a_server_that_is_too_old_or_forgets_is_refused() {
        let srvr = |version: &str| {
            format!("Zookeeper version: {version}-abc, built on 2020-01-01\nMode: leader\n")
        };
        let refused = |server: Server| server.unfit();
        assert_eq!(refused(server(&srvr("3.8.0"), "")), None);
        assert_eq!(refused(server(&srvr("3.6.0"), "")), None);
        assert_eq!(refused(server(&srvr("3.10.1"), "")), None);
        assert_eq!(refused(server("", "")), None, "that says nothing");
        let why = refused(server(&srvr("3.5.9"), "")).unwrap();
        assert!(why.contains("3.5.9") && why.contains("3.6"), "{why}");
        let said = "{\n \"java.version\" : \"17\",\n \"zookeeper.forceSync\" : \"no\"\n}";
        for forgets in [server("", said), server(&srvr("3.8.0"), "tickTime=200\nforceSync=no\n")] {
            assert!(refused(forgets).unwrap().contains("forceSync"));
        }
        assert_eq!(server("", "{\"java.version\" : \"17\"}").forces(), Some(true));
        assert_eq!(server("", "clientPort=1").forces(), None);
    }
}
