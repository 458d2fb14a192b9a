//! A store that forgets, restarts or changes its clock never has two holders, and a living one goes on.

use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::Token;
use soloist::store::jobs::Jobs;
use soloist::store::leases::{Acquire, Acquired, Leases, Renewed};
use soloist::store::{For, Options, Store};

use super::{TTL, ask, connect, granted, granted_in_the_end, in_the_end, job, renew_one, renewal};
use crate::lifecycle::{JOB, Pair};
use crate::support::machine::{holds, judged, within};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

judged! {
    emptying_the_store_never_gives_a_second_holder_and_the_first_goes_on
    a_restart_without_persistence_never_gives_a_second_holder
    a_restart_with_its_data_never_gives_a_second_holder
    a_dead_holders_lease_is_waited_for_when_the_store_was_emptied
    two_that_reassert_in_an_empty_store_leave_the_newer_token
    a_late_renewal_does_not_resurrect_a_lease_that_was_given_back
    a_fresh_store_grants_without_waiting
    a_store_whose_epoch_alone_is_gone_begins_with_a_quarantine
    a_process_that_starts_in_an_emptied_store_holds_back_while_others_use_it
    a_process_that_is_first_in_a_server_that_restarted_empty_waits_for_the_leases_of_the_others
    a_user_who_may_not_see_the_others_takes_no_empty_store_for_a_fresh_one
    tokens_grow_through_emptying_and_restarting_even_for_a_node_that_saw_none
    a_token_that_went_back_is_an_alarm_and_the_next_one_is_greater_all_the_same
}

/// What must hold when the store lost everything while `a` held the lease and `b` wants it.
async fn a_living_holder_keeps_its_lease(a: &Store, b: &Store, asked: &Acquire, token: Token) {
    let other = ask("node-b", TTL);
    let answer = in_the_end(|| b.acquire(&other)).await;
    assert!(
        matches!(answer, Acquired::Quarantined { wait } if !wait.is_zero() && wait <= TTL),
        "{answer:?}"
    );
    let mine = renewal(asked, token);
    assert_eq!(renew_one(a, &mine).await, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    // Through the whole quarantine and beyond, for as long as it is renewed.
    let begun = clock::boot();
    while clock::boot().since(begun) < TTL * 2 {
        assert!(matches!(renew_one(a, &mine).await, Renewed::Kept { .. }));
        let answer = b.acquire(&other).await.expect("an answer");
        assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    a.release(&asked.job, &asked.owner).await.expect("given back");
    let (newer, _) = granted_in_the_end(b, &other).await;
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}

async fn emptying_the_store_never_gives_a_second_holder_and_the_first_goes_on() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    let epoch = b.snapshot(&[job()]).await.expect("an answer").epoch;
    server.run::<()>(&["FLUSHALL"]);
    a_living_holder_keeps_its_lease(&a, &b, &asked, token).await;
    assert_ne!(b.snapshot(&[job()]).await.expect("an answer").epoch, epoch);
}

async fn a_restart_without_persistence_never_gives_a_second_holder() {
    let mut server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    server.restart();
    a_living_holder_keeps_its_lease(&a, &b, &asked, token).await;
}

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
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
    holds(waited >= TTL - Duration::from_millis(5), || format!("granted after {waited:?}"));
    within(waited, TTL * 2, "the next is granted the lease");
    assert_eq!(renew_one(&a, &mine).await, Renewed::Lost);
}

async fn a_dead_holders_lease_is_waited_for_when_the_store_was_emptied() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let token = granted(&a, &ask("node-a", TTL)).await;
    // Every node looks each second; that is how it knows how long a lease may last that it never saw.
    b.observe(&[job()]).await.expect("an answer");
    let emptied = clock::boot();
    server.run::<()>(&["FLUSHALL"]);
    let (newer, _) = granted_in_the_end(&b, &ask("node-b", Duration::from_millis(1_000))).await;
    let waited = clock::boot().since(emptied);
    holds(waited >= TTL - Duration::from_millis(5), || format!("granted after {waited:?}"));
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}

async fn two_that_reassert_in_an_empty_store_leave_the_newer_token() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    let (first, second) = (ask("node-a", TTL), ask("node-b", TTL));
    let old = granted(&a, &first).await;
    a.release(&job(), &first.owner).await.expect("an answer");
    let new = granted(&b, &second).await;
    server.run::<()>(&["FLUSHALL"]);
    assert!(matches!(renew_one(&a, &renewal(&first, old)).await, Renewed::Kept { .. }));
    assert!(matches!(renew_one(&b, &renewal(&second, new)).await, Renewed::Kept { .. }));
    assert_eq!(renew_one(&a, &renewal(&first, old)).await, Renewed::Lost);
}

async fn a_late_renewal_does_not_resurrect_a_lease_that_was_given_back() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL);
    let token = granted(&store, &asked).await;
    store.release(&job(), &asked.owner).await.expect("an answer");
    assert_eq!(renew_one(&store, &renewal(&asked, token)).await, Renewed::Lost);
    assert_eq!(store.observe(&[job()]).await.expect("an answer")[0].lease_left, None);
}

async fn a_fresh_store_grants_without_waiting() {
    let server = RedisServer::start(&[]);
    let (a, b) = (connect(&server).await, connect(&server).await);
    granted(&b, &ask("node-b", TTL)).await;
    assert!(matches!(a.acquire(&ask("node-a", TTL)).await, Ok(Acquired::Busy { .. })));
}

