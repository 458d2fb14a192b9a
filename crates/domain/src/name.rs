//! Names and ids: validated once at the edge, then passed around as types that cannot be mixed up.
//!
//! A name is `[a-z0-9][a-z0-9._-]{0,63}`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::detail::Detail;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a valid name: use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit"
)]
pub struct InvalidName {
    /// The text as it was given.
    pub given: String,
}

impl InvalidName {
    /// The same for programs and for people.
    #[must_use]
    pub fn detail(&self) -> Detail {
        Detail::new(self.to_string()).told("refused-name", &[("name", &self.given)])
    }
}

fn check(text: &str) -> Result<(), InvalidName> {
    let first = text.bytes().next();
    let head = first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let body = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'));
    if head && body && text.len() <= 64 {
        Ok(())
    } else {
        Err(InvalidName { given: text.chars().take(80).collect() })
    }
}

/// Texts of one kind: `check` refuses with `Invalid` what is none.
macro_rules! texts {
    ($check:ident, $invalid:ident: $($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and wraps a text.
            ///
            /// # Errors
            #[doc = concat!("[`", stringify!($invalid), "`], which says what is allowed.")]
            pub fn new(text: &str) -> Result<Self, $invalid> {
                $check(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// As text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $invalid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $invalid;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.to_string()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

texts! { check, InvalidName:
    /// A job: a script that runs exactly once in the cluster.
    JobName;
    /// A node: one `soloist serve` process.
    NodeName;
    /// An account.
    UserName;
    /// Where tasks come from.
    SourceName;
    /// Types of work that take turns.
    RotationName;
    /// One of those types.
    TypeName;
}

/// Longest label, in bytes.
const LONGEST_LABEL: usize = 128;

/// Why a text is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not valid here: use 1 to 128 printable ASCII characters without spaces")]
pub struct InvalidLabel {
    /// The text as it was given.
    pub given: String,
}

fn check_label(text: &str) -> Result<(), InvalidLabel> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if plain && !text.is_empty() && text.len() <= LONGEST_LABEL {
        Ok(())
    } else {
        Err(InvalidLabel { given: text.chars().take(80).collect() })
    }
}

texts! { check_label, InvalidLabel:
    /// A collector, as it calls itself: often a host name with a number.
    CollectorName;
    /// A worker that takes turns, by the name that it gives itself.
    WorkerName;
    /// Chosen by a client for one request, so that asking again is the same request.
    RequestId;
}

/// Longest text of a tick that a caller names, in bytes.
const LONGEST_TICK: usize = 200;

/// Why a text cannot name a tick.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} cannot name a tick: {why}")]
pub struct InvalidTick {
    /// The text as it was given, or its begin.
    pub given: String,
    /// What is wrong, and what to write.
    pub why: String,
}

fn check_tick(text: &str) -> Result<(), InvalidTick> {
    let control = text.chars().find(|one| one.is_control());
    let why = if text.trim().is_empty() {
        "it is empty: write what tells this run from all others, for example 2026-11-27".to_owned()
    } else if text.len() > LONGEST_TICK {
        format!(
            "it has {} bytes, and {LONGEST_TICK} are the most: write less, or a hash of it",
            text.len()
        )
    } else if let Some(control) = control {
        format!(
            "it has the control character U+{:04X}: write one line of letters, digits, signs and spaces",
            u32::from(control)
        )
    } else {
        return Ok(());
    };
    Err(InvalidTick { given: text.chars().take(80).collect(), why })
}

texts! { check_tick, InvalidTick:
    /// What one run of a name is for, as its caller says it: 1 to 200 bytes without control characters, compared byte by byte.
    TickText;
}

impl NodeName {
    /// Stands for a node whose name is not known any more.
    #[must_use]
    pub fn unknown() -> Self {
        Self(Arc::from("unknown"))
    }
}

impl TypeName {
    /// What a job takes turns as.
    #[must_use]
    pub fn of(job: &JobName) -> Self {
        Self(Arc::clone(&job.0))
    }
}

impl WorkerName {
    /// How the names begin under which jobs take turns.
    pub const OF_JOBS: &str = "job/";

    /// Who takes turns for a job: only the one process that holds its lease.
    #[must_use]
    pub fn of(job: &JobName) -> Self {
        Self(format!("{}{job}", Self::OF_JOBS).into())
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// Random per acquisition, never a host or a process: asking again with the same owner is harmless,
    /// and a process that was restarted under the same name is not taken for the old one.
    Owner;
    /// One execution of a job's command; a ULID, so runs sort by their beginning.
    RunId;
}

impl Owner {
    /// How the owners begin that are programs, which hold a lease over HTTP.
    pub const OF_PROGRAMS: &str = "program-";
    /// How the owners begin that stand for a program whose lease the store forgot. No secret leads to such an owner.
    const KEPT_BACK: &str = "program-kept-";

    /// Whether a program holds the lease, and no process of Soloist.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.0.starts_with(Self::OF_PROGRAMS)
    }

    /// As whom a node keeps the name of this program's lease back, after a store has forgotten the lease.
    #[must_use]
    pub fn kept_back(&self) -> Self {
        let whose = self.0.strip_prefix(Self::OF_PROGRAMS).unwrap_or(&self.0);
        Self(format!("{}{whose}", Self::KEPT_BACK))
    }

    /// Whether nobody holds the lease: a node keeps its name back.
    #[must_use]
    pub fn is_kept_back(&self) -> bool {
        self.0.starts_with(Self::KEPT_BACK)
    }
}

/// A client that waits at a node for work or for a turn: `NODE/RANDOM/NUMBER`, printable and without spaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Waiter(pub String);

impl Waiter {
    /// Which incarnation of its node: `NODE/RANDOM`.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(incarnation, _)| incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_its_pattern() {
        for good in ["a", "9", "node-a", "x.y_z-1", &"a".repeat(64)] {
            assert!(JobName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "A", "a b", "ä", "a/b", &"a".repeat(65)] {
            assert!(JobName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tick_is_any_line_of_at_most_200_bytes() {
        for good in ["1", "2026-11-27", " a ", "订单 10248/%2F'\"", &"é".repeat(100)] {
            assert!(TickText::new(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", "it is empty"),
            (" \u{3000}", "it is empty"),
            (&"é".repeat(101), "it has 202 bytes"),
            ("a\nb", "U+000A"),
            ("\u{7f}", "U+007F"),
            ("a\0", "U+0000"),
            ("\u{85}b", "U+0085"),
        ] {
            let error = TickText::new(bad).expect_err(bad).to_string();
            assert!(error.contains(why) && error.contains("write"), "{error}");
        }
    }
}
