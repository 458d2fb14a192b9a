//! The one way to shared state.
//!
//! Small traits by noun, which [`Store`] implements once for every kind of store: `core` carries most of them out on two ports (`engine`, `records`),
//! which the crates `store-sql` and `store-redis` (and `store-memory`, for tests only) implement. One conformance suite (`tests/it/conformance`) tests
//! all of them. Lease and data are in one backend, because a token protects only where the write that carries it is refused in the same atomic step.
//! With `store-zookeeper` as coordination the lease is there, and that step is the second of two.
//! This room decides nothing about processes. A call whose outcome is unknown is not repeated for the caller; a commit that was refused, and so did
//! nothing, is decided anew (`core`).

pub mod accounts;
pub mod alerts;
pub mod backend;
pub mod coordination;
pub mod copy;
pub mod core;
pub mod credentials;
pub mod dispatch;
pub mod engine;
pub mod events;
pub mod examine;
pub mod feed;
pub mod hidden;
pub mod jobs;
pub mod journal;
pub mod latest;
pub mod leases;
pub mod line;
pub mod memory;
pub mod nodes;
pub mod outlet;
pub mod portable;
pub mod records;
pub mod rotation;
pub mod schema;
pub mod spent;
pub mod throughput;
pub mod ticks;
pub mod timeline;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use self::backend::{Backend, Dispatches};
use self::coordination::Coordination;
use self::engine::Engine;
use self::records::Records;
use self::rotation::Rotations;
use soloist_domain::dispatch::Rules;
use soloist_domain::lease::{Stale, Token};
use soloist_domain::name::{
    JobName, NodeName, Owner, RotationName, RunId, SourceName, TickText, UserName, Waiter,
    WorkerName,
};
use soloist_domain::rotation as turns;
use soloist_domain::tick;
use soloist_domain::time::{Stamp, StoreTime};

/// Why a call to the store did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Out of reach, too slow, loading, read-only or full: the outcome is *unknown*; retry until the deadline.
    #[error("the store is not reachable: {0}")]
    Unavailable(String),
    /// A newer token exists, or the lease is another's: the caller must kill its script.
    #[error("token {sent} is stale: the newest is {current}")]
    Stale {
        /// The caller's.
        sent: Token,
        /// The store's.
        current: Token,
    },
    /// No such user, token, session, link or node.
    #[error("{0} does not exist")]
    NotFound(String),
    /// There is no store there, and it was not asked to make one ([`Options::make`]).
    #[error("there is no store at {0}")]
    Absent(String),
    /// The name is taken.
    #[error("{0} exists already")]
    Exists(String),
    /// No other admin who can sign in as well without a provider would remain: nothing was changed.
    #[error(
        "{0} is the last admin with a password: make another first with soloist user add NAME --role admin"
    )]
    LastAdmin(UserName),
    /// Written by a newer Soloist.
    #[error(
        "the store has schema {found}, this program knows {known}: start the newer Soloist, or restore the backup from before the upgrade"
    )]
    NewerSchema {
        /// In the store.
        found: u32,
        /// Of this program.
        known: u32,
    },
    /// The store is of a kind or set up in a way that cannot keep the promise; says what to change.
    #[error("{0}")]
    Unsupported(String),
    /// Something in the store cannot be read; names the key.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}

impl From<Stale> for StoreError {
    fn from(Stale { sent, current }: Stale) -> Self {
        Self::Stale { sent, current }
    }
}

/// Shorthand for this room.
pub type Result<T> = std::result::Result<T, StoreError>;

/// How to connect.
#[derive(Clone)]
pub struct Options {
    /// Longest time for one call; past it the call is [`StoreError::Unavailable`].
    pub timeout: Duration,
    /// Key prefix of Redis, `soloist:` by default; on PostgreSQL the schema, without the colon, unless the URL names one;
    /// without meaning on MySQL, where a store has a database of its own.
    pub prefix: String,
    /// Longest lease that others may hold, as far as this process knows: so long a store is doubted that turns out to be
    /// empty although it was in use, or to have just started.
    pub longest_lease: Duration,
    /// Told the name and duration of every call; the composition root makes a metric of it.
    pub observe: fn(&'static str, Duration),
    /// A process of the same program has opened this store already, and checked it: a process that has only a few
    /// milliseconds to give a lease back need not do so again (not SQLite).
    pub checked: bool,
    /// Make the store if there is none; else that is [`StoreError::Absent`], and nothing is written. A command that only looks
    /// at a store, or changes what is in it, makes none: a mistyped path would look like a store in which nothing is on.
    pub make: bool,
    /// Steps of the schema after those of this program: tests play a later version with them.
    pub steps: &'static [&'static str],
    /// How much output of each job is kept by what this process writes.
    pub log: journal::LogBounds,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            longest_lease: Duration::from_secs(10),
            prefix: "soloist:".to_owned(),
            observe: |_, _| {},
            checked: false,
            make: true,
            steps: &[],
            log: journal::LogBounds::default(),
        }
    }
}

