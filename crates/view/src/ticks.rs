//! Ticks, as programs and pages are told of them: what comes next, what became of those that were due, what a schedule says in words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::{At, Language};
use soloist_config::Scheduled;
use soloist_domain::job::JobRecord;
use soloist_domain::tick::{
    Clock, Entry, Note, Open, Outcome, Params, Phase, Tick, TickName, Why, next_tick,
};
use soloist_domain::time::StoreTime;

/// More ticks than this are not counted for a reader.
const MOST_COUNTED: u32 = 10_000;

/// The schedule of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleView {
    /// As the file has them.
    pub expressions: Vec<String>,
    /// The time zone; null for `every` and `at`.
    pub zone: Option<String>,
    /// The same in words of the reader's language.
    pub words: String,
    /// The tick that is to run next; null when none comes any more.
    pub next: Option<NextTickView>,
    /// The newest tick that is decided.
    pub last: Option<LastTickView>,
    /// Runs that somebody asked for and that wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedView>,
}

/// A tick that is to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = NextTick)]
pub struct NextTickView {
    /// Its name.
    pub tick: String,
    /// When the schedule says.
    pub due: At,
    /// With the jitter.
    pub starts: At,
    /// `gap` or `fold` where the clocks change.
    #[serde(default)]
    pub note: Option<String>,
}

/// The newest tick that is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LastTick)]
#[expect(missing_docs, reason = "as in Tick")]
pub struct LastTickView {
    pub tick: String,
    pub outcome: String,
    pub due: At,
}

/// A run that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AskedRun)]
#[expect(missing_docs, reason = "the names say it")]
pub struct AskedView {
    pub tick: String,
    pub by: String,
    pub at: At,
    pub params: Params,
}

/// `GET /api/v1/jobs/{job}/next`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextTicks {
    /// The time zone; null for `every` and `at`.
    pub zone: Option<String>,
    /// The schedule in words.
    pub words: String,
    /// The first is the next.
    pub next: Vec<NextTickView>,
}

/// What became of a tick, or of several in a row that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tick)]
pub struct TickView {
    /// Its name; of several, of the first.
    pub tick: String,
    /// When the schedule said.
    pub due: At,
    /// `running`, `done`, `failed`, `lost`, `missed`, `skipped`, `unwanted`, `covered` or `dropped`.
    pub outcome: String,
    /// What was in the way, or how the run ended.
    pub why: Option<String>,
    /// The newest run.
    pub run: Option<String>,
    /// The newest attempt; 0: it was never granted.
    pub attempt: u32,
    /// When the newest run began.
    pub started: Option<At>,
    /// When the tick was over.
    pub ended: Option<At>,
    /// How long after its start it was granted first.
    pub late_ms: Option<u64>,
    /// Who asked for it; null: the clock.
    pub by: Option<String>,
    /// What its script was told.
    pub params: Params,
    /// For how many ticks in a row this stands.
    pub count: u32,
    /// The last of them; null for one.
    pub until: Option<String>,
    /// The same for people.
    #[serde(skip)]
    pub shown: Option<Why>,
}

/// `GET /api/v1/jobs/{job}/ticks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TickList {
    /// The newest first.
    pub ticks: Vec<TickView>,
}

impl From<&Tick> for NextTickView {
    fn from(tick: &Tick) -> Self {
        Self {
            tick: tick.name.0.clone(),
            due: At(tick.due),
            starts: At(tick.starts),
            note: tick.note.map(|note| {
                match note {
                    Note::Gap => "gap",
                    Note::Fold => "fold",
                }
                .to_owned()
            }),
        }
    }
}

impl From<&Entry> for TickView {
    fn from(entry: &Entry) -> Self {
        Self {
            tick: entry.tick.name.0.clone(),
            due: At(entry.tick.due),
            outcome: entry.outcome.as_str().to_owned(),
            why: entry.why.as_ref().map(ToString::to_string),
            run: entry.run.as_ref().map(ToString::to_string),
            attempt: entry.attempt,
            started: entry.started.map(At),
            ended: entry.ended.map(At),
            late_ms: entry.late_ms,
            by: entry.by.as_ref().map(ToString::to_string),
            params: entry.params.clone(),
            count: entry.count,
            until: entry.until.as_ref().map(|until| until.name.0.clone()),
            shown: entry.why.clone(),
        }
    }
}

impl ScheduleView {
    /// Of the schedule of a job, by its `record`.
    #[must_use]
    pub fn of(scheduled: &Scheduled, record: &JobRecord, now: StoreTime, lang: Language) -> Self {
        let clock = record.clock.as_deref();
        let next = next_tick(record, &scheduled.law, now);
        let open = clock.and_then(Clock::open).map(entry_of);
        let last = open.or_else(|| clock.and_then(|clock| clock.recent.last()).cloned());
        Self {
            expressions: scheduled.plan.expressions(),
            zone: scheduled.plan.zone().map(ToOwned::to_owned),
            words: scheduled.plan.words(lang == Language::Zh),
            next: next.as_ref().map(NextTickView::from),
            last: last.map(|entry| LastTickView {
                tick: entry.last().name.0.clone(),
                outcome: entry.outcome.as_str().to_owned(),
                due: At(entry.last().due),
            }),
            asked: clock.into_iter().flat_map(|clock| &clock.asked).map(AskedView::from).collect(),
        }
    }
}

