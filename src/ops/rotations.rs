//! What people do to rotations: define them.

use super::{Act, Actor, OpsError, Result, noting, reason};
use crate::domain::name::RotationName;
use crate::domain::rotation::Rules;
use crate::store::Store;
use crate::store::rotation::{RotationView, Rotations as _};
use crate::view::rules::RotationRules;

/// Makes a rotation, or changes all its rules. The audit says why, or else which they are now.
///
/// # Errors
/// [`OpsError::Malformed`], [`OpsError::Field`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn put(
    store: &Store,
    actor: &Actor,
    rotation: &RotationName,
    rules: &Rules,
    given: Option<&str>,
) -> Result<RotationView> {
    actor.check_operator()?;
    actor.bound.check_turns()?;
    let reason = reason(given)?;
    rules.check().map_err(|wrong| OpsError::Malformed(wrong.to_string()))?;
    let noted = reason.unwrap_or_else(|| RotationRules::noted(rules));
    let act = Act::RotationPut;
    let store = noting(store, &actor.signature, act, rotation.as_str(), Some(&noted));
    Ok(store.put_rotation(rotation, rules).await?)
}
