//! The one loop that attends to a script under its guard: of a job's run, `soloist run`, `soloist collect` and `soloist turn`.
//!
//! Every deadline that a renewal earns goes to the guard at once. A lost hold kills the script. Commands are passed on. The loop ends
//! with the proof that no process of the tree is left, or without any proof. The [`Attendant`] does everything else while the script
//! runs, and what follows its end.

use std::time::Duration;

use tokio::sync::mpsc;

use super::child::{Cause, Child, ChildEvent};
use super::hold::{Hold, Trust, changed, trusted_until};
use soloist_domain::job::Exit;

/// What a running script may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// TERM, grace, KILL.
    Stop(Duration),
    /// KILL now.
    Kill,
}

/// What differs between those who have a script run.
pub(super) trait Attendant {
    /// Resolves to the next command for the script; what else must be done while it runs is done in here. Whenever
    /// something else happens it is dropped and called again: nothing may be lost by that.
    async fn command(&mut self) -> Command;

    /// The script started, or wrote something.
    fn hear(&mut self, _event: ChildEvent) {}

    /// The hold of this number was lost; the script is being killed.
    fn lost(&mut self, _which: usize) {}
}

/// How a script ended, as seen by its guard: no process of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// Of its first process; empty when it never started.
    pub(super) exit: Exit,
    /// Killed in addition to the first.
    pub(super) processes_killed: u32,
    /// What ended it, or why it could not be started.
    pub(super) cause: Result<Cause, String>,
    /// A hold was lost.
    pub(super) lost: bool,
}

impl Ended {
    /// Whether it was killed because it was not held any more, or could not be held any longer.
    pub(super) fn is_fenced(&self) -> bool {
        self.lost || self.cause == Ok(Cause::Deadline)
    }
}

/// Attends to `child` for as long as all `holds` are held. `None`: the guard ended without proof, so all that is held
/// must run out by itself.
pub(super) async fn attend(
    child: &Child,
    events: &mut mpsc::Receiver<ChildEvent>,
    holds: &mut [&mut Hold],
    attendant: &mut impl Attendant,
) -> Option<Ended> {
    let mut lost = false;
    loop {
        tokio::select! {
            biased;
            (which, trust) = changed(holds) => match trust {
                Trust::Until(_) => child.extend(trusted_until(holds)),
                Trust::Lost => {
                    lost = true;
                    attendant.lost(which);
                    child.kill();
                }
            },
            command = attendant.command() => match command {
                Command::Stop(grace) => child.stop(grace),
                Command::Kill => child.kill(),
            },
            event = events.recv() => match event? {
                ChildEvent::Gone { exit, processes_killed, cause } => {
                    return Some(Ended { exit, processes_killed, cause: Ok(cause), lost });
                }
                ChildEvent::Failed { error } => {
                    let exit = Exit::default();
                    return Some(Ended { exit, processes_killed: 0, cause: Err(error), lost });
                }
                event => attendant.hear(event),
            },
        }
    }
}
