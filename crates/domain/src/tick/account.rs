//! The outcome of due ticks: each is decided once, in the order of time.
//!
//! The record says since when the job was wanted, held or off ([`Clock::shifts`]), and until when a tick was open. So it does not matter when
//! or by whom this is computed: the switch of a person is a change of its own, made where no schedule is known.

use super::record::{Clock, Entry, FORMER, Outcome, Phase, RECENT, Shift, Standing, Why};
use super::record::{Open, Order, Pending};
use super::rules::{Missed, Overlap, Schedule};
use super::{Tick, TickName};
use crate::job::{JobRecord, RunRecord};
use crate::time::StoreTime;
use crate::transition::Write;

/// How many ticks one commit examines: of a longer gap the rest is skipped, and its `count` says what was counted.
const MOST: usize = 10_000;
/// More shifts than this are not kept: what is before now is settled.
const SHIFTS: usize = 32;

/// The clock of a job while it is brought up to an instant.
pub(super) struct Books<'a> {
    pub(super) clock: &'a mut Clock,
    /// None: its ticks are not known here, and no gap is recorded.
    pub(super) order: Option<Order<'a>>,
    pub(super) writes: Vec<Write>,
    /// When it is written, by the store's clock.
    pub(super) now: StoreTime,
}

/// Notes whether the job is wanted from now on: whatever changes that calls this.
pub(crate) fn shifted(record: &mut JobRecord, at: StoreTime) {
    let to = Standing::of(record);
    let Some(clock) = &mut record.clock else { return };
    if clock.shifts.last().is_some_and(|last| last.to == to) {
        return;
    }
    // Instants do not go back, whatever the store's clock does.
    let at = clock.shifts.last().map_or(at, |last| last.at.max(at));
    clock.shifts.push(Shift { at, to });
}

pub(super) fn order(schedule: &Schedule) -> Order<'_> {
    Order { ticks: &*schedule.ticks }
}

/// The hash by which expressions are remembered that are in force no more.
pub(super) fn hash(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let bytes = Sha256::digest(text.as_bytes());
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the expressions of `schedule` those in force.
pub(super) fn adopt<'a>(
    record: &'a mut JobRecord,
    schedule: &'a Schedule,
    now: StoreTime,
) -> Books<'a> {
    if record.clock.is_none() {
        record.clock = Some(Box::new(Clock::begin(&schedule.text, record, now)));
    }
    #[expect(clippy::expect_used, reason = "it was made above")]
    let clock = record.clock.as_mut().expect("a clock");
    let mut books = Books { clock, order: Some(order(schedule)), writes: Vec::new(), now };
    if books.clock.text == schedule.text {
        return books;
    }
    let (new, old) = (hash(&schedule.text), hash(&books.clock.text));
    let known = books.clock.former.contains(&new);
    books.clock.former.retain(|one| *one != new && *one != old);
    books.clock.former.push(old);
    let surplus = books.clock.former.len().saturating_sub(FORMER);
    books.clock.former.drain(..surplus);
    let before = std::mem::replace(&mut books.clock.text, schedule.text.clone());
    // Nodes with different files take turns here, and nothing is lost by that.
    if !known {
        if let Some(former) = schedule.ticks.former(&before) {
            let old = Schedule { ticks: former, ..schedule.clone() };
            let clock = &mut *books.clock;
            let mut past = Books { clock, order: Some(order(&old)), writes: Vec::new(), now };
            past.settle(&old, now);
            books.writes = past.writes;
        }
        for pending in std::mem::take(&mut books.clock.pending) {
            books.decide(pending, Outcome::Missed, Why::Changed);
        }
        books.clock.accounted = books.clock.accounted.max(now);
    }
    books
}

