//! The files of the store: their paths, their permissions, and whether they are still the same.
//!
//! Beside SQLite's own `PATH`, `PATH-wal` and `PATH-shm` there is `PATH-wake` (`record.rs`), the bell: its first bytes are written after every
//! commit that published something. The processes that share the store wait for that by inotify(7), which wakes them for the other bytes as
//! well. The WAL itself would be a worse bell: it is written *before* its commit is visible.

use std::cell::Cell;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::statfs::{self, FsType};
use nix::unistd::geteuid;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, SqliteResult};
use super::joining;
use super::mark::{Mark, NEW_EPOCH};
use super::others::Directories;
use super::record::Record;
use super::same::{CHECKED_FOR, InUse, Kept, Lost, SUFFIXES, beside};
use super::schema;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::schema::Steps;
use soloist_store::{Result, StoreError};

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

/// For people.
const OLDER: &str = "an older copy of its content was put back while it is in use, by a sqlite3 shell or another program";

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
    /// The longest lease that another process may hold.
    longest: Duration,
    /// CLOCK_BOOTTIME; nothing is granted before, because somebody may hold what is not written here.
    calm_ns: AtomicU64,
    /// The files are not the own ones now; said once.
    lost: AtomicBool,
    /// What is in the log was written back since then.
    saved: AtomicBool,
    /// The next change is to note that turns may be held of which nothing is written here.
    doubted: AtomicBool,
    /// How far the store had come when it was last written, and how often it went back by then.
    seen: Mutex<(Mark, u64)>,
    /// Set once the files exist.
    opened: OnceLock<InUse>,
    /// Of two that close at once SQLite takes neither for the last one, and leaves the log.
    closing: Mutex<()>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)
    }
}

impl Place {
    /// Understands `sqlite:PATH` (and `sqlite:///ABSOLUTE/PATH`).
    pub(super) fn parse(url: &str, longest: Duration) -> Result<Self> {
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
        let [lost, saved, doubted] = [(); 3].map(|()| AtomicBool::new(false));
        let (calm_ns, opened) = (AtomicU64::new(0), OnceLock::new());
        let given = given.to_owned();
        let (seen, closing) = (Mutex::default(), Mutex::default());
        Ok(Self {
            given,
            path,
            boot_id,
            longest,
            calm_ns,
            lost,
            saved,
            doubted,
            seen,
            opened,
            closing,
        })
    }

    /// Creates what is missing, if it may make that; upgrades the schema and opens the writing connection.
    pub(super) fn create(&self, timeout: Duration, steps: &Steps) -> SqliteResult<Connection> {
        // What cannot be examined exists, and the error says why.
        let missing = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
        let found = std::fs::metadata(&self.path);
        let empty = found.as_ref().map_or_else(missing, |file| file.is_file() && file.len() == 0);
        if empty && !steps.make {
            return Err(Fault::Store(StoreError::Absent(self.path.display().to_string())));
        }
        if let Ok(target) = std::fs::read_link(&self.path) {
            return Err(Fault::Store(StoreError::Unsupported(format!(
                "{self} is a link to {}: name that file itself in `store`, because SQLite keeps side files beside it",
                target.display()
            ))));
        }
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        self.make_directory(dir)?;
        self.check_file_system(dir)?;
        let (bell, first) = self.make(&beside(&self.path, "-wake"))?;
        // One process at a time: two that switch a new file to WAL at once would disturb each other.
        self.lock(&bell, timeout)?;
        let arrival = joining::arrive(&self.path, &bell, first, &self.boot_id);
        let mut arrival = arrival.map_err(|why| self.away(&why))?;
        let directories =
            Directories::open(dir).map_err(|error| self.trouble(&self.given, &error))?;
        arrival.doubt_if(first && directories.are_in_use());
        directories.hold();
        // Asked again: another may have made it before this process had its turn. Nobody has a lock on a file that is new, so it
        // may be closed again.
        if !self.path.exists() {
            drop(self.make(&self.path)?);
        }
        let main = Kept::open(&self.path).map_err(|error| self.trouble(&self.given, &error))?;
        // Another store of this process may be closing: what it closes now would give up the locks that SQLite takes here.
        let shared = SUFFIXES.map(|suffix| Kept::open(&beside(&self.path, suffix)).ok());
        let mut db = self.open(timeout)?;
        schema::refuse_strangers(&db, self, steps)?;
        schema::upgrade_alone(&mut db, self, steps)?;
        let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(Fault::Store(StoreError::Unsupported(format!(
                "{self} cannot use a write-ahead log (journal_mode is {mode}): put it on a local file system"
            ))));
        }
        schema::upgrade(&mut db, self, steps)?;
        if arrival.is_alone() {
            // What a process left that was killed counts as being written back, which may go on for long: see `Said::follows`.
            db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        }
        // In this order: whoever commits in between rings after it.
        let (rung, mut backs) = Record::mark(&bell);
        let mark = Mark::read(&db)?;
        // What was rung in another boot may be newer than what reached the disk.
        if arrival.is_of_boot(&self.boot_id) && mark.is_behind(rung) {
            arrival.doubt_if(true);
            backs += 1;
            db.execute(NEW_EPOCH, [])?;
            let told = Record::went_back(&bell, backs);
            told.map_err(|error| self.trouble(&self.given, &error))?;
        }
        Record::ring(&bell, mark).map_err(|error| self.trouble(&self.given, &error))?;
        *self.seen.lock() = (mark, backs);
        let said = arrival.said(&bell);
        let used = InUse::new(&self.path, main, bell, directories, said)
            .map_err(|error| self.trouble(&self.given, &error))?;
        drop(shared);
        let calm = arrival.calm(&self.path, used.ids(), &self.boot_id, self.longest);
        let calm = calm.map_err(|why| self.away(&why))?;
        Record { files: used.ids(), boot: self.boot_id.clone(), calm_ns: calm.0 }
            .write(used.bell());
        used.check().and_then(|()| used.check_bell()).map_err(|lost| self.lost(&lost))?;
        self.calm_ns.store(calm.0, Ordering::Relaxed);
        self.doubted.store(calm > clock::boot(), Ordering::Relaxed);
        used.bell().unlock().map_err(|error| self.trouble(&self.given, &error))?;
        self.opened.get_or_init(|| used);
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

