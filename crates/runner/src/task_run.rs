//! One claimed task: its lease extended, its command guarded, its end turned into a result.
//!
//! The lease is trusted as a job's is: from before the request was sent, and for less than it lasts. That end is the guard's deadline, so
//! the command is gone before another collector can get the task, whatever happens to this process or to the store. Each extension lasts
//! as long as the lease that was granted.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::attend::{Attendant, Command, Ended, attend};
use super::child::{Cause, Child, ChildEvent, Spec, Streams, Work};
use super::collector::{ASK_AGAIN, Collector, Stop};
use super::command::say;
use super::hold::{Hold, Renew, Renewed};
use super::program::Program;
use super::trouble::Trouble;
use super::work_source::{Extended, WorkSource};
use soloist_domain::dispatch::TaskOutcome;
use soloist_domain::job::Exit;
use soloist_domain::lease::Timing;
use soloist_domain::name::{JobName, Owner, RunId, SourceName};
use soloist_domain::time::{Boot, Stamp, StoreTime};
use soloist_process::clock;
use soloist_store::dispatch::{ClaimId, Handed, LONGEST_ERROR, Report, TaskId};

/// TERM goes out so long before a command is killed because its lease could not be extended.
const LAST_GRACE: Duration = Duration::from_secs(2);
/// An answer that came so soon did not wait.
const AT_ONCE: Duration = Duration::from_millis(50);
/// How long the first extension may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// If neither store nor node answers about a task for this long, it is left to its lease.
const LONGEST_DOUBT: Duration = Duration::from_secs(60);
/// A token holds the millisecond of its grant: so far may the lease that follows from it be off.
const ROUNDING: Duration = Duration::from_millis(50);

/// A task as it was claimed.
pub(super) struct ClaimedTask {
    pub(super) claim: ClaimId,
    pub(super) task: Handed,
    pub(super) lease_until: Stamp,
    /// When the request was first sent that was answered with it.
    pub(super) sent: Boot,
    /// How long it is kept from then on, if that was asked.
    pub(super) lease: Option<Duration>,
}

/// What came of it.
pub(super) enum End {
    /// To be reported; then the guard may go.
    Result(Report, Option<Child>),
    /// To be returned, not started.
    Unworked(Option<Child>),
    /// Another has it, or will have.
    Lost,
    /// The command cannot be started here: no other task will fare better.
    NoCommand(String),
}

impl ClaimedTask {
    /// Whether it is still held. A request that waited at a node is no measure for trust, as its answer may be old or young: so
    /// the claim is extended once, and the trust counts from before that.
    pub(super) async fn is_fresh(&mut self, work_source: &WorkSource) -> bool {
        if !work_source.waits() || clock::boot().since(self.sent) < AT_ONCE {
            return true;
        }
        loop {
            let sent = clock::boot();
            match work_source.extend(&self.claim, &self.task.id, PATIENCE).await {
                Ok(Extended::Kept(lease)) => {
                    (self.sent, self.lease) = (sent, lease.or(self.lease));
                    return true;
                }
                Ok(Extended::Lost) | Err(Trouble::NotFound(_)) => return false,
                // Another node may know; the lease ends the matter.
                Err(Trouble::Away(_)) if clock::boot().since(self.sent) < LONGEST_DOUBT => {
                    sleep(ASK_AGAIN).await;
                }
                Err(error) => {
                    say(&format!("task {} is not worked on: {error}", self.task.key));
                    return false;
                }
            }
        }
    }

    /// Runs the command, to the end of its whole tree.
    pub(super) async fn work(&self, collector: &Collector, known: Option<Duration>) -> End {
        let timing = match self.timing(collector, known).await {
            Ok(timing) => timing,
            Err(why) => {
                say(&format!("task {} is given back: {why}", self.task.key));
                sleep(Duration::from_secs(1)).await;
                return End::Unworked(None);
            }
        };
        let deadline = timing.trusted_until(self.sent);
        if deadline <= clock::boot() {
            say(&format!("task {} is given back: it came too late to be trusted", self.task.key));
            return End::Unworked(None);
        }
        let (child, mut events) = match Child::spawn(self.spec(collector, timing), deadline) {
            Ok(spawned) => spawned,
            Err(error) => return End::NoCommand(format!("a guard cannot be started: {error}")),
        };
        let mut hold = Extending::keep(collector, self, timing);
        let stop = collector.stop.subscribe();
        let mut attending = Attending { stop, cut_short: false, last_line: None };
        let ended = attend(&child, &mut events, &mut [&mut hold], &mut attending).await;
        hold.end();
        self.end(ended, child, &hold, attending)
    }

