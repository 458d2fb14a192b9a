//! Laws of what a run reports while it lasts, and of the audit.

use std::time::Duration;

use soloist::domain::job::{Progress, RunPhase};
use soloist::domain::name::RunId;
use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::journal::{AuditEntry, Journal, NewLine, Output, Stream};
use soloist::store::leases::Acquire;

use super::*;

/// Takes the lease of `name` on `node-a` and reports the start of a run.
pub(super) async fn running(store: &Store, name: &str) -> (Acquire, Started) {
    let ask = ask(name, "node-a");
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token);
    store.record_started(&run).await.expect("started");
    (ask, run)
}

pub(super) fn output(run: &Started, lines: &[&str]) -> Output {
    let lines = lines
        .iter()
        .map(|text| NewLine { stream: Stream::Stdout, text: (*text).to_owned() })
        .collect();
    Output {
        job: run.job.clone(),
        token: run.token,
        run: run.run.clone(),
        node: run.node.clone(),
        lines,
        progress: None,
        heard: false,
    }
}

async fn texts(store: &Store, after: Option<u64>, limit: usize) -> Vec<(u64, String)> {
    let lines = store.log(&job("outbound"), after, limit).await.expect("a log");
    lines.into_iter().map(|line| (line.seq, line.text)).collect()
}

pub(super) async fn a_start_is_shown(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "outbound").await;
    let shown = record(&store, "outbound").await.run.expect("a run");
    assert_eq!((&shown.id, shown.token, &shown.node), (&run.run, run.token, &ask.node));
    assert_eq!((shown.pid, shown.phase, shown.progress), (4711, RunPhase::Running, None));
    let before = record(&store, "outbound").await;
    store.record_started(&run).await.expect("the same start again is harmless");
    let after = record(&store, "outbound").await;
    assert_eq!(after.run.map(|run| run.id), before.run.map(|run| run.id));
    assert_eq!(store.runs(&ask.job, None, 10).await.expect("runs").len(), 1);
}

pub(super) async fn stopping_is_shown_with_the_instant_of_the_kill(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "outbound").await;
    // By the clock that the record has: on a cluster each master has its own.
    let here = std::slice::from_ref(&ask.job);
    let before = store.snapshot(here).await.expect("a snapshot").at;
    let grace = Duration::from_secs(30);
    store.record_stopping(&ask.job, run.token, grace).await.expect("recorded");
    let after = store.snapshot(here).await.expect("a snapshot").at;
    match record(&store, "outbound").await.run.expect("a run").phase {
        RunPhase::Stopping { kill_at } => {
            assert!(kill_at >= before + grace && kill_at <= after + grace);
        }
        RunPhase::Running => panic!("still running"),
    }
}

pub(super) async fn lines_are_numbered_across_runs(fresh: Fresh) {
    let store = fresh.connect().await;
    let (ask, run) = running(&store, "outbound").await;
    store.record_output(&output(&run, &["one", "two"])).await.expect("kept");
    let end = ended(&ask, run.token, &run.run, Then::Nothing);
    store.record_ended(&end).await.expect("ended");
    let (_, next) = running(&store, "outbound").await;
    store.record_output(&output(&next, &["three"])).await.expect("kept");
    let (_, other) = running(&store, "inbound").await;
    store.record_output(&output(&other, &["elsewhere"])).await.expect("kept");

    let lines = store.log(&ask.job, None, 10).await.expect("a log");
    let seen: Vec<_> = lines.iter().map(|l| (l.seq, l.text.as_str(), l.run.clone())).collect();
    let (first, second) = (run.run.clone(), next.run);
    assert_eq!(seen, [(1, "one", first.clone()), (2, "two", first), (3, "three", second)]);
    assert!(lines.iter().all(|line| line.node == ask.node && line.stream == Stream::Stdout));
    assert_eq!(record(&store, "outbound").await.log_seq, 3);
    assert_eq!(record(&store, "inbound").await.log_seq, 1);
}

pub(super) async fn the_log_is_read_from_either_end(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(texts(&store, None, 10).await, []);
    let (_, run) = running(&store, "outbound").await;
    store.record_output(&output(&run, &["a", "b", "c", "d", "e"])).await.expect("kept");
    let line = |seq: u64, text: &str| (seq, text.to_owned());
    assert_eq!(texts(&store, None, 2).await, [line(4, "d"), line(5, "e")]);
    assert_eq!(texts(&store, Some(0), 2).await, [line(1, "a"), line(2, "b")]);
    assert_eq!(texts(&store, Some(3), 10).await, [line(4, "d"), line(5, "e")]);
    assert_eq!(texts(&store, Some(5), 10).await, []);
    assert_eq!(texts(&store, Some(99), 10).await, []);
}

