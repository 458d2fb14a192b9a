//! Rotations: their rules set, and what they are doing: who has the turn, who waits and why, the last turns.

use clap::{Args, Subcommand};

use super::Failure;
use super::office::Office;
use super::output::{local, print, print_json, table, visible};
use super::removal::sure;
use super::rules::{self, RuleArgs, behind};
use soloist_domain::name::{RotationName, TypeName};
use soloist_domain::rotation::{Reason, Rules, TypeRules, Written};
use soloist_domain::time::StoreTime;
use soloist_remote::{Call, part};
use soloist_view::json::{
    EndedTurn, Holder, NextTurn, Rotation, RotationList, RotationType, WaitingWorker, word,
};
use soloist_view::words::At;

fn at(name: &RotationName) -> String {
    format!("/api/v1/rotations/{}", part(name.as_str()))
}

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

/// Arguments of `rotation set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its name: a-z, 0-9, '.', '_', '-'
    pub name: RotationName,
    /// A type that takes turns, in their order: its name, and if need be the least time between two of its starts and most
    /// of its starts in any stretch of time, as orders,gap=2s,quota=10/1m
    #[arg(long = "type", value_name = "NAME[,gap=DUR][,quota=N/DUR]", required = true, value_parser = kind)]
    pub types: Vec<TypeRules>,
    /// Its rules
    #[command(flatten)]
    pub rules: RuleArgs<Rules>,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

fn kind(text: &str) -> Result<TypeRules, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let name = TypeName::new(name).map_err(|error| error.to_string())?;
    behind(parts)?.onto(TypeRules::of(name)).map_err(|wrong| wrong.to_string())
}

/// `rotation ...`.
pub(super) async fn act(office: &Office, command: RotationCommand) -> Result<(), Failure> {
    match command {
        RotationCommand::Set(args) => set(office, &args).await,
        RotationCommand::Remove { name, yes, user } => {
            remove(office, &name, yes, user.as_deref()).await
        }
        RotationCommand::List { name: Some(name), json } => one(office, &name, json).await,
        RotationCommand::List { name: None, json } => list(office, json).await,
    }
}

async fn set(office: &Office, args: &SetArgs) -> Result<(), Failure> {
    let rules = args.rules.onto(Rules { types: args.types.clone(), ..Rules::default() })?;
    let call = Call::put(at(&args.name)).with(&Written::of(&rules));
    let rotation: Rotation = office.acting(args.user.as_deref()).await?.ask(call).await?;
    print(&format!("Rotation {}: {}.", args.name, words(&rotation)))
}

async fn remove(
    office: &Office,
    name: &RotationName,
    yes: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let rotation: Rotation = office.get(at(name)).await?;
    let holder = rotation.holder.as_ref().map_or("nobody", |turn| turn.worker.as_str());
    let waiting: u64 = rotation.types.iter().map(|kind| kind.waiting).sum();
    let holder = visible(holder);
    sure(yes, &format!("Rotation {name}: {holder} has the turn, {waiting} wait for it."))?;
    let call = Call::delete(format!("{}?force=true", at(name)));
    office.acting(user).await?.tell(call).await?;
    print(&format!("Rotation {name} is removed."))
}

async fn list(office: &Office, as_json: bool) -> Result<(), Failure> {
    let list: RotationList = office.get("/api/v1/rotations").await?;
    if as_json {
        return print_json(&list);
    }
    if list.rotations.is_empty() {
        return print("No rotation. Make one with: soloist rotation set NAME --type A --type B");
    }
    let now = list.now.map(|At(now)| now).unwrap_or_default();
    let row = |rotation: &Rotation| {
        let waiting: u64 = rotation.types.iter().map(|kind| kind.waiting).sum();
        let ended = |kind: &RotationType| kind.done + kind.empty + kind.failed + kind.lost;
        let ended: u64 = rotation.types.iter().map(ended).sum();
        vec![
            rotation.name.clone(),
            rotation.holder.as_ref().map_or("nobody".to_owned(), |turn| holder(turn, now)),
            next(rotation, now),
            waiting.to_string(),
            ended.to_string(),
            words(rotation),
        ]
    };
    let rows: Vec<_> = list.rotations.iter().map(row).collect();
    print(&table(&["ROTATION", "HAS THE TURN", "NEXT", "WAITING", "ENDED", "RULES"], &rows))
}

