//! Words and paths of the system in a JSON message: a file name or a variable of a user need not be UTF-8, and reaches the script byte
//! by byte. A word is a text if it is UTF-8, otherwise a list of its bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

struct Said<'a>(&'a OsStr);

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => to.serialize_str(text),
            None => to.collect_seq(self.0.as_bytes()),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Heard {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Heard> for OsString {
    fn from(word: Heard) -> Self {
        match word {
            Heard::Text(text) => text.into(),
            Heard::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

/// A list of words.
pub(super) mod list {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        words: &[OsString],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(words.iter().map(|word| Said(word)))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Heard>::deserialize(from)?.into_iter().map(OsString::from).collect())
    }
}

/// Names and values; as pairs, because a key of a JSON object is always a text.
pub(super) mod pairs {
    use std::collections::BTreeMap;

    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        words: &BTreeMap<OsString, OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(words.iter().map(|(name, value)| (Said(name), Said(value))))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<OsString, OsString>, D::Error> {
        let pairs = Vec::<(Heard, Heard)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// A path.
pub(super) mod path {
    use std::path::{Path, PathBuf};

    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Path,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Said(path.as_os_str()).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<PathBuf, D::Error> {
        Heard::deserialize(from).map(|word| OsString::from(word).into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Message {
        #[serde(with = "super::list")]
        list: Vec<OsString>,
        #[serde(with = "super::pairs")]
        pairs: BTreeMap<OsString, OsString>,
        #[serde(with = "super::path")]
        path: PathBuf,
    }

    #[test]
    fn every_word_arrives_as_it_was_and_most_are_texts() {
        // Every byte but NUL, alone, and behind what begins a character.
        let words = (1..=255_u8).flat_map(|byte| [vec![byte], vec![b'x', 0xe2, byte]]);
        let words: Vec<OsString> = words.map(OsString::from_vec).collect();
        let message = Message {
            pairs: words.iter().map(|word| (word.clone(), word.clone())).collect(),
            path: words[254].clone().into(),
            list: words,
        };
        let bytes = serde_json::to_vec(&message).unwrap();
        assert_eq!(serde_json::from_slice::<Message>(&bytes).unwrap(), message);
        let plain = Message {
            list: vec!["ls".into(), "出库".into()],
            pairs: BTreeMap::from([("A".into(), "1".into())]),
            path: "/srv".into(),
        };
        let text = serde_json::to_string(&plain).unwrap();
        assert_eq!(text, r#"{"list":["ls","出库"],"pairs":[["A","1"]],"path":"/srv"}"#);
    }
}
