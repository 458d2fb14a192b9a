//! Dispatch in Redis: one Lua script per transition, all on a connection of their own.
//!
//! | key (after the prefix, on a cluster with `{~}:` before) | type | holds |
//! | --- | --- | --- |
//! | `dispatch:names` | sorted set | every source |
//! | `dispatch:s:SOURCE` | hash | its rules and counters, in microseconds |
//! | `dispatch:t:ID` | string | a task: one line of fields, its key, its newest error, its payload (`move_tasks.lua`) |
//! | `dispatch:h:ID` | list | what went wrong with it, JSON |
//! | `dispatch:q:SOURCE` `d:` `l:` `x:` | sorted sets | ids of tasks that are ready, due, leased, dead, by place or instant |
//! | `dispatch:w:SOURCE` | list | the starts that its window counts, newest first |
//! | `dispatch:done` | list | finished tasks, oldest first; the newest [`DONE_KEPT`](soloist_store::dispatch::DONE_KEPT) are remembered |
//! | `dispatch:ring` `shut` | sorted sets | sources that can be served, by turn; that have work and cannot, by when that may change |
//! | `dispatch:timers` | sorted set | `l:SOURCE` `d:SOURCE` `s:SOURCE`: when a lease ends, a task is due, a source opens; `p:`, a promise lapses |
//! | `dispatch:c:CLAIM` | string, PX | what was answered to a request, of which CLAIM is made |
//! | `dispatch:turn` | string | the newest turn in `ring` |
//! | `dispatch:collectors` | hash | when each was last seen; the last thousand count, twice as many may be there |
//! | `dispatch:v` `v:SOURCE` `waits` | sorted sets, hash | who waits for work, in order, and until when |
//! | `dispatch:wake` | channel | `{"wake":[WAITER...]}` |
//!
//! A claim costs a fixed number of commands and some for each task and source it takes: never O(tasks), O(in flight) or
//! O(sources). Dispatch waits for no replica: a fail-over that loses the last grants hands those tasks out again, under
//! greater tokens; results of the lost ones are stale.

mod exchanges;
pub(super) mod parse;

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use self::exchanges::Asked;
pub(super) use self::exchanges::Exchanges;
use self::parse::{Answer, claimed, collector_views, source_view, task_view};
use super::lane::Call;
use super::link::Repeat;
use super::scripts::Transition;
use super::{RedisStore, scripts};
use soloist_domain::dispatch::{ClaimAsk, Rules, SEEN_EVERY, TaskOutcome, TaskState};
use soloist_domain::fields::Given;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;
use soloist_process::clock;
use soloist_store::dispatch::{
    ClaimId, ClaimOwner, CollectorView, Dispatch, Exchange, Exchanged, Extended, Lost, NewTask,
    Pumped, RemovedSource, Reported, SourceView, Sources, TaskFilter, TaskId, TaskView, Waiter,
};
use soloist_store::{Result, StoreError};

/// How many leases of a source are looked at to find out who holds what.
const LEASES_SHOWN: usize = 1_000;
/// Most tasks that one step of a removal removes.
const REMOVED_AT_ONCE: usize = 1_000;
const NOTED_AT_MOST: usize = 10_000;

#[async_trait]
impl Sources for RedisStore {
    async fn put_source(&self, source: &SourceName, rules: &Rules) -> Result<SourceView> {
        let mut call = self.dispatch_call(&scripts::PUT_SOURCE);
        call.arg(source.as_str());
        for (field, value) in Given::of(rules).each() {
            call.arg(field.kept).arg(value.unwrap_or(0));
        }
        let _fresh: u8 = self.act(&mut call).await?;
        self.one_source(source).await
    }

    async fn pause_source(&self, source: &SourceName, paused: bool) -> Result<SourceView> {
        let mut call = self.dispatch_call(&scripts::PAUSE_SOURCE);
        call.arg(source.as_str()).arg(u8::from(paused));
        self.limited(source, &mut call).await
    }

