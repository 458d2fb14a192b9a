//! Reading the configuration again while the node runs: all of it is right, or nothing changes.
//!
//! A file may be where nothing answers. So it is read beside all else, in a thread that nobody waits for at the end.
//!
//! It only hands the newer configuration on: each part of the node takes what concerns it when it can.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::{followed, with_real_port};
use soloist_config::{Config, Current, Examination, Problems, WithoutJobs};
use soloist_process::telemetry::Metrics;
use soloist_runner::beat::Offer;
use soloist_store::feed::Followed;

/// Reads the configuration as the command line asked for it, for a node that runs with that one.
pub type Read = Arc<dyn Fn(&Config) -> Examination + Send + Sync>;

/// Where a newer configuration goes.
pub(super) struct Reload {
    pub(super) read: Read,
    /// As it was read: the port may be 0.
    pub(super) asked: Config,
    /// The port that was taken.
    pub(super) port: u16,
    pub(super) current: Current,
    pub(super) followed: watch::Sender<Vec<Followed>>,
    pub(super) offer: watch::Sender<Arc<Offer>>,
    pub(super) metrics: Arc<Metrics>,
    /// It is being read.
    pub(super) reading: Option<oneshot::Receiver<Examination>>,
    /// It was to be read once more meanwhile.
    pub(super) again: bool,
}

impl Reload {
    /// Begins to read it again; if that is under way, it is read once more afterwards.
    pub(super) fn begin(&mut self) {
        if self.reading.is_some() {
            self.again = true;
            let file = self.asked.file.as_deref().unwrap_or(Path::new("soloist.toml")).display();
            tracing::warn!(
                "the configuration is still being read since the SIGHUP before: everything goes on as before, and it is read once more when that has ended. If this stays, {file} or a file that it names does not answer: look at its file system, or restart the node"
            );
            return;
        }
        let (done, reading) = oneshot::channel();
        let (read, asked) = (Arc::clone(&self.read), self.asked.clone());
        // Nobody listens any more when the node has ended.
        let reader = move || drop(done.send(read(&asked)));
        match std::thread::Builder::new().name("soloist-reload".to_owned()).spawn(reader) {
            Ok(_) => self.reading = Some(reading),
            Err(error) => tracing::error!(%error, "the configuration cannot be read again"),
        }
    }

    /// What was read; waits for ever when nothing is.
    pub(super) async fn read(&mut self) -> Option<Examination> {
        match &mut self.reading {
            Some(reading) => reading.await.ok(),
            None => std::future::pending().await,
        }
    }

    /// Takes what was read. Every problem is logged, with file and key.
    pub(super) fn take(&mut self, examined: Option<Examination>) {
        self.reading = None;
        if let Some(examined) = examined {
            self.put_in_force(examined);
        }
        if std::mem::take(&mut self.again) {
            self.begin();
        }
    }

    fn put_in_force(&mut self, examined: Examination) {
        let Examination { config, warnings, without_jobs } = examined;
        let newer = config.map_err(said).and_then(|newer| {
            match gives_up(&self.asked, &newer, without_jobs) {
                Some(why) => Err(vec![why]),
                None => Ok(newer),
            }
        });
        let newer = match newer {
            Ok(newer) => newer,
            Err(problems) => {
                for problem in &problems {
                    tracing::error!("{problem}");
                }
                let count = problems.len();
                tracing::error!(
                    "the configuration is not taken, because of {count} problem(s): everything goes on as before"
                );
                return;
            }
        };
        for warning in &warnings.0 {
            tracing::warn!("{warning}");
        }
        let (taken, restart) = self.asked.taking(newer);
        for key in restart {
            tracing::warn!(
                "{key} has changed in the configuration and needs a restart; the rest is taken"
            );
        }
        say(&self.asked, &taken);
        self.asked = taken.clone();
        let taken = with_real_port(taken, self.port);
        super::know(&self.metrics, &taken);
        self.offer.send_replace(Arc::new(Offer::of(&taken)));
        let followed = followed(&taken);
        self.current.replace(taken);
        // Last: a task that receives it finds the newer configuration in force.
        self.followed.send_replace(followed);
    }
}

fn said(problems: Problems) -> Vec<String> {
    problems.0.iter().map(ToString::to_string).collect()
}

/// Why `newer` is not what anybody meant: a file that was emptied, or lost all its jobs, while it was being written. The word in
/// the file is the only one that counts: a variable would go on saying so for ever.
fn gives_up(before: &Config, newer: &Config, says: WithoutJobs) -> Option<String> {
    let file = newer.file.as_deref()?.display();
    let jobs = before.jobs.len();
    match says {
        WithoutJobs::Meant => None,
        WithoutJobs::Blank if before.file.is_some() => Some(format!(
            "{file}: is empty, or nothing but comments: write it again, or write no_jobs = true into it if this node is to have no jobs"
        )),
        _ if newer.jobs.is_empty() && jobs > 0 => Some(format!(
            "{file}: has no [[job]] any more, and this node has {jobs}: write them again, or write no_jobs = true into it if this node is to have none"
        )),
        WithoutJobs::Blank | WithoutJobs::Unsaid => None,
    }
}

/// Says what became of the jobs.
fn say(before: &Config, after: &Config) {
    let names = |jobs: Vec<&str>| match jobs.as_slice() {
        [] => "none".to_owned(),
        jobs => jobs.join(", "),
    };
    let missing = |from: &Config, of: &Config| {
        let missing = of.jobs.iter().filter(|job| from.job(job.name.as_str()).is_none());
        names(missing.map(|job| job.name.as_str()).collect())
    };
    let (added, removed) = (missing(before, after), missing(after, before));
    let changed = after
        .jobs
        .iter()
        .filter(|job| before.job(job.name.as_str()).is_some_and(|known| known != *job));
    let changed = names(changed.map(|job| job.name.as_str()).collect());
    tracing::info!(
        added,
        removed,
        changed,
        "the configuration is read again: a run under way goes on, the next one is by the new definition"
    );
}
