//! Rules as options of the command line, and in a few words, by the tables of `domain`.

use std::fmt::{self, Debug, Formatter};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::Result as Parsed;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use soloist_domain::fields::{Field, Fields, Given, Unit};

use super::Failure;

/// Options for each field of rules `R`.
pub struct RuleArgs<R: 'static>(Given<R>);

impl<R: Fields> RuleArgs<R> {
    /// `rules` with what was said.
    pub(super) fn onto(&self, rules: R) -> Result<R, Failure> {
        self.0.onto(rules).map_err(|wrong| Failure::Usage(wrong.to_string()))
    }
}

impl<R> Debug for RuleArgs<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("RuleArgs")
    }
}

impl<R: Fields> Args for RuleArgs<R> {
    fn augment_args(command: Command) -> Command {
        let options = R::FIELDS.chunk_by(|a, b| a.option == b.option);
        options.filter_map(option).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Fields> FromArgMatches for RuleArgs<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Parsed<Self> {
        let options = R::FIELDS.chunk_by(|a, b| a.option == b.option);
        let said = options.flat_map(|fields| match fields {
            [flag] if matches!(flag.unit, Unit::Flag) => {
                vec![Some(matches.get_flag(flag.option).into())]
            }
            [field, ..] => each(fields, matches.get_one::<Vec<u64>>(field.option)),
            [] => Vec::new(),
        });
        Ok(Self(said.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Parsed<()> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The values of an option, of its fields.
fn each<R>(fields: &[Field<R>], said: Option<&Vec<u64>>) -> Vec<Option<u64>> {
    (0..fields.len()).map(|nth| said.and_then(|said| said.get(nth).copied())).collect()
}

fn option<R: Fields>(fields: &'static [Field<R>]) -> Option<Arg> {
    let (field, more) = fields.split_first()?;
    let default = match field.default.filter(|default| field.is_rule(*default)) {
        Some(default) => field.text(default),
        None => "none".to_owned(),
    };
    let arg = Arg::new(field.option).long(field.option);
    let read = move |text: &str| values(fields, text);
    Some(
        match field.unit {
            Unit::Flag => return Some(arg.help(field.about).action(ArgAction::SetTrue)),
            Unit::Word(words) => {
                let words = PossibleValuesParser::new(words.iter().map(|word| word.word));
                arg.value_name("WORD").value_parser(words.try_map(move |word| read(&word)))
            }
            Unit::Length => arg.value_name("DUR").value_parser(read),
            Unit::Count if more.is_empty() => arg.value_name("N").value_parser(read),
            Unit::Count => {
                let help = format!("{}, as 100/1m [default: {default}]", field.about);
                return Some(arg.value_name("N/DUR").value_parser(read).help(help));
            }
        }
        .help(format!("{} [default: {default}]", field.about)),
    )
}

/// What was written for an option of these fields.
fn values<R>(fields: &[Field<R>], text: &str) -> Result<Vec<u64>, String> {
    let parts: Vec<&str> = match fields {
        [_] => vec![text],
        _ => text.split('/').map(str::trim).collect(),
    };
    if parts.len() != fields.len() {
        return Err("use a number and a time, for example 100/1m".to_owned());
    }
    let read = |(field, part): (&Field<R>, &str)| {
        field.read(part).ok_or_else(|| match field.unit {
            Unit::Length => "use a number with a unit, for example 250ms, 5s, 10m, 90d".to_owned(),
            _ if fields.len() > 1 => "use a number and a time, for example 100/1m".to_owned(),
            _ => "use a whole number".to_owned(),
        })
    };
    fields.iter().zip(parts).map(read).collect()
}

/// Rules that stand behind a name and commas, as `gap=2s,quota=10/1m`.
pub(super) fn behind<'t, R: Fields>(
    parts: impl Iterator<Item = &'t str>,
) -> Result<Given<R>, String> {
    let mut said = Vec::new();
    for part in parts {
        let fields = part.split_once('=').and_then(|(name, text)| {
            let mut options = R::FIELDS.chunk_by(|a, b| a.option == b.option);
            Some((options.find(|fields| fields.iter().any(|field| field.option == name))?, text))
        });
        let (fields, text) = fields.ok_or_else(|| {
            format!(
                "{part:?} is no rule of a type: use gap=2s, quota=10/1m or both, behind its name and commas"
            )
        })?;
        said.extend(fields.iter().map(|field| field.json).zip(values(fields, text)?));
    }
    let value =
        |field: &Field<R>| said.iter().rfind(|(json, _)| *json == field.json).map(|(_, n)| *n);
    Ok(R::FIELDS.iter().map(value).collect())
}

/// Rules in a few words; what is on or off comes first.
pub(super) fn words<R: Fields>(rules: &Given<R>) -> Vec<String> {
    let fields = rules.each();
    let options = fields.chunk_by(|(a, _), (b, _)| a.option == b.option);
    let said = |values: &[(&'static Field<R>, Option<u64>)]| {
        let (field, _) = values.first().filter(|(field, _)| field.lists.has_terminal())?;
        let texts: Option<Vec<String>> = values
            .iter()
            .map(|(field, value)| {
                let told = value.filter(|n| *n > 0 || field.default != Some(0))?;
                Some(field.text(told))
            })
            .collect();
        let texts = texts?.join(" in ");
        Some(match field.unit {
            Unit::Flag => (0, field.option.to_owned()),
            _ => (1, format!("{} {texts}", field.option)),
        })
    };
    let mut said: Vec<(u8, String)> = options.filter_map(said).collect();
    said.sort_by_key(|(place, _)| *place);
    said.into_iter().map(|(_, words)| words).collect()
}