async fn one(office: &Office, name: &RotationName, as_json: bool) -> Result<(), Failure> {
    let rotation: Rotation = office.get(at(name)).await?;
    if as_json {
        return print_json(&rotation);
    }
    // By the store's clock.
    let RotationList { now, .. } = office.get("/api/v1/rotations").await?;
    let now = now.map(|At(now)| now).unwrap_or_default();
    let mut text = format!("Rotation {name}: {}.\n", words(&rotation));
    match &rotation.holder {
        Some(turn) => text.push_str(&format!("{} has the turn.\n", visible(&holder(turn, now)))),
        None => text.push_str("Nobody has the turn.\n"),
    }
    text.push_str(&format!("Next: {}.\n\n", next(&rotation, now)));
    text.push_str(&types_of(&rotation, now));
    if !rotation.waiters.is_empty() {
        let row = |waiter: &WaitingWorker| {
            let waited = format!("{:.1?}", now.since(waiter.since.0));
            vec![waiter.r#type.clone(), waiter.worker.clone(), waiter.node.clone(), waited]
        };
        let rows: Vec<_> = rotation.waiters.iter().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["WAITS FOR", "WORKER", "AT NODE", "FOR"], &rows));
    }
    if !rotation.turns.is_empty() {
        let row = |past: &EndedTurn| {
            vec![
                past.turn.clone(),
                past.r#type.clone(),
                past.worker.clone(),
                local(past.since),
                format!("{:.1?}", past.ended.0.since(past.since.0)),
                past.outcome.clone(),
            ]
        };
        let rows: Vec<_> = rotation.turns.iter().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["TURN", "TYPE", "WORKER", "STARTED", "LASTED", "ENDED"], &rows));
    }
    print(&text)
}

/// The types in the order in which their turns come.
fn types_of(rotation: &Rotation, now: StoreTime) -> String {
    let known = |name: &String| rotation.types.iter().find(|kind| kind.name == *name);
    let row = |kind: &RotationType| {
        let now = match (kind.waiting, &kind.reason, &kind.earliest_at) {
            (0, ..) => "nobody waits".to_owned(),
            _ if rotation.holder.is_some() => word(Reason::Held).to_owned(),
            (_, Some(reason), Some(at)) => format!("{reason} for {:.1?}", at.0.since(now)),
            (..) => "ready".to_owned(),
        };
        let RotationType { name, waiting, done, empty, failed, lost, .. } = kind;
        let mut row = vec![name.clone(), waiting.to_string(), now];
        row.extend([done, empty, failed, lost].map(ToString::to_string));
        row
    };
    let rows: Vec<_> = rotation.order.iter().filter_map(known).map(row).collect();
    table(&["TYPE", "WAITING", "NOW", "DONE", "EMPTY", "FAILED", "LOST"], &rows)
}

fn holder(turn: &Holder, now: StoreTime) -> String {
    format!("{} as {} for {:.1?}", turn.worker, turn.r#type, now.since(turn.since.0))
}

fn next(rotation: &Rotation, now: StoreTime) -> String {
    let NextTurn { r#type, at, reason } = &rotation.next;
    let Some(kind) = r#type else { return "nobody waits".to_owned() };
    match (reason.as_deref(), at) {
        (None, _) => format!("{kind}, now"),
        (Some("held"), _) => format!("{kind}, after that turn"),
        (Some("absent"), _) => format!("{kind}, but nobody waits for it"),
        (Some(reason), Some(at)) => format!("{kind}, {reason} for {:.1?}", at.0.since(now)),
        (Some(reason), None) => format!("{kind}, {reason}"),
    }
}

/// Rules in a few words.
fn words(rotation: &Rotation) -> String {
    let kind = |kind: &RotationType| {
        let name = std::iter::once(kind.name.clone());
        name.chain(rules::words(&kind.rules)).collect::<Vec<_>>().join(" ")
    };
    let types = rotation.types.iter().map(kind).collect::<Vec<_>>().join(" > ");
    std::iter::once(types).chain(rules::words(&rotation.rules)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use soloist_domain::dispatch::Window;

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
