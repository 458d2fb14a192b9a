//! Why a channel did not take a message: the common kinds, written in front of what was said, so that each reader is told in the
//! own language and what was said is quoted as it came.
//!
//! It is one line of text in the store, in the API and on a terminal; it is read again only here.

use std::fmt;

use crate::words::{Arg, Language, say, visible};

/// What kind of trouble it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    TimedOut,
    /// No machine has that name.
    UnknownName,
    /// No trusted TLS connection.
    Untrusted,
    /// It ended before the answer.
    BrokenOff,
    /// An answer over HTTP that is none of success.
    Status(String),
    /// An answer with an error code of the service's own, or of a mail server.
    Code(String),
    /// Anything else.
    Other,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Of which kind.
    pub trouble: Trouble,
    /// As it was said.
    pub said: String,
}

/// What stands in front of what was said.
const NAMED: [(Trouble, &str); 5] = [
    (Trouble::Refused, "connection refused"),
    (Trouble::TimedOut, "no answer in time"),
    (Trouble::UnknownName, "name not found"),
    (Trouble::Untrusted, "no trusted TLS connection"),
    (Trouble::BrokenOff, "connection broken off"),
];
const STATUS: &str = "HTTP status ";
const CODE: &str = "error code ";

impl Undelivered {
    /// Of a text that is of no known kind.
    #[must_use]
    pub fn other(said: impl Into<String>) -> Self {
        Self { trouble: Trouble::Other, said: said.into() }
    }

    /// As it was written; what an older version wrote is of no known kind.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let Some((kind, said)) = text.split_once(": ") else { return Self::other(text) };
        let is_code = |code: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !code.is_empty() && code.len() <= 16 && code.chars().all(plain)
        };
        let coded = |prefix| kind.strip_prefix(prefix).filter(|code| is_code(code));
        let named = NAMED.into_iter().find(|(_, word)| *word == kind).map(|(trouble, _)| trouble);
        let status = || coded(STATUS).map(|code| Trouble::Status(code.to_owned()));
        let code = || coded(CODE).map(|code| Trouble::Code(code.to_owned()));
        match named.or_else(status).or_else(code) {
            Some(trouble) => Self { trouble, said: said.to_owned() },
            None => Self::other(text),
        }
    }

    /// For a reader: the kind in the own language, then what was said.
    #[must_use]
    pub fn worded(&self, lang: Language) -> String {
        let (id, code) = match &self.trouble {
            Trouble::Refused => ("undelivered-refused", ""),
            Trouble::TimedOut => ("undelivered-timed-out", ""),
            Trouble::UnknownName => ("undelivered-unknown-name", ""),
            Trouble::Untrusted => ("undelivered-untrusted", ""),
            Trouble::BrokenOff => ("undelivered-broken-off", ""),
            Trouble::Status(code) => ("undelivered-status", code.as_str()),
            Trouble::Code(code) => ("undelivered-code", code.as_str()),
            Trouble::Other => ("undelivered-other", ""),
        };
        let why = say(lang, id, &[("code", Arg::from(code))]);
        let said = visible(&self.said);
        if said.is_empty() {
            return why;
        }
        let args = [("why", Arg::from(why)), ("said", Arg::from(said.into_owned()))];
        say(lang, "undelivered-quoted", &args)
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trouble {
            Trouble::Other => f.write_str(&self.said),
            Trouble::Status(code) => write!(f, "{STATUS}{code}: {}", self.said),
            Trouble::Code(code) => write!(f, "{CODE}{code}: {}", self.said),
            known => {
                let named = NAMED.iter().find(|(trouble, _)| trouble == known);
                write!(f, "{}: {}", named.map_or("", |(_, word)| word), self.said)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read_as_it_was_written_and_told_in_both_languages_with_what_was_said() {
        let coded = [Trouble::Status("500".to_owned()), Trouble::Code("310000".to_owned())];
        let all = NAMED.map(|(trouble, _)| trouble).into_iter().chain(coded);
        for trouble in all.chain([Trouble::Other]) {
            let one = Undelivered { trouble, said: "os error 111: no".to_owned() };
            assert_eq!(Undelivered::read(&one.to_string()), one);
            for (lang, quoted) in
                [(Language::En, "“os error 111: no”"), (Language::Zh, "“os error 111: no”")]
            {
                let text = one.worded(lang);
                assert!(text.contains(quoted) && !text.contains("undelivered-"), "{text}");
            }
            let chinese = one.worded(Language::Zh).replace("os error 111: no", "");
            let latin = chinese.replace(['5', '0', '3', '1'], "").replace("HTTP", "");
            let latin = latin.replace("TLS", "").replace("DNS", "");
            assert!(!latin.contains(|c: char| c.is_ascii_alphanumeric()), "{latin}");
        }
    }

    #[test]
    fn what_an_older_version_or_a_service_wrote_is_only_quoted() {
        for text in ["503 <i>no</i>", "error code <b>: x", "HTTP status : x", "", "a: b"] {
            assert_eq!(Undelivered::read(text), Undelivered::other(text));
        }
    }
}
