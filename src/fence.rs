//! `soloist fence FILE -- CMD`: lets CMD write only if no newer run has been here.
//!
//! For sinks that cannot compare tokens themselves, such as a plain file. FILE remembers the newest token it has seen;
//! it is locked, checked and stored durably before CMD starts, and stays locked until CMD has ended, even if this
//! process is killed before. It knows nothing of stores and leases: the token in
//! the environment is all the proof a script needs.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};

use crate::domain::lease::Token;

/// Wrong usage.
const USAGE: u8 = 2;
/// A newer token was seen.
const REFUSED: u8 = 4;
/// CMD is there but cannot be executed, as a shell says it.
const NOT_EXECUTABLE: u8 = 126;
/// CMD is not there, as a shell says it.
const NOT_FOUND: u8 = 127;

/// One record: the token twice, so that a half-written one is noticed. There are two, written in turn: whichever a
/// crash damages, the other still holds the token before it, and no command ran under the damaged one.
const RECORD: usize = 57;
const HEAD: &str = "soloist fence ";

/// Runs `argv` if `token` (`$SOLOIST_TOKEN`) is not older than the newest one `file` has seen. Returns CMD's exit code
/// (128 + signal), 2 for a missing token, 4 for a stale one, 126 or 127 when CMD cannot be run; each is explained on
/// standard error.
///
/// # Errors
/// When `file` cannot be opened, locked, written or is something else than a fence; the text says what to do.
pub fn fence(file: &Path, argv: &[String], token: Option<&str>) -> anyhow::Result<u8> {
    let Some((command, arguments)) = argv.split_first() else {
        eprintln!("soloist: no command to run: soloist fence FILE -- CMD ...");
        return Ok(USAGE);
    };
    let Some(token) = token.and_then(|text| text.parse().ok()).map(Token) else {
        let what = if token.is_some() { "is not a number" } else { "is not set" };
        eprintln!(
            "soloist: $SOLOIST_TOKEN {what}: run this from a script that Soloist started, or through `soloist run --name NAME -- CMD`"
        );
        return Ok(USAGE);
    };
    let file_name = file.display();
    let lock = open(file)?;
    let slots = Slots::read(&lock, file)?;
    if slots.newest.is_some_and(|newest| token < newest) {
        let newest = slots.newest.unwrap_or_default();
        eprintln!(
            "soloist: refused: token {token} is stale, {file_name} has seen {newest}. A newer run has taken over; this one must end"
        );
        return Ok(REFUSED);
    }
    if slots.newest != Some(token) {
        let offset = u64::try_from(slots.write_next * RECORD)?;
        lock.write_all_at(record(token).as_bytes(), offset)
            .with_context(|| format!("cannot write the token to {file_name}"))?;
    }
    // Also when nothing was written here: whoever wrote it may have been killed before this.
    lock.sync_data().with_context(|| format!("cannot make the token in {file_name} durable"))?;
    // Inherited by CMD, as flock(1) does it: when this process is killed, CMD still holds the lock.
    fcntl(&*lock, FcntlArg::F_SETFD(FdFlag::empty())).context("cannot pass the lock on")?;
    let status = match Command::new(command).args(arguments).status() {
        Ok(status) => status,
        Err(error) => {
            let missing = error.kind() == ErrorKind::NotFound;
            eprintln!("soloist: cannot run {command:?}: {error}");
            return Ok(if missing { NOT_FOUND } else { NOT_EXECUTABLE });
        }
    };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Opens or makes the file and waits for its lock.
fn open(file: &Path) -> anyhow::Result<Flock<File>> {
    let name = file.display();
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file);
    let opened = opened.with_context(|| {
        format!("cannot open {name}: its directory must exist and be writable for this user")
    })?;
    Flock::lock(opened, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .with_context(|| format!("cannot lock {name}: use a file system that supports flock"))
}

struct Slots {
    newest: Option<Token>,
    write_next: usize,
}

impl Slots {
    fn read(lock: &File, file: &Path) -> anyhow::Result<Self> {
        let name = file.display();
        let mut buffer = [0; RECORD * 2 + 1];
        let mut length = 0;
        loop {
            match lock.read_at(&mut buffer[length..], u64::try_from(length)?) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
            }
        }
        let content = &buffer[..length];
        let slots = [content.get(..RECORD).and_then(parse), content.get(RECORD..).and_then(parse)];
        let fits = length <= RECORD * 2;
        // The very first write was cut short: then no command ever ran behind this fence.
        let unborn = length <= RECORD
            && content.iter().zip(HEAD.bytes()).all(|(&byte, head)| byte == head || byte == 0);
        match slots {
            [None, None] if fits && unborn => Ok(Self { newest: None, write_next: 0 }),
            [None, None] => anyhow::bail!(
                "{name} is not a fence, or a damaged one; nothing was run. Name another file; if it is surely a damaged fence and no old run can still be alive, delete it"
            ),
            _ if !fits => {
                anyhow::bail!("{name} holds more than a fence; nothing was run. Name another file")
            }
            [first, second] => {
                Ok(Self { newest: first.max(second), write_next: usize::from(first >= second) })
            }
        }
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

    fn slots(content: &[u8]) -> anyhow::Result<Slots> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        Slots::read(file.as_file(), file.path())
    }

    #[test]
    fn the_newest_whole_record_counts_and_the_other_is_written_next() {
        let (old, new) = (record(Token(7)), record(Token(1_835_019_492_704_256)));
        assert_eq!(old.len(), RECORD);
        let read = slots(format!("{old}{new}").as_bytes()).unwrap();
        assert_eq!((read.newest, read.write_next), (Some(Token(1_835_019_492_704_256)), 0));
        let read = slots(format!("{new}{old}").as_bytes()).unwrap();
        assert_eq!((read.newest, read.write_next), (Some(Token(1_835_019_492_704_256)), 1));
        assert_eq!(slots(b"").unwrap().newest, None);
    }

    #[test]
    fn a_record_cut_short_at_any_byte_leaves_the_one_before_it() {
        let (old, new) = (record(Token(99)), record(Token(100)));
        for cut in 0..RECORD {
            // Over an older record; the last byte is the same in both.
            let older = record(Token(98));
            let torn = format!("{}{}{old}", &new[..cut], &older[cut..]);
            let seen = if cut < RECORD - 1 { Token(99) } else { Token(100) };
            assert_eq!(slots(torn.as_bytes()).unwrap().newest, Some(seen), "at {cut}");
            let growing = format!("{old}{}", &new[..cut]);
            assert_eq!(slots(growing.as_bytes()).unwrap().newest, Some(Token(99)), "at {cut}");
        }
    }

    #[test]
    fn something_else_is_never_taken_for_a_fence() {
        let first_write_cut_short = record(Token(5));
        assert!(slots(&first_write_cut_short.as_bytes()[..9]).is_ok());
        assert!(slots(&[0; RECORD]).is_ok());
        for other in ["7\n", "order,date\n10248,2026\n", &"x".repeat(RECORD * 2)] {
            assert!(slots(other.as_bytes()).is_err(), "{other}");
        }
        let grown = format!("{0}{0}\n", record(Token(5)));
        assert!(slots(grown.as_bytes()).is_err());
    }
}
