//! Which tick is granted, and its outcome when its run ends.

use super::account::{adopt, gone};
use super::record::{
    Asked, By, Clock, Entry, Open, OpenRules, Outcome, Params, Pending, Phase, Standing, Taken, Why,
};
use super::rules::{Missed, Overlap, Schedule};
use super::sight::Sight;
use super::{Tick, TickName};
use crate::grant::Acquired;
use crate::job::{JobRecord, RunEnd, RunRecord};
use crate::journal::{Ended, Then};
use crate::lease::Token;
use crate::name::NodeName;
use crate::time::StoreTime;
use crate::transition::Write;

/// The tick in the grant of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Which.
    pub tick: Tick,
    /// Counts the grants of it.
    pub attempt: u32,
    /// How long after its start this attempt was granted.
    pub late_ms: u64,
    /// Parameters.
    pub params: Params,
    /// What the store knows with that grant: should it forget, its holder tells it again.
    pub sight: Sight,
}

impl Granted {
    fn of(record: &JobRecord, clock: &Clock, open: &Open) -> Self {
        let late = open.granted.since(open.tick.starts);
        Self {
            tick: open.tick.clone(),
            attempt: open.attempt,
            late_ms: crate::time::millis(late),
            params: open.params.clone(),
            sight: Sight {
                clock: Box::new(clock.clone()),
                version: record.version,
                at: open.granted,
                changed: None,
            },
        }
    }
}

/// Which tick is run next.
enum Choice {
    /// The open one, again.
    Open,
    /// The first that was asked for.
    Asked,
    /// The pending one with this number.
    Pending(usize),
}

/// Brings the clock of a job up to `now`. `lapsed`: the node whose lease ran out, if no lease lasts.
pub fn settle(
    record: &mut JobRecord,
    schedule: &Schedule,
    lapsed: Option<&NodeName>,
    now: StoreTime,
) -> Vec<Write> {
    let (held, run) = (record.lease.as_ref().map(|lease| lease.token), record.run.clone());
    let mut books = adopt(record, schedule, now);
    if let Some(open) = books.clock.open()
        && open.phase == Phase::Granted
        && held != Some(open.token)
    {
        let why = gone(run.as_ref(), open, lapsed);
        books.lose(now, why);
    }
    books.settle(schedule, now);
    books.writes
}

/// Whether a tick may be granted now, of a record that is settled; if not, the answer to the asker.
///
/// # Errors
/// The refusal.
fn choose(record: &JobRecord, schedule: &Schedule, now: StoreTime) -> Result<Choice, Acquired> {
    let Some(clock) = &record.clock else { return Err(Acquired::NotWanted) };
    let standing = Standing::of(record);
    if record.hold.is_some() {
        return Err(Acquired::NotWanted);
    }
    if let Some(open) = clock.open() {
        return match open.phase {
            Phase::Again { at, .. } if at > now => Err(Acquired::NotYet { wait: at.since(now) }),
            _ => Ok(Choice::Open),
        };
    }
    let late = |one: &Pending| one.since + schedule.rules.grace <= now;
    // The store's clock may have been set back since it was due.
    let is_due = |one: &Pending| !one.behind && one.tick.starts <= now;
    let waits = clock.pending.iter().position(is_due);
    let waits = waits.map(|first| match schedule.rules.missed {
        // The newest is run for all that were missed, also if it was not missed itself.
        Missed::Once if late(&clock.pending[first]) => {
            clock.pending.iter().rposition(is_due).unwrap_or(first)
        }
        _ => first,
    });
    let due = waits.filter(|_| standing == Standing::On);
    let asked = clock.asked.first().map(|asked| asked.at);
    match (asked, due) {
        (Some(asked), Some(due)) if clock.pending[due].tick.starts < asked => {
            Ok(Choice::Pending(due))
        }
        (Some(_), _) => Ok(Choice::Asked),
        (None, Some(due)) => Ok(Choice::Pending(due)),
        (None, None) if standing == Standing::On => {
            let next = schedule.ticks.after(clock.accounted.max(now));
            let wait = next.map(|next| next.starts.since(now));
            Err(wait.map_or(Acquired::NotWanted, |wait| Acquired::NotYet { wait }))
        }
        (None, None) => Err(Acquired::NotWanted),
    }
}

