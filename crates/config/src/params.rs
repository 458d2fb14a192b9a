//! Parameters of a job: what a person may set for one run, and how that is checked. A script gets them as variables, never in a command line.

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::civil::Date;

use super::document::{Field, Section};
use soloist_domain::detail::Detail;
use soloist_domain::tick::{Fill, Tick};

const REMEDY: &str = r#"write params = { day = { type = "date", default = "yesterday" }, mode = { type = "choice", of = ["fast", "full"], default = "fast" } }"#;
/// The longest text, in bytes.
const LONGEST: usize = 4_096;
/// How a name of a variable may begin and continue.
const NAME: &str = "use lower-case letters, digits and '_', a letter first, at most 40";

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name; the script gets `SOLOIST_PARAM_` and this in capitals.
    pub name: String,
    /// What it may be.
    pub kind: ParamKind,
    /// As the file has it: of a date perhaps `today` or `yesterday`.
    pub default: Option<String>,
}

/// What a parameter may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamKind {
    /// `2026-11-27`, `today` or `yesterday`.
    Date,
    /// One of these.
    Choice(Vec<String>),
    /// A whole number within these, both included.
    Int {
        /// The least.
        min: Option<i64>,
        /// The most.
        max: Option<i64>,
    },
    /// One line of text.
    Text {
        /// A whole text must match this: letters, `[a-z]`, `*`, `+`, `?`, as in a regular expression.
        pattern: Option<String>,
        /// The longest, in bytes.
        most: usize,
    },
}

