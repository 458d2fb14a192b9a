//! What the store knows of a job, and the one word for its state.
//!
//! The state is computed from *wanted x lease x run x freshness* and never stored.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drill::Drill;
use super::lease::Token;
use super::name::{JobName, NodeName, Owner, RunId, UserName};
use super::spent::Newest;
use super::tick::{Clock, Outcome, Upcoming};
use super::time::StoreTime;

/// One user's switch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Participant {
    /// Who wants the job on.
    pub user: UserName,
    /// Since when.
    pub since: StoreTime,
}

/// An operator forbids the job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Hold {
    pub by: UserName,
    pub reason: String,
    pub since: StoreTime,
}

/// The store's record that one node may run the job. It exists if and only if a holder may be running it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseRecord {
    /// The holder.
    pub node: NodeName,
    /// Random per acquisition.
    pub owner: Owner,
    /// The fencing token.
    pub token: Token,
    /// When it was granted.
    pub since: StoreTime,
    /// Time left, by the store's clock, at the moment of the snapshot.
    pub expires_in: Duration,
    /// Its full length, from the record and not from a node's configuration.
    pub ttl: Duration,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum RunPhase {
    /// The script runs.
    Running,
    /// TERM was sent; KILL follows at `kill_at`.
    Stopping {
        /// When KILL goes to the whole tree.
        kill_at: StoreTime,
    },
}

/// How far a run says it is (`::progress 120/830 shipping order 10248`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    pub note: String,
}

impl Progress {
    /// Longest note, in characters.
    const LONGEST_NOTE: usize = 200;

    /// With a note that is cut if it is too long.
    #[must_use]
    pub fn new(done: u64, total: u64, note: &str) -> Self {
        Self { done, total, note: note.trim().chars().take(Self::LONGEST_NOTE).collect() }
    }
}

/// The present execution of the job's command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Under which token.
    pub token: Token,
    /// Where.
    pub node: NodeName,
    /// Of the script's first process.
    pub pid: u32,
    /// When it was spawned.
    pub started: StoreTime,
    /// Running or stopping.
    pub phase: RunPhase,
    /// Newest progress line.
    pub progress: Option<Progress>,
    /// Newest output.
    pub last_output: Option<StoreTime>,
}

impl RunRecord {
    /// It showed nothing: no line of output, no progress.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.progress.is_none() && self.last_output.is_none()
    }
}

/// How a process ended: an exit code or the signal that killed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Exit {
    /// Exit code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// By itself, with exit code 0.
    Exited,
    /// By itself, any other way; or it could not be started.
    Crashed,
    /// Because no user wanted it, it was held, moved or drained, or the node shut down.
    Stopped,
    /// Its node died or went silent.
    Lost,
    /// The kernel said that the program that held the job is dead, or the guard of its tick; a loss, as `Lost` is.
    Died,
    /// Its lease was lost or could not be renewed in time, and the guard killed it.
    Fenced,
    /// It ran for longer than `max_runtime`, or said nothing for `max_silence`, and was stopped. Counts as a crash.
    TimedOut,
}

impl RunEnd {
    /// As it is shown to programs: what is known only here is a loss for them.
    #[must_use]
    pub fn shown(self) -> Self {
        if self == Self::Died { Self::Lost } else { self }
    }

    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Crashed => "crashed",
            Self::Stopped => "stopped",
            Self::Lost | Self::Died => "lost",
            Self::Fenced => "fenced",
            Self::TimedOut => "timed_out",
        }
    }
}

/// How the newest run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LastExit {
    pub exit: Exit,
    pub end: RunEnd,
    pub node: NodeName,
    pub at: StoreTime,
    /// A watched program died within `min_uptime` of its grant: if the next one does, that is a crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
}

/// What happens next if no person acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextWhat {
    /// Exit 0, and the job repeats.
    Repeat,
    /// A crash, and the backoff ends.
    Retry,
}

/// The earliest instant of the next run, by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Next {
    pub what: NextWhat,
    pub at: StoreTime,
}

/// The newest switching of a participation, kept so that "off" can say who and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LastSwitch {
    pub user: UserName,
    pub on: bool,
    pub at: StoreTime,
    pub reason: Option<String>,
}

/// An operator asked for a hand-over. It ends when another node holds the job, or at `until`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Move {
    /// The holder when it was asked for; that node must not take the job again until `until`.
    pub from: Option<NodeName>,
    /// The wanted node; any other when absent.
    pub to: Option<NodeName>,
    /// Who asked.
    pub by: UserName,
    /// When the wish lapses.
    pub until: StoreTime,
}

