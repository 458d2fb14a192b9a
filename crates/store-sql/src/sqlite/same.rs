//! Whether the files at the store's path are still the ones that this process uses, and still say what SQLite wrote there.
//!
//! A path may be given other files at any time: by `rm`, `mv`, `cp`, a backup that is put back, a link that points elsewhere.
//! SQLite goes on with the files that it has open, and so two processes could each have a store of their own. They never
//! do, because:
//!
//! 1. *Who runs looks before each transaction*, or has looked a moment before ([`InUse::check`], [`CHECKED_FOR`]): device and inode of the main file, `-wal` and `-shm`,
//!    found by the path, are those of the open files; the newest frame of the log is the one that the index names; the index
//!    never goes back; the main file changes only when the index says that the log is written back to it (`cp` over a file
//!    keeps its inode). Else it neither renews nor grants nor shows, and what it holds ends within one lease.
//!    What SQLite itself writes for another program, as a `.restore`, is found by `mark.rs`.
//! 2. *Who comes looks for those who run* (`others.rs`), and does not open a store while a process uses the main file with
//!    other side files, or the side files with another main file. SQLite's own locks on the open files say so, whatever became of their names.
//! 3. *Who comes to files that are not the ones that were last used at this path* grants nothing for one lease and that moment
//!    (`joining.rs`). By then all is over that anybody held by the former files.
//!
//! POSIX locks belong to the process, and closing *any* descriptor of a file gives up all locks on it
//! (<https://sqlite.org/howtocorrupt.html>, 2.2). So the descriptors of [`Kept`] are shared by all stores of the process, and
//! closed with the last of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::others::{Directories, Present};
use super::record::{Record, Spoiled};
use soloist_domain::time::Boot;
use soloist_process::clock;

/// How long a check counts. It asks the kernel seven times, which costs a tenth of an act over HTTP.
pub(super) const CHECKED_FOR: Duration = Duration::from_micros(500);

/// The main file, the log and the index of the log, by what follows the path.
pub(super) const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// A file, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Id {
    device: u64,
    inode: u64,
}

impl Id {
    pub(super) fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.device, self.inode)
    }
}

/// `path` with `suffix` at its end.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut whole = OsString::from(path);
    whole.push(suffix);
    whole.into()
}

/// Every descriptor of this process on a file of a store that is not SQLite's own.
static KEPT: Mutex<BTreeMap<Id, Arc<File>>> = Mutex::new(BTreeMap::new());

/// An open file of a store; see the head of this file.
pub(super) struct Kept {
    pub(super) id: Id,
    /// Until it is dropped.
    file: Option<Arc<File>>,
}

impl Kept {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut all = KEPT.lock();
        let id = Id::of(&std::fs::metadata(path)?);
        if let Some(file) = all.get(&id) {
            return Ok(Self { id, file: Some(Arc::clone(file)) });
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let id = Id::of(&file.metadata()?);
        // Replaced in between by one that is open already: that one is left open rather than closed.
        if let Some(open) = all.get(&id) {
            std::mem::forget(file);
            return Ok(Self { id, file: Some(Arc::clone(open)) });
        }
        let file = Arc::new(file);
        all.insert(id, Arc::clone(&file));
        Ok(Self { id, file: Some(file) })
    }
}

impl Deref for Kept {
    type Target = File;
    fn deref(&self) -> &File {
        self.file.as_ref().expect("it is not dropped")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Held until it is closed, so that nobody opens it anew meanwhile.
        let mut all = KEPT.lock();
        self.file = None;
        if all.get(&self.id).is_some_and(|file| Arc::strong_count(file) == 1) {
            all.remove(&self.id);
        }
    }
}

/// What the files say of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    /// Another one whenever the log begins anew.
    salt: [u8; 8],
    /// In the log.
    frames: u32,
    /// Frames that were written back to the main file.
    written_back: u32,
    /// Frames that somebody began to write back.
    begun: u32,
    /// Seconds, nanoseconds and length of the main file.
    main: (i64, i64, u64),
}

