//! Laws of what more runs leave behind than are kept.

use soloist::domain::job::RunEnd;
use soloist::store::journal::{Journal, RUNS_KEPT, Then};
use soloist::store::timeline::SPANS_KEPT;

use super::timeline::{fold, line, run};
use super::*;

pub(super) async fn spans_outlive_the_runs_that_they_were_made_of(fresh: Fresh) {
    let store = fresh.connect().await;
    let first = run(&store, "node-a", RunEnd::Lost).await;
    let surplus = 60;
    for nth in 0..RUNS_KEPT + surplus {
        run(&store, "node-b", RunEnd::Crashed).await;
        if nth % 300 == 0 {
            fold(&store).await;
        }
    }
    let runs = store.runs(&job("outbound"), None, RUNS_KEPT * 2).await.expect("runs");
    assert!(runs.iter().all(|run| run.token != first), "it is not listed any more");
    let spans = line(&store).await.spans;
    assert_eq!(spans[0].token, first);
    let crashed: u32 = spans[1..].iter().map(|span| span.runs).sum();
    assert_eq!(crashed as usize, RUNS_KEPT + surplus);
}

pub(super) async fn more_spans_than_are_kept_are_merged_and_no_run_is_lost(fresh: Fresh) {
    let store = fresh.connect().await;
    let runs = SPANS_KEPT + 150;
    for nth in 0..runs {
        let end = if nth % 2 == 0 { RunEnd::Crashed } else { RunEnd::Stopped };
        run(&store, "node-a", end).await;
        if nth % 200 == 199 {
            fold(&store).await;
        }
    }
    fold(&store).await;
    let spans = line(&store).await.spans;
    assert!(spans.len() < SPANS_KEPT, "{}", spans.len());
    let count: u32 = spans.iter().map(|span| span.runs).sum();
    assert_eq!(count as usize, runs);
    let failed: u32 = spans.iter().map(|span| span.failed).sum();
    assert_eq!(failed as usize, runs / 2);
    assert!(
        spans.windows(2).all(|pair| pair[0].to <= pair[1].from && pair[0].token < pair[1].first)
    );
}

pub(super) async fn idle_runs_push_no_failure_out_of_the_history(fresh: Fresh) {
    let store = fresh.connect().await;
    let crash = Then::Retry { crashes: 1, wait: Duration::ZERO };
    let mut failures = Vec::new();
    for _ in 0..3 {
        failures.insert(0, folding::run(&store, "node-a", crash, |_| ()).await.run);
    }
    // Two nodes in turn: no two of these share an entry.
    for nth in 0..RUNS_KEPT + 10 {
        folding::idle(&store, ["node-a", "node-b"][nth % 2]).await;
    }
    let all = folding::history(&store).await;
    assert_eq!(all.len(), RUNS_KEPT);
    assert!(all[..RUNS_KEPT - 3].iter().all(|run| run.folded == 1));
    let kept: Vec<_> = all[RUNS_KEPT - 3..].iter().map(|run| run.id.clone()).collect();
    assert_eq!(kept, failures);
    failures.insert(0, folding::run(&store, "node-a", crash, |_| ()).await.run);
    let all = folding::history(&store).await;
    assert_eq!((all.len(), &all[0].id), (RUNS_KEPT, &failures[0]));
    let crashed = all.iter().filter(|run| run.end == Some(RunEnd::Crashed)).count();
    assert_eq!(crashed, 4);
}
