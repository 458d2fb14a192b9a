//! Ten thousand leases in one process against one Redis: are all renewed every period, and what does it cost?
//!
//! `cargo bench --features full --bench ten_thousand [-- --leases N --seconds N]`
//!
//! This process is the node's keeper and its store and nothing else: ten thousand real scripts would measure the
//! machine. A node that runs them also watches and reports on them; that is not renewal and not counted here. CPU is
//! read from /proc of both processes while nothing else is asked of either; margins are looked at after that, because
//! looking costs, too.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use soloist::clock;
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner};
use soloist::domain::time::{Began, Boot};
use soloist::runner::keeper::{Keeper, Kept};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal};
use soloist::store::{Options, Store};
use soloist::telemetry::Metrics;

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/redis.rs"]
mod redis;
#[path = "../tests/it/support/wait.rs"]
#[allow(dead_code, reason = "shared with the tests, which also wait in other ways")]
mod wait;

const TTL: Duration = Duration::from_secs(30);
/// How many are asked for at the same time in the beginning.
const AT_ONCE: usize = 64;
/// How often the margins are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let count = |flag: &str, default: usize| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(count("--leases", 10_000), count("--seconds", 60) as u64));
}

async fn measure(leases: usize, seconds: u64) {
    let timing = Timing::from_ttl(TTL).expect("a safe lease");
    let server = redis::RedisServer::start(&[]);
    let options = Options { timeout: timing.store_timeout, ..Options::default() };
    let store = soloist::stores::connect(&server.url(), &options).await.expect("the store");
    let keeper = Keeper::start(store.clone(), Arc::new(Metrics::new()));

    let begun = clock::boot();
    let asked = futures_util::stream::iter(0..leases)
        .map(|nth| take(store.clone(), keeper.clone(), timing, nth))
        .buffer_unordered(AT_ONCE);
    let kept: Vec<Kept> = asked.collect().await;
    println!("{leases} leases of {TTL:?} taken in {:.0?}", clock::boot().since(begun));

    // The first rounds spread what was taken in one burst.
    tokio::time::sleep(timing.renew_every * 10).await;
    let pids = [std::process::id(), server.run::<u32>(&["EVAL", PID, "0"])];
    let calls = || server.run::<u64>(&["EVAL", CALLS, "0"]);
    let (cpu, asked, at) = (pids.map(cpu_time), calls(), clock::boot());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let lasted = clock::boot().since(at).as_secs_f64();
    let share = |nth: usize| (cpu_time(pids[nth]) - cpu[nth]).as_secs_f64() / lasted * 100.0;
    println!("over {lasted:.0} s, wanted at most 5 % of a core on each side:");
    println!("  this process {:.2} % of a core", share(0));
    println!("  redis-server {:.2} % of a core", share(1));
    println!("  {:.0} calls a second to renew", (calls() - asked) as f64 / lasted);

    let mut worst = Duration::MAX;
    let begun = clock::boot();
    while clock::boot().since(begun) < Duration::from_secs(seconds) {
        let now = clock::boot();
        let trusted = |kept: &Kept| kept.lease.trusted_until();
        let least = kept.iter().map(trusted).min().unwrap_or(Boot(0));
        worst = worst.min(least.since(now));
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let lost = kept.iter().filter(|kept| kept.lease.is_lost()).count();
    let left = worst + timing.kill_time;
    println!("over {seconds} more s, looked at every {LOOK_EVERY:?}:");
    println!("  worst margin {left:.2?} of {TTL:?} left at the store ({worst:.2?} of it trusted)");
    println!(
        "  longest time without a renewal {:.2?}, period {:?}",
        TTL.saturating_sub(left),
        timing.renew_every
    );
    println!("  {lost} lost");
    let alive = server.run::<usize>(&["EVAL", "return #redis.call('KEYS', '*:lease')", "0"]);
    assert_eq!((alive, lost), (leases, 0), "every lease is alive");
}

const PID: &str = "return tonumber(string.match(redis.call('INFO', 'server'), 'process_id:(%d+)'))";
const CALLS: &str = "return tonumber(string.match(redis.call('INFO', 'commandstats'), 'cmdstat_evalsha:calls=(%d+)'))";

async fn take(store: Store, keeper: Keeper, timing: Timing, nth: usize) -> Kept {
    let job = JobName::new(&format!("job-{nth}")).expect("a name");
    let node = NodeName::new("bench").expect("a name");
    let owner = Owner(format!("{:032x}/{nth}", rand::random::<u128>()));
    let ask = Acquire {
        job: job.clone(),
        owner: owner.clone(),
        node: node.clone(),
        ttl: timing.ttl,
        condition: Condition::None,
        seen: Token(0),
    };
    let sent = clock::boot();
    let Acquired::Granted { token, since } = store.acquire(&ask).await.expect("an answer") else {
        panic!("the lease {nth} is free");
    };
    let since = Began { boot: sent, at: Some(since) };
    keeper.keep(
        Renewal { job, owner, node, token, ttl: timing.ttl, since, run: None },
        timing,
        sent,
    )
}

/// proc_pid_stat(5), fields 14 and 15, in hundredths of a second on every Linux that Rust's standard library runs on.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