    async fn block_source(&self, source: &SourceName, lasting: Duration) -> Result<SourceView> {
        let mut call = self.dispatch_call(&scripts::BLOCK_SOURCE);
        call.arg(source.as_str()).arg(micros(lasting));
        self.limited(source, &mut call).await
    }

    async fn remove_source(&self, source: &SourceName, force: bool) -> Result<RemovedSource> {
        let mut first = None;
        loop {
            let mut call = self.dispatch_call(&scripts::REMOVE_SOURCE);
            call.arg(source.as_str()).arg(u8::from(force)).arg(REMOVED_AT_ONCE);
            let mut answer = Answer::of("remove_source", self.run(&call).await?)?;
            let word = answer.text()?;
            let mut count = || answer.number().map(|n| u64::try_from(n).unwrap_or_default());
            let now = Lost { tasks: count()?, in_flight: count()? };
            let lost = *first.get_or_insert(now);
            match word.as_str() {
                "missing" => return Err(missing(source.as_str())),
                "kept" => return Ok(RemovedSource::Kept(lost)),
                "done" => return Ok(RemovedSource::Done(lost)),
                _ => {}
            }
        }
    }

    async fn sources(&self, only: Option<&SourceName>) -> Result<Vec<SourceView>> {
        let mut call = self.dispatch_call(&scripts::READ_SOURCES);
        call.arg(only.map_or("", SourceName::as_str));
        let mut answer = Answer::of("read_sources", self.run(&call).await?)?;
        let now = Stamp(answer.number()?);
        let views =
            answer.rest().map(|value| source_view(value, now)).collect::<Result<Vec<_>>>()?;
        match only {
            Some(source) if views.is_empty() => Err(missing(source.as_str())),
            _ => Ok(views),
        }
    }

    async fn collectors(&self) -> Result<Vec<CollectorView>> {
        let mut call = self.dispatch_call(&scripts::READ_COLLECTORS);
        call.arg(LEASES_SHOWN);
        collector_views(Answer::of("read_collectors", self.run(&call).await?)?)
    }
}

#[async_trait]
impl Dispatch for RedisStore {
    async fn put_tasks(&self, tasks: &[NewTask]) -> Result<Vec<bool>> {
        let mut call = self.dispatch_call(&scripts::PUT_TASKS);
        for task in tasks {
            call.arg(TaskId::of(&task.source, &task.key).0)
                .arg(task.source.as_str())
                .arg(&task.key)
                .arg(task.priority)
                .arg(task.at.map_or(0, |at| at.0.max(0)))
                .arg(task.every.map_or(0, micros))
                .arg(&task.payload);
        }
        let mut answer = Answer::of("put_tasks", self.run(&call).await?)?;
        if answer.text()? == "missing" {
            return Err(missing(&answer.text()?));
        }
        tasks.iter().map(|_| Ok(answer.number()? == 1)).collect()
    }

