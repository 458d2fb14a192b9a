//! Laws of timelines: ended runs become spans that outlive the history, and who wanted the job is kept.

use soloist::domain::timeline::{Span, Timeline, WantKind};
use soloist::store::journal::Journal;
use soloist::store::timeline::{SPANS_KEPT, Timelines};

use super::*;

pub(super) const KEPT: Duration = Duration::from_secs(3_600);

/// One run on `on`, which somebody saw: idle ones are folded before they get here.
pub(super) async fn run(store: &Store, on: &str, end: RunEnd) -> Token {
    let ask = ask("outbound", on);
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    let end = Ended { end, ..ended(&ask, token, &run.run, Then::Nothing) };
    store.record_ended(&end).await.expect("ended");
    token
}

pub(super) async fn line(store: &Store) -> Timeline {
    store.timeline(&job("outbound"), SPANS_KEPT).await.expect("a timeline").line
}

pub(super) async fn fold(store: &Store) {
    store.fold_runs(&job("outbound"), KEPT).await.expect("folded");
}

fn told(spans: &[Span]) -> Vec<(&str, RunEnd, u32)> {
    spans.iter().map(|span| (span.node.as_str(), span.end, span.runs)).collect()
}

pub(super) async fn ended_runs_are_told_before_they_are_folded_and_alike_afterwards(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(line(&store).await, Timeline::default());
    fold(&store).await;
    switch(&store, "outbound", "li", true).await;
    for end in [RunEnd::Crashed, RunEnd::Crashed, RunEnd::Lost] {
        run(&store, "node-a", end).await;
    }
    let last = run(&store, "node-b", RunEnd::Stopped).await;
    let before = line(&store).await;
    assert_eq!(
        told(&before.spans),
        [
            ("node-a", RunEnd::Crashed, 2),
            ("node-a", RunEnd::Lost, 1),
            ("node-b", RunEnd::Stopped, 1),
        ]
    );
    assert_eq!(before.spans[2].token, last);
    assert_eq!(before.takeovers().len(), 1, "node-b went on after the loss");
    fold(&store).await;
    fold(&store).await;
    assert_eq!(line(&store).await.spans, before.spans);
    // The next one is folded into the span that stands.
    run(&store, "node-b", RunEnd::Stopped).await;
    fold(&store).await;
    assert_eq!(told(&line(&store).await.spans)[2], ("node-b", RunEnd::Stopped, 2));
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    store.record_started(&started(&store, &ask, token)).await.expect("started");
    let now = line(&store).await;
    assert_eq!(now.present.map(|run| (run.node, run.token)), Some((node("node-a"), token)));
}

pub(super) async fn two_who_fold_at_once_count_each_run_once(fresh: Fresh) {
    let (one, other) = (fresh.connect().await, fresh.connect().await);
    for _ in 0..6 {
        for node in ["node-a", "node-b", "node-b"] {
            run(&one, node, RunEnd::Crashed).await;
        }
        let job = job("outbound");
        let both = tokio::join!(one.fold_runs(&job, KEPT), other.fold_runs(&job, KEPT));
        both.0.expect("folded");
        both.1.expect("folded");
    }
    let spans = line(&other).await.spans;
    let runs: u32 = spans.iter().map(|span| span.runs).sum();
    assert_eq!((spans.len(), runs), (12, 18), "{spans:?}");
}

pub(super) async fn what_is_older_than_it_is_kept_goes(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    switch(&store, "outbound", "li", false).await;
    for node in ["node-a", "node-b", "node-a"] {
        run(&store, node, RunEnd::Crashed).await;
    }
    fold(&store).await;
    assert_eq!(line(&store).await.wants.len(), 1);
    pass(&store, Duration::from_millis(5)).await;
    run(&store, "node-b", RunEnd::Crashed).await;
    store.fold_runs(&job("outbound"), Duration::from_millis(1)).await.expect("folded");
    let line = line(&store).await;
    let last = told(&line.spans).last().copied();
    assert_eq!(last, Some(("node-b", RunEnd::Crashed, 1)), "{line:?}");
    assert!(line.spans.len() <= 2 && line.wants.is_empty(), "{line:?}");
}

pub(super) async fn participations_and_holds_are_kept_when_they_are_over(fresh: Fresh) {
    let store = fresh.connect().await;
    let name = job("outbound");
    switch(&store, "outbound", "li", true).await;
    let since = record(&store, "outbound").await.participants[0].since;
    pass(&store, Duration::from_millis(2)).await;
    switch(&store, "outbound", "wang", true).await;
    switch(&store, "outbound", "li", false).await;
    assert!(!switch(&store, "outbound", "li", false).await, "a second time changes nothing");
    pass(&store, Duration::from_millis(2)).await;
    store.hold(&name, &user("ada"), "stock-taking").await.expect("held");
    store.resume(&name).await.expect("resumed");
    store.resume(&name).await.expect("resumed");
    let off = record(&store, "outbound").await.last_switch.expect("a switch").at;
    let told = line(&store).await;
    let wants: Vec<_> =
        told.wants.iter().map(|want| (want.kind, want.who.as_str(), want.to.is_some())).collect();
    assert_eq!(
        wants,
        [
            (WantKind::Participation, "li", true),
            (WantKind::Participation, "wang", false),
            (WantKind::Hold, "ada", true),
        ]
    );
    assert_eq!((told.wants[0].from, told.wants[0].to), (since, Some(off)));
    assert_eq!(told.since, Some(since));
}

pub(super) async fn whoever_wanted_a_job_until_it_was_done_is_told(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    switch(&store, "outbound", "wang", true).await;
    let ask = ask("outbound", "node-a");
    let token = granted(&store, &ask).await;
    let run = started(&store, &ask, token);
    store.record_started(&run).await.expect("started");
    let end = ended(&ask, token, &run.run, Then::Done);
    store.record_ended(&end).await.expect("ended");
    store.record_ended(&end).await.expect("the same end again is harmless");
    let at = record(&store, "outbound").await.last_exit.expect("an exit").at;
    let wants = line(&store).await.wants;
    assert_eq!(wants.len(), 2, "{wants:?}");
    assert!(wants.iter().all(|want| want.to == Some(at)), "{wants:?}");
}
