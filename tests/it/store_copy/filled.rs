//! A store with something of everything, through its public calls; and what is asked of it afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist::domain::alert::{Subject, When};
use soloist::domain::dispatch::{Rules, TaskOutcome, Window};
use soloist::domain::job::{Exit, Progress, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{
    CollectorName, JobName, NodeName, Owner, RequestId, RotationName, RunId, SourceName, UserName,
};
use soloist::domain::rotation::{Rules as TurnRules, Skip, TurnOutcome, TypeRules};
use soloist::domain::time::{Began, Stamp, StoreTime};
use soloist::store::Store;
use soloist::store::accounts::{Accounts as _, Role, User};
use soloist::store::alerts::{Alerts as _, Incident, Mute, Noted, Told};
use soloist::store::credentials::{ApiToken, Credentials as _, Session};
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch as _, Exchange, Handed, NewTask, Report, Sources as _,
    TaskId,
};
use soloist::store::hidden::HiddenNames as _;
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::{
    AuditEntry, Ended, Journal as _, Kind, NewLine, Output, Started, Stream, Then,
};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};
use soloist::store::rotation::{Kept, Pass, Rotations as _, Taken, TurnAsk};
use soloist::store::spent::{Answer, How, Once, Outcome, SpentTicks as _};
use soloist::store::timeline::Timelines as _;

use crate::support::wait::until_async;

/// Two jobs, and a lease of a program.
pub(super) const JOBS: [&str; 3] = ["inbound", "nightly", "outbound"];
/// Those that can be served are not in the order of their names.
pub(super) const SOURCES: [&str; 6] = ["cedar", "birch", "alder", "limited", "paused", "blocked"];
const LONG: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn job(name: &str) -> JobName {
    JobName::new(name).expect("a good name")
}

pub(super) fn node(name: &str) -> NodeName {
    NodeName::new(name).expect("a good name")
}

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a good name")
}

pub(super) fn source(name: &str) -> SourceName {
    SourceName::new(name).expect("a good name")
}

fn request() -> RequestId {
    RequestId::new(&ulid::Ulid::generate().to_string()).expect("a good label")
}

pub(super) fn ask(name: &str, seen: u64) -> Acquire {
    Acquire {
        job: job(name),
        owner: Owner(ulid::Ulid::generate().to_string()),
        node: node("node-a"),
        ttl: LONG,
        condition: Condition::None,
        seen: Token(seen),
    }
}

/// The token of a lease that is had as soon as the store grants any, and given back.
pub(super) async fn granted(store: &Store, name: &str, seen: u64) -> Token {
    // A store that is in doubt holds back for as long as the lease that is asked for.
    let ask = Acquire { ttl: Duration::from_secs(2), ..ask(name, seen) };
    let token = until_async("a lease is granted", async || {
        match store.acquire(&ask).await.expect("an answer") {
            Acquired::Granted { token, .. } => Some(token),
            _ => None,
        }
    })
    .await;
    store.release(&ask.job, &ask.owner).await.expect("given back");
    token
}

pub(super) async fn fill(store: &Store) {
    people(store).await;
    // Far ahead of any clock: only a record that is copied makes the next one greater.
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).expect("after 1970");
    for (name, ahead) in JOBS.iter().zip(1..) {
        granted(store, name, now * 1_024 + ahead * 3_600_000 * 1_024).await;
    }
    for nth in 0..3 {
        run(store, nth).await;
    }
    store.fold_runs(&job("outbound"), HOUR).await.expect("folded");
    run(store, 3).await;
    switches(store).await;
    alerts(store).await;
    for nth in 0..40 {
        store.audit(&act(nth)).await.expect("noted");
    }
    sources(store).await;
    tasks(store).await;
    rotation(store).await;
    store.note_hidden(&[job("vault")]).await.expect("noted");
    ticks(store).await;
}

/// Ticks that were spent: the newest stands in the record.
pub(super) const TICKS: [&str; 4] = ["2026-11-25", "2026-11-26 ", "订单", "2026-11-27"];

