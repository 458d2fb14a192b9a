//! What people do to rotations: define and remove them.

use std::fmt::Display;

use super::{Act, Actor, OpsError, Result, noting, quota, reason};
use soloist_config::JobConfig;
use soloist_domain::detail::Detail;
use soloist_domain::name::{RotationName, TypeName};
use soloist_domain::rotation::{Rules, Written};
use soloist_store::rotation::{RemovedRotation, RotationView, Rotations as _};
use soloist_store::{Store, StoreError};

/// Whoever puts or removes a rotation decides when the jobs run that take their turns in it.
fn check_members(actor: &Actor, rotation: &RotationName, jobs: &[&JobConfig]) -> Result<()> {
    let mut members = jobs.iter().filter(|job| job.rotation.as_ref() == Some(rotation));
    members.try_for_each(|job| actor.check_operates(job))
}

/// The name of a type is that of something that is hidden from the actor.
#[must_use]
pub fn not_for_you(kind: &TypeName) -> OpsError {
    OpsError::forbidden(format!("types: the name {kind} is not for you: use another one"))
}

/// Makes a rotation, or changes all its rules. The audit says why, or else which they are now. Of `jobs`, which are all that there are,
/// those that take their turns in it must be the actor's to operate, and no type may have the name of one that is hidden from them.
///
/// # Errors
/// [`OpsError::Malformed`], [`OpsError::Field`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn put(
    store: &Store,
    actor: &Actor,
    (rotation, jobs): (&RotationName, &[&JobConfig]),
    rules: &Rules,
    given: Option<&str>,
) -> Result<RotationView> {
    actor.check_operator()?;
    actor.bound.check_rotation(rotation)?;
    let reason = reason(given)?;
    rules.check().map_err(|wrong| OpsError::malformed(wrong.to_string()))?;
    check_members(actor, rotation, jobs)?;
    let hidden = |name: &str| jobs.iter().any(|job| job.name.as_str() == name && !actor.sees(job));
    if let Some(kind) = rules.types.iter().find(|kind| hidden(kind.name.as_str())) {
        return Err(not_for_you(&kind.name));
    }
    let before = quota::rotation(store, rotation).await?.map(|before| before.rules);
    let was = before.as_ref().map(Written::of);
    let noted = reason.unwrap_or_else(|| crate::changed(Written::of(rules), was));
    let act = Act::RotationPut;
    let store = noting(store, &actor.signature, act, rotation.as_str(), Some(&noted));
    Ok(store.put_rotation(rotation, rules).await?)
}

/// Removes a rotation with its turn and its past turns; says who had the turn, and how many waited. Without `force` only one
/// that no worker holds or waits for: the refusal says who does. `jobs` as in [`put`].
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Forbidden`], [`OpsError::Conflict`], [`OpsError::Store`].
pub async fn remove(
    store: &Store,
    actor: &Actor,
    (rotation, jobs): (&RotationName, &[&JobConfig]),
    force: bool,
) -> Result<RemovedRotation> {
    actor.check_operator()?;
    actor.bound.check_rotation(rotation)?;
    check_members(actor, rotation, jobs)?;
    let held = store.rotations(Some(rotation), 0).await.unwrap_or_default().into_iter().next();
    let said = held.map(|view| {
        let turn = view.ring.turn.as_ref();
        let waiting: u64 = view.types.iter().map(|kind| kind.waiting).sum();
        let holder = turn.map_or("nobody", |turn| turn.worker.as_str());
        format!("{holder} had the turn, {waiting} waited")
    });
    let act = Act::RotationRemove;
    let noted = noting(store, &actor.signature, act, rotation.as_str(), said.as_deref());
    let gone = noted.remove_rotation(rotation, force).await.map_err(|error| match error {
        StoreError::NotFound(_) => OpsError::NotFound(
            Detail::new(format!(
                "there is no rotation {rotation}: GET /api/v1/rotations and soloist rotation list show their names"
            ))
            .told("refused-no-rotation", &[("rotation", rotation)]),
        ),
        error => error.into(),
    })?;
    let holder = gone.turn.as_ref().map_or("nobody", |turn| turn.worker.as_str());
    if !gone.done {
        let why = Detail::new(format!(
            "{holder} has the turn of {rotation}, and {} wait for it: its work would overlap with the next turn; stop it first, or repeat it with ?force=true, or soloist rotation remove {rotation} --yes",
            gone.waiting
        ));
        let n = ("n", &gone.waiting as &dyn Display);
        return Err(OpsError::Conflict(match gone.turn.is_some() {
            true => why
                .told("refused-rotation-loses", &[("worker", &holder), ("rotation", rotation), n]),
            false => why.told("refused-rotation-waited", &[("rotation", rotation), n]),
        }));
    }
    Ok(gone)
}