pub(super) async fn progress_and_the_newest_line_are_shown(fresh: Fresh) {
    let store = fresh.connect().await;
    let (_, run) = running(&store, "outbound").await;
    let progress = Progress { done: 3, total: 830, note: "shipping order 10248".to_owned() };
    let mut report = output(&run, &["first", "second"]);
    report.progress = Some(progress.clone());
    store.record_output(&report).await.expect("kept");
    let shown = record(&store, "outbound").await;
    assert_eq!((shown.last_line.as_deref(), shown.log_seq), (Some("second"), 2));
    let shown = shown.run.expect("a run");
    assert_eq!(shown.progress, Some(progress.clone()));
    assert!(shown.last_output.is_some_and(|at| at >= shown.started));
    store.record_output(&output(&run, &["third"])).await.expect("kept");
    let shown = record(&store, "outbound").await.run.expect("a run");
    assert_eq!(shown.progress, Some(progress), "unchanged by a report without progress");
}

/// Texts that break careless quoting, splitting and measuring.
fn hostile() -> Vec<String> {
    vec![
        String::new(),
        "'; DROP TABLE jobs; --".to_owned(),
        "\"quoted\" \\back\\ `tick` %s %d {} {outbound} [1,2] $1 :x ?1".to_owned(),
        "two\nlines\r\nand\ttab".to_owned(),
        "出库任务 🚚 e\u{301} \u{202e}right to left".to_owned(),
        "{\"json\":[null,1e400,\"\\u0000\"]}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "0.10000000000000000000000001".to_owned(),
        "\u{1b}[31mred\u{1b}[0m\u{7f}\u{1}".to_owned(),
        "é".repeat(2_048),
    ]
}

pub(super) async fn hostile_texts_come_back_as_they_went_in(fresh: Fresh) {
    let store = fresh.connect().await;
    let texts = hostile();
    let (ask, run) = running(&store, "outbound").await;
    for stream in [Stream::Stdout, Stream::Stderr, Stream::Soloist] {
        let mut report = output(&run, &[]);
        report.lines = texts.iter().map(|text| NewLine { stream, text: text.clone() }).collect();
        store.record_output(&report).await.expect("kept");
        let lines = store.log(&ask.job, None, texts.len()).await.expect("a log");
        let back: Vec<_> = lines.iter().map(|line| (line.stream, line.text.clone())).collect();
        let gone: Vec<_> = texts.iter().map(|text| (stream, text.clone())).collect();
        assert_eq!(back, gone);
    }
    for text in &texts {
        store.hold(&ask.job, &user("ops"), text).await.expect("held");
        store.participate(&ask.job, &user("li"), true, Some(text)).await.expect("switched");
        let mut report = output(&run, &[text]);
        report.progress =
            Some(Progress { done: 1, total: u64::from(u32::MAX), note: text.clone() });
        store.record_output(&report).await.expect("kept");
        let entry = act(text, text);
        store.audit(&entry).await.expect("kept");
        let back = record(&store, "outbound").await;
        assert_eq!(&back.hold.expect("a hold").reason, text);
        assert_eq!(back.last_switch.expect("a switch").reason.as_ref(), Some(text));
        assert_eq!(back.last_line.as_ref(), Some(text));
        assert_eq!(back.run.and_then(|run| run.progress), report.progress);
        let acts = store.audits(Some(text), None, 1).await.expect("acts");
        assert_eq!(AuditEntry { id: 0, at: StoreTime(0), ..acts[0].clone() }, entry);
        store.participate(&ask.job, &user("li"), false, None).await.expect("switched");
    }
}

pub(super) async fn a_stale_run_can_write_nothing(fresh: Fresh) {
    let store = fresh.connect().await;
    let old = Acquire { ttl: SHORT, ..ask("outbound", "node-a") };
    let old_token = granted(&store, &old).await;
    let run = started(&store, &old, old_token);
    store.record_started(&run).await.expect("started");
    let newer = ask("outbound", "node-b");
    let token = granted_in_time(&store, &newer).await;
    let before = record(&store, "outbound").await;

    let late = Started { run: RunId(unique("run")), ..run.clone() };
    let refusals = [
        store.record_started(&late).await.map(drop),
        store.record_stopping(&old.job, old_token, LONG).await,
        store.record_output(&output(&run, &["late"])).await,
        store.record_ended(&ended(&old, old_token, &run.run, Then::Done)).await,
    ];
    for refusal in refusals {
        match refusal {
            Err(StoreError::Stale { sent, current }) => {
                assert_eq!((sent, current), (old_token, token));
            }
            other => panic!("not refused: {other:?}"),
        }
    }
    let after = record(&store, "outbound").await;
    assert_eq!((after.version, after.log_seq), (before.version, 0));
    assert_eq!(after.lease.map(|lease| lease.owner), Some(newer.owner));
    assert_eq!(store.log(&old.job, None, 10).await.expect("a log"), []);
}

