//! What only Redis can get wrong: it forgets, restarts, hangs, turns read-only, and cuts connections.
//!
//! | event | a living holder | a dead one, and everybody else |
//! | --- | --- | --- |
//! | FLUSHALL | `forgetting::emptying_the_store_never_gives_a_second_holder_and_the_first_goes_on` | `forgetting::a_dead_holders_lease_is_waited_for_when_the_store_was_emptied` |
//! | FLUSHALL, then a new process | `forgetting::a_process_that_starts_in_an_emptied_store_holds_back_while_others_use_it` | - |
//! | restart without persistence | `forgetting::a_restart_without_persistence_never_gives_a_second_holder` | the same |
//! | restart without persistence, then a new process | `faults`: `restart_empty_new_node` | `forgetting::a_process_that_is_first_in_a_server_that_restarted_empty_waits_for_the_leases_of_the_others` |
//! | restart with its data | `takeover::a_restart_of_redis_with_its_append_only_file_does_not_touch_the_script` | `forgetting::a_restart_with_its_data_never_gives_a_second_holder` |
//! | promoted replica that never saw the lease | `replica::a_promoted_replica_that_never_saw_the_lease_waits_for_its_holder` | the same |
//! | promoted replica that saw it | `replica::a_promoted_replica_that_saw_the_lease_keeps_it_for_its_holder` | the same |
//! | no replica confirms a grant | `replica::a_request_that_waits_for_a_replica_holds_no_renewal_up` | `replica::a_lease_is_granted_only_once_a_replica_has_it` |
//! | master dies, sentinels promote | `sentinel::when_the_master_dies_its_replica_is_found_and_the_living_holder_goes_on` | `sentinel::two_nodes_on_sentinels_lose_a_node_and_then_the_master_and_never_run_two` |
//! | former master still takes writes | `sentinel::a_master_that_no_majority_of_sentinels_names_is_not_believed` | `sentinel::a_master_that_slept_through_its_replacement_gets_no_call_when_it_wakes` |
//! | wall clock +30 s | `jumping::half_a_minute_ahead_takes_nothing_from_a_living_holder` | `jumping::half_a_minute_ahead_gives_a_dead_holders_lease_to_nobody_before_its_time` |
//! | wall clock -1 h | `jumping::an_hour_back_takes_nothing_from_a_living_holder` | `jumping::an_hour_back_does_not_keep_a_dead_holders_lease_for_an_hour` |
//! | token after data loss | `forgetting::tokens_grow_through_emptying_and_restarting_even_for_a_node_that_saw_none` | `jumping::tokens_grow_when_the_store_is_emptied_and_its_clock_set_back_at_once` |
//! | a token that went back | `forgetting::a_token_that_went_back_is_an_alarm_and_the_next_one_is_greater_all_the_same` | the same |
//! | out of memory, noeviction | `full::without_memory_a_lease_is_still_renewed_and_a_new_one_refused_in_words` | the same |
//! | eviction | `full::a_policy_that_is_set_while_a_node_runs_is_said_on_readyz` | `full::a_server_that_may_evict_leases_is_refused_with_the_command_that_helps` |
//! | any that loses a turn of a rotation | `doubt::a_turn_that_a_restart_forgot_is_waited_for_and_its_holder_hears_so` | the same |
//! | disk full (MISCONF) | `full::a_script_is_ended_in_time_when_the_disk_of_the_store_is_full_and_readyz_says_why` | `full::a_disk_that_is_full_is_said_in_words_and_the_lease_is_renewed_once_it_is_not` |

mod acl;
mod cluster;
mod dispatch;
mod doubt;
mod forgetting;
mod full;
mod hints;
mod jumping;
mod listing;
mod renamed;
mod replica;
mod sentinel;
mod unused;

use std::time::Duration;

use soloist::clock;
use soloist::domain::event::EventKind;
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::Began;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, Journal, LogBounds, NewLine, Output, Started, Stream, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases, Renewal, Renewed};
use soloist::store::{Options, Store, StoreError};

use crate::support::machine::{judged, within};
use crate::support::redis::RedisServer;

judged! {
    connections_killed_under_load_leave_no_old_picture
    a_read_only_server_is_unavailable_and_used_again_once_it_is_a_master
    a_server_that_hangs_does_not_hang_its_callers_and_is_used_again
    a_caller_that_gives_up_sooner_than_the_store_does_not_keep_a_dead_connection
}

