//! Load, decide, write: how every transition of dispatch is carried out in one transaction.
//!
//! The decision is `domain::dispatch`'s. It says what it must look at, [`errand`](super::errand) finds it by an index, and what is
//! decided is written in the same transaction. Nothing that happens here depends on what is in a record.

use std::collections::{BTreeMap, BTreeSet};

use super::super::relay::Relay;
use super::super::row::{int, uint};
use super::super::session::{Dialect, Row, Statement};
use super::errand::{Errand, List};
use super::in_hand::Hints;
use super::{claims, commit, source, task};
use soloist_domain::dispatch::{
    Book, Change, ClaimId, Halt, Kept, NewTask, Overdue, Recent, Sets, TaskId, TaskState,
};
use soloist_domain::lease::Token;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;
use soloist_store::{Result, StoreError};

/// The one row of dispatch: the newest instant that was written down, and what grows over all sources.
pub(super) const BOOK: &str = "SELECT newest, token, turn, done FROM dispatch";
/// Writes the same.
pub(super) const SAVE_BOOK: &str = "UPDATE dispatch SET newest = ?, token = ?, turn = ?, done = ?";

/// A transition under way: what was loaded, and in which rows it stands.
pub(super) struct Desk<'s> {
    pub(super) session: &'s mut Relay,
    pub(super) now: Stamp,
    pub(super) sets: Sets,
    /// Rows of the tasks that were loaded.
    pub(super) rows: BTreeMap<TaskId, i64>,
    /// Rows of the claims that were loaded or begun.
    pub(super) claims: BTreeMap<ClaimId, i64>,
    /// Keys and payloads of what is handed out, by the rows of the tasks.
    pub(super) texts: BTreeMap<i64, (String, String)>,
    /// Done tasks that are remembered.
    pub(super) done: u64,
    /// When these collectors were seen, as their rows say with the commit.
    pub(super) seen: BTreeMap<CollectorName, Stamp>,
    /// Claims of this round, their rows, and the rows of the tasks that they name.
    named: Vec<(ClaimId, i64, Vec<i64>)>,
}

impl<'s> Desk<'s> {
    /// Takes the lock under which all of dispatch is written.
    pub(super) async fn open(session: &'s mut Relay) -> Result<Self> {
        Self::begin(session, Vec::new()).await
    }

    /// The same, and carries `act` out. What it needs in any case is found with the lock, in one go.
    pub(super) async fn open_and_carry_out<T>(
        session: &'s mut Relay,
        act: impl Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt>,
        put: &[NewTask],
    ) -> Result<(Self, T)> {
        Self::open_knowing(session, &Hints::default(), act, put).await
    }

    /// The same, for an act that mostly comes to what `hints` say.
    pub(super) async fn open_knowing<T>(
        session: &'s mut Relay,
        hints: &Hints,
        act: impl Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt>,
        put: &[NewTask],
    ) -> Result<(Self, T)> {
        // On SQLite questions have no way to go, and the clock no word.
        let errands = match (session.dialect(), act(&Sets::default(), Stamp(0))) {
            (Dialect::Sqlite, _) | (_, Ok(_)) => Vec::new(),
            (_, Err(Halt::Need(needs))) => Errand::all_of(needs, hints),
            (_, Err(_)) => Vec::new(),
        };
        let mut desk = Self::begin(session, errands).await?;
        let answer = desk.carry_out(act, put).await?;
        Ok((desk, answer))
    }

    async fn begin(session: &'s mut Relay, errands: Vec<Errand>) -> Result<Self> {
        let lock = session.dialect().lock();
        let book = format!("{BOOK}{lock}");
        let asks = errands.into_iter().filter_map(|one| Some((one.ask_at_once()?, one)));
        let (asks, errands): (Vec<_>, Vec<_>) = asks.unzip();
        let (row, now, found) = session.query_at_and(&book, &asks).await?;
        let book = Book { token: Token(uint(row.int(1)?)), turn: uint(row.int(2)?) };
        let mut desk = Self {
            session,
            now,
            sets: Sets { book, ..Sets::default() },
            rows: BTreeMap::new(),
            claims: BTreeMap::new(),
            texts: BTreeMap::new(),
            done: uint(row.int(3)?),
            seen: BTreeMap::new(),
            named: Vec::new(),
        };
        let more = desk.keep_all(errands, found)?;
        desk.load(more).await?;
        Ok(desk)
    }

