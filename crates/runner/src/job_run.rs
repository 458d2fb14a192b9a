//! One held run: a child, its deadline, its output and its reports to the journal; before it the wait for its turn, if the job is a
//! member of a rotation.
//!
//! The order matters: every deadline the keeper earns goes to the guard at once and waits for no report; reports go to the store in the
//! order of the events; the supervisor gets the end only after the tree is proved gone and the last output could be read. The supervisor
//! records the end, which releases the lease.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout};

use super::attend::{Attendant, Command, Ended, attend};
use super::child::{Cause, Child, ChildEvent, Spec};
use super::hold::{Hold, trusted_until};
use super::job_turn::{KeptTurn, Member, OwnTurn};
use super::keeper::Kept;
use super::nursery::Nursery;
use super::program::Program;
use super::report::Reporter;
use soloist_domain::job::Exit;
use soloist_domain::limits::{Limit, Limits};
use soloist_domain::rotation::TurnOutcome;
use soloist_domain::time::{Began, Boot};
use soloist_process::clock;
use soloist_store::Store;

/// Which of a run's holds is the lease; another is its turn.
const LEASE: usize = 0;
/// How often output and progress are reported.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How long it may take to look up the user of a script and to read its secrets.
const LOOKING_UP: Duration = Duration::from_secs(5);

/// What a run tells the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// The script runs.
    Started,
    /// The store says that the lease is another's: the script is being killed.
    LeaseLost,
    /// The store says that the turn is another's: the script is being killed.
    TurnLost,
    /// No process of the tree is left, as its guard says; `fenced`: it was killed because it was not held any longer. What else there
    /// is to do before [`News::Gone`] takes a moment, and long while the store is away.
    Dead {
        /// See there.
        fenced: bool,
    },
    /// It ended while it waited for its turn: nothing was started. The last piece of news.
    Unused,
    /// No process of the tree is left.
    Gone(Gone),
}

/// How a run ended, as seen by its guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    /// Of the script's first process; empty when it never started.
    pub exit: Exit,
    /// Killed in addition to the first.
    pub processes_killed: u32,
    /// What ended it; `None`: it could not be started.
    pub cause: Option<Cause>,
    /// The limit for which it was told to stop, if no other order to stop came before.
    pub limit: Option<Limit>,
    /// When the script started; `None`: it never did.
    pub began: Option<Began>,
}

impl Gone {
    /// Nothing was ever started.
    #[must_use]
    pub(super) fn unstarted() -> Self {
        Self { exit: Exit::default(), processes_killed: 0, cause: None, limit: None, began: None }
    }
}

/// Waits for the turn of a run, as long as no stop is ordered and the lease is held. `None` when that ended it.
async fn await_turn(
    member: &Member,
    kept: &Kept,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    tell: &impl Fn(News),
) -> Option<OwnTurn> {
    tokio::select! {
        biased;
        _stop = commands.recv() => None,
        () = kept.lease.lost() => {
            tell(News::LeaseLost);
            None
        }
        turn = member.take(&kept.lease) => Some(turn),
    }
}

/// What is run, and how.
pub(super) struct Order {
    /// The command, and under which lease.
    pub spec: Spec,
    /// From when on it counts as running.
    pub min_uptime: Duration,
    /// How long it may last and be silent.
    pub limits: Limits,
    /// Where its guard comes from; without one a guard is started for it.
    pub nursery: Option<Nursery>,
}

/// Drives a run to its end. `tell` is called with every piece of news; [`News::Gone`] or [`News::Unused`] is the last.
pub(super) async fn drive(
    store: Store,
    order: Order,
    mut kept: Kept,
    member: Option<Member>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    tell: impl Fn(News) + Send + 'static,
) {
    let Order { mut spec, min_uptime, limits, nursery } = order;
    let stop_grace = spec.program.stop_grace;
    let mut turn = None;
    if let Some(member) = member {
        let Some(own) = await_turn(&member, &kept, &mut commands, &tell).await else {
            return tell(News::Unused);
        };
        // The guard has as little time to kill in as the shorter lease leaves.
        if own.timing().ttl < spec.timing.ttl {
            spec.timing = own.timing();
        }
        turn = Some(own.keep());
    }
    let (program, prepared) = prepared(spec.program).await;
    spec.program = program;
    if let Err(error) = prepared {
        let mut reporter = Reporter::start(store, &spec, kept.told.clone());
        reporter.remark(error);
        reporter.finish().await;
        let gone = Gone::unstarted();
        pass(turn, &gone, false).await;
        return tell(News::Gone(gone));
    }
    let hidden = spec.program.entrusted.hidden.clone();
    let warm = match &nursery {
        Some(nursery) => nursery.take().await,
        None => None,
    };
    let turns = turn.iter_mut().map(|turn| &mut turn.hold);
    let mut holds: Vec<&mut Hold> = [&mut kept.lease].into_iter().chain(turns).collect();
    let deadline = trusted_until(&holds);
    let mut reporter = Reporter::start(store, &spec, kept.told.clone());
    let spawned = match warm {
        Some(warm) => Child::spawn_warm(warm, spec, deadline),
        None => Child::spawn(spec, deadline),
    };
    let (child, mut events) = match spawned {
        Ok(started) => started,
        Err(error) => {
            reporter.remark(format!("the guard could not be started: {error}"));
            reporter.finish().await;
            let gone = Gone::unstarted();
            pass(turn, &gone, false).await;
            tell(News::Gone(gone));
            return;
        }
    };
    let mut attending = Attending {
        reporter,
        commands: &mut commands,
        forgot: kept.forgot,
        tell: &tell,
        flush: every(REPORT_EVERY),
        up_at: Some(Instant::now() + min_uptime),
        stopped: false,
        limits,
        stop_grace,
        heard: None,
        limit: None,
    };
    let ended = attend(&child, &mut events, &mut holds, &mut attending).await;
    let Attending { mut reporter, stopped, limit, .. } = attending;
    let fenced = ended.as_ref().is_some_and(Ended::is_fenced);
    let Some(Ended { exit, processes_killed, cause, .. }) = ended else {
        // Not knowing is not proof: the lease must run out by itself.
        tracing::error!("a guard ended without proof of death; its lease is left to run out");
        return;
    };
    if cause.is_ok() {
        tell(News::Dead { fenced });
    }
    let mut gone = match cause {
        Ok(cause) => Gone { exit, processes_killed, cause: Some(cause), limit, began: None },
        Err(error) => {
            reporter.remark(hidden.redacted(error));
            Gone::unstarted()
        }
    };
    // The next may start now: this run's last lines need not be stored for that.
    pass(turn, &gone, stopped).await;
    gone.began = reporter.finish().await;
    tell(News::Gone(gone));
    // The supervisor hangs up when the end is recorded. Until then the guard stays: if this node dies in between, the
    // guard releases the lease.
    while commands.recv().await.is_some() {}
    child.dismiss();
}