    /// Refuses to go on with files that are not the ones at the path any more, or that another program wrote into: what this process
    /// wrote there, others would never see. What it has said before stands until it is over, for one lease.
    pub(super) fn check_same(&self) -> SqliteResult<()> {
        self.judge(InUse::check_lately)
    }

    /// Checks the files once more after a change. The check writes down how the files look now: should this process be killed, the
    /// next one compares them with that.
    pub(super) fn look_again(&self) {
        if let Err(fault) = self.judge(InUse::check) {
            tracing::debug!(store = %self, ?fault, "found after a change");
        }
    }

    /// As [`Self::check_same`], and the bell too.
    pub(super) fn check_all(&self) -> SqliteResult<()> {
        self.judge(|used| used.check().and_then(|()| used.check_bell()))
    }

    fn judge(&self, check: impl Fn(&InUse) -> std::result::Result<(), Lost>) -> SqliteResult<()> {
        let Some(used) = self.opened.get() else { return Ok(()) };
        let Err(lost) = check(used) else {
            if self.lost.load(Ordering::Relaxed) {
                // Others may have used, meanwhile, what was at the path.
                self.doubt();
                self.saved.store(false, Ordering::Relaxed);
                if used.check_bell().is_ok() && self.lost.swap(false, Ordering::Relaxed) {
                    tracing::warn!(store = %self, "the store's files are back; nothing is granted for {:?}", self.longest);
                }
            }
            return Ok(());
        };
        self.doubt();
        let fault = self.lost(&lost);
        if !self.lost.swap(true, Ordering::Relaxed)
            && let Fault::Store(error) = &fault
        {
            tracing::error!(store = %self, "{error}");
        }
        Err(fault)
    }

    fn doubt(&self) {
        let calm = clock::boot() + self.longest + CHECKED_FOR;
        self.calm_ns.fetch_max(calm.0, Ordering::Relaxed);
        self.doubted.store(true, Ordering::Relaxed);
    }

    fn lost(&self, lost: &Lost) -> Fault {
        self.away(&match lost {
            Lost::Moved(why) => format!(
                "{why}, so others do not see what this process writes, and it writes no more: put it back, or stop every node and start again"
            ),
            Lost::Spoiled(why) => format!(
                "{why}: stop every node, put a backup back as docs/operations.md says, and start again"
            ),
        })
    }

    fn away(&self, why: &str) -> Fault {
        Fault::Store(StoreError::Unavailable(format!("{self}: {why}")))
    }

    /// How long nothing may be granted.
    pub(super) fn quarantine(&self, now: Boot) -> Duration {
        Boot(self.calm_ns.load(Ordering::Relaxed)).since(now)
    }

