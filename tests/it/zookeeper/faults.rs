//! Ensembles that lose servers, stand still or forget; nodes that sleep.

use nix::sys::signal::Signal;

use super::*;
use crate::support::node::Ground;
use crate::support::witness::{self, Witness};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_takes_no_lease_along_and_the_next_grants_nothing_for_one() {
    let mut ensemble = ZooKeeper::start(3, &[], &[]);
    let url = beside(&ensemble);
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", LONG);
    let token = granted(&holder, &mine).await;
    let leader = ensemble.leader();
    ensemble.kill(leader);
    let _next = ensemble.leader();
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
    assert!(matches!(answered(&other, &ask("node-b", LONG)).await, Acquired::Busy { .. }));
    // It may have forgotten another lease, so a free one waits.
    let free = Acquire { job: "inbound".parse().expect("a name"), ..ask("node-b", LONG) };
    let answer = answered(&other, &free).await;
    let Acquired::Quarantined { wait } = answer else { panic!("{answer:?}") };
    assert!(wait > LONG / 2 && wait <= LONG, "as long as the longest lease: {wait:?}");
    // Also for a process that comes later.
    let answer = answered(&open(&url).await, &free).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
}

/// The holder is cut off in the instant of its last answer, and the follower dies that should have told the leader of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_dies_with_the_word_of_a_session_does_not_shorten_its_lease() {
    let mut ensemble = ZooKeeper::start(3, &[], &[]);
    let leader = ensemble.leader();
    let follower = (0..ensemble.len()).find(|nth| *nth != leader).expect("a follower");
    let store = PostgresServer::shared().database();
    let coordination = ensemble.chroot();
    let (servers, chroot) =
        coordination["zookeeper://".len()..].split_once('/').expect("servers and a chroot");
    let alone = servers.split(',').nth(follower).expect("its address");
    let alone = joined(&store, Some(&format!("zookeeper://{alone}/{chroot}")));
    let all = joined(&store, Some(&coordination));
    let other = open(&all).await;
    let mine = ask("node-a", Duration::from_secs(2));
    // In a runtime of its own, which is thrown away: nothing of it says another word.
    let (asked, holder) = std::thread::spawn({
        let mine = mine.clone();
        move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let asked = runtime.block_on(async {
                let store = open(&alone).await;
                let token = granted(&store, &mine).await;
                for _ in 0..10 {
                    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
                }
                let asked = clock::boot();
                assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
                // The store must outlive the runtime, or it would say goodbye.
                std::mem::forget(store);
                asked
            });
            (asked, runtime)
        }
    })
    .join()
    .expect("it ran");
    ensemble.kill(follower);
    holder.shutdown_background();
    let theirs = ask("node-b", LONG);
    until_async("the other has it", async || {
        matches!(answered(&other, &theirs).await, Acquired::Granted { .. }).then_some(())
    })
    .await;
    let after = clock::boot().since(asked);
    assert!(after >= mine.ttl, "a lease of {:?} ended {after:?} after it was asked for", mine.ttl);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_node_loses_its_script_before_its_session_ends_and_another_starts_it() {
    let url = beside(ZooKeeper::shared());
    let ground = Ground::new(&url, &witness::job("outbound", "stubborn", "lease_ttl = \"2s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (a, b) = (ground.start("node-a"), ground.start("node-b"));
    let seen = Witness::of(&ground, "outbound");
    a.api(&li).switch("outbound", true).await;
    let first = seen.until_started(1);
    let sleeping = if first.node == a.name { &a } else { &b };
    sleeping.signal(Signal::SIGSTOP);
    let second = seen.until_started(2);
    assert_ne!(second.node, first.node);
    sleeping.signal(Signal::SIGCONT);
    seen.until_more(second.token, 50);
    assert_eq!(seen.starts(), 2, "the awakened node leaves it alone");
    assert_eq!(seen.living_under(first.token), [0; 0]);
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_that_stands_still_for_longer_than_a_lease_has_no_second_run() {
    let ensemble = ZooKeeper::start(3, &[], &[]);
    let ground = Ground::new(
        &beside(&ensemble),
        &witness::job("outbound", "stubborn", "lease_ttl = \"2s\""),
    );
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    let seen = Witness::of(&ground, "outbound");
    a.api(&li).switch("outbound", true).await;
    let first = seen.until_started(1);
    (0..ensemble.len()).for_each(|nth| ensemble.signal(nth, Signal::SIGSTOP));
    until_async("the guard ends what nobody renews", async || {
        seen.living_under(first.token).is_empty().then_some(())
    })
    .await;
    (0..ensemble.len()).for_each(|nth| ensemble.signal(nth, Signal::SIGCONT));
    let second = seen.until_started(2);
    assert!(second.token > first.token);
    seen.until_more(second.token, 20);
    seen.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_that_was_emptied_under_a_run_has_no_second_one() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let url = beside(&ensemble);
    let ground = Ground::new(&url, &witness::job("outbound", "beat", "lease_ttl = \"5s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    let seen = Witness::of(&ground, "outbound");
    a.api(&li).switch("outbound", true).await;
    let first = seen.until_started(1);
    ensemble.kill(0);
    ensemble.start_again(0, true);
    ensemble.wait();
    // Whoever comes now finds nothing there, and is granted nothing.
    let looks = until_async("it opens", async || Store::connect(&url, &options()).await.ok()).await;
    for _ in 0..3 {
        let answer = answered(&looks, &ask("node-c", LONG)).await;
        let held = matches!(answer, Acquired::Busy { .. } | Acquired::Quarantined { .. });
        assert!(held, "{answer:?}");
    }
    // The server refuses sessions that have seen more than it has: the guard ends the run in time, and the next begins after the wait.
    let second = seen.until_started(2);
    assert!(second.token > first.token);
    seen.check();
}

#[tokio::test]
async fn a_long_lease_that_is_refused_lengthens_the_wait_of_no_other_process() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let url = beside(&ensemble);
    let held = ask("node-a", Duration::from_secs(2));
    granted(&open(&url).await, &held).await;
    ensemble.kill(0);
    ensemble.start_again(0, true);
    ensemble.wait();
    let free = |node, ttl| Acquire { job: "inbound".parse().expect("a name"), ..ask(node, ttl) };
    let first = open(&url).await;
    // The first asks whether it may, the second tries to.
    for _ in 0..2 {
        let answer = answered(&first, &free("node-b", LONG)).await;
        assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    }
    let answer = answered(&open(&url).await, &free("node-c", held.ttl)).await;
    let Acquired::Quarantined { wait } = answer else { panic!("{answer:?}") };
    assert!(wait <= options().longest_lease, "{wait:?}");
}
