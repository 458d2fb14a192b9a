//! Many collectors at one store: every rule to the microsecond, and nobody starves.
//!
//! Without HTTP and without faults, so that grants are known by the store's own stamps; the judge is that of
//! `tests/faults/dispatch`, which looks at the same load through nodes that die.

#[path = "../faults/dispatch/checks.rs"]
#[allow(dead_code, reason = "tests/faults prints more of the verdict")]
mod checks;
#[path = "../faults/dice.rs"]
#[allow(dead_code, reason = "tests/faults rolls them in more ways")]
mod dice;
#[path = "../faults/dispatch/ledger.rs"]
#[allow(dead_code, reason = "tests/faults also writes it to a file")]
mod ledger;
#[path = "../faults/dispatch/sources.rs"]
#[allow(dead_code, reason = "tests/faults puts them over HTTP")]
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::dispatch::{Backoff, Rules, TaskOutcome, Window};
use soloist::domain::name::{CollectorName, RequestId, SourceName};
use soloist::store::Store;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch as _, Exchange, NewTask, Report, Reported,
    Sources as _, TaskId,
};

use crate::conformance::{Fresh, patient};
use crate::support::machine::{holds, judged};
use crate::support::redis::RedisServer;
use crate::support::wait::PATIENCE;
use dice::Dice;
use ledger::{Answer, Ask, Call, Granted, Handed, Sent};
use sources::Source;

judged! {
    eight_collectors_keep_every_rule_to_the_microsecond_on_redis
    eight_collectors_keep_every_rule_to_the_microsecond_on_sqlite
    ninety_nine_sources_with_one_task_do_not_wait_for_one_with_ten_thousand_on_redis
    ninety_nine_sources_with_one_task_do_not_wait_for_one_with_ten_thousand_on_sqlite
}

const COLLECTORS: u64 = 8;

fn redis() -> Fresh {
    let server = RedisServer::start(&[]);
    let url = server.url();
    Fresh::new(server, url, patient())
}

fn sqlite() -> Fresh {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", directory.path().join("soloist.db").display());
    Fresh::new(directory, url, patient())
}

async fn eight_collectors_keep_every_rule_to_the_microsecond_on_redis() {
    many_collectors(redis()).await;
}

async fn eight_collectors_keep_every_rule_to_the_microsecond_on_sqlite() {
    many_collectors(sqlite()).await;
}

async fn ninety_nine_sources_with_one_task_do_not_wait_for_one_with_ten_thousand_on_redis() {
    nobody_starves(redis(), 1).await;
    nobody_starves(redis(), 10).await;
}

async fn ninety_nine_sources_with_one_task_do_not_wait_for_one_with_ten_thousand_on_sqlite() {
    nobody_starves(sqlite(), 1).await;
    nobody_starves(sqlite(), 10).await;
}

fn name(text: &str) -> SourceName {
    text.parse().expect("a name")
}

fn rules(source: &Source) -> Rules {
    let ms = |ms: i64| Duration::from_millis(u64::try_from(ms).expect("not negative"));
    let small = |count: usize| u32::try_from(count).expect("small");
    Rules {
        gap: ms(source.gap_ms),
        window: source.window.map(|(count, span)| Window { count: small(count), span: ms(span) }),
        cap: source.cap.map(small),
        lease: ms(source.lease_ms),
        max_attempts: source.max_attempts,
        backoff: Backoff { first: ms(5), max: ms(40) },
        ..Rules::default()
    }
}

async fn put(store: &Store, source: &SourceName, count: usize) -> Vec<TaskId> {
    let task = |nth: usize| NewTask {
        key: format!("order {nth}"),
        source: source.clone(),
        payload: "{}".to_owned(),
        priority: u8::try_from(nth % 3).expect("small"),
        at: None,
        every: None,
    };
    let tasks: Vec<NewTask> = (0..count).map(task).collect();
    for some in tasks.chunks(1_000) {
        store.put_tasks(some).await.expect("tasks are put");
    }
    tasks.iter().map(|task| TaskId::of(source, &task.key)).collect()
}

fn ask(collector: &str, nth: u64, max: u32) -> ClaimAsk {
    ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: CollectorName::new(collector).expect("a label"),
        request: RequestId::new(&format!("{collector}-{nth}")).expect("a label"),
        max,
        sources: Vec::new(),
        wait: None,
    }
}

