//! What dispatch leaves behind in Redis, and how its exchanges share a call.

use std::time::Duration;

use futures_util::future::join_all;
use soloist::domain::dispatch::{Reason, Rules, TaskOutcome, TaskState};
use soloist::domain::name::SourceName;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch, Exchange, Handed, NewTask, Report, Reported, Sources,
    Waiter,
};
use soloist::store::events::{Events, StoreEvent};
use soloist::store::{Options, Store, StoreError};

use super::{RedisServer, connect};
use crate::support::machine::{judged, within};

fn pages() -> SourceName {
    SourceName::new("pages").expect("it works")
}

async fn put(store: &Store, count: usize) {
    let task = |nth: usize| NewTask {
        key: format!("page {nth}"),
        source: pages(),
        payload: format!("{{\"nth\":{nth}}}"),
        priority: 0,
        at: None,
        every: None,
    };
    let tasks: Vec<NewTask> = (0..count).map(task).collect();
    assert_eq!(store.put_tasks(&tasks).await.expect("it works"), vec![true; count]);
}

fn ask(request: &str, max: u32) -> ClaimAsk {
    ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: "host:1".parse().expect("it works"),
        request: request.parse().expect("it works"),
        max,
        sources: Vec::new(),
        wait: None,
    }
}

async fn claim(store: &Store, request: &str, max: u32) -> Vec<Handed> {
    let ask = Exchange { claim: Some(ask(request, max)), ..Exchange::default() };
    match store.exchange(&ask).await.expect("it works").claimed {
        Some(Claimed::Granted { tasks, .. }) => tasks,
        other => panic!("{other:?}"),
    }
}

fn done(task: &Handed) -> Report {
    Report {
        id: task.id.clone(),
        token: task.token,
        outcome: TaskOutcome::Done,
        delay: None,
        error: None,
    }
}

#[tokio::test]
async fn of_finished_tasks_nothing_is_left_but_their_record() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    store.put_source(&pages(), &Rules::default()).await.expect("it works");
    put(&store, 30).await;
    for round in 0..3 {
        let tasks = claim(&store, &format!("r{round}"), 10).await;
        assert_eq!(tasks, claim(&store, &format!("r{round}"), 10).await, "asked again");
        assert_eq!(tasks.len(), 10);
        let reports: Vec<Report> = tasks.iter().map(done).collect();
        let exchange = Exchange { reports, ..Exchange::default() };
        let answer = store.exchange(&exchange).await.expect("it works");
        assert_eq!(answer.reports, [Reported::Ok; 10]);
        assert_eq!(
            store.exchange(&exchange).await.expect("it works").reports,
            [Reported::Ok; 10],
            "repeated"
        );
    }
    let source = store.sources(Some(&pages())).await.expect("it works").pop().expect("it works");
    assert_eq!((source.done, source.started, source.ready, source.in_flight), (30, 30, 0, 0));
    assert_eq!(source.shut.expect("it works").reason, Reason::Empty);
    let mut keys: Vec<String> = server.run(&["KEYS", "soloist:dispatch:*"]);
    keys.retain(|key| !key.starts_with("soloist:dispatch:t:"));
    keys.sort();
    let left = ["collectors", "done", "names", "s:pages", "timers", "turn"];
    assert_eq!(keys, left.map(|key| format!("soloist:dispatch:{key}")));
    let task = store
        .task(&soloist::store::dispatch::TaskId::of(&pages(), "page 7"))
        .await
        .expect("it works")
        .expect("it works");
    assert_eq!((task.state, task.attempt, task.payload.as_str()), (TaskState::Done, 1, "null"));
}

