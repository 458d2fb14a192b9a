//! What goes over live sockets, as text: rendered once per change and shared by all who see the same.
//!
//! Two protocols say the same things: JSON for programs, and server-rendered fragments for our own page. This file
//! knows neither sockets nor who is connected.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::json;

use super::auth::Caller;
use super::parts::strip::Strip;
use super::parts::truth::Bar;
use super::parts::{self, RowViewer};
use super::sieve::Place;
use super::wire::{Hello, Reply, StoreReach, Tagged};
use soloist_config::JobConfig;
use soloist_domain::lease::Token;
use soloist_domain::name::RunId;
use soloist_domain::time::{Boot, StoreTime};
use soloist_domain::timeline::Timeline;
use soloist_process::clock;
use soloist_store::feed::Seen;
use soloist_store::nodes::NodeRecord;
use soloist_store::rotation::RotationView;
use soloist_view::JobView;
use soloist_view::people::DisplayNames;
use soloist_view::words::{At, Language};

/// The subprotocol of programs.
pub const JSON_PROTOCOL: &str = "soloist.v1";
/// The subprotocol of our own page.
pub const HTML_PROTOCOL: &str = "soloist.html.v1";

/// How a socket wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// [`JSON_PROTOCOL`].
    Json,
    /// [`HTML_PROTOCOL`].
    Html,
}

/// Where the text of a language stands among what was rendered.
pub(super) fn slot(language: Language) -> usize {
    match language {
        Language::En => 0,
        Language::Zh => 1,
    }
}

