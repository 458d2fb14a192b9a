//! The rows of the page of alerts: what is on, what was, a rule, a channel, in the reader's words.

use std::time::Duration;

use askama::Template;

use crate::assets;
use soloist_domain::alert::When;
use soloist_view::alerts::{AlertView, ChannelView, OnView, PastView};
use soloist_view::undelivered::Undelivered;
use soloist_view::words::{Arg, At, Language, Piece, day_clock, duration, exactly, phrase, say};

/// One alert that is on.
#[expect(missing_docs, reason = "the names say it")]
pub struct OnRow {
    pub alert: String,
    pub pieces: Vec<Piece>,
    /// The page about it.
    pub href: String,
    pub since: Vec<Piece>,
    pub muted: Option<Vec<Piece>>,
    /// By channel: whether it was told.
    pub told: Vec<Vec<Piece>>,
}

/// One that is over.
#[expect(missing_docs, reason = "the names say it")]
pub struct PastRow {
    pub alert: String,
    pub pieces: Vec<Piece>,
    pub since: Vec<Piece>,
    pub over: Vec<Piece>,
    pub lasted: String,
}

/// One rule.
#[expect(missing_docs, reason = "the names say it")]
pub struct RuleRow {
    pub name: String,
    pub words: String,
    pub to: Vec<String>,
    pub muted: Option<Vec<Piece>>,
}

/// One channel.
#[expect(missing_docs, reason = "the names say it")]
pub struct ChannelRow {
    pub name: String,
    pub kind: String,
    /// The newest attempt: when, and what was in the way.
    pub last: Option<Vec<Piece>>,
    pub bad: bool,
    /// It is lost: what the others are told.
    pub lost: Vec<Piece>,
}

/// Something that needs somebody and is no job.
#[expect(missing_docs, reason = "the names say it")]
pub struct Need {
    /// Tells one line from another.
    pub key: String,
    pub href: &'static str,
    pub pieces: Vec<Piece>,
}

#[derive(Template)]
#[template(path = "parts/needs.html")]
struct Needs<'a> {
    lines: &'a [Need],
    lang: Language,
}

impl Needs<'_> {
    fn title(&self) -> String {
        say(self.lang, "needs-you", &[])
    }

    fn icons(&self) -> String {
        assets::url("icons.svg")
    }
}

/// The list of them, as text; empty without any.
#[must_use]
pub fn needs(lines: &[Need], lang: Language) -> String {
    super::render(&Needs { lines, lang })
}

fn muted(until: Option<At>, lang: Language) -> Option<Vec<Piece>> {
    Some(phrase(lang, "alerts-muted-until", &[("until", day_clock(until?.0))]))
}

impl OnRow {
    /// The words for `on`, which `rule` told, or `teller` in its place.
    #[must_use]
    pub fn of(rule: &AlertView, on: &OnView, teller: Option<&str>, lang: Language) -> Self {
        let told = on.sent.iter().map(|sent| {
            let channel = ("channel", Piece::strong(&sent.channel));
            match sent.begin {
                Some(begin) => phrase(lang, "alerts-told", &[channel, ("at", day_clock(begin.0))]),
                None => phrase(lang, "alerts-not-told", &[channel]),
            }
        });
        let by_another = teller.filter(|_| on.sent.is_empty());
        let by_another = by_another
            .map(|alert| phrase(lang, "alerts-told-as", &[("alert", Piece::strong(alert))]));
        Self {
            alert: rule.name.clone(),
            pieces: on.pieces.clone(),
            href: match (&on.job, &on.source) {
                (Some(job), _) => format!("/jobs/{job}"),
                (None, Some(_)) => "/dispatch".to_owned(),
                (None, None) => "/nodes".to_owned(),
            },
            since: vec![day_clock(on.since.0)],
            muted: muted(rule.muted_until, lang),
            told: told.chain(by_another).collect(),
        }
    }
}

