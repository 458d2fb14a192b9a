//! Slows down who guesses passwords, by account and by address, on all nodes together.
//!
//! A failure adds to a count in the store; past a few free ones each further attempt has to wait, longer every
//! time. It says nothing about whether the account exists.

use std::time::Duration;

use super::error::WebError;
use crate::secrets;
use crate::store::Store;
use crate::store::credentials::{Count, Credentials};

/// Failures are remembered for this long.
const WINDOW: Duration = Duration::from_secs(15 * 60);
const LONGEST: Duration = Duration::from_secs(120);
/// Many people may share an address (a proxy, an office): it gets more free failures than an account.
const FREE_BY_ACCOUNT: u32 = 5;
const FREE_BY_ADDRESS: u32 = 20;

/// One attempt to sign in.
pub struct Attempt<'a> {
    store: &'a Store,
    keys: [(String, u32); 2],
}

impl<'a> Attempt<'a> {
    /// An attempt on `account` (as typed) from `address`.
    #[must_use]
    pub fn new(store: &'a Store, account: &str, address: &str) -> Self {
        // Hashed: what people type must not become keys of any length.
        let account = format!("login:account:{}", &secrets::sha256_hex(account)[..32]);
        let address = format!("login:address:{}", &secrets::sha256_hex(address)[..32]);
        Self { store, keys: [(account, FREE_BY_ACCOUNT), (address, FREE_BY_ADDRESS)] }
    }

    /// Lets the attempt through, or says how long to wait.
    ///
    /// # Errors
    /// [`WebError::TooMany`], [`WebError::Unavailable`].
    pub async fn admit(&self) -> Result<(), WebError> {
        for (key, free) in &self.keys {
            let failures = self.store.failures(key, Count::Look, WINDOW).await?;
            let wait = delay(failures, *free);
            if wait.is_zero() {
                continue;
            }
            if self.store.failures(&waiting(key), Count::Look, wait).await? > 0 {
                let seconds = wait.as_secs().max(1);
                return Err(WebError::TooMany {
                    detail: format!(
                        "too many failed attempts to sign in: wait {seconds} s and try again"
                    ),
                    retry_after: seconds,
                });
            }
        }
        // Counted before the password is looked at, so that parallel guesses do not slip through together.
        self.count(&self.keys[0]).await
    }

    /// The password was wrong (the account has been charged already).
    ///
    /// # Errors
    /// [`WebError::Unavailable`].
    pub async fn failed(&self) -> Result<(), WebError> {
        self.count(&self.keys[1]).await
    }

    /// The password was right: the account's failures are forgotten, the address keeps its own.
    ///
    /// # Errors
    /// [`WebError::Unavailable`].
    pub async fn succeeded(&self) -> Result<(), WebError> {
        let (key, _) = &self.keys[0];
        self.store.failures(key, Count::Clear, WINDOW).await?;
        self.store.failures(&waiting(key), Count::Clear, LONGEST).await?;
        Ok(())
    }

    async fn count(&self, (key, free): &(String, u32)) -> Result<(), WebError> {
        let failures = self.store.failures(key, Count::Add, WINDOW).await?;
        let wait = delay(failures, *free);
        if !wait.is_zero() {
            self.store.failures(&waiting(key), Count::Add, wait).await?;
        }
        Ok(())
    }
}

fn waiting(key: &str) -> String {
    format!("{key}:waiting")
}

/// Nothing for the free failures, then 2 s, 4 s, 8 s, ... 120 s.
fn delay(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None => Duration::ZERO,
        Some(over) => Duration::from_secs(2 << over.min(8)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_begin_after_the_free_failures_and_grow_to_two_minutes() {
        let seconds: Vec<u64> = (3..15).map(|n| delay(n, 5).as_secs()).collect();
        assert_eq!(seconds, [0, 0, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120]);
        assert_eq!(delay(u32::MAX, 5), LONGEST);
    }
}