impl Books<'_> {
    /// Writes an entry, or lets the newest stand for it as well.
    pub(super) fn tell(&mut self, entry: Entry) {
        self.note(&entry, None);
        // The entry of a tick that runs by its name stays its own.
        let open = self.clock.open().map(|open| open.tick.name.clone());
        let last =
            self.clock.recent.last_mut().filter(|last| Some(&last.tick.name) != open.as_ref());
        if let (Some(last), Some(order)) = (last, self.order) {
            let before = last.clone();
            if last.join(&entry, order) {
                let joined = last.clone();
                let wrote = self.writes.last_mut();
                if let Some(Write::KeepTick { entry, .. }) = wrote.filter(
                    |write| matches!(write, Write::KeepTick { entry, .. } if **entry == before),
                ) {
                    **entry = joined;
                    return;
                }
                let (entry, instead) = (Box::new(joined), Some(Box::new(before)));
                return self.writes.push(Write::KeepTick { entry, instead });
            }
        }
        self.put(entry, None);
    }

    /// Writes the entry of a tick that has one already, or a new one.
    fn put(&mut self, entry: Entry, instead: Option<Entry>) {
        let known = self
            .clock
            .recent
            .iter()
            .position(|old| old.count == 1 && old.tick.name == entry.tick.name);
        let instead = known.map(|at| self.clock.recent.remove(at)).or(instead);
        self.clock.attempts = self.clock.attempts.max(entry.attempt);
        self.clock.recent.push(entry.clone());
        self.trim();
        let (entry, instead) = (Box::new(entry), instead.map(Box::new));
        self.writes.push(Write::KeepTick { entry, instead });
    }

    pub(super) fn trim(&mut self) {
        let surplus = self.clock.recent.len().saturating_sub(RECENT);
        let gone: Vec<Entry> = self.clock.recent.drain(..surplus).collect();
        // A tick that is run by name, or is to be, keeps the entry that it has already.
        for entry in gone {
            let is_of = |tick: &Tick| entry.is_of(&tick.name, tick.starts);
            for asked in self.clock.asked.iter_mut().filter(|one| is_of(&one.tick)) {
                asked.known = Some(Box::new(entry.clone()));
            }
            if let Some(open) = &mut self.clock.open
                && !open.is_over()
                && entry.count == 1
                && is_of(&open.tick)
            {
                open.known = Some(Box::new(entry));
            }
        }
    }

    /// Ends a tick that waited, and those for which it would have run.
    fn decide(&mut self, pending: Pending, outcome: Outcome, why: Why) {
        let Pending { tick, older, why: known, .. } = pending;
        // What was in the way at its start says more than that nobody came.
        let missed = matches!(why, Why::NoNode | Why::Unfit { .. });
        let why = known.filter(|_| missed).unwrap_or(why);
        for older in older {
            let held = older.why.clone().filter(|why| missed && matches!(why, Why::Held { .. }));
            let why = held.or_else(|| Some(why.clone()));
            self.tell(Entry { outcome, why, ..older });
        }
        self.tell(Entry::of(tick, outcome, Some(why)));
    }

    /// Decides all that is certain at `now`.
    pub(super) fn settle(&mut self, schedule: &Schedule, now: StoreTime) {
        let waiting = std::mem::take(&mut self.clock.pending);
        for pending in waiting {
            match self.clock.may_have_forgotten(pending.tick.starts) {
                true => self.decide(pending, Outcome::Missed, Why::Forgot),
                false => self.clock.pending.push(pending),
            }
        }
        let mut from = self.clock.accounted;
        let mut leap_from = from;
        for step in 0.. {
            let tick = schedule.ticks.after(self.clock.accounted).filter(|t| t.starts <= now);
            let horizon = tick.as_ref().map_or(now, |tick| tick.starts);
            let shifts: Vec<Shift> = self.clock.shifts.clone();
            for shift in shifts.iter().filter(|shift| shift.at > from && shift.at <= horizon) {
                self.expire(schedule, shift.at);
                self.shift(shift);
            }
            from = horizon;
            let Some(tick) = tick else { break };
            let starts = tick.starts;
            self.expire(schedule, starts);
            if !self.clock.last.as_ref().is_some_and(|last| tick.name.is_not_after(last)) {
                self.clock.last = Some(tick.name.clone());
                self.arrive(schedule, tick, Vec::new());
            }
            self.clock.accounted = starts;
            if step >= MOST && self.clock.accounted >= leap_from {
                leap_from = self.leap(schedule, now);
            }
        }
        self.expire(schedule, now);
        if self.clock.shifts.len() > SHIFTS {
            self.clock.accounted = self.clock.accounted.max(now);
        }
        let accounted = self.clock.accounted;
        let settled = self.clock.shifts.iter().rposition(|shift| shift.at <= accounted);
        self.clock.shifts.drain(..settled.unwrap_or(0));
    }

    /// Lets the ticks of a long gap arrive as one, up to the next instant at which something else may become of them. The newest are left:
    /// they may be run. Gives that instant.
    fn leap(&mut self, schedule: &Schedule, now: StoreTime) -> StoreTime {
        let accounted = self.clock.accounted;
        let end = self.clock.turns(schedule).into_iter().filter(|turn| *turn > accounted).min();
        let end = end.map_or(now - schedule.rules.grace, |end| end.min(now - schedule.rules.grace));
        let before = |instant: StoreTime| {
            schedule.ticks.until(StoreTime(instant.0 - 1)).filter(|tick| tick.starts > accounted)
        };
        let left = match schedule.rules.missed {
            Missed::All => schedule.rules.missed_most,
            Missed::Skip | Missed::Once => 1,
        };
        let (Some(first), Some(mut last)) = (schedule.ticks.after(accounted), before(end)) else {
            return end;
        };
        for _ in 0..left {
            let Some(earlier) = before(last.starts) else { return end };
            last = earlier;
        }
        let Some(next_to_last) = before(last.starts) else { return end };
        // They are not counted: for two, if they are more than one.
        let several = next_to_last.starts > first.starts;
        let passed = Entry {
            count: if several { 2 } else { 1 },
            until: several.then_some(next_to_last),
            ..Entry::of(first, Outcome::Covered, None)
        };
        let mut older = vec![passed];
        let wanted = !self.clock.standing(last.starts).is_off();
        if wanted && self.clock.open.is_none() && !self.clock.may_have_forgotten(last.starts) {
            // What waits already gets no older than the gap: the newest stand for it, too.
            let tick = last.clone();
            let mut all = Pending { since: tick.starts, tick, behind: false, why: None, older };
            for one in std::mem::take(&mut self.clock.pending).into_iter().rev() {
                all.take_in(one, self.order);
            }
            older = all.older;
        }
        self.expire(schedule, last.starts);
        self.clock.accounted = last.starts;
        self.clock.last = Some(last.name.clone());
        self.arrive(schedule, last, older);
        end
    }

    /// A tick is due, and with it those of a long gap before it.
    fn arrive(&mut self, schedule: &Schedule, tick: Tick, passed: Vec<Entry>) {
        let standing = self.clock.standing(tick.starts).clone();
        let why = standing.why();
        let mut pending =
            Pending { since: tick.starts, tick, behind: false, why: None, older: passed };
        let tick = pending.tick.clone();
        if let Some(why) = why.clone().filter(|_| standing.is_off()) {
            return self.decide(pending, Outcome::Unwanted, why);
        }
        if self.clock.may_have_forgotten(tick.starts) {
            if self.clock.open().is_none_or(|open| open.tick.name != tick.name) {
                self.decide(pending, Outcome::Missed, Why::Forgot);
            }
            return;
        }
        if matches!(standing, Standing::Held(..)) {
            for entry in &mut pending.older {
                entry.why.clone_from(&why);
            }
            pending.why = why;
            return self.clock.pending.push(pending);
        }
        let Some(open) = self.clock.open.clone() else {
            return self.clock.pending.push(pending);
        };
        if let Phase::Again { at, .. } = open.phase
            && at + schedule.rules.grace < tick.starts
        {
            // Nobody takes the open one up: no node can run anything.
            return self.clock.pending.push(pending);
        }
        let why = Why::Open { tick: open.tick.name.clone() };
        let all_left = schedule.rules.missed == Missed::All
            && self.clock.pending.iter().any(|one| one.tick.starts < open.granted);
        match schedule.rules.overlap {
            _ if all_left && self.clock.pending.len() < schedule.rules.missed_most => {}
            // As many wait as may: the record must not grow while a run lasts.
            _ if all_left => return self.decide(pending, Outcome::Skipped, why),
            Overlap::Skip if open.is_by_clock() => {
                return self.decide(pending, Outcome::Skipped, why);
            }
            overlap => {
                self.only_newest_waits(&tick.name);
                if overlap == Overlap::Replace && open.is_by_clock() {
                    self.replace(&tick);
                }
            }
        }
        for older in std::mem::take(&mut pending.older) {
            self.tell(Entry { outcome: Outcome::Skipped, why: Some(why.clone()), ..older });
        }
        self.clock.pending.push(Pending { behind: true, ..pending });
    }

    /// Of those that wait behind the open one, `newest` takes the place.
    pub(super) fn only_newest_waits(&mut self, newest: &TickName) {
        let gone: Vec<Pending> = self
            .clock
            .pending
            .extract_if(.., |one| one.behind && one.tick.name != *newest)
            .collect();
        for pending in gone {
            self.decide(pending, Outcome::Skipped, Why::Replaced { by: newest.clone() });
        }
    }

    fn replace(&mut self, by: &Tick) {
        let Some(open) = &mut self.clock.open else { return };
        match open.phase {
            Phase::Granted => {
                open.replaced_by.get_or_insert_with(|| by.name.clone());
            }
            Phase::Again { .. } => {
                self.end_open(by.starts, Outcome::Failed, Why::Replaced { by: by.name.clone() });
            }
            Phase::Ended { .. } => {}
        }
    }

    /// The open tick has its entry. What became due until then met it.
    pub(super) fn end_open(
        &mut self,
        at: StoreTime,
        outcome: Outcome,
        why: impl Into<Option<Why>>,
    ) {
        let Some(open) = self.clock.open.as_mut().filter(|open| !open.is_over()) else { return };
        open.phase = Phase::Ended { at };
        let took = crate::time::millis(at.since(open.started.unwrap_or(open.granted)));
        let too_quick = open.rules.at_least_ms.is_some_and(|least| took < least);
        let (entry, known) = (open.entry(outcome, why.into(), Some(at)), open.known.take());
        self.note(&entry, too_quick.then_some(took));
        self.put(entry, known.map(|known| *known));
    }

    /// What time alone decides up to `at`.
    fn expire(&mut self, schedule: &Schedule, at: StoreTime) {
        if let Some(Open { phase: Phase::Again { since, lost, why, .. }, rules, losses, .. }) =
            &self.clock.open
        {
            let end = (*since + std::time::Duration::from_millis(rules.window_ms), why.clone());
            let given_up = self.clock.given_up();
            let (end, why) = given_up.filter(|(at, _)| *at < end.0).unwrap_or(end);
            if end <= at {
                let outcome = match *lost && *losses > 0 {
                    true => Outcome::Lost,
                    // It crashed, or was given back before anything was started.
                    false => Outcome::Failed,
                };
                self.end_open(end, outcome, why);
            }
        }
        if let Some(Phase::Ended { at: ended }) = self.clock.open.as_ref().map(|o| o.phase.clone())
            && ended <= at
        {
            self.clock.open = None;
            for one in self.clock.pending.iter_mut().filter(|one| one.behind) {
                (one.behind, one.since) = (false, one.since.max(ended));
            }
        }
        let rules = &schedule.rules;
        let late = |one: &Pending| !one.behind && one.since + rules.grace <= at;
        if !self.clock.pending.iter().any(late) {
            return;
        }
        let mut past: Vec<Pending> = self.clock.pending.extract_if(.., |one| late(one)).collect();
        match rules.missed {
            Missed::Skip => {}
            Missed::Once => {
                let newest = past.pop();
                if let Some(mut newest) = newest {
                    for one in past.drain(..) {
                        newest.take_in(one, self.order);
                    }
                    past.push(newest);
                }
            }
            Missed::All => {
                let surplus = past.len().saturating_sub(rules.missed_most);
                for one in past.drain(..surplus).collect::<Vec<_>>() {
                    let why = Why::TooMany { kept: rules.missed_most };
                    self.decide(one, Outcome::Dropped, why);
                }
            }
        }
        let mut stays = Vec::new();
        for one in past {
            if rules.missed == Missed::Skip || schedule.window_end(&one.tick) <= at {
                let why = match schedule.lacks.is_empty() {
                    true => Why::NoNode,
                    false => Why::Unfit { lacks: schedule.lacks.clone() },
                };
                self.decide(one, Outcome::Missed, why);
            } else {
                stays.push(one);
            }
        }
        self.clock.pending.splice(0..0, stays);
    }

    /// What a switch or a hold decides at once.
    fn shift(&mut self, shift: &Shift) {
        let Some(why) = shift.to.why() else { return };
        if !shift.to.is_off() {
            for one in self.clock.pending.iter_mut().filter(|one| one.tick.starts <= shift.at) {
                one.why.get_or_insert_with(|| why.clone());
            }
            return;
        }
        let due = self.clock.pending.extract_if(.., |one| one.tick.starts <= shift.at);
        for pending in due.collect::<Vec<_>>() {
            self.decide(pending, Outcome::Unwanted, why.clone());
        }
    }

    /// The holder of the open tick is gone, and how far it came is unknown.
    pub(super) fn lose(&mut self, at: StoreTime, why: Why) {
        let Some(open) = self.clock.open.as_mut().filter(|open| open.phase == Phase::Granted)
        else {
            return;
        };
        if let Some(by) = open.replaced_by.clone() {
            return self.end_open(at, Outcome::Failed, Why::Replaced { by });
        }
        open.losses += 1;
        let spent = open.rules.on_loss == super::rules::OnLoss::Spent;
        if spent || open.losses > open.rules.retries + 2 {
            return self.end_open(at, Outcome::Lost, why);
        }
        let wait = match open.losses {
            1 => std::time::Duration::ZERO,
            nth => open.rules.wait(nth - 1),
        };
        open.phase = Phase::Again { at: at + wait, since: at, lost: true, why };
    }
}

