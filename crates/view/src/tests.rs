//! Every state's words and JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use soloist_config::{Alerting, Runner, elsewhere};
use soloist_domain::job::{Exit, LastExit, LastSwitch, Move, Next, Progress, RunEnd, RunPhase};
use soloist_domain::tick;

use super::fixtures::*;
use soloist_domain::tick::Clock;

#[test]
fn every_state_has_a_word_a_sentence_and_a_paragraph_in_both_languages() {
    for lang in Language::ALL {
        let mut states: Vec<_> = every_state(lang)
            .into_iter()
            .map(|(_, view)| {
                assert!(!view.shown.word.is_empty() && !view.shown.evidence.is_empty());
                assert!(view.why.len() > 10, "{}: {}", view.name, view.why);
                for text in [&view.why, &view.shown.word] {
                    assert!(!text.contains("why-") && !text.contains('{'), "{text}");
                }
                view.state.as_str()
            })
            .collect();
        states.sort_unstable();
        let mut all = State::ALL.map(State::as_str);
        all.sort_unstable();
        assert_eq!(states, all);
    }
}

#[test]
fn why_says_evidence_consequence_and_next_step() {
    let words: BTreeMap<_, _> = every_state(Language::En)
        .into_iter()
        .map(|(_, view)| (view.state.as_str(), view.why))
        .collect();
    let has = |state: &str, parts: &[&str]| {
        for part in parts {
            assert!(words[state].contains(part), "{state}: {} lacks {part}", words[state]);
        }
    };
    has("running", &["Running on node-a since ", "; wanted by li, wang."]);
    has("backing_off", &["Crashed 5 times in a row", "node-b", "(exit 1)", "Next try in 40 s"]);
    has("failing_over", &["node-b has been silent for 3 s", "expires in 2 s", "then node-a may"]);
    has("off", &["Off: nobody wants it. wang switched it off", "“quarter closed”."]);
    has("off", &["wang switched it off ("]);
    has("starting", &["counts as running after 5 s"]);
    has("resting", &["the last one ended well", "starts in 12 s", "wanted by wang, zhao"]);
    has("waiting", &["Wanted by li", "every node that may run it is being drained"]);
    has("stopping", &["Stopping on node-a: nobody wants it any more", "killed in 2 s"]);
    has("held", &["Held by chen since", "“stocktaking until noon”", "soloist resume stock"]);
    has("given_up", &["Given up after 10 crashes", "soloist resume tariffs"]);
    has("unknown", &["12 s", "on node-b", "may or may not be running"]);
}

#[test]
fn the_time_of_an_end_is_set_apart_from_the_sentence() {
    let job = config("outbound", "Outbound", "出库");
    let mut record = JobRecord::untouched(job.name.clone());
    record.version = 1;
    crashed(&mut record, 0, None);
    record.given_up = false;
    record.last_exit.as_mut().expect("just set").end = RunEnd::Exited;
    let why = look(record, &job, &[], Language::En, Duration::ZERO).why;
    assert!(why.contains("the last run ended well (") && why.ends_with(")."), "{why}");
}

