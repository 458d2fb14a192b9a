//! Every word a person reads on the page or in `why`: Fluent messages in English and Chinese.
//!
//! A sentence is one message with its own order in each language, never words glued together. Values that a
//! page must keep alive (an instant, a countdown) travel through a message as [`Piece`]s, so that the same
//! message gives plain text for JSON and the command line and marked-up text for a template. It knows nothing
//! of jobs; which sentence is true is decided in `picture`.

mod moment;
mod visible;
mod zone;

use std::fmt;
use std::sync::OnceLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use serde::{Deserialize, Serialize};
use unic_langid::LanguageIdentifier;

use soloist_domain::time::StoreTime;

pub use moment::{
    At, clock, day_clock, duration, exactly, iso, lasted, minute, planned, second, until,
};
pub use visible::{is_hidden, visible, visible_page};
pub use zone::{Zone, instants};

/// A language of a reader.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    Zh,
}

impl Language {
    /// Both.
    pub const ALL: [Language; 2] = [Self::En, Self::Zh];

    /// The word in the account, in cookies and in `<html lang>`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The language called `en` or `zh`.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lang| lang.as_str() == text)
    }

    /// The best match for an `Accept-Language` header (RFC 9110, 12.5.4); English when there is none.
    #[must_use]
    pub fn from_accept_language(header: &str) -> Self {
        let mut best = (0.0, Self::En);
        for range in header.split(',') {
            let mut parts = range.split(';');
            let tag = parts.next().unwrap_or("").trim().to_ascii_lowercase();
            let quality = parts
                .find_map(|part| part.trim().strip_prefix("q="))
                .map_or(1.0, |q| q.parse::<f32>().unwrap_or(0.0));
            let primary = tag.split('-').next().unwrap_or("");
            if let Some(lang) = Self::named(primary)
                && quality > best.0
            {
                best = (quality, lang);
            }
        }
        best.1
    }
}

/// A value for a plain message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Arg {
    Text(String),
    /// Chooses plurals.
    Number(i64),
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Arg {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Arg {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// A part of a sentence; its `Display` is the plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Plain words.
    Text(String),
    /// Something that stands out: a node, a number.
    Strong(String),
    /// What a machine wrote: a token, a command, an exit code.
    Code(String),
    /// An instant, which is said again in the zone of the reader.
    Time {
        /// Milliseconds since 1970.
        ms: i64,
        /// RFC 3339.
        iso: String,
        /// `minute`, `clock`, `second` or `day`: how much of it is shown.
        form: &'static str,
        /// In words.
        text: String,
    },
    /// A duration that ends at `ms` and shrinks on the page.
    Until {
        /// Milliseconds since 1970.
        ms: i64,
        /// In words, at the moment of rendering.
        text: String,
    },
    /// A duration that began at `ms` and grows on the page.
    Since {
        /// Milliseconds since 1970.
        ms: i64,
        /// In words, at the moment of rendering.
        text: String,
    },
    /// A number that also chooses plurals.
    Number(i64),
}

impl Piece {
    /// Plain words.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::Text(text.to_string())
    }

    /// Something that stands out.
    pub fn strong(text: impl fmt::Display) -> Self {
        Self::Strong(text.to_string())
    }

    /// What a machine wrote.
    pub fn code(text: impl fmt::Display) -> Self {
        Self::Code(text.to_string())
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text)
            | Self::Strong(text)
            | Self::Code(text)
            | Self::Time { text, .. }
            | Self::Until { text, .. }
            | Self::Since { text, .. } => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The plain text of a sentence.
#[must_use]
pub fn plain(pieces: &[Piece]) -> String {
    pieces.iter().map(ToString::to_string).collect()
}

/// The text of a sentence that leaves our pages and is read at any time: each instant stands whole, with its zone. A duration that
/// moves would be false there; whoever makes the sentence leaves it out ([`moves`]).
#[must_use]
pub fn settled(pieces: &[Piece], zone: &Zone) -> String {
    let told = |piece: &Piece| match piece {
        Piece::Time { ms, .. } => zone.whole(StoreTime(*ms)),
        piece => piece.to_string(),
    };
    pieces.iter().map(told).collect()
}

/// Whether a part of it grows or shrinks with time.
#[must_use]
pub fn moves(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Until { .. } | Piece::Since { .. }))
}

/// A count for people: `1,204`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The message `id` in `lang`. A missing message shows its id; a test finds every one that could.
#[must_use]
pub fn say(lang: Language, id: &str, args: &[(&str, Arg)]) -> String {
    let mut values = FluentArgs::new();
    for (name, arg) in args {
        match arg {
            Arg::Text(text) => values.set(*name, text.as_str()),
            Arg::Number(number) => values.set(*name, *number),
        }
    }
    format(lang, id, &values)
}

