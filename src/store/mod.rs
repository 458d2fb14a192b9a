//! The one door to shared state.
//!
//! Small traits by noun, implemented by four backends (and one that only tests have, [`in_memory`]) and forwarded by the closed [`Store`]; one conformance
//! suite (`tests/it/conformance`) holds all of them to the same law. Lease and data live in one backend, because a
//! token is worth something only where the write that carries it is refused in the same atomic step. With `zookeeper` as coordination
//! the lease lives there, and that step is the second of two.
//! This room decides nothing about processes. A call whose outcome is unknown is not made again for the caller; a commit that was
//! refused, and so did nothing, is decided anew (`core`).

pub mod accounts;
pub mod alerts;
pub mod copy;
mod core;
pub mod credentials;
pub mod dispatch;
mod engine;
pub mod events;
pub mod examine;
#[doc(hidden)]
pub mod in_memory;
pub mod jobs;
pub mod journal;
mod latest;
pub mod leases;
pub mod line;
mod memory;
mod mysql;
pub mod nodes;
mod outlet;
mod portable;
mod postgres;
mod records;
pub mod redis;
pub mod rotation;
mod sql;
pub mod sqlite;
pub mod throughput;
pub mod timeline;
mod zookeeper;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::domain::dispatch::Rules;
use crate::domain::lease::{Stale, Token};
use crate::domain::name::{
    JobName, NodeName, Owner, RotationName, RunId, SourceName, UserName, Waiter, WorkerName,
};
use crate::domain::rotation as turns;
use crate::domain::time::{Stamp, StoreTime};

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
            log: journal::LogBounds::default(),
        }
    }
}

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
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    /// Leases that are not in the backend.
    locks: Option<Arc<zookeeper::Locks>>,
    observe: fn(&'static str, Duration),
    /// Why it answers nothing yet: it could not be opened so far.
    shut: Arc<Mutex<Option<String>>>,
}

#[derive(Clone)]
enum Backend {
    Sqlite(sqlite::SqliteStore),
    Redis(redis::RedisStore),
    Postgres(postgres::PostgresStore),
    Mysql(mysql::MysqlStore),
    /// Only tests have one: no address names it.
    Memory(in_memory::MemoryStore),
}

impl Store {
    /// Opens the store at `url`, makes or migrates its schema and checks that it can keep the promise.
    ///
    /// `sqlite:PATH`; `redis://[USER:PASSWORD@]HOST[:PORT][/DB]` or `rediss://` for one server;
    /// `redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT],.../MASTERNAME[/DB]` or `rediss+sentinel://` for the
    /// master that a majority of those sentinels names (all of them must be listed; port 26379 unless said). USER and
    /// PASSWORD are for the servers; `?sentinel_user=...&sentinel_password=...` at the end is for the sentinels.
    /// `redis+cluster://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT],.../` or `rediss+cluster://` for a cluster of which
    /// those are members (port 6379 unless said); the others are found by asking.
    /// `postgres://USER:PASSWORD@HOST[:PORT]/DATABASE[?schema=NAME]` for PostgreSQL 13 or later.
    /// `mysql://USER:PASSWORD@HOST[:PORT]/DATABASE` or `mariadb://` for MySQL 8.0.17, MariaDB 10.6 or later.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for another scheme or an unsafe set-up, [`StoreError::NewerSchema`],
    /// [`StoreError::Absent`] when there is none and `options` do not ask for one,
    /// [`StoreError::Unavailable`].
    pub async fn connect(url: &str, options: &Options) -> Result<Self> {
        let store = Self::named(url, options).await?;
        store.open(options).await?;
        Ok(store)
    }

