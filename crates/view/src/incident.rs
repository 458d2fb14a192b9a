//! What is said of an alert: one sentence when it begins, one when it is over, then why.
//!
//! A page makes the sentence of an alert that is on whenever it is read, with the picture of that moment. What is sent, and kept
//! of the past, is read at any time: nothing in it counts down or grows old, and every instant says its zone.

use super::{Clause, JobView};
use crate::words::{Language, Piece, Zone, day_clock, moves, phrase, say, settled};
use soloist_domain::alert::{Subject, When};
use soloist_domain::time::StoreTime;

/// The sentence, as pieces; `title` is what the job is called, `why` what is said behind it.
#[must_use]
pub fn sentence(
    lang: Language,
    is_begin: bool,
    when: When,
    subject: &Subject,
    since: StoreTime,
    title: Option<&str>,
    why: Vec<Piece>,
) -> Vec<Piece> {
    let job = subject.job.as_ref().map(ToString::to_string).unwrap_or_default();
    let title = title.filter(|title| !title.is_empty() && *title != job);
    let name = |name: Option<String>| Piece::text(name.unwrap_or_default());
    let args = [
        ("job", Piece::text(super::both_names(lang, &job, title))),
        ("node", name(subject.node.as_ref().map(ToString::to_string))),
        ("source", name(subject.source.as_ref().map(ToString::to_string))),
        ("channel", name(subject.channel.clone())),
        ("since", day_clock(since)),
    ];
    let id = match (is_begin, when) {
        (true, When::WantedNotRunning) => "alert-begin-wanted-not-running",
        (true, When::GivenUp) => "alert-begin-given-up",
        (true, When::CrashLoop) => "alert-begin-crash-loop",
        (true, When::NodeLost) => "alert-begin-node-lost",
        (true, When::StoreLost) => "alert-begin-store-lost",
        (true, When::Stuck) => "alert-begin-stuck",
        (true, When::Drift) => "alert-begin-drift",
        (true, When::OverdueClaims) => "alert-begin-overdue-claims",
        (true, When::NotStarted) => "alert-begin-not-started",
        (true, When::NotFinished) => "alert-begin-not-finished",
        (true, When::MissedTick) => "alert-begin-missed-tick",
        (true, When::TickLost) => "alert-begin-tick-lost",
        (true, When::TooQuick) => "alert-begin-too-quick",
        (true, When::NoSuccessFor) => "alert-begin-no-success-for",
        (true, When::ChannelLost) => "alert-begin-channel-lost",
        (false, When::WantedNotRunning) => "alert-end-wanted-not-running",
        (false, When::GivenUp) => "alert-end-given-up",
        (false, When::CrashLoop) => "alert-end-crash-loop",
        (false, When::NodeLost) => "alert-end-node-lost",
        (false, When::StoreLost) => "alert-end-store-lost",
        (false, When::Stuck) => "alert-end-stuck",
        (false, When::Drift) => "alert-end-drift",
        (false, When::OverdueClaims) => "alert-end-overdue-claims",
        (false, When::NotStarted) => "alert-end-not-started",
        (false, When::NotFinished) => "alert-end-not-finished",
        (false, When::MissedTick) => "alert-end-missed-tick",
        (false, When::TickLost) => "alert-end-tick-lost",
        (false, When::TooQuick) => "alert-end-too-quick",
        (false, When::NoSuccessFor) => "alert-end-no-success-for",
        (false, When::ChannelLost) => "alert-end-channel-lost",
    };
    let mut pieces = phrase(lang, id, &args);
    if !why.is_empty() {
        pieces.extend(phrase(lang, "sentence-gap", &[]));
        pieces.extend(why);
    }
    pieces
}

/// What is said behind the first sentence of an alert about `when`, for a page: of ticks which and why, else why the job is what it is.
#[must_use]
pub fn why(view: &JobView, when: When) -> Vec<Piece> {
    let its = view.shown.troubles.iter().find(|(what, _)| *what == when);
    its.map_or_else(|| view.shown.why.clone(), |(_, pieces)| pieces.clone())
}

/// The same for a text that is read at any time.
#[must_use]
pub fn lasting_why(view: &JobView, when: When, lang: Language) -> Vec<Piece> {
    let its = view.shown.troubles.iter().find(|(what, _)| *what == when);
    let its = its.map(|(_, pieces)| pieces.clone());
    its.unwrap_or_else(|| lasting(&view.shown.why, &view.shown.evidence, lang))
}

/// Why a job is what it is, for a text that is read at any time: the paragraph, or, where a part of that moves, those clauses of the
/// row that do not.
pub(super) fn lasting(why: &[Piece], evidence: &[Clause], lang: Language) -> Vec<Piece> {
    if !moves(why) {
        return why.to_vec();
    }
    let mut pieces = Vec::new();
    for clause in evidence.iter().filter(|clause| !moves(&clause.pieces)) {
        if !pieces.is_empty() {
            pieces.push(Piece::text(say(lang, "clause-gap", &[])));
        }
        pieces.extend(clause.pieces.iter().cloned());
    }
    if !pieces.is_empty() {
        pieces.extend(phrase(lang, "sentence-end", &[]));
    }
    pieces
}

/// [`sentence`] as text that is sent and kept.
#[must_use]
pub fn text(pieces: &[Piece], zone: &Zone) -> String {
    settled(pieces, zone).trim_end().to_owned()
}