const TTL: Duration = Duration::from_millis(1_500);

fn job() -> JobName {
    JobName::new("outbound").expect("a good name")
}

fn li() -> UserName {
    UserName::new("li").expect("a good name")
}

async fn connect(server: &RedisServer) -> Store {
    let options = Options { longest_lease: TTL, ..Options::default() };
    soloist::stores::connect(&server.url(), &options).await.expect("it connects")
}

fn ask(node: &str, ttl: Duration) -> Acquire {
    Acquire {
        job: job(),
        owner: Owner(format!("owner-of-{node}")),
        node: NodeName::new(node).expect("a good name"),
        ttl,
        condition: Condition::None,
        seen: Token(0),
    }
}

async fn granted(store: &Store, ask: &Acquire) -> Token {
    match store.acquire(ask).await.expect("an answer") {
        Acquired::Granted { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

fn renewal(ask: &Acquire, token: Token) -> Renewal {
    Renewal {
        job: ask.job.clone(),
        owner: ask.owner.clone(),
        node: ask.node.clone(),
        token,
        ttl: ask.ttl,
        since: Began::at_boot(clock::boot()),
        run: None,
    }
}

/// Asks until the lease is granted; returns the token and how long that took.
async fn granted_in_the_end(store: &Store, ask: &Acquire) -> (Token, Duration) {
    let begun = clock::boot();
    loop {
        match store.acquire(ask).await {
            Ok(Acquired::Granted { token, .. }) => return (token, clock::boot().since(begun)),
            answer => {
                let waited = clock::boot().since(begun);
                assert!(waited < Duration::from_secs(15), "still {answer:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Repeats `call` until it succeeds.
async fn in_the_end<T, F: Future<Output = Result<T, StoreError>>>(
    mut call: impl FnMut() -> F,
) -> T {
    let begun = clock::boot();
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => {
                assert!(clock::boot().since(begun) < Duration::from_secs(10), "still {error}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn renew_one(store: &Store, renewal: &Renewal) -> Renewed {
    let answers = in_the_end(|| store.renew(std::slice::from_ref(renewal))).await;
    assert_eq!(answers.len(), 1);
    answers[0]
}

async fn connections_killed_under_load_leave_no_old_picture() {
    let server = RedisServer::start(&[]);
    let (writer, reader) = (connect(&server).await, connect(&server).await);
    let mut events = reader.subscribe(&[job()]).await.expect("subscribed");
    assert_eq!(events.recv().await, Some(StoreEvent::Subscribed));
    let load = tokio::spawn(async move {
        let mut failed = 0;
        for i in 0..3_000_u32 {
            if writer.participate(&job(), &li(), i % 2 == 0, None).await.is_err() {
                failed += 1;
            }
        }
        let (job, li) = (job(), li());
        in_the_end(|| writer.hold(&job, &li, "the end")).await;
        failed
    });
    let mut interruptions = 0;
    for _ in 0..5 {
        server.run::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.run::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        // Every interruption is told, and ends with a new subscription.
        while events.recv().await.expect("it lives") != StoreEvent::Interrupted {}
        interruptions += 1;
        let again =
            async { while events.recv().await.expect("it lives") != StoreEvent::Subscribed {} };
        tokio::time::timeout(Duration::from_secs(5), again).await.expect("subscribed again");
    }
    let failed = load.await.expect("the load ends");
    assert_eq!(interruptions, 5);
    assert!(failed <= 20, "{failed} of 3,000 calls failed");
    let newest = reader.snapshot(&[job()]).await.expect("calls recover").jobs.remove(0);
    assert!(newest.hold.is_some());
    // Nothing newer is published than what was read.
    while let Ok(event) = events.try_recv() {
        if let StoreEvent::Job(event) = event {
            assert!(event.version <= newest.version);
        }
    }
}

async fn a_read_only_server_is_unavailable_and_used_again_once_it_is_a_master() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let asked = ask("node-a", TTL);
    let token = granted(&store, &asked).await;
    server.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    for answer in [
        store.acquire(&ask("node-b", TTL)).await.map(drop),
        store.renew(&[renewal(&asked, token)]).await.map(drop),
        store.observe(&[job()]).await.map(drop),
        store.snapshot(&[job()]).await.map(drop),
        store.participate(&job(), &li(), true, None).await.map(drop),
    ] {
        let Err(StoreError::Unavailable(why)) = answer else { panic!("{answer:?}") };
        assert!(why.contains("read-only") && why.contains(&server.port().to_string()), "{why}");
    }
    let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    server.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert!(matches!(renew_one(&store, &renewal(&asked, token)).await, Renewed::Kept { .. }));
    let (job, li) = (job(), li());
    assert!(in_the_end(|| store.participate(&job, &li, true, None)).await);
}

async fn a_server_that_hangs_does_not_hang_its_callers_and_is_used_again() {
    let server = RedisServer::start(&[]);
    let options = Options { timeout: Duration::from_millis(300), ..Options::default() };
    let store = soloist::stores::connect(&server.url(), &options).await.expect("an answer");
    let mut events = store.subscribe(&[job()]).await.expect("an answer");
    assert_eq!(events.recv().await, Some(StoreEvent::Subscribed));
    server.pause();
    for _ in 0..3 {
        let begun = clock::boot();
        let answer = store.observe(&[job()]).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        within(clock::boot().since(begun), Duration::from_secs(1), "the caller is told");
    }
    let unconnected = soloist::stores::connect(&server.url(), &options).await.err();
    assert!(matches!(unconnected, Some(StoreError::Unavailable(_))), "{unconnected:?}");
    // The silence of the subscription is noticed too, by its pings.
    let noticed = tokio::time::timeout(Duration::from_secs(5), events.recv()).await;
    assert_eq!(noticed, Ok(Some(StoreEvent::Interrupted)));
    server.resume();
    in_the_end(|| store.snapshot(&[])).await;
    let again = tokio::time::timeout(Duration::from_secs(5), events.recv()).await;
    assert_eq!(again, Ok(Some(StoreEvent::Subscribed)));
}

async fn a_caller_that_gives_up_sooner_than_the_store_does_not_keep_a_dead_connection() {
    let server = RedisServer::start(&[]);
    let options = Options { timeout: Duration::from_secs(30), ..Options::default() };
    let store = soloist::stores::connect(&server.url(), &options).await.expect("an answer");
    server.pause();
    let patience = Duration::from_millis(100);
    assert!(tokio::time::timeout(patience, store.observe(&[job()])).await.is_err());
    server.resume();
    let begun = clock::boot();
    store.observe(&[job()]).await.expect("on a new connection");
    within(clock::boot().since(begun), Duration::from_secs(5), "a new connection");
}

#[tokio::test]
async fn large_tokens_keep_every_digit() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut asked = ask("node-a", TTL);
    asked.seen = Token(9_007_199_254_740_001);
    let token = granted(&store, &asked).await;
    assert_eq!(token, Token(9_007_199_254_740_002));
    assert_eq!(granted(&store, &asked).await, token, "the same owner gets the same token");
    assert!(matches!(renew_one(&store, &renewal(&asked, token)).await, Renewed::Kept { .. }));
    let (run, node) = (RunId("01J0".into()), asked.node.clone());
    let began = Began::at_boot(clock::boot());
    let started =
        Started { job: job(), token, run: run.clone(), node: node.clone(), pid: 7, began };
    store.record_started(&started).await.unwrap();
    let record = store.snapshot(&[job()]).await.unwrap().jobs.remove(0);
    assert_eq!(record.token, token);
    assert_eq!(record.lease.map(|lease| lease.token), Some(token));
    assert_eq!(record.run.map(|run| run.token), Some(token));
    let ended = Ended {
        job: job(),
        owner: asked.owner.clone(),
        token,
        run,
        exit: Exit { code: Some(0), signal: None },
        end: RunEnd::Exited,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    store.record_ended(&ended).await.unwrap();
    assert_eq!(store.runs(&job(), None, 10).await.unwrap()[0].token, token);
    let stale = Started { token: Token(token.0 - 1), run: RunId("01J1".into()), pid: 8, ..started };
    let Err(StoreError::Stale { sent, current }) = store.record_started(&stale).await else {
        panic!("a stale token is refused")
    };
    assert_eq!((sent, current), (Token(token.0 - 1), token));
}

#[tokio::test]
async fn a_cluster_a_newer_schema_and_a_closed_port_are_refused_in_words() {
    let mut server = RedisServer::start(&["--cluster-enabled", "yes"]);
    let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
    assert!(
        matches!(&refused, Some(StoreError::Unsupported(why)) if why.contains("redis+cluster://127.0.0.1")),
        "{refused:?}"
    );
    server.kill();
    let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
    let address = format!("127.0.0.1:{}", server.port());
    assert!(
        matches!(&refused, Some(StoreError::Unavailable(why)) if why.contains(&address)),
        "{refused:?}"
    );
    let server = RedisServer::start(&[]);
    server.run::<()>(&["SET", "soloist:schema", "soloist 99"]);
    let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
    assert!(
        matches!(refused, Some(StoreError::NewerSchema { found: 99, known: 1 })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_password_is_never_shown_and_a_wrong_one_is_said_to_be_wrong() {
    let server = RedisServer::start(&[]);
    server.run::<()>(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let url = format!("redis://:hunter2@127.0.0.1:{}/3", server.port());
    let store = soloist::stores::connect(&url, &Options::default()).await.unwrap();
    let description = store.describe().await.unwrap();
    assert!(description.what.starts_with("Redis 7") || description.what.starts_with("Redis 8"));
    assert!(description.what.ends_with(&format!(" at 127.0.0.1:{}/3", server.port())));
    assert!(description.shared);
    assert!(description.warnings.iter().any(|warning| warning.contains("appendonly yes")));
    assert!(!format!("{description:?}").contains("hunter2"));
    for wrong in ["redis://:hunter3@", "redis://", "redis://:hunter2@not a host"] {
        let url = format!("{wrong}127.0.0.1:{}/0", server.port());
        let error =
            soloist::stores::connect(&url, &Options::default()).await.err().expect("refused");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
    let error =
        soloist::stores::connect(&server.url(), &Options::default()).await.err().expect("refused");
    assert!(error.to_string().contains("password"), "{error}");
}

#[tokio::test]
async fn tls_towards_a_server_without_it_is_an_error_in_words() {
    let server = RedisServer::start(&[]);
    let url = server.url().replace("redis://", "rediss://");
    let refused = soloist::stores::connect(&url, &Options::default()).await.err();
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn the_layout_is_the_one_that_is_documented_for_redis_cli() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut events = store.subscribe(&[job()]).await.unwrap();
    assert_eq!(events.recv().await, Some(StoreEvent::Subscribed));
    assert!(store.participate(&job(), &li(), true, Some("spring sale")).await.unwrap());
    let mut asked = ask("node-a", TTL);
    asked.condition = Condition::Wanted;
    let token = granted(&store, &asked).await;

    let lease = server.lease("outbound");
    assert_eq!(lease["node"], "node-a");
    assert_eq!(lease["owner"], asked.owner.as_str());
    assert_eq!(lease["token"], token.0);
    assert!(lease["since"].as_i64().unwrap() > 1_700_000_000_000);
    let left: i64 = server.run(&["PTTL", "soloist:{outbound}:lease"]);
    assert!((1..=1_500).contains(&left), "{left}");
    let record = server.record("outbound");
    assert_eq!(record["participants"][0]["user"], "li");
    assert_eq!(record["token"], token.0);
    assert_eq!(server.run::<i64>(&["PTTL", "soloist:{outbound}:record"]), -1);

    let mut heard = Vec::new();
    while heard.len() < 2 {
        if let Some(StoreEvent::Job(event)) = events.recv().await {
            heard.push((event.job.to_string(), event.version, event.event));
        }
    }
    assert_eq!(
        heard,
        [
            ("outbound".to_owned(), 1, EventKind::ParticipationChanged),
            ("outbound".to_owned(), 2, EventKind::LeaseAcquired),
        ]
    );
    store.release(&job(), &asked.owner).await.unwrap();
    assert_eq!(server.run::<u8>(&["EXISTS", "soloist:{outbound}:lease"]), 0);
}

#[tokio::test]
async fn every_key_begins_with_the_prefix_whatever_it_is() {
    let server = RedisServer::start(&[]);
    let options = Options { prefix: "my[1]*:".to_owned(), ..Options::default() };
    let store = soloist::stores::connect(&server.url(), &options).await.unwrap();
    let plain = connect(&server).await;
    let mut events = store.subscribe(&[job()]).await.unwrap();
    assert_eq!(events.recv().await, Some(StoreEvent::Subscribed));
    plain.hold(&job(), &li(), "not heard").await.unwrap();
    store.participate(&job(), &li(), true, None).await.unwrap();
    let Some(StoreEvent::Record(told)) = events.recv().await else { panic!("a record") };
    assert_eq!((told.record.name.clone(), told.record.version), (job(), 1));
    let Some(StoreEvent::Job(event)) = events.recv().await else { panic!("an event of a job") };
    assert_eq!(event.event, EventKind::ParticipationChanged);
    server.run::<()>(&[
        "EVAL",
        "for _, k in ipairs(redis.call('KEYS', 'soloist:*')) do redis.call('DEL', k) end",
        "0",
    ]);
    for key in server.run::<Vec<String>>(&["KEYS", "*"]) {
        assert!(key.starts_with("my[1]*:"), "{key}");
    }
}

#[tokio::test]
async fn a_page_of_two_thousand_lines_is_kept_and_read_in_order() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let token = granted(&store, &ask("node-a", Duration::from_secs(30))).await;
    for batch in 0..5 {
        let lines = (0..500)
            .map(|i| NewLine {
                stream: Stream::Stdout,
                text: format!("第 {} 行 \"x\" \u{1b}[1m", batch * 500 + i + 1),
            })
            .collect();
        let output = Output {
            job: job(),
            token,
            run: RunId("01J0".into()),
            node: NodeName::new("node-a").unwrap(),
            lines,
            progress: None,
            heard: false,
        };
        store.record_output(&output).await.unwrap();
    }
    let all = store.log(&job(), None, 5_000).await.unwrap();
    assert_eq!(all.len(), 2_000);
    assert_eq!((all[0].seq, all[1_999].seq), (501, 2_500));
    assert_eq!(all[0].text, "第 501 行 \"x\" \u{1b}[1m");
    let page = store.log(&job(), Some(2_498), 10).await.unwrap();
    assert_eq!(page.iter().map(|line| line.seq).collect::<Vec<_>>(), [2_499, 2_500]);
    assert!(store.log(&job(), Some(2_500), 10).await.unwrap().is_empty());
    let old = store.log(&job(), Some(3), 2).await.unwrap();
    assert_eq!(old.iter().map(|line| line.seq).collect::<Vec<_>>(), [4, 5]);
}

#[tokio::test]
async fn output_takes_no_more_memory_than_its_bytes_allow() {
    let server = RedisServer::start(&[]);
    let log = LogBounds { lines: 1_000_000, bytes: 1 << 20 };
    let store = soloist::stores::connect(&server.url(), &Options { log, ..Options::default() })
        .await
        .unwrap();
    let token = granted(&store, &ask("node-a", Duration::from_secs(30))).await;
    for text in ["x".repeat(80), "\u{1b}[1m\"\\".repeat(40), "出库 10248".to_owned()] {
        let lines = vec![NewLine { stream: Stream::Stdout, text: text.clone() }; 1_000];
        for _ in 0..9 {
            let output = Output {
                job: job(),
                token,
                run: RunId("01JV3Q00000000000000000000".into()),
                node: NodeName::new("node-a").unwrap(),
                lines: lines.clone(),
                progress: None,
                heard: false,
            };
            store.record_output(&output).await.unwrap();
        }
        let usage = ["MEMORY", "USAGE", "soloist:{outbound}:log", "SAMPLES", "0"];
        let bytes = server.run::<u64>(&usage);
        assert!((850_000..1_150_000).contains(&bytes), "{bytes} bytes of {text:?}");
    }
}

#[test]
fn every_test_in_the_table_above_exists() {
    let read = |file: &str| {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(file);
        std::fs::read_to_string(&place).expect("a source")
    };
    let text = read("redis.rs");
    let mut named = 0;
    for name in text.lines().filter(|line| line.starts_with("//! |")).flat_map(|l| l.split('`')) {
        let Some((module, test)) = name.split_once("::") else { continue };
        let source = match module {
            "takeover" => read("takeover.rs"),
            _ => read(&format!("redis/{module}.rs")),
        };
        assert!(source.contains(&format!("fn {test}()")), "there is no {name}");
        named += 1;
    }
    assert!(named >= 25, "only {named}");
}
