//! A rotation as everybody outside sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::known::{Heads, Remembered};
use super::look::{no_answer, read_heads};
use super::names::{self, ROTATIONS};
use super::record::{Case, Endings, past};
use super::{AHEAD, ATTEMPTS};
use crate::records::{Found, Look, Records};
use crate::rotation::{RotationView, TypeView, WAITERS_NAMED, WaiterView};
use crate::{Result, StoreError};
use soloist_domain::name::{NodeName, RotationName, TypeName};
use soloist_domain::rotation::{Memory, TURNS_KEPT, Turn};
use soloist_domain::time::Stamp;

/// No turn has ended.
pub(super) fn nothing() -> BTreeMap<TypeName, Endings> {
    BTreeMap::new()
}

/// The entry of a turn that was lost.
pub(super) fn lost_text(rotation: &RotationName, turn: &Turn) -> Result<String> {
    serde_json::to_string(&(rotation, turn))
        .map_err(|why| StoreError::Corrupt(format!("a lost turn: {why}")))
}

/// The other way round.
pub(super) fn lost(text: &str) -> Result<(RotationName, Turn)> {
    serde_json::from_str(text).map_err(|why| StoreError::Corrupt(format!("a lost turn: {why}")))
}

/// All rotations by name, or one, at one instant. What is remembered says where to look; if that was old, it is looked
/// at again.
pub(super) async fn read(
    store: &dyn Records,
    only: Option<&RotationName>,
    most: usize,
) -> Result<Vec<RotationView>> {
    let mut known = match only {
        Some(name) => {
            store.turns().of(name).map(|one| (name.clone(), one.case)).into_iter().collect()
        }
        None => store.turns().cases(),
    };
    for _ in 0..ATTEMPTS {
        known.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut looks = vec![match only {
            Some(name) => Look::Row(ROTATIONS.to_owned(), name.to_string()),
            None => Look::Rows(ROTATIONS.to_owned()),
        }];
        looks.push(Look::Memory);
        for (name, case) in &known {
            looks.extend(of(name, case, most));
        }
        let looked = store.look(&looks).await?;
        let mut found = looked.found.into_iter();
        let now: Vec<(RotationName, Case)> = match found.next() {
            Some(Found::Row(row)) => {
                let read = |(name, text): (&RotationName, String)| -> Result<_> {
                    Ok((name.clone(), Case::read(name, &text)?))
                };
                only.zip(row).map(read).transpose()?.into_iter().collect()
            }
            Some(Found::Rows(rows)) => {
                let read = |(name, text): (&String, &String)| -> Result<_> {
                    let name = super::plan::named(name)?;
                    let case = Case::read(&name, text)?;
                    Ok((name, case))
                };
                rows.iter().map(read).collect::<Result<_>>()?
            }
            _ => return Err(no_answer()),
        };
        let Some(Found::Memory { memory, .. }) = found.next() else { return Err(no_answer()) };
        let same = now.len() == known.len()
            && now.iter().zip(&known).all(|(now, known)| stands_as(now, known));
        if !same {
            let gone = known.iter().filter(|(old, _)| now.iter().all(|(name, _)| name != old));
            gone.for_each(|(name, _)| store.turns().forget(name));
            remember(store, &now, &memory);
            known = now;
            known.sort_by(|(a, _), (b, _)| a.cmp(b));
            continue;
        }
        let views = now.into_iter().map(|(name, case)| {
            let written = case.written().filter(|at| *at <= looked.at + AHEAD);
            view(name, case, &mut found, written.map_or(looked.at, |at| at.max(looked.at)))
        });
        return views.collect();
    }
    Err(StoreError::Unavailable("rotations are changed too often at this moment".to_owned()))
}

/// So that the next reading knows where to look.
fn remember(store: &dyn Records, cases: &[(RotationName, Case)], memory: &Memory) {
    for (name, case) in cases {
        let (case, memory, heads) = (case.clone(), memory.clone(), Arc::default());
        let read = Remembered { case, memory, heads };
        store.turns().put(name, read);
    }
}

/// Whether the same is to be looked at of both.
fn stands_as(a: &(RotationName, Case), b: &(RotationName, Case)) -> bool {
    a.0 == b.0 && a.1.body.has_queues_of(&b.1.body)
}

fn of(name: &RotationName, case: &Case, most: usize) -> Vec<Look> {
    let mut looks = vec![Look::Last(names::ended(name), most.min(TURNS_KEPT))];
    for kind in &case.body.rotation.rules.types {
        let incarnations = &case.body.incarnations;
        let lists: Vec<String> = incarnations
            .iter()
            .map(|incarnation| names::queue(name, &kind.name, incarnation))
            .collect();
        looks.extend(lists.iter().map(|list| Look::Described {
            list: list.clone(),
            table: names::waiting(name),
            most: WAITERS_NAMED,
        }));
        looks.push(Look::Count(lists));
    }
    looks
}

fn view(
    name: RotationName,
    case: Case,
    found: &mut impl Iterator<Item = Found>,
    now: Stamp,
) -> Result<RotationView> {
    let Some(Found::Entries(ended)) = found.next() else { return Err(no_answer()) };
    let body = &case.body;
    let (mut types, mut waiters) = (Vec::new(), Vec::new());
    for kind in &body.rotation.rules.types {
        for _ in &body.incarnations {
            let Some(Found::Described(entries)) = found.next() else { return Err(no_answer()) };
            let Heads { first, .. } = read_heads(entries, WAITERS_NAMED)?;
            for place in first {
                let Some((standing, _)) = place.standing else { continue };
                let node = place.waiter.0.split('/').next().unwrap_or_default();
                let node = NodeName::new(node)
                    .map_err(|why| StoreError::Corrupt(format!("a waiter of {name}: {why}")))?;
                let (kind, worker, since) = (standing.kind, standing.worker, standing.since);
                waiters.push((place.number, WaiterView { kind, worker, node, since }));
            }
        }
        let Some(Found::Count(waiting)) = found.next() else { return Err(no_answer()) };
        let Endings { done, empty, failed, lost } =
            body.ended.get(&kind.name).copied().unwrap_or_default();
        types.push(TypeView { kind: kind.name.clone(), waiting, done, empty, failed, lost });
    }
    waiters.sort_by_key(|(place, _)| *place);
    let waiters = waiters.into_iter().map(|(_, waiter)| waiter).take(WAITERS_NAMED).collect();
    let past = ended.iter().rev().map(|(_, text)| past(&name, text)).collect::<Result<_>>()?;
    let (rules, ring) = (body.rotation.rules.clone(), body.rotation.ring.clone());
    Ok(RotationView { name, rules, ring, types, waiters, past, now })
}
