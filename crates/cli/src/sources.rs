//! Sources of tasks: their rules set, their service blocked, their state listed.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::office::Office;
use super::output::{print, print_json, table};
use super::removal::sure;
use super::rules::{RuleArgs, words};
use super::{Failure, ListArgs, duration};
use soloist_desk::dispatch::word;
use soloist_domain::dispatch::{Reason, Rules};
use soloist_domain::fields::Given;
use soloist_domain::name::SourceName;
use soloist_domain::time::{StoreTime, format_duration, millis};
use soloist_ops::quota::LONGEST_BLOCK;
use soloist_remote::{Call, part};
use soloist_view::json::{Source, SourceList};
use soloist_view::words::At;

#[derive(Deserialize)]
struct Removed {
    tasks: u64,
}

fn at(name: &SourceName, what: &str) -> String {
    format!("/api/v1/sources/{}{what}", part(name.as_str()))
}

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum SourceCommand {
    /// Make a source, or give it other rules: those left out go back to their defaults
    #[command(after_help = "\
Example: soloist source set shop --gap 250ms --cap 2 --lease 30s
Example: soloist source set api --window 100/1m --max-attempts 3 --backoff 5s

Its tasks, its last start and its blocks are kept. A gap, a window and a cap hold over all collectors, by the store's
clock.")]
    Set(SetArgs),
    /// Serve no collector from a source for a while (a site that answered 429)
    #[command(after_help = "Example: soloist source block shop --for 60s    (0s lifts it)")]
    Block {
        /// Its name
        name: SourceName,
        /// From now
        #[arg(long = "for", value_name = "DUR", value_parser = duration)]
        lasting: Duration,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// Serve no collector from a source until it is resumed
    Pause {
        /// Its name
        name: SourceName,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// Serve collectors from a source again
    Resume {
        /// Its name
        name: SourceName,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// Remove a source with all its tasks; asks before, and says what would be lost
    Remove {
        /// Its name
        name: SourceName,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// List the sources, and why one is not served now
    List(ListArgs),
}

/// Arguments of `source set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its name: a-z, 0-9, '.', '_', '-'
    pub name: SourceName,
    /// Its rules
    #[command(flatten)]
    pub rules: RuleArgs<Rules>,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

/// `source ...`.
pub(super) async fn act(office: &Office, command: SourceCommand) -> Result<(), Failure> {
    match command {
        SourceCommand::Set(args) => set(office, &args).await,
        SourceCommand::Block { name, lasting, user } => {
            block(office, &name, lasting, user.as_deref()).await
        }
        SourceCommand::Pause { name, user } => pause(office, &name, true, user.as_deref()).await,
        SourceCommand::Resume { name, user } => pause(office, &name, false, user.as_deref()).await,
        SourceCommand::Remove { name, yes, user } => {
            remove(office, &name, yes, user.as_deref()).await
        }
        SourceCommand::List(args) => list(office, &args).await,
    }
}

async fn set(office: &Office, args: &SetArgs) -> Result<(), Failure> {
    let rules = args.rules.onto(Rules::default())?;
    let call = Call::put(at(&args.name, "")).with(&Given::of(&rules));
    let source: Source = office.acting(args.user.as_deref()).await?.ask(call).await?;
    print(&format!("Source {}: {}.", args.name, words(&source.rules).join(", ")))
}

async fn block(
    office: &Office,
    name: &SourceName,
    lasting: Duration,
    user: Option<&str>,
) -> Result<(), Failure> {
    if lasting > LONGEST_BLOCK {
        return Err(Failure::Usage(
            "--for: at most a day; soloist source pause is for longer".to_owned(),
        ));
    }
    let call = Call::post(at(name, "/block")).with(&json!({"for_ms": millis(lasting)}));
    office.acting(user).await?.tell(call.repeatable()).await?;
    let lasting = format_duration(lasting);
    print(&format!("Source {name} serves nobody for {lasting}."))
}

async fn pause(
    office: &Office,
    name: &SourceName,
    on: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let path = at(name, "/pause");
    let call = if on { Call::put(path) } else { Call::delete(path).repeatable() };
    office.acting(user).await?.tell(call).await?;
    let now = if on { "serves nobody until it is resumed" } else { "is served again" };
    print(&format!("Source {name} {now}."))
}

async fn remove(
    office: &Office,
    name: &SourceName,
    yes: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let Source { ready, due, in_flight, dead, .. } = office.get(at(name, "")).await?;
    let tasks = ready + due + in_flight + dead;
    let question =
        format!("Source {name}: {tasks} tasks, {in_flight} of them in flight, would be lost.");
    sure(yes, &question)?;
    let call = Call::delete(at(name, "?force=true"));
    let Removed { tasks } = office.acting(user).await?.ask(call).await?;
    print(&format!("Source {name} is removed, with {tasks} tasks."))
}

async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let list: SourceList = office.get("/api/v1/sources").await?;
    if args.json {
        return print_json(&list);
    }
    if list.sources.is_empty() {
        return print("No source. Make one with: soloist source set NAME");
    }
    let at = list.now.map(|At(now)| now).unwrap_or_default();
    let row = |source: &Source| {
        let Source { ready, due, in_flight, dead, done, .. } = source;
        let mut row = vec![source.name.clone()];
        row.extend([ready, due, in_flight, dead, done].map(ToString::to_string));
        row.push(now(source, at));
        row.push(words(&source.rules).join(", "));
        row
    };
    let rows: Vec<_> = list.sources.iter().map(row).collect();
    let headings = ["SOURCE", "READY", "DUE", "IN FLIGHT", "DEAD", "DONE", "NOW", "RULES"];
    print(&table(&headings, &rows))
}

/// Whether it is served `at` that instant of the store's clock, or why not and for how long.
fn now(source: &Source, at: StoreTime) -> String {
    let left = |At(until): At| {
        let left = until.since(at);
        let round = if left < Duration::from_secs(10) { 100 } else { 1_000 };
        let ms = millis(left).div_ceil(round) * round;
        format_duration(Duration::from_millis(ms))
    };
    // A block holds also while there is nothing to serve.
    let paused = source.rules.fill(Rules::default()).paused;
    if let Some(until) = source.blocked_until.filter(|_| !paused) {
        return format!("blocked for {}", left(until));
    }
    let Some(reason) = source.reason else {
        return if source.ready == 0 { "empty" } else { "served" }.to_owned();
    };
    match (reason, source.next_at) {
        (Reason::Empty, Some(due)) if source.due > 0 => format!("next due in {}", left(due)),
        (Reason::Empty, _) | (_, None) => word(reason).to_owned(),
        (reason, Some(until)) => format!("{} for {}", word(reason), left(until)),
    }
}
