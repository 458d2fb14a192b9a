//! Why a command did not get, or lost, what it asked for: the same whether the store or a node answered.

use soloist_desk::waiting::DeskError;
use soloist_remote::RemoteError;
use soloist_store::StoreError;

/// A variant for each thing that a command does otherwise. What is inside decides its exit code.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// It may change in a moment; the outcome of the request is unknown.
    #[error("{0:#}")]
    Away(anyhow::Error),
    /// It does not exist, or is over.
    #[error("{0:#}")]
    NotFound(anyhow::Error),
    /// Asking again does not help.
    #[error("{0:#}")]
    Other(anyhow::Error),
}

impl Trouble {
    /// What may pass by itself, in words.
    ///
    /// # Errors
    /// All else.
    pub(super) fn passing(self) -> anyhow::Result<String> {
        match self {
            Self::Away(error) => Ok(format!("{error:#}")),
            Self::NotFound(error) | Self::Other(error) => Err(error),
        }
    }

    /// The error itself.
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Away(error) | Self::NotFound(error) | Self::Other(error) => error,
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Away(error.into()),
            StoreError::NotFound(_) => Self::NotFound(error.into()),
            _ => Self::Other(error.into()),
        }
    }
}

impl From<DeskError> for Trouble {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::Refused(_) => Self::Away(error.into()),
            DeskError::Store(error) => error.into(),
        }
    }
}

impl From<RemoteError> for Trouble {
    fn from(error: RemoteError) -> Self {
        match error {
            error if error.may_pass() => Self::Away(error.into()),
            RemoteError::Refused { status: 404, .. } => Self::NotFound(error.into()),
            error => Self::Other(error.into()),
        }
    }
}
