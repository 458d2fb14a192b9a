//! Which other processes use files of this store: the ones at its path, or earlier ones.
//!
//! There are three signs, and none of them depends on the name of a file. SQLite holds a lock on the main file for as long as it has the store
//! open, and one on the index of its log (<https://sqlite.org/wal.html>, `SHARED_FIRST` and `WAL_DMS` in its sources). And each process has a
//! socket in the abstract namespace of unix(7) that says for which path it uses which files: it lasts as long as the process, and is visible
//! also when the directory itself, or a link on the way to it, has changed. Any user of the machine may make one of that name, so only those
//! count that belong to a process of a trusted user. Processes in another network namespace do not see it; for them there is the record
//! (`record.rs`).

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::geteuid;

use super::same::{Id, SUFFIXES, beside};

/// The process that holds a lock among `bytes` of `file`, from the first one on; 0 when it is in another pid namespace. Never this process.
fn locked(file: &File, first: i64, bytes: i64) -> Option<i32> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: first,
        l_len: bytes,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_GETLK(&mut lock)).ok()?;
    (lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock.l_pid)
}

/// Another process that has the main file open as a store.
pub(super) fn user_of_main(file: &File) -> Option<i32> {
    locked(file, 0x4000_0000, 512)
}

/// Another process that has the index open.
pub(super) fn user_of_index(file: &File) -> Option<i32> {
    locked(file, 128, 1)
}

/// `process 4711 (soloist)`.
pub(super) fn process(pid: i32) -> String {
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) if pid > 0 => format!("process {pid} ({})", name.trim()),
        _ => "a process of another container".to_owned(),
    }
}

/// The directory of a store and the one above it, which is the same when the directory itself was moved away. Not one in which anybody may
/// make directories: there are strangers' in it.
pub(super) struct Directories(Vec<File>);

impl Directories {
    pub(super) fn open(dir: &Path) -> std::io::Result<Self> {
        let mut all = vec![File::open(dir)?];
        let above = dir.parent().and_then(|above| File::open(above).ok());
        all.extend(
            above.filter(|above| above.metadata().is_ok_and(|found| found.mode() & 0o002 == 0)),
        );
        Ok(Self(all))
    }

