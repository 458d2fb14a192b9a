//! The conditions of a copy, checked before and at the end. Each refusal says what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CopyError, Trouble};
use crate::Store;
use crate::core::carry::{self, Standing};
use crate::dispatch::{Dispatch as _, Sources as _, TaskFilter};
use crate::jobs::Jobs as _;
use crate::journal::{AuditFilter, Journal as _};
use crate::leases::Leases as _;
use crate::nodes::Nodes as _;
use crate::rotation::Rotations as _;
use soloist_domain::dispatch::TaskState;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, RotationName, SourceName};
use soloist_domain::time::Stamp;

type Outcome = Result<(), Trouble>;

/// A target whose clock is further behind than this is not waited for.
const BEHIND: Duration = Duration::from_secs(10);
/// How many claimed tasks are read.
const IN_HAND: usize = 1_000;
/// Who acts on what is over in the source.
const INCARNATION: &str = "copy/copy";

fn refused<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Refused(why.into()))
}

/// They are two stores.
pub(super) async fn other_store(source: &Store, target: &Store) -> Result<(), CopyError> {
    let source = source.epoch().await.map_err(CopyError::Source)?;
    let target = target.epoch().await.map_err(CopyError::Target)?;
    if source == target { Err(CopyError::Same) } else { Ok(()) }
}

/// No node uses the store.
pub(super) async fn nodes(store: &Store, which: &str) -> Outcome {
    let living = store.nodes().await?.into_iter().find(|node| node.is_alive());
    let Some(node) = living else { return Ok(()) };
    refused(format!(
        "node {} uses the {which}: stop every node, wait 4 s, and copy again",
        node.beat.node
    ))
}

/// Nothing was ever written there by a person, a job or a program.
pub(super) async fn is_empty(target: &Store) -> Outcome {
    let jobs = target.dispatch.every_job().await?;
    let rows = carry::read_rows(&*target.backend, &[]).await?;
    let audit = target.audit_after(&AuditFilter::default(), 0, 1).await?.entries;
    let (sources, rotations) = (target.sources(None).await?, target.rotations(None, 0).await?);
    let found = [
        ("jobs", jobs.len()),
        ("accounts or other records", rows.len()),
        ("audit entries", audit.len()),
        ("sources", sources.len()),
        ("rotations", rotations.len()),
    ];
    match found.into_iter().find(|(_, many)| *many > 0) {
        None => Ok(()),
        Some((what, _)) => refused(format!(
            "the target is not empty, it has {what}: name a new file, database or schema with --to, or empty that one"
        )),
    }
}

/// The target's clock has reached the source's: then a token that is made of the clock is greater, too.
pub(super) async fn clocks(source: &Store, target: &Store) -> Result<(), CopyError> {
    let theirs = now(source).await.map_err(CopyError::Source)?;
    let ours = now(target).await.map_err(CopyError::Target)?;
    let behind = theirs[1].since(ours[0]);
    if behind > BEHIND {
        return Err(CopyError::Refused(format!(
            "the target's clock is {} s behind the source's, and tokens must not go back: set the clocks of both (NTP), and copy again",
            behind.as_secs()
        )));
    }
    if !behind.is_zero() {
        tokio::time::sleep(behind).await;
    }
    Ok(())
}

/// A store may have one clock for jobs and one for the rest: the earlier one, and the later one.
async fn now(store: &Store) -> crate::Result<[Stamp; 2]> {
    let of_jobs = Stamp::from(store.snapshot(&[]).await?.at);
    let (rest, _) = carry::look_at_row(&*store.backend, super::MARKS, "no row").await?;
    Ok([of_jobs.min(rest), of_jobs.max(rest)])
}

/// No process uses the source, and nothing is held in it. What is over is ended, as nodes do, unless that is only looked at.
pub(super) async fn idle(source: &Store, only_looks: bool) -> Outcome {
    nodes(source, "source").await?;
    leases(source).await?;
    tasks(source, only_looks).await?;
    turns(source, only_looks).await
}

async fn leases(source: &Store) -> Outcome {
    if let Some(held) = source.held().await?.first() {
        return refused(format!(
            "{} is held by {}: stop its holder, or wait until the lease ends, and copy again",
            held.name, held.lease.node
        ));
    }
    if let Some(job) = source.holds_elsewhere().await? {
        return refused(format!(
            "{job} is held: stop its holder, or wait until the lease ends, and copy again"
        ));
    }
    doubted(source.doubted_elsewhere().await?)?;
    // That was a list for people. This is what decides; it also says whether the store may have forgotten some.
    let jobs = source.dispatch.every_job().await?;
    for (job, stands) in jobs.iter().zip(carry::standing(&*source.backend, &jobs).await?) {
        if stands.held {
            return refused(format!(
                "{job} is held: stop its holder, or wait until the lease ends, and copy again"
            ));
        }
        doubted(stands.doubted)?;
    }
    Ok(())
}

/// Leases that were forgotten may last so long.
fn doubted(long: Duration) -> Outcome {
    if long.is_zero() {
        return Ok(());
    }
    refused(format!(
        "the source may have forgotten leases that last for {} s more: wait, and copy again",
        long.as_secs() + 1
    ))
}