#[test]
fn waiting_says_what_is_in_the_way() {
    let job = config("outbound", "Outbound", "出库");
    let free = wanted(&job, &["li"]);
    let why = |record: &JobRecord, nodes: &[NodeRecord]| {
        look(record.clone(), &job, nodes, Language::En, Duration::ZERO).why
    };
    let there = |draining| [node("node-a", 100, &["outbound"], draining)];
    assert!(why(&free, &[]).contains("no node is alive"));
    assert!(
        why(&free, &[node("node-a", 60_000, &["outbound"], false)]).contains("no node is alive")
    );
    assert!(why(&free, &[node("node-a", 1, &["other"], false)]).contains("its nodes are *"));
    let mut lacking = node("node-a", 1, &["other"], false);
    lacking.beat.unfit.insert(job.name.clone(), "dir: directory /srv/x: gone".to_owned());
    let said = why(&free, &[lacking.clone()]);
    assert!(said.contains("cannot be started: node-a: dir: directory /srv/x: gone"), "{said}");
    let mut crashing = free.clone();
    crashed(&mut crashing, 3, Some(5_000));
    let said = why(&crashing, &[lacking]);
    assert!(said.contains("Crashed 3 times") && said.contains("/srv/x: gone"), "{said}");
    assert!(why(&free, &there(true)).contains("is being drained"));
    assert!(why(&free, &there(false)).contains("grants nothing for one lease (5 s)"));
    let mut fresh = free.clone();
    fresh.participants[0].since = NOW;
    assert!(why(&fresh, &there(false)).contains("about to take it"));
    // It lost its run 2 s ago, and its newest word is older: for four seconds a dead node counts as alive.
    let mut lost = fresh;
    lost.last_exit = Some(LastExit {
        exit: Exit { code: None, signal: Some(9) },
        end: RunEnd::Lost,
        node: node_name("node-a"),
        at: before(2),
        early: false,
    });
    let silent = |age_ms| [node("node-a", age_ms, &["outbound"], false)];
    assert!(why(&lost, &silent(2_500)).contains("only node-a may run it"));
    assert!(why(&lost, &silent(1_500)).contains("about to take it"), "it was heard of since");
    let other =
        [node("node-a", 2_500, &["outbound"], false), node("node-b", 1, &["outbound"], false)];
    assert!(why(&lost, &other).contains("about to take it"));
    let mut moving = free;
    moving.moving = Some(Move {
        from: Some(node_name("node-b")),
        to: Some(node_name("node-a")),
        by: user("li"),
        until: after(29_000),
    });
    assert!(why(&moving, &there(false)).contains("being moved to node-a"));
}

#[test]
fn a_run_by_hand_of_a_job_that_is_off_names_who_asked_for_it() {
    let by_hand = |job: &JobConfig, seconds, lang| {
        let mut record = wanted(job, &[]);
        at_work(&mut record, "node-a", seconds, 4_900);
        let mut clock = Clock::begin("", &record, before(65));
        let tick = serde_json::json!({
            "name": "closing@hand:01M8HB2ZHJ191E2XZN4WVCQ8MW", "due": before(9), "starts": before(9),
        });
        let rules = serde_json::json!({
            "on_loss": "again", "retries": 0, "backoff_ms": 1, "backoff_max_ms": 1, "window_ms": 1,
        });
        let open = serde_json::json!({
            "tick": tick, "attempt": 1, "token": record.token, "by": { "user": "li" },
            "granted": before(8), "late_ms": 3, "rules": rules, "phase": { "is": "granted" },
        });
        clock.open = Some(serde_json::from_value(open).expect("an open tick"));
        record.clock = Some(Box::new(clock));
        look(record, job, &[], lang, Duration::ZERO).why
    };
    let mut job = config("closing", "Closing", "关账");
    job.schedule = Some(scheduled(&job.name));
    let mut program = job.clone();
    (program.runner, program.command) = (Runner::External, Vec::new());
    for job in [&job, &program] {
        for seconds in [1, 900] {
            let why = by_hand(job, seconds, Language::En);
            assert!(why.contains("; asked for by li."), "{why}");
            let why = by_hand(job, seconds, Language::Zh);
            assert!(why.contains("；li 触发了这次运行。"), "{why}");
        }
    }
}

