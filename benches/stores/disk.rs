//! What the machine gives: the time of one fsync, the load, and what the host took away.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use soloist::clock;

/// As much as a database writes at a commit.
const PAGE: [u8; 8_192] = [7; 8_192];
const PAGES: u64 = 512;

/// A file in the directory for temporary files, where the servers' files are, too.
pub(crate) struct Disk {
    file: File,
    next: u64,
    pub spans: Vec<Duration>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let file = tempfile::tempfile().expect("a file");
        for page in 0..PAGES {
            file.write_all_at(&PAGE, page * PAGE.len() as u64).expect("written");
        }
        file.sync_all().expect("synced");
        Self { file, next: 0, spans: Vec::new() }
    }

    /// Times one: a page is written over what is there, as databases do in their logs, and synced.
    pub(crate) fn sync(&mut self) {
        let begun = clock::boot();
        let at = (self.next % PAGES) * PAGE.len() as u64;
        self.file.write_all_at(&PAGE, at).expect("written");
        self.file.sync_data().expect("synced");
        self.spans.push(clock::boot().since(begun));
        self.next += 1;
    }
}

/// The first three words of proc_loadavg(5).
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Time that a hypervisor gave to others, in seconds of one core (proc_stat(5), eighth of the first line).
pub(crate) fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let ticks = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.expect("a number") / 100.0
}
