//! Names that are used once: Redis ends their records by itself.

use std::time::Duration;

use soloist::domain::lease::Timing;
use soloist::domain::name::JobName;
use soloist::domain::transition::forget::KEPT;
use soloist::store::feed::{Feed, Followed};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::{Acquire, Leases as _};

use super::{TTL, ask, connect, granted, job, li, renew_one, renewal};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

const NEVER: i64 = -1;

fn record_of(name: &JobName) -> String {
    format!("soloist:{{{name}}}:record")
}

/// Milliseconds until the record of `name` goes.
fn left(server: &RedisServer, name: &JobName) -> i64 {
    server.run(&["PTTL", &record_of(name)])
}

/// Follows the job.
async fn feed(server: &RedisServer) -> Feed {
    let followed = Followed {
        job: job(),
        timing: Timing::from_ttl(TTL).expect("long enough"),
        min_uptime: TTL,
        takes_turns: false,
        external: true,
        schedule: None,
    };
    Feed::start(connect(server).await, vec![followed]).await
}

#[tokio::test]
async fn the_record_of_a_lease_ends_a_month_after_its_release_and_not_while_it_is_held() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL * 100);
    for _ in 0..2 {
        let token = granted(&store, &asked).await;
        assert_eq!(left(&server, &job()), NEVER, "it is held");
        renew_one(&store, &renewal(&asked, token)).await;
        assert_eq!(left(&server, &job()), NEVER, "it is held still");
        store.release(&asked.job, &asked.owner).await.expect("given back");
        let month = i64::try_from(KEPT.as_millis()).expect("a number");
        let left = left(&server, &job());
        assert!(month - 60_000 < left && left <= month, "{left}");
    }
    store.participate(&job(), &li(), true, None).await.expect("switched on");
    assert_eq!(left(&server, &job()), NEVER, "somebody wants it");
    store.participate(&job(), &li(), false, None).await.expect("switched off");
    assert_eq!(left(&server, &job()), NEVER, "it says who");
}

#[tokio::test]
async fn names_that_are_used_once_leave_nothing_that_stays() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let before: u64 = server.run(&["DBSIZE"]);
    for nth in 0..200 {
        let name: JobName = format!("order-{nth}").parse().expect("a good name");
        let asked = Acquire { job: name, ..ask("node-a", TTL) };
        granted(&store, &asked).await;
        store.release(&asked.job, &asked.owner).await.expect("given back");
    }
    let keys: Vec<String> = server.run(&["KEYS", "*"]);
    let stay = keys.iter().filter(|key| server.run::<i64>(&["PTTL", key]) == NEVER).count();
    assert_eq!(keys.len() as u64, before + 200);
    assert_eq!(stay as u64, before, "{keys:?}");
}

/// A job that is followed, and never said more than that somebody had its lease.
#[tokio::test]
async fn a_record_that_ended_is_no_store_that_forgot() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL * 100);
    let before = granted(&store, &asked).await;
    store.release(&asked.job, &asked.owner).await.expect("given back");
    let feed = feed(&server).await;
    let epoch = feed.epoch();
    assert_eq!(feed.job(&job()).expect("a picture").record.version, 2);
    server.run::<i64>(&["PEXPIRE", &record_of(&job()), "1"]);
    let seen = until_async("the feed sees that it is gone", async || {
        feed.job(&job()).filter(|seen| seen.record.version == 0)
    })
    .await;
    assert_eq!(seen.record.token, before, "no token goes back");
    assert_eq!((feed.epoch(), feed.trouble()), (epoch, None));
    let snapshot = store.snapshot(&[job()]).await.expect("an answer");
    assert_eq!(snapshot.quarantine, Duration::ZERO);
    let after = granted(&store, &ask("node-b", TTL * 100)).await;
    assert!(after > before, "{after} after {before}");
    until_async("the feed sees who has it", async || {
        feed.job(&job()).filter(|seen| seen.record.token == after).map(drop)
    })
    .await;
}

/// It ended and was used again before anybody looked.
#[tokio::test]
async fn a_name_that_is_used_again_behind_the_back_of_a_feed_is_followed() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL * 100);
    for _ in 0..3 {
        granted(&store, &asked).await;
        store.release(&asked.job, &asked.owner).await.expect("given back");
    }
    let feed = feed(&server).await;
    assert_eq!(feed.job(&job()).expect("a picture").record.version, 6);
    server.run::<i64>(&["DEL", &record_of(&job())]);
    let after = granted(&store, &asked).await;
    until_async("the feed sees who has it", async || {
        feed.job(&job()).filter(|seen| seen.record.token == after).map(drop)
    })
    .await;
}
