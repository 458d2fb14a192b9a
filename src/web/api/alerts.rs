//! `/api/v1/alerts` and `/api/v1/channels`: what is on, muting, and testing a channel. No answer holds a secret or an address.

use std::time::Duration;

use actix_web::web::{self, Bytes};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Answer, answer, read};
use crate::alerts::channel::{self, Kind, Message, Text};
use crate::alerts::id_of_message;
use crate::domain::time::StoreTime;
use crate::ops;
use crate::store::alerts::{Alerts as _, Incident, Mute};
use crate::view::whole;
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::words::{Language, iso, say};

/// Longest time to be mute.
const LONGEST_MUTE: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Which messages a channel took.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct SentView {
    /// The channel.
    pub channel: String,
    /// When it took the message that the alert began; null as long as it did not.
    pub begin: Option<String>,
}

/// Of whom an alert is on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct OnView {
    /// The job, if it is of one.
    pub job: Option<String>,
    /// The node, if it is of one.
    pub node: Option<String>,
    /// The source of tasks, if it is of one.
    pub source: Option<String>,
    /// Since when.
    pub since: String,
    /// Whether the alert is mute now.
    pub muted: bool,
    /// What is told, in the caller's language.
    pub text: String,
    /// By channel.
    pub sent: Vec<SentView>,
}

/// An alert, as this node's configuration has it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Alert)]
pub struct AlertView {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[schema(example = "wanted_not_running")]
    pub when: &'static str,
    /// How long that lasts before anybody is told.
    pub for_ms: u64,
    /// Which jobs it is about; `*` all.
    pub jobs: Vec<String>,
    /// The channels that are told.
    pub to: Vec<String>,
    /// Of whom it is on now, as far as the caller may see them.
    pub on: Vec<OnView>,
    /// Until when it is mute; null when it is not.
    pub muted_until: Option<String>,
}

/// The newest attempt to send.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct TriedView {
    /// When.
    pub at: String,
    /// Whether it was taken.
    pub ok: bool,
    /// What was in the way.
    pub error: Option<String>,
}

/// A channel.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Channel)]
pub struct ChannelView {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    #[schema(example = "webhook")]
    pub kind: &'static str,
    /// The newest attempt to send by it; null when there was none.
    pub last: Option<TriedView>,
}

/// Alerts and channels.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Alerts)]
pub struct AlertsView {
    /// In the order of the file.
    pub alerts: Vec<AlertView>,
    /// By name.
    pub channels: Vec<ChannelView>,
}

async fn stored(web: &Web, caller: &Caller) -> Answer<AlertsView> {
    let book = web.store.alert_book().await?;
    let config = web.config();
    let hidden = web.live.hidden_from(Some(caller));
    let is_seen = |incident: &&Incident| {
        incident.subject.job.as_ref().is_none_or(|job| !hidden.has(job.as_str()))
    };
    let alerts = config.alerting.rules.iter().map(|rule| {
        let muted = book.muted.get(&rule.name).copied().filter(|until| *until > book.now);
        let on = book
            .incidents
            .iter()
            .filter(|incident| incident.alert == rule.name && incident.end.is_none())
            .filter(is_seen)
            .map(|incident| OnView {
                job: incident.subject.job.as_ref().map(ToString::to_string),
                node: incident.subject.node.as_ref().map(ToString::to_string),
                source: incident.subject.source.as_ref().map(ToString::to_string),
                since: iso(incident.since),
                muted: muted.is_some(),
                text: match caller.language {
                    Language::En => incident.begin.en.clone(),
                    Language::Zh => incident.begin.zh.clone(),
                },
                sent: incident
                    .to
                    .iter()
                    .map(|channel| SentView {
                        channel: channel.clone(),
                        begin: incident.sent.get(channel).and_then(|sent| sent.begin).map(iso),
                    })
                    .collect(),
            });
        AlertView {
            name: rule.name.clone(),
            when: rule.when.as_str(),
            for_ms: u64::try_from(rule.lasting.as_millis()).unwrap_or(u64::MAX),
            jobs: rule.jobs.iter().filter(|job| !hidden.has(job)).cloned().collect(),
            to: rule.to.clone(),
            on: on.collect(),
            muted_until: muted.map(iso),
        }
    });
    let channels = config.alerting.channels.values().map(|channel| ChannelView {
        name: channel.name.clone(),
        kind: channel.way.kind(),
        last: book.channels.get(&channel.name).map(|tried| TriedView {
            at: iso(tried.at),
            ok: tried.ok,
            error: tried.error.clone(),
        }),
    });
    answer(AlertsView { alerts: alerts.collect(), channels: channels.collect() })
}

