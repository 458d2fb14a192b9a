//! The law of jobs without a store: a job, the end of its lease, every run, and what is known of a store that may have forgotten.

use std::time::Duration;

use soloist::domain::doubt::{Epoch, Look, judge};
use soloist::domain::job::{JobRecord, RunPhase};
use soloist::domain::journal::RunEntry;
use soloist::domain::lease::Stale;
use soloist::domain::name::{JobName, RunId};
use soloist::domain::time::{Boot, StoreTime};
use soloist::domain::transition::history::Past;
use soloist::domain::transition::{Job, Now, Write};

/// What a crash of a store leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    /// All of it, for sure.
    Nothing,
    /// All of it, and nobody can know that.
    Doubted,
    /// Nothing.
    Forgot,
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub(super) struct Law {
    pub(super) job: Job,
    /// End of the lease.
    until: StoreTime,
    pub(super) runs: Vec<RunEntry>,
    epoch: Option<Epoch>,
    /// How many servers there were before this one.
    server: u64,
    /// Epoch and longest lease, as each process remembers them.
    remembers: [(String, i64); 2],
}

/// What a transition says, and what is to be written.
pub(super) type Decision<T> = Result<(T, Vec<Write>), Stale>;

impl Law {
    /// Of a job that nobody touched, in a store that knows of no lease.
    pub(super) fn new(name: JobName) -> Self {
        let epoch = Epoch { id: "0".to_owned(), server: "0".to_owned(), ..Epoch::default() };
        Self {
            job: Job::untouched(name),
            until: StoreTime(0),
            runs: Vec::new(),
            epoch: Some(epoch),
            server: 0,
            remembers: Default::default(),
        }
    }

    pub(super) fn crash(&mut self, left: Crash) {
        if left == Crash::Nothing {
            return;
        }
        self.server += 1;
        if left == Crash::Forgot {
            self.job = Job::untouched(self.job.record.name.clone());
            self.runs.clear();
            self.epoch = None;
        }
    }

    /// What is left of the quarantine when `process` looks at the store, or asks it for a lease of `ttl`.
    pub(super) fn quarantine(&mut self, process: usize, ttl: Duration, at: StoreTime) -> Duration {
        let (known, remembered) = self.remembers[process].clone();
        let (server, ttl) = (self.server.to_string(), ms(ttl));
        let look = Look {
            known: &known,
            remembered,
            server: &server,
            ttl,
            suspect: false,
            fresh: &server,
            now: at.0,
        };
        let (judged, _) = judge(self.epoch.as_ref(), &look);
        self.remembers[process] = (judged.id.clone(), judged.reach());
        let left = judged.quarantine(at.0);
        self.epoch = Some(judged);
        Duration::from_millis(left.unsigned_abs())
    }

    /// So long after `at` the quarantine lasts, as the store says.
    pub(super) fn calm_at(&mut self, at: StoreTime, quarantine: Duration) {
        if let Some(epoch) = self.epoch.as_mut().filter(|_| !quarantine.is_zero()) {
            epoch.until = (at + quarantine).0;
        }
    }

    /// The job at `at`.
    fn at(&self, at: StoreTime) -> Job {
        let mut job = self.job.clone();
        if let Some(lease) = &mut job.record.lease {
            lease.expires_in = self.until.since(at);
        }
        if job.record.lease.as_ref().is_some_and(|lease| lease.expires_in.is_zero()) {
            job.lapsed = job.record.lease.take();
        }
        job
    }

    pub(super) fn record(&self, at: StoreTime) -> JobRecord {
        self.at(at).record
    }

