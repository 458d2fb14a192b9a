//! Sources and tasks out of Redis and into it (`store/portable.rs`), and a store that is emptied.
//!
//! Plain commands, and the generic script for what belongs to no job: no script of its own, as no other process uses the store meanwhile.

use std::collections::{BTreeSet, HashMap};

use ::redis::{Cmd, FromRedisValue};
use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::dispatch::parse::{Answer, past_text, record_text, stored_task};
use super::link::Repeat;
use super::{RedisStore, scripts};
use soloist_domain::dispatch::{Seat, Source, TaskState};
use soloist_domain::lease::Token;
use soloist_domain::name::JobName;
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::{CollectorView, SourceView, Sources as _, TaskId};
use soloist_store::portable::{AT_ONCE, Bookmark, Portable, StoredSource, StoredTask};

/// Values of one command.
const VALUES: usize = 1_000;

#[async_trait]
impl Portable for RedisStore {
    async fn every_job(&self) -> Result<Vec<JobName>> {
        let servers = self.shared.rest.links().await?;
        let (pattern, of) = (self.keys().record_pattern(), |key: &[u8]| self.keys().recorded(key));
        let each = servers.iter().map(|server| self.jobs_by_keys(server, &pattern, of));
        // SCAN may say a key twice.
        let names: BTreeSet<JobName> = try_join_all(each).await?.into_iter().flatten().collect();
        Ok(names.into_iter().collect())
    }

    async fn every_source(&self) -> Result<Vec<StoredSource>> {
        let mut all = Vec::new();
        for view in self.sources(None).await? {
            all.push(self.stored_source(view).await?);
        }
        all.sort_by_key(|one| one.source.seat.turn.unwrap_or(u64::MAX));
        Ok(all)
    }

    async fn next_tasks(&self, from: Bookmark) -> Result<(Vec<StoredTask>, Option<Bookmark>)> {
        let names: Vec<String> = self.ask_of("ZRANGE", "names", &["0", "-1"]).await?;
        let sets = |name: &String| ["q", "d", "x"].map(|set| format!("{set}:{name}"));
        let queues: Vec<String> = names.iter().flat_map(sets).collect();
        let Bookmark { mut queue, mut behind } = from;
        let last =
            |behind: i64| (behind + i64::try_from(AT_ONCE).unwrap_or(i64::MAX) - 1).to_string();
        while queue <= queues.len() {
            let range = [behind.to_string(), last(behind)];
            let found: Vec<(String, Option<u64>)> = match queues.get(queue) {
                Some(set) => {
                    let range = [range[0].as_str(), range[1].as_str(), "WITHSCORES"];
                    let found: Vec<(String, u64)> = self.ask_of("ZRANGE", set, &range).await?;
                    let ready = set.starts_with("q:");
                    found.into_iter().map(|(id, at)| (id, ready.then_some(at))).collect()
                }
                None => {
                    let range = [range[0].as_str(), range[1].as_str()];
                    let found: Vec<String> = self.ask_of("LRANGE", "done", &range).await?;
                    found.into_iter().map(|id| (id, None)).collect()
                }
            };
            if found.is_empty() {
                (queue, behind) = (queue + 1, 0);
                continue;
            }
            behind += i64::try_from(found.len()).unwrap_or(i64::MAX);
            let tasks = found.into_iter().map(|(id, place)| self.stored_task(TaskId(id), place));
            let tasks = try_join_all(tasks).await?.into_iter().flatten().collect();
            return Ok((tasks, Some(Bookmark { queue, behind })));
        }
        Ok((Vec::new(), None))
    }

    async fn fill_sources(&self, sources: &[StoredSource]) -> Result<()> {
        let mut commands = Vec::new();
        for StoredSource { source, token, starts } in sources {
            let last = source.last_start.map_or(0, |at| at.0);
            let recrawled = source.finished.saturating_sub(source.done);
            let numbers = [
                ("token", token.0),
                ("started", source.started),
                ("done", source.done),
                ("recrawled", recrawled),
                ("retried", source.retried),
                ("expired", source.expired),
                ("head", source.nth),
                ("tail", source.nth),
            ];
            let key = self.keys().dispatch(&format!("s:{}", source.name));
            let mut fields = vec!["HSET".to_owned(), key];
            fields.extend(numbers.iter().flat_map(|(name, n)| [(*name).to_owned(), n.to_string()]));
            fields.extend(["blocked".to_owned(), source.blocked_until.0.to_string()]);
            if last > 0 {
                fields.extend(["last".to_owned(), last.to_string()]);
            }
            commands.push(fields);
            let list = self.keys().dispatch(&format!("w:{}", source.name));
            // The newest first.
            let starts: Vec<String> = starts.iter().rev().map(|at| at.0.to_string()).collect();
            commands.extend(pushes(&list, &starts));
        }
        self.carry_out(commands).await
    }