#[test]
fn a_run_that_timed_out_is_told_with_its_limit_and_a_running_one_with_its_end() {
    let (longest, silence) = (Some(SECOND * 7_200), Some(SECOND * 600));
    let limited = |max_runtime, max_silence| JobConfig {
        max_runtime,
        max_silence,
        ..config("outbound", "Outbound", "出库")
    };
    let timed_out = |job: &JobConfig, line: Option<&str>, lang| {
        let mut record = wanted(job, &["li"]);
        crashed(&mut record, 1, Some(4_000));
        let last = record.last_exit.as_mut().expect("just set");
        (last.end, last.exit) = (RunEnd::TimedOut, Exit { code: None, signal: Some(15) });
        record.last_line = line.map(str::to_owned);
        look(record, job, &[], lang, Duration::ZERO).why
    };
    let (runtime, quiet, both) =
        (limited(longest, None), limited(None, silence), limited(longest, silence));
    for (job, line, part) in [
        (&runtime, None, "(timed out after 2 h 0 min: max_runtime)"),
        (&quiet, None, "(timed out after 10 min without output: max_silence)"),
        (&both, Some("stopped after 2h: max_runtime"), "max_runtime)"),
        (&both, Some("stopped after 10m without output or progress: max_silence"), "max_silence)"),
        (&both, Some("bye"), "(timed out)"),
        (&limited(None, None), None, "(timed out)"),
    ] {
        let why = timed_out(job, line, Language::En);
        assert!(why.contains(part), "{why}\nlacks {part}");
        assert!(timed_out(job, line, Language::Zh).contains("超时"));
    }
    let mut record = wanted(&runtime, &["li"]);
    at_work(&mut record, "node-a", 60, 4_900);
    let view = look(record.clone(), &runtime, &[], Language::En, Duration::ZERO);
    for clauses in [&view.shown.evidence, &view.shown.details] {
        let said: Vec<String> = clauses
            .iter()
            .map(|clause| clause.pieces.iter().map(ToString::to_string).collect())
            .collect();
        let ends = said.iter().filter(|text| text.starts_with("ends at the latest ")).count();
        assert_eq!(ends, 1, "{said:?}");
    }
    // Wanted by all, and stopping: only its limits tell why.
    let run = record.run.as_mut().expect("a run");
    (run.started, run.phase) = (before(7_201), RunPhase::Stopping { kill_at: after(1_000) });
    let why = look(record, &runtime, &[], Language::En, Duration::ZERO).why;
    assert!(why.contains("Stopping on node-a: stopped after 2 h 0 min: max_runtime."), "{why}");
}

#[test]
fn what_is_left_of_a_lease_is_as_of_now_and_not_of_the_reading() {
    let job = config("outbound", "Outbound", "出库任务");
    let mut record = wanted(&job, &["li"]);
    assert_eq!(look(record.clone(), &job, &[], Language::En, Duration::ZERO).shown.lease, None);
    at_work(&mut record, "node-a", 60, 4_900);
    let left = |age| look(record.clone(), &job, &[], Language::En, age).shown.lease;
    let later = left(Duration::from_millis(1_200)).expect("a lease");
    assert_eq!((later.left_ms, later.ttl_ms), (3_700, 5_000));
    assert_eq!(later.text, "lease: 3.7 of 5.0 s left");
    assert_eq!(left(Duration::from_secs(60)), None, "a store that is away confirms none");
}

/// A job that programs run.
fn external() -> JobConfig {
    JobConfig {
        runner: Runner::External,
        command: Vec::new(),
        ..config("settlement", "Settlement", "结算")
    }
}

