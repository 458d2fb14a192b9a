//! A store that forgets, restarts or changes its clock never has two holders, and a living one goes on.

use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::Token;
use soloist::store::Store;
use soloist::store::jobs::Jobs;
use soloist::store::leases::{Acquire, Acquired, Leases, Renewed};

use super::{TTL, ask, connect, granted, granted_in_the_end, in_the_end, job, renew_one, renewal};
use crate::support::redis::RedisServer;

/// What must hold when the store lost everything while `a` held the lease and `b` wants it.
async fn a_living_holder_keeps_its_lease(a: &Store, b: &Store, asked: &Acquire, token: Token) {
    let other = ask("node-b", TTL);
    let answer = in_the_end(|| b.acquire(&other)).await;
    assert!(
        matches!(answer, Acquired::Quarantined { wait } if !wait.is_zero() && wait <= TTL),
        "{answer:?}"
    );
    let mine = renewal(asked, token);
    assert_eq!(renew_one(a, &mine).await, Renewed::Kept { margin: Duration::ZERO });
    // Through the whole quarantine and beyond, for as long as it is renewed.
    let begun = clock::boot();
    while clock::boot().since(begun) < TTL * 2 {
        assert!(matches!(renew_one(a, &mine).await, Renewed::Kept { .. }));
        let answer = b.acquire(&other).await.expect("an answer");
        assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    a.release(&asked.job, &asked.owner, token).await.expect("given back");
    let (newer, _) = granted_in_the_end(b, &other).await;
    assert!(newer > token);
}

#[tokio::test]
async fn emptying_the_store_never_gives_a_second_holder_and_the_first_goes_on() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    let epoch = b.snapshot(&[job()]).await.unwrap().epoch;
    server.run::<()>(&["FLUSHALL"]);
    a_living_holder_keeps_its_lease(&a, &b, &asked, token).await;
    assert_ne!(b.snapshot(&[job()]).await.unwrap().epoch, epoch);
}

#[tokio::test]
async fn a_restart_without_persistence_never_gives_a_second_holder() {
    let mut server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    server.restart();
    a_living_holder_keeps_its_lease(&a, &b, &asked, token).await;
}

#[tokio::test]
async fn a_restart_with_its_data_never_gives_a_second_holder() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    let other = ask("node-b", TTL);
    server.restart();
    let mine = renewal(&asked, token);
    assert!(matches!(renew_one(&a, &mine).await, Renewed::Kept { .. }));
    let answer = in_the_end(|| b.acquire(&other)).await;
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    let renewed = clock::boot();
    assert!(matches!(renew_one(&a, &mine).await, Renewed::Kept { .. }));
    // The holder falls silent: not before its lease has run out, but then soon.
    let (newer, _) = granted_in_the_end(&b, &other).await;
    let waited = clock::boot().since(renewed);
    assert!(newer > token);
    assert!(waited >= TTL - Duration::from_millis(5), "after {waited:?}");
    assert!(waited < TTL * 2, "after {waited:?}");
    assert_eq!(renew_one(&a, &mine).await, Renewed::Lost);
}

#[tokio::test]
async fn a_dead_holders_lease_is_waited_for_when_the_store_was_emptied() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let token = granted(&a, &ask("node-a", TTL)).await;
    // Every node looks each second; that is how it knows how long a lease may last that it never saw.
    b.observe(&[job()]).await.unwrap();
    let emptied = clock::boot();
    server.run::<()>(&["FLUSHALL"]);
    let (newer, _) = granted_in_the_end(&b, &ask("node-b", Duration::from_millis(1_000))).await;
    let waited = clock::boot().since(emptied);
    assert!(waited >= TTL - Duration::from_millis(5), "granted after {waited:?}");
    assert!(newer > token);
}

