//! Marks the target as incomplete: a row that [`Store::open`] refuses.
//!
//! The copying process changes the row with every portion that it writes. So another one finds out whether it still lives.

use std::time::Duration;

use super::Trouble;
use crate::core::carry;
use crate::journal::AuditEntry;
use crate::{Result, Store, StoreError};

/// The table that has it.
pub const MARKS: &str = "copy";
const UNFINISHED: &str = "unfinished";
/// A process that copies writes a portion in less.
const LIVES_FOR: Duration = Duration::from_secs(3);

/// As [`Store::open`] says.
///
/// # Errors
/// [`StoreError::Unsupported`], [`StoreError::Unavailable`].
pub(crate) async fn refuse_unfinished(store: &Store) -> Result<()> {
    if read(store).await?.is_none() {
        return Ok(());
    }
    Err(StoreError::Unsupported(
        "a copy into this store is not finished: run soloist store copy again, or give Soloist another, empty store"
            .to_owned(),
    ))
}

async fn read(store: &Store) -> Result<Option<String>> {
    Ok(carry::look_at_row(&*store.backend, MARKS, UNFINISHED).await?.1)
}

/// Whether a copy into `store` began and has not finished.
pub(super) async fn is_there(store: &Store) -> Result<bool> {
    Ok(read(store).await?.is_some())
}

/// The mark of this process.
pub(super) struct Mark {
    target: Store,
    id: String,
    text: String,
    beats: u64,
}

impl Mark {
    /// Marks `target`; what an unfinished copy left there is removed.
    pub(super) async fn set(target: &Store, again: bool) -> std::result::Result<Self, Trouble> {
        let old = if again { Some(abandoned(target).await?) } else { None };
        let id = ulid::Ulid::generate().to_string();
        let mut mark =
            Self { target: target.clone(), id, text: old.clone().unwrap_or_default(), beats: 0 };
        mark.swap(old.as_deref()).await?;
        if again {
            target.dispatch.empty().await?;
        }
        Ok(mark)
    }

    /// The store that it is in.
    pub(super) fn target(&self) -> &Store {
        &self.target
    }

    /// Shows that this process is still copying.
    pub(super) async fn beat(&mut self) -> std::result::Result<(), Trouble> {
        let old = self.text.clone();
        self.swap(Some(&old)).await
    }

    async fn swap(&mut self, old: Option<&str>) -> std::result::Result<(), Trouble> {
        self.beats += 1;
        let new = format!("{} {}", self.id, self.beats);
        let (store, text) = (&self.target, Some(new.as_str()));
        if !carry::swap_row(&*store.backend, MARKS, UNFINISHED, old, text, None).await? {
            return Err(another());
        }
        self.text = new;
        Ok(())
    }

    /// The target is whole: it is a store as any other from now on. `note` goes into its audit in the same step.
    pub(super) async fn remove(self, note: &AuditEntry) -> std::result::Result<(), Trouble> {
        let (store, old) = (&self.target, Some(self.text.as_str()));
        let note = Some(note);
        if !carry::swap_row(&*store.backend, MARKS, UNFINISHED, old, None, note).await? {
            return Err(another());
        }
        Ok(())
    }
}

/// The mark of a process that has stopped.
async fn abandoned(target: &Store) -> std::result::Result<String, Trouble> {
    let before = read(target).await?;
    tokio::time::sleep(LIVES_FOR).await;
    let now = read(target).await?;
    match now {
        Some(now) if before.as_ref() == Some(&now) => Ok(now),
        _ => Err(another()),
    }
}

fn another() -> Trouble {
    Trouble::Refused(
        "another soloist store copy writes into the target: wait until it ends, or stop it and copy again"
            .to_owned(),
    )
}
