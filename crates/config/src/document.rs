//! A tolerant walk over a TOML document: it notes what is wrong with a value and continues with the next.
//!
//! serde would stop at the first mistake. This file knows TOML, lines and types; it knows no key of ours.

use std::cell::RefCell;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::problem::{Place, Problems};
use soloist_process::parts::Part;

/// The text that values point into, and what was found wrong so far.
pub(super) struct Report {
    path: PathBuf,
    line_starts: Vec<usize>,
    pub(super) problems: RefCell<Problems>,
    pub(super) warnings: RefCell<Problems>,
    /// What this build lacks and a command that only looks does without.
    pub(super) lacking: RefCell<Problems>,
}

impl Report {
    pub(super) fn new(path: PathBuf, text: &str) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect::<Vec<_>>();
        let (problems, warnings, lacking) = Default::default();
        Self { path, line_starts, problems, warnings, lacking }
    }

    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    pub(super) fn whole_file(&self) -> Place {
        Place::File { path: self.path.clone(), line: None, column: None }
    }

    pub(super) fn at(&self, span: &Range<usize>) -> Place {
        Place::File { path: self.path.clone(), line: Some(self.line(span.start)), column: None }
    }

    pub(super) fn at_column(&self, text: &str, span: &Range<usize>) -> Place {
        let line = self.line(span.start);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let column = text.get(start..span.start).map_or(1, |before| before.chars().count() + 1);
        Place::File { path: self.path.clone(), line: Some(line), column: Some(column) }
    }

    pub(super) fn wrong(&self, place: Place, key: impl Into<String>, text: impl Into<String>) {
        self.problems.borrow_mut().add(place, key, text);
    }

    pub(super) fn warn(&self, place: Place, key: impl Into<String>, text: impl Into<String>) {
        self.warnings.borrow_mut().add(place, key, text);
    }
}

/// A value with its key path and place.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) report: &'a Report,
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) value: &'a DeValue<'a>,
}

impl<'a> Field<'a> {
    pub(super) fn wrong(&self, text: impl Into<String>) {
        self.report.wrong(self.place.clone(), self.key.clone(), text);
    }

    pub(super) fn warn(&self, text: impl Into<String>) {
        self.report.warn(self.place.clone(), self.key.clone(), text);
    }

    /// Notes that this build is without `part`, if it is; the rest of the field is still checked.
    pub(super) fn needs(&self, part: Part) {
        if let Some(why) = part.missing() {
            self.report.lacking.borrow_mut().add(self.place.clone(), self.key.clone(), why);
        }
    }

    /// Notes that the type is wrong; `remedy` shows how it is written.
    fn mistyped(&self, wanted: &str, remedy: &str) {
        let found = match self.value.type_str() {
            kind @ ("integer" | "array") => format!("an {kind}"),
            kind => format!("a {kind}"),
        };
        self.wrong(format!("must be {wanted}, not {found}: {remedy}"));
    }

    pub(super) fn text(&self, remedy: &str) -> Option<&'a str> {
        let text = self.value.as_str();
        match text {
            Some(text) if text.contains('\0') => {
                self.wrong("must not contain a NUL character: remove it");
                return None;
            }
            Some(_) => {}
            None => self.mistyped("a string", remedy),
        }
        text
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        let text = self.text(&format!("write {} = \"5s\"", self.last()))?;
        match parse_duration(text) {
            Ok(duration) => Some(duration),
            Err(problem) => {
                self.wrong(problem);
                None
            }
        }
    }

    pub(super) fn integer<N: TryFrom<i64>>(&self, lowest: i64, meaning: &str) -> Option<N> {
        let Some(integer) = self.value.as_integer() else {
            self.mistyped("an integer", meaning);
            return None;
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let converted = number.filter(|n| *n >= lowest).and_then(|n| N::try_from(n).ok());
        if converted.is_none() {
            self.wrong(format!("{integer} is out of range: {meaning}"));
        }
        converted
    }

    pub(super) fn flag(&self, remedy: &str) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.mistyped("true or false", remedy);
        }
        flag
    }

    pub(super) fn texts(&self, remedy: &str) -> Option<Vec<(Field<'a>, &'a str)>> {
        let Some(array) = self.value.as_array() else {
            self.mistyped("an array of strings", remedy);
            return None;
        };
        let items = array.iter().enumerate().map(|(index, item)| {
            let field = Field {
                report: self.report,
                key: format!("{}[{index}]", self.key),
                place: self.inner_place(&item.span()),
                value: item.get_ref(),
            };
            field.text(remedy).map(|text| (field, text))
        });
        items.collect::<Vec<_>>().into_iter().collect()
    }

    pub(super) fn table(&self, remedy: &str) -> Option<Section<'a>> {
        let Some(table) = self.value.as_table() else {
            self.mistyped("a table", remedy);
            return None;
        };
        Some(Section {
            report: self.report,
            prefix: format!("{}.", self.key),
            place: self.place.clone(),
            table,
        })
    }

    /// The elements of an array of tables, with their places.
    pub(super) fn tables(&self, remedy: &str) -> Vec<Section<'a>> {
        let Some(array) = self.value.as_array() else {
            self.mistyped("an array of tables", remedy);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let field = Field {
                report: self.report,
                key: format!("{}[{}]", self.key, index + 1),
                place: self.inner_place(&item.span()),
                value: item.get_ref(),
            };
            sections.extend(field.table(remedy));
        }
        sections
    }

    /// Spans inside an environment variable are no lines of the file.
    fn inner_place(&self, span: &Range<usize>) -> Place {
        match &self.place {
            Place::File { .. } => self.report.at(span),
            other => other.clone(),
        }
    }

    fn last(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }
}

