//! The condition of this machine for the heartbeat: load, memory, disk and clock. For people only; nothing is decided by it.

use std::path::Path;
use std::thread::JoinHandle;

use nix::sys::statvfs::statvfs;

use soloist_domain::time::StoreTime;
use soloist_store::nodes::Vitals;

/// Of now; what this machine does not tell is left out.
#[must_use]
pub(super) fn read(disk: Option<Room>) -> Vitals {
    let text = |file: &str| std::fs::read_to_string(Path::new("/proc").join(file));
    let memory = text("meminfo").unwrap_or_default();
    let cores = std::thread::available_parallelism().ok();
    Vitals {
        load_percent: text("loadavg").ok().as_deref().and_then(load),
        cores: cores.and_then(|cores| u32::try_from(cores.get()).ok()),
        memory_mb: megabytes(&memory, "MemTotal:"),
        free_mb: megabytes(&memory, "MemAvailable:"),
        disk_mb: disk.map(|room| room.all_mb),
        disk_free_mb: disk.map(|room| room.free_mb),
        clock: Some(StoreTime(jiff::Timestamp::now().as_millisecond())),
        ahead_ms: None,
    }
}

/// How much room a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    all_mb: u64,
    free_mb: u64,
}

/// The file system in which the node works. It is asked on a thread of its own: one of a network may not answer for minutes, and no
/// heartbeat waits for that, nor does the end of the node.
#[derive(Debug, Default)]
pub(super) struct Disk {
    asked: Option<JoinHandle<Option<Room>>>,
    known: Option<Room>,
    /// Heartbeats of this round of [`Self::EVERY`].
    beats: u32,
}

impl Disk {
    /// It is asked once in so many heartbeats.
    const EVERY: u32 = 10;

    /// As it last answered.
    pub(super) fn room(&mut self) -> Option<Room> {
        if let Some(answer) = self.asked.take_if(|asked| asked.is_finished()) {
            self.known = answer.join().ok().flatten();
        }
        if self.asked.is_none() && self.beats == 0 {
            self.asked = std::thread::Builder::new().name("disk".to_owned()).spawn(ask).ok();
        }
        self.beats = (self.beats + 1) % Self::EVERY;
        self.known
    }
}

fn ask() -> Option<Room> {
    let told = statvfs(".").ok()?;
    let megabytes = |blocks: u64| Some(blocks.checked_mul(told.fragment_size())? >> 20);
    // What is kept for root alone is not free.
    Some(Room { all_mb: megabytes(told.blocks())?, free_mb: megabytes(told.blocks_available())? })
}

/// Of the last minute, in hundredths: 0.52 is 52.
fn load(text: &str) -> Option<u32> {
    let (whole, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: u32 = hundredths.get(..2)?.parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(hundredths)
}

/// A line of `meminfo`, which counts in KiB, in MiB.
fn megabytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_memory_are_read_as_the_kernel_writes_them() {
        assert_eq!(load("0.52 0.58 0.59 1/467 12345\n"), Some(52));
        assert_eq!(load("12.05 1.00 1.00 9/9 9\n"), Some(1_205));
        for wrong in ["", "12", "x.yz", "1.5", "-1.00"] {
            assert_eq!(load(wrong), None, "{wrong}");
        }
        let memory = "MemTotal:       16384000 kB\nMemFree:  1 kB\nMemAvailable:    8192000 kB\n";
        assert_eq!(megabytes(memory, "MemTotal:"), Some(16_000));
        assert_eq!(megabytes(memory, "MemAvailable:"), Some(8_000));
        assert_eq!(megabytes("", "MemTotal:"), None);
        assert!(read(None).clock.is_some());
    }

    #[test]
    fn the_disk_is_known_once_it_has_answered() {
        let mut disk = Disk::default();
        assert_eq!(disk.room(), None, "nobody waits for it");
        while disk.asked.as_ref().is_some_and(|asked| !asked.is_finished()) {
            std::thread::yield_now();
        }
        let room = disk.room().expect("it answers");
        assert!(room.all_mb > 0 && room.free_mb <= room.all_mb, "{room:?}");
        assert!(disk.asked.is_none(), "it is not asked at each heartbeat");
        let told = read(Some(room));
        assert_eq!((told.disk_mb, told.disk_free_mb), (Some(room.all_mb), Some(room.free_mb)));
    }
}