/// The message `id` in `lang` with pieces in it, as pieces.
///
/// Each piece stands in the message as a mark from a private-use area while Fluent puts the words in order;
/// the texts themselves never pass through Fluent, so nothing in them can be taken for a mark.
#[must_use]
pub fn phrase(lang: Language, id: &str, args: &[(&str, Piece)]) -> Vec<Piece> {
    let mut values = FluentArgs::new();
    for (index, (name, piece)) in args.iter().enumerate() {
        match piece {
            Piece::Number(number) => values.set(*name, *number),
            _ => values.set(*name, FluentValue::from(format!("{OPEN}{index}{CLOSE}"))),
        }
    }
    let mut pieces = Vec::new();
    for part in format(lang, id, &values).split(OPEN) {
        let marked = part.split_once(CLOSE).and_then(|(index, rest)| {
            let (_, piece) = args.get(index.parse::<usize>().ok()?)?;
            Some((piece.clone(), rest))
        });
        let rest = match marked {
            Some((piece, rest)) => {
                pieces.push(piece);
                rest
            }
            None => part,
        };
        if !rest.is_empty() {
            pieces.push(Piece::text(rest));
        }
    }
    pieces
}

const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';

fn format(lang: Language, id: &str, args: &FluentArgs<'_>) -> String {
    let bundle = bundle(lang);
    let Some(pattern) = bundle.get_message(id).and_then(|message| message.value()) else {
        return id.to_owned();
    };
    bundle.format_pattern(pattern, Some(args), &mut Vec::new()).into_owned()
}

fn bundle(lang: Language) -> &'static FluentBundle<FluentResource> {
    static BUNDLES: OnceLock<[FluentBundle<FluentResource>; 2]> = OnceLock::new();
    let [en, zh] = BUNDLES.get_or_init(|| [Language::En, Language::Zh].map(load));
    match lang {
        Language::En => en,
        Language::Zh => zh,
    }
}

fn source(lang: Language) -> &'static str {
    match lang {
        Language::En => include_str!("../../../templates/messages/en.ftl"),
        Language::Zh => include_str!("../../../templates/messages/zh.ftl"),
    }
}

fn load(lang: Language) -> FluentBundle<FluentResource> {
    let id: LanguageIdentifier = lang.as_str().parse().unwrap_or_default();
    let mut bundle = FluentBundle::new_concurrent(vec![id]);
    // Isolation marks are for mixed directions; both languages run left to right, and JSON readers would trip.
    bundle.set_use_isolating(false);
    let resource = FluentResource::try_new(source(lang).to_owned())
        .unwrap_or_else(|(_, errors)| panic!("{}.ftl is broken: {errors:?}", lang.as_str()));
    assert!(bundle.add_resource(resource).is_ok(), "{}.ftl has an id twice", lang.as_str());
    bundle
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;

    /// Message ids with the names of their variables.
    fn messages(lang: Language) -> BTreeMap<String, BTreeSet<String>> {
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        let mut id = String::new();
        for line in source(lang).lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, _)) = line.split_once('=')
                && !line.starts_with(' ')
            {
                id = name.trim().to_owned();
                found.entry(id.clone()).or_default();
            }
            for part in line.split('$').skip(1) {
                let name = part.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
                found.entry(id.clone()).or_default().insert(name.to_owned());
            }
        }
        found
    }

    fn files(dir: &Path, ends: &str, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files(&path, ends, into);
            } else if path.to_string_lossy().ends_with(ends) {
                into.push(std::fs::read_to_string(&path).expect("readable"));
            }
        }
    }

    #[test]
    fn both_languages_have_the_same_messages_with_the_same_variables() {
        assert_eq!(messages(Language::En), messages(Language::Zh));
    }

    #[test]
    fn every_message_that_code_or_a_template_names_exists_and_every_message_is_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut sources = Vec::new();
        files(&root.join("crates"), ".rs", &mut sources);
        files(&root.join("src"), ".rs", &mut sources);
        files(&root.join("templates"), ".html", &mut sources);
        let known: BTreeSet<_> = messages(Language::En).into_keys().collect();
        let mut named = BTreeSet::new();
        for text in &sources {
            for (at, _) in text.match_indices("say(").chain(text.match_indices("phrase(")) {
                let mut quoted = text[at..].split(['"', ';', '}']);
                if let Some(id) = quoted.nth(1)
                    && text[at..].contains(&format!("\"{id}\""))
                    && id.contains('-')
                    && id.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                {
                    assert!(known.contains(id), "no message {id:?}");
                }
            }
            named.extend(text.split('"').map(str::to_owned));
        }
        let idle: Vec<_> = known.iter().filter(|id| !named.contains(*id)).collect();
        assert!(idle.is_empty(), "messages that nobody says: {idle:?}");
    }

    #[test]
    fn a_language_is_chosen_by_quality() {
        for (header, lang) in [
            ("", Language::En),
            ("zh-CN,zh;q=0.9,en;q=0.8", Language::Zh),
            ("en-GB,en;q=0.9,zh;q=0.8", Language::En),
            ("de, zh;q=0.1", Language::Zh),
            ("fr;q=x, zh;q=0", Language::En),
        ] {
            assert_eq!(Language::from_accept_language(header), lang, "{header:?}");
        }
    }

    #[test]
    fn large_numbers_are_grouped() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn a_value_that_looks_like_a_mark_stays_text() {
        let hostile = format!("{OPEN}0{CLOSE}");
        let pieces = phrase(Language::En, "on-node", &[("node", Piece::strong(&hostile))]);
        assert!(pieces.contains(&Piece::Strong(hostile)), "{pieces:?}");
    }
}
