//! Nodes, on any [`Records`]: a row for each report, each drain mark, and what each node defines.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::shared::{decide, json, look_at, parsed, row, rows, set, still, unset};
use crate::nodes::{ALIVE_FOR, Beat, FORGOTTEN_AFTER, Forgotten, Heard, NodeRecord, Nodes, Told};
use crate::records::{Look, Plan, Records, Tell, Write};
use crate::{Result, StoreError};
use soloist_domain::definition::Definitions;
use soloist_domain::name::NodeName;
use soloist_domain::time::{StoreTime, millis};

const NODES: &str = "nodes";
/// The text is empty; the row is the mark.
pub(super) const DRAINING: &str = "draining";
const DEFINITIONS: &str = "definitions";
/// The digest of each row of `definitions`: reports are compared with it every second, and definitions are long.
const DIGESTS: &str = "digests";

/// A report as its row has it.
#[derive(Serialize, Deserialize)]
struct Reported {
    at: StoreTime,
    beat: Beat,
}

#[async_trait]
impl Nodes for dyn Records + '_ {
    async fn beat(&self, beat: &Beat) -> Result<Heard> {
        let name = beat.node.as_str();
        let looks = [look_at(NODES, name), look_at(DRAINING, name), look_at(DIGESTS, name)];
        let (heard, news) = decide(self, &looks, |looked| {
            let now = looked.at.floor();
            let old = row(looked, 0);
            let known: Option<Reported> = old.map(|text| parsed(NODES, text)).transpose()?;
            let fresh = known.filter(|known| now.since(known.at) < ALIVE_FOR);
            if fresh.as_ref().is_some_and(|known| known.beat.boot != beat.boot) {
                return Ok(((Heard::Duplicate, false), None));
            }
            let news = fresh.is_none_or(|known| !known.beat.says_as(beat));
            let plan = Plan {
                checks: vec![still(NODES, name, old)],
                writes: vec![set(
                    NODES,
                    name,
                    json(NODES, &Reported { at: now, beat: beat.clone() })?,
                )],
                tells: if news { vec![Tell::Nodes] } else { Vec::new() },
                ..Plan::default()
            };
            let draining = row(looked, 1).is_some();
            let told = row(looked, 2) == Some(&beat.digest);
            Ok(((Heard::Welcome { draining, told }, news), Some(plan)))
        })
        .await?;
        if news {
            forget_silent(self).await?;
        }
        Ok(heard)
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        let looks = [Look::Rows(NODES.to_owned()), Look::Rows(DRAINING.to_owned())];
        let looked = self.look(&looks).await?;
        let mut nodes = Vec::new();
        for (name, text) in rows(&looked, 0) {
            let Reported { at, mut beat } = parsed(NODES, text)?;
            if let Some(vitals) = &mut beat.vitals {
                vitals.ahead_ms = vitals.clock.map(|clock| clock.0.saturating_sub(at.0));
            }
            let age = looked.at.floor().since(at);
            if age <= FORGOTTEN_AFTER {
                nodes.push(NodeRecord {
                    beat,
                    age_ms: millis(age),
                    draining: rows(&looked, 1).any(|(marked, _)| marked == name),
                    told: Arc::default(),
                });
            }
        }
        Ok(nodes)
    }

    async fn define(&self, told: &Told) -> Result<()> {
        let name = told.node.as_str();
        let plan = Plan {
            writes: vec![
                set(DEFINITIONS, name, json(DEFINITIONS, &told.definitions)?),
                set(DIGESTS, name, told.digest.clone()),
            ],
            tells: vec![Tell::Nodes],
            ..Plan::default()
        };
        self.change(&plan).await.map(drop)
    }

    async fn definitions(&self) -> Result<Vec<Told>> {
        let looks = [Look::Rows(DEFINITIONS.to_owned()), Look::Rows(DIGESTS.to_owned())];
        let looked = self.look(&looks).await?;
        let mut all = Vec::new();
        for (name, text) in rows(&looked, 0) {
            let node = NodeName::new(name)
                .map_err(|why| StoreError::Corrupt(format!("{DEFINITIONS}, {name}: {why}")))?;
            let digest = rows(&looked, 1).find(|(other, _)| *other == name);
            let digest = digest.map_or_else(String::new, |(_, digest)| digest.to_owned());
            let definitions: Definitions = parsed(DEFINITIONS, text)?;
            all.push(Told { node, digest, definitions });
        }
        Ok(all)
    }

    async fn drain(&self, node: &NodeName, on: bool) -> Result<()> {
        decide(self, &about(node), |looked| {
            let (reported, marked) = (row(looked, 0), row(looked, 1));
            if reported.is_none() && marked.is_none() {
                return Err(unknown(node));
            }
            let name = node.as_str();
            let write = if on { set(DRAINING, name, String::new()) } else { unset(DRAINING, name) };
            Ok(((), Some(news(vec![write]))))
        })
        .await
    }

    async fn forget(&self, node: &NodeName) -> Result<Forgotten> {
        decide(self, &about(node), |looked| {
            let (text, marked) = (row(looked, 0), row(looked, 1));
            let reported: Option<Reported> = text.map(|text| parsed(NODES, text)).transpose()?;
            if reported.is_some_and(|known| looked.at.floor().since(known.at) < ALIVE_FOR) {
                return Ok((Forgotten::Alive, None));
            }
            if text.is_none() && marked.is_none() {
                return Err(unknown(node));
            }
            let mut plan = news(without_report(node.as_str()));
            plan.writes.push(unset(DRAINING, node.as_str()));
            plan.checks.push(still(NODES, node.as_str(), text));
            plan.once = true;
            Ok((Forgotten::Done, Some(plan)))
        })
        .await
    }

    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()> {
        decide(self, &about(node), |looked| {
            let Some(text) = row(looked, 0) else { return Ok(((), None)) };
            let reported: Reported = parsed(NODES, text)?;
            if reported.beat.boot != boot {
                return Ok(((), None));
            }
            let mut plan = news(without_report(node.as_str()));
            plan.checks.push(still(NODES, node.as_str(), Some(text)));
            Ok(((), Some(plan)))
        })
        .await
    }
}

/// Drops what was said by nodes that are silent for so long that no caller asks for them any more.
async fn forget_silent(records: &dyn Records) -> Result<()> {
    let looks = [Look::Rows(NODES.to_owned())];
    decide(records, &looks, |looked| {
        let mut plan = Plan::default();
        for (name, text) in rows(looked, 0) {
            let reported: Reported = parsed(NODES, text)?;
            if looked.at.floor().since(reported.at) > FORGOTTEN_AFTER {
                plan.checks.push(still(NODES, name, Some(text)));
                plan.writes.extend(without_report(name));
            }
        }
        Ok(((), Some(plan).filter(|plan| !plan.writes.is_empty())))
    })
    .await
}

fn about(node: &NodeName) -> [Look; 2] {
    [look_at(NODES, node.as_str()), look_at(DRAINING, node.as_str())]
}

fn unknown(node: &NodeName) -> StoreError {
    StoreError::NotFound(format!("node {node}"))
}

/// What removes the report of a node, and what it defines. Its drain mark stays.
fn without_report(node: &str) -> Vec<Write> {
    [NODES, DEFINITIONS, DIGESTS].map(|table| unset(table, node)).into()
}

fn news(writes: Vec<Write>) -> Plan {
    Plan { writes, tells: vec![Tell::Nodes], ..Plan::default() }
}
