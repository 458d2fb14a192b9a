//! What all readers are told about a source: its word, why it is or is not served, and until when.
//!
//! Which reason holds was decided by the rules in the store's own step; here it only becomes a sentence.

use std::time::Duration;

use crate::rules::clauses;
use crate::words::{Language, Piece, duration, exactly, grouped, phrase, say, until};
use soloist_domain::dispatch::Reason;
use soloist_domain::fields::Lists;
use soloist_domain::time::Stamp;
use soloist_store::dispatch::SourceView;

/// A source in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceWords {
    /// `open`, `empty`, `pacing`, `full`, `paused` or `blocked`.
    pub state: &'static str,
    /// The same for people.
    pub word: String,
    /// Why, and until when.
    pub why: Vec<Piece>,
    /// Its rules, one clause each.
    pub rules: Vec<String>,
}

impl SourceWords {
    /// Words for `source` at the instant it was read.
    #[must_use]
    pub fn of(source: &SourceView, lang: Language) -> Self {
        let sentence = Sentence { source, lang };
        let (state, word, why) = sentence.standing();
        Self {
            state,
            word: say(lang, word, &[]),
            why,
            rules: clauses(&source.rules, lang, Lists::has_page),
        }
    }
}

struct Sentence<'a> {
    source: &'a SourceView,
    lang: Language,
}

impl Sentence<'_> {
    fn standing(&self) -> (&'static str, &'static str, Vec<Piece>) {
        let source = self.source;
        // What an operator or a 429 ordered is said first, also of a source that has nothing ready.
        if source.rules.paused {
            return ("paused", "source-paused", self.phrase("source-why-paused"));
        }
        if source.blocked_until > source.now {
            let why = self.until("source-why-blocked", source.blocked_until);
            return ("blocked", "source-blocked", why);
        }
        match source.shut {
            None if source.ready > 0 => ("open", "source-open", self.phrase("source-why-open")),
            Some(shut) if shut.reason == Reason::Gap => {
                ("pacing", "source-pacing", self.pacing(shut.until))
            }
            Some(shut) if shut.reason == Reason::Cap => {
                let why = match shut.until {
                    Some(at) => self.until("source-why-full-until", at),
                    None => self.phrase("source-why-full"),
                };
                ("full", "source-full", why)
            }
            shut => ("empty", "source-empty", self.empty(shut.and_then(|shut| shut.until))),
        }
    }

    fn pacing(&self, at: Option<Stamp>) -> Vec<Piece> {
        let at = at.unwrap_or(self.source.now);
        match (self.source.rules.gap.is_zero(), self.source.rules.window) {
            // A countdown of less than a second is over before it is read.
            (false, None) if self.source.rules.gap < Duration::from_secs(1) => {
                self.phrase("source-why-gap-short")
            }
            (false, None) => self.until("source-why-gap", at),
            (true, Some(_)) => self.until("source-why-window", at),
            _ => self.until("source-why-pacing", at),
        }
    }

    fn empty(&self, at: Option<Stamp>) -> Vec<Piece> {
        let source = self.source;
        match at {
            Some(at) if source.due > 0 => self.until("source-why-due", at),
            _ if source.due > 0 => self.phrase("source-why-due-later"),
            _ if source.in_flight > 0 => self.phrase("source-why-in-hands"),
            _ => self.phrase("source-why-empty"),
        }
    }

    fn until(&self, id: &str, at: Stamp) -> Vec<Piece> {
        let left = until(self.lang, at.ceil(), self.source.now.floor());
        let mut args = self.facts();
        args.push(("left", left));
        phrase(self.lang, id, &args)
    }

    fn phrase(&self, id: &str) -> Vec<Piece> {
        phrase(self.lang, id, &self.facts())
    }

    fn facts(&self) -> Vec<(&'static str, Piece)> {
        let (rules, lang) = (&self.source.rules, self.lang);
        let window = rules.window;
        let span = window.map_or(Duration::ZERO, |window| window.span);
        let count = window.map_or(0, |window| window.count.into());
        let number = |n: u64| Piece::Number(i64::try_from(n).unwrap_or(i64::MAX));
        vec![
            ("readyCount", number(self.source.ready)),
            ("ready", Piece::Text(grouped(self.source.ready))),
            ("dueCount", number(self.source.due)),
            ("due", Piece::Text(grouped(self.source.due))),
            ("heldCount", number(self.source.in_flight)),
            ("held", Piece::Text(grouped(self.source.in_flight))),
            ("gap", Piece::Text(exactly(lang, rules.gap))),
            ("countCount", number(count)),
            ("count", Piece::Text(grouped(count))),
            ("span", Piece::Text(exactly(lang, span))),
        ]
    }
}

