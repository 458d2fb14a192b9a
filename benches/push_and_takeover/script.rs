//! The job of the measurements of one job: this program again. It writes when it began, and waits for its end.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use soloist::clock;
use soloist::domain::time::Boot;

use super::support::wait::until;

/// The first argument that makes this program the script.
pub(crate) const WORD: &str = "__script";

/// Says when it began and under which token, then waits for its end.
pub(crate) fn run(file: &Path) -> ! {
    let now = clock::boot();
    #[expect(clippy::disallowed_methods, reason = "a script reads what its node gives it")]
    let token = std::env::var("SOLOIST_TOKEN").unwrap_or_default();
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("a file");
    log.write_all(format!("{token} {}\n", now.0).as_bytes()).expect("written");
    loop {
        std::thread::park();
    }
}

/// Where scripts write their starts: in memory, because a busy disk holds up the first write of a new file for some
/// hundred milliseconds, which would be measured as Soloist's.
pub(crate) struct Starts {
    _directory: tempfile::TempDir,
    file: PathBuf,
}

impl Starts {
    pub(crate) fn new() -> Self {
        let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory in memory");
        let file = directory.path().join("starts");
        Self { _directory: directory, file }
    }

    /// The command of a job that writes here, as TOML.
    pub(crate) fn command(&self) -> String {
        let own = std::env::current_exe().expect("our own path").display().to_string();
        format!("[{own:?}, {WORD:?}, {:?}]", self.file.display().to_string())
    }

    /// What scripts wrote, in order: token and time.
    pub(crate) fn all(&self) -> Vec<(u64, Boot)> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let line = |line: &str| {
            let (token, at) = line.split_once(' ')?;
            Some((token.parse().ok()?, Boot(at.parse().ok()?)))
        };
        let starts: Vec<(u64, Boot)> = text.lines().filter_map(line).collect();
        assert!(starts.windows(2).all(|two| two[0].0 < two[1].0), "tokens grow: {starts:?}");
        starts
    }

    /// When start number `nth` (from 1) was; waits for it.
    pub(crate) fn nth(&self, nth: usize) -> Boot {
        until("the script starts", || self.all().get(nth - 1).map(|(_, at)| *at))
    }
}
