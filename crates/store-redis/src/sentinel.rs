//! The master as Redis Sentinel names it.
//!
//! A master is trusted only if a majority of the sentinels in the URL names it, and only for [`BELIEVED_FOR`]. The time starts
//! before the sentinels are asked. Two majorities share a sentinel, and a sentinel never goes back to an older master. So the
//! first process that calls a new master does so after the newest moment at which any process was told of the old one. New
//! leases wait that much longer there (`Route::lag`), by when every lease that a cut-off former master may have renewed has run
//! out. The price: without a majority of the sentinels there is no store.
//! It asks and compares; whether a server is fit to be used is for `link.rs` and `server.rs` to find out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, IntoConnectionInfo};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;

use super::route::{Master, prompt, unusable};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::{Result, StoreError};

/// For how long the word of a majority counts.
pub(super) const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// They are asked again when their word is older, so that a call that follows ends within [`BELIEVED_FOR`] of it.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// One that takes longer counts as silent.
const PATIENCE: Duration = Duration::from_millis(500);
const PORT: u16 = 26_379;

/// A URL of the form `redis+sentinel://[USER:PASSWORD@]HOST[:PORT],...[:PORT]/MASTER[/DB][?sentinel_user=...&sentinel_password=...]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// `redis` or `rediss`, for sentinels and servers alike.
    scheme: &'static str,
    /// `USER:PASSWORD@` or nothing, of the servers.
    login: &'a str,
    /// `HOST:PORT` each.
    sentinels: Vec<String>,
    name: &'a str,
    database: &'a str,
    /// `USER:PASSWORD@` or nothing, of the sentinels.
    sentinel_login: String,
}

impl<'a> Parts<'a> {
    /// `None` when it is no URL of sentinels.
    pub(super) fn of(url: &'a str) -> Option<Result<Self>> {
        let (scheme, rest) = if let Some(rest) = url.strip_prefix("redis+sentinel://") {
            ("redis", rest)
        } else {
            ("rediss", url.strip_prefix("rediss+sentinel://")?)
        };
        Some(Self::parse(scheme, rest).ok_or_else(|| {
            StoreError::Unsupported(
                "the store URL cannot be used: write redis+sentinel://USER:PASSWORD@HOST1:26379,HOST2:26379,HOST3:26379/MASTERNAME/DB"
                    .to_owned(),
            )
        }))
    }

    fn parse(scheme: &'static str, rest: &'a str) -> Option<Self> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/')?;
        let (login, hosts) = match authority.rfind('@') {
            Some(at) => authority.split_at(at + 1),
            None => ("", authority),
        };
        let sentinels = hosts.split(',').map(with_port).collect::<Option<Vec<_>>>()?;
        let (name, database) = path.split_once('/').unwrap_or((path, "0"));
        let database = if database.is_empty() { "0" } else { database };
        if name.is_empty() || database.parse::<u32>().is_err() {
            return None;
        }
        let (mut user, mut password) = ("", None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("sentinel_user", value) => user = value,
                ("sentinel_password", value) => password = Some(value),
                _ => return None,
            }
        }
        let sentinel_login =
            password.map(|password| format!("{user}:{password}@")).unwrap_or_default();
        Some(Self { scheme, login, sentinels, name, database, sentinel_login })
    }
}

fn with_port(host: &str) -> Option<String> {
    let bare = host.rsplit_once(':').is_none_or(|(_, port)| port.ends_with(']'));
    let named = !host.is_empty() && !host.starts_with(':');
    named.then(|| if bare { format!("{host}:{PORT}") } else { host.to_owned() })
}

/// The sentinels of one master.
pub(super) struct Sentinels {
    each: Vec<Sentinel>,
    name: String,
    /// What stands before and behind a server's address in its URL.
    around: (String, String),
    timeout: Duration,
    heard: Mutex<Heard>,
    /// One caller asks, the others wait for what it hears.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Heard {
    master: Option<Arc<Master>>,
    /// From before they were asked.
    at: Boot,
    doubtful: bool,
    refused: Option<StoreError>,
    times: u64,
}

