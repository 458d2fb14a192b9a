//! Rotations: their rules set, and what they are doing: who has the turn, who waits and why, the last turns.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::output::{local, print, print_json, table};
use super::removal::sure;
use super::sources::window;
use super::{CommandContext, Failure, duration};
use crate::domain::name::{RotationName, TypeName};
use crate::domain::rotation::{Reason, Rules, Skip, Turn, TypeRules};
use crate::domain::time::Stamp;
use crate::ops::rotations;
use crate::store::StoreError;
use crate::store::rotation::{PastTurn, RotationView, Rotations, TypeView, WaiterView};
use crate::view::json::{Rotation, RotationList, coming, word};

/// How many of the last turns of one rotation are shown.
const TURNS_SHOWN: usize = 50;
/// How many of each in the list of all.
const TURNS_LISTED: usize = 10;
/// How long a turn lasts, unless it is said.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum RotationCommand {
    /// Make a rotation, or give it other rules: those left out go back to their defaults
    #[command(after_help = "\
Example: soloist rotation set supplier-api --type orders --type stock,gap=10s --min-gap 2s
Example: soloist rotation set supplier-api --type orders,quota=100/1h --type stock --skip never

Types take turns in the order in which they are given. Whoever has the turn keeps it; who waits, and the gaps, are
kept, too. Gaps and quotas are between and of starts, over all workers, by the store's clock.")]
    Set(SetArgs),
    /// Remove a rotation with its turn and its past turns; asks before, and says who has the turn
    Remove {
        /// Its name
        name: RotationName,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// List the rotations: who has the turn, who comes next, who waits; with a name also the last turns
    List {
        /// Only this one
        name: Option<RotationName>,
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
}

/// Of `rotation set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its name: a-z, 0-9, '.', '_', '-'
    pub name: RotationName,
    /// A type that takes turns, in their order: its name, and if need be the least time between two of its starts and most
    /// of its starts in any stretch of time, as orders,gap=2s,quota=10/1m
    #[arg(long = "type", value_name = "NAME[,gap=DUR][,quota=N/DUR]", required = true, value_parser = kind)]
    pub types: Vec<TypeRules>,
    /// Least time between the starts of two turns, whatever their types [default: none]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub min_gap: Option<Duration>,
    /// How long a turn lasts that is neither extended nor passed [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub lease: Option<Duration>,
    /// What becomes of a type that nobody waits for when its turn comes: it is skipped when absent, or never
    #[arg(long, value_name = "WHEN", value_parser = ["absent", "never"], default_value = "absent")]
    pub skip: String,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

fn kind(text: &str) -> Result<TypeRules, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let name = TypeName::new(name).map_err(|error| error.to_string())?;
    let mut rules = TypeRules { name, gap: Duration::ZERO, quota: None };
    for part in parts {
        match part.split_once('=') {
            Some(("gap", gap)) => rules.gap = duration(gap)?,
            Some(("quota", quota)) => rules.quota = Some(window(quota)?),
            _ => {
                return Err(format!(
                    "{part:?} is no rule of a type: use gap=2s, quota=10/1m or both, behind its name and commas"
                ));
            }
        }
    }
    Ok(rules)
}

impl SetArgs {
    fn rules(&self) -> Rules {
        Rules {
            types: self.types.clone(),
            min_gap: self.min_gap.unwrap_or_default(),
            lease: self.lease.unwrap_or(LEASE),
            skip: if self.skip == "never" { Skip::Never } else { Skip::Absent },
        }
    }
}

/// `rotation ...`.
pub(super) async fn act(context: &CommandContext, command: RotationCommand) -> Result<(), Failure> {
    match command {
        RotationCommand::Set(args) => set(context, &args).await,
        RotationCommand::Remove { name, yes, user } => {
            remove(context, &name, yes, user.as_deref()).await
        }
        RotationCommand::List { name: Some(name), json } => one(context, &name, json).await,
        RotationCommand::List { name: None, json } => list(context, json).await,
    }
}

