//! Switches, leases, runs, moves, drills, and crashes of the store: every store answers as the pure transitions of
//! `domain::transition` do, which are played beside it (`law`), by two processes that remember old records.
//!
//! On the store in memory all is compared to the millisecond. A real store says when it answered; its instants are compared as
//! exactly as that is known, and a step that lies too close to the end of a lease, a wait, a move or a quarantine proves nothing, and
//! ends its history.
//!
//! | store | what a crash is | and leaves |
//! | --- | --- | --- |
//! | memory | another server | all, doubted; or nothing |
//! | SQLite | both processes end and begin anew | all |
//! | Redis | `kill -9` of a server of its own, and its start | all, doubted (with its append-only file); or nothing |
//! | PostgreSQL, MariaDB | `kill -9` of a server of its own, and its start | all |
//! | cluster | both processes begin anew: other tests use its servers | all |

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use soloist::clock;
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::journal::RunEntry;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::{Began, Boot, StoreTime};
use soloist::domain::transition::{drill, handover, lease, participation, run};
use soloist::store::jobs::{Jobs, Snapshot};
use soloist::store::journal::{Ended, Journal, Started, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases, Renewal, Renewed};
use soloist::store::{For, Options, Store, StoreError};
use soloist_store_memory::World;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::law::{Crash, Law};
use super::{Kind, MS, RedisServer, enough, open, pass, seeds, unit};
use crate::conformance::{patient, unique};
use crate::support::cluster::RedisCluster;
use crate::support::machine::judged;
use crate::support::mariadb::MariaServer;
use crate::support::postgres::PostgresServer;
use crate::support::wait::PATIENCE;

const STEPS: usize = 120;
/// In short times.
const TTL: u32 = 400;
/// Of a lease or a wait that ends so soon nobody knows on which side of its end a step lies.
const CLOSE: Duration = Duration::from_millis(12);

/// One thing that happens. What is about a grant names one that was answered.
#[derive(Debug, Clone)]
enum Act {
    Switch(UserName, bool),
    Hold,
    Resume,
    Acquire(Acquire),
    Renew(Renewal),
    Release(Owner),
    Start(Started),
    Stop(Token, Duration),
    End(Ended),
    Move(Option<NodeName>, Duration),
    Drill(Token),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Changed(bool),
    Acquired(Acquired),
    Renewed(Renewed),
    At(Option<StoreTime>),
    Done,
    Stale(Token, Token),
}

/// What a player knows of a grant.
#[derive(Debug, Clone)]
struct Grant {
    owner: Owner,
    node: NodeName,
    token: Token,
    since: Began,
    run: RunId,
}

/// What crashes.
enum Server {
    Memory(World),
    Redis(Box<RedisServer>, Crash),
    Postgres(Box<PostgresServer>),
    Mariadb(Box<MariaServer>),
    /// Nothing but the processes that use it.
    None,
}

struct Play {
    processes: [Store; 2],
    server: Server,
    url: String,
    options: Options,
    law: Law,
    dice: StdRng,
    unit: Duration,
    grants: Vec<Grant>,
    /// How long the newest step took.
    took: Duration,
    _directory: Option<TempDir>,
}

fn job() -> JobName {
    "outbound".parse().expect("a name")
}

fn user(number: u32) -> UserName {
    format!("user-{number}").parse().expect("a name")
}

fn node(number: u32) -> NodeName {
    format!("node-{number}").parse().expect("a name")
}

impl Play {
    async fn new(kind: Kind, seed: u64) -> Self {
        let mut options = Options { longest_lease: MS * TTL, ..patient() };
        let mut kept = None;
        let (url, server) = match kind {
            Kind::Memory => (String::new(), Server::Memory(World::new(&options))),
            Kind::Sqlite => {
                let directory = tempfile::tempdir().expect("a directory");
                let url = format!("sqlite:{}", directory.path().join("soloist.db").display());
                kept = Some(directory);
                (url, Server::None)
            }
            Kind::Redis => {
                let keeps = seed.is_multiple_of(2);
                let with_file = ["--appendonly", "yes", "--appendfsync", "always"];
                let server = RedisServer::start(if keeps { &with_file } else { &[] });
                let left = if keeps { Crash::Doubted } else { Crash::Forgot };
                (server.url(), Server::Redis(Box::new(server), left))
            }
            Kind::Cluster => {
                options.prefix = format!("{}:", unique("history"));
                (RedisCluster::shared().url(), Server::None)
            }
            Kind::Postgres => {
                let server = PostgresServer::start(&[]);
                (server.database(), Server::Postgres(Box::new(server)))
            }
            Kind::Mariadb => {
                let server = MariaServer::start(&[]);
                (server.database(), Server::Mariadb(Box::new(server)))
            }
        };
        let processes = match &server {
            Server::Memory(world) => [world.connect(&options), world.connect(&options)],
            _ => [open(&url, &options).await, open(&url, &options).await],
        };
        let unit = unit(&processes[0], seed);
        let (law, dice) = (Law::new(job()), StdRng::seed_from_u64(seed));
        for process in &processes {
            answers_again(process).await;
        }
        let (grants, took) = (Vec::new(), Duration::ZERO);
        Self { processes, server, url, options, law, dice, unit, grants, took, _directory: kept }
    }

