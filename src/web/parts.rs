//! The fragments that stand in the first page and in every later push, rendered from the same templates.
//!
//! A row depends on who looks only through [`RowViewer`], so that one rendering serves many sockets.

pub mod alerts;
pub mod dispatch;
pub mod endings;
mod lanes;
pub mod rotation;
pub mod told;
pub mod truth;

use askama::Template;

use self::endings::Endings;
use self::rotation::RingLine;
use super::{assets, csrf};
use crate::domain::job::State;
use crate::store::journal::LogLine;
use crate::view::{JobView, LogLineView};
use crate::words::{Arg, Language, Piece, phrase, say, second};

/// What of the reader matters for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowViewer {
    /// Participates.
    pub mine: bool,
    /// Is the only one who does.
    pub last: bool,
    /// May switch this job.
    pub may_switch: bool,
}

/// A row of the dashboard.
#[derive(Template)]
#[template(path = "parts/job_row.html")]
pub struct Row<'a> {
    ring: Option<RingLine>,
    job: &'a JobView,
    viewer: RowViewer,
    lang: Language,
}

/// The head of a job's page.
#[derive(Template)]
#[template(path = "parts/job_head.html")]
pub struct Head<'a> {
    ring: Option<RingLine>,
    job: &'a JobView,
    viewer: RowViewer,
    lang: Language,
}

/// What rows and heads share.
macro_rules! shared {
    ($($fragment:ident)*) => {$(
        impl<'a> $fragment<'a> {
            /// Puts the fragment together.
            #[must_use]
            pub fn new(job: &'a JobView, viewer: RowViewer, lang: Language) -> Self {
                Self { ring: None, job, viewer, lang }
            }

            /// With the ring of its rotation. A push comes without: the ring has frames of its own, and stays.
            #[must_use]
            pub fn with_ring(self, ring: Option<RingLine>) -> Self {
                Self { ring, ..self }
            }

            fn say(&self, id: &str) -> String {
                say(self.lang, id, &[])
            }

            fn icons(&self) -> String {
                assets::url("icons.svg")
            }

            /// What the switch does, for those who hear the page.
            fn switch_label(&self) -> String {
                let title = [("title", Arg::from(self.job.title.as_str()))];
                match self.viewer.mine {
                    true => say(self.lang, "switch-on-label", &title),
                    false => say(self.lang, "switch-off-label", &title),
                }
            }

            fn last_text(&self) -> String {
                say(self.lang, "last-text", &[("title", Arg::from(self.job.title.as_str()))])
            }

            fn progress_label(&self) -> String {
                say(self.lang, "progress-label", &[("title", Arg::from(self.job.title.as_str()))])
            }

            fn progress(&self) -> Option<Bar> {
                let progress = self.job.run.as_ref()?.progress.as_ref()?;
                let numbers = [
                    ("done", Arg::from(progress.done.to_string())),
                    ("total", Arg::from(progress.total.to_string())),
                ];
                Some(Bar {
                    done: progress.done.min(progress.total),
                    total: progress.total.max(1),
                    text: say(self.lang, "progress-of", &numbers),
                    note: progress.note.clone(),
                })
            }
        }
    )*};
}

shared! { Row Head }

impl Row<'_> {
    /// The newest line of output; an old one says nothing about a job that is off.
    fn last_line(&self) -> Option<&str> {
        self.job.shown.last_line.as_deref().filter(|_| self.job.state != State::Off)
    }

    /// Names after the badges, or that the reader is the last.
    fn people_text(&self) -> String {
        let people = &self.job.shown.people;
        match people.as_slice() {
            [] => say(self.lang, "nobody", &[]),
            [only] if self.viewer.last => {
                say(self.lang, "you-are-last", &[("user", Arg::from(only.both(self.lang)))])
            }
            _ => {
                let names: Vec<_> = people.iter().map(|person| person.both(self.lang)).collect();
                names.join(&say(self.lang, "list-separator", &[]))
            }
        }
    }
}

impl Head<'_> {
    /// Each participant with since when.
    fn people_pieces(&self) -> Vec<Piece> {
        let people = &self.job.shown.people;
        if people.is_empty() {
            return vec![Piece::Text(say(self.lang, "nobody", &[]))];
        }
        let gap = say(self.lang, "list-separator", &[]);
        let mut pieces = Vec::new();
        for person in people {
            if !pieces.is_empty() {
                pieces.push(Piece::text(&gap));
            }
            let args =
                [("user", Piece::text(person.both(self.lang))), ("since", person.since.clone())];
            let id = if self.viewer.last { "last-since" } else { "user-since" };
            pieces.extend(phrase(self.lang, id, &args));
        }
        pieces
    }
}

/// A progress bar.
struct Bar {
    done: u64,
    total: u64,
    text: String,
    note: String,
}

