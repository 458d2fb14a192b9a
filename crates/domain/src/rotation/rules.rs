//! The rules of a rotation, and what is wrong with them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dispatch::{LEASES, Window};
use crate::fields::{
    Field, Fields, Given, InvalidRules, Lists, MILLISECOND, Unit, Word, YEAR, length, micros, small,
};
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

const MOST_TYPES: usize = 50;
/// The starts of a quota are remembered one by one.
const LARGEST_QUOTA: u64 = 1_000;

impl Default for Rules {
    fn default() -> Self {
        let (zero, skip) = (Duration::ZERO, Skip::Absent);
        Self { types: Vec::new(), min_gap: zero, lease: zero, skip }.filled()
    }
}

impl Fields for Rules {
    const BESIDE: &'static [&'static str] = &["types", "reason"];
    const FIELDS: &'static [Field<Self>] = &[
        Field::<Self>::new(
            "min_gap_ms",
            Unit::Length,
            (0, YEAR),
            |rules| Some(micros(rules.min_gap)),
            |rules, gap| rules.min_gap = length(gap),
        )
        .default(0)
        .option("min-gap", "Least time between the starts of two turns, whatever their types")
        .form("rules-turns", "field-min-gap", "means-min-gap")
        .said("rule-min-gap", "time", Lists::All),
        Field::<Self>::new(
            "lease_ms",
            Unit::Length,
            LEASES,
            |rules| Some(micros(rules.lease)),
            |rules, lease| rules.lease = length(lease),
        )
        .default(30_000 * MILLISECOND)
        .option("lease", "How long a turn lasts that is neither extended nor passed")
        .form("rules-turns", "field-turn-lease", "means-turn-lease")
        .said("rule-lease", "time", Lists::All),
        Field::<Self>::new(
            "skip",
            Unit::Word(&[
                Word { word: "absent", choice: "skip-absent", clause: "rule-skip-absent" },
                Word { word: "never", choice: "skip-never", clause: "rule-skip-never" },
            ]),
            (0, 1),
            |rules| Some(u64::from(rules.skip == Skip::Never)),
            |rules, skip| rules.skip = if skip == 0 { Skip::Absent } else { Skip::Never },
        )
        .default(0)
        .option("skip", "What becomes of a type that nobody waits for when its turn comes: it is skipped when absent, or never")
        .form("rules-turns", "field-skip", "means-skip")
        .said("rule-skip", "", Lists::All),
    ];
}

impl Fields for TypeRules {
    const BESIDE: &'static [&'static str] = &["name"];
    const FIELDS: &'static [Field<Self>] = &[
        Field::<Self>::new(
            "gap_ms",
            Unit::Length,
            (0, YEAR),
            |kind| Some(micros(kind.gap)),
            |kind, gap| kind.gap = length(gap),
        )
        .default(0)
        .option("gap", "Least time between two starts of this type")
        .form("rules-type", "field-type-gap", "means-type-gap")
        .said("rule-gap", "time", Lists::All),
        Field::<Self>::new(
            "quota.count",
            Unit::Count,
            (1, LARGEST_QUOTA),
            |kind| kind.quota.map(|quota| quota.count.into()),
            |kind, count| kind.quota.get_or_insert_default().count = small(count),
        )
        .option("quota", "Most starts of this type in any stretch of time")
        .form("rules-type", "field-quota-count", "means-quota-count")
        .said("rule-window", "n", Lists::All),
        Field::<Self>::new(
            "quota.ms",
            Unit::Length,
            (MILLISECOND, YEAR),
            |kind| kind.quota.map(|quota| micros(quota.span)),
            |kind, span| kind.quota.get_or_insert_default().span = length(span),
        )
        .option("quota", "That stretch of time")
        .form("rules-type", "field-quota-span", "means-quota-span")
        .said("rule-window", "time", Lists::All),
    ];
}

/// The rules of a rotation as they are sent, answered and noted.
#[derive(Debug, Serialize)]
pub struct Written<'r> {
    types: Vec<WrittenType<'r>>,
    #[serde(flatten)]
    rules: Given<Rules>,
}

#[derive(Debug, Serialize)]
struct WrittenType<'r> {
    name: &'r TypeName,
    #[serde(flatten)]
    rules: Given<TypeRules>,
}

impl<'r> Written<'r> {
    /// These.
    #[must_use]
    pub fn of(rules: &'r Rules) -> Self {
        let kind = |kind: &'r TypeRules| WrittenType { name: &kind.name, rules: Given::of(kind) };
        Self { types: rules.types.iter().map(kind).collect(), rules: Given::of(rules) }
    }
}

impl TypeRules {
    /// A type of this name, without rules of its own.
    #[must_use]
    pub fn of(name: TypeName) -> Self {
        Self { name, gap: Duration::ZERO, quota: None }
    }
}

impl Rules {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is wrong.
    pub fn check(&self) -> Result<(), InvalidRules> {
        if !(1..=MOST_TYPES).contains(&self.types.len()) {
            return Err(InvalidRules::new("types", "from 1 to 50 types that take turns"));
        }
        Given::of(self).check()?;
        for (nth, kind) in self.types.iter().enumerate() {
            if self.types[..nth].iter().any(|other| other.name == kind.name) {
                return Err(InvalidRules::new(format!("types[{nth}].name"), "each type once"));
            }
            Given::of(kind).check().map_err(|wrong| wrong.of_type(nth))?;
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