/// The head of the index (<https://sqlite.org/walformat.html>, 2.2): twice the same, then how far the log was written back.
#[derive(Clone, Copy)]
struct Index([u8; 136]);

const HEAD: usize = 48;

impl Index {
    /// None while somebody writes it.
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut raw = [0; 136];
        file.read_exact_at(&mut raw, 0)?;
        let whole = raw[..HEAD] == raw[HEAD..2 * HEAD] && raw[12] != 0;
        Ok(whole.then_some(Self(raw)))
    }

    /// As this machine keeps numbers.
    fn number(&self, at: usize) -> u32 {
        u32::from_ne_bytes(four(&self.0, at))
    }

    fn page(&self) -> u64 {
        match u16::from_ne_bytes([self.0[14], self.0[15]]) {
            1 => 65_536,
            size => size.into(),
        }
    }

    fn salt(&self) -> [u8; 8] {
        let mut salt = [0; 8];
        salt.copy_from_slice(&self.0[32..40]);
        salt
    }

    fn same(&self, other: &Self) -> bool {
        let parts = [0..HEAD, 96..100, 128..132];
        parts.into_iter().all(|part| self.0[part.clone()] == other.0[part])
    }

    fn said(&self, main: &Metadata) -> Said {
        Said {
            salt: self.salt(),
            frames: self.number(16),
            written_back: self.number(96),
            begun: self.number(128),
            main: (main.mtime(), main.mtime_nsec(), main.len()),
        }
    }
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    number
}

fn big(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(four(bytes, at))
}

/// What was wrong, as the words behind the name of the file.
type Wrong = (usize, &'static str);

/// What was found to be wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// Other files are at the path, or none: the own ones may come back.
    Moved(String),
    /// Another program wrote into the own ones.
    Spoiled(String),
}

/// The files that this process uses.
pub(super) struct InUse {
    paths: [PathBuf; 3],
    files: [Kept; 3],
    bell_at: PathBuf,
    bell: File,
    bell_id: Id,
    seen: Mutex<Seen>,
    /// CLOCK_BOOTTIME; all was well then.
    checked_ns: AtomicU64,
    spoiled: OnceLock<String>,
    _directories: Directories,
    _present: Present,
}

#[derive(Default)]
struct Seen {
    said: Option<Said>,
    /// The greatest length of the index.
    index: u64,
}

impl InUse {
    /// Of the files that are open now. `said` is what others saw last, who use them too.
    pub(super) fn new(
        path: &Path,
        main: Kept,
        bell: File,
        _directories: Directories,
        said: Option<Said>,
    ) -> io::Result<Self> {
        let paths = SUFFIXES.map(|suffix| beside(path, suffix));
        let (log, index) = (Kept::open(&paths[1])?, Kept::open(&paths[2])?);
        let (bell_at, bell_id) = (beside(path, "-wake"), Id::of(&bell.metadata()?));
        let seen = Mutex::new(Seen { said, index: 0 });
        let (checked_ns, spoiled) = (AtomicU64::new(0), OnceLock::new());
        let files = [main, log, index];
        let _present = Present::announce(path, files.each_ref().map(|file| file.id));
        Ok(Self {
            paths,
            files,
            bell_at,
            bell,
            bell_id,
            seen,
            checked_ns,
            spoiled,
            _directories,
            _present,
        })
    }

    pub(super) fn ids(&self) -> [Id; 3] {
        self.files.each_ref().map(|file| file.id)
    }

    pub(super) fn bell(&self) -> &File {
        &self.bell
    }

    /// Whether the bell is still the one at the path. It only saves time, so it is not asked for before each transaction.
    pub(super) fn check_bell(&self) -> Result<(), Lost> {
        match std::fs::metadata(&self.bell_at) {
            Ok(found) if Id::of(&found) == self.bell_id => Ok(()),
            found => Err(moved(&self.bell_at, &found)),
        }
    }

