//! What a decision writes, and on which condition.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::known::{News, Queue};
use super::look::{Lined, Seen};
use super::names::{
    self, ASKED, ASKED_UNTIL, DUE, INCARNATIONS, LOST, PLACES, ROTATIONS, SILENT, number,
};
use super::record::{Body, Case, Standing, had_text, past_text};
use super::{Errand, view};
use crate::Result;
use crate::records::{Check, Plan, Tell, Write};
use soloist_domain::name::{RotationName, TypeName, Waiter, WorkerName};
use soloist_domain::rotation::{Change, Rotation, TURNS_KEPT, Write as Decision};
use soloist_domain::time::Stamp;

/// A change may be carried out so much later than it was decided, or earlier.
const ON_ITS_WAY: Duration = Duration::from_secs(1);
/// The same for the beginning of a turn, from which gaps are counted, and for a promise, which is short.
const SOON: Duration = Duration::from_millis(50);
/// At most so many whose time is over are struck out by the way.
const MOST_STRUCK: usize = 256;
/// Those who wait at an incarnation are looked through so often.
pub(super) const LOOKED_THROUGH: Duration = Duration::from_secs(35);

/// What was decided, and on what.
pub(super) struct Decided<'a> {
    pub(super) errand: &'a Errand<'a>,
    pub(super) seen: &'a Seen,
    pub(super) lined: Lined,
    /// The rotation before the transition.
    pub(super) before: &'a Rotation,
    pub(super) now: Stamp,
    /// How often it was decided before.
    pub(super) attempt: usize,
    /// Who asks has taken its place by this call.
    pub(super) entered: bool,
}

/// A change, and what is known once it is done.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) case: Case,
    pub(super) news: Vec<News>,
    /// Of who asked.
    pub(super) row: Option<(Waiter, Option<String>)>,
    /// To be looked at behind the change.
    pub(super) queue: Option<Queue>,
    /// Who asks takes its place, and nothing else is to be done, as far as is known: this does not depend on what others do.
    pub(super) only_enters: bool,
}

/// A plan that grows.
struct Draft {
    body: Body,
    plan: Plan,
    news: Vec<News>,
    woken: Vec<Waiter>,
    row: Option<(Waiter, Option<String>)>,
    queue: Option<Queue>,
    /// A turn that begins or goes on by this relies on the store's memory.
    relies: bool,
}

