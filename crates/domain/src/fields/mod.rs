//! Rules as data: what each field of rules is called, in which unit and between which bounds it is, what holds when it is left out.
//!
//! A source's rules, a rotation's and a type's have one table each, beside the rules themselves ([`Fields::FIELDS`]). API, OpenAPI, forms,
//! command line, audit and Redis read, check, write and say rules by these tables, so a new rule is a row. What a rule does is not here.
//!
//! | file | what it does |
//! | --- | --- |
//! | `json.rs` | reads and writes rules as JSON has them |
//! | `whole.rs` | reads whole numbers, however they are written |

mod json;
pub mod whole;

use std::marker::PhantomData;
use std::time::Duration;

pub use json::strict;

/// Longest of any duration in rules, delays and blocks: a year.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// The same in the unit of fields.
pub const YEAR: u64 = 366 * DAY;
/// A day in the unit of fields.
pub const DAY: u64 = 24 * 3600 * 1_000 * MILLISECOND;
/// A millisecond in the unit of fields.
pub const MILLISECOND: u64 = 1_000;

/// How the value of a field is counted. It is always a whole number.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Microseconds: whole milliseconds in JSON, `1m 30s` for people.
    Length,
    /// So many.
    Count,
    /// 1: it holds.
    Flag,
    /// A place among these.
    Word(&'static [Word]),
}

/// A value that is a word.
#[derive(Debug)]
pub struct Word {
    /// In JSON, in forms and on the command line.
    pub word: &'static str,
    /// The message that offers it in a form.
    pub choice: &'static str,
    /// The clause that says it.
    pub clause: &'static str,
}

/// Which lists say a rule. The audit says every rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    /// Those of the page and of the command line.
    All,
    /// Those of the page.
    Page,
    /// Those of the command line.
    Terminal,
    /// None.
    None,
}

impl Lists {
    /// Whether the list of the page says it.
    #[must_use]
    pub fn has_page(self) -> bool {
        matches!(self, Self::All | Self::Page)
    }

    /// Whether that of the command line does.
    #[must_use]
    pub fn has_terminal(self) -> bool {
        matches!(self, Self::All | Self::Terminal)
    }
}

/// Where a field stands in a form; each is the id of a message.
#[derive(Debug, Clone, Copy)]
pub struct InForm {
    /// The title of its group: neighbours of one title stand together.
    pub group: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// What it does, and what may be written.
    pub means: &'static str,
}

impl InForm {
    /// Its name in the form.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.label.trim_start_matches("field-")
    }
}

/// A field of rules `R`.
#[derive(Debug)]
pub struct Field<R> {
    /// Its name in JSON; what stands before a point is the object of which it is a part.
    pub json: &'static str,
    /// Its name where a store keeps each field for itself.
    pub kept: &'static str,
    /// Its option on the command line; a count and a length of one option are written `100/1m`.
    pub option: &'static str,
    /// What it is, in English, for the descriptions of API and command line. It has no full stop.
    pub about: &'static str,
    /// Its place in the form, if it is there.
    pub form: Option<InForm>,
    /// The message that says it, and its variable there; neighbours of one message are said together.
    pub clause: (&'static str, &'static str),
    /// Which lists say it.
    pub lists: Lists,
    /// How it is counted.
    pub unit: Unit,
    /// Its least value.
    pub least: u64,
    /// Its greatest.
    pub most: u64,
    /// What holds when it is left out; `None`: there is no such rule, in JSON null. Where it is 0, that means none, too.
    pub default: Option<u64>,
    get: fn(&R) -> Option<u64>,
    set: fn(&mut R, u64),
}

/// These make the rows of a table.
#[expect(missing_docs, reason = "they set the fields of their name")]
impl<R> Field<R> {
    #[must_use]
    pub const fn new(
        json: &'static str,
        unit: Unit,
        (least, most): (u64, u64),
        get: fn(&R) -> Option<u64>,
        set: fn(&mut R, u64),
    ) -> Self {
        Self {
            json,
            kept: "",
            option: "",
            about: "",
            form: None,
            clause: ("", ""),
            lists: Lists::None,
            unit,
            least,
            most,
            default: None,
            get,
            set,
        }
    }