/// The sources of the big load with a tenth of their tasks, none of which dies.
async fn many_collectors(fresh: Fresh) {
    let mut all = sources::ALL;
    let store = fresh.connect().await;
    let mut tasks = BTreeMap::new();
    for source in &mut all {
        (source.tasks, source.max_attempts) = (source.tasks / 10, 0);
        let own = name(source.name);
        store.put_source(&own, &rules(source)).await.expect("a source");
        for id in put(&store, &own, source.tasks).await {
            tasks.insert(id.0, source.name.to_owned());
        }
    }
    let all = Arc::new(sources::by_name(&all));
    let over = Arc::new(AtomicBool::new(false));
    let mut collectors = Vec::new();
    for nth in 0..COLLECTORS {
        let (store, over) = (fresh.connect().await, Arc::clone(&over));
        collectors.push(tokio::spawn(collect(store, nth, Arc::clone(&all), over)));
    }
    let begun = boot();
    loop {
        store.pump().await.expect("an answer");
        let views = store.sources(None).await.expect("an answer");
        for view in &views {
            let source = &all[view.name.as_str()];
            let sum = view.ready + view.due + view.in_flight + view.dead + view.done;
            assert_eq!(sum, source.tasks as u64, "{view:?}");
            let in_flight = usize::try_from(view.in_flight).expect("few");
            assert!(source.cap.is_none_or(|cap| in_flight <= cap), "{view:?}");
        }
        if views.iter().all(|view| view.done == all[view.name.as_str()].tasks as u64) {
            break;
        }
        assert!(boot().since(begun) < PATIENCE * 5, "not all is done in time: {views:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    over.store(true, Ordering::Relaxed);
    let mut calls = Vec::new();
    for collector in collectors {
        calls.extend(collector.await.expect("a collector ends"));
    }
    calls.sort_by_key(|call: &Call| call.sent);
    let verdict = checks::judge(&calls, &all, &tasks, 1);
    holds(verdict.wrongs.is_empty(), || verdict.wrongs.join("\n"));
    let seen: u64 = verdict.grants.values().sum();
    let started: u64 =
        store.sources(None).await.expect("an answer").iter().map(|view| view.started).sum();
    assert_eq!(seen, started, "every start was an answer to somebody");
}

fn micros() -> i64 {
    i64::try_from(boot().0 / 1_000).expect("a machine that is not that old")
}

/// Claims, reports, and at times forgets what it holds; what it asked and was told.
async fn collect(
    store: Store,
    nth: u64,
    all: Arc<BTreeMap<String, Source>>,
    over: Arc<AtomicBool>,
) -> Vec<Call> {
    let by = format!("c{nth}");
    let (mut dice, mut calls, mut held) = (Dice::new(nth), Vec::new(), Vec::<Handed>::new());
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(dice.between(0, 4)).await;
        if dice.below(50) == 0 {
            held.clear();
        }
        count += 1;
        let mut reports = Vec::new();
        let mut sent = Vec::new();
        for task in held.drain(..) {
            let outcome = if dice.below(20) == 0 { TaskOutcome::Retry } else { TaskOutcome::Done };
            reports.push(Report {
                id: TaskId(task.id.clone()),
                token: soloist::domain::lease::Token(task.token),
                outcome,
                delay: None,
                error: None,
            });
            let outcome = if outcome == TaskOutcome::Done { "done" } else { "retry" }.to_owned();
            sent.push(Sent { id: task.id, token: task.token, outcome });
        }
        let max = [1, 3, 10, 30][dice.index(4)];
        let claim = ask(&by, count, max);
        let request = Some(claim.request.to_string());
        let exchange = Exchange { reports, only: None, claim: Some(claim) };
        let at = micros();
        let answer = store.exchange(&exchange).await.expect("an answer");
        let received = micros();
        let status = |reported: &Reported| match reported {
            Reported::Ok => "ok",
            Reported::Stale => "stale",
            Reported::Unknown => "unknown",
        };
        let statuses = answer.reports.iter().map(|one| status(one).to_owned()).collect();
        let granted = match answer.claimed {
            Some(Claimed::Granted { claim, lease_until, tasks }) => {
                let lease = |source: &SourceName| all[source.as_str()].lease_ms * 1_000;
                let shortest = tasks.iter().map(|task| lease(&task.source)).min().unwrap_or(0);
                held = tasks
                    .into_iter()
                    .map(|task| Handed {
                        id: task.id.0,
                        source: task.source.to_string(),
                        token: task.token.0,
                        attempt: task.attempt,
                        start: lease_until.0 - shortest,
                    })
                    .collect();
                Some(Granted { claim: claim.0, lease_until: lease_until.0, tasks: held.clone() })
            }
            _ => None,
        };
        calls.push(Call {
            by: by.clone(),
            sent: at,
            ask: Ask::Exchange { reports: sent, request },
            answer: Some((received, Answer::Exchange { statuses, granted })),
        });
    }
    calls
}

/// The big source was there first, its name comes first, and its tasks are as urgent.
async fn nobody_starves(fresh: Fresh, batch: u32) {
    let store = fresh.connect().await;
    let big = name("a-big-one");
    store.put_source(&big, &Rules::default()).await.expect("a source");
    put(&store, &big, 10_000).await;
    let mut waiting: BTreeSet<SourceName> = BTreeSet::new();
    for nth in 0..99 {
        let small = name(&format!("small-{nth}"));
        store.put_source(&small, &Rules::default()).await.expect("a source");
        put(&store, &small, 1).await;
        waiting.insert(small);
    }
    let mut held = Vec::new();
    let mut claims = 0;
    while !waiting.is_empty() {
        claims += 1;
        assert!(claims <= 200, "not served within 200 claims of {batch}: {waiting:?}");
        let done = |id: TaskId, token| Report {
            id,
            token,
            outcome: TaskOutcome::Done,
            delay: None,
            error: None,
        };
        let exchange = Exchange {
            reports: std::mem::take(&mut held),
            only: None,
            claim: Some(ask("hungry", claims, batch)),
        };
        let answer = store.exchange(&exchange).await.expect("an answer");
        let Some(Claimed::Granted { tasks, .. }) = answer.claimed else {
            panic!("there is work: {answer:?}");
        };
        assert_eq!(tasks.len(), batch as usize, "as many as were asked for");
        for task in tasks {
            waiting.remove(&task.source);
            held.push(done(task.id, task.token));
        }
    }
}
