//! From before a release is sent to the next one's grant, while a number of programs wait.
//!
//! One holds the lease for [`HOLD`] and gives it back; whoever is granted it does the same, and who gave it back asks again. So as many wait at every release. They wait at
//! all nodes in turn.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;
use tokio::sync::Notify;

use super::http::{Door, Program};
use super::world::World;

/// Long enough that who gave the lease back before stands in line again.
const HOLD: Duration = Duration::from_millis(10);
const TTL_MS: u64 = 30_000;
/// How many connect at a time.
const AT_ONCE: usize = 20;

#[derive(Default)]
struct Shared {
    released: Option<Boot>,
    spans: Vec<Duration>,
}

struct Crowd {
    name: String,
    wakes: usize,
    shared: Mutex<Shared>,
    full: Notify,
}

/// The times of so many wakes.
pub(crate) async fn measure(world: &World, waiters: usize, wakes: usize) -> Vec<Duration> {
    let name = format!("wake-{waiters}");
    let (shared, full) = (Mutex::default(), Notify::new());
    let crowd = Arc::new(Crowd { name: name.clone(), wakes, shared, full });
    let mut first = Program::at(&world.door(0), "first").await;
    let lease = first.take(&name, TTL_MS).await;
    let mut workers = Vec::with_capacity(waiters);
    for nth in 0..waiters {
        workers.push(tokio::spawn(work(world.door(nth + 1), nth, Arc::clone(&crowd))));
        if nth % AT_ONCE == AT_ONCE - 1 {
            // Not all at once: arriving is not what is measured.
            tokio::time::sleep(HOLD).await;
        }
    }
    world.until_waiting(&name, waiters).await;
    crowd.released();
    first.release(&lease).await;
    workers.push(tokio::spawn(go_on(first, Arc::clone(&crowd))));
    crowd.full.notified().await;
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        // Aborted, as said.
        drop(worker.await);
    }
    // The next measurement is not to be disturbed by those who leave.
    world.until_waiting(&name, 0).await;
    std::mem::take(&mut crowd.shared.lock().expect("nobody panicked").spans)
}

async fn work(door: Door, nth: usize, crowd: Arc<Crowd>) {
    go_on(Program::at(&door, &format!("waiter-{nth}")).await, crowd).await;
}

async fn go_on(mut program: Program, crowd: Arc<Crowd>) {
    loop {
        let lease = program.take(&crowd.name, TTL_MS).await;
        crowd.granted();
        tokio::time::sleep(HOLD).await;
        crowd.released();
        program.release(&lease).await;
    }
}

impl Crowd {
    fn granted(&self) {
        let now = boot();
        let mut shared = self.shared.lock().expect("nobody panicked");
        let released = shared.released.take().expect("somebody had it before");
        shared.spans.push(now.since(released));
        if shared.spans.len() == self.wakes {
            self.full.notify_one();
        }
    }

    /// It is about to be.
    fn released(&self) {
        self.shared.lock().expect("nobody panicked").released = Some(boot());
    }
}