/// Grants the next tick under `token`; the record is settled.
///
/// # Errors
/// The answer to the asker.
pub(crate) fn grant(
    record: &mut JobRecord,
    schedule: &Schedule,
    token: Token,
    now: StoreTime,
) -> Result<Vec<Write>, Acquired> {
    let choice = choose(record, schedule, now)?;
    let mut books = adopt(record, schedule, now);
    if matches!(choice, Choice::Open) {
        books.wait_behind(schedule);
    }
    let open = match choice {
        Choice::Open => books.clock.open.take().map(|open| Open {
            // Further attempts of it may be forgotten that nobody saw.
            attempt: match books.clock.forgot {
                Some(gap) if gap.seen < open.granted && open.granted <= gap.until => {
                    open.attempt.max(books.clock.attempts) + 1
                }
                _ => open.attempt + 1,
            },
            token,
            granted: now,
            started: None,
            run: None,
            phase: Phase::Granted,
            ..open
        }),
        Choice::Asked => {
            let name = books.clock.asked[0].tick.name.clone();
            books.only_newest_waits_behind(&name);
            let Asked { tick, by, params, attempts, known, .. } = books.clock.asked.remove(0);
            let listed = books.split(&*schedule.ticks, &tick, known);
            let known = books.clock.recent(&tick.name, tick.starts);
            let known = known.map_or(attempts, |entry| entry.attempt);
            let open = opened(schedule, tick, known + 1, token, By::User(by), params, now);
            Some(Open { known: listed, ..open })
        }
        Choice::Pending(at) => {
            let mut pending = books.clock.pending.remove(at);
            if schedule.rules.missed == Missed::Once {
                for older in books.clock.pending.drain(..at).rev().collect::<Vec<_>>() {
                    pending.take_in(older, books.order);
                }
            }
            let tick = pending.tick;
            books.clock.taken = Some(Taken { tick: tick.name.clone(), starts: tick.starts });
            let why = Some(Why::CoveredBy { tick: tick.name.clone() });
            for older in pending.older {
                books.tell(Entry { outcome: Outcome::Covered, why: why.clone(), ..older });
            }
            books.meet(schedule, &tick.name);
            Some(opened(schedule, tick, 1, token, By::Clock, Params::new(), now))
        }
    };
    if let Some(open) = &open {
        books.clock.attempts = books.clock.attempts.max(open.attempt);
    }
    books.clock.open = open;
    Ok(books.writes)
}

fn opened(
    schedule: &Schedule,
    tick: Tick,
    attempt: u32,
    token: Token,
    by: By,
    params: Params,
    now: StoreTime,
) -> Open {
    Open {
        attempt,
        token,
        by,
        granted: now,
        late_ms: crate::time::millis(now.since(tick.starts)),
        params: schedule.params.fill(&tick, &params),
        started: None,
        run: None,
        crashes: 0,
        losses: 0,
        replaced_by: None,
        known: None,
        rules: OpenRules::of(schedule, &tick),
        phase: Phase::Granted,
        tick,
    }
}

impl super::account::Books<'_> {
    /// What is due already meets the tick that was granted just now.
    fn meet(&mut self, schedule: &Schedule, granted: &TickName) {
        if self.clock.pending.is_empty() || schedule.rules.missed == Missed::All {
            self.clock.pending.iter_mut().for_each(|one| one.behind = true);
            return;
        }
        if schedule.rules.overlap == Overlap::Skip {
            let why = || Some(Why::Open { tick: granted.clone() });
            for one in std::mem::take(&mut self.clock.pending) {
                self.tell(Entry::of(one.tick, Outcome::Skipped, why()));
            }
            return;
        }
        self.only_newest_waits_behind(granted);
    }

    /// What became due while nobody could run the open tick waits until that has ended.
    fn wait_behind(&mut self, schedule: &Schedule) {
        if schedule.rules.missed == Missed::Once
            && let Some(mut newest) = self.clock.pending.pop()
        {
            for older in std::mem::take(&mut self.clock.pending).into_iter().rev() {
                newest.take_in(older, self.order);
            }
            self.clock.pending.push(newest);
        }
        self.clock.pending.iter_mut().for_each(|one| one.behind = true);
    }

    /// What is due already waits behind a tick that was granted just now: the newest.
    fn only_newest_waits_behind(&mut self, granted: &TickName) {
        self.clock.pending.iter_mut().for_each(|one| one.behind = true);
        let newest = self.clock.pending.last().map(|one| one.tick.name.clone());
        self.only_newest_waits(&newest.unwrap_or_else(|| granted.clone()));
    }
}

