//! Reads expressions, intervals and instants. An ambiguous text is refused with both readings.

mod field;

use std::time::Duration;

use jiff::Timestamp;
use soloist_domain::name::JobName;

use crate::cron::{Cron, Days, Weekdays};
use crate::{Times, Wrong, words};
use field::{Field, Reader};

/// The longest text of one expression, in bytes.
const LONGEST: usize = 500;

/// How the fields of an expression are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Five fields, 0 and 7 are Sunday.
    Unix,
    /// The same with a field for seconds: only to say how it would be read.
    UnixSeconds,
    /// Six or seven fields, 1 is Sunday.
    Quartz,
}

/// `text` in a message: on one line.
fn flat(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What somebody wrote in a message: short, too.
fn told(text: &str) -> String {
    let mut told: String = flat(text).chars().take(120).collect();
    if text.chars().nth(120).is_some() {
        told.push_str("...");
    }
    told
}

/// The expressions of a list that can be read; what is wrong with the others goes into `wrong`.
pub(crate) fn list(
    job: &JobName,
    lines: &[String],
    quartz: bool,
    wrong: &mut Vec<Wrong>,
) -> Vec<Cron> {
    if lines.is_empty() {
        let text = "schedule is empty: write an expression such as \"30 2 * * 1-5\"".to_owned();
        wrong.push(Wrong { line: None, text });
    }
    let mut read = Vec::new();
    for (line, text) in lines.iter().enumerate() {
        match expression(job, text, quartz) {
            Ok(cron) => read.push(cron),
            Err(why) => {
                let text = format!("{}: {}", told(text.trim()), flat(&why));
                wrong.push(Wrong { line: Some(line), text });
            }
        }
    }
    read
}

/// One expression, or what to write instead.
fn expression(job: &JobName, text: &str, quartz: bool) -> Result<Cron, String> {
    if text.len() > LONGEST {
        return Err(format!("this expression is longer than {LONGEST} characters"));
    }
    let text = text.to_ascii_uppercase();
    let fields: Vec<&str> = text.split_whitespace().collect();
    if let [word, rest @ ..] = fields.as_slice()
        && word.starts_with('@')
    {
        let fields: Vec<&str> = named(word, rest)?.split(' ').collect();
        return read(job, &fields, Dialect::Unix);
    }
    match (fields.len(), quartz) {
        (0, _) => Err("this expression is empty: write one such as \"30 2 * * 1-5\"".to_owned()),
        (5, false) => read(job, &fields, Dialect::Unix),
        (6 | 7, true) => read(job, &fields, Dialect::Quartz),
        (6, false) => Err(six(job, &fields)),
        (7, false) => Err(format!(
            "seven fields are an expression of Quartz. {}Write dialect = \"quartz\"",
            reading("Quartz reads", read(job, &fields, Dialect::Quartz))
        )),
        (5, true) => Err(format!(
            "an expression of Quartz has six or seven fields, and the first is for seconds: write 0 {}, where 1 is Sunday; or leave out dialect = \"quartz\"",
            fields.join(" ")
        )),
        (count, false) => Err(format!(
            "an expression has five fields (minute, hour, day, month, weekday), this one has {count}"
        )),
        (count, true) => Err(format!(
            "an expression of Quartz has six or seven fields (second, minute, hour, day, month, weekday, year), this one has {count}"
        )),
    }
}

/// What `@daily` and the like stand for.
fn named(word: &str, rest: &[&str]) -> Result<&'static str, String> {
    let found = match word {
        "@YEARLY" | "@ANNUALLY" => "0 0 1 1 *",
        "@MONTHLY" => "0 0 1 * *",
        "@WEEKLY" => "0 0 * * 0",
        "@DAILY" | "@MIDNIGHT" => "0 0 * * *",
        "@HOURLY" => "0 * * * *",
        "@EVERY" => {
            return Err(format!(
                "write every = \"{}\" instead",
                rest.first().map_or("15m".to_owned(), |text| text.to_ascii_lowercase())
            ));
        }
        "@REBOOT" => {
            return Err("the start of a machine is no time: a job without schedule runs whenever somebody wants it".to_owned());
        }
        _ => {
            return Err("this word is not known: write @yearly, @monthly, @weekly, @daily, @midnight or @hourly, or five fields".to_owned());
        }
    };
    if rest.is_empty() { Ok(found) } else { Err(format!("write {word} alone, without fields")) }
}

