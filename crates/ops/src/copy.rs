//! Copies all of a store into another one: for a person with access to both. The target's audit records who did it.

use super::{Act, Signature, entry};
use soloist_store::copy::{self, Copied, CopyError, How, Tally};
use soloist_store::{Opener, Options};

/// The store that is copied.
#[derive(Debug, Clone, Copy)]
pub struct From<'a> {
    /// Where it is.
    pub url: &'a str,
    /// The same without a password, for the audit.
    pub shown: &'a str,
}

/// As [`copy::copy`]; `named` opens both stores, `progress` gets what was copied so far.
///
/// # Errors
/// [`CopyError`].
pub async fn copy(
    named: Opener,
    from: From<'_>,
    to: &str,
    options: &Options,
    dry: bool,
    by: &Signature,
    progress: &mut dyn FnMut(&Tally),
) -> Result<Copied, CopyError> {
    let note = entry(by, Act::StoreCopy, from.shown, None);
    copy::copy(from.url, to, options, How { named, dry, note, progress }).await
}
