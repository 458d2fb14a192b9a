//! The forms of a job's page: switching, holding, moving, drilling.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::super::confirm::Confirm;
use super::super::{Frame, done, picture, viewer, wants_json};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::NodeName;
use soloist_ops::jobs;
use soloist_view::words::{Arg, say};

/// `on=true|false`, and `confirm=yes` from the last participant.
#[derive(Debug, Deserialize)]
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
            asks: false,
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

/// Where to; empty for any other node. And why, if that is said.
#[derive(Debug, Deserialize)]
pub struct To {
    #[serde(default)]
    pub to: String,
    pub reason: Option<String>,
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
    let (actor, reason) = (caller.actor(), form.reason.as_deref());
    jobs::hand_over(&web.store, &actor, &job, to.as_ref(), reason).await?;
    Ok(done(&request, &format!("/jobs/{name}")))
}

/// `confirm=yes` from the page that warns, and `force=yes` when no node could take over.
#[derive(Debug, Deserialize)]
pub struct Crash {
    pub confirm: Option<String>,
    pub force: Option<String>,
    pub reason: Option<String>,
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
            fields: force
                .then(|| ("force", "yes".to_owned()))
                .into_iter()
                .chain(form.reason.clone().map(|reason| ("reason", reason)))
                .collect(),
            asks: false,
            yes: say(lang, "drill-yes", &node),
            no: say(lang, "cancel", &[]),
            back: path,
        };
        return Ok(confirm.answer());
    }
    let (actor, reason) = (caller.actor(), form.reason.as_deref());
    jobs::drill(&web.store, &actor, &job, (force, "force"), reason, |_| {}).await?;
    Ok(done(&request, &path))
}
