//! Passwords and random secrets: made here, hashed here, compared here.
//!
//! Only hashes leave for the store. A leaf room, so that the command line and the web page make accounts, tokens and sign-in links in one
//! way. It knows no HTTP and throttles no client.

pub mod strength;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use soloist_domain::name::UserName;
use soloist_store::credentials::{Credentials, Link};
use soloist_store::{Result as StoreResult, Store};

/// Shortest password that is accepted.
pub const PASSWORD_MIN: usize = 10;
/// Longest password that is accepted, so that no client makes the server hash megabytes.
pub const PASSWORD_MAX: usize = 1_024;
/// How long a one-time link is valid.
pub const LINK_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// How long a one-time link is valid with which a person sets their password: it is sent to them.
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
    /// Too many others wait to be hashed or checked.
    #[error("many people are signing in at this moment: try again in a few seconds")]
    Busy,
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

/// Whether a password that a person chose for an account is long enough and not easily guessed. `about`: what is known of that
/// person (the account's name), which is guessed first.
fn check_chosen(password: &str, about: &[&str]) -> Result<(), PasswordError> {
    check_length(password)?;
    strength::check(password, about).map_err(PasswordError::Weak)
}

/// Hashes a password that a person chose for an account, if it is long enough and not easily guessed; `about` is what is guessed
/// first. Takes some 20 ms of one core: not on an async thread.
///
/// # Errors
/// [`PasswordError`].
pub fn new_password(password: &str, about: &[&str]) -> Result<String, PasswordError> {
    check_chosen(password, about)?;
    hash_password(password)
}

/// So many passwords are hashed at once: each takes 19 MiB, and the other cores belong to leases.
const AT_ONCE: usize = 1;
/// So many more may wait for it: behind them an answer would take too long.
const WAITING: usize = 17;
/// Room that is asked for, in blocks: 34 MiB, of which 19 are ever touched. The C library keeps a large block that is given back, and
/// each thread gets its own; only what is larger than 32 MiB goes back to the kernel in any case.
const ROOM: usize = 34 * 1_024;

/// What argon2 works in.
struct Memory(Vec<Block>);

impl Memory {
    fn new() -> Self {
        Self(Vec::with_capacity(ROOM))
    }

    fn hash(&mut self, argon2: &Argon2<'_>, password: &str, salt: &[u8], out: &mut [u8]) -> bool {
        self.0.resize(argon2.params().block_count(), Block::new());
        argon2
            .hash_password_into_with_memory(password.as_bytes(), salt, out, &mut self.0[..])
            .is_ok()
    }

    fn verify(&mut self, phc: &str, password: &str) -> Option<bool> {
        let hash = PasswordHash::new(phc).ok()?;
        let (salt, expected) = (hash.salt?, hash.hash?);
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
        let version = Version::try_from(hash.version?).ok()?;
        let argon2 = Argon2::new(algorithm, version, Params::try_from(&hash).ok()?);
        let mut out = vec![0; expected.len()];
        let hashed = self.hash(&argon2, password, &salt, &mut out);
        Some(hashed && out.ct_eq(expected.as_bytes()).into())
    }
}

/// Hashes a password into a PHC string. Takes about 20 ms of one core: not on an async thread.
///
/// # Errors
/// [`PasswordError`].
pub fn hash_password(password: &str) -> Result<String, PasswordError> {
    hash_in(&mut Memory::new(), password)
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

fn hash_in(memory: &mut Memory, password: &str) -> Result<String, PasswordError> {
    check_length(password)?;
    let failed = |error: &dyn std::fmt::Display| PasswordError::Hash(error.to_string());
    let (argon2, salt, mut out) = (argon2(), rand::random::<[u8; 16]>(), [0; 32]);
    if !memory.hash(&argon2, password, &salt, &mut out) {
        return Err(failed(&"argon2 refused"));
    }
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(argon2.params()).map_err(|error| failed(&error))?,
        salt: Some(Salt::new(&salt).map_err(|error| failed(&error))?),
        hash: Some(Output::new(&out).map_err(|error| failed(&error))?),
    };
    Ok(hash.to_string())
}

/// Whether `password` belongs to the PHC string. Takes as long as hashing.
#[must_use]
pub fn verify(phc: &str, password: &str) -> bool {
    verify_in(&mut Memory::new(), phc, password)
}

fn verify_in(memory: &mut Memory, phc: &str, password: &str) -> bool {
    password.len() <= PASSWORD_MAX && memory.verify(phc, password).unwrap_or(false)
}

