//! Rotations that another version kept in another form, written down as they are kept now.

use super::names::{self, ASKED, ASKED_UNTIL, DUE, LOST, ROTATIONS, number};
use super::record::{Body, Case, had_text, past_text};
use super::view;
use crate::domain::name::RotationName;
use crate::domain::rotation::{PastTurn, REQUEST_KEPT, TURNS_KEPT, Turn};
use crate::domain::time::Stamp;
use crate::store::Result;
use crate::store::records::{Check, Plan, Write};

/// What writes a rotation down, unless it is there already: with the turns that ended, of which the newest are kept, and those
/// that were lost and nobody has said so. Whoever waits for it asks again.
///
/// # Errors
/// [`StoreError::Corrupt`](crate::store::StoreError::Corrupt).
pub(in crate::store) fn moved(
    name: &RotationName,
    body: Body,
    past: &[PastTurn],
    lost: &[Turn],
    now: Stamp,
) -> Result<Plan> {
    let (table, row) = (ROTATIONS.to_owned(), name.to_string());
    let checks = vec![Check::Row { table: table.clone(), row: row.clone(), is: None }];
    let mut writes = Vec::new();
    for one in past.iter().take(TURNS_KEPT) {
        let list = names::ended(name);
        writes.push(Write::Add { list, number: one.token.0, text: past_text(one)? });
    }
    for turn in lost {
        let text = view::lost_text(name, turn)?;
        writes.push(Write::Add { list: LOST.to_owned(), number: number(now), text });
    }
    if let Some(turn) = &body.rotation.ring.turn {
        let (request, until) = (names::asked_for(name, turn), turn.until + REQUEST_KEPT);
        let list = ASKED_UNTIL.to_owned();
        writes.push(Write::Add { list, number: number(until), text: request.clone() });
        let text = had_text(turn.token, until);
        writes.push(Write::Set { table: ASKED.to_owned(), row: request, text });
    }
    if let Some(due) = body.rotation.due {
        writes.push(Write::Add { list: DUE.to_owned(), number: number(due), text: row.clone() });
    }
    let (_, text) = Case::next(name, None, body, now)?;
    writes.push(Write::Set { table, row, text });
    Ok(Plan { checks, writes, ..Plan::default() })
}
