//! The chain of hashes of an export of the audit: made line by line, and followed.
//!
//! A line is JSON as RFC 8785 writes it: members in the order of their names, no spaces. Its `hash` is the SHA-256, in hexadecimal
//! digits, of `prev` followed by the line without `hash`; its `prev` is the `hash` of the line before, at first 64 zeros. The last line,
//! `{"end":true,...}`, says how many came before it, so that a cut end shows.
//!
//! There is no key: a person who changes a file can make its chain anew. The last hash says so, if it was kept elsewhere.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The members of a line.
pub type Members = serde_json::Map<String, Value>;

/// A chain that is being made.
#[derive(Debug, Clone)]
pub struct Chain {
    prev: String,
    lines: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { prev: "0".repeat(64), lines: 0 }
    }
}

impl Chain {
    /// The next line, with its line end.
    #[must_use]
    pub fn line(&mut self, entry: Members) -> String {
        self.lines += 1;
        self.linked(entry)
    }

    /// How many lines there are so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.lines
    }

    /// The hash of the newest line.
    #[must_use]
    pub fn newest(&self) -> &str {
        &self.prev
    }

    /// The last line.
    #[must_use]
    pub fn end(&mut self) -> String {
        let end = [("end", true.into()), ("lines", self.lines.into())];
        self.linked(end.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn linked(&mut self, mut members: Members) -> String {
        members.insert("prev".to_owned(), self.prev.clone().into());
        let hash = self.hash(&canonical(&members));
        members.insert("hash".to_owned(), hash.clone().into());
        self.prev = hash;
        canonical(&members) + "\n"
    }

    fn hash(&self, line: &str) -> String {
        let mut sum = Sha256::new();
        sum.update(&self.prev);
        sum.update(line);
        sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// JSON with the members in the order of their names.
fn canonical(members: &Members) -> String {
    let sorted: std::collections::BTreeMap<_, _> = members.iter().collect();
    serde_json::to_string(&sorted).unwrap_or_default()
}

/// What a chain that is whole says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// How many entries.
    pub lines: u64,
    /// The hash of its last line.
    pub hash: String,
}

/// Where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Broken {
    /// From 1.
    pub line: u64,
    /// In which way.
    pub what: &'static str,
}

/// Follows the chain of an export from its first line to its last.
///
/// # Errors
/// [`Broken`]; [`std::io::Error`] of reading.
pub fn verify(
    lines: impl Iterator<Item = std::io::Result<String>>,
) -> std::io::Result<Result<Whole, Broken>> {
    let (mut chain, mut newest, mut nth, mut whole) = (Chain::default(), 0, 0, None);
    for text in lines {
        let text = text?;
        nth += 1;
        let broken = |what| Ok(Err(Broken { line: nth, what }));
        if whole.is_some() {
            return broken("there is something behind the end");
        }
        let Ok(mut members) = serde_json::from_str::<Members>(&text) else {
            return broken("this is no JSON object");
        };
        if canonical(&members) != text {
            return broken("this is not written as an export writes it");
        }
        let Some(Value::String(hash)) = members.remove("hash") else {
            return broken("it has no hash");
        };
        if members.get("prev").and_then(Value::as_str) != Some(&chain.prev) {
            return broken(
                "it does not follow the line before: a line was changed, removed, inserted or moved",
            );
        }
        if chain.hash(&canonical(&members)) != hash {
            return broken("it was changed: it has another hash");
        }
        if members.contains_key("end") {
            if members.get("lines").and_then(Value::as_u64) != Some(chain.lines) {
                return broken("it says another number of entries than there are");
            }
            whole = Some(Whole { lines: chain.lines, hash });
            continue;
        }
        let id = members.get("id").and_then(Value::as_u64).unwrap_or_default();
        if id <= newest {
            return broken("its id is not greater than that of the entry before");
        }
        (newest, chain.prev, chain.lines) = (id, hash, chain.lines + 1);
    }
    let cut = Broken { line: nth + 1, what: "the end is missing: the file was cut off here" };
    Ok(whole.ok_or(cut))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn export(ids: &[u64]) -> Vec<String> {
        let mut chain = Chain::default();
        let mut lines: Vec<String> = Vec::new();
        for id in ids {
            let entry =
                json!({"id": id, "who": "li", "reason": "\u{1b}[31m \"quoted\" 出库", "count": 1});
            lines.push(chain.line(entry.as_object().expect("an object").clone()));
        }
        lines.push(chain.end());
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn verified(lines: &[String]) -> Result<Whole, Broken> {
        verify(lines.iter().cloned().map(Ok)).expect("read")
    }

    fn broken_at(lines: &[String]) -> u64 {
        verified(lines).expect_err("broken").line
    }

    #[test]
    fn a_line_that_is_changed_removed_inserted_moved_or_cut_breaks_the_chain_there() {
        let good = export(&[3, 5, 9, 12]);
        let whole = verified(&good).expect("unbroken");
        assert_eq!((whole.lines, whole.hash.len()), (4, 64));
        assert_eq!(verified(&export(&[])).expect("unbroken").lines, 0);
        for nth in 0..good.len() {
            let at = nth as u64 + 1;
            let mut changed = good.clone();
            changed[nth] = changed[nth].replacen("li", "ki", 1);
            assert_eq!(broken_at(&changed), at);
            let mut twice = good.clone();
            twice.insert(nth, good[nth].clone());
            assert_eq!(broken_at(&twice), at + 1);
            let mut removed = good.clone();
            removed.remove(nth);
            assert_eq!(broken_at(&removed), at, "without line {at}");
            assert_eq!(broken_at(&good[..nth]), at, "cut off");
            let mut spaced = good.clone();
            spaced[nth].push(' ');
            assert_eq!(broken_at(&spaced), at);
        }
        for nth in 1..good.len() {
            let mut moved = good.clone();
            moved.swap(nth - 1, nth);
            assert_eq!(broken_at(&moved), nth as u64);
        }
        // A member that stands twice says two things.
        let mut doubled = good.clone();
        doubled[1] = doubled[1].replacen('{', "{\"count\":1,", 1);
        assert_eq!(broken_at(&doubled), 2);
    }

    #[test]
    fn numbers_only_grow_even_in_a_chain_that_was_made_anew() {
        assert_eq!(broken_at(&export(&[3, 9, 5])), 3);
        assert_eq!(broken_at(&export(&[3, 3])), 2);
    }
}
