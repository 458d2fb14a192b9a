//! The supervisor: one loop that feeds facts and results to [`step`] and carries out what it answers.
//!
//! It decides nothing: `domain` decides who may run, when to stop and when to retry. Calls to the store and runs are tasks beside the
//! loop; their results come back through one channel. It does not renew, does not read the store's state, and never uses the web.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::asking::{Asked, Question, ask, give_back};
use super::attend::Command;
use super::cluster_view::ClusterView;
use super::job_run::{self, News, Order};
use super::job_turn::Member;
use super::local_job::LocalJob;
use super::node_context::NodeContext;
use soloist_config::Config;
use soloist_domain::lease::{Token, WentBack};
use soloist_domain::name::JobName;
use soloist_domain::supervise::{Attempt, Doing, Effect, Facts, Input, Run, step};
use soloist_domain::time::{Began, Boot, StoreTime};
use soloist_process::clock;
use soloist_process::sabotage::{Bug, planted};
use soloist_store::feed::{Change, Feed};

/// How long a shutdown waits beyond the longest stop before it leaves a lease to run out.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the composition root may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Run what may be run.
    Serve,
    /// Hand everything over, then return.
    HandOver,
    /// The same without grace.
    Hurry,
}

/// Runs until `mode` asks for a hand-over and every script is proved gone. `holds` is kept up to date. A newer
/// configuration in `config` changes no run under way; the run of a job that it has no more is stopped.
pub async fn supervise(
    around: NodeContext,
    mut config: watch::Receiver<Arc<Config>>,
    feed: Feed,
    holds: watch::Sender<BTreeSet<JobName>>,
    mode: watch::Receiver<Mode>,
) {
    let (back, results) = mpsc::unbounded_channel();
    let jobs = config.borrow_and_update().jobs.clone();
    let index = jobs.iter().enumerate().map(|(i, job)| (job.name.clone(), i)).collect();
    let jobs = jobs.into_iter().map(LocalJob::new).collect();
    let changes = feed.subscribe();
    let unfit = Arc::clone(&around.unfit.borrow());
    let cluster = ClusterView::new(around.node.clone(), feed, unfit);
    let releases = JoinSet::new();
    let supervisor = Supervisor { config, around, cluster, jobs, index, back, holds, releases };
    supervisor.run(results, changes, mode).await;
}

/// Something that came back to the loop, for a job and the attempt it belongs to.
struct Back {
    job: usize,
    attempt: Attempt,
    what: What,
}

enum What {
    Asked(Asked),
    Recorded,
    News(News),
}

struct Supervisor {
    /// The configuration in force.
    config: watch::Receiver<Arc<Config>>,
    around: NodeContext,
    cluster: ClusterView,
    /// Also jobs that a newer configuration has no more: their numbers are in use.
    jobs: Vec<LocalJob>,
    index: HashMap<JobName, usize>,
    back: mpsc::UnboundedSender<Back>,
    holds: watch::Sender<BTreeSet<JobName>>,
    releases: JoinSet<()>,
}

