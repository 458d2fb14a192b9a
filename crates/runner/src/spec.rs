//! What a guard runs, and the message that carries it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::leftovers;
use super::passthrough::Passthrough;
use super::program::Program;
use soloist_domain::containment::Containment;
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{JobName, Owner, RunId};
use soloist_domain::time::Boot;
use soloist_guard::message::{LARGEST, Plan, Start, Work};
use soloist_guard::shield;

/// What to run, and under which lease.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in JobConfig and Acquire")]
pub struct Spec {
    pub program: Program,
    pub job: JobName,
    pub run: RunId,
    pub token: Token,
    pub owner: Owner,
    pub timing: Timing,
    pub streams: Streams,
    /// Of a task `job` is the name of its source, of a turn that of its rotation.
    pub work: Work,
}

/// Where a script's output goes.
#[derive(Debug, Clone)]
pub enum Streams {
    /// To this process, line by line, as [`ChildEvent`](super::event::ChildEvent)s.
    Read,
    /// Where this process's own goes, byte by byte and without passing through it.
    Inherited,
    /// To where this process's own goes, unchanged, but whole lines at a time. The last line on standard error comes as
    /// an event before the end.
    Relayed(Passthrough),
}

/// A run, as its guard will be told.
pub(super) struct Run {
    pub(super) spec: Spec,
    /// The first message.
    pub(super) start: Vec<u8>,
    pub(super) deadline: Boot,
    pub(super) term_before: Duration,
    pub(super) notes: PathBuf,
    pub(super) cgroup: Option<PathBuf>,
}

impl Run {
    pub(super) fn of(spec: Spec, deadline: Boot) -> io::Result<Self> {
        let term_before = spec.timing.term_before_deadline(spec.program.stop_grace);
        let notes = leftovers::notes_of(&spec.program.store_url, &spec.program.prefix);
        let cgroup = match spec.program.containment.level {
            Containment::Subreaper => None,
            // In a namespace, too: the guard may have to do without one.
            _ => spec.program.containment.cgroup_of(&spec.program.node, &spec.run),
        };
        let Spec { program, job, run, token, owner, work, .. } = spec.clone();
        let plan = Plan {
            argv: program.argv,
            dir: program.dir,
            env: program.env,
            job,
            note: notes.join(run.as_str()),
            run,
            node: program.node,
            token,
            owner,
            store_url: program.store_url,
            server: program.server,
            prefix: program.prefix,
            containment: program.containment,
            term_before_deadline: term_before,
            work,
            account: program.entrusted.account,
            core: shield::core_before(),
        };
        let start = serde_json::to_vec(&Start { plan, deadline })?;
        if start.len() > LARGEST {
            return Err(io::Error::other(
                "the command and its environment are larger than 192 KiB",
            ));
        }
        Ok(Self { spec, start, deadline, term_before, notes, cgroup })
    }
}
