//! What is due without a client: leases that ran out, gaps that are over, promises that no waiter took up; and what is
//! forgotten.

use std::time::Duration;

use super::look::{DEEPEST, Wanted, look, no_answer, read_heads};
use super::names::{
    self, ASKED, ASKED_UNTIL, DUE, INCARNATIONS, LOST, ROTATIONS, SILENT, number, stamp,
};
use super::plan::{LOOKED_THROUGH, named};
use super::record::{Body, Case};
use super::{Errand, decide, view};
use crate::records::{Changed, Check, Found, Look, Plan, Records, Write};
use crate::rotation::PumpedTurns;
use crate::{Result, StoreError};
use soloist_domain::name::RotationName;
use soloist_domain::rotation::Caller;
use soloist_domain::time::Stamp;

/// Most rotations, lost turns, or incarnations in one pump.
const MOST: usize = 64;
/// Most requests that one pump forgets, or waiters of one type and incarnation that it looks through.
const MOST_FORGOTTEN: usize = 1_000;
/// What is only tidying is done so often by each process.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Number and text.
type Entries = Vec<(u64, String)>;

/// As [`Rotations::pump_turns`](crate::rotation::Rotations::pump_turns).
pub(super) async fn pump(store: &dyn Records, incarnation: &str) -> Result<PumpedTurns> {
    let tidies = match store.latest() {
        Some(now) => store.turns().is_time_to_sweep(now, TIDY_EVERY),
        None => true,
    };
    let of = |list: &str, most| Look::First(list.to_owned(), most);
    let mut looks = vec![of(DUE, MOST), of(SILENT, DEEPEST), of(LOST, MOST)];
    if tidies {
        looks.extend([of(ASKED_UNTIL, MOST_FORGOTTEN), of(INCARNATIONS, MOST)]);
    }
    let looked = store.look(&looks).await?;
    let now = looked.at;
    let mut found = looked.found.into_iter();
    let mut entries = || match found.next() {
        Some(Found::Entries(entries)) => Ok(entries),
        _ => Err(no_answer()),
    };
    let over = |entries: &[(u64, String)]| -> Entries {
        entries.iter().take_while(|(number, _)| stamp(*number) <= now).cloned().collect()
    };
    let (due, silent, lost) = (entries()?, entries()?, entries()?);
    let forgotten = if tidies { over(&entries()?) } else { Vec::new() };
    let through = if tidies { over(&entries()?) } else { Vec::new() };

    let overdue = over(&due);
    for (_, rotation) in &overdue {
        act(store, &named(rotation)?, Caller::Clock).await?;
    }
    // Only then: what its own waiters let lapse just now must not make a node incarnation silent that calls.
    let mut heard = false;
    for (until, entry) in silent_now(store, silent, !overdue.is_empty()).await? {
        let (of, rotation) = entry.split_once(' ').ok_or_else(no_answer)?;
        if of == incarnation {
            heard = true;
            act(store, &named(rotation)?, Caller::Node(incarnation)).await?;
        } else if stamp(until) <= now {
            strike_if_over(store, SILENT, &entry, now).await?;
        }
    }
    forget_requests(store, &forgotten, now).await?;
    if forgotten.len() == MOST_FORGOTTEN {
        store.turns().sweep_at_once();
    }
    for (_, entry) in &through {
        let (incarnation, rotation) = entry.split_once(' ').ok_or_else(no_answer)?;
        look_through(store, &named(rotation)?, incarnation, now).await?;
    }
    report(store, now, (due, lost), heard || !overdue.is_empty()).await
}

/// Who is silent: as it was found, or anew if something was done since.
async fn silent_now(store: &dyn Records, found: Entries, again: bool) -> Result<Entries> {
    if !again {
        return Ok(found);
    }
    let looked = store.look(&[Look::First(SILENT.to_owned(), DEEPEST)]).await?;
    match looked.found.into_iter().next() {
        Some(Found::Entries(entries)) => Ok(entries),
        _ => Err(no_answer()),
    }
}

