//! Thousands of waiters of three types at two nodes, and everything dies: workers with a turn, workers in the queue, a node.
//!
//! Workers speak HTTP; who had which turn is read from the store, to the microsecond of its clock. Judged by what a
//! rotation promises: one holder at a time, starts at least the gap apart, types in cyclic order while all of them have
//! somebody waiting, and a turn whose holder died goes on within its lease and 300 ms.
//!
//! A program of its own, because it needs the machine for itself; what that takes away all the same is measured and allowed for.

#[expect(dead_code, reason = "the other tests use the rest of it")]
#[path = "../it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt as _;
use serde_json::{Value, json};
use soloist::clock::boot;
use soloist::domain::name::RotationName;
use soloist::domain::rotation::Ending;
use soloist::domain::time::{Boot, Stamp};
use soloist::store::Options;
use soloist::store::rotation::{PastTurn, Rotations as _, TURNS_KEPT};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use support::machine::{Place, Stall, holds, in_time, judge, machine};
use support::node::Ground;
use support::redis::RedisServer;
use support::wait::PATIENCE;

const TYPES: [&str; 3] = ["invoice", "order", "stock"];
const GAP: Duration = Duration::from_millis(7);
const LEASE: Duration = Duration::from_millis(400);
/// So much later than its lease's end a dead holder's turn may go on.
const LATE: Duration = Duration::from_millis(300);
const TURNS: usize = 400;
/// How many of a hundred holders die with their turn, and of a hundred waiters in the queue.
const DIE: u32 = 3;

/// What all workers know.
struct Field {
    nodes: Mutex<Vec<String>>,
    token: String,
    over: AtomicBool,
    count: AtomicUsize,
    held: Mutex<BTreeMap<u64, Held>>,
}

/// A turn as its worker saw it, on this machine's clock.
struct Held {
    from: Boot,
    until: Option<Boot>,
}

