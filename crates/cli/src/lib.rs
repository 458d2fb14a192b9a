//! The command line: what can be typed, and which file does it.
//!
//! A command asks a node (`--server`), or the same handlers in its own process at the store that it opens, and no node need be running
//! (`office`). It is told the same by both. This room decides nothing about jobs: it asks for one transition and says what came of it. `serve`, `run`, `collect`, `turn` and `fence` are carried out by the program,
//! which alone may build a node.

mod accounts;
mod alerts;
mod audit;
mod check;
mod collect;
mod colour;
mod doctor;
mod drill;
mod failure;
pub mod fence;
mod init;
mod leases;
mod lifeline;
mod logs;
mod look;
mod manual;
mod nodes;
mod office;
mod output;
mod outside;
mod ping;
mod removal;
mod rotations;
mod rules;
mod server;
mod sessions;
mod sources;
mod store;
mod switch;
mod task_acts;
mod tasks;
mod terminal;
mod ticks;
mod tokens;
mod turn;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub use alerts::AlertCommand;
pub use audit::AuditArgs;
pub use collect::CollectArgs;
pub use failure::Failure;
pub use init::InitArgs;
pub use leases::LeaseCommand;
pub use manual::{ManArgs, Shell};
pub use ping::PingArgs;
pub use rotations::RotationCommand;
pub use sources::SourceCommand;
pub use store::{CopyArgs, StoreCommand};
pub use tasks::TaskCommand;
pub use terminal::absent;
pub use turn::TurnArgs;

use self::office::Office;
use self::terminal::Terminal;
use soloist_config::{Config, Environment, Examination, Overrides, examine};
use soloist_domain::name::{CollectorName, JobName, NodeName, RotationName, SourceName, UserName};
use soloist_domain::time::parse_duration;
use soloist_ops::credentials::Expiry;
use soloist_remote::{Access, Client};
use soloist_store::accounts::Role;

const EXAMPLES: &str = "\
Examples:
  soloist init                              write a first soloist.toml
  soloist                                   run a node here: web page, API, supervisor
  soloist check                             is soloist.toml right? (starts nothing)
  soloist user add li --role operator       make an account
  soloist on outbound --user li             li wants the job to run
  soloist status                            what runs where, wanted by whom, what next
  soloist why outbound                      why it is running, or is not
  soloist hold outbound --reason 'stock-taking'
  soloist logs outbound --follow
  soloist lease list                        who holds what: jobs, and commands under soloist run
  soloist status --json | jq '.jobs[].state'

A job runs on exactly one node for as long as at least one user has it switched on and nobody holds it.

With --server URL (or $SOLOIST_SERVER) and an API token every command asks a node and needs neither the store nor a
configuration; not serve, check, fence, link, store, init, ping, completions and man. $SOLOIST_SERVER_CA names a PEM file of certificate authorities of your own.

The configuration is --config FILE, else $SOLOIST_CONFIG, else ./soloist.toml. Every top-level key can be set as
SOLOIST_<KEY>: SOLOIST_STORE=redis://10.0.0.5:6379/0 soloist status

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 refused.";