fn reading(who: &str, read: Result<Cron, String>) -> String {
    match read {
        Ok(cron) => format!("{who} \"{}\". ", words::cron(&cron, false)),
        Err(why) => format!("{who} nothing ({why}). "),
    }
}

/// Why six fields without a dialect are refused: both readings.
fn six(job: &JobName, fields: &[&str]) -> String {
    let quartz = read(job, fields, Dialect::Quartz);
    // `?` is only known to Quartz, and stands for any day.
    let plain: Vec<&str> =
        fields.iter().map(|field| if *field == "?" { "*" } else { *field }).collect();
    let unix = read(job, &plain, Dialect::UnixSeconds);
    if let (Err(why), Err(_)) = (&quartz, &unix) {
        return format!(
            "an expression has five fields (minute, hour, day, month, weekday), this one has six. Six fields with dialect = \"quartz\" begin with the second, but this cannot be read so: {why}"
        );
    }
    let five = plain[1..].join(" ");
    let instead = match (&unix, plain[0]) {
        (Ok(_), "0") => format!(", or the five fields {five} for what cron reads"),
        (Ok(_), _) => " (five fields have no seconds)".to_owned(),
        _ => String::new(),
    };
    let readings = match (&quartz, &unix) {
        (Ok(one), Ok(other)) if words::cron(one, false) == words::cron(other, false) => reading(
            "six fields need a dialect. Quartz and cron with a field for seconds read",
            quartz,
        ),
        _ => format!(
            "six fields can be read in two ways. {}{}",
            reading("Quartz reads", quartz),
            reading("Cron with a field for seconds reads", unix.clone())
        ),
    };
    format!("{readings}Write dialect = \"quartz\" for what Quartz reads{instead}")
}

fn read(job: &JobName, fields: &[&str], dialect: Dialect) -> Result<Cron, String> {
    let quartz = dialect == Dialect::Quartz;
    let reader = Reader { job, quartz };
    let (second, rest) = match dialect {
        Dialect::Unix => ("0", fields),
        _ => (fields[0], &fields[1..]),
    };
    let [minute, hour, day, month, weekday, year @ ..] = rest else {
        return Err("this expression has too few fields".to_owned());
    };
    if *day == "?" && *weekday == "?" {
        return Err(
            "only one of day and weekday can be ?: write * for one of them to mean every day"
                .to_owned(),
        );
    }
    let years = match year.first().filter(|year| **year != "*" && **year != "?") {
        None => None,
        Some(year) => Some(
            reader
                .numbers(Field::Year, year)?
                .into_iter()
                .filter_map(|y| y.try_into().ok())
                .collect(),
        ),
    };
    Ok(Cron {
        seconds: reader.mask(Field::Second, second)?,
        minutes: reader.mask(Field::Minute, minute)?,
        hours: reader.mask(Field::Hour, hour)?,
        days: days(&reader, day)?,
        months: reader.mask(Field::Month, month)?,
        weekdays: weekdays(&reader, weekday)?,
        years,
        fixed: !hour.contains('*'),
        text: fields.join(" "),
    })
}

fn days(reader: &Reader<'_>, text: &str) -> Result<Days, String> {
    let mut days = Days { star: text.starts_with(['*', '?']), ..Days::default() };
    for item in text.split(',') {
        if item == "L" {
            days.last = true;
        } else if item == "LW" || item == "WL" {
            days.last_working = true;
        } else if item.starts_with("L-") {
            return Err(format!(
                "{item} (days before the last day of the month) is not supported: write L for the last day, or the days, such as 27"
            ));
        } else if let Some(day) = item.strip_suffix('W') {
            days.nearest |= 1 << reader.one(Field::Day, day)?;
        } else {
            days.mask |= reader.mask(Field::Day, item)?;
        }
    }
    Ok(days)
}

