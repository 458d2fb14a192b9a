//! Why a server did not do what it was sent. Each driver says what its errors mean.

use soloist_store::StoreError;

/// Why something did not happen.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Others were in the way; nothing was done, and it is tried again.
    Again(String),
    /// The connection is unusable; the outcome of the transaction is unknown.
    Broken(String),
    /// It is known, and not ours to repeat.
    Ours(StoreError),
    /// The server does not let this user in.
    Login(String),
}

/// Shorthand for what a connection answers.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// For the caller of a store `at`.
    pub(crate) fn told(self, at: &str) -> StoreError {
        match self {
            Self::Again(why) | Self::Broken(why) | Self::Login(why) => {
                StoreError::Unavailable(format!("{at}: {why}"))
            }
            Self::Ours(error) => error,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}
