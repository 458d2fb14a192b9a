//! The usual recipe: a hash names whose turn it is, and everybody of that type asks again and again.
//!
//! Made as good as polling can be: whoever finds its type's turn free takes it in one atomic step, and nobody dies. Asked
//! every [`EVERY`] by each waiter, over a handful of connections as a pool has them.

use std::sync::Arc;
use std::time::Duration;

use super::TYPES;
use super::crowd::{Crowd, Figure};
use super::support::redis::RedisServer;

const EVERY: Duration = Duration::from_millis(10);
const CONNECTIONS: usize = 8;
const TAKE: &str = "if redis.call('HGET', KEYS[1], 'type') == ARGV[1] \
    and redis.call('HSETNX', KEYS[1], 'holder', ARGV[2]) == 1 then return 1 end return 0";

pub(crate) async fn measure(waiters: usize, turns: usize) -> Figure {
    let server = Arc::new(RedisServer::start(&[]));
    server.run::<()>(&["HSET", "turn", "type", TYPES[0]]);
    let client = redis::Client::open(server.url()).expect("a client");
    let mut pool = Vec::new();
    for _ in 0..CONNECTIONS {
        pool.push(client.get_multiplexed_async_connection().await.expect("a connection"));
    }
    let crowd = Arc::new(Crowd::new(turns));
    let script = Arc::new(redis::Script::new(TAKE));
    // With two workers only two types are there: the recipe does not skip, so each has one at least.
    let workers: Vec<_> = (0..(waiters + 1).max(TYPES.len()))
        .map(|nth| {
            let (crowd, server, script) =
                (Arc::clone(&crowd), Arc::clone(&server), Arc::clone(&script));
            let mut connection = pool[nth % CONNECTIONS].clone();
            tokio::spawn(async move {
                let own = nth % TYPES.len();
                while !crowd.is_over() {
                    let taken: i32 = script
                        .key("turn")
                        .arg(TYPES[own])
                        .arg(nth)
                        .invoke_async(&mut connection)
                        .await
                        .expect("an answer");
                    if taken == 0 {
                        let wait = EVERY.mul_f64(rand::random_range(0.5..1.5));
                        tokio::time::sleep(wait).await;
                        continue;
                    }
                    crowd.granted(&server);
                    crowd.passing();
                    let next = TYPES[(own + 1) % TYPES.len()];
                    redis::pipe()
                        .hdel("turn", "holder")
                        .hset("turn", "type", next)
                        .query_async::<()>(&mut connection)
                        .await
                        .expect("an answer");
                }
            })
        })
        .collect();
    let figure = crowd.figure(&server).await;
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        // Aborted, as said.
        drop(worker.await);
    }
    figure
}
