//! What only ZooKeeper can do to leases: leaders and followers that die, an ensemble that stands still or forgets, sessions that end, grants
//! of which only half is done; and nodes of the program itself on it.

mod faults;
mod last_word;

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use soloist::clock;
use soloist::domain::ensemble::joined;
use soloist::domain::name::{JobName, RunId, UserName};
use soloist::domain::time::Began;
use soloist::store::events::{Events as _, StoreEvent};
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::{Journal as _, Started};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal, Renewed};
use soloist::store::{Options, Store, StoreError};

use crate::postgres::{
    LONG, a_run_outlives, ask, granted, job, one_takes_over_from_the_other, options, refusal, renew,
};
use crate::support::machine::judged;
use crate::support::mariadb::MariaServer;
use crate::support::postgres::PostgresServer;
use crate::support::wait::{PATIENCE, until_async};
use crate::support::zookeeper::ZooKeeper;

// ZooKeeper answers nobody for as long as its disk stands still.
judged! {
    a_lease_whose_run_was_reported_lasts_for_as_long_as_it_is_renewed
}

/// A fresh database of the shared PostgreSQL, with its leases in a fresh chroot of `ensemble`.
pub(crate) fn beside(ensemble: &ZooKeeper) -> String {
    joined(&PostgresServer::shared().database(), Some(&ensemble.chroot()))
}

pub(crate) async fn open(url: &str) -> Store {
    soloist::stores::connect(url, &options()).await.expect("it opens")
}