impl Supervisor {
    async fn run(
        mut self,
        mut results: mpsc::UnboundedReceiver<Back>,
        mut changes: broadcast::Receiver<Change>,
        mut mode: watch::Receiver<Mode>,
    ) {
        self.refresh_all();
        let mut give_up_at: Option<Boot> = None;
        loop {
            if self.cluster.leaving && self.is_idle() {
                let all = std::mem::take(&mut self.releases).join_all();
                if timeout(PATIENCE, all).await.is_err() {
                    tracing::warn!("leaving although an unused lease could not be given back");
                }
                return;
            }
            if give_up_at.is_some_and(|at| clock::boot() >= at) {
                tracing::error!(
                    "leaving although an end could not be recorded; its lease runs out by itself"
                );
                return;
            }
            let next = self.jobs.iter().filter_map(|local| local.wake).chain(give_up_at).min();
            let pause = next.map_or(Duration::from_secs(3_600), |at| at.since(clock::boot()));
            tokio::select! {
                biased;
                Some(back) = results.recv() => self.take(back),
                change = changes.recv() => match change {
                    Ok(Change::Job(name)) => {
                        if let Some(&job) = self.index.get(&name) {
                            self.refresh(job);
                        }
                    }
                    Ok(Change::Nodes | Change::Resynced) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.refresh_all();
                    }
                    Ok(Change::Accounts | Change::Reachable(_) | Change::Wake(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                Ok(()) = mode.changed() => {
                    let mode = *mode.borrow_and_update();
                    self.cluster.leaving = mode >= Mode::HandOver;
                    if self.cluster.leaving && give_up_at.is_none() {
                        let grace = self.jobs.iter().map(|local| local.config.stop_grace).max();
                        give_up_at = Some(clock::boot() + grace.unwrap_or_default() + PATIENCE);
                    }
                    self.refresh_all();
                    if mode == Mode::Hurry {
                        for job in 0..self.jobs.len() {
                            self.step(job, Input::Hurry);
                        }
                    }
                }
                Ok(()) = self.config.changed() => self.reload(),
                Ok(()) = self.around.unfit.changed() => {
                    self.cluster.unfit = Arc::clone(&self.around.unfit.borrow_and_update());
                    self.refresh_all();
                }
                () = tokio::time::sleep(pause) => self.tick(),
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.jobs.iter().all(|local| matches!(local.slot.doing, Doing::Idle { .. }))
    }

    fn tick(&mut self) {
        let now = clock::boot();
        for job in 0..self.jobs.len() {
            if self.jobs[job].wake.is_some_and(|at| at <= now) {
                self.jobs[job].wake = None;
                self.step(job, Input::Tick);
            }
        }
    }

    /// Takes the configuration in force.
    fn reload(&mut self) {
        let config = Arc::clone(&self.config.borrow_and_update());
        for local in &mut self.jobs {
            local.removed = true;
        }
        for job in &config.jobs {
            match self.index.get(&job.name) {
                Some(&known) => self.jobs[known].redefine(job),
                None => {
                    self.index.insert(job.name.clone(), self.jobs.len());
                    self.jobs.push(LocalJob::new(job.clone()));
                }
            }
        }
        self.refresh_all();
    }

    fn refresh_all(&mut self) {
        self.cluster.look_at_nodes();
        for job in 0..self.jobs.len() {
            self.refresh(job);
        }
    }

    fn refresh(&mut self, job: usize) {
        let local = &self.jobs[job];
        let Some(seen) = self.cluster.feed.job(&local.config.name) else {
            // The feed does not follow it any more.
            if local.removed && local.slot.facts.eligible {
                let facts = Facts { eligible: false, ..local.slot.facts };
                self.step(job, Input::Facts(facts));
            }
            return;
        };
        local.obey_a_drill(&seen.record);
        if !local.newest().is_external() {
            self.cluster.note_loss(&seen);
        }
        let facts = self.cluster.facts(local, &seen);
        if let Err(error) = self.jobs[job].tokens.read(seen.record.token) {
            self.alarm(
                job,
                error,
                "the store forgot the newest token; greater ones are still granted",
            );
        }
        let local = &mut self.jobs[job];
        local.anothers_until = facts.held_until.or(local.anothers_until);
        local.willing_since = match facts.wanted && facts.eligible {
            true => local.willing_since.or_else(|| Some(clock::boot())),
            false => None,
        };
        if facts != self.jobs[job].slot.facts {
            self.step(job, Input::Facts(facts));
        }
    }

    fn take(&mut self, back: Back) {
        let Back { job, attempt, what } = back;
        if self.jobs[job].slot.attempt != attempt {
            return;
        }
        match what {
            What::Asked(Asked::Granted { token, since, sent, tick }) => {
                if let Some(tick) = &tick {
                    let name = &self.jobs[job].config.name;
                    self.cluster.feed.granted(name, tick.sight.clone());
                }
                self.jobs[job].took(tick);
                self.granted(job, token, since, sent);
            }
            What::Asked(Asked::Refused(wait)) => self.step(job, Input::Refused { wait }),
            What::Asked(Asked::Unknown) => self.step(job, Input::AcquireUnknown),
            What::Recorded => {
                self.jobs[job].commands = None;
                self.step(job, Input::Recorded);
            }
            What::News(News::Started) => {
                self.jobs[job].started = Some(clock::boot());
                self.taken_over(job);
            }
            What::News(News::Dead { fenced }) => {
                let local = &self.jobs[job];
                self.cluster.feed.ended_here(&local.config.name, local.held, fenced);
            }
            What::News(News::TurnLost) => self.jobs[job].lost = true,
            What::News(News::Unused) => {
                let local = &mut self.jobs[job];
                local.unused = true;
                self.around.keeper.forget(&local.owner);
                self.step(job, Input::Gone);
            }
            What::News(News::LeaseLost) => {
                self.jobs[job].lost = true;
                self.step(job, Input::LeaseLost);
            }
            What::News(News::Gone(gone)) => {
                let local = &mut self.jobs[job];
                local.gone = Some(gone);
                self.around.keeper.forget(&local.owner);
                self.step(job, Input::Gone);
            }
        }
    }

    fn granted(&mut self, job: usize, token: Token, since: StoreTime, sent: Boot) {
        if let Err(error) = self.jobs[job].tokens.grant(token) {
            self.alarm(job, error, "not starting: look whether every node uses the same store");
            self.give_back(job);
            let wait = self.jobs[job].config.timing.ttl;
            return self.step(job, Input::Refused { wait });
        }
        let local = &mut self.jobs[job];
        let sent = if planted(Bug::TrustFromReply) { clock::boot() } else { sent };
        let trusted_until = local.config.timing.trusted_until(sent);
        local.asked = sent;
        local.granted = Began { boot: sent, at: Some(since) };
        self.step(job, Input::Granted { token, trusted_until });
    }

    /// This node does now what the one that was lost did.
    fn taken_over(&mut self, job: usize) {
        if let Some(since) = self.jobs[job].vacant_since.take() {
            self.around.metrics.takeover(clock::boot().since(since));
        }
    }

    fn step(&mut self, job: usize, input: Input) {
        // Between two runs, and before anything is asked for the next.
        let idle = matches!(self.jobs[job].slot.doing, Doing::Idle { .. });
        if idle || input == Input::Recorded {
            self.jobs[job].take_newest();
        }
        let stopping = matches!(
            self.jobs[job].slot.doing,
            Doing::Holding { run: Run::Stopping | Run::Killing, .. }
        );
        let held = self.jobs[job].is_held();
        let effects = step(&mut self.jobs[job].slot, input, clock::boot());
        for effect in effects {
            match effect {
                Effect::Wake(at) => self.jobs[job].wake = Some(at),
                Effect::Acquire(attempt) => self.acquire(job, attempt),
                Effect::Release(_) => self.give_back(job),
                Effect::Start(attempt) => self.start(job, attempt),
                Effect::Stop => {
                    self.command(job, Command::Stop(self.jobs[job].config.stop_grace));
                    if planted(Bug::ReleaseBeforeProof) {
                        self.around.keeper.forget(&self.jobs[job].owner);
                        self.give_back(job);
                    }
                }
                Effect::Kill => self.command(job, Command::Kill),
                Effect::RecordEnd(attempt) => self.record_end(job, attempt, stopping),
            }
        }
        let holds = self.jobs[job].is_held();
        if holds != held {
            let name = &self.jobs[job].config.name;
            self.holds.send_modify(|all| match holds {
                true => drop(all.insert(name.clone())),
                false => drop(all.remove(name)),
            });
        }
    }

    fn command(&self, job: usize, command: Command) {
        let local = &self.jobs[job];
        tracing::info!(job = %local.config.name, run = %local.run, ?command, "stopping the script");
        if let Some(commands) = &local.commands {
            // A run that is gone already needs no command.
            commands.send(command).ok();
        }
    }

    fn acquire(&mut self, job: usize, attempt: Attempt) {
        if self.jobs[job].begin_attempt(attempt) {
            self.jobs[job].vacant_since = self.cluster.vacant_since(&self.jobs[job]);
        }
        let local = &self.jobs[job];
        let despite_move = self.cluster.has_void_move(&local.config.name);
        let question = Question {
            lease: local.request(&self.around.node, despite_move),
            schedule: local.config.schedule.as_ref().map(|scheduled| scheduled.law.clone()),
            seen: self.cluster.feed.sight(&local.config.name),
        };
        let patience = local.config.timing.store_timeout;
        let (store, back) = (self.around.store.clone(), self.back.clone());
        tokio::spawn(async move {
            let what = What::Asked(ask(&store, &question, patience).await);
            drop(back.send(Back { job, attempt, what }));
        });
    }

    fn alarm(&self, job: usize, error: WentBack, what: &'static str) {
        tracing::error!(job = %self.jobs[job].config.name, %error, "{what}");
        self.around.metrics.token_went_back();
    }

    fn give_back(&mut self, job: usize) {
        let local = &self.jobs[job];
        let (name, owner) = (local.config.name.clone(), local.owner.clone());
        let store = self.around.store.clone();
        while self.releases.try_join_next().is_some() {}
        self.releases.spawn(async move { give_back(&store, &name, &owner).await });
    }

    fn start(&mut self, job: usize, attempt: Attempt) {
        let around = self.around.clone();
        let local = &mut self.jobs[job];
        let Doing::Holding { token, .. } = local.slot.doing else { return };
        local.begin(token);
        let config = Arc::clone(&local.config);
        let member = Member::of(&around.turns, &config);
        match &config.rotation {
            Some(rotation) => {
                tracing::info!(job = %config.name, run = %local.run, %token, %rotation, "waiting for the turn");
            }
            None => {
                tracing::info!(job = %config.name, run = %local.run, %token, "starting the script");
            }
        }
        let kept = around.keeper.keep(local.renewal(&around.node), config.timing, local.asked);
        let spec = local.spec(&around);
        let (commands, inbox) = mpsc::unbounded_channel();
        local.commands = Some(commands);
        let back = self.back.clone();
        let tell = move |news| drop(back.send(Back { job, attempt, what: What::News(news) }));
        let waits = member.is_some();
        let NodeContext { store, nursery, .. } = around;
        let order =
            Order { spec, min_uptime: config.backoff.min_uptime, limits: config.limits(), nursery };
        tokio::spawn(job_run::drive(store, order, kept, member, inbox, tell));
        if waits {
            // The lost node is not the cause of what it waits for now.
            self.taken_over(job);
        }
    }

    fn record_end(&self, job: usize, attempt: Attempt, stopping: bool) {
        let local = &self.jobs[job];
        let crashes =
            self.cluster.feed.job(&local.config.name).map_or(0, |seen| seen.record.crashes);
        let last = local.last(crashes, stopping, &self.around.metrics);
        let (store, back) = (self.around.store.clone(), self.back.clone());
        tokio::spawn(async move {
            last.write(&store).await;
            drop(back.send(Back { job, attempt, what: What::Recorded }));
        });
    }
}
