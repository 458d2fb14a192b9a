//! What a node reports about the definition of a job, so that others can compare it with their own and show a job that they do not
//! define; and the differences.
//!
//! Values are reported as hashes, so that the store learns no secret of an `env`. It compares and decides nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::{JobName, NodeName, RotationName};

/// Stands among the keys that differ for a node that does not define the job at all.
pub const MISSING: &str = "missing";

/// Among the keys that differ: the zone table of the node gives other times for the schedule. No key of the file is called so.
pub const ZONE_TABLE: &str = "zone_table";

/// Everything that a node defines.
pub type Definitions = BTreeMap<JobName, Definition>;

/// A job as one node defines it: what others need to show it, and a hash of each key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the job's configuration")]
pub struct Definition {
    pub title_en: String,
    pub title_zh: String,
    pub lease_ttl_ms: u64,
    pub min_uptime_ms: u64,
    pub stop_grace_ms: u64,
    /// A program takes its lease; unknown to nodes of an older version.
    #[serde(default)]
    pub external: bool,
    #[serde(default)]
    pub group: Option<String>,
    #[serde(default)]
    pub max_runtime_ms: Option<u64>,
    pub nodes: Vec<String>,
    pub operators: Vec<String>,
    /// All, if a node of an older version does not say.
    #[serde(default = "everybody")]
    pub viewers: Vec<String>,
    pub rotation: Option<RotationName>,
    /// The text of its schedule; unknown to nodes of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Of all keys, but of `env` only the names: every user who may look sees this hash, and a short value can be guessed
    /// from its hash.
    pub hash: String,
    /// Of each key alone, `env` with its values: only the store and the nodes see these.
    pub keys: BTreeMap<String, String>,
}

impl Definition {
    /// The keys in which this one differs from `other`.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> Vec<String> {
        let differs = |key: &str, mine: &str, theirs: &str| match key {
            // What is told of zones is of one month: around its end nodes may tell of two.
            ZONE_TABLE => month(mine) == month(theirs) && mine != theirs,
            _ => mine != theirs,
        };
        let keys = self.keys.iter().filter(|(key, mine)| {
            other.keys.get(*key).is_some_and(|theirs| differs(key, mine, theirs))
        });
        keys.map(|(key, _)| key.clone()).collect()
    }
}

/// Of which month a `MONTH:HASH` is.
fn month(told: &str) -> &str {
    told.split(':').next().unwrap_or_default()
}

fn everybody() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A node whose definition of a job is not the one that most have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Which.
    pub node: NodeName,
    /// The keys, or [`MISSING`] alone.
    pub differs: Vec<String>,
}

/// The definition that most of `told` have; of several such the one of the node that comes first by name.
#[must_use]
pub fn agreed<'a>(told: &[(&'a NodeName, &'a Definition)]) -> Option<&'a Definition> {
    let alike = |one: &Definition| told.iter().filter(|(_, other)| other.keys == one.keys).count();
    let best = told.iter().max_by(|(left_node, left), (right_node, right)| {
        alike(left).cmp(&alike(right)).then_with(|| right_node.cmp(left_node))
    });
    best.map(|(_, definition)| *definition)
}

/// Who defines a job otherwise than most do, or not at all. `told` are the living nodes that tell their definitions; keys
/// that only one of two versions of the program knows are not compared.
#[must_use]
pub fn drift(told: &[(&NodeName, Option<&Definition>)]) -> Vec<Drift> {
    // Nearly always, and asked for every picture of every job.
    if let [(_, Some(first)), others @ ..] = told
        && others.iter().all(|(_, own)| own.is_some_and(|own| own.keys == first.keys))
    {
        return Vec::new();
    }
    let defined: Vec<_> = told.iter().filter_map(|(node, own)| Some((*node, (*own)?))).collect();
    let Some(agreed) = agreed(&defined) else { return Vec::new() };
    let differing = |own: Option<&Definition>| match own {
        None => vec![MISSING.to_owned()],
        Some(own) => own.differs_from(agreed),
    };
    told.iter()
        .map(|(node, own)| Drift { node: (*node).clone(), differs: differing(*own) })
        .filter(|drift| !drift.differs.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(keys: &[(&str, &str)]) -> Definition {
        let hash = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Definition {
            title_en: String::new(),
            title_zh: String::new(),
            lease_ttl_ms: 5_000,
            min_uptime_ms: 5_000,
            stop_grace_ms: 2_000,
            external: false,
            group: None,
            max_runtime_ms: None,
            nodes: Vec::new(),
            operators: Vec::new(),
            viewers: Vec::new(),
            rotation: None,
            schedule: None,
            hash: String::new(),
            keys: keys.iter().map(hash).collect(),
        }
    }

    fn said(told: &[(&str, Option<Definition>)]) -> Vec<(String, Vec<String>)> {
        let names: Vec<NodeName> = told.iter().map(|(name, _)| name.parse().unwrap()).collect();
        let told: Vec<_> = names.iter().zip(told).map(|(n, (_, own))| (n, own.as_ref())).collect();
        drift(&told).into_iter().map(|drift| (drift.node.to_string(), drift.differs)).collect()
    }

    #[test]
    fn who_stands_alone_differs_and_every_key_is_named() {
        let most = definition(&[("command", "a"), ("env", "x"), ("repeat", "1s")]);
        let other = definition(&[("command", "b"), ("env", "y"), ("repeat", "1s")]);
        let told = [
            ("node-a", Some(other)),
            ("node-b", Some(most.clone())),
            ("node-c", Some(most)),
            ("node-d", None),
        ];
        let differs = vec!["command".to_owned(), "env".to_owned()];
        let missing = vec![MISSING.to_owned()];
        assert_eq!(said(&told), [("node-a".to_owned(), differs), ("node-d".to_owned(), missing)]);
    }

    #[test]
    fn of_two_nodes_every_viewer_names_the_same_one() {
        let (left, right) = (definition(&[("command", "a")]), definition(&[("command", "b")]));
        let expected = [("node-b".to_owned(), vec!["command".to_owned()])];
        let told = [("node-a", Some(left)), ("node-b", Some(right))];
        assert_eq!(said(&told), expected);
        let [first, second] = told;
        assert_eq!(said(&[second, first]), expected, "in whatever order they are read");
    }

    #[test]
    fn another_zone_table_differs_and_another_month_does_not() {
        let zone = |told| definition(&[("schedule", "a"), (ZONE_TABLE, told)]);
        let told = |one, two| [("node-a", Some(zone(one))), ("node-b", Some(zone(two)))];
        let differs = vec![ZONE_TABLE.to_owned()];
        assert_eq!(said(&told("2026-11:x", "2026-11:y")), [("node-b".to_owned(), differs)]);
        assert!(said(&told("2026-11:x", "2026-12:y")).is_empty());
        assert!(said(&told("2026-11:x", "2026-11:x")).is_empty());
    }

    #[test]
    fn a_key_that_only_a_newer_program_knows_is_no_drift() {
        let old = definition(&[("command", "a")]);
        let new = definition(&[("command", "a"), ("group", "g")]);
        assert!(said(&[("node-a", Some(old)), ("node-b", Some(new))]).is_empty());
        assert!(said(&[("node-a", None), ("node-b", None)]).is_empty(), "defined by nobody");
    }
}
