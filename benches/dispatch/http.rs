//! The latency of a claim through a node: result and next claim in one call, at a fixed rate, by token.
//!
//! Open loop: calls become due by the clock, whatever the answers do, and the latency counts from when a call was due; a
//! slow answer makes those behind it late, and that is counted. The generator speaks HTTP by hand over kept
//! connections, so that it leaves the two cores to node and Redis.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use soloist::clock::boot;
use soloist::domain::name::SourceName;
use soloist::domain::time::Boot;
use soloist::store::{Options, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::support::node::Ground;
use super::support::redis::RedisServer;
use super::{ours, redis_cpu};

const COLLECTORS: usize = 128;
const SOURCES: usize = 50;
const WARM_UP: Duration = Duration::from_secs(3);

/// A collector's connection and what it holds.
struct Collector {
    name: String,
    stream: TcpStream,
    held: Vec<Value>,
    calls: u64,
}

#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    empty: usize,
    refused: usize,
}

/// Calls at `rate` a second, for so many seconds.
pub async fn measure(rate: usize, seconds: usize) {
    let server = RedisServer::start(&[]);
    let ground = Ground::new(&server.url(), "");
    ground.add_user("robot", "collector");
    let token = ground.token("robot");
    let node = ground.start("node-a");
    let store = Store::connect(&server.url(), &Options::default()).await.expect("the store");
    let name = |nth: usize| -> SourceName { format!("bench-{nth}").parse().expect("a name") };
    let names: Vec<SourceName> = (0..SOURCES).map(name).collect();
    let calls = rate * (seconds + usize::try_from(WARM_UP.as_secs()).expect("short"));
    ours::put(&store, &names, calls + COLLECTORS).await;

    let address = node.url.trim_start_matches("http://").to_owned();
    let (free, mut idle) = mpsc::unbounded_channel();
    for nth in 0..COLLECTORS {
        let stream = TcpStream::connect(&address).await.expect("the node accepts");
        stream.set_nodelay(true).expect("a socket");
        let name = format!("c{nth}");
        free.send(Collector { name, stream, held: Vec::new(), calls: 0 }).expect("it is read");
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let pid = node.pid().as_raw();
    let (begun, period) = (boot(), Duration::from_secs(1) / u32::try_from(rate).expect("a rate"));
    let mut due = punctual(begun, period, calls);
    let mut from = None;
    while let Some(at) = due.recv().await {
        if from.is_none() && at.since(begun) >= WARM_UP {
            from = Some((boot(), redis_cpu(&server), cpu_of(pid), stolen()));
        }
        let mut collector = idle.recv().await.expect("every call ends");
        let (free, seen, token) = (free.clone(), Arc::clone(&seen), token.clone());
        let counts = from.is_some();
        tokio::spawn(async move {
            let outcome = call(&mut collector, &token).await;
            note(&seen, counts.then(|| boot().since(at)), &outcome);
            // Only the measurement's end closes it.
            free.send(collector).ok();
        });
    }
    let (from, redis, own, taken) = from.expect("it lasted longer than the warm-up");
    let lasted = boot().since(from).as_secs_f64();
    let taken = stolen() - taken;
    let (redis, own) = (redis_cpu(&server) - redis, cpu_of(pid) - own);
    for _ in 0..COLLECTORS {
        idle.recv().await.expect("every call ends");
    }
    report(&mut seen.lock().expect("nobody panicked"), rate, lasted, redis, own);
    println!(
        "  {:.1} % of the machine was taken away by its host meanwhile",
        taken * 100.0 / lasted / cores()
    );
}

/// Says when each call is due, when it is: from a thread of its own, because timers of tokio tick in milliseconds.
fn punctual(begun: Boot, period: Duration, calls: usize) -> mpsc::UnboundedReceiver<Boot> {
    let (say, due) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for nth in 0..u32::try_from(calls).expect("not for days") {
            let at = begun + period * nth;
            std::thread::sleep(at.since(boot()));
            if say.send(at).is_err() {
                return;
            }
        }
    });
    due
}

fn note(seen: &Mutex<Seen>, latency: Option<Duration>, outcome: &Result<bool, u16>) {
    let mut seen = seen.lock().expect("nobody panicked");
    match outcome {
        Ok(granted) => seen.empty += usize::from(!granted),
        Err(_) => seen.refused += 1,
    }
    seen.latencies.extend(latency);
}

fn report(seen: &mut Seen, rate: usize, lasted: f64, redis: f64, node: f64) {
    seen.latencies.sort_unstable();
    let all = &seen.latencies;
    let at = |part: f64| {
        let index = ((all.len() as f64 * part).ceil() as usize).clamp(1, all.len()) - 1;
        all[index].as_secs_f64() * 1_000.0
    };
    println!(
        "Through HTTP, result + next claim in one call, {COLLECTORS} collectors, wanted {rate} calls/s, was {:.0}:",
        all.len() as f64 / lasted
    );
    println!(
        "  latency from when it was due: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.1} ms",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    println!(
        "  of one core: node {:.0} %, Redis {:.0} %; {} without a task, {} refused",
        node / lasted * 100.0,
        redis / lasted * 100.0,
        seen.empty,
        seen.refused
    );
}

/// Whether something was granted, or the status that says otherwise.
async fn call(collector: &mut Collector, token: &str) -> Result<bool, u16> {
    collector.calls += 1;
    let results: Vec<Value> = std::mem::take(&mut collector.held);
    let body = json!({
        "results": results,
        "claim": {
            "collector": collector.name,
            "request_id": format!("{}-{}", collector.name, collector.calls),
            "max": 1, "sources": [], "wait_ms": 0
        }
    })
    .to_string();
    let head = format!(
        "POST /api/v1/results HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body.as_bytes()].concat();
    collector.stream.write_all(&request).await.expect("the node listens");
    let (status, answer) = read(&mut collector.stream).await;
    if status != 200 {
        eprintln!("{status} {answer}");
        return Err(status);
    }
    let refused =
        answer["results"].as_array().into_iter().flatten().any(|one| one["status"] != "ok");
    assert!(!refused, "{answer}");
    let tasks = answer["claim"]["tasks"].as_array().cloned().unwrap_or_default();
    let done =
        |task: &Value| json!({ "id": task["id"], "token": task["token"], "outcome": "done" });
    collector.held = tasks.iter().map(done).collect();
    Ok(!tasks.is_empty())
}

/// One answer with a length.
pub async fn read(stream: &mut TcpStream) -> (u16, Value) {
    let mut bytes = Vec::with_capacity(1024);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "the node hung up");
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let status: u16 = text[9..12].parse().expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
    while bytes.len() < head + length {
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "the node hung up");
    }
    (status, serde_json::from_slice(&bytes[head..]).unwrap_or(Value::Null))
}

/// Time that a hypervisor gave to others, in seconds of one core (proc_stat(5), eighth of the first line).
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let ticks = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.expect("a number") / 100.0
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

/// proc_pid_stat(5), fields 14 and 15, in hundredths of a second; here in seconds.
fn cpu_of(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    let ticks = rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