/// Makes a [`Store`] of its URL: what the crate `stores` does, above all kinds of them. Who stands below is handed it.
pub type Opener = for<'a> fn(&'a str, &'a Options) -> BoxFuture<'a, Result<Store>>;

/// What `readyz`, `doctor` and the start-up line say of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `SQLite 3.50.1 at data/soloist.db`, `Redis 7.0.15 at 127.0.0.1:6379/0`; never a password.
    pub what: String,
    /// Whether nodes on other machines can share it.
    pub shared: bool,
    /// Set-ups that are allowed but deserve a warning (no persistence, for instance); each says the remedy.
    pub warnings: Vec<String>,
}

/// What a store is to be ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Taking over the job of another node.
    TakingOver,
    /// Giving back the lease of a run that is gone.
    GivingBack,
}

/// A connection to shared state; cheap to clone.
///
/// Its methods return boxed futures: no other crate, and no test, compiles the futures of the store again.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    /// The backend, or, with leases that are not in it, both.
    engine: Arc<dyn Engine>,
    /// The same.
    records: Arc<dyn Records>,
    dispatch: Arc<dyn Dispatches>,
    /// Leases that are not in the backend.
    locks: Option<Arc<dyn Coordination>>,
    observe: fn(&'static str, Duration),
    /// Why it answers nothing yet: it could not be opened so far.
    shut: Arc<Mutex<Option<String>>>,
}

impl Store {
    /// A store on `backend`, whose leases are in `locks` if there are any. A server is not asked yet: every call is
    /// [`StoreError::Unavailable`] until [`Store::open`] has succeeded once.
    #[must_use]
    pub fn on(
        backend: Arc<dyn Backend>,
        locks: Option<Arc<dyn Coordination>>,
        options: &Options,
    ) -> Self {
        let shut = backend.is_a_server().then(|| "it was not asked yet".to_owned());
        let (observe, shut) = (options.observe, Arc::new(Mutex::new(shut)));
        Self::of(backend, locks, observe, shut)
    }