/// Asks until there is an answer.
pub(crate) async fn answered(store: &Store, ask: &Acquire) -> Acquired {
    until_async("an answer", async || store.acquire(ask).await.ok()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_taken_over_by_the_word_of_its_guard() {
    one_takes_over_from_the_other(&beside(ZooKeeper::shared())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_mariadb_a_killed_node_is_taken_over_by_the_word_of_its_guard() {
    let chroot = ZooKeeper::shared().chroot();
    one_takes_over_from_the_other(&joined(&MariaServer::shared().database(), Some(&chroot))).await;
}

#[tokio::test]
async fn what_cannot_keep_the_promise_is_refused_with_a_remedy() {
    let coordination = ZooKeeper::shared().chroot();
    let why = refusal(&joined("sqlite:nothing.db", Some(&coordination))).await;
    assert!(why.contains("server store"), "{why}");
    let why =
        refusal(&joined(&PostgresServer::shared().database(), Some("zookeeper://here"))).await;
    assert!(why.contains("CHROOT"), "{why}");
    let short = ZooKeeper::start(1, &["maxSessionTimeout=4000"], &[]);
    let why = refusal(&beside(&short)).await;
    for part in ["10s", "200ms", "10.2s", "4s", "maxSessionTimeout"] {
        assert!(why.contains(part), "{why} lacks {part}");
    }
    let doctor = open(&beside(ZooKeeper::shared())).await.examine().await.expect("looked at");
    let said: Vec<&str> = doctor
        .iter()
        .filter(|one| one.check == "coordination")
        .map(|one| one.what.as_str())
        .collect();
    for part in
        ["ZooKeeper 3.", "every client", "fewer than three", "could not be seen", "a session of"]
    {
        assert!(said.iter().any(|what| what.contains(part)), "{said:?} lacks {part}");
    }
}

#[tokio::test]
async fn a_login_keeps_the_leases_from_everybody_else() {
    let store = PostgresServer::shared().database();
    let public = ZooKeeper::shared().chroot();
    let secret = public.replace("zookeeper://", "zookeeper://li:secret@");
    let mine = ask("node-a", LONG);
    granted(&open(&joined(&store, Some(&secret))).await, &mine).await;
    for other in [public.clone(), public.replace("zookeeper://", "zookeeper://wang:guess@")] {
        let why = refusal(&joined(&store, Some(&other))).await;
        assert!(why.contains("USER:PASSWORD"), "{why}");
        assert!(!why.contains("secret") && !why.contains("guess"), "{why}");
    }
}

#[tokio::test]
async fn nobody_looks_for_leases_in_another_place() {
    let (store, chroot) = (PostgresServer::shared().database(), ZooKeeper::shared().chroot());
    let both = joined(&store, Some(&chroot));
    let absent = soloist::stores::connect(&both, &Options { make: false, ..options() }).await.err();
    assert!(matches!(absent, Some(StoreError::Absent(_))), "{absent:?}");
    granted(&open(&both).await, &ask("node-a", LONG)).await;
    let why = refusal(&store).await;
    assert!(why.contains("coordination"), "{why}");
    open(&both).await;
}

#[tokio::test]
async fn the_end_of_a_lease_is_heard_at_once() {
    let url = beside(ZooKeeper::shared());
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", LONG);
    granted(&holder, &mine).await;
    let mut heard = other.subscribe(&[job()]).await.expect("subscribed");
    holder.release(&mine.job, &mine.owner).await.expect("released");
    let mut next = async || heard.recv().await.expect("the subscription lives");
    let told = async { while next().await != StoreEvent::Lease(job()) {} };
    tokio::time::timeout(PATIENCE, told).await.expect("its end is told");
    let seen = other.observe(&[job()]).await.expect("observed");
    assert_eq!(seen[0].lease_left, None);
}

#[tokio::test]
async fn a_lease_ends_when_nobody_renews_it_although_its_process_lives() {
    let url = beside(ZooKeeper::shared());
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", Duration::from_secs(1));
    let token = granted(&holder, &mine).await;
    let kept = clock::boot();
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
    let theirs = ask("node-b", LONG);
    until_async("the other has it", async || {
        matches!(answered(&other, &theirs).await, Acquired::Granted { .. }).then_some(())
    })
    .await;
    assert!(clock::boot().since(kept) >= mine.ttl, "not before its time");
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Lost));
}

/// Another text is another node: what ends the one when nobody renews it leaves the other alone.
async fn a_lease_whose_run_was_reported_lasts_for_as_long_as_it_is_renewed() {
    let url = beside(ZooKeeper::shared());
    let (holder, other) = (open(&url).await, open(&url).await);
    let mine = ask("node-a", Duration::from_secs(1));
    let token = granted(&holder, &mine).await;
    let (run, began) = (RunId("run-1".to_owned()), Began::at_boot(clock::boot()));
    let (job, node) = (mine.job.clone(), mine.node.clone());
    let started = Started { job, token, run: run.clone(), node, pid: 4711, began };
    holder.record_started(&started).await.expect("reported");
    let renewal = Renewal {
        job: mine.job.clone(),
        owner: mine.owner.clone(),
        node: mine.node.clone(),
        token,
        ttl: mine.ttl,
        since: began,
        run: Some(run),
    };
    let begun = clock::boot();
    while clock::boot().since(begun) < mine.ttl * 3 {
        let answer = holder.renew(std::slice::from_ref(&renewal)).await.expect("answered");
        assert!(matches!(answer[..], [Renewed::Kept { forgot: false, .. }]), "{answer:?}");
        let theirs = answered(&other, &ask("node-b", LONG)).await;
        assert!(matches!(theirs, Acquired::Busy { .. }), "{theirs:?}");
    }
}

/// The record store stands still between the two steps of a grant.
#[tokio::test]
async fn half_a_grant_is_taken_back() {
    let records = PostgresServer::start(&[]);
    let url = joined(&records.database(), Some(&ZooKeeper::shared().chroot()));
    let quick = Options { timeout: Duration::from_millis(500), ..options() };
    let (asker, other) =
        (soloist::stores::connect(&url, &quick).await.expect("it opens"), open(&url).await);
    let mine = ask("node-a", LONG);
    asker.snapshot(&[job()]).await.expect("so that the grant is one call");
    records.signal(nix::sys::signal::Signal::SIGSTOP);
    let unknown = asker.acquire(&mine).await;
    records.signal(nix::sys::signal::Signal::SIGCONT);
    assert!(matches!(unknown, Err(StoreError::Unavailable(_))), "{unknown:?}");
    // Whatever became of the record: the next grant is another one, with its condition and a token of its own.
    let theirs = ask("node-b", LONG);
    until_async("the other has it", async || {
        matches!(answered(&other, &theirs).await, Acquired::Granted { .. }).then_some(())
    })
    .await;
    assert!(matches!(answered(&asker, &mine).await, Acquired::Busy { .. }));
}

/// Half a grant that is refused by the record is shown to no reader in any process, also not to one who read its node and is late to look.
#[tokio::test(flavor = "multi_thread")]
async fn no_reader_sees_a_lease_that_nobody_was_granted() {
    let url = beside(ZooKeeper::shared());
    let (store, other) = (open(&url).await, open(&url).await);
    let names: Vec<JobName> =
        (0..16).map(|nth| format!("job-{nth:02}").parse().expect("a name")).collect();
    for round in 0..10 {
        let li: UserName = "li".parse().expect("a name");
        for name in &names {
            store.participate(name, &li, true, None).await.expect("switched on");
        }
        let asked = |name: &JobName| {
            let node = format!("node-{round}");
            Acquire { job: name.clone(), condition: Condition::Wanted, ..ask(&node, LONG) }
        };
        let asks = join_all(names.iter().map(async |name| store.acquire(&asked(name)).await));
        let offs = join_all(names.iter().map(|name| store.participate(name, &li, false, None)));
        let reads = async {
            let mut seen = HashSet::new();
            for reader in [&store, &other].iter().cycle().take(40) {
                let read = reader.snapshot(&names).await.expect("a snapshot");
                seen.extend(read.jobs.iter().filter_map(|job| Some(job.lease.as_ref()?.token)));
            }
            seen
        };
        let (asks, _, seen) = tokio::join!(asks, offs, reads);
        let mut given = HashSet::new();
        for (name, answer) in names.iter().zip(asks) {
            if let Ok(Acquired::Granted { token, .. }) = answer {
                given.insert(token);
                store.release(name, &asked(name).owner).await.expect("released");
            }
        }
        let ghosts: Vec<_> = seen.difference(&given).collect();
        assert!(ghosts.is_empty(), "round {round}: seen and never granted: {ghosts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_while_the_only_server_is_killed_and_comes_back() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let url = beside(&ensemble);
    a_run_outlives(&url, || {
        ensemble.kill(0);
        ensemble.start_again(0, false);
        ensemble.wait();
    })
    .await;
}