pub(super) fn act(target: &str, reason: &str) -> AuditEntry {
    AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "li".to_owned(),
        from: "127.0.0.1".to_owned(),
        act: "participation.on".to_owned(),
        target: target.to_owned(),
        reason: Some(reason.to_owned()),
        kind: soloist::store::journal::Kind::Person,
        count: 1,
        until: None,
    }
}

pub(super) async fn acts_are_numbered_and_paged_newest_first(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.audits(None, None, 10).await.expect("acts"), []);
    for i in 1..=5 {
        store.audit(&act("outbound", &format!("act {i}"))).await.expect("kept");
    }
    store.audit(&AuditEntry { reason: None, ..act("outbound", "") }).await.expect("kept");
    let page = store.audits(None, None, 3).await.expect("acts");
    let reasons: Vec<_> = page.iter().map(|act| act.reason.clone()).collect();
    assert_eq!(reasons, [None, Some("act 5".to_owned()), Some("act 4".to_owned())]);
    assert!(page.iter().all(|act| act.id > 0 && act.at.0 > 1_600_000_000_000));
    let rest = store.audits(None, Some(page[2].id), 10).await.expect("acts");
    let reasons: Vec<_> = rest.iter().filter_map(|act| act.reason.as_deref()).collect();
    assert_eq!(reasons, ["act 3", "act 2", "act 1"]);
    let ids: Vec<_> = page.iter().chain(&rest).map(|act| act.id).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
    assert_eq!(store.audits(None, Some(rest[2].id), 10).await.expect("acts"), []);
}

pub(super) async fn what_is_done_to_a_job_and_its_entry_are_one_step(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let job = job("outbound");
    let noting = |store: &Store, word: &str| {
        store.noting(AuditEntry { act: word.to_owned(), ..act(job.as_str(), "") })
    };
    assert!(noting(&store, "on").participate(&job, &user("li"), true, None).await.expect("done"));
    // What changes nothing leaves no entry.
    assert!(!noting(&other, "no").participate(&job, &user("li"), true, None).await.expect("done"));
    let none = noting(&store, "no").request_drill(&job, Token(7), &user("li")).await;
    assert_eq!(none.expect("answered"), None);
    noting(&store, "hold").hold(&job, &user("li"), "stocktaking").await.expect("held");
    noting(&other, "resume").resume(&job).await.expect("resumed");
    let acts = store.audits(Some(job.as_str()), None, 9).await.expect("audits");
    let acts: Vec<_> = acts.iter().rev().map(|one| one.act.as_str()).collect();
    assert_eq!(acts, ["on", "hold", "resume"]);

    let switching = (0..20).map(|nth| {
        let store = if nth % 2 == 0 { &store } else { &other };
        let (store, job) = (noting(store, "switched"), job.clone());
        let li = user(&format!("li-{}", nth % 4));
        tokio::spawn(async move { store.participate(&job, &li, nth % 3 == 0, None).await })
    });
    let mut changed = 0;
    for switched in switching.collect::<Vec<_>>() {
        changed += usize::from(switched.await.expect("no panic").expect("done"));
    }
    let acts = store.audits(Some(job.as_str()), None, 99).await.expect("audits");
    assert_eq!(acts.iter().filter(|one| one.act == "switched").count(), changed);
}

pub(super) async fn acts_can_be_read_by_target(fresh: Fresh) {
    let store = fresh.connect().await;
    for i in 1..=3 {
        store.audit(&act("outbound", &format!("out {i}"))).await.expect("kept");
        store.audit(&act("inbound", &format!("in {i}"))).await.expect("kept");
    }
    let page = store.audits(Some("outbound"), None, 2).await.expect("acts");
    let reasons: Vec<_> = page.iter().filter_map(|act| act.reason.as_deref()).collect();
    assert_eq!(reasons, ["out 3", "out 2"]);
    let rest = store.audits(Some("outbound"), Some(page[1].id), 9).await.expect("acts");
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].reason.as_deref(), Some("out 1"));
    assert_eq!(store.audits(Some("nobody"), None, 9).await.expect("acts"), []);
}