/// A table whose keys are looked up one by one; a key that no code asked for is unknown.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) report: &'a Report,
    /// What stands before each key, with its dot.
    pub(super) prefix: String,
    pub(super) place: Place,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.table.get_key_value(key).map(|(name, value)| self.field(name, value))
    }

    /// Every key with its value; the place is the value's line.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> + '_ {
        self.table.iter().map(|(name, value)| (name.get_ref().as_ref(), self.field(name, value)))
    }

    fn field(&self, name: &Spanned<DeString<'a>>, value: &'a Spanned<DeValue<'a>>) -> Field<'a> {
        Field {
            report: self.report,
            key: format!("{}{}", self.prefix, name.get_ref()),
            place: self.inner_place(&name.span()),
            value: value.get_ref(),
        }
    }

    pub(super) fn missing(&self, key: &str, remedy: &str) {
        self.report.wrong(
            self.place.clone(),
            format!("{}{key}", self.prefix),
            format!("is missing: {remedy}"),
        );
    }

    /// Notes every key that is not among `known`.
    pub(super) fn only(&self, known: &[&str]) {
        for (name, value) in self.table {
            let text = name.get_ref().as_ref();
            if !known.contains(&text) {
                self.field(name, value).wrong(match closest(text, known) {
                    Some(meant) => format!("unknown key: did you mean {meant:?}?"),
                    None => format!("unknown key: remove it, or use one of {}", known.join(", ")),
                });
            }
        }
    }

    fn inner_place(&self, span: &Range<usize>) -> Place {
        match &self.place {
            Place::File { .. } => self.report.at(span),
            other => other.clone(),
        }
    }
}

/// Parses the whole file; mistakes of syntax are noted with line and column, and nothing else is then checked,
/// because what follows a broken line would be reported wrongly.
pub(super) fn parse<'a>(report: &Report, text: &'a str) -> Option<Spanned<DeTable<'a>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(table);
    }
    for error in errors {
        let place = match error.span() {
            Some(span) => report.at_column(text, &span),
            None => report.whole_file(),
        };
        report.wrong(place, "", format!("not valid TOML: {}", error.message().replace('\n', ", ")));
    }
    None
}

/// A human duration, or what is wrong with it.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    if text.trim_start().starts_with('-') {
        return Err(format!("{text:?} is negative: use zero or more, for example \"5s\""));
    }
    soloist_domain::time::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a duration: use for example \"250ms\", \"5s\", \"2m\"")
    })
}

/// The known key that was probably meant.
fn closest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let given = given.to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|key| (distance(&given, key), *key))
        .filter(|(distance, key)| *distance <= 1 + key.len() / 4)
        .min()
        .map(|(_, key)| key)
}

/// Levenshtein's edit distance, with a swap of neighbours as one edit.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let above = &rows[i - 1];
            let change = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_word_is_not() {
        let known = ["command", "lease_ttl", "nodes", "dir"];
        assert_eq!(closest("comand", &known), Some("command"));
        assert_eq!(closest("lease-ttl", &known), Some("lease_ttl"));
        assert_eq!(closest("node", &known), Some("nodes"));
        assert_eq!(closest("rotation", &known), None);
    }
}
