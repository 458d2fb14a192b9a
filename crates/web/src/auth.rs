//! Who is asking: sessions in a cookie, API tokens in a header.
//!
//! The door identifies once per request and leaves a [`Caller`] for the handlers; no other code reads credentials.
//! When the store is out of reach, a caller known from the last minutes may still *look* (the pictures then say
//! `unknown`), and nothing else.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::cookie::{Cookie, SameSite};
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use parking_lot::Mutex;

use super::address::Client;
use super::error::WebError;
use soloist_config::{Config, JobConfig};
use soloist_domain::name::UserName;
use soloist_domain::time::Boot;
pub use soloist_ops::credentials::SESSION_IDLE;
use soloist_ops::{Actor, Bound, Signature, operates, sees};
use soloist_process::clock;
use soloist_secrets as secrets;
use soloist_store::accounts::{Accounts, Role};
use soloist_store::credentials::{Credentials, Session};
use soloist_store::dispatch::ClaimOwner;
use soloist_store::journal::Kind;
use soloist_store::{Store, StoreError};
use soloist_view::words::{Language, Zone};

/// What a token begins with where it is offered as a subprotocol of a WebSocket.
pub const TOKEN_PROTOCOL: &str = "bearer.";
/// A session ends after this long in any case.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a caller is remembered for looking while the store is out of reach.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);
const REMEMBERED_AT_MOST: usize = 10_000;
/// How often at most the use of a token is noted.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);
/// Longest name of a browser that is kept, in characters.
const USER_AGENT_MAX: usize = 200;
/// How long a token is trusted without asking the store where thousands of requests a second come in (dispatch): so long
/// a revoked one still works there.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// What a caller showed; the hash is the key in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Shown {
    Session {
        hash: String,
        seals: SealKey,
    },
    Token {
        hash: String,
        seals: SealKey,
    },
    /// Nothing: it sits at the terminal that has this process.
    Terminal,
}

/// What the seals of a caller are made with: another hash of what it showed than the one in the store, so that who reads the store can make none.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SealKey(String);

impl SealKey {
    fn of(shown: &str) -> Self {
        Self(secrets::sha256_hex(&format!("seals\n{shown}")))
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey")
    }
}

impl Shown {
    /// The key in the store.
    #[must_use]
    pub fn hash(&self) -> &str {
        match self {
            Self::Session { hash, .. } | Self::Token { hash, .. } => hash,
            Self::Terminal => "",
        }
    }

    fn seals(&self) -> &str {
        match self {
            Self::Session { seals, .. } | Self::Token { seals, .. } => &seals.0,
            Self::Terminal => "",
        }
    }

    /// An API token, as it was made.
    #[must_use]
    pub fn token(text: &str) -> Self {
        Self::Token { hash: secrets::sha256_hex(text), seals: SealKey::of(text) }
    }

    /// The credential in a request; a token outranks a cookie.
    #[must_use]
    pub fn in_request(request: &HttpRequest, config: &Config) -> Option<Self> {
        if let Some(value) = request.headers().get(header::AUTHORIZATION) {
            let text = value.to_str().unwrap_or_default();
            let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
            if scheme.eq_ignore_ascii_case("bearer") {
                return Some(Self::token(token.trim()));
            }
        }
        if let Some(token) = offered_token(request) {
            return Some(Self::token(token));
        }
        let cookie = request.cookie(cookie_name(config))?;
        let text = cookie.value();
        Some(Self::Session { hash: secrets::sha256_hex(text), seals: SealKey::of(text) })
    }
}

/// The token among the subprotocols that a WebSocket offers: browsers let a page set no other header of it. The answer never
/// repeats it.
fn offered_token(request: &HttpRequest) -> Option<&str> {
    if request.path() != "/live" {
        return None;
    }
    let lines = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let mut offered = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    offered.find_map(|name| name.trim().strip_prefix(TOKEN_PROTOCOL))
}

/// A person or program that is signed in.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Account name.
    pub user: UserName,
    /// What the account may do.
    pub role: Role,
    /// Chosen, or else what the browser prefers.
    pub language: Language,
    /// The account's choice.
    pub chosen: Option<Language>,
    /// `light` or `dark`, once chosen.
    pub theme: Option<String>,
    /// The IANA name of the zone in which instants are said, once chosen.
    pub time_zone: Option<String>,
    /// The groups that the account is a member of.
    pub groups: Arc<[String]>,
    /// How the person is called.
    pub display_name: Option<String>,
    /// What forms must repeat; empty with a token.
    pub csrf: String,
    /// Address of the peer.
    pub from: String,
    /// By what.
    pub shown: Shown,
    /// What its token is bound to.
    pub bound: Arc<Bound>,
    /// As whom it acts, if it sits at the terminal that has this process.
    pub(super) person: Option<Arc<Actor>>,
}