#[test]
fn a_job_that_a_program_runs_is_told_by_the_programs_name_and_never_as_a_nodes() {
    let job = external();
    let held = |change: &dyn Fn(&mut JobRecord)| {
        let mut record = wanted(&job, &["li"]);
        at_work(&mut record, "shop-7f", 60, 4_900);
        record.run.as_mut().expect("a run").pid = 0;
        change(&mut record);
        record
    };
    let free = |change: &dyn Fn(&mut JobRecord)| {
        let mut record = wanted(&job, &["li"]);
        change(&mut record);
        record
    };
    let silent = |record: &mut JobRecord| {
        record.lease.as_mut().expect("a lease").expires_in = Duration::from_secs(2);
    };
    let off = |record: &mut JobRecord| {
        record.participants.clear();
        let (user, at) = (user("li"), before(1));
        record.last_switch = Some(LastSwitch { user, on: false, at, reason: None });
        record.run.as_mut().expect("a run").phase = RunPhase::Stopping { kill_at: after(1_700) };
    };
    let moving = |record: &mut JobRecord| {
        let (from, to, by) = (Some(node_name("shop-7f")), Some(node_name("shop-9c")), user("li"));
        record.moving = Some(Move { from, to, by, until: after(9_000) });
    };
    let young = |record: &mut JobRecord| record.run.as_mut().expect("a run").started = before(1);
    let rests = |record: &mut JobRecord| {
        record.next = Some(Next { what: NextWhat::Repeat, at: after(7_000) });
    };
    let overdue = |record: &mut JobRecord| {
        record.next = Some(Next { what: NextWhat::Repeat, at: before(5) });
    };
    let failed = |record: &mut JobRecord, retry_in| {
        crashed(record, 2, retry_in);
        record.last_exit.as_mut().expect("just set").node = node_name("shop-7f");
    };
    let nobody = "Waiting: wanted by li, and no program has asked for it.";
    let table: Vec<(JobRecord, State, &str)> = vec![
        (held(&|_| {}), State::Running, "Running in shop-7f since"),
        (held(&young), State::Starting, "Starting in shop-7f since"),
        (held(&off), State::Stopping, "Switched off by li; shop-7f was told to stop and has 2 s"),
        (
            held(&silent),
            State::FailingOver,
            "shop-7f has been silent for 3 s; its lease ends in 2 s, then the next program is granted.",
        ),
        (free(&|_| {}), State::Waiting, nobody),
        (free(&overdue), State::Waiting, nobody),
        (free(&moving), State::Waiting, "being moved to shop-9c, which has not asked"),
        (free(&rests), State::Resting, "the next program is granted in 7 s"),
        (free(&|r| failed(r, Some(4_000))), State::BackingOff, "last in shop-7f at"),
        (free(&|r| failed(r, None)), State::GivenUp, "Given up after 2 failures in a row"),
    ];
    for (record, state, part) in table {
        // No node is alive, and none is needed.
        let view = look(record.clone(), &job, &[], Language::En, Duration::ZERO);
        assert_eq!(view.state, state, "{part}");
        assert!(view.why.contains(part), "{}\nlacks {part}", view.why);
        let clauses = view.shown.evidence.iter().chain(&view.shown.details);
        let row: Vec<String> = clauses
            .map(|clause| clause.pieces.iter().map(ToString::to_string).collect())
            .chain([view.why.clone()])
            .collect();
        for word in [" node", "script", "KILL", "TERM", "pid"] {
            assert!(row.iter().all(|text| !text.contains(word)), "{word}: {row:?}");
        }
        let zh = look(record, &job, &[], Language::Zh, Duration::ZERO);
        assert!(!zh.why.contains("why-") && !zh.why.contains("节点") && !zh.why.contains("脚本"));
    }
    let json = serde_json::to_value(look(held(&|_| {}), &job, &[], Language::En, SECOND)).unwrap();
    assert_eq!(
        (&json["runner"], &json["run"]["pid"]),
        (&"external".into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_job_between_two_runs_rests_until_no_node_may_take_it() {
    let job = config("outbound", "Outbound", "出库");
    let mut record = wanted(&job, &["li"]);
    let rests_with = |record: &JobRecord, nodes: &[NodeRecord]| {
        let view = look(record.clone(), &job, nodes, Language::En, Duration::ZERO);
        let row: String = view.shown.evidence[0].pieces.iter().map(ToString::to_string).collect();
        (view.state, view.why, row)
    };
    let there = |draining| [node("node-a", 100, &["outbound"], draining)];
    record.next = Some(Next { what: NextWhat::Repeat, at: after(7_000) });
    let (state, why, row) = rests_with(&record, &there(false));
    assert_eq!((state, row.as_str()), (State::Resting, "next run in 7 s"));
    assert!(why.contains("starts in 7 s"), "{why}");
    for (nodes, part) in [
        (&there(true)[..], "is being drained"),
        (&[], "no node is alive"),
        (&[node("node-a", 1, &["other"], false)], "its nodes are *"),
    ] {
        let (state, why, _) = rests_with(&record, nodes);
        assert_eq!(state, State::Waiting);
        assert!(why.contains(part), "{why}");
    }
    record.next = Some(Next { what: NextWhat::Repeat, at: before(1) });
    let (state, why, row) = rests_with(&record, &there(false));
    assert_eq!((state, row.as_str()), (State::Resting, "next run now"));
    assert!(why.contains("about to start"), "{why}");
    record.next = Some(Next { what: NextWhat::Repeat, at: before(5) });
    let (state, why, _) = rests_with(&record, &there(false));
    assert_eq!(state, State::Waiting);
    assert!(why.contains("no node has taken it yet"), "{why}");
}

#[test]
fn a_store_that_forgot_is_named_as_the_reason_and_off_is_not_said() {
    let job = config("outbound", "Outbound shipping", "出库任务");
    let doubted = |record| Seen {
        record: Arc::new(record),
        at: NOW,
        confirmed: CONFIRMED,
        doubted_until: CONFIRMED + SECOND * 3,
        progressed: None,
        ended_here: None,
    };
    let nodes = [node("node-a", 300, &["outbound"], false)];
    let view = |users: &[&str], lang, after| {
        JobView::of(&doubted(wanted(&job, users)), &job, &nodes, None, lang, CONFIRMED + after)
    };
    let waiting = view(&["li"], Language::En, SECOND);
    assert_eq!(waiting.state, State::Waiting);
    assert!(waiting.why.contains("for 2 s, because a run that it forgot"), "{}", waiting.why);
    let off = view(&[], Language::En, SECOND);
    assert_eq!(off.state, State::Unknown);
    assert!(off.why.contains("must switch it on again"), "{}", off.why);
    assert!(view(&[], Language::Zh, SECOND).why.contains("重新打开"));
    assert_eq!(view(&[], Language::En, SECOND * 3).state, State::Off);
}

#[test]
fn the_json_has_the_promised_shape() {
    let (_, view) = every_state(Language::En).swap_remove(0);
    let json = serde_json::to_value(&view).expect("JSON");
    let mut keys: Vec<_> = json.as_object().expect("an object").keys().cloned().collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "drift",
            "group",
            "hold",
            "last_exit",
            "lease",
            "name",
            "next",
            "participants",
            "run",
            "runner",
            "schedule",
            "state",
            "title",
            "version",
            "wanted",
            "why"
        ]
    );
    assert_eq!(json["state"], "running");
    assert_eq!(json["hold"], serde_json::Value::Null);
    assert_eq!(json["lease"]["token"], 1_792_011_223_344_u64);
    assert_eq!(json["lease"]["expires_in_ms"], 4_600);
    assert_eq!(json["run"]["progress"]["done"], 508);
    let since = json["participants"][0]["since"].as_str().expect("text");
    assert!(since.ends_with(".000Z") && since.len() == 24, "{since}");
}

#[test]
fn a_run_of_an_older_token_is_not_shown_as_present() {
    let job = config("outbound", "Outbound", "出库");
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-a", 60, 4_000);
    record.lease = None;
    let view = look(record, &job, &[], Language::En, Duration::ZERO);
    assert_eq!((view.run, view.lease), (None, None));
}

#[test]
fn a_job_never_read_is_unknown_and_not_off() {
    let view = JobView::unseen(&config("outbound", "Outbound", "出库"), Language::Zh);
    assert_eq!(view.state, State::Unknown);
    assert_eq!(view.title, "出库");
}

/// A node that tells what it defines.
fn telling(name: &str, age_ms: u64, jobs: &[JobConfig]) -> NodeRecord {
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let mut record = node(name, age_ms, &names, false);
    let told = jobs
        .iter()
        .map(|job| (job.name.clone(), job.definition(std::path::Path::new("/"), StoreTime(0))));
    record.told = Arc::new(told.collect());
    record.beat.digest = "d".to_owned();
    record
}

#[test]
fn a_job_carries_who_defines_it_otherwise_and_a_dead_node_says_nothing() {
    let own = config("outbound", "Outbound", "出库");
    let other = JobConfig { command: vec!["false".to_owned()], ..own.clone() };
    let labels = config("labels", "Labels", "标签");
    let alive = [
        telling("node-a", 300, std::slice::from_ref(&own)),
        telling("node-b", 300, &[other.clone(), labels.clone()]),
        node("node-c", 300, &["outbound"], false),
    ];
    let said = |job: &JobConfig, nodes: &[NodeRecord]| -> Vec<String> {
        DriftView::of(&job.name, nodes).iter().map(|one| one.sentence(job.name.as_str())).collect()
    };
    assert_eq!(said(&own, &alive), ["node-b defines outbound otherwise than most: command"]);
    assert_eq!(said(&labels, &alive), ["node-a does not define labels"]);
    let shown = elsewhere(
        std::slice::from_ref(&own),
        &Alerting::default(),
        alive.iter().map(NodeRecord::telling),
    );
    assert_eq!(shown.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["labels"]);
    let view = look(wanted(&shown[0], &["li"]), &shown[0], &alive, Language::En, SECOND);
    assert_eq!((view.title.as_str(), view.shown.elsewhere, view.drift.len()), ("Labels", true, 1));

    let dead = telling("node-b", 60_000, &[other, labels]);
    let nodes = [alive[0].clone(), dead];
    assert_eq!(said(&own, &nodes), [""; 0]);
    assert_eq!(
        elsewhere(&[own], &Alerting::default(), nodes.iter().map(NodeRecord::telling)).len(),
        1,
        "what a dead node defined is still shown"
    );
}

#[test]
fn a_run_that_is_silent_for_half_of_what_it_may_be_needs_somebody_and_says_when_it_is_stopped() {
    let mut job = config("outbound", "Outbound shipping", "出库任务");
    let nodes = [node("node-a", 300, &["outbound"], false)];
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-a", 3_600, 4_000);
    let seen = |job: &JobConfig, said: Option<i64>, progress: bool, lang: Language| {
        let mut record = record.clone();
        let run = record.run.as_mut().expect("a run");
        run.last_output = said.map(before);
        run.progress = progress.then(|| Progress { done: 1, total: 2, note: String::new() });
        let shown = look(record, job, &nodes, lang, Duration::ZERO).shown;
        let text: String = shown.evidence.iter().map(|clause| plain(&clause.pieces)).collect();
        (shown.needs, text)
    };
    assert!(!seen(&job, Some(3_000), false, Language::En).0, "nobody said how long is too long");
    job.max_silence = Some(SECOND * 600);
    assert!(!seen(&job, Some(299), false, Language::En).0);
    let (needs, text) = seen(&job, Some(301), false, Language::En);
    assert!(needs && text.contains("unless it prints something"), "{text}");
    let (needs, text) = seen(&job, None, false, Language::Zh);
    assert!(needs && text.contains("会被停止"), "since it began: {text}");
    assert!(!seen(&job, Some(301), true, Language::En).0, "its progress may have changed since");
}

#[test]
fn a_run_that_stands_still_for_as_long_as_a_rule_says_is_stuck_and_says_what_to_do() {
    let stuck = |job: &JobConfig, progress, still| {
        let view = standing_still(job, progress, still, Language::En);
        assert_eq!(view.shown.needs, view.shown.word == "Stuck", "{}", view.shown.word);
        assert_eq!(view.shown.needs, view.why.contains("is stuck"), "{}", view.why);
        view.shown.needs
    };
    let plain = config("outbound", "Outbound shipping", "出库任务");
    assert!(!stuck(&plain, None, 0), "nobody said how long is too long");
    assert!(!stuck(&plain, Some((3, 9)), 299));
    assert!(stuck(&plain, Some((3, 9)), 300), "it had said that it is on its way");
    assert!(!stuck(&plain, Some((9, 9)), 3_000), "it has arrived");
    let ruled = JobConfig { stuck_after: Some(SECOND * 600), ..plain.clone() };
    assert!(!stuck(&ruled, Some((3, 9)), 599) && stuck(&ruled, Some((3, 9)), 600));
    assert!(stuck(&ruled, Some((9, 9)), 600) && stuck(&ruled, None, 0), "the rule says it of all");
    let limited = JobConfig { max_silence: Some(SECOND * 9_000), ..plain };
    assert!(!stuck(&limited, Some((3, 9)), 3_000), "max_silence says how long is too long");
    let external = JobConfig { runner: Runner::External, ..ruled };
    for lang in Language::ALL {
        let why = standing_still(&external, None, 0, lang).why;
        assert!(!why.contains("node") && !why.contains("节点"), "{why}");
    }
    assert!(standing_still(&external, None, 0, Language::Zh).why.contains("请检查该程序"));
}

/// A job with a schedule whose tick of 02:30 is `phase`, as JSON.
fn with_tick(phase: serde_json::Value) -> (JobConfig, JobRecord) {
    let mut job = config("settle", "Settlement", "结算");
    job.schedule = Some(scheduled(&job.name));
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-a", 9, 4_900);
    let tick = serde_json::json!({
        "name": "settle@2026-05-04T02:30+08:00[Asia/Shanghai]", "due": before(9), "starts": before(9),
    });
    let rules = serde_json::json!({
        "on_loss": "again", "retries": 3, "backoff_ms": 1, "backoff_max_ms": 1, "window_ms": 9_000,
    });
    let open = serde_json::json!({
        "tick": tick, "attempt": 2, "token": record.token, "by": "clock", "granted": before(8), "late_ms": 3,
        "crashes": 2, "rules": rules, "phase": phase,
    });
    let mut clock = Clock::begin("", &record, before(65));
    clock.open = Some(serde_json::from_value(open).expect("an open tick"));
    record.clock = Some(Box::new(clock));
    (job, record)
}

#[test]
fn a_tick_that_is_tried_again_tells_its_attempt_and_that_off_ends_it() {
    let why = serde_json::json!({ "because": "code", "code": 1 });
    let phase = serde_json::json!({
        "is": "again", "at": after(60_000), "since": before(2), "lost": false, "why": why,
    });
    let (job, mut record) = with_tick(phase);
    (record.lease, record.run) = (None, None);
    let node = [node("node-a", 5, &["settle"], false)];
    let view = look(record.clone(), &job, &node, Language::En, Duration::ZERO);
    assert_eq!(view.state, State::BackingOff);
    let said = "Attempt 2 of the run of 2026-05-04 02:30 +08:00 ended: exit code 1.";
    assert!(view.why.starts_with(said) && view.why.contains("Off ends this tick"), "{}", view.why);
    let row = view.shown.evidence.iter().flat_map(|clause| &clause.pieces);
    let row: String = row.map(ToString::to_string).collect();
    assert!(!view.why.contains("on and tries") && !row.contains("times"), "{row}: {}", view.why);
    let zh = look(record, &job, &node, Language::Zh, Duration::ZERO).why;
    assert!(zh.contains("第 2 次尝试") && zh.contains("关闭开关会结束这一次"), "{zh}");
}

#[test]
fn a_run_that_a_newer_tick_replaces_says_so() {
    let (job, mut record) = with_tick(serde_json::json!({ "is": "granted" }));
    let newer = "settle@2026-05-04T02:31+08:00[Asia/Shanghai]";
    if let Some(open) = record.clock.as_mut().and_then(|clock| clock.open.as_mut()) {
        open.replaced_by = Some(tick::TickName(newer.to_owned()));
    }
    if let Some(run) = &mut record.run {
        run.phase = RunPhase::Stopping { kill_at: after(2_000) };
    }
    let why = |job: &JobConfig, lang| look(record.clone(), job, &[], lang, Duration::ZERO).why;
    let said = why(&job, Language::En);
    assert!(said.contains("a newer tick replaces it (2026-05-04 02:31 +08:00)"), "{said}");
    assert!(why(&job, Language::Zh).contains("被更新的一次取代"));
    let mut program = job.clone();
    (program.runner, program.command) = (Runner::External, Vec::new());
    assert!(why(&program, Language::En).contains("A newer tick replaces it"));
}

#[test]
fn a_late_tick_says_which_obstacle_no_node_can_pass() {
    let mut job = config("settle", "Settlement", "结算");
    job.schedule = Some(scheduled(&job.name));
    let mut record = wanted(&job, &["li"]);
    record.clock = Some(Box::new(Clock::begin("", &record, before(65))));
    let why = |nodes: &[NodeRecord], state| {
        let view = look(record.clone(), &job, nodes, Language::En, Duration::ZERO);
        assert_eq!(view.state, state);
        view.why
    };
    let mut unfit = node("node-a", 5, &[], false);
    unfit.beat.unfit.insert(job.name.clone(), "command: nope: No such file".to_owned());
    for (nodes, said) in [
        (vec![unfit], "node-a: command: nope: No such file"),
        (vec![node("node-a", 5, &["settle"], true)], "being drained"),
        (vec![node("node-a", 5, &["other"], false)], "no living node may run settle"),
        (Vec::new(), "no node is alive"),
    ] {
        let why = why(&nodes, State::Late);
        assert!(why.contains(said) && !why.contains("Check that"), "{why}");
    }
}

#[test]
fn a_run_by_hand_that_waits_names_who_asked_for_it() {
    let mut job = config("settle", "Settlement", "结算");
    job.schedule = Some(scheduled(&job.name));
    let mut record = wanted(&job, &[]);
    let mut clock = Clock::begin("", &record, before(3_600));
    let name = tick::TickName("settle@hand:01M8HB2ZHJ191E2XZN4WVCQ8MW".to_owned());
    clock.asked.push(tick::Asked {
        tick: tick::Tick { name, due: before(1), starts: before(1), note: None },
        by: user("li"),
        params: BTreeMap::new(),
        at: before(1),
        request: None,
        attempts: 0,
        known: None,
    });
    record.clock = Some(Box::new(clock));
    let node = [node("node-a", 5, &["settle"], false)];
    let why = |record: &JobRecord, lang| look(record.clone(), &job, &node, lang, Duration::ZERO);
    let view = why(&record, Language::En);
    assert_eq!(view.state, State::Waiting);
    assert_eq!(view.why, "Asked for by li; a node is about to take it.");
    assert!(why(&record, Language::Zh).why.contains("li 触发了这次运行"));
    // It crashed: the switches have nothing to do with it.
    let phase = serde_json::json!({
        "is": "again", "at": after(60_000), "since": before(2), "lost": false,
        "why": { "because": "code", "code": 1 },
    });
    let (_, mut tried) = with_tick(phase);
    (tried.lease, tried.run) = (None, None);
    tried.participants.clear();
    if let Some(open) = tried.clock.as_mut().and_then(|clock| clock.open.as_mut()) {
        open.by = tick::By::User(user("li"));
        open.tick.name = tick::TickName("settle@hand:01M8HB2ZHJ191E2XZN4WVCQ8MW".to_owned());
    }
    let said = why(&tried, Language::En).why;
    assert!(said.starts_with("Attempt 2 of the run by hand ended: exit code 1."), "{said}");
    assert!(said.ends_with("asked for by li."), "{said}");
}

/// A job with a tick each minute in Shanghai.
fn each_minute() -> (JobConfig, JobRecord) {
    let mut job = config("settle", "Settlement", "结算");
    job.schedule = Some(scheduled(&job.name));
    let record = wanted(&job, &["li"]);
    (job, record)
}

#[test]
fn the_time_of_a_tick_is_said_in_the_zone_of_its_schedule_with_the_offset() {
    let (job, mut record) = each_minute();
    record.clock = Some(Box::new(Clock::begin("", &record, NOW)));
    let nodes = [node("node-a", 300, &["settle"], false)];
    let view = look(record.clone(), &job, &nodes, Language::En, Duration::ZERO);
    assert_eq!(view.state, State::Scheduled);
    assert!(view.why.contains(" +08:00, in "), "{}", view.why);
    record.clock = Some(Box::new(Clock::begin("", &record, before(600))));
    for nodes in [&nodes[..], &[]] {
        let late = look(record.clone(), &job, nodes, Language::En, Duration::ZERO);
        assert_eq!(late.state, State::Late);
        assert!(late.why.contains(" +08:00, 9 min ago"), "{}", late.why);
    }
    let seen = Seen {
        record: Arc::new(record),
        at: NOW,
        confirmed: CONFIRMED,
        doubted_until: Boot(0),
        progressed: None,
        ended_here: None,
    };
    let zone = |job: &JobConfig| status::StatusRow::of(&seen, job, &nodes, None, CONFIRMED).zone;
    assert_eq!(zone(&job).as_deref(), Some("Asia/Shanghai"));
    assert_eq!(zone(&config("settle", "Settlement", "结算")), None);
}

#[test]
fn a_store_clock_that_was_set_back_is_said_with_what_ends_it() {
    let (job, mut record) = each_minute();
    record.clock = Some(Box::new(Clock::begin("", &record, after(3_600_000))));
    let nodes = [node("node-a", 300, &["settle"], false)];
    for (lang, words) in [
        (Language::En, "clock was set back: the ticks of the next 1 h 0 min are decided already"),
        (Language::Zh, "存储的时钟被拨回"),
    ] {
        let view = look(record.clone(), &job, &nodes, lang, Duration::ZERO);
        assert_eq!(view.state, State::Waiting);
        assert!(view.why.contains(words), "{}", view.why);
        assert!(view.why.contains("DELETE /api/v1/jobs/settle/taken"), "{}", view.why);
        assert!(view.shown.needs, "it does not end by itself soon");
    }
    let seen = Seen {
        record: Arc::new(record),
        at: NOW,
        confirmed: CONFIRMED,
        doubted_until: Boot(0),
        progressed: None,
        ended_here: None,
    };
    let row = status::StatusRow::of(&seen, &job, &nodes, None, CONFIRMED);
    assert_eq!(row.next, "the store's clock was set back");
}
