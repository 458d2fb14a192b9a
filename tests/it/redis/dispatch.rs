//! What dispatch leaves behind in Redis.

use soloist::domain::dispatch::{Reason, Rules, TaskOutcome, TaskState};
use soloist::domain::name::SourceName;
use soloist::store::Store;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch, Exchange, Handed, NewTask, Report, Reported, Sources,
    Waiter,
};
use soloist::store::events::{Events, StoreEvent};

use super::{RedisServer, connect};

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
        let wait = Some((Waiter(format!("node/1/{nth}")), std::time::Duration::from_secs(20)));
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