    fn exact(&self) -> bool {
        matches!(self.server, Server::Memory(_))
    }

    fn boot(&self) -> Boot {
        soloist_store_memory::world(&self.processes[0])
            .map_or_else(clock::boot, |world| world.boot())
    }

    async fn look(&self, process: usize) -> Snapshot {
        self.processes[process].snapshot(&[job()]).await.expect("a snapshot")
    }

    /// Something to do with one of the newest grants.
    fn act(&mut self) -> Act {
        let unit = self.unit;
        let back = if self.dice.random_bool(0.7) { 0 } else { self.dice.random_range(0..4) };
        let grant = self.grants.iter().rev().nth(back).cloned();
        let dice = &mut self.dice;
        let number = dice.random_range(0..3);
        let to = dice.random_bool(0.5).then(|| node(number));
        match (dice.random_range(0..24), grant) {
            (0..=2, _) => Act::Switch(user(number), dice.random_bool(0.8)),
            (3, _) => Act::Hold,
            (4, _) => Act::Resume,
            (5 | 6, _) => Act::Move(to, unit * dice.random_range(150..400)),
            (7..=10, Some(grant)) => Act::Renew(Renewal {
                job: job(),
                owner: grant.owner,
                node: grant.node,
                token: grant.token,
                ttl: unit * TTL,
                since: grant.since,
                run: dice.random_bool(0.5).then_some(grant.run),
            }),
            (11, Some(grant)) => Act::Release(grant.owner),
            (12 | 13, Some(grant)) => Act::Start(Started {
                job: job(),
                token: grant.token,
                run: grant.run,
                node: grant.node,
                pid: 7,
                began: grant.since,
            }),
            (14, Some(grant)) => Act::Stop(grant.token, unit * 20),
            (15 | 16, Some(grant)) => {
                let wait = unit * dice.random_range(0..300);
                let (end, then) = match dice.random_range(0..5) {
                    0 => (RunEnd::Stopped, Then::Nothing),
                    1 => (RunEnd::Exited, Then::Repeat(wait)),
                    2 => (RunEnd::Exited, Then::Done),
                    3 => (RunEnd::Crashed, Then::Retry { crashes: 1, wait }),
                    _ => (RunEnd::Crashed, Then::GiveUp { crashes: 2 }),
                };
                Act::End(Ended {
                    job: job(),
                    owner: grant.owner,
                    token: grant.token,
                    run: grant.run,
                    exit: Exit { code: Some(0), signal: None },
                    end,
                    processes_killed: 0,
                    then,
                    began: None,
                })
            }
            (17, Some(grant)) => Act::Drill(grant.token),
            _ => Act::Acquire(Acquire {
                job: job(),
                owner: Owner(format!("owner-{number}-{}", dice.random_range(0..40))),
                node: node(number),
                ttl: unit * TTL,
                condition: [Condition::Wanted, Condition::WantedDespiteMove, Condition::None]
                    [dice.random_range(0..3)],
                seen: Token(0),
            }),
        }
    }

