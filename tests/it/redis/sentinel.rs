//! Stores and nodes that follow the master which real sentinels name.

use std::time::Duration;

use soloist::clock;
use soloist::domain::name::UserName;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::jobs::Jobs;
use soloist::store::leases::{Acquired, Leases, Renewed};
use soloist::store::{Options, Store, StoreError};
use tokio::sync::mpsc;

use super::{TTL, ask, granted, granted_in_the_end, in_the_end, job, li, renew_one, renewal};
use crate::lifecycle::JOB;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::Ground;
use crate::support::sentinel::Watched;
use crate::support::wait::PATIENCE;
use crate::support::witness::{self, Witness};

judged! {
    when_the_master_dies_its_replica_is_found_and_the_living_holder_goes_on
    a_master_that_slept_through_its_replacement_gets_no_call_when_it_wakes
    a_master_that_no_majority_of_sentinels_names_is_not_believed
    two_nodes_on_sentinels_lose_a_node_and_then_the_master_and_never_run_two
}

async fn connect(watched: &Watched) -> Store {
    soloist::stores::connect(&watched.url(), &Options::default()).await.expect("it connects")
}

async fn until_heard(events: &mut mpsc::Receiver<StoreEvent>, wanted: &StoreEvent) {
    let heard = async { while events.recv().await.as_ref() != Some(wanted) {} };
    let waited = tokio::time::timeout(PATIENCE, heard).await;
    assert!(waited.is_ok(), "never heard {wanted:?}");
}

