//! Jobs: looked at, switched, held, moved, crashed on purpose; their output, runs and leases.

use serde::Deserialize;
use serde_json::json;

use super::{Office, Server, not_found_if};
use soloist_config::JobConfig;
use soloist_domain::job::{Exit, JobRecord, LeaseRecord, RunEnd, State};
use soloist_domain::name::NodeName;
use soloist_domain::tick::Outcome;
use soloist_ops::drill::target;
use soloist_ops::jobs;
use soloist_ops::ticks::{self, RunAsk};
use soloist_process::clock;
use soloist_remote::{Call, address, part};
use soloist_store::accounts::Accounts as _;
use soloist_store::feed::Seen;
use soloist_store::jobs::Jobs as _;
use soloist_store::journal::Journal as _;
use soloist_store::leases::Leases as _;
use soloist_store::nodes::Nodes as _;
use soloist_store::ticks::TickBook as _;
use soloist_view::drill::{DrillView, warning};
use soloist_view::lists::{Held, Jobs, Runs};
use soloist_view::people::display_names;
use soloist_view::status::{Status, StatusRow};
use soloist_view::ticks::{NextTicks, TickList, all_ticks, next_ticks, page};
use soloist_view::words::Language;
use soloist_view::{HeldLeaseView, JobView, RunExit, RunView};

use super::super::{CommandContext, Failure};

/// What came of a switch.
pub(crate) struct Gave {
    /// Whose switch it was.
    pub(crate) user: String,
    /// Whether that changed anything.
    pub(crate) changed: bool,
    /// The job after it.
    pub(crate) job: JobView,
}

/// A drill that was ordered.
pub(crate) struct Ordered {
    pub(crate) drill: DrillView,
    /// Whose process crashes.
    pub(crate) from: String,
    /// The lease of that job, in milliseconds.
    pub(crate) ttl_ms: Option<u64>,
    /// No other node can take the job over.
    pub(crate) alone: bool,
}

/// How far a take-over has come.
pub(crate) struct TakeOver {
    pub(crate) job: JobView,
    /// The run that was crashed, if it is in the history.
    pub(crate) crashed: Option<RunView>,
    /// The newest drill.
    pub(crate) drill: Option<DrillView>,
}

#[derive(Deserialize)]
struct AskedRun {
    tick: String,
}

#[derive(Deserialize)]
struct Newest {
    drill: Option<DrillView>,
}

pub(super) fn at(job: &str, what: &str) -> String {
    format!("/api/v1/jobs/{}{what}", part(job))
}

impl Server {
    async fn job(&self, name: &str) -> Result<JobView, Failure> {
        self.get(at(name, "")).await
    }
}

impl CommandContext {
    async fn views(&self, jobs: &[&JobConfig]) -> Result<Vec<JobView>, Failure> {
        let seen = self.see(jobs).await?;
        let nodes = self.nodes().await?;
        let rotations = self.rotations(jobs).await?;
        let rotations = rotations.as_deref();
        let names = display_names(self.store.users().await?);
        let view = |(seen, job): (&Seen, &&JobConfig)| {
            JobView::of(seen, job, &nodes, rotations, Language::En, clock::boot())
                .with_names(&names)
        };
        Ok(seen.iter().zip(jobs).map(view).collect())
    }

    async fn view(&self, job: &JobConfig) -> Result<JobView, Failure> {
        let mut views = self.views(&[job]).await?;
        views
            .pop()
            .ok_or_else(|| Failure::Failed(format!("the store did not answer for {}", job.name)))
    }

    async fn rows(&self, jobs: &[&JobConfig]) -> Result<Vec<StatusRow>, Failure> {
        let seen = self.see(jobs).await?;
        let nodes = self.nodes().await?;
        let rotations = self.rotations(jobs).await?;
        let rotations = rotations.as_deref();
        let row = |(seen, job): (&Seen, &&JobConfig)| {
            StatusRow::of(seen, job, &nodes, rotations, clock::boot())
        };
        Ok(seen.iter().zip(jobs).map(row).collect())
    }

    async fn record(&self, job: &JobConfig) -> Result<JobRecord, Failure> {
        let mut jobs = self.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
        Ok(jobs.pop().unwrap_or_else(|| JobRecord::untouched(job.name.clone())))
    }
}

