//! The port of what belongs to no job in memory: tables, lists and logs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::Clock;
use super::events::{Bell, Happened};
use soloist_domain::rotation::Memory;
use soloist_domain::time::Stamp;
use soloist_store::core::KnownTurns;
use soloist_store::journal::AuditEntry;
#[cfg(test)]
use soloist_store::records::Tell;
use soloist_store::records::{
    Changed, Check, FOLDS_KEPT, Fold, Found, Line, Look, Looked, Plan, Records, Write, folds,
};
use soloist_store::{Result, StoreError};

/// What another process does.
type Interference = Box<dyn FnOnce(&mut World) + Send>;

/// What all processes share.
struct World {
    clock: Clock,
    tables: BTreeMap<String, BTreeMap<String, String>>,
    /// Text and number.
    lists: BTreeMap<String, BTreeMap<String, u64>>,
    /// Places, by counter.
    counters: BTreeMap<String, u64>,
    memory: Memory,
    /// By number.
    logs: BTreeMap<String, BTreeMap<u64, String>>,
    #[cfg(test)]
    told: Vec<Tell>,
    /// Answers that are lost, although what was asked is done.
    lost: usize,
    /// What happens between a look and the change that follows it.
    between: Option<Interference>,
}

/// One process.
#[derive(Clone)]
pub(crate) struct MemoryRecords {
    clock: Clock,
    world: Arc<Mutex<World>>,
    bell: Arc<Bell>,
    /// How far the clock may be off, as this process knows it.
    slack: Duration,
    note: Option<Arc<AuditEntry>>,
    turns: Arc<KnownTurns>,
}

impl MemoryRecords {
    pub(super) fn on(clock: Clock) -> Self {
        let world = World {
            clock: clock.clone(),
            tables: BTreeMap::new(),
            lists: BTreeMap::new(),
            counters: BTreeMap::new(),
            memory: Memory::default(),
            logs: BTreeMap::new(),
            #[cfg(test)]
            told: Vec::new(),
            lost: 0,
            between: None,
        };
        Self {
            clock,
            world: Arc::new(Mutex::new(world)),
            bell: Arc::default(),
            slack: Duration::ZERO,
            note: None,
            turns: Arc::default(),
        }
    }

    /// Another process, which knows the clock only so well.
    pub(crate) fn another(&self, slack: Duration) -> Self {
        Self { slack, note: None, turns: Arc::default(), ..self.clone() }
    }

    /// The same process, whose calls write `entry` down.
    pub(crate) fn noting(&self, entry: AuditEntry) -> Self {
        Self { note: Some(Arc::new(entry)), ..self.clone() }
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Another process remembers for the store from now on, or something is found to be missing.
    pub(crate) fn remember_as(&self, memory: Memory) {
        self.world.lock().memory = memory;
    }

    /// Writes as the step of another process does.
    pub(super) fn write(&self, write: &Write) {
        self.world.lock().write(write);
    }
}

/// What unit tests bring about.
#[cfg(test)]
impl MemoryRecords {
    pub(crate) fn new() -> Self {
        Self::on(Clock::new(0))
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    pub(crate) fn now(&self) -> Stamp {
        self.clock.now()
    }

    pub(crate) fn lose_answers(&self, number: usize) {
        self.world.lock().lost = number;
    }

    /// Has `plan` carried out by another process after the next look, or before the next change if that comes first.
    pub(crate) fn interfere(&self, plan: Plan) {
        self.world.lock().between = Some(Box::new(move |world| {
            world.change(&plan);
        }));
    }

    /// How many wait, have a row as waiters, and had turns that are known by request.
    pub(crate) fn leftovers(&self) -> [usize; 3] {
        let world = self.world.lock();
        let lists = world.lists.iter().filter(|(name, _)| name.starts_with("turns:queue:"));
        let of = |table: &str| {
            let tables = world.tables.iter().filter(|(name, _)| name.starts_with(table));
            tables.map(|(_, rows)| rows.len()).sum()
        };
        [lists.map(|(_, list)| list.len()).sum(), of("turns:waiting:"), of("turns:asked")]
    }

    /// What was told since this was asked last.
    pub(crate) fn told(&self) -> Vec<Tell> {
        std::mem::take(&mut self.world.lock().told)
    }
}

impl World {
    fn interfere(&mut self) {
        if let Some(between) = self.between.take() {
            between(self);
        }
    }

