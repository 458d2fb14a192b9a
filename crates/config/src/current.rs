//! The configuration in force; a reload replaces it.

use std::sync::Arc;

use tokio::sync::watch;

use super::Config;

/// A handle; cheap to clone.
#[derive(Debug, Clone)]
pub struct Current(watch::Sender<Arc<Config>>);

impl Current {
    /// `config` is in force until it is replaced.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self(watch::Sender::new(Arc::new(config)))
    }

    /// The one in force now; a caller that needs several of its values together asks once.
    #[must_use]
    pub fn get(&self) -> Arc<Config> {
        Arc::clone(&self.0.borrow())
    }

    /// From now on `config` is in force.
    pub fn replace(&self, config: Config) {
        self.0.send_replace(Arc::new(config));
    }

    /// Tells of every newer one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Config>> {
        self.0.subscribe()
    }
}
