//! What [`Store`](super::Store) needs of a store beside the ports: opening, reading, audit entries; and how it carries out dispatch.

use std::sync::Arc;

use async_trait::async_trait;

use super::dispatch::{Dispatch, Sources};
use super::engine::Engine;
use super::examine::Finding;
use super::journal::AuditEntry;
use super::portable::Portable;
use super::{Description, For, Options, Result};

/// One of the stores.
#[async_trait]
pub trait Backend: Engine {
    /// Whether other machines can use it: then it is opened before it answers, and its leases may be elsewhere.
    fn is_a_server(&self) -> bool {
        true
    }

    /// As [`Store::is_sharded`](super::Store::is_sharded).
    fn is_sharded(&self) -> bool {
        false
    }

    /// As [`Store::open`](super::Store::open), also when a copy into it is not finished.
    ///
    /// # Errors
    /// As there.
    async fn open(&self, options: &Options) -> Result<()>;

    /// As [`Store::be_ready`](super::Store::be_ready).
    ///
    /// # Errors
    /// As there.
    async fn be_ready(&self, what: For) -> Result<()>;

    /// As [`Store::refuses_login`](super::Store::refuses_login).
    async fn refuses_login(&self) -> bool;

    /// As [`Store::describe`](super::Store::describe).
    ///
    /// # Errors
    /// As there.
    async fn describe(&self) -> Result<Description>;

    /// As [`Store::examine`](super::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    async fn examine(&self) -> Result<Vec<Finding>>;

    /// The same store, whose calls write `entry` down.
    fn noting(&self, entry: AuditEntry) -> Arc<dyn Backend>;

    /// Its sources and tasks.
    fn dispatch(self: Arc<Self>) -> Arc<dyn Dispatches>;

    /// What it is kept in, if that is the memory of a test.
    #[doc(hidden)]
    fn in_memory(&self) -> Option<Box<dyn std::any::Any>> {
        None
    }
}

/// Sources and tasks, and all of it out of a store and into another.
pub trait Dispatches: Sources + Dispatch + Portable {}

impl<T: Sources + Dispatch + Portable> Dispatches for T {}