/// The tick of the lease under `token`.
#[must_use]
pub fn granted(record: &JobRecord, token: Token) -> Option<Granted> {
    let clock = record.clock.as_ref()?;
    let open = clock.open()?;
    let own = open.token == token && open.phase == Phase::Granted;
    own.then(|| Granted::of(record, clock, open))
}

/// A run began.
pub(crate) fn started(record: &mut JobRecord, run: &RunRecord) {
    let Some(open) = record.clock.as_mut().and_then(|clock| clock.open.as_mut()) else { return };
    if open.token == run.token && open.phase == Phase::Granted {
        (open.run, open.started) = (Some(run.id.clone()), Some(run.started));
    }
}

/// A run ended: the outcome of its tick. `None`: it had no tick.
pub(crate) fn ended(
    record: &mut JobRecord,
    node: &NodeName,
    ended: &Ended,
    now: StoreTime,
) -> Option<Vec<Write>> {
    let standing = Standing::of(record);
    let clock = record.clock.as_mut()?;
    let open = clock.open.as_mut()?;
    if open.token != ended.token || open.phase != Phase::Granted {
        return None;
    }
    if ended.then != Then::Unused {
        open.run.get_or_insert_with(|| ended.run.clone());
    }
    let open = clock.open.as_ref()?;
    // It may have been switched on again since: the newest that stopped it counts.
    let since = clock.shifts.iter().rev().filter(|shift| shift.at >= open.granted);
    let mut all = std::iter::once(&standing).chain(since.map(|shift| &shift.to));
    let off = all.find_map(|to| to.stops(open.is_by_clock()));
    let mut books = super::account::Books { clock, order: None, writes: Vec::new(), now };
    let node = node.clone();
    match ended.end {
        RunEnd::Stopped if ended.then == Then::Unused => books.unused(now),
        RunEnd::Exited => books.end_open(now, Outcome::Done, None),
        RunEnd::Crashed | RunEnd::TimedOut => {
            let why = match (ended.end, ended.exit.code, ended.exit.signal) {
                (RunEnd::TimedOut, ..) => Why::TimedOut,
                (_, Some(code), _) => Why::Code { code },
                (_, _, Some(signal)) => Why::Signal { signal },
                _ => Why::NotStarted,
            };
            books.crash(now, why);
        }
        RunEnd::Stopped => {
            let replaced = books.clock.open().and_then(|open| open.replaced_by.clone());
            match (replaced, off) {
                (Some(by), _) => books.end_open(now, Outcome::Failed, Why::Replaced { by }),
                (None, Some(why)) => books.end_open(now, Outcome::Failed, why),
                (None, None) => books.lose(now, Why::Stopped { node }),
            }
        }
        RunEnd::Fenced => books.lose(now, Why::Fenced { node }),
        RunEnd::Died => {
            // A script has a signal: that of its guard.
            let guard = ended.exit.signal.is_some();
            books.lose(now, Why::Died { node, guard });
        }
        RunEnd::Lost => books.lose(now, Why::Gone { node }),
    }
    Some(books.writes)
}

/// The lease under `token` was released before anything was started.
pub(crate) fn unused(record: &mut JobRecord, token: Token, now: StoreTime) {
    let Some(clock) = record.clock.as_mut() else { return };
    if clock.open().is_some_and(|open| open.token == token) {
        super::account::Books { clock, order: None, writes: Vec::new(), now }.unused(now);
    }
}

impl super::account::Books<'_> {
    fn unused(&mut self, now: StoreTime) {
        let Some(open) = self.clock.open.as_mut().filter(|open| open.phase == Phase::Granted)
        else {
            return;
        };
        if let Some(by) = open.replaced_by.clone() {
            return self.end_open(now, Outcome::Failed, Why::Replaced { by });
        }
        open.phase = Phase::Again { at: now, since: now, lost: true, why: Why::NotStarted };
    }

    fn crash(&mut self, now: StoreTime, why: Why) {
        let Some(open) = self.clock.open.as_mut() else { return };
        if let Some(by) = open.replaced_by.clone() {
            return self.end_open(now, Outcome::Failed, Why::Replaced { by });
        }
        (open.crashes, open.losses) = (open.crashes + 1, 0);
        if open.crashes > open.rules.retries {
            return self.end_open(now, Outcome::Failed, why);
        }
        let at = now + open.rules.wait(open.crashes);
        open.phase = Phase::Again { at, since: now, lost: false, why };
    }
}

