//! The store in Redis 7: for nodes on many machines.
//!
//! Of jobs it is an engine (`engine.rs`): what becomes of them is decided in `domain::transition`, and one generic script commits it.
//! Of accounts, credentials, nodes, the audit and rotations it keeps rows, lists and logs (`records.rs`): what becomes of them is decided in
//! `store/core`. Of dispatch: one Lua script per transition (`verb_noun.lua`), so that a change and its event are one step.
//! One server, the one that sentinels name, or a cluster. It never retries what must not happen twice, and it keeps
//! no state of its own but what it needs to notice that the store forgot (`memory.rs`).
//!
//! # Keys
//!
//! With the default prefix; `J` is a job's name, and the braces are written (they are the hash tag).
//!
//! | key | type | holds |
//! | --- | --- | --- |
//! | `soloist:{J}:lease` | string, PX | JSON: `token run owner node ttl since`; exists if and only if a process may be running `J` |
//! | `soloist:{J}:record` | string | `VERSION INSTANT`, a line end, JSON: all else that is known of `J` (`store/core/record.rs`); ends 30 days after it was written when that is nothing but a version and a token |
//! | `soloist:{J}:log` | list | JSON lines, oldest first; their numbers are contiguous |
//! | `soloist:{J}:runs` | sorted set | `ID JSON` of ended runs, ordered by token |
//! | `soloist:{J}:events` | channel | `{"job","version","event","at","record","lease","left"}`; `events` too when it was more than one |
//! | `soloist:schema` | string | `soloist NUMBER`: the version of this layout (`store/schema.rs`) |
//! | `soloist:epoch` | hash | what this store says of itself (`domain/doubt.rs`) |
//! | `soloist:probe` | string, PX | nothing: written to find out whether the server takes writes |
//! | `soloist:nodes` | hash | node -> JSON of its newest report, and when it came |
//! | `soloist:definitions`, `soloist:digests` | hash | node -> JSON of what it defines, and its digest |
//! | `soloist:draining` | hash | nodes to keep empty |
//! | `soloist:nodes:events` | channel | a hint that nodes changed |
//! | `soloist:users` | hash | name -> JSON |
//! | `soloist:sessions`, `soloist:tokens`, `soloist:links` | hash | hash of secret -> JSON |
//! | `soloist:homes` | hash | where accounts have signed in, hashed |
//! | `soloist:failures`, `soloist:failures_by_age` | hash, sorted set | failed logins: instants by key; keys by the newest |
//! | `soloist:spans`, `soloist:spans:J`, `soloist:wants:J` | hash, sorted sets | who held `J` and who wanted it (`store/core/timeline.rs`) |
//! | `soloist:ticks:J` | sorted set | what became of the ticks of `J` (`store/core/ticks.rs`) |
//! | `soloist:throughput` | hash | what sources did in the last day (`store/core/throughput.rs`) |
//! | `soloist:hidden` | hash | names of jobs that only some accounts could see (`store/core/hidden.rs`) |
//! | `soloist:copy` | hash | the mark of a copy into this store that is not finished (`store/copy`) |
//! | `soloist:audit`, `soloist:audit_seq` | list, string | JSON entries, oldest first; contiguous numbers |
//!
//! Keys of dispatch: see `dispatch/mod.rs`; of rotations (`soloist:rotations`, `soloist:turns:...`): `store/core/rotation/names.rs`.
//!
//! On a cluster, what is about no job is called `soloist:{~}:schema`, `soloist:{~}:users` and so on, and each job has
//! an epoch of its own, `soloist:{J}:epoch`: each master may forget by itself. Scripts use the hash tag of one job, or
//! of none; on one server those which grant, renew or read leases also use `soloist:epoch`, a hundred jobs in a call.
//!
//! # What is not covered
//!
//! A process that starts after the store was emptied finds what looks like a fresh store. It holds back all the same
//! when `CLIENT LIST` shows a process that had opened it (their connections for leases are called `soloist:leases`).
//! A Redis that *restarts* empty closes those connections, and a newly started process may ask before the others have
//! dialled again: until a server has been up for as long as the longest lease, an empty store grants nothing. What
//! remains is a FLUSHALL on an older server in the very moment in which every holder is dialling. Whatever is granted
//! then, its token is the newer one.
//!
//! On a cluster each job has its own record, and `CLIENT LIST` is asked only when the whole store is new: there the
//! same moment remains for a process that is new to a job whose master alone was emptied.
//!
//! Behind a plain `redis://` URL, a former master that is cut off from its replicas and goes on accepting writes is a
//! second store. With sentinels or a cluster it is not (`sentinel.rs`, `cluster.rs`); otherwise set `min-replicas-to-write 1` and a
//! `min-replicas-max-lag` below the lease.

