//! What all readers are told about a job: the JSON of the API, and the words that rows and pages show.
//!
//! One computation serves page, push, API and command line, so that none of them can say more or something
//! else than the others. It decides no state (that is `domain::job::state`) and reads nothing: records, node
//! reports and the clock arrive as values.

#![allow(missing_docs, reason = "most fields are those of the API, and have its names")]

pub mod alerts;
mod clauses;
pub mod day;
mod drift;
pub mod drill;
#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub mod fixtures;
pub mod incident;
pub mod json;
pub mod lists;
pub mod mended;
pub mod pace;
pub mod people;
mod records;
pub mod rotation;
pub mod rules;
pub mod source;
pub mod status;
pub mod task;
mod tick_trouble;
pub mod tick_words;
pub mod ticks;
mod turn;
pub mod undelivered;
pub mod whole;
mod why;
pub mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use self::people::DisplayNames;
pub use clauses::Clause;
pub use drift::DriftView;
pub use records::{
    AuditView, ExitView, HeldLeaseView, LeaseKind, LogLineView, NodeView, RunExit, RunView,
    TimelineView, VitalsView,
};
pub use soloist_domain::time::millis;
pub use ticks::ScheduleView;

use crate::words::{At, Language, Piece, phrase, plain, say};
use soloist_config::JobConfig;
use soloist_domain::alert::{When, crashes_in_a_row};
use soloist_domain::handover::{Taker, standing};
use soloist_domain::job::{JobRecord, NextWhat, RunEnd, State, Untold, Viewpoint, state};
use soloist_domain::limits::Quiet;
use soloist_domain::name::{NodeName, UserName};
use soloist_domain::tick::upcoming;
use soloist_domain::time::{Boot, StoreTime};
use soloist_store::feed::Seen;
use soloist_store::nodes::NodeRecord;
use soloist_store::rotation::RotationView;

/// A job as all readers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// Its name.
    pub name: String,
    /// Its title in the reader's language.
    pub title: String,
    /// The heading under which it stands; null for none.
    pub group: Option<String>,
    /// `soloist` when nodes run a command, `external` when a program takes the lease.
    #[schema(value_type = String, example = "soloist")]
    pub runner: String,
    /// The one word.
    #[schema(schema_with = states, example = "running")]
    pub state: State,
    /// At least one user participates and no node holds it.
    pub wanted: bool,
    /// Grows with every change.
    pub version: u64,
    /// Who wants it, oldest first.
    pub participants: Vec<ParticipantView>,
    /// Forbidden by an operator?
    pub hold: Option<HoldView>,
    /// Who may be running it.
    pub lease: Option<LeaseView>,
    /// The present run.
    pub run: Option<PresentRun>,
    /// How the newest run ended.
    pub last_exit: Option<ExitView>,
    /// What happens next without any act of a person.
    pub next: Option<NextView>,
    /// Evidence, consequence and next step in one paragraph.
    pub why: String,
    /// When it runs; null for a continuous job.
    #[serde(default)]
    pub schedule: Option<ScheduleView>,
    /// Living nodes that define it otherwise than most living nodes do, or not at all.
    pub drift: Vec<DriftView>,
    /// What only pages show.
    #[serde(skip)]
    pub shown: Shown,
}

/// One user's switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Participant)]
pub struct ParticipantView {
    pub user: String,
    pub since: At,
    /// How the person is called; left out while it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// An operator forbids the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Hold)]
pub struct HoldView {
    pub by: String,
    pub reason: String,
    pub since: At,
}

/// The lease as the store last showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Lease)]
pub struct LeaseView {
    /// The holder.
    pub node: String,
    /// The fencing token.
    pub token: u64,
    /// When it was granted.
    pub since: At,
    /// Time left unless it is renewed.
    pub expires_in_ms: u64,
}

/// The present execution of the job's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresentRun {
    pub id: String,
    /// The process id of the script's first process; null when the run is a program's.
    pub pid: Option<u32>,
    pub started: At,
    pub progress: Option<ProgressView>,
}

/// How far a run says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressView {
    pub done: u64,
    pub total: u64,
    pub note: String,
}

/// The earliest instant of the next run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Next)]
pub struct NextView {
    /// `repeat` after exit 0, `retry` after a crash.
    #[schema(value_type = String, example = "repeat")]
    pub what: NextWhat,
    /// By the store's clock.
    pub at: At,
}