async fn set(context: &CommandContext, args: &SetArgs) -> Result<(), Failure> {
    let rules = args.rules();
    let actor = context.operator(args.user.as_deref()).await?;
    let view = rotations::put(&context.store, &actor, &args.name, &rules, None).await?;
    print(&format!("Rotation {}: {}.", args.name, words(&view.rules)))
}

async fn remove(
    context: &CommandContext,
    name: &RotationName,
    yes: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let actor = context.operator(user).await?;
    let found = context.store.rotations(Some(name), 0).await?;
    let turn = found.first().and_then(|view| view.ring.turn.as_ref());
    let holder = turn.map_or("nobody", |turn| turn.worker.as_str());
    let waiting: u64 = found.iter().flat_map(|view| &view.types).map(|kind| kind.waiting).sum();
    sure(yes, &format!("Rotation {name}: {holder} has the turn, {waiting} wait for it."))?;
    rotations::remove(&context.store, &actor, name, true).await?;
    print(&format!("Rotation {name} is removed."))
}

async fn list(context: &CommandContext, as_json: bool) -> Result<(), Failure> {
    let views = context.store.rotations(None, TURNS_LISTED).await?;
    if as_json {
        let rotations = views.into_iter().map(Rotation::from).collect();
        return print_json(&RotationList { rotations });
    }
    if views.is_empty() {
        return print("No rotation. Make one with: soloist rotation set NAME --type A --type B");
    }
    let row = |view: &RotationView| {
        let waiting: u64 = view.types.iter().map(|kind| kind.waiting).sum();
        let ended: u64 =
            view.types.iter().map(|kind| kind.done + kind.empty + kind.failed + kind.lost).sum();
        vec![
            view.name.to_string(),
            view.ring.turn.as_ref().map_or("nobody".to_owned(), |turn| holder(turn, view.now)),
            next(view),
            waiting.to_string(),
            ended.to_string(),
            words(&view.rules),
        ]
    };
    let rows: Vec<_> = views.iter().map(row).collect();
    print(&table(&["ROTATION", "HAS THE TURN", "NEXT", "WAITING", "ENDED", "RULES"], &rows))
}

async fn one(context: &CommandContext, name: &RotationName, as_json: bool) -> Result<(), Failure> {
    let views = context.store.rotations(Some(name), TURNS_SHOWN).await;
    let views = views.map_err(|error| undefined(error, name))?;
    let Some(view) = views.first() else {
        return Err(undefined(StoreError::NotFound(String::new()), name));
    };
    if as_json {
        return print_json(&Rotation::from(view.clone()));
    }
    let mut text = format!("Rotation {}: {}.\n", view.name, words(&view.rules));
    match &view.ring.turn {
        Some(turn) => text.push_str(&format!("{} has the turn.\n", holder(turn, view.now))),
        None => text.push_str("Nobody has the turn.\n"),
    }
    text.push_str(&format!("Next: {}.\n\n", next(view)));
    text.push_str(&types_of(view));
    if !view.waiters.is_empty() {
        let row = |waiter: &WaiterView| {
            let waited = format!("{:.1?}", view.now.since(waiter.since));
            let kind = waiter.kind.to_string();
            vec![kind, waiter.worker.to_string(), waiter.node.to_string(), waited]
        };
        let rows: Vec<_> = view.waiters.iter().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["WAITS FOR", "WORKER", "AT NODE", "FOR"], &rows));
    }
    if !view.past.is_empty() {
        let row = |past: &PastTurn| {
            vec![
                past.token.to_string(),
                past.kind.to_string(),
                past.worker.to_string(),
                local(past.since.floor()),
                format!("{:.1?}", past.ended.since(past.since)),
                past.ending.as_str().to_owned(),
            ]
        };
        let rows: Vec<_> = view.past.iter().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["TURN", "TYPE", "WORKER", "STARTED", "LASTED", "ENDED"], &rows));
    }
    print(&text)
}

