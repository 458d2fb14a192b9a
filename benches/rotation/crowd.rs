//! What a measurement notes: from one worker's pass to the next one's grant.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;
use tokio::sync::Notify;

use super::support::redis::RedisServer;
use super::{redis_cpu, stolen};

/// The turns that are left out at the beginning: not everybody waits yet.
const WARM_UP: usize = 50;

/// What all workers of a measurement share.
pub(crate) struct Crowd {
    turns: usize,
    noted: Mutex<Noted>,
    full: Notify,
    over: AtomicBool,
}

#[derive(Default)]
struct Noted {
    passed: Option<Boot>,
    spans: Vec<Duration>,
    count: usize,
    from: Option<(Boot, f64, f64)>,
}

/// What came of it.
pub(crate) struct Figure {
    spans: Vec<Duration>,
    cpu_us: f64,
    stolen: f64,
}

impl Crowd {
    pub(crate) fn new(turns: usize) -> Self {
        let (noted, full) = (Mutex::default(), Notify::new());
        Self { turns, noted, full, over: AtomicBool::new(false) }
    }

    /// A worker has the turn.
    pub(crate) fn granted(&self, server: &RedisServer) {
        let now = boot();
        let mut noted = self.noted.lock().expect("nobody panicked");
        noted.count += 1;
        if noted.count == WARM_UP {
            noted.from = Some((now, redis_cpu(server), stolen()));
        } else if noted.count > WARM_UP
            && let Some(passed) = noted.passed
        {
            noted.spans.push(now.since(passed));
        }
        if noted.spans.len() >= self.turns && !self.over.swap(true, Ordering::Relaxed) {
            self.full.notify_one();
        }
    }

    /// It is about to pass it on.
    pub(crate) fn passing(&self) {
        self.noted.lock().expect("nobody panicked").passed = Some(boot());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// When enough was seen.
    pub(crate) async fn figure(&self, server: &RedisServer) -> Figure {
        self.full.notified().await;
        let mut noted = self.noted.lock().expect("nobody panicked");
        let (from, cpu, before) = noted.from.expect("it began");
        let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let lasted = boot().since(from).as_secs_f64();
        let mut spans = std::mem::take(&mut noted.spans);
        spans.sort_unstable();
        Figure {
            cpu_us: (redis_cpu(server) - cpu) * 1e6 / spans.len() as f64,
            stolen: (stolen() - before) / lasted / cores,
            spans,
        }
    }
}

impl Figure {
    pub(crate) fn print(&self, waiters: usize, how: &str) {
        let at = |part: f64| {
            let index = ((self.spans.len() as f64 * part).ceil() as usize).max(1) - 1;
            self.spans[index.min(self.spans.len() - 1)].as_secs_f64() * 1_000.0
        };
        println!(
            "| {waiters} | {how} | {:.2} | {:.2} | {:.1} | {:.0} | {:.1} % |",
            at(0.5),
            at(0.99),
            at(1.0),
            self.cpu_us,
            self.stolen * 100.0
        );
    }
}
