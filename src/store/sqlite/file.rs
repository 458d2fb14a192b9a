//! The files of the store: where they are, who may read them, and whether they are still the same.
//!
//! Beside SQLite's own `PATH`, `PATH-wal` and `PATH-shm` there is `PATH-wake`: one byte, written after every
//! commit that published something, for which the processes that share the store wait by inotify(7). The WAL
//! itself would be a worse bell: it is written *before* its commit can be seen.

use std::cell::Cell;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::statfs::{self, FsType};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, SqliteResult};
use super::schema;
use crate::clock;
use crate::domain::time::Boot;
use crate::store::{Result, StoreError};

/// File systems of other machines: their locks and shared memory do not carry a WAL
/// (<https://sqlite.org/wal.html>), or not reliably. Numbers from statfs(2).
const REMOTE: [(FsType, &str); 6] = [
    (FsType(0x6969), "NFS"),
    (FsType(0x517b), "SMB"),
    (FsType(0xff53_4d42), "CIFS"),
    (FsType(0xfe53_4d42), "SMB2"),
    (FsType(0x0102_1997), "9P"),
    (FsType(0x00c3_6400), "Ceph"),
];

/// How long a connection sleeps before it asks again for a lock that another process holds. The handler that SQLite brings sleeps
/// up to 100 ms, and everything that comes in between goes first: of two nodes that write much, one stood still.
const LOCK_EVERY: Duration = Duration::from_micros(500);

thread_local! {
    /// For how long the connection of this thread asks for a lock.
    static PATIENCE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Since when it asks.
    static ASKING_SINCE: Cell<Boot> = const { Cell::new(Boot(0)) };
}

/// Whether to ask once more; SQLite asked `tries` times already.
fn wait_for_lock(tries: i32) -> bool {
    let now = clock::boot();
    if tries == 0 {
        ASKING_SINCE.set(now);
    }
    if now.since(ASKING_SINCE.get()) >= PATIENCE.get() {
        return false;
    }
    std::thread::sleep(LOCK_EVERY);
    true
}

/// Where the store is.
pub(super) struct Place {
    /// As it was given; for people.
    given: String,
    path: PathBuf,
    /// Of this kernel, and of the time namespace if there is one.
    pub(super) boot_id: String,
    /// Set once the files exist.
    opened: OnceLock<Opened>,
}

struct Opened {
    device: u64,
    inode: u64,
    bell: File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)
    }
}

impl Place {
    /// Understands `sqlite:PATH` (and `sqlite:///ABSOLUTE/PATH`).
    pub(super) fn parse(url: &str) -> Result<Self> {
        let given = url.strip_prefix("sqlite:").unwrap_or(url);
        let given = given.strip_prefix("//").unwrap_or(given);
        if given.is_empty() || given.ends_with('/') || given.starts_with(":memory:") {
            return Err(StoreError::Unsupported(
                "a SQLite store needs a file, in which it survives a restart: use sqlite:PATH, for example sqlite:data/soloist.db"
                    .to_owned(),
            ));
        }
        let path = std::path::absolute(given).map_err(|error| {
            StoreError::Unavailable(format!("{given}: {error}; use an absolute path"))
        })?;
        const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
        let boot_id = std::fs::read_to_string(BOOT_ID).map_err(|error| {
            StoreError::Unsupported(format!(
                "{BOOT_ID} cannot be read ({error}), so leases cannot be dated: mount /proc, or use Redis"
            ))
        })?;
        // A shifted CLOCK_BOOTTIME (time_namespaces(7)) is another clock.
        let shift = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        let shift = shift.lines().find_map(|line| line.strip_prefix("boottime")).unwrap_or("");
        let shift: Vec<&str> = shift.split_whitespace().filter(|part| *part != "0").collect();
        let boot_id = format!("{}{}", boot_id.trim(), shift.join("+"));
        Ok(Self { given: given.to_owned(), path, boot_id, opened: OnceLock::new() })
    }

