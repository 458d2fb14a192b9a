//! What the servers of an ensemble say of themselves, and what is refused of them.
//!
//! They are asked by the four-letter words `srvr` and `conf`, each on a connection of its own, and by the admin server's list of system
//! properties. A server may answer none of that: then less is known, and doctor says so.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::link::Ensemble;
use crate::domain::ensemble::Ensemble as Place;
use crate::store::examine::Finding;
use crate::store::{Result, StoreError};

/// Longer answers are cut.
const MOST: u64 = 64 * 1_024;
const PATIENCE: Duration = Duration::from_millis(500);
/// Where the admin server of a server listens, unless it was told otherwise.
const ADMIN: u16 = 8080;
/// The first version with persistent recursive watches.
const NEEDED: (u32, u32) = (3, 6);

/// One server; what it did not say is empty.
struct Server {
    name: String,
    srvr: String,
    conf: String,
    properties: String,
}

/// All of them.
pub(super) struct Seen {
    servers: Vec<Server>,
}

/// Asks every server.
pub(super) async fn see(ensemble: &Ensemble) -> Result<Seen> {
    let servers = ensemble.place.servers.iter().map(|server| async move {
        let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
        let properties = format!("{host}:{ADMIN}");
        let get = format!("GET /commands/system_properties HTTP/1.0\r\nHost: {host}\r\n\r\n");
        let (srvr, conf, properties) =
            tokio::join!(say(server, "srvr"), say(server, "conf"), say(&properties, &get));
        Server { name: server.clone(), srvr, conf, properties }
    });
    Ok(Seen { servers: join_all(servers).await })
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

/// Refuses servers that cannot keep the promise, as far as they say it.
pub(super) async fn refuse(ensemble: &Ensemble) -> Result<()> {
    match see(ensemble).await?.servers.iter().find_map(Server::unfit) {
        Some(why) => Err(StoreError::Unsupported(why)),
        None => Ok(()),
    }
}

impl Server {
    fn version(&self) -> Option<&str> {
        let line = self.srvr.lines().find_map(|line| line.strip_prefix("Zookeeper version: "))?;
        line.split(['-', ',', ' ']).next()
    }

    fn is_old(&self) -> bool {
        let Some(version) = self.version() else { return false };
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
        (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(u32::MAX)) < NEEDED
    }

    /// Whether it says that it writes to disk before it answers; `None`: it does not say.
    fn forces(&self) -> Option<bool> {
        let said: String = self.properties.split_whitespace().collect();
        let no = ["\"zookeeper.forceSync\":\"no\"", "\"forceSync\":\"no\""];
        let no = no.iter().any(|text| said.contains(text)) || self.conf.contains("forceSync=no");
        if no {
            return Some(false);
        }
        said.contains("\"java.version\":").then_some(true)
    }

    /// Why it is refused.
    fn unfit(&self) -> Option<String> {
        let Self { name, .. } = self;
        if self.is_old() {
            let version = self.version().unwrap_or_default();
            return Some(format!(
                "ZooKeeper {version} at {name} is too old: coordination needs {}.{} or later on every server",
                NEEDED.0, NEEDED.1
            ));
        }
        (self.forces() == Some(false)).then(|| {
            format!(
                "ZooKeeper at {name} has forceSync=no and may forget leases that it has confirmed: remove it from zoo.cfg and the system properties, and restart the server"
            )
        })
    }
}

impl Seen {
    pub(super) fn what(&self, place: &Place) -> String {
        let version = self.servers.iter().find_map(Server::version);
        format!("ZooKeeper {} at {}", version.unwrap_or("of an unknown version"), place.name())
    }

    /// What is allowed and deserves a warning.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`]: something is refused by now.
    pub(super) async fn warnings(&self, ensemble: &Ensemble) -> Result<Vec<String>> {
        if let Some(why) = self.servers.iter().find_map(Server::unfit) {
            return Err(StoreError::Unsupported(why));
        }
        let mut warnings = Vec::new();
        if self.servers.len() < 3 {
            warnings.push(
                "ZooKeeper has fewer than three servers: while one is down, no lease is granted or renewed; name all of an ensemble of three in `coordination`"
                    .to_owned(),
            );
        }
        if ensemble.place.login.is_none() {
            warnings.push(
                "every client of ZooKeeper can delete leases: give `coordination` a USER:PASSWORD@ before the first start"
                    .to_owned(),
            );
        }
        let tick = ensemble.shortest().await? / 2;
        if tick > Duration::from_millis(200) {
            warnings.push(format!(
                "ZooKeeper has a tick of {tick:?}: a machine that dies is noticed up to {:?} after the end of a lease; set tickTime=200 in zoo.cfg for 500 ms",
                tick * 5 / 2
            ));
        }
        Ok(warnings)
    }

    /// For `soloist doctor`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn findings(
        &self,
        ensemble: &Ensemble,
        longest: Duration,
    ) -> Result<Vec<Finding>> {
        const CHECK: &str = "coordination";
        if let Some(why) = self.servers.iter().find_map(Server::unfit) {
            return Ok(vec![Finding::bad(CHECK, why, "as it says; until then no node starts")]);
        }
        let mut findings = vec![Finding::ok(CHECK, self.what(&ensemble.place))];
        for warning in self.warnings(ensemble).await? {
            let (what, remedy) = warning.split_once(": ").unwrap_or((&warning, ""));
            findings.push(Finding::warn(CHECK, what, remedy));
        }
        for server in &self.servers {
            if server.srvr.is_empty() {
                let what = format!("{} does not say what it is", server.name);
                let remedy = "start it, or allow the word srvr in 4lw.commands.whitelist";
                findings.push(Finding::warn(CHECK, what, remedy));
            } else if server.forces().is_none() {
                let what =
                    format!("whether {} forces its log to disk could not be seen", server.name);
                let remedy =
                    "look whether zoo.cfg or its Java options have forceSync=no, and remove it";
                findings.push(Finding::warn(CHECK, what, remedy));
            }
        }
        findings.push(match ensemble.session(longest).await {
            Ok(session) => Finding::ok(
                CHECK,
                format!("a lease of {longest:?} is a session of {:?}", session.timeout),
            ),
            Err(error) => Finding::bad(CHECK, error.to_string(), "as it says"),
        });
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(srvr: &str, conf: &str, properties: &str) -> Server {
        let [srvr, conf, properties] = [srvr, conf, properties].map(ToOwned::to_owned);
        Server { name: "zoo1:2181".to_owned(), srvr, conf, properties }
    }

    #[test]
    fn a_server_that_is_too_old_or_forgets_is_refused() {
        let srvr = |version: &str| {
            format!("Zookeeper version: {version}-abc, built on 2020-01-01\nMode: leader\n")
        };
        assert_eq!(server(&srvr("3.8.0"), "", "").unfit(), None);
        assert_eq!(server(&srvr("3.10.1"), "", "").unfit(), None);
        assert_eq!(server("", "", "").unfit(), None, "that says nothing");
        let why = server(&srvr("3.5.9"), "", "").unfit().unwrap();
        assert!(why.contains("3.5.9") && why.contains("3.6"), "{why}");
        let said = "{\n \"java.version\" : \"17\",\n \"zookeeper.forceSync\" : \"no\"\n}";
        for forgets in [server("", "", said), server("", "tickTime=200\nforceSync=no\n", "")] {
            assert!(forgets.unfit().unwrap().contains("forceSync"));
        }
        assert_eq!(server("", "", "{\"java.version\" : \"17\"}").forces(), Some(true));
        assert_eq!(server("", "clientPort=1", "").forces(), None);
    }
}
