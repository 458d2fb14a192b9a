//! What people and collectors do to sources and dead tasks: define, pause, block, revive.

use std::time::Duration;

use super::{Act, Actor, OpsError, Result, note, noting, quota, reason};
use soloist_domain::detail::Detail;
use soloist_domain::dispatch::Rules;
use soloist_domain::fields::Given;
use soloist_domain::name::SourceName;
use soloist_store::dispatch::{
    BATCH, Dispatch as _, Lost, NewTask, RemovedSource, SourceView, Sources as _, TaskId, TaskView,
};
use soloist_store::{Store, StoreError};

/// Most tasks that [`revive_all`] revives in one step.
pub const REVIVED_AT_ONCE: usize = 500;

/// What to do about a source that does not exist.
#[must_use]
pub fn undefined(source: &str) -> Detail {
    Detail::new(format!(
        "source {source} does not exist: define it first with PUT /api/v1/sources/{source}, or soloist source set {source}"
    ))
    .told("refused-no-source", &[("source", &source)])
}

/// What to do about a task that does not exist.
#[must_use]
pub fn no_task(id: &TaskId) -> Detail {
    let shown: String = id.0.chars().take(64).collect();
    Detail::new(format!(
        "there is no task {shown:?}: POST /api/v1/tasks answers with ids, and a task that was done long ago is forgotten"
    ))
    .told("refused-no-task", &[])
}

fn of_source(source: &SourceName) -> impl Fn(StoreError) -> OpsError {
    move |error| match error {
        StoreError::NotFound(_) => OpsError::NotFound(undefined(source.as_str())),
        error => error.into(),
    }
}

/// Makes a source, or changes all its rules. The audit says why, or else which they are now and were.
///
/// # Errors
/// [`OpsError::Malformed`], [`OpsError::Field`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn put(
    store: &Store,
    actor: &Actor,
    source: &SourceName,
    rules: &Rules,
    given: Option<&str>,
) -> Result<SourceView> {
    actor.check_operator()?;
    actor.bound.check_source(source)?;
    let reason = reason(given)?;
    rules.check().map_err(|wrong| OpsError::malformed(wrong.to_string()))?;
    let before = quota::source(store, source).await?;
    let before = before.map(|before| before.rules);
    let was_paused = before.as_ref().is_some_and(|before| before.paused);
    let act = match (was_paused, rules.paused) {
        (false, true) => Act::SourcePause,
        (true, false) => Act::SourceResume,
        _ => Act::SourcePut,
    };
    let was = before.as_ref().map(Given::of);
    let noted = reason.unwrap_or_else(|| crate::changed(Given::of(rules), was));
    let store = noting(store, &actor.signature, act, source.as_str(), Some(&noted));
    Ok(store.put_source(source, rules).await?)
}

