//! What people do to alerts: mute them, and test their channels.

use super::{Act, Actor, OpsError, Result, note, noting};
use crate::domain::time::StoreTime;
use crate::store::Store;
use crate::store::alerts::{Alerts as _, Mute};

/// Mutes an alert, or lets it speak again; says until when it is mute.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn mute(
    store: &Store,
    actor: &Actor,
    alert: &str,
    mute: Mute,
) -> Result<Option<StoreTime>> {
    actor.check_operator()?;
    actor.bound.check_unbound("alerts")?;
    let act = if mute == Mute::Not { Act::AlertUnmute } else { Act::AlertMute };
    let store = noting(store, &actor.signature, act, alert, None);
    store.mute_alert(alert, mute).await.map_err(OpsError::from)
}

/// Notes that a channel is tested, before it is.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Unnoted`].
pub async fn test(store: &Store, actor: &Actor, channel: &str) -> Result<()> {
    actor.check_admin()?;
    actor.bound.check_unbound("channels")?;
    note(store, &actor.signature, Act::ChannelTest, channel, None).await
}