async fn ticks(store: &Store) {
    for (tick, how) in TICKS.iter().zip([How::Done, How::Failed, How::Lost, How::Done]) {
        let once = Once { tick: tick.parse().expect("a good tick"), retry_failed: false };
        let ask = ask("nightly", 0);
        let answer = store.acquire_once(&ask, &once).await.expect("an answer");
        let Answer::Lease(Acquired::Granted { token, .. }) = answer else { panic!("{answer:?}") };
        let outcome = Outcome { how, exit: Exit::default() };
        store.release_under(&ask.job, &ask.owner, token, outcome).await.expect("given back");
    }
}

async fn people(store: &Store) {
    let mut ada = User::new(user("ada"), Role::Admin, "$argon2id$a".to_owned());
    ada.time_zone = Some("Asia/Shanghai".to_owned());
    ada.display_name = Some("Ada 陈".to_owned());
    store.add_user(&ada, true).await.expect("added");
    for (name, role) in [("li", Role::Operator), ("eve", Role::Viewer), ("c-1", Role::Collector)] {
        let user = User::new(user(name), role, format!("$argon2id${name}"));
        store.add_user(&user, false).await.expect("added");
    }
    for (hash, bound) in [("h1", false), ("h2", true)] {
        let mut token = ApiToken::new(user("li"), format!("laptop {hash}"));
        token.id = format!("id-{hash}");
        if bound {
            token.sources = vec![source("cedar")];
            token.jobs = vec![job("outbound")];
        }
        store.add_token(hash, &token, Some(HOUR)).await.expect("added");
    }
    let session = Session::new(user("ada"), "secret".to_owned(), "10.0.0.1".to_owned(), None);
    store.open_session("cookie", &session, HOUR).await.expect("signed in");
}

async fn run(store: &Store, nth: usize) {
    let ask = ask("outbound", 0);
    let Acquired::Granted { token, .. } = store.acquire(&ask).await.expect("an answer") else {
        panic!("outbound is free")
    };
    let id = RunId(format!("run-{nth}"));
    let started = Started {
        job: ask.job.clone(),
        token,
        run: id.clone(),
        node: ask.node.clone(),
        pid: 4_711,
        began: Began::at_boot(soloist::clock::boot()),
    };
    store.record_started(&started).await.expect("started");
    let line = |n: usize| NewLine {
        stream: Stream::Stdout,
        text: format!("run {nth}, order {n}: \"ßü陈\" \t {{}}"),
    };
    // More than are written at once.
    let many = if nth == 0 { 300 } else { 1 };
    let output = Output {
        job: ask.job.clone(),
        token,
        run: id.clone(),
        node: ask.node.clone(),
        lines: (0..many).map(line).collect(),
        progress: Some(Progress { done: 1, total: 2, note: "shipping".to_owned() }),
        heard: false,
    };
    store.record_output(&output).await.expect("said");
    let ended = Ended {
        job: ask.job,
        owner: ask.owner,
        token,
        run: id,
        exit: Exit { code: Some(1), signal: None },
        end: RunEnd::Crashed,
        processes_killed: 2,
        then: Then::Retry { crashes: 1, wait: HOUR },
        began: None,
    };
    store.record_ended(&ended).await.expect("ended");
}

async fn switches(store: &Store) {
    let (outbound, inbound) = (job("outbound"), job("inbound"));
    store.participate(&outbound, &user("li"), true, Some("orders wait")).await.expect("on");
    store.participate(&outbound, &user("ada"), true, None).await.expect("on");
    for on in [true, false, true] {
        store.participate(&inbound, &user("li"), on, None).await.expect("switched");
    }
    store.hold(&inbound, &user("ada"), "stock-taking").await.expect("held");
}

