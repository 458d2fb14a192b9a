//! Texts for people in bodies: what no encoder takes is read as U+FFFD, one for each.
//!
//! Half a surrogate pair is made by whoever cuts a text inside a pair (JavaScript) or reads the name of a file that is no UTF-8 (Python). No
//! word is a reason to lose the results, the renewal or the act beside it. Names, keys, payloads and passwords are not read so: they must
//! come back as they were sent, and are refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A field that must be there.
///
/// # Errors
/// When it is no string.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Mended::deserialize(deserializer).map(|Mended(text)| text)
}

/// A field that may be null; it also needs `#[serde(default)]` to be left out.
///
/// # Errors
/// As of [`text`].
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Mended>::deserialize(deserializer)?.map(|Mended(text)| text))
}

/// A field of several, that may be null; it also needs `#[serde(default)]` to be left out.
///
/// # Errors
/// When it is no list of strings.
pub fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let lines = Option::<Vec<Mended>>::deserialize(deserializer)?;
    Ok(lines.map(|lines| lines.into_iter().map(|Mended(text)| text).collect()))
}

/// Texts by name, where a number or `true` may stand for its text, as it is written.
///
/// # Errors
/// When a value is anything else.
pub fn plain<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let all = BTreeMap::<String, Plain>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|(name, Plain(text))| (name, text)).collect())
}

struct Plain(String);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde_json::Value;
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(flag) => Ok(Self(flag.to_string())),
            _ => Err(D::Error::custom("values are texts: write \"3\", or 3")),
        }
    }
}

struct Mended(String);

impl<'de> Deserialize<'de> for Mended {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Read as bytes, a JSON string may have halves of pairs: each is the three bytes that it would be in UTF-8.
        deserializer.deserialize_bytes(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Mended;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Mended, E> {
        Ok(Mended(text.to_owned()))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Mended, E> {
        Ok(Mended(mend(bytes)))
    }
}

fn mend(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // How many bytes of a half are still to come: none of them is valid by itself.
    let mut rest = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.valid().is_empty() {
            rest = 0;
        }
        match chunk.invalid() {
            [] => {}
            [0x80..=0xbf] if rest > 0 => rest -= 1,
            invalid => {
                text.push('\u{fffd}');
                rest = if invalid == [0xed] { 2 } else { 0 };
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(deserialize_with = "text")]
        must: String,
        #[serde(default, deserialize_with = "optional")]
        may: Option<String>,
        #[serde(default, deserialize_with = "lines")]
        many: Option<Vec<String>>,
    }

    #[test]
    fn a_number_or_a_flag_stands_for_its_text_and_nothing_else_does() {
        let read = |json: &str| plain(&mut serde_json::Deserializer::from_str(json));
        let all = read(r#"{"n":3,"m":-7,"f":1.5,"b":true,"t":"x"}"#).expect("texts");
        let all: Vec<&str> = all.values().map(String::as_str).collect();
        assert_eq!(all, ["true", "1.5", "-7", "3", "x"]);
        for wrong in [r#"{"n":null}"#, r#"{"n":[1]}"#, r#"{"n":{}}"#] {
            let said = read(wrong).expect_err(wrong).to_string();
            assert!(said.contains("values are texts: write"), "{said}");
        }
    }

    fn read(written: &str) -> Result<Body, String> {
        let body =
            format!("{{\"must\":\"{written}\",\"may\":\"{written}\",\"many\":[\"{written}\"]}}");
        serde_json::from_slice(body.as_bytes()).map_err(|error| error.to_string())
    }

    /// Every text of up to four of these pieces: how it is written in JSON, against what UTF-16 makes of it.
    #[test]
    fn each_half_of_a_pair_is_one_replacement_and_all_else_is_as_it_was_written() {
        let pieces: [(&str, &[u16]); 9] = [
            ("a", &[0x61]),
            ("号", &[0x53f7]),
            ("😀", &[0xd83d, 0xde00]),
            ("\\ud83d", &[0xd83d]),
            ("\\uDE00", &[0xde00]),
            ("\\u0041", &[0x41]),
            ("\\\\", &[0x5c]),
            // No escape: a backslash, and the letters after it.
            ("\\\\ud800", &[0x5c, 0x75, 0x64, 0x38, 0x30, 0x30]),
            ("\\ud800\\udfff", &[0xd800, 0xdfff]),
        ];
        let mut texts: Vec<(String, Vec<u16>)> = vec![(String::new(), Vec::new())];
        let mut looked = 0;
        for _ in 0..4 {
            texts = texts
                .iter()
                .flat_map(|(written, units)| {
                    pieces.iter().map(move |(more, and)| {
                        (format!("{written}{more}"), [units.as_slice(), and].concat())
                    })
                })
                .collect();
            for (written, units) in &texts {
                let text = String::from_utf16_lossy(units);
                let body =
                    Body { must: text.clone(), may: Some(text.clone()), many: Some(vec![text]) };
                assert_eq!(read(written), Ok(body), "{written}");
                looked += 1;
            }
        }
        assert_eq!(looked, 9 + 81 + 729 + 6561);
    }

    #[test]
    fn what_is_no_string_is_refused_as_before() {
        for (body, error) in [
            ("{\"must\":1}", "invalid type: integer `1`, expected a string"),
            ("{\"must\":[97]}", "invalid type: sequence, expected a string"),
            ("{\"must\":null}", "invalid type: null, expected a string"),
            ("{\"must\":\"\",\"many\":\"a\"}", "invalid type: string \"a\", expected a sequence"),
            ("{\"must\":\"\\ud8\"}", "invalid escape"),
            ("{\"m\\ud800\":\"\"}", "hex escape"),
            ("{}", "missing field `must`"),
        ] {
            let said = serde_json::from_str::<Body>(body).expect_err(body).to_string();
            assert!(said.contains(error), "{body}: {said}");
        }
        let none = Body { must: String::new(), may: None, many: None };
        for body in ["{\"must\":\"\"}", "{\"must\":\"\",\"may\":null,\"many\":null}"] {
            assert_eq!(serde_json::from_str::<Body>(body).ok().as_ref(), Some(&none), "{body}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_one_replacement_each() {
        assert_eq!(mend(b"caf\xe9.csv"), "caf\u{fffd}.csv");
        assert_eq!(mend(b"\x80\xff"), "\u{fffd}\u{fffd}");
        assert_eq!(mend(b"\xed\xa0\xbd\xed\xa0\xbda\x80"), "\u{fffd}\u{fffd}a\u{fffd}");
    }
}
