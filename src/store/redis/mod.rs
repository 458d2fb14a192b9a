//! The store in Redis 7: for nodes on many machines.
//!
//! One Lua script per transition (`verb_noun.lua`), so that a change, its version and its event are one step.
//! One server only: Cluster is refused until it works. It never retries what must not happen twice, and it keeps
//! no state of its own but what it needs to notice that the store forgot (`memory.rs`).
//!
//! # Keys
//!
//! With the default prefix; `J` is a job's name, and the braces are written (they are the hash tag).
//!
//! | key | type | holds |
//! | --- | --- | --- |
//! | `soloist:{J}:lease` | hash, PX | `owner node token since ttl`; exists if and only if somebody may be running `J` |
//! | `soloist:{J}:participants` | hash | user -> since, milliseconds since 1970 |
//! | `soloist:{J}:token` | string | newest fencing token; never expires, never deleted |
//! | `soloist:{J}:state` | hash | `version`; `hold_*`, `run_*`, `exit_*`, `switch_*`, `next_*`, `move_*`, `drill_*`; `crashes`, `given_up`, `last_line`, `log_seq`, `holder`, `released` |
//! | `soloist:{J}:log` | list | JSON lines, oldest first; their numbers are contiguous and end at `log_seq` |
//! | `soloist:{J}:runs` | sorted set | `ID JSON` of ended runs, ordered by id |
//! | `soloist:{J}:events` | channel | `{"job","version","event"}` |
//! | `soloist:schema` | string | version of this layout |
//! | `soloist:epoch` | hash | `id run_id since until longest before turned`: whether this is the store we knew (`guard_store.lua`) |
//! | `soloist:probe` | string, PX | nothing: written to find out whether the server takes writes |
//! | `soloist:nodes` | hash | node -> `MILLISECONDS JSON` of its newest report |
//! | `soloist:drains` | set | nodes to keep empty |
//! | `soloist:nodes:events` | channel | a hint that nodes changed |
//! | `soloist:users` | hash | name -> JSON |
//! | `soloist:sessions` | hash | hash of secret -> `CREATED EXPIRES USED JSON` |
//! | `soloist:tokens` | hash | hash of secret -> `CREATED EXPIRES JSON` |
//! | `soloist:links` | hash | hash of secret -> `EXPIRES JSON` |
//! | `soloist:failures:KEY` | sorted set, PX | failed logins by time |
//! | `soloist:audit`, `soloist:audit_seq` | list, string | JSON entries, oldest first; contiguous numbers |
//!
//! Scripts about one job use that job's hash tag alone, except that those which grant, renew or read leases also
//! read `soloist:epoch`; on a cluster that record would have to exist once for each slot.
//!
//! # What is not covered
//!
//! A process that starts after the store was emptied finds what looks like a fresh store. It holds back all the same
//! when `CLIENT LIST` shows a process that had opened it (their connections for leases are called `soloist:leases`).
//! A Redis that *restarts* empty closes those connections, and a newly started process may ask before the others have
//! dialled again: on a server that has been up for less than ten minutes an empty store therefore grants a lease only
//! when it has been known for as long as that lease lasts. What remains is a FLUSHALL on an older server in the very
//! moment in which every holder is dialling. Whatever is granted then, its token is the newer one.
//!
//! Behind a plain `redis://` URL, a former master that is cut off from its replicas and goes on accepting writes is a
//! second store. With sentinels it is not (`sentinel.rs`); otherwise set `min-replicas-to-write 1` and a
//! `min-replicas-max-lag` below the lease.

mod accounts;
mod credentials;
mod events;
mod examine;
mod jobs;
mod journal;
mod keys;
mod leases;
mod link;
mod memory;
mod nodes;
mod record;
mod route;
mod scripts;
mod sentinel;
mod server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{Script, Value};

use self::keys::Keys;
use self::link::{Generation, Link, Repeat};
use self::memory::Memory;
use self::route::Route;
use super::{Description, Options, Result, StoreError};
use crate::clock;
use crate::domain::time::StoreTime;

/// Version of the key layout.
const SCHEMA: u32 = 1;
/// Jobs in one script call.
const BATCH: usize = 100;

/// A connection; cheap to clone.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    keys: Keys,
    /// Leases have a connection of their own: a long page of log must not hold a renewal up.
    leases: Link,
    /// So have requests for new ones: WAIT blocks its connection, and must not hold a renewal up either.
    grants: Link,
    rest: Link,
    memory: Mutex<Memory>,
    route: Arc<Route>,
    timeout: Duration,
}

/// The answer of a script that begins with `guard_store.lua`.
struct Guarded {
    epoch: String,
    now: StoreTime,
    /// Left of it; zero when leases are granted.
    quarantine: Duration,
    /// The store's clock jumped since this process called before.
    jumped: bool,
    /// That followed the server at that moment.
    replicas: u64,
    /// Which connection it came by.
    by: Generation,
    /// What the script itself answered.
    values: Vec<Value>,
}

