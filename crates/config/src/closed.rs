//! Who may read and write a secret file: one rule for secrets of jobs, tokens, keys of certificates and the secrets of providers and
//! channels. It knows nothing of their content.
//!
//! Only the owner may write such a file, and only the owner may read it, with one exception: the group may read it, if the file belongs
//! to root or to this process, and the group is one of this process' own. Kubernetes makes the files of a Secret so: 0440, of root and
//! `fsGroup`.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::{Gid, Uid, getegid, getgroups};

/// What a group must never be allowed, and what nobody else must be.
const NEVER: u32 = 0o027;
/// What a group may be allowed.
const GROUP: u32 = 0o050;

/// Opens a secret file, and says what it is: the name may mean another file a moment later.
///
/// # Errors
/// Why it is refused, with its name and the remedy.
pub(super) fn open(file: &Path) -> Result<(File, Metadata), String> {
    let shown = file.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{shown} cannot be read: there is no file; correct the path, or create it, readable for the node's user alone (chmod 600)"
        ),
        _ => format!("{shown} cannot be read: {error}; correct the path or the permissions"),
    };
    // A FIFO must not keep the node waiting.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file);
    let opened = opened.map_err(failed)?;
    let found = opened.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(format!("{shown} is not a file: name the file that holds the secret"));
    }
    let mode = found.mode() & 0o7777;
    if mode & NEVER != 0 {
        let who = match mode {
            mode if mode & 0o004 != 0 => "others may read",
            mode if mode & 0o002 != 0 => "others may write",
            mode if mode & 0o020 != 0 => "its group may write",
            _ => "others may execute",
        };
        return Err(format!("{who} {shown} (mode {mode:o}): chmod 600 {shown}"));
    }
    let groups = || -> Vec<Gid> {
        let more = getgroups().unwrap_or_default();
        more.into_iter().chain([getegid()]).collect()
    };
    let owned = [0, Uid::effective().as_raw()].contains(&found.uid());
    if mode & GROUP != 0 && !(owned && groups().contains(&Gid::from_raw(found.gid()))) {
        return Err(format!(
            "the group {} may read {shown} (mode {mode:o}), and that is none of this process' own groups, or the file is another user's: chmod 600 {shown}, or chgrp it to a group of the node's user",
            found.gid()
        ));
    }
    Ok((opened, found))
}

/// The bytes of a secret file of at most `largest`.
///
/// # Errors
/// As [`open`]; and that it is larger, as `too_large` says it.
pub(super) fn read(file: &Path, largest: u64, too_large: &str) -> Result<Vec<u8>, String> {
    let (opened, _) = open(file)?;
    contents(file, opened, largest, too_large)
}

/// As [`read`], of a file that is open.
///
/// # Errors
/// That it cannot be read, or is larger than `largest`.
pub(super) fn contents(
    file: &Path,
    opened: File,
    largest: u64,
    too_large: &str,
) -> Result<Vec<u8>, String> {
    let shown = file.display();
    let mut bytes = Vec::new();
    opened.take(largest + 1).read_to_end(&mut bytes).map_err(|error| {
        format!("{shown} cannot be read: {error}; correct the path or the permissions")
    })?;
    match bytes.len() as u64 > largest {
        true => Err(format!("{shown} is larger than {} KiB: {too_large}", largest / 1024)),
        false => Ok(bytes),
    }
}

/// What `bytes` say as text: neither the mark with which some editors begin a file (U+FEFF) nor the line ends at its end belong
/// to a secret. `None`: it is not UTF-8.
pub(super) fn text(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Some(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    /// What becomes of every mode of a file of this process, in a group of its own and in a foreign one.
    #[test]
    fn nobody_but_the_owner_and_a_group_of_ours_reads_a_secret_and_nobody_else_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s");
        std::fs::write(&file, "s").unwrap();
        let own = getegid().as_raw();
        let foreign = (1..).find(|group| {
            let group = Gid::from_raw(*group);
            group != getegid() && !getgroups().unwrap().contains(&group)
        });
        for group in [own, foreign.unwrap()] {
            // Only root gives a file to a foreign group.
            if chown(&file, None, Some(group)).is_err() {
                continue;
            }
            for mode in 0o400..=0o777_u32 {
                if mode & 0o400 == 0 {
                    continue;
                }
                std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
                let closed = mode & 0o077 == 0;
                let shared = group == own && mode & 0o027 == 0;
                match open(&file) {
                    Ok(_) => assert!(closed || shared, "{mode:o} of group {group} is read"),
                    Err(why) => {
                        assert!(!closed && !shared, "{mode:o} of group {group}: {why}");
                        assert!(why.contains("chmod 600"), "{why}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_mark_before_a_secret_and_line_ends_behind_it_are_no_part_of_it() {
        for (bytes, is) in [
            ("s3cret", "s3cret"),
            ("s3cret\n", "s3cret"),
            ("s3cret\r\n", "s3cret"),
            ("s3cret\n\n", "s3cret"),
            ("s3cret\n\r\n", "s3cret"),
            ("\u{feff}s3cret\r\n", "s3cret"),
            (" s3\ncret \n", " s3\ncret "),
            ("s3\u{feff}cret", "s3\u{feff}cret"),
            ("\u{feff}\n", ""),
        ] {
            assert_eq!(text(bytes.as_bytes().to_vec()).as_deref(), Some(is), "{bytes:?}");
        }
        assert_eq!(text(b"\xff\xfes\0".to_vec()), None);
    }
}