impl Office {
    /// The rows of the table: of all jobs, or of one.
    pub(crate) async fn status(&self, only: Option<&str>) -> Result<Vec<StatusRow>, Failure> {
        match self {
            Self::Store(context) => {
                let jobs = match only {
                    Some(name) => vec![context.job(name)?],
                    None => context.jobs(),
                };
                context.rows(&jobs).await
            }
            Self::Server(server) => {
                let Status { mut rows, .. } = server.get("/api/v1/status").await?;
                if let Some(name) = only {
                    if !rows.iter().any(|row| row.job == name) {
                        let known: Vec<&str> = rows.iter().map(|row| row.job.as_str()).collect();
                        return Err(no_job(name, &known));
                    }
                    rows.retain(|row| row.job == name);
                }
                Ok(rows)
            }
        }
    }

    /// All jobs.
    pub(crate) async fn jobs(&self) -> Result<Jobs, Failure> {
        match self {
            Self::Store(context) => Ok(Jobs { jobs: context.views(&context.jobs()).await? }),
            Self::Server(server) => server.get("/api/v1/jobs").await,
        }
    }

    /// One job.
    pub(crate) async fn job(&self, name: &str) -> Result<JobView, Failure> {
        match self {
            Self::Store(context) => context.view(context.job(name)?).await,
            Self::Server(server) => server.job(name).await,
        }
    }

