//! Sockets end with what opened them: an account that is removed or changed, a session or a token that ends.
//!
//! The store says that something of the kind happened, not to whom; so every credential of a seat here is asked
//! for again, each once. No event says that a session merely grew old: each socket asks for itself now and then
//! (`web::live`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::Hub;
use super::seats::{Goodbye, Seat};
use crate::auth::{Ask, Caller, Identities, Shown};
use soloist_store::Store;
use soloist_store::accounts::Accounts as _;
use soloist_view::people::{DisplayNames, display_names};

/// The session ended.
pub const SIGNED_OUT: Goodbye = Goodbye { code: 1008, reason: "signed out: sign in again" };
/// The account has another role.
pub(super) const CHANGED: Goodbye =
    Goodbye { code: 1008, reason: "the account was changed: connect again" };

/// Questions under way at the same time.
const AT_ONCE: usize = 16;
/// The pause after a round: many who sign out together cause one round, not one each.
const PAUSE: Duration = Duration::from_millis(200);
/// When it is tried again to read how people are called.
const AGAIN: Duration = Duration::from_secs(2);

/// Whether a caller is who they were. `Err(None)`: the store is out of reach, so this is not known.
///
/// # Errors
/// What to say to a caller who is not, if anything.
pub async fn check(
    identities: &Identities,
    store: &Store,
    caller: &Caller,
) -> Result<(), Option<Goodbye>> {
    // A socket is no act of a person: it keeps no session alive.
    match identities.identify(store, &caller.shown, Ask::default()).await {
        Ok(None) => Err(Some(SIGNED_OUT)),
        Ok(Some(now))
            if now.role != caller.role
                || now.user != caller.user
                || now.groups != caller.groups =>
        {
            Err(Some(CHANGED))
        }
        Ok(Some(_)) => Ok(()),
        Err(_) => Err(None),
    }
}

impl Hub {
    /// Asks again for every seat here whenever accounts changed.
    pub(super) async fn watch_accounts(self: Arc<Self>) {
        let mut read = self.read_names().await;
        while !self.is_draining() {
            match read {
                true => self.doubted.notified().await,
                // The store was out of reach: no event says when it is back.
                false => drop(tokio::time::timeout(AGAIN, self.doubted.notified()).await),
            }
            self.check_everybody().await;
            read = self.read_names().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// How people are called, as last read.
    pub fn display_names(&self) -> DisplayNames {
        self.names.lock().clone()
    }

    /// Reads how people are called, and shows jobs anew if that is otherwise than before; whether it could be read.
    pub(super) async fn read_names(&self) -> bool {
        let Ok(users) = self.store.users().await else { return false };
        let read = display_names(users);
        let changed = {
            let mut names = self.names.lock();
            let changed = **names != *read;
            *names = read;
            changed
        };
        if changed {
            self.refresh(self.numbers());
        }
        true
    }

    async fn check_everybody(&self) {
        let mut seats: HashMap<Shown, Vec<Arc<Seat>>> = HashMap::new();
        for seat in self.everybody() {
            seats.entry(seat.caller.shown.clone()).or_default().push(seat);
        }
        stream::iter(seats.into_values())
            .for_each_concurrent(AT_ONCE, |seats| async move {
                let Some(first) = seats.first() else { return };
                let Err(Some(goodbye)) = check(&self.identities, &self.store, &first.caller).await
                else {
                    return;
                };
                for seat in seats {
                    seat.mark(|pending| pending.goodbye = Some(goodbye));
                }
            })
            .await;
    }
}
