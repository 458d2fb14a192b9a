//! The latency of a claim through a node: result and next claim in one call, at a fixed rate, by token.
//!
//! Open loop: calls become due by the clock, whatever the answers do, and the latency counts from when a call was due; a
//! slow answer makes those behind it late, and that is counted. The generator is one thread that speaks HTTP by hand over
//! kept connections and waits for all of them and for the clock at once, so that it leaves the two cores to node and
//! Redis; what it takes all the same is said.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use soloist::clock::boot;
use soloist::domain::name::SourceName;
use soloist::domain::time::Boot;
use soloist::store::Options;
use tokio::io::AsyncReadExt as _;

use super::support::node::Ground;
use super::support::redis::RedisServer;
use super::{ours, redis_cpu};

const COLLECTORS: usize = 128;
const SOURCES: usize = 50;
const WARM_UP: Duration = Duration::from_secs(3);
/// Names the clock among the connections.
const CLOCK: u64 = u64::MAX;

/// A collector's connection and what it holds.
struct Collector {
    nth: usize,
    stream: TcpStream,
    held: Vec<Reported>,
    calls: u64,
    /// When the call was due that it waits for.
    due: Boot,
    answer: Vec<u8>,
}

#[derive(Serialize)]
struct Reported {
    id: String,
    token: u64,
    outcome: &'static str,
}

#[derive(Serialize)]
struct Body<'b> {
    results: &'b [Reported],
    claim: Asked<'b>,
}

#[derive(Serialize)]
struct Asked<'b> {
    collector: &'b str,
    request_id: &'b str,
    max: u32,
    sources: [&'b str; 0],
    wait_ms: u32,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Accepted>,
    claim: Option<Claimed>,
}

#[derive(Deserialize)]
struct Accepted {
    status: String,
}

#[derive(Deserialize)]
struct Claimed {
    #[serde(default)]
    tasks: Vec<Given>,
}

#[derive(Deserialize)]
struct Given {
    id: String,
    token: u64,
}

#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    empty: usize,
    refused: usize,
}

/// What is read before and after, in seconds of one core.
struct Costs {
    at: Boot,
    redis: f64,
    node: f64,
    own: f64,
    stolen: f64,
}

impl Costs {
    fn read(server: &RedisServer, node: i32) -> Self {
        let own = i32::try_from(std::process::id()).expect("a process id");
        Self {
            at: boot(),
            redis: redis_cpu(server),
            node: cpu_of(node),
            own: cpu_of(own),
            stolen: stolen(),
        }
    }
}

/// Calls at `rate` a second, for so many seconds.
pub(crate) async fn measure(rate: usize, seconds: usize) {
    let server = RedisServer::start(&[]);
    let ground = Ground::new(&server.url(), "");
    ground.add_user("robot", "collector");
    let token = ground.token("robot");
    let node = ground.start("node-a");
    let store =
        soloist::stores::connect(&server.url(), &Options::default()).await.expect("the store");
    let name = |nth: usize| -> SourceName { format!("bench-{nth}").parse().expect("a name") };
    let names: Vec<SourceName> = (0..SOURCES).map(name).collect();
    let calls = rate * (seconds + usize::try_from(WARM_UP.as_secs()).expect("short"));
    ours::put(&store, &names, calls + COLLECTORS).await;

    let address = node.url.trim_start_matches("http://");
    let mut generator = Generator::connect(address, &token);
    generator.call(rate, calls / rate * rate, || Costs::read(&server, node.pid().as_raw()));
    report(&mut generator, rate);
}

struct Generator {
    collectors: Vec<Collector>,
    idle: VecDeque<usize>,
    token: String,
    seen: Seen,
    /// Calls that are due from here on count.
    from: Option<Boot>,
    costs: Vec<Costs>,
}

impl Generator {
    fn connect(address: &str, token: &str) -> Self {
        let collectors = (0..COLLECTORS).map(|nth| {
            let stream = TcpStream::connect(address).expect("the node accepts");
            stream.set_nodelay(true).expect("a socket");
            stream.set_nonblocking(true).expect("a socket");
            let (held, answer) = (Vec::new(), Vec::with_capacity(4_096));
            Collector { nth, stream, held, calls: 0, due: boot(), answer }
        });
        Self {
            collectors: collectors.collect(),
            idle: (0..COLLECTORS).collect(),
            token: token.to_owned(),
            seen: Seen::default(),
            from: None,
            costs: Vec::new(),
        }
    }

