//! `GET /jobs/{job}` and its forms: where, since when, under which token, what it said, how runs ended.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::output::{self, Output};
use super::{Frame, done, html, picture, rings, viewer, wants_json};
use crate::domain::drill::Drill;
use crate::domain::handover::{self, NoMove, Taker, Takers, may_move};
use crate::domain::job::{Exit, RunEnd};
use crate::domain::name::NodeName;
use crate::domain::time::StoreTime;
use crate::ops::jobs;
use crate::store::StoreError;
use crate::store::journal::{AuditEntry, AuditFilter, Journal, Kind, RunEntry};
use crate::web::Web;
use crate::web::api::query;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::parts::Head;
use crate::web::parts::endings::{self, Acts, Endings};
use crate::words::{Arg, Language, Piece, clock, day_clock, duration, plain, say};

/// How many runs the first page carries.
const RUNS: usize = 20;
/// How many acts are looked through for whoever stopped a run.
const ACTS: usize = 300;

#[derive(Template)]
#[template(path = "pages/job.html")]
pub(super) struct JobPage<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) name: String,
    pub(super) head: Head<'a>,
    /// The history could not be read.
    pub(super) unread: bool,
    /// Rendered: `parts/output.html`.
    pub(super) output: String,
    pub(super) runs: Vec<RunRow>,
    /// The heading over where runs were: the message's id.
    pub(super) runs_where: &'static str,
    /// What the newest drill measured.
    pub(super) drilled: Option<String>,
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

/// A line of the history.
pub(super) struct RunRow {
    pub(super) state: &'static str,
    pub(super) began: Vec<Piece>,
    pub(super) node: String,
    pub(super) lasted: Vec<Piece>,
    pub(super) ended: String,
    pub(super) killed: Option<String>,
    /// Who stopped it.
    pub(super) stopped: Option<String>,
    /// How many runs alike it stands for, and from when to when.
    pub(super) folded: Option<Vec<Piece>>,
    pub(super) id: String,
    /// The rule in the output before its first line.
    pub(super) rule: Option<String>,
}

impl RunRow {
    pub(super) fn of(
        run: &RunEntry,
        acts: Acts<'_>,
        endings: &Endings,
        lang: Language,
        now: Option<StoreTime>,
    ) -> Self {
        let at = |at| match now {
            Some(now) => clock(lang, at, now),
            None => day_clock(at),
        };
        let alike = endings::alike(run, at, lang);
        let lasted = match (run.ended, now) {
            _ if alike.is_some() => Piece::text("–"),
            (Some(ended), _) => Piece::Text(duration(lang, ended.since(run.started))),
            (None, now) => Piece::Since {
                ms: run.started.0,
                text: now.map_or_else(String::new, |now| duration(lang, now.since(run.started))),
            },
        };
        let killed = i64::from(run.processes_killed);
        Self {
            state: run.end.map_or("running", RunEnd::as_str),
            began: vec![at(run.started)],
            node: run.node.to_string(),
            lasted: vec![lasted],
            ended: ended(lang, run),
            killed: (killed > 0).then(|| say(lang, "end-killed", &[("n", Arg::from(killed))])),
            stopped: endings::stopped(run, acts, lang),
            folded: alike,
            id: run.id.to_string(),
            rule: endings.rule(None, &run.id.0, &run.node, lang),
        }
    }
}

impl RunRow {
    /// In the words for a run of somebody's own program.
    fn of_a_program(self, lang: Language) -> Self {
        match self.state == RunEnd::Lost.as_str() {
            true => Self { ended: say(lang, "end-lost-program", &[]), ..self },
            false => self,
        }
    }
}

fn ended(lang: Language, run: &RunEntry) -> String {
    match run.end {
        None => say(lang, "end-running", &[]),
        Some(RunEnd::Exited) => say(lang, "end-exited", &[]),
        Some(RunEnd::Stopped) => say(lang, "end-stopped", &[]),
        Some(RunEnd::Lost) => say(lang, "end-lost", &[]),
        Some(RunEnd::Fenced) => say(lang, "end-fenced", &[]),
        Some(RunEnd::TimedOut) => say(lang, "end-timed-out", &[]),
        Some(RunEnd::Crashed) => {
            let number = |n: i32| [("n", Arg::from(n.to_string()))];
            let exit = match run.exit {
                Exit { code: Some(code), .. } => say(lang, "exit-code", &number(code)),
                Exit { signal: Some(signal), .. } => say(lang, "exit-signal", &number(signal)),
                _ => say(lang, "exit-none", &[]),
            };
            say(lang, "end-crashed", &[("exit", Arg::from(exit))])
        }
    }
}