/// The words and instants that only pages show; nothing here says more than the JSON does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// The state in the reader's language.
    pub word: String,
    /// Backing off after several crashes in a row.
    pub looping: bool,
    /// Nothing goes on by itself, or an alert about it is on: given up, crash after crash, stopped at a limit, silent for too long, stuck, no node may
    /// run it, no program asks for it. A job of which nothing is known does not: what keeps that from us does.
    pub needs: bool,
    /// It stands among those that need somebody: it does, or did when something was known of it. A row keeps its place meanwhile.
    pub among_needy: bool,
    /// The alerts about it that are on.
    pub alerts: Vec<String>,
    /// What is so of its ticks, by what an alert may be about.
    pub troubles: Vec<(When, Vec<Piece>)>,
    /// A row's sentence: evidence, then what happens next.
    pub evidence: Vec<Clause>,
    /// The job page's longer one.
    pub details: Vec<Clause>,
    /// How long the lease is good, unless it is renewed; `None` without a lease, or when that is not known.
    pub lease: Option<LeaseLeft>,
    /// [`JobView::why`] with its instants.
    pub why: Vec<Piece>,
    /// Who wants it, with since when.
    pub people: Vec<Person>,
    /// Newest line of output.
    pub last_line: Option<String>,
    /// The rotation whose turns its runs are.
    pub rotation: Option<String>,
    /// How many nodes reported lately.
    pub living: usize,
    /// It runs in an external program.
    pub external: bool,
    /// It is wanted, and its next tick starts within the hour.
    pub due_soon: bool,
    /// This node does not define it: it can be switched here and not be run.
    pub elsewhere: bool,
    /// The store's clock when this was computed.
    pub now: StoreTime,
}

/// How much of a lease is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseLeft {
    /// Milliseconds.
    pub left_ms: u64,
    /// Milliseconds after a renewal.
    pub ttl_ms: u64,
    /// Both in words.
    pub text: String,
}

/// A participant as pages show one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Two letters for the badge.
    pub initials: String,
    /// The account's name.
    pub name: String,
    /// How the person is called.
    pub display_name: Option<String>,
    /// Since when.
    pub since: Piece,
}

impl Person {
    /// How the person is called, with the name that identifies the account; or that alone.
    #[must_use]
    pub fn both(&self, lang: Language) -> String {
        both_names(lang, &self.name, self.display_name.as_deref())
    }
}

/// A display name with the name that identifies the account; or that alone.
#[must_use]
pub fn both_names(lang: Language, name: &str, display_name: Option<&str>) -> String {
    match display_name {
        None => name.to_owned(),
        Some(shown) => say(lang, "both-names", &[("shown", shown.into()), ("user", name.into())]),
    }
}

/// A job, where it is looked at from, and the word for it.
struct Scene<'a> {
    record: &'a JobRecord,
    job: &'a JobConfig,
    nodes: &'a [NodeRecord],
    /// All of them, if they were read.
    rotations: Option<&'a [RotationView]>,
    lang: Language,
    now: StoreTime,
    /// How old the record is.
    age: Duration,
    state: State,
    /// Until when the store may have forgotten a lease that is still held.
    doubted_until: Option<StoreTime>,
    /// When the progress of its run was seen to become what it is.
    progressed: Option<StoreTime>,
    /// Its run has ended at this node, and the store does not know it yet.
    ended_here: Option<Untold>,
}

impl JobView {
    /// The picture of `job` as `seen`, in `lang`, at `now` on this machine's clock. For a member that waits for its turn
    /// all `rotations` are wanted, as they were read lately.
    #[must_use]
    pub fn of(
        seen: &Seen,
        job: &JobConfig,
        nodes: &[NodeRecord],
        rotations: Option<&[RotationView]>,
        lang: Language,
        now: Boot,
    ) -> JobView {
        let view = viewpoint(seen, job, nodes, rotations, now);
        let (age, quarantine) = (Duration::ZERO, Duration::ZERO);
        let known = Viewpoint { now: seen.at, age, quarantine, ended_here: None, ..view };
        let scene = |view: &Viewpoint| Scene {
            record: &seen.record,
            job,
            nodes,
            rotations,
            lang,
            now: view.now,
            age: view.age,
            state: state(&seen.record, view),
            doubted_until: (!view.quarantine.is_zero() && view.age <= view.stale_after)
                .then(|| view.now + view.quarantine),
            progressed: seen.progressed,
            ended_here: view.ended_here,
        };
        let mut picture = scene(&view).view();
        if picture.state == State::Unknown {
            picture.shown.among_needy = scene(&known).needs();
        }
        picture
    }

