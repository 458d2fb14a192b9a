//! `GET /alerts` and its forms: what is on, what was, which rules and channels there are; muting, and testing a channel.
//!
//! What one node alone tells, that it cannot reach the store, is not here: the line at the top of every page says it.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, ask_back, done, whole};
use crate::Web;
use crate::api::alerts::{known, seen, tried};
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::alerts::{ChannelRow, OnRow, PastRow, RuleRow};
use soloist_domain::time::StoreTime;
use soloist_ops as ops;
use soloist_store::alerts::Mute;
use soloist_view::alerts::{AlertView, AlertsView, OnView};
use soloist_view::undelivered::Undelivered;
use soloist_view::words::{Arg, Language, Piece, Zone, day_clock, phrase, say, visible};

const PAGE: &str = "/alerts";
const HOUR: Duration = Duration::from_secs(3_600);
/// What to write into the configuration to begin with.
const SNIPPET: &str = r#"[[alert]]
when = "wanted_not_running"
for = "30s"
to = ["ops"]

[channel.ops]
kind = "slack""#;
const ADDRESS: &str = r#"url = "https://hooks.slack.com/services/...""#;

#[derive(Template)]
#[template(path = "pages/alerts.html")]
pub(super) struct AlertsPage {
    pub(super) frame: Frame,
    pub(super) said: Option<String>,
    pub(super) error: Option<String>,
    /// The store could not be asked.
    pub(super) unread: bool,
    /// When this was so.
    pub(super) as_of: Option<Vec<Piece>>,
    /// Which node sends; or that none does, although there are rules.
    pub(super) sender: Option<String>,
    pub(super) on: Vec<OnRow>,
    pub(super) past: Vec<PastRow>,
    pub(super) rules: Vec<RuleRow>,
    pub(super) channels: Vec<ChannelRow>,
    pub(super) operator: bool,
    pub(super) admin: bool,
}

impl AlertsPage {
    /// With a secret for a webhook, which is new.
    fn snippet(&self) -> String {
        let secret = STANDARD.encode(rand::random::<[u8; 32]>());
        let lang = self.frame.lang;
        let (kinds, needs) =
            (say(lang, "alerts-begin-kinds", &[]), say(lang, "alerts-begin-secret", &[]));
        format!("{SNIPPET}   # {kinds}\n{ADDRESS}\n# secret = \"whsec_{secret}\"   # {needs}")
    }

    /// How the configuration comes into force.
    fn begin_then(&self) -> String {
        let process = [("pid", Arg::from(std::process::id().to_string()))];
        say(self.frame.lang, "alerts-begin-then", &process)
    }

    /// A message about an alert or a channel.
    fn about(&self, id: &str, name: &str) -> String {
        about(self.frame.lang, id, name)
    }
}

fn about(lang: Language, id: &str, name: &str) -> String {
    say(lang, id, &[("name", Arg::from(name))])
}

/// What a form has done.
#[derive(Default)]
struct Done {
    said: Option<String>,
    error: Option<String>,
    status: Option<actix_web::http::StatusCode>,
}

impl AlertsPage {
    pub(super) fn of(
        frame: Frame,
        view: Option<&AlertsView>,
        (operator, admin): (bool, bool),
    ) -> Self {
        let lang = frame.lang;
        let none =
            AlertsView { alerts: Vec::new(), channels: Vec::new(), past: Vec::new(), sender: None };
        let (unread, view) = (view.is_none(), view.unwrap_or(&none));
        let mut on: Vec<_> =
            view.alerts.iter().flat_map(|rule| rule.on.iter().map(move |on| (rule, on))).collect();
        on.sort_by_key(|(_, one)| std::cmp::Reverse(one.since));
        let sender = match (&view.sender, view.alerts.is_empty()) {
            (_, true) => None,
            (Some(node), false) => Some(about(lang, "alerts-sender", node)),
            (None, false) => Some(say(lang, "alerts-no-sender", &[])),
        };
        Self {
            said: None,
            error: None,
            unread,
            as_of: frame.now.map(|now| phrase(lang, "alerts-as-of", &[("at", day_clock(now))])),
            sender,
            on: on.iter().map(|(rule, one)| OnRow::of(rule, one, teller(&on, one), lang)).collect(),
            past: view.past.iter().map(|past| PastRow::of(past, lang)).collect(),
            rules: view.alerts.iter().map(|rule| RuleRow::of(rule, lang)).collect(),
            channels: view.channels.iter().map(|channel| ChannelRow::of(channel, lang)).collect(),
            operator,
            admin,
            frame,
        }
    }
}

/// By which other alert who hears of `one` heard of its job.
fn teller<'a>(all: &[(&'a AlertView, &OnView)], one: &OnView) -> Option<&'a str> {
    let of_it = |other: &OnView| other.job == one.job && !other.sent.is_empty();
    let other = all.iter().find(|(_, other)| one.job.is_some() && of_it(other));
    other.map(|(rule, _)| rule.name.as_str())
}

async fn show(web: &Web, caller: &Caller, done: Done) -> Result<HttpResponse, WebError> {
    let view = match seen(web, caller).await {
        Ok(view) => Some(view),
        Err(WebError::Unavailable { .. }) => None,
        Err(error) => return Err(error),
    };
    let title = say(caller.language, "alerts-title", &[]);
    let frame = Frame::of(web, caller, "alerts", PAGE.to_owned(), title);
    let may = (caller.is_operator(), caller.is_admin());
    let mut page = AlertsPage::of(frame, view.as_ref(), may);
    (page.said, page.error) = (done.said, done.error);
    let mut answer = HttpResponse::Ok();
    if let Some(status) = done.status {
        answer.status(status);
    }
    Ok(answer.content_type("text/html; charset=utf-8").body(whole(&page)))
}

