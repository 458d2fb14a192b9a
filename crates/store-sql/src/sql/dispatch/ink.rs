//! What a change writes: everything that has to be known before is asked at once, then statements are collected, and sent together.
//!
//! New rows get numbers of our own, one above the newest: the lock on the row of dispatch keeps everybody else from doing the
//! same meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::super::relay::Relay;
use super::super::session::{Row, Statement, Value};
use super::desk::Desk;
use super::waiters::Place;
use super::{claims, commit, task, waiters};
use soloist_domain::dispatch::{
    Change, DONE_BEYOND, DONE_KEPT, HISTORY_KEPT, Past, Sets, Task, TaskId, TaskState, Write,
};
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::Waiter;

/// Old claims that go whenever a new one comes.
const SOME: usize = 4;

/// What is known and what will be written.
#[derive(Default)]
pub(super) struct Ink {
    statements: Vec<Statement>,
    /// Written after all others.
    last: Vec<Statement>,
    /// The newest numbers.
    task: i64,
    claim: i64,
    waiter: i64,
    /// Of those who enter or leave.
    waiters: BTreeMap<Waiter, Place>,
    /// The newest entry of histories, by the rows of their tasks.
    pasts: BTreeMap<i64, i64>,
    /// Of those who were heard of, and when that was written down.
    collectors: BTreeMap<String, Stamp>,
    /// The rows of done tasks that are too many, if any are.
    done: Option<Vec<i64>>,
    /// The rows of tasks that are done by this change.
    finished: Vec<i64>,
}

/// What is asked before.
enum Question {
    Task,
    Claim,
    OldClaims,
    Waiter,
    Waiters,
    Past(i64),
    Collectors,
    Done,
    Texts,
}

impl Ink {
    /// Asks what must be known for that change.
    pub(super) async fn open(desk: &mut Desk<'_>, change: &Change<()>) -> Result<Self> {
        let (questions, asks): (Vec<_>, Vec<_>) = questions(desk, change).into_iter().unzip();
        let mut ink = Self::default();
        if asks.is_empty() {
            return Ok(ink);
        }
        let found = desk.session.query_all(&asks).await?;
        for (question, rows) in questions.into_iter().zip(found) {
            match question {
                Question::Texts => desk.texts.extend(task::read_texts(rows)?),
                question => ink.take(&question, rows)?,
            }
        }
        let heard = change.writes.iter().filter_map(|write| match write {
            Write::Seen(name) => Some(name.as_str()),
            _ => None,
        });
        let heard: BTreeSet<&str> = heard.collect();
        let new = heard.len().saturating_sub(ink.collectors.len());
        if new > 0 {
            let more = commit::collectors_beyond(new);
            let mut beyond = names(desk.session.query(&more.sql, &more.params).await?)?;
            beyond.retain(|name| !heard.contains(name.as_str()));
            ink.last = commit::forget_collectors(&beyond, desk.now);
        }
        Ok(ink)
    }