/// Every alert of this node's configuration, of whom it is on, and every channel. That a node cannot reach the store is told by that node
/// alone and stands nowhere here.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", operation_id = "list_alerts",
    responses((status = 200, description = "The alerts and channels.", body = AlertsView)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<AlertsView> {
    stored(&web, &caller).await
}

/// Until when.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteBody {
    /// An instant, RFC 3339; null lets the alert speak again.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, example = "2026-05-04T18:00:00Z")]
    pub until: Option<Option<String>>,
    /// For so long from now, instead.
    #[schema(minimum = 1_000, maximum = 31_622_400_000u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub for_ms: Option<u64>,
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Mutes an alert: what begins meanwhile is told when it is over, if it is still on then. What was told before is told to be over also while it is mute.
#[utoipa::path(put, path = "/api/v1/alerts/{alert}/mute", tag = "alerts", operation_id = "mute_alert",
    params(("alert" = String, Path, description = "Its name.")),
    request_body = MuteBody,
    responses((status = 200, description = "The alerts and channels.", body = AlertsView)))]
pub async fn mute(
    web: web::Data<Web>,
    caller: Caller,
    alert: web::Path<String>,
    body: Bytes,
) -> Answer<AlertsView> {
    let body: MuteBody = read(&body)?;
    let config = web.config();
    let Some(rule) = config.alerting.rules.iter().find(|rule| rule.name == *alert) else {
        return Err(WebError::not_found(
            "there is no such alert in the configuration of this node: GET /api/v1/alerts lists them",
        ));
    };
    let mute = match (body.until, body.for_ms) {
        (Some(None), None) => Mute::Not,
        (Some(Some(until)), None) => {
            let until: jiff::Timestamp = until.parse().map_err(|_| {
                WebError::bad("until: use an instant like 2026-05-04T18:00:00Z, or null")
            })?;
            Mute::Until(StoreTime(until.as_millisecond()))
        }
        (None, Some(ms)) => {
            let lasting = Duration::from_millis(ms);
            if !(Duration::from_secs(1)..=LONGEST_MUTE).contains(&lasting) {
                return Err(WebError::bad("for_ms: from 1000 to 31622400000, 366 days"));
            }
            Mute::For(lasting)
        }
        _ => return Err(WebError::bad("send either until or for_ms")),
    };
    ops::alerts::mute(&web.store, &caller.actor(), &rule.name, mute).await?;
    stored(&web, &caller).await
}

/// How a test went.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Tested {
    /// Whether the message was taken.
    pub ok: bool,
    /// What the service answered, or what was in the way.
    pub said: String,
}

/// Sends a test message by a channel, from this node, and waits for the answer.
#[utoipa::path(post, path = "/api/v1/channels/{channel}/test", tag = "alerts", operation_id = "test_channel",
    params(("channel" = String, Path, description = "Its name.")),
    responses((status = 200, description = "How it went.", body = Tested)))]
pub async fn test(
    web: web::Data<Web>,
    caller: Caller,
    channel: web::Path<String>,
) -> Answer<Tested> {
    let config = web.config();
    let Some(found) = config.alerting.channels.get(channel.as_str()) else {
        return Err(WebError::not_found(
            "there is no such channel in the configuration of this node: GET /api/v1/alerts lists them",
        ));
    };
    let actor = caller.actor();
    ops::alerts::test(&web.store, &actor, &found.name).await?;
    let text = |lang| {
        let args = [("channel", found.name.as_str().into()), ("user", actor.user.as_str().into())];
        say(lang, "alert-test", &args)
    };
    let message = Message {
        id: id_of_message(),
        kind: Kind::Test,
        alert: "test".to_owned(),
        job: None,
        node: Some(config.node.to_string()),
        since: iso(StoreTime(jiff::Timestamp::now().as_millisecond())),
        text: Text { en: text(Language::En), zh: text(Language::Zh) },
        url: config.public_url.clone(),
    };
    let result = channel::send(&found.way, &message).await;
    let ok = result.is_ok();
    let (Ok(said) | Err(said)) = result;
    answer(Tested { ok, said })
}
