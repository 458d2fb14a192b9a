//! A row's sentence: short clauses of evidence, then, standing out, what happens next.

use std::time::Duration;

use super::{LeaseLeft, Scene, Waiting, state_word};
use crate::tick_words::{called, run_of, why, zone_of};
use crate::words::{
    Arg, Piece, clock, duration, exactly, minute, phrase, plain, planned, say, until,
};
use soloist_domain::job::{
    Exit, LastExit, LeaseRecord, NextWhat, RunEnd, RunPhase, RunRecord, State, Untold,
};
use soloist_domain::limits::{Limit, Quiet};
use soloist_domain::tick::{Clock, Open, Phase, Tick, next_tick};
use soloist_domain::time::{StoreTime, millis};

/// How far the clocks of node and store may be apart when a limit is reached.
const CLOCKS: Duration = Duration::from_millis(500);

/// One part of a row's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Whether it is the part that says what happens next.
    pub next: bool,
    /// Its words.
    pub pieces: Vec<Piece>,
}

impl Scene<'_> {
    fn clause(&self, id: &str, args: &[(&str, Piece)]) -> Clause {
        Clause { next: false, pieces: phrase(self.lang, id, args) }
    }

    fn next(&self, id: &str, args: &[(&str, Piece)]) -> Clause {
        Clause { next: true, pieces: phrase(self.lang, id, args) }
    }

    pub(super) fn run(&self) -> Option<&RunRecord> {
        let lease = self.record.lease.as_ref()?;
        self.record.run.as_ref().filter(|run| run.token == lease.token)
    }

    pub(super) fn until(&self, at: StoreTime) -> Piece {
        until(self.lang, at, self.now)
    }

    pub(super) fn since(&self, at: StoreTime) -> Piece {
        Piece::Since { ms: at.0, text: duration(self.lang, self.now.since(at)) }
    }

    pub(super) fn clock(&self, at: StoreTime) -> Piece {
        clock(self.lang, at, self.now)
    }

    /// When the holder last renewed its lease, which was `ttl` long then.
    pub(super) fn heard(&self, lease: &LeaseRecord) -> StoreTime {
        let left = lease.expires_in.saturating_sub(self.age);
        self.ago(lease.ttl.saturating_sub(left))
    }

    pub(super) fn expires(&self, lease: &LeaseRecord) -> StoreTime {
        self.now + lease.expires_in.saturating_sub(self.age)
    }

    pub(super) fn ago(&self, length: Duration) -> StoreTime {
        self.now - length
    }

    /// `exit 1`, `signal 9`, or that it could not be started.
    pub(super) fn exit(&self, exit: Exit) -> Piece {
        let number = |n: i32| [("n", Arg::from(n.to_string()))];
        Piece::Text(match exit {
            Exit { code: Some(code), .. } => say(self.lang, "exit-code", &number(code)),
            Exit { signal: Some(signal), .. } => say(self.lang, "exit-signal", &number(signal)),
            _ => say(self.lang, "exit-none", &[]),
        })
    }

    /// How the newest run ended: as [`Self::exit`], or for which limit it was stopped.
    pub(super) fn last_exit(&self, last: &LastExit) -> Piece {
        match last.end {
            RunEnd::TimedOut => {}
            RunEnd::Died => return Piece::Text(say(self.lang, "exit-died", &[])),
            _ => return self.exit(last.exit),
        }
        let length = |limit| Piece::Text(exactly(self.lang, limit));
        let timed = |id, limit| {
            let pieces = phrase(self.lang, id, &[("limit", length(limit))]);
            Piece::Text(plain(&pieces))
        };
        match (self.job.max_runtime, self.job.max_silence) {
            (Some(runtime), silence) if silence.is_none() || self.says(Limit::Runtime(runtime)) => {
                timed("exit-runtime", runtime)
            }
            (runtime, Some(silence)) if runtime.is_none() || self.says(Limit::Silence(silence)) => {
                timed("exit-silence", silence)
            }
            _ => Piece::Text(say(self.lang, "exit-timed-out", &[])),
        }
    }

    /// Whether the newest line of output says that this limit was reached.
    fn says(&self, limit: Limit) -> bool {
        self.record.last_line.as_ref().is_some_and(|line| *line == limit.to_string())
    }

    /// Why a run that is still wanted is being stopped: it has lasted or been silent for too long.
    pub(super) fn limit(&self) -> Option<String> {
        let run = self.run().filter(|run| matches!(run.phase, RunPhase::Stopping { .. }))?;
        let said = |id, limit| {
            let args = [("limit", Arg::from(exactly(self.lang, limit)))];
            Some(say(self.lang, id, &args))
        };
        if let Some(silence) =
            self.job.max_silence.filter(|limit| self.says(Limit::Silence(*limit)))
        {
            return said("over-silence", silence);
        }
        let lasted = self.now.since(run.started) + CLOCKS;
        said("over-runtime", self.job.max_runtime.filter(|limit| lasted >= *limit)?)
    }

    /// When a run must have ended, if it must.
    fn ends_at(&self, run: &RunRecord) -> Option<Clause> {
        let at = self.job.must_end_by(run.started)?;
        Some(self.clause("ends-at-latest", &[("at", minute(self.lang, at, self.now))]))
    }

    /// Who takes over: its name when only one can, else words for "another node".
    pub(super) fn successor(&self, lease: &LeaseRecord) -> Option<Piece> {
        let others: Vec<_> =
            self.offering().filter(|node| !node.draining && node.beat.node != lease.node).collect();
        match others.as_slice() {
            [] => None,
            [only] => Some(Piece::strong(&only.beat.node)),
            _ => Some(Piece::Text(say(self.lang, "another-node", &[]))),
        }
    }

    pub(super) fn evidence(&self) -> Vec<Clause> {
        let record = self.record;
        match (self.state, &record.lease) {
            (State::Unknown, _) => self.unknown(),
            (State::FailingOver, Some(lease)) => self.failing_over(lease),
            (State::Stopping, Some(lease)) => self.stopping(lease),
            (State::Waiting | State::Resting, Some(lease)) => self.waits_for_turn(lease),
            (_, Some(lease)) => self.at_work(lease),
            (State::Held, None) => self.held(),
            (State::BackingOff | State::GivenUp, None) => self.crashed(),
            (State::Waiting, None) => vec![self.waits()],
            (State::Resting, None) => vec![self.rests()],
            (State::Scheduled, None) => vec![self.scheduled()],
            (State::Late, None) if self.is_barred() => vec![self.late(), self.waits()],
            (State::Late, None) => vec![self.late()],
            (_, None) => vec![self.off()],
        }
    }

    /// What is left of the lease by now, as far as the newest reading of the store tells.
    pub(super) fn lease_left(&self) -> Option<LeaseLeft> {
        let lease = self.record.lease.as_ref().filter(|_| self.state != State::Unknown)?;
        let left = lease.expires_in.saturating_sub(self.age).min(lease.ttl);
        let seconds = |length: Duration| Arg::from(format!("{:.1}", length.as_secs_f64()));
        let args = [("left", seconds(left)), ("ttl", seconds(lease.ttl))];
        Some(LeaseLeft {
            left_ms: millis(left),
            ttl_ms: millis(lease.ttl),
            text: say(self.lang, "lease-left", &args),
        })
    }

    /// The job page's: full token, process.
    pub(super) fn details(&self) -> Vec<Clause> {
        let (Some(lease), false) = (&self.record.lease, self.state == State::Unknown) else {
            return self.evidence();
        };
        let mut facts = vec![self.clause("token", &[("token", Piece::code(lease.token))])];
        if let Some(run) = self.run().filter(|run| run.pid != 0) {
            facts.push(self.clause("process", &[("pid", Piece::code(run.pid))]));
        }
        if self.state == State::Running {
            facts.extend(self.run().and_then(|run| self.ends_at(run)));
        }
        let mut clauses = self.evidence();
        // The row's short token makes room for the whole one.
        clauses.retain(|clause| !clause.pieces.iter().any(|p| matches!(p, Piece::Code(_))));
        if self.state == State::Running {
            // The output itself stands below.
            clauses.truncate(1);
        }
        clauses.splice(1..1, facts);
        clauses
    }

    fn at_work(&self, lease: &LeaseRecord) -> Vec<Clause> {
        let since = self.run().map_or(lease.since, |run| run.started);
        let node = Piece::strong(&lease.node);
        let when = minute(self.lang, since, self.now);
        let held = self.clause("node-since", &[("node", node), ("since", when)]);
        let quiet = self.quiet();
        if let Some(Quiet::StuckSince(since)) = quiet {
            let id = self.by_runner("stands-still", "program-stands-still");
            return vec![held, self.next(id, &[("ago", self.since(since))])];
        }
        let short = short_token(&lease.token.to_string());
        let mut clauses = vec![held, self.clause("token", &[("token", Piece::code(short))])];
        match self.run() {
            Some(run) if self.state == State::Starting => {
                let up = run.started + self.job.backoff.min_uptime;
                clauses.push(self.next("counts-in", &[("left", self.until(up))]));
            }
            Some(RunRecord { last_output: Some(at), .. }) => {
                clauses.push(self.clause("output-ago", &[("ago", self.since(*at))]));
            }
            Some(_) => clauses.push(self.clause("output-none", &[])),
            None => {
                let id = self.by_runner("being-started", "program-begins");
                clauses.push(self.clause(id, &[]));
            }
        }
        clauses.extend(self.run().and_then(|run| self.ends_at(run)));
        if let Some(Quiet::StopsAt(at)) = quiet {
            clauses.push(self.next("stops-when-quiet", &[("left", self.until(at))]));
        }
        clauses
    }

    fn stopping(&self, lease: &LeaseRecord) -> Vec<Clause> {
        let node = Piece::strong(&lease.node);
        let id = self.by_runner("on-node", "in-program");
        let mut clauses = vec![self.clause(id, &[("node", node)])];
        clauses.push(match (&self.record.hold, self.record.participants.is_empty()) {
            (None, false) if self.limit().is_some() => {
                let cause = self.limit().unwrap_or_default();
                Clause { next: false, pieces: vec![Piece::Text(cause)] }
            }
            (Some(hold), _) => self.clause("stopping-held", &[("user", Piece::text(&hold.by))]),
            (None, true) => self.clause("stopping-unwanted", &[]),
            (None, false) if self.replacing().is_some() => self.clause("stopping-replaced", &[]),
            (None, false) if self.record.moving.is_some() => self.clause("stopping-moved", &[]),
            (None, false) => self.clause("stopping-handed-over", &[]),
        });
        if let Some(RunRecord { phase: RunPhase::Stopping { kill_at }, .. }) = self.run() {
            let id = self.by_runner("kill-in", "program-has-until");
            clauses.push(self.next(id, &[("left", self.until(*kill_at))]));
        }
        clauses
    }

    fn waits_for_turn(&self, lease: &LeaseRecord) -> Vec<Clause> {
        let mut clauses = vec![self.clause("on-node", &[("node", Piece::strong(&lease.node))])];
        if let Some(rotation) = &self.job.rotation {
            let (id, cause) = self.turn(rotation);
            clauses.push(self.clause("waits-for-turn", &[("rotation", Piece::strong(rotation))]));
            clauses.push(self.next(id, &cause));
        }
        clauses
    }

    fn failing_over(&self, lease: &LeaseRecord) -> Vec<Clause> {
        let silent = [("node", Piece::strong(&lease.node)), ("ago", self.since(self.heard(lease)))];
        let left = self.until(self.expires(lease));
        vec![
            self.clause("silent-for", &silent),
            match self.successor(lease) {
                _ if self.job.is_external() => self.next("next-program-in", &[("left", left)]),
                Some(node) => self.next("may-start-in", &[("node", node), ("left", left)]),
                None => self.next("nobody-to-take-over", &[]),
            },
        ]
    }

    fn crashed(&self) -> Vec<Clause> {
        let record = self.record;
        let mut clauses = Vec::new();
        if let Some(tried) = self.tried() {
            clauses.push(self.clause("tick-tried", &tried));
        } else if let Some(last) = &record.last_exit {
            let args = [
                ("exit", self.last_exit(last)),
                ("n", Piece::Number(i64::from(record.crashes))),
                ("node", Piece::text(&last.node)),
            ];
            let id = self.by_runner("crashed-on", "failed-in");
            clauses.push(self.clause(id, &args));
        }
        clauses.push(match self.retry_at().filter(|_| self.state == State::BackingOff) {
            Some(at) if at > self.now => self.next("next-try-in", &[("left", self.until(at))]),
            Some(_) => self.next("next-try-now", &[]),
            None => self.next("switch-off-and-on", &[]),
        });
        clauses
    }

    /// The tick that replaces the one whose run is being stopped.
    pub(super) fn replacing(&self) -> Option<String> {
        let open = self.open_tick()?;
        Some(called(self.lang, open.replaced_by.as_ref()?))
    }

    pub(super) fn open_tick(&self) -> Option<&Open> {
        self.record.clock.as_deref().and_then(Clock::open)
    }

    /// The attempt of a tick that ended last, with why, while the next one is waited for.
    pub(super) fn tried(&self) -> Option<[(&'static str, Piece); 3]> {
        let open = self.open_tick()?;
        let Phase::Again { why: cause, .. } = &open.phase else { return None };
        Some([
            ("n", Piece::Number(i64::from(open.attempt))),
            ("run", Piece::Text(run_of(self.lang, &open.tick.name))),
            ("why", Piece::Text(why(self.lang, cause))),
        ])
    }

    /// The earliest instant of the next try; of a job with a schedule, that of its open tick.
    pub(super) fn retry_at(&self) -> Option<StoreTime> {
        let again = self.open_tick().and_then(|open| match open.phase {
            Phase::Again { at, .. } => Some(at),
            _ => None,
        });
        self.record.next.map(|next| next.at).or(again)
    }

    fn rests(&self) -> Clause {
        match self.record.next.filter(|next| next.at > self.now) {
            Some(next) => self.next("next-run-in", &[("left", self.until(next.at))]),
            None => self.next("next-run-now", &[]),
        }
    }

    fn scheduled(&self) -> Clause {
        match self.upcoming().filter(|tick| tick.starts > self.now) {
            Some(tick) => {
                let left = ("left", self.until(tick.starts));
                match self.in_its_zone(&tick) {
                    Some(at) => self.next("next-tick-in", &[("at", Piece::Text(at)), left]),
                    None => self.next("next-run-in", &[left]),
                }
            }
            None if self.upcoming().is_some() => self.next("next-run-now", &[]),
            None => self.next("no-tick-comes", &[]),
        }
    }

    /// When a tick starts, in the zone of its expression; `every` and `at` have none.
    fn in_its_zone(&self, tick: &Tick) -> Option<String> {
        let zone = zone_of(self.job.schedule.as_ref().filter(|_| tick.name.0.ends_with(']'))?);
        Some(zone.planned(self.lang, tick.starts, Some(self.now)))
    }

    /// When a tick starts, with the offset.
    pub(super) fn starts(&self, tick: &Tick) -> Piece {
        let own = self.in_its_zone(tick).map(Piece::Text);
        own.unwrap_or_else(|| planned(self.lang, tick.starts, self.now))
    }

    fn late(&self) -> Clause {
        let since = self.upcoming().map_or(self.now, |tick| tick.starts);
        self.next("tick-is-late", &[("ago", self.since(since))])
    }

    /// The tick that is to run next.
    pub(super) fn upcoming(&self) -> Option<Tick> {
        let law = &self.job.schedule.as_ref()?.law;
        next_tick(self.record, law, self.now)
    }

    pub(super) fn waits(&self) -> Clause {
        match self.waiting() {
            Waiting::Doubted(until) => self.next("store-forgot", &[("left", self.until(until))]),
            Waiting::ClockSet(until) => self.next("clock-set-back", &[("left", self.until(until))]),
            Waiting::NobodyAsked => self.next("no-program-asked", &[]),
            Waiting::NoNode => self.next("no-node-alive", &[]),
            Waiting::NotOffered => self.next("no-node-offers", &[]),
            Waiting::Unfit => {
                let nodes: Vec<_> = self.unfit().iter().map(|(node, _)| node.to_string()).collect();
                let nodes = nodes.join(&say(self.lang, "list-separator", &[]));
                self.next("no-node-fit", &[("nodes", Piece::Text(nodes))])
            }
            Waiting::Draining => self.next("all-draining", &[]),
            Waiting::Suspect { node, .. } => {
                self.next("only-node-suspect", &[("node", Piece::text(node))])
            }
            Waiting::Moving { to: Some(node), .. } => {
                self.next("moving-to", &[("node", Piece::text(node))])
            }
            Waiting::Moving { to: None, .. } => {
                self.next(self.by_runner("moving-away", "moving-to-a-program"), &[])
            }
            Waiting::Soon { long: false } => self.next("starts-soon", &[]),
            Waiting::Soon { long: true } => self.next("store-may-have-restarted", &[]),
        }
    }

    fn held(&self) -> Vec<Clause> {
        let Some(hold) = &self.record.hold else { return Vec::new() };
        let args = [
            ("user", Piece::text(&hold.by)),
            ("since", minute(self.lang, hold.since, self.now)),
            ("reason", Piece::text(&hold.reason)),
        ];
        vec![self.clause("held-by", &args)]
    }

    /// Who switched it off, or how it came to be off.
    pub(super) fn off(&self) -> Clause {
        let record = self.record;
        if let Some(last) = record.last_switch.as_ref().filter(|last| !last.on) {
            let user = ("user", Piece::text(&last.user));
            let at = ("at", minute(self.lang, last.at, self.now));
            return match &last.reason {
                Some(reason) => {
                    let reason = ("reason", Piece::text(reason));
                    self.clause("switched-off-because", &[user, at, reason])
                }
                None => self.clause("switched-off", &[user, at]),
            };
        }
        match record.last_exit.as_ref().filter(|last| last.end == RunEnd::Exited) {
            Some(last) => self.clause("finished", &[("at", minute(self.lang, last.at, self.now))]),
            None => self.clause("nobody-wants-it", &[]),
        }
    }

    fn unknown(&self) -> Vec<Clause> {
        if self.now == StoreTime(0) {
            return vec![self.clause("never-reported", &[])];
        }
        if let Some(Untold { at, fenced }) = self.ended_here {
            let id = if fenced { "stopped-here" } else { "ended-here" };
            return vec![
                self.clause(id, &[("at", self.clock(at))]),
                self.clause("store-untold", &[]),
            ];
        }
        if let Some(until) = self.doubted_until {
            return vec![self.next("store-forgot", &[("left", self.until(until))])];
        }
        let report = self.ago(self.age);
        let mut clauses = vec![self.clause("no-report-for", &[("ago", self.since(report))])];
        clauses.push(match &self.record.lease {
            Some(lease) => self.clause("last-known-on", &[("node", Piece::strong(&lease.node))]),
            None => {
                let word = state_word(self.lang, self.before());
                self.clause("last-known", &[("state", Piece::text(word))])
            }
        });
        clauses
    }

    /// The word for a record without a lease as it was when it was read.
    fn before(&self) -> State {
        match self.record {
            record if record.hold.is_some() => State::Held,
            record if record.participants.is_empty() => State::Off,
            record if record.given_up => State::GivenUp,
            record => match record.next.map(|next| next.what) {
                Some(NextWhat::Repeat) => State::Resting,
                Some(NextWhat::Retry) => State::BackingOff,
                None => State::Waiting,
            },
        }
    }
}

/// `1792…344`: enough to tell two apart at a glance.
fn short_token(token: &str) -> String {
    match (token.get(..4), token.get(token.len().saturating_sub(3)..)) {
        (Some(head), Some(tail)) if token.len() > 8 => format!("{head}…{tail}"),
        _ => token.to_owned(),
    }
}