/// Runs a script exactly once in a cluster, for as long as somebody wants it
#[derive(Debug, Parser)]
#[command(name = "soloist", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Configuration file [default: $SOLOIST_CONFIG, else ./soloist.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Store that the nodes share: sqlite:PATH, redis://HOST:PORT/DB, rediss://..., redis+sentinel://HOST,HOST,HOST/MASTERNAME, redis+cluster://HOST,HOST,HOST/, postgres://HOST:PORT/DATABASE, mysql://HOST:PORT/DATABASE [default: `store` of the configuration]
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// Ask a node over HTTP instead of opening the store: https://HOST:PORT, several of one cluster separated by commas [default: $SOLOIST_SERVER]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "store")]
    pub server: Option<String>,
    /// The file that holds the API token for --server, readable for its owner alone [default: the token in $SOLOIST_API_TOKEN]
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// What to do; `serve` when left out
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node: web page, API, supervisor (also what `soloist` alone does)
    Serve(ServeArgs),
    /// Read the configuration, report every problem with file and key, start nothing
    Check,
    /// Write a first soloist.toml: asks three questions, or none with --yes; never overwrites a file
    #[command(after_help = "Example: soloist --store redis://10.0.0.5:6379/0 init --yes")]
    Init(InitArgs),
    /// Show what each job is doing, where, wanted by whom, and what happens next
    #[command(
        after_help = "The table is plain text when piped; --json gives the objects of GET /api/v1/jobs."
    )]
    Status(StatusArgs),
    /// Say in a sentence why a job is or is not running
    Why(JobArg),
    /// Switch a user's participation on: the job runs while at least one user wants it
    #[command(after_help = "Example: soloist on outbound --user li --reason 'orders are waiting'")]
    On(SwitchArgs),
    /// Switch a user's participation off: the job stops when the last one leaves
    Off(SwitchArgs),
    /// Forbid a job whatever the switches say, until it is resumed
    #[command(after_help = "Example: soloist hold outbound --reason 'stock-taking until 14:00'")]
    Hold(HoldArgs),
    /// Allow a held or given-up job again
    Resume(ActArgs),
    /// Hand a running job over to another node now
    #[command(after_help = "Example: soloist move outbound --to node-b")]
    Move(MoveArgs),
    /// Crash the present holder of a job on purpose and report the measured take-over
    #[command(after_help = "\
Example: soloist drill outbound --user ada

The node process is killed with kill -9 and all its jobs move. It comes back only if a service manager (systemd,
Docker restart policy) starts it again. Refused when the job is not running, is held, or no other node may take over.")]
    Drill(DrillArgs),
    /// Look at configuration, store, machine and cluster, and say what to do
    #[command(after_help = "\
Exit code 0 when nothing is bad, else 1. Warnings do not count. A store out of reach is one finding among others.")]
    Doctor(DoctorArgs),
    /// List the nodes
    Nodes(ListArgs),
    /// Empty a node and keep it empty: its jobs are handed over
    Drain(DrainArgs),
    /// Let a drained node take jobs again
    Undrain(NodeArgs),
    /// Take a silent node off the list, with its drain mark (by itself it leaves the list after 24 hours)
    #[command(after_help = "Example: soloist forget node-c --reason 'the machine was scrapped'")]
    Forget(ForgetArgs),
    /// Show what a job's script printed
    #[command(after_help = logs::HELP)]
    Logs(logs::LogsArgs),
    /// Show a job's history of runs, newest first
    Runs(RunsArgs),
    /// Show when jobs with a schedule run next
    Next(ticks::NextArgs),
    /// Show what became of a job's ticks: those that ran, and those that did not, and why
    Ticks(ticks::TicksArgs),
    /// Run a job with a schedule once, now; or one of its ticks again, by its name
    #[command(after_help = ticks::TRIGGER_HELP)]
    Trigger(ticks::TriggerArgs),
    /// Show who did what, when, from where, why; write it to a file; check such a file
    #[command(after_help = audit::HELP)]
    Audit(AuditArgs),
    /// See what is on, mute an alert, test a channel
    #[command(subcommand)]
    Alert(AlertCommand),
    /// Manage accounts
    #[command(subcommand)]
    User(UserCommand),
    /// Manage API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// See and end sign-ins
    #[command(subcommand)]
    Session(SessionCommand),
    /// Print a fresh one-time sign-in link for an admin (30 minutes)
    #[command(after_help = "While no admin exists, the link creates the first one.")]
    Link {
        /// For which admin [default: yourself, or the only admin]
        #[arg(long, value_name = "NAME")]
        user: Option<UserName>,
    },
    /// Run any command under a lease of its own: on one node at a time, guarded and fenced as a job is
    #[command(after_help = "\
Examples:
  soloist run --name nightly --wait 10m -- ./backup.sh --full
  soloist run --name nightly --tick \"$(date +%F)\" -- ./backup.sh --full
  soloist run --name nightly --once-per '30 2 * * *' --zone Asia/Shanghai -- ./backup.sh --full

