//! Alerts: what a person must know, since when, and which alerts begin and end.
//!
//! It decides; it reads no clock and sends nothing. Every node watches all the time, so that a node that becomes the sender knows since
//! when a condition lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::{JobRecord, State};
use super::limits::still_since;
use super::name::{JobName, NodeName, SourceName};
use super::tick::{Kind, Schedule, unfinished, unstarted};
use super::time::StoreTime;

/// So many crashes in a row are a loop.
const LOOP: u32 = 3;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A wanted job waits, backs off, was given up, fails over, or nothing is known of it.
    WantedNotRunning,
    /// The attempts of a job are used up.
    GivenUp,
    /// A job crashed three times in a row, or more.
    CrashLoop,
    /// A node does not report and did not say good-bye.
    NodeLost,
    /// This node cannot reach the store. Each node says so for itself: without a store no sender is elected.
    StoreLost,
    /// A run says nothing, and its progress stands still.
    Stuck,
    /// A node defines a job otherwise than most.
    Drift,
    /// Tasks whose lease ran out, and that no collector has taken since.
    OverdueClaims,
    /// A tick has not begun `start_within` after its start.
    NotStarted,
    /// A tick has not ended `finish_within` after its start.
    NotFinished,
    /// A tick was missed.
    MissedTick,
    /// The run of a tick was lost, and it is not done again.
    TickLost,
    /// A run ended well in less than `at_least`.
    TooQuick,
    /// No run of a wanted job has ended well for as long as the rule says.
    NoSuccessFor,
    /// A channel accepts no message. It needs no rule: the other channels report it.
    ChannelLost,
}

impl When {
    /// All that a rule may be about.
    pub const ALL: [Self; 14] = [
        Self::WantedNotRunning,
        Self::GivenUp,
        Self::CrashLoop,
        Self::NodeLost,
        Self::StoreLost,
        Self::Stuck,
        Self::Drift,
        Self::OverdueClaims,
        Self::NotStarted,
        Self::NotFinished,
        Self::MissedTick,
        Self::TickLost,
        Self::TooQuick,
        Self::NoSuccessFor,
    ];

    /// The word in the configuration and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WantedNotRunning => "wanted_not_running",
            Self::GivenUp => "given_up",
            Self::CrashLoop => "crash_loop",
            Self::NodeLost => "node_lost",
            Self::StoreLost => "store_lost",
            Self::Stuck => "stuck",
            Self::Drift => "drift",
            Self::OverdueClaims => "overdue_claims",
            Self::NotStarted => "not_started",
            Self::NotFinished => "not_finished",
            Self::MissedTick => "missed_tick",
            Self::TickLost => "tick_lost",
            Self::TooQuick => "too_quick",
            Self::NoSuccessFor => "no_success_for",
            Self::ChannelLost => "channel_lost",
        }
    }

    /// How long it lasts before an alert is sent, unless the rule says otherwise. Of ticks the job says it, or it is certain at once.
    #[must_use]
    pub fn lasting(self) -> Duration {
        match self {
            Self::Stuck => Duration::from_secs(300),
            _ if self.is_of_ticks() => Duration::ZERO,
            _ => Duration::from_secs(30),
        }
    }

    /// Whether it is about ticks, which only a job with a schedule has.
    #[must_use]
    pub fn is_of_ticks(self) -> bool {
        match self {
            Self::NotStarted
            | Self::NotFinished
            | Self::MissedTick
            | Self::TickLost
            | Self::TooQuick => true,
            Self::WantedNotRunning
            | Self::GivenUp
            | Self::CrashLoop
            | Self::NodeLost
            | Self::StoreLost
            | Self::Stuck
            | Self::Drift
            | Self::OverdueClaims
            | Self::NoSuccessFor
            | Self::ChannelLost => false,
        }
    }

    /// Whether since when it is true is known of it, and not only since when it was seen.
    fn is_known_since(self) -> bool {
        let others = matches!(
            self,
            Self::Stuck | Self::StoreLost | Self::OverdueClaims | Self::NoSuccessFor
        );
        others || self.is_of_ticks()
    }

    /// What of the ticks of a job it is about, if that is in the job's record.
    #[must_use]
    pub fn trouble(self) -> Option<Kind> {
        match self {
            Self::MissedTick => Some(Kind::Missed),
            Self::TickLost => Some(Kind::Lost),
            Self::TooQuick => Some(Kind::TooQuick),
            _ => None,
        }
    }

    /// Whether it is about jobs, so that a rule may choose among them.
    #[must_use]
    pub fn is_of_jobs(self) -> bool {
        !matches!(self, Self::NodeLost | Self::StoreLost | Self::OverdueClaims | Self::ChannelLost)
    }

    /// How bad it is that a job does not run. All of these are one fault of that job; `None`: it is another fault.
    fn of_one_fault(self) -> Option<u8> {
        match self {
            Self::WantedNotRunning | Self::NotStarted => Some(0),
            Self::CrashLoop => Some(1),
            Self::GivenUp => Some(2),
            _ => None,
        }
    }
}

