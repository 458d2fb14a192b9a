//! Removes a rotation, with its turn, its past turns and the places of its waiters.
//!
//! The waiters are woken in the same step and find it gone. All queues are looked at, and the change is refused if a waiter has
//! come since: a place that is left behind would stand in a rotation of the same name that is made later.

use super::look::no_answer;
use super::names::{self, DUE, INCARNATIONS, ROTATIONS, SILENT};
use super::record::{Case, Standing};
use super::{ATTEMPTS, noted, too_often, unknown};
use crate::Result;
use crate::records::{Changed, Check, Found, Look, Plan, Records, Tell, Write};
use crate::rotation::RemovedRotation;
use soloist_domain::name::{RotationName, Waiter};

/// More than can wait in one queue.
const ALL: usize = 100_000;

/// As [`Rotations::remove_rotation`](crate::rotation::Rotations::remove_rotation).
pub(super) async fn remove(
    store: &dyn Records,
    name: &RotationName,
    force: bool,
) -> Result<RemovedRotation> {
    for _ in 0..ATTEMPTS {
        let looked = store.look(&[Look::Row(ROTATIONS.to_owned(), name.to_string())]).await?;
        let Some(Found::Row(text)) = looked.found.into_iter().next() else {
            return Err(no_answer());
        };
        store.turns().forget(name);
        let Some(text) = text else { return Err(unknown(name)) };
        let case = Case::read(name, &text)?;
        let body = &case.body;
        let mut queues = Vec::new();
        for kind in &body.rotation.rules.types {
            let of = |incarnation: &String| names::queue(name, &kind.name, incarnation);
            queues.extend(body.incarnations.iter().map(of));
        }
        let mut looks = vec![Look::Rows(names::waiting(name))];
        looks.extend(queues.iter().map(|list| Look::First(list.clone(), ALL)));
        let looked = store.look(&looks).await?;
        let now = looked.at;
        let mut found = looked.found.into_iter();
        let Some(Found::Rows(rows)) = found.next() else { return Err(no_answer()) };
        let mut plan = Plan { once: true, ..Plan::default() };
        let mut wake = Vec::new();
        for (row, text) in &rows {
            let waiter = Waiter(row.clone());
            if Standing::read(&waiter, text)?.until > now {
                wake.push(waiter);
            }
            let (table, row) = (names::waiting(name), row.clone());
            plan.writes.push(Write::Unset { table, row });
        }
        let turn = body.rotation.ring.turn.clone().filter(|turn| turn.until > now);
        let gone = RemovedRotation { done: false, turn, waiting: wake.len() as u64 };
        if !force && (gone.turn.is_some() || gone.waiting > 0) {
            return Ok(gone);
        }
        for (list, found) in queues.into_iter().zip(found) {
            let Found::Entries(entries) = found else { return Err(no_answer()) };
            let are: Vec<String> = entries.into_iter().map(|(_, text)| text).collect();
            let strike = |text: &String| Write::Strike { list: list.clone(), text: text.clone() };
            plan.writes.extend(are.iter().map(strike));
            plan.checks.push(Check::First { list: list.clone(), most: are.len() + 1, are });
        }
        let (table, row) = (ROTATIONS.to_owned(), name.to_string());
        let with = format!("{}\n", case.head);
        plan.checks.push(Check::Begins { table: table.clone(), row: row.clone(), with });
        plan.writes.push(Write::Unset { table, row });
        plan.writes.push(Write::Cut { list: names::ended(name), kept: 0 });
        plan.writes.push(Write::Strike { list: DUE.to_owned(), text: name.to_string() });
        for incarnation in body.incarnations.iter().chain(body.rotation.silent.keys()) {
            for list in [INCARNATIONS, SILENT] {
                let text = names::incarnation_in(incarnation, name);
                plan.writes.push(Write::Strike { list: list.to_owned(), text });
            }
        }
        if let Some(entry) = store.note() {
            plan.writes.push(Write::Log(noted(entry)?));
        }
        if !wake.is_empty() {
            plan.tells.push(Tell::Wake(wake));
        }
        if store.change(&plan).await? == Changed::Done {
            return Ok(RemovedRotation { done: true, ..gone });
        }
    }
    Err(too_often(name))
}