async fn tasks(source: &Store, only_looks: bool) -> Outcome {
    let sources = source.sources(None).await?;
    let Some(now) = sources.first().map(|view| view.now) else { return Ok(()) };
    if sources.iter().all(|view| view.in_flight == 0) {
        return Ok(());
    }
    let filter = TaskFilter { state: Some(TaskState::Leased), ..TaskFilter::default() };
    for task in source.tasks(&filter, None, IN_HAND).await? {
        if let Some((collector, _, until)) = task.held.filter(|(_, _, until)| *until > now) {
            return refused(format!(
                "task {:?} of source {} is in the hands of collector {collector} for {} s more: wait until its lease ends, and copy again",
                task.key,
                task.source,
                until.since(now).as_secs() + 1
            ));
        }
    }
    if only_looks {
        return Ok(());
    }
    while source.pump().await?.more {}
    match source.sources(None).await?.iter().find(|view| view.in_flight > 0) {
        None => Ok(()),
        Some(view) => refused(format!(
            "{} tasks of source {} are in the hands of collectors: stop these, and copy again",
            view.in_flight, view.name
        )),
    }
}

async fn turns(source: &Store, only_looks: bool) -> Outcome {
    let mut over = false;
    for view in source.rotations(None, 0).await? {
        let Some(turn) = view.ring.turn else { continue };
        if turn.until > view.now {
            return refused(format!(
                "worker {} has the turn of rotation {} for {} s more: wait until it passes or its lease ends, and copy again",
                turn.worker,
                view.name,
                turn.until.since(view.now).as_secs() + 1
            ));
        }
        over = true;
    }
    if over && !only_looks {
        while source.pump_turns(INCARNATION).await?.more {}
    }
    Ok(())
}

/// What changes whenever anybody uses a store.
#[derive(Debug)]
pub(super) struct State {
    jobs: BTreeMap<JobName, Standing>,
    /// The newest entry.
    audit: Option<u64>,
    /// Its token, and its tasks in each state.
    sources: Vec<(SourceName, Token, [u64; 4])>,
    rotations: Vec<(RotationName, Token)>,
}

impl State {
    /// Whether nobody used the store since. A record that said nothing any more may have been forgotten.
    pub(super) fn is_still(&self, now: &Self) -> bool {
        let kept = |name: &JobName| now.jobs.contains_key(name);
        let gone = |(name, was): &(&JobName, &Standing)| !was.void && !kept(name);
        let same = |(name, is): (&JobName, &Standing)| {
            self.jobs.get(name).is_some_and(|was| was.head == is.head)
        };
        !self.jobs.iter().any(|one| gone(&one))
            && now.jobs.iter().all(same)
            && (&self.audit, &self.sources, &self.rotations)
                == (&now.audit, &now.sources, &now.rotations)
    }
}

pub(super) async fn state(source: &Store) -> crate::Result<State> {
    let jobs = source.dispatch.every_job().await?;
    let stands = carry::standing(&*source.backend, &jobs).await?;
    let audit = source.audit_page(&AuditFilter::default(), None, 1).await?.entries;
    let mut sources: Vec<_> = source
        .dispatch
        .every_source()
        .await?
        .into_iter()
        .map(|one| {
            let counts = [one.source.started, one.source.dead, one.source.done];
            let all = one.source.ready + one.source.due;
            (one.source.name, one.token, [counts[0], counts[1], counts[2], all])
        })
        .collect();
    sources.sort();
    let rotations = source.rotations(None, 0).await?;
    Ok(State {
        jobs: jobs.into_iter().zip(stands).filter(|(_, one)| !one.head.is_empty()).collect(),
        audit: audit.first().map(|newest| newest.id),
        sources,
        rotations: rotations.into_iter().map(|one| (one.name, one.ring.token)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of jobs with these heads; with `true` it says nothing any more.
    fn state(jobs: &[(&str, &str, bool)]) -> State {
        let standing = |(name, head, void): &(&str, &str, bool)| {
            let (head, doubted) = ((*head).to_owned(), Duration::ZERO);
            (name.parse().unwrap(), Standing { head, held: false, void: *void, doubted })
        };
        let jobs = jobs.iter().map(standing).collect();
        State { jobs, audit: None, sources: Vec::new(), rotations: Vec::new() }
    }

    #[test]
    fn what_was_forgotten_meanwhile_is_no_change_and_what_was_used_is() {
        let before = state(&[("outbound", "7 1", false), ("order-1", "2 1", true)]);
        assert!(before.is_still(&before));
        assert!(before.is_still(&state(&[("outbound", "7 1", false)])), "it said nothing");
        for after in [
            vec![("outbound", "8 2", false), ("order-1", "2 1", true)],
            vec![("order-1", "2 1", true)],
            vec![("outbound", "7 1", false), ("order-1", "4 2", true)],
            vec![("outbound", "7 1", false), ("order-2", "2 2", true)],
        ] {
            assert!(!before.is_still(&state(&after)), "{after:?}");
        }
    }
}
