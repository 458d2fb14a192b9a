//! Operations of [`crate::ops`] as this node's web carries them out: what an address names is looked up, and the desks of this
//! node learn what has changed. It answers nothing and knows no HTTP.

pub mod account;
pub mod rotation;
pub mod source;

use super::error::WebError;
use crate::domain::name::NodeName;

/// A node that an address names.
///
/// # Errors
/// [`WebError::NotFound`].
pub fn node(name: &str) -> Result<NodeName, WebError> {
    NodeName::new(name).map_err(|_| WebError::not_found(format!("there is no node {name:?}")))
}
