//! Rules of sources and rotations in the form of the API, the command line's JSON and the audit.

#![expect(
    missing_docs,
    reason = "the types of `dispatch` and `rotation` say what each means; a length here is whole milliseconds"
)]

use serde::Serialize;

use crate::dispatch::{Rules as OfSource, Window};
use crate::name::TypeName;
use crate::rotation::{Rules as OfRotation, Skip, TypeRules};
use crate::time::millis;

/// At most `count` starts in any stretch of `ms` milliseconds.
#[derive(Debug, Serialize)]
pub struct CountRule {
    pub count: u32,
    pub ms: u64,
}

/// The first wait before another try, and the longest.
#[derive(Debug, Serialize)]
pub struct BackoffRule {
    pub first_ms: u64,
    pub max_ms: u64,
}

impl From<Window> for CountRule {
    fn from(window: Window) -> Self {
        Self { count: window.count, ms: millis(window.span) }
    }
}

/// The rules of a source.
#[derive(Debug, Serialize)]
pub struct SourceRules {
    pub gap_ms: u64,
    pub window: Option<CountRule>,
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
    pub quota: Option<CountRule>,
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