/// Shows alerts and channels.
///
/// # Errors
/// None of the store's being away: that is shown, not failed on.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    show(&web, &caller, Done::default()).await
}

/// `lasting=1h|8h|morning`, or `until=2026-05-04T18:00`, which counts if it is given.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct MuteForm {
    #[serde(default)]
    pub lasting: String,
    #[serde(default)]
    pub until: String,
    #[serde(default)]
    pub reason: String,
}

impl MuteForm {
    /// `until` and the morning are those of `zone`.
    fn mute(&self, now: StoreTime, zone: &Zone) -> Result<Mute, WebError> {
        if !self.until.trim().is_empty() {
            return match zone.typed(&self.until).filter(|until| *until > now) {
                Some(until) => Ok(Mute::Until(until)),
                None => Err(told("alerts-until-wrong")),
            };
        }
        match self.lasting.as_str() {
            "1h" => Ok(Mute::For(HOUR)),
            "8h" => Ok(Mute::For(HOUR * 8)),
            "morning" => Ok(Mute::Until(zone.next_morning(now))),
            _ => Err(told("alerts-lasting-wrong")),
        }
    }
}

fn told(id: &'static str) -> WebError {
    WebError::told(actix_web::http::StatusCode::BAD_REQUEST, id, &[])
}

async fn set(
    web: &Web,
    caller: &Caller,
    request: &HttpRequest,
    alert: &str,
    mute: Result<Mute, WebError>,
    reason: Option<&str>,
) -> Result<HttpResponse, WebError> {
    let (alerting, actor) = (known(web, caller), caller.actor());
    let muted = match mute {
        Ok(mute) => ops::alerts::mute(&web.store, &actor, &alerting, alert, mute, reason)
            .await
            .map_err(WebError::from),
        Err(error) => Err(error),
    };
    match muted {
        Ok(_) => Ok(done(request, PAGE)),
        // What was typed wrongly is said above the forms.
        Err(error @ (WebError::BadRequest { .. } | WebError::Told { .. })) => {
            let status = Some(error.status_code());
            let error = Some(error.sentence(caller.language));
            show(web, caller, Done { error, status, said: None }).await
        }
        Err(error) => Err(error),
    }
}

/// `POST /alerts/{alert}/mute`.
///
/// # Errors
/// As [`ops::alerts::mute`]; what was typed wrongly is shown on the page.
pub async fn mute(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    alert: web::Path<String>,
    form: web::Form<MuteForm>,
) -> Result<HttpResponse, WebError> {
    let now = web.feed.store_now();
    let now = now.unwrap_or_else(|| StoreTime(jiff::Timestamp::now().as_millisecond()));
    let (mute, reason) = (form.mute(now, &caller.zone()), Some(form.reason.as_str()));
    set(&web, &caller, &request, &alert, mute, reason).await
}

/// `POST /alerts/{alert}/unmute`.
///
/// # Errors
/// As [`ops::alerts::mute`].
pub async fn unmute(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    alert: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    set(&web, &caller, &request, &alert, Ok(Mute::Not), None).await
}

/// `confirm=yes`, once asked back.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Sure {
    pub confirm: Option<String>,
}

/// `POST /alerts/channels/{channel}/test`: asks whether to send, then sends and says what the service answered.
///
/// # Errors
/// As [`ops::alerts::test`].
pub async fn test(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    channel: web::Path<String>,
    form: web::Form<Sure>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    if form.confirm.as_deref() != Some("yes") {
        let config = web.config();
        let found = ops::alerts::channel(&config.alerting, &channel)?;
        let args = [("name", Arg::from(found.name.as_str())), ("kind", found.way.kind().into())];
        let title = about(lang, "alerts-test-title", &found.name);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "alerts", PAGE.to_owned(), title),
            text: say(lang, "alerts-test-text", &args),
            action: format!("{PAGE}/channels/{}/test", found.name),
            fields: vec![],
            asks: false,
            yes: say(lang, "alerts-test-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: PAGE.to_owned(),
        };
        return Ok(ask_back(&request, &confirm));
    }
    let tested = tried(&web, &caller, &channel).await?;
    let said = match tested.ok {
        true => visible(&tested.said).into_owned(),
        false => Undelivered::read(&tested.said).worded(lang),
    };
    let args = [("name", Arg::from(channel.as_str())), ("said", Arg::from(said))];
    let done = match tested.ok {
        true => Done { said: Some(say(lang, "alerts-test-took", &args)), ..Done::default() },
        false => Done { error: Some(say(lang, "alerts-test-failed", &args)), ..Done::default() },
    };
    show(&web, &caller, done).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_mutes_for_a_while_until_the_morning_or_until_an_instant_to_come() {
        let now = StoreTime(1_777_852_800_000);
        let zone = Zone::named("Asia/Shanghai").expect("this machine has the IANA database");
        let mute = |lasting: &str, until: &str| {
            let form =
                MuteForm { lasting: lasting.into(), until: until.into(), reason: String::new() };
            form.mute(now, &zone)
        };
        assert_eq!(mute("1h", ""), Ok(Mute::For(HOUR)));
        assert_eq!(mute("8h", " "), Ok(Mute::For(HOUR * 8)));
        assert_eq!(mute("morning", ""), Ok(Mute::Until(zone.next_morning(now))));
        let until = zone.read("2100-01-01T00:00").expect("an instant");
        assert_eq!(mute("1h", "2100-01-01T00:00"), Ok(Mute::Until(until)));
        assert_eq!(mute("1h", "1999-01-01T00:00"), Err(told("alerts-until-wrong")));
        assert_eq!(mute("1h", "soon"), Err(told("alerts-until-wrong")));
        assert_eq!(mute("for ever", ""), Err(told("alerts-lasting-wrong")));
    }
}