/// Refusals stop nothing.
fn acts_only() -> AuditFilter {
    AuditFilter { kinds: vec![Kind::Person, Kind::Program], ..AuditFilter::default() }
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
    let asked = query::<output::Wanted>(&request)?.asked()?;
    let view = picture(&web, &caller, &job);
    let viewer = viewer(&caller, &job, &view);
    let (lang, path) = (caller.language, format!("/jobs/{}", job.name));
    let frame = Frame::of(&web, &caller, "jobs", path, view.title.clone());
    // Without the store the page still shows what the feed last knew, and says so.
    let journal = async {
        let runs = web.store.runs(&job.name, None, RUNS).await?;
        let stopped = runs.iter().any(|run| run.end == Some(RunEnd::Stopped));
        let acts: Vec<AuditEntry> = if stopped {
            web.store.audit_page(&acts_only(), None, ACTS).await?.entries
        } else {
            Vec::new()
        };
        Ok::<_, StoreError>((runs, acts))
    };
    let (runs, acts, unread) = match journal.await {
        Ok((runs, acts)) => (runs, acts, false),
        Err(StoreError::Unavailable(_)) => (vec![], vec![], true),
        Err(error) => return Err(error.into()),
    };
    let acts = Acts { entries: &acts, job: &job.name };
    let endings = Endings::new(&runs, acts, lang);
    let output = Output::read(&web.store, &job.name, &asked, &runs, acts, lang).await?;
    let ring = rings(&web, &caller, std::slice::from_ref(&job)).await.remove(&job.name);
    let holder = view.lease.as_ref().map(|lease| lease.node.clone());
    let seen = web.feed.job(&job.name);
    let nodes = web.feed.nodes();
    let fit: Vec<Taker> = nodes.iter().map(|node| node.taker(&job.name)).collect();
    let place = seen.as_ref().and_then(|seen| handover::place(&seen.record));
    let others = fit.iter().filter(|taker| taker.is_fit() && Some(&taker.node) != place);
    let others = others.map(|taker| taker.node.to_string()).collect();
    let takers = if job.is_external() { Takers::Programs } else { Takers::Nodes(&fit) };
    let refused = seen.as_ref().and_then(|seen| may_move(&seen.record, None, takers).err());
    let drilled =
        web.feed.job(&job.name).and_then(|seen| drilled(lang, seen.record.drill.as_ref()?));
    Ok(html(&JobPage {
        drilled,
        epoch: web.feed.epoch(),
        name: job.name.to_string(),
        unread,
        output: output.html(),
        runs: runs
            .iter()
            .map(|run| RunRow::of(run, acts, &endings, lang, frame.now))
            .map(|row| if job.is_external() { row.of_a_program(lang) } else { row })
            .collect(),
        runs_where: if job.is_external() { "runs-program" } else { "runs-node" },
        operate: viewer.may_switch.then(|| Operate {
            held: view.hold.is_some(),
            takers: others,
            external: job.is_external(),
            stays: refused.map(|refused| match refused {
                NoMove::NotWanted(_) => say(lang, "act-move-unwanted", &[]),
                NoMove::GivenUp(_) => say(lang, "act-move-given-up", &[]),
                NoMove::NeverRan(_) => say(lang, "act-move-never-ran", &[]),
                _ => say(lang, "act-move-nowhere", &[]),
            }),
            drill: holder
                .as_deref()
                .filter(|_| caller.is_admin() && !job.is_external())
                .map(|node| say(lang, "act-drill-text", &[("node", Arg::from(node))])),
        }),
        head: Head::new(&view, viewer, lang).with_ring(ring),
        frame,
    }))
}

/// What a drill measured, once somebody took over.
fn drilled(lang: Language, drill: &Drill) -> Option<String> {
    let (to, took) = (drill.to.as_ref()?, drill.takeover()?);
    let ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    let facts = [
        ("at", Arg::from(plain(&[day_clock(drill.at)]))),
        ("user", Arg::from(drill.by.as_str())),
        ("node", Arg::from(to.as_str())),
        ("ms", Arg::from(ms.to_string())),
    ];
    Some(say(lang, "drilled", &facts))
}