impl Heard {
    fn believed(&self) -> Option<Arc<Master>> {
        let fresh = !self.doubtful && clock::boot().since(self.at) < ASKED_AGAIN_AFTER;
        self.master.clone().filter(|_| fresh)
    }
}

impl Sentinels {
    pub(super) fn new(parts: Parts<'_>, timeout: Duration) -> Result<Self> {
        let Parts { scheme, login, sentinels, name, database, sentinel_login } = parts;
        let around = (format!("{scheme}://{login}"), format!("/{database}"));
        // So that a wrong login or database is found here, and a TLS provider chosen.
        Master::new(&format!("{}localhost{}", around.0, around.1))?;
        let sentinel = |address: String| {
            let info = format!("{scheme}://{sentinel_login}{address}/")
                .into_connection_info()
                .map_err(|error| unusable(&error))?;
            let client = ::redis::Client::open(prompt(info)).map_err(|error| unusable(&error))?;
            Ok(Sentinel { client, address, connection: Mutex::default() })
        };
        Ok(Self {
            each: sentinels.into_iter().map(sentinel).collect::<Result<_>>()?,
            name: name.to_owned(),
            around,
            timeout,
            heard: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// The master, as a majority named it within the last [`ASKED_AGAIN_AFTER`].
    pub(super) async fn master(&self) -> Result<Arc<Master>> {
        let times = {
            let heard = self.heard.lock();
            if let Some(master) = heard.believed() {
                return Ok(master);
            }
            heard.times
        };
        let _turn = self.turn.lock().await;
        {
            let heard = self.heard.lock();
            if let Some(master) = heard.believed() {
                return Ok(master);
            }
            if let Some(refused) = heard.refused.as_ref().filter(|_| heard.times != times) {
                return Err(refused.clone());
            }
        }
        let at = clock::boot();
        let answer = self.ask().await;
        let mut heard = self.heard.lock();
        heard.times += 1;
        match answer {
            Ok(address) => {
                let before = heard.master.take();
                let master = match before.filter(|master| *master.address == *address) {
                    Some(master) => master,
                    None => {
                        tracing::info!(master = %self.name, %address, "sentinels name the master");
                        let (front, back) = &self.around;
                        Arc::new(Master::new(&format!("{front}{address}{back}"))?)
                    }
                };
                *heard = Heard {
                    master: Some(Arc::clone(&master)),
                    at,
                    times: heard.times,
                    ..Heard::default()
                };
                Ok(master)
            }
            Err(error) => {
                heard.refused = Some(error.clone());
                Err(error)
            }
        }
    }

    pub(super) fn doubt(&self) {
        self.heard.lock().doubtful = true;
    }

    /// `NAME (HOST:PORT)`.
    pub(super) fn label(&self) -> String {
        let heard = self.heard.lock();
        let address = heard.master.as_ref().map_or("nowhere yet", |m| &m.address);
        format!("{} ({address})", self.name)
    }

    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// What is wrong with the list in the URL, if one sentinel knows of too many others.
    pub(super) async fn too_few(&self) -> Option<String> {
        let mut asking: FuturesUnordered<_> = self
            .each
            .iter()
            .map(|sentinel| {
                let mut ask = ::redis::cmd("SENTINEL");
                ask.arg("SENTINELS").arg(&self.name);
                async move { sentinel.query::<Vec<::redis::Value>>(&ask, self.patience()).await }
            })
            .collect();
        let mut others = 0;
        while let Some(answer) = asking.next().await {
            if let Ok(known) = answer {
                // Each of them knows the others; a silent one must not be waited for.
                others = known.len();
                break;
            }
        }
        let (all, listed) = (others + 1, self.each.len());
        (self.majority() * 2 <= all).then(|| {
            format!(
                "the store URL lists {listed} of {all} sentinels of {:?}: list all of them, or a cut-off master may be believed in",
                self.name
            )
        })
    }

    fn majority(&self) -> usize {
        self.each.len() / 2 + 1
    }

    fn patience(&self) -> Duration {
        PATIENCE.min(self.timeout / 2)
    }

    /// The address that a majority names.
    async fn ask(&self) -> Result<String> {
        let mut ask = ::redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let mut asking: FuturesUnordered<_> = self
            .each
            .iter()
            .map(|sentinel| {
                let ask = &ask;
                async move {
                    let answer =
                        sentinel.query::<Option<(String, u16)>>(ask, self.patience()).await;
                    (&sentinel.address, answer)
                }
            })
            .collect();
        let mut named: HashMap<String, usize> = HashMap::new();
        let mut said = Vec::new();
        while let Some((sentinel, answer)) = asking.next().await {
            let words = match answer {
                Ok(Some((host, port))) => {
                    let host = if host.contains(':') { format!("[{host}]") } else { host };
                    let address = format!("{host}:{port}");
                    let count = named.entry(address.clone()).or_default();
                    *count += 1;
                    if *count >= self.majority() {
                        return Ok(address);
                    }
                    format!("{sentinel} names {address}")
                }
                Ok(None) => format!("{sentinel} does not know that master"),
                Err(why) => format!("{sentinel} {why}"),
            };
            said.push(words);
        }
        Err(StoreError::Unavailable(format!(
            "{} of {} sentinels must agree on the master of {:?}: {}",
            self.majority(),
            self.each.len(),
            self.name,
            said.join(", ")
        )))
    }
}

/// One of them.
struct Sentinel {
    client: ::redis::Client,
    address: String,
    /// Dropped when it broke or nothing came back in time.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Sentinel {
    async fn query<T: ::redis::FromRedisValue>(
        &self,
        ask: &::redis::Cmd,
        patience: Duration,
    ) -> std::result::Result<T, String> {
        let slot = || self.connection.lock();
        let asked = async {
            let open = slot().clone();
            if let Some(mut connection) = open {
                let answer = ask.query_async(&mut connection).await;
                if !answer.as_ref().is_err_and(|e: &::redis::RedisError| e.is_io_error()) {
                    return answer;
                }
                // Closed while idle: it may live all the same.
                slot().take();
            }
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            let mut connection =
                self.client.get_multiplexed_async_connection_with_config(&config).await?;
            let answer = ask.query_async(&mut connection).await?;
            *slot() = Some(connection);
            Ok(answer)
        };
        match tokio::time::timeout(patience, asked).await {
            Ok(answer) => answer.map_err(|error| match error.code() {
                Some(code @ ("NOAUTH" | "WRONGPASS")) => format!(
                    "wants another user or password ({code}): correct sentinel_user and sentinel_password in the store URL"
                ),
                _ => format!("failed: {error}"),
            }),
            Err(_) => {
                slot().take();
                Err("did not answer".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> Parts<'_> {
        Parts::of(url).expect("of sentinels").expect("usable")
    }

    #[test]
    fn a_url_of_sentinels_is_taken_apart() {
        let all = parts(
            "rediss+sentinel://u:p%40ss@one:26380,[::1],three/jobs/2?sentinel_password=s&sentinel_user=watcher",
        );
        assert_eq!(all.scheme, "rediss");
        assert_eq!(all.login, "u:p%40ss@");
        assert_eq!(all.sentinels, ["one:26380", "[::1]:26379", "three:26379"]);
        assert_eq!((all.name, all.database), ("jobs", "2"));
        assert_eq!(all.sentinel_login, "watcher:s@");
        let least = parts("redis+sentinel://one/jobs");
        assert_eq!((least.login, least.database), ("", "0"));
        assert_eq!(least.sentinel_login, "");
        assert!(Sentinels::new(least, Duration::from_secs(1)).is_ok());
        assert!(Sentinels::new(all, Duration::from_secs(1)).is_ok());
        assert!(Parts::of("redis://one/0").is_none());
    }

    #[test]
    fn a_url_that_cannot_be_meant_is_refused_without_its_password() {
        for wrong in [
            "redis+sentinel://:sesame@one",
            "redis+sentinel://:sesame@one/",
            "redis+sentinel://:sesame@/jobs",
            "redis+sentinel://:sesame@one,,two/jobs",
            "redis+sentinel://:sesame@one/jobs/first",
            "redis+sentinel://one/jobs?password=sesame",
        ] {
            let error = Parts::of(wrong).expect("of sentinels").expect_err(wrong).to_string();
            assert!(error.contains("MASTERNAME") && !error.contains("sesame"), "{error}");
        }
    }
}