    /// One step; `false` when nothing more can be compared.
    async fn step(&mut self) -> bool {
        let process = self.dice.random_range(0..2);
        let crashed = self.dice.random_ratio(1, 20);
        if crashed {
            self.crash().await;
        }
        let exact = self.exact();
        let before = self.calm(process).await;
        let boot = self.boot();
        let act = self.act();
        let real = really(&self.processes[process], &act).await;
        let boot_after = self.boot();
        let view = shown(self.look(process).await);
        self.took = view.at.since(before);
        let blur = if exact { Duration::ZERO } else { view.at.since(before) + CLOSE / 2 };
        let near =
            |at: &StoreTime| !exact && at.0 + ms(blur) >= before.0 && view.at.0 + ms(blur) >= at.0;
        let ends = self.law.ends();
        let was = self.law.clone();
        let known = self.law.job.record.token;
        let mut said = self.play(process, &act, view.at, boot_after);
        if ends.iter().chain(&self.law.ends()).any(near) {
            return false;
        }
        self.take_token(&mut said, &real, known);
        let quarantine = self.law.quarantine(process, Duration::ZERO, view.at);
        self.law.adopt(&view.jobs[0], view.at, blur);
        let should = self.law.record(view.at);
        let same = close(&said, &real, blur)
            && should == view.jobs[0]
            && apart(quarantine, view.quarantine) <= blur;
        assert!(
            same,
            "{act:?} between {before:?} and {:?}, within {blur:?}\nsaid {real:?}\nnot  {said:?}\nis {:#?}\nnot {should:#?}\nquarantine {:?}, not {quarantine:?}\nwas {was:#?}",
            view.at, view.jobs[0], view.quarantine
        );
        self.law.calm_at(view.at, view.quarantine);
        if let (Act::Acquire(ask), Said::Acquired(Acquired::Granted { token, since })) =
            (&act, &real)
            && self.grants.iter().all(|grant| grant.token != *token)
        {
            let since = Began { boot, at: Some(*since) };
            let (owner, node) = (ask.owner.clone(), ask.node.clone());
            let run = RunId(format!("run-{token}"));
            self.grants.push(Grant { owner, node, token: *token, since, run });
        }
        true
    }

    /// Waits until nothing ends soon; the store's clock then.
    async fn calm(&mut self, process: usize) -> StoreTime {
        for _ in 0..20 {
            let view = self.look(process).await;
            self.law.quarantine(process, Duration::ZERO, view.at);
            if self.exact() {
                return view.at;
            }
            let soon = |at: &StoreTime| at.apart(view.at) <= CLOSE * 2 + self.took;
            if !self.law.ends().iter().any(soon) {
                return view.at;
            }
            tokio::time::sleep(CLOSE).await;
        }
        self.look(process).await.at
    }

    /// The store crashes.
    async fn crash(&mut self) {
        let left = match &mut self.server {
            Server::Memory(world) if self.dice.random_bool(0.5) => {
                world.forget();
                Crash::Forgot
            }
            Server::Memory(world) => {
                world.restart();
                Crash::Doubted
            }
            Server::Redis(server, left) => {
                server.restart();
                *left
            }
            Server::Postgres(server) => {
                server.restart();
                Crash::Nothing
            }
            Server::Mariadb(server) => {
                server.restart();
                Crash::Nothing
            }
            Server::None => {
                let (url, options) = (&self.url, &self.options);
                self.processes = [open(url, options).await, open(url, options).await];
                Crash::Nothing
            }
        };
        self.law.crash(left);
        let begun = self.boot();
        for (nth, process) in self.processes.iter().enumerate() {
            let view = answers_again(process).await;
            let should = self.law.quarantine(nth, Duration::ZERO, view.at);
            let took = self.boot().since(begun);
            let blur = if took.is_zero() { took } else { took + CLOSE };
            assert!(
                apart(should, view.quarantine) <= blur,
                "{left:?}: {:?} are waited, not {should:?}, within {blur:?}",
                view.quarantine
            );
            self.law.calm_at(view.at, view.quarantine);
        }
    }

    fn play(&mut self, process: usize, act: &Act, at: StoreTime, boot: Boot) -> Said {
        let law = &mut self.law;
        let by = user(9);
        let said = match act {
            Act::Switch(who, on) => law
                .apply(None, at, boot, |job, _, now| {
                    Ok(participation::switch(job, who, *on, Some("why"), now))
                })
                .map(Said::Changed),
            Act::Hold => law.apply(None, at, boot, |job, _, now| {
                Ok((Said::Done, participation::hold(job, &by, "stocktaking", now)))
            }),
            Act::Resume => law.apply(None, at, boot, |job, _, now| {
                Ok((Said::Done, participation::resume(job, now)))
            }),
            Act::Acquire(ask) => {
                let quarantine = law.quarantine(process, ask.ttl, at);
                law.apply(None, at, boot, |job, past, now| {
                    Ok(lease::acquire(job, past, ask, quarantine, now))
                })
                .map(Said::Acquired)
            }
            Act::Renew(ask) => {
                law.quarantine(process, ask.ttl, at);
                law.apply(None, at, boot, |job, _, now| {
                    Ok((lease::renew_in(job, ask, now), Vec::new()))
                })
                .map(Said::Renewed)
            }
            Act::Release(owner) => law.apply(None, at, boot, |job, _, now| {
                Ok((Said::Done, lease::release(job, owner, now)))
            }),
            Act::Start(started) => law
                .apply(Some(&started.run), at, boot, |job, past, now| {
                    run::started(job, past, started, now)
                })
                .map(|at| Said::At(Some(at))),
            Act::Stop(token, grace) => law.apply(None, at, boot, |job, _, now| {
                Ok((Said::Done, run::stopping(job, *token, *grace, now)?))
            }),
            Act::End(ended) => law.apply(Some(&ended.run), at, boot, |job, past, now| {
                Ok((Said::Done, run::ended(job, past, ended, now)?))
            }),
            Act::Move(to, lasts) => law.apply(None, at, boot, |job, _, now| {
                Ok((Said::Done, handover::request(job, to.as_ref(), &by, *lasts, now)))
            }),
            Act::Drill(token) => law
                .apply(None, at, boot, |job, _, now| Ok(drill::request(job, *token, &by, now)))
                .map(Said::At),
        };
        said.unwrap_or_else(|stale| Said::Stale(stale.sent, stale.current))
    }

