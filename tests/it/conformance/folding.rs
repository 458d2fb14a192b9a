//! Laws of runs alike: those of which nobody saw anything share one entry of the history, and push nothing out of it.

use std::time::Duration;

use soloist::domain::job::{Progress, RunEnd};
use soloist::domain::name::RunId;
use soloist::store::journal::{Journal, NewLine, Output, RUNS_KEPT, RunEntry, Stream, Then};

use super::*;

const AGAIN: Then = Then::Repeat(Duration::ZERO);

/// One run on `on` from its start to its end, with the output and progress that `said` makes of it.
pub(super) async fn run(
    store: &Store,
    on: &str,
    then: Then,
    said: impl FnOnce(&mut Output),
) -> Ended {
    let ask = ask("outbound", on);
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    let mut output = Output {
        job: run.job.clone(),
        token,
        run: run.run.clone(),
        node: run.node.clone(),
        lines: Vec::new(),
        progress: None,
        heard: false,
    };
    said(&mut output);
    store.record_output(&output).await.expect("kept");
    let end = ended(&ask, token, &run.run, then);
    store.record_ended(&end).await.expect("ended");
    end
}

pub(super) async fn idle(store: &Store, on: &str) -> RunId {
    run(store, on, AGAIN, |_| ()).await.run
}

pub(super) async fn history(store: &Store) -> Vec<RunEntry> {
    store.runs(&job("outbound"), None, RUNS_KEPT * 2).await.expect("runs")
}

pub(super) async fn idle_runs_in_a_row_share_one_entry_that_grows(fresh: Fresh) {
    let store = fresh.connect().await;
    let first = idle(&store, "node-a").await;
    let one = history(&store).await.remove(0);
    assert_eq!((&one.id, one.folded), (&first, 1));
    for _ in 0..10 {
        idle(&store, "node-a").await;
    }
    pass(&store, Duration::from_millis(3)).await;
    let end = run(&store, "node-a", AGAIN, |_| ()).await;
    store.record_ended(&end).await.expect("the same end again is harmless");
    let all = history(&store).await;
    assert_eq!(all.len(), 1, "{all:?}");
    let entry = &all[0];
    assert_eq!((&entry.id, entry.folded, entry.end), (&end.run, 12, Some(RunEnd::Exited)));
    assert_eq!(entry.started, one.started, "it begins with the first");
    let last = record(&store, "outbound").await.last_exit.expect("an exit");
    assert_eq!(entry.ended, Some(last.at), "and ends with the last");
    assert!(entry.ended > one.ended && entry.token > one.token, "{entry:?}");
    assert_eq!(store.runs(&job("outbound"), Some(&entry.id), 9).await.expect("runs"), []);
}

pub(super) async fn a_run_of_which_something_was_seen_has_an_entry_of_its_own(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    let line = || NewLine { stream: Stream::Stdout, text: "shipped".to_owned() };
    let progress = || Progress { done: 1, total: 2, note: String::new() };
    idle(&store, "node-a").await;
    idle(&store, "node-a").await;
    run(&store, "node-a", AGAIN, |output| output.lines.push(line())).await;
    idle(&store, "node-a").await;
    run(&store, "node-a", AGAIN, |output| output.progress = Some(progress())).await;
    idle(&store, "node-a").await;
    run(&store, "node-a", Then::Retry { crashes: 1, wait: Duration::ZERO }, |_| ()).await;
    run(&store, "node-a", Then::Nothing, |_| ()).await;
    idle(&store, "node-a").await;
    idle(&store, "node-b").await;
    idle(&store, "node-b").await;
    pass(&store, Duration::from_millis(3)).await;
    switch(&store, "outbound", "li", false).await;
    switch(&store, "outbound", "li", true).await;
    pass(&store, Duration::from_millis(3)).await;
    idle(&store, "node-b").await;
    let killed = {
        let ask = ask("outbound", "node-b");
        let token = granted(&store, &ask).await;
        let run = started(&store, &ask, token);
        store.record_started(&run).await.expect("started");
        Ended { processes_killed: 1, ..ended(&ask, token, &run.run, AGAIN) }
    };
    store.record_ended(&killed).await.expect("ended");
    let mut folded: Vec<_> = history(&store).await.iter().map(|run| run.folded).collect();
    folded.reverse();
    assert_eq!(folded, [2, 0, 1, 0, 1, 0, 0, 1, 2, 1, 0]);
}
