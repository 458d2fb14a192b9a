//! What servers of other programs have in common in tests: who runs them, who ends them, and what removes their directories.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, mpsc};

use nix::unistd::{Uid, User};

use super::small_disk::SmallDisk;

/// Ids of the user `name`, who runs a server that refuses to run as root, when we are root.
///
/// # Panics
/// When there is no such user: its package is not installed.
pub(crate) fn user(name: &str) -> Option<(u32, u32)> {
    if !Uid::effective().is_root() {
        return None;
    }
    let user = User::from_name(name).ok().flatten();
    let user = user.unwrap_or_else(|| panic!("there is no user {name}: install its package"));
    Some((user.uid.as_raw(), user.gid.as_raw()))
}

/// Removes `directory` when this process has ended, in whatever way: what all tests share is dropped by nobody.
///
/// # Panics
/// When there is no `sh`.
pub(crate) fn sweep_behind(directory: &Path) {
    // Its standard input ends with us; the server needs a moment to end as well.
    let script = "trap '' INT TERM; read -r _; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf \"$1\" && break; sleep 1; done";
    let mut sweeper = Command::new("sh");
    sweeper.args(["-c", script, "sh"]).arg(directory).current_dir("/").stdin(Stdio::piped());
    sweeper.stdout(Stdio::null()).stderr(Stdio::null());
    // Neither the pipe nor the child is ever dropped.
    std::mem::forget(sweeper.spawn().expect("sh runs"));
}

/// A child that the kernel ends with the thread that started it must be started by one that lasts: tests' threads end.
///
/// # Panics
/// When `setpriv` is not there.
pub(crate) fn spawn(command: Command, user: Option<(u32, u32)>) -> Child {
    spawn_on(None, command, user)
}

/// The same for one that is to see a file system of its own.
///
/// # Panics
/// As that.
pub(crate) fn spawn_on(
    disk: Option<&SmallDisk>,
    command: Command,
    user: Option<(u32, u32)>,
) -> Child {
    type Order = (Option<[String; 2]>, Command, Option<(u32, u32)>, mpsc::Sender<Child>);
    static KEEPER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (orders, todo) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            while let Ok((enter, mut command, user, answer)) = todo.recv() {
                let child = spawn_tied(enter, &mut command, user);
                answer.send(child).ok();
            }
        });
        orders
    });
    let (answer, child) = mpsc::channel();
    let enter = disk.map(SmallDisk::enter);
    KEEPER.send((enter, command, user, answer)).expect("the keeper lives");
    child.recv().expect("it was started")
}

/// The kernel kills it when the keeper, and so the test process, ends.
fn spawn_tied(
    enter: Option<[String; 2]>,
    command: &mut Command,
    user: Option<(u32, u32)>,
) -> Child {
    let words = enter.into_iter().flatten().chain(["setpriv".to_owned()]);
    let words: Vec<String> = words.collect();
    let mut tied = Command::new(&words[0]);
    tied.args(&words[1..]).arg("--pdeathsig").arg("KILL");
    if let Some((uid, gid)) = user {
        tied.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups");
    }
    // Set behind `setpriv`: a library that is loaded before it would make its files as root.
    tied.arg("env");
    for (name, value) in command.get_envs() {
        let mut pair = name.to_owned();
        pair.push("=");
        pair.push(value.unwrap_or_default());
        tied.arg(pair);
    }
    tied.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        tied.current_dir(directory);
    }
    let log = command.get_current_dir().map(|directory| directory.join("log"));
    let log = log.and_then(|log| std::fs::File::options().append(true).open(log).ok());
    tied.stdout(Stdio::null()).stderr(log.map_or_else(Stdio::null, Stdio::from));
    tied.spawn().expect("setpriv runs")
}

/// The server that `command` starts has a clock that the file `clock` sets (`+3600`) while it runs. What measures spans is left alone.
///
/// # Panics
/// When libfaketime is not installed.
#[allow(dead_code, reason = "not every program of tests sets a server's clock")]
pub(crate) fn give_a_clock(command: &mut Command, clock: &Path) {
    command.env("LD_PRELOAD", faketime());
    command.env("FAKETIME_TIMESTAMP_FILE", clock);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// libfaketime.
///
/// # Panics
/// When it is not installed.
#[allow(dead_code, reason = "not every program of tests sets a clock")]
pub(crate) fn faketime() -> PathBuf {
    let library = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut library = library.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    library.find(|path| path.exists()).expect("apt-get install libfaketime")
}
