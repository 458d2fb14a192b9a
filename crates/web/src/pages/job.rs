//! `GET /jobs/{job}`: where, since when, under which token, who held it, what it said, how runs ended. `acts` has its forms.

mod acts;
pub(super) mod configuration;
pub(super) mod past;
pub(super) mod tabs;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

pub use self::acts::{drill, hold, move_, participation, resume};
pub use self::configuration::configuration;
pub use self::past::past;
use self::tabs::Tabs;
use super::output::{self, Output};
use super::{Frame, html, picture, rings, viewer};
use crate::Web;
use crate::api::{query, read_now};
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::Head;
use crate::parts::endings::{Acts, Endings};
use crate::parts::holders::{Extent, Holders, Voice};
use crate::parts::runs::{ROWS, RunRow, Runs, bars, folded};
use crate::parts::ticks::Ticks;
use soloist_config::JobConfig;
use soloist_domain::drill::Drill;
use soloist_domain::handover::{self, NoMove, Taker, Takers, may_move};
use soloist_domain::job::RunEnd;
use soloist_domain::tick::{Entry, TickName};
use soloist_domain::time::{StoreTime, signed_millis};
use soloist_process::clock;
use soloist_store::StoreError;
use soloist_store::journal::{AuditEntry, AuditFilter, Journal, Kind, RUNS_KEPT, RunEntry};
use soloist_store::ticks::TickBook as _;
use soloist_store::timeline::{SPANS_KEPT, Seen as Past, Timelines};
use soloist_view::JobView;
use soloist_view::ticks::all_ticks;
use soloist_view::words::{Arg, Language, Piece, day_clock, phrase, say};

/// How many runs are read for a page of them: those alike share a row.
const RUNS: usize = 120;
/// How many acts are looked through to find who stopped a run.
const ACTS: usize = 300;

#[derive(Template)]
#[template(path = "pages/job.html")]
pub(super) struct JobPage<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) head: Head<'a>,
    pub(super) tabs: Tabs,
    /// Rendered: `parts/output.html`.
    pub(super) output: String,
    pub(super) side: Side,
}

/// What a script fetches again when a run begins or ends: all but head and output.
#[derive(Template)]
#[template(path = "pages/job_side.html")]
pub(super) struct SidePage {
    pub(super) frame: Frame,
    pub(super) side: Side,
}

impl JobPage<'_> {
    fn about(&self, id: &str) -> String {
        self.side.about(id, self.frame.lang)
    }
}

impl SidePage {
    fn about(&self, id: &str) -> String {
        self.side.about(id, self.frame.lang)
    }
}

impl Side {
    /// A message about the job.
    fn about(&self, id: &str, lang: Language) -> String {
        say(lang, id, &[("title", Arg::from(self.title.as_str()))])
    }
}

/// Who held it, runs, and the forms of operators.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) title: String,
    /// The history could not be read.
    pub(super) unread: bool,
    /// Of a job with a schedule.
    pub(super) ticks: Option<Ticks>,
    pub(super) held: Option<Holders>,
    pub(super) runs: Runs,
    pub(super) operate: Option<Operate>,
}

/// The forms of operators.
pub(super) struct Operate {
    pub(super) held: bool,
    pub(super) takers: Vec<String>,
    /// A program holds it: it moves to whatever name is given.
    pub(super) external: bool,
    /// Why it cannot be moved.
    pub(super) stays: Option<String>,
    /// For admins, while it runs: the warning that stands before a drill.
    pub(super) drill: Option<String>,
}

/// What of the page is asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    /// How much of the past is drawn.
    hold: Option<String>,
    /// Only runs older than this one.
    before: Option<String>,
    /// `side`: without head and output.
    part: Option<String>,
    /// The tick of a run that was asked for just now.
    asked: Option<String>,
}

/// What was read for the page; nothing when the store is away.
#[derive(Default)]
struct Read {
    /// Those of the page, and the newest ones.
    runs: Vec<RunEntry>,
    newest: Vec<RunEntry>,
    /// The run before which the page of newer runs begins, and whether there is one.
    newer: Option<Option<String>>,
    acts: Vec<AuditEntry>,
    past: Option<Past>,
    /// Of a job with a schedule: what became of its ticks.
    ticks: Vec<Entry>,
}

