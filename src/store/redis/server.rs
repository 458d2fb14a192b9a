//! What kind of server answers, and whether it can keep the promise.
//!
//! Refuses what would lose leases (eviction), what does not work yet (cluster mode) and what is too old; warns
//! about what is merely unwise.

use std::collections::HashMap;

use super::Shared;
use super::link::Repeat;
use crate::store::{Description, Result, StoreError};

/// The newest `INFO`.
pub(super) struct Server {
    info: HashMap<String, String>,
    eviction: String,
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

    fn get(&self, field: &str) -> &str {
        self.info.get(field).map_or("", String::as_str)
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

    pub(super) fn describe(&self, address: &str, database: i64) -> Description {
        let mut warnings = Vec::new();
        if self.get("aof_enabled") != "1" {
            warnings.push(
                "Redis does not write every change to disk: a restart may forget who wants what. Run `redis-cli CONFIG SET appendonly yes` and write `appendonly yes` into redis.conf"
                    .to_owned(),
            );
        }
        Description {
            what: format!("Redis {} at {address}/{database}", self.get("redis_version")),
            shared: true,
            warnings,
        }
    }
}
