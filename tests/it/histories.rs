//! Random histories in which time matters, played on every store beside what must answer as the store does.
//!
//! | file | what is played | beside it |
//! | --- | --- | --- |
//! | `leases` | switches, leases, runs, moves, drills, and crashes of the store | the transitions of `domain::transition`, and `domain::doubt` (`law`) |
//! | `rotation` | turns, gaps, quotas, promises | the transitions of `domain::rotation` |
//! | `records` | looks and changes of what belongs to no job; no time matters | the store in memory |
//! | `dispatch` | tasks, claims, gaps, windows, leases | the transitions of `domain::dispatch` |
//!
//! On a real store time passes by itself: spans are a few milliseconds, and a step that lies too close to an end proves nothing. On
//! the store in memory time stands still until a history lets it pass: there the same spans are seconds and minutes, a history lasts
//! for hours, and every step is compared.
//!
//! `HISTORY_SEED=7` plays that history alone.

mod dispatch;
mod law;
mod leases;
mod records;
mod rotation;

use std::any::Any;
use std::ops::Range;
use std::time::Duration;

use soloist::store::{Options, Store};
use soloist_store_memory::World;
use tokio::task::JoinSet;

use crate::conformance::{patient, unique};
use crate::support::cluster::RedisCluster;
use crate::support::mariadb::MariaServer;
use crate::support::postgres::PostgresServer;
use crate::support::redis::RedisServer;

const MS: Duration = Duration::from_millis(1);

/// Where histories are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Sqlite,
    Redis,
    Cluster,
    Postgres,
    Mariadb,
}

/// Makes a test of `$agree` for every store.
macro_rules! on_every_store {
    ($agree:ident, $steps:expr, $memory:expr, $most:expr, $some:expr) => {
        super::on_every_store! { @each $agree, $steps;
            memory_answers_for_hours_as_the_law_says Memory $memory,
            sqlite_answers_in_time_as_the_law_says Sqlite $most,
            redis_answers_in_time_as_the_law_says Redis $most,
            a_cluster_answers_in_time_as_the_law_says Cluster $some,
            postgres_answers_in_time_as_the_law_says Postgres $some,
            mariadb_answers_in_time_as_the_law_says Mariadb $some
        }
    };
    (@each $agree:ident, $steps:expr; $($test:ident $kind:ident $count:expr),*) => {
        $(async fn $test() {
            super::compare(super::Kind::$kind, $count, $steps, $agree).await;
        })*
        crate::support::machine::judged! { $($test)* }
    };
}
use on_every_store;

/// Plays `histories` at once, each on an empty store, and checks that enough of their steps were compared.
async fn compare<F>(kind: Kind, histories: u64, steps: usize, agree: impl Fn(Store, u64) -> F)
where
    F: Future<Output = usize> + Send + 'static,
{
    let seeds = seeds(histories);
    let (stores, _guard) = stores(kind, seeds.clone()).await;
    let mut plays = JoinSet::new();
    for (seed, store) in seeds.clone().zip(stores) {
        plays.spawn(agree(store, seed));
    }
    enough(kind, &seeds, steps, plays.join_all().await.into_iter().sum());
}

/// Which histories are played.
#[expect(clippy::disallowed_methods, reason = "a developer names one history to be played")]
fn seeds(histories: u64) -> Range<u64> {
    let Ok(seed) = std::env::var("HISTORY_SEED") else { return 0..histories };
    let seed: u64 = seed.parse().expect("HISTORY_SEED is a number");
    seed..seed + 1
}

/// Whether enough steps were compared to say anything.
fn enough(kind: Kind, seeds: &Range<u64>, steps: usize, compared: usize) {
    let all = steps * usize::try_from(seeds.end - seeds.start).expect("few");
    println!("{kind:?}: {compared} of {all} steps were compared");
    if kind == Kind::Memory {
        assert_eq!(compared, all, "nothing is in doubt while time stands still");
    }
    assert!(compared * 4 > all, "the machine is too slow to compare: {compared} of {all} steps");
}

/// An empty store for each seed, and what they live in.
async fn stores(kind: Kind, seeds: Range<u64>) -> (Vec<Store>, Box<dyn Any + Send>) {
    let mut guard: Box<dyn Any + Send> = Box::new(());
    let mut urls = Vec::new();
    match kind {
        Kind::Memory => {
            let options = patient();
            let stores = seeds.map(|_| World::new(&options).connect(&options));
            return (stores.collect(), guard);
        }
        Kind::Sqlite => {
            let directory = tempfile::tempdir().expect("a directory");
            // Who makes a store in a directory that others use, or beside it, waits for a lease before it grants anything.
            let file =
                |seed| directory.path().join(format!("{seed}/own/a.db")).display().to_string();
            urls.extend(seeds.map(|seed| format!("sqlite:{}", file(seed))));
            guard = Box::new(directory);
        }
        Kind::Redis => {
            let server = RedisServer::start(&[]);
            urls.extend(seeds.map(|_| server.url()));
            guard = Box::new(server);
        }
        Kind::Cluster => urls.extend(seeds.map(|_| RedisCluster::shared().url())),
        Kind::Postgres => urls.extend(seeds.map(|_| PostgresServer::shared().database())),
        Kind::Mariadb => urls.extend(seeds.map(|_| MariaServer::shared().database())),
    }
    let mut stores = Vec::new();
    for url in urls {
        let mut options = patient();
        // Channels of Redis are the server's, whatever the database.
        if matches!(kind, Kind::Redis | Kind::Cluster) {
            options.prefix = format!("{}:", unique("history"));
        }
        stores.push(open(&url, &options).await);
    }
    (stores, guard)
}

async fn open(url: &str, options: &Options) -> Store {
    soloist::stores::connect(url, options).await.expect("a store")
}

/// What counts as a short time: on the store in memory up to a minute.
fn unit(store: &Store, seed: u64) -> Duration {
    match soloist_store_memory::world(store) {
        Some(_) => MS * [1, 1_000, 60_000][usize::try_from(seed % 3).expect("small")],
        None => MS,
    }
}

/// How much of what happens has no exact instant, at least.
fn blur(store: &Store) -> Duration {
    if soloist_store_memory::world(store).is_some() { Duration::ZERO } else { MS }
}

/// Lets `span` pass, and never nothing.
async fn pass(store: &Store, span: Duration) {
    match soloist_store_memory::world(store) {
        Some(world) => world.pass(span + Duration::from_micros(1)),
        None => tokio::time::sleep(span).await,
    }
}