    fn of(
        backend: Arc<dyn Backend>,
        locks: Option<Arc<dyn Coordination>>,
        observe: fn(&'static str, Duration),
        shut: Arc<Mutex<Option<String>>>,
    ) -> Self {
        let engine: Arc<dyn Engine> = match &locks {
            Some(locks) => Arc::clone(locks).before(backend.clone()),
            None => backend.clone(),
        };
        let records: Arc<dyn Records> = engine.clone();
        let dispatch = backend.clone().dispatch();
        Self { backend, engine, records, dispatch, locks, observe, shut }
    }

    /// Makes or upgrades its schema and checks that it can keep the promise; from then on it answers.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for an unsafe set-up, [`StoreError::NewerSchema`], [`StoreError::Absent`] when there is none and `options` do
    /// not ask for one, [`StoreError::Unavailable`]; [`StoreError::Unsupported`] as well while a copy into it is not finished ([`copy`]). After
    /// [`StoreError::Unavailable`] it may be tried again.
    pub fn open<'a>(&'a self, options: &'a Options) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut opened = self.backend.open(options).await;
            // A process that has only a few milliseconds follows a node that looked.
            if opened.is_ok() && !options.checked {
                opened = copy::refuse_unfinished(self).await;
            }
            if opened.is_ok() && !options.checked {
                opened = self.agree_on_leases(options).await;
            }
            let mut shut = self.shut.lock();
            *shut = match &opened {
                Ok(()) => None,
                Err(StoreError::Unavailable(why)) => Some(why.clone()),
                Err(error) => Some(error.to_string()),
            };
            opened
        })
    }

    /// Each process that uses a store must look for its leases in the same place.
    async fn agree_on_leases(&self, options: &Options) -> Result<()> {
        if !self.backend.is_a_server() {
            return Ok(());
        }
        coordination::agree(&*self.backend, self.locks.as_deref(), options).await
    }

    /// Opens the connections that are needed when every millisecond counts, and makes the server know what will be asked
    /// of it, before it is asked. Harmless however often.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub fn be_ready(&self, what: For) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.answers()?;
            if let Some(locks) = &self.locks {
                locks.quarantine().await?;
            }
            self.backend.be_ready(what).await
        })
    }

    /// Whether its server is there and does not let this user in: waiting would not help.
    pub fn refuses_login(&self) -> BoxFuture<'_, bool> {
        self.backend.refuses_login()
    }

    /// The same store, whose calls write `entry` into the audit in the same atomic step as what they change: jobs, accounts,
    /// credentials, nodes, rules and blocks of sources, revived tasks, rules of rotations. A call that fails or changes nothing adds no entry.
    #[must_use]
    pub fn noting(&self, entry: journal::AuditEntry) -> Self {
        let (locks, shut) = (self.locks.clone(), Arc::clone(&self.shut));
        Self::of(self.backend.noting(entry), locks, self.observe, shut)
    }

    /// The port of what belongs to no job: tests hold every kind of store to it.
    #[doc(hidden)]
    #[must_use]
    pub fn rows(&self) -> &dyn Records {
        &*self.records
    }

    /// What it is kept in, if that is the memory of a test.
    #[doc(hidden)]
    #[must_use]
    pub fn in_memory(&self) -> Option<Box<dyn std::any::Any>> {
        self.backend.in_memory()
    }

    /// Whether [`Store::open`] has succeeded. Until then it was never there, so it is not away.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answers().is_ok()
    }

    fn answers(&self) -> Result<()> {
        let shut = self.shut.lock();
        shut.as_ref().map_or(Ok(()), |why| Err(StoreError::Unavailable(why.clone())))
    }

    /// Whether each job may be out of reach by itself (a cluster): then a call about several of them fails as a whole
    /// when one of its masters is lost, and callers ask for one job at a time, all at once.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.backend.is_sharded()
    }

    /// Every name of a job or a lease that has a record.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub fn every_name(&self) -> BoxFuture<'_, Result<Vec<JobName>>> {
        Box::pin(async move {
            self.answers()?;
            self.dispatch.every_job().await
        })
    }

    /// Removes those of the records of `names` that say nothing and were written longer ago than `kept`; how many. To everybody each is then a
    /// name that was never used. Where records end by themselves these are few.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub fn forget_void<'a>(
        &'a self,
        names: &'a [JobName],
        kept: Duration,
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            self.answers()?;
            core::forget_void(&*self.engine, names, kept).await
        })
    }

    /// What it is, after looking whether it can still keep the promise and takes writes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; [`StoreError::Unsupported`] when it was set up badly meanwhile.
    pub fn describe(&self) -> BoxFuture<'_, Result<Description>> {
        Box::pin(async move {
            self.answers()?;
            let described = self.backend.describe().await?;
            match &self.locks {
                Some(locks) => locks.describe(described).await,
                None => Ok(described),
            }
        })
    }
}

/// Each method of these traits, once in the program: who calls it awaits a box. It refuses while the store is not open, has the field `$by` do
/// it, and tells how long that took.
macro_rules! forward {
    ($($by:ident: $trait:path {$(
        fn $method:ident($($arg:ident: $type:ty),*) -> $out:ty;
    )*})*) => {$(
        #[async_trait]
        impl $trait for Store {
            $(async fn $method(&self, $($arg: $type),*) -> Result<$out> {
                self.answers()?;
                let begun = soloist_process::clock::boot();
                let result = <_ as $trait>::$method(&*self.$by, $($arg),*).await;
                (self.observe)(stringify!($method), soloist_process::clock::boot().since(begun));
                result
            })*
        }
    )*};
}

