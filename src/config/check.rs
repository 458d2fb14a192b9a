//! What can only be known by looking at this machine: commands, directories, permissions.
//!
//! It reads metadata and changes nothing; the values were found well formed before.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A working directory that the script can enter.
fn directory(dir: &Path) -> Result<(), String> {
    let shown = dir.display();
    match std::fs::metadata(dir) {
        Err(error) => Err(format!("directory {shown}: {error}; create it, or correct the path")),
        Ok(found) if !found.is_dir() => Err(format!("{shown} is not a directory")),
        Ok(_) => access(dir, AccessFlags::R_OK | AccessFlags::X_OK).map_err(|error| {
            format!(
                "directory {shown} cannot be read: {}; change its permissions or owner",
                error.desc()
            )
        }),
    }
}

/// What a look came to, by what was looked for.
type Looks<K> = RefCell<HashMap<K, Result<(), String>>>;

/// What was found while one configuration is read: a thousand jobs with the same program look for it once.
#[derive(Default)]
pub(super) struct Found {
    programs: Looks<(String, PathBuf, String)>,
    directories: Looks<PathBuf>,
}

impl Found {
    /// As [`directory`].
    pub(super) fn directory(&self, dir: &Path) -> Result<(), String> {
        let mut known = self.directories.borrow_mut();
        match known.get(dir) {
            Some(found) => found.clone(),
            None => known.entry(dir.to_owned()).or_insert_with(|| directory(dir)).clone(),
        }
    }

    /// As [`program`].
    pub(super) fn program(&self, command: &str, dir: &Path, path: &str) -> Result<(), String> {
        let asked = (command.to_owned(), dir.to_owned(), path.to_owned());
        let look = || program(command, dir, path).map(drop);
        self.programs.borrow_mut().entry(asked).or_insert_with(look).clone()
    }
}

/// The program that `command` would start from `dir` with `path` as `PATH`.
///
/// # Errors
/// Why there is none, and what to do about it.
pub fn program(command: &str, dir: &Path, path: &str) -> Result<PathBuf, String> {
    if command.contains('/') {
        let full = dir.join(command);
        return match std::fs::metadata(&full) {
            Err(error) => Err(format!("{}: {error}; correct the path", full.display())),
            Ok(found) if !found.is_file() => Err(format!("{} is not a file", full.display())),
            Ok(found) => executable(&full, &found).map(|()| full.clone()),
        };
    }
    let mut refused = None;
    for place in std::env::split_paths(path) {
        let full = dir.join(place).join(command);
        match std::fs::metadata(&full) {
            Ok(found) if found.is_file() => match executable(&full, &found) {
                Ok(()) => return Ok(full),
                Err(why) => refused = refused.or(Some(why)),
            },
            _ => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        format!("{command:?} is not found on PATH: install it, or write its path (./{command} for a file in dir)")
    }))
}

fn executable(file: &Path, found: &Metadata) -> Result<(), String> {
    // For root access(2) says yes to any file with one x bit, and exec agrees.
    if found.permissions().mode() & 0o111 != 0 && access(file, AccessFlags::X_OK).is_ok() {
        Ok(())
    } else {
        let shown = file.display();
        Err(format!(
            "{shown} is not executable: chmod +x {shown}, or start it with its interpreter (\"sh\", {shown:?})"
        ))
    }
}

/// `["sh", "ship.sh"]`: the script that an interpreter is given, if it cannot be read.
pub(super) fn unreadable_script(command: &[String], dir: &Path) -> Option<String> {
    const INTERPRETERS: [&str; 9] =
        ["sh", "bash", "dash", "zsh", "python", "python3", "perl", "ruby", "node"];
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    let script = command.get(1).filter(|argument| !argument.starts_with('-'))?;
    let full = dir.join(script);
    if INTERPRETERS.contains(&name) && access(&full, AccessFlags::R_OK).is_err() {
        return Some(format!(
            "{} cannot be read, so {name} will fail: correct the path (it is relative to dir), or its permissions",
            full.display()
        ));
    }
    None
}

/// Whether every user of the machine may write `file`.
pub(super) fn writable_by_others(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_program_of_many_jobs_is_looked_for_once() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("ship");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (found, dir) = (Found::default(), place.path().to_owned());
        let path = dir.to_str().unwrap();
        assert_eq!(found.program("ship", &dir, path), Ok(()));
        assert_eq!(found.directory(&dir), Ok(()));
        drop(place);
        assert_eq!(found.program("ship", &dir, path), Ok(()), "it was looked for again");
        assert_eq!(found.directory(&dir), Ok(()), "it was looked for again");
        assert!(found.program("sail", &dir, path).is_err(), "another program is another question");
        assert!(Found::default().program("ship", &dir, path).is_err(), "each reading looks anew");
    }
}
