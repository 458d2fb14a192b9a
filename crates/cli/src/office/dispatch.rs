//! Sources, tasks and rotations.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::Failure;
use super::super::output::instant;
use super::Office;
use soloist_domain::dispatch::Rules as SourceLaws;
use soloist_domain::fields::Given;
use soloist_domain::name::{RotationName, SourceName};
use soloist_domain::rotation::{Rules as RotationLaws, Written};
use soloist_domain::time::StoreTime;
use soloist_ops::{rotations, sources};
use soloist_remote::{Call, address, part};
use soloist_store::StoreError;
use soloist_store::dispatch::{Dispatch as _, NewTask, Sources as _, TaskFilter, TaskId};
use soloist_store::rotation::Rotations as _;
use soloist_view::json::{Rotation, RotationList, Source, SourceList, not_before};
use soloist_view::lists::{PutTask, PutTasks};
use soloist_view::millis;
use soloist_view::task::{Task, TaskList};

/// How many past turns of one rotation are shown.
const TURNS_SHOWN: usize = 50;
/// How many of each in the list of all.
const TURNS_LISTED: usize = 10;
/// The most tasks of one page.
const PAGE: usize = 100;

#[derive(Deserialize)]
struct Removed {
    tasks: u64,
}

fn at_source(name: &SourceName, what: &str) -> String {
    format!("/api/v1/sources/{}{what}", part(name.as_str()))
}

fn at_rotation(name: &RotationName) -> String {
    format!("/api/v1/rotations/{}", part(name.as_str()))
}

fn at_task(id: &TaskId) -> String {
    format!("/api/v1/tasks/{}", part(&id.0))
}

/// A source that must exist.
fn no_source(error: StoreError, name: &SourceName) -> Failure {
    match error {
        StoreError::NotFound(_) => Failure::NotFound(sources::undefined(name.as_str()).to_string()),
        other => other.into(),
    }
}

/// A rotation that must exist.
fn no_rotation(error: StoreError, name: &RotationName) -> Failure {
    match error {
        StoreError::NotFound(_) => Failure::NotFound(format!(
            "rotation {name} does not exist: define it first with soloist rotation set {name}, or PUT /api/v1/rotations/{name}"
        )),
        other => other.into(),
    }
}

impl Office {
    /// All sources.
    pub(crate) async fn sources(&self) -> Result<SourceList, Failure> {
        match self {
            Self::Store(context) => Ok(context.store.sources(None).await?.into()),
            Self::Server(server) => server.get("/api/v1/sources").await,
        }
    }

    /// One source.
    pub(crate) async fn source(&self, name: &SourceName) -> Result<Source, Failure> {
        match self {
            Self::Store(context) => {
                let found = context.store.sources(Some(name)).await;
                let found = found.map_err(|error| no_source(error, name))?;
                let missing = || no_source(StoreError::NotFound(String::new()), name);
                Ok(found.into_iter().next().ok_or_else(missing)?.into())
            }
            Self::Server(server) => server.get(at_source(name, "")).await,
        }
    }

