//! `soloist fence FILE -- CMD`: lets CMD write only if no newer run has been here.
//!
//! For sinks that cannot compare tokens themselves, such as a plain file. FILE remembers the newest token it has seen;
//! it is locked, checked and stored durably before CMD starts, and stays locked until CMD has ended, even if this
//! process is killed before. It knows nothing of stores and leases: the token in
//! the environment is all the proof a script needs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};

use soloist_domain::lease::Token;
use soloist_process::sabotage::{Bug, planted};

/// One record: the token twice, so that a half-written one is noticed. There are two, written in turn: whichever a
/// crash damages, the other still holds the token before it, and no command ran under the damaged one.
const RECORD: usize = 57;
const HEAD: &str = "soloist fence ";

/// Why a command was not run, or could not be.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// The token is missing or no number.
    #[error(
        "$SOLOIST_TOKEN is {0}: run this from a script that Soloist started, or through `soloist run --name NAME -- CMD`"
    )]
    NoToken(&'static str),
    /// A newer run has been here.
    #[error(
        "token {sent} is stale: {file} has seen {newest}; a newer run has taken over, so nothing was run and this one must end"
    )]
    Stale {
        /// The caller's.
        sent: Token,
        /// The file's.
        newest: Token,
        /// Which file.
        file: PathBuf,
    },
    /// The file holds something else.
    #[error(
        "{0} is not a fence, or a damaged one; nothing was run. Name another file; if it is surely a damaged fence and no old run can still be alive, delete it"
    )]
    Unreadable(PathBuf),
    /// The file cannot be used.
    #[error(
        "cannot use the fence {0}: {1}; its directory must exist and be writable for this user, on a file system with flock"
    )]
    File(PathBuf, io::Error),
    /// The command cannot be started.
    #[error("cannot run {0:?}: {1}")]
    Command(OsString, io::Error),
}

/// Runs `argv` if `token` (`$SOLOIST_TOKEN`) is not older than the newest one `file` has seen; returns its exit code,
/// or 128 + signal.
///
/// # Errors
/// [`FenceError`]; nothing was run then.
pub fn fence(file: &Path, argv: &[OsString], token: Option<&str>) -> Result<i32, FenceError> {
    let text = token.ok_or(FenceError::NoToken("not set"))?;
    let sent = Token(text.parse().map_err(|_| FenceError::NoToken("not a number"))?);
    let (command, arguments) = argv
        .split_first()
        .ok_or_else(|| FenceError::Command(OsString::new(), io::ErrorKind::InvalidInput.into()))?;
    let failed = |error| FenceError::File(file.to_owned(), error);
    let lock = open(file).map_err(failed)?;
    let slots = Slots::read(&lock)
        .map_err(failed)?
        .ok_or_else(|| FenceError::Unreadable(file.to_owned()))?;
    if let Some(newest) = slots.newest
        && sent < newest
        && !planted(Bug::FenceOpen)
    {
        return Err(FenceError::Stale { sent, newest, file: file.to_owned() });
    }
    slots.store(&lock, sent).map_err(failed)?;
    // Inherited by CMD, as flock(1) does it: when this process is killed, CMD still holds the lock.
    fcntl(&*lock, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| failed(error.into()))?;
    let status = Command::new(command)
        .args(arguments)
        .status()
        .map_err(|error| FenceError::Command(command.clone(), error))?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Opens or makes the file and waits for its lock.
fn open(file: &Path) -> io::Result<Flock<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    // A new one is this user's alone, whatever the umask; one that is there keeps the mode that an operator gave it.
    let opened = match options.clone().create_new(true).mode(0o600).open(file) {
        Ok(new) => new.set_permissions(Permissions::from_mode(0o600)).map(|()| new),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(file),
        Err(error) => Err(error),
    };
    Flock::lock(opened?, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
}

/// The two records of a fence.
struct Slots {
    newest: Option<Token>,
    write_next: usize,
}

impl Slots {
    /// `None` for something that is no fence.
    fn read(lock: &File) -> io::Result<Option<Self>> {
        let mut buffer = [0; RECORD * 2 + 1];
        let mut length = 0;
        loop {
            match lock.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::parse(&buffer[..length]))
    }

    fn parse(content: &[u8]) -> Option<Self> {
        if content.len() > RECORD * 2 {
            return None;
        }
        let first = content.get(..RECORD).and_then(parse);
        let second = content.get(RECORD..).and_then(parse);
        if first.is_none() && second.is_none() {
            // Empty, or the very first write was cut short: then no command ever ran behind this fence.
            let unborn = content.len() <= RECORD
                && content.iter().zip(HEAD.bytes()).all(|(&byte, head)| byte == head || byte == 0);
            return unborn.then_some(Self { newest: None, write_next: 0 });
        }
        Some(Self { newest: first.max(second), write_next: usize::from(first >= second) })
    }

    fn store(&self, lock: &File, token: Token) -> io::Result<()> {
        if self.newest != Some(token) {
            lock.write_all_at(record(token).as_bytes(), (self.write_next * RECORD) as u64)?;
        }
        // Also when nothing was written here: the process that wrote it may have been killed before this.
        lock.sync_all()
    }
}

fn record(token: Token) -> String {
    format!("{HEAD}{:021}{:021}\n", token.0, token.0)
}

fn parse(record: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(record).ok()?.strip_prefix(HEAD)?.strip_suffix('\n')?;
    let (first, second) = text.split_at_checked(21)?;
    (first == second).then(|| first.parse().ok().map(Token)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_record_counts_and_the_other_is_written_next() {
        let (old, new) = (record(Token(7)), record(Token(1_835_019_492_704_256)));
        assert_eq!(old.len(), RECORD);
        let read = Slots::parse(format!("{old}{new}").as_bytes()).unwrap();
        assert_eq!((read.newest, read.write_next), (Some(Token(1_835_019_492_704_256)), 0));
        let read = Slots::parse(format!("{new}{old}").as_bytes()).unwrap();
        assert_eq!((read.newest, read.write_next), (Some(Token(1_835_019_492_704_256)), 1));
        assert_eq!(Slots::parse(b"").unwrap().newest, None);
    }

    #[test]
    fn a_record_cut_short_at_any_byte_leaves_the_one_before_it() {
        let (old, new) = (record(Token(99)), record(Token(100)));
        for cut in 0..RECORD {
            // Over an older record; the last byte is the same in both.
            let older = record(Token(98));
            let torn = format!("{}{}{old}", &new[..cut], &older[cut..]);
            let seen = if cut < RECORD - 1 { Token(99) } else { Token(100) };
            assert_eq!(Slots::parse(torn.as_bytes()).unwrap().newest, Some(seen), "at {cut}");
            let growing = format!("{old}{}", &new[..cut]);
            assert_eq!(
                Slots::parse(growing.as_bytes()).unwrap().newest,
                Some(Token(99)),
                "at {cut}"
            );
        }
    }

    #[test]
    fn something_else_is_never_taken_for_a_fence() {
        let first_write_cut_short = record(Token(5));
        assert!(Slots::parse(&first_write_cut_short.as_bytes()[..9]).is_some());
        assert!(Slots::parse(&[0; RECORD]).is_some());
        for other in ["7\n", "order,date\n10248,2026\n", &"x".repeat(RECORD * 2)] {
            assert!(Slots::parse(other.as_bytes()).is_none(), "{other}");
        }
        let grown = format!("{0}{0}\n", record(Token(5)));
        assert!(Slots::parse(grown.as_bytes()).is_none());
    }
}