    fn take(&mut self, question: &Question, rows: Vec<Row>) -> Result<()> {
        let newest = |rows: &[Row]| -> Result<i64> {
            Ok(rows.first().map(|row| row.opt_int(0)).transpose()?.flatten().unwrap_or_default())
        };
        match question {
            Question::Task => self.task = newest(&rows)?,
            Question::Claim => self.claim = newest(&rows)?,
            Question::Waiter => self.waiter = newest(&rows)?,
            Question::Past(row) => drop(self.pasts.insert(*row, newest(&rows)?)),
            Question::OldClaims => {
                let rows: Vec<i64> = rows.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
                self.extend(claims::drop_rows(&rows));
            }
            Question::Waiters => {
                self.waiters = rows.into_iter().map(waiters::known).collect::<Result<_>>()?;
            }
            // They are the desk's.
            Question::Texts => {}
            Question::Collectors => {
                let seen = |mut row: Row| Ok((row.take(0)?, Stamp(row.int(1)?)));
                self.collectors = rows.into_iter().map(seen).collect::<Result<_>>()?;
            }
            Question::Done => {
                self.done = Some(rows.iter().map(|row| row.int(0)).collect::<Result<_>>()?);
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, statement: Statement) {
        self.statements.push(statement);
    }

    pub(super) fn extend(&mut self, statements: impl IntoIterator<Item = Statement>) {
        self.statements.extend(statements);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.finished.is_empty()
    }

    /// Its payload is not remembered.
    pub(super) fn finish(&mut self, row: i64) {
        self.finished.push(row);
    }

    /// Writes it.
    pub(super) async fn dry(mut self, session: &mut Relay) -> Result<()> {
        let finished = std::mem::take(&mut self.finished);
        self.extend((!finished.is_empty()).then(|| task::drop_payloads(finished)));
        self.statements.append(&mut self.last);
        session.execute_all(&self.statements).await
    }

    pub(super) fn new_task(&mut self) -> i64 {
        self.task += 1;
        self.task
    }

    pub(super) fn new_claim(&mut self) -> i64 {
        self.claim += 1;
        self.claim
    }

    /// When it was written down last that this collector called.
    pub(super) fn seen(&self, collector: &CollectorName) -> Option<Stamp> {
        self.collectors.get(collector.as_str()).copied()
    }

    /// One more entry of a history.
    pub(super) fn note(&mut self, row: i64, past: &Past) {
        let newest = self.pasts.entry(row).or_default();
        *newest += 1;
        let (n, kept) = (*newest, super::super::row::count(HISTORY_KEPT));
        self.push(task::note(row, n, past));
        if n > kept {
            self.push(task::cut_history(row, n - kept));
        }
    }

    /// It waits until then; one that waits already keeps its place.
    pub(super) fn enter(
        &mut self,
        waiter: &Waiter,
        sources: &[SourceName],
        until: Stamp,
    ) -> Result<()> {
        if let Some(place) = self.waiters.get(waiter) {
            let stay = place.stay(until);
            self.push(stay);
            return Ok(());
        }
        self.waiter += 1;
        let (place, statements) = waiters::enter(self.waiter, waiter, sources, until)?;
        self.extend(statements);
        self.waiters.insert(waiter.clone(), place);
        Ok(())
    }

    /// It waits no more, if it did.
    pub(super) fn leave(&mut self, waiter: &Waiter) {
        if let Some(place) = self.waiters.remove(waiter) {
            self.extend(place.leave());
        }
    }

    /// Done tasks that are too many are remembered no more. Returns whether there are such.
    pub(super) fn forget_done(&mut self) -> bool {
        let Some(rows) = self.done.take() else { return false };
        self.extend(task::forget(&rows));
        true
    }
}

fn questions(desk: &Desk<'_>, change: &Change<()>) -> Vec<(Question, Statement)> {
    let plain = |sql: &'static str| Statement::new(sql, Vec::new());
    let mut asks = Vec::new();
    if change.claims.iter().any(|(_, claim)| claims::begins(&desk.sets, claim.as_ref())) {
        asks.push((Question::Claim, plain(claims::NEWEST)));
        asks.push((Question::OldClaims, claims::old(desk.now, SOME)));
    }
    let (mut put, mut entered, mut finished) = (false, false, 0);
    let (mut waiting, mut noted, mut heard) = (Vec::new(), BTreeSet::<&TaskId>::new(), Vec::new());
    for write in &change.writes {
        match write {
            Write::Put(..) => put = true,
            Write::Finished(_) => finished += 1,
            Write::Note(id, _) => drop(noted.insert(id)),
            Write::Seen(collector) => heard.push(Value::from(collector.as_str())),
            Write::Enter { waiter, .. } => {
                entered = true;
                waiting.push(waiter);
            }
            Write::Strike(waiter) | Write::Wake(waiter) => waiting.push(waiter),
            Write::Remove(..) | Write::Start { .. } | Write::ForgetStarts(_) => {}
        }
    }
    if put {
        asks.push((Question::Task, plain("SELECT max(n) FROM tasks")));
    }
    if entered {
        asks.push((Question::Waiter, plain("SELECT max(n) FROM waiters")));
    }
    if !waiting.is_empty() {
        asks.push((Question::Waiters, waiters::named(&waiting)));
    }
    for row in noted.into_iter().filter_map(|id| desk.rows.get(id)) {
        asks.push((Question::Past(*row), task::newest_past(*row)));
    }
    if !heard.is_empty() {
        let head = "SELECT name, seen FROM collectors WHERE name";
        asks.push((Question::Collectors, Statement::within(head, heard, "")));
    }
    let granted = handed_out(&desk.sets, &change.tasks);
    let mut rows: Vec<i64> = granted.filter_map(|id| desk.rows.get(id)).copied().collect();
    // Of those that became ready by this change.
    rows.retain(|row| !desk.texts.contains_key(row));
    if !rows.is_empty() {
        asks.push((Question::Texts, task::texts(rows)));
    }
    let over = (desk.done + finished).saturating_sub(DONE_KEPT);
    // Each search steps over the rows that the server has just removed, so there are few searches.
    if finished > 0 && over >= DONE_BEYOND {
        let oldest = "SELECT n FROM tasks WHERE state = 'done' ORDER BY {changed}, n LIMIT ?";
        asks.push((
            Question::Done,
            Statement::new(oldest, vec![super::super::row::int(over).into()]),
        ));
    }
    asks
}

/// Those of `tasks` whose leases begin.
fn handed_out<'t>(sets: &'t Sets, tasks: &'t [Task]) -> impl Iterator<Item = &'t TaskId> {
    let was_leased = |id: &TaskId| {
        let before = sets.tasks.get(id).and_then(Option::as_ref);
        before.is_some_and(|before| before.state == TaskState::Leased)
    };
    let leased = tasks.iter().filter(|task| task.state == TaskState::Leased);
    leased.map(|task| &task.id).filter(move |id| !was_leased(id))
}

fn names(rows: Vec<Row>) -> Result<Vec<String>> {
    rows.into_iter().map(|mut row| row.take(0)).collect()
}
