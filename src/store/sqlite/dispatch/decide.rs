//! Load, decide, write: how every transition of dispatch is carried out in one transaction.
//!
//! The decision is `domain::dispatch`'s. It says what it must look at, this file finds it by an index, and what is decided is
//! written in the same transaction. Nothing that happens here depends on what is in a record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::clock;
use super::super::fault::{Fault, Outcome};
use super::super::row::{find, int, uint};
use super::super::step::Step;
use super::{claims, source, task, waiters};
use crate::domain::dispatch::{
    Book, Change, ClaimId, DONE_KEPT, Halt, Need, Overdue, Recent, Sets, Task, TaskId, Wanted,
};
use crate::domain::lease::Token;
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::StoreError;

/// How many sources at their cap are asked which of them can be served the soonest.
const CAPPED: usize = 16;

/// A transition under way: what was loaded, and in which rows it stands.
pub(super) struct Desk<'s> {
    pub(super) step: &'s Step<'s>,
    pub(super) now: Stamp,
    pub(super) sets: Sets,
    /// Rows of the tasks that were loaded or put.
    pub(super) rows: BTreeMap<TaskId, i64>,
    /// Rows of the claims that were loaded or begun.
    pub(super) claims: BTreeMap<ClaimId, i64>,
    /// Done tasks that are remembered.
    done: u64,
}

impl<'s> Desk<'s> {
    pub(super) fn open(step: &'s Step<'s>) -> Outcome<Self> {
        let (newest, token, turn, done): (i64, i64, i64, i64) = step
            .prepare_cached("SELECT newest, token, turn, done FROM dispatch")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let book = Book { token: Token(uint(token)), turn: uint(turn) };
        Ok(Self {
            step,
            now: clock::take(step, newest)?,
            sets: Sets { book, ..Sets::default() },
            rows: BTreeMap::new(),
            claims: BTreeMap::new(),
            done: uint(done),
        })
    }

    /// Lets decide, loading what that needs.
    pub(super) fn decide<T>(
        &mut self,
        act: impl Fn(&Sets, Stamp) -> Result<Change<T>, Halt>,
    ) -> Outcome<Change<T>> {
        loop {
            match act(&self.sets, self.now) {
                Ok(change) => return Ok(change),
                Err(Halt::Need(needs)) => {
                    needs.into_iter().try_for_each(|need| self.load(need))?;
                }
                Err(Halt::NoSource(name)) => return Err(source::unknown(&name).into()),
                Err(Halt::NoTask(id)) => return Err(not_found("task", &id.0)),
                Err(Halt::NoClaim(id)) => return Err(not_found("claim", &id.0)),
            }
        }
    }

    fn load(&mut self, need: Need) -> Outcome<()> {
        match need {
            Need::Records(wanted) => self.load_records(&wanted)?,
            Need::Recent(keys) => {
                for (name, span) in keys {
                    self.load_recent(&name, span)?;
                }
            }
            Need::Overdue(most) => self.load_overdue(most)?,
            Need::Ring(most) => {
                let ring = "turn IS NOT NULL ORDER BY turn LIMIT ?";
                self.sets.ring = Some((most, self.load_sources(ring, [limit(most)])?));
            }
            Need::Heads(counts) => {
                for (name, count) in counts {
                    let rest = "t.source = ? AND t.state = 'ready' ORDER BY t.place LIMIT ?";
                    let heads = self.load_tasks(rest, (name.as_str(), limit(count)))?;
                    self.sets.heads.insert(name, heads);
                }
            }
            Need::Shut(most) => {
                let opens = "opens IS NOT NULL ORDER BY opens LIMIT ?";
                let mut shut = self.load_sources(opens, [limit(most)])?;
                for (why, most) in [("cap", CAPPED), ("paused", 1)] {
                    shut.extend(self.load_sources("shut = ? LIMIT ?", (why, limit(most)))?);
                }
                self.sets.shut = Some(shut);
            }
            Need::Firsts { ends, dues } => {
                for (name, count) in ends {
                    let rest = "t.source = ? AND t.state = 'leased' ORDER BY t.until LIMIT ?";
                    let first = self.load_tasks(rest, (name.as_str(), limit(count)))?;
                    self.sets.ends.insert(name, first);
                }
                for (name, count) in dues {
                    let first = match &name {
                        Some(name) => self.load_tasks(
                            "t.source = ? AND t.state = 'due' ORDER BY t.at LIMIT ?",
                            (name.as_str(), limit(count)),
                        )?,
                        None => self
                            .load_tasks("t.state = 'due' ORDER BY t.at LIMIT ?", [limit(count)])?,
                    };
                    self.sets.dues.insert(name, first);
                }
            }
            Need::Queues(counts) => {
                // Mostly nobody waits, and then no queue has anybody.
                let some = waiters::are_there(self.step)?;
                for (name, count) in counts {
                    let waiting = if some {
                        waiters::first(self.step, self.now, name.as_ref(), limit(count))?
                    } else {
                        Vec::new()
                    };
                    self.sets.queues.insert(name, waiting);
                }
            }
        }
        Ok(())
    }

    fn load_records(&mut self, wanted: &Wanted) -> Outcome<()> {
        for name in &wanted.sources {
            self.load_source(name)?;
        }
        if !wanted.tasks.is_empty() {
            let found = task::named(self.step, &wanted.tasks)?;
            self.keep_tasks(found);
            for id in &wanted.tasks {
                self.sets.tasks.entry(id.clone()).or_insert(None);
            }
        }
        for id in &wanted.claims {
            self.load_claim(id, claims::by_id(self.step, id)?);
        }
        let tasks = wanted.tasks.iter().filter_map(|id| self.sets.tasks.get(id)?.as_ref());
        let (sources, claims): (BTreeSet<_>, BTreeSet<_>) =
            tasks.map(|task| (task.source.clone(), task.claim.clone())).unzip();
        for name in &sources {
            self.load_source(name)?;
        }
        for id in claims.iter().flatten() {
            if !self.sets.claims.contains_key(id) {
                self.load_claim(id, claims::by_id(self.step, id)?);
            }
        }
        Ok(())
    }