/// Looks up what the script is entrusted with, off the threads that keep leases: a directory service or a network file
/// system may take its time.
async fn prepared(program: Program) -> (Program, Result<(), String>) {
    if program.entrusted.is_empty() {
        return (program, Ok(()));
    }
    let mut ready = program.clone();
    let looking = tokio::task::spawn_blocking(move || {
        let looked = ready.entrusted.prepare(&ready.node, &mut ready.env);
        (ready, looked)
    });
    match timeout(LOOKING_UP, looking).await {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(_)) | Err(_) => {
            let why = format!(
                "the script was not started: its user and secrets could not be looked up within {LOOKING_UP:?}"
            );
            (program, Err(why))
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut every = interval(period);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    every
}

/// What is done while the script runs: its reports, and what the supervisor asks.
struct Attending<'a, T> {
    reporter: Reporter,
    commands: &'a mut mpsc::UnboundedReceiver<Command>,
    /// Changes when the store forgot the run.
    forgot: watch::Receiver<()>,
    tell: &'a T,
    flush: Interval,
    /// When it counts as running; `None` once it does.
    up_at: Option<Instant>,
    /// The supervisor has asked it to stop.
    stopped: bool,
    limits: Limits,
    stop_grace: Duration,
    /// When the script started, and when it last said something.
    heard: Option<(Boot, Boot)>,
    /// Why it was told to stop, if it was for that.
    limit: Option<Limit>,
}

impl<T> Attending<'_, T> {
    /// Whether the script must be told to stop now, because it runs or is silent for too long: said once, and not of one
    /// that is stopping.
    fn is_over(&mut self) -> bool {
        let (Some((began, heard)), false) = (self.heard, self.stopped || self.limit.is_some())
        else {
            return false;
        };
        self.limit = self.limits.reached(began, heard, clock::boot());
        if let Some(limit) = self.limit {
            self.reporter.remark(limit.to_string());
            self.reporter.stopping(self.stop_grace);
            self.reporter.flush(false);
        }
        self.limit.is_some()
    }

    fn is_heard(&mut self) {
        if let Some((_, heard)) = &mut self.heard {
            *heard = clock::boot();
        }
    }
}

impl<T: Fn(News)> Attendant for Attending<'_, T> {
    async fn command(&mut self) -> Command {
        loop {
            let up_at = self.up_at;
            tokio::select! {
                biased;
                Ok(()) = self.forgot.changed() => self.reporter.again(),
                Some(command) = self.commands.recv() => {
                    if let Command::Stop(grace) = command {
                        self.stopped = true;
                        self.reporter.stopping(grace);
                    }
                    return command;
                }
                _ = self.flush.tick() => {
                    if self.is_over() {
                        return Command::Stop(self.stop_grace);
                    }
                    self.reporter.flush(false);
                }
                // A report without content: the version grows when `starting` turns into `running`.
                () = sleep_until(up_at.unwrap_or_else(Instant::now)), if up_at.is_some() => {
                    self.up_at = None;
                    self.reporter.flush(true);
                }
            }
        }
    }

    fn hear(&mut self, event: ChildEvent) {
        match event {
            ChildEvent::Started { pid } => {
                let now = clock::boot();
                self.heard = Some((now, now));
                self.reporter.started(pid);
                (self.tell)(News::Started);
            }
            ChildEvent::Line(line) => {
                self.is_heard();
                self.reporter.line(line);
            }
            ChildEvent::Progress(progress) => {
                self.is_heard();
                self.reporter.progress(progress);
            }
            ChildEvent::Heard => {
                self.is_heard();
                self.reporter.heard();
            }
            // `attend` handles the end.
            ChildEvent::Failed { .. } | ChildEvent::Gone { .. } => {}
        }
    }

    fn lost(&mut self, which: usize) {
        if which == LEASE {
            return (self.tell)(News::LeaseLost);
        }
        (self.tell)(News::TurnLost);
        self.reporter.remark("the turn is lost: the script is killed".to_owned());
    }
}

/// Passes the turn on, now that nothing of the run is left. One that was stopped has not failed.
async fn pass(turn: Option<KeptTurn>, gone: &Gone, stopped: bool) {
    let Some(turn) = turn else { return };
    let well = match gone.cause {
        Some(Cause::Itself) => gone.exit.is_success() || stopped,
        Some(Cause::Stopped | Cause::Kill) => stopped,
        Some(Cause::Deadline | Cause::GuardLost) | None => false,
    };
    turn.pass(if well { TurnOutcome::Done } else { TurnOutcome::Failed }).await;
}