/// Whether a job does what is wanted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It runs and has reached `min_uptime`, rests, or is not wanted. Only this ends an alert about it.
    Well,
    /// It is on its way to run, or to run again. Nobody knows yet how that ends.
    Coming,
    /// It is wanted and does not run.
    Missing,
}

/// How `record`, for which `state` is the word, does. Pages and rules judge by this alone.
#[must_use]
pub fn health(record: &JobRecord, state: State) -> Health {
    match state {
        _ if !record.wanted() => Health::Well,
        State::Running | State::Resting | State::Scheduled | State::Off | State::Held => {
            Health::Well
        }
        State::Starting | State::Stopping => Health::Coming,
        State::Waiting
        | State::Late
        | State::BackingOff
        | State::GivenUp
        | State::FailingOver
        | State::Unknown => Health::Missing,
    }
}

/// Whether a job crashes in a row and has not shown since that it runs.
#[must_use]
pub fn crashes_in_a_row(record: &JobRecord, state: State) -> bool {
    record.crashes >= LOOP && state != State::GivenUp && health(record, state) != Health::Well
}

/// `[[alert]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub when: When,
    /// How long that lasts before an alert is sent.
    pub lasting: Duration,
    /// Of which jobs; `*` all.
    pub jobs: Vec<String>,
    /// Names of channels.
    pub to: Vec<String>,
}

impl Rule {
    fn is_of(&self, subject: &Subject) -> bool {
        subject.job.as_ref().is_none_or(|job| self.is_of_job(job))
    }

    /// Whether it chooses this job.
    #[must_use]
    pub fn is_of_job(&self, job: &JobName) -> bool {
        self.jobs.iter().any(|name| name == "*" || name == job.as_str())
    }
}

/// What it is true of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Subject {
    pub job: Option<JobName>,
    pub node: Option<NodeName>,
    #[serde(default)]
    pub source: Option<SourceName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// A job as a node sees it.
#[derive(Debug, Clone)]
pub struct JobSight<'a> {
    /// What the store says.
    pub record: &'a JobRecord,
    /// The word for it.
    pub state: State,
    /// Its schedule, if it has one and this node knows it.
    pub schedule: Option<&'a Schedule>,
    /// When the progress of its run was seen to become what it is.
    pub progressed: Option<StoreTime>,
    /// Living nodes that define it otherwise than most.
    pub drift: Vec<NodeName>,
}

/// What a node sees at one instant.
#[derive(Debug, Clone, Default)]
pub struct Sight<'a> {
    /// The store's clock, as well as it is known here.
    pub now: StoreTime,
    /// Every job.
    pub jobs: Vec<JobSight<'a>>,
    /// Nodes that are listed and silent, and when each renewed itself for the last time.
    pub silent: Vec<(NodeName, StoreTime)>,
    /// This node, if it cannot reach the store, and since when.
    pub cut_off: Option<(NodeName, StoreTime)>,
    /// Sources with tasks that were lost by a collector, and since when the oldest of them lies there.
    pub overdue: Vec<(SourceName, StoreTime)>,
}

/// Something that is true, and what it must not change into to remain the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Since when.
    pub since: StoreTime,
    /// When this changes it is another thing, that begins now: a stuck run has said something.
    pub print: String,
    /// What it does to an alert.
    pub holds: Holds,
}

/// What something does to the alert about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It begins when it has lasted for long enough, and keeps one on.
    Begins,
    /// Its time continues, and it keeps one on: a job that was missing is starting.
    Counts,
    /// It only keeps one on: the fault is not over.
    Keeps,
}

/// What a node sees, with since when.
#[derive(Debug, Clone, Default)]
pub struct Watch(BTreeMap<(When, Subject), Mark>);

