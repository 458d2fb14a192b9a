//! The program: a guard, a node, or one command; decides which, and the exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::app;
use soloist_cli::fence::FenceError;
use soloist_cli::{self as cli, Cli, CollectArgs, Command, Failure, RunArgs, ServeArgs, TurnArgs};
use soloist_config::{self as config, Config, Examination};
use soloist_domain::lease::Timing;
use soloist_domain::name::{CollectorName, NodeName, TickText, WorkerName};
use soloist_guard::choice::Choice;
use soloist_guard::shield;
use soloist_process::outlet::{self, LastWords};
use soloist_process::sabotage;
use soloist_process::telemetry;
use soloist_remote::Access;
use soloist_runner::collect_command::{self, CollectCommand};
use soloist_runner::entrusted::Entrusted;
use soloist_runner::once::{RunOnce, Which};
use soloist_runner::program::Program;
use soloist_runner::run_at_node;
use soloist_runner::run_command::{self, RunCommand};
use soloist_runner::turn_command::{self, TurnCommand};
use soloist_store::StoreError;

/// Version, commit and build in one line; a release says the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SOLOIST_BUILD"), ")");

/// What `main` does.
#[must_use]
pub fn main() -> ExitCode {
    // Before any thread, runtime or open file of ours exists: this process may be a guard.
    if let Some(code) = soloist_guard::entry(soloist_stores::connect) {
        return exit_code(code);
    }
    outlet::tell_panics();
    let _last_words = LastWords;
    let sound = readable().and_then(|()| sabotage::known().map_err(Failure::Usage));
    match sound.and_then(|()| run(cli::typed(VERSION))) {
        Ok(code) => code,
        Err(failure) => {
            failure.say();
            failure.code()
        }
    }
}

fn run(mut cli: Cli) -> Result<ExitCode, Failure> {
    let command = cli.command.take().unwrap_or(Command::Serve(ServeArgs::default()));
    // What starts scripts is not to be read by them. Before there is any other thread.
    let taken = match command {
        Command::Serve(_) | Command::Run(_) | Command::Collect(_) | Command::Turn(_) => shielded(),
        _ => BTreeMap::new(),
    };
    let variable = move |name: &str| taken.get(name).cloned().or_else(|| variable(name));
    let access = cli.access(&command, &variable)?;
    if let Some(done) = cli::at_hand(&cli, &command, &variable) {
        return done.map(|()| ExitCode::SUCCESS);
    }
    let log = variable("RUST_LOG");
    let json = variable("SOLOIST_LOG_FORMAT").as_deref() == Some("json");
    match command {
        Command::Fence { file, argv } => fence(&file, &argv),
        Command::Serve(ref serve) => {
            telemetry::log_to_stderr(log.as_deref(), json);
            let Examination { config, warnings, .. } = cli.configuration(&command, &variable);
            for warning in &warnings.0 {
                tracing::warn!("{warning}");
            }
            let config = config?;
            // Before the runtime starts its threads.
            app::block_hangups().map_err(no_runtime)?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let serve = serve.clone();
            let again: app::Read =
                Arc::new(move |before: &Config| cli.configuration_again(&serve, before, &variable));
            runtime.map_err(no_runtime)?.block_on(app::serve(config, again))?;
            Ok(ExitCode::SUCCESS)
        }
        command if access.is_some() => {
            let Some(access) = access else { return Ok(ExitCode::FAILURE) };
            telemetry::log_to_stderr(Some(log.as_deref().unwrap_or("warn")), json);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(no_runtime)?.block_on(async {
                let here = Here::by_server(access.clone());
                match command {
                    Command::Collect(args) => collect_tasks(args, here?).await,
                    Command::Turn(args) => take_turn(args, here?).await,
                    Command::Run(args) => run_by_nodes(args, here?).await,
                    command => {
                        cli::act_by_server(command, access).await.map(|()| ExitCode::SUCCESS)
                    }
                }
            })
        }
        command => {
            telemetry::log_to_stderr(Some(log.as_deref().unwrap_or("warn")), json);
            let examined = cli.configuration(&command, &variable);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(no_runtime)?.block_on(async {
                match command {
                    Command::Run(args) => run_leased(args, examined).await,
                    Command::Collect(args) => {
                        collect_tasks(args, Here::at_store(examined.config?)?).await
                    }
                    Command::Turn(args) => take_turn(args, Here::at_store(examined.config?)?).await,
                    command => cli::act(command, examined).await.map(|()| ExitCode::SUCCESS),
                }
            })
        }
    }
}

