//! The same load through [`Store`], on one connection, as a node has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use soloist::clock;
use soloist::domain::dispatch::{Rules, TaskOutcome};
use soloist::domain::name::{CollectorName, RequestId, SourceName};
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch as _, Exchange, Handed, NewTask, Report, Reported,
    Sources as _,
};
use soloist::store::{Options, Store};

use super::table::Figure;

/// What is done.
pub(crate) struct Load {
    pub in_flight: usize,
    pub batch: usize,
    pub sources: usize,
    pub tasks: usize,
    pub round: usize,
}

/// One run on the store at `url`, whose CPU time so far `cpu` tells in seconds. As a node does, it pumps once a second.
pub(crate) async fn run_on(url: &str, cpu: impl Fn() -> f64, load: &Load) -> Figure {
    let options = Options { timeout: Duration::from_secs(20), ..Options::default() };
    let store = soloist::stores::connect(url, &options).await.expect("the store");
    let name = |nth: usize| -> SourceName {
        let Load { in_flight, batch, sources, round, .. } = load;
        let text = format!("bench-{in_flight}-{batch}-{sources}-{round}-{nth}");
        text.parse().expect("a name")
    };
    let names: Vec<SourceName> = (0..load.sources).map(name).collect();
    put(&store, &names, load.tasks).await;

    let (used, begun) = (cpu(), clock::boot());
    let (left, most) = (Arc::new(AtomicUsize::new(load.tasks)), AtomicUsize::new(0));
    let workers: Vec<_> = (0..(load.in_flight / load.batch).max(1))
        .map(|nth| tokio::spawn(work(store.clone(), nth, load.batch, Arc::clone(&left))))
        .collect();
    let mut look = tokio::time::interval(Duration::from_millis(1_000));
    while left.load(Ordering::Relaxed) > 0 {
        look.tick().await;
        store.pump().await.expect("an answer");
        let views = store.sources(None).await.expect("an answer");
        let held: u64 = views.iter().map(|view| view.in_flight).sum();
        most.fetch_max(usize::try_from(held).expect("few"), Ordering::Relaxed);
    }
    let mut last = begun;
    for worker in workers {
        last = last.max(worker.await.expect("a worker ends"));
    }
    Figure {
        tasks: load.tasks,
        seconds: last.since(begun).as_secs_f64(),
        cpu: cpu() - used,
        in_flight: most.into_inner(),
    }
}

/// Makes sources without a rule, and spreads tasks over them.
pub(crate) async fn put(store: &Store, names: &[SourceName], tasks: usize) {
    for name in names {
        store.put_source(name, &Rules::default()).await.expect("a source");
    }
    let all: Vec<NewTask> = (0..tasks)
        .map(|nth| NewTask {
            key: format!("task {nth}"),
            source: names[nth % names.len()].clone(),
            payload: format!("{{\"n\":{nth}}}"),
            priority: 0,
            at: None,
            every: None,
        })
        .collect();
    for some in all.chunks(1_000) {
        store.put_tasks(some).await.expect("tasks are put");
    }
}

/// Reports what it holds and claims as many, until all is done; when it had its last answer.
async fn work(
    store: Store,
    nth: usize,
    batch: usize,
    left: Arc<AtomicUsize>,
) -> soloist::domain::time::Boot {
    let collector: CollectorName = format!("w{nth}").parse().expect("a name");
    let mut held: Vec<Handed> = Vec::new();
    loop {
        let done = |task: &Handed| Report {
            id: task.id.clone(),
            token: task.token,
            outcome: TaskOutcome::Done,
            delay: None,
            error: None,
        };
        let random = format!("{:032x}", rand::random::<u128>());
        let ask = Exchange {
            reports: held.iter().map(done).collect(),
            only: None,
            claim: Some(ClaimAsk {
                owner: ClaimOwner::of("test"),
                collector: collector.clone(),
                request: RequestId::new(&random).expect("a label"),
                max: u32::try_from(batch).expect("small"),
                sources: Vec::new(),
                wait: None,
            }),
        };
        let answer = store.exchange(&ask).await.expect("an answer");
        let accepted = answer.reports.iter().filter(|one| **one == Reported::Ok).count();
        assert_eq!(accepted, held.len(), "every result is accepted");
        left.fetch_sub(accepted, Ordering::Relaxed);
        held = match answer.claimed {
            Some(Claimed::Granted { tasks, .. }) => tasks,
            // The others have the rest in hand.
            _ => return clock::boot(),
        };
    }
}