/// Checks passwords off the async threads, `AT_ONCE`: 19 MiB each must not add up. `WAITING` more wait in order, further ones are
/// turned away.
#[derive(Clone)]
pub struct Passwords {
    /// One for each that works or waits.
    queue: Arc<Semaphore>,
    places: Arc<Semaphore>,
    /// What is not in use; empty as soon as no check runs or waits.
    spare: Arc<Mutex<Vec<Memory>>>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            queue: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            spare: Arc::default(),
        }
    }
}

impl Passwords {
    /// Whether `password` is right for `phc`. `None` (no such user) costs the same work and is `false`, so that
    /// the time of an answer does not tell who has an account.
    ///
    /// # Errors
    /// [`PasswordError::Busy`]: it was not checked.
    pub async fn check(
        &self,
        phc: Option<String>,
        password: String,
    ) -> Result<bool, PasswordError> {
        self.run(move |memory| {
            // Nor does it tell who has an account without a password.
            let phc = phc.filter(|phc| PasswordHash::new(phc).is_ok());
            let known = phc.is_some();
            let nobody = nobody(memory);
            verify_in(memory, phc.as_deref().unwrap_or(nobody), &password) && known
        })
        .await
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
        self.run(move |memory| {
            let about: Vec<&str> = about.iter().map(String::as_str).collect();
            check_chosen(&password, &about)?;
            hash_in(memory, &password)
        })
        .await?
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let ending = |_| PasswordError::Hash("the server is shutting down".to_owned());
        let queued =
            Arc::clone(&self.queue).try_acquire_owned().map_err(|_| PasswordError::Busy)?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(ending)?;
        let (queue, spare) = (Arc::clone(&self.queue), Arc::clone(&self.spare));
        // The caller may be gone before it is done: the place is free only when it is done.
        let working = tokio::task::spawn_blocking(move || {
            let (_queued, _place) = (queued, place);
            let lock = || spare.lock();
            let reused = lock().pop();
            let mut memory = reused.unwrap_or_else(Memory::new);
            let done = work(&mut memory);
            let mut spare = lock();
            match queue.available_permits() + 1 < AT_ONCE + WAITING {
                true => spare.push(memory),
                false => spare.clear(),
            }
            done
        });
        working.await.map_err(|_| PasswordError::Hash("the server is shutting down".to_owned()))
    }
}

/// The hash of a password that no user has.
fn nobody(memory: &mut Memory) -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| hash_in(memory, &random_secret()).unwrap_or_default())
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
    let digit = |four: u8| char::from_digit(four.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A new API token: the secret (`sol_...`, shown once), the hash that is stored, and its short public id.
#[must_use]
pub fn new_api_token() -> (String, String, String) {
    let secret = format!("sol_{}", random_secret());
    let hash = sha256_hex(&secret);
    let id = hex(&rand::random::<[u8; 6]>());
    (secret, hash, id)
}

/// Makes a one-time sign-in link for `user`, or for the first admin when `None`; valid for [`LINK_LIFETIME`].
///
/// # Errors
/// [`soloist_store::StoreError::Unavailable`].
pub async fn new_link(
    store: &Store,
    user: Option<UserName>,
    public_url: &str,
) -> StoreResult<String> {
    add_link(store, Link { user, sets_password: false }, LINK_LIFETIME, public_url).await
}

/// Makes a one-time link with which `user` sets their password; valid for [`INVITATION_LIFETIME`]. It ends earlier ones.
///
/// # Errors
/// [`soloist_store::StoreError::NotFound`], [`soloist_store::StoreError::Unavailable`].
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
    fn a_hash_that_an_earlier_version_made_is_still_verified() {
        // By `Argon2::hash_password` of the crate, with other parameters.
        let old = argon2::PasswordHasher::hash_password(
            &Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(64, 3, 1, None).unwrap()),
            b"correct horse",
        );
        let old: PasswordHash = old.unwrap();
        assert!(verify(&old.to_string(), "correct horse"));
        assert!(!verify(&old.to_string(), "correct house"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn of_many_at_once_a_few_wait_and_the_others_are_turned_away() {
        let passwords = Passwords::default();
        let weak = Params::new(4_096, 1, 1, None).unwrap();
        let weak = Argon2::new(Algorithm::Argon2id, Version::V0x13, weak);
        let phc: PasswordHash =
            argon2::PasswordHasher::hash_password(&weak, b"correct horse").unwrap();
        let phc = phc.to_string();
        let all = (0..60).map(|_| passwords.check(Some(phc.clone()), "correct house".to_owned()));
        let answers = futures_util::future::join_all(all).await;
        let busy = answers.iter().filter(|answer| **answer == Err(PasswordError::Busy)).count();
        assert_eq!(busy, 60 - AT_ONCE - WAITING);
        assert_eq!(passwords.check(Some(phc), "correct horse".to_owned()).await, Ok(true));
        assert!(passwords.spare.lock().is_empty(), "the memory is given back");
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