    /// A new token counts by the instant of its grant, which is not known exactly on a real store: that of the store is taken.
    fn take_token(&mut self, said: &mut Said, real: &Said, known: Token) {
        let (
            Said::Acquired(Acquired::Granted { token: here, .. }),
            Said::Acquired(Acquired::Granted { token: there, .. }),
        ) = (said, real)
        else {
            return;
        };
        if self.exact() || *here == *there {
            return;
        }
        assert!(*there > known, "{there} after {known}");
        let record = &mut self.law.job.record;
        if record.token == *here {
            record.token = *there;
        }
        if let Some(lease) = &mut record.lease
            && lease.token == *here
        {
            lease.token = *there;
        }
        *here = *there;
    }

    /// The history of runs, at the end.
    async fn runs(&self) {
        let listed = self.processes[0].runs(&job(), None, 2_000).await.expect("runs");
        let mut all = self.law.runs.clone();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.token));
        let plain = |entry: RunEntry| {
            let exact = self.exact();
            let ended = entry.ended.map(|at| if exact { at } else { StoreTime(0) });
            let started = if exact { entry.started } else { StoreTime(0) };
            RunEntry { started, ended, ..entry }
        };
        let [listed, all] =
            [listed, all].map(|runs| runs.into_iter().map(&plain).collect::<Vec<_>>());
        assert_eq!(listed, all);
    }
}

/// In whole milliseconds: some stores know more.
fn shown(mut view: Snapshot) -> Snapshot {
    if let Some(lease) = &mut view.jobs[0].lease {
        let whole = u64::try_from(lease.expires_in.as_millis()).expect("short");
        lease.expires_in = Duration::from_millis(whole);
    }
    view
}

/// Waits until a store answers after a crash.
async fn answers_again(store: &Store) -> Snapshot {
    let begun = clock::boot();
    loop {
        if store.be_ready(For::TakingOver).await.is_ok()
            && let Ok(view) = store.snapshot(&[job()]).await
        {
            return view;
        }
        assert!(clock::boot().since(begun) < PATIENCE, "the store does not answer again");
        tokio::time::sleep(MS * 5).await;
    }
}

async fn really(store: &Store, act: &Act) -> Said {
    let (name, by) = (job(), user(9));
    let done = match act {
        Act::Switch(who, on) => {
            store.participate(&name, who, *on, Some("why")).await.map(Said::Changed)
        }
        Act::Hold => store.hold(&name, &by, "stocktaking").await.map(|()| Said::Done),
        Act::Resume => store.resume(&name).await.map(|()| Said::Done),
        Act::Acquire(ask) => store.acquire(ask).await.map(Said::Acquired),
        Act::Renew(ask) => {
            store.renew(std::slice::from_ref(ask)).await.map(|all| Said::Renewed(all[0]))
        }
        Act::Release(owner) => store.release(&name, owner).await.map(|()| Said::Done),
        Act::Start(started) => store.record_started(started).await.map(|at| Said::At(Some(at))),
        Act::Stop(token, grace) => {
            store.record_stopping(&name, *token, *grace).await.map(|()| Said::Done)
        }
        Act::End(ended) => store.record_ended(ended).await.map(|()| Said::Done),
        Act::Move(to, lasts) => {
            store.request_move(&name, to.as_ref(), &by, *lasts).await.map(|()| Said::Done)
        }
        Act::Drill(token) => store.request_drill(&name, *token, &by).await.map(Said::At),
    };
    match done {
        Ok(said) => said,
        Err(StoreError::Stale { sent, current }) => Said::Stale(sent, current),
        Err(other) => panic!("{act:?}: {other}"),
    }
}

