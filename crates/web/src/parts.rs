//! The fragments that stand in the first page and in every later push, rendered from the same templates.
//!
//! A row depends on who looks only through [`RowViewer`], so that one rendering serves many sockets.

pub mod alerts;
pub mod badge;
pub mod day;
pub mod dispatch;
pub mod endings;
pub mod holders;
mod lanes;
pub mod output;
pub mod rotation;
pub mod runs;
pub mod strip;
pub mod ticks;
pub mod told;
pub mod truth;
pub(crate) mod zoned;

use askama::Template;

use self::rotation::RingLine;
use self::strip::Strip;
use super::sieve::{Only, Place, Sieve};
use super::{assets, csrf};
use soloist_domain::job::State;
use soloist_view::JobView;
use soloist_view::words::{Arg, Language, Piece, phrase, say, visible_page};

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
    place: Option<Place>,
    ring: Option<RingLine>,
    strip: Option<Strip>,
    now: Now<'a>,
    job: &'a JobView,
    viewer: RowViewer,
    lang: Language,
}

/// The part of a row that changes, whichever reader looks: a page that has the row is told only this.
#[derive(Template)]
#[template(path = "parts/job_now.html")]
pub struct Now<'a> {
    job: &'a JobView,
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
        impl $fragment<'_> {
            fn say(&self, id: &str) -> String {
                say(self.lang, id, &[])
            }

            fn icons(&self) -> String {
                assets::url("icons.svg")
            }

            fn progress_label(&self) -> String {
                self.titled("progress-label")
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

            /// A message about this job.
            fn titled(&self, id: &str) -> String {
                titled(self.job, id, self.lang)
            }
        }
    )*};
}

shared! { Now Head }

fn titled(job: &JobView, id: &str, lang: Language) -> String {
    say(lang, id, &[("title", Arg::from(job.title.as_str()))])
}

impl<'a> Row<'a> {
    /// Puts the fragment together.
    #[must_use]
    pub fn new(job: &'a JobView, viewer: RowViewer, lang: Language) -> Self {
        Self { place: None, ring: None, strip: None, now: Now { job, lang }, job, viewer, lang }
    }

    /// With who held it in the last hour.
    #[must_use]
    pub fn with_strip(self, strip: Option<Strip>) -> Self {
        Self { strip, ..self }
    }

    /// With where it stands. A push says that beside the row, because the rows of readers do not all stand in one order.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// With the ring of its rotation. A push comes without: the ring has frames of its own, and stays.
    #[must_use]
    pub fn with_ring(self, ring: Option<RingLine>) -> Self {
        Self { ring, ..self }
    }

    fn icons(&self) -> String {
        assets::url("icons.svg")
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    fn titled(&self, id: &str) -> String {
        titled(self.job, id, self.lang)
    }
}

impl Now<'_> {
    /// Names after the badges.
    fn people_text(&self) -> String {
        let names = self.job.shown.people.iter().map(|person| person.both(self.lang));
        names.collect::<Vec<_>>().join(&say(self.lang, "list-separator", &[]))
    }
}

impl<'a> Head<'a> {
    /// Puts the fragment together.
    #[must_use]
    pub fn new(job: &'a JobView, viewer: RowViewer, lang: Language) -> Self {
        Self { ring: None, job, viewer, lang }
    }

    /// As [`Row::with_ring`].
    #[must_use]
    pub fn with_ring(self, ring: Option<RingLine>) -> Self {
        Self { ring, ..self }
    }

    /// What the switch does, for those who hear the page.
    fn switch_label(&self) -> String {
        self.titled(if self.viewer.mine { "switch-on-label" } else { "switch-off-label" })
    }

    fn last_text(&self) -> String {
        self.titled("last-text")
    }

    /// Another one, when what stands below of its ticks is old.
    fn ticks(&self) -> String {
        let Some(schedule) = &self.job.schedule else { return String::new() };
        let next = schedule.next.as_ref().map_or("", |next| next.tick.as_str());
        let last = schedule.last.as_ref();
        let last = last.map_or(String::new(), |last| format!("{} {}", last.tick, last.outcome));
        format!("{next} {last} {}", schedule.asked.len())
    }

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
    /// The page with only what it counts; or, when that is shown, with everything.
    href: Option<String>,
    current: bool,
    pieces: Vec<Piece>,
}

impl Counter {
    /// One that leads nowhere.
    #[must_use]
    pub fn plain(state: &'static str, pieces: Vec<Piece>) -> Self {
        Self { state, href: None, current: false, pieces }
    }
}