    /// The picture of a job that the store was never asked about: it could not be reached since the start.
    #[must_use]
    pub fn unseen(job: &JobConfig, lang: Language) -> JobView {
        let record = JobRecord::untouched(job.name.clone());
        let age = Duration::ZERO;
        let scene = Scene {
            record: &record,
            job,
            nodes: &[],
            rotations: None,
            lang,
            now: StoreTime(0),
            age,
            state: State::Unknown,
            doubted_until: None,
            progressed: None,
            ended_here: None,
        };
        scene.view()
    }
}

impl JobView {
    /// With the alerts about it that are on: whatever has one needs somebody.
    #[must_use]
    pub fn with_alerts(mut self, alerts: Vec<String>, lang: Language) -> Self {
        if alerts.is_empty() {
            return self;
        }
        let shown = &mut self.shown;
        shown.among_needy = true;
        if !shown.needs && self.state != State::Unknown {
            shown.needs = true;
            let names = ("names", Piece::text(alerts.join(&say(lang, "list-separator", &[]))));
            let pieces = phrase(lang, "row-alerts", &[names]);
            shown.evidence.push(Clause { next: true, pieces });
        }
        shown.alerts = alerts;
        self
    }

    /// With how its participants are called.
    #[must_use]
    pub fn with_names(mut self, names: &DisplayNames) -> Self {
        if names.is_empty() {
            return self;
        }
        let named = |user: &str| {
            let user = UserName::new(user).ok()?;
            names.get(&user).cloned()
        };
        for participant in &mut self.participants {
            participant.display_name = named(&participant.user);
        }
        for person in &mut self.shown.people {
            person.display_name = named(&person.name);
            let shown = person.display_name.as_deref();
            // Two letters of 李伟 are the whole name; of Ada Lovelace they are AD.
            if let Some(shown) = shown {
                person.initials = shown.chars().filter(|c| c.is_alphanumeric()).take(2).collect();
                person.initials = person.initials.to_uppercase();
            }
        }
        self
    }
}