    /// Does what `transition` says; `about`: which run it is about.
    pub(super) fn apply<T>(
        &mut self,
        about: Option<&RunId>,
        at: StoreTime,
        boot: Boot,
        transition: impl FnOnce(&mut Job, &Past, Now) -> Decision<T>,
    ) -> Result<T, Stale> {
        let mut job = self.at(at);
        let before = job.record.lease.clone();
        let lost = job.record.run.as_ref().filter(|_| job.record.lease.is_none());
        let about = about.or(lost.map(|run| &run.id));
        let past = about.map(|id| self.past(id)).unwrap_or_default();
        let (answer, writes) = transition(&mut job, &past, Now { at, boot })?;
        if job.record.lease != before {
            let left = job.record.lease.as_ref().map(|lease| lease.expires_in);
            self.until = left.map_or(StoreTime(0), |left| at + left);
        }
        for write in writes {
            match write {
                Write::KeepRun(entry) => {
                    match self.runs.iter_mut().find(|known| known.id == entry.id) {
                        Some(known) => *known = entry,
                        None => self.runs.push(entry),
                    }
                }
                Write::DropRun(id) => self.runs.retain(|entry| entry.id != id),
                Write::Publish(_)
                | Write::AppendLine(_)
                | Write::DropLines(_)
                | Write::KeepWant(_)
                | Write::KeepTick { .. } => {}
            }
        }
        self.job = job;
        Ok(answer)
    }

    /// What the history says of the run `id`, read from all of it.
    fn past(&self, id: &RunId) -> Past {
        let this = self.runs.iter().position(|entry| entry.id == *id);
        let older = &self.runs[..this.unwrap_or(self.runs.len())];
        let ended = self.runs.iter().filter(|entry| entry.ended.is_some());
        Past {
            this: this.map(|at| self.runs[at].clone()),
            before: older.iter().rev().find(|entry| entry.ended.is_some()).cloned(),
            ended: ended.count(),
            // Histories are too short for one to go.
            oldest_idle: None,
            oldest: None,
        }
    }

    /// The instants at which the clock alone changes what is answered.
    pub(super) fn ends(&self) -> Vec<StoreTime> {
        let record = &self.job.record;
        let next = record.next.map(|next| next.at);
        let moving = record.moving.as_ref().map(|moving| moving.until);
        let calm = self.epoch.as_ref().map(|epoch| StoreTime(epoch.until));
        let lease = record.lease.as_ref().map(|_| self.until);
        [next, moving, calm, lease].into_iter().flatten().collect()
    }

    /// Takes the instants of `real` over, which is a record at `at`, where they are within `blur` of the ones here.
    pub(super) fn adopt(&mut self, real: &JobRecord, at: StoreTime, blur: Duration) {
        let record = &mut self.job.record;
        let near = |here: &mut StoreTime, there: StoreTime| {
            if here.apart(there) <= blur {
                *here = there;
            }
        };
        for (here, there) in record.participants.iter_mut().zip(&real.participants) {
            near(&mut here.since, there.since);
        }
        if let (Some(here), Some(there)) = (&mut record.hold, &real.hold) {
            near(&mut here.since, there.since);
        }
        if let (Some(here), Some(there)) = (&mut record.lease, &real.lease) {
            near(&mut here.since, there.since);
            near(&mut self.until, at + there.expires_in);
        }
        if let (Some(here), Some(there)) = (&mut record.run, &real.run) {
            near(&mut here.started, there.started);
            if let (RunPhase::Stopping { kill_at: here }, RunPhase::Stopping { kill_at: there }) =
                (&mut here.phase, &there.phase)
            {
                near(here, *there);
            }
        }
        if let (Some(here), Some(there)) = (&mut record.last_exit, &real.last_exit) {
            near(&mut here.at, there.at);
        }
        if let (Some(here), Some(there)) = (&mut record.last_success, real.last_success) {
            near(here, there);
        }
        if let (Some(here), Some(there)) = (&mut record.last_switch, &real.last_switch) {
            near(&mut here.at, there.at);
        }
        if let (Some(here), Some(there)) = (&mut record.next, &real.next) {
            near(&mut here.at, there.at);
        }
        if let (Some(here), Some(there)) = (&mut record.moving, &real.moving) {
            near(&mut here.until, there.until);
        }
        if let (Some(here), Some(there)) = (&mut record.drill, &real.drill) {
            near(&mut here.at, there.at);
            if let (Some(here), Some(there)) = (&mut here.started, &there.started) {
                near(here, *there);
            }
        }
    }
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).expect("short")
}
