//! Why a command did not do what was asked: one sentence for a person, one exit code for a script (0 done, 1 failed,
//! 2 wrong usage or configuration, 3 not found, 4 refused).

use std::process::ExitCode;

use soloist_config::Problems;
use soloist_domain::handover::NoMove;
use soloist_ops::OpsError;
use soloist_process::outlet;
use soloist_remote::RemoteError;
use soloist_store::StoreError;

/// The reasons that scripts can tell apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was tried and did not work; exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The command line or the configuration is wrong; exit code 2.
    #[error("{0}")]
    Usage(String),
    /// What it is about does not exist; exit code 3.
    #[error("{0}")]
    NotFound(String),
    /// It is forbidden, or would do harm; exit code 4.
    #[error("{0}")]
    Refused(String),
    /// The reader of the output stopped reading: nothing to say, exit code 0.
    #[error("the reader of the output is gone")]
    Unread,
}

impl Failure {
    /// The exit code.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Unread => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
        })
    }

    /// Says it on standard error.
    pub fn say(&self) {
        if !matches!(self, Self::Unread) {
            // Behind what was logged.
            outlet::say(&self.to_string());
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NotFound(_) | StoreError::Absent(_) => Self::NotFound(text),
            StoreError::Exists(_) | StoreError::LastAdmin(_) => Self::Refused(text),
            StoreError::Unsupported(_) => Self::Usage(text),
            StoreError::Unavailable(_)
            | StoreError::Stale { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::Corrupt(_) => Self::Failed(text),
        }
    }
}

impl From<OpsError> for Failure {
    fn from(error: OpsError) -> Self {
        let text = error.to_string();
        match error {
            OpsError::Field { .. } => Self::Usage(format!("--{text}")),
            OpsError::Malformed(_) => Self::Usage(text),
            OpsError::NotFound(_) | OpsError::Move(NoMove::NoSuchNode { .. }) => {
                Self::NotFound(text)
            }
            OpsError::Forbidden(_) | OpsError::Conflict(_) | OpsError::Move(_) => {
                Self::Refused(text)
            }
            OpsError::Store(error) => error.into(),
            OpsError::Unnoted(_) => Self::Failed(text),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        let count = match problems.0.len() {
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        Self::Usage(format!("the configuration has {count}:\n{problems}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}

impl From<anyhow::Error> for Failure {
    /// A store that is set up wrongly is a matter of configuration wherever it was noticed, and what is not there is not
    /// there.
    fn from(error: anyhow::Error) -> Self {
        let text = format!("{error:#}");
        if let Some(remote) = error.chain().find_map(|cause| cause.downcast_ref::<RemoteError>()) {
            return match Self::from(remote.clone()) {
                Self::Usage(_) => Self::Usage(text),
                Self::NotFound(_) => Self::NotFound(text),
                Self::Refused(_) => Self::Refused(text),
                _ => Self::Failed(text),
            };
        }
        match error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()) {
            Some(StoreError::Unsupported(_)) => Self::Usage(text),
            Some(StoreError::NotFound(_) | StoreError::Absent(_)) => Self::NotFound(text),
            _ => Self::Failed(text),
        }
    }
}
