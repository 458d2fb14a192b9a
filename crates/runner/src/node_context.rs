//! Shared by all runs on this node.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use tokio::sync::watch;

use super::fitness::Unfit;
use super::keeper::Keeper;
use super::nursery::Nursery;
use soloist_desk::rotation;
use soloist_domain::name::NodeName;
use soloist_guard::choice::Choice;
use soloist_process::telemetry::Metrics;
use soloist_store::Store;

/// What every run on this node shares.
#[derive(Clone)]
pub struct NodeContext {
    /// The store.
    pub store: Store,
    /// Its URL with credentials, for guards.
    pub store_url: String,
    /// Key prefix.
    pub prefix: String,
    /// This node.
    pub node: NodeName,
    /// The part of the node's environment that scripts get.
    pub env: BTreeMap<OsString, OsString>,
    /// What this machine cannot start now.
    pub unfit: watch::Receiver<Arc<Unfit>>,
    /// What holds scripts together.
    pub containment: Choice,
    /// Where guards wait for their plan.
    pub nursery: Option<Nursery>,
    /// The keeper.
    pub keeper: Keeper,
    /// Where jobs take turns that are members of a rotation.
    pub turns: rotation::TurnDesk,
    /// Metrics.
    pub metrics: Arc<Metrics>,
}