    /// As [`Self::check`], unless a check within [`CHECKED_FOR`] found nothing wrong.
    pub(super) fn check_lately(&self) -> Result<(), Lost> {
        let checked = Boot(self.checked_ns.load(Ordering::Relaxed));
        if clock::boot().since(checked) < CHECKED_FOR { Ok(()) } else { self.check() }
    }

    /// See the head of this file.
    pub(super) fn check(&self) -> Result<(), Lost> {
        // Before the look, which may take long.
        let now = clock::boot();
        let looked = self.look();
        // Should one thread find something, no other thread relies on an earlier check.
        let checked = if looked.is_ok() { now.0 } else { 0 };
        self.checked_ns.store(checked, Ordering::Relaxed);
        looked
    }

    fn look(&self) -> Result<(), Lost> {
        if let Some(why) = self.spoiled.get() {
            return Err(Lost::Spoiled(why.clone()));
        }
        let mut index = 0;
        for (path, file) in self.paths.iter().zip(&self.files) {
            match std::fs::metadata(path) {
                Ok(found) if Id::of(&found) == file.id => index = found.len(),
                found => return Err(moved(path, &found)),
            }
        }
        let mut seen = self.seen.lock();
        let before = seen.said;
        let judged = if index < seen.index {
            Err((2, "was cut short"))
        } else {
            seen.index = index;
            self.judge(&mut seen.said)
        };
        match judged {
            Ok(()) => {
                let turned = |before: Said, now: Said| !before.same_turn(&now);
                if let Some(now) = seen.said
                    && before.is_none_or(|before| turned(before, now))
                {
                    Record::write_said(&self.bell, &now);
                }
                Ok(())
            }
            Err((which, how)) => Err(self.spoil(which, how, seen.index)),
        }
    }

    fn spoil(&self, which: usize, how: &str, index: u64) -> Lost {
        // Else SQLite, which has it in its memory, dies of SIGBUS. It makes an empty index anew from the log.
        if self.files[2].metadata().is_ok_and(|now| now.len() < index)
            && let Err(error) = self.files[2].set_len(index)
        {
            tracing::error!(%error, "the index of the log cannot be given back its length");
        }
        let why = format!("{} {how} by another program while in use", name(&self.paths[which]));
        Record::write_spoiled(&self.bell, &Spoiled { why: why.clone(), index: which == 2 });
        Lost::Spoiled(self.spoiled.get_or_init(|| why).clone())
    }

    /// Compares what the files say with each other and with what was `seen` last.
    fn judge(&self, seen: &mut Option<Said>) -> Result<(), Wrong> {
        let cut = |error: io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => (2, "was cut short"),
            _ => (2, "cannot be read, or was overwritten"),
        };
        let Some(before) = Index::read(&self.files[2]).map_err(cut)? else { return Ok(()) };
        let Ok(main) = self.files[0].metadata() else { return Ok(()) };
        let fits = self.log_fits(&before);
        // Somebody wrote meanwhile: the next look will tell.
        let Some(after) = Index::read(&self.files[2]).map_err(cut)? else { return Ok(()) };
        if !before.same(&after) {
            return Ok(());
        }
        let now = before.said(&main);
        if !fits {
            return Err((1, "was overwritten or cut short"));
        }
        if let Some(seen) = seen {
            now.follows(seen)?;
        }
        *seen = Some(now);
        Ok(())
    }

    /// Whether the log ends with the frame that the index names.
    fn log_fits(&self, index: &Index) -> bool {
        let (frames, salt, log) = (index.number(16), index.salt(), &self.files[1]);
        if frames == 0 {
            // It begins anew; whoever commits first gives it a new head before the index names it.
            return true;
        }
        let mut frame = [0; 24];
        let at = 32 + u64::from(frames - 1) * (24 + index.page());
        log.read_exact_at(&mut frame, at).is_ok()
            && frame[8..16] == salt
            && big(&frame, 16) == index.number(24)
            && big(&frame, 20) == index.number(28)
    }

    /// Whether SQLite may write the log back as the last of all closes the store: not over a file that is another's by now.
    pub(super) fn may_write_back(&self) -> bool {
        if self.spoiled.get().is_some() {
            return false;
        }
        match self.check() {
            Ok(()) => true,
            Err(Lost::Spoiled(_)) => false,
            // Only side files are gone: what is in them is saved by this.
            Err(Lost::Moved(_)) => {
                let main = std::fs::metadata(&self.paths[0]);
                main.is_ok_and(|main| Id::of(&main) == self.files[0].id)
                    && self.judge(&mut self.seen.lock().said).is_ok()
            }
        }
    }
}

