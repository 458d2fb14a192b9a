//! All of one store into another of any kind: `soloist store copy`.
//!
//! Every node is stopped, and nothing is held in the source (`check`). So nothing is decided here: the content of one store is written into the
//! other. Versions and tokens are copied and continue to grow, because they are in the records.
//!
//! | file | what |
//! | --- | --- |
//! | `check` | what must be so before, and still be so at the end |
//! | `mark` | what says that the target is not whole yet |
//! | `work` | what is read and written, in which order |
//! | `tally` | how many of what |
//!
//! # Tokens
//!
//! A token is greater than the newest one of its job, source or rotation, which is copied, and not smaller than what the store's clock
//! says. That matters for what was removed and comes again under its name: so the target's clock must have reached the source's.
//!
//! # Doubt
//!
//! A target holds nothing back for the source's sake. A lease that lasts by the source's clock is refused before the first word is
//! copied, and again after the last; a holder trusts its lease for less than that. A source that may have forgotten leases is refused.

mod check;
mod mark;
mod tally;
mod work;

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

pub use self::tally::Tally;

use self::mark::Mark;
use super::jobs::Jobs as _;
use super::journal::AuditEntry;
use super::{Opener, Options, Store, StoreError};

/// The table that has the mark; a copy never writes it into the target as a row of the source.
pub use self::mark::MARKS;
pub(super) use self::mark::refuse_unfinished;

/// Longest time for one call: more is written in one than a node ever writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why nothing was copied, or not all of it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CopyError {
    /// Both names are of one store.
    #[error("source and target are the same store: name another one with --to")]
    Same,
    /// Something must be done before; says what. If the target is not whole, it refuses nodes until a copy into it has finished.
    #[error("{0}")]
    Refused(String),
    /// The source cannot be opened or read.
    #[error("the source: {0}")]
    Source(StoreError),
    /// The target cannot be opened or written.
    #[error("the target: {0}")]
    Target(StoreError),
}

/// How it is copied.
pub struct How<'a> {
    /// What opens both.
    pub named: Opener,
    /// Only says what would be copied: writes nothing into the target, and makes none.
    pub dry: bool,
    /// Written into the target's audit when all is there.
    pub note: AuditEntry,
    /// Told what was copied so far.
    pub progress: &'a mut dyn FnMut(&Tally),
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// How many of what.
    pub tally: Tally,
    /// The target had an unfinished copy, which was removed first.
    pub again: bool,
}

/// Copies the store at `from` into the one at `to`, which is made if there is none. `options` are those of a node.
///
/// # Errors
/// [`CopyError`]. After [`CopyError::Source`] or [`CopyError::Target`] it may be tried again: it begins anew.
pub fn copy<'a>(
    from: &'a str,
    to: &'a str,
    options: &'a Options,
    how: How<'a>,
) -> LocalBoxFuture<'a, Result<Copied, CopyError>> {
    Box::pin(copied(from, to, options, how))
}

async fn copied(
    from: &str,
    to: &str,
    options: &Options,
    how: How<'_>,
) -> Result<Copied, CopyError> {
    if from == to {
        return Err(CopyError::Same);
    }
    let options = Options { timeout: PATIENCE, checked: false, ..options.clone() };
    let looking = Options { make: false, ..options.clone() };
    let source = async {
        let source = (how.named)(from, &looking).await?;
        source.open(&looking).await?;
        Ok(source)
    };
    let source = source.await.map_err(CopyError::Source)?;
    let target =
        match Store::unfinished(how.named, to, if how.dry { &looking } else { &options }).await {
            Err(StoreError::Absent(_)) if how.dry => None,
            opened => Some(opened.map_err(CopyError::Target)?),
        };
    let mut again = false;
    if let Some(target) = &target {
        check::other_store(&source, target).await?;
        check::nodes(target, "target").await.map_err(|why| why.of(CopyError::Target))?;
        again = mark::is_there(target).await.map_err(CopyError::Target)?;
        if !again {
            check::is_empty(target).await.map_err(|why| why.of(CopyError::Target))?;
        }
        check::clocks(&source, target).await?;
    }
    check::idle(&source, how.dry).await.map_err(|why| why.of(CopyError::Source))?;
    let Some(target) = target.filter(|_| !how.dry) else {
        let tally = work::copy(&source, None, how.progress).await?;
        return Ok(Copied { tally, again });
    };
    let mut mark = Mark::set(&target, again).await.map_err(|why| why.of(CopyError::Target))?;
    let before = check::state(&source).await.map_err(CopyError::Source)?;
    let tally = work::copy(&source, Some(&mut mark), how.progress).await?;
    // The state first: what is held from now on began after it.
    check::idle(&source, false).await.map_err(|why| why.of(CopyError::Source))?;
    if !before.is_still(&check::state(&source).await.map_err(CopyError::Source)?) {
        return Err(CopyError::Refused(
            "the source was changed while it was copied: stop whatever uses it, and copy again"
                .to_owned(),
        ));
    }
    check::nodes(&target, "target").await.map_err(|why| why.of(CopyError::Target))?;
    mark.remove(&how.note).await.map_err(|why| why.of(CopyError::Target))?;
    Ok(Copied { tally, again })
}

/// What stopped a step: the store, or a reason not to continue.
enum Trouble {
    Store(StoreError),
    Refused(String),
}

impl Trouble {
    fn of(self, side: fn(StoreError) -> CopyError) -> CopyError {
        match self {
            Self::Store(error) => side(error),
            Self::Refused(why) => CopyError::Refused(why),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Store {
    /// Opens the store at `url`, also when a copy into it is not finished.
    async fn unfinished(named: Opener, url: &str, options: &Options) -> super::Result<Self> {
        let store = named(url, options).await?;
        store.backend.open(options).await?;
        *store.shut.lock() = None;
        Ok(store)
    }

    /// Which store it is.
    async fn epoch(&self) -> super::Result<String> {
        Ok(self.snapshot(&[]).await?.epoch)
    }
}
