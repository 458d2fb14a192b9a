//! `GET /nodes`, the drain form and the one that forgets a node: who is there, how fresh, what it holds; and everything that is held, by
//! nodes, commands and programs.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, done, html};
use crate::domain::name::JobName;
use crate::domain::time::StoreTime;
use crate::ops::nodes;
use crate::store::leases::{HeldLease, Leases as _};
use crate::view::{HeldLeaseView, LeaseKind, NodeView, takers};
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::{Web, acts};
use crate::words::{Arg, Language, Piece, day_clock, duration, phrase, say};

#[derive(Template)]
#[template(path = "pages/nodes.html")]
pub(super) struct NodesPage {
    pub(super) frame: Frame,
    /// The store could not be asked.
    pub(super) unread: bool,
    pub(super) nodes: Vec<NodeRow>,
    /// Everything that is held; `None`: the store could not be asked.
    pub(super) held: Option<Vec<HeldRow>>,
    /// Whether the reader may drain.
    pub(super) operator: bool,
}

/// One lease.
pub(super) struct HeldRow {
    pub(super) name: String,
    pub(super) is_job: bool,
    pub(super) kind: String,
    pub(super) holder: String,
    pub(super) since: Vec<Piece>,
    pub(super) left: String,
}

impl HeldRow {
    pub(super) fn of(held: &HeldLease, kind: LeaseKind, lang: Language) -> Self {
        let word = match kind {
            LeaseKind::Job => "lease-job",
            LeaseKind::Command => "lease-command",
            LeaseKind::Program => "lease-program",
        };
        Self {
            name: held.name.to_string(),
            is_job: kind == LeaseKind::Job,
            kind: say(lang, word, &[]),
            holder: held.lease.node.to_string(),
            since: vec![day_clock(held.lease.since)],
            left: duration(lang, held.lease.expires_in),
        }
    }
}

/// Everything that is held and the caller may see.
async fn held(web: &Web, caller: &Caller) -> Option<Vec<HeldRow>> {
    let held = web.store.held().await.ok()?;
    let hidden = web.live.hidden_from(Some(caller));
    let seen = held.iter().filter(|held| !hidden.has(held.name.as_str()));
    let is_job = |name: &JobName| web.live.job_named(name.as_str()).is_some();
    let row = |held| HeldRow::of(held, HeldLeaseView::of(held, is_job).kind, caller.language);
    Some(seen.map(row).collect())
}

/// One node.
pub(super) struct NodeRow {
    pub(super) view: NodeView,
    pub(super) here: bool,
    pub(super) state: &'static str,
    pub(super) word: String,
    pub(super) heard: Vec<Piece>,
    /// Of a lost one: since when, and who took its jobs.
    pub(super) story: Option<Vec<Piece>>,
}

impl NodeRow {
    /// `old`: the list could not be read lately, and a node that was alive then may be so no more.
    pub(super) fn of(
        view: NodeView,
        lang: Language,
        here: &str,
        now: Option<StoreTime>,
        old: bool,
    ) -> Self {
        let (state, word) = match (view.alive, view.draining) {
            (false, _) => ("silent", say(lang, "node-silent", &[])),
            (true, _) if old => ("unknown", say(lang, "state-unknown", &[])),
            (true, true) => ("draining", say(lang, "node-draining", &[])),
            (true, false) => ("alive", say(lang, "node-alive", &[])),
        };
        let text = duration(lang, std::time::Duration::from_millis(view.age_ms));
        // A living node reports again every second, so its age does not grow on the page.
        let ago = match now.filter(|_| !view.alive || old) {
            Some(now) => {
                let age = i64::try_from(view.age_ms).unwrap_or(0);
                Piece::Since { ms: now.0.saturating_sub(age), text }
            }
            None => Piece::Text(text),
        };
        let heard = phrase(lang, "heard-ago", &[("ago", ago)]);
        Self { here: view.name == here, view, state, word, heard, story: None }
    }
}

