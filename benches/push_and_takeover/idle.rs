//! What a node costs that has nothing to do.

use std::fmt::Write as _;
use std::time::Duration;

use soloist::clock;

use super::pair::Side;
use super::processes::{Family, cpu_time, kib};

/// A node with a thousand jobs that nobody wants.
pub(crate) fn measure(side: &Side, kind: &str, store: &str, seconds: usize) -> String {
    let mut jobs = String::new();
    for nth in 0..1000 {
        writeln!(jobs, "[[job]]\nname = \"job-{nth}\"\ncommand = [\"true\"]").expect("a string");
    }
    let ground = side.ground(store, &jobs);
    let before = clock::boot();
    let node = ground.start("node-a");
    let started = clock::boot().since(before);
    // A node that has just started is busy with it; two seconds later it is idle.
    std::thread::sleep(Duration::from_secs(2));
    let (cpu, at) = (cpu_time(node.pid()), clock::boot());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let spent = (cpu_time(node.pid()) - cpu).as_secs_f64() / clock::boot().since(at).as_secs_f64();
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("it runs");
    let ready = Family::of(node.pid());
    let (count, resident, proportional) = ready.memory();
    let text = format!(
        "1,000 idle jobs on {kind} ({}): listening after {} ms (wanted < 1000), {:.1} MiB resident (wanted < 100), {:.2} % of a core over {seconds} s (wanted < 2); kept ready: {count} processes, {proportional:.1} MiB Pss ({resident:.1} MiB resident)",
        side.label,
        started.as_millis(),
        kib(&status, "VmRSS:") as f64 / 1024.0,
        spent * 100.0
    );
    drop(node);
    ready.ended();
    text
}
