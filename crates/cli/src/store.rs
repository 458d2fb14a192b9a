//! `soloist store copy`: all of one store into another, while every node is stopped.

use std::io::{IsTerminal as _, Write as _};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::Failure;
use super::output::{print, print_json, table};
use super::terminal::{administrator, shown};
use soloist_config::Examination;
use soloist_domain::ensemble;
use soloist_ops::copy::{From, copy};
use soloist_store::Options;
use soloist_store::copy::{Copied, CopyError, Tally};

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum StoreCommand {
    /// Copy all of a store into another one, of any kind: stop every node before
    #[command(after_help = "\
Example: soloist store copy --from sqlite:data/soloist.db --to postgres://soloist:PASSWORD@db/soloist --dry-run
Example: soloist store copy --from redis://10.0.0.5:6379/0 --to redis+cluster://10.0.0.6,10.0.0.7,10.0.0.8/

Accounts, API tokens, switches, jobs with their history and output, the audit, sources with their tasks, rotations, alerts.
Fencing tokens go on growing. Who waits asks again. The source stays as it is: never start nodes on both.

Refused while a node uses either store, while anything is held in the source, and when the target is not empty. A target into
which a copy is not finished refuses nodes; the same command once more begins the copy anew.

A URL with a password is better given in $SOLOIST_COPY_FROM and $SOLOIST_COPY_TO: others on this machine see command lines.")]
    Copy(CopyArgs),
}

/// Arguments of `store copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The store that is copied
    #[arg(long, value_name = "URL", env = "SOLOIST_COPY_FROM", hide_env_values = true)]
    pub from: String,
    /// The store that it is copied into: empty, made if there is none
    #[arg(long, value_name = "URL", env = "SOLOIST_COPY_TO", hide_env_values = true)]
    pub to: String,
    /// Only say what would be copied
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    dry_run: bool,
    copied: &'a Tally,
}

/// `store`.
pub(super) async fn act(examined: Examination, command: StoreCommand) -> Result<(), Failure> {
    let StoreCommand::Copy(args) = command;
    let config = examined.config?;
    let options = Options {
        prefix: config.prefix.clone(),
        longest_lease: config.longest_lease(),
        ..Options::default()
    };
    let mut line = Line { on: std::io::stderr().is_terminal(), shown: false };
    let copied = {
        let mut progress = |tally: &Tally| line.say(tally.total());
        let from = From { url: &args.from, shown: &shown(&args.from) };
        let by = administrator().signature;
        copy(soloist_stores::named, from, &args.to, &options, args.dry_run, &by, &mut progress)
            .await
    };
    line.clear();
    let copied = copied.map_err(|error| failure(error, &args))?;
    say(&copied, &args)
}

fn say(Copied { tally, again }: &Copied, args: &CopyArgs) -> Result<(), Failure> {
    if args.json {
        return print_json(&Answer { dry_run: args.dry_run, copied: tally });
    }
    let rows: Vec<Vec<String>> = tally
        .rows()
        .iter()
        .map(|(what, many)| vec![(*what).to_owned(), many.to_string()])
        .collect();
    let to = shown(&args.to);
    let heading = if args.dry_run { "WOULD BE COPIED" } else { "COPIED" };
    print(&table(&[heading, "HOW MANY"], &rows))?;
    match (args.dry_run, again) {
        (true, true) => {
            print(&format!("{to} has an unfinished copy, which would be removed first."))
        }
        (true, false) => Ok(()),
        (false, true) => print(&format!(
            "{to} had an unfinished copy: it was removed, and all of it was copied anew."
        )),
        (false, false) => print(&next_step(&args.from, &to)),
    }
}

/// What a person does on every machine, when `to` has all of `from`.
fn next_step(from: &str, to: &str) -> String {
    let (store, coordination) = ensemble::split(to);
    let more = match (coordination, ensemble::split(from).1) {
        (Some(url), _) => format!(" and `coordination` to {url}"),
        (None, Some(_)) => ", remove `coordination`".to_owned(),
        (None, None) => String::new(),
    };
    format!("Set `store` to {store}{more} on every machine, then start the nodes.")
}

fn failure(error: CopyError, args: &CopyArgs) -> Failure {
    let (which, url, cause) = match error {
        CopyError::Same | CopyError::Refused(_) => return Failure::Refused(error.to_string()),
        CopyError::Source(cause) => ("source", shown(&args.from), cause),
        CopyError::Target(cause) => ("target", shown(&args.to), cause),
    };
    let said = |text: String| format!("the {which}, {url}: {text}");
    match Failure::from(cause) {
        Failure::Usage(text) => Failure::Usage(said(text)),
        Failure::NotFound(text) => Failure::NotFound(said(text)),
        Failure::Refused(text) => Failure::Refused(said(text)),
        other => Failure::Failed(said(other.to_string())),
    }
}

/// The line of a terminal that says how far it is.
struct Line {
    on: bool,
    shown: bool,
}

impl Line {
    fn say(&mut self, done: usize) {
        if self.on {
            self.shown = true;
            // A line of progress that cannot be written is no reason to stop.
            write!(std::io::stderr(), "\r{done} copied").ok();
        }
    }

    fn clear(&self) {
        if self.shown {
            write!(std::io::stderr(), "\r\x1b[K").ok();
        }
    }
}
