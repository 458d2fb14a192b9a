//! Rules of sources and rotations as the API, the command line's JSON and the audit write them.

use std::time::Duration;

use serde::Serialize;

use crate::domain::dispatch::{Rules as OfSource, Window};
use crate::domain::name::TypeName;
use crate::domain::rotation::{Rules as OfRotation, Skip, TypeRules};

/// At most `count` starts in any stretch of `ms` milliseconds.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names of the rules of a source, as the API has them")]
pub struct WindowView {
    pub count: u32,
    pub ms: u64,
}

/// Of a source.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names of the rules of a source, as the API has them")]
pub struct SourceRules {
    pub gap_ms: u64,
    pub window: Option<WindowView>,
    pub cap: Option<u32>,
    pub lease_ms: u64,
    pub max_attempts: u32,
    pub backoff: BackoffView,
    pub paused: bool,
}

/// How long a task waits for its next attempt.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names of the rules of a source, as the API has them")]
pub struct BackoffView {
    pub first_ms: u64,
    pub max_ms: u64,
}

/// Of a rotation.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names of the rules of a rotation, as the API has them")]
pub struct RotationRules {
    pub types: Vec<TypeRulesView>,
    pub min_gap_ms: u64,
    pub lease_ms: u64,
    pub skip: Skip,
}

/// Of one type of a rotation.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names of the rules of a rotation, as the API has them")]
pub struct TypeRulesView {
    pub name: TypeName,
    pub gap_ms: u64,
    pub quota: Option<WindowView>,
}

impl From<&OfSource> for SourceRules {
    fn from(rules: &OfSource) -> Self {
        Self {
            gap_ms: ms(rules.gap),
            window: rules.window.map(window),
            cap: rules.cap,
            lease_ms: ms(rules.lease),
            max_attempts: rules.max_attempts,
            backoff: BackoffView {
                first_ms: ms(rules.backoff.first),
                max_ms: ms(rules.backoff.max),
            },
            paused: rules.paused,
        }
    }
}

impl From<&OfRotation> for RotationRules {
    fn from(rules: &OfRotation) -> Self {
        let kind = |kind: &TypeRules| TypeRulesView {
            name: kind.name.clone(),
            gap_ms: ms(kind.gap),
            quota: kind.quota.map(window),
        };
        Self {
            types: rules.types.iter().map(kind).collect(),
            min_gap_ms: ms(rules.min_gap),
            lease_ms: ms(rules.lease),
            skip: rules.skip,
        }
    }
}

impl SourceRules {
    /// What the audit says of them when nobody gave a reason: what they are now.
    #[must_use]
    pub fn noted(rules: &OfSource) -> String {
        json(&Self::from(rules))
    }
}

impl RotationRules {
    /// As [`SourceRules::noted`].
    #[must_use]
    pub fn noted(rules: &OfRotation) -> String {
        json(&Self::from(rules))
    }
}

fn json(rules: &impl Serialize) -> String {
    // Numbers, names and words: nothing that JSON cannot hold.
    serde_json::to_string(rules).unwrap_or_default()
}

fn window(Window { count, span }: Window) -> WindowView {
    WindowView { count, ms: ms(span) }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
