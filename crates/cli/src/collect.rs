//! What can be typed behind `soloist collect`; `main` hands it to `runner::collect_command`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::duration;
use soloist_domain::name::{CollectorName, SourceName};

pub(super) const HELP: &str = "\
Example: soloist collect --source pages --parallel 4 -- ./fetch.sh
Example: soloist --server https://node-a:8080,https://node-b:8080 --token-file robot.token collect --source pages -- ./fetch.sh

The command gets the task's payload (JSON) on its standard input, and in its environment SOLOIST_TASK (the id),
SOLOIST_TASK_KEY, SOLOIST_SOURCE, SOLOIST_ATTEMPT (from 1), SOLOIST_COLLECTOR, and SOLOIST_TASK_TOKEN, which is also
SOLOIST_TOKEN, so that `soloist fence` works in it; of the caller's environment no other SOLOIST_ variable. What it prints is
passed on unchanged, whole lines at a time.

Its exit code is the result:
  0       done
  65      dead: never again, until somebody revives it (EX_DATAERR)
  75      another try, after the source's backoff (EX_TEMPFAIL)
  others  the same; so is a signal that killed it. After `max_attempts` of the source the task is dead
The last line on its standard error is kept as the task's error.

The lease of a task is extended for as long as its command runs. When it is lost, or cannot be extended in time, the
command is killed, with all it started, before anybody else may have the task: by its guard, also when this process was
killed with kill -9 or is frozen. A guard whose collector died reports the task for another try at once; when
both were killed, the lease runs out, and the kernel (containment by pid namespace), or the next start of a
node, of `run` or of `collect` here, ends what is left.

HUP, INT, QUIT and TERM: no new task is claimed, those at work have --stop-grace to end, what is left then is killed and
given back as if it had never been claimed; the same signal again does so at once. Exit code 0; 127 when the command
cannot be started, which is looked at before any task is claimed; 1 when a result could not be reported, 3 when a source does not exist.";

/// What `soloist collect --help` says at its end: `HELP`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Where tasks come from; may be given several times
    #[arg(long = "source", value_name = "NAME", required = true)]
    pub sources: Vec<SourceName>,
    /// How many tasks are worked on at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub parallel: u32,
    /// What this collector is called [default: `node` of the configuration]
    #[arg(long, value_name = "NAME")]
    pub collector: Option<CollectorName>,
    /// End after so many tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max: Option<u64>,
    /// End when the sources have nothing that is ready, due later or in a collector's hands
    #[arg(long)]
    pub until_empty: bool,
    /// How long commands at work may take to end after a signal, before they are killed
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "10s")]
    pub stop_grace: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub argv: Vec<OsString>,
}
