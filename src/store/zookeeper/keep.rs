//! Renewals: what this process has in an ensemble is still so, by the word of the leader.
//!
//! A step that only checks versions is proposed by the leader as any other, so its answer is no word of a server that lags. It changes
//! nothing, so no watch rings. And every request that is answered is a sign of life of its session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use zookeeper_client::{Error, MultiWriteError};

use super::Locks;
use super::era::ERA;
use super::locks::{Mine, lease_of, term_of};
use crate::clock;
use crate::domain::name::JobName;
use crate::store::Result;

/// Leases in one renewal; two checks each.
const BATCH: usize = 100;
/// So often a renewal learns a new era.
const ERAS: usize = 4;

/// What is kept: how its text must begin.
pub(super) struct Kept<'a> {
    pub(super) job: &'a JobName,
    pub(super) text: &'a str,
    pub(super) ttl: Duration,
}

impl Locks {
    /// Keeps leases that this process has: for each what was left of it, or `None` when it has no such lease any more.
    pub(super) async fn keep(&self, leases: &[Kept<'_>]) -> Result<Vec<Option<Duration>>> {
        let mut kept = vec![None; leases.len()];
        let mut parties: HashMap<i64, Vec<(usize, Mine)>> = HashMap::new();
        for (nth, lease) in leases.iter().enumerate() {
            let mine = self.lock(&self.mine).get(lease.job).cloned();
            let fits = |mine: &Mine| {
                mine.text.starts_with(lease.text)
                    && mine.ttl == lease.ttl
                    && !mine.session.is_over()
            };
            if let Some(mine) = mine.filter(fits) {
                parties.entry(mine.session.id).or_default().push((nth, mine));
            }
        }
        let parties: Vec<_> = parties.into_values().collect();
        let batches = parties.iter().flat_map(|party| party.chunks(BATCH));
        let checked = batches.map(|batch| self.check(leases, batch.to_vec()));
        for (nth, mine) in try_join_all(checked).await?.into_iter().flatten() {
            // One that was ended meanwhile, as it was not renewed, is not kept.
            if let Some(known) = self.lock(&self.mine).get_mut(leases[nth].job)
                && known.term == mine.term
            {
                let now = clock::boot();
                kept[nth] = Some(known.until.since(now));
                known.until = known.until.max(now + mine.ttl);
            }
        }
        Ok(kept)
    }

    /// The record store is of this epoch: leases whose records were seen in another one are not kept, so that they are asserted again and
    /// reported with all that it has forgotten.
    pub(super) fn drop_those_before(
        &self,
        epoch: &str,
        leases: &[Kept<'_>],
        kept: &mut [Option<Duration>],
    ) {
        if !self.sharded {
            *self.lock(&self.epoch) = Some(epoch.to_owned());
        }
        let mut all = self.lock(&self.mine);
        for (lease, kept) in leases.iter().zip(kept) {
            let Some(mine) = all.get_mut(lease.job) else { continue };
            let before = mine.epoch.replace(epoch.to_owned());
            if before.is_some_and(|before| before != epoch) {
                *kept = None;
            }
        }
    }

    /// Whether the record store is of another epoch than it was when this was asked before. On a cluster that is not known.
    pub(super) fn is_another(&self, epoch: &str) -> bool {
        let mut marked = self.lock(&self.marked);
        let before = marked.replace(epoch.to_owned());
        !self.sharded && before.is_some_and(|before| before != epoch)
    }

    /// Those of the leases of one session that are as this process knows them.
    async fn check(
        &self,
        leases: &[Kept<'_>],
        mut batch: Vec<(usize, Mine)>,
    ) -> Result<Vec<(usize, Mine)>> {
        // Each time one goes, or the era is learned anew.
        for _ in 0..batch.len() + ERAS {
            let Some((_, first)) = batch.first() else { break };
            let session = Arc::clone(&first.session);
            // Whatever is forgotten next, the wait after it is long enough for these.
            let era = self.reach_surely(&session, first.ttl).await?;
            let mut writer = session.client.new_multi_writer();
            let added = writer.add_check_version(ERA, era.version);
            added.map_err(|error| self.ensemble.told(&error))?;
            for (nth, mine) in &batch {
                let job = leases[*nth].job;
                let added = writer
                    .add_check_version(&term_of(job), mine.term)
                    .and_then(|()| writer.add_check_version(&lease_of(job), mine.version));
                added.map_err(|error| self.ensemble.told(&error))?;
            }
            match self.ensemble.within(writer.commit()).await {
                Ok(_) => return Ok(batch),
                Err(MultiWriteError::OperationFailed {
                    index,
                    source: Error::BadVersion | Error::NoNode,
                }) => match index.checked_sub(1) {
                    None => drop(self.look_at_era(false).await?),
                    Some(nth) => drop(batch.remove((nth / 2).min(batch.len() - 1))),
                },
                Err(error) => return Err(self.ensemble.told_multi(error)),
            }
        }
        Ok(Vec::new())
    }

    /// The longest lease that this process has, in milliseconds.
    pub(super) fn longest_held(&self) -> u64 {
        let mine = self.lock(&self.mine);
        let longest = mine.values().map(|mine| mine.ttl.as_millis()).max().unwrap_or(0);
        u64::try_from(longest).unwrap_or(u64::MAX)
    }
}
