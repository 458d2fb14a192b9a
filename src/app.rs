//! The composition root (stub until the lead's is merged).
use crate::config::Config;

/// Runs a node until it is told to stop.
///
/// # Errors
/// Always, until the merge.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    anyhow::bail!("node {} cannot serve yet", config.node)
}

/// How every command connects.
#[must_use]
pub fn store_options(
    config: &Config,
    observe: fn(&'static str, std::time::Duration),
) -> crate::store::Options {
    crate::store::Options { prefix: config.prefix.clone(), observe, ..Default::default() }
}
