//! The output on a job's page: the newest lines, as they come; or a part of what the store keeps, chosen by the address alone, so that
//! it works without scripts and a link to a line works for another person.

use askama::Template;
use serde::Deserialize;

use super::audit::typed;
use crate::api::log::Sought;
use crate::error::WebError;
use crate::parts::endings::{Acts, Endings};
use crate::parts::output::Lines;
use crate::parts::render_for;
use soloist_domain::detail::Detail;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::StoreTime;
use soloist_store::journal::{Journal, LogFilter, LogFrom, LogPage, RunEntry};
use soloist_store::{Store, StoreError};
use soloist_view::words::{Arg, Language, Zone, iso, say, visible};

/// Lines on a page.
const LINES: usize = 200;
/// How many lines are shown before the one that a link leads to.
const AROUND: u64 = 100;
/// Runs that are read to say how those on a page ended.
const RUNS: usize = 100;

/// The part of the job page's address that is about output; other parts of the page have words of their own in it.
#[derive(Debug, Default, Deserialize)]
#[expect(missing_docs, reason = "as in docs/operations.md")]
pub struct Wanted {
    pub line: Option<String>,
    pub lines_before: Option<String>,
    pub lines_after: Option<String>,
    pub run: Option<String>,
    pub grep: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
}

/// What is asked for.
pub(super) struct Asked {
    sought: Sought,
    filter: LogFilter,
    from: LogFrom,
    line: Option<u64>,
    /// The reader's.
    zone: Zone,
}

impl Wanted {
    /// The same, checked; empty words ask for nothing, as those of an empty form. What a form says of instants is in `zone`.
    ///
    /// # Errors
    /// [`WebError::BadRequest`] that names the parameter.
    pub(super) fn asked(&self, zone: Zone) -> Result<Asked, WebError> {
        // A form sends what a clock on the wall shows; an address may have an instant.
        let instant = |text: &Option<String>| {
            let text = text.as_ref()?;
            Some(zone.typed(text).map_or_else(|| text.clone(), iso))
        };
        let sought = Sought {
            run: self.run.clone(),
            grep: self.grep.clone(),
            since: instant(&self.since),
            until: instant(&self.until),
        };
        let number = |name: &str, text: &Option<String>| match text.as_deref().map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| {
                let text = format!("parameter {name}: use the number of a line");
                WebError::bad(Detail::new(text).told("refused-line", &[]))
            }),
        };
        let line = number("line", &self.line)?;
        let from = match (
            line,
            number("lines_before", &self.lines_before)?,
            number("lines_after", &self.lines_after)?,
        ) {
            (Some(line), _, _) => LogFrom::After(line.saturating_sub(AROUND + 1)),
            (None, None, Some(after)) => LogFrom::After(after),
            (None, before, _) => LogFrom::Before(before),
        };
        Ok(Asked { filter: sought.filter()?, sought, from, line, zone })
    }
}

impl Asked {
    /// An instant as the form takes it.
    fn wall(&self, at: Option<&str>) -> String {
        at.map(|at| typed(at, &self.zone)).unwrap_or_default()
    }

    /// The newest lines of all: new ones are added as they come.
    fn is_live(&self) -> bool {
        self.filter.is_all() && self.from == LogFrom::Before(None)
    }
}

/// The output of a job.
#[derive(Template)]
#[template(path = "parts/output.html")]
pub(super) struct Output {
    lang: Language,
    name: String,
    path: String,
    live: bool,
    /// Number of the newest line shown.
    newest: u64,
    /// Rendered.
    lines: String,
    /// What is said when there is no line.
    none: String,
    older: Option<String>,
    newer: Option<String>,
    grep: String,
    since: String,
    until: String,
    /// The same as instants.
    since_at: String,
    until_at: String,
    /// In which zone these two are.
    offset: String,
    run: String,
    run_said: String,
    download: String,
}