impl Watch {
    /// Looks again. What lasts keeps its instant.
    pub fn look(&mut self, sight: &Sight<'_>) {
        let mut seen = BTreeMap::new();
        let mut see = |when, subject: Subject, print: String, since: StoreTime, holds: Holds| {
            let key = (when, subject);
            let goes_on = |known: &&Mark| known.print == print && known.holds != Holds::Keeps;
            let since = match self.0.get(&key).filter(goes_on) {
                Some(known) if !when.is_known_since() => known.since,
                _ => since,
            };
            seen.insert(key, Mark { since, print, holds });
        };
        let keeps_unless = |begins: bool| if begins { Holds::Begins } else { Holds::Keeps };
        for job in &sight.jobs {
            let JobSight { record, state, schedule, progressed, drift } = job;
            let of = |node| Subject { job: Some(record.name.clone()), node, ..Subject::default() };
            let health = health(record, *state);
            if health != Health::Well {
                let missing = match health {
                    Health::Missing => Holds::Begins,
                    _ => Holds::Counts,
                };
                let given_up = keeps_unless(*state == State::GivenUp);
                let crashes = keeps_unless(crashes_in_a_row(record, *state));
                let faults = [
                    (When::WantedNotRunning, missing),
                    (When::GivenUp, given_up),
                    (When::CrashLoop, crashes),
                ];
                for (when, holds) in faults {
                    see(when, of(None), String::new(), sight.now, holds);
                }
            }
            if let Some(run) = &record.run {
                let print = format!("{} {:?} {:?}", run.id, run.last_output, run.progress);
                let since = still_since(run, *progressed, sight.now);
                // Its node may be silent for a moment: that is no end of a run.
                see(When::Stuck, of(None), print, since, keeps_unless(*state == State::Running));
            }
            for (when, since, print) in ticks(record, *schedule, sight.now) {
                see(when, of(None), print, since, Holds::Begins);
            }
            if let Some(since) = record.without_success_since() {
                // The next success is the end of it, and not that one of several people wants it no more.
                let print = record.success().map(|at| at.0.to_string()).unwrap_or_default();
                see(When::NoSuccessFor, of(None), print, since, Holds::Begins);
            }
            for node in drift {
                see(When::Drift, of(Some(node.clone())), String::new(), sight.now, Holds::Begins);
            }
        }
        for (node, since) in &sight.silent {
            let subject = Subject { node: Some(node.clone()), ..Subject::default() };
            see(When::NodeLost, subject, String::new(), *since, Holds::Begins);
        }
        if let Some((node, since)) = &sight.cut_off {
            let subject = Subject { node: Some(node.clone()), ..Subject::default() };
            see(When::StoreLost, subject, String::new(), *since, Holds::Begins);
        }
        for (source, since) in &sight.overdue {
            let subject = Subject { source: Some(source.clone()), ..Subject::default() };
            see(When::OverdueClaims, subject, String::new(), *since, Holds::Begins);
        }
        self.0 = seen;
    }

    /// What `rules` tell at `now`, when `on` is told already: what begins, and which of `on` are over. A rule that is gone
    /// ends what it told.
    #[must_use]
    pub fn changes(&self, rules: &[&Rule], on: &[On], now: StoreTime) -> Changes {
        let mut changes = Changes::default();
        for (nth, told) in on.iter().enumerate() {
            let rule = rules.iter().find(|rule| rule.name == told.alert);
            let mark = rule
                .filter(|rule| rule.is_of(&told.subject))
                .and_then(|rule| self.0.get(&(rule.when, told.subject.clone())));
            if mark.is_none_or(|mark| mark.print != told.print) {
                changes.end.push(nth);
            }
        }
        let told: BTreeSet<(&str, &Subject)> =
            on.iter().map(|told| (told.alert.as_str(), &told.subject)).collect();
        for rule in rules {
            for ((when, subject), mark) in &self.0 {
                let lasts = mark.holds == Holds::Begins && now.since(mark.since) >= rule.lasting;
                let is_new = !told.contains(&(rule.name.as_str(), subject));
                if *when == rule.when && rule.is_of(subject) && lasts && is_new {
                    changes.begin.push(Begin {
                        alert: rule.name.clone(),
                        when: *when,
                        subject: subject.clone(),
                        mark: mark.clone(),
                    });
                }
            }
        }
        changes
    }
}

