//! What this node sees, for the rules of `domain::alert`, and how it is said to people.

use std::sync::Arc;

use crate::clock;
use crate::config::{Config, JobConfig};
use crate::domain::alert::{JobSight, Sight, Subject, When};
use crate::domain::dispatch::{PastEvent, TaskState};
use crate::domain::job::state;
use crate::domain::name::{NodeName, SourceName};
use crate::domain::time::StoreTime;
use crate::feed::{Feed, Seen};
use crate::store::dispatch::{Dispatch as _, Sources as _, TaskFilter};
use crate::store::nodes::NodeRecord;
use crate::store::{Result, Store};
use crate::view::{DriftView, JobView, both_names, elsewhere, viewpoint};
use crate::words::{Arg, Language, day_clock, say};

/// So many tasks of a source are looked at.
const TASKS: usize = 200;

/// Everything that this node knows now.
pub(super) struct Picture {
    now: StoreTime,
    jobs: Vec<(JobConfig, Seen)>,
    nodes: Arc<Vec<NodeRecord>>,
}

impl Picture {
    /// `None` while something is not known yet, or not any more.
    pub(super) fn take(feed: &Feed, config: &Config) -> Option<Self> {
        if feed.trouble().is_some() {
            return None;
        }
        let nodes = feed.nodes();
        let now = feed.store_time(clock::boot())?;
        if !nodes.iter().any(|node| node.beat.node == config.node) {
            return None;
        }
        let others = elsewhere(&config.jobs, &config.alerting, &nodes);
        let mut jobs = Vec::new();
        for job in config.jobs.iter().cloned().chain(others) {
            let seen = feed.job(&job.name)?;
            jobs.push((job, seen));
        }
        Some(Self { now, jobs, nodes })
    }

    pub(super) fn now(&self) -> StoreTime {
        self.now
    }

    /// For the rules.
    pub(super) fn sight(&self, own: &NodeName, overdue: &[(SourceName, StoreTime)]) -> Sight<'_> {
        let now = clock::boot();
        let jobs = self.jobs.iter().map(|(job, seen)| JobSight {
            record: &seen.record,
            state: state(&seen.record, &viewpoint(seen, job, &self.nodes, None, now)),
            progressed: seen.progressed,
            drift: DriftView::of(&job.name, &self.nodes)
                .iter()
                .filter_map(|drift| NodeName::new(&drift.node).ok())
                .collect(),
        });
        let silent = self.nodes.iter().filter(|node| !node.is_alive() && node.beat.node != *own);
        Sight {
            now: self.now,
            jobs: jobs.collect(),
            silent: silent.map(|node| node.beat.node.clone()).collect(),
            cut_off: None,
            overdue: overdue.to_vec(),
        }
    }

    /// The job's title, and why it is what it is.
    fn about(&self, subject: &Subject, lang: Language) -> (String, String) {
        let Some(name) = &subject.job else { return Default::default() };
        let Some((job, seen)) = self.jobs.iter().find(|(job, _)| job.name == *name) else {
            return (name.to_string(), String::new());
        };
        let view = JobView::of(seen, job, &self.nodes, None, lang, clock::boot());
        (view.title, view.why)
    }
}

/// What is told in one language.
pub(super) fn worded(
    lang: Language,
    is_begin: bool,
    when: When,
    subject: &Subject,
    since: StoreTime,
    picture: Option<&Picture>,
) -> String {
    let (title, why) = match picture {
        Some(picture) => picture.about(subject, lang),
        None => Default::default(),
    };
    let job = subject.job.as_ref().map(ToString::to_string).unwrap_or_default();
    let title = Some(title.as_str()).filter(|title| !title.is_empty() && *title != job);
    let job = both_names(lang, &job, title);
    let source = subject.source.as_ref().map(ToString::to_string).unwrap_or_default();
    let node = subject.node.as_ref().map(ToString::to_string).unwrap_or_default();
    let args: [(&str, Arg); 5] = [
        ("job", job.into()),
        ("node", node.into()),
        ("source", source.into()),
        ("since", day_clock(since).to_string().into()),
        ("why", why.into()),
    ];
    let id = match (is_begin, when) {
        (true, When::WantedNotRunning) => "alert-begin-wanted-not-running",
        (true, When::GivenUp) => "alert-begin-given-up",
        (true, When::CrashLoop) => "alert-begin-crash-loop",
        (true, When::NodeLost) => "alert-begin-node-lost",
        (true, When::StoreLost) => "alert-begin-store-lost",
        (true, When::Stuck) => "alert-begin-stuck",
        (true, When::Drift) => "alert-begin-drift",
        (true, When::OverdueClaims) => "alert-begin-overdue-claims",
        (false, When::WantedNotRunning) => "alert-end-wanted-not-running",
        (false, When::GivenUp) => "alert-end-given-up",
        (false, When::CrashLoop) => "alert-end-crash-loop",
        (false, When::NodeLost) => "alert-end-node-lost",
        (false, When::StoreLost) => "alert-end-store-lost",
        (false, When::Stuck) => "alert-end-stuck",
        (false, When::Drift) => "alert-end-drift",
        (false, When::OverdueClaims) => "alert-end-overdue-claims",
    };
    say(lang, id, &args).trim_end().to_owned()
}

/// The page about it.
pub(super) fn page(public_url: &str, subject: &Subject) -> String {
    match subject {
        Subject { job: Some(job), .. } => format!("{public_url}/jobs/{job}"),
        Subject { source: Some(_), .. } => format!("{public_url}/dispatch"),
        _ => format!("{public_url}/nodes"),
    }
}

/// Sources with tasks that a collector lost and no collector has taken since, and when the oldest of them was lost. A source
/// that is paused is meant to stand still.
pub(super) async fn overdue(store: &Store) -> Result<Vec<(SourceName, StoreTime)>> {
    let mut found = Vec::new();
    for source in store.sources(None).await? {
        if source.rules.paused || source.ready == 0 || source.expired == 0 {
            continue;
        }
        let filter =
            TaskFilter { source: Some(source.name.clone()), state: Some(TaskState::Ready) };
        let tasks = store.tasks(&filter, None, TASKS).await?;
        let lost = tasks.iter().filter(|task| {
            task.history.last().is_some_and(|past| past.event == PastEvent::Expired)
        });
        if let Some(oldest) = lost.map(|task| task.changed).min() {
            found.push((source.name, oldest.floor()));
        }
    }
    Ok(found)
}