/// Everything the store knows of one job at one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRecord {
    /// Which job.
    pub name: JobName,
    /// Grows with every change; 0 for a job that was never touched.
    pub version: u64,
    /// Who wants it, oldest first.
    pub participants: Vec<Participant>,
    /// Forbidden?
    pub hold: Option<Hold>,
    /// Who may be running it.
    pub lease: Option<LeaseRecord>,
    /// The present run; may outlive the lease until the next holder closes it as lost.
    pub run: Option<RunRecord>,
    /// How the newest run ended.
    pub last_exit: Option<LastExit>,
    /// When a run ended well for the last time, as far as that was noted.
    pub last_success: Option<StoreTime>,
    /// Who switched last.
    pub last_switch: Option<LastSwitch>,
    /// Crashes in a row.
    pub crashes: u32,
    /// Earliest next run.
    pub next: Option<Next>,
    /// The attempts are used up; switching on again or `resume` clears it.
    pub given_up: bool,
    /// A hand-over in progress.
    pub moving: Option<Move>,
    /// The newest drill and its result.
    pub drill: Option<Drill>,
    /// Highest token ever granted.
    pub token: Token,
    /// Newest line of output, for the dashboard.
    pub last_line: Option<String>,
    /// Sequence number of the newest line of output; 0 when there is none.
    pub log_seq: u64,
    /// Its ticks, of a job that has, or had, a schedule.
    pub clock: Option<Box<Clock>>,
    /// The newest tick that was spent under this name, of a lease that was asked for with one.
    pub spent: Option<Box<Newest>>,
}

impl JobRecord {
    /// A job that was never touched.
    #[must_use]
    pub fn untouched(name: JobName) -> Self {
        Self {
            name,
            version: 0,
            participants: Vec::new(),
            hold: None,
            lease: None,
            run: None,
            last_exit: None,
            last_success: None,
            last_switch: None,
            crashes: 0,
            next: None,
            given_up: false,
            moving: None,
            drill: None,
            token: Token(0),
            last_line: None,
            log_seq: 0,
            clock: None,
            spent: None,
        }
    }

    /// At least one user participates, or asked for a run; and no user holds it.
    #[must_use]
    pub fn wanted(&self) -> bool {
        let on = !self.participants.is_empty();
        self.hold.is_none() && self.clock.as_ref().map_or(on, |clock| clock.wanted_for(on))
    }

    /// At least one user participates, and no user holds it: what counts for a job that runs continuously.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.hold.is_none() && !self.participants.is_empty()
    }

    /// When a wanted job became free: when it was first wanted, or when its newest run ended.
    #[must_use]
    pub fn free_since(&self) -> Option<StoreTime> {
        let wanted = self.participants.iter().map(|p| p.since).min();
        let ended = self.last_exit.as_ref().map(|last| last.at);
        wanted.into_iter().chain(ended).max()
    }

    /// When a run ended well for the last time. Older programs noted it only in other places.
    #[must_use]
    pub fn success(&self) -> Option<StoreTime> {
        let exited = self.last_exit.as_ref().filter(|last| last.end == RunEnd::Exited);
        let ticks = self.clock.iter().flat_map(|clock| &clock.recent);
        let done = ticks.filter(|entry| entry.outcome == Outcome::Done).filter_map(|one| one.ended);
        self.last_success.or_else(|| exited.map(|last| last.at).into_iter().chain(done).max())
    }

    /// Since when a wanted job has had no success: its last one, or when it was first wanted after that.
    #[must_use]
    pub fn without_success_since(&self) -> Option<StoreTime> {
        let wanted = self.participants.iter().map(|one| one.since).min()?;
        Some(self.success().map_or(wanted, |success| success.max(wanted)))
    }

    /// Whether `later` differs from this only by what its run printed and how far it says it is.
    #[must_use]
    pub fn only_moves_on(&self, later: &Self) -> bool {
        let calm = |record: &Self| {
            let mut calm = Self { version: 0, last_line: None, log_seq: 0, ..record.clone() };
            if let Some(lease) = &mut calm.lease {
                lease.expires_in = Duration::ZERO;
            }
            if let Some(run) = &mut calm.run {
                run.last_output = run.last_output.map(|_| StoreTime(0));
                // The first progress makes a bar.
                if let Some(progress) = &mut run.progress {
                    *progress = Progress { done: 0, total: 0, note: String::new() };
                }
            }
            calm
        };
        self.version < later.version && calm(self) == calm(later)
    }

    /// Nothing is left in it but how often it changed and the newest token. It is compared with an untouched one, so that a new field
    /// keeps a record unless somebody thinks of this.
    #[must_use]
    pub fn is_void(&self) -> bool {
        let untouched = Self::untouched(self.name.clone());
        *self == Self { version: self.version, token: self.token, ..untouched }
    }

    /// Whether `user` participates.
    #[must_use]
    pub fn participates(&self, user: &UserName) -> bool {
        self.participants.iter().any(|p| &p.user == user)
    }
}

