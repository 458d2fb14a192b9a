//! What /proc says of the processes below a node, and of the cores.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use soloist::clock;

/// How long the guards of a dead node may take: those of an older program needed minutes for a thousand jobs.
const GONE_WITHIN: Duration = Duration::from_secs(300);

/// Processes below another. A number alone proves nothing: it goes with the instant at which its process began.
#[derive(Default)]
pub(crate) struct Family(Vec<(Pid, u64)>);

impl Family {
    /// Everything below `root` now.
    pub(crate) fn of(root: Pid) -> Self {
        Self(below(root))
    }

    /// Both together.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    fn alive(&self) -> impl Iterator<Item = Pid> + '_ {
        let lives = |(pid, began): &&(Pid, u64)| {
            Stat::of(*pid).is_some_and(|stat| stat.began == *began && !stat.is_dead)
        };
        self.0.iter().filter(lives).map(|(pid, _)| *pid)
    }

    /// Waits until all have ended after the end of their node. One that does not is killed, and that is a failure.
    pub(crate) fn ended(self) {
        let begun = clock::boot();
        while self.alive().next().is_some() {
            let patient = clock::boot().since(begun) < GONE_WITHIN;
            assert!(patient, "what the dead node started is not gone within {GONE_WITHIN:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many there are, and their memory in MiB: resident, and with shared pages in proportion (Pss).
    pub(crate) fn memory(&self) -> (usize, f64, f64) {
        let (mut count, mut resident, mut proportional) = (0, 0, 0);
        for pid in self.alive() {
            let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
                continue;
            };
            count += 1;
            resident += kib(&text, "Rss:");
            proportional += kib(&text, "Pss:");
        }
        (count, resident as f64 / 1024.0, proportional as f64 / 1024.0)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for pid in self.alive().collect::<Vec<_>>() {
            // One that ended by itself meanwhile needs no signal.
            kill(pid, Signal::SIGKILL).ok();
        }
    }
}

fn below(root: Pid) -> Vec<(Pid, u64)> {
    let everybody: Vec<(Pid, Stat)> = std::fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .filter_map(|pid| Some((pid, Stat::of(pid)?)))
        .collect();
    let mut below = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in everybody.iter().filter(|(_, stat)| stat.parent == parent) {
            below.push((*pid, stat.began));
            parents.push(*pid);
        }
    }
    below
}

/// The number after `name` in a file of /proc whose lines end in `kB`.
pub(crate) fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// A line of proc_pid_stat(5).
struct Stat {
    parent: Pid,
    began: u64,
    is_dead: bool,
    ticks: u64,
    /// Of its children that ended and were waited for, and of theirs.
    of_children: u64,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Fields are counted from 3, the first after the name, which may have spaces and brackets.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
        let number = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
        Some(Self {
            parent: Pid::from_raw(fields.get(1)?.parse().ok()?),
            began: number(22)?,
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            ticks: number(14)? + number(15)?,
            of_children: number(16)? + number(17)?,
        })
    }
}

/// The CPU time of a process so far.
pub(crate) fn cpu_time(pid: Pid) -> Duration {
    ticks(Stat::of(pid).expect("it runs").ticks)
}

/// The CPU time so far of a process and all below it, also of those that have ended.
#[allow(dead_code, reason = "one of the benches that share this asks")]
pub(crate) fn cpu_of_tree(root: Pid) -> Duration {
    let below = below(root);
    let all = below.iter().map(|(pid, _)| *pid).chain([root]).filter_map(Stat::of);
    ticks(all.map(|stat| stat.ticks + stat.of_children).sum())
}

/// On every Linux that Rust's standard library runs on, a tick is a hundredth of a second.
fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 10)
}

/// CPU time of the whole machine so far.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub user: Duration,
    /// With interrupts.
    pub system: Duration,
}

impl Cpu {
    /// proc_stat(5), first line.
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").expect("Linux");
        let line = text.lines().next().unwrap_or_default();
        let all: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let of = |fields: &[usize]| ticks(fields.iter().map(|&nth| all[nth]).sum());
        Self { user: of(&[0, 1]), system: of(&[2, 5, 6]) }
    }
}
