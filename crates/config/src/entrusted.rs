//! The user of a job and the files of its secrets: what this machine says about them now. It keeps nothing.

use std::ffi::CString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Uid, User, getgrouplist};

use super::closed;
use soloist_domain::account::Account;

/// Largest secret in bytes.
const LARGEST: u64 = 64 * 1024;
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

/// The content of a secret, without a mark before it and the line ends behind it. Whoever makes the file in a volume swaps a
/// link: each call reads its current target.
///
/// # Errors
/// What is wrong, with the file and the remedy, never with the value.
pub fn secret(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let (opened, found) = closed::open(file)?;
    let own = Uid::effective().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(format!(
            "{shown} belongs to the user {}, who could change it: chown it to the node's user ({own}) or to root",
            found.uid()
        ));
    }
    let remedy = "give its path in env instead, and have the script read it";
    let bytes = closed::contents(file, opened, LARGEST, remedy)?;
    if bytes.contains(&0) {
        return Err(format!(
            "{shown} contains a NUL character, which no variable can hold: store it as text, for example in base64"
        ));
    }
    match closed::text(bytes) {
        Some(text) if text.is_empty() => Err(format!("{shown} is empty: write the secret into it")),
        Some(text) => Ok(text),
        None => Err(format!("{shown} is not UTF-8: store it as text, for example in base64")),
    }
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
            secret(&file)
        };
        assert_eq!(write(b"s3cret\n", 0o600).as_deref(), Ok("s3cret"));
        assert_eq!(write(b"s3cret\r\n", 0o400).as_deref(), Ok("s3cret"));
        assert_eq!(write(b"\xef\xbb\xbf s3cret\n\n", 0o600).as_deref(), Ok(" s3cret"));
        assert!(write(b"\xef\xbb\xbf\n", 0o600).unwrap_err().contains("is empty"));
        for mode in [0o604, 0o620, 0o602, 0o644] {
            let why = write(b"s3cret", mode).unwrap_err();
            assert!(why.contains("chmod 600") && !why.contains("s3cret"), "{why}");
        }
        assert!(write(b"s3\0cret", 0o600).unwrap_err().contains("NUL"));
        assert!(write(b"s3\xff", 0o600).unwrap_err().contains("UTF-8"));
        assert!(write(&[b'x'; 64 * 1024], 0o600).is_ok());
        assert!(write(&[b'x'; 64 * 1024 + 1], 0o600).unwrap_err().contains("64 KiB"));
        assert!(secret(dir.path()).unwrap_err().contains("not a file"));
        assert!(secret(&dir.path().join("none")).unwrap_err().contains("there is no file"));
    }
}