impl Output {
    /// Reads what is asked for. `runs` are the newest ones of the job.
    ///
    /// # Errors
    /// As the store; out of reach it is no error, but said in place of the lines.
    pub(super) async fn read(
        store: &Store,
        job: &JobName,
        asked: &Asked,
        runs: &[RunEntry],
        acts: Acts<'_>,
        lang: Language,
    ) -> Result<Self, WebError> {
        let reading = async {
            let page = store.log_page(job, &asked.filter, asked.from, LINES).await?;
            let past = match page.lines.last() {
                Some(last) if !asked.is_live() => past(store, job, runs, &last.run).await?,
                _ => runs.to_vec(),
            };
            Ok::<_, StoreError>((page, past))
        };
        match reading.await {
            Ok((page, past)) => {
                let endings = Endings::new(&past, acts, lang);
                Ok(Self::new(job, asked, Some(&page), &endings, lang))
            }
            Err(StoreError::Unavailable(_)) => {
                Ok(Self::new(job, asked, None, &Endings::default(), lang))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The page of what was read; `None`: it could not be.
    pub(super) fn new(
        job: &JobName,
        asked: &Asked,
        page: Option<&LogPage>,
        endings: &Endings,
        lang: Language,
    ) -> Self {
        let live = asked.is_live();
        let (nothing, path) = (LogPage::default(), format!("/jobs/{job}"));
        let read = page.unwrap_or(&nothing);
        let lines = Lines::new(&read.lines, endings, lang);
        let lines = if live { lines } else { lines.to_the_end(endings).seeking(asked.line) };
        let (older, newer) = asked.around(read, &path);
        let none = match (page.is_some(), asked.filter.is_all()) {
            (false, _) => "not-read",
            (true, true) if live => "output-empty",
            (true, true) => "output-none-there",
            (true, false) if read.next.is_some() => "output-none-yet",
            (true, false) => "output-none-such",
        };
        let run = asked.sought.run.clone().unwrap_or_default();
        Self {
            lang,
            name: job.to_string(),
            live,
            newest: read.lines.last().map_or(0, |line| line.seq),
            lines: lines.html(),
            none: say(lang, none, &[]),
            older,
            newer,
            grep: asked.sought.grep.clone().unwrap_or_default(),
            since: asked.wall(asked.sought.since.as_deref()),
            until: asked.wall(asked.sought.until.as_deref()),
            since_at: asked.sought.since.clone().unwrap_or_default(),
            until_at: asked.sought.until.clone().unwrap_or_default(),
            offset: asked.zone.offset(StoreTime(jiff::Timestamp::now().as_millisecond())),
            run_said: say(lang, "output-run", &[("run", Arg::from(&*visible(&run)))]),
            run,
            download: address(&format!("/api/v1/jobs/{job}/log.txt"), &asked.sought, None),
            path,
        }
    }

    /// As text.
    pub(super) fn html(&self) -> String {
        // It has no form that posts.
        render_for("", self)
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    /// From when.
    fn since_label(&self) -> String {
        say(self.lang, "audit-since", &[("zone", Arg::from(self.offset.as_str()))])
    }

    /// Until when.
    fn until_label(&self) -> String {
        say(self.lang, "audit-until", &[("zone", Arg::from(self.offset.as_str()))])
    }
}

impl Asked {
    /// Where the pages before and behind this one are.
    fn around(&self, page: &LogPage, path: &str) -> (Option<String>, Option<String>) {
        let link = |word: &'static str, seq: u64| {
            Some(format!("{}#output", address(path, &self.sought, Some((word, seq)))))
        };
        let first = page.lines.first().map(|line| line.seq).filter(|first| *first > 1);
        let last = page.lines.last().map(|line| line.seq);
        match self.from {
            LogFrom::Before(from) => (
                page.next.and_then(|next| link("lines_before", next)),
                from.and_then(|before| link("lines_after", last.unwrap_or(before - 1))),
            ),
            LogFrom::After(_) => (
                first.and_then(|first| link("lines_before", first)),
                page.next.and_then(|next| link("lines_after", next)),
            ),
        }
    }
}

/// `path` with what is sought, and where to go on.
fn address(path: &str, sought: &Sought, from: Option<(&'static str, u64)>) -> String {
    let from = from.map_or_else(String::new, |(word, seq)| format!("{word}={seq}"));
    let query = format!("{}{from}", sought.words());
    let query = query.trim_end_matches('&');
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The runs up to `last`, newest first: from `runs`, if it is one of these.
async fn past(
    store: &Store,
    job: &JobName,
    runs: &[RunEntry],
    last: &RunId,
) -> Result<Vec<RunEntry>, StoreError> {
    let known = runs.iter().position(|run| run.id == *last);
    let mut past: Vec<RunEntry> = known.map_or(&[][..], |at| &runs[at..=at]).to_vec();
    past.extend(store.runs(job, Some(last), RUNS).await?);
    Ok(past)
}