/// How long ago `then` is, growing on the page.
#[must_use]
pub fn ago(lang: Language, then: Stamp, now: Stamp) -> Vec<Piece> {
    let text = duration(lang, now.since(then));
    phrase(lang, "heard-ago", &[("ago", Piece::Since { ms: then.floor().0, text })])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::source::*;
    use crate::words::plain;
    use soloist_domain::dispatch::Window;

    #[test]
    fn every_state_of_a_source_has_its_sentence_in_both_languages() {
        let expected = [
            (
                "open",
                "1,204 are ready: the next collector that asks is served.",
                "1,204 项就绪：下一个请求即可领取。",
            ),
            ("empty", "It has no work.", "没有工作项。"),
            (
                "empty",
                "Nothing is ready; the next of 3 is due in 1 min.",
                "没有就绪的工作项；3 项中的下一项在 1 分钟后就绪。",
            ),
            ("empty", "Nothing is ready; 2 are claimed.", "没有就绪的工作项；2 项在采集器手中。"),
            (
                "pacing",
                "One start every 1.5 s: the next in 1 s.",
                "每 1.5 秒开始一项：下一项在 1 秒后。",
            ),
            (
                "pacing",
                "100 starts in 1 min are used up: the next in 30 s.",
                "1 分钟内的 100 次开始已用完：下一项在 30 秒后。",
            ),
            (
                "full",
                "4 are claimed, as many as allowed. A result makes room, or the end of a lease in 20 s.",
                "4 项在采集器手中，已达上限。有结果即可继续，或在 20 秒后有租约到期。",
            ),
            (
                "paused",
                "No collector is served until somebody resumes it.",
                "在恢复之前不向任何人派发。",
            ),
            ("blocked", "No collector is served for 2 min.", "2 分钟内不向任何人派发。"),
        ];
        for (view, (state, en, zh)) in every_state().iter().zip(expected) {
            let name = &view.name;
            let english = SourceWords::of(view, Language::En);
            assert_eq!((english.state, plain(&english.why).as_str()), (state, en), "{name}");
            let chinese = SourceWords::of(view, Language::Zh);
            assert_eq!((chinese.state, plain(&chinese.why).as_str()), (state, zh), "{name}");
        }
    }

    #[test]
    fn a_short_gap_has_no_countdown() {
        let mut view = source("pages");
        view.rules.gap = Duration::from_millis(200);
        (view.ready, view.shut) = (1, shut(Reason::Gap, Some(0)));
        let words = SourceWords::of(&view, Language::En);
        assert_eq!(plain(&words.why), "One start every 200 ms: the next follows within that.");
    }

    #[test]
    fn an_order_of_an_operator_is_said_before_that_nothing_is_ready() {
        let mut view = source("pages");
        view.shut = shut(Reason::Empty, None);
        view.blocked_until = NOW + Duration::from_secs(5);
        assert_eq!(SourceWords::of(&view, Language::En).state, "blocked");
        view.rules.paused = true;
        assert_eq!(SourceWords::of(&view, Language::En).state, "paused");
    }

    #[test]
    fn rules_are_said_as_they_are() {
        let mut view = source("pages");
        view.rules.gap = Duration::from_millis(250);
        view.rules.window = Some(Window { count: 1, span: Duration::from_secs(90) });
        view.rules.cap = Some(2);
        view.rules.max_attempts = 0;
        let words = SourceWords::of(&view, Language::En);
        assert_eq!(
            words.rules,
            [
                "one start per 250 ms",
                "1 start in 90 s",
                "2 at once",
                "lease 1 min",
                "tries without end"
            ]
        );
    }
}
