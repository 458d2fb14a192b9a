//! `soloist run` (stub until the lead's is merged).
#![expect(missing_docs, reason = "a stub")]
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::lease::Timing;
use crate::domain::name::{JobName, NodeName};
use crate::store::Store;

#[derive(Debug, Clone)]
pub struct Once {
    pub name: JobName,
    pub node: NodeName,
    pub timing: Timing,
    pub stop_grace: Duration,
    pub wait: Option<Duration>,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub env: BTreeMap<String, String>,
    pub store_url: String,
    pub prefix: String,
}

pub async fn run(_store: &Store, once: Once) -> anyhow::Result<i32> {
    anyhow::bail!("cannot run {:?} yet", once.argv)
}