/// What of the ticks of a job is to be told at `now`: since when, and its print.
fn ticks(
    record: &JobRecord,
    schedule: Option<&Schedule>,
    now: StoreTime,
) -> Vec<(When, StoreTime, String)> {
    let overdue = schedule.into_iter().flat_map(|schedule| {
        [
            (When::NotStarted, unstarted(record, schedule, now)),
            (When::NotFinished, unfinished(record, schedule, now)),
        ]
    });
    let overdue = overdue.filter_map(|(when, one)| Some((when, one?.since, String::new())));
    let told = When::ALL.into_iter().filter_map(|when| {
        let trouble = record.clock.as_ref()?.trouble(when.trouble()?)?;
        // Another one after its end is another alert.
        let print = trouble.at.0.to_string();
        trouble.lasts(record, now).then_some((when, trouble.at, print))
    });
    overdue.chain(told).collect()
}

/// An alert that is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct On {
    /// The name of its rule.
    pub alert: String,
    /// What the rule is about.
    pub when: When,
    /// What it is true of.
    pub subject: Subject,
    /// [`Mark::print`] when it began.
    pub print: String,
    /// The channels that are to get it.
    pub to: Vec<String>,
    /// Those that have heard that it began.
    pub heard: BTreeSet<String>,
    /// It does not say that it begins.
    pub muted: bool,
}

impl On {
    /// Whether `channel` hears of this fault by another of `all`, all alerts that are on, so that this one says nothing there: a
    /// job that crashes again and again, or was given up, is not also told as one that does not run. That it was given up
    /// is news to who heard that it crashes: from then on nothing goes on by itself.
    #[must_use]
    pub fn is_told_by_another(&self, all: &[On], channel: &str) -> bool {
        let Some(rank) = self.when.of_one_fault() else { return false };
        if self.heard.contains(channel) {
            return false;
        }
        let mine = all.iter().position(|other| std::ptr::eq(self, other));
        let is_of_this = |other: &On| {
            other.subject == self.subject && other.to.iter().any(|name| name == channel)
        };
        all.iter().enumerate().filter(|(nth, other)| Some(*nth) != mine && is_of_this(other)).any(
            |(nth, other)| {
                let Some(others) = other.when.of_one_fault() else { return false };
                let is_worse = self.when == When::GivenUp && other.when != When::GivenUp;
                match other.heard.contains(channel) {
                    true => !is_worse,
                    false if other.muted => false,
                    // Neither was sent: the worse one is sent, or the one that began first.
                    false => others > rank || (others == rank && Some(nth) < mine),
                }
            },
        )
    }
}

