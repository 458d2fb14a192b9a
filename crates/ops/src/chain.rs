//! The chain of hashes of an export of the audit: made line by line, and followed.
//!
//! A line is JSON as RFC 8785 writes it: members in the order of their names, no spaces. Its `hash` is the SHA-256, in hexadecimal
//! digits, of `prev` followed by the line without `hash`; its `prev` is the `hash` of the line before. The first line,
//! `{"begin":true,...}`, says what was asked for, by whom, and up to which number; its `prev` is the last hash of the export before, or 64
//! zeros. The last line, `{"end":true,...}`, says how many entries came before it, so that a cut end shows, and which are the first and
//! the last.
//!
//! There is no key: a person who changes a file can make its chain anew. The last hash shows it, if it was kept elsewhere or begins the
//! next export.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The members of a line.
pub type Members = serde_json::Map<String, Value>;

/// A chain that is being made.
#[derive(Debug, Clone)]
pub struct Chain {
    prev: String,
    lines: u64,
    /// The numbers of the first and the last entry.
    ends: Option<(u64, u64)>,
}

/// What was asked for when an export was made.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The account that asked; a person with the store itself has none.
    pub by: Option<String>,
    /// Its role: it decides which entries are seen, and with which addresses.
    pub role: &'static str,
    /// The filter: names of parameters, and what was given.
    pub asked: Vec<(&'static str, String)>,
    /// The number of the newest entry of all when it was made.
    pub newest: u64,
    /// The last hash of the export before.
    pub since_hash: Option<String>,
}