/// What a job is doing, in one word; `docs/states.md` has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/states.md defines each word")]
pub enum State {
    Off,
    Waiting,
    Resting,
    Starting,
    Running,
    BackingOff,
    GivenUp,
    Stopping,
    FailingOver,
    Held,
    Unknown,
    Scheduled,
    Late,
}

impl State {
    /// All of them, for metrics and tests.
    pub const ALL: [State; 13] = [
        Self::Off,
        Self::Waiting,
        Self::Resting,
        Self::Starting,
        Self::Running,
        Self::BackingOff,
        Self::GivenUp,
        Self::Stopping,
        Self::FailingOver,
        Self::Held,
        Self::Unknown,
        Self::Scheduled,
        Self::Late,
    ];

    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Waiting => "waiting",
            Self::Resting => "resting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
            Self::GivenUp => "given_up",
            Self::Stopping => "stopping",
            Self::FailingOver => "failing_over",
            Self::Held => "held",
            Self::Unknown => "unknown",
            Self::Scheduled => "scheduled",
            Self::Late => "late",
        }
    }
}

/// The viewpoint on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewpoint {
    /// The store's clock now, as well as this node knows it.
    pub now: StoreTime,
    /// How long ago the record was last confirmed by the store.
    pub age: Duration,
    /// Older than this, nothing is known: within lease + 500 ms it has been told.
    pub stale_after: Duration,
    /// `min_uptime` of the job.
    pub min_uptime: Duration,
    /// Its runs are turns of a rotation: under its lease it waits for the next.
    pub takes_turns: bool,
    /// That turn cannot come before an operator changes the rotation.
    pub turn_barred: bool,
    /// A living node may take it, as far as nodes are known.
    pub can_run: bool,
    /// A lease that was not renewed for this long has a silent holder.
    pub silent_after: Duration,
    /// How much longer the store doubts its own memory: it was emptied or replaced, and a lease that it does not know
    /// may be living. Zero when all is well.
    pub quarantine: Duration,
    /// Its run has ended here, and the store does not know it yet.
    pub ended_here: Option<Untold>,
    /// Its next tick, of a job with a schedule.
    pub ticks: Option<Upcoming>,
}

impl Viewpoint {
    /// Whether a run that started then has been up for `min_uptime`. A start that lies further ahead than that is of a
    /// clock that was wrong and has been put back.
    fn is_up(&self, started: StoreTime) -> bool {
        self.now.since(started) >= self.min_uptime || started.since(self.now) > self.min_uptime
    }
}

/// The end of a run that the record does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untold {
    /// When.
    pub at: StoreTime,
    /// It was killed, because its lease could not be renewed.
    pub fenced: bool,
}

/// If no node has taken a due run for this long, something is in its way.
const OVERDUE: Duration = Duration::from_secs(2);

/// The word for `record` as seen from `view`.
///
/// A lease always outranks everything but ignorance: while it exists its holder may be running, so the word is
/// never `off` or `held`, and `resting` or `waiting` only for a member of a rotation before its turn. A store that
/// forgot may have forgotten a lease: until every old one has run out nothing is called off, given up or held.
/// `resting` is said only when time alone brings the next run: whatever else must happen first makes it `waiting`.
#[must_use]
pub fn state(record: &JobRecord, view: &Viewpoint) -> State {
    if view.age > view.stale_after || view.ended_here.is_some() {
        return State::Unknown;
    }
    if let Some(lease) = &record.lease {
        // Judged by what was read, not by the age of the reading: a node that cannot ask the store knows nothing of
        // the holder's silence.
        if lease.expires_in + view.silent_after < lease.ttl {
            return State::FailingOver;
        }
        let run = record.run.as_ref().filter(|run| run.token == lease.token);
        return match run {
            _ if !record.wanted() => State::Stopping,
            Some(RunRecord { phase: RunPhase::Stopping { .. }, .. }) => State::Stopping,
            Some(run) if view.is_up(run.started) => State::Running,
            None if view.turn_barred => State::Waiting,
            None if view.takes_turns => State::Resting,
            _ => State::Starting,
        };
    }
    if !view.quarantine.is_zero() && (!record.wanted() || record.given_up) {
        return State::Unknown;
    }
    if record.hold.is_some() {
        return State::Held;
    }
    if record.participants.is_empty() {
        // A requested run still comes.
        return if record.wanted() { State::Waiting } else { State::Off };
    }
    if let Some(upcoming) = view.ticks {
        return match upcoming {
            Upcoming::Barred => State::Waiting,
            Upcoming::Retry(at) if at > view.now => State::BackingOff,
            Upcoming::Retry(at) | Upcoming::At(at) if at + OVERDUE < view.now => State::Late,
            Upcoming::Retry(_) | Upcoming::At(_) | Upcoming::Never => State::Scheduled,
        };
    }
    if record.given_up {
        return State::GivenUp;
    }
    match record.next {
        // Once it is due, nothing but a node is missing.
        Some(Next { what: NextWhat::Retry, at }) if at > view.now || view.can_run => {
            State::BackingOff
        }
        Some(Next { what: NextWhat::Repeat, at }) if comes_by_itself(at, view) => State::Resting,
        _ => State::Waiting,
    }
}