impl Said {
    /// Whether the log neither began anew nor was written back between the two.
    fn same_turn(&self, other: &Self) -> bool {
        (self.salt, self.written_back, self.begun) == (other.salt, other.written_back, other.begun)
    }

    /// What follows `seen` when only SQLite writes.
    fn follows(&self, seen: &Self) -> Result<(), Wrong> {
        if self.salt == seen.salt && self.frames < seen.frames {
            return Err((2, "was overwritten"));
        }
        // One that was begun and not ended may be begun again, under the same numbers.
        if self.same_turn(seen) && self.written_back == self.begun && self.main != seen.main {
            return Err((0, "was overwritten"));
        }
        Ok(())
    }
}

/// Whether another program wrote into the main file since somebody `said` what is in the files, while a log was left: SQLite would lay that over it.
/// Only the index that was used, `own`, tells.
pub(super) fn is_overwritten(path: &Path, own: Id, said: &Said) -> bool {
    let looked = || {
        let index = Kept::open(&beside(path, "-shm")).ok().filter(|index| index.id == own)?;
        let index = Index::read(&index).ok()??;
        Some(index.said(&std::fs::metadata(path).ok()?))
    };
    looked().is_some_and(|now| matches!(now.follows(said), Err((0, _))))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn moved(path: &Path, found: &io::Result<Metadata>) -> Lost {
    let name = name(path);
    Lost::Moved(match found {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            format!("{name} cannot be looked at ({error})")
        }
        _ => format!("{name} was removed or replaced while in use"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(salt: u8, frames: u32, back: (u32, u32), main: i64) -> Said {
        let (written_back, begun) = back;
        Said { salt: [salt; 8], frames, written_back, begun, main: (main, 0, 4_096) }
    }

    /// What SQLite does, in every order: commits, writes back whole or in part, begins the log anew.
    #[test]
    fn what_sqlite_does_to_its_files_is_never_taken_for_a_replacement() {
        let ordinary = [
            said(1, 0, (0, 0), 1),
            said(1, 5, (0, 0), 1),
            said(1, 5, (0, 5), 2),
            said(1, 5, (0, 5), 3),
            said(1, 9, (5, 5), 4),
            said(1, 9, (9, 9), 5),
            said(2, 0, (0, 0), 5),
            said(2, 3, (0, 0), 5),
            said(7, 3, (0, 0), 5),
        ];
        for (which, seen) in ordinary.iter().enumerate() {
            for now in &ordinary[which..] {
                // Between two looks any number of steps may have been made, but none with the same turn and another main file.
                let steady = now.same_turn(seen) && now.written_back == now.begun;
                if !steady || now.main == seen.main {
                    assert_eq!(now.follows(seen), Ok(()), "{seen:?} -> {now:?}");
                }
            }
        }
    }

    #[test]
    fn an_index_that_goes_back_and_a_main_file_that_changes_by_itself_are_found() {
        let seen = said(1, 5, (2, 2), 1);
        assert_eq!(said(1, 4, (2, 2), 1).follows(&seen), Err((2, "was overwritten")));
        assert_eq!(said(1, 5, (2, 2), 2).follows(&seen), Err((0, "was overwritten")));
        assert_eq!(said(1, 6, (2, 2), 2).follows(&seen), Err((0, "was overwritten")));
        let longer = Said { main: (1, 0, 8_192), ..seen };
        assert_eq!(longer.follows(&seen), Err((0, "was overwritten")));
    }
}
