//! Operations of [`soloist_ops`] as this node's web carries them out: what an address names is looked up, and the desks of this
//! node learn what has changed. It answers nothing and knows no HTTP.

pub mod account;
pub mod rotation;
pub mod source;

use super::error::WebError;
use soloist_domain::detail::Detail;
use soloist_domain::name::NodeName;

/// A node that an address names.
///
/// # Errors
/// [`WebError::NotFound`].
pub fn node(name: &str) -> Result<NodeName, WebError> {
    NodeName::new(name).map_err(|_| {
        let shown: String = name.chars().take(64).collect();
        let why = Detail::new(format!("there is no node {name:?}"));
        WebError::not_found(why.told("refused-no-node", &[("node", &shown)]))
    })
}
