//! Passwords and random secrets: made here, hashed here, compared here.
//!
//! Only hashes leave for the store. A leaf room, so that the command line and the web page make accounts, tokens
//! and sign-in links in one way. It knows no HTTP and throttles nobody.

pub(crate) mod strength;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::domain::name::UserName;
use crate::store::credentials::{Credentials, Link};
use crate::store::{Result as StoreResult, Store};

/// Shortest password that is accepted.
pub const PASSWORD_MIN: usize = 10;
/// Longest password that is accepted, so that nobody makes the server hash megabytes.
pub const PASSWORD_MAX: usize = 1_024;
/// How long a one-time link lives.
pub const LINK_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// How long a one-time link lives with which somebody sets their password: it is sent to them.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

/// Why a password was not hashed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Under [`PASSWORD_MIN`] characters.
    #[error("the password is too short: use at least {PASSWORD_MIN} characters")]
    TooShort,
    /// Over [`PASSWORD_MAX`] bytes.
    #[error("the password is too long: use at most {PASSWORD_MAX} bytes")]
    TooLong,
    /// Too easy to guess; ids of messages that say why, and what to do instead.
    #[error("the password is too easy to guess: use several words that do not belong together")]
    Weak(Vec<&'static str>),
    /// argon2 refused or the machine gave no random bytes.
    #[error("the password could not be hashed: {0}")]
    Hash(String),
}

/// argon2id with 19 MiB, two passes and one lane (OWASP Password Storage Cheat Sheet).
fn argon2() -> Argon2<'static> {
    #[expect(clippy::expect_used, reason = "constants inside the limits of argon2")]
    let params = Params::new(19_456, 2, 1, None).expect("valid parameters");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Hashes a password that somebody chose for an account, if it is long enough and not easily guessed. `about`: what is known of
/// that person (the account's name), which is guessed first. Takes some 20 ms of one core: not on an async thread.
///
/// # Errors
/// [`PasswordError`].
pub fn new_password(password: &str, about: &[&str]) -> Result<String, PasswordError> {
    check_length(password)?;
    strength::check(password, about).map_err(PasswordError::Weak)?;
    hash_password(password)
}

fn check_length(password: &str) -> Result<(), PasswordError> {
    if password.chars().count() < PASSWORD_MIN {
        return Err(PasswordError::TooShort);
    }
    if password.len() > PASSWORD_MAX {
        return Err(PasswordError::TooLong);
    }
    Ok(())
}

/// Hashes a password into a PHC string, however easily it is guessed. Takes about 20 ms of one core: not on an async thread.
///
/// # Errors
/// [`PasswordError`].
pub fn hash_password(password: &str) -> Result<String, PasswordError> {
    check_length(password)?;
    let hash: PasswordHash = argon2()
        .hash_password(password.as_bytes())
        .map_err(|error| PasswordError::Hash(error.to_string()))?;
    Ok(hash.to_string())
}

/// Whether `password` belongs to the PHC string. Takes as long as hashing.
#[must_use]
pub fn verify(phc: &str, password: &str) -> bool {
    password.len() <= PASSWORD_MAX
        && PasswordHash::new(phc)
            .is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Checks passwords off the async threads, a few at a time: 19 MiB each must not add up.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(2)) }
    }
}

impl Passwords {
    /// Whether `password` is right for `phc`. `None` (no such user) costs the same work and is `false`, so that
    /// the time of an answer does not tell who has an account.
    pub async fn check(&self, phc: Option<String>, password: String) -> bool {
        self.run(move || {
            // Nor does it tell who has an account without a password.
            let phc = phc.filter(|phc| PasswordHash::new(phc).is_ok());
            verify(phc.as_deref().unwrap_or_else(|| nobody()), &password) && phc.is_some()
        })
        .await
        .unwrap_or(false)
    }

    /// [`new_password`], off the async threads.
    ///
    /// # Errors
    /// [`PasswordError`].
    pub async fn hash(
        &self,
        password: String,
        about: Vec<String>,
    ) -> Result<String, PasswordError> {
        self.run(move || {
            let about: Vec<&str> = about.iter().map(String::as_str).collect();
            new_password(&password, &about)
        })
        .await
        .unwrap_or_else(|| Err(PasswordError::Hash("the server is shutting down".to_owned())))
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let _place = self.places.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }
}

/// The hash of a password nobody has.
fn nobody() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| hash_password(&random_secret()).unwrap_or_default())
}

/// 256 random bits in hexadecimal.
#[must_use]
pub fn random_secret() -> String {
    hex(&rand::random::<[u8; 32]>())
}

/// SHA-256 in hexadecimal: what is stored of a secret that is itself random.
#[must_use]
pub fn sha256_hex(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a String cannot fail.
        write!(out, "{byte:02x}").ok();
        out
    })
}

/// A new API token: the secret (`sol_...`, shown once), the hash that is stored, and its short public id.
#[must_use]
pub fn new_api_token() -> (String, String, String) {
    let secret = format!("sol_{}", random_secret());
    let hash = sha256_hex(&secret);
    let id = hex(&rand::random::<[u8; 6]>());
    (secret, hash, id)
}

/// Makes a one-time sign-in link for `user`, or for the first admin when `None`; lives [`LINK_LIFETIME`].
///
/// # Errors
/// [`crate::store::StoreError::Unavailable`].
pub async fn new_link(
    store: &Store,
    user: Option<UserName>,
    public_url: &str,
) -> StoreResult<String> {
    add_link(store, Link { user, sets_password: false }, LINK_LIFETIME, public_url).await
}

/// Makes a one-time link with which `user` sets their password; lives [`INVITATION_LIFETIME`], and ends earlier ones.
///
/// # Errors
/// [`crate::store::StoreError::NotFound`], [`crate::store::StoreError::Unavailable`].
pub async fn new_invitation(
    store: &Store,
    user: UserName,
    public_url: &str,
) -> StoreResult<String> {
    let link = Link { user: Some(user), sets_password: true };
    add_link(store, link, INVITATION_LIFETIME, public_url).await
}

async fn add_link(
    store: &Store,
    link: Link,
    lifetime: Duration,
    public_url: &str,
) -> StoreResult<String> {
    let secret = random_secret();
    store.add_link(&sha256_hex(&secret), &link, lifetime).await?;
    Ok(format!("{public_url}/login?link={secret}"))
}

/// The short public id of a session, made of its key in the store: it leads back to neither key nor cookie.
#[must_use]
pub fn session_id(hash: &str) -> String {
    sha256_hex(hash).chars().take(12).collect()
}

/// Compares two secrets in a time that does not tell where they differ.
#[must_use]
pub fn equal(left: &str, right: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    left.as_bytes().ct_eq(right.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_verified_against_its_own_hash_only() {
        let phc = hash_password("correct horse").unwrap();
        assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
        assert!(verify(&phc, "correct horse"));
        assert!(!verify(&phc, "correct house"));
        assert!(!verify("not a hash", "correct horse"));
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert_eq!(hash_password("123456789"), Err(PasswordError::TooShort));
        assert_eq!(hash_password(&"x".repeat(1_025)), Err(PasswordError::TooLong));
        assert!(hash_password("密码要有十个字符才行吧").is_ok());
    }

    #[test]
    fn a_token_is_random_and_only_its_hash_is_kept() {
        let (secret, hash, id) = new_api_token();
        assert!(secret.starts_with("sol_") && secret.len() == 68);
        assert_eq!(hash, sha256_hex(&secret));
        assert_ne!(new_api_token().2, id);
        assert!(equal(&hash, &hash.clone()) && !equal(&hash, &secret));
    }
}
