//! Seats: what each connected socket has not been told yet, and how many there may be.
//!
//! A seat knows which jobs are dirty and how to wake its socket. It renders nothing and decides nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use super::{Hub, lock};
use crate::domain::time::Boot;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::frames::Protocol;

/// Why a socket is closed by us, as RFC 6455 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Goodbye {
    pub code: u16,
    pub reason: &'static str,
}

/// One piece of work for a socket.
#[derive(Debug)]
#[expect(missing_docs, reason = "what a frame says stands in `web::frames`")]
pub enum Work {
    Close(Goodbye),
    /// A frame, and when the store told its change.
    Frame {
        text: String,
        changed: Option<Boot>,
    },
}

/// What a seat has not been told yet.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) awake: bool,
    pub(super) goodbye: Option<Goodbye>,
    pub(super) snapshot: bool,
    /// Whether the store is reachable.
    pub(super) store: bool,
    /// The line at the top of a page.
    pub(super) truth: bool,
    pub(super) nodes: bool,
    pub(super) dispatch: bool,
    pub(super) rotations: bool,
    pub(super) jobs: BTreeSet<usize>,
    pub(super) logs: BTreeSet<usize>,
    /// Followed jobs and the newest line each was told; `None` before the first.
    pub(super) follows: BTreeMap<usize, Option<u64>>,
}

/// Where one socket sits.
pub struct Seat {
    pub(super) id: u64,
    pub(super) caller: Caller,
    pub(super) protocol: Protocol,
    /// Wakes the socket; false when it could not be woken now.
    pub(super) wake: Box<dyn Fn() -> bool + Send + Sync>,
    pub(super) pending: Mutex<Pending>,
}

impl Seat {
    pub(super) fn mark(&self, change: impl FnOnce(&mut Pending)) {
        let mut pending = lock(&self.pending);
        change(&mut pending);
        // At most one wake-up is under way; a jammed socket costs nothing more.
        if !pending.awake {
            pending.awake = (self.wake)();
        }
    }
}

/// A place among the connections of this node; given back when dropped.
pub struct Admission {
    hub: Arc<Hub>,
    user: String,
    address: String,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut census = lock(&self.hub.census);
        census.total = census.total.saturating_sub(1);
        for key in [&self.user, &self.address] {
            if let Some(count) = census.by_key.get_mut(key) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    census.by_key.remove(key);
                }
            }
        }
        self.hub.metrics.live_closed();
    }
}

#[derive(Default)]
pub(super) struct Census {
    pub(super) total: usize,
    pub(super) by_key: HashMap<String, usize>,
}

impl Hub {
    /// Counts a connection in, or says which cap is reached.
    ///
    /// # Errors
    /// [`WebError::Unavailable`] when the node is full or shutting down, [`WebError::TooMany`] for the user or the
    /// address.
    pub fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Admission, WebError> {
        if self.is_draining() {
            return Err(WebError::Unavailable {
                detail: "this node is shutting down: connect again".to_owned(),
                retry_after: 1,
            });
        }
        let limits = self.config.get().live;
        let (user, address) = (format!("user {}", caller.user), format!("address {}", caller.from));
        let mut census = lock(&self.census);
        if census.total >= limits.sockets_per_node {
            return Err(WebError::Unavailable {
                detail: "this node has as many live connections as it takes: try again later"
                    .to_owned(),
                retry_after: 5,
            });
        }
        for (key, most) in
            [(&user, limits.sockets_per_user), (&address, limits.sockets_per_address)]
        {
            if census.by_key.get(key).is_some_and(|count| *count >= most) {
                return Err(WebError::TooMany {
                    detail: format!("{key} has {most} live connections already: close some"),
                    retry_after: 5,
                });
            }
        }
        census.total += 1;
        for key in [&user, &address] {
            *census.by_key.entry(key.clone()).or_default() += 1;
        }
        drop(census);
        self.metrics.live_opened();
        Ok(Admission { hub: Arc::clone(self), user, address })
    }
}