/// Whether two answers are the same, but for instants and spans that differ by `blur` at most.
fn close(here: &Said, there: &Said, blur: Duration) -> bool {
    use Acquired::{Busy, Granted, NotYet, Quarantined, Reserved};
    let spans = |one: Duration, other: Duration| apart(one, other) <= blur;
    match (here, there) {
        (
            Said::Acquired(Granted { token, since }),
            Said::Acquired(Granted { token: same, since: at }),
        ) => token == same && since.apart(*at) <= blur,
        (
            Said::Acquired(Busy { node, remaining }),
            Said::Acquired(Busy { node: same, remaining: left }),
        ) => node == same && spans(*remaining, *left),
        (Said::Acquired(NotYet { wait }), Said::Acquired(NotYet { wait: other }))
        | (Said::Acquired(Reserved { wait }), Said::Acquired(Reserved { wait: other }))
        | (Said::Acquired(Quarantined { wait }), Said::Acquired(Quarantined { wait: other })) => {
            spans(*wait, *other)
        }
        (
            Said::Renewed(Renewed::Kept { margin, forgot }),
            Said::Renewed(Renewed::Kept { margin: left, forgot: same }),
        ) => forgot == same && spans(*margin, *left),
        (Said::At(Some(one)), Said::At(Some(other))) => one.apart(*other) <= blur,
        _ => here == there,
    }
}

fn apart(one: Duration, other: Duration) -> Duration {
    one.abs_diff(other)
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).expect("short") + 1
}

/// How many steps were compared.
async fn agree(kind: Kind, seed: u64) -> usize {
    let mut play = Play::new(kind, seed).await;
    // The longest lease that may be out there is known to all from here on.
    let ttl = play.unit * TTL;
    let first = Acquire { owner: Owner("first".to_owned()), ttl, ..any() };
    for process in [0, 1] {
        let act = Act::Acquire(first.clone());
        let real = really(&play.processes[process], &act).await;
        let view = play.look(process).await;
        let boot = play.boot();
        let mut said = play.play(process, &act, view.at, boot);
        play.take_token(&mut said, &real, Token(0));
        play.law.adopt(&view.jobs[0], view.at, Duration::from_secs(1));
    }
    for step in 0..STEPS {
        // Shown when they do not agree.
        println!("{kind:?}, seed {seed}, step {step}");
        let wait = play.unit * play.dice.random_range(0..100);
        pass(&play.processes[0], wait).await;
        if !play.step().await {
            return step;
        }
    }
    play.runs().await;
    STEPS
}

/// The same. A history that breaks off soon, because a step came too near an end of something, is played again: two of them alone may say
/// too little.
async fn agree_for_long(kind: Kind, seed: u64) -> usize {
    let mut compared = 0;
    for _ in 0..3 {
        compared = compared.max(agree(kind, seed).await);
        if compared * 2 > STEPS {
            break;
        }
    }
    compared
}

fn any() -> Acquire {
    Acquire {
        job: job(),
        owner: Owner(String::new()),
        node: node(0),
        ttl: MS,
        condition: Condition::None,
        seen: Token(0),
    }
}

async fn compare(kind: Kind, histories: u64) {
    let seeds = seeds(histories);
    let mut plays = JoinSet::new();
    for seed in seeds.clone() {
        plays.spawn(agree_for_long(kind, seed));
    }
    enough(kind, &seeds, STEPS, plays.join_all().await.into_iter().sum());
}

judged! {
    memory_answers_for_hours_as_the_law_says
    sqlite_answers_in_time_as_the_law_says
    redis_answers_in_time_as_the_law_says
    a_cluster_answers_in_time_as_the_law_says
    postgres_answers_in_time_as_the_law_says
    mariadb_answers_in_time_as_the_law_says
}

async fn memory_answers_for_hours_as_the_law_says() {
    compare(Kind::Memory, 90).await;
}

async fn sqlite_answers_in_time_as_the_law_says() {
    compare(Kind::Sqlite, 8).await;
}

async fn redis_answers_in_time_as_the_law_says() {
    compare(Kind::Redis, 8).await;
}

async fn a_cluster_answers_in_time_as_the_law_says() {
    compare(Kind::Cluster, 4).await;
}

async fn postgres_answers_in_time_as_the_law_says() {
    compare(Kind::Postgres, 2).await;
}

async fn mariadb_answers_in_time_as_the_law_says() {
    compare(Kind::Mariadb, 2).await;
}
