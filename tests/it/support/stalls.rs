//! What the machine takes away: a host that gives a core to others for a second makes every deadline late, and no program
//! can do anything about that. So it is measured, where tests count on time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::time::{Boot, Stamp};

/// How long a watcher sleeps; what it wakes later than that was taken from it.
const NAP: Duration = Duration::from_millis(5);

/// A core gave a thread that only sleeps no time.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    pub core: usize,
    pub from: Boot,
    pub lasted: Duration,
    /// Its end, by the machine's wall clock.
    pub ended: Stamp,
}

/// Watches every core by a thread of its own, until it is dropped.
pub struct Stalls {
    over: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Stall>>>,
    watchers: Vec<JoinHandle<()>>,
}

impl Stalls {
    pub fn watch() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let watcher = |core| {
            let (over, seen) = (Arc::clone(&over), Arc::clone(&seen));
            std::thread::spawn(move || watch(core, &over, &seen))
        };
        Self { watchers: (0..cores).map(watcher).collect(), over, seen }
    }

    /// All so far, of which the ends are in order for each core.
    pub fn seen(&self) -> Vec<Stall> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The longest that was not over before `from`.
    pub fn longest_since(&self, from: Boot) -> Duration {
        let since = self.seen().into_iter().filter(|stall| stall.from + stall.lasted > from);
        since.map(|stall| stall.lasted).max().unwrap_or_default()
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for watcher in self.watchers.drain(..) {
            watcher.join().ok();
        }
    }
}

fn watch(core: usize, over: &AtomicBool, seen: &Mutex<Vec<Stall>>) {
    let mut only = CpuSet::new();
    only.set(core).expect("there are not that many");
    // Where that core is forbidden, it watches those that are not.
    sched_setaffinity(Pid::from_raw(0), &only).ok();
    while !over.load(Ordering::Relaxed) {
        let from = boot();
        std::thread::sleep(NAP);
        let lasted = boot().since(from).saturating_sub(NAP);
        if lasted > NAP {
            let ended = Stamp(jiff::Timestamp::now().as_microsecond());
            let stall = Stall { core, from, lasted, ended };
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
        }
    }
}
