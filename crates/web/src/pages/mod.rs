//! Pages: each file reads what its page needs, puts words and classes into a template and answers its forms.
//!
//! No page decides what is allowed (that is `acts` and the door) or what is true (that is `picture`).

pub mod account;
pub mod alerts;
pub mod api;
pub mod audit;
pub mod away;
pub mod bulk;
pub mod confirm;
pub mod dashboard;
pub mod dead;
pub mod dispatch;
pub mod error;
mod failover;
mod form;
pub mod job;
pub mod login;
pub mod nodes;
pub mod output;
pub mod people;
pub mod person;
pub mod preferences;
pub mod remove;
pub mod ring;
pub mod rotations;
pub mod run;
pub mod schedule;
pub mod source;
pub mod source_rules;
pub mod task;
pub mod tasks;
pub mod wall;
pub mod zone;

use std::collections::HashMap;
use std::sync::Arc;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::auth::Caller;
use super::parts::RowViewer;
use super::parts::rotation::RingLine;
use super::parts::truth::Bar;
use super::sieve::NO_ROWS;
use super::{assets, csrf, parts};
use soloist_config::JobConfig;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
use soloist_process::clock;
use soloist_store::accounts::Role;
use soloist_store::rotation::Rotations;
use soloist_view::JobView;
use soloist_view::words::{Arg, Language, Zone, say};

use self::confirm::Confirm;
use super::Web;

/// What every page has around its content.
pub struct Frame {
    lang: Language,
    title: String,
    /// Which entry of the navigation this is.
    here: &'static str,
    /// Where preferences come back to.
    path: String,
    theme: Option<String>,
    /// The IANA name of the zone that the account has chosen.
    time_zone: Option<String>,
    /// The zone in which the server says instants on this page.
    zone: Zone,
    csrf: String,
    person: Option<Person>,
    /// The store's clock, where it is known.
    now: Option<StoreTime>,
    /// Whether the page opens a socket.
    live: bool,
    /// Which rows of jobs the socket tells, as the query of its address.
    rows: String,
    /// What must be said before anything else.
    truth: Bar,
    /// The page loads itself again after this many seconds, also without scripts.
    refresh: Option<u32>,
    /// How many alerts are on.
    alerts: usize,
    /// Living nodes with other addresses.
    others: Vec<(String, String)>,
}

struct Person {
    name: String,
    display_name: Option<String>,
    role: &'static str,
    admin: bool,
}

impl Frame {
    /// Around a page for a caller who is signed in.
    fn of(web: &Web, caller: &Caller, here: &'static str, path: String, title: String) -> Self {
        let role = match caller.role {
            Role::Viewer => "role-viewer",
            Role::Operator => "role-operator",
            Role::Admin => "role-admin",
            Role::Collector => "role-collector",
        };
        Self {
            lang: caller.language,
            title,
            here,
            path,
            theme: caller.theme.clone(),
            time_zone: caller.time_zone.clone(),
            zone: caller.zone(),
            csrf: csrf::masked(&caller.csrf),
            person: Some(Person {
                name: caller.user.to_string(),
                display_name: caller.display_name.clone(),
                role,
                admin: caller.is_admin(),
            }),
            now: store_now(web),
            live: true,
            rows: NO_ROWS.to_owned(),
            truth: web.live.bar(caller),
            refresh: None,
            alerts: web.live.alerts_on(caller),
            others: web.live.others(),
        }
    }

    /// Around a page for a reader whose account is not known.
    fn open(lang: Language, theme: Option<String>, title: String) -> Self {
        Self {
            lang,
            title,
            here: "",
            path: "/".to_owned(),
            theme,
            time_zone: None,
            zone: Zone::here().clone(),
            csrf: String::new(),
            person: None,
            now: None,
            live: false,
            rows: NO_ROWS.to_owned(),
            truth: Bar::default(),
            refresh: None,
            alerts: 0,
            others: Vec::new(),
        }
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    fn asset(&self, path: &str) -> String {
        assets::url(path)
    }

    fn language(&self) -> &'static str {
        self.lang.as_str()
    }

