//! Take-overs measured with nothing else going on: from the instant before the fault to the first act of the next run.

use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;

use crate::cluster::{Cluster, Job, Options};
use crate::machine::within;
use crate::wait::until;
use crate::witness::Mode;

/// However slow the machine: whoever takes this long after a kill -9 has waited for something that need not be waited
/// for. What a good machine does is for the printed figures to show.
const LATE: Duration = Duration::from_secs(3);

/// Take-overs of one kind.
#[derive(Debug)]
pub(crate) struct Figures {
    took: Vec<Duration>,
    bound: Duration,
}

impl Figures {
    fn within(bound: Duration) -> Self {
        Self { took: Vec::new(), bound }
    }

    /// Waits until each of `jobs`, which had those tokens at `at`, is run anew, and notes how long it took.
    pub(crate) fn note(&mut self, cluster: &Cluster, at: Boot, jobs: &[(usize, u64)]) {
        for (job, token) in jobs {
            let next = cluster.until_after(*job, *token);
            let took = Boot(next.first).since(at);
            within(took, self.bound, &format!("from {} to {next:?}", at.0));
            self.took.push(took);
        }
    }

    pub(crate) fn worst(&self) -> Option<Duration> {
        self.took.iter().max().copied()
    }

    fn in_words(&mut self) -> String {
        self.took.sort();
        let at =
            |percent: usize| self.took.get((self.took.len() * percent).div_ceil(100).max(1) - 1);
        let ms = |percent| at(percent).map_or(0, Duration::as_millis);
        format!(
            "{} measured, p50 {} ms, p99 {} ms, max {} ms",
            self.took.len(),
            ms(50),
            ms(99),
            ms(100)
        )
    }
}

const JOBS: [Job; 8] = [
    Job { name: "one", mode: Mode::Plain },
    Job { name: "two", mode: Mode::Stubborn },
    Job { name: "three", mode: Mode::Plain },
    Job { name: "four", mode: Mode::Stubborn },
    Job { name: "five", mode: Mode::Plain },
    Job { name: "six", mode: Mode::Stubborn },
    Job { name: "seven", mode: Mode::Plain },
    Job { name: "eight", mode: Mode::Stubborn },
];

/// A kill of a node says more with a lease of a minute: whoever waited for it would be noticed.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(2);

/// Kills nodes `kills` times and cuts them off `cuts` times.
pub(crate) fn take_overs(kills: usize, cuts: usize) -> bool {
    let killed = crate::in_directory("take_over after kill -9 of a node", |directory| {
        let options = options(LONG);
        let cluster = Cluster::start(directory, options);
        let _judged = cluster.overlaps_come_first();
        let mut figures = Figures::within(LATE);
        for turn in 0..kills {
            let victim = &cluster.nodes[turn % cluster.nodes.len()];
            // The node that was killed before the last one is back; the last one need not be.
            until("the next victim is up", || victim.address());
            let spare = &cluster.nodes[(turn + 1) % cluster.nodes.len()];
            until("a node is there to take over", || spare.address());
            settle(&cluster);
            let held = cluster.held_by(victim);
            let at = victim.kill(Duration::ZERO).expect("it lives");
            figures.note(&cluster, at, &held);
        }
        verdict(&cluster, figures.in_words())
    });
    let cut = crate::in_directory("take_over after a partition", |directory| {
        let cluster = Cluster::start(directory, options(SHORT));
        let _judged = cluster.overlaps_come_first();
        let mut figures = Figures::within(SHORT + LATE);
        for turn in 0..cuts {
            let victim = &cluster.nodes[turn % cluster.nodes.len()];
            settle(&cluster);
            let held = cluster.held_by(victim);
            let at = boot();
            victim.cut_off(true);
            figures.note(&cluster, at, &held);
            victim.cut_off(false);
        }
        let worst = figures.worst().unwrap_or_default().as_millis();
        let beyond =
            i128::try_from(worst).unwrap_or(0) - i128::try_from(SHORT.as_millis()).unwrap_or(0);
        let line = figures.in_words();
        verdict(&cluster, format!("{line}; worst beyond the lease of {SHORT:?}: {beyond} ms"))
    });
    killed && cut
}

fn options(lease: Duration) -> Options {
    Options { lease, jobs: JOBS.to_vec(), ..Options::one(Mode::Plain) }
}

/// Every job is run by a node that is there.
fn settle(cluster: &Cluster) {
    cluster.until_all_act(boot(), crate::wait::PATIENCE).expect("every job acts");
}

fn verdict(cluster: &Cluster, line: String) -> Result<String, Vec<String>> {
    let wrongs = cluster.wrongs();
    if wrongs.is_empty() { Ok(format!("{line}, 0 overlaps")) } else { Err(wrongs) }
}