async fn alerts(store: &Store) {
    let told = |nth: i64| Told {
        id: format!("msg_{nth}"),
        at: StoreTime(nth),
        en: "it begins".to_owned(),
        zh: "开始".to_owned(),
    };
    let over = |nth: i64| Incident {
        id: format!("{nth:013x}"),
        alert: "given_up".to_owned(),
        when: When::GivenUp,
        subject: Subject { job: Some(job("outbound")), ..Subject::default() },
        since: StoreTime(nth),
        print: "print".to_owned(),
        url: String::new(),
        to: vec!["ops".to_owned()],
        begin: told(nth),
        end: Some(told(nth + 5)),
        sent: BTreeMap::new(),
    };
    let sender = node("node-a");
    assert!(store.keep_sending(&sender, "boot", LONG).await.expect("an answer"));
    let noted = Noted { past: vec![over(7), over(8)], ..Noted::default() };
    assert!(store.note_alerts(&sender, "boot", &noted).await.expect("noted"));
    store.stop_sending(&sender, "boot").await.expect("given up");
    let until = Mute::Until(StoreTime(4_000_000_000_000));
    store.mute_alert("given_up", until).await.expect("muted");
}

/// Of every kind; some of programs and refusals are counted instead of written.
fn act(nth: u64) -> AuditEntry {
    let kind = [Kind::Person, Kind::Program, Kind::Refusal][usize::try_from(nth % 3).unwrap_or(0)];
    AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: format!("who-{nth}"),
        from: "10.0.0.7".to_owned(),
        act: "job.hold".to_owned(),
        target: "outbound \"ß陈\"".to_owned(),
        reason: Some(format!("because of {nth}")),
        kind,
        count: 1 + nth % 2,
        until: None,
    }
}

async fn sources(store: &Store) {
    let free = Rules { lease: LONG, ..Rules::default() };
    for name in SOURCES {
        let window = (name == "limited").then_some(Window { count: 3, span: HOUR });
        let rules = Rules { window, paused: name == "paused", ..free.clone() };
        store.put_source(&source(name), &rules).await.expect("defined");
    }
    store.block_source(&source("blocked"), HOUR).await.expect("blocked");
}

fn task(name: &str, nth: u8) -> NewTask {
    NewTask {
        key: format!("{name}/{nth}?ß={nth}"),
        source: source(name),
        payload: format!("{{\"n\":{nth},\"text\":\"a\\nb 陈\"}}"),
        priority: nth % 3,
        at: None,
        every: None,
    }
}

async fn tasks(store: &Store) {
    let mut all: Vec<NewTask> = Vec::new();
    for (name, many) in SOURCES.iter().zip([15, 9, 8, 5, 2, 2]) {
        all.extend((0..many).map(|nth| task(name, nth)));
    }
    let hour_ms = 3_600_000;
    let later = jiff::Timestamp::now().as_millisecond() + hour_ms;
    all.push(NewTask { at: Some(Stamp::from(StoreTime(later))), ..task("cedar", 90) });
    all.push(NewTask { every: Some(HOUR), priority: 9, ..task("cedar", 91) });
    // Served in an order that is not that of the names.
    for one in &all {
        store.put_tasks(std::slice::from_ref(one)).await.expect("put");
    }
    let handed = claim(store, &["cedar"], 7).await;
    assert_eq!(handed.len(), 7);
    let outcomes = [
        (TaskOutcome::Done, None),
        (TaskOutcome::Done, None),
        (TaskOutcome::Retry, Some(HOUR)),
        (TaskOutcome::Retry, Some(Duration::ZERO)),
        (TaskOutcome::Dead, None),
        (TaskOutcome::Dead, None),
    ];
    for (task, (outcome, delay)) in handed.iter().zip(outcomes) {
        let error = (outcome != TaskOutcome::Done).then(|| "HTTP 503 from ß".to_owned());
        report(store, task, outcome, delay, error).await;
    }
    // The seventh goes back, and comes first of its priority.
    let claim_of = store.task(&handed[6].id).await.expect("an answer").expect("known").held;
    let (_, id, _) = claim_of.expect("in hand");
    assert_eq!(store.give_back(&id, None).await.expect("given back"), 1);
    let revived = handed[5].id.clone();
    store.revive(&revived).await.expect("revived");
    for task in claim(store, &["limited"], 2).await {
        report(store, &task, TaskOutcome::Done, None, None).await;
    }
    // A turn each, so that the ring begins elsewhere.
    for task in claim(store, &[], 2).await {
        report(store, &task, TaskOutcome::Done, None, None).await;
    }
}

