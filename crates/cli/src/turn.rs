//! What can be typed behind `soloist turn`; `main` hands it to `runner::turn_command`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::duration;
use soloist_domain::name::{RotationName, TypeName, WorkerName};

pub(super) const HELP: &str = "\
Example: soloist turn --rotation supplier-api --type orders --wait 10m -- ./fetch-orders.sh
Example: soloist --server https://node-a:8080 --token-file robot.token turn --rotation supplier-api --type orders -- ./fetch-orders.sh

The command runs when it is its type's turn, and one turn is had at a time, whatever the machine. It gets SOLOIST_ROTATION,
SOLOIST_TYPE, SOLOIST_WORKER, SOLOIST_NODE, SOLOIST_RUN, SOLOIST_TURN (the id of the turn) and SOLOIST_TOKEN (the same number,
so that `soloist fence` works in it); of the caller's environment no other SOLOIST_ variable. Its output is passed on
unchanged; its standard input is empty: give it files.

The command's exit code is returned, 128 + N when signal N ended it, 127 when it could not be started; 75 when the turn was
not had in time, 76 when it was lost and the command was killed; 3 when there is no such rotation or type, 2 when its lease
is too short to kill a command in time.

The turn is extended for as long as the command runs, and passed when its whole process tree is gone: as done after exit code
0, as empty after --empty-code, as failed after anything else. When it is lost, or cannot be extended in time, the
command is killed, with all it started, before anybody else may have the turn: by its guard, also when this process was
killed with kill -9 or is frozen. A guard whose parent died passes the turn at once; when both were killed, the lease
runs out.

HUP, INT, QUIT and TERM ask the command to stop (TERM, --stop-grace, KILL to its whole tree); a second one kills it at once.
The turn is then passed as failed.";

/// What `soloist turn --help` says at its end: `HELP`.
#[derive(Debug, Args)]
pub struct TurnArgs {
    /// In which rotation
    #[arg(long, value_name = "NAME")]
    pub rotation: RotationName,
    /// As which of its types
    #[arg(long = "type", value_name = "NAME")]
    pub kind: TypeName,
    /// What this worker is called [default: `node` of the configuration]
    #[arg(long, value_name = "NAME")]
    pub worker: Option<WorkerName>,
    /// How long to wait for the turn, and for a store that is away; 0 tries once [default: for ever]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Which type comes next, whichever would by the order
    #[arg(long, value_name = "TYPE")]
    pub next: Option<TypeName>,
    /// The exit code by which the command says that there was nothing to do
    #[arg(long, value_name = "N")]
    pub empty_code: Option<u8>,
    /// How long the command may take to stop after TERM before its whole tree is killed; cut to what is left of the
    /// lease when that runs out
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "2s")]
    pub stop_grace: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub argv: Vec<OsString>,
}
