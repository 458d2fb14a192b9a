//! Where a command is carried out: at the store, or by a node that is asked over HTTP (`--server`).
//!
//! The one seam between the two. What a command prints is made of the views of [`soloist_view`], which are the same from either
//! side; how they are fetched stands in `office/`, one file per noun. At the store the checks of [`soloist_ops`] apply to the
//! person at the terminal; a node applies them to the account of the token.

mod accounts;
mod alerts;
mod audit;
mod dispatch;
mod jobs;
mod log;
mod nodes;

use serde::de::DeserializeOwned;

use super::{CommandContext, Failure};
use soloist_remote::{Call, Client, RemoteError};
use soloist_view::people::Me;

pub(super) use accounts::NewUser;
pub(super) use audit::{AT_ONCE, AuditFrom, query};
pub(super) use jobs::{Gave, Ordered, TakeOver, is_given_back};

/// Who carries commands out.
pub(super) enum Office {
    /// This process, at the store.
    Store(Box<CommandContext>),
    /// A node.
    Server(Server),
}

/// The nodes behind `--server`.
pub(super) struct Server {
    pub(super) client: Client,
}

impl Server {
    /// Asks for what is at `path`.
    async fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, Failure> {
        Ok(self.client.ask(Call::get(path)).await?)
    }

    /// Who this token is.
    pub(super) async fn me(&self) -> Result<Me, Failure> {
        self.get("/api/v1/me").await
    }

    /// No caller acts as another here: the user is the token's own account.
    async fn is_own(&self, given: Option<&str>) -> Result<(), Failure> {
        let Some(given) = given else { return Ok(()) };
        let me = self.me().await?;
        if me.name == given {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "under --server this is done as {}, whose token it is: leave out --user (and $SOLOIST_USER), or use a token of {given}",
            me.name
        )))
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let text = error.to_string();
        match error {
            RemoteError::Setup(_) => Self::Usage(text),
            RemoteError::Token(_) => Self::Refused(text),
            RemoteError::Refused { status, .. } => match status {
                400 | 405 | 413 => Self::Usage(text),
                403 | 409 => Self::Refused(text),
                404 => Self::NotFound(text),
                _ => Self::Failed(text),
            },
            RemoteError::Unreachable(_) | RemoteError::Strange { .. } => Self::Failed(text),
        }
    }
}

/// A 400 about something that does not exist is, for a command, that it was not found.
fn not_found_if(error: RemoteError, says: &str) -> Failure {
    match error {
        RemoteError::Refused { status: 400, detail } if detail.contains(says) => {
            Failure::NotFound(detail)
        }
        other => other.into(),
    }
}