impl From<&soloist_domain::tick::Asked> for AskedView {
    fn from(asked: &soloist_domain::tick::Asked) -> Self {
        Self {
            tick: asked.tick.name.0.clone(),
            by: asked.by.to_string(),
            at: At(asked.at),
            params: asked.params.clone(),
        }
    }
}

/// The entry that an open tick has while it lasts.
fn entry_of(open: &Open) -> Entry {
    let why = match &open.phase {
        Phase::Again { why, .. } => Some(why.clone()),
        _ => None,
    };
    open.entry(Outcome::Running, why, None)
}

/// The next `count` ticks from `from` on, that instant included.
#[must_use]
pub fn next_ticks(
    scheduled: &Scheduled,
    from: StoreTime,
    count: usize,
    lang: Language,
) -> NextTicks {
    let first = scheduled.law.ticks.after(StoreTime(from.0.saturating_sub(1)));
    let after = |tick: &Tick| scheduled.law.ticks.after(tick.starts);
    let ticks = std::iter::successors(first, after).take(count);
    NextTicks {
        zone: scheduled.plan.zone().map(ToOwned::to_owned),
        words: scheduled.plan.words(lang == Language::Zh),
        next: ticks.map(|tick| NextTickView::from(&tick)).collect(),
    }
}

/// What became of ticks: those that are decided (`entries`, the newest first), the open one, and a gap that goes on.
#[must_use]
pub fn all_ticks(
    entries: Vec<Entry>,
    scheduled: Option<&Scheduled>,
    record: &JobRecord,
    now: StoreTime,
) -> Vec<Entry> {
    let Some(clock) = record.clock.as_deref() else { return entries };
    let mut all = entries;
    if let Some(open) = clock.open() {
        // By name once more: the attempt that goes on is what became of it.
        all.retain(|entry| entry.count > 1 || entry.tick.name != open.tick.name);
        all.push(entry_of(open));
    }
    all.extend(scheduled.and_then(|scheduled| gap(clock, scheduled, now)));
    all.sort_by_key(|entry| std::cmp::Reverse(entry.tick.starts));
    all
}

/// What nobody wants at present: it gets its entry when that ends.
fn gap(clock: &Clock, scheduled: &Scheduled, now: StoreTime) -> Option<Entry> {
    let shift = clock.shifts.last()?;
    let why = Some(shift.to.why().filter(|_| shift.to.is_off())?);
    let begins = clock.accounted.max(StoreTime(shift.at.0 - 1));
    let mut tick = scheduled.law.ticks.after(begins).filter(|tick| tick.starts <= now)?;
    let mut entry = Entry::of(tick.clone(), Outcome::Unwanted, why);
    while let Some(next) = scheduled.law.ticks.after(tick.starts).filter(|t| t.starts <= now) {
        if entry.count >= MOST_COUNTED {
            entry.until = scheduled.law.ticks.until(now);
            break;
        }
        entry.count += 1;
        entry.until = Some(next.clone());
        tick = next;
    }
    Some(entry)
}

/// Those that are older than the tick called `before`; of one within a gap, what is older than the gap. `None`: neither has it an entry, nor
/// is it of the schedule.
#[must_use]
pub fn older<'a>(
    all: &'a [Entry],
    before: &TickName,
    scheduled: Option<&Scheduled>,
) -> Option<&'a [Entry]> {
    if let Some(at) = all.iter().position(|entry| entry.tick.name == *before) {
        return Some(&all[at + 1..]);
    }
    let tick = scheduled?.plan.named(before)?;
    let at = all.iter().position(|entry| entry.last().starts < tick.starts);
    Some(&all[at.unwrap_or(all.len())..])
}

/// A page of them: at most `limit`, of one outcome.
#[must_use]
pub fn page(all: &[Entry], limit: usize, outcome: Option<Outcome>) -> TickList {
    let wanted = all.iter().filter(|entry| outcome.is_none_or(|word| entry.outcome == word));
    TickList { ticks: wanted.take(limit).map(TickView::from).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{config, scheduled};

    #[test]
    fn what_is_older_is_told_of_a_name_within_a_gap_too_and_an_unknown_name_is_none() {
        let job = config("settle", "Settlement", "结算").name;
        let scheduled = scheduled(&job);
        let minute = |n: i64| {
            let at = StoreTime(1_777_891_260_000 + n * 60_000);
            scheduled.law.ticks.after(StoreTime(at.0 - 1)).expect("a tick of each minute")
        };
        let mut gap = Entry::of(minute(2), Outcome::Unwanted, None);
        (gap.count, gap.until) = (4, Some(minute(5)));
        let done = |n| Entry::of(minute(n), Outcome::Done, None);
        let all = [done(6), gap, done(1)];
        let left = |name: &TickName| older(&all, name, Some(&scheduled)).map(<[Entry]>::len);
        let named = [7, 6, 5, 4, 2, 1, 0].map(|n| left(&minute(n).name));
        assert_eq!(named, [3, 2, 1, 1, 1, 0, 0].map(Some));
        for unknown in
            ["settle@2026-05-04T02:30:07Z", "settle@hand:01M8HB2ZHJ191E2XZN4WVCQ8MW", "x"]
        {
            assert_eq!(left(&TickName(unknown.to_owned())), None, "{unknown}");
        }
    }
}