    /// Creates what is missing, if it is to `make` that; brings the schema up to date and opens the writing connection.
    pub(super) fn create(&self, timeout: Duration, make: bool) -> SqliteResult<Connection> {
        // What cannot be looked at is there, and the error says why.
        let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        let found = std::fs::metadata(&self.path);
        let empty = found.as_ref().map_or_else(missing, |file| file.is_file() && file.len() == 0);
        if empty && !make {
            return Err(Fault::Store(StoreError::Absent(self.path.display().to_string())));
        }
        if let Some(dir) = self.path.parent() {
            if !dir.is_dir() {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
                made.map_err(|error| self.trouble(&dir.display().to_string(), &error))?;
            }
            self.check_file_system(dir)?;
        }
        let bell = self.open_private(&self.beside("-wake"))?;
        // One process at a time: two that switch a new file to WAL at once would disturb each other.
        self.lock(&bell, timeout)?;
        let file = self.open_private(&self.path)?;
        let known = file.metadata().map_err(|error| self.trouble(&self.given, &error))?;
        drop(file);
        let mut db = self.open(timeout)?;
        schema::refuse_strangers(&db, self)?;
        schema::may_convert(&db, self, make)?;
        let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(Fault::Store(StoreError::Unsupported(format!(
                "{self} cannot use a write-ahead log (journal_mode is {mode}): put it on a local file system"
            ))));
        }
        schema::migrate(&mut db, self)?;
        bell.unlock().map_err(|error| self.trouble(&self.given, &error))?;
        self.opened.get_or_init(|| Opened { device: known.dev(), inode: known.ino(), bell });
        Ok(db)
    }

    /// Opens one more connection that cannot write.
    pub(super) fn open_reader(&self, timeout: Duration) -> SqliteResult<Connection> {
        let db = self.open(timeout)?;
        db.pragma_update(None, "query_only", true)?;
        Ok(db)
    }

    /// Opens a connection for the thread that calls this.
    fn open(&self, timeout: Duration) -> SqliteResult<Connection> {
        // Each connection stays in one thread, so SQLite need not lock it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(&self.path, flags)?;
        PATIENCE.set(timeout);
        db.busy_handler(Some(wait_for_lock))?;
        db.set_prepared_statement_cache_capacity(256);
        // Else a statement with a join or a subquery is compiled again whenever a parameter changes, because its value might
        // choose another plan (https://sqlite.org/c3ref/prepare.html): ten times what the statement itself costs.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        Ok(db)
    }

    /// Refuses to go on with files that are not the ones at the path any more: what this process wrote there,
    /// others would never see.
    pub(super) fn check_same(&self) -> SqliteResult<()> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (opened.device, opened.inode) => Ok(()),
            _ => Err(Fault::Store(StoreError::Unavailable(format!(
                "{self} was removed or replaced while in use: put it back, or restart this node"
            )))),
        }
    }

    /// Wakes everybody who waits for events, in all processes.
    pub(super) fn ring(&self) {
        let Some(opened) = self.opened.get() else { return };
        if let Err(error) = opened.bell.write_all_at(b"!", 0) {
            // Subscribers look by themselves every second.
            tracing::warn!(store = %self, %error, "subscribers were not woken");
        }
    }

    /// The file that [`Place::ring`] writes.
    pub(super) fn bell(&self) -> PathBuf {
        self.beside("-wake")
    }

    /// Set-ups that work but deserve a word.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if statfs::statfs(&self.path).is_ok_and(|fs| fs.filesystem_type() == FsType(0x0102_1994)) {
            warnings.push(format!(
                "{self} is on a tmpfs: all of it is lost when the machine restarts; put it on a disk"
            ));
        }
        if std::fs::metadata(&self.path).is_ok_and(|file| file.mode() & 0o077 != 0) {
            warnings.push(format!(
                "{self} holds password hashes and other users may read it: chmod 600 {self}"
            ));
        }
        warnings
    }

    pub(super) fn too_slow(&self, timeout: Duration) -> StoreError {
        StoreError::Unavailable(format!("{self}: no answer within {timeout:?}"))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        PathBuf::from(path)
    }

    fn open_private(&self, path: &Path) -> SqliteResult<File> {
        let mut how = OpenOptions::new();
        let how = how.read(true).write(true).create(true).truncate(false).mode(0o600);
        how.open(path).map_err(|error| self.trouble(&path.display().to_string(), &error))
    }

    fn lock(&self, bell: &File, timeout: Duration) -> SqliteResult<()> {
        let begun = clock::boot();
        loop {
            match bell.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if clock::boot().since(begun) < timeout => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Err(Fault::Store(self.too_slow(timeout))),
                Err(TryLockError::Error(error)) => return Err(self.trouble(&self.given, &error)),
            }
        }
    }

    fn check_file_system(&self, dir: &Path) -> SqliteResult<()> {
        let Ok(found) = statfs::statfs(dir) else { return Ok(()) };
        match REMOTE.iter().find(|(kind, _)| *kind == found.filesystem_type()) {
            Some((_, name)) => Err(Fault::Store(StoreError::Unsupported(format!(
                "{self} is on a network file system ({name}), where SQLite cannot lock safely: use a local disk, or Redis"
            )))),
            None => Ok(()),
        }
    }

    fn trouble(&self, what: &str, error: &std::io::Error) -> Fault {
        Fault::Store(StoreError::Unavailable(format!(
            "{what}: {error}; check that user and permissions allow to create and write it"
        )))
    }
}
