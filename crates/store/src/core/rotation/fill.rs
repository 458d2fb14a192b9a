//! A rotation of another store: how far it has come, and the turns that ended there.

use super::names::{self, ROTATIONS};
use super::record::{Body, Case, Endings, past_text};
use super::unknown;
use crate::core::shared::{row, still};
use crate::records::{Changed, Look, Plan, Records, Write};
use crate::rotation::{RotationView, TypeView};
use crate::{Result, StoreError};
use soloist_domain::rotation::Ring;

/// Writes how far `view` has come into the rotation of that name, which was made with its rules just now. No worker has its turn.
///
/// # Errors
/// [`StoreError::NotFound`], [`StoreError::Unavailable`].
pub async fn fill(store: &dyn Records, view: &RotationView) -> Result<()> {
    let name = &view.name;
    let looked = store.look(&[Look::Row(ROTATIONS.to_owned(), name.to_string())]).await?;
    let text = row(&looked, 0).ok_or_else(|| unknown(name))?;
    let case = Case::read(name, text)?;
    let mut body = Body::clone(&case.body);
    // What this store may have forgotten is not what the other one may have.
    let recovered_at = body.rotation.ring.recovered_at.max(view.ring.recovered_at);
    body.rotation.ring = Ring { recovered_at, turn: None, ..view.ring.clone() };
    let endings = |kind: &TypeView| {
        let TypeView { done, empty, failed, lost, .. } = *kind;
        (kind.kind.clone(), Endings { done, empty, failed, lost })
    };
    body.ended = view.types.iter().map(endings).collect();
    let (_, next) = Case::next(name, Some(&case), body, looked.at)?;
    let mut writes =
        vec![Write::Set { table: ROTATIONS.to_owned(), row: name.to_string(), text: next }];
    for past in &view.past {
        let (number, text) = (past.token.0, past_text(past)?);
        writes.push(Write::Add { list: names::ended(name), number, text });
    }
    let checks = vec![still(ROTATIONS, name.as_str(), Some(text))];
    let changed = store.change(&Plan { checks, writes, ..Plan::default() }).await?;
    store.turns().forget(name);
    match changed {
        Changed::Done => Ok(()),
        Changed::Refused => {
            Err(StoreError::Unavailable(format!("rotation {name} was changed meanwhile")))
        }
    }
}