mod carry;
mod cluster;
mod dispatch;
mod engine;
mod epoch;
mod events;
mod examine;
mod fault;
mod held;
mod keys;
mod lane;
mod link;
mod members;
mod record;
mod records;
mod route;
mod scripts;
mod sentinel;
mod server;
mod shards;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{ToRedisArgs, Value};
use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};

use self::cluster::Cluster;
use self::dispatch::Exchanges;
use self::keys::Keys;
use self::lane::{Call, Lane, Sent};
use self::link::Repeat;
use self::route::Route;
use self::scripts::Transition;
use self::server::Use;
use soloist_domain::log::LogBounds;
use soloist_domain::name::CollectorName;
use soloist_domain::time::{Boot, StoreTime, millis};
use soloist_process::clock;
use soloist_process::sabotage::{Bug, planted};
use soloist_store::backend::{Backend, Dispatches};
use soloist_store::core::{Known, KnownTurns};
use soloist_store::examine::Finding;
use soloist_store::journal::AuditEntry;
use soloist_store::latest::Latest;
use soloist_store::memory::{Asked, Memories, Opening};
use soloist_store::schema::Steps;
use soloist_store::{Description, For, Options, Result, StoreError};

/// In order; never edited once released, only appended to. Keys come with what is first written, so there is nothing to make.
const STEPS: [&str; 1] = [""];
/// How often a store is judged anew that goes on changing.
const ATTEMPTS: usize = 32;
/// Jobs in one script call.
const BATCH: usize = 100;

/// A connection; cheap to clone.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
    /// What is written down with each call.
    note: Option<Arc<AuditEntry>>,
}

struct Shared {
    keys: Keys,
    /// Leases have connections of their own: a long page of log must not hold a renewal up.
    leases: Lane,
    /// So have requests for new ones: WAIT blocks its connection, and must not hold a renewal up either.
    grants: Lane,
    /// Dispatch is busy on its own account.
    dispatch: Lane,
    exchanges: Exchanges,
    /// What belongs to no job: who waits for a turn must not wait for a page of log.
    records: Lane,
    rest: Lane,
    memories: Mutex<Memories>,
    known: Known,
    turns: KnownTurns,
    /// The clock of the server that keeps what belongs to no job.
    latest: Mutex<Option<Latest>>,
    /// When it was last noted that a collector was seen.
    noted: Mutex<HashMap<CollectorName, Boot>>,
    place: Place,
    timeout: Duration,
    log: LogBounds,
}

/// Where the store is.
enum Place {
    /// On one server, though perhaps not always the same.
    Server(Arc<Route>),
    /// Spread over the masters of a cluster.
    Cluster(Arc<Cluster>),
}

/// A call of a script that begins with `trust_store.lua`.
struct Ask<'a> {
    transition: &'static Transition,
    epoch_key: String,
    /// Beside that one.
    keys: &'a [String],
    /// The longest lease that is asked for or kept; zero when none is.
    ttl: Duration,
    opening: Option<Opening>,
}

/// The answer of a script that begins with `trust_store.lua`.
struct Guarded {
    epoch: String,
    now: StoreTime,
    /// Left of it; zero when leases are granted.
    quarantine: Duration,
    /// The store's clock jumped since this process called before.
    jumped: bool,
    /// That followed the server at that moment.
    replicas: u64,
    /// Which connection it came by; not said of a call that grants nothing.
    by: Option<Sent>,
    /// What the script itself answered.
    values: Vec<Value>,
}

impl RedisStore {
    /// The Redis at `url` (`redis`, `rediss`, `redis+sentinel`, `rediss+sentinel`, `redis+cluster` or
    /// `rediss+cluster`), not yet spoken to.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`].
    pub fn named(url: &str, options: &Options) -> Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new(url, options)?), note: None })
    }
}