The command's exit code is returned, 128 + N when signal N ended it, 127 when it could not be started; 75 when the
lease was not had in time, 76 when it was lost and the command was killed. Of several machines that start the same
line, one runs it; the others wait for --wait, and then run it too.

With --tick or --once-per it is run once for each tick. The tick is spent before the command begins, in the step that
grants the lease. Whoever comes later ends with 0 at once, also while the command still runs, and says who did it and
when. If a machine dies in between, nobody runs it, and everybody who comes later says so; with --retry-failed a tick
whose command failed or was lost is run again. Whoever meets the lease waits for it for at least 5 s. The command finds
the tick in $SOLOIST_TICK.

HUP, INT, QUIT and TERM ask the command to stop (TERM, --stop-grace, KILL to its whole tree); a second one kills it at
once. Its output is passed on unchanged; its standard input is empty: give it files.")]
    Run(RunArgs),
    /// Look at leases: who may be the only one now
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Run a command on every task of a source: claimed, guarded, extended and reported
    #[command(after_help = collect::HELP)]
    Collect(CollectArgs),
    /// Manage sources of tasks
    #[command(subcommand)]
    Source(SourceCommand),
    /// Put tasks
    #[command(subcommand)]
    Task(TaskCommand),
    /// Run a command for one turn of a rotation: awaited, guarded, extended and passed
    #[command(after_help = turn::HELP)]
    Turn(TurnArgs),
    /// Manage rotations: types of work that take turns
    #[command(subcommand)]
    Rotation(RotationCommand),
    /// Move to another store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Run a command only if $SOLOIST_TOKEN is not older than the newest token that FILE has seen
    #[command(after_help = "\
Example, in a script that Soloist runs: soloist fence shipped.fence -- sh -c 'echo 10248 >> shipped.csv'

The token is checked and stored under a lock on FILE, which is held while the command runs. Exit code 4: a newer run
has written since, so this one is stale and must stop. Otherwise the command's own exit code.")]
    Fence {
        /// Remembers the newest token; made when missing
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        argv: Vec<OsString>,
    },
    /// Ask the node of this machine whether it lives, where the configuration says it listens; for health checks
    Ping(PingArgs),
    /// Print what makes a shell complete this command line
    #[command(after_help = "\
Example: soloist completions bash > /etc/bash_completion.d/soloist
Example: soloist completions zsh > /usr/share/zsh/vendor-completions/_soloist
Example: soloist completions fish > ~/.config/fish/completions/soloist.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    #[command(after_help = "\
Example: soloist man | man -l -
Example: soloist man --dir /usr/local/share/man/man1")]
    Man(ManArgs),
}

