//! Leases of programs' own names, all renewed through the first node, six times in their length: what that costs, and whether one is lost.
//!
//! The renewals come evenly, over [`CONNECTIONS`] kept connections. They do not wait for a stop: a lease of an own name is told none.

use std::time::Duration;

use nix::unistd::Pid;
use serde_json::Value;
use soloist::clock::boot;
use soloist::domain::time::Boot;
use tokio::task::JoinSet;

use super::http::{Door, Program};
use super::table::rank;
use super::world::World;

const CONNECTIONS: usize = 16;
const TTL_MS: u64 = 10_000;
/// As the node says when it grants them.
const PERIOD: Duration = Duration::from_millis(1_666);

/// Node, Redis (not a number without one) and bench in percent of a core; p50 and p99 of a renewal and the longest time without one, in ms; how many were lost.
pub(crate) type Figures = [f64; 7];

pub(crate) async fn measure(world: &World, leases: usize, seconds: u64) -> Figures {
    let begun = boot();
    let mut takers = JoinSet::new();
    for nth in 0..CONNECTIONS {
        let share = leases / CONNECTIONS + usize::from(nth < leases % CONNECTIONS);
        takers.spawn(take(world.door(0), nth, share));
    }
    let taken = takers.join_all().await;
    eprintln!("{leases} leases taken within {:.0?}", boot().since(begun));

    let step = PERIOD / u32::try_from(leases).expect("not so many");
    let from = boot();
    let until = from + PERIOD + Duration::from_secs(seconds);
    let mut keepers = JoinSet::new();
    for (nth, (program, leases)) in taken.into_iter().enumerate() {
        // Evenly over all connections.
        let begin = from + step * u32::try_from(nth).expect("few");
        keepers.spawn(
            Keeper { program, leases, lost: 0, spans: Vec::new(), gap: Duration::ZERO }
                .keep(begin, until),
        );
    }
    // The first round is left out.
    tokio::time::sleep(PERIOD).await;
    let own = Pid::from_raw(i32::try_from(std::process::id()).expect("a process id"));
    let pids = [Some(world.nodes[0].pid()), world.redis_pid(), Some(own)];
    let (at, before) = (boot(), pids.map(|pid| pid.map_or(f64::NAN, cpu)));
    let kept = keepers.join_all().await;
    let lasted = boot().since(at).as_secs_f64();
    let after = pids.map(|pid| pid.map_or(f64::NAN, cpu));

    let mut lost: usize = kept.iter().map(|keeper| keeper.lost).sum();
    let mut looking = Program::at(&world.door(1), "looking").await;
    let (_, held) = looking.call("GET", "/api/v1/leases", &Value::Null).await;
    let there = held["leases"].as_array().expect("leases").iter();
    let there = there.filter(|lease| name_of(lease).starts_with("kept-")).count();
    lost = lost.max(leases.saturating_sub(there));

    let spans = kept.iter().flat_map(|keeper| &keeper.spans);
    let mut spans: Vec<f64> = spans.map(|span| span.as_secs_f64() * 1_000.0).collect();
    spans.sort_by(f64::total_cmp);
    let gap = kept.iter().map(|keeper| keeper.gap).max().unwrap_or_default();
    let share = |nth: usize| (after[nth] - before[nth]) / lasted * 100.0;
    let figures = [
        share(0),
        share(1),
        share(2),
        rank(&spans, 50),
        rank(&spans, 99),
        gap.as_secs_f64() * 1_000.0,
        lost as f64,
    ];
    let mut leavers = JoinSet::new();
    for mut keeper in kept {
        leavers.spawn(async move {
            for (lease, _) in &keeper.leases {
                keeper.program.release(lease).await;
            }
        });
    }
    leavers.join_all().await;
    figures
}

fn name_of(lease: &Value) -> &str {
    lease["name"].as_str().expect("a name")
}

async fn take(door: Door, nth: usize, share: usize) -> (Program, Vec<(Value, Boot)>) {
    let mut program = Program::at(&door, &format!("keeper-{nth}")).await;
    let mut leases = Vec::with_capacity(share);
    for lease in 0..share {
        let sent = boot();
        leases.push((program.take(&format!("kept-{nth}-{lease}"), TTL_MS).await, sent));
    }
    (program, leases)
}

/// One connection's share.
struct Keeper {
    program: Program,
    /// With the moment before its last renewal was sent.
    leases: Vec<(Value, Boot)>,
    lost: usize,
    spans: Vec<Duration>,
    /// The longest time without a renewal.
    gap: Duration,
}

impl Keeper {
    async fn keep(mut self, begin: Boot, until: Boot) -> Self {
        let share = self.leases.len();
        let step = PERIOD / u32::try_from(share).expect("not so many");
        let mut due = begin;
        for count in 0.. {
            if boot() >= until {
                break;
            }
            tokio::time::sleep(due.since(boot())).await;
            due = due + step;
            let (lease, last) = &mut self.leases[count % share];
            let sent = boot();
            let (held, answer) = self.program.renew(lease, 0).await;
            self.spans.push(boot().since(sent));
            if held {
                // From when all were taken to the first one is no period.
                if count >= share {
                    self.gap = self.gap.max(sent.since(*last));
                }
                *last = sent;
            } else {
                eprintln!("lost: {answer}");
                self.lost += 1;
            }
        }
        self
    }
}

/// proc_pid_stat(5), fields 14 and 15, in hundredths of a second; here in seconds.
fn cpu(pid: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    let ticks = rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
