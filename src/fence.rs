//! `soloist fence FILE -- CMD`: lets a command write only while its token is the newest that FILE has seen.
//!
//! A script that was paused and woke up under an old token is refused here, whatever clocks say. The check, the
//! storing of the token and the command run under one lock, so no newer token can slip in between. The file holds the
//! token in decimal and a check sum; a half-written one is recognised and refused, never guessed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

/// Why a command was not run, or could not be.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// The token is missing or no number.
    #[error(
        "$SOLOIST_TOKEN is {0}: fence works inside a script that Soloist runs, or with SOLOIST_TOKEN=NUMBER in front"
    )]
    NoToken(&'static str),
    /// A newer run has been here.
    #[error(
        "token {sent} is stale: {file} has seen {newest}; another run has taken over, so nothing was run"
    )]
    Stale {
        /// The caller's.
        sent: u64,
        /// The file's.
        newest: u64,
        /// Which file.
        file: PathBuf,
    },
    /// The file holds something else.
    #[error(
        "{0} is no fence file or was half-written: look at it, and remove it if no script is running"
    )]
    Unreadable(PathBuf),
    /// The file cannot be used.
    #[error("cannot use the fence file {0}: {1}")]
    File(PathBuf, io::Error),
    /// The command cannot be started.
    #[error("cannot run {0:?}: {1}")]
    Command(String, io::Error),
}

/// Runs `argv` if `token` is not older than the newest that `file` has seen; returns its exit code, or 128 + signal.
///
/// # Errors
/// [`FenceError`]; nothing was run then.
pub fn fence(file: &Path, argv: &[String], token: Option<&str>) -> Result<i32, FenceError> {
    let text = token.ok_or(FenceError::NoToken("not set"))?;
    let sent: u64 = text.parse().map_err(|_| FenceError::NoToken("not a number"))?;
    let failed = |error| FenceError::File(file.to_owned(), error);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(file)
        .map_err(failed)?;
    let mut locked = Flock::lock(opened, FlockArg::LockExclusive)
        .map_err(|(_, error)| failed(io::Error::from(error)))?;
    let newest = read(&mut locked, file)?;
    if sent < newest {
        return Err(FenceError::Stale { sent, newest, file: file.to_owned() });
    }
    if sent > newest {
        write(&mut locked, sent).map_err(failed)?;
    }
    let Some((command, arguments)) = argv.split_first() else {
        return Err(FenceError::Command(String::new(), io::ErrorKind::InvalidInput.into()));
    };
    let status = Command::new(command)
        .args(arguments)
        .status()
        .map_err(|error| FenceError::Command(command.clone(), error))?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// The newest token; 0 for an empty file.
fn read(locked: &mut File, file: &Path) -> Result<u64, FenceError> {
    let mut text = String::new();
    locked.read_to_string(&mut text).map_err(|_| FenceError::Unreadable(file.to_owned()))?;
    if text.is_empty() {
        return Ok(0);
    }
    let parse = || {
        let (token, check) = text.strip_suffix('\n')?.split_once(' ')?;
        let token: u64 = token.parse().ok()?;
        (check == check_sum(token)).then_some(token)
    };
    parse().ok_or_else(|| FenceError::Unreadable(file.to_owned()))
}

fn write(locked: &mut File, token: u64) -> io::Result<()> {
    let line = format!("{token} {}\n", check_sum(token));
    locked.seek(SeekFrom::Start(0))?;
    locked.write_all(line.as_bytes())?;
    locked.set_len(line.len() as u64)?;
    locked.sync_all()
}

/// Tells a whole line from a torn one: digits alone cannot.
fn check_sum(token: u64) -> String {
    let sum = token.to_string().bytes().fold(7u32, |sum, b| sum.wrapping_mul(31) + u32::from(b));
    format!("{sum:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(file: &Path, token: &str) -> Result<i32, FenceError> {
        fence(file, &["true".to_owned()], Some(token))
    }

    #[test]
    fn an_older_token_is_refused_and_the_same_or_a_newer_one_passes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("fence");
        for token in ["7", "7", "9", "123456789012345"] {
            assert_eq!(run(&file, token).unwrap(), 0);
        }
        assert!(matches!(run(&file, "9"), Err(FenceError::Stale { sent: 9, .. })));
    }

    #[test]
    fn a_torn_or_foreign_file_and_a_missing_token_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("fence");
        for text in ["12", "12 00000000\n", "hello\n"] {
            std::fs::write(&file, text).unwrap();
            assert!(matches!(run(&file, "99"), Err(FenceError::Unreadable(_))), "{text:?}");
        }
        assert!(matches!(fence(&file, &[], None), Err(FenceError::NoToken(_))));
        assert!(matches!(run(&file, "x"), Err(FenceError::NoToken(_))));
    }

    #[test]
    fn the_exit_code_of_the_command_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let argv = ["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()];
        assert_eq!(fence(&dir.path().join("fence"), &argv, Some("1")).unwrap(), 3);
    }
}
