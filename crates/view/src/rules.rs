//! Rules of sources and rotations as the API, the command line's JSON and the audit write them.

use serde::Serialize;

use super::json::{BackoffRule, Quota, WindowRule};
use super::millis;
use soloist_domain::dispatch::Rules as OfSource;
use soloist_domain::name::TypeName;
use soloist_domain::rotation::{Rules as OfRotation, Skip, TypeRules};

/// The rules of a source.
#[derive(Debug, Serialize)]
pub struct SourceRules {
    pub gap_ms: u64,
    pub window: Option<WindowRule>,
    pub cap: Option<u32>,
    pub lease_ms: u64,
    pub max_attempts: u32,
    pub backoff: BackoffRule,
    pub paused: bool,
}

/// The rules of a rotation.
#[derive(Debug, Serialize)]
pub struct RotationRules {
    pub types: Vec<TypeRulesView>,
    pub min_gap_ms: u64,
    pub lease_ms: u64,
    pub skip: Skip,
}

/// The rules of one type of a rotation.
#[derive(Debug, Serialize)]
pub struct TypeRulesView {
    pub name: TypeName,
    pub gap_ms: u64,
    pub quota: Option<Quota>,
}

impl From<&OfSource> for SourceRules {
    fn from(rules: &OfSource) -> Self {
        Self {
            gap_ms: millis(rules.gap),
            window: rules.window.map(Into::into),
            cap: rules.cap,
            lease_ms: millis(rules.lease),
            max_attempts: rules.max_attempts,
            backoff: BackoffRule {
                first_ms: millis(rules.backoff.first),
                max_ms: millis(rules.backoff.max),
            },
            paused: rules.paused,
        }
    }
}

impl From<&OfRotation> for RotationRules {
    fn from(rules: &OfRotation) -> Self {
        let kind = |kind: &TypeRules| TypeRulesView {
            name: kind.name.clone(),
            gap_ms: millis(kind.gap),
            quota: kind.quota.map(Into::into),
        };
        Self {
            types: rules.types.iter().map(kind).collect(),
            min_gap_ms: millis(rules.min_gap),
            lease_ms: millis(rules.lease),
            skip: rules.skip,
        }
    }
}

impl SourceRules {
    /// What the audit says of them when no reason was given: what they are now, and under `was` what they were.
    #[must_use]
    pub fn noted(rules: &OfSource, was: Option<&OfSource>) -> String {
        json(&Self::from(rules), was.map(Self::from).as_ref())
    }
}

impl RotationRules {
    /// As [`SourceRules::noted`].
    #[must_use]
    pub fn noted(rules: &OfRotation, was: Option<&OfRotation>) -> String {
        json(&Self::from(rules), was.map(Self::from).as_ref())
    }
}

#[derive(Serialize)]
struct Changed<'a, T> {
    #[serde(flatten)]
    now: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'a T>,
}

fn json<T: Serialize>(now: &T, was: Option<&T>) -> String {
    // Numbers, names and words: nothing that JSON cannot hold.
    serde_json::to_string(&Changed { now, was }).unwrap_or_default()
}