impl Caller {
    /// The person at the terminal that has this process: whoever can open the store may know and do everything. What is done under
    /// the name of an account is done with the rights of that account, which `ops` looks at; so only what it may see is as of an admin.
    pub(super) fn at_terminal(person: &Arc<Actor>) -> Self {
        Self {
            user: person.user.clone(),
            role: Role::Admin,
            language: Language::En,
            chosen: Some(Language::En),
            theme: None,
            time_zone: None,
            groups: Arc::clone(&person.groups),
            display_name: None,
            csrf: String::new(),
            from: person.signature.from.clone(),
            shown: Shown::Terminal,
            bound: Arc::clone(&person.bound),
            person: Some(Arc::clone(person)),
        }
    }

    /// May define nothing, but switch, hold and move.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        matches!(self.role, Role::Operator | Role::Admin)
    }

    /// May do everything.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// May switch, hold and move this job.
    #[must_use]
    pub fn may_switch(&self, job: &JobConfig) -> bool {
        operates(self.role, &self.user, &self.groups, job)
    }

    /// May know of this job. To who may not, it does not exist.
    #[must_use]
    pub fn sees(&self, job: &JobConfig) -> bool {
        self.sees_by_role(job) && self.bound.reads_job(job.name.as_str())
    }

    /// As [`Self::sees`], whatever the token is bound to.
    #[must_use]
    pub fn sees_by_role(&self, job: &JobConfig) -> bool {
        sees(self.role, &self.user, &self.groups, job)
    }

    /// As whom operations act.
    #[must_use]
    pub fn actor(&self) -> Actor {
        if let Some(person) = &self.person {
            return Actor::clone(person);
        }
        Actor {
            user: self.user.clone(),
            role: Some(self.role),
            groups: Arc::clone(&self.groups),
            signature: self.signature(),
            bound: Arc::clone(&self.bound),
            by_token: !self.by_session(),
        }
    }

    /// As whom the audit notes them.
    #[must_use]
    pub fn signature(&self) -> Signature {
        if let Some(person) = &self.person {
            return person.signature.clone();
        }
        let kind = if self.by_session() { Kind::Person } else { Kind::Program };
        Signature { who: self.user.to_string(), from: self.from.clone(), kind }
    }

    /// The caller of this very request: its address, and the browser's language where none was chosen.
    #[must_use]
    pub fn of_request(mut self, request: &HttpRequest) -> Self {
        self.from = peer(request);
        self.language = self.chosen.unwrap_or_else(|| preferred_language(request));
        self
    }

    /// The zone in which the server says and reads instants for it: the chosen one if this machine knows it, else this machine's.
    #[must_use]
    pub fn zone(&self) -> Zone {
        let chosen = self.time_zone.as_deref().and_then(Zone::named);
        chosen.unwrap_or_else(|| Zone::here().clone())
    }

    /// The owner of its claims: made of what it showed, so that no caller who has not shown the same can name them.
    #[must_use]
    pub fn claim_owner(&self) -> ClaimOwner {
        ClaimOwner::of(self.shown.seals())
    }

    /// A text that only who showed the same can repeat, made of `parts`: 32 hexadecimal digits. Nothing in the store leads to it.
    #[must_use]
    pub fn seal(&self, parts: &[&str]) -> String {
        let mut text =
            secrets::sha256_hex(&format!("{}\n{}", self.shown.seals(), parts.join("\n")));
        text.truncate(32);
        text
    }

    /// Whether a browser session (and not a token) carries the request.
    #[must_use]
    pub fn by_session(&self) -> bool {
        matches!(self.shown, Shown::Session { .. })
    }
}

/// The caller whom the door has let in, as its request carries it.
pub(super) struct Admitted(pub(super) Rc<Caller>);

impl FromRequest for Caller {
    type Error = WebError;
    type Future = Ready<Result<Self, WebError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let admitted =
            request.extensions().get::<Admitted>().map(|Admitted(caller)| Self::clone(caller));
        ready(admitted.ok_or(WebError::Unauthorized))
    }
}

/// How a credential is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// The caller only looks: an answer of the last minutes is good enough while the store is out of reach.
    pub looking: bool,
    /// A person does something: it keeps their session alive. What a page does by itself does not.
    pub renews: bool,
}

