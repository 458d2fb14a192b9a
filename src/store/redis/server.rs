//! What kind of server answers, and whether it can keep the promise.
//!
//! Refuses what would lose leases (eviction), what does not work yet (cluster mode) and what is too old; warns
//! about what is merely unwise.

use std::collections::HashMap;

use super::Shared;
use super::link::Repeat;
use super::route::Route;
use crate::store::{Description, Result, StoreError};

/// The newest `INFO`.
pub(super) struct Server {
    info: HashMap<String, String>,
    eviction: String,
}

/// A server that has been up for less may have had leases when it went down that are still trusted by holders who have
/// not dialled again. Few leases last longer.
const YOUNG_S: u64 = 600;

/// What an opening process makes of a store without an epoch; the words are those of `open_store.lua`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emptiness {
    /// Nobody had opened it, as far as can be known.
    Unused,
    /// The same, but the server has only just started: a restart without persistence looks like this, too.
    Young,
    /// It is not empty, or somebody is connected who had opened it.
    InUse,
}

impl Emptiness {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Young => "young",
            Self::InUse => "in_use",
        }
    }
}

/// Looks whether the store is empty, and who else is there.
pub(super) async fn emptiness(shared: &Shared, server: &Server) -> Result<Emptiness> {
    if !is_unused(shared).await? {
        return Ok(Emptiness::InUse);
    }
    let up: u64 = server.get("uptime_in_seconds").parse().unwrap_or(0);
    Ok(if up < YOUNG_S { Emptiness::Young } else { Emptiness::Unused })
}

/// Whether the store is empty and no process that had opened it is connected.
async fn is_unused(shared: &Shared) -> Result<bool> {
    let mut schema = ::redis::cmd("EXISTS");
    schema.arg(shared.keys.global("schema"));
    if shared.rest.command(&schema, Repeat::Harmless).await? {
        return Ok(false);
    }
    let mut list = ::redis::cmd("CLIENT");
    list.arg("LIST");
    let name = format!("name={}", shared.keys.client());
    let database = format!("db={}", shared.route.master().await?.database());
    match shared.rest.command::<String>(&list, Repeat::Harmless).await {
        Ok(clients) => Ok(!clients.lines().any(|client| {
            let has = |wanted: &str| client.split(' ').any(|field| field == wanted);
            has(&name) && has(&database)
        })),
        Err(error) => {
            tracing::info!(%error, "who else uses the store cannot be seen: an empty one is not taken for a fresh one");
            Ok(false)
        }
    }
}

impl Server {
    pub(super) async fn read(shared: &Shared) -> Result<Self> {
        let text: String = shared.rest.command(&::redis::cmd("INFO"), Repeat::Harmless).await?;
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
                let answer: HashMap<String, String> =
                    shared.rest.command(&ask, Repeat::Harmless).await?;
                answer.into_values().next().unwrap_or_default()
            }
        };
        Ok(Self { info, eviction })
    }

    pub(super) fn get(&self, field: &str) -> &str {
        self.info.get(field).map_or("", String::as_str)
    }

    pub(super) fn eviction(&self) -> &str {
        &self.eviction
    }

    /// Refuses a server that cannot keep the promise.
    pub(super) fn check(&self, address: &str) -> Result<()> {
        let version = self.get("redis_version");
        let major: u32 = version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        if major < 7 {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} is version {version:?}: Soloist needs 7.0 or newer"
            )));
        }
        if self.get("cluster_enabled") == "1" {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} runs in cluster mode, which does not work yet: use a single server (cluster-enabled no)"
            )));
        }
        if self.eviction != "noeviction" {
            return Err(StoreError::Unsupported(format!(
                "Redis at {address} may evict leases (maxmemory-policy {}): run `redis-cli CONFIG SET maxmemory-policy noeviction` and write `maxmemory-policy noeviction` into redis.conf",
                self.eviction
            )));
        }
        if self.get("role") != "master" {
            return Err(StoreError::Unavailable(format!(
                "Redis at {address} is a read-only replica of {}:{}: use the address of the master",
                self.get("master_host"),
                self.get("master_port")
            )));
        }
        Ok(())
    }

    pub(super) async fn describe(&self, route: &Route) -> Result<Description> {
        let mut warnings = Vec::new();
        if self.get("aof_enabled") != "1" {
            warnings.push(
                "Redis does not write every change to disk: a restart may forget who wants what. Run `redis-cli CONFIG SET appendonly yes` and write `appendonly yes` into redis.conf"
                    .to_owned(),
            );
        }
        if let Route::Sentinels(sentinels) = route {
            warnings.extend(sentinels.too_few().await);
        }
        let database = route.master().await?.database();
        Ok(Description {
            what: format!("Redis {} at {}", self.get("redis_version"), route.place(database)),
            shared: true,
            warnings,
        })
    }
}