/// One counter of the line above the rows.
pub struct Counter {
    state: &'static str,
    pieces: Vec<Piece>,
}

/// The line of counters.
#[derive(Template)]
#[template(path = "parts/summary.html")]
pub struct Summary {
    counters: Vec<Counter>,
}

impl Summary {
    /// Counts `jobs` by state, and the living nodes that their pictures know.
    #[must_use]
    pub fn new(jobs: &[JobView], lang: Language) -> Self {
        const ORDER: [(State, &str); 12] = [
            (State::Running, "count-running"),
            (State::Starting, "count-starting"),
            (State::Resting, "count-resting"),
            (State::BackingOff, LOOPING),
            (State::BackingOff, "count-backing-off"),
            (State::GivenUp, "count-given-up"),
            (State::FailingOver, "count-failing-over"),
            (State::Waiting, "count-waiting"),
            (State::Stopping, "count-stopping"),
            (State::Held, "count-held"),
            (State::Unknown, "count-unknown"),
            (State::Off, "count-off"),
        ];
        const LOOPING: &str = "count-crash-looping";
        let mut counters = Vec::new();
        for (state, id) in ORDER {
            let counts = |job: &&JobView| {
                job.state == state
                    && (state != State::BackingOff || job.shown.looping == (id == LOOPING))
            };
            let n = jobs.iter().filter(counts).count();
            if n > 0 {
                let pieces = phrase(lang, id, &[("n", Piece::strong(n))]);
                counters.push(Counter { state: state.as_str(), pieces });
            }
        }
        if let Some(job) = jobs.first().filter(|job| job.state != State::Unknown) {
            let n = job.shown.living;
            let count = Piece::Number(i64::try_from(n).unwrap_or(0));
            let args = [("n", Piece::strong(n)), ("count", count)];
            counters.push(Counter { state: "nodes", pieces: phrase(lang, "count-nodes", &args) });
        }
        Self { counters }
    }
}

/// Lines of output, with a rule where another node goes on.
#[derive(Template)]
#[template(path = "parts/log_lines.html")]
pub struct Lines {
    lines: Vec<Line>,
}

struct Line {
    /// Runs alike that came before this one.
    alike: Option<Vec<Piece>>,
    /// That another node goes on here, and why.
    rule: Option<String>,
    view: LogLineView,
    at: Vec<Piece>,
}

impl Lines {
    /// Puts the lines together, oldest first.
    #[must_use]
    pub fn new(lines: &[LogLine], endings: &Endings, lang: Language) -> Self {
        let mut before: Option<&LogLine> = None;
        let mut rendered = Vec::new();
        for line in lines {
            let other = before.is_some_and(|before| before.node != line.node);
            let rule = other.then(|| {
                let node = ("node", Arg::from(line.node.as_str()));
                match endings.before(&line.run.0) {
                    Some(why) => say(lang, "output-after", &[("why", Arg::from(why)), node]),
                    None => say(lang, "output-from-here", &[node]),
                }
            });
            let next = before.is_some_and(|before| before.run != line.run);
            let alike = endings.alike(&line.run.0).filter(|_| next).map(<[Piece]>::to_vec);
            before = Some(line);
            let at = vec![second(line.at)];
            rendered.push(Line { alike, rule, view: line.clone().into(), at });
        }
        Self { lines: rendered }
    }
}

/// A row of the dashboard, as text for a push.
#[must_use]
pub fn job_row(view: &JobView, viewer: RowViewer, lang: Language) -> String {
    render(&Row::new(view, viewer, lang))
}

/// The head of a job's page, as text for a push.
#[must_use]
pub fn job_head(view: &JobView, viewer: RowViewer, lang: Language) -> String {
    render(&Head::new(view, viewer, lang))
}

/// The line of counters, as text for a push.
#[must_use]
pub fn summary(jobs: &[JobView], lang: Language) -> String {
    render(&Summary::new(jobs, lang))
}

/// Lines of output, as text.
#[must_use]
pub fn log_lines(lines: &[LogLine], lang: Language) -> String {
    render(&Lines::new(lines, &Endings::default(), lang))
}

/// Renders a fragment that many readers share: [`csrf::mark`] stands in its forms.
fn render(template: &impl Template) -> String {
    render_for(csrf::mark(), template)
}

/// Renders a template for the reader whose CSRF secret this is. The only place that renders templates, so that no form
/// lacks the secret. Their values cannot fail to be written.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn render_for(secret: &str, template: &impl Template) -> String {
    let html = template.render().unwrap_or_else(|error| {
        tracing::error!(%error, "a template failed");
        String::new()
    });
    csrf::fill_forms(&html, secret)
}

#[cfg(test)]
mod tests;