/// Whether a run that is due `at` needs nothing but time.
fn comes_by_itself(at: StoreTime, view: &Viewpoint) -> bool {
    view.can_run && view.now <= at + OVERDUE && view.quarantine <= at.since(view.now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(5);

    fn view(now: i64, age_ms: u64) -> Viewpoint {
        Viewpoint {
            now: StoreTime(now),
            age: Duration::from_millis(age_ms),
            stale_after: TTL + Duration::from_millis(500),
            min_uptime: TTL,
            takes_turns: false,
            turn_barred: false,
            can_run: true,
            silent_after: Duration::from_secs(2),
            quarantine: Duration::ZERO,
            ended_here: None,
            ticks: None,
        }
    }

    fn user(name: &str) -> UserName {
        UserName::new(name).expect("a valid name")
    }

    fn leased(wanted: bool) -> JobRecord {
        let node = NodeName::new("node-a").expect("a valid name");
        let mut record = JobRecord::untouched(JobName::new("outbound").expect("a valid name"));
        if wanted {
            record.participants.push(Participant { user: user("li"), since: StoreTime(0) });
        }
        record.lease = Some(LeaseRecord {
            node: node.clone(),
            owner: Owner("o".into()),
            token: Token(7),
            since: StoreTime(0),
            expires_in: TTL,
            ttl: TTL,
        });
        record.run = Some(RunRecord {
            id: RunId("r".into()),
            token: Token(7),
            node,
            pid: 1,
            started: StoreTime(0),
            phase: RunPhase::Running,
            progress: None,
            last_output: None,
        });
        record
    }

    /// Its lease was not renewed for longer than a living holder waits.
    fn silent() -> JobRecord {
        let mut record = leased(true);
        let lease = record.lease.as_mut().expect("a lease");
        lease.expires_in = TTL - Duration::from_millis(2_100);
        record
    }

    #[test]
    fn off_is_never_said_while_a_lease_exists() {
        assert_eq!(state(&leased(false), &view(100, 0)), State::Stopping);
        let mut held = leased(true);
        held.hold = Some(Hold { by: user("li"), reason: "x".into(), since: StoreTime(0) });
        assert_eq!(state(&held, &view(100, 0)), State::Stopping);
        held.lease = None;
        assert_eq!(state(&held, &view(100, 0)), State::Held);
    }

    #[test]
    fn a_store_that_forgot_does_not_say_off_before_every_old_lease_has_run_out() {
        let mut record = leased(false);
        record.lease = None;
        let doubted = Viewpoint { quarantine: Duration::from_millis(1), ..view(100, 0) };
        assert_eq!(state(&record, &doubted), State::Unknown);
        assert_eq!(state(&record, &view(100, 0)), State::Off);
        let mut wanted = leased(true);
        wanted.lease = None;
        assert_eq!(state(&wanted, &doubted), State::Waiting);
    }

    #[test]
    fn an_old_picture_is_unknown_and_a_silent_holder_is_failing_over() {
        assert_eq!(state(&leased(true), &view(100, 0)), State::Starting);
        assert_eq!(state(&leased(true), &view(6_000, 0)), State::Running);
        assert_eq!(state(&silent(), &view(6_000, 0)), State::FailingOver);
        assert_eq!(state(&silent(), &view(6_000, 5_501)), State::Unknown);
    }

    #[test]
    fn a_run_of_a_clock_that_was_ahead_and_was_put_back_does_not_start_for_years() {
        let mut early = leased(true);
        early.run.as_mut().unwrap().started = StoreTime(2_000_000_000_000);
        assert_eq!(state(&early, &view(6_000, 0)), State::Running);
        early.run.as_mut().unwrap().started = StoreTime(6_100);
        assert_eq!(state(&early, &view(6_000, 0)), State::Starting, "clocks differ a little");
    }

    #[test]
    fn a_run_that_has_ended_here_is_not_called_running_until_the_store_knows() {
        let ended = Some(Untold { at: StoreTime(5_900), fenced: true });
        let here = Viewpoint { ended_here: ended, ..view(6_000, 0) };
        assert_eq!(state(&leased(true), &here), State::Unknown);
        assert_eq!(state(&leased(false), &here), State::Unknown);
    }

    #[test]
    fn a_reader_that_cannot_ask_does_not_call_the_holder_silent() {
        for age_ms in [2_100, 3_500, 5_500] {
            assert_eq!(state(&leased(true), &view(6_000, age_ms)), State::Running, "{age_ms}");
        }
    }

    #[test]
    fn a_job_between_two_runs_rests_until_something_is_in_the_way() {
        let mut record = leased(true);
        (record.lease, record.run) = (None, None);
        record.next = Some(Next { what: NextWhat::Repeat, at: StoreTime(10_000) });
        assert_eq!(state(&record, &view(4_000, 0)), State::Resting);
        assert_eq!(state(&record, &view(12_000, 0)), State::Resting, "due, and about to start");
        assert_eq!(state(&record, &view(12_001, 0)), State::Waiting, "nobody takes it");
        let barred = Viewpoint { can_run: false, ..view(4_000, 0) };
        assert_eq!(state(&record, &barred), State::Waiting, "no node may take it");
        let doubted = |ms| Viewpoint { quarantine: Duration::from_millis(ms), ..view(4_000, 0) };
        assert_eq!(state(&record, &doubted(6_000)), State::Resting, "the doubt ends before");
        assert_eq!(state(&record, &doubted(6_001)), State::Waiting);
        assert_eq!(state(&record, &view(4_000, 5_501)), State::Unknown);
        record.next = None;
        assert_eq!(state(&record, &view(4_000, 0)), State::Waiting, "it never ran");
        record.next = Some(Next { what: NextWhat::Retry, at: StoreTime(10_000) });
        assert_eq!(state(&record, &view(4_000, 0)), State::BackingOff);
        assert_eq!(state(&record, &barred), State::BackingOff, "time is missing, too");
        assert_eq!(state(&record, &view(10_000, 0)), State::BackingOff, "about to start");
        let barred = Viewpoint { can_run: false, ..view(10_000, 0) };
        assert_eq!(state(&record, &barred), State::Waiting, "no node may take it");
    }

    #[test]
    fn a_free_job_is_free_since_its_last_end_or_since_it_was_wanted() {
        let mut record = leased(true);
        record.participants[0].since = StoreTime(1_000);
        record.participants.push(Participant { user: user("wang"), since: StoreTime(7_000) });
        assert_eq!(record.free_since(), Some(StoreTime(1_000)), "not since the second one joined");
        record.last_exit = Some(LastExit {
            exit: Exit::default(),
            end: RunEnd::Exited,
            node: NodeName::new("node-a").expect("a valid name"),
            at: StoreTime(5_000),
            early: false,
        });
        assert_eq!(record.free_since(), Some(StoreTime(5_000)));
        record.participants[0].since = StoreTime(9_000);
        assert_eq!(record.free_since(), Some(StoreTime(7_000)), "switched on again");
    }

    #[test]
    fn a_member_of_a_rotation_rests_under_its_lease_until_its_run_begins() {
        let member = |age_ms| Viewpoint { takes_turns: true, ..view(6_000, age_ms) };
        let mut record = leased(true);
        assert_eq!(state(&record, &member(0)), State::Running);
        record.run = None;
        assert_eq!(state(&record, &member(0)), State::Resting);
        let barred = Viewpoint { turn_barred: true, ..member(0) };
        assert_eq!(state(&record, &barred), State::Waiting, "its turn cannot come");
        assert_eq!(state(&record, &view(6_000, 0)), State::Starting, "it is no member");
        assert_eq!(state(&silent(), &member(0)), State::FailingOver);
        record.participants.clear();
        assert_eq!(state(&record, &member(0)), State::Stopping, "never off under a lease");
    }
}
