//! Two nodes of the program itself on each store: switched on, killed; and one with a thousand jobs that nobody wants.

use std::fmt::Write as _;
use std::time::Duration;

use soloist::clock;

use super::pair::{JOB, Leaving, Pair, Side};
use super::processes::cpu_time;
use super::server::{Kind, Server};
use super::sheet::{Bound, Sheet, Spans, rank};
use super::support::api::Live;

fn pair(kind: Kind) -> (Kind, Pair<Server>) {
    let side = Side::all(None).remove(0);
    let server = Server::start(kind);
    let url = server.url.clone();
    (kind, Pair::on(server, &url, &side, 5))
}

pub(crate) async fn switch(kinds: &[Kind], count: usize) -> Spans {
    let mut all: Vec<(Kind, Live, Pair<Server>, Vec<Duration>)> = Vec::new();
    for (kind, pair) in kinds.iter().map(|kind| pair(*kind)) {
        pair.settle(None).await;
        all.push((kind, pair.api().live().await, pair, Vec::new()));
    }
    for _ in 0..count {
        for (_, live, pair, spans) in &mut all {
            let begun = clock::boot();
            spans.push(pair.switch_on().await.since(begun));
            let off = pair.api().switch(JOB, false).await;
            let version = off["version"].as_u64();
            let over = live.until(JOB, "it is off", |job| {
                job["state"] == "off" && job["version"].as_u64() >= version
            });
            over.await;
        }
    }
    let times: Spans = all.into_iter().map(|(kind, _, _, spans)| (kind, spans)).collect();
    let said = times.iter().map(|(kind, spans)| format!("{} {:.1}", kind.label(), rank(spans, 99)));
    let said: Vec<String> = said.collect();
    eprintln!("switched on -> started, one round, p99 ms: {}", said.join(", "));
    times
}

/// Writes down what some rounds came to.
pub(crate) fn tell_switched(rounds: &[Spans], sheet: &mut Sheet) {
    sheet.times("switched on -> started", Bound::Most(50.0, 100.0), rounds);
}

pub(crate) async fn kill(kinds: &[Kind], count: usize, sheet: &mut Sheet) {
    let mut all: Vec<(Kind, Pair<Server>)> = kinds.iter().map(|kind| pair(*kind)).collect();
    for (_, pair) in &all {
        pair.settle(None).await;
        pair.switch_on().await;
    }
    let mut times: Vec<(Kind, Vec<Duration>)> =
        kinds.iter().map(|kind| (*kind, Vec::new())).collect();
    for _ in 0..count {
        // All are measured before any recovers: nodes that start do not disturb.
        let mut taken = Vec::new();
        for (_, pair) in &mut all {
            taken.push(pair.take_over(Leaving::Kill).await);
        }
        for (_, pair) in &mut all {
            pair.complete();
        }
        for (((_, pair), (_, spans)), one) in all.iter_mut().zip(&mut times).zip(taken) {
            spans.push(one.took);
            pair.recover(one, Leaving::Kill).await;
        }
    }
    sheet.times("`kill -9` -> started by the other", Bound::Most(150.0, 150.0), &[times]);
}

pub(crate) fn idle(kinds: &[Kind], settling: u64, seconds: u64, sheet: &mut Sheet) {
    let mut jobs = String::new();
    for nth in 0..1000 {
        writeln!(jobs, "[[job]]\nname = \"job-{nth}\"\ncommand = [\"true\"]").expect("a string");
    }
    let side = Side::all(None).remove(0);
    let mut all = Vec::new();
    for kind in kinds {
        let server = Server::start(*kind);
        let ground = side.ground(&server.url, &jobs);
        let node = ground.start("node-a");
        all.push((server, ground, node));
    }
    std::thread::sleep(Duration::from_secs(settling));
    let used = || -> Vec<(Duration, Duration)> {
        all.iter().map(|(server, _, node)| (cpu_time(node.pid()), server.cpu())).collect()
    };
    let (before, at) = (used(), clock::boot());
    std::thread::sleep(Duration::from_secs(seconds));
    let (after, lasted) = (used(), clock::boot().since(at).as_secs_f64());
    let share = |after: Duration, before: Duration| (after - before).as_secs_f64() / lasted * 100.0;
    let each = kinds.iter().zip(before.iter().zip(&after));
    let node = each.clone().map(|(kind, (before, after))| (*kind, share(after.0, before.0)));
    let server = each.map(|(kind, (before, after))| (*kind, share(after.1, before.1)));
    let two = Bound::Most(2.0, 2.0);
    sheet.row("1,000 idle jobs, node, % of a core", two, 2, node.collect());
    sheet.row("1,000 idle jobs, server, % of a core", two, 2, server.collect());
}
