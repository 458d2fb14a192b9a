//! Jobs on live sockets: what is kept for each, and what is told of it.
//!
//! Each change of a job comes with its record. Its picture is made anew once, marked in every seat, and rendered when a
//! seat asks for it. Time alone changes pictures, too: the hub looks now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::Hub;
use super::seats::{Seat, Work};
use crate::frames::{self, JobFrames, Protocol, Told};
use crate::loglines::LogRing;
use crate::parts;
use soloist_config::JobConfig;
use soloist_domain::job::{JobRecord, State, state};
use soloist_domain::limits::Quiet;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::tick::{Clock, next_tick};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::feed::Seen;
use soloist_view::viewpoint;

/// Sentences older than this are made anew when a reader asks.
const SENTENCES_LAST: Duration = Duration::from_secs(1);
/// How often a page is told how far a run is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// What the hub keeps for one job.
#[derive(Default)]
pub(super) struct ShownJob {
    pub(super) frames: Mutex<Option<Arc<JobFrames>>>,
    /// The generation of the newest picture.
    pub(super) generation: AtomicU64,
    pub(super) watch: Mutex<Watch>,
    pub(super) followers: AtomicUsize,
    pub(super) fetching: AtomicBool,
    pub(super) ring: Mutex<LogRing>,
}

#[derive(Default)]
pub(super) struct Watch {
    /// The word, and how the run has been quiet for too long.
    said: Option<(State, Option<Quiet>)>,
    /// The holder of the lease in the newest picture.
    holder: Option<NodeName>,
    wanted_since: Option<Boot>,
    /// The newest record whose change was told to seats.
    record: Option<Arc<JobRecord>>,
    /// The newest record whose ticks were counted.
    counted: Option<Arc<JobRecord>>,
    /// When its progress was told to pages for the last time, and whether there is another since.
    told: Option<Boot>,
    more: bool,
    /// When its lease was told to pages for the last time.
    pub(super) leased: Option<Boot>,
}

impl Hub {
    /// Finds jobs whose picture means something else only because time went by. When the next picture becomes stale, from now.
    pub(super) fn look(self: &Arc<Self>) -> Option<Duration> {
        let mut jobs = Vec::new();
        let mut moved = Vec::new();
        let mut leased = Vec::new();
        let (now, mut next) = (clock::boot(), None);
        for job in self.numbers() {
            let seen = self.seen(job);
            if self.say(job, &seen) {
                jobs.push(job);
            }
            let stale_in = seen.stale_at(&self.defined(job).timing).since(now);
            // One that is stale by now has been told.
            if !stale_in.is_zero() {
                next = Some(next.map_or(stale_in, |next: Duration| next.min(stale_in)));
            }
            if self.owes_progress(job) {
                moved.push((job, true));
            }
            if seen.record.lease.is_some() && self.owes_lease(job) {
                leased.push(job);
            }
        }
        self.refresh(jobs);
        self.tell_progress(&moved);
        self.tell_leases(&leased);
        if self.truth_changed() {
            for seat in self.everybody() {
                seat.mark(|pending| pending.truth = true);
            }
        }
        // A moment past it: what is as old as that is not stale yet.
        next.map(|left| left + Duration::from_millis(1))
    }

    /// Makes new pictures of `jobs`, of which there is no newer record, and tells all seats.
    pub(super) fn refresh(&self, jobs: Vec<usize>) {
        if jobs.is_empty() {
            return;
        }
        for &job in &jobs {
            self.replace(job, None);
        }
        for seat in self.everybody() {
            seat.mark(|pending| {
                if !pending.snapshot {
                    pending.note(seat.protocol, &jobs, &[]);
                }
            });
        }
    }

    /// Notes the newest picture; whether it is as the one before but for progress and output.
    pub(super) fn moves_on(&self, job: usize, seen: &Seen) -> bool {
        let other_word = self.say(job, seen);
        let slot = self.slot(job);
        // Not that of the newest picture: one that was made meanwhile may hold a change that no seat was told.
        let before = slot.watch.lock().record.replace(Arc::clone(&seen.record));
        !other_word && before.is_some_and(|before| before.only_moves_on(&seen.record))
    }