    fn row(&self, table: &str, row: &str) -> Option<&String> {
        self.tables.get(table)?.get(row)
    }

    fn entries(&self, list: &str) -> Vec<(u64, String)> {
        let all = self.lists.get(list).into_iter().flatten();
        let mut entries: Vec<(u64, String)> =
            all.map(|(text, number)| (*number, text.clone())).collect();
        entries.sort();
        entries
    }

    fn count(&self, lists: &[String], below: u64) -> u64 {
        let numbers =
            lists.iter().filter_map(|list| self.lists.get(list)).flat_map(BTreeMap::values);
        numbers.filter(|number| **number < below).count() as u64
    }

    fn look(&self, look: &Look) -> Found {
        match look {
            Look::Row(table, row) => Found::Row(self.row(table, row).cloned()),
            Look::Rows(table) => Found::Rows(self.tables.get(table).cloned().unwrap_or_default()),
            Look::First(list, most) => {
                Found::Entries(self.entries(list).into_iter().take(*most).collect())
            }
            Look::Last(list, most) => {
                let mut entries = self.entries(list);
                entries.drain(..entries.len().saturating_sub(*most));
                Found::Entries(entries)
            }
            Look::Described { list, table, most } => {
                let first = self.entries(list).into_iter().take(*most);
                let with = first.map(|(number, text)| {
                    let row = self.row(table, &text).cloned();
                    (number, text, row)
                });
                Found::Described(with.collect())
            }
            Look::Count(lists) => Found::Count(self.count(lists, u64::MAX)),
            Look::Ahead { lists, of, text } => {
                let place = self.lists.get(of).and_then(|list| list.get(text));
                Found::Count(self.count(lists, place.copied().unwrap_or(u64::MAX)))
            }
            Look::Memory => Found::Memory { memory: self.memory.clone(), emptied: false },
            Look::Log(log, below, most) => {
                let entries = self.logs.get(log).into_iter().flatten();
                let below = below.unwrap_or(u64::MAX);
                let older = entries.rev().filter(|(id, _)| **id < below);
                Found::Log(older.take(*most).map(|(_, text)| text.clone()).collect())
            }
            Look::LogAfter(log, above, most) => {
                let entries = self.logs.get(log).into_iter().flatten();
                let newer = entries.filter(|(id, _)| **id > *above);
                Found::Log(newer.take(*most).map(|(_, text)| text.clone()).collect())
            }
        }
    }

    fn holds(&self, check: &Check) -> bool {
        match check {
            Check::Row { table, row, is } => self.row(table, row) == is.as_ref(),
            Check::Begins { table, row, with } => {
                self.row(table, row).is_some_and(|text| text.starts_with(with))
            }
            Check::Memory(memory) => self.memory == *memory,
            Check::Empty { table } => self.tables.get(table).is_none_or(BTreeMap::is_empty),
            Check::First { list, most, are } => {
                let first = self.entries(list).into_iter().take(*most).map(|(_, text)| text);
                first.collect::<Vec<_>>() == *are
            }
        }
    }

    fn write(&mut self, write: &Write) {
        let now_ms = self.clock.now().floor().0;
        match write {
            Write::Set { table, row, text } => {
                let table = self.tables.entry(table.clone()).or_default();
                table.insert(row.clone(), text.clone());
            }
            Write::Unset { table, row } => {
                self.tables.entry(table.clone()).or_default().remove(row);
            }
            Write::Add { list, number, text } => {
                self.lists.entry(list.clone()).or_default().insert(text.clone(), *number);
            }
            Write::Join { list, counter, text } => {
                let next = self.next(counter);
                let list = self.lists.entry(list.clone()).or_default();
                list.entry(text.clone()).or_insert(next);
            }
            Write::Strike { list, text } => {
                self.lists.entry(list.clone()).or_default().remove(text);
            }
            Write::Cut { list, kept } => {
                let entries = self.entries(list);
                for (_, text) in entries.iter().rev().skip(*kept) {
                    self.lists.entry(list.clone()).or_default().remove(text);
                }
            }
            Write::Log(line) => self.log(line, now_ms),
            Write::Entry(entry) => {
                let log = self.logs.entry(entry.log.clone()).or_default();
                log.insert(entry.id, entry.text().unwrap_or_default());
                self.counters.insert(entry.counter.clone(), entry.id);
            }
        }
    }

