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
//! A process that starts *after* the store was emptied, and asks before any process that knew it has called again
//! (about a second), finds what looks like a fresh store. Whatever it is granted, its token is the newer one.

mod accounts;
mod credentials;
mod events;
mod jobs;
mod journal;
mod keys;
mod leases;
mod link;
mod memory;
mod nodes;
mod record;
mod scripts;
mod server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{ConnectionAddr, IntoConnectionInfo, ProtocolVersion, Script, Value};

use self::keys::Keys;
use self::link::{Link, Repeat};
use self::memory::Memory;
use super::{Description, Options, Result, StoreError};
use crate::clock;
use crate::domain::time::StoreTime;

/// Version of the key layout.
const SCHEMA: u32 = 1;
/// Jobs in one script call.
const BATCH: usize = 100;
/// How long the kernel keeps trying to deliver what nobody acknowledges.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// A connection; cheap to clone.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    keys: Keys,
    /// Leases have a connection of their own: a long page of log must not hold a renewal up.
    leases: Link,
    rest: Link,
    memory: Mutex<Memory>,
    client: ::redis::Client,
    /// `HOST:PORT`.
    address: Arc<str>,
    database: i64,
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
    /// What the script itself answered.
    values: Vec<Value>,
}

impl RedisStore {
    /// Opens the Redis at `url` (`redis://` or `rediss://`), checks that it can keep the promise, and begins an
    /// epoch if it has none.
    ///
    /// # Errors
    /// As [`Store::connect`](super::Store::connect).
    pub async fn connect(url: &str, options: &Options) -> Result<Self> {
        let store = Self { shared: Arc::new(Shared::new(url, options)?) };
        server::Server::read(&store.shared).await?.check(&store.shared.address)?;
        let opened = store
            .guarded(
                &store.shared.leases,
                &scripts::OPEN_STORE,
                &[store.shared.keys.global("schema")],
                Duration::ZERO,
                &[SCHEMA.to_string()],
            )
            .await?;
        let found: u32 = record::parsed(
            &store.shared.keys.global("schema"),
            opened.values.into_iter().next().unwrap_or(Value::Nil),
        )?;
        if found > SCHEMA {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
        Ok(store)
    }

    /// As [`Store::describe`](super::Store::describe).
    ///
    /// # Errors
    /// As [`Store::describe`](super::Store::describe).
    pub async fn describe(&self) -> Result<Description> {
        let server = server::Server::read(&self.shared).await?;
        Ok(server.describe(&self.shared.address, self.shared.database))
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
        let values: Vec<Value> = link.script(&invocation, Repeat::Harmless).await?;
        let received = clock::boot();
        let mut values = values.into_iter();
        let (epoch, now, quarantine, longest_ms): (String, i64, u64, u64) =
            record::parsed(&epoch_key, values.next().unwrap_or(Value::Nil))?;
        let now = StoreTime(now);
        let jumped = {
            let mut memory = self.memory();
            if !memory.epoch.is_empty() && memory.epoch != epoch {
                tracing::warn!(
                    address = %self.shared.address,
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
                address = %self.shared.address,
                "the store's clock jumped: no lease is granted until every old one has run out"
            );
        }
        Ok(Guarded {
            epoch,
            now,
            quarantine: Duration::from_millis(quarantine),
            jumped,
            values: values.collect(),
        })
    }
}

impl Shared {
    fn new(url: &str, options: &Options) -> Result<Self> {
        // Never the URL in a message: it may hold a password.
        let unusable = |error: ::redis::RedisError| {
            StoreError::Unsupported(format!(
                "the store URL cannot be used ({}): write redis://USER:PASSWORD@HOST:PORT/DB",
                error.category()
            ))
        };
        let info = url.into_connection_info().map_err(unusable)?;
        let address: Arc<str> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => format!("{host}:{port}").into(),
            ConnectionAddr::TcpTls { host, port, .. } => {
                choose_tls_provider();
                format!("{host}:{port}").into()
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "use redis://HOST:PORT/DB or rediss://HOST:PORT/DB".to_owned(),
                ));
            }
        };
        let database = info.redis_settings().db();
        let tcp = info.tcp_settings().clone().set_nodelay(true).set_user_timeout(UNACKNOWLEDGED);
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let info = info.set_tcp_settings(tcp).set_redis_settings(settings);
        let client = ::redis::Client::open(info).map_err(unusable)?;
        Ok(Self {
            keys: Keys::new(&options.prefix),
            leases: Link::new(client.clone(), Arc::clone(&address), options.timeout),
            rest: Link::new(client.clone(), Arc::clone(&address), options.timeout),
            memory: Mutex::default(),
            client,
            address,
            database,
            timeout: options.timeout,
        })
    }
}

/// rustls takes no cryptography without being told which.
fn choose_tls_provider() {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider was chosen before");
    }
}

/// Whole milliseconds, as scripts take them.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