/// The types in the order in which their turns come.
fn types_of(view: &RotationView) -> String {
    let row = |rules: &TypeRules| {
        let counts = view.types.iter().find(|one| one.kind == rules.name);
        let (at, reason) = view.ring.earliest(&view.rules, rules, view.now);
        let count = |of: fn(&TypeView) -> u64| counts.map_or(0, of).to_string();
        let now = match (counts.map_or(0, |counts| counts.waiting), reason) {
            (0, _) => "nobody waits".to_owned(),
            (_, _) if view.ring.turn.is_some() => word(Reason::Held).to_owned(),
            (_, Reason::Order) => "ready".to_owned(),
            (_, reason) => format!("{} for {:.1?}", word(reason), at.since(view.now)),
        };
        vec![
            rules.name.to_string(),
            count(|of| of.waiting),
            now,
            count(|of| of.done),
            count(|of| of.empty),
            count(|of| of.failed),
            count(|of| of.lost),
        ]
    };
    let rows: Vec<_> = view.ring.order(&view.rules).map(row).collect();
    table(&["TYPE", "WAITING", "NOW", "DONE", "EMPTY", "FAILED", "LOST"], &rows)
}

/// A rotation that must exist.
fn undefined(error: StoreError, name: &RotationName) -> Failure {
    match error {
        StoreError::NotFound(_) => Failure::NotFound(format!(
            "rotation {name} does not exist: define it first with soloist rotation set {name}, or PUT /api/v1/rotations/{name}"
        )),
        other => other.into(),
    }
}

fn holder(turn: &Turn, now: Stamp) -> String {
    format!("{} as {} for {:.1?}", turn.worker, turn.kind, now.since(turn.since))
}

fn next(view: &RotationView) -> String {
    match coming(view) {
        (Some(kind), _, Some(Reason::Held)) => format!("{kind}, after that turn"),
        (None, _, _) => "nobody waits".to_owned(),
        (Some(kind), _, None) => format!("{kind}, now"),
        (Some(kind), _, Some(Reason::Absent)) => format!("{kind}, but nobody waits for it"),
        (Some(kind), Some(at), Some(reason)) => {
            format!("{kind}, {} for {:.1?}", word(reason), at.since(view.now))
        }
        (Some(kind), None, Some(reason)) => format!("{kind}, {}", word(reason)),
    }
}

/// Rules in a few words.
fn words(rules: &Rules) -> String {
    let kind = |kind: &TypeRules| {
        let mut said = vec![kind.name.to_string()];
        if !kind.gap.is_zero() {
            said.push(format!("gap {}", humantime::format_duration(kind.gap)));
        }
        if let Some(quota) = kind.quota {
            let span = humantime::format_duration(quota.span);
            said.push(format!("quota {} in {span}", quota.count));
        }
        said.join(" ")
    };
    let mut said = vec![rules.types.iter().map(kind).collect::<Vec<_>>().join(" > ")];
    if !rules.min_gap.is_zero() {
        said.push(format!("gap {}", humantime::format_duration(rules.min_gap)));
    }
    said.push(format!("lease {}", humantime::format_duration(rules.lease)));
    if rules.skip == Skip::Never {
        said.push("skips nobody".to_owned());
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::Window;

    #[test]
    fn a_type_is_its_name_and_its_rules_behind_commas() {
        let rules = kind("orders,gap=2s,quota=10/1m").unwrap();
        assert_eq!((rules.name.as_str(), rules.gap), ("orders", Duration::from_secs(2)));
        assert_eq!(rules.quota, Some(Window { count: 10, span: Duration::from_secs(60) }));
        assert_eq!(kind("stock").unwrap().quota, None);
        for wrong in ["", "Orders", "orders,gap", "orders,gap=2", "orders,lease=2s", "a,quota=1m"] {
            assert!(kind(wrong).is_err(), "{wrong}");
        }
    }
}