async fn when_the_master_dies_its_replica_is_found_and_the_living_holder_goes_on() {
    let mut watched = Watched::start();
    let (a, b) = (connect(&watched).await, connect(&watched).await);
    let about = a.describe().await.expect("a description");
    let place = format!("jobs (127.0.0.1:{})/0", watched.servers[0].port());
    assert!(about.what.contains(&place) && about.what.contains("3 sentinels"), "{about:?}");
    assert!(!about.warnings.iter().any(|warning| warning.contains("list all")), "{about:?}");
    let mut events = a.subscribe(&[job()]).await.expect("subscribed");
    until_heard(&mut events, &StoreEvent::Subscribed).await;
    let epoch = a.snapshot(&[job()]).await.expect("a snapshot").epoch;
    let (asked, other) = (ask("node-a", TTL), ask("node-b", TTL));
    let token = granted(&a, &asked).await;
    let mine = renewal(&asked, token);

    watched.servers[0].kill();
    // The holder renews as a keeper does; another asks all the time, from before the move until well after it.
    let mut renewed_after_the_move = None;
    let begun = clock::boot();
    loop {
        let renewed = a.renew(std::slice::from_ref(&mine)).await;
        match &renewed {
            Ok(answers) => {
                assert!(matches!(answers[..], [Renewed::Kept { .. }]), "{answers:?}");
                renewed_after_the_move.get_or_insert_with(|| {
                    println!("renewed {:?} after the master died", clock::boot().since(begun));
                    clock::boot()
                });
            }
            Err(error) => assert!(matches!(error, StoreError::Unavailable(_)), "{error}"),
        }
        match b.acquire(&other).await {
            Ok(Acquired::Quarantined { .. } | Acquired::Busy { .. })
            | Err(StoreError::Unavailable(_)) => {}
            answer => panic!("{answer:?}"),
        }
        if renewed_after_the_move.is_some_and(|at| clock::boot().since(at) > TTL * 3) {
            break;
        }
        assert!(clock::boot().since(begun) < PATIENCE, "still {renewed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let new = watched.until_moved(0);
    let last = clock::boot();
    assert!(matches!(renew_one(&a, &mine).await, Renewed::Kept { .. }));
    let (newer, _) = granted_in_the_end(&b, &other).await;
    let waited = clock::boot().since(last);
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
    holds(waited >= TTL - Duration::from_millis(5), || format!("granted after {waited:?}"));
    assert_eq!(renew_one(&a, &mine).await, Renewed::Lost);

    until_heard(&mut events, &StoreEvent::Interrupted).await;
    until_heard(&mut events, &StoreEvent::Subscribed).await;
    let (job, li) = (job(), li());
    assert!(in_the_end(|| b.participate(&job, &li, true, None)).await);
    let told = async {
        loop {
            if let Some(StoreEvent::Job(event)) = events.recv().await
                && event.event == soloist::domain::event::EventKind::ParticipationChanged
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("events arrive again");
    let now = a.snapshot(&[job]).await.expect("a snapshot").epoch;
    assert_ne!(now, epoch, "versions from before may have been lost");

    // The old master comes back empty, believing that it is one, and is made a replica of the new one.
    watched.servers[0].restart();
    let begun = clock::boot();
    while watched.servers[0].role() != "slave" {
        assert!(clock::boot().since(begun) < PATIENCE, "the old master is never demoted");
        assert!(in_the_end(|| b.snapshot(&[])).await.jobs.is_empty());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let about = in_the_end(|| a.describe()).await;
    let port = watched.servers[new].port().to_string();
    assert!(about.what.contains(&port), "{about:?} is not at {port}");
}

async fn a_master_that_slept_through_its_replacement_gets_no_call_when_it_wakes() {
    let watched = Watched::start();
    let store = connect(&watched).await;
    let mut events = store.subscribe(&[job()]).await.expect("subscribed");
    until_heard(&mut events, &StoreEvent::Subscribed).await;
    let (job, li) = (job(), li());
    assert!(in_the_end(|| store.participate(&job, &li, true, None)).await);
    watched.servers[0].pause();
    let new = watched.until_moved(0);
    in_the_end(|| store.observe(std::slice::from_ref(&job))).await;
    until_heard(&mut events, &StoreEvent::Subscribed).await;
    watched.servers[0].resume();
    // It takes itself for the master until a sentinel tells it otherwise.
    let wang = UserName::new("wang").expect("a good name");
    assert!(in_the_end(|| store.participate(&job, &wang, true, None)).await);
    let record = watched.servers[new].record("outbound");
    assert!(
        record["participants"].as_array().expect("a list").iter().any(|one| one["user"] == "wang")
    );
    let told = async {
        loop {
            if let Some(StoreEvent::Job(event)) = events.recv().await
                && event.event == soloist::domain::event::EventKind::ParticipationChanged
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("the subscription has moved");
}

async fn a_master_that_no_majority_of_sentinels_names_is_not_believed() {
    let watched = Watched::start();
    let options = Options { timeout: Duration::from_millis(600), ..Options::default() };
    let store = soloist::stores::connect(&watched.url(), &options).await.expect("it connects");
    let asked = ask("node-a", Duration::from_secs(30));
    let token = granted(&store, &asked).await;
    let mine = renewal(&asked, token);
    watched.sentinels[0].pause();
    let begun = clock::boot();
    while clock::boot().since(begun) < Duration::from_secs(2) {
        let renewed = renew_one(&store, &mine).await;
        assert!(matches!(renewed, Renewed::Kept { .. }), "two of three are enough");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    watched.sentinels[1].pause();
    let paused = clock::boot();
    let why = loop {
        match store.renew(std::slice::from_ref(&mine)).await {
            Err(StoreError::Unavailable(why)) => break why,
            answer => assert!(answer.is_ok(), "{answer:?}"),
        }
        // Whatever was sent a second after the last word of a majority would not be safe.
        in_time(clock::boot().since(paused) < Duration::from_millis(1_500), || {
            "a master is believed for a second after the last word of a majority".to_owned()
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(why.contains("2 of 3 sentinels must agree") && why.contains("did not answer"), "{why}");
    watched.sentinels[0].resume();
    assert!(matches!(renew_one(&store, &mine).await, Renewed::Kept { .. }));
    watched.sentinels[1].resume();
    // One that lists too few of them is told.
    let some = watched.url().split(',').next().map(|first| format!("{first}/jobs"));
    let some = soloist::stores::connect(&some.expect("a URL"), &Options::default())
        .await
        .expect("connected");
    let about = some.describe().await.expect("a description");
    assert!(about.warnings.iter().any(|warning| warning.contains("lists 1 of 3")), "{about:?}");
    let unknown = watched.url().replace("/jobs", "/games");
    let Some(StoreError::Unavailable(why)) =
        soloist::stores::connect(&unknown, &Options::default()).await.err()
    else {
        panic!("connected")
    };
    assert!(why.contains("games") && why.contains("does not know that master"), "{why}");
}

async fn two_nodes_on_sentinels_lose_a_node_and_then_the_master_and_never_run_two() {
    let mut watched = Watched::start();
    // A minute of lease: whoever waited for it would fail the test by its patience.
    let ground = Ground::new(&watched.url(), &witness::job(JOB, "beat", "lease_ttl = \"60s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (mut a, mut b) = (ground.start("node-a"), ground.start("node-b"));
    let witness = Witness::of(&ground, JOB);
    a.api(&li).switch(JOB, true).await;
    let first = witness.until_started(1);
    // The guard of a dead node finds the master by itself and gives the lease back.
    let (dying, living) = if first.node == a.name { (&mut a, &mut b) } else { (&mut b, &mut a) };
    dying.kill();
    let second = witness.until_started(2);
    assert_eq!(second.node, living.name);
    let again = ground.start(&format!("{}-again", first.node));

    let mut live = again.api(&li).live().await;
    live.until_state(JOB, "running").await;
    watched.servers[0].kill();
    let _new = watched.until_moved(0);
    // Both nodes are back when they show what happens after the move, on every socket.
    let done = |job: &serde_json::Value| job["run"]["progress"]["done"].as_u64().unwrap_or(0);
    let before = witness.acts().len() as u64;
    live.until(JOB, "progress after the move", |job| {
        job["run"]["pid"] == second.pid && done(job) > before / 2
    })
    .await;
    witness.until_more(second.token, 25);
    assert_eq!(witness.starts(), 2, "the run went on through the move");
    let mut api = living.api(&li).live().await;
    let li_at_b = again.api(&li);
    crate::support::wait::until_async("the switch is answered", async || {
        li_at_b.try_switch(JOB, false).await.then_some(())
    })
    .await;
    // For a minute of lease after the move nobody says off: a run that the new master never heard of might live.
    api.until_state(JOB, "unknown").await;
    crate::support::wait::until("nobody lives", || witness.living().is_empty().then_some(()));
    witness.check();
}
