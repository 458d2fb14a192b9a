//! Laws of the condition that is checked in the same atomic step as the lease.

use std::time::Duration;

use soloist::store::journal::{Journal, Then};
use soloist::store::leases::{Acquire, Acquired, Leases};

use super::*;
use crate::support::machine::holds;

pub(super) async fn only_a_wanted_job_is_granted_to_who_asks_for_a_wanted_one(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask_wanted("outbound", "node-a");
    assert_eq!(acquire(&store, &ask).await, Acquired::NotWanted);
    assert_eq!(version(&store, "outbound").await, 0, "asking touches nothing");
    switch(&store, "outbound", "li", true).await;
    switch(&store, "outbound", "wang", true).await;
    switch(&store, "outbound", "li", false).await;
    granted(&store, &ask).await;
    let other = ask_wanted("inbound", "node-a");
    switch(&store, "inbound", "li", true).await;
    switch(&store, "inbound", "li", false).await;
    assert_eq!(acquire(&store, &other).await, Acquired::NotWanted);
}

pub(super) async fn a_held_job_is_not_wanted(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask_wanted("outbound", "node-a");
    switch(&store, "outbound", "li", true).await;
    store.hold(&ask.job, &user("ops"), "stock-taking").await.expect("held");
    assert_eq!(acquire(&store, &ask).await, Acquired::NotWanted);
    store.resume(&ask.job).await.expect("resumed");
    granted(&store, &ask).await;
}

/// Runs the job once and ends it with `then`.
async fn run_once(store: &Store, name: &str, then: Then) {
    let ask = ask(name, "node-a");
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    store.record_ended(&ended(&ask, token, &run.run, then)).await.expect("ended");
}

pub(super) async fn a_job_that_has_given_up_is_not_wanted(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    run_once(&store, "outbound", Then::GiveUp { crashes: 3 }).await;
    let ask = ask_wanted("outbound", "node-a");
    assert_eq!(acquire(&store, &ask).await, Acquired::NotWanted);
    switch(&store, "outbound", "wang", true).await;
    granted(&store, &ask).await;
}

pub(super) async fn a_job_that_is_not_due_says_how_long(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    run_once(&store, "outbound", Then::Retry { crashes: 1, wait: LONG }).await;
    match acquire(&store, &ask_wanted("outbound", "node-a")).await {
        Acquired::NotYet { wait } => assert!(wait <= LONG && wait > LONG / 2, "{wait:?}"),
        other => panic!("{other:?}"),
    }
    switch(&store, "inbound", "li", true).await;
    run_once(&store, "inbound", Then::Repeat(SHORT)).await;
    let due = record(&store, "inbound").await.next.expect("a next run").at;
    granted_in_time(&store, &ask_wanted("inbound", "node-b")).await;
    let granted = record(&store, "inbound").await.lease.expect("a lease").since;
    assert!(granted >= due, "not a millisecond early: {granted:?} before {due:?}");
}

pub(super) async fn a_move_reserves_the_job_for_its_goal(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let goal = node("node-b");
    store.request_move(&job("outbound"), Some(&goal), &user("ops"), SOON).await.expect("asked");
    match acquire(&store, &ask_wanted("outbound", "node-a")).await {
        Acquired::Reserved { wait } => {
            assert!(wait <= Duration::from_secs(30) && wait > Duration::from_secs(10), "{wait:?}");
        }
        other => panic!("{other:?}"),
    }
    granted(&store, &ask_wanted("outbound", "node-b")).await;
}

pub(super) async fn a_move_without_a_goal_reserves_the_job_for_anyone_but_the_holder(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let holder = ask_wanted("outbound", "node-a");
    granted(&store, &holder).await;
    store.request_move(&holder.job, None, &user("ops"), SOON).await.expect("asked");
    store.release(&holder.job, &holder.owner).await.expect("released");
    let again = acquire(&store, &ask_wanted("outbound", "node-a")).await;
    assert!(matches!(again, Acquired::Reserved { .. }), "{again:?}");
    granted(&store, &ask_wanted("outbound", "node-c")).await;
}