#[async_trait]
impl Backend for RedisStore {
    fn is_sharded(&self) -> bool {
        self.keys().on_a_cluster()
    }

    fn noting(&self, entry: AuditEntry) -> Arc<dyn Backend> {
        Arc::new(Self { note: Some(Arc::new(entry)), ..self.clone() })
    }

    fn dispatch(self: Arc<Self>) -> Arc<dyn Dispatches> {
        self
    }

    /// Begins an epoch if it has none.
    async fn open(&self, options: &Options) -> Result<()> {
        if options.checked {
            return Ok(());
        }
        let servers = server::Servers::read(&self.shared).await?;
        servers.check(&self.shared)?;
        server::check_commands(&self.shared).await?;
        let usage = server::usage(&self.shared).await?;
        if usage != Use::Used && !options.make && !self.has_an_epoch().await? {
            return Err(StoreError::Absent(self.shared.name().to_string()));
        }
        let unused = usage == Use::Unused;
        let opening = Opening { unused, longest_ms: millis(options.longest_lease) };
        let steps = Steps::new(self.shared.name().to_string(), &STEPS, options);
        let found = self.schema(&steps, opening).await?;
        if !steps.missing(found)?.is_empty() {
            self.upgrade(&steps, found, opening).await?;
        }
        // Only now, so that processes that start together in a fresh store do not take each other for witnesses.
        self.shared.leases.call_itself(&self.shared.keys.client()).await;
        Ok(())
    }

