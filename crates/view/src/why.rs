//! The paragraph that says why a job is or is not running: evidence, consequence, next step.

use super::{Scene, Waiting};
use crate::words::{Arg, Piece, duration, phrase, say, visible};
use soloist_domain::job::{LeaseRecord, RunPhase, RunRecord, State, Untold};
use soloist_domain::limits::Quiet;
use soloist_domain::name::UserName;
use soloist_domain::tick::By;
use soloist_domain::time::StoreTime;

type Args = Vec<(&'static str, Piece)>;

impl Scene<'_> {
    /// The paragraph, as pieces.
    pub(super) fn why(&self) -> Vec<Piece> {
        let (id, args) = match (self.state, &self.record.lease) {
            (State::Unknown, _) => self.why_unknown(),
            (State::FailingOver, Some(lease)) => self.why_failing_over(lease),
            (State::Stopping, Some(lease)) => self.why_stopping(lease),
            (State::Waiting | State::Resting, Some(lease)) => return self.why_turn(lease),
            (State::Running, Some(lease)) => return self.why_running(lease),
            (state, Some(lease)) => self.why_at_work(state, lease),
            (State::Held, None) => self.why_held(),
            (State::BackingOff, None) => return self.why_backing_off(),
            (State::Waiting, None) if self.tried().is_some() => return self.why_backing_off(),
            (State::GivenUp, None) => {
                (self.by_runner("why-given-up", "why-program-given-up"), self.crash())
            }
            (State::Late, None) if self.is_barred() => return self.why_late_and_barred(),
            (State::Waiting, None) => self.why_waiting(),
            (State::Resting, None) => self.why_resting(),
            (State::Scheduled | State::Late, None) => self.why_scheduled(),
            (_, None) => return self.why_off(),
        };
        phrase(self.lang, id, &args)
    }

    /// The first of two messages where nodes run the job, the second where a program does.
    pub(super) fn by_runner(&self, node: &'static str, program: &'static str) -> &'static str {
        if self.job.is_external() { program } else { node }
    }

    /// Names in the order they joined, joined as the language does.
    fn users(&self) -> Piece {
        let mut names: Vec<_> = self.record.participants.iter().map(|p| p.user.as_str()).collect();
        if let (true, Some(clock)) = (names.is_empty(), &self.record.clock) {
            // Nobody has it on: who asked for a run wants that.
            names.extend(
                self.asker().or(clock.asked.first().map(|asked| &asked.by)).map(UserName::as_str),
            );
        }
        Piece::Text(names.join(&say(self.lang, "list-separator", &[])))
    }

    /// Who started the tick in hand, if that was not the clock.
    fn asker(&self) -> Option<&UserName> {
        match &self.record.clock.as_ref()?.open.as_ref()?.by {
            By::User(name) => Some(name),
            By::Clock => None,
        }
    }

    /// That people want it, or that somebody asked for this run.
    fn wish(&self) -> Piece {
        let by_hand = self.record.participants.is_empty() && self.asker().is_some();
        let id = if by_hand { "wish-asked" } else { "wish-wanted" };
        let users = self.users().to_string();
        Piece::Text(say(self.lang, id, &[("users", Arg::from(users))]))
    }

    fn job(&self) -> Piece {
        Piece::text(&self.record.name)
    }

    /// With how it has been quiet for too long, and what to do then.
    fn why_running(&self, lease: &LeaseRecord) -> Vec<Piece> {
        let (id, args) = self.why_at_work(State::Running, lease);
        let mut pieces = phrase(self.lang, id, &args);
        let (id, arg) = match self.quiet() {
            None => return pieces,
            Some(Quiet::StopsAt(at)) => ("why-stops-when-quiet", ("left", self.until(at))),
            Some(Quiet::StuckSince(since)) => {
                let id = self.by_runner("why-stands-still", "why-program-stands-still");
                (id, ("ago", self.since(since)))
            }
        };
        pieces.extend(phrase(self.lang, "sentence-gap", &[]));
        pieces.extend(phrase(self.lang, id, &[arg]));
        pieces
    }

    fn why_at_work(&self, state: State, lease: &LeaseRecord) -> (&'static str, Args) {
        let since = self.run().map_or(lease.since, |run| run.started);
        let mut args = vec![
            ("node", Piece::strong(&lease.node)),
            ("since", self.clock(since)),
            ("wish", self.wish()),
        ];
        if state == State::Running {
            return (self.by_runner("why-running", "why-program-running"), args);
        }
        let uptime = duration(self.lang, self.job.backoff.min_uptime);
        args.push(("uptime", Piece::Text(uptime)));
        (self.by_runner("why-starting", "why-program-starting"), args)
    }

    fn why_stopping(&self, lease: &LeaseRecord) -> (&'static str, Args) {
        if self.job.is_external() {
            return self.why_program_stopping(lease);
        }
        let cause = match (&self.record.hold, self.record.participants.is_empty()) {
            (None, false) if self.limit().is_some() => self.limit().unwrap_or_default(),
            (Some(hold), _) => {
                say(self.lang, "cause-held", &[("user", Arg::from(hold.by.to_string()))])
            }
            (None, true) => say(self.lang, "cause-unwanted", &[]),
            (None, false) if self.replacing().is_some() => self.replaced("cause-replaced"),
            (None, false) if self.record.moving.is_some() => say(self.lang, "cause-moved", &[]),
            (None, false) => say(self.lang, "cause-handed-over", &[]),
        };
        let mut args = vec![("node", Piece::strong(&lease.node)), ("cause", Piece::Text(cause))];
        match self.run() {
            Some(RunRecord { phase: RunPhase::Stopping { kill_at }, .. }) => {
                args.push(("left", self.until(*kill_at)));
                ("why-stopping-kill", args)
            }
            _ => ("why-stopping", args),
        }
    }

    fn replaced(&self, id: &str) -> String {
        say(self.lang, id, &[("tick", Arg::from(self.replacing().unwrap_or_default()))])
    }

    /// A program was told to stop: why, and until when it has to.
    fn why_program_stopping(&self, lease: &LeaseRecord) -> (&'static str, Args) {
        let record = self.record;
        let off = record.last_switch.as_ref().filter(|last| !last.on);
        let by = |user| say(self.lang, "program-off-by", &[("user", Arg::from(user))]);
        let cause = match (&record.hold, record.participants.is_empty()) {
            (Some(hold), _) => {
                say(self.lang, "program-held", &[("user", Arg::from(hold.by.to_string()))])
            }
            (None, true) => off.map_or_else(
                || say(self.lang, "program-off", &[]),
                |last| by(last.user.to_string()),
            ),
            (None, false) if self.limit().is_some() => self.limit().unwrap_or_default(),
            (None, false) if self.replacing().is_some() => self.replaced("program-replaced"),
            (None, false) if record.moving.is_some() => say(self.lang, "program-moved", &[]),
            (None, false) => say(self.lang, "program-over", &[]),
        };
        let mut args = vec![("node", Piece::strong(&lease.node)), ("cause", Piece::Text(cause))];
        match self.run() {
            Some(RunRecord { phase: RunPhase::Stopping { kill_at }, .. }) => {
                args.push(("left", self.until(*kill_at)));
                ("why-program-stopping-until", args)
            }
            _ => ("why-program-stopping", args),
        }
    }

    fn why_failing_over(&self, lease: &LeaseRecord) -> (&'static str, Args) {
        let mut args = vec![
            ("node", Piece::strong(&lease.node)),
            ("ago", self.since(self.heard(lease))),
            ("left", self.until(self.expires(lease))),
        ];
        if self.job.is_external() {
            return ("why-program-failing-over", args);
        }
        match self.successor(lease) {
            Some(next) => {
                args.push(("next", next));
                ("why-failing-over", args)
            }
            None => ("why-failing-over-nobody", args),
        }
    }

    /// What is known of the crashes in a row.
    fn crash(&self) -> Args {
        let n = Piece::Number(i64::from(self.record.crashes));
        let mut args = vec![("n", n), ("users", self.users()), ("job", self.job())];
        let last = self.record.last_exit.as_ref();
        args.push(("exit", last.map_or(Piece::text("?"), |last| self.last_exit(last))));
        args.push(("node", last.map_or(Piece::text("?"), |last| Piece::strong(&last.node))));
        args.push(("at", last.map_or(Piece::text("?"), |last| self.clock(last.at))));
        args
    }

    fn why_backing_off(&self) -> Vec<Piece> {
        let mut args = self.crash();
        let at = self.retry_at().unwrap_or(self.now);
        let tried = self.tried();
        let id = match at <= self.now {
            _ if tried.is_some() => {
                args.retain(|(name, _)| *name != "n");
                args.extend(tried.into_iter().flatten());
                args.push(("left", self.until(at)));
                args.push(("wish", self.wish()));
                // The switches say nothing of a run that somebody asked for.
                if self.asker().is_some() { "why-hand-tried" } else { "why-tick-tried" }
            }
            true => self.by_runner("why-retry-due", "why-program-retry-due"),
            false => {
                args.push(("left", self.until(at)));
                self.by_runner("why-backing-off", "why-program-backing-off")
            }
        };
        let mut pieces = phrase(self.lang, id, &args);
        // There may be more in the way of the next try than time.
        if self.offering().next().is_none() && !self.unfit().is_empty() {
            pieces.extend(phrase(self.lang, "sentence-gap", &[]));
            pieces.extend(phrase(self.lang, "why-unfit", &[("whys", self.obstacles())]));
        }
        pieces
    }

    /// What each machine lacks that should start it.
    fn obstacles(&self) -> Piece {
        let whys = self.unfit().into_iter().map(|(node, why)| format!("{node}: {why}"));
        Piece::text(visible(&whys.collect::<Vec<_>>().join("; ")))
    }

    fn why_resting(&self) -> (&'static str, Args) {
        let mut args = vec![("users", self.users())];
        match self.record.next.filter(|next| next.at > self.now) {
            Some(next) => {
                args.push(("left", self.until(next.at)));
                (self.by_runner("why-resting", "why-program-resting"), args)
            }
            None => (self.by_runner("why-resting-due", "why-program-resting-due"), args),
        }
    }

    fn why_scheduled(&self) -> (&'static str, Args) {
        let mut args = vec![("users", self.users())];
        let Some(tick) = self.upcoming() else { return ("why-no-tick", args) };
        args.push(("when", self.starts(&tick)));
        if self.state == State::Late {
            args.push(("ago", self.since(tick.starts)));
            return (self.by_runner("why-late", "why-program-late"), args);
        }
        args.push(("left", self.until(tick.starts)));
        (self.by_runner("why-scheduled", "why-program-scheduled"), args)
    }

    /// Its tick is late because no node can take it.
    fn why_late_and_barred(&self) -> Vec<Piece> {
        let late = self
            .upcoming()
            .map(|tick| [("when", self.starts(&tick)), ("ago", self.since(tick.starts))]);
        let mut pieces =
            phrase(self.lang, "why-late-since", &late.into_iter().flatten().collect::<Vec<_>>());
        pieces.extend(phrase(self.lang, "sentence-gap", &[]));
        pieces.extend(self.why_barred());
        pieces
    }

    /// Why no node can take it.
    pub(super) fn why_barred(&self) -> Vec<Piece> {
        let (id, args) = self.why_waiting();
        phrase(self.lang, id, &args)
    }

    fn why_waiting(&self) -> (&'static str, Args) {
        let mut args = vec![("users", self.users())];
        match self.waiting() {
            Waiting::Doubted(until) => {
                args.push(("left", self.until(until)));
                (self.by_runner("why-waiting-doubted", "why-program-waiting-doubted"), args)
            }
            Waiting::ClockSet(until) => {
                args.extend([("job", self.job()), ("left", self.until(until))]);
                ("why-waiting-clock-set", args)
            }
            Waiting::NobodyAsked => ("why-program-waiting", args),
            Waiting::NoNode => ("why-waiting-no-node", args),
            Waiting::NotOffered => {
                args.push(("job", self.job()));
                args.push(("nodes", Piece::code(self.job.nodes.join(", "))));
                ("why-waiting-not-offered", args)
            }
            Waiting::Unfit => {
                args.push(("whys", self.obstacles()));
                ("why-waiting-unfit", args)
            }
            Waiting::Draining => ("why-waiting-draining", args),
            Waiting::Suspect { node, lost } => {
                args.push(("node", Piece::strong(node)));
                args.push(("ago", self.since(lost)));
                ("why-waiting-suspect", args)
            }
            Waiting::Moving { to, until } => {
                args.push(("left", self.until(until)));
                match to {
                    Some(node) => {
                        args.push(("node", Piece::strong(node)));
                        (
                            self.by_runner(
                                "why-waiting-moving-to",
                                "why-program-waiting-moving-to",
                            ),
                            args,
                        )
                    }
                    None => {
                        (self.by_runner("why-waiting-moving", "why-program-waiting-moving"), args)
                    }
                }
            }
            Waiting::Soon { long: false } if self.record.participants.is_empty() => {
                ("why-asked-soon", args)
            }
            Waiting::Soon { long: false } => ("why-waiting-soon", args),
            Waiting::Soon { long: true } => {
                let lease = duration(self.lang, self.job.timing.ttl);
                args.push(("lease", Piece::Text(lease)));
                ("why-waiting-long", args)
            }
        }
    }

    fn why_turn(&self, lease: &LeaseRecord) -> Vec<Piece> {
        let Some(rotation) = &self.job.rotation else { return Vec::new() };
        let args = [
            ("node", Piece::strong(&lease.node)),
            ("users", self.users()),
            ("rotation", Piece::strong(rotation)),
        ];
        let (id, cause) = self.turn(rotation);
        let parts = [("why-waiting-turn", &args[..]), ("sentence-gap", &[]), (id, &cause)];
        let mut pieces: Vec<Piece> =
            parts.into_iter().flat_map(|(id, args)| phrase(self.lang, id, args)).collect();
        pieces.extend(phrase(self.lang, "sentence-end", &[]));
        pieces
    }

    fn why_held(&self) -> (&'static str, Args) {
        let Some(hold) = &self.record.hold else { return ("why-off", Vec::new()) };
        let args = vec![
            ("user", Piece::text(&hold.by)),
            ("since", self.clock(hold.since)),
            ("reason", Piece::text(&hold.reason)),
            ("job", self.job()),
        ];
        ("why-held", args)
    }

    fn why_off(&self) -> Vec<Piece> {
        let mut pieces = phrase(self.lang, "why-off", &[]);
        let cause = self.off().pieces;
        let words: String = cause.iter().map(ToString::to_string).collect();
        if words != say(self.lang, "nobody-wants-it", &[]) {
            pieces.extend(phrase(self.lang, "sentence-gap", &[]));
            pieces.extend(cause);
            pieces.extend(phrase(self.lang, "sentence-end", &[]));
        }
        pieces
    }

    fn why_unknown(&self) -> (&'static str, Args) {
        if self.now == StoreTime(0) {
            return ("why-never-reported", Vec::new());
        }
        if let Some(Untold { at, fenced }) = self.ended_here {
            let id = if fenced { "why-unknown-stopped-here" } else { "why-unknown-ended-here" };
            return (id, vec![("at", self.clock(at))]);
        }
        if let Some(until) = self.doubted_until {
            return ("why-unknown-doubted", vec![("left", self.until(until))]);
        }
        let args = vec![("ago", self.since(self.ago(self.age)))];
        match &self.record.lease {
            None => (self.by_runner("why-unknown-free", "why-program-unknown-free"), args),
            Some(lease) => {
                let mut args = args;
                args.push(("node", Piece::strong(&lease.node)));
                (self.by_runner("why-unknown-on", "why-program-unknown-on"), args)
            }
        }
    }
}
