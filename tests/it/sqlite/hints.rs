//! Events carry the record, which is read beside them. They are hints all the same: lost, doubled or out of order, what the feed shows
//! is in the end what the store says, and nothing older after something newer.
//!
//! An event of a store that was emptied, as on Redis, does not exist here: a file that is replaced stops every call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use soloist::domain::lease::Timing;
use soloist::domain::name::{JobName, UserName};
use soloist::feed::{Feed, Followed, Seen};
use soloist::store::jobs::Jobs;
use soloist::store::{Options, Store};
use tempfile::TempDir;

use crate::support::wait::until_async;

fn job() -> JobName {
    JobName::new("outbound").expect("a good name")
}

fn li() -> UserName {
    UserName::new("li").expect("a good name")
}

struct World {
    dir: TempDir,
    /// It changes the job; the feed has a connection of its own, as in another process.
    store: Store,
    feed: Feed,
}

impl World {
    async fn start(observe: fn(&'static str, Duration)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
        let store = soloist::stores::connect(&url, &Options::default()).await.expect("it connects");
        let options = Options { observe, ..Options::default() };
        let followed = Followed {
            job: job(),
            timing: Timing::from_ttl(Duration::from_secs(5)).expect("safe"),
            min_uptime: Duration::ZERO,
            takes_turns: false,
            external: false,
            schedule: None,
        };
        let other = soloist::stores::connect(&url, &options).await.expect("it connects");
        let feed = Feed::start(other, vec![followed]).await;
        Self { dir, store, feed }
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

    /// Changes the file behind the back of all who have it open.
    fn behind(&self, sql: &str) {
        let db = Connection::open(self.dir.path().join("soloist.db")).expect("the file opens");
        db.busy_timeout(Duration::from_secs(10)).expect("set");
        db.execute_batch(&format!("BEGIN IMMEDIATE; {sql}; COMMIT")).expect("changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_comes_with_an_event_saves_the_reading() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    let world = World::start(|call, _| {
        READ.fetch_add(usize::from(call == "snapshot"), Ordering::Relaxed);
    })
    .await;
    world.switch(true).await;
    world.until_true().await;
    let before = READ.load(Ordering::Relaxed);
    for change in 1..=50 {
        world.switch(change % 2 == 0).await;
        let shown = || (world.seen().record.version == change + 1).then_some(());
        until_async("the feed shows it", async || shown()).await;
    }
    // The feed may read a job of which it heard in the middle of an observation.
    let needed = READ.load(Ordering::Relaxed) - before;
    assert!(needed < 10, "{needed} readings for 50 changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn doubled_late_and_out_of_order_nothing_older_is_shown_after_something_newer() {
    let world = World::start(|_, _| {}).await;
    for change in 0..10 {
        world.switch(change % 2 == 0).await;
    }
    world.until_true().await;
    for order in ["DESC", "ASC"] {
        world.behind(&format!(
            "INSERT INTO events (job, version, kind) SELECT job, version, kind FROM events ORDER BY seq {order}"
        ));
        // What is switched after them is heard after them.
        let newest = world.seen().record.version;
        world.switch(world.seen().record.participants.is_empty()).await;
        until_async("the feed shows it", async || {
            let shown = world.seen().record.version;
            assert!(shown >= newest, "{shown} after {newest}");
            (shown == newest + 1).then_some(())
        })
        .await;
    }
    world.until_true().await;
    assert_eq!(world.seen().record.version, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_event_is_lost_is_seen_all_the_same() {
    let world = World::start(|_, _| {}).await;
    world.switch(true).await;
    world.until_true().await;
    world.behind("UPDATE records SET head = '7' || substr(head, instr(head, ' '))");
    world.until_true().await;
    assert_eq!(world.seen().record.version, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_were_trimmed_before_they_were_read_are_made_up_for() {
    let world = World::start(|_, _| {}).await;
    world.switch(true).await;
    world.until_true().await;
    // Whoever reads now finds a gap.
    world.behind(
        "UPDATE records SET head = '7' || substr(head, instr(head, ' ')); \
         INSERT INTO events (seq, job, version, kind) SELECT max(seq) + 5000, 'another', 1, 'held' FROM events",
    );
    world.switch(false).await;
    world.until_true().await;
    assert_eq!(world.seen().record.version, 8);
}
