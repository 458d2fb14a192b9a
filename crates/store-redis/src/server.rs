//! What kind of servers answer, and whether they can keep the promise.
//!
//! Refuses what would lose leases (eviction), what the URL does not fit (cluster mode) and what is too old; warns
//! about what is merely unwise.

use std::collections::HashMap;

use ::redis::Value;
use futures_util::future::join_all;

use super::fault;
use super::link::{Link, Repeat};
use super::route::Route;
use super::{Place, Shared};
use soloist_store::{Description, Result, StoreError};

/// What a Redis user of ours may do.
const RIGHTS: &str = include_str!("../../../deploy/redis.acl");
/// Of these commands, those that a store can do without, or that speak for themselves when they are missing.
const SPARED: [&str; 13] = [
    "auth",
    "hello",
    "select",
    "ping",
    "client",
    "config",
    "command",
    "role",
    "wait",
    "scan",
    "eval",
    "unsubscribe",
    "punsubscribe",
];

/// The newest `INFO` of one server.
pub(super) struct Server {
    address: String,
    info: HashMap<String, String>,
    eviction: String,
}

/// Every server that could be asked.
pub(super) struct Servers {
    pub(super) each: Vec<Server>,
    /// Masters of a cluster that did not answer.
    silent: Vec<StoreError>,
}

/// What an empty server shows of those who use the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is not empty, or a process is connected that had opened it.
    Used,
    /// It is empty, and no such process is connected.
    Unused,
    /// It is empty, and who is connected cannot be seen.
    Unknown,
}

/// Whether the store is empty and no process that had opened it is connected.
pub(super) async fn usage(shared: &Shared) -> Result<Use> {
    let key = shared.keys.global("schema");
    let mut schema = ::redis::cmd("EXISTS");
    schema.arg(&key);
    if shared.rest.command(&key, &schema, Repeat::Harmless).await? {
        return Ok(Use::Used);
    }
    others(shared).await
}

/// Whether a process is connected that had opened the store; [`Use::Unused`]: none.
pub(super) async fn others(shared: &Shared) -> Result<Use> {
    let mut list = ::redis::cmd("CLIENT");
    list.arg("LIST");
    let name = format!("name={}", shared.keys.client());
    let database = match &shared.place {
        Place::Server(route) => format!("db={}", route.master().await?.database()),
        Place::Cluster(_) => "db=0".to_owned(),
    };
    for link in shared.rest.links().await? {
        match link.command::<String>(&list, Repeat::Harmless).await {
            Ok(clients) => {
                if clients.lines().any(|client| {
                    let has = |wanted: &str| client.split(' ').any(|field| field == wanted);
                    has(&name) && has(&database)
                }) {
                    return Ok(Use::Used);
                }
            }
            Err(error) => {
                tracing::info!(%error, "who else uses the store cannot be seen: an empty one is not taken for a fresh one");
                return Ok(Use::Unknown);
            }
        }
    }
    Ok(Use::Unused)
}

/// The commands without which a store does not work.
fn needed() -> Vec<&'static str> {
    let lines = RIGHTS.lines().filter(|line| !line.starts_with('#'));
    let rights = lines.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('+'));
    let mut names: Vec<&str> =
        rights.map(|right| right.split('|').next().unwrap_or(right)).collect();
    names.retain(|name| !SPARED.contains(name));
    names
}

/// Refuses servers on which a command that is needed was renamed: else it would be missed only when it is used, some of them inside of
/// a script, where the server does not say which it was.
///
/// # Errors
/// [`StoreError::Unsupported`], with their names.
pub(super) async fn check_commands(shared: &Shared) -> Result<()> {
    let needed = needed();
    let mut ask = ::redis::cmd("COMMAND");
    ask.arg("INFO").arg(&needed);
    for link in shared.rest.links().await? {
        // A user who may not ask this goes without.
        let Ok(known) = link.command::<Vec<Value>>(&ask, Repeat::Harmless).await else { continue };
        let unknown = needed.iter().zip(&known).filter(|(_, known)| **known == Value::Nil);
        let unknown: Vec<String> = unknown.map(|(name, _)| name.to_ascii_uppercase()).collect();
        if !unknown.is_empty() {
            return Err(fault::not_known(&link.address(), &unknown.join(" and ")));
        }
    }
    Ok(())
}

impl Servers {
    /// Asks all of them. Of a cluster some may be silent: their jobs are out of reach, not the store.
    pub(super) async fn read(shared: &Shared) -> Result<Self> {
        let links = shared.rest.links().await?;
        let mut servers = Self { each: Vec::new(), silent: Vec::new() };
        for answer in join_all(links.iter().map(|link| Server::read(link))).await {
            match answer {
                Ok(server) => servers.each.push(server),
                Err(error @ StoreError::Unavailable(_)) => servers.silent.push(error),
                Err(error) => return Err(error),
            }
        }
        match servers.silent.first() {
            Some(error) if servers.each.is_empty() => Err(error.clone()),
            _ => Ok(servers),
        }
    }

