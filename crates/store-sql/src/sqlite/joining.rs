//! How a process opens the files that are at the store's path now: alone, together with others, or not at all. See `same.rs` for the reasons.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::others::{self, Elsewhere, process};
use super::record::{Record, Spoiled};
use super::same::{CHECKED_FOR, Id, Kept, SUFFIXES, Said, beside, is_overwritten};
use soloist_domain::time::Boot;
use soloist_process::clock;

/// How others use files that are not here.
const OTHER_SIDE_FILES: &str = "with side files (-wal, -shm) that were removed or replaced. Nodes save what is in them when they notice, within a second: then stop every node, and start again";

/// Another process is seen half open, or half closed, no longer than this.
const IN_BETWEEN: Duration = Duration::from_secs(1);

/// A process that is here already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Of this machine as this process sees it: its socket is seen, too.
    Near,
    /// In another container.
    Far,
}

/// What was found before anything was opened.
pub(super) struct Arrival {
    /// Another process uses these very files.
    together: Option<Other>,
    /// The store that was used last is not the one that is here now, as far as the record says.
    doubted: bool,
    record: Option<Record>,
}

/// Looks who uses the files at `path`. `first`: nobody was here before, or what tells of it was removed. The error is for people.
pub(super) fn arrive(path: &Path, bell: &File, first: bool, boot: &str) -> Result<Arrival, String> {
    let begun = clock::boot();
    let record = Record::read(bell);
    let together = loop {
        match who_is_here(path, record.as_ref()) {
            Ok(together) => break together,
            Err((pid, how)) if clock::boot().since(begun) >= IN_BETWEEN => {
                return Err(format!("in use, by {}, {how}", others::users(path, pid)));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let main = std::fs::metadata(path).ok().filter(|main| main.len() > 0);
    let main = main.map(|main| Id::of(&main));
    let spoiled = Record::spoiled(bell);
    match &spoiled {
        Some(Spoiled { why, .. }) if together.is_some() => {
            return Err(format!("{why}: stop every node and command that uses it"));
        }
        Some(Spoiled { why, index: false }) => {
            return Err(format!(
                "{why}, so what is in it may be mixed of two: put a backup back as docs/operations.md says, or remove {} to go on with what is there",
                beside(path, "-wake").display()
            ));
        }
        Some(Spoiled { index: true, .. }) => Record::forgive(bell),
        None => {}
    }
    let log = std::fs::metadata(beside(path, "-wal")).ok().filter(|log| log.len() > 0);
    if let (Some(record), Some(main), Some(log)) = (&record, main, log)
        && together.is_none()
        && ((record.files[0] == main) != (record.files[1] == Id::of(&log))
            || record.boot == boot
                && Record::said(bell)
                    .is_some_and(|said| is_overwritten(path, record.files[2], &said)))
    {
        // SQLite cannot tell, and would write one over the other (https://sqlite.org/howtocorrupt.html, 1.4).
        return Err(format!(
            "the log beside it (-wal) is not that of this main file, because one of the two was replaced: remove {0}-wal and {0}-shm, or put the former main file back; remove {0}-wake if a sqlite3 that was killed left the log",
            path.display()
        ));
    }
    let another = match (&record, main) {
        (Some(record), Some(main)) => record.files[0] != main,
        (record, main) => record.is_some() || first && main.is_some(),
    };
    Ok(Arrival { together, doubted: another || spoiled.is_some(), record })
}

/// Whether others use the files at `path`; the error has one of them, and how it uses files that are not here. `record`: of what
/// was used last.
fn who_is_here(path: &Path, record: Option<&Record>) -> Result<Option<Other>, (i32, &'static str)> {
    let [main, log, index] = SUFFIXES.map(|suffix| Kept::open(&beside(path, suffix)).ok());
    let user = main.as_ref().and_then(|main| others::user_of_main(main));
    let of_index = index.as_ref().and_then(|index| others::user_of_index(index));
    // Nothing shows who has the log open, but an index is that of one log.
    let of_log = log.filter(|log| match (record, &main, &index) {
        (Some(Record { files, .. }), Some(main), Some(index)) => {
            (files[0], files[2]) != (main.id, index.id) || files[1] == log.id
        }
        _ => true,
    });
    match (user, of_index, of_log) {
        (None, None, _) => Ok(None),
        (Some(pid), Some(_), Some(_)) => Ok(Some(if pid > 0 { Other::Near } else { Other::Far })),
        (Some(pid), ..) => Err((pid, OTHER_SIDE_FILES)),
        (None, Some(pid), _) => Err((
            pid,
            "with another main file, which was removed or replaced: stop the nodes, then put the main file back, or remove -wal and -shm",
        )),
    }
}

impl Arrival {
    /// Something else tells that somebody may hold leases of which nothing is written here.
    pub(super) fn doubt_if(&mut self, doubted: bool) {
        self.doubted |= doubted;
    }

    /// Whether the record is of this boot.
    pub(super) fn is_of_boot(&self, boot: &str) -> bool {
        self.record.as_ref().is_some_and(|record| record.boot == boot)
    }

    /// Nobody else uses the store.
    pub(super) fn is_alone(&self) -> bool {
        self.together.is_none()
    }

    /// What others saw in the files that are used together with them.
    pub(super) fn said(&self, bell: &File) -> Option<Said> {
        self.together.and_then(|_| Record::said(bell))
    }

    /// Until when nothing may be granted, now that `files` are open; the error is for people.
    pub(super) fn calm(
        self,
        path: &Path,
        files: [Id; 3],
        boot: &str,
        longest: Duration,
    ) -> Result<Boot, String> {
        let main = files[0].to_string();
        let begun = clock::boot();
        let elsewhere = loop {
            let found = others::elsewhere(path, files);
            let same_main = found.iter().find(|one| one.main == main);
            let Some(other @ Elsewhere { pid, .. }) = same_main else { break found };
            // One that just ended removed its side files first.
            while other.lasts(path) && clock::boot().since(begun) < IN_BETWEEN {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !other.lasts(path) {
                continue;
            }
            return Err(format!("in use, by {}, {OTHER_SIDE_FILES}", others::users(path, *pid)));
        };
        // A shell that was the first to open the store made new side files, and wrote no record; but so might somebody who removed
        // those that a process of another container uses.
        let moved = self.together == Some(Other::Far)
            && self.record.as_ref().is_some_and(|record| record.files != files);
        let until =
            self.record.filter(|record| record.boot == boot).map_or(0, |record| record.calm_ns);
        let doubted = self.doubted || moved || !elsewhere.is_empty();
        if !doubted {
            return Ok(Boot(until));
        }
        let pids: Vec<String> = elsewhere.iter().map(|one| process(one.pid)).collect();
        let others =
            if pids.is_empty() { String::new() } else { format!(" ({})", pids.join(", ")) };
        tracing::warn!(
            store = %path.display(),
            "this is not the file that was used last at this path, and whoever uses the former one{others} may hold leases: nothing is granted for {longest:?}"
        );
        // Whoever uses the former one may not have looked since.
        let now = clock::boot() + longest + CHECKED_FOR;
        Ok(now.max(Boot(until)))
    }
}
