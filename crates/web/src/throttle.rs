//! Slows down clients that guess passwords, on all nodes together.
//!
//! An attempt is counted before its password is looked at, in one step of the store: of any number of guesses at once only the free
//! ones are checked. How many those are is decided in [`sign_in`](soloist_domain::sign_in). It says nothing about whether the account exists.

use std::net::IpAddr;
use std::time::Duration;

use super::connections;
use super::error::WebError;
use soloist_domain::detail::Detail;
use soloist_secrets as secrets;
use soloist_store::Store;
use soloist_store::credentials::{Credentials, SignIn, Tried};

/// One attempt to sign in.
pub struct Attempt<'a> {
    store: &'a Store,
    ask: SignIn,
}

impl<'a> Attempt<'a> {
    /// An attempt on `account` (as typed) from `address`.
    #[must_use]
    pub fn new(store: &'a Store, account: &str, address: &str) -> Self {
        let place = address.parse::<IpAddr>().map(connections::place);
        let place = place.map_or_else(|_| address.to_owned(), |place| place.to_string());
        // Hashed: what people type must not become keys of any length.
        let short = |text: &str| secrets::sha256_hex(text)[..32].to_owned();
        Self { store, ask: SignIn { account: short(account), address: short(&place) } }
    }

    /// Counts the attempt and lets it through, or says how long to wait.
    ///
    /// # Errors
    /// [`WebError::TooMany`], [`WebError::Unavailable`].
    pub async fn admit(&self) -> Result<(), WebError> {
        let wait = self.store.try_sign_in(&self.ask).await?;
        if wait.is_zero() {
            return Ok(());
        }
        let seconds = wait.saturating_add(Duration::from_millis(999)).as_secs();
        Err(WebError::TooMany {
            detail: Detail::new(format!(
                "too many failed attempts to sign in: wait {seconds} s and try again"
            ))
            .told("refused-sign-ins", &[("s", &seconds)]),
            retry_after: seconds,
        })
    }

    /// The password was right: failures of this account from this address are forgotten, and the address is known to it.
    ///
    /// # Errors
    /// [`WebError::Unavailable`].
    pub async fn succeeded(&self) -> Result<(), WebError> {
        Ok(self.store.settle_sign_in(&self.ask, Tried::Right).await?)
    }

    /// The password was not looked at: it counts nothing.
    ///
    /// # Errors
    /// [`WebError::Unavailable`].
    pub async fn withdrawn(&self) -> Result<(), WebError> {
        Ok(self.store.settle_sign_in(&self.ask, Tried::Unchecked).await?)
    }
}
