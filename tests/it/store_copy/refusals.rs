//! What is refused, and what the refusal says to do.

use std::time::Duration;

use soloist::domain::dispatch::{Rules, TaskState};
use soloist::domain::time::StoreTime;
use soloist::store::copy::{CopyError, How, Tally, copy};
use soloist::store::dispatch::{Dispatch as _, Sources as _, TaskFilter};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::Leases as _;
use soloist::store::nodes::{Beat, Nodes as _};
use soloist::store::rotation::Rotations as _;
use soloist::store::{Options, StoreError};

use super::filled::{api, ask, claim, crowd, fill, job, node, source, turn};
use super::places::{Place, beside_zookeeper, mariadb, redis, sqlite};
use super::{copied, note};
use crate::support::mariadb::MariaServer;

/// What is said when it is refused.
async fn refused(from: &Place, to: &Place) -> String {
    match copied(&from.url, &to.url, &from.options).await {
        Err(CopyError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn beat(boot: &str) -> Beat {
    Beat {
        node: node("node-a"),
        boot: boot.to_owned(),
        version: "0.1.0".to_owned(),
        started: StoreTime(1_777_000_000_123),
        containment: "subreaper".to_owned(),
        url: String::new(),
        jobs: [job("outbound")].into(),
        digest: "d1".to_owned(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
    }
}

#[tokio::test]
async fn a_living_node_on_either_side_is_refused() {
    for (from, to) in [(sqlite(), redis()), (redis(), sqlite())] {
        let (source, target) = (from.open().await, to.open().await);
        source.beat(&beat("b1")).await.unwrap();
        let why = refused(&from, &to).await;
        assert!(why.contains("node node-a uses the source: stop every node"), "{why}");
        source.leave(&node("node-a"), "b1").await.unwrap();
        target.beat(&beat("b2")).await.unwrap();
        let why = refused(&from, &to).await;
        assert!(why.contains("node node-a uses the target: stop every node"), "{why}");
        target.leave(&node("node-a"), "b2").await.unwrap();
        copied(&from.url, &to.url, &from.options).await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_that_is_held_is_refused() {
    for from in [sqlite(), redis(), mariadb(), beside_zookeeper(mariadb())] {
        let (to, store) = (sqlite(), from.open().await);
        let ask = ask("outbound", 0);
        crate::support::wait::until_async("the lease is granted", async || {
            let answer = store.acquire(&ask).await.expect("an answer");
            matches!(answer, soloist::store::leases::Acquired::Granted { .. }).then_some(())
        })
        .await;
        let why = refused(&from, &to).await;
        assert!(why.contains("outbound is held by node-a: stop its holder"), "{why}");
        store.release(&ask.job, &ask.owner).await.unwrap();
        copied(&from.url, &to.url, &from.options).await.unwrap();
    }
}

#[tokio::test]
async fn a_task_in_hand_is_refused_and_one_whose_lease_is_over_is_ready_again() {
    for from in [sqlite(), redis()] {
        let (to, store) = (sqlite(), from.open().await);
        let rules = Rules { lease: Duration::from_secs(3), ..Rules::default() };
        store.put_source(&source("crowd"), &rules).await.unwrap();
        crowd(&store, 3).await;
        store.put_source(&source("crowd"), &rules).await.unwrap();
        assert_eq!(claim(&store, &["crowd"], 1).await.len(), 1);
        let why = refused(&from, &to).await;
        assert!(why.contains("in the hands of collector c-1") && why.contains("wait"), "{why}");
        tokio::time::sleep(Duration::from_secs(3)).await;
        copied(&from.url, &to.url, &from.options).await.unwrap();
        let ready = TaskFilter { state: Some(TaskState::Ready), ..TaskFilter::default() };
        let tasks = to.open().await.tasks(&ready, None, 10).await.unwrap();
        assert_eq!(tasks.len(), 3, "{tasks:?}");
        assert_eq!(tasks.iter().filter(|task| task.history.len() == 1).count(), 1);
    }
}

#[tokio::test]
async fn a_turn_that_is_had_is_refused_and_one_whose_lease_is_over_is_lost() {
    let (from, to) = (sqlite(), redis());
    let store = from.open().await;
    fill(&store).await;
    turn(&store, "stock").await;
    let why = refused(&from, &to).await;
    assert!(why.contains("worker w has the turn of rotation supplier-api"), "{why}");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    copied(&from.url, &to.url, &from.options).await.unwrap();
    let view = to.open().await.rotations(Some(&api()), 1).await.unwrap().remove(0);
    assert_eq!(view.ring.turn, None);
    assert_eq!((view.past.len(), view.types[1].lost), (1, 1));
}

#[tokio::test]
async fn a_target_that_is_not_empty_is_refused_and_stays_as_it_is() {
    for to in [sqlite(), redis(), mariadb()] {
        let (from, target) = (sqlite(), to.open().await);
        fill(&from.open().await).await;
        target.put_source(&source("cedar"), &Rules::default()).await.unwrap();
        let why = refused(&from, &to).await;
        assert!(why.contains("the target is not empty, it has sources"), "{why}");
        assert_eq!(to.open().await.sources(None).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_same_store_is_refused_by_whatever_name() {
    let place = sqlite();
    place.open().await;
    let again = place.url.replace("/soloist.db", "/./soloist.db");
    for url in [&place.url, &again] {
        let answer = copied(&place.url, url, &place.options).await;
        assert!(matches!(answer, Err(CopyError::Same)), "{answer:?}");
    }
    let server = redis();
    server.open().await;
    let again = server.url.replace("127.0.0.1", "localhost");
    let answer = copied(&server.url, &again, &server.options).await;
    assert!(matches!(answer, Err(CopyError::Same)), "{answer:?}");
}

#[tokio::test]
async fn a_source_of_the_version_before_and_one_that_is_not_there_are_refused() {
    let (from, to) = (sqlite(), sqlite());
    let answer = copied(&from.url, &to.url, &from.options).await;
    assert!(matches!(answer, Err(CopyError::Source(StoreError::Absent(_)))), "{answer:?}");
    from.open().await;
    let later = Options { steps: &["CREATE TABLE made_up (n INTEGER)"], ..from.options.clone() };
    match copied(&from.url, &to.url, &later).await {
        Err(CopyError::Source(StoreError::Unsupported(why))) => {
            assert!(why.contains("start a node of this version"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_target_whose_clock_is_behind_is_refused() {
    let server = MariaServer::start_with_a_clock();
    server.set_clock("-3600");
    let from = sqlite();
    fill(&from.open().await).await;
    match copied(&from.url, &server.database(), &from.options).await {
        Err(CopyError::Refused(why)) => assert!(why.contains("s behind the source's"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Of a copy that ended half way nobody makes a store.
#[tokio::test]
async fn a_source_that_changes_meanwhile_is_refused_and_the_target_stays_shut() {
    for to in [sqlite(), redis()] {
        let from = sqlite();
        let store = from.open().await;
        fill(&store).await;
        let mut changed = false;
        let handle = tokio::runtime::Handle::current();
        let progress = &mut |_: &Tally| {
            if !std::mem::replace(&mut changed, true) {
                let (store, handle) = (store.clone(), handle.clone());
                let change = move || {
                    let (job, user) = (job("outbound"), "eve".parse().expect("a name"));
                    handle.block_on(store.participate(&job, &user, true, None)).expect("switched");
                };
                std::thread::spawn(change).join().expect("done");
            }
        };
        let how = How { named: soloist::stores::named, dry: false, note: note(), progress };
        match copy(&from.url, &to.url, &from.options, how).await {
            Err(CopyError::Refused(why)) => assert!(why.contains("was changed while"), "{why}"),
            other => panic!("{other:?}"),
        }
        let shut = soloist::stores::connect(&to.url, &Options { ..to.options.clone() }).await;
        let Err(StoreError::Unsupported(why)) = shut else { panic!("it opened") };
        assert!(why.contains("run soloist store copy again"), "{why}");
        assert!(copied(&from.url, &to.url, &from.options).await.unwrap().again);
        to.open().await;
    }
}