pub(super) async fn a_move_ends_when_another_node_has_the_job(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let holder = ask_wanted("outbound", "node-a");
    granted(&store, &holder).await;
    store.request_move(&holder.job, None, &user("ops"), SOON).await.expect("asked");
    assert!(record(&store, "outbound").await.moving.is_some());
    store.release(&holder.job, &holder.owner).await.expect("released");
    let other = ask_wanted("outbound", "node-b");
    granted(&store, &other).await;
    assert_eq!(record(&store, "outbound").await.moving, None);
    store.release(&other.job, &other.owner).await.expect("released");
    granted(&store, &ask_wanted("outbound", "node-a")).await;
}

pub(super) async fn a_move_to_a_node_that_cannot_take_the_job_keeps_nobody_out(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let holder = ask_wanted("outbound", "node-a");
    granted(&store, &holder).await;
    let dead = node("node-b");
    store.request_move(&holder.job, Some(&dead), &user("ops"), SOON).await.expect("asked");
    store.release(&holder.job, &holder.owner).await.expect("released");
    let again = ask_wanted("outbound", "node-a");
    assert!(matches!(acquire(&store, &again).await, Acquired::Reserved { .. }));
    let knowing = Acquire { condition: Condition::WantedDespiteMove, ..again };
    granted(&store, &knowing).await;
    assert_eq!(record(&store, "outbound").await.moving, None, "it is settled");
    store.release(&knowing.job, &knowing.owner).await.expect("released");
    switch(&store, "outbound", "li", false).await;
    let asked = Acquire { owner: ask("outbound", "node-a").owner, ..knowing };
    assert_eq!(acquire(&store, &asked).await, Acquired::NotWanted, "the rest still counts");
}

pub(super) async fn a_move_of_a_job_that_rests_is_valid_from_when_its_next_run_is_due(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    run_once(&store, "outbound", Then::Repeat(LONG)).await;
    let rests = record(&store, "outbound").await;
    let (ran_on, due) = (rests.last_exit.expect("a run").node, rests.next.expect("a next run").at);
    store.request_move(&job("outbound"), None, &user("ops"), SOON).await.expect("asked");
    let moving = record(&store, "outbound").await.moving.expect("a move");
    assert_eq!(moving.from, Some(ran_on));
    assert_eq!(moving.until, due + SOON);
}

pub(super) async fn without_a_condition_only_the_lease_counts(fresh: Fresh) {
    let store = fresh.connect().await;
    store.hold(&job("outbound"), &user("ops"), "no").await.expect("held");
    let goal = node("node-b");
    store.request_move(&job("outbound"), Some(&goal), &user("ops"), SOON).await.expect("asked");
    run_once(&store, "outbound", Then::GiveUp { crashes: 9 }).await;
    granted(&store, &ask("outbound", "node-a")).await;
    assert!(matches!(acquire(&store, &ask("outbound", "node-b")).await, Acquired::Busy { .. }));
}

pub(super) async fn taking_the_lease_clears_the_next_run(fresh: Fresh) {
    let store = fresh.connect().await;
    run_once(&store, "outbound", Then::Retry { crashes: 2, wait: LONG }).await;
    assert!(record(&store, "outbound").await.next.is_some());
    granted(&store, &ask("outbound", "node-a")).await;
    let after = record(&store, "outbound").await;
    assert_eq!((after.next, after.crashes), (None, 2), "the row of crashes goes on");
}

pub(super) async fn switched_off_while_twenty_ask_is_never_granted_afterwards(fresh: Fresh) {
    let store = fresh.connect().await;
    for round in 0..5 {
        let name = format!("job-{round}");
        switch(&store, &name, "li", true).await;
        let askers: Vec<_> = (0..20)
            .map(|i| {
                let store = store.clone();
                let ask: Acquire = ask_wanted(&name, &format!("node-{i}"));
                tokio::spawn(async move { acquire(&store, &ask).await })
            })
            .collect();
        switch(&store, &name, "li", false).await;
        let at_the_switch = record(&store, &name).await;
        for asker in askers {
            asker.await.expect("no panic");
        }
        let afterwards = record(&store, &name).await;
        let token = |of: &JobRecord| of.lease.as_ref().map(|lease| lease.token);
        let (then, now) = (token(&at_the_switch), token(&afterwards));
        holds(then == now, || format!("a grant of what no one wanted: {then:?}, then {now:?}"));
        assert_eq!(afterwards.version, at_the_switch.version);
    }
}