#[tokio::test]
async fn a_task_wakes_the_waiter_that_asked_first_by_the_channel() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    store.put_source(&pages(), &Rules::default()).await.expect("it works");
    let mut events = store.subscribe(&[]).await.expect("it works");
    assert_eq!(events.recv().await, Some(StoreEvent::Subscribed));
    for nth in 0..3 {
        let wait = Some((Waiter(format!("node/1/{nth}")), Duration::from_secs(20)));
        let claim = ClaimAsk { wait, ..ask(&format!("r{nth}"), 1) };
        let answer = store
            .exchange(&Exchange { claim: Some(claim), ..Exchange::default() })
            .await
            .expect("it works");
        assert!(matches!(
            answer.claimed,
            Some(Claimed::Nothing { reason: Reason::Empty, next_at: None })
        ));
    }
    put(&store, 2).await;
    store.pump().await.expect("it works");
    let woken = [0, 1].map(|nth| Waiter(format!("node/1/{nth}")));
    assert_eq!(events.recv().await, Some(StoreEvent::Wake(woken.to_vec())));
    assert!(events.try_recv().is_err(), "the third goes on waiting");
}

/// How many scripts ran.
fn scripts_run(server: &RedisServer) -> u64 {
    let stats: String = server.run(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
}

#[tokio::test]
async fn exchanges_that_wait_for_an_answer_share_the_next_call() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    store.put_source(&pages(), &Rules::default()).await.expect("it works");
    put(&store, 40).await;
    drop(claim(&store, "first", 1).await);
    let before = scripts_run(&server);
    let names: Vec<String> = (0..30).map(|nth| format!("r{nth}")).collect();
    let all = join_all(names.iter().map(|name| claim(&store, name, 1))).await;
    assert_eq!(scripts_run(&server) - before, 1);
    let mut keys: Vec<&str> = all.iter().flatten().map(|task| task.key.as_str()).collect();
    assert_eq!(keys[..2], ["page 1", "page 2"], "in the order in which they asked");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 30, "each its own");
}

#[tokio::test]
async fn an_exchange_whose_caller_gave_up_while_it_waited_takes_nothing() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    store.put_source(&pages(), &Rules::default()).await.expect("it works");
    put(&store, 3).await;
    server.pause();
    let first = tokio::spawn({
        let store = store.clone();
        async move { claim(&store, "first", 1).await }
    });
    // Until that one is on its way.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let (given_up, last) = {
        let mut given_up = Box::pin(claim(&store, "given-up", 1));
        assert!(futures_util::poll!(given_up.as_mut()).is_pending());
        let mut last = Box::pin(claim(&store, "last", 1));
        assert!(futures_util::poll!(last.as_mut()).is_pending());
        (given_up, last)
    };
    drop(given_up);
    server.resume();
    let (first, last) = (first.await.expect("it ends"), last.await);
    assert_eq!([&first[0].key, &last[0].key], ["page 0", "page 1"]);
    assert_eq!(store.sources(Some(&pages())).await.expect("it works")[0].in_flight, 2);
}

async fn a_server_that_does_not_answer_is_waited_for_once_by_all() {
    let server = RedisServer::start(&[]);
    let options = Options { timeout: Duration::from_millis(400), ..Options::default() };
    let store = soloist::stores::connect(&server.url(), &options).await.expect("a store");
    server.pause();
    let begun = soloist::clock::boot();
    let ask = |request: &str| {
        let claim = Some(ask(request, 1));
        let (store, ask) = (store.clone(), Exchange { claim, ..Exchange::default() });
        async move { store.exchange(&ask).await }
    };
    let mut first = Box::pin(ask("first"));
    assert!(futures_util::poll!(first.as_mut()).is_pending());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let all = join_all([first, Box::pin(ask("second")), Box::pin(ask("third"))]).await;
    let took = soloist::clock::boot().since(begun);
    server.resume();
    for answer in all {
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    within(took, Duration::from_millis(750), "they wait together");
}

judged! { a_server_that_does_not_answer_is_waited_for_once_by_all }

/// Builds before the rules were one table wrote it so.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_stored_window_counts_to_nothing_has_none() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    store.put_source(&pages(), &Rules::default()).await.expect("it works");
    let keys: Vec<String> = server.run(&["KEYS", "*:s:pages"]);
    server.run::<u8>(&["HSET", &keys[0], "count", "0", "span", "1"]);
    let sources = store.sources(Some(&pages())).await.expect("it works");
    assert_eq!(sources[0].rules.window, None);
}
