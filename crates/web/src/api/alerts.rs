//! `/api/v1/alerts` and `/api/v1/channels`: what is on, muting, and testing a channel. No answer holds a secret or an address.

use std::time::Duration;

use actix_web::web::{self, Bytes};
use serde::{Deserialize, Deserializer};

use super::{Answer, answer, read};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_alerts as alerts;
use soloist_config::Alerting;
use soloist_domain::alert::When;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
use soloist_ops as ops;
use soloist_store::alerts::{Alerts as _, Mute, PAST_KEPT};
use soloist_view::alerts::{AlertsView, Tested};
use soloist_view::{mended, whole};

/// What `caller` may see of all alerts.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn seen(web: &Web, caller: &Caller) -> Result<AlertsView, WebError> {
    let book = web.store.alert_book().await?;
    let past = web.store.past_alerts(PAST_KEPT).await?;
    let hidden = web.live.hidden_from(Some(caller));
    // A rule may be about all jobs.
    let hides = |job: &str| job != "*" && hidden.has_job(job);
    let about = |job: &JobName, when: When| {
        let view = web.view(job, caller.language)?;
        let why = soloist_view::incident::why(&view, when);
        Some((view.title, why))
    };
    Ok(AlertsView::of(&known(web, caller), &book, &past, hides, about, caller.language))
}

/// The alerts that there are for `caller`.
pub(crate) fn known(web: &Web, caller: &Caller) -> Alerting {
    let (mut known, hidden) =
        (Alerting::clone(&web.config().alerting), web.live.hidden_from(Some(caller)));
    known.rules.retain(|rule| !hidden.has_alert(rule));
    known
}

/// Every alert of this node's configuration, of whom it is on, what is over, and every channel. That a node cannot reach the store is told
/// by that node alone and stands nowhere here.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", operation_id = "list_alerts",
    responses((status = 200, description = "The alerts and channels.", body = AlertsView)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<AlertsView> {
    answer(seen(&web, &caller).await?)
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
    /// Why; kept in the audit.
    #[serde(default, deserialize_with = "mended::optional")]
    #[schema(max_length = 500)]
    pub reason: Option<String>,
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
    let MuteBody { until, for_ms, reason } = read(&body)?;
    let mute = match (until, for_ms) {
        (Some(None), None) => Mute::Not,
        (Some(Some(until)), None) => {
            let until: jiff::Timestamp = until.parse().map_err(|_| {
                WebError::bad("until: use an instant like 2026-05-04T18:00:00Z, or null")
            })?;
            Mute::Until(StoreTime(until.as_millisecond()))
        }
        (None, Some(ms)) => Mute::For(Duration::from_millis(ms)),
        _ => return Err(WebError::bad("send either until or for_ms")),
    };
    let (alerting, actor) = (known(&web, &caller), caller.actor());
    ops::alerts::mute(&web.store, &actor, &alerting, &alert, mute, reason.as_deref()).await?;
    answer(seen(&web, &caller).await?)
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
    answer(tried(&web, &caller, &channel).await?)
}

/// Tests a channel.
///
/// # Errors
/// As [`ops::alerts::test`].
pub async fn tried(web: &Web, caller: &Caller, channel: &str) -> Result<Tested, WebError> {
    let (config, actor) = (web.config(), caller.actor());
    let found = ops::alerts::test(&web.store, &actor, &config.alerting, channel).await?;
    Ok(alerts::test(&web.store, &config, found, actor.user.as_str()).await)
}