    async fn exchange(&self, ask: &Exchange) -> Result<Exchanged> {
        let most = ask.claim.as_ref().map_or(0, |claim| claim.max);
        let mut call = Asked::of(
            usize::try_from(most).unwrap_or(usize::MAX).saturating_add(ask.reports.len()),
        );
        call.arg(ask.only.as_ref().map_or("", ClaimOwner::as_str)).arg(ask.reports.len());
        for report in &ask.reports {
            let outcome = match report.outcome {
                TaskOutcome::Done => "done",
                TaskOutcome::Retry => "retry",
                TaskOutcome::Dead => "dead",
            };
            call.arg(&report.id.0).arg(report.token.0).arg(outcome);
            if report.outcome != TaskOutcome::Done {
                let delay = report.delay.map(|delay| i64::try_from(micros(delay)));
                call.arg(delay.map_or(-1, |micros| micros.unwrap_or(i64::MAX)))
                    .arg(one_line(report.error.as_deref().unwrap_or_default()));
            }
        }
        let id = ask.claim.as_ref().map(ClaimAsk::id);
        if let (Some(claim), Some(id)) = (&ask.claim, &id) {
            let (waiter, patience) = match &claim.wait {
                Some((waiter, patience)) => (waiter.0.as_str(), micros(*patience)),
                None => ("", 0),
            };
            call.arg(claim.collector.as_str())
                .arg(&id.0)
                .arg(u8::from(self.is_news(&claim.collector)))
                .arg(claim.max)
                .arg(waiter)
                .arg(patience);
            // Each once: one that is named twice would count as two when the claim is divided.
            let sources: BTreeSet<&SourceName> = claim.sources.iter().collect();
            call.arg(sources.len());
            for source in sources {
                call.arg(source.as_str());
            }
        }
        let mut answer = self.exchanged(call).await?;
        let reports = answer
            .texts()?
            .iter()
            .map(|word| match word.as_str() {
                "ok" => Ok(Reported::Ok),
                "stale" => Ok(Reported::Stale),
                "unknown" => Ok(Reported::Unknown),
                other => Err(StoreError::Corrupt(format!("exchange_tasks: {other}"))),
            })
            .collect::<Result<Vec<_>>>()?;
        // None are named if all counted.
        let all = vec![Reported::Ok; ask.reports.len()];
        let reports = if reports.is_empty() { all } else { reports };
        let claimed = match id {
            Some(id) => Some(claimed(&mut answer, id)?),
            None => None,
        };
        Ok(Exchanged { reports, claimed })
    }