    /// Makes the calls; reads the costs when the warm-up is over and at the end.
    fn call(&mut self, rate: usize, calls: usize, costs: impl Fn() -> Costs) {
        let epoll = Epoll::new(EpollCreateFlags::empty()).expect("Linux");
        let watch = |what: &_, data| {
            epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, data)).expect("it is watched");
        };
        for collector in &self.collectors {
            watch(&collector.stream.as_fd(), collector.nth as u64);
        }
        let clock = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).expect("Linux");
        watch(&clock.as_fd(), CLOCK);
        let period = Duration::from_secs(1) / u32::try_from(rate).expect("a rate");
        let ticks = Expiration::Interval(TimeSpec::from_duration(period));
        let begun = boot();
        clock.set(ticks, TimerSetTimeFlags::empty()).expect("a timer");

        let mut sent = 0;
        let mut events = [EpollEvent::empty(); 64];
        while self.idle.len() < COLLECTORS || sent < calls {
            let due = |nth: usize| begun + period * u32::try_from(nth).expect("not for days");
            while sent < calls && due(sent).since(begun) <= boot().since(begun) {
                let Some(nth) = self.idle.pop_front() else { break };
                if self.costs.is_empty() && due(sent).since(begun) >= WARM_UP {
                    self.costs.push(costs());
                    self.from = Some(due(sent));
                }
                self.send(nth, due(sent));
                sent += 1;
                if sent == calls {
                    self.costs.push(costs());
                }
            }
            let ready = epoll.wait(&mut events, EpollTimeout::from(1_000_u16)).expect("events");
            for event in &events[..ready] {
                match usize::try_from(event.data()) {
                    Ok(nth) if nth < COLLECTORS => self.read(nth),
                    _ => {
                        clock.wait().expect("ticks");
                    }
                }
            }
        }
    }

    fn send(&mut self, nth: usize, due: Boot) {
        let collector = &mut self.collectors[nth];
        collector.calls += 1;
        collector.due = due;
        let (name, request) = (format!("c{nth}"), format!("c{nth}-{}", collector.calls));
        let claim =
            Asked { collector: &name, request_id: &request, max: 1, sources: [], wait_ms: 0 };
        let body = serde_json::to_string(&Body { results: &collector.held, claim }).expect("JSON");
        let request = format!(
            "POST /api/v1/results HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        // Less than any buffer of a socket that waits for nothing else.
        collector.stream.write_all(request.as_bytes()).expect("the node listens");
    }

    /// Takes what has come; an answer that is whole ends the call.
    fn read(&mut self, nth: usize) {
        let collector = &mut self.collectors[nth];
        let mut part = [0; 4_096];
        match collector.stream.read(&mut part) {
            Ok(0) => panic!("the node hung up"),
            Ok(count) => collector.answer.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("no answer: {error}"),
        }
        let Some((status, head, length)) = header(&collector.answer) else { return };
        if collector.answer.len() < head + length {
            return;
        }
        if self.from.is_some_and(|from| collector.due >= from) {
            self.seen.latencies.push(boot().since(collector.due));
        }
        let body = &collector.answer[head..head + length];
        if status == 200 {
            let answer: Answer = serde_json::from_slice(body).expect("an answer as documented");
            let refused = answer.results.iter().find(|one| one.status != "ok");
            assert!(refused.is_none(), "{}", String::from_utf8_lossy(body));
            let tasks = answer.claim.map_or_else(Vec::new, |claim| claim.tasks);
            self.seen.empty += usize::from(tasks.is_empty());
            let done = |task: Given| Reported { id: task.id, token: task.token, outcome: "done" };
            collector.held = tasks.into_iter().map(done).collect();
        } else {
            eprintln!("{status} {}", String::from_utf8_lossy(body));
            self.seen.refused += 1;
        }
        collector.answer.clear();
        self.idle.push_back(nth);
    }
}

/// Status, where the body begins, and its length, of an answer whose head is whole.
fn header(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = text[9..12].parse().expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some((status, end, length.map_or(0, |length| length.trim().parse().expect("a length"))))
}

fn report(generator: &mut Generator, rate: usize) {
    let seen = &mut generator.seen;
    let [from, to] = &generator.costs[..] else { panic!("it lasted longer than the warm-up") };
    let lasted = to.at.since(from.at).as_secs_f64();
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
    let part = |of: fn(&Costs) -> f64| (of(to) - of(from)) / lasted * 100.0;
    println!(
        "  of one core: node {:.0} %, Redis {:.0} %, generator {:.0} %; {} without a task, {} refused",
        part(|costs| costs.node),
        part(|costs| costs.redis),
        part(|costs| costs.own),
        seen.empty,
        seen.refused
    );
    println!(
        "  {:.1} % of the machine was taken away by its host meanwhile",
        part(|costs| costs.stolen) / cores()
    );
}

/// One answer with a length.
pub(crate) async fn read(stream: &mut tokio::net::TcpStream) -> (u16, Value) {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if let Some((status, head, length)) = header(&bytes)
            && bytes.len() >= head + length
        {
            return (status, serde_json::from_slice(&bytes[head..]).unwrap_or(Value::Null));
        }
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "the node hung up");
    }
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
