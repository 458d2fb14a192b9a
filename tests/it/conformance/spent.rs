//! Laws of ticks that callers name: one run for each.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use soloist::domain::name::TickText;
use soloist::store::journal::Journal;
use soloist::store::spent::{Answer, How, Once, Outcome, Spent, SpentTicks, Standing};

use super::*;

fn once(tick: &str) -> Once {
    Once { tick: TickText::new(tick).expect("a tick"), retry_failed: false }
}

fn again(tick: &str) -> Once {
    Once { retry_failed: true, ..once(tick) }
}

async fn asked(store: &Store, ask: &Acquire, once: &Once) -> Answer {
    store.acquire_once(ask, once).await.expect("the store answers")
}

async fn spends(store: &Store, ask: &Acquire, once: &Once) -> Token {
    match asked(store, ask, once).await {
        Answer::Lease(Acquired::Granted { token, .. }) => token,
        other => panic!("{:?}: {other:?}", once.tick),
    }
}

/// By whom it is spent, and how that stands; `None`: it is not, as far as this answer says.
fn told(answer: &Answer) -> Option<(&str, Standing)> {
    match answer {
        Answer::Spent { spent, standing, own: false } => Some((spent.by.as_str(), *standing)),
        _ => None,
    }
}

async fn done(store: &Store, ask: &Acquire, token: Token) {
    let end = ended(ask, token, &RunId(unique("run")), Then::Done);
    store.record_ended(&Ended { then: Then::Nothing, ..end }).await.expect("ended");
}

pub(super) async fn of_twenty_who_ask_for_one_tick_one_is_granted_and_the_others_are_told(
    fresh: Fresh,
) {
    let stores = join_all((0..4).map(|_| fresh.connect())).await;
    let asks: Vec<Acquire> = (0..20).map(|n| ask("nightly", &format!("host-{n}"))).collect();
    let tick = once("27");
    let answers = asks.iter().enumerate().map(|(n, ask)| asked(&stores[n % 4], ask, &tick));
    let answers = join_all(answers).await;
    let granted: Vec<usize> = (0..20)
        .filter(|n| matches!(answers[*n], Answer::Lease(Acquired::Granted { .. })))
        .collect();
    let &[first] = granted.as_slice() else { panic!("{answers:?}") };
    let by = format!("host-{first}");
    for (n, ask) in asks.iter().enumerate().filter(|(n, _)| *n != first) {
        // Who asked just before may have met half a grant.
        let answer = asked(&stores[n % 4], ask, &tick).await;
        assert_eq!(told(&answer), Some((by.as_str(), Standing::Running)), "{answer:?}");
    }
    let other = asked(&stores[0], &ask("nightly", "host-x"), &once("28")).await;
    assert!(matches!(other, Answer::Lease(Acquired::Busy { .. })), "{other:?}");
}

pub(super) async fn older_ticks_stay_spent_when_newer_ones_come(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let mut tokens = BTreeMap::new();
    // More than are counted at once.
    for n in 0..40 {
        let by = if n % 2 == 0 { &store } else { &other };
        let ask = ask("nightly", &format!("host-{n}"));
        let token = spends(by, &ask, &once(&n.to_string())).await;
        done(by, &ask, token).await;
        tokens.insert(n, token);
    }
    for (n, token) in tokens {
        let late = ask("nightly", "late");
        let answer = asked(&store, &late, &once(&n.to_string())).await;
        assert_eq!(told(&answer), Some((format!("host-{n}").as_str(), Standing::Done)));
        let tick = TickText::new(&n.to_string()).expect("a tick");
        let (spent, _) = other.spent(&late.job, &tick).await.expect("an answer").expect("spent");
        assert_eq!(spent.token, token);
    }
    assert_eq!(record(&store, "nightly").await.lease, None);
    let free = TickText::new("40").expect("a tick");
    assert_eq!(other.spent(&job("nightly"), &free).await.expect("an answer"), None);
    // Another name has ticks of its own.
    spends(&store, &ask("hourly", "host-a"), &once("1")).await;
}

pub(super) async fn what_failed_or_was_lost_is_done_again_when_that_is_asked_for(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let first = ask("nightly", "host-a");
    let token = spends(&store, &first, &once("27")).await;
    let end = ended(&first, token, &RunId(unique("run")), Then::GiveUp { crashes: 1 });
    store.record_ended(&Ended { then: Then::Nothing, ..end }).await.expect("ended");
    let second = ask("nightly", "host-b");
    let answer = asked(&other, &second, &once("27")).await;
    assert_eq!(told(&answer), Some(("host-a", Standing::Failed)));
    let later = spends(&other, &second, &again("27")).await;
    assert!(later > token);
    let answer = asked(&store, &first, &again("27")).await;
    assert_eq!(told(&answer), Some(("host-b", Standing::Running)));
    // Others come between, so that it does not stand in the record any more.
    done(&other, &second, later).await;
    let brief = Acquire { ttl: Duration::from_millis(50), ..ask("nightly", "host-c") };
    let lost = spends(&store, &brief, &once("28")).await;
    let third = ask("nightly", "host-d");
    let token = eventually(&other, "its lease runs out", async || {
        match asked(&other, &third, &once("29")).await {
            Answer::Lease(Acquired::Granted { token, .. }) => Some(token),
            _ => None,
        }
    })
    .await;
    assert!(token > lost);
    let answer = asked(&store, &first, &once("28")).await;
    assert_eq!(told(&answer), Some(("host-c", Standing::Lost)));
    let answer = asked(&store, &first, &again("28")).await;
    assert!(matches!(answer, Answer::Lease(Acquired::Busy { .. })), "{answer:?}");
    done(&other, &third, token).await;
    spends(&store, &first, &again("28")).await;
    let answer = asked(&store, &second, &again("27")).await;
    assert_eq!(told(&answer), Some(("host-b", Standing::Done)));
}