#[derive(Debug, Clone, Args, Default)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct ServeArgs {
    /// Address and port of the web page and API; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Name of this node; must differ from every other node's
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct ListArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub list: ListArgs,
    /// Say only whether a program that this user starts would be watched at this socket. It needs no configuration
    #[arg(long, value_name = "PATH")]
    pub lifeline: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct JobArg {
    /// Name of the job, as in the configuration
    pub job: String,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct StatusArgs {
    /// Only this job
    pub job: Option<String>,
    /// Show it again on every change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct ActArgs {
    /// Name of the job, as in the configuration
    pub job: String,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct SwitchArgs {
    #[command(flatten)]
    pub act: ActArgs,
    /// Why; shown on the page and kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct HoldArgs {
    #[command(flatten)]
    pub act: ActArgs,
    /// Why; others will read it
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct MoveArgs {
    #[command(flatten)]
    pub act: ActArgs,
    /// To which node [default: any other]
    #[arg(long, value_name = "NODE")]
    pub to: Option<NodeName>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct DrillArgs {
    #[command(flatten)]
    pub act: ActArgs,
    /// Also when no other node can take over: the job stays down until one is there
    #[arg(long)]
    pub force: bool,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct NodeArgs {
    /// Name of the node, as `soloist nodes` lists it
    pub node: NodeName,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct DrainArgs {
    #[command(flatten)]
    pub node: NodeArgs,
    /// Why; kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct ForgetArgs {
    #[command(flatten)]
    pub node: NodeArgs,
    /// Why; kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct RunsArgs {
    /// Name of the job, as in the configuration
    pub job: String,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum UserCommand {
    /// Make an account
    #[command(after_help = "\
Example: soloist user add li --role operator
Example: soloist user add li --role operator --invite
Example: printf %s \"$PASSWORD\" | soloist user add li --role operator --password-stdin")]
    Add {
        /// Its name: a-z, 0-9, '.', '_', '-'
        name: UserName,
        /// viewer (looks), operator (switches), admin (everything), collector (only claims and reports work)
        #[arg(long)]
        role: Role,
        /// Read the password from standard input instead of asking twice
        #[arg(long)]
        password_stdin: bool,
        /// Print a one-time link (48 hours) with which the person sets the password, instead of asking for one
        #[arg(long, conflicts_with = "password_stdin")]
        invite: bool,
        /// How the person is called, in any script
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
    },
    /// List accounts
    List(ListArgs),
    /// Change what an account may do; signs it out everywhere
    Role {
        /// Whose
        name: UserName,
        /// viewer, operator, admin or collector
        role: Role,
    },
    /// Change a password; signs the account out everywhere, and revokes its API tokens
    Passwd {
        /// Whose
        name: UserName,
        /// Read the password from standard input instead of asking twice
        #[arg(long)]
        password_stdin: bool,
        /// Take the password away, and print a one-time link (48 hours) with which the person sets a new one
        #[arg(long, conflicts_with = "password_stdin")]
        invite: bool,
    },
    /// Say who an account is at the provider of single sign-on; signs it out everywhere
    #[command(
        after_help = "The page says the subject to whoever tries to sign in without an account."
    )]
    Link {
        /// Whose
        name: UserName,
        /// What the provider calls the person for ever (`sub`)
        #[arg(long, required_unless_present = "none", conflicts_with = "none")]
        subject: Option<String>,
        /// No person: the account signs in by password only
        #[arg(long)]
        none: bool,
    },
    /// Remove an account: its participations, sessions and tokens end
    Remove {
        /// Whose
        name: UserName,
    },
}

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum SessionCommand {
    /// List where accounts are signed in
    List {
        /// Of this account only
        #[arg(long, value_name = "NAME")]
        user: Option<UserName>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Sign a browser out, with all its live connections
    Revoke {
        /// Its id, as `soloist session list` shows it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum TokenCommand {
    /// Make a token; its secret is printed once, alone on standard output
    #[command(
        after_help = "Example: TOKEN=$(soloist token new --user li --name laptop --expires 90d)"
    )]
    New {
        /// The account whose role the token has
        #[arg(long, value_name = "NAME")]
        user: UserName,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// How long it lives, at most 5 years; never: until it is revoked
        #[arg(long, value_name = "DUR", default_value = "90d")]
        expires: Expiry,
        /// Only for dispatch and rotations, and only in the name of this collector or worker
        #[arg(long, value_name = "NAME")]
        collector: Option<CollectorName>,
        /// Only for this source. May be given several times, as the next three: a token that is bound to any name acts on
        /// nothing else [default: all]
        #[arg(long = "source", value_name = "NAME")]
        sources: Vec<SourceName>,
        /// Only for this rotation
        #[arg(long = "rotation", value_name = "NAME")]
        rotations: Vec<RotationName>,
        /// Only for this lease of a program
        #[arg(long = "lease", value_name = "NAME")]
        leases: Vec<JobName>,
        /// Only for this job
        #[arg(long = "job", value_name = "NAME")]
        jobs: Vec<JobName>,
        /// May put tasks for its sources, though its account is a collector
        #[arg(long)]
        put: bool,
    },
    /// List tokens (never their secrets)
    List(ListArgs),
    /// Revoke a token
    Revoke {
        /// Its id, as `soloist token list` shows it
        id: String,
    },
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct RunArgs {
    /// Name of the lease; the same name on every machine
    #[arg(long, value_name = "NAME")]
    pub name: JobName,
    /// How long the lease lasts when its holder falls silent [default: `lease_ttl` of the configuration]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub ttl: Option<Duration>,
    /// How long to wait for the lease, and for a store that is away; 0 tries once [default: for ever]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub wait: Option<Duration>,
    /// How long the command may take to stop after TERM before its whole tree is killed; cut to what is left of the
    /// lease when that runs out
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "2s")]
    pub stop_grace: Duration,
    /// Run it once for TEXT over all machines, whoever starts it and however often: 1 to 200 bytes, for example a date.
    /// Kept for 400 days
    #[arg(long, value_name = "TEXT", conflicts_with = "once_per")]
    pub tick: Option<String>,
    /// The same for the newest tick of a cron expression that is due, by the store's clock; one that is due within a
    /// minute (half the interval, if that is shorter) is waited for
    #[arg(long, value_name = "EXPR")]
    pub once_per: Option<String>,
    /// The zone of EXPR, by its IANA name; that of the machine is never taken
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// How EXPR is read: quartz for 6 or 7 fields
    #[arg(long, value_name = "DIALECT", value_parser = ["cron", "quartz"])]
    pub dialect: Option<String>,
    /// With --tick or --once-per: run it again if its command failed or was lost
    #[arg(long)]
    pub retry_failed: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub argv: Vec<OsString>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .map_err(|_| "use a number with a unit, for example 250ms, 5s, 10m, 90d".to_owned())
}

impl Cli {
    /// Reads the configuration as this command line asks for it, for `command`.
    #[must_use]
    pub fn configuration(&self, command: &Command, env: Environment<'_>) -> Examination {
        let (listen, node) = match command {
            Command::Serve(serve) => (serve.listen.clone(), serve.node.clone()),
            _ => (None, None),
        };
        let only_looks = !command.needs_this_machine();
        let over =
            Overrides { store: self.store.clone(), listen, node, own_name: None, only_looks };
        examine(self.config.as_deref(), over, env)
    }

    /// Reads it again for a node that runs with `before`: by the name that it has, which it may have made up, and from the file
    /// that it has, which must be there.
    #[must_use]
    pub fn configuration_again(
        &self,
        serve: &ServeArgs,
        before: &Config,
        env: Environment<'_>,
    ) -> Examination {
        let (store, listen, node) = (self.store.clone(), serve.listen.clone(), serve.node.clone());
        let own_name = Some(before.node.clone());
        let over = Overrides { store, listen, node, own_name, only_looks: false };
        examine(self.config.as_deref().or(before.file.as_deref()), over, env)
    }
}

impl Command {
    /// Whether directories, programs, users and secrets of this machine concern it: it runs the jobs of the configuration,
    /// looks whether they could be run, or sends what a secret signs.
    fn needs_this_machine(&self) -> bool {
        matches!(
            self,
            Self::Serve(_) | Self::Check | Self::Doctor(_) | Self::Alert(AlertCommand::Test { .. })
        )
    }

    /// Whether a store that does not exist is made for it. Not for those that look, or that change what must be there
    /// already: a mistyped path is an error.
    fn makes_a_store(&self) -> bool {
        matches!(
            self,
            Self::User(UserCommand::Add { .. })
                | Self::Link { .. }
                | Self::Source(SourceCommand::Set(_))
                | Self::Rotation(RotationCommand::Set(_))
        )
    }
}

/// What was typed; `version` is what `--version` says of this build. What cannot be understood ends the process here, in words.
#[must_use]
pub fn typed(version: &'static str) -> Cli {
    let matches = Cli::command().long_version(version).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Carries out what needs no store and no checked configuration: `init`, `ping`, `completions`, `man`, `doctor --lifeline`; `None`: it is none of these.
#[must_use]
pub fn at_hand(cli: &Cli, command: &Command, env: Environment<'_>) -> Option<Result<(), Failure>> {
    match command {
        Command::Init(args) => Some(init::init(cli, args, env)),
        Command::Ping(args) => Some(ping::ping(cli, args, env)),
        Command::Doctor(DoctorArgs { list, lifeline: Some(path) }) => {
            Some(doctor::finish(lifeline::as_a_program(path), list.json))
        }
        Command::Completions { shell } => Some(manual::completions(*shell)),
        Command::Man(args) => Some(manual::man(args)),
        _ => None,
    }
}

/// Carries out `command` at the store and says what came of it; `serve`, `run`, `collect`, `turn` and `fence` are not for here.
///
/// # Errors
/// [`Failure`], which decides the exit code.
pub async fn act(command: Command, examined: Examination) -> Result<(), Failure> {
    match command {
        Command::Check => check::check(examined),
        Command::Doctor(args) => doctor::doctor(examined, &args.list).await,
        Command::Store(command) => store::act(examined, command).await,
        Command::Audit(AuditArgs { verify: Some(file), since_hash, .. }) => {
            audit::check(&file, since_hash.as_deref())
        }
        command => {
            let (terminal, answering) = Terminal::open(examined, command.makes_a_store()).await?;
            let doing = async {
                match command {
                    Command::Link { user } => tokens::link(&terminal, user).await,
                    command => carry_out(command, &Office::from(terminal)).await,
                }
            };
            tokio::select! {
                done = doing => done,
                () = answering => {
                    Err(Failure::Failed("the handlers in this process ended".to_owned()))
                }
            }
        }
    }
}

/// As [`act`], by the nodes behind `access`; neither a configuration nor a store is looked at.
///
/// # Errors
/// [`Failure`], which decides the exit code.
pub async fn act_by_server(command: Command, access: Access) -> Result<(), Failure> {
    if let Command::Audit(AuditArgs { verify: Some(file), since_hash, .. }) = &command {
        return audit::check(file, since_hash.as_deref());
    }
    match command {
        Command::Doctor(args) => outside::doctor(&access, &args.list).await,
        command => carry_out(command, &Office::from(Client::new(access)?)).await,
    }
}

async fn carry_out(command: Command, office: &Office) -> Result<(), Failure> {
    match command {
        Command::Status(args) => look::status(office, &args).await,
        Command::Why(args) => look::why(office, &args.job).await,
        Command::On(args) => switch::participate(office, &args, true).await,
        Command::Off(args) => switch::participate(office, &args, false).await,
        Command::Hold(args) => switch::hold(office, &args).await,
        Command::Resume(args) => switch::resume(office, &args).await,
        Command::Move(args) => switch::hand_over(office, &args).await,
        Command::Drill(args) => drill::drill(office, &args).await,
        Command::Nodes(args) => nodes::list(office, &args).await,
        Command::Drain(args) => {
            nodes::drain(office, &args.node, true, args.reason.as_deref()).await
        }
        Command::Undrain(args) => nodes::drain(office, &args, false, None).await,
        Command::Forget(args) => nodes::forget(office, &args).await,
        Command::Logs(args) => logs::logs(office, &args).await,
        Command::Runs(args) => look::runs(office, &args).await,
        Command::Next(args) => ticks::next(office, &args).await,
        Command::Ticks(args) => ticks::ticks(office, &args).await,
        Command::Trigger(args) => ticks::trigger(office, &args).await,
        Command::Audit(args) => audit::audit(office, &args).await,
        Command::Alert(command) => alerts::act(office, command).await,
        Command::User(command) => accounts::act(office, command).await,
        Command::Token(command) => tokens::act(office, command).await,
        Command::Session(command) => sessions::act(office, command).await,
        Command::Lease(command) => leases::act(office, command).await,
        Command::Source(command) => sources::act(office, command).await,
        Command::Task(command) => tasks::act(office, command).await,
        Command::Rotation(command) => rotations::act(office, command).await,
        Command::Serve(_)
        | Command::Check
        | Command::Doctor(_)
        | Command::Store(_)
        | Command::Link { .. }
        | Command::Run(_)
        | Command::Collect(_)
        | Command::Turn(_)
        | Command::Fence { .. }
        | Command::Init(_)
        | Command::Ping(_)
        | Command::Completions { .. }
        | Command::Man(_) => {
            Err(Failure::Failed("this command is carried out elsewhere".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
