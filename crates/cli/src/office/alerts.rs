//! Alerts and their channels.

use serde_json::json;

use super::super::Failure;
use super::Office;
use soloist_alerts as alerts;
use soloist_domain::time::StoreTime;
use soloist_ops as ops;
use soloist_remote::{Call, part};
use soloist_store::alerts::{Alerts as _, Mute, PAST_KEPT};
use soloist_view::alerts::{AlertsView, Tested};
use soloist_view::millis;
use soloist_view::words::{Language, iso};

/// Longer than a channel has to answer.
const TEST_MAX: std::time::Duration = std::time::Duration::from_secs(30);

impl Office {
    /// All alerts and channels.
    pub(crate) async fn alerts(&self) -> Result<AlertsView, Failure> {
        match self {
            Self::Store(context) => {
                let book = context.store.alert_book().await?;
                let past = context.store.past_alerts(PAST_KEPT).await?;
                let alerting = &context.config.alerting;
                Ok(AlertsView::of(alerting, &book, &past, |_| false, |_, _| None, Language::En))
            }
            Self::Server(server) => server.get("/api/v1/alerts").await,
        }
    }

    /// Mutes an alert, or lets it speak again; until when it is mute.
    pub(crate) async fn mute_alert(
        &self,
        alert: &str,
        mute: Mute,
        reason: Option<&str>,
        user: Option<&str>,
    ) -> Result<Option<StoreTime>, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                let alerting = &context.config.alerting;
                let store = &context.store;
                Ok(ops::alerts::mute(store, &actor, alerting, alert, mute, reason).await?)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let body = match mute {
                    Mute::Not => json!({"until": null, "reason": reason}),
                    Mute::Until(until) => json!({"until": iso(until), "reason": reason}),
                    Mute::For(lasting) => json!({"for_ms": millis(lasting), "reason": reason}),
                };
                let call = Call::put(format!("/api/v1/alerts/{}/mute", part(alert))).with(&body);
                let all: AlertsView = server.client.ask(call).await?;
                let found = all.alerts.into_iter().find(|one| one.name == alert);
                let until = found.and_then(|one| one.muted_until?.parse::<jiff::Timestamp>().ok());
                Ok(until.map(|until| StoreTime(until.as_millisecond())))
            }
        }
    }

    /// Sends a test by a channel: from this machine, or from the node.
    pub(crate) async fn test_channel(
        &self,
        channel: &str,
        user: Option<&str>,
    ) -> Result<Tested, Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                let alerting = &context.config.alerting;
                let found = ops::alerts::test(&context.store, &actor, alerting, channel).await?;
                Ok(alerts::test(&context.store, &context.config, found, actor.user.as_str()).await)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let call = Call::post(format!("/api/v1/channels/{}/test", part(channel)));
                Ok(server.client.ask(call.within(TEST_MAX)).await?)
            }
        }
    }
}