/// Serves no collector from a source, or serves again. The audit says why, if that was given.
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Field`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn pause(
    store: &Store,
    actor: &Actor,
    source: &SourceName,
    on: bool,
    given: Option<&str>,
) -> Result<()> {
    actor.check_operator()?;
    actor.bound.check_source(source)?;
    let reason = reason(given)?;
    let act = if on { Act::SourcePause } else { Act::SourceResume };
    let store = noting(store, &actor.signature, act, source.as_str(), reason.as_deref());
    store.pause_source(source, on).await.map_err(of_source(source))?;
    Ok(())
}

/// Serves no collector from a source for so long; zero lifts a block. Collectors may do it, too: they see the answers of
/// what they collect from.
///
/// # Errors
/// As [`pause`].
pub async fn block(
    store: &Store,
    actor: &Actor,
    source: &SourceName,
    lasting: Duration,
    given: Option<&str>,
) -> Result<SourceView> {
    actor.check_collector()?;
    actor.bound.check_source(source)?;
    let reason = reason(given)?;
    if lasting > quota::LONGEST_BLOCK {
        let what = "at most a day: pause the source for longer, or block it again".to_owned();
        return Err(OpsError::Malformed(
            Detail::new(format!("a block lasts {what}")).told("refused-block-long", &[]),
        ));
    }
    let (act, said) = if lasting.is_zero() {
        (Act::SourceUnblock, reason)
    } else {
        let said = format!("for {} ms", lasting.as_millis());
        (Act::SourceBlock, Some(reason.map_or(said.clone(), |why| format!("{said}: {why}"))))
    };
    let store = noting(store, &actor.signature, act, source.as_str(), said.as_deref());
    store.block_source(source, lasting).await.map_err(of_source(source))
}

/// Puts tasks: all or none; of each, whether it was new.
///
/// # Errors
/// As [`pause`]; [`OpsError::Conflict`] when a source is full.
pub async fn put_tasks(store: &Store, actor: &Actor, tasks: &[NewTask]) -> Result<Vec<bool>> {
    // This is checked first, so that an account that may put nothing at all learns that.
    actor.check_put()?;
    tasks.iter().try_for_each(|task| actor.bound.check_source(&task.source))?;
    quota::tasks(store, tasks).await?;
    Ok(store.put_tasks(tasks).await?)
}

/// Makes a dead task ready again.
///
/// # Errors
/// As [`pause`].
pub async fn revive(store: &Store, actor: &Actor, id: &TaskId) -> Result<TaskView> {
    actor.check_operator()?;
    let missing = || OpsError::NotFound(no_task(id));
    let task = store.task(id).await?.ok_or_else(missing)?;
    actor.bound.check_source(&task.source)?;
    let source = Some(task.source.as_str());
    let store = noting(store, &actor.signature, Act::TaskRevive, &task.id.0, source);
    store.revive(id).await.map_err(|error| match error {
        StoreError::NotFound(_) => missing(),
        error => error.into(),
    })
}

/// Makes the newest dead tasks of a source ready again, at most [`REVIVED_AT_ONCE`]; says how many, and whether there
/// may be more.
///
/// # Errors
/// As [`pause`].
pub async fn revive_all(
    store: &Store,
    actor: &Actor,
    source: &SourceName,
) -> Result<(usize, bool)> {
    actor.check_operator()?;
    actor.bound.check_source(source)?;
    let (mut tasks, mut more) = (Vec::new(), true);
    while more && tasks.len() < REVIVED_AT_ONCE {
        let some = (BATCH as usize).min(REVIVED_AT_ONCE - tasks.len());
        let dead = store.dead(Some(source), tasks.len(), some).await.map_err(of_source(source))?;
        more = dead.len() == some;
        tasks.extend(dead.into_iter().map(|task| task.id));
    }
    // Many steps: the entry comes first, so that none of them is done without it.
    let said = format!("{} tasks", tasks.len());
    note(store, &actor.signature, Act::SourceRevive, source.as_str(), Some(&said)).await?;
    for id in &tasks {
        store.revive(id).await?;
    }
    Ok((tasks.len(), more))
}

/// Removes a source with its tasks; says what went with it. Without `force` only one that has no task that is not done: the
/// refusal says what would be lost.
///
/// # Errors
/// As [`pause`]; [`OpsError::Conflict`].
pub async fn remove(
    store: &Store,
    actor: &Actor,
    source: &SourceName,
    force: bool,
) -> Result<Lost> {
    actor.check_operator()?;
    actor.bound.check_source(source)?;
    if force {
        // Many steps: the entry comes first, so that none of them is done without it.
        let there = store.sources(Some(source)).await.map_err(of_source(source))?;
        let tasks = there.iter().map(quota::kept).sum::<u64>();
        let in_flight = there.iter().map(|view| view.in_flight).sum::<u64>();
        let said = format!("{tasks} tasks, {in_flight} in flight");
        note(store, &actor.signature, Act::SourceRemove, source.as_str(), Some(&said)).await?;
    }
    let lost = match store.remove_source(source, force).await.map_err(of_source(source))? {
        RemovedSource::Done(lost) => lost,
        RemovedSource::Kept(Lost { tasks, in_flight }) => {
            return Err(OpsError::Conflict(
                Detail::new(format!(
                    "{tasks} tasks of {source}, {in_flight} of them in flight, would be lost: repeat it with ?force=true, or soloist source remove {source} --yes"
                ))
                .told(
                    "refused-source-loses",
                    &[("n", &tasks), ("source", source), ("flight", &in_flight)],
                ),
            ));
        }
    };
    if !force {
        note(store, &actor.signature, Act::SourceRemove, source.as_str(), None).await?;
    }
    Ok(lost)
}

/// Removes a task with its history. Without `force` not one that is in a collector's hands.
///
/// # Errors
/// As [`pause`]; [`OpsError::Conflict`].
pub async fn remove_task(
    store: &Store,
    actor: &Actor,
    id: &TaskId,
    force: bool,
) -> Result<TaskView> {
    actor.check_operator()?;
    let missing = || OpsError::NotFound(no_task(id));
    let view = store.task(id).await?.ok_or_else(missing)?;
    actor.bound.check_source(&view.source)?;
    let source = Some(view.source.as_str());
    let noted = noting(store, &actor.signature, Act::TaskRemove, &id.0, source);
    match noted.remove_task(id, force).await {
        Ok(true) => {}
        Ok(false) => {
            let who = view.held.as_ref().map_or("a collector", |(who, ..)| who.as_str());
            return Err(OpsError::Conflict(
                Detail::new(format!(
                    "{who} is working on this task, and its work would be lost: repeat it with ?force=true, or soloist task remove {} --yes",
                    id.0
                ))
                .told("refused-task-held", &[("collector", &who)]),
            ));
        }
        Err(StoreError::NotFound(_)) => return Err(missing()),
        Err(error) => return Err(error.into()),
    }
    Ok(view)
}