    /// Whether another process, or another container, uses a store there, whatever became of its files.
    pub(super) fn are_in_use(&self) -> bool {
        self.0.iter().any(|one| matches!(one.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Tells others so for as long as this lasts.
    pub(super) fn hold(&self) {
        for one in &self.0 {
            if let Err(error) = one.try_lock_shared() {
                tracing::debug!(%error, "nothing says that the directory of the store is in use");
            }
        }
    }
}

/// Says that this process uses the store, for as long as it lasts.
pub(super) struct Present {
    _sockets: Vec<UnixDatagram>,
}

/// Tells the sockets of one process apart.
static NTH: AtomicU32 = AtomicU32::new(0);

/// For the path as it was given, and for the one without links: a link may lead elsewhere now, and another process may write the path differently.
fn marks(path: &Path) -> Vec<String> {
    let dir = path.parent().and_then(|dir| std::fs::canonicalize(dir).ok());
    let plain = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
    let mut marks = vec![mark(path)];
    marks.extend(plain.filter(|plain| plain != path).map(|plain| mark(&plain)));
    marks
}

/// FNV-1a: the same in every build, and no secret.
fn mark(path: &Path) -> String {
    let hash =
        path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("soloist-store/{hash:016x}/")
}

impl Present {
    pub(super) fn announce(path: &Path, files: [Id; 3]) -> Self {
        let sockets = marks(path).into_iter().filter_map(|mark| Self::socket(&mark, files));
        Self { _sockets: sockets.collect() }
    }

    /// None where there are no such sockets.
    fn socket(mark: &str, files: [Id; 3]) -> Option<UnixDatagram> {
        let pid = std::process::id();
        loop {
            let nth = NTH.fetch_add(1, Ordering::Relaxed);
            let [main, log, index] = files;
            let name = format!("{mark}{main}/{log}/{index}/{pid}/{nth}");
            let bound = SocketAddr::from_abstract_name(name)
                .and_then(|name| UnixDatagram::bind_addr(&name));
            match bound {
                Ok(socket) => return Some(socket),
                // Of a process with the same number in another pid namespace.
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => {
                    tracing::debug!(%error, "no socket says that the store is in use");
                    return None;
                }
            }
        }
    }
}

/// A process that uses other files for the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) pid: i32,
    /// Its main file.
    pub(super) main: String,
    /// Of the socket that says so.
    inode: u64,
}

impl Elsewhere {
    /// Whether the process still says so. Any user may make a socket that names another process: one that does not have it, or
    /// that is of a user who has nothing to do with the store, says nothing; neither does one that this process may not look into.
    pub(super) fn lasts(&self, path: &Path) -> bool {
        sockets_of(self.pid, path).contains(&self.inode)
    }
}

/// The inodes of the sockets that a process has, if its user may be believed about the store at `path`.
fn sockets_of(pid: i32, path: &Path) -> HashSet<u64> {
    let process = Path::new("/proc").join(pid.to_string());
    let user = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    let trusted = [Some(0), Some(geteuid().as_raw()), user(path)];
    if !user(&process).is_some_and(|user| trusted.contains(&Some(user))) {
        return HashSet::new();
    }
    let fds = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let inode =
        |to: PathBuf| to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    links.filter_map(inode).collect()
}

/// The processes that use other files than `files` for this path.
pub(super) fn elsewhere(path: &Path, files: [Id; 3]) -> Vec<Elsewhere> {
    let (marks, files) = (marks(path), files.map(|file| file.to_string()));
    // The kernel tells them in parts, and may leave one out when others come and go meanwhile.
    let looks = [(); 3].map(|()| std::fs::read("/proc/net/unix").unwrap_or_default());
    let sockets = looks.map(|look| String::from_utf8_lossy(&look).into_owned()).concat();
    let mut found: Vec<_> =
        marks.iter().flat_map(|mark| others_in(&sockets, mark, &files)).collect();
    found.sort_by_key(|one| one.inode);
    found.dedup();
    let mut looked = HashMap::new();
    let mut has = |one: &Elsewhere| {
        let sockets = looked.entry(one.pid).or_insert_with(|| sockets_of(one.pid, path));
        sockets.contains(&one.inode)
    };
    found.retain(|one| has(one));
    found
}

fn others_in(sockets: &str, mark: &str, files: &[String; 3]) -> Vec<Elsewhere> {
    let lines = sockets.lines().filter_map(|line| line.split_once(mark));
    lines
        .filter_map(|(before, name)| {
            let parts: Vec<&str> = name.split('/').collect();
            let [main, log, index, pid, _] = parts[..] else { return None };
            let same = [main, log, index] == files.each_ref().map(String::as_str);
            let inode = before.split_whitespace().nth(6)?.parse().ok()?;
            let main = main.to_owned();
            Some(Elsewhere { pid: pid.parse().ok()?, main, inode }).filter(|_| !same)
        })
        .collect()
}

/// A file of the store that a process has open.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) pid: i32,
    /// Its name.
    pub(super) file: String,
    pub(super) removed: bool,
}

/// Who has files of the store at `path` open, as far as this user may look.
pub(super) fn holders(path: &Path) -> Vec<Holder> {
    let dir = path.parent().and_then(|dir| std::fs::canonicalize(dir).ok());
    let (Some(dir), Some(name)) = (dir, path.file_name()) else { return Vec::new() };
    let files = SUFFIXES.map(|suffix| beside(&dir.join(name), suffix));
    let removed = files.each_ref().map(|file| beside(file, " (deleted)"));
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        for link in open.filter_map(|fd| std::fs::read_link(fd.path()).ok()) {
            let all = files.iter().zip(&removed);
            for (file, removed) in all.filter(|(file, removed)| link == **file || link == **removed)
            {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.push(Holder { pid, file: name, removed: link == *removed });
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Every process that has a file of the store open, and `pid`, which has a lock on one.
pub(super) fn users(path: &Path, pid: i32) -> String {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let mut pids: Vec<i32> = holders(path).iter().map(|holder| holder.pid).collect();
    pids.push(pid);
    pids.retain(|pid| *pid != own);
    pids.sort_unstable();
    pids.dedup();
    let named: Vec<String> = pids.into_iter().map(process).collect();
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_uses_other_files_for_this_path_is_elsewhere() {
        let sockets = "Num RefCount Protocol\n0: 00000002 00000000 00000000 0002 01 41 @soloist-store/a/1-2/1-3/1-4/4711/0\n\
             1: 00000002 00000000 00000000 0002 01 42 @soloist-store/a/1-2/1-3/1-9/4712/9\n\
             2: 00000002 00000000 00000000 0002 01 43 @soloist-store/b/1-9/1-3/1-4/4713/0\n\
             3: 00000002 00000000 00000000 0002 01 44 @soloist-store/a/broken\n3: 0 /run/other\n";
        let files = |main: &str, index: &str| [main, "1-3", index].map(str::to_owned);
        let found = |files| others_in(sockets, "soloist-store/a/", &files);
        let one = |pid, inode| Elsewhere { pid, main: "1-2".to_owned(), inode };
        assert_eq!(found(files("1-2", "1-4")), [one(4712, 42)]);
        assert_eq!(found(files("1-2", "1-9")), [one(4711, 41)]);
        assert_eq!(found(files("1-8", "1-9")), [one(4711, 41), one(4712, 42)]);
    }

    #[test]
    fn a_process_says_which_files_it_uses_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("soloist.db");
        std::fs::write(&path, "").unwrap();
        std::fs::write(dir.path().join("another"), "").unwrap();
        let id = |path: &Path| Id::of(&std::fs::metadata(path).unwrap());
        let (one, two) = (id(&path), id(&dir.path().join("another")));
        let present = Present::announce(&path, [one; 3]);
        assert_eq!(elsewhere(&path, [one; 3]), []);
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = elsewhere(&path, [two; 3]);
        let [Elsewhere { pid: said, main, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*said, main), (pid, &one.to_string()));
        // Nobody's name keeps others from being heard, nor does another way to write the path.
        let junk = SocketAddr::from_abstract_name(b"\xff\n\xfe").unwrap();
        let _junk = UnixDatagram::bind_addr(&junk);
        let link = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), link.path().join("link")).unwrap();
        let by_link = link.path().join("link/soloist.db");
        assert_eq!(elsewhere(&by_link, [two; 3]).len(), 1);
        let here = Present::announce(&by_link, [one; 3]);
        std::fs::remove_file(link.path().join("link")).unwrap();
        assert_eq!(elsewhere(&by_link, [two; 3]).len(), 1, "the link leads nowhere");
        drop((present, here));
        assert!(!found[0].lasts(&path));
        assert_eq!(elsewhere(&path, [two; 3]), []);
    }

    #[test]
    fn a_directory_is_in_use_for_as_long_as_a_store_in_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let (data, away) = (dir.path().join("data"), dir.path().join("away"));
        std::fs::create_dir(&data).unwrap();
        let open = || Directories::open(&data).unwrap();
        let (first, second) = (open(), open());
        first.hold();
        second.hold();
        assert!(open().are_in_use());
        drop(first);
        assert!(open().are_in_use());
        std::fs::rename(&data, &away).unwrap();
        std::fs::create_dir(&data).unwrap();
        assert!(open().are_in_use(), "one that was moved away");
        drop(second);
        assert!(!open().are_in_use());
    }
}
