//! The rules of a rotation, and what is wrong with them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dispatch::{LONGEST, Window};
use crate::name::TypeName;

/// A type of work that takes turns with others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TypeRules {
    /// Unique within its rotation.
    pub name: TypeName,
    /// Least time between two starts of this type; zero for none of its own.
    pub gap: Duration,
    /// Most starts of this type in a sliding window. Of the starts before the quota was set, or set to more, only as many
    /// are counted as the earlier one counted.
    pub quota: Option<Window>,
}

/// What becomes of a type that has no waiter when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Skip {
    /// It is passed over. So is one that is inside its own gap, or whose quota is used up.
    #[default]
    Absent,
    /// All other types wait for it.
    Never,
}

/// How types take turns: one at a time, in cyclic order among those that have a waiter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rules {
    /// In their cyclic order.
    pub types: Vec<TypeRules>,
    /// Least time between the starts of two turns, whatever their types; zero for none.
    pub min_gap: Duration,
    /// How long a turn lasts that is neither extended nor passed.
    pub lease: Duration,
    /// What becomes of the absent.
    pub skip: Skip,
}

/// Why rules cannot be kept; names the field as in JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
#[expect(missing_docs, reason = "as said above")]
pub struct InvalidRules {
    pub field: String,
    pub problem: &'static str,
}

const MOST_TYPES: usize = 50;
const SHORTEST_LEASE: Duration = Duration::from_millis(100);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);
/// The starts of a quota are remembered one by one.
const LARGEST_QUOTA: u32 = 1_000;

impl Rules {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is wrong.
    pub fn check(&self) -> Result<(), InvalidRules> {
        let wrong = |field: &str, problem| Err(InvalidRules { field: field.to_owned(), problem });
        if !(1..=MOST_TYPES).contains(&self.types.len()) {
            return wrong("types", "from 1 to 50 types that take turns");
        }
        if self.min_gap > LONGEST {
            return wrong("min_gap_ms", "at most a year");
        }
        if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&self.lease) {
            return wrong("lease_ms", "from 100 to 86400000 (a day)");
        }
        for (nth, kind) in self.types.iter().enumerate() {
            let of = |field: &str| format!("types[{nth}].{field}");
            if self.types[..nth].iter().any(|other| other.name == kind.name) {
                return wrong(&of("name"), "each type once");
            }
            if kind.gap > LONGEST {
                return wrong(&of("gap_ms"), "at most a year");
            }
            if let Some(quota) = kind.quota {
                if !(1..=LARGEST_QUOTA).contains(&quota.count) {
                    return wrong(&of("quota.count"), "from 1 to 1000; leave `quota` out for none");
                }
                if quota.span.is_zero() || quota.span > LONGEST {
                    return wrong(&of("quota.ms"), "from 1 to a year; leave `quota` out for none");
                }
            }
        }
        Ok(())
    }

    /// One of its types.
    #[must_use]
    pub fn of(&self, kind: &TypeName) -> Option<&TypeRules> {
        self.types.iter().find(|one| &one.name == kind)
    }

    pub(super) fn place(&self, kind: &TypeName) -> Option<usize> {
        self.types.iter().position(|one| &one.name == kind)
    }
}