    /// Refuses servers that cannot keep the promise.
    pub(super) fn check(&self, shared: &Shared) -> Result<()> {
        let clustered = matches!(shared.place, Place::Cluster(_));
        self.each.iter().try_for_each(|server| server.check(clustered))
    }

    pub(super) async fn describe(&self, shared: &Shared) -> Result<Description> {
        if let Some(silent) = self.silent.first() {
            return Err(silent.clone());
        }
        let mut warnings = Vec::new();
        if self.each.iter().any(|server| server.get("aof_enabled") != "1") {
            warnings.push(
                "Redis does not write every change to disk: a restart may forget who wants what. Run `redis-cli CONFIG SET appendonly yes` and write `appendonly yes` into redis.conf"
                    .to_owned(),
            );
        }
        let version = self.each.first().map_or("", |server| server.get("redis_version"));
        let what = match &shared.place {
            Place::Server(route) => {
                if let Route::Sentinels(sentinels) = &**route {
                    warnings.extend(sentinels.too_few().await);
                }
                let database = route.master().await?.database();
                format!("Redis {version} at {}", route.place(database))
            }
            Place::Cluster(_) => {
                warnings.extend(self.each.iter().filter_map(Server::lonely));
                warnings.extend(partial_refusal(shared).await);
                let places: Vec<&str> = self.each.iter().map(|s| s.address.as_str()).collect();
                format!(
                    "Redis Cluster {version}, {} masters at {}",
                    places.len(),
                    places.join(", ")
                )
            }
        };
        Ok(Description { what, shared: true, warnings })
    }
}

/// A cluster that refuses everything for want of one master, if it may be asked.
async fn partial_refusal(shared: &Shared) -> Option<String> {
    let mut ask = ::redis::cmd("CONFIG");
    ask.arg("GET").arg("cluster-require-full-coverage");
    let key = shared.keys.global("schema");
    let answer: HashMap<String, String> =
        shared.rest.command(&key, &ask, Repeat::Harmless).await.unwrap_or_default();
    answer.values().any(|value| value == "yes").then(|| {
        "while one master of the cluster is lost, all of them refuse every job. Run `redis-cli CONFIG SET cluster-require-full-coverage no` on every member and write it into redis.conf: then only its own jobs wait for its replica"
            .to_owned()
    })
}

impl Server {
    async fn read(link: &Link) -> Result<Self> {
        let text: String = link.command(&::redis::cmd("INFO"), Repeat::Harmless).await?;
        let info: HashMap<String, String> = text
            .lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .collect();
        let eviction = match info.get("maxmemory_policy") {
            Some(policy) => policy.clone(),
            None => {
                let mut ask = ::redis::cmd("CONFIG");
                ask.arg("GET").arg("maxmemory-policy");
                let answer: HashMap<String, String> = link.command(&ask, Repeat::Harmless).await?;
                answer.into_values().next().unwrap_or_default()
            }
        };
        Ok(Self { address: link.address(), info, eviction })
    }

    pub(super) fn get(&self, field: &str) -> &str {
        self.info.get(field).map_or("", String::as_str)
    }

    pub(super) fn eviction(&self) -> &str {
        &self.eviction
    }

    fn lonely(&self) -> Option<String> {
        (self.get("connected_slaves") == "0").then(|| {
            format!(
                "Redis at {} has no replica: while it is lost its jobs stand still. Add one with `redis-cli --cluster add-node ... --cluster-slave`",
                self.address
            )
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    fn check(&self, clustered: bool) -> Result<()> {
        let address = &self.address;
        let version = self.get("redis_version");
        let major: u32 = version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        if major < 7 {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} is version {version:?}: Soloist needs 7.0 or newer"
            )));
        }
        if !clustered && self.get("cluster_enabled") == "1" {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} is a member of a cluster: write redis+cluster://{address}/ (more members may be listed, separated by commas)"
            )));
        }
        if self.eviction != "noeviction" {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} may evict leases (maxmemory-policy {}): run `redis-cli CONFIG SET maxmemory-policy noeviction` and write `maxmemory-policy noeviction` into redis.conf",
                self.eviction
            )));
        }
        if !clustered && self.get("role") != "master" {
            return Err(StoreError::Unavailable(format!(
                "Redis at {address} is a read-only replica of {}:{}: use the address of the master",
                self.get("master_host"),
                self.get("master_port")
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_what_the_rights_list_but_what_is_spared() {
        let needed = needed();
        for name in ["info", "evalsha", "script", "time", "subscribe", "publish", "hset", "zadd"] {
            assert!(needed.contains(&name), "{name}: {needed:?}");
        }
        assert!(needed.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())));
        for name in SPARED {
            assert!(
                RIGHTS.contains(&format!("+{name}")),
                "{name} is no right, so it is not spared"
            );
        }
    }
}