    fn load_claim(&mut self, id: &ClaimId, found: Option<(i64, crate::domain::dispatch::Claim)>) {
        self.claims.extend(found.as_ref().map(|(row, _)| (id.clone(), *row)));
        self.sets.claims.insert(id.clone(), found.map(|(_, claim)| claim));
    }

    fn load_source(&mut self, name: &SourceName) -> Outcome<()> {
        if self.sets.sources.contains_key(name) {
            return Ok(());
        }
        let found = source::one(self.step, name)?;
        let window = found.as_ref().and_then(|source| source.rules.window);
        self.sets.sources.insert(name.clone(), found);
        window.map_or(Ok(()), |window| self.load_recent(name, window.span))
    }

    fn load_recent(&mut self, name: &SourceName, span: Duration) -> Outcome<()> {
        let started = match self.sets.sources.get(name) {
            Some(Some(source)) => source.started,
            _ => 0,
        };
        let recent: Recent = source::recent(self.step, name, started, span, self.now)?;
        self.sets.recent.insert((name.clone(), span), recent);
        Ok(())
    }

    /// The sources that `rest` of a query finds, in its order.
    fn load_sources(
        &mut self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Outcome<Vec<SourceName>> {
        let found: Vec<String> = self
            .step
            .prepare_cached(&format!("SELECT name FROM sources WHERE {rest}"))?
            .query_map(params, |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let names: Vec<SourceName> =
            found.iter().map(|name| source::name(name)).collect::<Outcome<_>>()?;
        for name in &names {
            self.load_source(name)?;
        }
        Ok(names)
    }

    /// The tasks that `rest` of a query finds, in its order.
    fn load_tasks(&mut self, rest: &str, params: impl rusqlite::Params) -> Outcome<Vec<TaskId>> {
        let found = task::select(self.step, rest, params)?;
        Ok(self.keep_tasks(found))
    }

    fn keep_tasks(&mut self, found: Vec<(i64, Task)>) -> Vec<TaskId> {
        let mut ids = Vec::with_capacity(found.len());
        for (row, task) in found {
            ids.push(task.id.clone());
            self.rows.insert(task.id.clone(), row);
            self.sets.tasks.insert(task.id.clone(), Some(task));
        }
        ids
    }

    fn load_overdue(&mut self, most: u32) -> Outcome<()> {
        let now = self.now.0;
        // Mostly nothing is: one question instead of four.
        let any = "SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 'leased' AND until <= ?1) \
                   OR EXISTS (SELECT 1 FROM tasks WHERE state = 'due' AND at <= ?1) \
                   OR EXISTS (SELECT 1 FROM sources WHERE opens IS NOT NULL AND opens <= ?1) \
                   OR EXISTS (SELECT 1 FROM sources WHERE promised > 0 AND promised_until <= ?1)";
        if find(self.step, any, [now])? != Some(true) {
            self.sets.overdue = Some(Overdue::default());
            return Ok(());
        }
        let leases = "t.state = 'leased' AND t.until <= ? ORDER BY t.until, t.token LIMIT ?";
        let leases = self.load_tasks(leases, (now, most))?;
        let due = "t.state = 'due' AND t.at <= ? ORDER BY t.at, t.n LIMIT ?";
        let due = self.load_tasks(due, (now, most))?;
        let tasks = leases.iter().chain(&due).filter_map(|id| self.sets.tasks.get(id)?.as_ref());
        let sources: Vec<SourceName> = tasks.map(|task| task.source.clone()).collect();
        for name in sources {
            self.load_source(&name)?;
        }
        let opens = "opens IS NOT NULL AND opens <= ? ORDER BY opens LIMIT ?";
        let opens = self.load_sources(opens, (now, most))?;
        let lapsed = "promised > 0 AND promised_until <= ? ORDER BY promised_until LIMIT ?";
        let lapsed = self.load_sources(lapsed, (now, most))?;
        self.sets.overdue = Some(Overdue { leases, due, opens, lapsed });
        Ok(())
    }

    /// One more done task is remembered, and the oldest beyond [`DONE_KEPT`] are not.
    pub(super) fn remember_done(&mut self) -> Outcome<()> {
        self.done += 1;
        while self.done > DONE_KEPT {
            let oldest = "SELECT n FROM tasks WHERE state = 'done' ORDER BY changed, n LIMIT 1";
            if let Some(oldest) = find::<i64>(self.step, oldest, [])? {
                task::forget(self.step, oldest)?;
            }
            self.done -= 1;
        }
        Ok(())
    }

    /// One done task less is remembered.
    pub(super) fn forget_done(&mut self) {
        self.done = self.done.saturating_sub(1);
    }

    /// Writes what grows over all sources, and the newest instant that was written down.
    pub(super) fn save_book(&self, book: &Book) -> Outcome<()> {
        self.step
            .prepare_cached("UPDATE dispatch SET newest = ?, token = ?, turn = ?, done = ?")?
            .execute((self.now.0, int(book.token.0), int(book.turn), int(self.done)))?;
        Ok(())
    }
}

fn not_found(what: &str, id: &str) -> Fault {
    StoreError::NotFound(format!("{what} {id}")).into()
}

fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