/// Makes this process unreadable to others of its user; returns what was in its environment for Soloist. A program that a
/// script has started stays as readable as the script: by its environment it is found if it is left behind.
fn shielded() -> BTreeMap<String, String> {
    if !shield::is_in_a_script() {
        shield::raise();
    }
    shield::take_variables()
}

async fn run_leased(args: RunArgs, examined: Examination) -> Result<ExitCode, Failure> {
    let timing = match args.ttl.map(Timing::from_ttl).transpose() {
        Ok(timing) => timing,
        Err(problem) => return Err(Failure::Usage(format!("--ttl: {problem}"))),
    };
    let once = once(&args)?;
    let config = examined.config?;
    if config.job(args.name.as_str()).is_some() {
        return Err(Failure::Refused(format!(
            "{} is a job of the configuration and has that lease: use another --name",
            args.name
        )));
    }
    let command = RunCommand {
        open: soloist_stores::connect,
        name: args.name,
        timing: timing.unwrap_or(config.timing),
        wait: args.wait,
        once,
        program: program(Here::at_store(config)?, args.argv, args.stop_grace)?,
    };
    Ok(exit_code(run_command::run(command).await?))
}

/// What `--tick` and `--once-per` say.
fn once(args: &RunArgs) -> Result<Option<RunOnce>, Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    let RunArgs { tick, once_per, zone, dialect, retry_failed, .. } = args;
    if once_per.is_none() {
        let given = [("--zone", zone), ("--dialect", dialect)];
        if let Some((option, _)) = given.into_iter().find(|(_, value)| value.is_some()) {
            return Err(Failure::Usage(format!(
                "{option}: it counts only with --once-per EXPR: add that, or leave {option} out"
            )));
        }
    }
    let tick = match (tick, once_per, zone) {
        (Some(tick), ..) => {
            let tick = TickText::new(tick);
            Which::Text(tick.map_err(|error| Failure::Usage(format!("--tick: {error}")))?)
        }
        (None, Some(expression), Some(zone)) => {
            let quartz = dialect.as_deref() == Some("quartz");
            let ticks = config::ticks(&args.name, expression, zone, quartz);
            Which::Newest(ticks.map_err(Failure::Usage)?)
        }
        (None, Some(_), None) => {
            return usage(
                "--once-per: a cron expression needs a zone: add --zone Asia/Shanghai, or --zone UTC; the zone of the machine is never taken",
            );
        }
        (None, None, _) if *retry_failed => {
            return usage(
                "--retry-failed: it counts only with a tick: add --tick TEXT, or --once-per EXPR --zone ZONE",
            );
        }
        (None, None, _) => return Ok(None),
    };
    Ok(Some(RunOnce { tick, retry_failed: *retry_failed }))
}

/// How long a lease lasts that a node is asked for, unless it is said; as the API has it.
const LEASE_OF_NODE: Duration = Duration::from_secs(10);

async fn run_by_nodes(args: RunArgs, here: Here) -> Result<ExitCode, Failure> {
    let timing = Timing::from_ttl(args.ttl.unwrap_or(LEASE_OF_NODE));
    let Some(access) = here.server.clone() else { return Ok(ExitCode::FAILURE) };
    let once = once(&args)?;
    let command = RunCommand {
        open: soloist_stores::connect,
        name: args.name,
        timing: timing.map_err(|problem| Failure::Usage(format!("--ttl: {problem}")))?,
        wait: args.wait,
        once,
        program: program(here, args.argv, args.stop_grace)?,
    };
    Ok(exit_code(run_at_node::run(command, access).await?))
}

/// Where commands run scripts: at a store, or by nodes.
struct Here {
    node: NodeName,
    store_url: String,
    server: Option<Access>,
    prefix: String,
    containment: Choice,
    longest_lease: Duration,
    /// What is said when there is no store.
    absent: String,
}

impl Here {
    fn at_store(config: Config) -> Result<Self, Failure> {
        Ok(Self {
            absent: cli::absent(&config),
            longest_lease: config.longest_lease(),
            containment: app::contain(&config)?,
            store_url: config.address(),
            node: config.node,
            server: None,
            prefix: config.prefix,
        })
    }