    /// Whether pages may be told now how far a run is; else [`Hub::look`] does it later.
    pub(super) fn may_tell_progress(&self, job: usize) -> bool {
        self.slot(job).watch.lock().more = true;
        self.owes_progress(job)
    }

    /// Whether pages have not been told for long enough how far a run is; they are then.
    fn owes_progress(&self, job: usize) -> bool {
        let slot = self.slot(job);
        let mut watch = slot.watch.lock();
        let now = clock::boot();
        let due = watch.more && watch.told.is_none_or(|told| now.since(told) >= PROGRESS_EVERY);
        if due {
            watch.more = false;
            watch.told = Some(now);
        }
        due
    }

    fn tell_progress(&self, moved: &[(usize, bool)]) {
        let jobs: Vec<usize> = moved.iter().map(|(job, _)| *job).collect();
        let pages = self.everybody().into_iter().filter(|seat| seat.protocol == Protocol::Html);
        for seat in pages.take_while(|_| !jobs.is_empty()) {
            seat.mark(|pending| {
                if !pending.snapshot {
                    pending.note(seat.protocol, &jobs, moved);
                }
            });
        }
    }

    /// Whether another node holds the job than before: the list of nodes says something else then.
    pub(super) fn is_passed_on(&self, job: usize, seen: &Seen) -> bool {
        let holder = seen.record.lease.as_ref().map(|lease| &lease.node);
        let slot = self.slot(job);
        let mut watch = slot.watch.lock();
        let passed_on = watch.holder.as_ref() != holder;
        if passed_on {
            watch.holder = holder.cloned();
        }
        passed_on
    }

    /// Notes the state of a job now; whether it is another than before.
    pub(super) fn say(&self, job: usize, seen: &Seen) -> bool {
        let word = self.sight(job, seen);
        let now = clock::boot();
        let slot = self.slot(job);
        let mut watch = slot.watch.lock();
        let well =
            matches!(word.0, State::Running | State::Starting | State::Resting | State::Scheduled);
        if seen.record.wanted() && !well {
            watch.wanted_since.get_or_insert(now);
        } else {
            watch.wanted_since = None;
        }
        self.count_ticks(&mut watch, &seen.record);
        watch.said.replace(word) != Some(word)
    }

    /// Counts what became of ticks since the last look.
    fn count_ticks(&self, watch: &mut Watch, record: &Arc<JobRecord>) {
        let Some(before) = watch.counted.replace(Arc::clone(record)) else { return };
        let Some(clock) = record.clock.as_deref().filter(|_| before.version < record.version)
        else {
            return;
        };
        let empty = || Clock::begin(&clock.text, record, clock.accounted);
        let news = match before.clock.as_deref() {
            Some(before) => clock.news_since(before),
            None => clock.news_since(&empty()),
        };
        for (outcome, count) in news.ended {
            self.metrics.ticks_ended(&record.name, outcome, count);
        }
        for late in news.late_ms {
            self.metrics.tick_granted(Duration::from_millis(late));
        }
    }

    pub(super) fn word(&self, job: usize, seen: &Seen) -> State {
        self.sight(job, seen).0
    }

