//! Where `soloist turn` extends and passes its turn: a desk of its own at the store, or a node (`--server`).

use std::time::Duration;

use serde_json::json;

use super::trouble::Trouble;
use soloist_desk::rotation::TurnDesk;
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, WorkerName};
use soloist_remote::{Call, Client, RemoteError, part};
use soloist_store::rotation::{Kept, Pass};

/// Who keeps a turn.
#[derive(Clone)]
pub(super) enum Place {
    /// The store, by way of this process's own desk.
    Desk(TurnDesk),
    /// A node, which calls the turn so.
    Server(Client, String),
}

/// Where the turns of a rotation are.
pub(super) fn at(rotation: &RotationName, what: &str) -> String {
    format!("/api/v1/rotations/{}/turns{what}", part(rotation.as_str()))
}

/// Whether a turn is still held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Still {
    Had,
    Over,
}

impl Place {
    /// The turn as a node calls it.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Desk(_) => None,
            Self::Server(_, name) => Some(name.clone()),
        }
    }

    /// Extends the turn by a whole lease. After `patience` the caller does not wait any more: until then every node is asked.
    pub(super) async fn extend(
        &self,
        rotation: &RotationName,
        token: Token,
        worker: &WorkerName,
        patience: Duration,
    ) -> Result<Still, Trouble> {
        match self {
            Self::Desk(desk) => match desk.extend(rotation, token, Some(worker)).await? {
                Kept::Yes(_) => Ok(Still::Had),
                Kept::Stale { .. } => Ok(Still::Over),
            },
            Self::Server(client, name) => {
                let path = at(rotation, &format!("/{}/extend", part(name)));
                let call = Call::post(path).repeatable().shared_within(patience, client);
                kept(client.tell(call).await)
            }
        }
    }

    /// Passes the turn.
    pub(super) async fn pass(&self, pass: &Pass) -> Result<Still, Trouble> {
        match self {
            Self::Desk(desk) => match desk.pass(pass).await? {
                Kept::Yes(_) => Ok(Still::Had),
                Kept::Stale { .. } => Ok(Still::Over),
            },
            Self::Server(client, name) => {
                let path = at(&pass.rotation, &format!("/{}/pass", part(name)));
                let body = json!({"token": pass.turn, "outcome": pass.outcome, "next": pass.next});
                kept(client.tell(Call::post(path).with(&body).repeatable()).await)
            }
        }
    }
}

fn kept(answer: Result<(), RemoteError>) -> Result<Still, Trouble> {
    match answer {
        Ok(()) => Ok(Still::Had),
        Err(RemoteError::Refused { status: 409, .. }) => Ok(Still::Over),
        Err(error) => Err(error.into()),
    }
}
