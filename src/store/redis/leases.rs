//! Leases in Redis: batches of a hundred, several at once, on a connection of their own; requests on another.

use std::time::Duration;

use ::redis::{Value, from_redis_value};
use futures_util::future::try_join_all;

use super::lane::Sent;
use super::link::Repeat;
use super::record::parsed;
use super::{RedisStore, millis, scripts};
use crate::clock;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, Owner};
use crate::domain::time::{Began, StoreTime};
use crate::store::journal::RUNS_KEPT;
use crate::store::leases::{
    Acquire, Acquired, Condition, HeldLease, Leases, Observed, Renewal, Renewed,
};
use crate::store::{Result, StoreError};

/// For a replica's word, at most; a twentieth of a shorter lease, so that it fits into the caller's patience.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Shorter, a busy machine would refuse what is in order.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);

impl Leases for RedisStore {
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired> {
        let keys = self.keys();
        let lease = keys.lease(&ask.job);
        let only = std::slice::from_ref(&ask.job);
        let epoch = keys.epoch(Some(&ask.job));
        let recently = self.memories().of(&epoch).read_recently(clock::boot());
        if !recently {
            // So that a jump is known before a token is minted, which would cost a living holder its lease.
            self.observe_batch(only).await?;
        }
        let answer = self
            .guarded(
                &self.shared.grants,
                &scripts::ACQUIRE_LEASE,
                epoch,
                &[
                    lease.clone(),
                    keys.state(&ask.job),
                    keys.participants(&ask.job),
                    keys.token(&ask.job),
                    keys.runs(&ask.job),
                    keys.events(&ask.job),
                ],
                ask.ttl,
                &[
                    ask.job.to_string(),
                    ask.owner.to_string(),
                    ask.node.to_string(),
                    millis(ask.ttl).to_string(),
                    match ask.condition {
                        Condition::Wanted => "wanted",
                        Condition::WantedDespiteMove => "despite_move",
                        Condition::None => "none",
                    }
                    .to_owned(),
                    ask.seen.to_string(),
                    RUNS_KEPT.to_string(),
                ],
            )
            .await?;
        let (replicas, by) = (answer.replicas, answer.by);
        let acquired = acquired(&lease, answer.values)?;
        if let (true, Acquired::Granted { .. }) = (answer.jumped, &acquired) {
            // The lease before this one may have ended by the jump alone. Nothing runs under ours yet.
            self.release(&ask.job, &ask.owner).await?;
            let begun = self.observe_batch(only).await?.1;
            return Ok(Acquired::Quarantined { wait: begun.max(ask.ttl) });
        }
        if let (1.., Acquired::Granted { .. }) = (replicas, &acquired) {
            self.wait_for_replica(ask, &by).await?;
        }
        Ok(acquired)
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>> {
        let batches = renewals.chunks(self.batch()).map(|batch| self.renew_batch(batch));
        Ok(try_join_all(batches).await?.concat())
    }

    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()> {
        let keys = self.keys();
        let mut call = self.call(&scripts::RELEASE_LEASE);
        call.key(keys.lease(job)).key(keys.state(job)).key(keys.events(job));
        call.arg(job.as_str()).arg(owner.as_str());
        let _given_back: u8 = self.shared.leases.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>> {
        let batches = jobs.chunks(self.batch()).map(|batch| self.observe_batch(batch));
        let answers = try_join_all(batches).await?;
        Ok(answers.into_iter().flat_map(|(observed, _)| observed).collect())
    }

    async fn held(&self) -> Result<Vec<HeldLease>> {
        self.every_lease().await
    }
}

/// What scripts are told of an instant (`recall_instant.lua`): what the store said, and how long ago it was.
pub(super) fn told(began: Began) -> (String, String) {
    let said = began.at.map(|at| at.0.to_string()).unwrap_or_default();
    (said, millis(clock::boot().since(began.boot)).to_string())
}

impl RedisStore {
    async fn renew_batch(&self, batch: &[Renewal]) -> Result<Vec<Renewed>> {
        let names = self.keys();
        let mut keys = Vec::with_capacity(batch.len() * 3);
        let mut arguments = Vec::with_capacity(batch.len() * 7);
        for renewal in batch {
            keys.extend([
                names.lease(&renewal.job),
                names.token(&renewal.job),
                names.state(&renewal.job),
            ]);
            let (since, ago) = told(renewal.since);
            arguments.extend([
                renewal.owner.to_string(),
                renewal.node.to_string(),
                renewal.token.to_string(),
                millis(renewal.ttl).to_string(),
                since,
                ago,
                renewal.run.as_ref().map(ToString::to_string).unwrap_or_default(),
            ]);
        }
        let ttl = batch.iter().map(|renewal| renewal.ttl).max().unwrap_or_default();
        let epoch = names.epoch(batch.first().map(|renewal| &renewal.job));
        let lane = &self.shared.leases;
        let answer =
            self.guarded(lane, &scripts::RENEW_LEASES, epoch, &keys, ttl, &arguments).await?;
        if answer.values.len() != batch.len() {
            return Err(StoreError::Corrupt("renew_leases: an answer is missing".to_owned()));
        }
        answer
            .values
            .into_iter()
            .map(|left| {
                let left: i64 = parsed("renew_leases", left)?;
                let kept = |left: i64, forgot| Renewed::Kept {
                    margin: Duration::from_millis(left.unsigned_abs()),
                    forgot,
                };
                Ok(match left {
                    0.. => kept(left, false),
                    -1 => Renewed::Lost,
                    _ => kept(left + 2, true),
                })
            })
            .collect()
    }

    /// Gives the lease back and fails unless a replica confirms that it has it: one that no replica has would be
    /// forgotten by a fail-over. Outside the script, because WAIT does not wait inside one.
    async fn wait_for_replica(&self, ask: &Acquire, by: &Sent) -> Result<()> {
        let patience = (ask.ttl / 20).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let mut wait = ::redis::cmd("WAIT");
        wait.arg(1).arg(millis(patience));
        // WAIT counts what this connection wrote: on another one it would confirm nothing.
        let shortfall = match by.command::<u64>(&wait).await {
            Ok(1..) => return Ok(()),
            Ok(0) => {
                let name = self.shared.name();
                StoreError::Unavailable(format!(
                    "no replica of Redis at {name} confirmed the new lease within {patience:?}: look at `redis-cli INFO replication` there"
                ))
            }
            Err(error) => error,
        };
        // Should this fail as well, the caller asks again as the same owner, or the lease runs out.
        self.release(&ask.job, &ask.owner).await?;
        Err(shortfall)
    }

    /// The answers, and how long the store is in quarantine.
    async fn observe_batch(&self, batch: &[JobName]) -> Result<(Vec<Observed>, Duration)> {
        let keys: Vec<String> =
            batch.iter().flat_map(|job| [self.keys().state(job), self.keys().lease(job)]).collect();
        let epoch = self.keys().epoch(batch.first());
        let lane = &self.shared.leases;
        let answer =
            self.guarded(lane, &scripts::OBSERVE_LEASES, epoch, &keys, Duration::ZERO, &[]).await?;
        let numbers: Vec<i64> = parsed("observe_leases", Value::Array(answer.values))?;
        if numbers.len() != keys.len() {
            return Err(StoreError::Corrupt("observe_leases: an answer is missing".to_owned()));
        }
        let observed = numbers
            .chunks_exact(2)
            .map(|pair| Observed {
                version: u64::try_from(pair[0]).unwrap_or(0),
                lease_left: u64::try_from(pair[1]).ok().map(Duration::from_millis),
            })
            .collect();
        Ok((observed, answer.quarantine))
    }
}

/// Words of `acquire_lease.lua`.
fn acquired(key: &str, values: Vec<Value>) -> Result<Acquired> {
    let corrupt = |what: &dyn std::fmt::Display| StoreError::Corrupt(format!("{key}: {what}"));
    let mut texts = Vec::with_capacity(3);
    for value in values {
        texts.push(from_redis_value::<String>(value).map_err(|error| corrupt(&error))?);
    }
    let number = |i: usize| -> Result<u64> {
        texts.get(i).and_then(|text| text.parse().ok()).ok_or_else(|| corrupt(&texts.join(" ")))
    };
    let wait = |i: usize| number(i).map(Duration::from_millis);
    match texts.first().map(String::as_str) {
        Some("granted") => Ok(Acquired::Granted {
            token: Token(number(1)?),
            since: StoreTime(i64::try_from(number(2)?).unwrap_or(i64::MAX)),
        }),
        Some("busy") => Ok(Acquired::Busy {
            node: texts
                .get(1)
                .and_then(|node| node.parse().ok())
                .ok_or_else(|| corrupt(&"the holder has no name"))?,
            remaining: wait(2)?,
        }),
        Some("not_wanted") => Ok(Acquired::NotWanted),
        Some("not_yet") => Ok(Acquired::NotYet { wait: wait(1)? }),
        Some("reserved") => Ok(Acquired::Reserved { wait: wait(1)? }),
        Some("quarantined") => Ok(Acquired::Quarantined { wait: wait(1)? }),
        _ => Err(corrupt(&texts.join(" "))),
    }
}
