//! The names of jobs that only some accounts could see.
//!
//! A name stays here when its job leaves every configuration: a rotation or a lease that still has the name is then for admins. The viewers of the job
//! are not kept.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::Result;
use soloist_domain::name::JobName;

/// The memory of names that were hidden.
#[async_trait]
pub trait HiddenNames {
    /// All of them.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait).
    async fn hidden_names(&self) -> Result<BTreeSet<String>>;

    /// Adds these names. None is ever taken out.
    ///
    /// # Errors
    /// As [`HiddenNames::hidden_names`].
    async fn note_hidden(&self, names: &[JobName]) -> Result<()>;
}
