//! Laws of the nodes' reports.

use soloist::domain::definition::{Definition, Definitions};
use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::nodes::{ALIVE_FOR, Beat, Forgotten, Heard, Nodes, Told, Vitals, listed};

use super::*;

const WELCOME: Heard = Heard::Welcome { draining: false, told: false };

fn beat(name: &str, boot: &str) -> Beat {
    Beat {
        node: node(name),
        boot: boot.to_owned(),
        version: "0.1.0".to_owned(),
        started: StoreTime(1_777_000_000_123),
        containment: "subreaper".to_owned(),
        url: String::new(),
        jobs: [job("outbound"), job("inbound")].into(),
        digest: "d1".to_owned(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
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
    assert_eq!(say(&store, &beat).await, Heard::Welcome { draining: true, told: false });
    assert!(store.nodes().await.expect("nodes")[0].draining);
    store.leave(&node("node-a"), "first").await.expect("left");
    let reborn = Beat { boot: "second".to_owned(), ..beat };
    assert_eq!(
        say(&store, &reborn).await,
        Heard::Welcome { draining: true, told: false },
        "the mark stays"
    );
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

pub(super) async fn a_silent_node_is_forgotten_with_its_drain_mark_and_a_living_one_is_not(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let (gone, beat) = (node("node-a"), beat("node-a", "first"));
    let unknown = store.forget(&gone).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
    say(&store, &beat).await;
    store.drain(&gone, true).await.expect("drained");
    assert_eq!(store.forget(&gone).await.expect("answered"), Forgotten::Alive);
    assert_eq!(store.nodes().await.expect("nodes").len(), 1, "a living node stays");
    pass(&store, ALIVE_FOR).await;
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(heard.recv().await, Some(StoreEvent::Subscribed));
    assert_eq!(store.forget(&gone).await.expect("answered"), Forgotten::Done);
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "everybody hears it");
    assert_eq!(store.nodes().await.expect("nodes"), []);
    assert_eq!(say(&store, &beat).await, WELCOME, "who comes back is new: no drain mark is left");
    // A mark without a report is forgotten as well.
    store.drain(&gone, true).await.expect("drained");
    store.leave(&gone, "first").await.expect("left");
    assert_eq!(store.forget(&gone).await.expect("answered"), Forgotten::Done);
    assert_eq!(say(&store, &beat).await, WELCOME);
}

fn told(name: &str, digest: &str) -> Told {
    let outbound = Definition {
        title_en: "Outbound".to_owned(),
        title_zh: "出库".to_owned(),
        lease_ttl_ms: 5_000,
        min_uptime_ms: 1_000,
        stop_grace_ms: 2_000,
        external: false,
        group: None,
        max_runtime_ms: None,
        nodes: vec!["*".to_owned()],
        operators: vec!["li".to_owned()],
        viewers: vec!["*".to_owned()],
        rotation: None,
        schedule: None,
        hash: "0a".to_owned(),
        keys: [("command".to_owned(), "0b".to_owned())].into(),
    };
    let definitions = Definitions::from([(job("outbound"), outbound)]);
    Told { node: node(name), digest: digest.to_owned(), definitions }
}

pub(super) async fn what_a_node_defines_is_asked_for_until_it_is_told_and_goes_with_the_node(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let beat = beat("node-a", "first");
    assert_eq!(say(&store, &beat).await, WELCOME, "not told yet");
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(heard.recv().await, Some(StoreEvent::Subscribed));
    store.define(&told("node-a", "d1")).await.expect("told");
    assert_eq!(events::next(&mut heard).await, StoreEvent::Nodes, "everybody hears it");
    assert_eq!(say(&store, &beat).await, Heard::Welcome { draining: false, told: true });
    assert_eq!(store.definitions().await.expect("read"), [told("node-a", "d1")]);
    let nodes = listed(&store).await.expect("listed");
    assert_eq!(*nodes[0].told, told("node-a", "d1").definitions);

    let newer = Beat { digest: "d".to_owned(), ..beat.clone() };
    assert_eq!(say(&store, &newer).await, WELCOME, "another digest is asked for");
    let nodes = listed(&store).await.expect("listed");
    assert!(nodes[0].told.is_empty(), "what was told before counts no more");
    store.define(&told("node-a", "d")).await.expect("told");
    assert_eq!(store.definitions().await.expect("read"), [told("node-a", "d")]);

    store.leave(&node("node-a"), "first").await.expect("left");
    assert_eq!(store.definitions().await.expect("read"), []);
    say(&store, &beat).await;
    store.define(&told("node-a", "d1")).await.expect("told");
    pass(&store, ALIVE_FOR).await;
    assert_eq!(store.forget(&node("node-a")).await.expect("answered"), Forgotten::Done);
    assert_eq!(store.definitions().await.expect("read"), []);
}

pub(super) async fn how_a_machine_is_is_kept_and_is_no_news(fresh: Fresh) {
    let store = fresh.connect().await;
    let quiet = beat("node-a", "first");
    say(&store, &quiet).await;
    let mut heard = store.subscribe(&[job("outbound")]).await.expect("subscribed");
    assert_eq!(events::next(&mut heard).await, StoreEvent::Subscribed);
    let now = store.snapshot(&[]).await.expect("a snapshot").at;
    let vitals = Vitals {
        load_percent: Some(105),
        memory_mb: Some(16_000),
        clock: Some(StoreTime(now.0 + 90_000)),
        ..Vitals::default()
    };
    let told = Beat { vitals: Some(vitals.clone()), ..quiet.clone() };
    say(&store, &told).await;
    let listed = store.nodes().await.expect("nodes");
    let known = listed[0].beat.vitals.clone().expect("it told them");
    assert_eq!((known.load_percent, known.memory_mb, known.cores), (Some(105), Some(16_000), None));
    let ahead = known.ahead_ms.expect("it told its clock");
    assert!((60_000..=90_001).contains(&ahead), "by the store's clock: {ahead}");
    assert!(listed[0].beat.says_as(&quiet) && listed[0].beat != quiet);
    switch(&store, "outbound", "li", true).await;
    let next = events::next(&mut heard).await;
    assert!(matches!(next, StoreEvent::Job(_)), "its machine is no news: {next:?}");
}