    /// The store at `url` before a word was spoken to its server: every call is [`StoreError::Unavailable`] until
    /// [`Store::open`] has succeeded once. A SQLite file is opened at once.
    ///
    /// # Errors
    /// As [`Store::connect`].
    pub async fn named(url: &str, options: &Options) -> Result<Self> {
        let (url, coordination) = crate::domain::ensemble::split(url);
        let backend = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") if coordination.is_some() => return Err(zookeeper::no_server()),
            Some("sqlite") => Backend::Sqlite(sqlite::SqliteStore::connect(url, options).await?),
            Some(
                "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster"
                | "rediss+cluster",
            ) => Backend::Redis(redis::RedisStore::named(url, options)?),
            Some("postgres" | "postgresql") => {
                Backend::Postgres(postgres::PostgresStore::named(url, options)?)
            }
            Some("mysql" | "mariadb") => Backend::Mysql(mysql::MysqlStore::named(url, options)?),
            _ => {
                return Err(StoreError::Unsupported(
                    "unknown kind of store: use sqlite:PATH, redis://HOST:PORT/DB, rediss://HOST:PORT/DB, redis+sentinel://HOST1,HOST2,HOST3/MASTERNAME, redis+cluster://HOST1,HOST2,HOST3/, postgres://HOST:PORT/DATABASE or mysql://HOST:PORT/DATABASE"
                        .to_owned(),
                ));
            }
        };
        let shut = match &backend {
            Backend::Sqlite(_) | Backend::Memory(_) => None,
            Backend::Redis(_) | Backend::Postgres(_) | Backend::Mysql(_) => {
                Some("it was not asked yet".to_owned())
            }
        };
        let locks = match coordination {
            None => None,
            Some(url) => {
                let sharded = matches!(&backend, Backend::Redis(store) if store.is_sharded());
                let clock = backend.reads_clock()?;
                Some(zookeeper::Locks::named(url, options, clock, sharded)?)
            }
        };
        Ok(Self { backend, locks, observe: options.observe, shut: Arc::new(Mutex::new(shut)) })
    }

    /// Makes or migrates its schema and checks that it can keep the promise; from then on it answers.
    ///
    /// # Errors
    /// As [`Store::connect`]; [`StoreError::Unsupported`] as well while a copy into it is not finished ([`copy`]). After
    /// [`StoreError::Unavailable`] it may be tried again.
    pub async fn open(&self, options: &Options) -> Result<()> {
        let mut opened = self.open_unfinished(options).await;
        // A process that has only a few milliseconds follows a node that looked.
        if opened.is_ok() && !options.checked {
            opened = copy::refuse_unfinished(self).await;
        }
        if opened.is_ok() && !options.checked {
            opened = self.agree_on_leases(options).await;
        }
        let mut shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        *shut = match &opened {
            Ok(()) => None,
            Err(StoreError::Unavailable(why)) => Some(why.clone()),
            Err(error) => Some(error.to_string()),
        };
        opened
    }

    /// As [`Self::open`], also when a copy into it is not finished; no call is let through by this.
    async fn open_unfinished(&self, options: &Options) -> Result<()> {
        match &self.backend {
            Backend::Sqlite(_) | Backend::Memory(_) => Ok(()),
            Backend::Redis(store) => store.open(options).await,
            Backend::Postgres(store) => store.open(options).await,
            Backend::Mysql(store) => store.open(options).await,
        }
    }

    /// Each process that uses a store must look for its leases in the same place.
    async fn agree_on_leases(&self, options: &Options) -> Result<()> {
        let locks = self.locks.as_deref();
        match &self.backend {
            Backend::Sqlite(_) | Backend::Memory(_) => Ok(()),
            Backend::Redis(store) => zookeeper::agree(store, locks, options).await,
            Backend::Postgres(store) => zookeeper::agree(store, locks, options).await,
            Backend::Mysql(store) => zookeeper::agree(store, locks, options).await,
        }
    }

    /// Opens the connections that are needed when every millisecond counts, and makes the server know what will be asked
    /// of it, before it is asked. Harmless however often.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn be_ready(&self, what: For) -> Result<()> {
        self.answers()?;
        if let Some(locks) = &self.locks {
            locks.quarantine().await?;
        }
        match &self.backend {
            Backend::Sqlite(_) | Backend::Memory(_) => Ok(()),
            Backend::Redis(store) => store.be_ready(what).await,
            Backend::Postgres(store) => store.be_ready(what).await,
            Backend::Mysql(store) => store.be_ready(what).await,
        }
    }

    /// Whether its server is there and does not let this user in: waiting would not help.
    pub async fn refuses_login(&self) -> bool {
        match &self.backend {
            Backend::Sqlite(_) | Backend::Memory(_) => false,
            Backend::Redis(store) => store.refuses_login().await,
            Backend::Postgres(store) => store.refuses_login().await,
            Backend::Mysql(store) => store.refuses_login().await,
        }
    }

    /// The same store, whose calls write `entry` into the audit in the same atomic step as what they change: jobs, accounts,
    /// credentials, nodes, rules and blocks of sources, revived tasks, rules of rotations. A call that fails or changes nothing adds no entry.
    #[must_use]
    pub fn noting(&self, entry: journal::AuditEntry) -> Self {
        let backend = match &self.backend {
            Backend::Sqlite(store) => Backend::Sqlite(store.noting(entry)),
            Backend::Redis(store) => Backend::Redis(store.noting(entry)),
            Backend::Postgres(store) => Backend::Postgres(store.noting(entry)),
            Backend::Mysql(store) => Backend::Mysql(store.noting(entry)),
            Backend::Memory(store) => Backend::Memory(store.noting(entry)),
        };
        Self { backend, ..self.clone() }
    }

    /// Whether [`Store::open`] has succeeded. Until then it was never there, so it is not away.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answers().is_ok()
    }

    fn answers(&self) -> Result<()> {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        shut.as_ref().map_or(Ok(()), |why| Err(StoreError::Unavailable(why.clone())))
    }

    /// Whether each job may be out of reach by itself (a cluster): then a call about several of them fails as a whole
    /// when one of its masters is lost, and callers ask for one job at a time, all at once.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        match &self.backend {
            Backend::Sqlite(_) | Backend::Postgres(_) | Backend::Mysql(_) | Backend::Memory(_) => {
                false
            }
            Backend::Redis(store) => store.is_sharded(),
        }
    }

    /// What it is, after looking whether it can still keep the promise and takes writes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; [`StoreError::Unsupported`] when it was set up badly meanwhile.
    pub async fn describe(&self) -> Result<Description> {
        self.answers()?;
        let described = match &self.backend {
            Backend::Sqlite(store) => store.describe().await,
            Backend::Redis(store) => store.describe().await,
            Backend::Postgres(store) => store.describe().await,
            Backend::Mysql(store) => store.describe().await,
            Backend::Memory(_) => {
                Ok(Description { what: "memory".to_owned(), shared: false, warnings: Vec::new() })
            }
        }?;
        match &self.locks {
            Some(locks) => locks.describe(described).await,
            None => Ok(described),
        }
    }
}

