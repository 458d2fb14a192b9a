//! Whether a drill may be ordered: the same rules and words for page, API and command line.

use soloist_domain::detail::Detail;
use soloist_domain::job::{JobRecord, LeaseRecord};
use soloist_domain::name::JobName;
use soloist_store::nodes::{NodeRecord, takers};

/// Why no drill is ordered; each says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDrill {
    /// An operator forbids the job: no node would take over.
    #[error("{job} is held by {by}, so no node would take over: soloist resume {job}")]
    Held {
        /// Which job.
        job: JobName,
        /// Who holds it.
        by: String,
    },
    /// There is no node to crash.
    #[error("{0} is not running, so there is no holder to crash: soloist why {0}")]
    NotRunning(JobName),
    /// Its holder is no process of Soloist.
    #[error(
        "{0} runs in a program of your own, which Soloist can tell to stop and cannot crash: kill that program yourself, or hand the job over with soloist move {0}"
    )]
    External(JobName),
    /// It would stay down.
    #[error(
        "no other living node may take {job}, so it would stay down: start one (soloist nodes shows them), or crash {node} all the same with {force}"
    )]
    Alone {
        /// Which job.
        job: JobName,
        /// The holder.
        node: String,
        /// How the caller insists.
        force: &'static str,
    },
}

impl NoDrill {
    /// The same for programs and for people.
    pub fn detail(&self) -> Detail {
        let text = Detail::new(self.to_string());
        match self {
            Self::Held { job, by } => {
                text.told("refused-drill-held", &[("job", job), ("user", by)])
            }
            Self::NotRunning(job) => text.told("refused-drill-not-running", &[("job", job)]),
            Self::External(job) => text.told("refused-drill-external", &[("job", job)]),
            Self::Alone { job, node, .. } => {
                text.told("refused-drill-alone", &[("job", job), ("node", node)])
            }
        }
    }
}

/// The lease whose holder a drill would crash.
///
/// # Errors
/// [`NoDrill`]; `insist` lets a job go that no node can take over, and `force` is how the caller would say so.
pub fn target<'a>(
    record: &'a JobRecord,
    nodes: &[NodeRecord],
    insist: bool,
    force: &'static str,
) -> Result<&'a LeaseRecord, NoDrill> {
    let job = record.name.clone();
    if let Some(hold) = &record.hold {
        return Err(NoDrill::Held { job, by: hold.by.to_string() });
    }
    let running = record.run.as_ref().map(|run| run.token);
    let Some(lease) = record.lease.as_ref().filter(|lease| Some(lease.token) == running) else {
        return Err(NoDrill::NotRunning(job));
    };
    if !insist && takers(&job, nodes).iter().all(|node| node == &lease.node) {
        return Err(NoDrill::Alone { job, node: lease.node.to_string(), force });
    }
    Ok(lease)
}
