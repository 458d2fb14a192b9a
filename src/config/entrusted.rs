//! The user that a job runs as, and the files of its secrets: what this machine says of them now. It keeps nothing.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::{Uid, User, getgrouplist};

use crate::domain::account::Account;

/// Largest secret in bytes.
const LARGEST: u64 = 64 * 1024;
/// The bits of a file's mode by which other users may read or write it.
const OTHERS: u32 = 0o066;

/// Why a secret cannot be used.
#[derive(Debug)]
pub struct SecretProblem {
    /// There is no such file (now: it may come before the job starts).
    pub missing: bool,
    /// What is wrong, with the file and the remedy, never with the value.
    pub text: String,
}

/// A user of this machine that this process may run a script as.
///
/// # Errors
/// Why not, with the remedy.
pub fn account(name: &str) -> Result<Account, String> {
    let unknown = || {
        format!(
            "there is no user {name:?} on this machine: create it, or correct the name (getent passwd {name})"
        )
    };
    let failed = |error: nix::Error| {
        format!(
            "the user {name:?} cannot be looked up: {}; try again, or see getent passwd",
            error.desc()
        )
    };
    let user = User::from_name(name).map_err(failed)?.ok_or_else(unknown)?;
    let own = Uid::effective();
    if !own.is_root() && user.uid != own {
        let own =
            User::from_uid(own).ok().flatten().map_or_else(|| own.to_string(), |own| own.name);
        return Err(format!(
            "only a node that is root can run a script as {name:?}, and this one is {own:?}: run the node as root, or as {name}, or leave out user"
        ));
    }
    let in_c = CString::new(name).map_err(|_| unknown())?;
    let groups = getgrouplist(&in_c, user.gid).map_err(failed)?;
    Ok(Account {
        name: user.name,
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        groups: groups.into_iter().map(|group| group.as_raw()).collect(),
        home: user.dir.to_string_lossy().into_owned(),
    })
}

/// Where on the way to `dir` an account is not let through, by the modes of the directories; `None`: nowhere. (An access
/// list may say otherwise, so this is worth a warning and no more.)
pub(super) fn closed_to<'a>(account: &Account, dir: &'a Path) -> Option<&'a Path> {
    if account.uid == 0 {
        return None;
    }
    let closed = |dir: &&Path| {
        std::fs::metadata(dir).is_ok_and(|found| {
            let bits = if found.uid() == account.uid {
                found.mode() >> 6
            } else if account.groups.contains(&found.gid()) {
                found.mode() >> 3
            } else {
                found.mode()
            };
            bits & 1 == 0
        })
    };
    dir.ancestors().filter(closed).last()
}

/// The content of a secret, without the line break at its end.
///
/// # Errors
/// [`SecretProblem`].
pub fn secret(file: &Path) -> Result<String, SecretProblem> {
    let shown = file.display();
    let bad = |text: String| SecretProblem { missing: false, text };
    let failed = |error: io::Error| SecretProblem {
        missing: error.kind() == io::ErrorKind::NotFound,
        text: match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no file {shown}: create it, readable for the node's user alone (chmod 600)"
            ),
            _ => format!("{shown} cannot be read: {error}; correct the path or the permissions"),
        },
    };
    // A FIFO must not keep the node waiting.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file);
    let opened = opened.map_err(failed)?;
    // The metadata of what was opened: the name may mean another file by now.
    let found = opened.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(bad(format!("{shown} is not a file: name the file that holds the secret")));
    }
    if found.mode() & OTHERS != 0 {
        return Err(bad(format!(
            "others may read or write {shown} (mode {:o}): chmod 600 {shown}",
            found.mode() & 0o7777
        )));
    }
    let own = Uid::effective().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(bad(format!(
            "{shown} belongs to the user {}, who could change it: chown it to the node's user ({own}) or to root",
            found.uid()
        )));
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(bad(format!(
            "{shown} is larger than 64 KiB: give its path in env instead, and have the script read it"
        )));
    }
    if bytes.contains(&0) {
        return Err(bad(format!(
            "{shown} contains a NUL character, which no variable can hold: store it as text, for example in base64"
        )));
    }
    let Ok(mut text) = String::from_utf8(bytes) else {
        return Err(bad(format!("{shown} is not UTF-8: store it as text, for example in base64")));
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_read_without_its_line_break_and_refused_when_it_is_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("db");
        let write = |content: &[u8], mode: u32| {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            secret(&file).map_err(|problem| problem.text)
        };
        assert_eq!(write(b"s3cret\n", 0o600).as_deref(), Ok("s3cret"));
        assert_eq!(write(b"s3cret\r\n", 0o400).as_deref(), Ok("s3cret"));
        assert_eq!(write(b" s3cret\n\n", 0o600).as_deref(), Ok(" s3cret\n"));
        for mode in [0o640, 0o604, 0o620, 0o602, 0o644] {
            let why = write(b"s3cret", mode).unwrap_err();
            assert!(why.contains("chmod 600") && !why.contains("s3cret"), "{why}");
        }
        assert!(write(b"s3\0cret", 0o600).unwrap_err().contains("NUL"));
        assert!(write(b"s3\xff", 0o600).unwrap_err().contains("UTF-8"));
        assert!(write(&[b'x'; 64 * 1024], 0o600).is_ok());
        assert!(write(&[b'x'; 64 * 1024 + 1], 0o600).unwrap_err().contains("64 KiB"));
        assert!(secret(dir.path()).unwrap_err().text.contains("not a file"));
        assert!(secret(&dir.path().join("none")).unwrap_err().missing);
    }
}