impl Clock {
    /// From which instants on something else may become of a tick that starts then.
    fn turns(&self, schedule: &Schedule) -> Vec<StoreTime> {
        let behind = |at: StoreTime| StoreTime(at.0 + 1);
        let open: Vec<StoreTime> = match self.open.as_ref().map(|open| (&open.phase, &open.rules)) {
            Some((Phase::Again { at, since, .. }, rules)) => {
                let window = std::time::Duration::from_millis(rules.window_ms);
                let given_up = self.given_up().map(|(at, _)| at);
                vec![behind(*at + schedule.rules.grace), *since + window]
                    .into_iter()
                    .chain(given_up)
                    .collect()
            }
            Some((Phase::Ended { at }, _)) => vec![*at],
            _ => Vec::new(),
        };
        let taken = self.taken.as_ref().map(|taken| behind(taken.starts));
        let forgot = self.forgot.map(|gap| [behind(gap.seen), behind(gap.until)]);
        let forgot = forgot.into_iter().flatten().chain(taken.filter(|_| self.forgot.is_some()));
        let shifts = self.shifts.iter().map(|shift| shift.at);
        shifts.chain(forgot).chain(open).collect()
    }
}

impl Pending {
    /// This one is run for `older`, too.
    pub(super) fn take_in(&mut self, older: Pending, order: Option<Order<'_>>) {
        let own = Entry::of(older.tick, Outcome::Covered, older.why);
        let mut all: Vec<Entry> = Vec::new();
        for entry in older.older.into_iter().chain([own]).chain(std::mem::take(&mut self.older)) {
            let last = all.last_mut().zip(order);
            if !last.is_some_and(|(last, order)| last.join(&entry, order)) {
                all.push(entry);
            }
        }
        self.older = all;
    }
}

/// The words for the loss of a run without a reported end.
pub(super) fn gone(
    run: Option<&RunRecord>,
    open: &Open,
    lapsed: Option<&crate::name::NodeName>,
) -> Why {
    let run = run.filter(|run| run.token == open.token).map(|run| &run.node);
    let node = run.or(lapsed).cloned().unwrap_or_else(crate::name::NodeName::unknown);
    Why::Gone { node }
}
