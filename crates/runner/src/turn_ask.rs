//! The arguments of `soloist turn`, checked against the rotation.

use std::time::Duration;

use super::program::Program;
use soloist_desk::rotation::TurnDesk;
use soloist_desk::waiting::DeskError;
use soloist_domain::lease::Timing;
use soloist_domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist_domain::rotation::Rules;
use soloist_store::Opener;
use soloist_store::StoreError;
use soloist_store::rotation::{Rotations as _, TurnAsk};

/// What to run, and as what.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as on the command line")]
pub struct TurnCommand {
    /// What opens the store.
    pub open: Opener,
    pub rotation: RotationName,
    pub kind: TypeName,
    pub worker: WorkerName,
    pub next: Option<TypeName>,
    pub empty_code: Option<i32>,
    /// How long to wait for the turn, and for a store that is away; `None` for ever.
    pub wait: Option<Duration>,
    pub program: Program,
    pub longest_lease: Duration,
}

impl TurnCommand {
    /// A new request for a turn.
    pub(super) fn ask(&self) -> TurnAsk {
        let random = format!("{:032x}", rand::random::<u128>());
        #[expect(clippy::expect_used, reason = "hexadecimal digits are a label")]
        let request = RequestId::new(&random).expect("a request id");
        TurnAsk {
            rotation: self.rotation.clone(),
            kind: self.kind.clone(),
            worker: self.worker.clone(),
            request,
            wait: None,
        }
    }

    /// Whether all that is asked of the rotation is there.
    pub(super) async fn look(&self, desk: &TurnDesk) -> Result<(), DeskError> {
        let rules = rules(desk, &self.rotation).await.map_err(|error| self.explained(error))?;
        let known: Vec<&str> = rules.types.iter().map(|kind| kind.name.as_str()).collect();
        for kind in [Some(&self.kind), self.next.as_ref()].into_iter().flatten() {
            if rules.of(kind).is_none() {
                let missing = format!(
                    "a type {kind} of rotation {} (it has: {}; soloist rotation set gives it others)",
                    self.rotation,
                    known.join(", ")
                );
                return Err(StoreError::NotFound(missing).into());
            }
        }
        match Timing::from_ttl(rules.lease) {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::Unsupported(too_short(&self.rotation, &error)).into()),
        }
    }

    /// A rotation that is not there, with the remedy.
    fn explained(&self, error: DeskError) -> DeskError {
        let rotation = &self.rotation;
        match error {
            // The text goes on with "does not exist".
            DeskError::Store(StoreError::NotFound(_)) => StoreError::NotFound(format!(
                "rotation {rotation} (define it first with: soloist rotation set {rotation}, or PUT /api/v1/rotations/{rotation})"
            ))
            .into(),
            other => other,
        }
    }
}

/// The rules as they are now.
async fn rules(desk: &TurnDesk, rotation: &RotationName) -> Result<Rules, DeskError> {
    let views = desk.store()?.rotations(Some(rotation), 0).await?;
    let rules = views.into_iter().next().map(|view| view.rules);
    rules.ok_or_else(|| StoreError::NotFound(format!("rotation {rotation}")).into())
}

/// What must be said of a rotation whose turns are too short for this.
pub(super) fn too_short(rotation: &RotationName, error: &impl std::fmt::Display) -> String {
    format!(
        "the lease of rotation {rotation} leaves no time to extend it and to kill a command: {error} (soloist rotation set {rotation} --lease 30s)"
    )
}