    /// Makes a source, or gives it other rules.
    pub(crate) async fn put_source(
        &self,
        name: &SourceName,
        rules: &SourceLaws,
        user: Option<&str>,
    ) -> Result<Source, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(sources::put(&context.store, &actor, name, rules, None).await?.into())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::put(at_source(name, "")).with(&Given::of(rules));
                Ok(server.client.ask(call).await?)
            }
        }
    }

    /// Serves no collector from a source for a while.
    pub(crate) async fn block(
        &self,
        name: &SourceName,
        lasting: std::time::Duration,
        user: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                sources::block(&context.store, &actor, name, lasting, None).await?;
                Ok(())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::post(at_source(name, "/block")).repeatable();
                Ok(server.client.tell(call.with(&json!({"for_ms": millis(lasting)}))).await?)
            }
        }
    }

    /// Serves no collector from a source until it is resumed, or serves again.
    pub(crate) async fn pause(
        &self,
        name: &SourceName,
        on: bool,
        user: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(sources::pause(&context.store, &actor, name, on, None).await?)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let path = at_source(name, "/pause");
                let call = if on { Call::put(path) } else { Call::delete(path).repeatable() };
                Ok(server.client.tell(call).await?)
            }
        }
    }

    /// Removes a source with all its tasks; how many of them were not done.
    pub(crate) async fn remove_source(
        &self,
        name: &SourceName,
        user: Option<&str>,
    ) -> Result<u64, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(sources::remove(&context.store, &actor, name, true).await?.tasks)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::delete(at_source(name, "?force=true"));
                let Removed { tasks } = server.client.ask(call).await?;
                Ok(tasks)
            }
        }
    }

    /// May put tasks as that user.
    pub(crate) async fn check_put(&self, user: Option<&str>) -> Result<(), Failure> {
        match self {
            Self::Store(context) => Ok(context.operator(user).await?.check_operator()?),
            // A collector's token cannot ask whose it is; the node refuses what is not allowed.
            Self::Server(server) if user.is_some() => server.is_own(user).await,
            Self::Server(_) => Ok(()),
        }
    }

    /// Puts tasks of one source.
    pub(crate) async fn put_tasks(
        &self,
        source: &SourceName,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<PutTask>, Failure> {
        match self {
            Self::Store(context) => {
                let created = context.store.put_tasks(&tasks).await;
                let created = created.map_err(|error| no_source(error, source))?;
                let put = tasks.into_iter().zip(created).map(|(task, created)| PutTask {
                    id: TaskId::of(source, &task.key).0,
                    key: task.key,
                    status: if created { "created" } else { "exists" }.to_owned(),
                });
                Ok(put.collect())
            }
            Self::Server(server) => {
                let tasks = tasks.into_iter().map(|task| {
                    let payload: Option<Box<RawValue>> = RawValue::from_string(task.payload).ok();
                    TaskBody {
                        key: task.key,
                        source: task.source.to_string(),
                        payload,
                        priority: task.priority,
                        at: task.at.map(not_before),
                        every_ms: task.every.map(millis),
                    }
                });
                let mut put = Vec::new();
                // A request has at most 1 MiB.
                for some in in_pieces(tasks.collect()) {
                    let call = Call::post("/api/v1/tasks").repeatable();
                    let call = call.with(&json_of(&some)?);
                    let PutTasks { tasks } = server.client.ask(call).await?;
                    put.extend(tasks);
                }
                Ok(put)
            }
        }
    }

    /// Tasks by their last change, newest first.
    pub(crate) async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: usize,
    ) -> Result<Vec<Task>, Failure> {
        match self {
            Self::Store(context) => {
                let views = context.store.tasks(filter, None, limit).await?;
                let tasks = views.into_iter().map(Task::try_from);
                Ok(tasks.collect::<Result<_, StoreError>>()?)
            }
            Self::Server(server) => {
                let (mut all, mut before) = (Vec::new(), None);
                loop {
                    let rest = (limit - all.len()).min(PAGE);
                    let query = [
                        ("source", filter.source.as_ref().map(ToString::to_string)),
                        ("state", filter.state.map(|state| state.as_str().to_owned())),
                        ("before", before),
                        ("limit", Some(rest.to_string())),
                    ];
                    let TaskList { tasks, next } =
                        server.get(address("/api/v1/tasks", &query)).await?;
                    all.extend(tasks);
                    before = next;
                    if before.is_none() || all.len() >= limit {
                        return Ok(all);
                    }
                }
            }
        }
    }

    /// One task.
    pub(crate) async fn task(&self, id: &TaskId) -> Result<Task, Failure> {
        match self {
            Self::Store(context) => {
                let missing = || Failure::NotFound(sources::no_task(id).to_string());
                Ok(context.store.task(id).await?.ok_or_else(missing)?.try_into()?)
            }
            Self::Server(server) => server.get(at_task(id)).await,
        }
    }

    /// Makes a dead task ready again.
    pub(crate) async fn revive(&self, id: &TaskId, user: Option<&str>) -> Result<Task, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(sources::revive(&context.store, &actor, id).await?.try_into()?)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::post(format!("/api/v1/dead/{}/revive", part(&id.0)));
                Ok(server.client.ask(call.repeatable()).await?)
            }
        }
    }

    /// Removes a task with its history, also while a collector has it in hand.
    pub(crate) async fn remove_task(&self, id: &TaskId, user: Option<&str>) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                sources::remove_task(&context.store, &actor, id, true).await?;
                Ok(())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::delete(format!("{}?force=true", at_task(id)));
                Ok(server.client.tell(call).await?)
            }
        }
    }

    /// All rotations.
    pub(crate) async fn rotations(&self) -> Result<RotationList, Failure> {
        match self {
            Self::Store(context) => Ok(context.store.rotations(None, TURNS_LISTED).await?.into()),
            Self::Server(server) => server.get("/api/v1/rotations").await,
        }
    }

    /// One rotation, and the store's clock when it was read.
    pub(crate) async fn rotation(
        &self,
        name: &RotationName,
    ) -> Result<(Rotation, Option<StoreTime>), Failure> {
        match self {
            Self::Store(context) => {
                let views = context.store.rotations(Some(name), TURNS_SHOWN).await;
                let views = views.map_err(|error| no_rotation(error, name))?;
                let missing = || no_rotation(StoreError::NotFound(String::new()), name);
                let view = views.into_iter().next().ok_or_else(missing)?;
                let now = view.now.floor();
                Ok((view.into(), Some(now)))
            }
            Self::Server(server) => {
                let rotation = server.get(at_rotation(name)).await?;
                let RotationList { now, .. } = server.get("/api/v1/rotations").await?;
                Ok((rotation, now.as_deref().and_then(instant)))
            }
        }
    }

    /// Makes a rotation, or gives it other rules.
    pub(crate) async fn put_rotation(
        &self,
        name: &RotationName,
        rules: &RotationLaws,
        user: Option<&str>,
    ) -> Result<Rotation, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                let jobs = context.jobs();
                let put = rotations::put(&context.store, &actor, (name, &jobs), rules, None);
                Ok(put.await?.into())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::put(at_rotation(name)).with(&Written::of(rules));
                Ok(server.client.ask(call).await?)
            }
        }
    }

    /// Removes a rotation, also while a worker has its turn.
    pub(crate) async fn remove_rotation(
        &self,
        name: &RotationName,
        user: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                let jobs = context.jobs();
                rotations::remove(&context.store, &actor, (name, &jobs), true).await?;
                Ok(())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::delete(format!("{}?force=true", at_rotation(name)));
                Ok(server.client.tell(call).await?)
            }
        }
    }
}

