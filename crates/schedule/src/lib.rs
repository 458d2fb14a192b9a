//! When jobs are due: expressions and zones turned into [`Ticks`](soloist_domain::tick::Ticks).
//!
//! | file | what it does |
//! | --- | --- |
//! | `parse/` | reads the text of an expression, or says what to write instead |
//! | `cron` | the civil days and times that an expression means, without a zone |
//! | `walk` | those times in a zone: gap, fold and corrections of its clocks |
//! | `ticks` | lists, jitter, names |
//! | `latest` | the next tick, remembered |
//! | `look` | shortest interval, canonical text |
//! | `words/` | an expression in words, English and Chinese |
//! | `zone` | the machine's table of zones |
//!
//! Nothing here reads a clock or takes the zone of the machine.

mod cron;
mod hash;
mod latest;
mod look;
mod parse;
#[cfg(test)]
mod tests;
mod ticks;
mod walk;
mod words;
mod zone;

use std::time::Duration;

use jiff::tz::TimeZone;
use soloist_domain::name::JobName;

pub use zone::tzdb_version;

/// What a job's keys say about when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// `schedule`, `every` or `at`.
    pub kind: Kind,
    /// The IANA name of its zone; cron needs one.
    pub zone: Option<String>,
    /// The longest time by which a tick starts later than it is due; it is never reached.
    pub jitter: Duration,
}

/// The three ways to say when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `schedule`: one set of cron expressions.
    Cron {
        /// The expressions.
        lines: Vec<String>,
        /// `dialect = "quartz"`: 6 or 7 fields, 1 = Sunday.
        quartz: bool,
    },
    /// `every`: counted from 1970-01-01T00:00Z plus `offset`; both in whole seconds.
    Every {
        /// From one tick to the next.
        every: Duration,
        /// By how much all of them are later.
        offset: Duration,
    },
    /// `at`: instants in RFC 3339.
    At(Vec<String>),
}

/// What is wrong with a [`Spec`], and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Which entry of the list, from 0; `None`: the whole.
    pub line: Option<usize>,
    /// For the person who wrote it.
    pub text: String,
}

/// When one job is due.
#[derive(Debug, Clone)]
pub struct Schedule {
    job: JobName,
    times: Times,
    /// In milliseconds, at least 0.
    jitter: i64,
    expressions: Vec<String>,
    zone: Option<String>,
    latest: latest::Latest,
}

/// Times are in seconds since 1970-01-01T00:00Z.
#[derive(Debug, Clone)]
enum Times {
    Cron { lines: Vec<cron::Cron>, quartz: bool, zone: TimeZone, name: String },
    Every { every: i64, offset: i64 },
    At(Vec<i64>),
}

impl Schedule {
    /// Reads what the keys of `job` say; its name is what `H` and jitter are made from.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the list.
    pub fn read(job: &JobName, spec: &Spec) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let zone = match spec.zone.as_deref().map(zone::of) {
            None => None,
            Some(Ok(zone)) => Some(zone),
            Some(Err(text)) => {
                wrong.push(Wrong { line: None, text });
                None
            }
        };
        let jitter = i64::try_from(spec.jitter.as_millis()).unwrap_or(i64::MAX / 4);
        let read = match &spec.kind {
            Kind::Cron { lines, quartz } => {
                let zone = zone.clone().or_else(|| {
                    if spec.zone.is_none() {
                        wrong.push(Wrong { line: None, text: zone::MISSING.to_owned() });
                    }
                    None
                });
                let lines = parse::list(job, lines, *quartz, &mut wrong);
                zone.map(|(zone, name)| Times::Cron { lines, quartz: *quartz, zone, name })
            }
            Kind::Every { every, offset } => parse::every(*every, *offset, &mut wrong),
            Kind::At(instants) => Some(Times::At(parse::instants(instants, &mut wrong))),
        };
        let Some(times) = read.filter(|_| wrong.is_empty()) else { return Err(wrong) };
        let expressions = match &spec.kind {
            Kind::Cron { lines, .. } => lines.iter().map(|line| line.trim().to_owned()).collect(),
            Kind::Every { .. } => vec![look::interval(&times)],
            Kind::At(instants) => instants.iter().map(|at| at.trim().to_owned()).collect(),
        };
        let zone = zone.map(|(_, name)| name);
        let latest = latest::Latest::default();
        let read = Self { job: job.clone(), times, jitter, expressions, zone, latest };
        read.check(&mut wrong);
        if wrong.is_empty() { Ok(read) } else { Err(wrong) }
    }

    /// As written, for the answers of the API; an interval as `every 15m`.
    #[must_use]
    pub fn expressions(&self) -> Vec<String> {
        self.expressions.clone()
    }

    /// The IANA name of its zone.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }
}
