//! Why something was refused, twice: in English for programs and the command line, and as a message for people on pages.
//!
//! The two may differ: a program reads which call helps, a person what to press. This file has no sentences and knows no language; the
//! messages are in `words`, and `web` renders them.

use std::fmt::{self, Display};

/// The message of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    text: String,
    message: Option<Message>,
}

/// The name of a message, with its variables.
pub type Message = (&'static str, Vec<(&'static str, String)>);

impl Detail {
    /// The text for programs; for people too, if there is no other.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), message: None }
    }

    /// With the message that tells it to people.
    #[must_use]
    pub fn told(mut self, id: &'static str, args: &[(&'static str, &dyn Display)]) -> Self {
        let args = args.iter().map(|(name, value)| (*name, value.to_string())).collect();
        self.message = Some((id, args));
        self
    }

    /// The same for people, with more words for programs before it.
    #[must_use]
    pub fn after(self, words: &str) -> Self {
        Self { text: format!("{words}{}", self.text), ..self }
    }

    /// The text for programs.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The message for people, if there is one.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }
}

impl Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
