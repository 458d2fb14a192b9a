//! What this node observes, for the rules of `domain::alert`, and the sentences for people.

use std::sync::Arc;

use soloist_config::{Config, JobConfig, elsewhere};
use soloist_domain::alert::{JobSight, Sight, Subject, When};
use soloist_domain::dispatch::{PastEvent, TaskState};
use soloist_domain::job::state;
use soloist_domain::name::{NodeName, SourceName};
use soloist_domain::time::StoreTime;
use soloist_process::clock;
use soloist_store::dispatch::{Dispatch as _, Sources as _, TaskFilter};
use soloist_store::feed::{Feed, Seen};
use soloist_store::nodes::NodeRecord;
use soloist_store::{Result, Store};
use soloist_view::incident::{lasting_why, sentence, text};
use soloist_view::words::{Language, Piece, Zone};
use soloist_view::{DriftView, JobView, viewpoint};

/// How many tasks of a source are examined.
const TASKS: usize = 200;

/// Everything that this node knows now.
pub(super) struct Picture {
    now: StoreTime,
    jobs: Vec<(JobConfig, Seen)>,
    nodes: Arc<Vec<NodeRecord>>,
    /// Nodes that are silent, since their last renewal.
    silent: Vec<(NodeName, StoreTime)>,
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
        let others =
            elsewhere(&config.jobs, &config.alerting, nodes.iter().map(NodeRecord::telling));
        let mut jobs = Vec::new();
        for job in config.jobs.iter().cloned().chain(others) {
            let seen = feed.job(&job.name)?;
            jobs.push((job, seen));
        }
        let silent = nodes.iter().filter(|node| !node.is_alive());
        let silent = silent.filter_map(|node| Some((node.beat.node.clone(), feed.heard(node)?)));
        Some(Self { now, jobs, silent: silent.collect(), nodes })
    }

    /// As a test has it.
    #[cfg(test)]
    pub(super) fn made(
        now: StoreTime,
        jobs: Vec<(JobConfig, Seen)>,
        nodes: Vec<NodeRecord>,
    ) -> Self {
        Self { now, jobs, nodes: Arc::new(nodes), silent: Vec::new() }
    }

    pub(super) fn now(&self) -> StoreTime {
        self.now
    }

    /// For the rules. Who is silent the feed knows: never this node, and nobody for what the store missed while it was away.
    pub(super) fn sight(&self, overdue: &[(SourceName, StoreTime)]) -> Sight<'_> {
        let now = clock::boot();
        let jobs = self.jobs.iter().map(|(job, seen)| JobSight {
            record: &seen.record,
            state: state(&seen.record, &viewpoint(seen, job, &self.nodes, None, now)),
            schedule: job.schedule.as_ref().map(|scheduled| &scheduled.law),
            progressed: seen.progressed,
            drift: DriftView::of(&job.name, &self.nodes)
                .iter()
                .filter_map(|drift| NodeName::new(&drift.node).ok())
                .collect(),
        });
        Sight {
            now: self.now,
            jobs: jobs.collect(),
            silent: self.silent.clone(),
            cut_off: None,
            overdue: overdue.to_vec(),
        }
    }

    /// The job's title, and why it is what it is, for a text that is read at any time.
    fn about(&self, subject: &Subject, when: When, lang: Language) -> (String, Vec<Piece>) {
        let Some(name) = &subject.job else { return Default::default() };
        let Some((job, seen)) = self.jobs.iter().find(|(job, _)| job.name == *name) else {
            return (name.to_string(), Vec::new());
        };
        let view = JobView::of(seen, job, &self.nodes, None, lang, clock::boot());
        let why = lasting_why(&view, when, lang);
        (view.title, why)
    }
}

/// The text in one language, each instant with its zone.
pub(super) fn worded(
    lang: Language,
    is_begin: bool,
    incident: (When, &Subject, StoreTime),
    zone: &Zone,
    picture: Option<&Picture>,
) -> String {
    let (when, subject, since) = incident;
    let (title, why) = match picture {
        Some(picture) => picture.about(subject, when, lang),
        None => Default::default(),
    };
    text(&sentence(lang, is_begin, when, subject, since, Some(&title), why), zone)
}

/// The zone in which messages say instants.
pub(super) fn zone(config: &Config) -> Zone {
    let chosen = config.alerting.zone.as_deref().and_then(Zone::known);
    chosen.unwrap_or_else(|| Zone::here().clone())
}

/// The page about it.
pub(super) fn page(public_url: &str, subject: &Subject) -> String {
    match subject {
        Subject { job: Some(job), .. } => format!("{public_url}/jobs/{job}"),
        Subject { source: Some(_), .. } => format!("{public_url}/dispatch"),
        Subject { channel: Some(_), .. } => format!("{public_url}/alerts"),
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