    /// The times that follow from the lease under which this was granted: the rules may have changed since they were
    /// read. Never longer than the lease really is, as a token is never older than its grant.
    async fn timing(
        &self,
        collector: &Collector,
        known: Option<Duration>,
    ) -> Result<Timing, String> {
        let timing =
            |lease| Timing::from_ttl(lease).map_err(|_| too_short(&self.task.source, lease));
        if let Some(lease) = self.lease {
            return timing(lease);
        }
        let granted = i64::try_from(self.task.token.0 / 1_024).unwrap_or(i64::MAX);
        let lease = self.lease_until.since(Stamp::from(StoreTime(granted)));
        let near = |known: Duration| lease + ROUNDING >= known && lease <= known + ROUNDING;
        timing(match known {
            Some(known) if near(known) => lease.min(known),
            _ => {
                let read = collector.work_source.lease_of(&self.task.source).await;
                // Who may not look at sources goes by the grant alone.
                read.map_err(|error| error.to_string())?.unwrap_or(lease)
            }
        })
    }

    fn spec(&self, collector: &Collector, timing: Timing) -> Spec {
        let with = &collector.with;
        let Handed { id, key, source, payload, token, attempt } = self.task.clone();
        let own = [
            ("SOLOIST_TASK", id.0.clone()),
            ("SOLOIST_TASK_KEY", key),
            ("SOLOIST_TASK_TOKEN", token.to_string()),
            ("SOLOIST_SOURCE", source.to_string()),
            ("SOLOIST_ATTEMPT", attempt.to_string()),
            ("SOLOIST_COLLECTOR", with.collector.to_string()),
        ];
        #[expect(clippy::expect_used, reason = "both follow the same pattern")]
        let job = JobName::new(source.as_str()).expect("a source's name is a name");
        Spec {
            program: Program { stop_grace: LAST_GRACE, ..with.program.clone().with(own) },
            job,
            run: RunId(ulid::Ulid::generate().to_string()),
            token,
            owner: Owner(String::new()),
            timing,
            streams: Streams::Relayed(collector.relay.clone()),
            work: Work::Task { id, input: payload },
        }
    }

    /// What is made of the end of the command, whose guard is `child`.
    fn end(&self, ended: Option<Ended>, child: Child, hold: &Hold, attending: Attending) -> End {
        let key = &self.task.key;
        let Some(Ended { exit, cause, lost, .. }) = ended else {
            say(&format!(
                "the guard of task {key} ended without proof that its command is gone: its lease is left to run out"
            ));
            return End::Lost;
        };
        match cause {
            Err(error) => {
                child.dismiss();
                let in_time = clock::boot() < hold.trusted_until();
                if in_time { End::NoCommand(error) } else { End::Lost }
            }
            Ok(_) if lost => {
                say(&format!("task {key} was lost to another: its command was killed"));
                child.dismiss();
                End::Lost
            }
            // One that ended by itself just before it would have been killed has worked.
            Ok(_) if attending.cut_short && exit.code.is_none() => End::Unworked(Some(child)),
            Ok(cause) => End::Result(self.report(exit, cause, attending.last_line), Some(child)),
        }
    }

