//! Every lease there is, found by the names of the keys.
//!
//! No list of leases is kept. It would cost every grant one more write, and a lease that runs out could not strike itself
//! off. This is for people who look, and nothing is decided by it: that is why the store is not asked first whether it is
//! still the one we knew. Leases of known jobs are read by `snapshot` and `observe`.

use std::collections::BTreeSet;

use ::redis::{Cmd, Value};
use futures_util::future::try_join_all;

use super::link::{Generation, Link, Repeat, Work};
use super::record::parsed;
use super::{BATCH, RedisStore, scripts};
use soloist_domain::name::JobName;
use soloist_store::core::left_of;
use soloist_store::engine::StoredLease;
use soloist_store::{Result, StoreError};

/// Keys that one SCAN looks at. Meanwhile the server does nothing else, so they are few.
const LOOKED_AT: usize = 1_000;

impl RedisStore {
    /// As [`Engine::every_lease`](soloist_store::engine::Engine::every_lease).
    pub(super) async fn leases_by_keys(&self) -> Result<Vec<(JobName, StoredLease)>> {
        let servers = self.shared.rest.links().await?;
        let (pattern, of) = (self.keys().lease_pattern(), |key: &[u8]| self.keys().leased(key));
        let each = servers.iter().map(|server| self.jobs_by_keys(server, &pattern, of));
        let found = try_join_all(each).await?;
        // SCAN may say a key twice, and two masters may while its slot moves.
        let names: BTreeSet<JobName> = found.into_iter().flatten().collect();
        let names: Vec<JobName> = names.into_iter().collect();
        let mut held = Vec::with_capacity(names.len());
        for some in names.chunks(BATCH) {
            let batches = some.chunks(self.batch()).map(|batch| self.read_leases(batch));
            held.extend(try_join_all(batches).await?.into_iter().flatten());
        }
        Ok(held)
    }

    /// What one server has keys of, which match `pattern` and are `of` something (a job).
    pub(super) async fn jobs_by_keys<T>(
        &self,
        server: &Link,
        pattern: &str,
        of: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        type Page = (String, Vec<Vec<u8>>);
        let scan = |cursor: &str| -> Cmd {
            let mut scan = ::redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(LOOKED_AT);
            scan
        };
        let first = scan("0");
        let first = server.call(Work::Command(&first), Repeat::Harmless, None).await;
        let (mut page, connection): (Page, Generation) = first.map_err(StoreError::from)?;
        let mut names = Vec::new();
        loop {
            let (cursor, keys) = page;
            names.extend(keys.iter().filter_map(|key| of(key)));
            if cursor == "0" {
                return Ok(names);
            }
            // Only the server that gave a cursor understands it, and a new connection may lead to another one.
            page = server.command_on(&scan(&cursor), connection).await?;
        }
    }

    /// Those of `batch` that last.
    async fn read_leases(&self, batch: &[JobName]) -> Result<Vec<(JobName, StoredLease)>> {
        let mut call = self.call(&scripts::READ_LEASES);
        for name in batch {
            call.key(self.keys().lease(name));
        }
        let read: Vec<Value> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        if read.len() != batch.len() {
            return Err(StoreError::Corrupt("read_leases: an answer is missing".to_owned()));
        }
        let leases = batch.iter().zip(read).map(|(name, read)| {
            let (text, left): (Option<String>, i64) = parsed(&self.keys().lease(name), read)?;
            let lease = text.map(|text| StoredLease { text, left: left_of(left) });
            Ok(lease.map(|lease| (name.clone(), lease)))
        });
        leases.filter_map(Result::transpose).collect()
    }
}