    async fn extend(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<Extended> {
        let mut call = self.dispatch_call(&scripts::EXTEND_CLAIM);
        call.arg(&claim.0).arg(only.map_or("", ClaimOwner::as_str));
        let mut answer = Answer::of("extend_claim", self.run(&call).await?)?;
        if answer.text()? == "missing" {
            return Err(StoreError::NotFound(format!("a claim {}", claim.0)));
        }
        let until = answer.number()?;
        let kept = usize::try_from(answer.number()?).unwrap_or_default();
        let mut ids = Vec::new();
        while !answer.is_over() {
            ids.push(TaskId(answer.text()?));
        }
        let lost = ids.split_off(kept.min(ids.len()));
        Ok(Extended { kept: ids, lost, lease_until: (until > 0).then_some(Stamp(until)) })
    }

    async fn give_back(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<u64> {
        let mut call = self.dispatch_call(&scripts::RETURN_CLAIM);
        call.arg(&claim.0).arg(only.map_or("", ClaimOwner::as_str));
        self.run(&call).await
    }

    async fn give_back_unseen_claim(&self, claim: &ClaimId) -> Result<u64> {
        let mut call = self.dispatch_call(&scripts::RETURN_CLAIM);
        call.arg(&claim.0).arg("").arg("unseen");
        self.run(&call).await
    }

    async fn leave_queues(&self, waiter: &Waiter, sources: &[SourceName]) -> Result<()> {
        let mut call = self.dispatch_call(&scripts::LEAVE_QUEUES);
        call.arg(&waiter.0);
        for source in sources {
            call.arg(source.as_str());
        }
        self.run::<u8>(&call).await.map(|_| ())
    }

    async fn pump(&self) -> Result<Pumped> {
        let call = self.dispatch_call(&scripts::PUMP_DISPATCH);
        let mut answer = Answer::of("pump_dispatch", self.run(&call).await?)?;
        let (now, next) = (Stamp(answer.number()?), answer.number()?);
        let expired = u64::try_from(answer.number()?).unwrap_or_default();
        let next = (next > 0).then_some(Stamp(next));
        Ok(Pumped { now, next, expired, more: answer.number()? == 1 })
    }

    async fn task(&self, id: &TaskId) -> Result<Option<TaskView>> {
        let mut call = self.dispatch_call(&scripts::READ_TASK);
        call.arg(&id.0);
        let mut answer = Answer::of("read_task", self.run(&call).await?)?;
        if answer.is_over() {
            return Ok(None);
        }
        let record = answer.text()?;
        let mut history = Vec::new();
        while !answer.is_over() {
            history.push(answer.text()?);
        }
        task_view(id.clone(), &record, &history).map(Some)
    }

    async fn dead(
        &self,
        source: Option<&SourceName>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let mut call = self.dispatch_call(&scripts::READ_DEAD);
        call.arg(source.map_or("", SourceName::as_str)).arg(skip).arg(limit);
        let mut answer = Answer::of("read_dead", self.run(&call).await?)?;
        answer
            .rest()
            .map(|value| {
                let mut one = Answer::of("read_dead", value)?;
                let (id, record) = (TaskId(one.text()?), one.text()?);
                task_view(id, &record, &one.texts()?)
            })
            .collect()
    }

    async fn tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&(Stamp, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let mut call = self.dispatch_call(&scripts::READ_TASKS);
        call.arg(filter.source.as_ref().map_or("", SourceName::as_str))
            .arg(filter.state.map_or("", TaskState::as_str))
            .arg(before.map_or(0, |(at, _)| at.0.max(0)))
            .arg(before.map_or("", |(_, id)| id.0.as_str()))
            .arg(limit);
        let mut answer = Answer::of("read_tasks", self.run(&call).await?)?;
        answer
            .rest()
            .map(|value| {
                let mut one = Answer::of("read_tasks", value)?;
                let (id, record) = (TaskId(one.text()?), one.text()?);
                task_view(id, &record, &one.texts()?)
            })
            .collect()
    }

    async fn remove_task(&self, id: &TaskId, force: bool) -> Result<bool> {
        let mut call = self.dispatch_call(&scripts::REMOVE_TASK);
        call.arg(&id.0).arg(u8::from(force));
        match self.act::<String>(&mut call).await?.as_str() {
            "missing" => Err(StoreError::NotFound(format!("a task {}", id.0))),
            word => Ok(word == "done"),
        }
    }

    async fn revive(&self, id: &TaskId) -> Result<TaskView> {
        let mut call = self.dispatch_call(&scripts::REVIVE_TASK);
        call.arg(&id.0);
        if self.act::<u8>(&mut call).await? == 0 {
            return Err(StoreError::NotFound(format!("a task {}", id.0)));
        }
        self.task(id).await?.ok_or_else(|| StoreError::NotFound(format!("a task {}", id.0)))
    }
}

impl RedisStore {
    pub(super) fn dispatch_call(&self, transition: &'static Transition) -> Call {
        let mut call = self.call(transition);
        call.key(self.keys().dispatch("")).key(self.keys().dispatch("wake"));
        call
    }

    /// Every transition of dispatch may be repeated: what happened the first time is found done, or is answered again.
    async fn run<T: ::redis::FromRedisValue>(&self, call: &Call) -> Result<T> {
        self.shared.dispatch.script(call, Repeat::Harmless).await
    }

    /// The same for an act that may have an entry in the audit, which the script writes in the same step (`note_act.lua`). With an
    /// entry it is sent once only.
    async fn act<T: ::redis::FromRedisValue>(&self, call: &mut Call) -> Result<T> {
        let repeat = self.with_note(call)?;
        self.shared.dispatch.script(call, repeat).await
    }

    /// Whether the store should note that this collector was seen: once a second is enough.
    fn is_news(&self, collector: &CollectorName) -> bool {
        let now = clock::boot();
        let mut noted = self.shared.noted.lock();
        if noted.get(collector).is_some_and(|at| now.since(*at) < SEEN_EVERY) {
            return false;
        }
        if noted.len() >= NOTED_AT_MOST {
            noted.clear();
        }
        noted.insert(collector.clone(), now);
        true
    }

    /// Runs a script that limits a source, and looks at what came of it.
    async fn limited(&self, source: &SourceName, call: &mut Call) -> Result<SourceView> {
        if self.act::<u8>(call).await? == 0 {
            return Err(missing(source.as_str()));
        }
        self.one_source(source).await
    }

    async fn one_source(&self, source: &SourceName) -> Result<SourceView> {
        self.sources(Some(source)).await?.pop().ok_or_else(|| missing(source.as_str()))
    }
}

fn missing(source: &str) -> StoreError {
    StoreError::NotFound(format!("a source {source}"))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Records are lines.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}
