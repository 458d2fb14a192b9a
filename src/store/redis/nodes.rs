//! Nodes in Redis: one hash of reports, one set of drain marks.

use std::time::Duration;

use super::link::Repeat;
use super::record::{from_json, to_json};
use super::{RedisStore, millis, scripts};
use crate::domain::name::NodeName;
use crate::store::nodes::{ALIVE_FOR, Beat, Heard, NodeRecord, Nodes};
use crate::store::{Result, StoreError};

/// A node silent for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Nodes for RedisStore {
    async fn beat(&self, beat: &Beat) -> Result<Heard> {
        let nodes = self.keys().global("nodes");
        let mut call = self.call(&scripts::BEAT_NODE);
        call.key(&nodes).key(self.keys().global("drains")).key(self.keys().nodes_events());
        call.arg(beat.node.as_str())
            .arg(&beat.boot)
            .arg(to_json(&nodes, beat)?)
            .arg(millis(ALIVE_FOR))
            .arg(millis(FORGOTTEN_AFTER));
        let heard: String = self.shared.rest.script(&call, Repeat::Harmless).await?;
        match heard.as_str() {
            "welcome" => Ok(Heard::Welcome { draining: false }),
            "draining" => Ok(Heard::Welcome { draining: true }),
            "duplicate" => Ok(Heard::Duplicate),
            other => Err(StoreError::Corrupt(format!("beat_node answered {other:?}"))),
        }
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        let nodes = self.keys().global("nodes");
        let mut call = self.call(&scripts::READ_NODES);
        call.key(&nodes).key(self.keys().global("drains"));
        call.arg(millis(FORGOTTEN_AFTER));
        let read: Vec<String> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        let mut records = Vec::with_capacity(read.len() / 3);
        for node in read.chunks_exact(3) {
            records.push(NodeRecord {
                beat: from_json(&nodes, &node[2])?,
                age_ms: node[0].parse().unwrap_or(u64::MAX),
                draining: node[1] == "1",
            });
        }
        records.sort_by(|a, b| a.beat.node.cmp(&b.beat.node));
        Ok(records)
    }

    async fn drain(&self, node: &NodeName, on: bool) -> Result<()> {
        let keys = self.keys();
        let mut call = self.call(&scripts::DRAIN_NODE);
        call.key(keys.global("nodes")).key(keys.global("drains")).key(keys.nodes_events());
        call.arg(node.as_str()).arg(u8::from(on));
        match self.shared.rest.script(&call, Repeat::Harmless).await? {
            0_u8 => Err(StoreError::NotFound(format!("node {node}"))),
            _ => Ok(()),
        }
    }

    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()> {
        let mut call = self.call(&scripts::LEAVE_NODE);
        call.key(self.keys().global("nodes")).key(self.keys().nodes_events());
        call.arg(node.as_str()).arg(boot);
        let _left: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }
}
