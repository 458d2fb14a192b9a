//! How this machine is, for the heartbeat: its load, its memory and its clock. Nothing is decided by it; people look at it.

use std::path::Path;

use crate::domain::time::StoreTime;
use crate::store::nodes::Vitals;

/// Of now; what this machine does not tell is left out.
#[must_use]
pub(super) fn read() -> Vitals {
    let text = |file: &str| std::fs::read_to_string(Path::new("/proc").join(file));
    let memory = text("meminfo").unwrap_or_default();
    let cores = std::thread::available_parallelism().ok();
    Vitals {
        load_percent: text("loadavg").ok().as_deref().and_then(load),
        cores: cores.and_then(|cores| u32::try_from(cores.get()).ok()),
        memory_mb: megabytes(&memory, "MemTotal:"),
        free_mb: megabytes(&memory, "MemAvailable:"),
        clock: Some(StoreTime(jiff::Timestamp::now().as_millisecond())),
        ahead_ms: None,
    }
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
        assert!(read().clock.is_some());
    }
}