/// `on=true|false`, and `confirm=yes` from the last participant.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Switch {
    pub on: bool,
    pub reason: Option<String>,
    pub confirm: Option<String>,
    pub back: Option<String>,
}

/// `POST /jobs/{job}/participation`.
///
/// # Errors
/// As [`jobs::participate`].
pub async fn participation(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
    form: web::Form<Switch>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let path = format!("/jobs/{}", job.name);
    let back = form.back.clone().unwrap_or_else(|| path.clone());
    let view = picture(&web, &caller, &job);
    let last = viewer(&caller, &job, &view).last;
    if last && !form.on && form.confirm.as_deref() != Some("yes") {
        let lang = caller.language;
        let text = say(lang, "last-text", &[("title", Arg::from(view.title.as_str()))]);
        if wants_json(&request) {
            let body = serde_json::json!({"confirm": text});
            return Ok(HttpResponse::build(StatusCode::CONFLICT).json(body));
        }
        let title = say(lang, "last-title", &[]);
        let mut fields = vec![("on", "false".to_owned()), ("back", back.clone())];
        fields.extend(form.reason.clone().map(|reason| ("reason", reason)));
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "jobs", path.clone(), title),
            text,
            action: format!("{path}/participation"),
            fields,
            yes: say(lang, "last-yes", &[]),
            no: say(lang, "last-no", &[]),
            back,
        };
        return Ok(confirm.answer());
    }
    let (actor, reason) = (caller.actor(), form.reason.as_deref());
    jobs::participate(&web.store, &actor, &job, None, form.on, reason).await?;
    Ok(done(&request, &back))
}

/// A reason.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Reason {
    #[serde(default)]
    pub reason: String,
}

/// `POST /jobs/{job}/hold`.
///
/// # Errors
/// As [`jobs::hold`].
pub async fn hold(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
    form: web::Form<Reason>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    jobs::hold(&web.store, &caller.actor(), &job, &form.reason).await?;
    Ok(done(&request, &format!("/jobs/{name}")))
}

/// `POST /jobs/{job}/resume`.
///
/// # Errors
/// As [`jobs::resume`].
pub async fn resume(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    jobs::resume(&web.store, &caller.actor(), &job).await?;
    Ok(done(&request, &format!("/jobs/{name}")))
}

/// Where to; empty for any other node.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct To {
    #[serde(default)]
    pub to: String,
}

/// `POST /jobs/{job}/move`.
///
/// # Errors
/// As [`jobs::hand_over`].
pub async fn move_(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
    form: web::Form<To>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let to = Some(form.to.as_str()).filter(|to| !to.is_empty()).map(NodeName::new).transpose()?;
    jobs::hand_over(&web.store, &caller.actor(), &job, to.as_ref()).await?;
    Ok(done(&request, &format!("/jobs/{name}")))
}

/// `confirm=yes` from the page that warns, and `force=yes` when nobody could take over.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Crash {
    pub confirm: Option<String>,
    pub force: Option<String>,
}

/// `POST /jobs/{job}/drill`; asked back for.
///
/// # Errors
/// As [`jobs::drill`].
pub async fn drill(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    name: web::Path<String>,
    form: web::Form<Crash>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let path = format!("/jobs/{}", job.name);
    let view = picture(&web, &caller, &job);
    let force = form.force.as_deref() == Some("yes");
    if let (Some(lease), None) = (&view.lease, &form.confirm) {
        let lang = caller.language;
        let node = [("node", Arg::from(lease.node.as_str()))];
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "jobs", path.clone(), say(lang, "drill-title", &node)),
            text: say(lang, "act-drill-text", &node),
            action: format!("{path}/drill"),
            fields: if force { vec![("force", "yes".to_owned())] } else { Vec::new() },
            yes: say(lang, "drill-yes", &node),
            no: say(lang, "cancel", &[]),
            back: path,
        };
        return Ok(confirm.answer());
    }
    jobs::drill(&web.store, &caller.actor(), &job, (force, "force"), |_| {}).await?;
    Ok(done(&request, &path))
}