    /// The word, and how the run has been quiet for too long.
    fn sight(&self, job: usize, seen: &Seen) -> (State, Option<Quiet>) {
        let config = self.defined(job);
        let rotations = self.rotations();
        let rotations = rotations.as_ref().map(|views| &views[..]);
        let view = viewpoint(seen, &config, &self.feed.nodes(), rotations, clock::boot());
        let word = state(&seen.record, &view);
        let run = seen.record.run.as_ref().filter(|_| word == State::Running);
        (word, run.and_then(|run| config.limits().quiet(run, seen.progressed, view.now)))
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
            let since = self.slot(nth).watch.lock().wanted_since;
            let waited = since.map_or(Duration::ZERO, |since| now.since(since));
            self.metrics.wanted_not_running(&job.name, waited);
            let record = &seen.record;
            let law = job.schedule.as_ref().filter(|_| record.is_on()).map(|one| &one.law);
            let next = law.and_then(|law| next_tick(record, law, seen.store_now(now)));
            self.metrics.next_tick(&job.name, next.map(|tick| tick.starts));
            self.metrics.last_success(&job.name, record.success());
        }
    }

    /// The newest picture of a job; before the first, one so old that nothing is known.
    pub(super) fn seen(&self, job: usize) -> Seen {
        let config = self.defined(job);
        self.feed.job(&config.name).unwrap_or_else(|| never_seen(&config.name))
    }

    pub(super) fn replace(&self, job: usize, changed: Option<Boot>) {
        let slot = self.slot(job);
        let mut frames = slot.frames.lock();
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        slot.generation.store(generation, Ordering::Release);
        *frames = Some(self.make(job, changed));
    }

    /// What a page that is made from now on has seen of jobs: it says so when it connects, and is told what came later.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("{:x}-{}", self.instance, self.generation.load(Ordering::Acquire))
    }

    /// The generation in a mark of this process.
    fn seen_until(&self, mark: &str) -> Option<u64> {
        let (instance, generation) = mark.split_once('-')?;
        (instance == format!("{:x}", self.instance)).then(|| generation.parse().ok())?
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
            .with_hour(self.history.hour(&self.defined(job).name))
            .with_alerts(self.alerts_of(&self.defined(job).name)),
        )
    }

    /// The frames of a job, not older than [`SENTENCES_LAST`]. Made under the lock, so that no older picture ever
    /// replaces a newer one.
    fn frames(&self, job: usize) -> Arc<JobFrames> {
        let slot = self.slot(job);
        let mut frames = slot.frames.lock();
        match &*frames {
            Some(known) if clock::boot().since(known.made) < SENTENCES_LAST => Arc::clone(known),
            _ => {
                let made = self.make(job, None);
                *frames = Some(Arc::clone(&made));
                made
            }
        }
    }

    /// The picture of a job, however old its sentences are.
    fn known(&self, job: usize) -> Arc<JobFrames> {
        let known = self.slot(job).frames.lock().clone();
        known.unwrap_or_else(|| self.frames(job))
    }

    fn summary(&self, seat: &Seat) -> String {
        let (caller, sieve) = (&seat.caller, &seat.sieve);
        let language = caller.language;
        let roster = self.roster();
        let count = || {
            let seen = roster.shown().filter(|(_, job)| caller.sees(job));
            let all: Vec<_> = seen.map(|(nth, job)| (self.known(nth), job)).collect();
            let views = all.iter().map(|(frames, job)| frames.view(job, language));
            parts::summary(views, sieve, self.others_in_need(), language)
        };
        if roster.may_hide_from(caller) || !sieve.is_open() {
            return count();
        }
        let generation = self.generation.load(Ordering::Acquire);
        let which = frames::slot(language);
        if let Some((known, text)) = &self.summaries.lock()[which]
            && *known == generation
        {
            return text.clone();
        }
        let text = count();
        self.summaries.lock()[which] = Some((generation, text.clone()));
        text
    }

    /// The line of counters, if it is another than was told.
    pub(super) fn counted(&self, seat: &Seat) -> Option<String> {
        let text = self.summary(seat);
        let mut pending = seat.pending.lock();
        if pending.counted == text {
            return None;
        }
        pending.counted.clone_from(&text);
        Some(frames::summary_frame(&text))
    }

    /// Everything; to a page that comes for the first time only what it has not been made with.
    pub(super) fn snapshot(&self, seat: &Seat, first: bool) -> String {
        let epoch = self.feed.epoch();
        let language = seat.caller.language;
        let roster = self.roster();
        let all: Vec<(usize, &JobConfig, Arc<JobFrames>)> = roster
            .shown()
            .filter(|(_, job)| seat.caller.sees(job))
            .map(|(nth, job)| (nth, &**job, self.frames(nth)))
            .collect();
        if seat.protocol == Protocol::Json {
            let jobs = all.iter().map(|(_, job, frames)| frames.json(job, language));
            return frames::snapshot_frame(&epoch, jobs);
        }
        let have = seat.sieve.have.as_deref().filter(|_| first);
        let have = have.and_then(|mark| self.seen_until(mark));
        let fits =
            |frames: &JobFrames, job: &JobConfig| seat.sieve.shows(frames.view(job, language));
        let mut rows: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(_, (_, job, frames))| fits(frames, job))
            .map(|(place, (nth, job, frames))| {
                (seat.sieve.place(frames.view(job, language), place, language), *nth, *job, frames)
            })
            .collect();
        rows.sort_by(|one, two| one.0.cmp(&two.0));
        let order: Vec<&str> = rows.iter().map(|(_, _, job, _)| job.name.as_str()).collect();
        let summary = if seat.sieve.without_rows { String::new() } else { self.summary(seat) };
        let follows: Vec<usize> = {
            let mut pending = seat.pending.lock();
            pending.shown = rows.iter().map(|(_, nth, _, _)| *nth).collect();
            pending.drawn = rows.iter().map(|(_, nth, _, frames)| (*nth, frames.drawn())).collect();
            pending.counted.clone_from(&summary);
            pending.follows.keys().copied().collect()
        };
        let newer = |nth: usize| {
            have.is_none_or(|have| self.slot(nth).generation.load(Ordering::Acquire) > have)
        };
        let heads = all.iter().filter(|(nth, _, _)| follows.contains(nth));
        let heads = heads.filter(|(_, job, frames)| !fits(frames, job));
        let heads =
            heads.map(|(_, job, frames)| frames.row(job, &seat.caller, Told::Nothing, true));
        let changed = rows.iter().filter(|(_, nth, _, _)| newer(*nth));
        let changed = changed.map(|(place, nth, job, frames)| {
            frames.row(job, &seat.caller, Told::Whole(place), follows.contains(nth))
        });
        frames::rows_frame(&epoch, &order, changed.chain(heads), &summary)
    }

    /// A change of a job; `None`: it concerns nothing that the seat shows.
    pub(super) fn job(&self, seat: &Seat, job: usize, followed: bool) -> Option<Work> {
        let frames = self.frames(job);
        let config = &*self.defined(job);
        let language = seat.caller.language;
        if seat.protocol == Protocol::Json {
            let text = frames.job_frame(config, language);
            return Some(Work::Frame { text, changed: frames.changed });
        }
        let view = frames.view(config, language);
        let shows = seat.sieve.shows(view);
        let was_shown = match shows {
            true => !seat.pending.lock().shown.insert(job),
            false => seat.pending.lock().shown.remove(&job),
        };
        if shows {
            // A row that is told whole has its hour.
            let mut pending = seat.pending.lock();
            let drawn = pending.drawn.insert(job, frames.drawn());
            if was_shown && drawn.is_none_or(|drawn| drawn != frames.drawn()) {
                pending.hours.insert(job);
            }
        }
        let text = if shows {
            let nth = self.roster().place_for(&seat.caller, job);
            let place = seat.sieve.place(view, nth, language);
            let told = if was_shown { Told::Change(&place) } else { Told::Whole(&place) };
            frames::row_frame(&frames.row(config, &seat.caller, told, followed))
        } else if followed {
            frames::row_frame(&frames.row(config, &seat.caller, Told::Nothing, true))
        } else if was_shown {
            frames::gone_frame(config.name.as_str())
        } else {
            return None;
        };
        Some(Work::Frame { text, changed: frames.changed })
    }

    /// Who held a job in the last hour; `None` as long as nothing is known of it.
    pub(super) fn hour(&self, seat: &Seat, job: usize) -> Option<Work> {
        let frames = self.known(job);
        let text = frames.hour_frame(seat.caller.language)?;
        Some(Work::Frame { text, changed: None })
    }

    /// How far the run of a job is.
    pub(super) fn moved(&self, job: usize) -> Work {
        let frames = self.known(job);
        Work::Frame { text: frames.moved_frame(), changed: frames.changed }
    }
}

/// A job that was never read: so old that its state is `unknown`.
fn never_seen(name: &JobName) -> Seen {
    let record = Arc::new(JobRecord::untouched(name.clone()));
    let (at, confirmed, doubted_until) = (StoreTime(0), Boot(0), Boot(0));
    Seen { record, at, confirmed, doubted_until, progressed: None, ended_here: None }
}
