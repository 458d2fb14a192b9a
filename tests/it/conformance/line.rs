//! Laws of the line of programs that wait for a lease.

use soloist::domain::name::Waiter;
use soloist::store::line::{Line, Lines};

use super::ear::Ear;
use super::*;

fn owner(name: &str) -> Owner {
    Owner(format!("program-{name}"))
}

fn waiter(name: &str) -> Waiter {
    Waiter(format!("node-a/0/{name}"))
}

async fn join(store: &Store, name: &str, at: &str, lasting: Duration) {
    let (job, holder) = (job("stock"), node(&format!("shop-{name}")));
    store.join_line(&job, &owner(name), &holder, &waiter(at), lasting).await.expect("joined");
}

async fn line(store: &Store) -> Line {
    store.line(&job("stock"), 10).await.expect("the store answers")
}

/// Who has a place, in order.
fn kept(line: &Line) -> Vec<&str> {
    line.kept().filter_map(|place| place.holder.as_str().strip_prefix("shop-")).collect()
}

pub(super) async fn a_line_is_in_order_of_arrival_and_a_place_is_kept(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    assert_eq!(line(&store).await.places, []);
    for (nth, name) in ["a", "b", "c"].into_iter().enumerate() {
        let store = if nth % 2 == 0 { &store } else { &other };
        join(store, name, name, LONG).await;
    }
    assert_eq!(kept(&line(&other).await), ["a", "b", "c"]);
    join(&other, "a", "a2", LONG).await;
    let known = line(&store).await;
    assert_eq!(kept(&known), ["a", "b", "c"], "who comes again has its place");
    assert_eq!(known.places[0].waiter, Some(waiter("a2")), "where it is now");
    store.leave_line(&job("stock"), &owner("b"), None).await.expect("left");
    assert_eq!(kept(&line(&store).await), ["a", "c"]);
    join(&store, "b", "b", LONG).await;
    assert_eq!(kept(&line(&store).await), ["a", "c", "b"], "who left comes last");
    let first = store.line(&job("stock"), 1).await.expect("the store answers");
    assert_eq!(kept(&first), ["a"]);
    assert_eq!(store.line(&job("other"), 10).await.expect("the store answers").places, []);
}

pub(super) async fn a_lease_is_granted_at_once_where_nobody_stands_in_its_line(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let at_once = async |ask: &Acquire| store.acquire_if_no_line(ask).await.expect("answered");
    let asked = ask("stock", "shop-z");
    join(&other, "a", "a", LONG).await;
    assert_eq!(at_once(&asked).await, None);
    let untouched = record(&store, "stock").await;
    assert_eq!((untouched.lease, untouched.token), (None, Token(0)), "nothing was changed");
    assert!(matches!(at_once(&ask("other", "shop-z")).await, Some(Acquired::Granted { .. })));
    other.leave_line(&job("stock"), &owner("a"), None).await.expect("left");
    let Some(Acquired::Granted { token, .. }) = at_once(&asked).await else { panic!("refused") };
    assert_eq!(record(&store, "stock").await.lease.map(|lease| lease.token), Some(token));
    assert!(matches!(at_once(&ask("stock", "shop-y")).await, Some(Acquired::Busy { .. })));
    // Somebody comes while the lease is known here.
    store.release_under(&asked.job, &asked.owner, token, Outcome::UNUSED).await.expect("released");
    join(&other, "b", "b", LONG).await;
    assert_eq!(at_once(&ask("stock", "shop-z")).await, None);
    assert_eq!(record(&store, "stock").await.lease, None);
}

pub(super) async fn who_steps_aside_keeps_the_place_and_waits_nowhere(fresh: Fresh) {
    let store = fresh.connect().await;
    join(&store, "a", "a", LONG).await;
    join(&store, "b", "b", LONG).await;
    let stock = job("stock");
    store.step_aside(&stock, &owner("a"), &waiter("elsewhere"), LONG).await.expect("answered");
    assert_eq!(line(&store).await.places[0].waiter, Some(waiter("a")), "it waits here by now");
    store.step_aside(&stock, &owner("a"), &waiter("a"), LONG).await.expect("answered");
    let known = line(&store).await;
    assert_eq!((kept(&known), &known.places[0].waiter), (vec!["a", "b"], &None));
    store.step_aside(&stock, &owner("z"), &waiter("z"), LONG).await.expect("answered");
    assert_eq!(kept(&line(&store).await), ["a", "b"], "who has no place gets none");
}

pub(super) async fn a_place_that_nobody_came_back_to_is_given_up(fresh: Fresh) {
    let store = fresh.connect().await;
    join(&store, "a", "a", SHORT).await;
    join(&store, "b", "b", LONG).await;
    let known = eventually(&store, "the place has lapsed", async || {
        let known = line(&store).await;
        (kept(&known) == ["b"]).then_some(known)
    })
    .await;
    let lapsed = known.lapsed().next().expect("it is known that it lapsed").clone();
    join(&store, "a", "a", LONG).await;
    let stock = job("stock");
    store.leave_line(&stock, &lapsed.owner, Some(lapsed.until)).await.expect("answered");
    assert_eq!(kept(&line(&store).await), ["a", "b"], "it came back in time");
    store.leave_line(&stock, &lapsed.owner, None).await.expect("left");
    assert_eq!(line(&store).await.places.len(), 1);
}

pub(super) async fn a_call_is_heard_by_every_process(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let mut ear = Ear::new(&other).await;
    store.call_waiter(&waiter("a")).await.expect("called");
    // By the process that called: what one process tells is heard in its order, what two tell is not.
    assert_eq!(ear.woken(&store).await, ["a"]);
}