/// Refusals stop nothing; what was done before the oldest run on the page did not end it.
fn acts_since(from: Option<StoreTime>) -> AuditFilter {
    AuditFilter { kinds: vec![Kind::Person, Kind::Program], from, ..AuditFilter::default() }
}

async fn read(web: &Web, job: &JobConfig, wanted: &Wanted) -> Result<Read, StoreError> {
    let (mut runs, mut newer) = (Vec::new(), None);
    let newest;
    match wanted.before.as_deref() {
        None => {
            runs = web.store.runs(&job.name, None, RUNS).await?;
            newest = runs.clone();
        }
        Some(before) => {
            let all = web.store.runs(&job.name, None, RUNS_KEPT + 1).await?;
            if let Some(nth) = all.iter().position(|run| run.id.0 == before) {
                runs = all[nth + 1..].iter().take(RUNS).cloned().collect();
                let rows = folded(&all[..=nth]);
                let first = rows.len().checked_sub(ROWS + 1);
                newer = Some(first.map(|row| rows[row].id.to_string()));
            }
            newest = all.into_iter().take(RUNS).collect();
        }
    }
    let mut acts = Vec::new();
    if runs.iter().any(|run| run.end == Some(RunEnd::Stopped)) {
        let from = runs.last().map(|run| run.started);
        acts = web.store.audit_page(&acts_since(from), None, ACTS).await?.entries;
    }
    let past = Some(web.store.timeline(&job.name, SPANS_KEPT).await?);
    let ticks = match job.schedule {
        Some(_) => web.store.ticks(&job.name).await?,
        None => Vec::new(),
    };
    Ok(Read { runs, newest, newer, acts, past, ticks })
}

fn runs(
    read: &Read,
    endings: &Endings,
    job: &JobConfig,
    wanted: &Wanted,
    (lang, now): (Language, Option<StoreTime>),
) -> Runs {
    let acts = Acts { entries: &read.acts, job: &job.name };
    let hold = Extent::named(wanted.hold.as_deref()).as_str();
    let address = |before: &str| format!("?hold={hold}&before={before}#runs");
    let all = folded(&read.runs);
    let is_more = all.len() > ROWS || read.runs.len() == RUNS;
    let last = all.iter().take(ROWS).next_back().filter(|_| is_more);
    let rows = all.iter().take(ROWS).map(|run| RunRow::of(run, acts, endings, lang, now));
    let shown = last.and_then(|last| read.runs.iter().position(|run| run.id == last.id));
    let shown = shown.map_or(read.runs.len(), |nth| nth + 1);
    Runs {
        lang,
        rows: rows
            .map(|row| if job.is_external() { row.of_a_program(lang) } else { row })
            .collect(),
        bars: bars(&read.runs[..shown], lang),
        place: if job.is_external() { "runs-program" } else { "runs-node" },
        unread: read.past.is_none(),
        older: last.map(|last| address(&last.id.0)),
        newer: read.newer.as_ref().map(|before| match before {
            Some(before) => address(before),
            None => format!("?hold={hold}#runs"),
        }),
        drilled: None,
    }
}

/// Shows a job.
///
/// # Errors
/// [`WebError::NotFound`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let wanted: Wanted = query(&request)?;
    let asked = query::<output::Wanted>(&request)?.asked(caller.zone())?;
    let view = picture(&web, &caller, &job);
    let viewer = viewer(&caller, &job, &view);
    let (lang, path) = (caller.language, format!("/jobs/{}", job.name));
    let frame = Frame::of(&web, &caller, "jobs", path, view.title.clone());
    let whole = wanted.part.as_deref() != Some("side");
    // Without the store the page still shows what the feed last knew, and says so.
    let (mut read, unread) = match read(&web, &job, &wanted).await {
        Ok(read) => (read, false),
        Err(StoreError::Unavailable(_)) => (Read::default(), true),
        Err(error) => return Err(error.into()),
    };
    let acts = Acts { entries: &read.acts, job: &job.name };
    let endings = Endings::new(&read.runs, acts, lang);
    let extent = Extent::named(wanted.hold.as_deref());
    let seen = web.feed.job(&job.name);
    let drilled = seen.as_ref().and_then(|seen| drilled(lang, seen.record.drill.as_ref()?));
    let voice = Voice { lang, external: job.is_external(), lease: job.timing.ttl };
    if let Some(past) = &mut read.past {
        past.line.schedule = job.schedule.as_ref().map(|scheduled| scheduled.law.clone());
    }
    let held = read
        .past
        .as_ref()
        .map(|past| Holders::of(job.name.as_str(), &past.line, extent, past.at, voice));
    let ticks = ticks_of(&web, &caller, (&job, viewer.may_switch), &read, unread, &wanted).await;
    let side = Side {
        ticks,
        name: job.name.to_string(),
        title: view.title.clone(),
        unread,
        held,
        runs: Runs { drilled, ..runs(&read, &endings, &job, &wanted, (lang, frame.now)) },
        operate: viewer.may_switch.then(|| operate(&web, &caller, &job, &view)),
    };
    if !whole {
        return Ok(html(&SidePage { frame, side }));
    }
    let ring = rings(&web, &caller, std::slice::from_ref(&job)).await.remove(&job.name);
    let output = Output::read(&web.store, &job.name, &asked, &read.newest, acts, lang).await?;
    Ok(html(&JobPage {
        epoch: web.feed.epoch(),
        output: output.html(),
        head: Head::new(&view, viewer, lang).with_ring(ring),
        tabs: Tabs::new(&job, "now", lang),
        side,
        frame,
    }))
}