    fn report(&self, exit: Exit, cause: Cause, last_line: Option<String>) -> Report {
        let by = match (cause, exit) {
            (Cause::Deadline, _) => {
                "was killed, because its lease could not be extended".to_owned()
            }
            (Cause::GuardLost, _) => "was killed, because its guard was lost".to_owned(),
            (_, Exit { code: Some(code), .. }) => format!("ended with exit code {code}"),
            (_, Exit { signal, .. }) => format!("was killed by signal {}", signal.unwrap_or(0)),
        };
        // A command that was told to end because its lease does has not failed, whatever its exit code is.
        let out_of_time = cause == Cause::Deadline;
        let outcome = match TaskOutcome::of(&exit) {
            TaskOutcome::Dead if out_of_time => TaskOutcome::Retry,
            outcome => outcome,
        };
        let error = (outcome != TaskOutcome::Done).then(|| {
            let then = if outcome == TaskOutcome::Dead { "never" } else { "to be" };
            say(&format!("task {} {by}: {then} tried again", self.task.key));
            one_line(last_line.unwrap_or(by))
        });
        let delay = (out_of_time && outcome == TaskOutcome::Retry).then_some(Duration::ZERO);
        Report { id: self.task.id.clone(), token: self.task.token, outcome, delay, error }
    }
}

/// What must be said of a source whose leases are too short for this.
pub(super) fn too_short(source: &SourceName, lease: Duration) -> String {
    format!(
        "the lease of source {source} is {lease:?}, too short to extend it and to kill a command in time: use 1s or more (soloist source set {source} --lease 30s)"
    )
}

fn one_line(text: String) -> String {
    let mut text = text.replace(|c: char| c.is_control(), " ");
    let mut end = text.len().min(LONGEST_ERROR);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// What is done while the command runs: it is killed when this process is to stop and the grace is over.
struct Attending {
    stop: watch::Receiver<Stop>,
    cut_short: bool,
    /// The last line on standard error.
    last_line: Option<String>,
}

impl Attendant for Attending {
    async fn command(&mut self) -> Command {
        if self.cut_short {
            std::future::pending::<()>().await;
        }
        Stop::overdue(&mut self.stop).await;
        self.cut_short = true;
        Command::Kill
    }

    fn hear(&mut self, event: ChildEvent) {
        if let ChildEvent::Line(line) = event {
            self.last_line = Some(line.text);
        }
    }
}

/// The extension of one claim.
struct Extending {
    work_source: WorkSource,
    claim: ClaimId,
    id: TaskId,
    source: SourceName,
    /// How long it was granted for.
    lease: Duration,
    /// How long an extension may take.
    patience: Duration,
}

impl Extending {
    fn keep(collector: &Collector, of: &ClaimedTask, timing: Timing) -> Hold {
        let (claim, id, source) = (of.claim.clone(), of.task.id.clone(), of.task.source.clone());
        let (work_source, timing) = (collector.work_source.clone(), paced(timing));
        let (lease, patience) = (timing.ttl, timing.store_timeout);
        let extending = Self { work_source, claim, id, source, lease, patience };
        Hold::renewed_by(extending, timing, of.sent)
    }

    async fn extend(&self) -> Result<Renewed, Trouble> {
        let extended = self.work_source.extend(&self.claim, &self.id, self.patience).await?;
        let Extended::Kept(lease) = extended else { return Ok(Renewed::Lost) };
        let lease = lease.unwrap_or(self.lease);
        Ok(match Timing::from_ttl(lease) {
            Ok(timing) => Renewed::Kept(paced(timing)),
            // The command lives until the end that was trusted before.
            Err(_) => Renewed::Unknown(too_short(&self.source, lease)),
        })
    }
}

/// Claims are many and long: three extensions a lease, of two calls each.
fn paced(timing: Timing) -> Timing {
    let (renew_every, store_timeout) = (timing.ttl / 3, timing.store_timeout * 2);
    Timing { renew_every, store_timeout, ..timing }
}

impl Renew for Extending {
    async fn renew(&mut self) -> Renewed {
        match self.extend().await {
            Ok(renewed) => renewed,
            Err(Trouble::NotFound(_)) => Renewed::Lost,
            Err(error) => Renewed::Unknown(error.to_string()),
        }
    }

    fn complain(&self, why: &str) {
        say(&format!("cannot extend the lease of a task of {}: {why}", self.source));
    }
}