    fn other_language(&self) -> &'static str {
        match self.lang {
            Language::En => "zh",
            Language::Zh => "en",
        }
    }

    fn theme_word(&self) -> &str {
        self.theme.as_deref().unwrap_or("system")
    }

    /// The colour of a window's frame, where the page is one of its own: that of the bar at the top.
    fn theme_colours(&self) -> Vec<(&'static str, Option<&'static str>)> {
        let (light, dark) = ("#ffffff", "#1c1e25");
        match self.theme_word() {
            "light" => vec![(light, None)],
            "dark" => vec![(dark, None)],
            _ => vec![
                (light, Some("(prefers-color-scheme: light)")),
                (dark, Some("(prefers-color-scheme: dark)")),
            ],
        }
    }

    fn next_theme(&self) -> &'static str {
        match self.theme_word() {
            "dark" => "light",
            "light" => "system",
            _ => "dark",
        }
    }

    fn theme_label(&self) -> String {
        match self.theme_word() {
            "dark" => self.say("theme-dark"),
            "light" => self.say("theme-light"),
            _ => self.say("theme-system"),
        }
    }

    fn account_label(&self, name: &str) -> String {
        say(self.lang, "account-of", &[("user", Arg::from(name))])
    }

    /// When the page was made, for the mark that is right without a socket.
    fn still(&self) -> String {
        match self.now {
            None => String::new(),
            Some(now) => {
                let time = self.zone.told(self.lang, now, now, "clock");
                let zone = Arg::from(self.offset());
                say(self.lang, "mark-still", &[("time", Arg::from(time)), ("zone", zone)])
            }
        }
    }

    /// Where else this page can be read, as JSON.
    fn elsewhere(&self) -> String {
        serde_json::json!(self.others).to_string()
    }

    fn now_ms(&self) -> String {
        self.now.map_or_else(String::new, |now| now.0.to_string())
    }

    /// The first part of the mark: from this page to its node.
    fn page_title(&self) -> String {
        self.say("mark-page-title")
    }

    /// The second part of the mark: from that node to its store.
    fn store_word(&self) -> String {
        self.say(if self.truth.away { "mark-store-away" } else { "mark-store" })
    }

    /// What scripts say, as JSON; `#` stands for a number.
    fn words(&self) -> String {
        let hash = |id: &str| {
            let a = ("a", Arg::from("#1"));
            let b = ("b", Arg::from("#2"));
            say(self.lang, id, &[a, b])
        };
        serde_json::json!({
            "seconds": hash("time-seconds"),
            "minutes": hash("time-minutes"),
            "hours": hash("time-hours"),
            "days": hash("time-days"),
            "yesterday": say(self.lang, "time-yesterday", &[("time", Arg::from("#"))]),
            "live": self.say("mark-live"),
            "connected": self.say("mark-connected"),
            "store": self.say("mark-store"),
            "storeAway": self.say("mark-store-away"),
            "nodeSilent": say(self.lang, "truth-page", &[("ago", Arg::from("#1"))]),
            "nodeAlone": say(self.lang, "truth-page-alone", &[("ago", Arg::from("#1"))]),
            "openAt": say(self.lang, "truth-open-at", &[("node", Arg::from("#1"))]),
            "sessionOver": self.say("truth-signed-out"),
            "reconnecting": self.say("mark-reconnecting"),
            "old": self.say("mark-old"),
            "signedOut": self.say("mark-signed-out"),
            "fromHere": say(self.lang, "output-from-here", &[("node", Arg::from("#"))]),
            "skipped": self.say("output-skipped"),
            "follow": self.say("output-follow"),
            "paused": self.say("output-paused"),
            "held": self.say("output-held"),
            "progress": say(self.lang, "progress-of", &[("done", Arg::from("#1")), ("total", Arg::from("#2"))]),
            "differs": self.say("login-differs"),
            "needsYou": self.say("notices-needs-you"),
            "ago": say(self.lang, "heard-ago", &[("ago", Arg::from("#"))]),
            "theme-system": self.say("theme-system"),
            "theme-dark": self.say("theme-dark"),
            "theme-light": self.say("theme-light"),
        })
        .to_string()
    }
}

/// The store's clock now, from the newest picture of any job.
fn store_now(web: &Web) -> Option<StoreTime> {
    web.feed.store_now()
}