impl PastRow {
    /// The words for an alert that is over.
    #[must_use]
    pub fn of(past: &PastView, lang: Language) -> Self {
        Self {
            alert: past.alert.clone(),
            pieces: past.pieces.clone(),
            since: vec![day_clock(past.since.0)],
            over: vec![day_clock(past.over.0)],
            lasted: duration(lang, past.over.0.since(past.since.0)),
        }
    }
}

impl RuleRow {
    /// The words for a rule of the configuration.
    #[must_use]
    pub fn of(rule: &AlertView, lang: Language) -> Self {
        let list = |names: &[String]| names.join(&say(lang, "list-separator", &[]));
        let lasting = ("for", Arg::from(exactly(lang, Duration::from_millis(rule.for_ms))));
        let is_of_all = rule.jobs.iter().any(|job| job == "*") || rule.jobs.is_empty();
        let when = When::ALL.into_iter().find(|when| when.as_str() == rule.when);
        let what = when.map_or(rule.when.clone(), |when| say(lang, what(when), &[]));
        let what = ("what", Arg::from(what));
        let jobs = || ("jobs", Arg::from(list(&rule.jobs)));
        let words = match (rule.for_ms, is_of_all) {
            (0, true) => say(lang, "alerts-rule-at-once", &[what]),
            (0, false) => say(lang, "alerts-rule-jobs-at-once", &[what, jobs()]),
            (_, true) => say(lang, "alerts-rule", &[what, lasting]),
            (_, false) => say(lang, "alerts-rule-jobs", &[what, lasting, jobs()]),
        };
        let muted = muted(rule.muted_until, lang);
        Self { name: rule.name.clone(), words, to: rule.to.clone(), muted }
    }
}

/// What an alert is about, in words.
fn what(when: When) -> &'static str {
    match when {
        When::WantedNotRunning => "alert-when-wanted-not-running",
        When::GivenUp => "alert-when-given-up",
        When::CrashLoop => "alert-when-crash-loop",
        When::NodeLost => "alert-when-node-lost",
        When::StoreLost => "alert-when-store-lost",
        When::Stuck => "alert-when-stuck",
        When::Drift => "alert-when-drift",
        When::OverdueClaims => "alert-when-overdue-claims",
        When::NotStarted => "alert-when-not-started",
        When::NotFinished => "alert-when-not-finished",
        When::MissedTick => "alert-when-missed-tick",
        When::TickLost => "alert-when-tick-lost",
        When::TooQuick => "alert-when-too-quick",
        When::NoSuccessFor => "alert-when-no-success-for",
        When::ChannelLost => "alert-when-channel-lost",
    }
}

impl ChannelRow {
    /// The words for a channel, without its address.
    #[must_use]
    pub fn of(channel: &ChannelView, lang: Language) -> Self {
        let last = channel.last.as_ref();
        Self {
            name: channel.name.clone(),
            kind: channel.kind.clone(),
            bad: last.is_some_and(|last| !last.ok),
            lost: channel.pieces.clone(),
            last: last.map(|last| {
                let at = ("at", day_clock(last.at.0));
                match (&last.error, last.ok) {
                    (Some(error), false) => {
                        let error = Piece::text(Undelivered::read(error).worded(lang));
                        phrase(lang, "alerts-channel-failed", &[at, ("error", error)])
                    }
                    _ => phrase(lang, "alerts-channel-took", &[at]),
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_a_time_tells_at_once_also_of_some_jobs() {
        for (jobs, en, zh) in [
            ("*", "A job was given up, at once.", "立即通知。"),
            ("labels", "A job was given up, at once. Only labels.", "立即通知。仅限 labels。"),
        ] {
            let rule = AlertView {
                name: "gone".to_owned(),
                when: "given_up".to_owned(),
                for_ms: 0,
                jobs: vec![jobs.to_owned()],
                to: vec!["ops".to_owned()],
                on: Vec::new(),
                muted_until: None,
            };
            assert_eq!(RuleRow::of(&rule, Language::En).words, en);
            assert!(RuleRow::of(&rule, Language::Zh).words.ends_with(zh));
        }
    }
}
