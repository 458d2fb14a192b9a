//! Laws of what is told to people: who sends, what is on, what was, and what is mute.

use std::collections::BTreeMap;

use soloist::domain::alert::{Subject, When};
use soloist::domain::time::StoreTime;
use soloist::store::alerts::{Alerts, Incident, Mute, Noted, PAST_KEPT, Sent, Told, Tried};

use super::*;

/// The seat is kept so long in a law in which it must not lapse.
const SEAT: Duration = LONG;

fn told(nth: i64) -> Told {
    Told {
        id: format!("msg_{nth}"),
        at: StoreTime(nth),
        en: format!("\"{nth}\" <b>"),
        zh: format!("第 {nth} 条"),
    }
}

fn incident(nth: i64) -> Incident {
    Incident {
        id: format!("{nth:013x}"),
        alert: "given_up".to_owned(),
        when: When::GivenUp,
        subject: Subject { job: Some(job("outbound")), ..Subject::default() },
        since: StoreTime(nth),
        print: "a\u{0}b".to_owned(),
        url: "http://here/jobs/outbound".to_owned(),
        to: vec!["ops".to_owned()],
        begin: told(nth),
        end: None,
        sent: BTreeMap::new(),
    }
}

fn over(nth: i64, at: i64) -> Incident {
    Incident { end: Some(told(at)), ..incident(nth) }
}

async fn seat(store: &Store, node_name: &str, boot: &str) -> bool {
    store.keep_sending(&node(node_name), boot, SEAT).await.expect("the store answers")
}

async fn note(store: &Store, boot: &str, noted: &Noted) -> bool {
    store.note_alerts(&node("node-a"), boot, noted).await.expect("the store answers")
}

pub(super) async fn the_seat_of_the_sender_has_one_until_it_is_given_up_or_lapses(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    assert_eq!(store.alert_book().await.expect("a book").sender, None);
    assert!(seat(&store, "node-a", "one").await);
    assert!(seat(&store, "node-a", "one").await, "it renews it");
    assert!(!seat(&other, "node-b", "one").await);
    assert!(!seat(&other, "node-a", "two").await, "another life of that node is another");
    assert_eq!(other.alert_book().await.expect("a book").sender, Some(node("node-a")));
    other.stop_sending(&node("node-b"), "one").await.expect("answered");
    assert!(!seat(&other, "node-b", "one").await, "nobody gives up what is another's");
    store.stop_sending(&node("node-a"), "one").await.expect("given up");
    let asked = other.keep_sending(&node("node-b"), "one", SHORT).await;
    assert!(asked.expect("the store answers"));
    eventually(&store, "the seat lapses", async || {
        seat(&store, "node-a", "one").await.then_some(())
    })
    .await;
}

pub(super) async fn only_who_has_the_seat_writes_what_is_told(fresh: Fresh) {
    let store = fresh.connect().await;
    let tried = Tried {
        at: StoreTime(5),
        ok: false,
        error: Some("503 <b>".to_owned()),
        ..Tried::default()
    };
    let noted = Noted {
        incidents: vec![incident(2), incident(1)],
        channels: BTreeMap::from([("ops".to_owned(), tried.clone())]),
        ..Noted::default()
    };
    assert!(!note(&store, "one", &noted).await, "nobody has the seat");
    assert!(seat(&store, "node-a", "one").await);
    assert!(!note(&store, "two", &noted).await, "it is another life's");
    assert_eq!(store.alert_book().await.expect("a book").incidents, []);
    assert!(note(&store, "one", &noted).await);
    let book = fresh.connect().await.alert_book().await.expect("a book");
    assert_eq!(book.incidents, [incident(1), incident(2)], "in the order in which they began");
    assert_eq!(book.channels["ops"], tried);
    let mut sent = incident(1);
    sent.sent.insert("ops".to_owned(), Sent { begin: Some(StoreTime(7)), end: None });
    let noted = Noted { incidents: vec![sent.clone()], ..Noted::default() };
    assert!(note(&store, "one", &noted).await);
    let book = store.alert_book().await.expect("a book");
    assert_eq!(book.incidents, [sent, incident(2)], "the one is changed");
    assert_eq!(book.channels["ops"], tried, "what is not named stays");
}

pub(super) async fn what_is_done_leaves_the_book_and_the_newest_are_remembered(fresh: Fresh) {
    let store = fresh.connect().await;
    assert!(seat(&store, "node-a", "one").await);
    assert_eq!(store.past_alerts(PAST_KEPT).await.expect("an answer"), []);
    let on = Noted { incidents: vec![incident(1), incident(2)], ..Noted::default() };
    assert!(note(&store, "one", &on).await);
    let done = Noted { past: vec![over(1, 900), over(2, 800)], ..Noted::default() };
    assert!(!note(&store, "two", &done).await, "it is another life's");
    assert_eq!(store.alert_book().await.expect("a book").incidents.len(), 2);
    assert!(note(&store, "one", &done).await);
    assert_eq!(store.alert_book().await.expect("a book").incidents, []);
    let past = store.past_alerts(PAST_KEPT).await.expect("an answer");
    assert_eq!(past, [over(1, 900), over(2, 800)], "what ended last comes first");
    let many = i64::try_from(PAST_KEPT).expect("small");
    for from in (0..many).step_by(50) {
        let past = (from..from + 50).map(|nth| over(1_000 + nth, 1_000 + nth)).collect();
        assert!(note(&store, "one", &Noted { past, ..Noted::default() }).await);
    }
    let past = store.past_alerts(PAST_KEPT * 2).await.expect("an answer");
    assert_eq!(past.len(), PAST_KEPT, "the two before are forgotten");
    assert_eq!(past[0], over(999 + many, 999 + many));
    assert_eq!(past[PAST_KEPT - 1], over(1_000, 1_000));
    assert_eq!(store.past_alerts(1).await.expect("an answer"), past[..1]);
}

pub(super) async fn an_alert_is_mute_for_a_while_until_an_instant_or_not(fresh: Fresh) {
    let store = fresh.connect().await;
    let now = store.alert_book().await.expect("a book").now;
    let until = StoreTime(now.0 + 3_600_000);
    let mute = async |alert: &str, how| store.mute_alert(alert, how).await.expect("muted");
    assert_eq!(mute("given_up", Mute::Until(until)).await, Some(until));
    let lasting = mute("stuck", Mute::For(LONG)).await.expect("an instant");
    assert!(lasting >= now + LONG && lasting < until, "by the store's clock: {lasting:?}");
    let muted = fresh.connect().await.alert_book().await.expect("a book").muted;
    let expected = [("given_up".to_owned(), until), ("stuck".to_owned(), lasting)];
    assert_eq!(muted, BTreeMap::from(expected));
    assert_eq!(mute("given_up", Mute::Not).await, None);
    assert_eq!(mute("unknown", Mute::Not).await, None, "it was not mute");
    let muted = store.alert_book().await.expect("a book").muted;
    assert_eq!(muted, BTreeMap::from([("stuck".to_owned(), lasting)]));
}
