//! One run for a tick that the caller names, or for the newest tick of an expression: which one is meant, and the answer to later callers.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use soloist_domain::name::{JobName, TickText};
use soloist_domain::spent::{self, Once, Spent, Standing};
use soloist_domain::tick::Ticks;
use soloist_domain::time::{StoreTime, format_duration, millis};

/// Who meets a lease waits so long for what is noted with it, whatever patience it was given.
pub(super) const NOTED_WITHIN: Duration = Duration::from_secs(5);

/// One run for each tick.
#[derive(Debug, Clone)]
pub struct RunOnce {
    /// Which tick.
    pub tick: Which,
    /// Also one that is spent, if its command failed or was lost.
    pub retry_failed: bool,
}

/// Which tick is meant.
#[derive(Debug, Clone)]
pub enum Which {
    /// That one.
    Text(TickText),
    /// The newest of these that is due.
    Newest(Arc<dyn Ticks>),
}

/// The tick that is meant.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) once: Once,
    /// When it is due, of one that a clock made: as RFC 3339 with its offset.
    pub(super) time: Option<String>,
    /// In so long.
    pub(super) wait: Duration,
}

impl RunOnce {
    /// Which tick that is, if the store's clock need not be asked for it.
    pub(super) fn at_any_time(&self) -> Option<Meant> {
        match &self.tick {
            Which::Text(tick) => Some(self.of(tick.clone())),
            Which::Newest(_) => None,
        }
    }

    fn of(&self, tick: TickText) -> Meant {
        let once = Once { tick, retry_failed: self.retry_failed };
        Meant { once, time: None, wait: Duration::ZERO }
    }

    /// Which tick that is at `now`, by the store's clock.
    ///
    /// # Errors
    /// None is due yet.
    pub(super) fn at(&self, now: StoreTime) -> anyhow::Result<Meant> {
        let ticks = match &self.tick {
            Which::Text(tick) => return Ok(self.of(tick.clone())),
            Which::Newest(ticks) => ticks,
        };
        let Some(tick) = spent::meant(&**ticks, now) else {
            let first = ticks
                .after(now)
                .map_or_else(String::new, |first| format!(": the first one is {}", first.name));
            anyhow::bail!("--once-per: no tick of this expression is due yet{first}");
        };
        // Of two hosts with other zone tables both mean the same.
        let text = TickText::new(&tick.name.without_offset())?;
        let wait = tick.starts.since(now);
        Ok(Meant { time: tick.name.time(), wait, ..self.of(text) })
    }
}

impl Meant {
    /// What its command finds in its environment.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let tick = ("SOLOIST_TICK", self.once.tick.to_string());
        let time = self.time.clone().map(|time| ("SOLOIST_TICK_TIME", time));
        std::iter::once(tick).chain(time)
    }

    /// That it is waited for.
    pub(super) fn waits(&self, name: &JobName) -> String {
        let ms = millis(self.wait);
        let wait = format_duration(Duration::from_millis(ms));
        format!("{name}: waiting {wait} for the tick {:?}", self.once.tick.as_str())
    }
}

/// An instant of the store's clock, to the second.
fn shown(at: StoreTime) -> String {
    let since = Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

/// What is known of a tick that another had, as it is said.
pub(super) struct Had<'a> {
    pub(super) name: &'a JobName,
    pub(super) tick: &'a TickText,
    pub(super) by: &'a str,
    pub(super) started: String,
    pub(super) ended: Option<String>,
    pub(super) standing: Standing,
    pub(super) code: Option<i32>,
}

impl<'a> Had<'a> {
    pub(super) fn of(name: &'a JobName, spent: &'a Spent, standing: Standing) -> Self {
        let ended = spent.ended.as_ref();
        Self {
            name,
            tick: &spent.tick,
            by: spent.by.as_str(),
            started: shown(spent.at),
            ended: ended.map(|end| shown(end.at)),
            standing,
            code: ended.and_then(|end| end.outcome.exit.code),
        }
    }

    /// For later callers.
    pub(super) fn sentence(&self) -> String {
        let Self { name, tick, by, started, .. } = self;
        let ended = match &self.ended {
            Some(ended) => format!(" at {ended}"),
            None => String::new(),
        };
        let again = "it is not run again; with --retry-failed it would be";
        let became = match self.standing {
            Standing::Running => "and is still running: nothing to do".to_owned(),
            Standing::Done => format!("and was done{ended}: nothing to do"),
            Standing::Failed => {
                let code = match self.code {
                    Some(code) => format!(" with exit code {code}"),
                    None => String::new(),
                };
                format!("and failed{code}{ended}: {again}")
            }
            Standing::Lost => {
                format!("and was lost{ended}, so nobody knows how far it came: {again}")
            }
        };
        format!("{name}: the tick {:?} was started by {by} at {started} {became}", tick.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::job::Exit;
    use soloist_domain::lease::Token;
    use soloist_domain::spent::{How, Outcome, SpentEnd};

    #[test]
    fn who_comes_later_reads_who_did_it_when_and_what_became_of_it() {
        let name = JobName::new("nightly").expect("a name");
        let end = |how, code| SpentEnd {
            at: StoreTime(1_800_000_060_000),
            outcome: Outcome { how, exit: Exit { code, signal: None } },
        };
        let said = |ended, standing| {
            let spent = Spent {
                tick: TickText::new("27\u{202e}").expect("a tick"),
                token: Token(1),
                by: "host-a".parse().expect("a name"),
                at: StoreTime(1_800_000_000_123),
                ended,
            };
            Had::of(&name, &spent, standing).sentence()
        };
        let begin =
            r#"nightly: the tick "27\u{202e}" was started by host-a at 2027-01-15T08:00:00Z and "#;
        for (ended, standing, then) in [
            (None, Standing::Running, "is still running: nothing to do"),
            (
                Some(end(How::Done, Some(0))),
                Standing::Done,
                "was done at 2027-01-15T08:01:00Z: nothing to do",
            ),
            (
                Some(end(How::Failed, Some(3))),
                Standing::Failed,
                "failed with exit code 3 at 2027-01-15T08:01:00Z: it is not run again; with --retry-failed it would be",
            ),
            (
                None,
                Standing::Lost,
                "was lost, so nobody knows how far it came: it is not run again; with --retry-failed it would be",
            ),
        ] {
            assert_eq!(said(ended, standing), format!("{begin}{then}"));
        }
    }
}