    fn log(&mut self, line: &Line, now_ms: i64) {
        if let Some(fold) = &line.fold
            && self.fold(line, fold, now_ms).is_some()
        {
            return;
        }
        let id = self.next(&line.counter);
        let entries = self.logs.entry(line.log.clone()).or_default();
        let head = format!("\"id\":{id},\"at\":{now_ms},\"count\":{}", line.count);
        entries.insert(id, with(&head, &line.entry));
        while entries.len() > line.kept {
            entries.pop_first();
        }
        if let Some(fold) = &line.fold {
            let table = self.tables.entry(folds(&line.log)).or_default();
            if table.len() >= FOLDS_KEPT {
                table.clear();
            }
            table.insert(fold.key.clone(), format!("{id} {}", fold.same));
        }
    }

    /// Writes the entry again that stands under the same key, if it is young enough.
    fn fold(&mut self, line: &Line, fold: &Fold, now_ms: i64) -> Option<()> {
        let (id, said) = self.row(&folds(&line.log), &fold.key)?.split_once(' ')?;
        let id: u64 = id.parse().ok().filter(|_| said == fold.same)?;
        let before = self.logs.get_mut(&line.log)?.get_mut(&id)?;
        let read: serde_json::Value = serde_json::from_str(before).ok()?;
        let at = read["at"].as_i64()?;
        let within = u64::try_from(now_ms - at).is_ok_and(|age| age <= fold.within_ms);
        within.then_some(())?;
        let count = read["count"].as_u64().unwrap_or(1) + line.count;
        let head = format!("\"id\":{id},\"at\":{at},\"count\":{count},\"until\":{now_ms}");
        *before = with(&head, &line.entry);
        Some(())
    }

    /// One more than the last of `counter`.
    fn next(&mut self, counter: &str) -> u64 {
        let newest = self.counters.entry(counter.to_owned()).or_default();
        *newest += 1;
        *newest
    }

    fn change(&mut self, plan: &Plan) -> Changed {
        let in_time = plan.within.as_ref().is_none_or(|within| within.contains(&self.clock.now()));
        if !in_time || !plan.checks.iter().all(|check| self.holds(check)) {
            return Changed::Refused;
        }
        for write in &plan.writes {
            self.write(write);
        }
        #[cfg(test)]
        self.told.extend(plan.tells.iter().cloned());
        Changed::Done
    }
}

#[async_trait]
impl Records for MemoryRecords {
    fn note(&self) -> Option<&AuditEntry> {
        self.note.as_deref()
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        tokio::task::yield_now().await;
        let mut world = self.world.lock();
        let found = looks.iter().map(|look| world.look(look)).collect();
        let at = self.clock.now();
        world.interfere();
        Ok(Looked { at, found })
    }

    fn latest(&self) -> Option<Stamp> {
        Some(self.clock.now() + self.slack)
    }

    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        tokio::task::yield_now().await;
        let mut world = self.world.lock();
        self.clock.change();
        world.interfere();
        let mut answer = world.change(plan);
        if answer == Changed::Done {
            plan.tells.iter().for_each(|tell| self.bell.ring(&Happened::Told(tell.clone())));
        }
        if world.lost > 0 {
            world.lost -= 1;
            if plan.once {
                return Err(StoreError::Unavailable("the answer was lost".to_owned()));
            }
            // The connection broke; it is sent again.
            answer = world.change(plan);
        }
        let looks = if answer == Changed::Done { done } else { refused };
        let found = looks.iter().map(|look| world.look(look)).collect();
        Ok((answer, Looked { at: self.clock.now(), found }))
    }

    fn turns(&self) -> &KnownTurns {
        &self.turns
    }
}

/// A JSON object that begins with these members.
fn with(head: &str, entry: &str) -> String {
    format!("{{{head},{}", entry.strip_prefix('{').unwrap_or(entry))
}
