//! Forms that define something: fields with their meaning beside them, what was typed, and which field is wrong.
//!
//! A field is refused by its own label and meaning, so that the refusal says in both languages what to write. What may be
//! kept is not decided here: the rules of `domain` check themselves.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError as _};
use askama::Template;

use super::Frame;
use soloist_domain::fields::{self, Fields, Given, Unit};
use soloist_domain::time::parse_duration;
use soloist_view::words::{Arg, Language, say};

/// Every field that is no rule: its word, and the messages with its label and its meaning.
const FIELDS: &[(&str, &str, &str)] = &[
    ("reason", "field-reason", "means-reason"),
    ("type", "field-type", "means-type"),
    ("name", "field-name", "means-name"),
    ("key", "field-key", "means-key"),
    ("payload", "field-payload", "means-payload"),
    ("priority", "field-priority", "means-priority"),
    ("at", "field-at", "means-at"),
    ("every", "field-every", "means-every"),
];

/// What a form contained.
#[derive(Debug, Clone, Default)]
pub(super) struct Typed(BTreeMap<String, String>);

/// The field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong(pub(super) String);

/// What keeps a form from being carried out.
#[derive(Debug)]
pub(super) enum Refused {
    /// This field.
    Field(Wrong),
    /// Something else.
    Other(crate::error::WebError),
}

impl From<Wrong> for Refused {
    fn from(wrong: Wrong) -> Self {
        Self::Field(wrong)
    }
}

impl<E: Into<crate::error::WebError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl From<Vec<(String, String)>> for Typed {
    fn from(fields: Vec<(String, String)>) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl Typed {
    /// The text of a field; of one that is missing it is empty.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |text| text.trim())
    }

    /// As it was typed, if the form has it.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// As [`Self::get`], if anything was typed.
    pub(super) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|text| !text.is_empty())
    }

    pub(super) fn set(&mut self, name: &str, text: impl ToString) {
        self.0.insert(name.to_owned(), text.to_string());
    }

    /// A length of time such as `250ms`, `1m 30s`; none if nothing was typed.
    pub(super) fn length(&self, name: &str) -> Result<Option<Duration>, Wrong> {
        self.read(name, |text| parse_duration(text).ok())
    }

    /// A number; none if nothing was typed.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Wrong> {
        self.read(name, |text| text.parse().ok())
    }

    /// Puts rules into their fields; `nth` is the row of a type.
    pub(super) fn put_rules<R: Fields>(&mut self, rules: &R, nth: Option<usize>) {
        for (field, value) in Given::of(rules).each() {
            if let (Some(form), Some(value)) = (field.form, value.filter(|n| field.is_rule(*n))) {
                self.set(&in_row(form.name(), nth), field.text(value));
            }
        }
    }

    /// The rules that were typed; what is left empty gets its default, and what is in no field stays as it is in `present`.
    pub(super) fn rules<R: Fields>(
        &self,
        present: &R,
        nth: Option<usize>,
    ) -> Result<Given<R>, Wrong> {
        let present = Given::of(present).each().into_iter();
        let typed = present.map(|(field, present)| match field.form {
            Some(form) => self.read(&in_row(form.name(), nth), |text| field.read(text)),
            None => Ok(present),
        });
        typed.collect()
    }

    /// Whether anything was typed in a field of rules `R` in this row.
    pub(super) fn any_rule<R: Fields>(&self, nth: usize) -> bool {
        let mut forms = R::FIELDS.iter().filter_map(|field| field.form);
        forms.any(|form| self.some(&in_row(form.name(), Some(nth))).is_some())
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        of: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Wrong> {
        let wrong = || Wrong(name.to_owned());
        self.some(name).map(|text| of(text).ok_or_else(wrong)).transpose()
    }
}

/// The name of a field in a row.
fn in_row(name: &str, nth: Option<usize>) -> String {
    nth.map_or_else(|| name.to_owned(), |nth| format!("{name}-{nth}"))
}

/// The field of the form in which the rule of this name stands.
pub(super) fn field_of<R: Fields>(json: &str, nth: Option<usize>) -> Option<Wrong> {
    let field = R::FIELDS.iter().find(|field| field.json == json)?;
    Some(Wrong(in_row(field.form?.name(), nth)))
}

/// A field as the page shows it.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) label: String,
    /// What it does, and what may be written.
    pub(super) means: String,
    pub(super) value: String,
    pub(super) wrong: bool,
    /// Values and their words; empty: anything may be typed.
    pub(super) choices: Vec<(&'static str, String)>,
    /// Several lines.
    pub(super) long: bool,
    /// It takes an instant, and `means` says in which zone.
    pub(super) zoned: Option<String>,
}

impl Field {
    /// The field `name`; `word` is its word among [`FIELDS`].
    ///
    /// # Panics
    /// On a word that is not among them.
    pub(super) fn new(
        (name, word): (&str, &str),
        typed: &Typed,
        wrong: Option<&Wrong>,
        lang: Language,
    ) -> Self {
        let known = FIELDS.iter().find(|(known, ..)| *known == word);
        let (_, label, means) = known.expect("every field has its messages");
        Self::with(name, (label, means), typed, wrong, lang)
    }

