//! `GET /nodes` and the drain form: who is there, how fresh, what it holds.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, done, html};
use crate::domain::time::StoreTime;
use crate::picture::NodeView;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::{Web, acts};
use crate::words::{Arg, Language, Piece, duration, phrase, say};

#[derive(Template)]
#[template(path = "pages/nodes.html")]
pub(super) struct NodesPage {
    pub(super) frame: Frame,
    pub(super) trouble: Option<String>,
    pub(super) nodes: Vec<NodeRow>,
    /// Whether the reader may drain.
    pub(super) operator: bool,
}

/// One node.
pub(super) struct NodeRow {
    pub(super) view: NodeView,
    pub(super) here: bool,
    pub(super) state: &'static str,
    pub(super) word: String,
    pub(super) heard: Vec<Piece>,
}

impl NodeRow {
    pub(super) fn of(view: NodeView, lang: Language, here: &str, now: Option<StoreTime>) -> Self {
        let (state, word) = match (view.alive, view.draining) {
            (false, _) => ("silent", say(lang, "node-silent", &[])),
            (true, true) => ("draining", say(lang, "node-draining", &[])),
            (true, false) => ("alive", say(lang, "node-alive", &[])),
        };
        let text = duration(lang, std::time::Duration::from_millis(view.age_ms));
        // A living node reports again every second, so its age does not grow on the page.
        let ago = match now.filter(|_| !view.alive) {
            Some(now) => {
                let age = i64::try_from(view.age_ms).unwrap_or(0);
                Piece::Since { ms: now.0.saturating_sub(age), text }
            }
            None => Piece::Text(text),
        };
        let heard = phrase(lang, "heard-ago", &[("ago", ago)]);
        Self { here: view.name == here, view, state, word, heard }
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
    let here = web.config.node.to_string();
    let nodes = web
        .feed
        .nodes()
        .iter()
        .map(|node| NodeRow::of(NodeView::from(node), lang, &here, frame.now))
        .collect();
    Ok(html(&NodesPage {
        trouble: web
            .feed
            .trouble()
            .map(|detail| say(lang, "store-trouble", &[("detail", Arg::from(detail))])),
        nodes,
        operator: caller.is_operator(),
        frame,
    }))
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
/// As [`acts::drain`].
pub async fn drain(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    node: web::Path<String>,
    form: web::Form<Drain>,
) -> Result<HttpResponse, WebError> {
    if form.on && form.confirm.as_deref() != Some("yes") && caller.is_operator() {
        let lang = caller.language;
        let shown: String = node.chars().take(64).collect();
        let title = say(lang, "drain-title", &[("node", Arg::from(shown.as_str()))]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "nodes", "/nodes".to_owned(), title),
            text: say(lang, "drain-text", &[]),
            action: format!("/nodes/{shown}/drain"),
            fields: vec![("on", "true".to_owned())],
            yes: say(lang, "drain-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/nodes".to_owned(),
        };
        return Ok(confirm.answer());
    }
    acts::drain(&web, &caller, &node, form.on).await?;
    Ok(done(&request, "/nodes"))
}
