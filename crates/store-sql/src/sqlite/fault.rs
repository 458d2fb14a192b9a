//! What an error of SQLite means to a caller, and what a person can do about it.

use rusqlite::ErrorCode;

use soloist_domain::lease::Stale;
use soloist_store::StoreError;

/// Why a closure on a connection ended early.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite said so; translated where the path is known.
    Sql(rusqlite::Error),
    /// Decided by us.
    Store(StoreError),
}

pub(super) type SqliteResult<T> = Result<T, Fault>;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Stale> for Fault {
    fn from(stale: Stale) -> Self {
        Self::Store(stale.into())
    }
}

impl Fault {
    /// The error of the store at `path`.
    pub(super) fn at(self, path: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => translate(path, &error),
        }
    }
}

fn translate(path: &str, error: &rusqlite::Error) -> StoreError {
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Corrupt(format!("{path}: {error}"));
    };
    let remedy = match code {
        ErrorCode::NotADatabase => {
            return StoreError::Unsupported(format!(
                "{path} is not a SQLite database: move it away, or name another file in `store`"
            ));
        }
        ErrorCode::DatabaseCorrupt => {
            return StoreError::Corrupt(format!(
                "{path} ({error}): stop all nodes and restore a backup, or move the file away to begin empty"
            ));
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            "another process holds its lock; if that lasts, look for a stuck one with fuser(1)"
        }
        ErrorCode::DiskFull => "free some disk space",
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            "make the file and its directory writable for this user"
        }
        ErrorCode::CannotOpen => "check that its directory exists and is accessible for this user",
        ErrorCode::SystemIoFailure | ErrorCode::NoLargeFileSupport => {
            "check the disk and the system log"
        }
        ErrorCode::OutOfMemory
        | ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted
        | ErrorCode::SchemaChanged
        | ErrorCode::FileLockingProtocolFailed => "it is tried again",
        _ => return StoreError::Corrupt(format!("{path}: {error}")),
    };
    StoreError::Unavailable(format!("{path}: {error}; {remedy}"))
}