/// What of a row a page is told. Quotes in its markup are single ones, which JSON does not escape; in text both are escaped.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// The page shows no rows.
    Nothing,
    /// The page has the row: what is otherwise now.
    Change(&'a Place),
    /// All of it.
    Whole(&'a Place),
}

/// What a picture of the last hour is drawn by: the newest token, the run, and whether the job is wanted.
pub type Drawn = (Token, Option<RunId>, bool);

/// One picture of one job, and everything that was rendered of it so far.
pub struct JobFrames {
    /// The picture.
    pub seen: Seen,
    /// When it was put together; sentences grow old.
    pub made: Boot,
    /// When this change was read from the store; `None` when only time changed it.
    pub changed: Option<Boot>,
    nodes: Arc<Vec<NodeRecord>>,
    rotations: Option<Arc<Vec<RotationView>>>,
    names: DisplayNames,
    /// Those about it that are on.
    alerts: Vec<String>,
    /// Who held it in the last hour, and now.
    hour: Option<(Timeline, StoreTime)>,
    views: [OnceLock<JobView>; 2],
    json: [OnceLock<String>; 2],
    rows: [OnceLock<String>; 16],
    nows: [OnceLock<String>; 2],
    heads: [OnceLock<String>; 16],
}

impl JobFrames {
    /// Nothing is rendered yet.
    #[must_use]
    pub fn new(
        seen: Seen,
        nodes: Arc<Vec<NodeRecord>>,
        rotations: Option<Arc<Vec<RotationView>>>,
        names: DisplayNames,
        changed: Option<Boot>,
    ) -> Self {
        Self {
            seen,
            made: clock::boot(),
            changed,
            nodes,
            rotations,
            names,
            alerts: Vec::new(),
            hour: None,
            views: Default::default(),
            json: Default::default(),
            rows: Default::default(),
            nows: Default::default(),
            heads: Default::default(),
        }
    }

    /// With the alerts about it that are on.
    #[must_use]
    pub fn with_alerts(self, alerts: Vec<String>) -> Self {
        Self { alerts, ..self }
    }

    /// With who held it in the last hour, and now.
    #[must_use]
    pub fn with_hour(self, hour: Option<(Timeline, StoreTime)>) -> Self {
        Self { hour, ..self }
    }

    /// The job as people read it.
    pub fn view(&self, job: &JobConfig, language: Language) -> &JobView {
        let rotations = self.rotations.as_ref().map(|views| &views[..]);
        self.views[slot(language)].get_or_init(|| {
            JobView::of(&self.seen, job, &self.nodes, rotations, language, clock::boot())
                .with_names(&self.names)
                .with_alerts(self.alerts.clone(), language)
        })
    }

    /// The job as `GET /api/v1/jobs/{job}` shows it, as JSON text.
    pub fn json(&self, job: &JobConfig, language: Language) -> &str {
        self.json[slot(language)].get_or_init(|| text(self.view(job, language)))
    }

    /// `{"type":"job",...}`.
    pub fn job_frame(&self, job: &JobConfig, language: Language) -> String {
        format!(r#"{{"type":"job","job":{}}}"#, self.json(job, language))
    }

    /// The members `"job","version","state"` of a row for one viewer, and what of it is told; with `head` also `"head"`.
    pub fn row(&self, job: &JobConfig, caller: &Caller, told: Told<'_>, head: bool) -> String {
        let language = caller.language;
        let record = &self.seen.record;
        let mine = record.participates(&caller.user);
        let viewer = RowViewer {
            mine,
            last: mine && record.participants.len() == 1,
            may_switch: caller.may_switch(job),
        };
        let which = slot(language)
            | usize::from(viewer.mine) << 1
            | usize::from(viewer.last) << 2
            | usize::from(viewer.may_switch) << 3;
        let view = self.view(job, language);
        let (name, state) = (text(job.name.as_str()), view.state.as_str());
        let mut out = format!(r#""job":{name},"version":{},"state":"{state}""#, record.version);
        let place = match told {
            Told::Nothing => None,
            Told::Change(place) | Told::Whole(place) => Some(place),
        };
        // Writing to a String cannot fail.
        if let Some(Place { key, under }) = place {
            write!(out, r#","mine":{mine},"key":{},"under":{}"#, text(key), text(under)).ok();
            if view.shown.among_needy {
                out.push_str(r#","needs":true"#);
            }
        }
        match told {
            Told::Nothing => {}
            Told::Change(_) => {
                let now = self.nows[slot(language)]
                    .get_or_init(|| text(&parts::job_now(view, language).replace('"', "'")));
                write!(out, r#","now":{now}"#).ok();
            }
            Told::Whole(_) => {
                let row = self.rows[which].get_or_init(|| {
                    let strip = self.hour.as_ref();
                    let strip = strip.map(|(hour, now)| Strip::of(hour, *now, language));
                    text(&parts::job_row(view, viewer, language, strip).replace('"', "'"))
                });
                write!(out, r#","html":{row}"#).ok();
            }
        }
        if head {
            let head = self.heads[which]
                .get_or_init(|| text(&parts::job_head(self.view(job, language), viewer, language)));
            out.push_str(r#","head":"#);
            out.push_str(head);
        }
        out
    }

    /// By what the last hour is drawn, but for the time that passes.
    #[must_use]
    pub fn drawn(&self) -> Drawn {
        let record = &self.seen.record;
        let run = record.run.as_ref().map(|run| run.id.clone());
        (record.token, run, record.wanted())
    }

    /// `{"type":"hour",...}`: who held it in the last hour, drawn; `None` as long as nothing is known.
    #[must_use]
    pub fn hour_frame(&self, language: Language) -> Option<String> {
        let (hour, now) = self.hour.as_ref()?;
        let html = parts::strip::svg(&Strip::of(hour, *now, language));
        Some(
            json!({"type": "hour", "job": self.seen.record.name.as_str(), "html": html})
                .to_string(),
        )
    }

    /// `{"type":"moved",...}`: how far the run says it is, and when it said something, and nothing else.
    pub fn moved_frame(&self) -> String {
        let record = &self.seen.record;
        let run = record.run.as_ref();
        let said = run.and_then(|run| run.last_output).map(|at| at.0);
        let mut frame = json!({"type": "moved", "job": record.name.as_str(),
                               "version": record.version, "said": said});
        if let Some(progress) = run.and_then(|run| run.progress.as_ref()) {
            frame["done"] = progress.done.into();
            frame["total"] = progress.total.into();
            frame["note"] = progress.note.as_str().into();
        }
        frame.to_string()
    }
}

/// `{"type":"row",...}`.
#[must_use]
pub fn row_frame(row: &str) -> String {
    format!(r#"{{"type":"row",{row}}}"#)
}

/// `{"type":"gone",...}`: a job of which our page shows no row any more.
#[must_use]
pub fn gone_frame(job: &str) -> String {
    json!({"type": "gone", "job": job}).to_string()
}

/// `{"type":"summary",...}`: the line of counters.
#[must_use]
pub fn summary_frame(summary: &str) -> String {
    json!({"type": "summary", "html": summary}).to_string()
}

/// `{"type":"snapshot",...}` for programs; `jobs` are JSON texts.
#[must_use]
pub fn snapshot_frame<'a>(epoch: &str, jobs: impl Iterator<Item = &'a str>) -> String {
    let mut out = format!(r#"{{"type":"snapshot","epoch":{},"jobs":["#, text(epoch));
    join(&mut out, jobs);
    out.push_str("]}");
    out
}

/// `{"type":"snapshot",...}` for our page: `order` names every job that it shows, `rows` are the members of those that it does not
/// have as they are now.
#[must_use]
pub fn rows_frame(
    epoch: &str,
    order: &[&str],
    rows: impl Iterator<Item = String>,
    summary: &str,
) -> String {
    let mut out =
        format!(r#"{{"type":"snapshot","epoch":{},"order":{},"rows":["#, text(epoch), text(order));
    let rows: Vec<String> = rows.map(|row| format!("{{{row}}}")).collect();
    join(&mut out, rows.iter().map(String::as_str));
    // Writing to a String cannot fail.
    write!(out, r#"],"summary":{}}}"#, text(summary)).ok();
    out
}

/// `{"type":"nodes",...}` for our page: nodes came, went or changed, and where else it can be read.
#[must_use]
pub fn nodes_changed(others: &[(String, String)]) -> String {
    json!({"type": "nodes", "others": others}).to_string()
}

/// `{"type":"alerts",...}` for our page: how many are on, and what needs somebody and is no job.
#[must_use]
pub fn alerts_frame(on: usize, html: &str) -> String {
    json!({"type": "alerts", "on": on, "html": html}).to_string()
}

/// `{"type":"nodes",...}`.
#[must_use]
pub fn nodes_frame(nodes: &impl Serialize) -> String {
    format!(r#"{{"type":"nodes","nodes":{}}}"#, text(nodes))
}

/// `{"type":"dispatch",...}` for programs.
#[must_use]
pub fn sources_frame(sources: &impl Serialize) -> String {
    format!(r#"{{"type":"dispatch","sources":{}}}"#, text(sources))
}

/// `{"type":"rotations",...}` for programs.
#[must_use]
pub fn rotations_frame(rotations: &impl Serialize) -> String {
    format!(r#"{{"type":"rotations","rotations":{}}}"#, text(rotations))
}

/// `{"type":"log",...}`; `lines` are JSON texts; `skipped` is how many were dropped because the reader lagged.
#[must_use]
pub fn log_frame<'a>(job: &str, lines: impl Iterator<Item = &'a str>, skipped: u64) -> String {
    let mut out = format!(r#"{{"type":"log","job":{},"lines":["#, text(job));
    join(&mut out, lines);
    if skipped > 0 {
        write!(out, r#"],"skipped":{skipped}}}"#).ok();
    } else {
        out.push_str("]}");
    }
    out
}

/// `{"type":"hello",...}`; `at` is the store's clock.
#[must_use]
pub fn hello_frame(node: &str, at: Option<At>) -> String {
    let server = concat!("soloist ", env!("CARGO_PKG_VERSION")).to_owned();
    tagged("hello", Hello { node: node.to_owned(), server, at })
}

/// `{"type":"store",...}`: whether the node reaches its store, and since when; `detail` is what is wrong.
#[must_use]
pub fn store_frame(reachable: bool, since: At, detail: Option<&str>) -> String {
    let detail = detail.map(str::to_owned);
    tagged("store", StoreReach { reachable, since, detail })
}

/// `{"type":"truth",...}` for our page: the line at its top, how many things it says, and whether the store is reachable.
#[must_use]
pub fn truth_frame(bar: &Bar) -> String {
    json!({"type": "truth", "html": bar.html, "n": bar.n, "store": !bar.away}).to_string()
}

/// `{"type":"reply",...}`.
#[must_use]
pub fn reply_frame(id: &serde_json::Value, result: Result<(), (&str, &str)>) -> String {
    let refused = result.err().map(|(error, detail)| (error.to_owned(), detail.to_owned()));
    let (error, detail) = refused.unzip();
    tagged("reply", Reply { id: id.clone(), ok: error.is_none(), error, detail })
}

fn tagged<T: Serialize>(kind: &'static str, frame: T) -> String {
    text(&Tagged { r#type: kind, frame })
}

/// JSON text.
pub fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        // Our own views have no maps with odd keys and nothing that can fail.
        tracing::error!(%error, "a frame could not be written");
        "null".to_owned()
    })
}

fn join<'a>(out: &mut String, items: impl Iterator<Item = &'a str>) {
    for (nth, item) in items.enumerate() {
        if nth > 0 {
            out.push(',');
        }
        out.push_str(item);
    }
}
