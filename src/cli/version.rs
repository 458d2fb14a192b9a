//! What `soloist --version` says: the version, and which build of it this is.

/// Version, commit and build in one line; a release says the commit it was built from.
pub(super) const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SOLOIST_BUILD"), ")");
