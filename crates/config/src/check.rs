//! Checks that need this machine: commands, directories, permissions.
//!
//! It reads metadata and first lines and changes nothing; the form of the values was checked before.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::{JobConfig, entrusted};
use soloist_domain::account::Account;
use soloist_domain::shebang;

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
type Looks<K, V = ()> = RefCell<HashMap<K, Result<V, String>>>;

/// What was found while one configuration is checked: a thousand jobs with the same program look for it once.
#[derive(Default)]
pub struct Found {
    programs: Looks<(String, PathBuf, OsString)>,
    directories: Looks<PathBuf>,
    accounts: Looks<String, Account>,
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
    pub(super) fn program(&self, command: &str, dir: &Path, path: &OsStr) -> Result<(), String> {
        let asked = (command.to_owned(), dir.to_owned(), path.to_owned());
        let look = || program(command.as_ref(), dir, path).map(drop);
        self.programs.borrow_mut().entry(asked).or_insert_with(look).clone()
    }

    /// As [`entrusted::account`].
    pub(super) fn account(&self, name: &str) -> Result<Account, String> {
        let look = || entrusted::account(name);
        self.accounts.borrow_mut().entry(name.to_owned()).or_insert_with(look).clone()
    }

    /// Why `job` cannot be started on this machine now, beginning with its key; `path` is the `PATH` of the node. It only
    /// looks, and a file system that does not answer keeps it waiting.
    #[must_use]
    pub fn obstacle(&self, job: &JobConfig, path: &OsStr) -> Option<String> {
        let program = job.command.first()?;
        let path = job.env.get("PATH").map_or(path, OsStr::new);
        let looked = self.directory(&job.dir).map_err(|why| ("dir", why));
        let looked = looked.and_then(|()| match &job.user {
            Some(user) => self.account(user).map(drop).map_err(|why| ("user", why)),
            None => Ok(()),
        });
        let looked = looked
            .and_then(|()| self.program(program, &job.dir, path).map_err(|why| ("command", why)));
        looked.err().map(|(key, why)| format!("{key}: {why}"))
    }
}

/// The program that `command` would start from `dir` with `path` as `PATH`.
///
/// # Errors
/// Why there is none, and what to do about it.
pub fn program(command: &OsStr, dir: &Path, path: &OsStr) -> Result<PathBuf, String> {
    if command.as_bytes().contains(&b'/') {
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
        let shown = command.display();
        format!("{command:?} is not found on PATH: install it, or write its path (./{shown} for a file in dir)")
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

/// What an editor of another system did to the first line of the program that `command` starts, or of the script that it gives to a shell.
pub(super) fn first_line(command: &[String], dir: &Path, path: &OsStr) -> Option<String> {
    const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
    let program = program(command.first()?.as_ref(), dir, path).ok()?;
    let name = program.file_name()?.to_str()?;
    let script = command.get(1).filter(|word| SHELLS.contains(&name) && !word.starts_with('-'));
    let script = script.map(|script| dir.join(script)).filter(|script| script.is_file());
    [Some(program.clone()), script].into_iter().flatten().find_map(|file| {
        let mut head = Vec::new();
        File::open(&file).ok()?.take(shebang::HEAD as u64).read_to_end(&mut head).ok()?;
        Some(format!("{}: {}", file.display(), shebang::fault(&head)?))
    })
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
    fn a_first_line_that_names_no_interpreter_is_named_also_of_a_script_for_a_shell() {
        let place = tempfile::tempdir().unwrap();
        let look = |text: &str, command: &[&str]| {
            let file = place.path().join("ship.sh");
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            first_line(&command, place.path(), "/usr/bin:/bin".as_ref()).unwrap_or_default()
        };
        for command in [&["./ship.sh"][..], &["sh", "ship.sh", "now"]] {
            let said = look("#!/bin/sh\r\ntrue\r\n", command);
            assert!(said.contains("ship.sh: ") && said.contains("Unix line ends"), "{said}");
            assert!(look("\u{feff}#!/bin/sh\n", command).contains("byte order mark"));
            assert_eq!(look("#!/bin/sh\ntrue\n", command), "");
        }
        assert_eq!(look("#!/bin/sh\r\n", &["python3", "ship.sh"]), "", "it reads both");
    }

    #[test]
    fn one_program_of_many_jobs_is_looked_for_once() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("ship");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (found, dir) = (Found::default(), place.path().to_owned());
        let path = dir.as_os_str();
        assert_eq!(found.program("ship", &dir, path), Ok(()));
        assert_eq!(found.directory(&dir), Ok(()));
        drop(place);
        assert_eq!(found.program("ship", &dir, path), Ok(()), "it was looked for again");
        assert_eq!(found.directory(&dir), Ok(()), "it was looked for again");
        assert!(found.program("sail", &dir, path).is_err(), "another program is another question");
        assert!(Found::default().program("ship", &dir, path).is_err(), "each reading looks anew");
    }
}
