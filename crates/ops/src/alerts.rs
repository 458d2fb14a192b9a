//! What people do to alerts: mute them, and test their channels.

use std::time::Duration;

use super::{Act, Actor, OpsError, Result, note, noting, reason};
use soloist_config::{Alerting, Channel};
use soloist_domain::detail::Detail;
use soloist_domain::time::StoreTime;
use soloist_store::Store;
use soloist_store::alerts::{Alerts as _, Mute};

/// Longest time to be mute.
const LONGEST_MUTE: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Mutes an alert, or lets it speak again; says until when it is mute.
///
/// # Errors
/// [`OpsError::NotFound`] when `alerting` has no such alert, [`OpsError::Malformed`] for a time that is too short or too long,
/// [`OpsError::Field`] for a reason that is no line, [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn mute(
    store: &Store,
    actor: &Actor,
    alerting: &Alerting,
    alert: &str,
    mute: Mute,
    given: Option<&str>,
) -> Result<Option<StoreTime>> {
    actor.check_operator()?;
    actor.bound.check_unbound("alerts")?;
    rule(alerting, alert)?;
    if let Mute::For(lasting) = mute
        && !(Duration::from_secs(1)..=LONGEST_MUTE).contains(&lasting)
    {
        let text = "an alert can be muted for 1 second to 366 days: give a time between them";
        return Err(OpsError::Malformed(Detail::new(text).told("refused-mute-time", &[])));
    }
    let said = reason(given)?;
    let act = if mute == Mute::Not { Act::AlertUnmute } else { Act::AlertMute };
    let store = noting(store, &actor.signature, act, alert, said.as_deref());
    store.mute_alert(alert, mute).await.map_err(OpsError::from)
}

/// There is an alert of that name.
///
/// # Errors
/// [`OpsError::NotFound`].
pub fn rule(alerting: &Alerting, alert: &str) -> Result<()> {
    let rules: Vec<&str> = alerting.rules.iter().map(|rule| rule.name.as_str()).collect();
    match rules.contains(&alert) {
        true => Ok(()),
        false => Err(no_such("alert", alert, &rules, "refused-no-alert")),
    }
}

/// Notes that a channel is tested, before it is; gives the channel.
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Forbidden`], [`OpsError::Unnoted`].
pub async fn test<'a>(
    store: &Store,
    actor: &Actor,
    alerting: &'a Alerting,
    channel: &str,
) -> Result<&'a Channel> {
    actor.check_admin()?;
    actor.bound.check_unbound("channels")?;
    let found = self::channel(alerting, channel)?;
    note(store, &actor.signature, Act::ChannelTest, channel, None).await?;
    Ok(found)
}

/// The channel of that name.
///
/// # Errors
/// [`OpsError::NotFound`].
pub fn channel<'a>(alerting: &'a Alerting, name: &str) -> Result<&'a Channel> {
    alerting.channels.get(name).ok_or_else(|| {
        let channels: Vec<&str> = alerting.channels.keys().map(String::as_str).collect();
        no_such("channel", name, &channels, "refused-no-channel")
    })
}

fn no_such(what: &str, name: &str, known: &[&str], told: &'static str) -> OpsError {
    let text = match known {
        [] => format!("there is no {what} {name:?}: the configuration has none"),
        known => {
            format!("there is no {what} {name:?}; the configuration has: {}", known.join(", "))
        }
    };
    OpsError::NotFound(Detail::new(text).told(told, &[("name", &name)]))
}