/// The picture of `job` for `caller`, from the feed.
fn picture(web: &Web, caller: &Caller, job: &JobConfig) -> JobView {
    match web.feed.job(&job.name) {
        Some(seen) => {
            let (nodes, rotations) = (web.feed.nodes(), web.live.rotations());
            let rotations = rotations.as_ref().map(|views| &views[..]);
            JobView::of(&seen, job, &nodes, rotations, caller.language, clock::boot())
                .with_names(&web.live.display_names())
                .with_alerts(web.live.alerts_of(&job.name), caller.language)
        }
        None => JobView::unseen(job, caller.language),
    }
}

/// The rings of those of `jobs` that are members of rotations; without the store, as they were last known.
async fn rings(web: &Web, caller: &Caller, jobs: &[Arc<JobConfig>]) -> HashMap<JobName, RingLine> {
    let mut members =
        jobs.iter().filter_map(|job| Some((&job.name, job.rotation.as_ref()?))).peekable();
    if members.peek().is_none() {
        return HashMap::new();
    }
    let known = web.store.rotations(None, 0).await;
    let known = known.unwrap_or_else(|error| {
        tracing::debug!(%error, "the rotations could not be read; the page says how old its picture is");
        web.live.last_rotations()
    });
    let hidden = web.live.hidden_from(Some(caller));
    members
        .map(|(job, name)| {
            let view = known.iter().find(|view| view.name == *name && !hidden.has_ring(view));
            (job.clone(), RingLine::new(name, view, job, caller.language))
        })
        .collect()
}

/// What of `caller` matters for a row of `view`.
fn viewer(caller: &Caller, job: &JobConfig, view: &JobView) -> RowViewer {
    let mine = view.participants.iter().any(|p| p.user == caller.user.as_str());
    RowViewer {
        mine,
        last: mine && view.participants.len() == 1,
        may_switch: caller.may_switch(job),
    }
}

/// A template with a frame around it.
trait Page: Template {
    fn frame(&self) -> &Frame;
}

macro_rules! framed {
    ($($page:ty)*) => {$(
        impl Page for $page {
            fn frame(&self) -> &Frame {
                &self.frame
            }
        }
    )*};
}

framed! {
    account::AccountPage alerts::AlertsPage api::ApiPage audit::AuditPage away::Away bulk::Preview bulk::BulkDone Confirm dashboard::Dashboard<'_> dead::DeadPage dispatch::DispatchPage<'_>
    error::ErrorPage job::JobPage<'_> job::SidePage job::configuration::ConfigurationPage job::past::PastPage form::RulesPage login::Login<'_> nodes::NodesPage people::PeoplePage person::PersonPage ring::RingPage<'_> rotations::RotationsPage<'_> run::RunPage schedule::SchedulePage source::SourcePage<'_> task::TaskPage tasks::TasksPage wall::Wall<'_>
}

/// The text of a page, with the reader's secret in its forms and instants in the reader's zone.
fn whole(page: &impl Page) -> String {
    let frame = page.frame();
    let html = parts::render_for(&frame.csrf, page);
    frame.in_zone(html)
}

fn html(page: &impl Page) -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(whole(page))
}

/// Asks back before an act that stops something: a page, or, for a script that asked for it, the same in JSON.
fn ask_back(request: &HttpRequest, confirm: &Confirm) -> HttpResponse {
    if !wants_json(request) {
        return confirm.answer();
    }
    HttpResponse::build(StatusCode::CONFLICT).json(serde_json::json!({
        "confirm": confirm.text,
        "title": confirm.frame.title,
        "yes": confirm.yes,
        "no": confirm.no,
    }))
}

/// To another address of ours, after a form that was carried out.
fn seen_other(address: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, local(address))).finish()
}

/// After a form: back to a page, or, for a script that asked for it, a word.
fn done(request: &HttpRequest, back: &str) -> HttpResponse {
    if wants_json(request) {
        return HttpResponse::Ok().json(serde_json::json!({"ok": true}));
    }
    seen_other(back)
}

fn wants_json(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.starts_with("application/json"))
}

/// A path of ours, or the dashboard: a form must not send people elsewhere.
fn local(path: &str) -> &str {
    let ours = path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if ours { path } else { "/" }
}

#[cfg(test)]
mod preview;