fn weekdays(reader: &Reader<'_>, text: &str) -> Result<Weekdays, String> {
    let mut weekdays = Weekdays { star: text.starts_with(['*', '?']), ..Weekdays::default() };
    for item in text.split(',') {
        if let Some((weekday, count)) = item.split_once('#') {
            let weekday = 1 << reader.one(Field::Weekday, weekday)?;
            let nth = count.parse::<usize>().ok().and_then(|count| count.checked_sub(1));
            let slot = nth.and_then(|nth| weekdays.nth.get_mut(nth));
            *slot.ok_or_else(|| {
                format!("{item}: behind # stands which one of the month it is, 1 to 5; write L instead of # for the last one")
            })? |= weekday;
        } else if item == "L" {
            if !reader.quartz {
                return Err("L in the field for weekdays needs a weekday before it: write 5L for the last Friday of the month".to_owned());
            }
            weekdays.mask |= 1 << 6;
        } else if let Some(weekday) = item.strip_suffix('L') {
            weekdays.last |= 1 << reader.one(Field::Weekday, weekday)?;
        } else {
            weekdays.mask |= reader.mask(Field::Weekday, item)?;
        }
    }
    Ok(weekdays)
}

/// `every` and `offset`.
pub(crate) fn every(every: Duration, offset: Duration, wrong: &mut Vec<Wrong>) -> Option<Times> {
    let mut refuse = |text: &str| wrong.push(Wrong { line: None, text: text.to_owned() });
    if every.subsec_nanos() != 0 || every.is_zero() {
        refuse("every must be a whole number of seconds, at least 1s");
    }
    if offset.subsec_nanos() != 0 {
        refuse("offset must be a whole number of seconds");
    }
    // A hundred years: more is a slip, and at does it.
    let most = 100 * 366 * 86_400;
    if every.as_secs() > most {
        refuse("every is longer than 100 years: write at = \"...\" for a single time");
    }
    let seconds = |length: Duration| i64::try_from(length.as_secs()).ok();
    let every = seconds(every).filter(|every| *every > 0)?;
    Some(Times::Every {
        every,
        offset: i64::try_from(offset.as_secs() % every.unsigned_abs()).ok()?,
    })
}

/// The instants of `at`, sorted, each once, in seconds.
pub(crate) fn instants(texts: &[String], wrong: &mut Vec<Wrong>) -> Vec<i64> {
    if texts.is_empty() {
        let text = "at is empty: write an instant such as \"2026-12-01T08:00:00+08:00\"".to_owned();
        wrong.push(Wrong { line: None, text });
    }
    let mut instants = Vec::new();
    for (line, text) in texts.iter().enumerate() {
        match instant(text.trim()) {
            Ok(at) => instants.push(at),
            Err(why) => {
                let text = format!("{}: {}", told(text.trim()), flat(&why));
                wrong.push(Wrong { line: Some(line), text });
            }
        }
    }
    instants.sort_unstable();
    instants.dedup();
    instants
}

fn instant(text: &str) -> Result<i64, String> {
    // RFC 3339 only: jiff reads more, such as a week date or the name of a zone.
    let parsed = if text.len() <= 40 && !text.contains('[') {
        text.parse::<Timestamp>()
    } else {
        return Err(FORM.to_owned());
    };
    match parsed {
        Ok(at) if at.subsec_nanosecond() != 0 => Err("write whole seconds".to_owned()),
        Ok(at) => Ok(at.as_second()),
        Err(_) if text.parse::<jiff::civil::DateTime>().is_ok() => Err(
            "this instant has no offset: write the offset of its zone behind it, such as 2026-12-01T08:00:00+08:00, or Z for UTC".to_owned(),
        ),
        Err(_) => Err(FORM.to_owned()),
    }
}

/// What `at` looks like.
const FORM: &str =
    "this is not an instant: write date, time and offset, such as 2026-12-01T08:00:00+08:00";
