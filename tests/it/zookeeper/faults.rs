//! Ensembles that lose servers, stand still or forget; nodes that sleep.

use nix::sys::signal::Signal;
use soloist::domain::name::Owner;

use super::*;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
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
    let looks =
        until_async("it opens", async || soloist::stores::connect(&url, &options()).await.ok())
            .await;
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

/// What is held stands in the ensemble.
#[tokio::test]
async fn a_record_store_that_forgot_a_lease_grants_it_to_nobody_and_is_told_it_again() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    let url = joined(&server.url(), Some(&ZooKeeper::shared().chroot()));
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", LONG);
    let token = granted(&holder, &mine).await;
    let kept = renew(&holder, &mine, token).await;
    assert!(matches!(kept, Renewed::Kept { forgot: false, .. }), "{kept:?}");
    server.run::<()>(&["FLUSHALL"]);
    until_async("the holder is told that it was forgotten", async || {
        let answer = renew(&holder, &mine, token).await;
        let Renewed::Kept { forgot, .. } = answer else { panic!("{answer:?}") };
        forgot.then_some(())
    })
    .await;
    let theirs = answered(&other, &ask("node-b", LONG)).await;
    assert!(matches!(theirs, Acquired::Busy { .. }), "{theirs:?}");
    let why = refusal(&server.url()).await;
    assert!(why.contains("coordination"), "it says again where its leases are: {why}");
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

/// The emptied ensemble has an era of the same version as before, and by then more writes than the process has seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_asked_nothing_while_an_ensemble_was_emptied_is_granted_nothing_there() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let url = beside(&ensemble);
    let asks_later = open(&url).await;
    granted(&open(&url).await, &ask("node-a", LONG)).await;
    ensemble.kill(0);
    ensemble.start_again(0, true);
    ensemble.wait();
    for _ in 0..8 {
        open(&url).await;
    }
    let answer = answered(&asks_later, &ask("node-b", LONG)).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    // And it has not told others that all is well.
    let answer = answered(&open(&url).await, &ask("node-c", LONG)).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

/// A server alone has no election: era and epoch are as before, and only the numbers of the writes say that some are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_restored_from_an_older_copy_grants_no_lease_that_it_forgot() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let url = beside(&ensemble);
    // So that the copy has the era.
    open(&url).await;
    ensemble.kill(0);
    let backup = ensemble.backup(0);
    ensemble.start_again(0, false);
    ensemble.wait();
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", LONG);
    granted(&holder, &mine).await;
    // More writes than whoever comes after the copy makes, and the other has seen their numbers.
    for _ in 0..8 {
        open(&url).await;
    }
    let theirs = |seconds| ask("node-b", LONG + Duration::from_secs(seconds));
    let answer = answered(&other, &theirs(1)).await;
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    let free = Acquire { job: "inbound".parse().expect("a name"), ..theirs(1) };
    assert!(matches!(answered(&other, &free).await, Acquired::Granted { .. }));
    ensemble.kill(0);
    ensemble.restore(0, &backup);
    ensemble.start_again(0, false);
    ensemble.wait();
    // In a session of another length, thus a new one: those of before are refused.
    let answer = answered(&other, &theirs(2)).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    let answer = answered(&open(&url).await, &ask("node-c", LONG)).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_leases_that_begin_at_one_time_an_election_waits_for_the_longest() {
    let mut ensemble = ZooKeeper::start(3, &[], &[]);
    let url = beside(&ensemble);
    let lengths: Vec<Duration> = (21..29).map(Duration::from_secs).collect();
    let longest = lengths.iter().max().expect("some");
    let stores = join_all(lengths.iter().map(|_| open(&url))).await;
    let asks = stores.iter().zip(&lengths).map(async |(store, ttl)| {
        let job = format!("job-{}", ttl.as_secs()).parse().expect("a name");
        let answer = answered(store, &Acquire { job, ..ask("node-a", *ttl) }).await;
        assert!(matches!(answer, Acquired::Granted { .. }), "{answer:?}");
    });
    join_all(asks).await;
    let killed = clock::boot();
    let leader = ensemble.leader();
    ensemble.kill(leader);
    let _next = ensemble.leader();
    let answer = answered(&open(&url).await, &ask("node-b", *longest)).await;
    let Acquired::Quarantined { wait } = answer else { panic!("{answer:?}") };
    assert!(wait + clock::boot().since(killed) >= *longest, "{wait:?}");
}

/// A leader that stood still answers what waited for it, and ends the sessions of which it has not heard meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_granted_a_lease_whose_session_the_leader_is_about_to_end() {
    let ensemble = ZooKeeper::start(3, &[], &[]);
    let leader = ensemble.leader();
    let follower = (0..ensemble.len()).find(|nth| *nth != leader).expect("a follower");
    let coordination = ensemble.chroot();
    let (_, chroot) = coordination["zookeeper://".len()..].split_once('/').expect("a chroot");
    let store = PostgresServer::shared().database();
    let address = ensemble.addresses()[follower];
    let alone = open(&joined(&store, Some(&format!("zookeeper://{address}/{chroot}")))).await;
    let other = open(&joined(&store, Some(&coordination))).await;
    let ttl = Duration::from_secs(2);
    for round in 0..6 {
        let asks = |node| {
            let ask = ask(node, ttl);
            Acquire { owner: Owner(format!("{node}-{round}")), ..ask }
        };
        // So the session is there.
        let mine = asks("node-a");
        until_async("it is free", async || {
            matches!(answered(&alone, &mine).await, Acquired::Granted { .. }).then_some(())
        })
        .await;
        alone.release(&mine.job, &mine.owner).await.expect("released");
        ensemble.signal(leader, Signal::SIGSTOP);
        // The session is over by then, as far as the leader has heard.
        tokio::time::sleep(ttl + Duration::from_millis(500 + 30 * round)).await;
        let (mine, theirs) = (asks("node-b"), asks("node-c"));
        let asked = clock::boot();
        let asking = tokio::spawn({
            let (alone, mine) = (alone.clone(), mine.clone());
            async move { alone.acquire(&mine).await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        ensemble.signal(leader, Signal::SIGCONT);
        if matches!(asking.await.expect("it ran"), Ok(Acquired::Granted { .. })) {
            while clock::boot().since(asked) < ttl * 7 / 10 {
                let answer = other.acquire(&theirs).await;
                assert!(!matches!(answer, Ok(Acquired::Granted { .. })), "both: {answer:?}");
            }
        }
        for (store, ask) in [(&alone, &mine), (&other, &theirs)] {
            store.release(&ask.job, &ask.owner).await.ok();
        }
    }
}