async fn report(
    store: &Store,
    task: &Handed,
    outcome: TaskOutcome,
    delay: Option<Duration>,
    error: Option<String>,
) {
    let report = Report { id: task.id.clone(), token: task.token, outcome, delay, error };
    let exchange = Exchange { reports: vec![report], ..Exchange::default() };
    store.exchange(&exchange).await.expect("taken");
}

pub(super) async fn claim(store: &Store, sources: &[&str], max: u32) -> Vec<Handed> {
    let claim = ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: CollectorName::new("c-1").expect("a good name"),
        request: request(),
        max,
        sources: sources.iter().map(|name| source(name)).collect(),
        wait: None,
    };
    let exchange = Exchange { claim: Some(claim), ..Exchange::default() };
    match store.exchange(&exchange).await.expect("an answer").claimed {
        Some(Claimed::Granted { tasks, .. }) => tasks,
        _ => Vec::new(),
    }
}

/// Claims all that can be had, a few at a time; source and key of each, in order, and the smallest token.
pub(super) async fn claimed(store: &Store) -> (Vec<(String, String)>, Token) {
    let (mut order, mut least) = (Vec::new(), Token(u64::MAX));
    loop {
        let some = claim(store, &[], 3).await;
        if some.is_empty() {
            return (order, least);
        }
        for Handed { source, key, token, .. } in some {
            order.push((source.to_string(), key));
            least = least.min(token);
        }
    }
}

pub(super) fn api() -> RotationName {
    RotationName::new("supplier-api").expect("a good name")
}

async fn rotation(store: &Store) {
    let of = |name: &str, quota| TypeRules {
        name: name.parse().expect("a good name"),
        gap: Duration::from_millis(5),
        quota,
    };
    let quota = Some(Window { count: 20, span: HOUR });
    let rules = TurnRules {
        types: vec![of("orders", quota), of("stock", None), of("prices", None)],
        min_gap: Duration::ZERO,
        lease: Duration::from_secs(1),
        skip: Skip::Absent,
    };
    store.put_rotation(&api(), &rules).await.expect("defined");
    for (kind, outcome) in [
        ("orders", TurnOutcome::Done),
        ("stock", TurnOutcome::Empty),
        ("orders", TurnOutcome::Failed),
        ("prices", TurnOutcome::Done),
    ] {
        let turn = turn(store, kind).await;
        let next = (kind == "prices").then(|| "stock".parse().expect("a good name"));
        pass(store, turn, outcome, next).await;
    }
}

/// The token of a turn that is had as soon as that is allowed.
pub(super) async fn turn(store: &Store, kind: &str) -> Token {
    until_async("a turn is had", async || {
        let ask = TurnAsk {
            rotation: api(),
            kind: kind.parse().expect("a good name"),
            worker: "w".parse().expect("a good label"),
            request: request(),
            wait: None,
        };
        match store.take_turn(&ask).await.expect("an answer") {
            Taken::Granted(turn) => Some(turn.token),
            _ => None,
        }
    })
    .await
}

async fn pass(
    store: &Store,
    turn: Token,
    outcome: TurnOutcome,
    next: Option<soloist::domain::name::TypeName>,
) {
    let pass = Pass { rotation: api(), turn, only: None, outcome, next, not_before: None };
    let Kept::Yes(_) = store.pass_turn(&pass).await.expect("an answer") else {
        panic!("it was not had")
    };
}

/// Many tasks.
pub(super) async fn crowd(store: &Store, many: usize) -> Vec<TaskId> {
    let free = Rules { lease: LONG, ..Rules::default() };
    store.put_source(&source("crowd"), &free).await.expect("defined");
    let tasks: Vec<NewTask> = (0..many)
        .map(|nth| NewTask { key: format!("page-{nth:06}"), priority: 0, ..task("crowd", 0) })
        .collect();
    for some in tasks.chunks(1_000) {
        store.put_tasks(some).await.expect("put");
    }
    tasks.iter().map(|task| TaskId::of(&task.source, &task.key)).collect()
}