impl Decided<'_> {
    /// What is to be written; `None`: nothing.
    pub(super) fn plan(self, change: Change<()>) -> Result<Option<Planned>> {
        let Change { answer: (), rotation, writes } = change;
        let name = self.errand.name;
        let body = match &self.seen.case {
            Some(case) => Body { rotation, ..Body::clone(&case.body) },
            None => Body { rotation, incarnations: BTreeSet::new(), ended: view::nothing() },
        };
        let enters = matches!(&writes[..], [Decision::Enter { .. }]) && !self.entered;
        let mut draft = Draft {
            body,
            plan: Plan { once: self.errand.once, ..Plan::default() },
            news: Vec::new(),
            woken: Vec::new(),
            row: None,
            queue: None,
            relies: false,
        };
        for one in writes {
            self.write(one, &mut draft)?;
        }
        let same = self.seen.case.as_ref().is_some_and(|case| *case.body == draft.body);
        if same && draft.plan.writes.is_empty() {
            return Ok(None);
        }
        let case = match (&self.seen.case, same) {
            (Some(case), true) => case.clone(),
            (before, _) => {
                let (case, text) = Case::next(name, before.as_ref(), draft.body.clone(), self.now)?;
                let (table, row) = (ROTATIONS.to_owned(), name.to_string());
                draft.plan.writes.push(Write::Set { table, row, text });
                case
            }
        };
        let only_enters = same && enters;
        if !only_enters {
            self.index(&mut draft);
            self.strike_over(&mut draft);
        }
        let within = self.within(&draft, only_enters);
        let Draft { mut plan, news, woken, row, queue, relies, .. } = draft;
        plan.checks.extend(self.checks(relies, queue.is_some() || self.entered, only_enters));
        plan.within = Some(within);
        if !woken.is_empty() {
            plan.tells.push(Tell::Wake(woken));
        }
        Ok(Some(Planned { plan, case, news, row, queue: self.shallow(queue), only_enters }))
    }

    fn write(&self, one: Decision, draft: &mut Draft) -> Result<()> {
        let name = self.errand.name;
        let writes = &mut draft.plan.writes;
        match one {
            Decision::Remember(past) => {
                let list = names::ended(name);
                let (number, text) = (past.token.0, past_text(&past)?);
                writes.push(Write::Add { list: list.clone(), number, text });
                writes.push(Write::Cut { list, kept: TURNS_KEPT });
                *draft.body.ended.entry(past.kind).or_default().of(past.ending) += 1;
            }
            Decision::Report(turn) => {
                draft.relies = true;
                let text = view::lost_text(name, &turn)?;
                writes.push(Write::Add { list: LOST.to_owned(), number: number(self.now), text });
            }
            Decision::Note(turn, until) => {
                draft.relies = true;
                let row = names::asked_for(name, &turn);
                let list = ASKED_UNTIL.to_owned();
                writes.push(Write::Add { list, number: number(until), text: row.clone() });
                let (table, text) = (ASKED.to_owned(), had_text(turn.token, until));
                writes.push(Write::Set { table, row, text });
            }
            Decision::Forget(turn) => {
                let row = names::asked_for(name, &turn);
                let (list, table) = (ASKED_UNTIL.to_owned(), ASKED.to_owned());
                writes.push(Write::Strike { list, text: row.clone() });
                writes.push(Write::Unset { table, row });
            }
            Decision::Enter { .. } if self.entered => {}
            Decision::Enter { waiter, kind, worker, until } => {
                self.enter(draft, waiter, kind, worker, until)?;
            }
            Decision::Strike(waiter) => {
                for kind in self.kinds(&waiter) {
                    self.strike(draft, &kind, &waiter);
                }
                if self.errand.sitting().is_some_and(|(_, asker)| *asker == waiter) {
                    draft.row = Some((waiter, None));
                }
            }
            Decision::Dismiss(kind) => {
                for waiter in self.lined.queues.0.get(&kind).into_iter().flatten() {
                    self.strike(draft, &kind, waiter);
                    draft.woken.push(waiter.clone());
                }
                for incarnation in draft.body.incarnations.clone() {
                    draft.news.push(News::Unknown((kind.clone(), incarnation)));
                }
            }
            Decision::Wake(waiter) => draft.woken.push(waiter),
        }
        Ok(())
    }

    /// One that waits already keeps its place, its type and its beginning.
    fn enter(
        &self,
        draft: &mut Draft,
        waiter: Waiter,
        kind: TypeName,
        worker: WorkerName,
        until: Stamp,
    ) -> Result<()> {
        let name = self.errand.name;
        let row = self.seen.waiting.as_deref();
        let stands = row.map(|text| Standing::read(&waiter, text)).transpose()?;
        let standing = match stands {
            Some(stands) => Standing { until, ..stands },
            None => Standing { until, since: self.now, kind, worker },
        };
        let incarnation = waiter.incarnation().to_owned();
        if draft.body.incarnations.insert(incarnation.clone()) {
            let (list, text) = (INCARNATIONS.to_owned(), names::incarnation_in(&incarnation, name));
            let number = number(self.now + LOOKED_THROUGH);
            draft.plan.writes.push(Write::Add { list, number, text });
        }
        let list = names::queue(name, &standing.kind, &incarnation);
        let (table, text) = (names::waiting(name), standing.text());
        let writes = &mut draft.plan.writes;
        writes.push(Write::Set { table, row: waiter.0.clone(), text: text.clone() });
        let counter = PLACES.to_owned();
        writes.push(Write::Join { list, counter, text: waiter.0.clone() });
        draft.queue = Some((standing.kind, incarnation));
        draft.row = Some((waiter, Some(text)));
        Ok(())
    }

    fn strike(&self, draft: &mut Draft, kind: &TypeName, waiter: &Waiter) {
        let name = self.errand.name;
        let writes = &mut draft.plan.writes;
        let list = names::queue(name, kind, waiter.incarnation());
        writes.push(Write::Strike { list, text: waiter.0.clone() });
        let unset = Write::Unset { table: names::waiting(name), row: waiter.0.clone() };
        if !writes.contains(&unset) {
            writes.push(unset);
        }
        draft.news.push(News::Left(waiter.clone()));
    }

    /// For which types it may wait.
    fn kinds(&self, waiter: &Waiter) -> BTreeSet<TypeName> {
        let mut kinds = BTreeSet::new();
        if let Some((ask, asker)) = self.errand.sitting()
            && asker == waiter
        {
            let row = self.seen.waiting.as_deref();
            let stands = row.and_then(|text| Standing::read(waiter, text).ok());
            kinds.extend(stands.map(|stands| stands.kind));
            kinds.insert(ask.kind.clone());
        }
        let promise = self.before.promise.iter();
        kinds.extend(promise.filter(|it| it.waiter == *waiter).map(|it| it.kind.clone()));
        if kinds.is_empty() {
            kinds.extend(self.before.rules.types.iter().map(|kind| kind.name.clone()));
        }
        kinds
    }

    /// When it is due, and who is silent.
    fn index(&self, draft: &mut Draft) {
        let name = self.errand.name;
        let (old, new) = (self.before, &draft.body.rotation);
        let writes = &mut draft.plan.writes;
        let known = self.seen.case.is_some();
        if old.due != new.due || !known {
            let (list, text) = (DUE.to_owned(), name.to_string());
            writes.push(match new.due {
                Some(at) => Write::Add { list, number: number(at), text },
                None => Write::Strike { list, text },
            });
        }
        for (incarnation, until) in &new.silent {
            if old.silent.get(incarnation) != Some(until) {
                draft.relies = true;
                let (list, text) = (SILENT.to_owned(), names::incarnation_in(incarnation, name));
                writes.push(Write::Add { list, number: number(*until), text });
            }
        }
        for incarnation in
            old.silent.keys().filter(|incarnation| !new.silent.contains_key(*incarnation))
        {
            let (list, text) = (SILENT.to_owned(), names::incarnation_in(incarnation, name));
            writes.push(Write::Strike { list, text });
        }
    }

    /// Those whose time is over leave by the way.
    fn strike_over(&self, draft: &mut Draft) {
        let table = names::waiting(self.errand.name);
        for ((kind, _), waiter, row) in self.lined.over.iter().take(MOST_STRUCK) {
            self.strike(draft, kind, waiter);
            draft.plan.checks.push(Check::Row {
                table: table.clone(),
                row: waiter.0.clone(),
                is: row.clone(),
            });
        }
    }

    fn checks(&self, relies: bool, enters: bool, only_enters: bool) -> Vec<Check> {
        let name = self.errand.name;
        let (table, row) = (ROTATIONS.to_owned(), name.to_string());
        let mut checks = vec![match &self.seen.case {
            Some(case) if only_enters => {
                Check::Begins { table, row, with: format!("{} ", case.shape()) }
            }
            Some(case) => Check::Begins { table, row, with: format!("{}\n", case.head) },
            None => Check::Row { table, row, is: None },
        }];
        if let Some(ask) = self.errand.ask() {
            let (table, row) = (ASKED.to_owned(), names::asked(ask));
            checks.push(Check::Row { table, row, is: self.seen.asked.clone() });
            if let Some(waiter) = ask.waiter().filter(|_| enters) {
                let (table, row) = (names::waiting(name), waiter.0.clone());
                checks.push(Check::Row { table, row, is: self.seen.waiting.clone() });
            }
        }
        if only_enters {
            return checks;
        }
        checks.extend(self.lined.checks.iter().cloned());
        if relies || self.seen.case.is_none() {
            checks.push(Check::Memory(self.seen.memory.clone()));
        }
        checks
    }

    /// The instants at which the decision would have been the same.
    fn within(&self, draft: &Draft, only_enters: bool) -> Range<Stamp> {
        let (old, new) = (self.before, &draft.body.rotation);
        let promises = new.promise.is_some() && new.promise != old.promise;
        let begins = old.ring.token != new.ring.token;
        // A change that was refused for being late gets more time: a machine that is that slow must not stand still.
        let more = u32::try_from(self.attempt).unwrap_or(u32::MAX).saturating_add(1);
        let late =
            if begins || promises { SOON.saturating_mul(more).min(ON_ITS_WAY) } else { ON_ITS_WAY };
        let early = i64::try_from(ON_ITS_WAY.as_micros()).unwrap_or(i64::MAX);
        let mut within = Stamp(self.now.0.saturating_sub(early))..self.now + late;
        let mut stay = |edge: Stamp| {
            if self.now < edge {
                within.end = within.end.min(edge);
            } else {
                within.start = within.start.max(edge);
            }
        };
        if only_enters {
            // The place counts from this instant: it must stand on the same side of a promise's end as the decision that follows.
            old.edges().for_each(&mut stay);
            return within;
        }
        let had = self.seen.had(self.errand).ok().flatten().map(|(_, until)| until);
        // What the transition itself wrote is not compared, but for what it was given.
        let given = Rotation { rules: new.rules.clone(), ..old.clone() };
        let edges = old.edges().chain(given.edges()).chain([new.ring.not_before]).chain(had);
        edges.chain(self.lined.edges.iter().copied()).for_each(&mut stay);
        within
    }

    /// A queue that is long is known well enough.
    fn shallow(&self, queue: Option<Queue>) -> Option<Queue> {
        queue.filter(|queue| self.seen.heads.get(queue).is_none_or(|heads| heads.all))
    }
}

/// Which rotation a record is of.
pub(super) fn named(text: &str) -> Result<RotationName> {
    RotationName::new(text).map_err(|why| crate::StoreError::Corrupt(why.to_string()))
}
