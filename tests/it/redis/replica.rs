//! A master with a replica: a lease counts once the replica has it, and a promoted replica gives nothing away.

use std::time::Duration;

use soloist::clock;
use soloist::store::StoreError;
use soloist::store::jobs::Jobs;
use soloist::store::leases::{Acquired, Condition, Leases, Renewed};

use super::{
    TTL, ask, connect, granted, granted_in_the_end, in_the_end, job, li, renew_one, renewal,
};
use crate::support::machine::{holds, judged, within};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

judged! {
    a_lease_is_granted_only_once_a_replica_has_it
    a_request_that_waits_for_a_replica_holds_no_renewal_up
    a_server_without_replicas_is_not_waited_for
    a_promoted_replica_that_saw_the_lease_keeps_it_for_its_holder
    a_promoted_replica_that_never_saw_the_lease_waits_for_its_holder
}

const LEASE: &str = "soloist:{outbound}:lease";

fn pair() -> (RedisServer, RedisServer) {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::replica_of(master.port());
    (master, replica)
}

async fn a_lease_is_granted_only_once_a_replica_has_it() {
    let (master, replica) = pair();
    let store = connect(&master).await;
    let asked = ask("node-a", TTL);
    let token = granted(&store, &asked).await;
    // At once: the grant itself has waited for it.
    assert_eq!(replica.lease("outbound")["token"], token.0);
    store.release(&job(), &asked.owner).await.expect("given back");

    replica.pause();
    let begun = clock::boot();
    let Err(StoreError::Unavailable(why)) = store.acquire(&asked).await else { panic!("granted") };
    assert!(why.contains("no replica") && why.contains("INFO replication"), "{why}");
    within(clock::boot().since(begun), TTL, "it is refused");
    assert_eq!(master.run::<u8>(&["EXISTS", LEASE]), 0, "it was given back");
    let mine = renewal(&asked, token);
    assert_eq!(renew_one(&store, &mine).await, Renewed::Lost);

    replica.resume();
    let (newer, _) = granted_in_the_end(&store, &asked).await;
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}

async fn a_request_that_waits_for_a_replica_holds_no_renewal_up() {
    let (master, replica) = pair();
    let store = connect(&master).await;
    let asked = ask("node-a", Duration::from_secs(20));
    let token = granted(&store, &asked).await;
    replica.pause();
    let mut other = ask("node-b", Duration::from_secs(20));
    other.job = soloist::domain::name::JobName::new("inbound").expect("a good name");
    let waiting = store.acquire(&other);
    tokio::pin!(waiting);
    let (mut renewals, mine) = (0, renewal(&asked, token));
    // The request waits for half a second; every renewal meanwhile is answered before it.
    let answer = loop {
        tokio::select! {
            biased;
            renewed = renew_one(&store, &mine) => {
                assert!(matches!(renewed, Renewed::Kept { .. }));
                renewals += 1;
            }
            answer = &mut waiting => break answer,
        }
        tokio::select! {
            answer = &mut waiting => break answer,
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    };
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert!(renewals >= 5, "only {renewals}");
}

async fn a_server_without_replicas_is_not_waited_for() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    granted(&store, &ask("node-a", TTL)).await;
    let waited: String = server.run(&["INFO", "commandstats"]);
    assert!(!waited.contains("cmdstat_wait"), "{waited}");
}

/// Makes the replica the master at once, in the way of an operator without sentinels.
fn promote(master: &mut RedisServer, replica: &RedisServer) {
    master.kill();
    replica.run::<()>(&["REPLICAOF", "NO", "ONE"]);
}

/// A holder on the old master, and what `b` gets at the new one while it lives and afterwards.
async fn the_holder_goes_on_at_the_promoted_replica(
    replica: &RedisServer,
    old: &soloist::store::leases::Renewal,
    first_answer: impl Fn(&Acquired) -> bool,
) {
    let (a, b) = (connect(replica).await, connect(replica).await);
    let other = ask("node-b", TTL);
    let answer = b.acquire(&other).await.expect("an answer");
    assert!(first_answer(&answer), "{answer:?}");
    assert!(matches!(renew_one(&a, old).await, Renewed::Kept { .. }));
    let last = clock::boot();
    let (newer, _) = granted_in_the_end(&b, &other).await;
    let waited = clock::boot().since(last);
    holds(newer > old.token, || "a token is greater than every earlier one".to_owned());
    holds(waited >= TTL - Duration::from_millis(5), || format!("granted after {waited:?}"));
    assert_eq!(renew_one(&a, old).await, Renewed::Lost);
}

async fn a_promoted_replica_that_saw_the_lease_keeps_it_for_its_holder() {
    let (mut master, replica) = pair();
    let store = connect(&master).await;
    let asked = ask("node-a", TTL);
    let token = granted(&store, &asked).await;
    promote(&mut master, &replica);
    let busy = |answer: &Acquired| matches!(answer, Acquired::Busy { .. });
    the_holder_goes_on_at_the_promoted_replica(&replica, &renewal(&asked, token), busy).await;
}

async fn a_promoted_replica_that_never_saw_the_lease_waits_for_its_holder() {
    let (mut master, replica) = pair();
    let store = connect(&master).await;
    let (outbound, li) = (job(), li());
    assert!(in_the_end(|| store.participate(&outbound, &li, true, None)).await);
    // Leases of this length are known of.
    let before = ask("node-c", TTL);
    let token = granted(&store, &before).await;
    store.release(&job(), &before.owner).await.expect("given back");
    until_async("the replica has all so far", async || {
        (replica.record("outbound")["released"] == token.0).then_some(())
    })
    .await;
    // From here on the replica hears nothing; a master without replicas grants without waiting.
    replica.run::<()>(&["CONFIG", "SET", "masterauth", "nobody"]);
    master.run::<()>(&["CONFIG", "SET", "requirepass", "somebody"]);
    cut(&master).await;
    let url = format!("redis://:somebody@127.0.0.1:{}/0", master.port());
    let store = soloist::stores::connect(&url, &soloist::store::Options::default())
        .await
        .expect("connected");
    let mut asked = ask("node-a", TTL);
    asked.condition = Condition::Wanted;
    let token = granted(&store, &asked).await;
    promote(&mut master, &replica);
    assert_eq!(replica.run::<u8>(&["EXISTS", LEASE]), 0, "it never heard of the lease");
    let quarantined = |answer: &Acquired| matches!(answer, Acquired::Quarantined { .. });
    the_holder_goes_on_at_the_promoted_replica(&replica, &renewal(&asked, token), quarantined)
        .await;
}

/// Ends the replication; the replica's password has become wrong.
async fn cut(master: &RedisServer) {
    let url = format!("redis://:somebody@127.0.0.1:{}/0", master.port());
    let run = |words: &[&str]| {
        crate::support::redis::ask::<::redis::Value>(&url, words).expect("an answer")
    };
    run(&["CLIENT", "KILL", "TYPE", "replica"]);
    until_async("no replica is connected", async || {
        let info: String = ::redis::from_redis_value(run(&["INFO", "replication"])).expect("text");
        info.contains("connected_slaves:0").then_some(())
    })
    .await;
}