    #[must_use]
    pub const fn default(mut self, default: u64) -> Self {
        self.default = Some(default);
        self
    }

    #[must_use]
    pub const fn kept(mut self, kept: &'static str) -> Self {
        self.kept = kept;
        self
    }

    #[must_use]
    pub const fn option(mut self, option: &'static str, about: &'static str) -> Self {
        (self.option, self.about) = (option, about);
        self
    }

    #[must_use]
    pub const fn form(
        mut self,
        group: &'static str,
        label: &'static str,
        means: &'static str,
    ) -> Self {
        self.form = Some(InForm { group, label, means });
        self
    }

    #[must_use]
    pub const fn said(mut self, id: &'static str, variable: &'static str, lists: Lists) -> Self {
        (self.clause, self.lists) = ((id, variable), lists);
        self
    }
}

impl<R> Field<R> {
    /// The member of the JSON object in which it stands.
    #[must_use]
    pub fn member(&self) -> &'static str {
        self.json.split_once('.').map_or(self.json, |(object, _)| object)
    }

    /// Whether `value` is a rule at all, or says that there is none.
    #[must_use]
    pub fn is_rule(&self, value: u64) -> bool {
        value > 0 || self.default != Some(0) || matches!(self.unit, Unit::Word(_))
    }

    /// As people write it.
    #[must_use]
    pub fn text(&self, value: u64) -> String {
        match self.unit {
            Unit::Length => crate::time::format_duration(length(value)).to_string(),
            Unit::Count | Unit::Flag => value.to_string(),
            Unit::Word(words) => self.word(words, value).to_owned(),
        }
    }

    /// What a person wrote; `None`: it is no value of this field.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<u64> {
        match self.unit {
            Unit::Length => crate::time::parse_duration(text).ok().map(micros),
            Unit::Count | Unit::Flag => text.parse().ok(),
            Unit::Word(words) => place(words, text),
        }
    }

    /// What may stand in it, in JSON.
    fn bounds(&self) -> String {
        let most = match (self.unit, self.most) {
            (Unit::Length, YEAR) => "a year".to_owned(),
            (unit, most) => unit.in_json(most).to_string(),
        };
        let bounds = match self.unit.in_json(self.least) {
            0 => format!("at most {most}"),
            least => format!("from {least} to {most}"),
        };
        match self.default {
            None => format!("{bounds}; leave `{}` out for none", self.member()),
            Some(_) => bounds,
        }
    }

    fn word(&self, words: &'static [Word], value: u64) -> &'static str {
        let word = usize::try_from(value).ok().and_then(|nth| words.get(nth));
        word.map_or("", |word| word.word)
    }
}

impl Unit {
    /// The number that stands for `value` in JSON.
    #[must_use]
    pub fn in_json(self, value: u64) -> u64 {
        match self {
            Self::Length => value / MILLISECOND,
            _ => value,
        }
    }
}

fn place(words: &'static [Word], text: &str) -> Option<u64> {
    words.iter().zip(0..).find(|(word, _)| word.word == text).map(|(_, nth)| nth)
}

/// Rules with a table.
pub trait Fields: Sized + 'static {
    /// In the order in which they are written.
    const FIELDS: &'static [Field<Self>];
    /// What else stands beside them in the JSON of those who send them.
    const BESIDE: &'static [&'static str];

    /// The same, with the default of each field that has one.
    #[must_use]
    fn filled(mut self) -> Self {
        for field in Self::FIELDS {
            if let Some(default) = field.default {
                (field.set)(&mut self, default);
            }
        }
        self
    }
}

/// Values of the fields of rules `R`, in the order of the table; `None`: not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<R: 'static>(Vec<Option<u64>>, PhantomData<fn() -> R>);

/// Why rules cannot be kept; names the field as in JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
#[expect(missing_docs, reason = "as said above")]
pub struct InvalidRules {
    pub field: String,
    pub problem: String,
}

impl InvalidRules {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The same, of the type at this place.
    #[must_use]
    pub fn of_type(self, nth: usize) -> Self {
        Self { field: format!("types[{nth}].{}", self.field), ..self }
    }
}

