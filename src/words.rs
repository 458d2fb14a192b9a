//! Words: replaced by the branch that owns them.
#![expect(missing_docs, reason = "a placeholder until the merge")]

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Language {
    #[default]
    En,
    Zh,
}

impl Language {
    pub fn from_accept_language(header: &str) -> Self {
        if header.trim_start().starts_with("zh") { Self::Zh } else { Self::En }
    }
}