forward! {
    engine: leases::Leases {
        fn acquire(ask: &leases::Acquire) -> leases::Acquired;
        fn acquire_if_no_line(ask: &leases::Acquire) -> Option<leases::Acquired>;
        fn renew(renewals: &[leases::Renewal]) -> Vec<leases::Renewed>;
        fn release(job: &JobName, owner: &Owner) -> ();
        fn release_under(
            job: &JobName, owner: &Owner, token: Token, outcome: spent::Outcome
        ) -> leases::Released;
        fn observe(jobs: &[JobName]) -> Vec<leases::Observed>;
        fn held() -> Vec<leases::HeldLease>;
    }
    records: line::Lines {
        fn line(name: &JobName, most: usize) -> line::Line;
        fn join_line(
            name: &JobName, owner: &Owner, holder: &NodeName, waiter: &Waiter, lasting: Duration
        ) -> ();
        fn step_aside(name: &JobName, owner: &Owner, waiter: &Waiter, lasting: Duration) -> ();
        fn leave_line(name: &JobName, owner: &Owner, lapsed: Option<Stamp>) -> ();
        fn call_waiter(waiter: &Waiter) -> ();
    }
    engine: jobs::Jobs {
        fn snapshot(jobs: &[JobName]) -> jobs::Snapshot;
        fn participate(job: &JobName, user: &UserName, on: bool, reason: Option<&str>) -> bool;
        fn hold(job: &JobName, by: &UserName, reason: &str) -> ();
        fn resume(job: &JobName) -> ();
        fn request_move(
            job: &JobName, to: Option<&NodeName>, by: &UserName, lasts: Duration
        ) -> ();
        fn request_drill(job: &JobName, token: Token, by: &UserName) -> Option<StoreTime>;
    }
    engine: journal::Journal {
        fn record_started(started: &journal::Started) -> StoreTime;
        fn record_stopping(job: &JobName, token: Token, grace: Duration) -> ();
        fn record_output(output: &journal::Output) -> ();
        fn record_ended(ended: &journal::Ended) -> ();
        fn runs(job: &JobName, before: Option<&RunId>, limit: usize) -> Vec<journal::RunEntry>;
        fn log(job: &JobName, after: Option<u64>, limit: usize) -> Vec<journal::LogLine>;
        fn log_page(
            job: &JobName, filter: &journal::LogFilter, from: journal::LogFrom, limit: usize
        ) -> journal::LogPage;
        fn audit(entry: &journal::AuditEntry) -> ();
        fn audit_page(filter: &journal::AuditFilter, before: Option<u64>, limit: usize) -> journal::AuditPage;
        fn audit_after(filter: &journal::AuditFilter, after: u64, limit: usize) -> journal::AuditPage;
        fn audits(target: Option<&str>, before: Option<u64>, limit: usize) -> Vec<journal::AuditEntry>;
    }
    engine: timeline::Timelines {
        fn timeline(job: &JobName, most: usize) -> timeline::Seen;
        fn fold_runs(job: &JobName, kept: Duration) -> ();
    }
    engine: spent::SpentTicks {
        fn acquire_once(ask: &leases::Acquire, once: &spent::Once) -> spent::Answer;
        fn acquire_once_if_no_line(
            ask: &leases::Acquire, once: &spent::Once
        ) -> Option<spent::Answer>;
        fn spent(name: &JobName, tick: &TickText) -> Option<(spent::Spent, spent::Standing)>;
        fn tell_spent(name: &JobName, owner: &Owner, spent: &spent::Spent) -> ();
    }
    engine: ticks::TickBook {
        fn acquire_tick(
            ask: &leases::Acquire, schedule: &tick::Schedule, seen: Option<&tick::Sight>
        ) -> (leases::Acquired, Option<tick::Granted>);
        fn settle_ticks(
            job: &JobName, schedule: &tick::Schedule, seen: Option<&tick::Sight>
        ) -> ();
        fn ask_run(
            job: &JobName, schedule: &tick::Schedule, asked: &tick::Asked
        ) -> std::result::Result<tick::TickName, tick::Refused>;
        fn take_back_run(job: &JobName, tick: &tick::TickName) -> bool;
        fn reset_taken(job: &JobName) -> bool;
        fn ticks(job: &JobName) -> Vec<tick::Entry>;
    }
    records: nodes::Nodes {
        fn beat(beat: &nodes::Beat) -> nodes::Heard;
        fn nodes() -> Vec<nodes::NodeRecord>;
        fn define(told: &nodes::Told) -> ();
        fn definitions() -> Vec<nodes::Told>;
        fn drain(node: &NodeName, on: bool) -> ();
        fn forget(node: &NodeName) -> nodes::Forgotten;
        fn leave(node: &NodeName, boot: &str) -> ();
    }
    records: accounts::Accounts {
        fn add_user(user: &accounts::User, only_if_no_admin: bool) -> ();
        fn change_user(name: &UserName, changes: &accounts::Changes) -> accounts::User;
        fn remove_user(name: &UserName) -> ();
        fn user(name: &UserName) -> Option<accounts::User>;
        fn users() -> Vec<accounts::User>;
    }
    records: alerts::Alerts {
        fn alert_book() -> alerts::Book;
        fn past_alerts(most: usize) -> Vec<alerts::Incident>;
        fn keep_sending(node: &NodeName, boot: &str, lasting: Duration) -> bool;
        fn stop_sending(node: &NodeName, boot: &str) -> ();
        fn note_alerts(node: &NodeName, boot: &str, noted: &alerts::Noted) -> bool;
        fn channel_took(channel: &str) -> ();
        fn mute_alert(alert: &str, mute: alerts::Mute) -> Option<StoreTime>;
    }
    records: credentials::Credentials {
        fn open_session(hash: &str, session: &credentials::Session, lifetime: Duration) -> ();
        fn session(hash: &str, idle: Duration) -> Option<credentials::Session>;
        fn peek_session(hash: &str, idle: Duration) -> Option<credentials::Session>;
        fn sessions(user: Option<&UserName>, idle: Duration) -> Vec<credentials::OpenSession>;
        fn close_sessions(user: &UserName, hash: Option<&str>) -> ();
        fn add_token(hash: &str, token: &credentials::ApiToken, lifetime: Option<Duration>) -> ();
        fn token(hash: &str) -> Option<credentials::ApiToken>;
        fn use_token(hash: &str, every: Duration) -> ();
        fn tokens() -> Vec<credentials::ApiToken>;
        fn revoke_token(id: &str) -> ();
        fn add_link(hash: &str, link: &credentials::Link, lifetime: Duration) -> ();
        fn link(hash: &str, take: bool) -> Option<credentials::Link>;
        fn try_sign_in(ask: &credentials::SignIn) -> Duration;
        fn settle_sign_in(ask: &credentials::SignIn, tried: credentials::Tried) -> ();
        fn failures(key: &str, step: credentials::Count, window: Duration) -> u32;
    }
    dispatch: dispatch::Sources {
        fn put_source(source: &SourceName, rules: &Rules) -> dispatch::SourceView;
        fn pause_source(source: &SourceName, paused: bool) -> dispatch::SourceView;
        fn block_source(source: &SourceName, lasting: Duration) -> dispatch::SourceView;
        fn sources(only: Option<&SourceName>) -> Vec<dispatch::SourceView>;
        fn remove_source(source: &SourceName, force: bool) -> dispatch::RemovedSource;
        fn collectors() -> Vec<dispatch::CollectorView>;
    }
    dispatch: dispatch::Dispatch {
        fn put_tasks(tasks: &[dispatch::NewTask]) -> Vec<bool>;
        fn exchange(ask: &dispatch::Exchange) -> dispatch::Exchanged;
        fn extend(claim: &dispatch::ClaimId, only: Option<&dispatch::ClaimOwner>) -> dispatch::Extended;
        fn give_back(claim: &dispatch::ClaimId, only: Option<&dispatch::ClaimOwner>) -> u64;
        fn give_back_unseen_claim(claim: &dispatch::ClaimId) -> u64;
        fn leave_queues(waiter: &Waiter, sources: &[SourceName]) -> ();
        fn pump() -> dispatch::Pumped;
        fn task(id: &dispatch::TaskId) -> Option<dispatch::TaskView>;
        fn dead(source: Option<&SourceName>, skip: usize, limit: usize) -> Vec<dispatch::TaskView>;
        fn tasks(filter: &dispatch::TaskFilter, before: Option<&(Stamp, dispatch::TaskId)>, limit: usize) -> Vec<dispatch::TaskView>;
        fn remove_task(id: &dispatch::TaskId, force: bool) -> bool;
        fn revive(id: &dispatch::TaskId) -> dispatch::TaskView;
    }
    records: hidden::HiddenNames {
        fn hidden_names() -> BTreeSet<String>;
        fn note_hidden(names: &[JobName]) -> ();
    }
    records: throughput::Throughput {
        fn throughput() -> Option<throughput::Past>;
        fn note_throughput(step: i64, counted: &throughput::Counts) -> ();
    }
    records: Rotations {
        fn put_rotation(rotation: &RotationName, rules: &turns::Rules) -> rotation::RotationView;
        fn remove_rotation(rotation: &RotationName, force: bool) -> rotation::RemovedRotation;
        fn rotations(only: Option<&RotationName>, past: usize) -> Vec<rotation::RotationView>;
        fn take_turn(ask: &rotation::TurnAsk) -> rotation::Taken;
        fn extend_turn(rotation: &RotationName, turn: Token, only: Option<&WorkerName>) -> rotation::Kept;
        fn pass_turn(pass: &rotation::Pass) -> rotation::Kept;
        fn pass_on(pass: &rotation::Pass) -> rotation::PassedOn;
        fn give_back_unseen_turn(rotation: &RotationName, turn: Token) -> bool;
        fn leave_queue(rotation: &RotationName, waiter: &Waiter) -> ();
        fn pump_turns(incarnation: &str) -> rotation::PumpedTurns;
    }
    engine: events::Events {
        fn subscribe(jobs: &[JobName]) -> tokio::sync::mpsc::Receiver<events::StoreEvent>;
    }
}

#[cfg(test)]
mod shape {
    /// Handlers and tasks need it.
    #[test]
    fn the_store_is_send_and_sync() {
        fn check<T: Send + Sync + Clone + 'static>() {}
        check::<super::Store>();
    }
}