impl Backend {
    /// What reads its clock for an ensemble beside it.
    fn reads_clock(&self) -> Result<zookeeper::ReadsClock> {
        use engine::Engine as _;

        macro_rules! clock {
            ($store:expr) => {{
                let store = $store.clone();
                Box::new(move |of: &JobName| store.estimate(of, crate::clock::boot()))
            }};
        }
        let clock: zookeeper::ReadsClock = match self {
            Self::Sqlite(_) | Self::Memory(_) => return Err(zookeeper::no_server()),
            Self::Redis(store) => clock!(store),
            Self::Postgres(store) => clock!(store),
            Self::Mysql(store) => clock!(store),
        };
        Ok(clock)
    }
}

/// Forwards to the backend. A trait that is `coordinated` asks the ensemble as well, if there is one; one that is `belled` does so where
/// its wakes go through the records.
macro_rules! forward {
    ($($kind:ident $trait:path {$(
        fn $method:ident($($arg:ident: $type:ty),*) -> $out:ty;
    )*})*) => {$(
        impl $trait for Store {
            $(async fn $method(&self, $($arg: $type),*) -> Result<$out> {
                self.answers()?;
                let begun = crate::clock::boot();
                let result = forward!(@$kind self, $trait, $method, ($($arg),*));
                (self.observe)(stringify!($method), crate::clock::boot().since(begun));
                result
            })*
        }
    )*};
    (@plain $self:ident, $trait:path, $method:ident, $args:tt) => {
        match &$self.backend {
            Backend::Sqlite(store) => forward!(@call sqlite::SqliteStore, $trait, $method, store, $args),
            Backend::Redis(store) => forward!(@call redis::RedisStore, $trait, $method, store, $args),
            Backend::Postgres(store) => forward!(@call postgres::PostgresStore, $trait, $method, store, $args),
            Backend::Mysql(store) => forward!(@call mysql::MysqlStore, $trait, $method, store, $args),
            Backend::Memory(store) => forward!(@call in_memory::MemoryStore, $trait, $method, store, $args),
        }
    };
    (@coordinated $self:ident, $trait:path, $method:ident, $args:tt) => {
        match (&$self.backend, &$self.locks) {
            (Backend::Redis(store), Some(locks)) => {
                forward!(@both redis::RedisStore, $trait, $method, store, locks, $args)
            }
            (Backend::Postgres(store), Some(locks)) => {
                forward!(@both postgres::PostgresStore, $trait, $method, store, locks, $args)
            }
            (Backend::Mysql(store), Some(locks)) => {
                forward!(@both mysql::MysqlStore, $trait, $method, store, locks, $args)
            }
            _ => forward!(@plain $self, $trait, $method, $args),
        }
    };
    (@belled $self:ident, $trait:path, $method:ident, $args:tt) => {
        match (&$self.backend, &$self.locks) {
            (Backend::Postgres(store), Some(locks)) => {
                forward!(@both postgres::PostgresStore, $trait, $method, store, locks, $args)
            }
            (Backend::Mysql(store), Some(locks)) => {
                forward!(@both mysql::MysqlStore, $trait, $method, store, locks, $args)
            }
            _ => forward!(@plain $self, $trait, $method, $args),
        }
    };
    (@call $type:ty, $trait:path, $method:ident, $store:ident, ($($arg:ident),*)) => {
        <$type as $trait>::$method($store, $($arg),*).await
    };
    (@both $type:ty, $trait:path, $method:ident, $store:ident, $locks:ident, ($($arg:ident),*)) => {{
        let both = zookeeper::Coordinated::new($store, $locks);
        zookeeper::erased(<zookeeper::Coordinated<$type> as $trait>::$method(&both, $($arg),*)).await
    }};
}

