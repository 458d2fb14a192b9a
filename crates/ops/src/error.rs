//! Why an operation was refused or failed. Each sentence says what to do.

use soloist_domain::detail::Detail;
use soloist_domain::handover::NoMove;
use soloist_store::StoreError;

/// A variant for each answer that page, API or command line gives otherwise.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// What was asked for is wrong in this field (of a body) or option (of a command).
    #[error("{field} {what}")]
    #[expect(missing_docs, reason = "the sentence says it")]
    Field { field: &'static str, what: Detail },
    /// What was asked for is wrong; the sentence names the place.
    #[error("{0}")]
    Malformed(Detail),
    /// The actor may not do it.
    #[error("{0}")]
    Forbidden(Detail),
    /// What it is about does not exist.
    #[error("{0}")]
    NotFound(Detail),
    /// It cannot be done as things are.
    #[error("{0}")]
    Conflict(Detail),
    /// The job stays where it is.
    #[error(transparent)]
    Move(NoMove),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store did it, but has no entry in the audit.
    #[error("done, but it could not be noted in the audit: {0}")]
    Unnoted(StoreError),
}

impl OpsError {
    pub(super) fn malformed(detail: impl Into<Detail>) -> Self {
        Self::Malformed(detail.into())
    }

    pub(super) fn forbidden(detail: impl Into<Detail>) -> Self {
        Self::Forbidden(detail.into())
    }

    pub(super) fn conflict(detail: impl Into<Detail>) -> Self {
        Self::Conflict(detail.into())
    }
}
