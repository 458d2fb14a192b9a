//! The names of jobs that some accounts could not see, also of jobs that no configuration has any more.
//!
//! The roster (`roster.rs`) knows only jobs that a configuration had since this node started. All nodes remember the names in the store
//! ([`soloist_store::hidden`]): each adds those that its roster hides, and reads the others. Until that was read, every name that the
//! roster does not know counts as hidden.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Hub;
use soloist_domain::name::JobName;
use soloist_store::Result;
use soloist_store::hidden::HiddenNames as _;

/// How soon it is tried again when the store was out of reach.
const AGAIN: Duration = Duration::from_secs(1);

/// What was read.
#[derive(Default)]
pub(super) struct Past {
    /// `None`: nothing was read yet.
    names: Mutex<Option<Arc<BTreeSet<String>>>>,
    /// The roster is another, or events may have been missed.
    old: Notify,
}

impl Past {
    pub(super) fn names(&self) -> Option<Arc<BTreeSet<String>>> {
        self.names.lock().clone()
    }

    /// To be called when there may be something to add or to read.
    pub(super) fn doubt(&self) {
        self.old.notify_one();
    }

    /// Adds what was read. A name that was hidden once stays so, also when the store was emptied.
    fn learn(&self, mut read: BTreeSet<String>) {
        let mut names = self.names.lock();
        if let Some(known) = names.as_deref() {
            read.extend(known.iter().cloned());
        }
        *names = Some(Arc::new(read));
    }
}

impl Hub {
    /// Reads the names, unless that was done before. Whoever may not see everything is answered after this.
    pub async fn know_hidden(&self) {
        if self.past.names().is_some() || self.feed.outage().is_some() {
            return;
        }
        match self.store.hidden_names().await {
            Ok(read) => self.past.learn(read),
            Err(error) => {
                tracing::debug!(%error, "the names of hidden jobs could not be read; until then all unknown names are hidden");
            }
        }
    }

    /// Adds and reads names for as long as this node serves.
    pub(super) async fn watch_hidden(self: Arc<Self>) {
        while !self.is_draining() {
            match self.share_hidden().await {
                Ok(()) => self.past.old.notified().await,
                Err(error) => {
                    tracing::debug!(%error, "the names of hidden jobs could not be kept; it is tried again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn share_hidden(&self) -> Result<()> {
        let known = self.past.names();
        let known = known.iter().flat_map(|names| names.iter());
        let mut own: BTreeSet<JobName> = known.filter_map(|name| JobName::new(name).ok()).collect();
        own.extend(self.roster().restricted());
        let own: Vec<JobName> = own.into_iter().collect();
        self.store.note_hidden(&own).await?;
        self.past.learn(self.store.hidden_names().await?);
        Ok(())
    }
}
