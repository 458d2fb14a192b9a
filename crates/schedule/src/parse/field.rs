//! One field of an expression: numbers, names, ranges, steps and `H`.

use soloist_domain::name::JobName;

use crate::hash;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Which field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
    Year,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
            Self::Weekday => "weekday",
            Self::Year => "year",
        }
    }
}

/// Reads the fields of one expression.
pub(super) struct Reader<'a> {
    /// What `H` is made from.
    pub(super) job: &'a JobName,
    /// Weekdays count from 1, `?` is known.
    pub(super) quartz: bool,
}

impl Reader<'_> {
    /// What `*` means in this field.
    fn all(&self, field: Field) -> (i64, i64) {
        match field {
            Field::Second | Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::Day => (1, 31),
            Field::Month => (1, 12),
            Field::Weekday if self.quartz => (1, 7),
            Field::Weekday => (0, 6),
            Field::Year => (1970, 2099),
        }
    }

    /// A single number, such as in `15W`; of a weekday counted from 0.
    pub(super) fn one(&self, field: Field, text: &str) -> Result<i64, String> {
        let value = self.value(field, text)?;
        Ok(if field == Field::Weekday { self.weekday(value) } else { value })
    }

    fn weekday(&self, value: i64) -> i64 {
        (value - i64::from(self.quartz)).rem_euclid(7)
    }

    /// The numbers of a field as a mask; weekdays count from 0.
    pub(super) fn mask(&self, field: Field, text: &str) -> Result<u64, String> {
        let bit = |value| if field == Field::Weekday { self.weekday(value) } else { value };
        let numbers = self.numbers(field, text)?;
        Ok(numbers.into_iter().fold(0, |mask, value| mask | 1 << bit(value)))
    }

    /// The numbers of a field, as they are written.
    pub(super) fn numbers(&self, field: Field, text: &str) -> Result<Vec<i64>, String> {
        let mut numbers = Vec::new();
        for item in text.split(',') {
            let (low, high, step) = self.item(field, item)?;
            let mut value = low;
            while value <= high {
                numbers.push(value);
                value += step;
            }
        }
        Ok(numbers)
    }

    /// First, last and step.
    fn item(&self, field: Field, item: &str) -> Result<(i64, i64, i64), String> {
        let (low, high) = self.all(field);
        let (body, step) = match item.split_once('/') {
            None => (item, None),
            Some((body, step)) => (body, Some(self.step(field, item, step)?)),
        };
        if body == "*" {
            return Ok((low, high, step.unwrap_or(1)));
        }
        if body == "?" {
            return match (field, self.quartz, step) {
                (Field::Day | Field::Weekday, true, None) => Ok((low, high, 1)),
                (_, true, _) => Err(format!(
                    "? can only stand alone, in the field for days or for weekdays: write * in the field for the {}",
                    field.name()
                )),
                (_, false, _) => Err("? belongs to Quartz, whose weekdays count from 1 = Sunday: write * here, where 1 is Monday; or six fields and dialect = \"quartz\"".to_owned()),
            };
        }
        if let Some(range) = body.strip_prefix('H')
            && field != Field::Year
            && (range.is_empty() || range.starts_with('('))
        {
            return self.hashed(field, item, range, step);
        }
        if body == "~" {
            return Err("~: write H for a number made from the name of the job".to_owned());
        }
        if body.contains('~') {
            return Err(format!(
                "{item}: write H({}) for a number made from the name of the job",
                body.replace('~', "-")
            ));
        }
        if let Some((from, to)) = body.split_once('-') {
            let (first, mut last) = (self.value(field, from)?, self.value(field, to)?);
            // Until Sunday: the end of a week, whatever its number.
            if field == Field::Weekday && to == "SUN" && last < first {
                last += 7;
            }
            if first > last {
                return Err(self.backwards(field, from, to));
            }
            return Ok((first, last, step.unwrap_or(1)));
        }
        let value = self.value(field, body)?;
        // `0/10`: from there on.
        let last = if step.is_some() { high.max(value) } else { value };
        Ok((value, last, step.unwrap_or(1)))
    }

    fn backwards(&self, field: Field, from: &str, to: &str) -> String {
        let (low, high) = self.all(field);
        let ends = match field {
            Field::Year => return format!("{from}-{to} goes backwards: write {to}-{from}"),
            Field::Weekday if from.starts_with(char::is_alphabetic) => {
                ("SAT".to_owned(), "SUN".to_owned())
            }
            Field::Month if from.starts_with(char::is_alphabetic) => {
                ("DEC".to_owned(), "JAN".to_owned())
            }
            _ => (high.to_string(), low.to_string()),
        };
        let range = |one: &str, other: &str| {
            if one == other { one.to_owned() } else { format!("{one}-{other}") }
        };
        format!(
            "{from}-{to} goes backwards in the field for the {}: write {},{}",
            field.name(),
            range(from, &ends.0),
            range(&ends.1, to)
        )
    }

    fn step(&self, field: Field, item: &str, text: &str) -> Result<i64, String> {
        let (low, high) = self.all(field);
        let most = high - low + 1;
        let step = number(text).filter(|step| (1..=most).contains(step));
        step.ok_or_else(|| {
            let every = match (field, number(text)) {
                (Field::Second, Some(step)) if step > 0 => {
                    format!("; every = \"{step}s\" is an interval")
                }
                (Field::Minute, Some(step)) if step > 0 => {
                    format!("; every = \"{step}m\" is an interval")
                }
                (Field::Hour, Some(step)) if step > 0 => {
                    format!("; every = \"{step}h\" is an interval")
                }
                _ => String::new(),
            };
            format!(
                "{item}: behind / stands a step of 1 to {most} in the field for the {}{every}",
                field.name()
            )
        })
    }

    /// `H`, `H(0-29)`, `H/15`, `H(0-29)/10`.
    fn hashed(
        &self,
        field: Field,
        item: &str,
        range: &str,
        step: Option<i64>,
    ) -> Result<(i64, i64, i64), String> {
        let (low, high) = match field {
            // Each month has these.
            Field::Day => (1, 28),
            _ => self.all(field),
        };
        let (low, high) = if range.is_empty() {
            (low, high)
        } else {
            let inner = range.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let ends = inner.and_then(|inner| inner.split_once('-'));
            let (from, to) =
                ends.ok_or_else(|| format!("{item}: write H, H(0-29), H/15 or H(0-29)/10"))?;
            let (first, last) = (self.value(field, from)?, self.value(field, to)?);
            if first > last {
                return Err(format!("{item}: the range of H goes backwards: write H({to}-{from})"));
            }
            (first, last)
        };
        let width = high - low + 1;
        let choices = step.unwrap_or(width).min(width);
        let made = hash::number(&["H", self.job.as_str(), field.name()], choices.unsigned_abs());
        let first = low + i64::try_from(made).unwrap_or(0);
        Ok((first, if step.is_some() { high } else { first }, step.unwrap_or(1)))
    }

    fn value(&self, field: Field, text: &str) -> Result<i64, String> {
        let (low, high) = self.all(field);
        let names: &[&str] = match field {
            Field::Month => &MONTHS,
            Field::Weekday => &WEEKDAYS,
            _ => &[],
        };
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Ok(i64::try_from(index).unwrap_or(0) + low);
        }
        // 7 is Sunday for cron, too.
        let most = if field == Field::Weekday { 7 } else { high };
        if let Some(value) = number(text) {
            return if (low..=most).contains(&value) {
                Ok(value)
            } else if field == Field::Weekday {
                let sunday = if self.quartz { "1 is Sunday" } else { "0 and 7 are Sunday" };
                Err(format!("{value} is no weekday: write {low} to {most}, where {sunday}"))
            } else {
                Err(format!("{value} is no {}: write {low} to {most}", field.name()))
            };
        }
        let names = match field {
            Field::Month => ", or JAN to DEC",
            Field::Weekday => ", or MON to SUN",
            _ => "",
        };
        Err(format!(
            "{:?} cannot be read in the field for the {}: write numbers from {low} to {most}{names}, such as 1,5 or 1-5 or */5",
            text.chars().take(40).collect::<String>(),
            field.name()
        ))
    }
}

/// Digits only: no sign.
fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 6 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}
