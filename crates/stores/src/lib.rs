//! Opens a store by its URL: the one crate above all kinds of stores.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use soloist_store::backend::Backend;
use soloist_store::coordination::{self, Coordination};
use soloist_store::{Options, Result, Store, StoreError};
use soloist_store_redis::RedisStore;
use soloist_store_sql::postgres;
use soloist_store_sql::sqlite::SqliteStore;

/// Opens the store at `url`, makes or upgrades its schema and checks that it can keep the promise.
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
pub fn connect<'a>(url: &'a str, options: &'a Options) -> BoxFuture<'a, Result<Store>> {
    Box::pin(async move {
        let store = named(url, options).await?;
        store.open(options).await?;
        Ok(store)
    })
}

/// The store at `url` before a word was spoken to its server: every call is [`StoreError::Unavailable`] until
/// [`Store::open`] has succeeded once. A SQLite file is opened at once.
///
/// # Errors
/// As [`connect`].
pub fn named<'a>(url: &'a str, options: &'a Options) -> BoxFuture<'a, Result<Store>> {
    Box::pin(async move {
        let (url, coordination) = soloist_domain::ensemble::split(url);
        let backend: Arc<dyn Backend> = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") if coordination.is_some() => return Err(coordination::no_server()),
            Some("sqlite") => Arc::new(SqliteStore::connect(url, options).await?),
            Some(
                "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster"
                | "rediss+cluster",
            ) => Arc::new(RedisStore::named(url, options)?),
            Some("postgres" | "postgresql") => Arc::new(postgres::named(url, options)?),
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => Arc::new(soloist_store_sql::mysql::named(url, options)?),
            #[cfg(not(feature = "mysql"))]
            Some("mysql" | "mariadb") => {
                let why = soloist_process::parts::MYSQL.missing().unwrap_or_default();
                return Err(StoreError::Unsupported(why));
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "unknown kind of store: use sqlite:PATH, redis://HOST:PORT/DB, rediss://HOST:PORT/DB, redis+sentinel://HOST1,HOST2,HOST3/MASTERNAME, redis+cluster://HOST1,HOST2,HOST3/, postgres://HOST:PORT/DATABASE or mysql://HOST:PORT/DATABASE"
                        .to_owned(),
                ));
            }
        };
        let locks = coordination.map(|url| locks(url, options, backend.clone()));
        Ok(Store::on(backend, locks.transpose()?, options))
    })
}

#[cfg(feature = "zookeeper")]
fn locks(url: &str, options: &Options, store: Arc<dyn Backend>) -> Result<Arc<dyn Coordination>> {
    let locks: Arc<dyn Coordination> = soloist_store_zookeeper::Locks::named(url, options, store)?;
    Ok(locks)
}

#[cfg(not(feature = "zookeeper"))]
fn locks(_: &str, _: &Options, _: Arc<dyn Backend>) -> Result<Arc<dyn Coordination>> {
    let why = soloist_process::parts::ZOOKEEPER.missing().unwrap_or_default();
    Err(StoreError::Unsupported(format!("coordination: {why}")))
}