    /// With the messages of its label and its meaning.
    fn with(
        name: &str,
        (label, means): (&str, &str),
        typed: &Typed,
        wrong: Option<&Wrong>,
        lang: Language,
    ) -> Self {
        Self {
            name: name.to_owned(),
            label: say(lang, label, &[]),
            means: say(lang, means, &[]),
            value: typed.get(name).to_owned(),
            wrong: wrong.is_some_and(|wrong| wrong.0 == name),
            choices: Vec::new(),
            long: false,
            zoned: None,
        }
    }

    /// Each of `names`, whose messages end as they are called.
    pub(super) fn all(
        names: &[&str],
        typed: &Typed,
        wrong: Option<&Wrong>,
        lang: Language,
    ) -> Vec<Self> {
        names.iter().map(|name| Self::new((name, name), typed, wrong, lang)).collect()
    }

    /// Those of rules `R`, by their groups; `nth` is the row of a type.
    pub(super) fn of_rules<R: Fields>(
        nth: Option<usize>,
        typed: &Typed,
        wrong: Option<&Wrong>,
        lang: Language,
    ) -> Vec<(&'static str, Vec<Self>)> {
        let one = |field: &fields::Field<R>| {
            let form = field.form?;
            let name = in_row(form.name(), nth);
            let one = Self::with(&name, (form.label, form.means), typed, wrong, lang);
            let Unit::Word(words) = field.unit else { return Some(one) };
            Some(
                one.of(words.iter().map(|word| (word.word, say(lang, word.choice, &[]))).collect()),
            )
        };
        let group = |field: &fields::Field<R>| field.form.map(|form| form.group);
        let groups = R::FIELDS.chunk_by(|a, b| group(a) == group(b));
        let each = groups.filter_map(|fields| {
            Some((group(fields.first()?)?, fields.iter().filter_map(one).collect()))
        });
        each.collect()
    }

    /// One of these values.
    pub(super) fn of(mut self, choices: Vec<(&'static str, String)>) -> Self {
        self.choices = choices;
        self
    }

    /// Of several lines.
    pub(super) fn long(mut self) -> Self {
        self.long = true;
        self
    }
}

/// What is wrong, in the words of the field.
pub(super) fn sentence(fields: &[&Field], lang: Language) -> Option<String> {
    let wrong = fields.iter().find(|field| field.wrong)?;
    let args =
        [("field", Arg::from(wrong.label.as_str())), ("means", Arg::from(wrong.means.as_str()))];
    Some(say(lang, "field-wrong", &args))
}

/// Fields that belong together.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) fields: Vec<Field>,
}

/// A page with one form.
#[derive(Template)]
#[template(path = "pages/rules.html")]
pub(super) struct RulesPage {
    pub(super) frame: Frame,
    /// What it is about, in a sentence.
    pub(super) about: String,
    pub(super) error: Option<String>,
    pub(super) action: String,
    pub(super) groups: Vec<Group>,
    pub(super) yes: String,
    /// Where "no" goes.
    pub(super) back: String,
}

impl RulesPage {
    /// The same with what was refused.
    pub(super) fn refusing(mut self, refused: Option<&Refused>) -> Self {
        let lang = self.frame.lang;
        let fields: Vec<&Field> = self.groups.iter().flat_map(|group| &group.fields).collect();
        self.error = match refused {
            None => None,
            Some(Refused::Field(_)) => sentence(&fields, lang),
            Some(Refused::Other(error)) => Some(error.sentence(lang)),
        };
        self
    }
}

impl Refused {
    /// The field, if it is one.
    pub(super) fn field(&self) -> Option<&Wrong> {
        match self {
            Self::Field(wrong) => Some(wrong),
            Self::Other(_) => None,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Field(_) => StatusCode::BAD_REQUEST,
            Self::Other(error) => error.status_code(),
        }
    }
}

/// The answer with a page whose form is to be filled in, or was refused.
pub(super) fn answer(body: String, refused: Option<&Refused>) -> HttpResponse {
    let status = refused.map_or(StatusCode::OK, Refused::status);
    HttpResponse::build(status).content_type("text/html; charset=utf-8").body(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_as_it_was_written_and_nothing_is_none() {
        for ms in [1, 250, 1_000, 90_000, 86_400_000] {
            let given = Duration::from_millis(ms);
            let typed = Typed::from(vec![(
                "gap".to_owned(),
                soloist_domain::time::format_duration(given).to_string(),
            )]);
            assert_eq!(typed.length("gap"), Ok(Some(given)), "{ms}");
        }
        let typed = Typed::from(vec![("gap".to_owned(), " ".to_owned())]);
        assert_eq!(typed.length("gap"), Ok(None));
        let typed = Typed::from(vec![("gap".to_owned(), "soon".to_owned())]);
        assert_eq!(typed.length("gap"), Err(Wrong("gap".to_owned())));
    }
}