/// An alert begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The name of its rule.
    pub alert: String,
    /// What the rule is about.
    pub when: When,
    /// What it is true of.
    pub subject: Subject,
    /// Since when.
    pub mark: Mark,
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// What begins.
    pub begin: Vec<Begin>,
    /// Which of those that are on are over, by their number.
    pub end: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Participant, Progress, RunPhase, RunRecord};
    use crate::lease::Token;
    use crate::limits::{Limits, Quiet, progressed};
    use crate::name::{RunId, UserName};

    fn rule(when: When, seconds: u64) -> Rule {
        Rule {
            name: when.as_str().to_owned(),
            when,
            lasting: Duration::from_secs(seconds),
            jobs: vec!["*".to_owned()],
            to: vec!["ops".to_owned()],
        }
    }

    fn wanted() -> JobRecord {
        let mut record = JobRecord::untouched(JobName::new("outbound").unwrap());
        let user = UserName::new("li").unwrap();
        record.participants.push(Participant { user, since: StoreTime(0) });
        record
    }

    fn running() -> JobRecord {
        let mut record = wanted();
        record.run = Some(RunRecord {
            id: RunId("r".to_owned()),
            token: Token(1),
            node: NodeName::new("node-a").unwrap(),
            pid: 1,
            started: StoreTime(0),
            phase: RunPhase::Running,
            progress: None,
            last_output: None,
        });
        record
    }

    fn look(watch: &mut Watch, record: &JobRecord, state: State, now: i64) {
        let jobs =
            vec![JobSight { record, state, schedule: None, progressed: None, drift: Vec::new() }];
        watch.look(&Sight { now: StoreTime(now), jobs, ..Sight::default() });
    }

    fn on(begun: &Begin) -> On {
        let Begin { alert, when, subject, mark } = begun.clone();
        let (to, heard) = (vec!["ops".to_owned()], BTreeSet::new());
        On { alert, when, subject, print: mark.print, to, heard, muted: false }
    }

    #[test]
    fn what_lasts_long_enough_begins_once_and_ends_when_it_is_over() {
        let rule = rule(When::WantedNotRunning, 30);
        let (mut watch, record) = (Watch::default(), wanted());
        look(&mut watch, &record, State::Waiting, 1_000);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(30_999)), Changes::default());
        look(&mut watch, &record, State::BackingOff, 20_000);
        let changes = watch.changes(&[&rule], &[], StoreTime(31_000));
        assert_eq!(changes.begin[0].mark.since, StoreTime(1_000), "another word for the same");
        let told = [on(&changes.begin[0])];
        assert_eq!(watch.changes(&[&rule], &told, StoreTime(32_000)), Changes::default());
        look(&mut watch, &record, State::Resting, 33_000);
        assert_eq!(watch.changes(&[&rule], &told, StoreTime(33_000)).end, [0]);
        assert_eq!(watch.changes(&[], &told, StoreTime(33_000)).end, [0], "the rule is gone");
    }

    #[test]
    fn a_new_sender_does_not_end_what_still_lasts() {
        let rule = rule(When::WantedNotRunning, 30);
        let (mut old, record) = (Watch::default(), wanted());
        look(&mut old, &record, State::Waiting, 0);
        let told = [on(&old.changes(&[&rule], &[], StoreTime(30_000)).begin[0])];
        let mut new = Watch::default();
        look(&mut new, &record, State::Waiting, 30_500);
        assert_eq!(new.changes(&[&rule], &told, StoreTime(30_500)), Changes::default());
    }

    #[test]
    fn nobody_is_told_of_a_job_that_nobody_wants_or_of_others_than_the_rule_names() {
        let mut rule = rule(When::WantedNotRunning, 0);
        let (mut watch, mut record) = (Watch::default(), wanted());
        record.participants.clear();
        look(&mut watch, &record, State::Unknown, 0);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(9)), Changes::default());
        look(&mut watch, &wanted(), State::Waiting, 0);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(9)).begin.len(), 1);
        rule.jobs = vec!["labels".to_owned()];
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(9)), Changes::default());
    }

    #[test]
    fn three_crashes_in_a_row_are_a_loop_and_the_last_try_is_none() {
        let rules = [rule(When::CrashLoop, 0), rule(When::GivenUp, 0)];
        let told = |crashes, state| {
            let mut record = wanted();
            record.crashes = crashes;
            let mut watch = Watch::default();
            look(&mut watch, &record, state, 0);
            let begin = watch.changes(&[&rules[0], &rules[1]], &[], StoreTime(0)).begin;
            begin.into_iter().map(|begin| begin.when).collect::<Vec<_>>()
        };
        assert_eq!(told(2, State::BackingOff), []);
        assert_eq!(told(3, State::BackingOff), [When::CrashLoop]);
        assert_eq!(told(3, State::Starting), [When::CrashLoop], "the row is not over");
        assert_eq!(told(3, State::GivenUp), [When::GivenUp]);
    }

    #[test]
    fn a_run_that_says_something_is_not_stuck_any_more() {
        let rule = rule(When::Stuck, 300);
        let (mut watch, mut record) = (Watch::default(), running());
        look(&mut watch, &record, State::Running, 299_000);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(299_000)), Changes::default());
        let told = [on(&watch.changes(&[&rule], &[], StoreTime(300_000)).begin[0])];
        look(&mut watch, &record, State::Running, 301_000);
        assert_eq!(watch.changes(&[&rule], &told, StoreTime(301_000)), Changes::default());
        record.run.as_mut().unwrap().last_output = Some(StoreTime(302_000));
        look(&mut watch, &record, State::Running, 302_000);
        let changes = watch.changes(&[&rule], &told, StoreTime(302_000));
        assert_eq!((changes.begin.len(), changes.end), (0, vec![0]));
    }

    #[test]
    fn pages_say_that_a_run_is_stuck_when_the_alert_begins_and_no_longer_than_it_lasts() {
        let rule = rule(When::Stuck, 30);
        let limits = Limits { stuck: Some(rule.lasting), ..Limits::default() };
        let (mut watch, mut record) = (Watch::default(), running());
        let mut progress = None;
        let mut stuck = 0;
        for second in 0..600_i64 {
            let now = StoreTime(second * 1_000);
            let before = record.clone();
            let run = record.run.as_mut().unwrap();
            match second {
                20 | 77 | 400 => run.last_output = Some(now),
                // From 140 on it tells the same again and again.
                100..=300 => {
                    let done = u64::try_from(second.min(140)).unwrap();
                    run.progress = Some(Progress { done, total: 200, note: String::new() });
                }
                500 => run.id = RunId("another".to_owned()),
                _ => {}
            }
            progress = progressed(&record, Some((&before, progress)), now);
            let (state, drift) = (State::Running, Vec::new());
            let jobs = vec![JobSight {
                record: &record,
                state,
                schedule: None,
                progressed: progress,
                drift,
            }];
            watch.look(&Sight { now, jobs, ..Sight::default() });
            let begun = watch.changes(&[&rule], &[], now).begin;
            let alert = begun.first().map(|begun| Quiet::StuckSince(begun.mark.since));
            let page = limits.quiet(record.run.as_ref().unwrap(), progress, now);
            assert_eq!(page, alert, "second {second}");
            stuck += usize::from(page.is_some());
        }
        // From 50 to 76, 170 to 399, 430 to 499 and 530 to 599.
        assert_eq!(stuck, 27 + 230 + 70 + 70);
    }

    #[test]
    fn no_success_for_as_long_as_the_rule_says_is_told_until_the_next_one() {
        let rule = rule(When::NoSuccessFor, 3_600);
        let (mut watch, mut record) = (Watch::default(), wanted());
        record.last_success = Some(StoreTime(1_000));
        let hour = 3_600_000;
        // It runs, and that is no success.
        look(&mut watch, &record, State::Running, hour);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(hour)), Changes::default());
        let now = StoreTime(hour + 1_000);
        let told = [on(&watch.changes(&[&rule], &[], now).begin[0])];
        record.participants[0].since = StoreTime(hour);
        look(&mut watch, &record, State::Running, now.0);
        assert_eq!(watch.changes(&[&rule], &told, now), Changes::default(), "another wants it");
        record.last_success = Some(now);
        look(&mut watch, &record, State::Running, now.0);
        let changes = watch.changes(&[&rule], &told, now);
        assert_eq!((changes.begin.len(), changes.end), (0, vec![0]));
        record.participants.clear();
        look(&mut watch, &record, State::Off, now.0 * 9);
        assert_eq!(watch.changes(&[&rule], &[], StoreTime(now.0 * 9)), Changes::default());
    }

    #[test]
    fn of_a_late_job_a_channel_hears_once_whichever_rule_comes_first() {
        let of = |when: When, heard: &[&str]| On {
            alert: when.as_str().to_owned(),
            when,
            subject: Subject { job: Some(JobName::new("outbound").unwrap()), ..Subject::default() },
            print: String::new(),
            to: vec!["ops".to_owned()],
            heard: heard.iter().map(|name| (*name).to_owned()).collect(),
            muted: false,
        };
        let all = [of(When::WantedNotRunning, &["ops"]), of(When::NotStarted, &[])];
        assert!(all[1].is_told_by_another(&all, "ops"));
        let all = [of(When::NotStarted, &["ops"]), of(When::MissedTick, &[])];
        assert!(!all[1].is_told_by_another(&all, "ops"), "that it is not run any more is news");
    }

    #[test]
    fn nodes_stores_and_sources_are_told_by_name() {
        let rules = [
            rule(When::NodeLost, 30),
            rule(When::StoreLost, 30),
            rule(When::OverdueClaims, 30),
            rule(When::Drift, 30),
        ];
        let node = |name| NodeName::new(name).unwrap();
        let record = wanted();
        let sight = |now| Sight {
            now: StoreTime(now),
            jobs: vec![JobSight {
                record: &record,
                state: State::Running,
                schedule: None,
                progressed: None,
                drift: vec![node("c")],
            }],
            silent: vec![(node("b"), StoreTime(500))],
            cut_off: Some((node("a"), StoreTime(0))),
            overdue: vec![("shop".parse().unwrap(), StoreTime(0))],
        };
        let mut watch = Watch::default();
        watch.look(&sight(1_000));
        let rules: Vec<&Rule> = rules.iter().collect();
        let words = |now| {
            let begin = watch.changes(&rules, &[], StoreTime(now)).begin;
            begin.into_iter().map(|begin| begin.when.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(words(30_000), ["store_lost", "overdue_claims"]);
        assert_eq!(words(30_500), ["node_lost", "store_lost", "overdue_claims"]);
        assert_eq!(words(31_000), ["node_lost", "store_lost", "overdue_claims", "drift"]);
    }
}