forward! {
    coordinated leases::Leases {
        fn acquire(ask: &leases::Acquire) -> leases::Acquired;
        fn renew(renewals: &[leases::Renewal]) -> Vec<leases::Renewed>;
        fn release(job: &JobName, owner: &Owner) -> ();
        fn observe(jobs: &[JobName]) -> Vec<leases::Observed>;
        fn held() -> Vec<leases::HeldLease>;
    }
    coordinated line::Lines {
        fn line(name: &JobName, most: usize) -> line::Line;
        fn join_line(
            name: &JobName, owner: &Owner, holder: &NodeName, waiter: &Waiter, lasting: Duration
        ) -> ();
        fn step_aside(name: &JobName, owner: &Owner, waiter: &Waiter, lasting: Duration) -> ();
        fn leave_line(name: &JobName, owner: &Owner, lapsed: Option<Stamp>) -> ();
        fn call_waiter(waiter: &Waiter) -> ();
    }
    coordinated jobs::Jobs {
        fn snapshot(jobs: &[JobName]) -> jobs::Snapshot;
        fn participate(job: &JobName, user: &UserName, on: bool, reason: Option<&str>) -> bool;
        fn hold(job: &JobName, by: &UserName, reason: &str) -> ();
        fn resume(job: &JobName) -> ();
        fn request_move(
            job: &JobName, to: Option<&NodeName>, by: &UserName, lasts: Duration
        ) -> ();
        fn request_drill(job: &JobName, token: Token, by: &UserName) -> Option<StoreTime>;
    }
    coordinated journal::Journal {
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
    coordinated timeline::Timelines {
        fn timeline(job: &JobName, most: usize) -> timeline::Seen;
        fn fold_runs(job: &JobName, kept: Duration) -> ();
    }
    plain nodes::Nodes {
        fn beat(beat: &nodes::Beat) -> nodes::Heard;
        fn nodes() -> Vec<nodes::NodeRecord>;
        fn define(told: &nodes::Told) -> ();
        fn definitions() -> Vec<nodes::Told>;
        fn drain(node: &NodeName, on: bool) -> ();
        fn forget(node: &NodeName) -> nodes::Forgotten;
        fn leave(node: &NodeName, boot: &str) -> ();
    }
    plain accounts::Accounts {
        fn add_user(user: &accounts::User, only_if_first: bool) -> ();
        fn change_user(name: &UserName, changes: &accounts::Changes) -> accounts::User;
        fn remove_user(name: &UserName) -> ();
        fn user(name: &UserName) -> Option<accounts::User>;
        fn users() -> Vec<accounts::User>;
    }
    plain alerts::Alerts {
        fn alert_book() -> alerts::Book;
        fn past_alerts(most: usize) -> Vec<alerts::Incident>;
        fn keep_sending(node: &NodeName, boot: &str, lasting: Duration) -> bool;
        fn stop_sending(node: &NodeName, boot: &str) -> ();
        fn note_alerts(node: &NodeName, boot: &str, noted: &alerts::Noted) -> bool;
        fn mute_alert(alert: &str, mute: alerts::Mute) -> Option<StoreTime>;
    }
    plain credentials::Credentials {
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
    plain dispatch::Sources {
        fn put_source(source: &SourceName, rules: &Rules) -> dispatch::SourceView;
        fn pause_source(source: &SourceName, paused: bool) -> dispatch::SourceView;
        fn block_source(source: &SourceName, lasting: Duration) -> dispatch::SourceView;
        fn sources(only: Option<&SourceName>) -> Vec<dispatch::SourceView>;
        fn remove_source(source: &SourceName, force: bool) -> dispatch::RemovedSource;
        fn collectors() -> Vec<dispatch::CollectorView>;
    }
    plain dispatch::Dispatch {
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
    plain throughput::Throughput {
        fn throughput() -> Option<throughput::Past>;
        fn note_throughput(step: i64, counted: &throughput::Counts) -> ();
    }
    belled rotation::Rotations {
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
    coordinated events::Events {
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
