//! Jobs on live sockets: what is kept for each, and what is told of it.
//!
//! Each change of a job comes with its record. Its picture is made anew once, marked in every seat, and rendered when a
//! seat asks for it. Time alone changes pictures, too: the hub looks now and then.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::seats::{Seat, Work};
use super::{Hub, lock};
use crate::clock;
use crate::config::JobConfig;
use crate::domain::job::{JobRecord, State, state};
use crate::domain::name::{JobName, NodeName};
use crate::domain::time::{Boot, StoreTime};
use crate::feed::Seen;
use crate::view::{JobView, viewpoint};
use crate::web::auth::Caller;
use crate::web::frames::{self, JobFrames, Protocol};
use crate::web::loglines::LogRing;
use crate::web::parts;

/// Sentences older than this are made anew for whoever asks.
const SENTENCES_LAST: Duration = Duration::from_secs(1);

/// What the hub keeps for one job.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) frames: Mutex<Option<Arc<JobFrames>>>,
    pub(super) watch: Mutex<Watch>,
    pub(super) followers: AtomicUsize,
    pub(super) fetching: AtomicBool,
    pub(super) ring: Mutex<LogRing>,
}

#[derive(Default)]
pub(super) struct Watch {
    said: Option<State>,
    /// Who had the lease in the newest picture.
    holder: Option<NodeName>,
    wanted_since: Option<Boot>,
}

impl Hub {
    /// Finds jobs whose picture means something else only because time went by.
    pub(super) fn look(self: &Arc<Self>) {
        let mut jobs = Vec::new();
        for job in self.numbers() {
            let seen = self.seen(job);
            if self.say(job, &seen) {
                jobs.push(job);
            }
        }
        self.refresh(jobs);
        if self.truth_changed() {
            for seat in self.everybody() {
                seat.mark(|pending| pending.truth = true);
            }
        }
    }

    /// Makes new pictures of `jobs`, of which there is no newer record, and tells everybody.
    pub(super) fn refresh(&self, jobs: Vec<usize>) {
        if jobs.is_empty() {
            return;
        }
        for &job in &jobs {
            self.replace(job, None);
        }
        self.generation.fetch_add(1, Ordering::Release);
        for seat in self.everybody() {
            seat.mark(|pending| {
                if !pending.snapshot {
                    pending.jobs.extend(&jobs);
                }
            });
        }
    }

    /// Whether somebody else holds the job than before: the list of nodes says something else then.
    pub(super) fn is_passed_on(&self, job: usize, seen: &Seen) -> bool {
        let holder = seen.record.lease.as_ref().map(|lease| &lease.node);
        let slot = self.slot(job);
        let mut watch = lock(&slot.watch);
        let passed_on = watch.holder.as_ref() != holder;
        if passed_on {
            watch.holder = holder.cloned();
        }
        passed_on
    }

    /// Notes the state of a job now; whether it is another than before.
    pub(super) fn say(&self, job: usize, seen: &Seen) -> bool {
        let word = self.word(job, seen);
        let now = clock::boot();
        let slot = self.slot(job);
        let mut watch = lock(&slot.watch);
        let well = matches!(word, State::Running | State::Starting | State::Resting);
        if seen.record.wanted() && !well {
            watch.wanted_since.get_or_insert(now);
        } else {
            watch.wanted_since = None;
        }
        watch.said.replace(word) != Some(word)
    }

    pub(super) fn word(&self, job: usize, seen: &Seen) -> State {
        let config = self.defined(job);
        let rotations = self.rotations();
        let rotations = rotations.as_ref().map(|views| &views[..]);
        state(&seen.record, &viewpoint(seen, &config, &self.feed.nodes(), rotations, clock::boot()))
    }

    /// Brings the metrics of jobs up to date, before they are read.
    pub fn measure(&self) {
        let now = clock::boot();
        let roster = self.roster();
        roster.gone().for_each(|job| self.metrics.forget(job));
        for (nth, job) in roster.shown() {
            let seen = self.seen(nth);
            self.say(nth, &seen);
            self.metrics.job_state(&job.name, self.word(nth, &seen));
            let since = lock(&self.slot(nth).watch).wanted_since;
            let waited = since.map_or(Duration::ZERO, |since| now.since(since));
            self.metrics.wanted_not_running(&job.name, waited);
        }
    }