    /// Switches a participation.
    pub(crate) async fn participate(
        &self,
        name: &str,
        user: Option<&str>,
        on: bool,
        reason: Option<&str>,
    ) -> Result<Gave, Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.actor(user).await?;
                let changed =
                    jobs::participate(&context.store, &actor, job, None, on, reason).await?;
                let job = context.view(job).await?;
                Ok(Gave { user: actor.user.to_string(), changed, job })
            }
            Self::Server(server) => {
                let user = match user {
                    Some(user) => user.to_owned(),
                    None => server.me().await?.name,
                };
                let takes_part =
                    |job: &JobView| job.participants.iter().any(|one| one.user == user);
                let before = takes_part(&server.job(name).await?);
                let body = json!({"on": on, "reason": reason, "user": user});
                let put = Call::put(at(name, "/participation")).with(&body);
                let job: JobView = server
                    .client
                    .ask(put)
                    .await
                    .map_err(|error| not_found_if(error, "there is no account"))?;
                Ok(Gave { changed: before != on, user, job })
            }
        }
    }

    /// Forbids a job; who did, and why, as it is kept.
    pub(crate) async fn hold(
        &self,
        name: &str,
        user: Option<&str>,
        reason: &str,
    ) -> Result<(String, String), Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.operator(user).await?;
                let reason = jobs::hold(&context.store, &actor, job, reason).await?;
                Ok((actor.user.to_string(), reason))
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let put = Call::put(at(name, "/hold")).with(&json!({"reason": reason}));
                let job: JobView = server.client.ask(put).await?;
                let hold = job.hold.ok_or_else(|| {
                    Failure::Failed(format!("{name} was resumed by another at the same time"))
                })?;
                Ok((hold.by, hold.reason))
            }
        }
    }

    /// Allows a job again; whether it was held, whether it had given up, and the job after it.
    pub(crate) async fn resume(
        &self,
        name: &str,
        user: Option<&str>,
    ) -> Result<(bool, bool, JobView), Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.operator(user).await?;
                let before = context.record(job).await?;
                jobs::resume(&context.store, &actor, job).await?;
                Ok((before.hold.is_some(), before.given_up, context.view(job).await?))
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let before = server.job(name).await?;
                let job = server.client.ask(Call::delete(at(name, "/hold")).repeatable()).await?;
                Ok((before.hold.is_some(), before.state == State::GivenUp, job))
            }
        }
    }

    /// Asks for a hand-over; the node that the job leaves.
    pub(crate) async fn hand_over(
        &self,
        name: &str,
        user: Option<&str>,
        to: Option<&NodeName>,
        reason: Option<&str>,
    ) -> Result<String, Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.operator(user).await?;
                Ok(jobs::hand_over(&context.store, &actor, job, to, reason).await?.to_string())
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let before = server.job(name).await?;
                let call = Call::post(at(name, "/move")).with(&because(json!({"to": to}), reason));
                let after: JobView = server
                    .client
                    .ask(call)
                    .await
                    .map_err(|error| not_found_if(error, "field to:"))?;
                let lease = before.lease.or(after.lease);
                Ok(lease.map_or_else(|| "its node".to_owned(), |lease| lease.node))
            }
        }
    }

    /// Orders the holder of a job to crash, and says on standard error what that means.
    pub(crate) async fn drill(
        &self,
        name: &str,
        user: Option<&str>,
        force: bool,
        reason: Option<&str>,
    ) -> Result<Ordered, Failure> {
        let warn = |node: &str| eprintln!("soloist: {}", warning(node));
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.operator(user).await?;
                let (force, warn) =
                    ((force, "--force"), |lease: &LeaseRecord| warn(lease.node.as_str()));
                let ordered = jobs::drill(&context.store, &actor, job, force, reason, warn);
                let jobs::Ordered { before, lease, drill } = ordered.await?;
                let alone = force.0 && target(&before, &context.nodes().await?, false, "").is_err();
                Ok(Ordered {
                    drill: DrillView::of(&job.name, &drill),
                    from: lease.node.to_string(),
                    ttl_ms: u64::try_from(lease.ttl.as_millis()).ok(),
                    alone,
                })
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let before = server.job(name).await?;
                let nodes = self.nodes().await?;
                let lease = before.lease.as_ref();
                let from = lease.map_or_else(|| "its node".to_owned(), |lease| lease.node.clone());
                let takes = |node: &&soloist_view::NodeView| {
                    node.alive && !node.draining && node.offers.iter().any(|job| job == name)
                };
                let alone = nodes.iter().filter(takes).all(|node| node.name == from);
                if lease.is_some() {
                    warn(&from);
                }
                let body = because(json!({"force": force}), reason);
                let call = Call::post(at(name, "/drill")).with(&body);
                let drill = match server.client.ask(call).await {
                    Err(soloist_remote::RemoteError::Refused { status: 409, detail }) if alone => {
                        return Err(Failure::Refused(detail.replace("with force", "with --force")));
                    }
                    // The node that was asked may die of it before it can answer; the others know the order.
                    Err(lost @ soloist_remote::RemoteError::Unreachable(_)) => {
                        let Newest { drill } = server.get(at(name, "/drill")).await?;
                        let token = before.lease.as_ref().map(|lease| lease.token);
                        drill.filter(|drill| Some(drill.token) == token).ok_or(lost)?
                    }
                    answer => answer?,
                };
                Ok(Ordered { drill, from, ttl_ms: None, alone: force && alone })
            }
        }
    }

    /// How far the take-over after a drill has come; `token` is of the lease that was crashed.
    pub(crate) async fn take_over(&self, name: &str, token: u64) -> Result<TakeOver, Failure> {
        match self {
            Self::Store(context) => {
                let config = context.job(name)?;
                let record = context.record(config).await?;
                let job = context.view(config).await?;
                let drill = record.drill.as_ref().map(|drill| DrillView::of(&record.name, drill));
                let runs = context.store.runs(&config.name, None, 20).await?;
                let crashed = runs.into_iter().find(|run| run.token.0 == token);
                Ok(TakeOver { job, crashed: crashed.map(RunView::from), drill })
            }
            Self::Server(server) => {
                let Newest { drill } = server.get(at(name, "/drill")).await?;
                let Runs { runs } = server.get(at(name, "/runs?limit=20")).await?;
                let crashed = runs.into_iter().find(|run| run.token == token);
                Ok(TakeOver { job: server.job(name).await?, crashed, drill })
            }
        }
    }

    /// The newest runs.
    pub(crate) async fn runs(&self, name: &str, limit: usize) -> Result<Vec<RunView>, Failure> {
        match self {
            Self::Store(context) => {
                let job = &context.job(name)?.name;
                let runs = context.store.runs(job, None, limit).await?;
                Ok(runs.into_iter().map(RunView::from).collect())
            }
            Self::Server(server) => {
                let mut all: Vec<RunView> = Vec::new();
                while all.len() < limit {
                    let rest = limit - all.len();
                    let query = [
                        ("limit", Some(rest.to_string())),
                        ("before", all.last().map(|run| run.id.clone())),
                    ];
                    let Runs { runs } = server.get(address(&at(name, "/runs"), &query)).await?;
                    if runs.is_empty() {
                        break;
                    }
                    all.extend(runs);
                }
                Ok(all)
            }
        }
    }

    /// The next ticks.
    pub(crate) async fn next_ticks(&self, name: &str, count: usize) -> Result<NextTicks, Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let scheduled = ticks::schedule(job)?;
                let now = context.store.snapshot(std::slice::from_ref(&job.name)).await?.at;
                Ok(next_ticks(scheduled, now, count, Language::En))
            }
            Self::Server(server) => server.get(at(name, &format!("/next?count={count}"))).await,
        }
    }

    /// What became of ticks.
    pub(crate) async fn ticks(
        &self,
        name: &str,
        limit: usize,
        outcome: Option<&str>,
    ) -> Result<TickList, Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let outcome = outcome.map(|word| word.parse::<Outcome>()).transpose();
                let outcome = outcome.map_err(|why| Failure::Usage(format!("--outcome: {why}")))?;
                let entries = context.store.ticks(&job.name).await?;
                let snapshot = context.store.snapshot(std::slice::from_ref(&job.name)).await?;
                let untouched = || JobRecord::untouched(job.name.clone());
                let record = snapshot.jobs.into_iter().next().unwrap_or_else(untouched);
                let all = all_ticks(entries, job.schedule.as_ref(), &record, snapshot.at);
                Ok(page(&all, limit, outcome))
            }
            Self::Server(server) => {
                let limit = limit.to_string();
                let query = [("limit", Some(limit)), ("outcome", outcome.map(ToOwned::to_owned))];
                server.get(address(&at(name, "/ticks"), &query)).await
            }
        }
    }

    /// Asks for a run now; the name of its tick.
    pub(crate) async fn trigger(
        &self,
        name: &str,
        user: Option<&str>,
        ask: &RunAsk,
    ) -> Result<String, Failure> {
        match self {
            Self::Store(context) => {
                let job = context.job(name)?;
                let actor = context.operator(user).await?;
                Ok(ticks::ask_run(&context.store, &actor, job, ask).await?.0)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let RunAsk { params, reason, request, tick } = ask;
                let body = json!({
                    "params": params, "reason": reason, "request_id": request, "tick": tick,
                });
                let asked: AskedRun = server
                    .client
                    .ask(Call::post(at(name, "/runs")).with(&body).repeatable())
                    .await?;
                Ok(asked.tick)
            }
        }
    }

    /// Everything that is held.
    pub(crate) async fn leases(&self) -> Result<Held, Failure> {
        match self {
            Self::Store(context) => {
                let held = context.store.held().await?;
                let jobs = context.jobs();
                let is_job = |name: &_| jobs.iter().any(|job| job.name == *name);
                let nodes = context.store.nodes().await?;
                let living = nodes.iter().filter(|node| node.is_alive());
                let watches: Vec<_> =
                    living.filter_map(|node| node.beat.watched.as_ref()).collect();
                let is_watched =
                    |name: &_, token| watches.iter().any(|watched| watched.has(name, token));
                let view = |held| HeldLeaseView::of(held, is_job, is_watched);
                Ok(Held { leases: held.iter().map(view).collect(), next_after: None })
            }
            Self::Server(server) => {
                let mut all: Held = server.get("/api/v1/leases").await?;
                while let Some(after) = all.next_after.take() {
                    let page: Held = server.get(&format!("/api/v1/leases?after={after}")).await?;
                    all.leases.extend(page.leases);
                    all.next_after = page.next_after;
                }
                Ok(all)
            }
        }
    }
}

/// Whether the guard gave the lease of a crashed run back: the next holder closes a run whose lease ran out, and knows no exit
/// of it.
pub(crate) fn is_given_back(run: &RunView) -> bool {
    let nothing = RunExit::from(Exit::default());
    run.end == Some(RunEnd::Lost) && run.exit != nothing
}

fn no_job(name: &str, known: &[&str]) -> Failure {
    Failure::NotFound(match known {
        [] => format!("there is no job {name:?}: no node has any job that you may see"),
        known => format!("there is no job {name:?}; the nodes have: {}", known.join(", ")),
    })
}

/// `body` with a reason, if there is one: a node of an older version takes bodies without.
fn because(mut body: serde_json::Value, reason: Option<&str>) -> serde_json::Value {
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    body
}
