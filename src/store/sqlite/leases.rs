//! Leases in SQLite: carried out by `store::core`.

use super::SqliteStore;
use super::engine::all_leases;
use crate::domain::name::{JobName, Owner};
use crate::store::leases::{Acquire, Acquired, HeldLease, Leases, Observed, Renewal, Renewed};
use crate::store::{Result, core};

impl Leases for SqliteStore {
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired> {
        core::acquire(self, ask).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        core::renew(self, renewals).await
    }

    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()> {
        core::release(self, job, owner).await
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>> {
        core::observe(self, jobs).await
    }

    async fn held(&self) -> Result<Vec<HeldLease>> {
        let all = self.read(all_leases).await?;
        let held = all.into_iter().map(|(name, lease)| {
            let lease = core::lease(&name, &lease.text, lease.left)?;
            Ok(HeldLease { name, lease })
        });
        held.collect()
    }
}