/// The line of counters.
#[derive(Template)]
#[template(path = "parts/summary.html")]
pub struct Summary {
    counters: Vec<Counter>,
}

impl Summary {
    /// Counts `jobs` by state, and the living nodes that their pictures know; each counter leads to what it counts of `sieve`.
    /// `others` need somebody and are no jobs.
    #[must_use]
    pub fn new<'v>(
        jobs: impl Iterator<Item = &'v JobView> + Clone,
        sieve: &Sieve,
        others: usize,
        lang: Language,
    ) -> Self {
        const ORDER: [(Only, &str); 15] = [
            (Only::Trouble, "count-trouble"),
            (Only::State(State::Running), "count-running"),
            (Only::State(State::Starting), "count-starting"),
            (Only::State(State::Resting), "count-resting"),
            (Only::State(State::Scheduled), "count-scheduled"),
            (Only::State(State::Late), "count-late"),
            (Only::Looping, "count-crash-looping"),
            (Only::State(State::BackingOff), "count-backing-off"),
            (Only::State(State::GivenUp), "count-given-up"),
            (Only::State(State::FailingOver), "count-failing-over"),
            (Only::State(State::Waiting), "count-waiting"),
            (Only::State(State::Stopping), "count-stopping"),
            (Only::State(State::Held), "count-held"),
            (Only::State(State::Unknown), "count-unknown"),
            (Only::State(State::Off), "count-off"),
        ];
        let number = |n: usize| {
            let count = Piece::Number(i64::try_from(n).unwrap_or(i64::MAX));
            [("n", Piece::strong(n)), ("count", count)]
        };
        let mut counters = Vec::new();
        for (only, id) in ORDER {
            let n = match only {
                Only::Trouble => others + jobs.clone().filter(|job| job.shown.needs).count(),
                only => jobs.clone().filter(|job| only.fits(job)).count(),
            };
            let current = sieve.only == Some(only);
            if n > 0 || current {
                let state = match only {
                    Only::Looping => State::BackingOff.as_str(),
                    only => only.as_str(),
                };
                counters.push(Counter {
                    state,
                    href: Some(sieve.address(Some(only).filter(|_| !current))),
                    current,
                    pieces: phrase(lang, id, &number(n)),
                });
            }
        }
        let soon = jobs.clone().filter(|job| job.shown.due_soon).count();
        if soon > 0 {
            let pieces = phrase(lang, "count-due-soon", &number(soon));
            let href = Some("/schedule".to_owned());
            counters.push(Counter { state: "soon", href, current: false, pieces });
        }
        if let Some(job) = jobs.clone().next().filter(|job| job.state != State::Unknown) {
            let pieces = phrase(lang, "count-nodes", &number(job.shown.living));
            let href = Some("/nodes".to_owned());
            counters.push(Counter { state: "nodes", href, current: false, pieces });
        }
        Self { counters }
    }
}

/// A row of the dashboard, as text for a push.
#[must_use]
pub fn job_row(view: &JobView, viewer: RowViewer, lang: Language, strip: Option<Strip>) -> String {
    render(&Row::new(view, viewer, lang).with_strip(strip))
}

/// The part of a row that changes, as text for a push.
#[must_use]
pub fn job_now(view: &JobView, lang: Language) -> String {
    render(&Now { job: view, lang })
}

/// The head of a job's page, as text for a push.
#[must_use]
pub fn job_head(view: &JobView, viewer: RowViewer, lang: Language) -> String {
    render(&Head::new(view, viewer, lang))
}

/// The line of counters, as text for a push.
#[must_use]
pub fn summary<'v>(
    jobs: impl Iterator<Item = &'v JobView> + Clone,
    sieve: &Sieve,
    others: usize,
    lang: Language,
) -> String {
    render(&Summary::new(jobs, sieve, others, lang))
}

/// Renders a fragment that many readers share: [`csrf::mark`] stands in its forms.
fn render(template: &impl Template) -> String {
    render_for(csrf::mark(), template)
}

/// Renders a template for the reader whose CSRF secret this is. The only place that renders templates, so that no form
/// lacks the secret and no text of others hides what it says. Their values cannot fail to be written.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn render_for(secret: &str, template: &impl Template) -> String {
    let html = template.render().unwrap_or_else(|error| {
        tracing::error!(%error, "a template failed");
        String::new()
    });
    csrf::fill_forms(&visible_page(html), secret)
}

#[cfg(test)]
mod tests;