impl RedisStore {
    /// Opens the Redis at `url` (`redis://`, `rediss://`, `redis+sentinel://`, `rediss+sentinel://`), checks that it can keep the promise, and begins an
    /// epoch if it has none.
    ///
    /// # Errors
    /// As [`Store::connect`](super::Store::connect).
    pub async fn connect(url: &str, options: &Options) -> Result<Self> {
        let store = Self { shared: Arc::new(Shared::new(url, options)?) };
        let server = server::Server::read(&store.shared).await?;
        server.check(&store.shared.route.name())?;
        let emptiness = server::emptiness(&store.shared, &server).await?;
        let opened = store
            .guarded(
                &store.shared.leases,
                &scripts::OPEN_STORE,
                &[store.shared.keys.global("schema")],
                Duration::ZERO,
                &[SCHEMA.to_string(), emptiness.as_str().to_owned()],
            )
            .await?;
        let found: u32 = record::parsed(
            &store.shared.keys.global("schema"),
            opened.values.into_iter().next().unwrap_or(Value::Nil),
        )?;
        if found > SCHEMA {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
        // Only now, so that processes that start together in a fresh store do not take each other for witnesses.
        store.shared.leases.call_itself(&store.shared.keys.client()).await;
        Ok(store)
    }

    /// As [`Store::describe`](super::Store::describe).
    ///
    /// # Errors
    /// As [`Store::describe`](super::Store::describe).
    pub async fn describe(&self) -> Result<Description> {
        let server = server::Server::read(&self.shared).await?;
        // What was refused at the start must not go on unsaid when it was set later.
        server.check(&self.shared.route.name())?;
        // A server without memory, disk or replicas may read well and write nothing.
        let mut probe = ::redis::cmd("SET");
        probe.arg(self.keys().global("probe")).arg("").arg("PX").arg(1_000);
        self.shared.rest.command::<()>(&probe, Repeat::Harmless).await?;
        server.describe(&self.shared.route).await
    }

    fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a script that begins with `guard_store.lua`, and remembers what it says of the store.
    async fn guarded(
        &self,
        link: &Link,
        script: &Script,
        keys: &[String],
        ttl: Duration,
        arguments: &[String],
    ) -> Result<Guarded> {
        let epoch_key = self.keys().epoch();
        // After a move, what the former master may have renewed meanwhile must run out as well.
        let ttl = if ttl.is_zero() { ttl } else { ttl + self.shared.route.lag() };
        let mut invocation = script.prepare_invoke();
        invocation.key(&epoch_key).key(keys);
        let suspect = {
            let memory = self.memory();
            invocation
                .arg(&memory.epoch)
                .arg(ulid::Ulid::generate().to_string())
                .arg(memory.longest_ms)
                .arg(millis(ttl))
                .arg(u8::from(memory.suspect));
            memory.suspect
        };
        invocation.arg(arguments);
        let sent = clock::boot();
        let (values, by): (Vec<Value>, _) =
            link.script_where(&invocation, Repeat::Harmless).await?;
        let received = clock::boot();
        let mut values = values.into_iter();
        let (epoch, now, quarantine, longest_ms, replicas): (String, i64, u64, u64, u64) =
            record::parsed(&epoch_key, values.next().unwrap_or(Value::Nil))?;
        let now = StoreTime(now);
        let jumped = {
            let mut memory = self.memory();
            if !memory.epoch.is_empty() && memory.epoch != epoch {
                tracing::warn!(
                    address = %self.shared.route.name(),
                    "the store was emptied or replaced: no lease is granted until every old one has run out"
                );
            }
            memory.epoch.clone_from(&epoch);
            memory.longest_ms = longest_ms;
            if suspect {
                memory.suspect = false;
            }
            memory.read_clock(now, sent, received)
        };
        if jumped {
            tracing::warn!(
                address = %self.shared.route.name(),
                "the store's clock jumped: no lease is granted until every old one has run out"
            );
        }
        Ok(Guarded {
            epoch,
            now,
            quarantine: Duration::from_millis(quarantine),
            jumped,
            replicas,
            by,
            values: values.collect(),
        })
    }
}

impl Shared {
    fn new(url: &str, options: &Options) -> Result<Self> {
        let route = Arc::new(Route::new(url, options.timeout)?);
        let link = || Link::new(Arc::clone(&route), options.timeout);
        Ok(Self {
            keys: Keys::new(&options.prefix),
            leases: link(),
            grants: link(),
            rest: link(),
            memory: Mutex::default(),
            route,
            timeout: options.timeout,
        })
    }
}

/// Whole milliseconds, as scripts take them.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
