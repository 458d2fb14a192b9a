//! The beginning of a run in its guard: it starts the script on the planned level of containment, or on the next that
//! works here and now. A guard that falls back says why; a guard that may not fall back starts nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::cgroup::RunCgroup;
use super::choice::Choice;
use super::init::{Init, NotBegun};
use super::kernel::{self, Doors};
use super::message::Plan;
use super::tree::Held;
use soloist_domain::containment::Containment;
use soloist_domain::shebang;
use soloist_domain::time::Boot;
use soloist_process::sabotage;

/// A script that runs.
pub(super) struct Begun {
    /// By the numbers of this process, and of the node.
    pub(super) script: Pid,
    pub(super) held: Held,
    pub(super) containment: Containment,
    pub(super) weaker_because: Option<String>,
}

/// The level that is planned, unless a planted bug needs the weakest.
pub(super) fn planned(choice: &Choice) -> Containment {
    match sabotage::needs_the_weakest_containment() {
        true => Containment::Subreaper,
        false => choice.level,
    }
}

/// Starts the script of `plan`, by the init `ready` if there is one.
///
/// # Errors
/// Why nothing runs, with the remedy.
pub(super) fn begin(plan: &Plan, deadline: Boot, mut ready: Option<Init>) -> Result<Begun, String> {
    let planned = planned(&plan.containment);
    let mut weaker_because: Option<String> = None;
    for containment in Containment::ALL.into_iter().filter(|level| *level >= planned) {
        let why = match begin_in(containment, plan, deadline, ready.take()) {
            Ok((script, held)) => return Ok(Begun { script, held, containment, weaker_because }),
            Err(NotBegun::Script(error)) => return Err(explain(plan, &error)),
            Err(NotBegun::NoInit) => "the first process of a new namespace died at once".to_owned(),
            Err(NotBegun::Namespace(why)) => why,
        };
        if plan.containment.demanded {
            return Err(format!(
                "nothing was started: containment by {planned} is demanded and cannot be had now: {why}; or write containment = \"auto\""
            ));
        }
        // The first is the cause; that a machine has no cgroups either was known before.
        weaker_because.get_or_insert(why);
    }
    Err("the script could not be contained at all".to_owned())
}

fn begin_in(
    containment: Containment,
    plan: &Plan,
    deadline: Boot,
    ready: Option<Init>,
) -> Result<(Pid, Held), NotBegun> {
    match containment {
        Containment::PidNamespace => {
            let begun = match ready.map(|init| init.start(plan, deadline)) {
                // It died while it waited, or there was none.
                None | Some(Err(NotBegun::NoInit)) => Init::make()?.start(plan, deadline),
                Some(begun) => begun,
            };
            begun.map(|(init, script)| (script, Held::Namespace(init)))
        }
        Containment::Cgroup => {
            let no = |error: io::Error| NotBegun::Namespace(format!("its cgroup: {error}"));
            let path = plan.containment.cgroup_of(&plan.node, &plan.run);
            let path = path.ok_or_else(|| no(io::ErrorKind::Unsupported.into()))?;
            let cgroup = RunCgroup::create(path).map_err(no)?;
            let doors = Doors { cgroup: Some(cgroup.door().map_err(no)?), ..Doors::default() };
            match kernel::start(plan, deadline, doors) {
                Ok(script) => Ok((script, Held::Cgroup(cgroup))),
                Err(error) => {
                    cgroup.remove();
                    Err(NotBegun::Script(error))
                }
            }
        }
        Containment::Subreaper => kernel::start(plan, deadline, Doors::default())
            .map(|script| (script, Held::Below))
            .map_err(NotBegun::Script),
    }
}

/// Why the script did not start, with the remedy.
fn explain(plan: &Plan, error: &io::Error) -> String {
    let command = plan.argv.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let command = format!("{:?}", command.chars().take(200).collect::<String>());
    let node = &plan.node;
    if !plan.dir.is_dir() {
        let dir: String = plan.dir.display().to_string().chars().take(200).collect();
        return format!("the directory {dir} does not exist on {node}: make it, or change `dir`");
    }
    if error.raw_os_error() == Some(Errno::ETIME as i32) {
        return format!(
            "{command} was not started: the lease ran out before it could be; if this repeats, use a longer `lease_ttl`"
        );
    }
    if let Some(user) = plan.account.as_ref().map(|account| &account.name)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        let dir: String = plan.dir.display().to_string().chars().take(200).collect();
        return match error.raw_os_error() == Some(Errno::EPERM as i32) {
            true => format!(
                "{command} was not started: the node on {node} may not become the user {user}; run the node as root, or leave out `user`"
            ),
            false => format!(
                "{command} was not started: the user {user} may not execute it, or may not enter {dir}, on {node}; change the owner or the permissions"
            ),
        };
    }
    match error.kind() {
        io::ErrorKind::NotFound => match first_line(plan) {
            Some(why) => format!("{command} could not be started on {node}: {why}"),
            None => format!(
                "the command {command} (or its interpreter) was not found on {node}: install it, or write its whole path in `command`"
            ),
        },
        io::ErrorKind::PermissionDenied => format!(
            "{command} may not be executed on {node}: chmod +x it, or name its interpreter first in `command`"
        ),
        _ => format!("{command} could not be started on {node}: {error}"),
    }
}

/// What is wrong with the first line of the script, if there is a script.
fn first_line(plan: &Plan) -> Option<String> {
    let command = plan.argv.first()?;
    let path = plan.env.get(OsStr::new("PATH")).map_or(OsStr::new(""), OsString::as_os_str);
    let places = std::env::split_paths(path).map(|place| place.join(command));
    let file = match command.as_bytes().contains(&b'/') {
        true => plan.dir.join(command),
        false => places.map(|file| plan.dir.join(file)).find(|file| file.is_file())?,
    };
    let mut head = Vec::new();
    if file.is_file() {
        File::open(&file).ok()?.take(shebang::HEAD as u64).read_to_end(&mut head).ok()?;
    }
    if let Some(fault) = shebang::fault(&head) {
        return Some(fault.to_string());
    }
    let interpreter = shebang::interpreter(&head)?;
    let is_missing = !plan.dir.join(interpreter).exists();
    is_missing.then(|| {
        format!("its first line names the interpreter {interpreter:?}, which is not there: install it, or correct that line")
    })
}