/// Whether this can be the hash of a line.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Chain {
    /// A chain with its first line.
    #[must_use]
    pub fn begin(head: Head) -> (Self, String) {
        let prev = head.since_hash.unwrap_or_else(nothing_before);
        let mut chain = Self { prev, lines: 0, ends: None };
        let asked = head.asked.into_iter().map(|(name, text)| (name.to_owned(), text.into()));
        let asked: std::collections::BTreeMap<String, Value> = asked.collect();
        let members = [
            ("begin", true.into()),
            ("by", head.by.into()),
            ("role", head.role.into()),
            ("asked", asked.into_iter().collect::<Members>().into()),
            ("newest", head.newest.into()),
        ];
        let line = chain
            .linked(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect());
        (chain, line)
    }

    /// The next line, with its line end.
    #[must_use]
    pub fn line(&mut self, entry: Members) -> String {
        self.count(entry.get("id").and_then(Value::as_u64).unwrap_or_default());
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
        let mut end = vec![("end", true.into()), ("lines", self.lines.into())];
        if let Some((first, last)) = self.ends {
            end.extend([("first", first.into()), ("last", last.into())]);
        }
        self.linked(end.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn count(&mut self, id: u64) {
        self.lines += 1;
        self.ends = Some((self.ends.map_or(id, |(first, _)| first), id));
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

fn nothing_before() -> String {
    "0".repeat(64)
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
    /// What was asked for, as its first line says; `None`: a version made it that did not say so.
    pub head: Option<Members>,
    /// The last hash of the export before; `None`: it begins anew.
    pub since_hash: Option<String>,
    /// The numbers of the first and the last entry.
    pub ends: Option<(u64, u64)>,
}

impl Whole {
    /// What it holds and whom it follows, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let numbers = match self.ends {
            Some((first, last)) => {
                let missing = (last - first + 1).saturating_sub(self.lines);
                format!("numbers {first} to {last}, {missing} of these are not in it")
            }
            None => "no entry".to_owned(),
        };
        let follows = match &self.since_hash {
            Some(hash) => format!("follows the export that ended with {hash}"),
            None => "follows no other export".to_owned(),
        };
        let Some(head) = &self.head else {
            return format!("{numbers}; {follows}; it does not say what was asked for");
        };
        let text = |name: &str| head.get(name).and_then(Value::as_str);
        let by = text("by").map_or_else(|| "at the store".to_owned(), |by| format!("by {by}"));
        let asked = head.get("asked").and_then(Value::as_object);
        let asked: Vec<String> = asked
            .into_iter()
            .flatten()
            .map(|(name, text)| format!("{name}={}", text.as_str().unwrap_or_default()))
            .collect();
        let what = match asked.as_slice() {
            [] => "everything".to_owned(),
            asked => format!("only {}", asked.join(" ")),
        };
        let (role, newest) = (text("role").unwrap_or_default(), head.get("newest"));
        let newest = newest.and_then(Value::as_u64).unwrap_or_default();
        format!(
            "asked for {by} with the eyes of {role}: {what} up to {newest}; {numbers}; {follows}"
        )
    }
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
    let mut chain = Chain { prev: nothing_before(), lines: 0, ends: None };
    let (mut newest, mut nth, mut whole) = (0, 0, None);
    let (mut head, mut since_hash) = (None, None);
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
        let prev = members.get("prev").and_then(Value::as_str);
        let begins = members.contains_key("begin");
        if let Some(before) = prev.filter(|prev| begins && nth == 1 && is_hash(prev)) {
            since_hash = Some(before.to_owned()).filter(|before| *before != nothing_before());
            chain.prev = before.to_owned();
        }
        if prev != Some(&chain.prev) {
            return broken(
                "it does not follow the line before: a line was changed, removed, inserted or moved",
            );
        }
        if chain.hash(&canonical(&members)) != hash {
            return broken("it was changed: it has another hash");
        }
        if begins {
            if nth > 1 {
                return broken("another export begins here");
            }
            (head, chain.prev) = (Some(members), hash);
            continue;
        }
        if members.contains_key("end") {
            if members.get("lines").and_then(Value::as_u64) != Some(chain.lines) {
                return broken("it says another number of entries than there are");
            }
            let (head, since_hash) = (head.take(), since_hash.take());
            whole = Some(Whole { lines: chain.lines, hash, head, since_hash, ends: chain.ends });
            continue;
        }
        let id = members.get("id").and_then(Value::as_u64).unwrap_or_default();
        if id <= newest {
            return broken("its id is not greater than that of the entry before");
        }
        chain.count(id);
        (newest, chain.prev) = (id, hash);
    }
    let cut = Broken { line: nth + 1, what: "the end is missing: the file was cut off here" };
    Ok(whole.ok_or(cut))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exported(head: Head, ids: &[u64]) -> Vec<String> {
        let (mut chain, first) = Chain::begin(head);
        let mut lines = vec![first];
        for id in ids {
            let entry =
                json!({"id": id, "who": "li", "reason": "\u{1b}[31m \"quoted\" 出库", "count": 1});
            lines.push(chain.line(entry.as_object().expect("an object").clone()));
        }
        lines.push(chain.end());
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn export(ids: &[u64]) -> Vec<String> {
        exported(Head { by: Some("li".to_owned()), role: "admin", ..Head::default() }, ids)
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
    fn an_export_says_what_was_asked_for_by_whom_and_which_one_it_follows() {
        let asked = vec![("who", "li".to_owned()), ("to", "2000-01-01T00:00:00Z".to_owned())];
        let head = Head {
            by: Some("vera".to_owned()),
            role: "viewer",
            asked,
            newest: 40,
            since_hash: None,
        };
        let first = verified(&exported(head.clone(), &[])).expect("unbroken");
        assert_eq!(
            first.words(),
            "asked for by vera with the eyes of viewer: only to=2000-01-01T00:00:00Z who=li up to 40; no entry; follows no other export"
        );
        let whole = Head {
            role: "admin",
            newest: 40,
            since_hash: Some(first.hash.clone()),
            ..Head::default()
        };
        let lines = exported(whole, &[3, 5, 9]);
        let second = verified(&lines).expect("unbroken");
        assert_eq!(
            second.words(),
            format!(
                "asked for at the store with the eyes of admin: everything up to 40; numbers 3 to 9, 4 of these are not in it; follows the export that ended with {}",
                first.hash
            )
        );
        assert_eq!(second.since_hash, Some(first.hash));
        // Nobody gives it another beginning, and it begins once.
        let other = lines[0].replace("everything", "all").replace("\"newest\":40", "\"newest\":41");
        assert_eq!(broken_at(&[&[other][..], &lines[1..]].concat()), 1);
        assert_eq!(broken_at(&lines[1..]), 1);
        assert_eq!(broken_at(&[&lines[..2], &lines[..]].concat()), 3);
    }

    #[test]
    fn what_an_older_version_exported_is_followed_as_well() {
        let mut chain = Chain { prev: nothing_before(), lines: 0, ends: None };
        let entry = json!({"id": 3, "who": "li"});
        let line = chain.line(entry.as_object().expect("an object").clone());
        let lines: Vec<String> =
            [line, chain.end()].iter().map(|line| line.trim_end().to_owned()).collect();
        let whole = verified(&lines).expect("unbroken");
        assert_eq!((whole.lines, &whole.head), (1, &None));
        assert!(whole.words().contains("does not say what was asked for"));
    }

    #[test]
    fn numbers_only_grow_even_in_a_chain_that_was_made_anew() {
        assert_eq!(broken_at(&export(&[3, 9, 5])), 4);
        assert_eq!(broken_at(&export(&[3, 3])), 3);
    }
}