impl Clock {
    /// The token of a holder that is lost: its lease is over, and no end was reported.
    #[must_use]
    pub fn lost_from(&self, record: &JobRecord) -> Option<Token> {
        let open = self.open().filter(|open| open.phase == Phase::Granted)?;
        let held = record.lease.as_ref().is_some_and(|lease| lease.token == open.token);
        (!held).then_some(open.token)
    }

    /// The earliest instant at which something may be granted; `None`: nothing that is known comes.
    #[must_use]
    pub fn next_grant(&self, schedule: &Schedule, now: StoreTime) -> Option<StoreTime> {
        if let Some(open) = self.open() {
            return match open.phase {
                Phase::Again { at, .. } => Some(at),
                _ => Some(now),
            };
        }
        // What waited behind one that is over is due.
        if !self.asked.is_empty() || !self.pending.is_empty() {
            return Some(now);
        }
        schedule.ticks.after(self.accounted).map(|tick| tick.starts)
    }

    /// The first instant later than `settled` at which time alone decides something: somebody is to look then, or its entry is missing.
    #[must_use]
    pub fn next_look(&self, schedule: &Schedule, settled: StoreTime) -> Option<StoreTime> {
        let over = match self.open.as_ref().map(|open| &open.phase) {
            Some(Phase::Ended { at }) => Some(*at),
            _ => None,
        };
        let waits = self.pending.iter().filter(|one| !one.behind || over.is_some());
        let pending = waits
            .flat_map(|one| {
                let since = over.map_or(one.since, |over| one.since.max(over));
                [since + schedule.rules.grace, schedule.window_end(&one.tick)]
            })
            .filter(|at| *at > settled);
        let again = self.open().and_then(|open| match open.phase {
            Phase::Again { since, .. } => {
                Some(since + std::time::Duration::from_millis(open.rules.window_ms))
            }
            _ => None,
        });
        // The reader computes ticks that nobody wants, until the gap ends; not what was due before it began.
        let off = self.shifts.last().filter(|shift| shift.to.is_off());
        let tick = schedule.ticks.after(self.accounted);
        let tick = tick.filter(|tick| off.is_none_or(|off| tick.starts < off.at));
        // Off decides what is due at once.
        let unwanted = off.filter(|off| self.pending.iter().any(|one| one.tick.starts <= off.at));
        let at_once = self.given_up().map(|(at, _)| at).into_iter();
        let at_once = at_once.chain(unwanted.map(|off| off.at)).filter(|at| *at > settled);
        pending.chain(again).chain(at_once).chain(tick.map(|tick| tick.starts)).min()
    }
}

/// What the clock of a job brings next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upcoming {
    /// A tick that starts then; it may have come already.
    At(StoreTime),
    /// The open tick is run again, not before this.
    Retry(StoreTime),
    /// No tick comes any more.
    Never,
    /// The newest tick that was granted is ahead of the store's clock, and blocks.
    Barred,
}

/// What `schedule` brings next for a job without a lease.
#[must_use]
pub fn upcoming(record: &JobRecord, schedule: &Schedule, now: StoreTime) -> Upcoming {
    let clock = record.clock.as_deref();
    if clock.is_some_and(|clock| clock.is_ahead(now)) {
        return Upcoming::Barred;
    }
    if let Some(Open { phase: Phase::Again { at, lost, .. }, .. }) = clock.and_then(Clock::open) {
        return if *lost { Upcoming::At(*at) } else { Upcoming::Retry(*at) };
    }
    next_tick(record, schedule, now).map_or(Upcoming::Never, |tick| Upcoming::At(tick.starts))
}

/// The tick of the schedule that is to run next: one that waits, or the first that is to come.
#[must_use]
pub fn next_tick(record: &JobRecord, schedule: &Schedule, now: StoreTime) -> Option<Tick> {
    // One that the store does not know yet.
    let Some(clock) = &record.clock else { return schedule.ticks.after(now) };
    let free = |one: &&Pending| !one.behind || clock.open().is_none();
    let waits = clock.pending.iter().find(free).map(|one| one.tick.clone());
    waits.or_else(|| schedule.ticks.after(clock.accounted))
}