    /// No configuration is read: the name is the host's, and the containment the best there is.
    fn by_server(access: Access) -> Result<Self, Failure> {
        let node = config::own_node_name()
            .ok_or_else(|| Failure::Failed("this machine has no name to go by".to_owned()))?;
        Ok(Self {
            node,
            // What runs leave behind is noted under the name of their store.
            store_url: access.servers().join(","),
            server: Some(access),
            prefix: String::new(),
            containment: app::contained(None)?,
            longest_lease: Duration::ZERO,
            absent: String::new(),
        })
    }
}

async fn collect_tasks(args: CollectArgs, here: Here) -> Result<ExitCode, Failure> {
    let (absent, longest_lease) = (here.absent.clone(), here.longest_lease);
    let own_name = || CollectorName::new(here.node.as_str());
    let collector = args.collector.map_or_else(own_name, Ok);
    let collect = CollectCommand {
        open: soloist_stores::connect,
        collector: collector.map_err(|error| Failure::Usage(format!("--collector: {error}")))?,
        sources: args.sources,
        parallel: args.parallel,
        max: args.max,
        until_empty: args.until_empty,
        longest_lease,
        program: program(here, args.argv, args.stop_grace)?,
    };
    let code = collect_command::run(collect).await.map_err(|error| unless_absent(error, absent))?;
    Ok(exit_code(code))
}

async fn take_turn(args: TurnArgs, here: Here) -> Result<ExitCode, Failure> {
    let (absent, longest_lease) = (here.absent.clone(), here.longest_lease);
    let own_name = || WorkerName::new(here.node.as_str());
    let worker = args.worker.map_or_else(own_name, Ok);
    let turn = TurnCommand {
        open: soloist_stores::connect,
        rotation: args.rotation,
        kind: args.kind,
        worker: worker.map_err(|error| Failure::Usage(format!("--worker: {error}")))?,
        next: args.next,
        empty_code: args.empty_code.map(i32::from),
        wait: args.wait,
        longest_lease,
        program: program(here, args.argv, args.stop_grace)?,
    };
    let ended = turn_command::run(turn).await;
    Ok(exit_code(ended.map_err(|error| unless_absent(error, absent))?))
}

/// Why it failed; that there is no store is said in the words of `absent`.
fn unless_absent(error: anyhow::Error, absent: String) -> Failure {
    match error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()) {
        Some(StoreError::Absent(_)) => Failure::NotFound(absent),
        _ => error.into(),
    }
}

/// A command given on the command line: it runs here, with what this process was given.
fn program(here: Here, argv: Vec<OsString>, stop_grace: Duration) -> Result<Program, Failure> {
    let dir = std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the current directory is gone: {error}")))?;
    let Here { node, store_url, server, prefix, containment, .. } = here;
    Ok(Program {
        argv,
        dir,
        env: inherited(),
        stop_grace,
        node,
        store_url,
        server,
        prefix,
        containment,
        entrusted: Entrusted::default(),
    })
}

/// The caller's environment without what configures Soloist: the store's URL may hold a password.
fn inherited() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().filter(|(key, _)| !key.as_bytes().starts_with(b"SOLOIST_")).collect()
}

fn fence(file: &std::path::Path, argv: &[OsString]) -> Result<ExitCode, Failure> {
    let token = variable("SOLOIST_TOKEN");
    match soloist_cli::fence::fence(file, argv, token.as_deref()) {
        Ok(code) => Ok(exit_code(code)),
        Err(error @ FenceError::Stale { .. }) => Err(Failure::Refused(error.to_string())),
        Err(error @ FenceError::NoToken(_)) => Err(Failure::Usage(error.to_string())),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

/// One of ours is UTF-8 ([`readable`]); of others, of `PATH` above all, what is not is of no use here.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Refuses variables of ours that are not UTF-8, by name. Left aside they would be as if nobody had set them, and a node would
/// meet the others at another store than the one that was asked for.
fn readable() -> Result<(), Failure> {
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("SOLOIST_"))?;
        value.to_str().is_none().then(|| format!("${name}"))
    });
    let mut unreadable: Vec<String> = ours.collect();
    unreadable.sort_unstable();
    match unreadable.join(", ") {
        none if none.is_empty() => Ok(()),
        names => Err(Failure::Usage(format!(
            "{names}: the value is not UTF-8: set it again in UTF-8 (in a URL %E4 stands for the byte E4), or unset it"
        ))),
    }
}

fn no_runtime(error: std::io::Error) -> Failure {
    Failure::Failed(format!("cannot start the runtime: {error}"))
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}