    async fn fill_tasks(&self, tasks: &[StoredTask]) -> Result<()> {
        let key = |noun: String| self.keys().dispatch(&noun);
        let add = |set: String, number: String, id: &str| {
            vec!["ZADD".to_owned(), set, number, id.to_owned()]
        };
        let mut commands = Vec::new();
        for one in tasks {
            let (task, id, source) = (&one.task, &one.task.id.0, &one.task.source);
            let past: Vec<String> = one.history.iter().map(past_text).collect::<Result<_>>()?;
            commands.push(vec!["SET".to_owned(), key(format!("t:{id}")), record_text(one)]);
            commands.extend(pushes(&key(format!("h:{id}")), &past));
            match task.state {
                TaskState::Ready => {
                    let place = task.place.map_or(0, |place| place.0).to_string();
                    commands.push(add(key(format!("q:{source}")), place, id));
                }
                TaskState::Due => {
                    let at = task.at.map_or(0, |at| at.0).to_string();
                    commands.push(add(key(format!("d:{source}")), at.clone(), id));
                    let timers = key("timers".to_owned());
                    let timer = format!("d:{source}");
                    commands.push(vec!["ZADD".to_owned(), timers, "LT".to_owned(), at, timer]);
                }
                TaskState::Dead => {
                    let at = task.changed.0.to_string();
                    commands.push(add(key(format!("x:{source}")), at, id));
                }
                // The list of what is done is written last.
                TaskState::Done | TaskState::Leased => {}
            }
        }
        self.carry_out(commands).await
    }

    async fn fill_done(&self, done: &[TaskId]) -> Result<()> {
        let ids: Vec<String> = done.iter().map(|id| id.0.clone()).collect();
        self.carry_out(pushes(&self.keys().dispatch("done"), &ids)).await
    }

    async fn fill_collectors(&self, collectors: &[CollectorView]) -> Result<()> {
        let key = self.keys().dispatch("collectors");
        let set = |one: &CollectorView| {
            vec!["HSET".to_owned(), key.clone(), one.name.to_string(), one.seen.0.to_string()]
        };
        self.carry_out(collectors.iter().map(set).collect()).await
    }

    async fn empty(&self) -> Result<()> {
        let pattern = self.keys().every_pattern();
        for server in self.shared.rest.links().await? {
            let of = |key: &[u8]| self.keys().copied(key);
            let keys = self.jobs_by_keys(&server, &pattern, of).await?;
            for some in keys.chunks(VALUES) {
                let gone = some.iter().map(|key| {
                    let mut del = ::redis::cmd("DEL");
                    del.arg(key);
                    let server = &server;
                    async move { server.command::<()>(&del, Repeat::Harmless).await }
                });
                try_join_all(gone).await?;
            }
        }
        Ok(())
    }
}

impl RedisStore {
    /// What a command says of a key of dispatch.
    async fn ask_of<T: FromRedisValue>(&self, word: &str, noun: &str, with: &[&str]) -> Result<T> {
        let key = self.keys().dispatch(noun);
        let mut command: Cmd = ::redis::cmd(word);
        command.arg(&key).arg(with);
        self.shared.rest.command(&key, &command, Repeat::Harmless).await
    }

    async fn stored_source(&self, view: SourceView) -> Result<StoredSource> {
        let name = &view.name;
        let noun = format!("s:{name}");
        let fields: HashMap<String, String> = self.ask_of("HGETALL", &noun, &[]).await?;
        let turn: Option<u64> = self.ask_of("ZSCORE", "ring", &[name.as_str()]).await?;
        let mut starts: Vec<i64> =
            self.ask_of("LRANGE", &format!("w:{name}"), &["0", "-1"]).await?;
        starts.reverse();
        let number = |field: &str| {
            fields.get(field).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
        };
        let last = i64::try_from(number("last")).unwrap_or_default();
        // The starts of a source without limits are not noted: the newest may have been just now.
        let last_start = match last {
            0 => (view.started > 0).then_some(view.now),
            last => Some(Stamp(last)),
        };
        let source = Source {
            name: name.clone(),
            rules: view.rules,
            blocked_until: view.blocked_until,
            last_start,
            nth: number("head").max(number("tail")),
            ready: view.ready,
            due: view.due,
            in_flight: view.in_flight,
            dead: view.dead,
            done: view.done,
            started: view.started,
            finished: view.finished,
            retried: view.retried,
            expired: view.expired,
            promised: 0,
            promised_until: Stamp(0),
            seat: Seat { turn, ..Seat::default() },
        };
        let starts = starts.into_iter().map(Stamp).collect();
        Ok(StoredSource { source, token: Token(number("token")), starts })
    }

    async fn stored_task(&self, id: TaskId, place: Option<u64>) -> Result<Option<StoredTask>> {
        let mut call = self.dispatch_call(&scripts::READ_TASK);
        call.arg(&id.0);
        let answer = self.shared.rest.script(&call, Repeat::Harmless).await?;
        stored_task(&id, Answer::of("read_task", answer)?, place)
    }
}

/// What adds these to a list, in their order.
fn pushes(list: &str, values: &[String]) -> Vec<Vec<String>> {
    let push = |some: &[String]| {
        let head = ["RPUSH".to_owned(), list.to_owned()];
        head.into_iter().chain(some.iter().cloned()).collect()
    };
    values.chunks(VALUES).map(push).collect()
}
