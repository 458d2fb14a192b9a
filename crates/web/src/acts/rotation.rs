//! What people do to rotations at this node; and how the failures of turns are worded.

use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_config::JobConfig;
use soloist_desk::waiting::DeskError;
use soloist_domain::detail::Detail;
use soloist_domain::lease::Token;
use soloist_domain::name::{InvalidName, RotationName, TypeName};
use soloist_domain::rotation::{Ending, Rules, Turn};
use soloist_ops::{OpsError, rotations};
use soloist_store::StoreError;
use soloist_store::rotation::{PastTurn, RemovedRotation, RotationView, Rotations as _};
use soloist_view::words::iso;

/// As [`rotations::put`]; no type may have the name of a job that was hidden and is no more.
///
/// # Errors
/// [`WebError::BadRequest`] with the field, [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn put(
    web: &Web,
    caller: &Caller,
    rotation: &RotationName,
    rules: &Rules,
    reason: Option<&str>,
) -> Result<RotationView, WebError> {
    let store = web.turns.store()?;
    let hidden = web.live.hidden_from(Some(caller));
    if let Some(kind) = rules.types.iter().find(|kind| hidden.has_type(kind.name.as_str())) {
        return Err(rotations::not_for_you(&kind.name).into());
    }
    let (actor, jobs) = (caller.actor(), web.live.jobs());
    let jobs: Vec<&JobConfig> = jobs.iter().map(|job| &**job).collect();
    let view = rotations::put(store, &actor, (rotation, &jobs), rules, reason).await?;
    web.turns.look();
    Ok(view)
}

/// The rotation is not hidden from `caller`, by a job that takes its turns in it or whose name is among its types; it need not be there
/// if it `may_be_new`.
///
/// # Errors
/// [`WebError::NotFound`] for one that is hidden, and for a name that nobody ever used; [`WebError::Forbidden`] for a token that is bound
/// to others; [`WebError::Unavailable`].
pub async fn check_seen(
    web: &Web,
    caller: &Caller,
    rotation: &RotationName,
    may_be_new: bool,
) -> Result<(), WebError> {
    caller.bound.check_rotation(rotation)?;
    let hidden = web.live.hidden_from(Some(caller));
    if !hidden.may_be_by_role() {
        return Ok(());
    }
    if hidden.has_rotation(rotation.as_str()) {
        return Err(no_rotation(rotation));
    }
    match web.store.rotations(Some(rotation), 0).await {
        Ok(views) if views.iter().any(|view| hidden.has_ring(view)) => Err(no_rotation(rotation)),
        Err(StoreError::NotFound(_)) if may_be_new => Ok(()),
        // Said before anything else is looked at, as of one that is hidden.
        Err(error) => Err(trouble(rotation, error)),
        Ok(_) => Ok(()),
    }
}

/// As [`rotations::remove`].
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Conflict`] with who has the turn, [`WebError::Unavailable`].
pub async fn remove(
    web: &Web,
    caller: &Caller,
    rotation: &RotationName,
    force: bool,
) -> Result<RemovedRotation, WebError> {
    let (actor, jobs) = (caller.actor(), web.live.jobs());
    let jobs: Vec<&JobConfig> = jobs.iter().map(|job| &**job).collect();
    let store = web.turns.store()?;
    let gone = rotations::remove(store, &actor, (rotation, &jobs), force).await;
    let gone = gone.map_err(|error| match error {
        OpsError::NotFound(_) => no_rotation(rotation),
        error => error.into(),
    })?;
    web.turns.look();
    Ok(gone)
}

/// One rotation with so many of its past turns.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn one(
    web: &Web,
    rotation: &RotationName,
    past: usize,
) -> Result<RotationView, WebError> {
    let found = web.turns.store()?.rotations(Some(rotation), past).await;
    let found = found.map_err(|error| trouble(rotation, error))?;
    found.into_iter().next().ok_or_else(|| no_rotation(rotation))
}

/// A failure of turns; what is not found is the rotation.
#[must_use]
pub fn trouble(rotation: &RotationName, error: impl Into<DeskError>) -> WebError {
    match error.into() {
        DeskError::Store(StoreError::NotFound(_)) => no_rotation(rotation),
        error => error.into(),
    }
}

/// As [`trouble`] of a call that names a type, which may be what is not found. The store does not say; it is asked.
pub async fn trouble_with_type(
    web: &Web,
    rotation: &RotationName,
    kind: Option<&TypeName>,
    error: DeskError,
) -> WebError {
    let (Some(kind), DeskError::Store(StoreError::NotFound(_))) = (kind, &error) else {
        return trouble(rotation, error);
    };
    match one(web, rotation, 0).await {
        Ok(view) => no_type(&view, kind),
        Err(error) => error,
    }
}

/// There is no such rotation, for the caller at least.
#[must_use]
pub fn no_rotation(rotation: &RotationName) -> WebError {
    WebError::not_found(
        Detail::new(format!(
            "there is no rotation {rotation}: define it first with PUT /api/v1/rotations/{rotation}, or soloist rotation set {rotation}"
        ))
        .told("refused-no-rotation", &[("rotation", rotation)]),
    )
}

/// What cannot be the name of one.
#[must_use]
pub fn no_name(wrong: &InvalidName) -> WebError {
    let why = Detail::new(format!("there is no rotation {wrong}"));
    WebError::not_found(why.told("refused-no-rotation", &[("rotation", &wrong.given)]))
}

/// The rotation has no such type.
#[must_use]
pub fn no_type(view: &RotationView, kind: &TypeName) -> WebError {
    let types: Vec<&str> = view.rules.types.iter().map(|one| one.name.as_str()).collect();
    let (name, types) = (&view.name, types.join(", "));
    WebError::not_found(format!(
        "the rotation {name} has no type {kind}, only {types}: use one of those, or change its types with PUT /api/v1/rotations/{name}"
    ))
}

/// This request had a turn, which has ended.
#[must_use]
pub fn over(turn: Token) -> WebError {
    let detail = format!(
        "this request had the turn {turn}, which has ended: ask for another with a new request_id"
    );
    WebError::conflict(detail)
}

/// The caller that wants to extend or pass the turn does not hold it, or no more.
#[must_use]
pub fn stale(
    rotation: &RotationName,
    turn: Token,
    past: Option<&PastTurn>,
    holder: Option<&Turn>,
) -> WebError {
    let ended = past.map(|past| {
        let at = iso(past.ended.floor());
        match past.ending {
            Ending::Lost => format!("was lost at {at}, when its lease ended"),
            ending => format!("was passed as {} at {at}", ending.as_str()),
        }
    });
    let what = match (ended, holder) {
        (Some(ended), _) => ended,
        (None, Some(holder)) if holder.token == turn => "is another worker's".to_owned(),
        (None, _) => "is unknown: it ended long ago, or never was".to_owned(),
    };
    let now = match holder {
        Some(turn) => {
            let (kind, worker, until) = (&turn.kind, &turn.worker, iso(turn.until.floor()));
            format!("{worker} has the turn now, for {kind}, until {until}")
        }
        None => "nobody has the turn now".to_owned(),
    };
    WebError::Conflict {
        detail: format!(
            "the turn {turn} {what}; nothing was changed, and {now}. Stop what goes on under it, and ask for another with POST /api/v1/rotations/{rotation}/turns"
        )
        .into(),
    }
}