    pub(super) fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Relaxed)
    }

    pub(super) fn has_noted_doubt(&self) {
        self.doubted.store(false, Ordering::Relaxed);
    }

    /// Side files that were removed have the newest changes, which nobody sees who comes next: writes them into the main file, once, if that
    /// is still this store's. Nobody else opens the store meanwhile, because this process has it locked.
    pub(super) fn save(&self, db: &Connection) {
        let ours = || self.opened.get().is_some_and(InUse::may_write_back);
        if self.saved.swap(true, Ordering::Relaxed) || !ours() {
            return;
        }
        match db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0)) {
            Ok(0) => {
                tracing::warn!(store = %self, "what was in the side files is saved in the main file")
            }
            saved => {
                tracing::error!(store = %self, ?saved, "what was in the side files is not saved");
            }
        }
    }

    /// Closes a connection, which writes the log back if it is the last one: never over a file that another program put there.
    pub(super) fn close(&self, db: Connection) {
        let _alone = self.closing.lock();
        if self.opened.get().is_some_and(|used| !used.may_write_back())
            && let Err(error) = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::error!(store = %self, %error, "the log may be written over another file");
        }
        drop(db);
    }

    /// Whether somebody put an older copy of the store's content back: it is at `now`, and was further. Asked in the transaction of who writes,
    /// so that the first one finds it, who is told so, and all others hear.
    pub(super) fn went_back(&self, now: Mark) -> bool {
        let Some(used) = self.opened.get() else { return false };
        let (rung, backs) = Record::mark(used.bell());
        let mut seen = self.seen.lock();
        let behind = now.is_behind(seen.0.newest(rung));
        if behind || backs != seen.1 {
            self.doubt();
        }
        *seen = (if behind { now } else { seen.0.newest(now) }, backs + u64::from(behind));
        if behind {
            tracing::error!(store = %self, "{OLDER}; nothing is granted for {:?}", self.longest);
            let told = Record::went_back(used.bell(), seen.1);
            if let Err(error) = told.and_then(|()| Record::ring(used.bell(), now)) {
                tracing::error!(store = %self, %error, "other processes are not told");
            }
        }
        behind
    }

    /// As [`Self::went_back`], for a transaction that only reads: if an older copy was put back, nothing is granted and nothing is called
    /// off for one lease. The next transaction that writes tells the other processes. This is the first reading of `tx`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(super) fn doubt_if_back(&self, tx: &Connection) -> SqliteResult<()> {
        let Some(used) = self.opened.get() else { return Ok(()) };
        // In this order: what is committed in between is further, and never behind.
        let (seen, (rung, backs)) = (*self.seen.lock(), Record::mark(used.bell()));
        if Mark::read(tx)?.is_behind(seen.0.newest(rung)) || backs != seen.1 {
            self.doubt();
        }
        Ok(())
    }

    /// What is said to who asked when [`Self::went_back`] was found.
    pub(super) fn older(&self) -> Fault {
        self.away(OLDER)
    }

    /// Says how far the store has come, and wakes everybody who waits for events, in all processes, if there are new ones.
    pub(super) fn ring(&self, mark: Mark) {
        let Some(used) = self.opened.get() else { return };
        let published = {
            let mut seen = self.seen.lock();
            let before = seen.0;
            seen.0 = before.newest(mark);
            mark.event > before.event
        };
        let told = match published {
            true => Record::ring(used.bell(), mark),
            false => Record::count(used.bell(), mark),
        };
        if let Err(error) = told {
            // Subscribers look by themselves every second.
            tracing::warn!(store = %self, %error, "subscribers were not woken");
        }
    }

    /// The bytes of the bell; they change when somebody rings. `None`: they cannot be read.
    pub(super) fn rung(&self) -> Option<[u8; 16]> {
        Record::rung(self.opened.get()?.bell()).ok()
    }

    /// The file that [`Place::ring`] writes.
    pub(super) fn bell(&self) -> PathBuf {
        beside(&self.path, "-wake")
    }

    /// Those of SQLite.
    pub(super) fn files(&self) -> [PathBuf; 3] {
        SUFFIXES.map(|suffix| beside(&self.path, suffix))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Set-ups that work but deserve a warning.
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

    /// Opens `path` for its owner alone; whether it was made. What root makes belongs to the owner of the directory, as the files
    /// that SQLite makes belong to the owner of the main file: else `sudo soloist user add`, typed first, locks the service out.
    fn make(&self, path: &Path) -> SqliteResult<(File, bool)> {
        let trouble = |error| self.trouble(&path.display().to_string(), &error);
        let mut how = OpenOptions::new();
        how.read(true).write(true).mode(0o600);
        match how.clone().create_new(true).open(path) {
            Ok(file) => {
                if let Some((user, group)) = path.parent().and_then(owner) {
                    fchown(&file, Some(user), Some(group)).map_err(trouble)?;
                }
                Ok((file, true))
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A link may lead to a file that is not there yet.
                Ok((how.create(true).truncate(false).open(path).map_err(trouble)?, false))
            }
            Err(error) => Err(trouble(error)),
        }
    }

    fn make_directory(&self, dir: &Path) -> SqliteResult<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let trouble = |error| self.trouble(&dir.display().to_string(), &error);
        let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(trouble)?;
        let parent = missing.last().and_then(|first| first.parent());
        let Some((user, group)) = parent.and_then(owner) else { return Ok(()) };
        missing.iter().try_for_each(|dir| lchown(dir, Some(user), Some(group))).map_err(trouble)
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

/// To whom belongs what root makes in `dir`; none where that is root, or this process is not.
fn owner(dir: &Path) -> Option<(u32, u32)> {
    let dir = std::fs::metadata(dir).ok().filter(|_| geteuid().is_root())?;
    (dir.uid() != 0).then(|| (dir.uid(), dir.gid()))
}