/// Reads credentials from the store, and remembers for a while whom it saw.
#[derive(Clone, Default)]
pub struct Identities {
    remembered: Arc<Mutex<HashMap<Shown, (Caller, Boot)>>>,
    /// Tokens whose use was noted from here within [`USE_NOTED_EVERY`].
    noted: Arc<Mutex<HashMap<String, Boot>>>,
}

impl Identities {
    /// Who showed this; `None` for an expired, revoked or unknown credential.
    ///
    /// # Errors
    /// [`WebError::Unavailable`].
    pub async fn identify(
        &self,
        store: &Store,
        shown: &Shown,
        Ask { looking, renews }: Ask,
    ) -> Result<Option<Caller>, WebError> {
        match Self::ask(store, shown, renews).await {
            Ok(Some(caller)) => {
                self.remember(&caller);
                self.note_use(store, shown);
                Ok(Some(caller))
            }
            Ok(None) => {
                self.forget(shown);
                Ok(None)
            }
            Err(StoreError::Unavailable(_)) if looking && self.recall(shown).is_some() => {
                Ok(self.recall(shown))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes the use of a token, at most once a minute, and no caller waits for it.
    fn note_use(&self, store: &Store, shown: &Shown) {
        let Shown::Token { hash, .. } = shown else { return };
        let now = clock::boot();
        {
            let mut noted = self.noted.lock();
            if noted.get(hash).is_some_and(|at| now.since(*at) < USE_NOTED_EVERY) {
                return;
            }
            if noted.len() >= REMEMBERED_AT_MOST {
                noted.retain(|_, at| now.since(*at) < USE_NOTED_EVERY);
            }
            noted.insert(hash.clone(), now);
        }
        let (store, hash) = (store.clone(), hash.clone());
        tokio::spawn(async move {
            if let Err(error) = store.use_token(&hash, USE_NOTED_EVERY).await {
                tracing::debug!(%error, "the use of a token could not be noted");
            }
        });
    }

    async fn ask(store: &Store, shown: &Shown, renews: bool) -> Result<Option<Caller>, StoreError> {
        let mut bound = Arc::default();
        let (name, csrf) = match shown {
            Shown::Session { hash, .. } => {
                let session = match renews {
                    true => store.session(hash, SESSION_IDLE).await?,
                    false => store.peek_session(hash, SESSION_IDLE).await?,
                };
                match session {
                    Some(Session { user, csrf, .. }) => (user, csrf),
                    None => return Ok(None),
                }
            }
            Shown::Token { hash, .. } => match store.token(hash).await? {
                Some(token) => {
                    let user = token.user.clone();
                    bound = Arc::new(Bound::from(token));
                    (user, String::new())
                }
                None => return Ok(None),
            },
            // Not in the store, and in no request: the door has it from the process itself.
            Shown::Terminal => return Ok(None),
        };
        let Some(user) = store.user(&name).await? else { return Ok(None) };
        Ok(Some(Caller {
            user: user.name,
            role: user.role,
            chosen: user.language.as_deref().map(Language::from_accept_language),
            language: Language::default(),
            theme: user.theme,
            time_zone: user.time_zone,
            groups: user.groups.into(),
            display_name: user.display_name,
            csrf,
            from: String::new(),
            shown: shown.clone(),
            bound,
            person: None,
        }))
    }

    /// Who showed this token within the last second; `None`: ask.
    #[must_use]
    pub fn seen_just_now(&self, shown: &Shown) -> Option<Caller> {
        let Shown::Token { .. } = shown else { return None };
        let remembered = self.remembered.lock();
        let (caller, at) = remembered.get(shown)?;
        (clock::boot().since(*at) < BELIEVED_FOR).then(|| caller.clone())
    }

    /// Forgets a credential at once (it was signed out here).
    pub fn forget(&self, shown: &Shown) {
        self.remembered.lock().remove(shown);
    }

    fn remember(&self, caller: &Caller) {
        let now = clock::boot();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_AT_MOST && !remembered.contains_key(&caller.shown) {
            remembered.retain(|_, (_, at)| now.since(*at) < REMEMBERED_FOR);
            if remembered.len() >= REMEMBERED_AT_MOST {
                return;
            }
        }
        remembered.insert(caller.shown.clone(), (caller.clone(), now));
    }

    /// The caller that was seen under this credential in the last minutes: good enough to look at an old picture, and for nothing else.
    #[must_use]
    pub fn recall(&self, shown: &Shown) -> Option<Caller> {
        let remembered = self.remembered.lock();
        let (caller, at) = remembered.get(shown)?;
        (clock::boot().since(*at) < REMEMBERED_FOR).then(|| caller.clone())
    }
}

/// What the browser chose here before, or else prefers; English when it does not say.
#[must_use]
pub fn preferred_language(request: &HttpRequest) -> Language {
    if let Some(chosen) = super::pages::preferences::language(request) {
        return chosen;
    }
    request
        .headers()
        .get(header::ACCEPT_LANGUAGE)
        .and_then(|value| value.to_str().ok())
        .map_or(Language::En, Language::from_accept_language)
}

/// Address of the client: that of the connection, or what trusted proxies say of it (see [`Client`]).
#[must_use]
pub fn peer(request: &HttpRequest) -> String {
    client(request).map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

fn client(request: &HttpRequest) -> Option<IpAddr> {
    let said = request.extensions().get::<Client>().copied();
    said.map_or_else(|| request.peer_addr().map(|peer| peer.ip()), |Client(address)| address)
}

/// Whether the request comes from this machine itself; see [`Client::is_here`].
#[must_use]
pub fn is_here(request: &HttpRequest, config: &Config) -> bool {
    let peer = request.peer_addr().map(|peer| peer.ip());
    Client::of(peer, request.headers(), &config.doors).is_here(
        peer,
        request.headers(),
        &config.doors,
    )
}

/// Whether browsers reach us by TLS.
#[must_use]
pub fn is_https(config: &Config) -> bool {
    config.public_url.starts_with("https://")
}

/// Browsers take a cookie with this prefix from this host only, by TLS only, for all paths.
const HOST_PREFIX: &str = "__Host-";

/// The name of the session cookie; the prefix binds it to this host and to TLS.
#[must_use]
pub fn cookie_name(config: &Config) -> &'static str {
    if is_https(config) { "__Host-soloist" } else { "soloist" }
}

/// The cookie that [`cookie`] made under this name.
#[must_use]
pub fn own_cookie(request: &HttpRequest, config: &Config, name: &str) -> Option<Cookie<'static>> {
    match is_https(config) {
        true => request.cookie(&format!("{HOST_PREFIX}{name}")),
        false => request.cookie(name),
    }
}

/// A cookie of ours, whose name gets the prefix under TLS: unreadable by scripts, not sent from other sites, gone with the browser unless `lives`.
#[must_use]
pub fn cookie(
    config: &Config,
    name: &'static str,
    value: String,
    lives: Option<Duration>,
) -> Cookie<'static> {
    let name = match is_https(config) && !name.starts_with(HOST_PREFIX) {
        true => Cow::Owned(format!("{HOST_PREFIX}{name}")),
        false => Cow::Borrowed(name),
    };
    let mut built = Cookie::build(name, value)
        .http_only(true)
        .same_site(SameSite::Lax)
        .path("/")
        .secure(is_https(config));
    if let Some(lives) = lives {
        let seconds = i64::try_from(lives.as_secs()).unwrap_or(i64::MAX);
        built = built.max_age(actix_web::cookie::time::Duration::seconds(seconds));
    }
    built.finish()
}

/// What is kept of a browser that signs in, so that its owner knows it again.
#[derive(Debug, Clone, Default)]
pub struct Browser {
    /// Its address.
    pub from: String,
    /// What it calls itself, cut short.
    pub user_agent: Option<String>,
}

impl Browser {
    /// The one that sent `request`.
    #[must_use]
    pub fn of(request: &HttpRequest) -> Self {
        let agent = request.headers().get(header::USER_AGENT).and_then(|text| text.to_str().ok());
        let agent = agent.map(|text| text.chars().take(USER_AGENT_MAX).collect::<String>());
        Self { from: peer(request), user_agent: agent.filter(|text| !text.is_empty()) }
    }
}

/// Opens a session for `user`: the cookie, whose hash is in the store.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn open_session(
    store: &Store,
    config: &Config,
    user: &UserName,
    by: &Browser,
) -> Result<Cookie<'static>, WebError> {
    let secret = secrets::random_secret();
    let Browser { from, user_agent } = by.clone();
    let session = Session::new(user.clone(), secrets::random_secret(), from, user_agent);
    store.open_session(&secrets::sha256_hex(&secret), &session, SESSION_LIFETIME).await?;
    Ok(cookie(config, cookie_name(config), secret, Some(SESSION_LIFETIME)))
}