/// Shows the nodes.
///
/// # Errors
/// None: the list is the feed's.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let title = say(lang, "nodes-title", &[]);
    let frame = Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title);
    let here = web.config().node.to_string();
    let old = frame.truth.away;
    let read = web.feed.nodes();
    // A list that is old says when each was heard of by the clock of now.
    let heard = |name: &str| {
        let node = read.iter().find(|node| node.beat.node.as_str() == name)?;
        Some(frame.now?.since(web.feed.heard(node)?))
    };
    let nodes = NodeView::list(&read, &web.feed.held(), frame.now);
    let nodes = web.live.hidden_from(Some(&caller)).strike(nodes).into_iter().map(|mut node| {
        if let Some(age) = heard(&node.name).filter(|_| old) {
            node.age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        }
        let story = web.live.story(&node.name, lang);
        NodeRow { story, ..NodeRow::of(node, lang, &here, frame.now, old) }
    });
    let nodes = nodes.collect();
    let held = held(&web, &caller).await;
    let (unread, operator) = (frame.truth.away, caller.is_operator());
    Ok(html(&NodesPage { unread, nodes, held, operator, frame }))
}

/// `on=true|false`; draining is asked back for.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Drain {
    pub on: bool,
    pub confirm: Option<String>,
}

/// `POST /nodes/{node}/drain`.
///
/// # Errors
/// As [`nodes::drain`].
pub async fn drain(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    node: web::Path<String>,
    form: web::Form<Drain>,
) -> Result<HttpResponse, WebError> {
    if form.on && form.confirm.as_deref() != Some("yes") && caller.is_operator() {
        // Nobody is asked whether to do what would be refused.
        nodes::check_drain(&web.store, &caller.actor(), &acts::node(&node)?).await?;
        let lang = caller.language;
        let shown: String = node.chars().take(64).collect();
        let title = say(lang, "drain-title", &[("node", Arg::from(shown.as_str()))]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title),
            text: drain_text(&web, &caller, &shown),
            action: format!("/nodes/{shown}/drain"),
            fields: vec![("on", "true".to_owned())],
            yes: say(lang, "drain-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/nodes".to_owned(),
        };
        return Ok(confirm.answer());
    }
    nodes::drain(&web.store, &caller.actor(), &acts::node(&node)?, form.on).await?;
    Ok(done(&request, "/nodes"))
}

/// What draining `node` does to the jobs it holds.
fn drain_text(web: &Web, caller: &Caller, node: &str) -> String {
    let (lang, hidden) = (caller.language, web.live.hidden_from(Some(caller)));
    let nodes = web.feed.nodes();
    let held = web.feed.held();
    let stuck: Vec<&str> = held
        .iter()
        .filter(|(job, holder)| holder.as_str() == node && !hidden.has(job.as_str()))
        .filter(|(job, _)| takers(job, &nodes).iter().all(|taker| taker.as_str() == node))
        .map(|(job, _)| job.as_str())
        .collect();
    if stuck.is_empty() {
        return say(lang, "drain-text", &[]);
    }
    let jobs = stuck.join(&say(lang, "list-separator", &[]));
    say(lang, "drain-text-nowhere", &[("jobs", Arg::from(jobs))])
}

/// Asked back for, as draining is.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Forget {
    pub reason: Option<String>,
    pub confirm: Option<String>,
}

/// `POST /nodes/{node}/forget`.
///
/// # Errors
/// As [`nodes::forget`].
pub async fn forget(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    node: web::Path<String>,
    form: web::Form<Forget>,
) -> Result<HttpResponse, WebError> {
    if form.confirm.as_deref() != Some("yes") && caller.is_operator() {
        let lang = caller.language;
        let shown: String = node.chars().take(64).collect();
        let title = say(lang, "forget-title", &[("node", Arg::from(shown.as_str()))]);
        let mut fields = Vec::new();
        fields.extend(form.reason.clone().map(|reason| ("reason", reason)));
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title),
            text: say(lang, "forget-text", &[]),
            action: format!("/nodes/{shown}/forget"),
            fields,
            yes: say(lang, "forget-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/nodes".to_owned(),
        };
        return Ok(confirm.answer());
    }
    let node = acts::node(&node)?;
    nodes::forget(&web.store, &caller.actor(), &node, form.reason.as_deref()).await?;
    Ok(done(&request, "/nodes"))
}