impl Scene<'_> {
    fn view(&self) -> JobView {
        let record = self.record;
        let why = self.why();
        let run = record
            .run
            .as_ref()
            .filter(|run| record.lease.as_ref().is_some_and(|lease| lease.token == run.token));
        JobView {
            name: record.name.to_string(),
            title: match self.lang {
                Language::En => self.job.title.en.clone(),
                Language::Zh => self.job.title.zh.clone(),
            },
            group: self.job.group.clone(),
            runner: self.job.runner.as_str().to_owned(),
            state: self.state,
            wanted: record.wanted(),
            version: record.version,
            participants: record
                .participants
                .iter()
                .map(|p| ParticipantView {
                    user: p.user.to_string(),
                    since: At(p.since),
                    display_name: None,
                })
                .collect(),
            hold: record.hold.as_ref().map(|hold| HoldView {
                by: hold.by.to_string(),
                reason: hold.reason.clone(),
                since: At(hold.since),
            }),
            lease: record.lease.as_ref().map(|lease| LeaseView {
                node: lease.node.to_string(),
                token: lease.token.0,
                since: At(lease.since),
                expires_in_ms: millis(lease.expires_in.saturating_sub(self.age)),
            }),
            run: run.map(|run| PresentRun {
                id: run.id.to_string(),
                pid: (run.pid != 0).then_some(run.pid),
                started: At(run.started),
                progress: run.progress.as_ref().map(|p| ProgressView {
                    done: p.done,
                    total: p.total,
                    note: p.note.clone(),
                }),
            }),
            last_exit: record.last_exit.as_ref().map(|last| ExitView {
                code: last.exit.code,
                signal: last.exit.signal,
                at: At(last.at),
            }),
            next: record.next.map(|next| NextView { what: next.what, at: At(next.at) }),
            why: plain(&why),
            schedule: self
                .job
                .schedule
                .as_ref()
                .map(|scheduled| ScheduleView::of(scheduled, record, self.now, self.lang)),
            drift: DriftView::of(&record.name, self.nodes),
            shown: Shown {
                word: self.word(),
                looping: self.looping(),
                needs: self.needs(),
                among_needy: self.needs(),
                alerts: Vec::new(),
                troubles: self.troubles(),
                evidence: self.evidence(),
                details: self.details(),
                lease: self.lease_left(),
                why,
                people: self.people(),
                last_line: record.last_line.clone(),
                rotation: self.job.rotation.as_ref().map(ToString::to_string),
                living: self.nodes.iter().filter(|node| node.is_alive()).count(),
                external: self.job.is_external(),
                due_soon: self.due_soon(),
                elsewhere: self.job.is_elsewhere(),
                now: self.now,
            },
        }
    }

    /// A word for several crashes in a row, not for the first.
    fn looping(&self) -> bool {
        self.state == State::BackingOff && crashes_in_a_row(self.record, self.state)
    }

    /// Stays so while a crash loop starts once more: a row must not jump.
    fn needs(&self) -> bool {
        let record = self.record;
        let limit = record.last_exit.as_ref().is_some_and(|last| last.end == RunEnd::TimedOut);
        match self.state {
            State::GivenUp | State::Late => true,
            State::BackingOff | State::Starting => {
                crashes_in_a_row(record, self.state) || (limit && record.crashes > 0)
            }
            State::Waiting if record.lease.is_none() => match self.waiting() {
                Waiting::ClockSet(_) | Waiting::NoNode | Waiting::NotOffered => true,
                Waiting::Unfit | Waiting::Draining => true,
                Waiting::Suspect { .. } | Waiting::Soon { long: true } => true,
                Waiting::NobodyAsked => {
                    let patience =
                        self.job.missing_after.unwrap_or(When::WantedNotRunning.lasting());
                    let free = record.free_since().unwrap_or(self.now);
                    self.now.since(free) >= patience
                }
                Waiting::Doubted(_) | Waiting::Moving { .. } => false,
                Waiting::Soon { long: false } => false,
            },
            State::Running => self.quiet().is_some(),
            _ => false,
        }
    }

    /// How a run has been quiet for too long.
    fn quiet(&self) -> Option<Quiet> {
        let run = self.run().filter(|_| self.state == State::Running)?;
        self.job.limits().quiet(run, self.progressed, self.now)
    }

    /// Of a job that runs continuously it is no question.
    fn due_soon(&self) -> bool {
        let wanted = self.record.hold.is_none() && !self.record.participants.is_empty();
        let hour = self.now + Duration::from_secs(3_600);
        wanted && self.upcoming().is_some_and(|tick| tick.starts <= hour)
    }

    fn word(&self) -> String {
        match self.state {
            State::BackingOff if self.looping() => say(self.lang, "state-crash-looping", &[]),
            state => match self.quiet() {
                Some(Quiet::StopsAt(_)) => say(self.lang, "state-silent", &[]),
                Some(Quiet::StuckSince(_)) => say(self.lang, "state-stuck", &[]),
                None => state_word(self.lang, state),
            },
        }
    }

    fn people(&self) -> Vec<Person> {
        let minute = |at| words::minute(self.lang, at, self.now);
        let people = self.record.participants.iter().map(|p| Person {
            initials: p.user.as_str().chars().take(2).collect::<String>().to_uppercase(),
            name: p.user.to_string(),
            display_name: None,
            since: minute(p.since),
        });
        people.collect()
    }

    /// Living nodes that offer the job.
    fn offering(&self) -> impl Iterator<Item = &NodeRecord> {
        self.nodes
            .iter()
            .filter(|node| node.is_alive() && node.beat.jobs.contains(&self.record.name))
    }

    /// Living nodes that may run the job and whose machines cannot start it, with why.
    fn unfit(&self) -> Vec<(&NodeName, &str)> {
        let living = self.nodes.iter().filter(|node| node.is_alive());
        let unfit = living.filter_map(|node| {
            let why = node.beat.unfit.get(&self.record.name)?;
            Some((&node.beat.node, why.as_str()))
        });
        unfit.collect()
    }

    /// When `node` lost the newest run of the job, if it has not renewed itself since: for some seconds a dead node counts as
    /// alive.
    fn lost_at(&self, node: &NodeRecord) -> Option<StoreTime> {
        let last = self.record.last_exit.as_ref()?;
        let heard = self.ago(Duration::from_millis(node.age_ms));
        (last.end == RunEnd::Lost && last.node == node.beat.node && heard < last.at)
            .then_some(last.at)
    }

    /// Why a wanted job without a holder waits.
    fn waiting(&self) -> Waiting {
        let record = self.record;
        if let Some(until) = self.doubted_until {
            return Waiting::Doubted(until);
        }
        let clock = record.clock.as_deref().filter(|_| self.job.schedule.is_some());
        if let Some(until) = clock.and_then(|clock| clock.ahead_until(self.now)) {
            return Waiting::ClockSet(until);
        }
        if self.job.is_external() {
            return match record.moving.as_ref().filter(|moving| moving.until > self.now) {
                Some(moving) => Waiting::Moving { to: moving.to.clone(), until: moving.until },
                None => Waiting::NobodyAsked,
            };
        }
        if !self.nodes.iter().any(NodeRecord::is_alive) {
            return Waiting::NoNode;
        }
        if self.offering().next().is_none() {
            return match self.unfit().is_empty() {
                true => Waiting::NotOffered,
                false => Waiting::Unfit,
            };
        }
        let free: Vec<_> = self.offering().filter(|node| !node.draining).collect();
        if free.is_empty() {
            return Waiting::Draining;
        }
        if let [only] = &free[..]
            && let Some(lost) = self.lost_at(only)
        {
            return Waiting::Suspect { node: only.beat.node.clone(), lost };
        }
        let takers: Vec<Taker> = self.nodes.iter().map(|node| node.taker(&record.name)).collect();
        if let Some(moving) = standing(record, &takers, self.now) {
            return Waiting::Moving { to: moving.to.clone(), until: moving.until };
        }
        let due = record.next.map(|next| next.at);
        let asked = record.clock.as_deref().and_then(|clock| clock.asked.first());
        let due = due.into_iter().chain(asked.map(|asked| asked.at));
        let since = record.free_since().into_iter().chain(due).max().unwrap_or(self.now);
        Waiting::Soon { long: self.now.since(since) > Duration::from_secs(2) }
    }
}

