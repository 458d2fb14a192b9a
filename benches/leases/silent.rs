//! From the last renewal of a holder that then says nothing more, to the grant of the program that waits at another node.
//!
//! The time counts from before that renewal was sent, as the holder's own clock must count, and has the whole lease in it.

use std::time::Duration;

use soloist::clock::boot;

use super::http::Program;
use super::stop::switch;
use super::world::{BRIEF, World};

/// As the job's.
const TTL_MS: u64 = 1_000;

/// The times of so many silences, in each of which the one who waited becomes the next that is silent.
pub(crate) async fn measure(world: &World, name: &str, silences: usize) -> Vec<Duration> {
    switch_if_job(world, name, true).await;
    let mut holder = Program::at(&world.door(0), "shop-a").await;
    let mut waiter = Program::at(&world.door(1), "shop-b").await;
    let mut lease = holder.take(name, TTL_MS).await;
    let mut spans = Vec::with_capacity(silences);
    for _ in 0..silences {
        let from = boot();
        let (held, answer) = holder.renew(&lease, 0).await;
        assert!(held, "{answer}");
        lease = waiter.take(name, TTL_MS).await;
        spans.push(boot().since(from));
        std::mem::swap(&mut holder, &mut waiter);
    }
    holder.release(&lease).await;
    switch_if_job(world, name, false).await;
    spans
}

/// Over a connection of its own: the node closes those that are idle for long.
async fn switch_if_job(world: &World, name: &str, on: bool) {
    if name == BRIEF {
        let mut person = Program::at(&world.door(0), "person").await;
        switch(&mut person, BRIEF, on).await;
    }
}