    /// Lets decide, loading what that needs, and writes it. `put` are the tasks that are put.
    pub(super) async fn carry_out<T>(
        &mut self,
        act: impl Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt>,
        put: &[NewTask],
    ) -> Result<T> {
        let change = loop {
            match act(&self.sets, self.now) {
                Ok(change) => break change,
                Err(Halt::Need(needs)) => {
                    self.load(Errand::all_of(needs, &Hints::default())).await?;
                }
                Err(Halt::NoSource(name)) => return Err(source::unknown(&name)),
                Err(Halt::NoTask(id)) => return Err(not_found("task", &id.0)),
                Err(Halt::NoClaim(id)) => return Err(not_found("claim", &id.0)),
            }
        };
        let (answer, change) = change.apart();
        commit::commit(self, change, put).await?;
        Ok(answer)
    }

    /// Runs errands, and those that come of them, until there are none.
    async fn load(&mut self, errands: Vec<Errand>) -> Result<()> {
        let mut errands = errands;
        while !errands.is_empty() {
            let asks: Vec<Statement> = errands.iter().map(|one| one.ask(self.now)).collect();
            let found = self.session.query_all(&asks).await?;
            errands = self.keep_all(errands, found)?;
        }
        Ok(())
    }
}

impl Desk<'_> {
    /// Keeps what errands found; returns what has to be found next.
    fn keep_all(&mut self, errands: Vec<Errand>, found: Vec<Vec<Row>>) -> Result<Vec<Errand>> {
        let mut more = Vec::new();
        for (errand, rows) in errands.into_iter().zip(found) {
            self.keep(errand, rows, &mut more)?;
        }
        self.name_tasks(&mut more);
        Ok(more.into_iter().filter_map(|one| self.left_of(one)).collect())
    }

    /// What of an errand was not found on the way.
    fn left_of(&self, errand: Errand) -> Option<Errand> {
        match errand {
            Errand::Sources(mut names) => {
                names.retain(|name| !self.sets.sources.contains_key(name));
                (!names.is_empty()).then_some(Errand::Sources(names))
            }
            Errand::Claims(mut ids) => {
                ids.retain(|id| !self.sets.claims.contains_key(id));
                (!ids.is_empty()).then_some(Errand::Claims(ids))
            }
            Errand::Granted(id, n) => {
                let claim = self.sets.claims.get(&id).and_then(Option::as_ref);
                let kept = claim.map(|claim| &claim.kept);
                let known = matches!(kept, Some(Kept::Granted { tasks, .. }) if !tasks.is_empty());
                (!known).then_some(Errand::Granted(id, n))
            }
            other => Some(other),
        }
    }

    /// Keeps what an errand found; `more` has to be found next.
    fn keep(&mut self, errand: Errand, rows: Vec<Row>, more: &mut Vec<Errand>) -> Result<()> {
        match errand {
            Errand::Sources(names) => {
                self.keep_sources(&rows, more)?;
                for name in names {
                    self.sets.sources.entry(name).or_insert(None);
                }
            }
            Errand::Tasks(ids) => {
                let found = self.keep_tasks(rows)?;
                self.go_with(&found, true, more);
                for id in ids {
                    self.sets.tasks.entry(id).or_insert(None);
                }
            }
            Errand::SourcesOf(_) => drop(self.keep_sources(&rows, more)?),
            Errand::ClaimsOf(_) => self.keep_claims(rows, more)?,
            Errand::GrantedOf(_) => {
                for mut row in rows {
                    let id = ClaimId(row.take(2)?);
                    if let Some(tasks) = self.tasks_of(&id) {
                        tasks.push(claims::task(row)?);
                    }
                }
            }
            Errand::Claims(ids) => {
                self.keep_named(rows)?;
                for id in ids {
                    self.sets.claims.entry(id).or_insert(None);
                }
            }
            Errand::Granted(id, _) => {
                let found = rows.into_iter().map(claims::task).collect::<Result<_>>()?;
                if let Some(tasks) = self.tasks_of(&id) {
                    *tasks = found;
                }
            }
            Errand::Recent(name, span) => {
                let known = self.sets.sources.get(&name).and_then(Option::as_ref);
                let started = known.map_or(0, |source| source.started);
                let recent: Recent = source::recent(rows.first(), started)?;
                self.sets.recent.insert((name, span), recent);
            }
            Errand::Clock(most) => {
                self.sets.overdue = Some(Overdue::default());
                if is_so(&rows)? {
                    more.extend(List::OVERDUE.map(|list| Errand::List(list, most)));
                }
            }
            Errand::Queues(counts) => {
                let some = is_so(&rows)?;
                for (name, most) in counts {
                    if some {
                        more.push(Errand::List(List::Waiting(name), most));
                    } else {
                        self.sets.queues.insert(name, Vec::new());
                    }
                }
            }
            Errand::List(list, most) => self.keep_list(list, most, rows, more)?,
        }
        Ok(())
    }

    fn keep_claims(&mut self, rows: Vec<Row>, more: &mut Vec<Errand>) -> Result<()> {
        for row in rows {
            let (n, claim) = claims::read(row)?;
            self.claims.insert(claim.id.clone(), n);
            if matches!(claim.kept, Kept::Granted { .. }) {
                more.push(Errand::Granted(claim.id.clone(), n));
            }
            self.sets.claims.insert(claim.id.clone(), Some(claim));
        }
        Ok(())
    }

    /// Claims, each once for each task that it names.
    fn keep_named(&mut self, rows: Vec<Row>) -> Result<()> {
        for row in rows {
            let task = claims::named(&row)?;
            let (n, claim) = claims::read(row)?;
            if matches!(claim.kept, Kept::Granted { .. }) {
                match self.named.iter_mut().find(|(_, known, _)| *known == n) {
                    Some((_, _, tasks)) => tasks.extend(task),
                    None => self.named.push((claim.id.clone(), n, task.into_iter().collect())),
                }
            }
            self.claims.insert(claim.id.clone(), n);
            self.sets.claims.insert(claim.id.clone(), Some(claim));
        }
        Ok(())
    }

    /// Mostly a claim names tasks that were loaded, and that are in hand under it. Else the rows are asked for.
    fn name_tasks(&mut self, more: &mut Vec<Errand>) {
        for (id, n, rows) in std::mem::take(&mut self.named) {
            let in_hand = |row: &i64| {
                let (known, _) = self.rows.iter().find(|(_, known)| *known == row)?;
                let task = self.sets.tasks.get(known)?.as_ref()?;
                let in_hand = task.state == TaskState::Leased && task.claim.as_ref() == Some(&id);
                in_hand.then(|| (task.token, *row, known.clone()))
            };
            let found: Option<Vec<_>> = rows.iter().map(in_hand).collect();
            let Some(mut found) = found else {
                more.push(Errand::Granted(id, n));
                continue;
            };
            found.sort_unstable();
            if let Some(tasks) = self.tasks_of(&id) {
                *tasks = found.into_iter().map(|(token, _, task)| (task, token)).collect();
            }
        }
    }

    /// The tasks that a loaded claim names.
    fn tasks_of(&mut self, id: &ClaimId) -> Option<&mut Vec<(TaskId, Token)>> {
        match &mut self.sets.claims.get_mut(id)?.as_mut()?.kept {
            Kept::Granted { tasks, .. } => Some(tasks),
            Kept::Nothing { .. } => None,
        }
    }

    fn keep_list(
        &mut self,
        list: List,
        most: usize,
        rows: Vec<Row>,
        more: &mut Vec<Errand>,
    ) -> Result<()> {
        if let List::Waiting(name) = list {
            let waiting = rows.into_iter().map(super::waiters::waiting).collect::<Result<_>>()?;
            self.sets.queues.insert(name, waiting);
            return Ok(());
        }
        if list.is_of_sources() {
            let names = self.keep_sources(&rows, more)?;
            let sets = &mut self.sets;
            match list {
                List::Ring => sets.ring = Some((most, names)),
                List::Opened => sets.overdue.get_or_insert_default().opens = names,
                List::Lapsed => sets.overdue.get_or_insert_default().lapsed = names,
                // The first of those that are shut.
                List::Opening => sets.shut = Some(names),
                _ => sets.shut.get_or_insert_default().extend(names),
            }
            return Ok(());
        }
        let mut rows = rows;
        if matches!(list, List::Heads(_)) {
            for row in &mut rows {
                self.texts.insert(row.int(0)?, task::text(row)?);
            }
        }
        let ids = self.keep_tasks(rows)?;
        if matches!(list, List::Ended | List::Due) {
            self.go_with(&ids, false, more);
        }
        let sets = &mut self.sets;
        match list {
            List::Heads(name) => drop(sets.heads.insert(name, ids)),
            List::Ends(name) => drop(sets.ends.insert(name, ids)),
            List::Dues(name) => drop(sets.dues.insert(name, ids)),
            List::Ended => sets.overdue.get_or_insert_default().leases = ids,
            _ => sets.overdue.get_or_insert_default().due = ids,
        }
        Ok(())
    }

    /// The sources in these rows, in their order; with each the starts that its window counts.
    fn keep_sources(&mut self, rows: &[Row], more: &mut Vec<Errand>) -> Result<Vec<SourceName>> {
        let mut names = Vec::with_capacity(rows.len());
        for row in rows {
            let name = source::name(row.text(0)?)?;
            if !self.sets.sources.contains_key(&name) {
                let found = source::read(row)?;
                let window = found.rules.window;
                more.extend(window.map(|window| Errand::Recent(name.clone(), window.span)));
                self.sets.sources.insert(name.clone(), Some(found));
            }
            names.push(name);
        }
        Ok(names)
    }

    /// The tasks in these rows, in their order.
    fn keep_tasks(&mut self, rows: Vec<Row>) -> Result<Vec<TaskId>> {
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            let (row, task) = task::read(row)?;
            ids.push(task.id.clone());
            self.rows.insert(task.id.clone(), row);
            self.sets.tasks.insert(task.id.clone(), Some(task));
        }
        Ok(ids)
    }

    /// What is loaded with tasks: their sources, and perhaps their claims.
    fn go_with(&self, tasks: &[TaskId], with_claims: bool, more: &mut Vec<Errand>) {
        let tasks = tasks.iter().filter_map(|id| self.sets.tasks.get(id)?.as_ref());
        let (mut sources, mut claims): (BTreeSet<_>, BTreeSet<_>) =
            tasks.map(|task| (task.source.clone(), task.claim.clone())).unzip();
        sources.retain(|name| !self.sets.sources.contains_key(name));
        if !sources.is_empty() {
            more.push(Errand::Sources(sources));
        }
        claims.retain(|id| id.as_ref().is_some_and(|id| !self.sets.claims.contains_key(id)));
        if with_claims && !claims.is_empty() {
            more.push(Errand::Claims(claims.into_iter().flatten().collect()));
        }
    }

    /// Writes what grows over all sources, and the newest instant that was written down.
    pub(super) fn save_book(&self, book: &Book) -> Statement {
        let numbers = [self.now.0, int(book.token.0), int(book.turn), int(self.done)];
        Statement::new(SAVE_BOOK, numbers.map(Into::into).into())
    }
}

fn is_so(rows: &[Row]) -> Result<bool> {
    Ok(rows.first().map(|row| row.int(0)).transpose()? == Some(1))
}

fn not_found(what: &str, id: &str) -> StoreError {
    StoreError::NotFound(format!("{what} {id}"))
}
