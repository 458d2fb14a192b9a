//! Acquire and release, over and over, of a lease that nobody else wants: over HTTP, by the store's own calls, and as the usual Redis lock.
//!
//! Each client has a name of its own. Over HTTP each has a kept connection to the first node; the other two share one connection of this process.

use std::time::Duration;

use redis::{Script, SetExpiry, SetOptions};
use soloist::clock::boot;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};
use tokio::task::JoinSet;

use super::http::Program;
use super::support::redis::RedisServer;
use super::table::rank;
use super::world::World;

const TTL: Duration = Duration::from_secs(10);

/// p50 of a pair in ms, and pairs a second.
type Figures = [f64; 2];

pub(crate) async fn over_http(world: &World, clients: usize, seconds: u64) -> Figures {
    let mut programs = JoinSet::new();
    for nth in 0..clients {
        let door = world.door(0);
        programs.spawn(async move {
            let mut program = Program::at(&door, &format!("client-{nth}")).await;
            let name = format!("pair-{nth}");
            let mut spans = Spans::for_seconds(seconds);
            while spans.go_on() {
                let lease = program.take(&name, 10_000).await;
                program.release(&lease).await;
                spans.note();
            }
            spans.all
        });
    }
    figures(programs, seconds).await
}

pub(crate) async fn in_the_store(world: &World, clients: usize, seconds: u64) -> Figures {
    let mut programs = JoinSet::new();
    for nth in 0..clients {
        let store = world.store.clone();
        programs.spawn(async move {
            let mut spans = Spans::for_seconds(seconds);
            while spans.go_on() {
                let ask = Acquire {
                    job: JobName::new(&format!("direct-{nth}")).expect("a name"),
                    owner: Owner(format!("{:032x}/{nth}", rand::random::<u128>())),
                    node: NodeName::new("bench").expect("a name"),
                    ttl: TTL,
                    condition: Condition::None,
                    seen: Token(0),
                };
                let answer = store.acquire(&ask).await.expect("an answer");
                assert!(matches!(answer, Acquired::Granted { .. }), "{answer:?}");
                store.release(&ask.job, &ask.owner).await.expect("an answer");
                spans.note();
            }
            spans.all
        });
    }
    figures(programs, seconds).await
}

/// What people write themselves: no order, no token, nobody is told.
pub(crate) async fn plain(server: &RedisServer, clients: usize, seconds: u64) -> Figures {
    const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    let client = redis::Client::open(server.url()).expect("an address");
    let connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let mut programs = JoinSet::new();
    for nth in 0..clients {
        let mut connection = connection.clone();
        programs.spawn(async move {
            let (key, release) = (format!("plain-{nth}"), Script::new(RELEASE));
            let ttl = SetExpiry::PX(u64::try_from(TTL.as_millis()).expect("short"));
            let options = SetOptions::default()
                .conditional_set(redis::ExistenceCheck::NX)
                .with_expiration(ttl);
            let mut spans = Spans::for_seconds(seconds);
            while spans.go_on() {
                let own = format!("{:032x}", rand::random::<u128>());
                let set = redis::cmd("SET").arg(&key).arg(&own).arg(&options).to_owned();
                let had: bool = set.query_async(&mut connection).await.expect("an answer");
                assert!(had, "nobody else wants it");
                let mut call = release.key(&key);
                let freed: u64 =
                    call.arg(&own).invoke_async(&mut connection).await.expect("an answer");
                assert_eq!(freed, 1);
                spans.note();
            }
            spans.all
        });
    }
    figures(programs, seconds).await
}

/// The times of one client.
struct Spans {
    until: soloist::domain::time::Boot,
    from: soloist::domain::time::Boot,
    all: Vec<Duration>,
}

impl Spans {
    fn for_seconds(seconds: u64) -> Self {
        let from = boot();
        Self { until: from + Duration::from_secs(seconds), from, all: Vec::new() }
    }

    /// Whether there is time for another pair, which begins now.
    fn go_on(&mut self) -> bool {
        self.from = boot();
        self.from < self.until
    }

    fn note(&mut self) {
        self.all.push(boot().since(self.from));
    }
}

async fn figures(programs: JoinSet<Vec<Duration>>, seconds: u64) -> Figures {
    let all = programs.join_all().await.into_iter().flatten();
    let mut all: Vec<f64> = all.map(|span| span.as_secs_f64() * 1_000.0).collect();
    all.sort_by(f64::total_cmp);
    [rank(&all, 50), all.len() as f64 / seconds as f64]
}
