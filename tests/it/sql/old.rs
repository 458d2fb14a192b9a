//! A transaction of somebody else that keeps its view of the server for long.

use std::time::Duration;

use soloist::clock;
use soloist::domain::dispatch::{Rules, TaskOutcome};
use soloist::domain::name::{CollectorName, RequestId, SourceName};
use soloist::store::Store;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch as _, Exchange, Handed, NewTask, Report, Sources as _,
};

use crate::postgres::options;
use crate::support::machine::in_time;

const ROUNDS: usize = 9;
const TASKS: usize = 400;

/// Tasks are claimed and done in rounds; of the last third the best is not half as fast as of the first third.
pub(crate) async fn dispatch_keeps_its_pace(url: &str) {
    let store = soloist::stores::connect(url, &options()).await.expect("it opens");
    let source = SourceName::new("mail").expect("a good name");
    store.put_source(&source, &Rules::default()).await.expect("a source");
    let mut spans = Vec::new();
    for round in 0..ROUNDS {
        let begun = clock::boot();
        claim_and_do(&store, &source, round).await;
        spans.push(clock::boot().since(begun));
    }
    let best = |spans: &[Duration]| spans.iter().min().copied().unwrap_or_default();
    let (first, last) = (best(&spans[..ROUNDS / 3]), best(&spans[ROUNDS - ROUNDS / 3..]));
    in_time(last < first * 2, || format!("{TASKS} tasks in a round took {spans:?}"));
}

async fn claim_and_do(store: &Store, source: &SourceName, round: usize) {
    let one = |nth| NewTask {
        key: format!("task {round} {nth}"),
        source: source.clone(),
        payload: "{}".to_owned(),
        priority: 0,
        at: None,
        every: None,
    };
    let all: Vec<NewTask> = (0..TASKS).map(one).collect();
    store.put_tasks(&all).await.expect("tasks are put");
    let mut held: Vec<Handed> = Vec::new();
    loop {
        let answer = store.exchange(&exchange(&held)).await.expect("an answer");
        held = match answer.claimed {
            Some(Claimed::Granted { tasks, .. }) => tasks,
            _ => return,
        };
    }
}

/// Reports what is held as done, and asks for ten more.
pub(crate) fn exchange(held: &[Handed]) -> Exchange {
    let done = |task: &Handed| Report {
        id: task.id.clone(),
        token: task.token,
        outcome: TaskOutcome::Done,
        delay: None,
        error: None,
    };
    Exchange {
        reports: held.iter().map(done).collect(),
        only: None,
        claim: Some(ClaimAsk {
            owner: ClaimOwner::of("test"),
            collector: CollectorName::new("c").expect("a good name"),
            request: RequestId::new(&format!("{:032x}", rand::random::<u128>())).expect("a label"),
            max: 10,
            sources: Vec::new(),
            wait: None,
        }),
    }
}