/// One transition, if there is such a rotation.
async fn act(store: &dyn Records, name: &RotationName, caller: Caller<'_>) -> Result<()> {
    let errand = Errand::new(name, caller);
    match decide(store, &errand, |()| false, |round, queues, _| Ok(Ok(round.pump(queues)))).await {
        Ok(_) => Ok(()),
        Err(StoreError::NotFound(_)) => {
            let gone = Check::Row { table: ROTATIONS.to_owned(), row: name.to_string(), is: None };
            let strike = Write::Strike { list: DUE.to_owned(), text: name.to_string() };
            let plan = Plan { checks: vec![gone], writes: vec![strike], ..Plan::default() };
            store.change(&plan).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

/// Names what was lost, each once, and says what is next.
async fn report(
    store: &dyn Records,
    now: Stamp,
    (mut due, mut lost): (Entries, Entries),
    mut acted: bool,
) -> Result<PumpedTurns> {
    let looks = [Look::First(DUE.to_owned(), 1), Look::First(LOST.to_owned(), MOST)];
    loop {
        if acted {
            let mut found = store.look(&looks).await?.found.into_iter();
            let (Some(Found::Entries(next)), Some(Found::Entries(unsaid))) =
                (found.next(), found.next())
            else {
                return Err(no_answer());
            };
            (due, lost) = (next, unsaid);
        }
        if lost.is_empty() {
            break;
        }
        let are: Vec<String> = lost.iter().map(|(_, text)| text.clone()).collect();
        let strike = |text: &String| Write::Strike { list: LOST.to_owned(), text: text.clone() };
        let writes = are.iter().map(strike).collect();
        let checks = vec![Check::First { list: LOST.to_owned(), most: are.len(), are }];
        match store.change(&Plan { checks, writes, ..Plan::default() }).await? {
            Changed::Done => break,
            // Another has named them.
            Changed::Refused => acted = true,
        }
    }
    let next = due.first().map(|(at, _)| stamp(*at));
    let more = next.is_some_and(|next| next <= now) || lost.len() == MOST;
    let lost = lost.iter().map(|(_, text)| view::lost(text)).collect::<Result<_>>()?;
    Ok(PumpedTurns { now, next, lost, more })
}

/// Strikes an entry out of a list of instants, unless it has another instant by now.
async fn strike_if_over(store: &dyn Records, list: &str, text: &str, now: Stamp) -> Result<()> {
    let looked = store.look(&[Look::First(list.to_owned(), 1)]).await?;
    let first = match looked.found.first() {
        Some(Found::Entries(entries)) => entries.first(),
        _ => return Err(no_answer()),
    };
    if first.is_none_or(|(at, first)| first != text || stamp(*at) > now) {
        return Ok(());
    }
    let are = vec![text.to_owned()];
    let checks = vec![Check::First { list: list.to_owned(), most: 1, are }];
    let writes = vec![Write::Strike { list: list.to_owned(), text: text.to_owned() }];
    store.change(&Plan { checks, writes, ..Plan::default() }).await.map(drop)
}

/// Forgets the requests whose time is over.
async fn forget_requests(store: &dyn Records, over: &[(u64, String)], now: Stamp) -> Result<()> {
    if over.is_empty() {
        return Ok(());
    }
    let are: Vec<String> = over.iter().map(|(_, text)| text.clone()).collect();
    let writes = are.iter().flat_map(|request| {
        let (list, table) = (ASKED_UNTIL.to_owned(), ASKED.to_owned());
        let strike = Write::Strike { list, text: request.clone() };
        [strike, Write::Unset { table, row: request.clone() }]
    });
    let writes = writes.collect();
    // One that has its turn for longer by now stands elsewhere in the list.
    let checks = vec![Check::First { list: ASKED_UNTIL.to_owned(), most: are.len(), are }];
    let within = Some(now..Stamp(i64::MAX));
    // Refused, they are forgotten by the next one.
    store.change(&Plan { checks, within, writes, ..Plan::default() }).await.map(drop)
}

/// Strikes out those of an incarnation whose time is over; when none is left, the incarnation is forgotten.
async fn look_through(
    store: &dyn Records,
    name: &RotationName,
    incarnation: &str,
    now: Stamp,
) -> Result<()> {
    let entry = names::incarnation_in(incarnation, name);
    let strike = Write::Strike { list: INCARNATIONS.to_owned(), text: entry.clone() };
    let errand = Errand::new(name, Caller::Clock);
    let Some(case) = look(store, &errand, None, 0).await?.case else {
        return store.change(&Plan { writes: vec![strike], ..Plan::default() }).await.map(drop);
    };
    let kinds: Vec<_> = case.body.rotation.rules.types.iter().map(|kind| &kind.name).collect();
    let table = names::waiting(name);
    let described = |kind: &&_| Look::Described {
        list: names::queue(name, kind, incarnation),
        table: table.clone(),
        most: MOST_FORGOTTEN,
    };
    let looked = store.look(&kinds.iter().map(described).collect::<Vec<_>>()).await?;
    let mut plan = Plan::default();
    let mut stay = false;
    for (kind, found) in kinds.iter().zip(looked.found) {
        let Found::Described(entries) = found else { return Err(no_answer()) };
        let heads = read_heads(entries, MOST_FORGOTTEN)?;
        stay |= !heads.all;
        let list = names::queue(name, kind, incarnation);
        let mut all = Vec::new();
        for place in heads.first {
            let (row, text) = (place.waiter.0, place.standing);
            all.push(row.clone());
            if text.as_ref().is_some_and(|(standing, _)| standing.until > looked.at) {
                stay = true;
                continue;
            }
            let is = text.map(|(_, text)| text);
            plan.checks.push(Check::Row { table: table.clone(), row: row.clone(), is });
            plan.writes.push(Write::Strike { list: list.clone(), text: row.clone() });
            plan.writes.push(Write::Unset { table: table.clone(), row });
        }
        if heads.all {
            plan.checks.push(Check::First { list, most: all.len() + 1, are: all });
        }
    }
    if stay {
        let (list, at) = (INCARNATIONS.to_owned(), now + LOOKED_THROUGH);
        plan.checks.retain(|check| matches!(check, Check::Row { .. }));
        plan.writes.push(Write::Add { list, number: number(at), text: entry });
    } else {
        let mut body = Body::clone(&case.body);
        body.incarnations.remove(incarnation);
        let (table, row) = (ROTATIONS.to_owned(), name.to_string());
        let with = format!("{}\n", case.head);
        plan.checks.push(Check::Begins { table: table.clone(), row: row.clone(), with });
        let (_, text) = Case::next(name, Some(&case), body, looked.at)?;
        plan.writes.extend([Write::Set { table, row, text }, strike]);
    }
    let wanted = Wanted::of(&errand, Some(&case), 0);
    let (_, newest) = store.change_and_look(&plan, &wanted.looks(), &[]).await?;
    // Refused, it is looked through by the next one.
    if !newest.found.is_empty()
        && let Some(read) = wanted.read(newest)?.to_remember()
    {
        store.turns().put(name, read);
    }
    Ok(())
}
