//! Nodes in Redis: one hash of reports, one of what they define, one set of drain marks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::link::Repeat;
use super::record::{from_json, to_json};
use super::{RedisStore, millis, scripts};
use crate::domain::name::NodeName;
use crate::store::nodes::{
    ALIVE_FOR, Beat, FORGOTTEN_AFTER, Forgotten, Heard, NodeRecord, Nodes, Told,
};
use crate::store::{Result, StoreError};

impl Nodes for RedisStore {
    async fn beat(&self, beat: &Beat) -> Result<Heard> {
        let nodes = self.keys().global("nodes");
        let mut call = self.call(&scripts::BEAT_NODE);
        call.key(&nodes).key(self.keys().global("drains")).key(self.keys().nodes_events());
        call.key(self.keys().global("definitions"));
        call.arg(beat.node.as_str())
            .arg(&beat.boot)
            .arg(to_json(&nodes, beat)?)
            .arg(millis(ALIVE_FOR))
            .arg(millis(FORGOTTEN_AFTER))
            .arg(&beat.digest);
        let (heard, told): (String, u8) = self.shared.rest.script(&call, Repeat::Harmless).await?;
        let told = told == 1;
        match heard.as_str() {
            "welcome" => Ok(Heard::Welcome { draining: false, told }),
            "draining" => Ok(Heard::Welcome { draining: true, told }),
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
                told: Arc::default(),
            });
        }
        records.sort_by(|a, b| a.beat.node.cmp(&b.beat.node));
        Ok(records)
    }

    async fn define(&self, told: &Told) -> Result<()> {
        let key = self.keys().global("definitions");
        let mut call = self.call(&scripts::DEFINE_JOBS);
        let text = format!("{} {}", told.digest, to_json(&key, &told.definitions)?);
        call.key(key).key(self.keys().nodes_events());
        call.arg(told.node.as_str()).arg(text);
        let _defined: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn definitions(&self) -> Result<Vec<Told>> {
        let key = self.keys().global("definitions");
        let mut read = ::redis::cmd("HGETALL");
        read.arg(&key);
        let all: BTreeMap<String, String> =
            self.shared.rest.command(&key, &read, Repeat::Harmless).await?;
        let corrupt = || StoreError::Corrupt(format!("{key} has a field of another form"));
        let told = |(node, text): (String, String)| {
            let (digest, json) = text.split_once(' ').ok_or_else(corrupt)?;
            Ok(Told {
                node: NodeName::new(&node).map_err(|_| corrupt())?,
                digest: digest.to_owned(),
                definitions: from_json(&key, json)?,
            })
        };
        all.into_iter().map(told).collect()
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

    async fn forget(&self, node: &NodeName) -> Result<Forgotten> {
        let keys = self.keys();
        let mut call = self.call(&scripts::FORGET_NODE);
        call.key(keys.global("nodes")).key(keys.global("drains")).key(keys.nodes_events());
        call.key(keys.global("definitions"));
        call.arg(node.as_str()).arg(millis(ALIVE_FOR));
        let answer: String = self.shared.rest.script(&call, Repeat::Harmless).await?;
        match answer.as_str() {
            "forgotten" => Ok(Forgotten::Done),
            "alive" => Ok(Forgotten::Alive),
            "unknown" => Err(StoreError::NotFound(format!("node {node}"))),
            other => Err(StoreError::Corrupt(format!("forget_node answered {other:?}"))),
        }
    }

    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()> {
        let mut call = self.call(&scripts::LEAVE_NODE);
        call.key(self.keys().global("nodes")).key(self.keys().nodes_events());
        call.key(self.keys().global("definitions"));
        call.arg(node.as_str()).arg(boot);
        let _left: u8 = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(())
    }
}
