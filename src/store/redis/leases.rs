//! Leases in Redis: carried out by `store::core`. Batches of a hundred, several at once, on a connection of their own; requests on
//! another.

use super::RedisStore;
use crate::domain::name::{JobName, Owner};
use crate::store::leases::{Acquire, Acquired, HeldLease, Leases, Observed, Renewal, Renewed};
use crate::store::{Result, core};

impl Leases for RedisStore {
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
        self.every_lease().await
    }
}
