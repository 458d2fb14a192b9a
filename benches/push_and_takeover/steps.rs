//! The steps of one take-over, as Redis sees them arrive (`MONITOR`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use super::pair::{JOB, Leaving, Pair, Side, wall_us};
use super::support::redis::RedisServer;
use super::support::wait::PATIENCE;
use super::table::Table;

/// What a script of the store is for, told by its keys (`crates/store-redis/src/*.lua`): the texts, and so their hashes, differ
/// between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Release,
    Acquire,
    Started,
}

impl Step {
    fn of(keys: &[&str], arguments: usize) -> Option<Self> {
        let prefix = format!("{{{JOB}}}:");
        let part = |key: &&str| Some(key.split_once(prefix.as_str())?.1.to_owned());
        let parts: Vec<String> = keys.iter().map(|key| part(key).unwrap_or_default()).collect();
        match parts.join(" ").as_str() {
            "token state lease runs participants events" => Some(Self::Release),
            " lease state participants token runs events" => Some(Self::Acquire),
            "token state runs events" => Some(Self::Started),
            // Before the history had an order of its own. `record_stopping` has these keys too, and fewer arguments.
            "token state events" if arguments == 5 => Some(Self::Started),
            _ => None,
        }
    }
}

/// A line of MONITOR: `1700000000.123456 [0 127.0.0.1:50000] "EVALSHA" "<sha1>" "4" "key" ...`, time in microseconds.
fn parsed(line: &str) -> Option<(i64, Step)> {
    let (at, rest) = line.trim_start_matches('+').split_once(" [")?;
    let (seconds, micros) = at.split_once('.')?;
    let at = seconds.parse::<i64>().ok()? * 1_000_000 + micros.parse::<i64>().ok()?;
    let (_, words) = rest.split_once("] \"")?;
    let words: Vec<&str> = words.trim_end().trim_end_matches('"').split("\" \"").collect();
    if !words.first()?.get(..4)?.eq_ignore_ascii_case("eval") {
        return None;
    }
    let (keys, arguments) = words.get(3..)?.split_at_checked(words.get(2)?.parse().ok()?)?;
    Some((at, Step::of(keys, arguments.len())?))
}

/// Hears what arrives at a Redis, until that ends.
struct Monitor {
    steps: mpsc::Receiver<(i64, Step)>,
}

impl Monitor {
    fn on(redis: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("Redis is there");
        stream.write_all(b"MONITOR\r\n").expect("Redis listens");
        let mut lines = BufReader::new(stream).lines();
        let answer = lines.next().and_then(Result::ok);
        assert_eq!(answer.as_deref(), Some("+OK"));
        let (send, steps) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // Nobody listens to what arrives after the last round.
                parsed(&line).and_then(|step| send.send(step).ok());
            }
        });
        Self { steps }
    }

    /// When `step` first arrived at or after `from_us`.
    fn first(&self, step: Step, from_us: i64) -> i64 {
        let until_us = wall_us() + i64::try_from(PATIENCE.as_micros()).expect("not that long");
        loop {
            let left = u64::try_from(until_us - wall_us()).unwrap_or(0);
            let heard = self.steps.recv_timeout(Duration::from_micros(left));
            let (at, what) = heard.unwrap_or_else(|_| panic!("waited in vain for {step:?}"));
            if what == step && at >= from_us {
                return at;
            }
        }
    }
}

#[derive(Default)]
struct Times {
    /// From `kill -9`, from the release, from the acquire.
    steps: [Vec<Duration>; 3],
    took: Vec<Duration>,
}

pub(crate) async fn measure(sides: &[Side], count: usize) {
    if count == 0 {
        return;
    }
    let mut all = Vec::new();
    for side in sides {
        let pair = Pair::start(side, 5);
        pair.settle(None).await;
        pair.switch_on().await;
        all.push((Monitor::on(&pair.server), pair, Times::default()));
    }
    for _ in 0..count {
        let mut taken = Vec::new();
        for (monitor, pair, times) in &mut all {
            let one = pair.take_over(Leaving::Kill).await;
            times.took.push(one.took);
            let mut last = one.from_us;
            let order = [Step::Release, Step::Acquire, Step::Started];
            for (step, times) in order.into_iter().zip(&mut times.steps) {
                let at = monitor.first(step, last);
                times.push(Duration::from_micros(u64::try_from(at - last).unwrap_or(0)));
                last = at;
            }
            taken.push(one);
        }
        for ((_, pair, _), one) in all.iter_mut().zip(taken) {
            pair.recover(one, Leaving::Kill).await;
        }
    }
    let mut table = Table::new("step of a take-over after `kill -9`, lease 5 s, milliseconds");
    let names = [
        "`kill -9` -> the guard's release arrives at Redis",
        "-> the other node's acquire arrives",
        "-> its `record_started` arrives",
    ];
    for (nth, name) in names.iter().enumerate() {
        for (_, pair, times) in &all {
            table.row(name, &pair.side, &times.steps[nth], None);
        }
    }
    for (_, pair, times) in &all {
        table.row("`kill -9` -> the script's first act, in all", &pair.side, &times.took, None);
    }
    table.print();
    println!(
        "Arrivals are those of Redis' MONITOR, by this machine's wall clock. MONITOR slows Redis a little: compare the last row with the table without it."
    );
}
