//! Calls to the store from one process: a lease taken, tasks claimed and done.

use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner};
use soloist::store::Store;
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};

use super::disk::Disk;
use super::ours::{self, Load};
use super::server::{Kind, Server};
use super::sheet::{Bound, Sheet, median_of_rounds, rank};

const TIMEOUT: Duration = Duration::from_secs(20);
/// What is done before the first one that counts: the server makes room, connections begin.
const WARM: usize = 20;

/// What a round of leases measured at one store.
pub(crate) struct Leased {
    spans: Vec<Duration>,
    /// What an fsync took meanwhile.
    fsyncs: Vec<Duration>,
    /// What one cost the server, in microseconds.
    cpu: f64,
}

/// One after the other at each store in turns, with an fsync in between.
pub(crate) async fn acquire(kinds: &[Kind], count: usize) -> Vec<(Kind, Leased)> {
    let servers: Vec<Server> = kinds.iter().map(|kind| Server::start(*kind)).collect();
    let mut all = Vec::new();
    for server in &servers {
        all.push((server.kind, server.connect(TIMEOUT).await, Vec::new()));
    }
    let mut disk = Disk::new();
    let mut used = Vec::new();
    for nth in 0..WARM + count {
        if nth == WARM {
            used = servers.iter().map(Server::cpu).collect();
        }
        for (_, store, spans) in &mut all {
            // By a task, as a node's runners do: `main` is none, and is woken late.
            let taking = tokio::spawn(take_and_give_back(store.clone()));
            let took = taking.await.expect("it ends");
            if nth >= WARM {
                spans.push(took);
            }
        }
        disk.sync();
    }
    let costs = servers.iter().zip(used).map(|(server, before)| {
        let used = server.cpu().saturating_sub(before);
        used.as_secs_f64() * 1e6 / count as f64
    });
    let leased = all
        .into_iter()
        .zip(costs)
        .map(|((kind, _, spans), cpu)| (kind, Leased { spans, fsyncs: disk.spans.clone(), cpu }));
    let leased: Vec<_> = leased.collect();
    let said =
        leased.iter().map(|(kind, one)| format!("{} {:.1}", kind.label(), one.in_fsyncs(50)));
    let said: Vec<String> = said.collect();
    eprintln!("acquire p99, one round, in fsyncs (p50): {}", said.join(", "));
    leased
}

/// Writes down what some rounds came to.
pub(crate) fn tell_acquired(rounds: Vec<Vec<(Kind, Leased)>>, sheet: &mut Sheet) {
    let one = |percent| median_of_rounds(&rounds, |leased| rank(&leased.fsyncs, percent));
    sheet.row("one fsync of 8 KiB, p50 ms", Bound::None, 2, one(50));
    sheet.row("one fsync of 8 KiB, p99 ms", Bound::None, 2, one(99));
    let in_fsyncs = |percent| median_of_rounds(&rounds, |leased| leased.in_fsyncs(percent));
    let (by_median, by_worst) = (in_fsyncs(50), in_fsyncs(99));
    let costs = median_of_rounds(&rounds, |leased| leased.cpu);
    let spans: Vec<_> = rounds
        .into_iter()
        .map(|round| round.into_iter().map(|(kind, leased)| (kind, leased.spans)).collect())
        .collect();
    sheet.times("acquire, one connection", Bound::None, &spans);
    sheet.row("acquire p99, in fsyncs (p50)", Bound::Most(5.0, 5.0), 1, by_median);
    sheet.row("acquire p99, in fsyncs (p99)", Bound::None, 1, by_worst);
    sheet.row("acquire and release, server CPU us", Bound::None, 0, costs);
}

impl Leased {
    /// The p99 of a lease, in fsyncs of that rank.
    fn in_fsyncs(&self, percent: usize) -> f64 {
        rank(&self.spans, 99) / rank(&self.fsyncs, percent)
    }
}

async fn take_and_give_back(store: Store) -> Duration {
    let ask = Acquire {
        job: JobName::new("bench").expect("a name"),
        owner: Owner(format!("{:032x}", rand::random::<u128>())),
        node: NodeName::new("bench").expect("a name"),
        ttl: Duration::from_secs(10),
        condition: Condition::None,
        seen: Token(0),
    };
    let begun = clock::boot();
    let answer = store.acquire(&ask).await.expect("an answer");
    let took = clock::boot().since(begun);
    assert!(matches!(answer, Acquired::Granted { .. }), "{answer:?}");
    store.release(&ask.job, &ask.owner).await.expect("an answer");
    took
}

/// 50 in flight by tens; of each store the better one of `rounds`, for others use this machine, too.
pub(crate) async fn dispatch(kinds: &[Kind], tasks: usize, rounds: usize, sheet: &mut Sheet) {
    let mut all: Vec<(Kind, f64, f64)> = kinds.iter().map(|kind| (*kind, 0.0, 0.0)).collect();
    for round in 0..rounds {
        for (kind, rate, cpu) in &mut all {
            let server = Server::start(*kind);
            let load = Load { in_flight: 50, batch: 10, sources: 1, tasks, round };
            let figure = ours::run_on(&server.url, || server.cpu().as_secs_f64(), &load).await;
            let done = figure.tasks as f64 / figure.seconds;
            eprintln!("dispatch, round {}: {}: {done:.0} tasks/s", round + 1, kind.label());
            if done > *rate {
                (*rate, *cpu) = (done, figure.cpu * 1e6 / figure.tasks as f64);
            }
        }
    }
    let rates = all.iter().map(|(kind, rate, _)| (*kind, *rate)).collect();
    let what = "dispatch, 50 in flight by tens, tasks a second";
    sheet.row(what, Bound::Least(5_000.0, 3_000.0), 0, rates);
    let costs = all.iter().map(|(kind, _, cpu)| (*kind, *cpu)).collect();
    sheet.row("dispatch, server CPU us a task", Bound::None, 0, costs);
}
