//! `GET /dispatch` and the forms of sources: what is ready, who holds what, why a source waits and until when.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, ask_back, done, html};
use crate::auth::Caller;
use crate::error::WebError;
use crate::hub::LastKnown;
use crate::parts::dispatch::{Collectors, Extent, SourceRow, Totals, more};
use crate::{Web, acts};
use soloist_domain::detail::Detail;
use soloist_domain::time::parse_duration;
use soloist_ops::quota::LONGEST_BLOCK;
use soloist_store::StoreError;
use soloist_store::dispatch::{SourceView, Sources};
use soloist_view::words::{Arg, exactly, say};

/// Where the forms come back to.
pub(super) const HERE: &str = "/dispatch";

#[derive(Template)]
#[template(path = "pages/dispatch.html")]
pub(super) struct DispatchPage<'a> {
    pub(super) frame: Frame,
    pub(super) trouble: Option<String>,
    pub(super) totals: Totals,
    pub(super) rows: Vec<SourceRow<'a>>,
    /// How many sources are left out.
    pub(super) more: Option<String>,
    pub(super) extent: Extent,
    /// Whether there is more to show than the page shows at first.
    pub(super) cut: bool,
    pub(super) collectors: Collectors,
    /// No collector is known, because they could not be read.
    pub(super) unread: bool,
    /// For the form that finds a task.
    pub(super) names: Vec<String>,
    /// Whether the reader may remove sources.
    pub(super) removes: bool,
    /// The address in the commands of the empty page.
    pub(super) url: String,
    /// Whose token they make.
    pub(super) user: String,
}

/// `?all=1`: longer lists.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the address")]
pub struct Lists {
    pub all: Option<String>,
}

/// Shows sources and collectors.
///
/// # Errors
/// [`WebError::Internal`]; a store out of reach is shown, not failed on.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    lists: web::Query<Lists>,
) -> Result<HttpResponse, WebError> {
    let extent = if lists.all.is_some() { Extent::All } else { Extent::Some };
    let lang = caller.language;
    let title = say(lang, "dispatch-title", &[]);
    let mut frame = Frame::of(&web, &caller, "dispatch", HERE.to_owned(), title);
    let reading = async { Ok((web.store.sources(None).await?, web.store.collectors().await?)) };
    let (LastKnown { sources, collectors }, failed) = match reading.await {
        Ok((sources, collectors)) => (LastKnown { sources, collectors }, None),
        Err(error @ StoreError::Unavailable(_)) => {
            (web.live.last_dispatch(), Some(error.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    // The clock that every countdown of this page was made by.
    if let Some(source) = sources.first().filter(|_| failed.is_none()) {
        frame.now = Some(source.now.floor());
    }
    let now = sources.first().map(|source| source.now);
    let now = now.or_else(|| frame.now.map(Into::into)).unwrap_or_default();
    let refused = || web.desk.store().err().map(|refusal| refusal.to_string());
    let unread = failed.is_some() && collectors.is_empty();
    let trouble = failed.or_else(|| web.feed.trouble()).or_else(refused);
    let paces = web.live.paces(&sources);
    let views: Vec<&SourceView> = sources.iter().collect();
    let rows =
        sources.iter().zip(&paces).take(extent.sources()).map(|(source, pace)| {
            SourceRow::new(source, pace.as_ref(), lang, caller.is_operator())
        });
    Ok(html(&DispatchPage {
        trouble: trouble.map(|detail| say(lang, "store-trouble", &[("detail", Arg::from(detail))])),
        totals: Totals::new(&views, lang),
        rows: rows.collect(),
        more: more(lang, "sources-more", sources.len().saturating_sub(extent.sources())),
        cut: sources.len() > Extent::Some.sources() || collectors.len() > Extent::Some.collectors(),
        extent,
        collectors: Collectors::new(&collectors, now, lang, extent),
        unread,
        names: sources.iter().take(1_000).map(|source| source.name.to_string()).collect(),
        removes: caller.is_operator(),
        url: web.config().public_url.clone(),
        user: caller.user.to_string(),
        frame,
    }))
}

/// `on=true|false`; pausing is asked back for.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Pause {
    pub on: bool,
    pub reason: Option<String>,
    pub back: Option<String>,
    pub confirm: Option<String>,
}

/// `POST /dispatch/sources/{source}/pause`.
///
/// # Errors
/// As [`acts::source::pause`].
pub async fn pause(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    source: web::Path<String>,
    form: web::Form<Pause>,
) -> Result<HttpResponse, WebError> {
    let back = form.back.as_deref().unwrap_or(HERE);
    if form.on && form.confirm.as_deref() != Some("yes") {
        let name = acts::source::named(&web, &source).await?.name;
        let lang = caller.language;
        let title = say(lang, "source-pause-title", &[("source", Arg::from(name.as_str()))]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "dispatch", HERE.to_owned(), title),
            text: say(lang, "source-pause-text", &[]),
            action: format!("/dispatch/sources/{name}/pause"),
            fields: kept(vec![("on", "true".to_owned())], &form.reason, back),
            asks: false,
            yes: say(lang, "source-pause-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: back.to_owned(),
        };
        return Ok(ask_back(&request, &confirm));
    }
    acts::source::pause(&web, &caller, &source, form.on, form.reason.as_deref()).await?;
    Ok(done(&request, back))
}

/// What the question keeps of the form.
fn kept(
    mut fields: Vec<(&'static str, String)>,
    reason: &Option<String>,
    back: &str,
) -> Vec<(&'static str, String)> {
    fields.extend(reason.clone().map(|reason| ("reason", reason)));
    fields.push(("back", back.to_owned()));
    fields
}

/// `for=60s`; `for=0s` lifts a block.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Block {
    pub r#for: String,
    pub reason: Option<String>,
    pub back: Option<String>,
    pub confirm: Option<String>,
}

/// `POST /dispatch/sources/{source}/block`.
///
/// # Errors
/// As [`acts::source::block`].
pub async fn block(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    source: web::Path<String>,
    form: web::Form<Block>,
) -> Result<HttpResponse, WebError> {
    let lasting = parse_duration(form.r#for.trim()).map_err(|error| {
        let text = format!("field for: {error}: write a duration such as 60s, 10m or 1h");
        WebError::bad(Detail::new(text).told("refused-duration", &[]))
    })?;
    if lasting > LONGEST_BLOCK {
        let text = "field for: a block may last a day at most; pause it instead";
        return Err(WebError::bad(Detail::new(text).told("refused-block-long", &[])));
    }
    let back = form.back.as_deref().unwrap_or(HERE);
    if lasting > Duration::ZERO && form.confirm.as_deref() != Some("yes") {
        let name = acts::source::named(&web, &source).await?.name;
        let lang = caller.language;
        let time = ("time", Arg::from(exactly(lang, lasting)));
        let source = ("source", Arg::from(name.as_str()));
        let title = say(lang, "source-block-title", &[source, time.clone()]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "dispatch", HERE.to_owned(), title),
            text: say(lang, "source-block-text", &[time]),
            action: format!("/dispatch/sources/{name}/block"),
            fields: kept(vec![("for", form.r#for.clone())], &form.reason, back),
            asks: false,
            yes: say(lang, "source-block-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: back.to_owned(),
        };
        return Ok(ask_back(&request, &confirm));
    }
    let name = acts::source::named(&web, &source).await?.name;
    acts::source::block(&web, &caller, &name, lasting, form.reason.as_deref()).await?;
    Ok(done(&request, back))
}
