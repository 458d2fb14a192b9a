//! What can be typed behind `soloist task`; and putting tasks: one by its key, or one for each line of standard input.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::value::RawValue;

use super::office::{Acting, Office};
use super::output::{print, print_json};
use super::{Failure, duration, task_acts};
use soloist_domain::dispatch::TaskState;
use soloist_domain::name::SourceName;
use soloist_domain::time::{Stamp, StoreTime};
use soloist_remote::Call;
use soloist_store::dispatch::{
    LONGEST_KEY, LONGEST_PAYLOAD, NewTask, TASKS_AT_ONCE, TaskFilter, TaskId,
};
use soloist_view::json::not_before;
use soloist_view::lists::{PutTask, PutTasks};
use soloist_view::millis;
use soloist_view::words::At;

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum TaskCommand {
    /// Put a task, or one for each line of standard input; the same key is the same task and is put once
    #[command(after_help = "\
Example: soloist task put --source pages --key http://127.0.0.1/a --payload '{\"depth\":1}'
Example: soloist task put --source pages <urls.txt

A line is a key, or a key, a tab and the payload as JSON. Putting the same again is harmless: what exists is left as it is,
in whatever state it is. A wrong line ends it; the lines before that one may have been put.")]
    Put(PutArgs),
    /// List tasks, those first that changed last
    List {
        /// Only of this source
        #[arg(long, value_name = "NAME")]
        source: Option<SourceName>,
        /// Only those that are ready, due, leased, done or dead
        #[arg(long, value_name = "STATE")]
        state: Option<TaskState>,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Show one task with its payload
    Show {
        /// As task list shows it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a dead task ready again, its attempts counted from zero
    Revive {
        /// As task list shows it
        id: String,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// Remove a task with its history; asks before
    Remove {
        /// As task list shows it
        id: String,
        /// Do not ask, also when a collector has it in hand
        #[arg(long)]
        yes: bool,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
}

/// Arguments of `task put`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// Its source, which must exist
    #[arg(long, value_name = "NAME")]
    pub source: SourceName,
    /// What makes it unique within its source, for example a URL [default: read lines from standard input]
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// JSON for the collector that works on it [default: null]
    #[arg(long, value_name = "JSON", requires = "key")]
    pub payload: Option<String>,
    /// 0 to 9, 9 is the most urgent
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: u8,
    /// Not before this instant: RFC 3339, as 2026-05-04T01:02:03Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub at: Option<Stamp>,
    /// Again, so long after each time it was done
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub every: Option<Duration>,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The first instant of 2200, as over HTTP.
const LATEST: StoreTime = StoreTime(7_258_118_400_000);

fn instant(text: &str) -> Result<Stamp, String> {
    let at = text.parse::<jiff::Timestamp>();
    let at = at.map_err(|_| "use RFC 3339, for example 2026-05-04T01:02:03Z".to_owned())?;
    let at = Stamp(at.as_microsecond());
    if at < Stamp(0) || at >= Stamp::from(LATEST) {
        return Err("from 1970 to 2199".to_owned());
    }
    Ok(at)
}

/// `task ...`.
pub(super) async fn act(office: &Office, command: TaskCommand) -> Result<(), Failure> {
    match command {
        TaskCommand::Put(args) => put(office, &args).await,
        TaskCommand::List { source, state, limit, json } => {
            task_acts::list(office, &TaskFilter { source, state }, usize::from(limit), json).await
        }
        TaskCommand::Show { id, json } => task_acts::show(office, &TaskId(id), json).await,
        TaskCommand::Revive { id, user } => {
            task_acts::revive(office, &TaskId(id), user.as_deref()).await
        }
        TaskCommand::Remove { id, yes, user } => {
            task_acts::remove(office, &TaskId(id), yes, user.as_deref()).await
        }
    }
}

async fn put(office: &Office, args: &PutArgs) -> Result<(), Failure> {
    let acting = office.acting(args.user.as_deref()).await?;
    let mut put =
        Put { acting, args, batch: Vec::new(), lines: Vec::new(), created: 0, existing: 0 };
    if let Some(key) = &args.key {
        let payload = args.payload.as_deref().unwrap_or("null");
        put.batch.push(task(args, key, payload).map_err(Failure::Usage)?);
        put.send().await?;
        return put.say();
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::Usage(
            "say --key, or pipe lines in: soloist task put --source NAME <FILE".to_owned(),
        ));
    }
    for (nth, line) in stdin.lock().lines().enumerate() {
        let wrong = |problem: String| {
            Failure::Usage(format!("standard input, line {}: {problem}", nth + 1))
        };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            continue;
        }
        let (key, payload) = line.split_once('\t').unwrap_or((line, "null"));
        put.batch.push(task(args, key, payload).map_err(wrong)?);
        if put.batch.len() == TASKS_AT_ONCE {
            put.send().await?;
        }
    }
    put.send().await?;
    put.say()
}

/// A task, checked.
fn task(args: &PutArgs, key: &str, payload: &str) -> Result<NewTask, String> {
    if key.is_empty() || key.len() > LONGEST_KEY || key.contains(char::is_control) {
        return Err(format!("a key has 1 to {LONGEST_KEY} bytes and no control characters"));
    }
    if payload.len() > LONGEST_PAYLOAD {
        return Err(format!("a payload has at most {LONGEST_PAYLOAD} bytes"));
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(payload) {
        return Err(format!("the payload is not JSON: {error}"));
    }
    Ok(NewTask {
        key: key.to_owned(),
        source: args.source.clone(),
        payload: payload.to_owned(),
        priority: args.priority,
        at: args.at,
        every: args.every,
    })
}

/// Tasks on their way, some at a time.
struct Put<'a> {
    acting: Acting<'a>,
    args: &'a PutArgs,
    batch: Vec<NewTask>,
    lines: Vec<PutTask>,
    created: u64,
    existing: u64,
}

impl Put<'_> {
    async fn send(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch).into_iter().map(TaskBody::from);
        for tasks in in_pieces(batch.collect()) {
            let call = Call::post("/api/v1/tasks").repeatable().with(&Tasks { tasks });
            let PutTasks { tasks } = self.acting.ask(call).await?;
            for put in tasks {
                let created = put.status == "created";
                *(if created { &mut self.created } else { &mut self.existing }) += 1;
                if self.args.json {
                    self.lines.push(put);
                }
            }
        }
        Ok(())
    }

    fn say(self) -> Result<(), Failure> {
        if self.args.json {
            return print_json(&PutTasks { tasks: self.lines });
        }
        print(&format!("{} created, {} existed already.", self.created, self.existing))
    }
}

/// A task as `POST /api/v1/tasks` takes it.
#[derive(Serialize)]
struct TaskBody {
    key: String,
    source: String,
    /// As it was given: numbers and the order of names are kept.
    payload: Option<Box<RawValue>>,
    priority: u8,
    at: Option<At>,
    every_ms: Option<u64>,
}

/// How many bytes of tasks are put in one request: less than the 1 MiB that a node reads.
const LARGEST_REQUEST: usize = 900 * 1024;

impl From<NewTask> for TaskBody {
    fn from(task: NewTask) -> Self {
        Self {
            key: task.key,
            source: task.source.to_string(),
            payload: RawValue::from_string(task.payload).ok(),
            priority: task.priority,
            at: task.at.map(not_before),
            every_ms: task.every.map(millis),
        }
    }
}

/// The body of a request that puts them.
#[derive(Serialize)]
struct Tasks {
    tasks: Vec<TaskBody>,
}

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
            assert!(serde_json::to_string(piece).expect("JSON").len() < (1 << 20) - 16);
        }
        assert_eq!(pieces.len(), 3);
        assert!(in_pieces(Vec::new()).is_empty());
    }
}
