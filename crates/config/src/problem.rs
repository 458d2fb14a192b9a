//! What is wrong with a configuration, where, and what to do about it.
//!
//! Problems are collected, never returned one by one: an operator repairs a file in one go. Sorting and printing
//! live here so that `check`, `serve` and every other command say the same.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The configuration file; lines and columns count from 1, no line means the file as a whole.
    File {
        /// As it was named.
        path: PathBuf,
        /// The line of the value or key.
        line: Option<usize>,
        /// Only for mistakes of TOML syntax.
        column: Option<usize>,
    },
    /// An environment variable.
    Env(String),
    /// An option of the command line.
    Option(&'static str),
    /// It was not given: a default.
    Default,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => {
                write!(f, "{}", path.display())?;
                for number in [line, column].into_iter().flatten() {
                    write!(f, ":{number}")?;
                }
                Ok(())
            }
            Self::Env(name) => write!(f, "${name}"),
            Self::Option(name) => f.write_str(name),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One thing to repair, or (as a warning) to think about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// Key path such as `job.outbound.lease_ttl`; empty when it concerns the file.
    pub key: String,
    /// What is wrong and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)
    }
}

/// Everything that is wrong, in the order of the file; never empty when it is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Notes one.
    pub fn add(&mut self, place: Place, key: impl Into<String>, text: impl Into<String>) {
        self.0.push(Problem { place, key: key.into(), text: text.into() });
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts them in the order of the file, what came from elsewhere last.
    pub(super) fn sort(&mut self) {
        self.0.sort_by(|a, b| a.place.cmp(&b.place));
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