impl Scene<'_> {
    /// Whether it is certain that no node can take it.
    fn is_barred(&self) -> bool {
        match self.waiting() {
            Waiting::NoNode
            | Waiting::NotOffered
            | Waiting::Unfit
            | Waiting::Draining
            | Waiting::Suspect { .. }
            | Waiting::Doubted(_) => true,
            Waiting::ClockSet(_) | Waiting::NobodyAsked => false,
            Waiting::Moving { .. } | Waiting::Soon { .. } => false,
        }
    }
}

/// Why a wanted job has no holder.
enum Waiting {
    /// The store was emptied or replaced: nothing is granted yet.
    Doubted(StoreTime),
    /// Ticks up to this instant are decided, which lies ahead of the store's clock: that was set back.
    ClockSet(StoreTime),
    /// It runs in a program, and none has asked for the lease.
    NobodyAsked,
    /// No node is alive.
    NoNode,
    /// No living node has it in its configuration.
    NotOffered,
    /// The machines of those that have it cannot start it.
    Unfit,
    /// All nodes that may run it are being emptied.
    Draining,
    /// The only one that may run it lost its newest run, and may be dead.
    Suspect { node: NodeName, lost: StoreTime },
    /// It is being handed over.
    Moving { to: Option<NodeName>, until: StoreTime },
    /// Nothing is in the way; after a while only a store that restarted explains it.
    Soon { long: bool },
}

/// `job` as `seen`, from where this node stands: all that the word for it depends on.
#[must_use]
pub fn viewpoint(
    seen: &Seen,
    job: &JobConfig,
    nodes: &[NodeRecord],
    rotations: Option<&[RotationView]>,
    now: Boot,
) -> Viewpoint {
    let member = job.rotation.is_some();
    let view =
        seen.viewpoint(now, &job.timing, job.backoff.min_uptime, member, job.is_external(), nodes);
    let ticks = job.schedule.as_ref();
    let ticks = ticks.map(|scheduled| upcoming(&seen.record, &scheduled.law, view.now));
    Viewpoint { turn_barred: turn::is_barred(job, rotations), ticks, ..view }
}

/// The words of [`State`], for the OpenAPI document.
fn states() -> Object {
    let words = State::ALL.map(State::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// The word for a state.
#[must_use]
pub fn state_word(lang: Language, state: State) -> String {
    let id = match state {
        State::Off => "state-off",
        State::Waiting => "state-waiting",
        State::Resting => "state-resting",
        State::Starting => "state-starting",
        State::Running => "state-running",
        State::BackingOff => "state-backing-off",
        State::GivenUp => "state-given-up",
        State::Stopping => "state-stopping",
        State::FailingOver => "state-failing-over",
        State::Held => "state-held",
        State::Unknown => "state-unknown",
        State::Scheduled => "state-scheduled",
        State::Late => "state-late",
    };
    say(lang, id, &[])
}

#[cfg(test)]
mod tests;
