//! From before somebody switches a job off, at the last node, to the answer of the renewal in which its holder waits at the first.

use std::time::Duration;

use serde_json::json;
use soloist::clock::boot;

use super::http::Program;
use super::world::{THREAD, World};

/// Until the renewal waits.
const SETTLE: Duration = Duration::from_millis(30);
const WAIT_MS: u64 = 1_500;

/// The times of so many stops.
pub(crate) async fn measure(world: &World, stops: usize) -> Vec<Duration> {
    let mut holder = Program::at(&world.door(0), "shop").await;
    let mut person = Program::at(&world.door(1), "person").await;
    let mut spans = Vec::with_capacity(stops);
    for _ in 0..stops {
        switch(&mut person, THREAD, true).await;
        let lease = holder.take(THREAD, 5_000).await;
        let switched = async {
            tokio::time::sleep(SETTLE).await;
            let from = boot();
            switch(&mut person, THREAD, false).await;
            from
        };
        let told = async {
            let (held, answer) = holder.renew(&lease, WAIT_MS).await;
            assert!(held && answer["stop"]["why"] == "off", "{answer}");
            boot()
        };
        let (from, told) = futures_util::join!(switched, told);
        spans.push(told.since(from));
        holder.release(&lease).await;
    }
    spans
}

/// Switches a job on or off for that person.
pub(crate) async fn switch(person: &mut Program, job: &str, on: bool) {
    let path = format!("/api/v1/jobs/{job}/participation");
    let (status, answer) = person.call("PUT", &path, &json!({ "on": on })).await;
    assert_eq!(status, 200, "{answer}");
}