async fn a_store_whose_epoch_alone_is_gone_begins_with_a_quarantine() {
    let server = RedisServer::start(&[]);
    drop(connect(&server).await);
    server.run::<()>(&["DEL", "soloist:epoch"]);
    let store = connect(&server).await;
    let answer = store.acquire(&ask("node-a", TTL)).await;
    assert!(matches!(answer, Ok(Acquired::Quarantined { .. })), "{answer:?}");
}

async fn a_process_that_starts_in_an_emptied_store_holds_back_while_others_use_it() {
    let server = RedisServer::start(&[]);
    let a = connect(&server).await;
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    server.run::<()>(&["FLUSHALL"]);
    // A has not noticed yet.
    let b = connect(&server).await;
    let other = ask("node-b", TTL);
    let answer = b.acquire(&other).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    let mine = renewal(&asked, token);
    assert_eq!(renew_one(&a, &mine).await, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    assert!(matches!(b.acquire(&other).await, Ok(Acquired::Busy { .. })));
}

async fn a_process_that_is_first_in_a_server_that_restarted_empty_waits_for_the_leases_of_the_others()
 {
    let mut server = RedisServer::start(&[]);
    let a = connect(&server).await;
    let asked = ask("node-a", TTL);
    let token = granted(&a, &asked).await;
    // Redis counts whole seconds of the wall clock: late in one, it soon says "1 second" of a server that is younger.
    until("a second is nearly over", || {
        let (_, micros): (u64, u64) = server.run(&["TIME"]);
        (micros >= 600_000).then_some(())
    });
    let restarted = clock::boot();
    server.restart();
    until("Redis counts a second", || {
        server.run::<String>(&["INFO", "server"]).contains("uptime_in_seconds:1").then_some(())
    });
    // A has not dialled again yet: nothing shows that anybody ever was here.
    let b = connect(&server).await;
    let other = ask("node-b", TTL);
    let answer = b.acquire(&other).await.expect("an answer");
    assert!(
        matches!(answer, Acquired::Quarantined { wait } if !wait.is_zero() && wait <= TTL),
        "{answer:?}"
    );
    let (newer, _) = granted_in_the_end(&b, &other).await;
    let waited = clock::boot().since(restarted);
    holds(waited >= TTL, || format!("granted after {waited:?}"));
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}

async fn a_user_who_may_not_see_the_others_takes_no_empty_store_for_a_fresh_one() {
    let server = RedisServer::start(&[]);
    let rights = ["ACL", "SETUSER", "soloist", "on", ">pass", "~*", "&*", "+@all", "-client"];
    server.run::<()>(&rights);
    server.run::<()>(&["FLUSHALL"]);
    let url = format!("redis://soloist:pass@127.0.0.1:{}/0", server.port());
    let store = soloist::stores::connect(&url, &Options::default()).await.expect("it connects");
    let answer = store.acquire(&ask("node-a", TTL)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { wait } if wait > TTL), "{answer:?}");
}

async fn tokens_grow_through_emptying_and_restarting_even_for_a_node_that_saw_none() {
    let mut server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut asked = ask("node-a", Duration::from_millis(200));
    let mut last = Token(0);
    for fault in 0..3 {
        let (token, _) = granted_in_the_end(&store, &asked).await;
        holds(token > last, || "a token is greater than every earlier one".to_owned());
        store.release(&job(), &asked.owner).await.expect("given back");
        last = token;
        match fault {
            0 => server.run::<()>(&["FLUSHALL"]),
            1 => server.restart(),
            // A token from the future, as after a clock that was set back, is known only to who saw it.
            _ => asked.seen = Token(token.0 + (1 << 30)),
        }
    }
    let (token, _) = granted_in_the_end(&store, &asked).await;
    holds(token > asked.seen, || "a token is greater than every earlier one".to_owned());
}

async fn a_token_that_went_back_is_an_alarm_and_the_next_one_is_greater_all_the_same() {
    let pair = Pair::start("beat", "");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let counted = async |url: &str| {
        let text = crate::support::http::get(format!("{url}/metrics")).await.expect("it answers");
        let text = text.text().await.expect("a text");
        let line = text.lines().find(|line| line.starts_with("soloist_token_regressions_total "));
        line.and_then(|line| line.split(' ').nth(1)?.parse::<u32>().ok()).expect("the metric")
    };
    let mut live = pair.wang().live().await;
    live.until_state(JOB, "running").await;
    // While it runs, every record that it writes would write the token down again.
    pair.li().switch(JOB, false).await;
    live.until_state(JOB, "off").await;
    assert_eq!(counted(&pair.a.url).await, 0);
    pair.redis.rewrite("outbound", |record| record["token"] = 5.into());
    pair.li().switch(JOB, true).await;
    let second = pair.witness.until_started(2);
    assert!(second.token > first.token);
    until_async("the alarm", async || {
        let counts = (counted(&pair.a.url).await, counted(&pair.b.url).await);
        (counts.0 + counts.1 >= 1).then_some(())
    })
    .await;
    pair.witness.check();
}

/// A release agent is connected before its node has opened the store. If it began the epoch of a store that lost its own, nobody
/// would wait for the leases that were lost.
#[tokio::test]
async fn who_has_not_opened_the_store_begins_no_epoch_in_it() {
    let server = RedisServer::start(&[]);
    server.run::<()>(&["FLUSHALL"]);
    let options = Options { checked: true, ..Options::default() };
    let agent = soloist::stores::connect(&server.url(), &options).await.expect("connected");
    agent.be_ready(For::GivingBack).await.expect("ready");
    assert_eq!(server.run::<u8>(&["EXISTS", "soloist:epoch"]), 0);
}