    async fn be_ready(&self, what: For) -> Result<()> {
        let Shared { leases, grants, rest, .. } = &*self.shared;
        let needed: &[(&Lane, &[&'static Transition])] = match what {
            For::GivingBack => &[(leases, &[&scripts::READ_RECORDS, &scripts::COMMIT_PLAN])],
            For::TakingOver => &[
                (grants, &[&scripts::COMMIT_GRANT]),
                (leases, &[&scripts::KEEP_LEASES, &scripts::COMMIT_PLAN]),
                (rest, &[&scripts::COMMIT_PLAN, &scripts::READ_RECORDS]),
            ],
        };
        for (lane, transitions) in needed {
            for link in lane.links().await? {
                for transition in *transitions {
                    let mut load = ::redis::cmd("SCRIPT");
                    load.arg("LOAD").arg(transition.text(self.is_sharded()));
                    link.command::<String>(&load, Repeat::Harmless).await?;
                }
            }
        }
        if matches!(what, For::GivingBack) && !self.is_sharded() {
            // What the store says of itself is known then, which saves a call when every millisecond counts.
            self.learn(leases, self.keys().epoch(None)).await?;
        }
        Ok(())
    }

    async fn refuses_login(&self) -> bool {
        match &self.shared.place {
            Place::Server(route) => match route.master().await {
                Ok(master) => master.refuses_login(self.shared.timeout).await,
                Err(_) => false,
            },
            Place::Cluster(cluster) => {
                let seeds = cluster.seed_masters();
                join_all(seeds.iter().map(|seed| seed.refuses_login(self.shared.timeout)))
                    .await
                    .contains(&true)
            }
        }
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.findings().await
    }

    async fn describe(&self) -> Result<Description> {
        let servers = server::Servers::read(&self.shared).await?;
        // What was refused at the start must not go on unsaid when it was set later.
        servers.check(&self.shared)?;
        // A server without memory, disk or replicas may read well and write nothing.
        let key = self.keys().global("probe");
        let mut probe = ::redis::cmd("SET");
        probe.arg(&key).arg("").arg("PX").arg(1_000);
        self.shared.rest.command::<()>(&key, &probe, Repeat::Harmless).await?;
        servers.describe(&self.shared).await
    }
}

impl RedisStore {
    /// The schema of the store, which is made if it has none.
    async fn schema(&self, steps: &Steps, opening: Opening) -> Result<u32> {
        let key = self.keys().global("schema");
        let ask = Ask {
            transition: &scripts::OPEN_STORE,
            epoch_key: self.keys().epoch(None),
            keys: std::slice::from_ref(&key),
            ttl: Duration::ZERO,
            opening: Some(opening),
        };
        let opened = self.ask(&self.shared.leases, ask, &[steps.known().to_string()]).await?;
        let found = opened.values.into_iter().next().unwrap_or(Value::Nil);
        match record::parsed::<i64>(&key, found)? {
            -1 => Err(steps.development()),
            found @ 1.. => Ok(u32::try_from(found).unwrap_or(u32::MAX)),
            _ => Err(StoreError::Unsupported(format!(
                "{} has a key {key} of another program: use another database (the number at the end of the store URL) or another `prefix`",
                self.shared.name(),
            ))),
        }
    }

    /// Applies the steps that a store of schema `found` lacks, each in one call with its number.
    async fn upgrade(&self, steps: &Steps, found: u32, opening: Opening) -> Result<()> {
        // Who is seen may have applied them meanwhile: it shows itself only afterwards.
        if server::others(&self.shared).await? != Use::Unused
            && self.schema(steps, opening).await? == found
        {
            return Err(steps.in_use(found));
        }
        let (key, base) = (self.keys().global("schema"), self.keys().global(""));
        for (number, step) in (found..).zip(steps.missing(found)?) {
            let text = scripts::APPLY_STEP.replace("{step}", step);
            let mut apply = ::redis::cmd("EVAL");
            apply.arg(text).arg(1).arg(&key).arg(number).arg(number + 1).arg(&base);
            self.shared.rest.command::<()>(&key, &apply, Repeat::Harmless).await?;
        }
        Ok(())
    }

    /// Whether this store is in use, or was: its nodes write this down again when it was emptied under them.
    async fn has_an_epoch(&self) -> Result<bool> {
        let key = self.keys().epoch(None);
        let mut exists = ::redis::cmd("EXISTS");
        exists.arg(&key);
        self.shared.rest.command(&key, &exists, Repeat::Harmless).await
    }

    /// Begins a call of a script.
    fn call(&self, transition: &'static Transition) -> Call {
        Call::new(transition, self.keys().on_a_cluster())
    }

    /// How many jobs may be in one call.
    fn batch(&self) -> usize {
        if self.is_sharded() { 1 } else { BATCH }
    }

    fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    fn memories(&self) -> MutexGuard<'_, Memories> {
        self.shared.memories.lock()
    }

    /// Runs a script that begins with `trust_store.lua`, and remembers what it says of the store.
    async fn guarded(
        &self,
        lane: &Lane,
        transition: &'static Transition,
        epoch_key: String,
        keys: &[String],
        ttl: Duration,
        arguments: &[impl ToRedisArgs],
    ) -> Result<Guarded> {
        let guarded = Ask { transition, epoch_key, keys, ttl, opening: None };
        self.ask(lane, guarded, arguments).await
    }

    /// Looks at what the store says of itself, and changes nothing: a process that has not opened the store must not begin an
    /// epoch in one that lost its own.
    async fn learn(&self, lane: &Lane, epoch_key: String) -> Result<()> {
        let mut call = self.call(&scripts::OBSERVE_RECORDS);
        call.key(&epoch_key);
        epoch::write(&mut call, &Asked::default())?;
        let sent = clock::boot();
        let values: Vec<Value> = lane.script(&call, Repeat::Harmless).await?;
        let received = clock::boot();
        let answer = values.into_iter().next().unwrap_or(Value::Nil);
        let answer = epoch::read(&epoch_key, answer)?;
        self.read_clock(&epoch_key, answer.now, sent, received);
        if let epoch::What::Doubted(seen) = answer.what {
            self.memories().of(&epoch_key).learn(seen);
        }
        Ok(())
    }

    /// As [`Self::guarded`]. A store that is not as this process knew it is looked at, judged, and asked again.
    async fn ask(
        &self,
        lane: &Lane,
        ask: Ask<'_>,
        arguments: &[impl ToRedisArgs],
    ) -> Result<Guarded> {
        let Ask { transition, epoch_key, keys, ttl, opening } = ask;
        // After a move, what the former master may have renewed meanwhile must run out as well.
        let ttl = if ttl.is_zero() { ttl } else { ttl + self.shared.lag() };
        for _ in 0..ATTEMPTS {
            let fresh = ulid::Ulid::generate().to_string();
            let sent = clock::boot();
            let asked = self.memories().of(&epoch_key).ask(sent, millis(ttl), &fresh, opening);
            let mut call = self.call(transition);
            call.key(&epoch_key);
            for key in keys {
                call.key(key);
            }
            epoch::write(&mut call, &asked)?;
            call.arg(arguments);
            let (values, by): (Vec<Value>, _) = lane.script_where(&call, Repeat::Harmless).await?;
            let received = clock::boot();
            let mut values = values.into_iter();
            let answer = epoch::read(&epoch_key, values.next().unwrap_or(Value::Nil))?;
            let jumped = self.read_clock(&epoch_key, answer.now, sent, received);
            let replicas = match answer.what {
                epoch::What::Doubted(seen) => {
                    self.memories().of(&epoch_key).learn(seen);
                    continue;
                }
                epoch::What::Trusted { replicas } => replicas,
            };
            let quarantine = asked.judged.quarantine(answer.now.0);
            let quarantine = if planted(Bug::NoQuarantine) { 0 } else { quarantine };
            return Ok(Guarded {
                epoch: self.accept(&epoch_key, &asked),
                now: answer.now,
                quarantine: Duration::from_millis(u64::try_from(quarantine).unwrap_or(0)),
                jumped,
                replicas,
                by: Some(by),
                values: values.collect(),
            });
        }
        Err(StoreError::Unavailable(format!(
            "what {} says of itself changes too often at this moment",
            self.shared.name()
        )))
    }

    /// Notes that the store is as it was judged; returns the epoch of all jobs.
    fn accept(&self, epoch_key: &str, asked: &Asked) -> String {
        let mut memories = self.memories();
        let memory = memories.of(epoch_key);
        let epoch = asked.judged.id.clone();
        let replaced = !memory.epoch.is_empty() && memory.epoch != epoch;
        if replaced {
            tracing::warn!(
                store = %self.shared.name(), record = epoch_key,
                "the store was emptied or replaced: no lease is granted until every old one has run out"
            );
        }
        memory.accept(asked);
        memories.replaced += u64::from(replaced);
        if self.is_sharded() { memories.whole(&self.keys().epoch(None)) } else { epoch }
    }

    /// Notes what the store's clock said; whether it jumped since the reading before.
    fn read_clock(&self, epoch_key: &str, now: StoreTime, sent: Boot, received: Boot) -> bool {
        let jumped = self.memories().of(epoch_key).read_clock(now, sent, received);
        if jumped {
            tracing::warn!(
                store = %self.shared.name(), record = epoch_key,
                "the store's clock jumped: no lease is granted until every old one has run out"
            );
        }
        jumped
    }
}

impl Shared {
    fn new(url: &str, options: &Options) -> Result<Self> {
        let place = match cluster::Parts::of(url) {
            Some(parts) => Place::Cluster(Cluster::start(parts?, options.timeout)?),
            None => Place::Server(Arc::new(Route::new(url, options.timeout)?)),
        };
        let on_a_cluster = matches!(place, Place::Cluster(_));
        if on_a_cluster && options.prefix.contains(['{', '}']) {
            return Err(StoreError::Unsupported(
                "on a cluster the key prefix must be without braces: they would change which keys belong together"
                    .to_owned(),
            ));
        }
        let lane = || match &place {
            Place::Server(route) => Lane::one(Arc::clone(route), options.timeout),
            Place::Cluster(cluster) => Lane::each(Arc::clone(cluster), options.timeout),
        };
        let near = || match &place {
            Place::Server(route) => Lane::near(Arc::clone(route), options.timeout),
            Place::Cluster(_) => lane(),
        };
        Ok(Self {
            keys: Keys::new(&options.prefix, on_a_cluster),
            leases: near(),
            grants: near(),
            dispatch: near(),
            exchanges: Exchanges::default(),
            records: near(),
            rest: lane(),
            memories: Mutex::default(),
            known: Known::default(),
            turns: KnownTurns::default(),
            latest: Mutex::default(),
            noted: Mutex::default(),
            place,
            timeout: options.timeout,
            log: options.log,
        })
    }

    /// As [`Route::lag`].
    fn lag(&self) -> Duration {
        match &self.place {
            Place::Server(route) => route.lag(),
            Place::Cluster(_) => cluster::BELIEVED_FOR,
        }
    }

    /// For messages.
    fn name(&self) -> Arc<str> {
        match &self.place {
            Place::Server(route) => route.name(),
            Place::Cluster(cluster) => cluster.name().into(),
        }
    }
}