#[tokio::test]
async fn two_that_reassert_in_an_empty_store_leave_the_newer_token() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let (first, second) = (ask("node-a", TTL), ask("node-b", TTL));
    let old = granted(&a, &first).await;
    a.release(&job(), &first.owner, old).await.unwrap();
    let new = granted(&b, &second).await;
    server.run::<()>(&["FLUSHALL"]);
    assert!(matches!(renew_one(&a, &renewal(&first, old)).await, Renewed::Kept { .. }));
    assert!(matches!(renew_one(&b, &renewal(&second, new)).await, Renewed::Kept { .. }));
    assert_eq!(renew_one(&a, &renewal(&first, old)).await, Renewed::Lost);
}

#[tokio::test]
async fn a_late_renewal_does_not_resurrect_a_lease_that_was_given_back() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL);
    let token = granted(&store, &asked).await;
    store.release(&job(), &asked.owner, token).await.unwrap();
    assert_eq!(renew_one(&store, &renewal(&asked, token)).await, Renewed::Lost);
    assert_eq!(store.observe(&[job()]).await.unwrap()[0].lease_left, None);
}

#[tokio::test]
async fn a_fresh_store_grants_without_waiting() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    granted(&b, &ask("node-b", TTL)).await;
    assert!(matches!(a.acquire(&ask("node-a", TTL)).await, Ok(Acquired::Busy { .. })));
}

#[tokio::test]
async fn a_store_whose_epoch_alone_is_gone_begins_with_a_quarantine() {
    let server = RedisServer::start(&[]);
    drop(connect(&server).await);
    server.run::<()>(&["DEL", "soloist:epoch"]);
    let store = connect(&server).await;
    let answer = store.acquire(&ask("node-a", TTL)).await;
    assert!(matches!(answer, Ok(Acquired::Quarantined { .. })), "{answer:?}");
}

/// A library that sets the clock of the server it is loaded into ahead by what a file says, in milliseconds.
const CLOCK_SHIM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *tv, void *tz) {
    long long ahead = 0;
    FILE *file = fopen(getenv("CLOCK_AHEAD"), "r");
    if (file) { if (fscanf(file, "%lld", &ahead) != 1) ahead = 0; fclose(file); }
    syscall(SYS_gettimeofday, tv, tz);
    long long us = tv->tv_sec * 1000000LL + tv->tv_usec + ahead * 1000;
    tv->tv_sec = us / 1000000; tv->tv_usec = us % 1000000;
    return 0;
}
"#;

#[tokio::test]
async fn a_jump_of_the_stores_clock_never_gives_a_second_holder() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("shim.c"), CLOCK_SHIM).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o", &path("shim.so"), &path("shim.c")])
        .status()
        .expect("cc, which Rust itself links with");
    assert!(built.success());
    let environment = [("LD_PRELOAD", path("shim.so")), ("CLOCK_AHEAD", path("ahead"))];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = RedisServer::start_in(&[], &environment);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    b.observe(&[job()]).await.unwrap();
    // Ahead: the lease is gone at once, but nobody else gets it while its holder lives.
    std::fs::write(path("ahead"), "30000").unwrap();
    // B looks at the clock before it asks, unless it has done so in the last 20 ms.
    tokio::time::sleep(Duration::from_millis(30)).await;
    let other = ask("node-b", TTL);
    let answer = b.acquire(&other).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    assert_eq!(server.run::<u8>(&["EXISTS", "soloist:{outbound}:lease"]), 0);
    let mine = renewal(&asked, token);
    assert_eq!(renew_one(&a, &mine).await, Renewed::Kept { margin: Duration::ZERO });
    assert!(matches!(b.acquire(&other).await, Ok(Acquired::Busy { .. })));
    // Back: the key would now live for an hour, its dead holder's lease ends all the same.
    let silent = clock::boot();
    std::fs::write(path("ahead"), "-3600000").unwrap();
    let (newer, _) = granted_in_the_end(&b, &other).await;
    let waited = clock::boot().since(silent);
    assert!(newer > token);
    assert!(waited >= TTL - Duration::from_millis(5) && waited < TTL * 3, "{waited:?}");
}