pub(super) async fn a_tick_for_which_nothing_was_started_is_free_again(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let first = ask("nightly", "host-a");
    let token = spends(&store, &first, &once("27")).await;
    assert_eq!(spends(&store, &first, &once("27")).await, token, "its answer was lost");
    store.release(&first.job, &first.owner).await.expect("given back");
    let second = ask("nightly", "host-b");
    let later = spends(&other, &second, &once("27")).await;
    let exit = Exit { code: Some(0), signal: None };
    let outcome = Outcome { how: How::Done, exit };
    other.release_under(&second.job, &second.owner, later, outcome).await.expect("released");
    for tick in [once("27"), again("27")] {
        let answer = asked(&store, &first, &tick).await;
        assert_eq!(told(&answer), Some(("host-b", Standing::Done)));
    }
    // It is so as well when others came between.
    let token = spends(&store, &first, &once("28")).await;
    store.release(&first.job, &first.owner).await.expect("given back");
    let last = spends(&other, &second, &once("29")).await;
    assert!(last > token);
    done(&other, &second, last).await;
    spends(&store, &first, &once("28")).await;
}

pub(super) async fn ticks_are_compared_byte_by_byte(fresh: Fresh) {
    let store = fresh.connect().await;
    let long = "é".repeat(100);
    let ticks = [
        "a",
        "A",
        "a ",
        " a",
        "à",
        "a\u{300}",
        "%61",
        "a%",
        "a/b",
        "a:b",
        "a*",
        "'; --",
        "\\",
        "\"a\"",
        "订单 10248",
        "\u{1f512}",
        &long,
        "{a}",
        "?",
        "ß",
        "ss",
        "2026-11-27T02:30[Asia/Shanghai]",
    ];
    for (n, tick) in ticks.iter().enumerate() {
        let ask = ask("nightly", &format!("host-{n}"));
        let token = spends(&store, &ask, &once(tick)).await;
        done(&store, &ask, token).await;
    }
    for (n, tick) in ticks.iter().enumerate() {
        let answer = asked(&store, &ask("nightly", "late"), &once(tick)).await;
        let by = format!("host-{n}");
        assert_eq!(told(&answer), Some((by.as_str(), Standing::Done)), "{tick:?}");
    }
}

pub(super) async fn a_tick_is_asked_for_at_once_where_nobody_stands_in_the_line(fresh: Fresh) {
    let store = fresh.connect().await;
    let at_once = async |ask: &Acquire, tick: &Once| {
        store.acquire_once_if_no_line(ask, tick).await.expect("the store answers")
    };
    let first = ask("nightly", "host-a");
    let Some(Answer::Lease(Acquired::Granted { token, .. })) = at_once(&first, &once("27")).await
    else {
        panic!("refused")
    };
    let answer = at_once(&ask("nightly", "host-b"), &once("27")).await.expect("no line");
    assert_eq!(told(&answer), Some(("host-a", Standing::Running)));
    done(&store, &first, token).await;
    let answer = at_once(&ask("nightly", "host-b"), &once("27")).await.expect("no line");
    assert_eq!(told(&answer), Some(("host-a", Standing::Done)));
}

/// As with a run, its holder says it again.
pub(super) async fn a_tick_is_told_again_by_who_holds_the_lease_and_by_nobody_else(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let first = ask("nightly", "host-a");
    let token = granted(&store, &first).await;
    let spent = Spent {
        tick: TickText::new("27").expect("a tick"),
        token,
        by: first.node.clone(),
        at: store.snapshot(&[]).await.expect("a snapshot").at,
        ended: None,
    };
    let stranger = Owner(unique("owner"));
    other.tell_spent(&first.job, &stranger, &spent).await.expect("an answer");
    let late = ask("nightly", "late");
    let answer = asked(&other, &late, &once("27")).await;
    assert!(matches!(answer, Answer::Lease(Acquired::Busy { .. })), "{answer:?}");
    for _ in 0..2 {
        store.tell_spent(&first.job, &first.owner, &spent).await.expect("an answer");
    }
    let answer = asked(&other, &late, &once("27")).await;
    assert_eq!(told(&answer), Some(("host-a", Standing::Running)));
    done(&store, &first, token).await;
    let answer = asked(&other, &late, &again("27")).await;
    assert_eq!(told(&answer), Some(("host-a", Standing::Done)));
}
