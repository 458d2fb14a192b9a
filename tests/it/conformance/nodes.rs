//! Laws of the nodes' reports.

use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::nodes::{ALIVE_FOR, Beat, Heard, Nodes};

use super::*;

const WELCOME: Heard = Heard::Welcome { draining: false };

fn beat(name: &str, boot: &str) -> Beat {
    Beat {
        node: node(name),
        boot: boot.to_owned(),
        version: "0.1.0".to_owned(),
        started: StoreTime(1_777_000_000_123),
        containment: "subreaper".to_owned(),
        jobs: vec![job("outbound"), job("inbound")],
        holds: Vec::new(),
    }
}

async fn say(store: &Store, beat: &Beat) -> Heard {
    store.beat(beat).await.expect("heard")
}

pub(super) async fn a_node_is_known_by_its_report(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.nodes().await.expect("nodes"), []);
    let (second, first) = (beat("node-b", "b1"), beat("node-a", "a1"));
    assert_eq!(say(&store, &second).await, WELCOME);
    assert_eq!(say(&store, &first).await, WELCOME);
    let holding = Beat { holds: vec![job("outbound")], ..first };
    assert_eq!(say(&store, &holding).await, WELCOME);
    let nodes = store.nodes().await.expect("nodes");
    let beats: Vec<_> = nodes.iter().map(|node| node.beat.clone()).collect();
    assert_eq!(beats, [holding, second.clone()], "by name, the newest report of each");
    assert!(nodes.iter().all(|node| !node.draining && node.age_ms < 30_000));
    pass(&store, SHORT).await;
    let aged = store.nodes().await.expect("nodes");
    assert!(aged[1].age_ms >= 100, "{}", aged[1].age_ms);
}

pub(super) async fn a_second_process_of_the_same_name_is_told_so(fresh: Fresh) {
    let store = fresh.connect().await;
    say(&store, &beat("node-a", "first")).await;
    assert_eq!(say(&store, &beat("node-a", "second")).await, Heard::Duplicate);
    assert_eq!(say(&store, &beat("node-a", "first")).await, WELCOME);
    assert_eq!(store.nodes().await.expect("nodes")[0].beat.boot, "first", "not overwritten");
    store.leave(&node("node-a"), "second").await.expect("harmless");
    assert_eq!(store.nodes().await.expect("nodes").len(), 1, "removed by another process");
}

pub(super) async fn a_name_is_free_after_leaving_and_after_silence(fresh: Fresh) {
    let store = fresh.connect().await;
    say(&store, &beat("node-a", "first")).await;
    store.leave(&node("node-a"), "first").await.expect("left");
    assert_eq!(store.nodes().await.expect("nodes"), []);
    assert_eq!(say(&store, &beat("node-a", "second")).await, WELCOME);
    let third = beat("node-a", "third");
    assert_eq!(say(&store, &third).await, Heard::Duplicate);
    pass(&store, ALIVE_FOR).await;
    assert_eq!(say(&store, &third).await, WELCOME);
    assert_eq!(store.nodes().await.expect("nodes")[0].beat.boot, "third");
}

pub(super) async fn a_drained_node_hears_it_and_stays_drained(fresh: Fresh) {
    let store = fresh.connect().await;
    let beat = beat("node-a", "first");
    say(&store, &beat).await;
    store.drain(&node("node-a"), true).await.expect("drained");
    assert_eq!(say(&store, &beat).await, Heard::Welcome { draining: true });
    assert!(store.nodes().await.expect("nodes")[0].draining);
    store.leave(&node("node-a"), "first").await.expect("left");
    let reborn = Beat { boot: "second".to_owned(), ..beat };
    assert_eq!(say(&store, &reborn).await, Heard::Welcome { draining: true }, "the mark stays");
    store.drain(&node("node-a"), false).await.expect("allowed again");
    assert_eq!(say(&store, &reborn).await, WELCOME);
}

pub(super) async fn an_unknown_node_cannot_be_drained(fresh: Fresh) {
    let store = fresh.connect().await;
    for on in [true, false] {
        let answer = store.drain(&node("node-x"), on).await;
        assert!(matches!(answer, Err(StoreError::NotFound(_))), "{answer:?}");
    }
    store.leave(&node("node-x"), "never").await.expect("harmless");
}

pub(super) async fn only_news_about_nodes_are_published(fresh: Fresh) {
    let store = fresh.connect().await;
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(heard.recv().await, Some(StoreEvent::Subscribed));
    let quiet = beat("node-a", "first");
    let holding = Beat { holds: vec![job("outbound")], ..quiet.clone() };

    say(&store, &quiet).await;
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "it is new");
    for _ in 0..3 {
        say(&store, &quiet).await;
    }
    switch(&store, "outbound", "li", true).await;
    let next = events::next(&mut heard).await;
    assert!(matches!(next, StoreEvent::Job(_)), "a mere beat is no news: {next:?}");
    say(&store, &holding).await;
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "it holds a job");
    store.drain(&node("node-a"), true).await.expect("drained");
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "it is drained");
    store.leave(&node("node-a"), "first").await.expect("left");
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "it left");
}