/// When it runs, and what became of its ticks.
async fn ticks_of(
    web: &Web,
    caller: &Caller,
    (job, may_run): (&JobConfig, bool),
    read: &Read,
    unread: bool,
    wanted: &Wanted,
) -> Option<Ticks> {
    let scheduled = job.schedule.as_ref()?;
    let asked = wanted.asked.as_ref().map(|name| TickName(name.replace(' ', "+")));
    // A run that was asked for a moment ago may not have been heard of here.
    let fresh = match asked {
        Some(_) => read_now(web, job).await.ok(),
        None => None,
    };
    let seen = fresh.or_else(|| web.feed.job(&job.name))?;
    let (record, now) = (&seen.record, seen.store_now(clock::boot()));
    let entries = all_ticks(read.ticks.clone(), Some(scheduled), record, now);
    let reader = (caller.language, now, &caller.zone());
    let known = (!unread).then_some(&entries[..]);
    let may_run = may_run && !job.is_elsewhere();
    let ticks = Ticks::of((job.name.as_str(), scheduled, record), known, reader, may_run);
    Some(ticks.saying(asked.as_ref(), record.clock.as_deref(), &entries))
}

fn operate(web: &Web, caller: &Caller, job: &JobConfig, view: &JobView) -> Operate {
    let lang = caller.language;
    let seen = web.feed.job(&job.name);
    let nodes = web.feed.nodes();
    let fit: Vec<Taker> = nodes.iter().map(|node| node.taker(&job.name)).collect();
    let place = seen.as_ref().and_then(|seen| handover::place(&seen.record));
    let others = fit.iter().filter(|taker| taker.is_fit() && Some(&taker.node) != place);
    let takers = if job.is_external() { Takers::Programs } else { Takers::Nodes(&fit) };
    let refused = seen.as_ref().and_then(|seen| may_move(&seen.record, None, takers).err());
    let holder = view.lease.as_ref().map(|lease| lease.node.as_str());
    Operate {
        held: view.hold.is_some(),
        takers: others.map(|taker| taker.node.to_string()).collect(),
        external: job.is_external(),
        stays: refused.map(|refused| match refused {
            NoMove::NotWanted(_) => say(lang, "act-move-unwanted", &[]),
            NoMove::GivenUp(_) => say(lang, "act-move-given-up", &[]),
            NoMove::NeverRan(_) => say(lang, "act-move-never-ran", &[]),
            _ => say(lang, "act-move-nowhere", &[]),
        }),
        drill: holder
            .filter(|_| caller.is_admin() && !job.is_external())
            .map(|node| say(lang, "act-drill-text", &[("node", Arg::from(node))])),
    }
}

/// What a drill measured, once a node took over.
fn drilled(lang: Language, drill: &Drill) -> Option<Vec<Piece>> {
    let (to, took) = (drill.to.as_ref()?, drill.takeover()?);
    let ms = signed_millis(took);
    let facts = [
        ("at", day_clock(drill.at)),
        ("user", Piece::text(&drill.by)),
        ("node", Piece::text(to)),
        ("ms", Piece::text(ms)),
    ];
    Some(phrase(lang, "drilled", &facts))
}