/// A task as `POST /api/v1/tasks` takes it.
#[derive(serde::Serialize)]
struct TaskBody {
    key: String,
    source: String,
    /// As it was given: numbers and the order of names are kept.
    payload: Option<Box<RawValue>>,
    priority: u8,
    at: Option<String>,
    every_ms: Option<u64>,
}

/// How many bytes of tasks are put in one request: less than the 1 MiB that a node reads.
const LARGEST_REQUEST: usize = 900 * 1024;

fn in_pieces(tasks: Vec<TaskBody>) -> Vec<Vec<TaskBody>> {
    let (mut pieces, mut size) = (Vec::new(), LARGEST_REQUEST);
    for task in tasks {
        // A sign may be escaped to six bytes in a key, never in a payload, which is JSON already.
        let own = task.key.len() * 6 + task.payload.as_ref().map_or(0, |raw| raw.get().len()) + 256;
        if size + own > LARGEST_REQUEST {
            pieces.push(Vec::new());
            size = 0;
        }
        size += own;
        if let Some(last) = pieces.last_mut() {
            last.push(task);
        }
    }
    pieces
}

/// The body of a request that puts `tasks`.
fn json_of(tasks: &[TaskBody]) -> Result<Box<RawValue>, Failure> {
    #[derive(serde::Serialize)]
    struct Body<'a> {
        tasks: &'a [TaskBody],
    }
    serde_json::value::to_raw_value(&Body { tasks })
        .map_err(|error| Failure::Failed(format!("cannot write JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn tasks_go_in_requests_that_a_node_reads() {
        let task = |bytes: usize| TaskBody {
            key: "k".to_owned(),
            source: "s".to_owned(),
            payload: RawValue::from_string(Value::from("x".repeat(bytes)).to_string()).ok(),
            priority: 0,
            at: None,
            every_ms: None,
        };
        let pieces = in_pieces((0..40).map(|_| task(60_000)).collect());
        assert_eq!(pieces.iter().map(Vec::len).sum::<usize>(), 40);
        for piece in &pieces {
            assert!(json_of(piece).expect("JSON").get().len() < 1 << 20);
        }
        assert_eq!(pieces.len(), 3);
        assert!(in_pieces(Vec::new()).is_empty());
    }
}