impl Param {
    /// The word in the file and in JSON.
    #[must_use]
    pub fn kind_word(&self) -> &'static str {
        match self.kind {
            ParamKind::Date => "date",
            ParamKind::Choice(_) => "choice",
            ParamKind::Int { .. } => "int",
            ParamKind::Text { .. } => "text",
        }
    }

    /// The value that a run gets for `given`; relative dates are settled by `today`.
    ///
    /// # Errors
    /// What is wrong with it, and what it may be.
    pub fn value(&self, given: &str, today: Date) -> Result<String, Detail> {
        let Self { name, kind, .. } = self;
        let no =
            |text: String, id, more: &[(&'static str, &dyn Display)]| -> Result<String, Detail> {
                let args: [(&'static str, &dyn Display); 2] = [("name", name), ("value", &given)];
                Err(Detail::new(text).told(id, &[&args[..], more].concat()))
            };
        match kind {
            ParamKind::Date => match given {
                "today" => Ok(today.to_string()),
                "yesterday" => today
                    .yesterday()
                    .map(|day| day.to_string())
                    .map_err(|_| Detail::new(format!("{name}: there is no day before {today}"))),
                _ => match given.parse::<Date>() {
                    Ok(day) if day.to_string() == given => Ok(given.to_owned()),
                    _ => no(
                        format!(
                            "{name}: {given:?} is no date: write 2026-11-27, today or yesterday"
                        ),
                        "refused-param-date",
                        &[],
                    ),
                },
            },
            ParamKind::Choice(of) if of.iter().any(|one| one == given) => Ok(given.to_owned()),
            ParamKind::Choice(of) => {
                let text =
                    format!("{name}: {given:?} is none of its values: write {}", of.join(" or "));
                no(text, "refused-param-choice", &[("of", &of.join(", "))])
            }
            ParamKind::Int { min, max } => {
                let Ok(number) = given.parse::<i64>() else {
                    let text = format!("{name}: {given:?} is no whole number");
                    return no(text, "refused-param-int", &[]);
                };
                match (min, max) {
                    (Some(min), _) if number < *min => no(
                        format!("{name}: {number} is less than {min}"),
                        "refused-param-less",
                        &[("min", min)],
                    ),
                    (_, Some(max)) if number > *max => no(
                        format!("{name}: {number} is more than {max}"),
                        "refused-param-more",
                        &[("max", max)],
                    ),
                    _ => Ok(number.to_string()),
                }
            }
            ParamKind::Text { pattern, most } => {
                if given.contains(['\0', '\n', '\r']) {
                    let text = format!("{name}: a text is one line, without NUL characters");
                    return no(text, "refused-param-line", &[]);
                }
                if given.len() > *most {
                    let length = given.len();
                    return no(
                        format!(
                            "{name}: the text has {length} bytes, and at most {most} are allowed"
                        ),
                        "refused-param-long",
                        &[("length", &length), ("most", most)],
                    );
                }
                let fits = pattern.as_ref().is_none_or(|pattern| {
                    regex_lite::Regex::new(&whole(pattern)).is_ok_and(|regex| regex.is_match(given))
                });
                match (fits, pattern) {
                    (false, Some(pattern)) => no(
                        format!("{name}: {given:?} does not match {pattern}"),
                        "refused-param-pattern",
                        &[("pattern", pattern)],
                    ),
                    _ => Ok(given.to_owned()),
                }
            }
        }
    }
}

fn whole(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}

/// The values that a run gets: those `given`, else the defaults; without either it is empty if `clock` starts the run.
///
/// # Errors
/// The first thing that is wrong, with the name of the parameter.
pub fn values(
    params: &[Param],
    given: &BTreeMap<String, String>,
    today: Date,
    clock: bool,
) -> Result<BTreeMap<String, String>, Detail> {
    if let Some(unknown) = given.keys().find(|name| params.iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        let text = match known.is_empty() {
            true => format!("{unknown}: the job has no parameters"),
            false => format!("{unknown}: no such parameter: the job has {}", known.join(", ")),
        };
        return Err(Detail::new(text).told("refused-param-unknown", &[("name", unknown)]));
    }
    params
        .iter()
        .map(|param| {
            let text = given.get(&param.name).or(param.default.as_ref());
            let value = match text {
                Some(text) => param.value(text, today)?,
                None if clock => String::new(),
                None => {
                    let name = &param.name;
                    let text = format!("{name}: is needed: it has no default");
                    return Err(Detail::new(text).told("refused-param-needed", &[("name", name)]));
                }
            };
            Ok((param.name.clone(), value))
        })
        .collect()
}

/// The parameters of a job, and the zone in which its days are.
#[derive(Debug)]
pub(super) struct Filler {
    pub(super) params: Vec<Param>,
    pub(super) zone: jiff::tz::TimeZone,
}

impl Fill for Filler {
    fn fill(&self, tick: &Tick, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let at = jiff::Timestamp::from_millisecond(tick.due.0).unwrap_or_default();
        let today = at.to_zoned(self.zone.clone()).date();
        // What does not fit was refused when it was asked for; a file may have changed since.
        values(&self.params, given, today, true).unwrap_or_else(|_| given.clone())
    }
}

/// Reads `params`.
pub(super) fn read(section: &Section<'_>) -> Option<Vec<Param>> {
    let Some(field) = section.get("params") else { return Some(Vec::new()) };
    let table = field.table(REMEDY)?;
    let mut params = Vec::new();
    let mut whole = true;
    for (name, field) in table.fields() {
        match param(name, &field) {
            Some(param) => params.push(param),
            None => whole = false,
        }
    }
    whole.then_some(params)
}

fn param(name: &str, field: &Field<'_>) -> Option<Param> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_lowercase());
    let goes_on = letters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
    if !begins || !goes_on || name.len() > 40 {
        field.wrong(format!("is no name of a parameter: {NAME}"));
        return None;
    }
    let table = field.table(REMEDY)?;
    let Some(kind) = table.get("type") else {
        table.missing("type", r#"write type = "date", "choice", "int" or "text""#);
        return None;
    };
    let number = |key: &str| {
        let field = table.get(key)?;
        field.integer::<i64>(i64::MIN, "write a whole number")
    };
    let kind = match kind.text(REMEDY)? {
        "date" => {
            table.only(&["type", "default"]);
            ParamKind::Date
        }
        "choice" => {
            table.only(&["type", "default", "of"]);
            let Some(of) = table.get("of") else {
                table.missing("of", r#"write of = ["fast", "full"]"#);
                return None;
            };
            let of = of.texts(r#"write of = ["fast", "full"]"#)?;
            if of.is_empty() {
                if let Some(field) = table.get("of") {
                    field.wrong(r#"is empty, so no value fits: write of = ["fast", "full"]"#);
                }
                return None;
            }
            ParamKind::Choice(of.into_iter().map(|(_, text)| text.to_owned()).collect())
        }
        "int" => {
            table.only(&["type", "default", "min", "max"]);
            let (min, max) = (number("min"), number("max"));
            if let (Some(field), Some(min), Some(max)) = (table.get("max"), min, max)
                && max < min
            {
                field.wrong(format!(
                    "{max} is less than min {min}, so no value fits: exchange them, or remove one"
                ));
                return None;
            }
            ParamKind::Int { min, max }
        }
        "text" => {
            table.only(&["type", "default", "pattern", "most"]);
            let most = table.get("most").map_or(Some(LONGEST), |field| {
                let most = field.integer::<usize>(1, "write the longest text in bytes, to 4096")?;
                (most <= LONGEST).then_some(most).or_else(|| {
                    field.wrong("is more than 4096: a text has 4 KiB at most");
                    None
                })
            })?;
            let mut pattern = None;
            if let Some(field) = table.get("pattern") {
                let text = field.text(r#"write pattern = "[a-z ]*""#)?;
                if let Err(error) = regex_lite::Regex::new(&whole(text)) {
                    field.wrong(format!("is no pattern: {error}"));
                    return None;
                }
                pattern = Some(text.to_owned());
            }
            ParamKind::Text { pattern, most }
        }
        other => {
            kind.wrong(format!(
                "{other:?} is no type: write \"date\", \"choice\", \"int\" or \"text\""
            ));
            return None;
        }
    };
    let mut param = Param { name: name.to_owned(), kind, default: None };
    if let Some(field) = table.get("default") {
        let text = match field.value.as_integer() {
            Some(number) if matches!(param.kind, ParamKind::Int { .. }) => number.to_string(),
            _ => field.text(REMEDY)?.to_owned(),
        };
        if let Err(why) = param.value(&text, Date::constant(2026, 11, 27)) {
            field.wrong(why.to_string());
            return None;
        }
        param.default = Some(text);
    }
    Some(param)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_does_not_fit_is_named_and_relative_dates_are_settled() {
        let today = Date::constant(2026, 3, 1);
        let param = |kind| Param { name: "p".to_owned(), kind, default: None };
        let date = param(ParamKind::Date);
        assert_eq!(date.value("yesterday", today), Ok("2026-02-28".to_owned()));
        assert!(date.value("2026-02-30", today).is_err() && date.value("1.3.", today).is_err());
        let int = param(ParamKind::Int { min: Some(0), max: Some(9) });
        assert_eq!(int.value("07", today), Ok("7".to_owned()));
        assert!(["10", "-1", "x", ""].iter().all(|text| int.value(text, today).is_err()));
        let text = param(ParamKind::Text { pattern: Some("[a-z ]*|x".to_owned()), most: 5 });
        assert!(text.value("ab c", today).is_ok());
        for wrong in ["abcdefg", "ab\nc", "A", "ab\0"] {
            assert!(text.value(wrong, today).is_err(), "{wrong:?}");
        }
        let choice = param(ParamKind::Choice(vec!["fast".to_owned()]));
        assert!(choice.value("full", today).unwrap_err().text().contains("write fast"));
        let given = BTreeMap::from([("q".to_owned(), "1".to_owned())]);
        assert!(
            values(std::slice::from_ref(&int), &given, today, false)
                .unwrap_err()
                .text()
                .contains("has p")
        );
        assert!(values(std::slice::from_ref(&int), &BTreeMap::new(), today, false).is_err());
        let clock = values(&[int], &BTreeMap::new(), today, true).unwrap();
        assert_eq!(clock["p"], "");
    }
}