    /// The newest picture of a job; before the first, one so old that nothing is known.
    pub(super) fn seen(&self, job: usize) -> Seen {
        let config = self.defined(job);
        self.feed.job(&config.name).unwrap_or_else(|| never_seen(&config.name))
    }

    pub(super) fn replace(&self, job: usize, changed: Option<Boot>) {
        let slot = self.slot(job);
        let mut frames = lock(&slot.frames);
        *frames = Some(self.make(job, changed));
    }

    fn make(&self, job: usize, changed: Option<Boot>) -> Arc<JobFrames> {
        Arc::new(
            JobFrames::new(
                self.seen(job),
                self.feed.nodes(),
                self.rotations(),
                self.display_names(),
                changed,
            )
            .with_hour(self.history.hour(&self.defined(job).name)),
        )
    }

    /// The frames of a job, not older than [`SENTENCES_LAST`]. Made under the lock, so that no older picture ever
    /// replaces a newer one.
    fn frames(&self, job: usize) -> Arc<JobFrames> {
        let slot = self.slot(job);
        let mut frames = lock(&slot.frames);
        match &*frames {
            Some(known) if clock::boot().since(known.made) < SENTENCES_LAST => Arc::clone(known),
            _ => {
                let made = self.make(job, None);
                *frames = Some(Arc::clone(&made));
                made
            }
        }
    }

    fn summary(&self, caller: &Caller) -> String {
        let language = caller.language;
        let views = |sees: &dyn Fn(&JobConfig) -> bool| -> Vec<JobView> {
            let roster = self.roster();
            let seen = roster.shown().filter(|(_, job)| sees(job));
            seen.map(|(nth, job)| self.frames(nth).view(job, language).clone()).collect()
        };
        if self.roster().may_hide_from(caller) {
            return parts::summary(&views(&|job| caller.sees(job)), language);
        }
        let generation = self.generation.load(Ordering::Acquire);
        let which = frames::slot(language);
        if let Some((known, text)) = &lock(&self.summaries)[which]
            && *known == generation
        {
            return text.clone();
        }
        let text = parts::summary(&views(&|_| true), language);
        lock(&self.summaries)[which] = Some((generation, text.clone()));
        text
    }

    pub(super) fn snapshot(&self, seat: &Seat) -> String {
        let epoch = self.feed.epoch();
        let language = seat.caller.language;
        let roster = self.roster();
        let all: Vec<(usize, &JobConfig, Arc<JobFrames>)> = roster
            .shown()
            .filter(|(_, job)| seat.caller.sees(job))
            .map(|(nth, job)| (nth, &**job, self.frames(nth)))
            .collect();
        match seat.protocol {
            Protocol::Json => frames::snapshot_frame(
                &epoch,
                all.iter().map(|(_, job, frames)| frames.json(job, language)),
            ),
            Protocol::Html => {
                let follows: Vec<usize> = lock(&seat.pending).follows.keys().copied().collect();
                let rows = all
                    .iter()
                    .map(|(nth, job, frames)| frames.row(job, &seat.caller, follows.contains(nth)));
                frames::rows_frame(&epoch, rows, &self.summary(&seat.caller))
            }
        }
    }

    pub(super) fn job(&self, seat: &Seat, job: usize, followed: bool) -> Work {
        let frames = self.frames(job);
        let config = &*self.defined(job);
        let language = seat.caller.language;
        let text = match seat.protocol {
            Protocol::Json => frames.job_frame(config, language),
            Protocol::Html => frames::row_frame(
                &frames.row(config, &seat.caller, followed),
                &self.summary(&seat.caller),
            ),
        };
        Work::Frame { text, changed: frames.changed }
    }
}

/// A job that was never read: so old that its state is `unknown`.
fn never_seen(name: &JobName) -> Seen {
    let record = Arc::new(JobRecord::untouched(name.clone()));
    Seen { record, at: StoreTime(0), confirmed: Boot(0), doubted_until: Boot(0) }
}