impl<R: Fields> FromIterator<Option<u64>> for Given<R> {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(values: I) -> Self {
        Self(values.into_iter().collect(), PhantomData)
    }
}

impl<R: Fields> Given<R> {
    /// Nothing is given.
    #[must_use]
    pub fn nothing() -> Self {
        R::FIELDS.iter().map(|_| None).collect()
    }

    /// All that `rules` say.
    #[must_use]
    pub fn of(rules: &R) -> Self {
        R::FIELDS.iter().map(|field| (field.get)(rules)).collect()
    }

    /// Whether it names no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Each field with its value.
    #[must_use]
    pub fn each(&self) -> Vec<(&'static Field<R>, Option<u64>)> {
        R::FIELDS.iter().zip(self.0.iter().copied()).collect()
    }

    /// Refuses what is out of bounds.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is wrong.
    pub fn check(&self) -> Result<(), InvalidRules> {
        let wrong = |&(field, value): &(&Field<R>, Option<u64>)| {
            value.is_some_and(|value| !(field.least..=field.most).contains(&value))
        };
        match self.each().into_iter().find(wrong) {
            Some((field, _)) => Err(InvalidRules::new(field.json, field.bounds())),
            None => Ok(()),
        }
    }

    /// Puts all that is given into `rules`.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is out of bounds.
    pub fn onto(&self, rules: R) -> Result<R, InvalidRules> {
        self.check().map(|()| self.fill(rules))
    }

    /// The same of what was checked when it was kept.
    #[must_use]
    pub fn fill(&self, mut rules: R) -> R {
        for (field, value) in self.each() {
            if let Some(value) = value {
                (field.set)(&mut rules, value);
            }
        }
        rules
    }
}

pub(crate) fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

/// A value in the unit of lengths.
#[must_use]
pub fn length(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(crate) fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Debug;

    use super::*;
    use crate::dispatch::Rules;
    use crate::rotation::{Rules as OfRotation, TypeRules};

    fn table<R: Fields + Debug + PartialEq + Clone>(filled: R) {
        let mut names = BTreeSet::new();
        for (field, value) in Given::of(&filled).each() {
            assert!(names.insert(field.json), "{} twice", field.json);
            assert_eq!(value, field.default, "{}", field.json);
            assert!(field.default.is_none_or(|n| (field.least..=field.most).contains(&n)));
            for value in [field.least, field.most, field.default.unwrap_or(field.most)] {
                let text = field.text(value);
                assert_eq!(field.read(&text), Some(value), "{}: {text}", field.json);
                let one = |other: &Field<R>| (other.json == field.json).then_some(value);
                let given: Given<R> = R::FIELDS.iter().map(one).collect();
                let rules = given.onto(filled.clone()).expect("in bounds");
                let kept = Given::of(&rules).each().into_iter();
                let mut kept = kept.filter(|(other, _)| other.json == field.json);
                assert_eq!(kept.next().and_then(|(_, kept)| kept), Some(value), "{}", field.json);
            }
        }
        assert_eq!(Given::<R>::nothing().onto(filled.clone()), Ok(filled));
    }

    #[test]
    fn every_field_keeps_what_is_put_into_it_and_its_default_is_in_its_bounds() {
        table(Rules::default());
        table(OfRotation::default());
        table(TypeRules::of("a".parse().expect("a name")));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_the_name_that_json_has() {
        for (json, value, problem) in [
            ("gap_ms", YEAR + 1, "at most a year"),
            ("window.count", 0, "from 1 to 100000; leave `window` out for none"),
            ("window.ms", YEAR + 1, "from 1 to a year; leave `window` out for none"),
            ("cap", 0, "from 1 to 4294967295; leave `cap` out for none"),
            ("lease_ms", 99_999, "from 100 to 86400000"),
            ("max_attempts", 1 << 32, "at most 4294967295"),
        ] {
            let one = |field: &Field<Rules>| (field.json == json).then_some(value);
            let given: Given<Rules> = Rules::FIELDS.iter().map(one).collect();
            let refused = given.onto(Rules::default());
            assert_eq!(refused, Err(InvalidRules::new(json, problem)), "{json}");
        }
    }
}
