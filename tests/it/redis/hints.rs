//! Events carry the record. They are hints all the same: lost, doubled, out of order or of an earlier life of the store, what the feed
//! shows is in the end what the store says, and nothing older after something newer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist::domain::lease::Timing;
use soloist::feed::{Feed, Followed, Seen};
use soloist::store::Store;
use soloist::store::jobs::Jobs;

use super::{connect, job, li};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

const CHANNEL: &str = "soloist:{outbound}:events";

struct World {
    server: RedisServer,
    /// It changes the job; the feed has a connection of its own.
    store: Store,
    feed: Feed,
    said: Arc<Mutex<Vec<String>>>,
}

impl World {
    async fn start() -> Self {
        let server = RedisServer::start(&[]);
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        let mut listener = ::redis::Client::open(server.url())
            .and_then(|client| client.get_connection())
            .expect("a connection");
        std::thread::spawn(move || {
            let mut channel = listener.as_pubsub();
            channel.subscribe(CHANNEL).expect("subscribed");
            while let Ok(message) = channel.get_message() {
                let said = message.get_payload().expect("a text");
                kept.lock().expect("no panic").push(said);
            }
        });
        let heard = || server.run::<(String, u64)>(&["PUBSUB", "NUMSUB", CHANNEL]).1;
        until_async("the listener listens", async || (heard() == 1).then_some(())).await;
        let followed = Followed {
            job: job(),
            timing: Timing::from_ttl(Duration::from_secs(5)).expect("safe"),
            min_uptime: Duration::ZERO,
            takes_turns: false,
            external: false,
            schedule: None,
        };
        let feed = Feed::start(connect(&server).await, vec![followed]).await;
        Self { store: connect(&server).await, feed, server, said }
    }

    async fn switch(&self, on: bool) {
        self.store.participate(&job(), &li(), on, None).await.expect("switched");
    }

    fn seen(&self) -> Seen {
        self.feed.job(&job()).expect("it is followed")
    }

    /// Waits until the feed shows what the store says.
    async fn until_true(&self) {
        until_async("the feed shows what the store says", async || {
            let truth = self.store.snapshot(&[job()]).await.ok()?.jobs.remove(0);
            (*self.seen().record == truth).then_some(())
        })
        .await;
    }

    async fn messages(&self, number: usize) -> Vec<String> {
        until_async("all is published", async || {
            let said = self.said.lock().expect("no panic");
            (said.len() >= number).then(|| said.clone())
        })
        .await
    }

    fn say_again(&self, message: &str) {
        self.server.run::<u64>(&["PUBLISH", CHANNEL, message]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_comes_with_an_event_saves_the_reading() {
    let world = World::start().await;
    world.until_true().await;
    let reads = || -> String { world.server.run(&["INFO", "commandstats"]) };
    let scripts = |stats: &str| -> u64 {
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
        let calls = line.and_then(|line| line.split(['=', ',']).nth(1)).expect("calls");
        calls.parse().expect("a number")
    };
    let before = scripts(&reads());
    for change in 0..50 {
        world.switch(change % 2 == 0).await;
    }
    let changed = world.seen().record.version;
    world.until_true().await;
    assert_eq!(world.seen().record.version, 50, "{changed} at once");
    // One for each change. The feed observes a few times while that goes on, and `until_true` reads.
    let needed = scripts(&reads()) - before;
    assert!(needed < 50 + 25, "{needed} scripts for 50 changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn doubled_late_and_out_of_order_nothing_older_is_shown_after_something_newer() {
    let world = World::start().await;
    for change in 0..10 {
        world.switch(change % 2 == 0).await;
    }
    world.until_true().await;
    let mut messages = world.messages(10).await;
    messages.reverse();
    for message in messages.iter().chain(&messages[3..7]) {
        world.say_again(message);
        assert_eq!(world.seen().record.version, 10);
    }
    world.switch(true).await;
    world.until_true().await;
    assert_eq!(world.seen().record.version, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_event_is_lost_is_seen_all_the_same() {
    let world = World::start().await;
    world.switch(true).await;
    world.until_true().await;
    let key = "soloist:{outbound}:record";
    let text: String = world.server.run(&["GET", key]);
    let (head, body) = text.split_once('\n').expect("a first line");
    let (_, at) = head.split_once(' ').expect("an instant");
    world.server.run::<()>(&["SET", key, &format!("7 {at}\n{body}")]);
    world.until_true().await;
    assert_eq!(world.seen().record.version, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_before_the_store_was_emptied_is_not_taken_for_a_newer_one() {
    let world = World::start().await;
    for change in 0..6 {
        world.switch(change % 2 == 0).await;
    }
    world.until_true().await;
    let messages = world.messages(6).await;
    world.server.run::<()>(&["FLUSHALL"]);
    world.switch(true).await;
    world.until_true().await;
    assert_eq!(world.seen().record.version, 1);
    for message in &messages {
        world.say_again(message);
        assert_eq!(world.seen().record.version, 1, "{message}");
    }
    world.switch(false).await;
    world.until_true().await;
    assert_eq!(world.seen().record.version, 2);
}