/// One at a time.
static GROUND: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_waiters_take_turns_while_everything_dies_on_redis() {
    judge(async || {
        let server = RedisServer::start(&[]);
        take_turns(&server.url(), 3_000).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_waiters_take_turns_while_everything_dies_on_sqlite() {
    judge(async || {
        let directory = tempfile::tempdir().expect("a directory");
        // Two processes write to one file in turn, and wait for each other: that is what carries no more.
        take_turns(&format!("sqlite:{}", directory.path().join("soloist.db").display()), 300).await;
    })
    .await;
}

async fn take_turns(url: &str, waiters: usize) {
    let _alone = GROUND.lock().await;
    let ground = Ground::new(url, "");
    ground.add_user("operator", "operator");
    let token = ground.token("operator");
    let (node, mut doomed) = (ground.start("node-a"), Some(ground.start("node-b")));
    let address = |url: &str| url.trim_start_matches("http://").to_owned();
    let nodes = [&node, doomed.as_ref().expect("it runs")].map(|node| address(&node.url));
    let field = Arc::new(Field {
        nodes: Mutex::new(nodes.to_vec()),
        token,
        over: AtomicBool::new(false),
        count: AtomicUsize::new(0),
        held: Mutex::default(),
    });
    let types = TYPES.map(|name| json!({ "name": name }));
    let rules = json!({
        "types": types, "min_gap_ms": GAP.as_millis(), "lease_ms": LEASE.as_millis()
    });
    let mut stream = connect(&nodes[0]).await.expect("the node accepts");
    let put = call(&mut stream, "PUT", "", &field.token, &rules).await.expect("an answer");
    assert_eq!(put.0, 200, "{}", put.1);
    let workers: Vec<_> =
        (0..waiters).map(|nth| tokio::spawn(work(Arc::clone(&field), nth))).collect();

    let options = Options { timeout: Duration::from_secs(20), ..Options::default() };
    let store = soloist::stores::connect(url, &options).await.expect("the store");
    let supplier: RotationName = "supplier".parse().expect("a name");
    let mut history: BTreeMap<u64, PastTurn> = BTreeMap::new();
    // From then on everybody waits.
    let mut from = None;
    let begun = boot();
    while from.is_none_or(|from| history.range(from..).count() < TURNS) {
        assert!(
            boot().since(begun) < PATIENCE * 6,
            "{} turns in {:?}",
            history.len(),
            PATIENCE * 6
        );
        let view = store.rotations(Some(&supplier), TURNS_KEPT).await.expect("an answer");
        let view = view.into_iter().next().expect("it is defined");
        history.extend(view.past.iter().map(|past| (past.token.0, past.clone())));
        let all: u64 = view.types.iter().map(|one| one.waiting).sum();
        if from.is_none() && all * 10 >= waiters as u64 * 9 {
            from = Some(view.ring.token.0);
        }
        if from.is_some_and(|from| history.range(from..).count() > TURNS / 3)
            && let Some(mut node) = doomed.take()
        {
            field.nodes.lock().expect("nobody panicked").pop();
            node.kill();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    field.over.store(true, Ordering::Relaxed);
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        if let Err(error) = worker.await {
            assert!(error.is_cancelled(), "{error}");
        }
    }
    let from = from.expect("everybody waited");
    let verdict =
        judge_turns(&history, from, &field.held.lock().expect("whole"), &machine().seen());
    holds(verdict.wrongs.is_empty(), || verdict.wrongs.join("\n"));
    in_time(verdict.late.is_empty(), || verdict.late.join("\n"));
    let lost = history.values().filter(|past| past.ending == Ending::Lost).count();
    assert!(lost >= 3, "too few died to show anything: {lost} of {}", history.len());
    assert!(doomed.is_none(), "a node died, too");
}

/// What the judge finds.
#[derive(Default)]
struct Verdict {
    /// Wrong on every machine.
    wrongs: Vec<String>,
    /// Too late, even with what the machine took away.
    late: Vec<String>,
}

/// Everything that is wrong.
fn judge_turns(
    history: &BTreeMap<u64, PastTurn>,
    from: u64,
    held: &BTreeMap<u64, Held>,
    stalls: &[Stall],
) -> Verdict {
    let stalled = |from: Stamp, to: Stamp| -> Duration {
        let during = |stall: &&Stall| stall.ended >= from && stall.ended <= to + stall.lasted;
        let mut places: BTreeMap<Place, Duration> = BTreeMap::new();
        for stall in stalls.iter().filter(during) {
            *places.entry(stall.place).or_default() += stall.lasted;
        }
        places.into_values().max().unwrap_or_default()
    };
    let Verdict { mut wrongs, late: mut lates } = Verdict::default();
    let turns: Vec<&PastTurn> = history.values().collect();
    for pair in turns.windows(2) {
        let [before, after] = pair else { continue };
        let name = format!("{} after {}", after.token, before.token);
        if after.since < before.ended {
            wrongs.push(format!("{name}: two holders"));
        }
        if after.since < before.since + GAP {
            wrongs.push(format!("{name}: the gap was {:?}", after.since.since(before.since)));
        }
        let next = TYPES.iter().position(|name| *name == before.kind.as_str()).expect("a type") + 1;
        if before.token.0 >= from && after.kind.as_str() != TYPES[next % TYPES.len()] {
            wrongs.push(format!("{name}: {} after {}", after.kind, before.kind));
        }
        let free = before.ended.max(before.since + GAP);
        let late = LATE + stalled(free, after.since);
        if after.since.since(free) > late && before.token.0 >= from {
            let late = after.since.since(free);
            lates.push(format!("{name}: {late:?} after it could start ({:?})", before.ending));
        }
        if before.ended > Stamp(before.since.0) + LEASE + LATE + stalled(before.since, before.ended)
        {
            lates.push(format!("{name}: a turn of {:?}", before.ended.since(before.since)));
        }
    }
    let mut last: Option<(u64, Boot)> = None;
    for (token, turn) in held {
        if let Some((before, passed)) = last
            && turn.from < passed
        {
            wrongs.push(format!("two workers had {before} and {token} at once"));
        }
        last = turn.until.map(|until| (*token, until)).or(last);
    }
    Verdict { wrongs, late: lates }
}

/// One worker after the other under one number: each dies sooner or later.
async fn work(field: Arc<Field>, nth: usize) {
    while !field.over.load(Ordering::Relaxed) {
        let address = {
            let nodes = field.nodes.lock().expect("nobody panicked");
            nodes[nth % nodes.len()].clone()
        };
        // A node that died ends the life of its workers' connections. They come back with jitter, as clients should: a node
        // built for debugging on a machine that has little time needs a second or two for fifteen hundred at once.
        if live(&field, &address, nth).await.is_err() {
            let moment = rand::rng().random_range(50..4_000);
            tokio::time::sleep(Duration::from_millis(moment)).await;
        }
    }
}

async fn live(field: &Field, address: &str, nth: usize) -> std::io::Result<()> {
    let mut stream = connect(address).await?;
    loop {
        let count = field.count.fetch_add(1, Ordering::Relaxed);
        let take = json!({
            "type": TYPES[nth % TYPES.len()],
            "worker": format!("w{nth}"),
            "request_id": format!("w{nth}-{count}"),
            "wait_ms": 30_000
        });
        let asking = call(&mut stream, "POST", "/turns", &field.token, &take);
        let hurry = rand::rng().random_range(0..100) < DIE;
        let patience = if hurry { rand::rng().random_range(1_000..9_000) } else { 60_000 };
        let Ok(answer) = tokio::time::timeout(Duration::from_millis(patience), asking).await else {
            return Ok(());
        };
        let (status, answer) = answer?;
        // Too many at once for the store: said, and to be asked again in a moment.
        if status == 503 {
            let moment = rand::rng().random_range(200..2_000);
            tokio::time::sleep(Duration::from_millis(moment)).await;
            continue;
        }
        assert_eq!(status, 200, "{answer}");
        let Some(turn) = answer["turn"].as_str() else { continue };
        let token = answer["token"].as_u64().expect("a token");
        let held = |until| {
            let mut held = field.held.lock().expect("nobody panicked");
            held.entry(token).or_insert(Held { from: boot(), until: None }).until = until;
        };
        held(None);
        if rand::rng().random_range(0..100) < DIE {
            return Ok(());
        }
        let pass = json!({ "token": token, "outcome": "done" });
        // One that had no time until its lease was over knows that it has the turn no more.
        let lease: jiff::Timestamp =
            answer["lease_until"].as_str().expect("an instant").parse().expect("an instant");
        let late = jiff::Timestamp::now().duration_since(lease);
        let late = Duration::try_from(late).unwrap_or_default();
        held(Some(Boot(boot().0.saturating_sub(late.as_nanos() as u64))));
        let path = format!("/turns/{turn}/pass");
        let (status, answer) = call(&mut stream, "POST", &path, &field.token, &pass).await?;
        // Late, on a machine that had no time for it: then the turn is another's.
        assert!([200, 409, 503].contains(&status), "{status} {answer}");
    }
}

async fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn call(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    token: &str,
    body: &Value,
) -> std::io::Result<(u16, Value)> {
    let body = body.to_string();
    let head = format!(
        "{method} /api/v1/rotations/supplier{path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
    let mut bytes = Vec::with_capacity(512);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut bytes).await?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let status: u16 = text[9..12].parse().expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
    while bytes.len() < head + length {
        more(stream, &mut bytes).await?;
    }
    Ok((status, serde_json::from_slice(&bytes[head..]).unwrap_or(Value::Null)))
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    match stream.read_buf(bytes).await? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

#[test]
fn the_judge_finds_every_planted_wrong() {
    let turn = |nth: u64, kind: usize, since: i64, ended: i64| PastTurn {
        token: soloist::domain::lease::Token(nth),
        kind: TYPES[kind].parse().expect("a name"),
        worker: "w".parse().expect("a label"),
        since: Stamp(since),
        ended: Stamp(ended),
        ending: Ending::Done,
    };
    let gap = 7_000;
    let judged = |last: PastTurn| {
        let turns = [turn(1, 0, 0, 1_000), turn(2, 1, gap, gap + 1_000), last];
        let history = turns.into_iter().map(|past| (past.token.0, past)).collect();
        let Verdict { wrongs, late } = judge_turns(&history, 1, &BTreeMap::new(), &[]);
        [wrongs, late].concat()
    };
    assert_eq!(judged(turn(3, 2, 2 * gap, 2 * gap + 1)), [""; 0]);
    for (last, wrong) in [
        (turn(3, 2, gap + 500, gap + 2_000), "two holders"),
        (turn(3, 2, 2 * gap - 1, 2 * gap), "the gap was"),
        (turn(3, 0, 2 * gap, 2 * gap + 1), "invoice after order"),
        (turn(3, 2, 2 * gap + 300_001, 400_000), "after it could start"),
    ] {
        let wrongs = judged(last);
        assert!(wrongs.iter().any(|one| one.contains(wrong)), "{wrong}: {wrongs:?}");
    }
    let at = |ms: u64| Boot(ms * 1_000_000);
    let held = BTreeMap::from([
        (1, Held { from: at(0), until: Some(at(2)) }),
        (2, Held { from: at(1), until: None }),
    ]);
    let wrongs = judge_turns(&BTreeMap::new(), 1, &held, &[]).wrongs;
    assert_eq!(wrongs, ["two workers had 1 and 2 at once"]);
}
