//! The child that every system runs, and the record it leaves.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use soloist::clock;
use soloist::domain::time::Boot;

/// The first argument that makes the bench the child.
pub(crate) const WORD: &str = "__child";
/// Between two signs of life.
const BEAT: Duration = Duration::from_millis(5);

/// One sign of life: which holder's child, its process, and when.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub holder: String,
    pub pid: i32,
    pub at: Boot,
}

/// Writes that it lives until somebody ends it. It does nothing about any signal, so TERM ends it at once.
#[expect(clippy::disallowed_methods, reason = "a script reads what its holder gives it")]
pub(crate) fn child(file: &Path) -> ! {
    let holder = std::env::var("SOLOIST_NODE").or_else(|_| std::env::var("HOLDER"));
    let holder = holder.unwrap_or_default();
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("a file");
    loop {
        let line = format!("{holder} {} {}\n", std::process::id(), clock::boot().0);
        log.write_all(line.as_bytes()).expect("written");
        std::thread::sleep(BEAT);
    }
}

/// Everything that children wrote to `file`, in order.
pub(crate) fn beats(file: &Path) -> Vec<Beat> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let beat = |line: &str| {
        let mut words = line.split(' ');
        Some(Beat {
            holder: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            at: Boot(words.next()?.parse().ok()?),
        })
    };
    text.split_inclusive('\n').filter_map(|line| beat(line.strip_suffix('\n')?)).collect()
}
