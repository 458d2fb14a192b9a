//! What is said to the provider: discovery, the exchange of a code, and the proof of its answer.
//!
//! Signatures, issuer, audience, nonce and expiry are checked by `openidconnect`. Every call ends after [`CALL_MAX`], follows no
//! redirect and reads at most [`ANSWER_MAX`]. What is discovered is remembered; a call that comes while it is renewed takes the older.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod,
    CoreErrorResponseType, CoreGenderClaim, CoreIdTokenVerifier, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreRevocableToken,
    CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, AuthType, AuthorizationCode, ClaimsVerificationError,
    Client, ClientId, ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields, IssuerUrl,
    LogoutRequest, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    PostLogoutRedirectUrl, ProviderMetadataWithLogout, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, StandardErrorResponse, StandardTokenResponse, SubjectIdentifier,
    TokenResponse as _, UserInfoClaims, http,
};
use parking_lot::RwLock;
use reqwest::Certificate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use url::Url;

use super::super::headers::CONTENT_SECURITY_POLICY;
use super::flow::Flow;
use soloist_config::{Config, Oidc};
use soloist_domain::time::Boot;
use soloist_ops::external::Identity;
use soloist_process::clock;
use soloist_store::accounts::External;

/// Longest call to the provider.
const CALL_MAX: Duration = Duration::from_secs(5);
/// Largest answer of the provider, in bytes.
const ANSWER_MAX: usize = 1024 * 1024;
/// What was discovered is renewed after this long.
const RENEWED_AFTER: Duration = Duration::from_secs(10 * 60);
/// A provider that did not answer is not asked again before.
const PAUSE: Duration = Duration::from_secs(2);
/// Codes that are exchanged at a time: any client may send one.
const AT_A_TIME: usize = 16;
/// Signed by the provider's own key. Never by the secret of the client, which others may know.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Claims that no standard names: the groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claims {
    #[serde(flatten)]
    all: BTreeMap<String, Value>,
}

impl AdditionalClaims for Claims {}

type Fields = IdTokenFields<
    Claims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type Answer = StandardTokenResponse<Fields, CoreTokenType>;
type OurClient = Client<
    Claims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Answer,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Why the provider did not vouch for the person. The text is for the log, where it is not the provider's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// It cannot be asked, or answers what no provider answers.
    #[error("the provider cannot be asked: {0}")]
    Away(String),
    /// It says no, in its own words.
    #[error("the provider refused: {0}")]
    Said(String),
    /// It answered what is not proved.
    #[error("the provider's answer is not proved: {0}")]
    Unproved(String),
}

/// Why one call failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("{}", said(.0))]
    Http(#[from] reqwest::Error),
    #[error("the answer is larger than {ANSWER_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] http::Error),
}

/// What this node knows of the provider; cheap to clone.
#[derive(Clone)]
pub struct SingleSignOn(Arc<Inner>);

struct Inner {
    known: RwLock<Option<Arc<Provider>>>,
    /// Held by who asks; in it the last failure.
    asking: Mutex<Option<(Arc<Oidc>, Boot, Trouble)>>,
    places: Semaphore,
}

impl Default for SingleSignOn {
    fn default() -> Self {
        Self(Arc::new(Inner {
            known: RwLock::default(),
            asking: Mutex::default(),
            places: Semaphore::new(AT_A_TIME),
        }))
    }
}

/// A provider as it describes itself.
pub(super) struct Provider {
    rules: Arc<Oidc>,
    metadata: ProviderMetadataWithLogout,
    http: reqwest::Client,
    at: Boot,
    policy: Option<HeaderValue>,
}

impl SingleSignOn {
    /// The content security policy of every page while single sign-on is set up: the form that signs out ends at the provider,
    /// and browsers hold `form-action` against every address on the way. `None`: the usual one.
    #[must_use]
    pub fn policy(&self, config: &Config) -> Option<HeaderValue> {
        let rules = config.oidc.as_ref()?;
        match self.known(rules) {
            Some(provider) => provider.policy.clone(),
            None => policy([Url::parse(&rules.issuer).ok().as_ref(), None]),
        }
    }

    /// A place among those whose codes are exchanged now; `None`: all are taken.
    pub(super) fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.0.places.try_acquire().ok()
    }

    /// The provider of `rules`, discovered now or lately.
    ///
    /// # Errors
    /// [`Trouble::Away`].
    pub(super) async fn provider(&self, rules: &Arc<Oidc>) -> Result<Arc<Provider>, Trouble> {
        let known = self.known(rules);
        if let Some(known) = &known {
            if clock::boot().since(known.at) < RENEWED_AFTER {
                return Ok(Arc::clone(known));
            }
            // Another call renews it: this one need not wait for that.
            if self.0.asking.try_lock().is_err() {
                return Ok(Arc::clone(known));
            }
        }
        match self.renewed(rules, known.as_ref().map(|known| known.at)).await {
            Ok(provider) => Ok(provider),
            Err(trouble) => known.ok_or(trouble),
        }
    }

    /// Asks again, unless another call has done so after `seen`.
    async fn renewed(
        &self,
        rules: &Arc<Oidc>,
        seen: Option<Boot>,
    ) -> Result<Arc<Provider>, Trouble> {
        let mut asking = self.0.asking.lock().await;
        if let Some(known) = self.known(rules).filter(|known| Some(known.at) != seen) {
            return Ok(known);
        }
        if let Some((of, at, trouble)) = &*asking
            && of == rules
            && clock::boot().since(*at) < PAUSE
        {
            return Err(trouble.clone());
        }
        match Provider::discover(rules).await {
            Ok(provider) => {
                let provider = Arc::new(provider);
                let mut known = self.0.known.write();
                *known = Some(Arc::clone(&provider));
                *asking = None;
                Ok(provider)
            }
            Err(trouble) => {
                tracing::warn!(issuer = rules.issuer, why = ?trouble.to_string(), "single sign-on: the provider is away");
                *asking = Some((Arc::clone(rules), clock::boot(), trouble.clone()));
                Err(trouble)
            }
        }
    }

    fn known(&self, rules: &Arc<Oidc>) -> Option<Arc<Provider>> {
        let known = self.0.known.read();
        known.clone().filter(|known| known.rules == *rules)
    }

    /// Exchanges a code for the person it stands for. A key that is not known yet is looked for once.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) async fn redeem(
        &self,
        rules: &Arc<Oidc>,
        redirect: &str,
        flow: &Flow,
        code: String,
    ) -> Result<Identity, Trouble> {
        let provider = self.provider(rules).await?;
        let answer = provider.exchange(redirect, flow, code).await?;
        match provider.identity(redirect, flow, &answer).await {
            Err(Refused::UnknownKey) => {
                let newer = self.renewed(rules, Some(provider.at)).await?;
                newer.identity(redirect, flow, &answer).await
            }
            other => other,
        }
        .map_err(Refused::into)
    }
}

/// Why an answer was not taken.
enum Refused {
    /// It is signed by a key that the provider did not have when it was asked.
    UnknownKey,
    Other(Trouble),
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::UnknownKey => Self::Unproved("no key of the provider fits".to_owned()),
            Refused::Other(trouble) => trouble,
        }
    }
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        Self::Other(trouble)
    }
}

impl Provider {
    async fn discover(rules: &Arc<Oidc>) -> Result<Self, Trouble> {
        let away = Trouble::Away;
        let http = client(rules).map_err(|error| away(said(&error)))?;
        let at = clock::boot();
        let issuer = IssuerUrl::new(rules.issuer.clone()).map_err(|error| away(said(&error)))?;
        let metadata = ProviderMetadataWithLogout::discover_async(issuer, &caller(&http))
            .await
            .map_err(|error| away(said(&error)))?;
        let end = metadata.additional_metadata().end_session_endpoint.as_ref().map(|end| end.url());
        let sent_to = [Some(metadata.authorization_endpoint().url()), end];
        let tls = rules.issuer.starts_with("https:");
        if let Some(plain) =
            sent_to.into_iter().flatten().find(|url| tls && url.scheme() != "https")
        {
            return Err(away(format!("it sends people to {plain}, which is not https://")));
        }
        let policy = policy([Some(metadata.issuer().url()), end]);
        Ok(Self { rules: Arc::clone(rules), metadata, http, at, policy })
    }

    fn client(&self, redirect: &str) -> Result<OurClient, Trouble> {
        let secret = self.rules.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.reveal().to_owned()));
        let redirect = RedirectUrl::new(redirect.to_owned())
            .map_err(|error| Trouble::Away(format!("public_url: {error}")))?;
        let methods = self.metadata.token_endpoint_auth_methods_supported();
        let in_body = methods.is_some_and(|methods| {
            methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
        });
        let id = ClientId::new(self.rules.client_id.clone());
        Ok(OurClient::from_provider_metadata(self.metadata.clone(), id, secret)
            .set_redirect_uri(redirect)
            .set_auth_type(if in_body { AuthType::RequestBody } else { AuthType::BasicAuth }))
    }

    /// Where the browser is sent.
    ///
    /// # Errors
    /// [`Trouble::Away`]: our own address is none.
    pub(super) fn entrance(&self, redirect: &str, flow: &Flow) -> Result<String, Trouble> {
        let (state, nonce) = (CsrfToken::new(flow.state()), Nonce::new(flow.nonce()));
        let verifier = PkceCodeVerifier::new(flow.verifier());
        let scopes = self.rules.scopes.iter().filter(|scope| *scope != "openid");
        let (url, _, _) = self
            .client(redirect)?
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
            .add_scopes(scopes.map(|scope| Scope::new(scope.clone())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(url.into())
    }

    /// Where the browser ends the session at the provider, if that can be.
    pub(super) fn exit(&self, back: &str) -> Option<String> {
        let end = self.metadata.additional_metadata().end_session_endpoint.clone()?;
        let back = PostLogoutRedirectUrl::new(back.to_owned()).ok()?;
        let request = LogoutRequest::from(end)
            .set_client_id(ClientId::new(self.rules.client_id.clone()))
            .set_post_logout_redirect_uri(back);
        Some(request.http_get_url().into())
    }

    async fn exchange(&self, redirect: &str, flow: &Flow, code: String) -> Result<Answer, Trouble> {
        let client = self.client(redirect)?;
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| Trouble::Away(said(&error)))?
            .set_pkce_verifier(PkceCodeVerifier::new(flow.verifier()));
        request.request_async(&caller(&self.http)).await.map_err(|error| match error {
            RequestTokenError::ServerResponse(answer) => Trouble::Said(answer.to_string()),
            RequestTokenError::Request(error) => Trouble::Away(said(&error)),
            RequestTokenError::Parse(error, _) => Trouble::Unproved(said(&error)),
            RequestTokenError::Other(why) => Trouble::Away(why),
        })
    }

    async fn identity(
        &self,
        redirect: &str,
        flow: &Flow,
        answer: &Answer,
    ) -> Result<Identity, Refused> {
        let unproved = |why: String| Refused::Other(Trouble::Unproved(why));
        let token = answer.id_token().ok_or_else(|| unproved("it has no ID token".to_owned()))?;
        let verifier = CoreIdTokenVerifier::new_public_client(
            ClientId::new(self.rules.client_id.clone()),
            self.metadata.issuer().clone(),
            self.metadata.jwks().clone(),
        )
        .set_allowed_algs(ALGORITHMS);
        let nonce = Nonce::new(flow.nonce());
        let claims = token.claims(&verifier, &nonce).map_err(|error| match error {
            ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            ) => Refused::UnknownKey,
            error => unproved(said(&error)),
        })?;
        if let Some(expected) = claims.access_token_hash() {
            let key = token.signing_key(&verifier).map_err(|error| unproved(said(&error)))?;
            let algorithm = token.signing_alg().map_err(|error| unproved(said(&error)))?;
            let actual = AccessTokenHash::from_token(answer.access_token(), algorithm, key)
                .map_err(|error| unproved(said(&error)))?;
            if actual != *expected {
                return Err(unproved("at_hash is of another access token".to_owned()));
            }
        }
        let subject = claims.subject().clone();
        let mut known = json(claims).map_err(unproved)?;
        let wanted = [self.rules.groups_claim.as_str(), self.rules.name_claim.as_str()];
        if wanted.iter().any(|claim| look_up(&known, claim).is_none())
            && let Some(more) = self.user_info(redirect, answer, &subject).await?
            && let Some(known) = known.as_object_mut()
        {
            // What was signed stays.
            for (claim, value) in more {
                known.entry(claim).or_insert(value);
            }
        }
        let issuer = self.rules.issuer.clone();
        Ok(Identity {
            external: External { issuer, subject: subject.to_string() },
            name: name(&known, &self.rules.name_claim),
            called: name(&known, "name"),
            groups: groups(&known, &self.rules.groups_claim),
        })
    }

    /// What the provider tells beside the ID token, about the same person.
    async fn user_info(
        &self,
        redirect: &str,
        answer: &Answer,
        subject: &SubjectIdentifier,
    ) -> Result<Option<serde_json::Map<String, Value>>, Refused> {
        if self.metadata.userinfo_endpoint().is_none() {
            return Ok(None);
        }
        let client = self.client(redirect)?;
        let request = client
            .user_info(answer.access_token().clone(), Some(subject.clone()))
            .map_err(|error| Trouble::Away(said(&error)))?;
        let told: UserInfoClaims<Claims, CoreGenderClaim> = request
            .request_async(&caller(&self.http))
            .await
            .map_err(|error| Trouble::Unproved(format!("user info: {}", said(&error))))?;
        let told = json(&told).map_err(Trouble::Unproved)?;
        Ok(told.as_object().cloned())
    }
}

fn json(claims: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(claims).map_err(|error| error.to_string())
}

/// The claim of that name, else the one that its dots lead to.
fn look_up<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    let found = claims.get(path);
    let found = found.or_else(|| path.split('.').try_fold(claims, |inner, name| inner.get(name)));
    found.filter(|value| !value.is_null())
}

fn name(claims: &Value, claim: &str) -> Option<String> {
    // An address that the provider has not checked may be any person's.
    if claim == "email" && claims.get("email_verified") == Some(&Value::Bool(false)) {
        return None;
    }
    look_up(claims, claim)?.as_str().map(str::to_owned)
}

fn groups(claims: &Value, claim: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match look_up(claims, claim) {
        Some(Value::Array(all)) => all.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The usual policy, with forms that may end at these origins.
fn policy(urls: [Option<&Url>; 2]) -> Option<HeaderValue> {
    let mut origins: Vec<String> =
        urls.into_iter().flatten().map(|url| url.origin().ascii_serialization()).collect();
    origins.dedup();
    let ours = "form-action 'self'";
    let policy = CONTENT_SECURITY_POLICY.replace(ours, &format!("{ours} {}", origins.join(" ")));
    HeaderValue::from_str(&policy).ok()
}

/// Calls that end, and stay where they are sent. A connection is used once: each worker thread has a runtime of its own.
fn client(rules: &Oidc) -> Result<reqwest::Client, reqwest::Error> {
    let tls = rules.issuer.starts_with("https:");
    let mut client = soloist_remote::http::client()
        .timeout(CALL_MAX)
        .connect_timeout(CALL_MAX)
        .pool_max_idle_per_host(0)
        .https_only(tls);
    if !tls {
        // On this machine.
        client = client.no_proxy().tls_certs_only([]);
    }
    for root in rules.ca.iter().map(|pem| Certificate::from_pem_bundle(pem)) {
        client = client.tls_certs_merge(root?);
    }
    client.build()
}

/// A call under way.
type Calling = Pin<Box<dyn Future<Output = Result<HttpResponse, CallError>> + Send>>;

/// How `openidconnect` calls.
fn caller(http: &reqwest::Client) -> impl Fn(HttpRequest) -> Calling {
    let http = http.clone();
    move |request| {
        let http = http.clone();
        Box::pin(async move {
            let mut response = http.execute(request.try_into()?).await?;
            let mut answer = http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await? {
                if body.len() + piece.len() > ANSWER_MAX {
                    return Err(CallError::TooLarge);
                }
                body.extend_from_slice(&piece);
            }
            Ok(answer.body(body)?)
        })
    }
}

/// An error with what is behind it, in one line.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        behind = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_stand_where_the_configuration_says() {
        let claims = json!({
            "groups": ["a", 7, "b"], "one": "c", "a.b": ["dotted"],
            "realm_access": { "roles": ["d"] }, "none": null,
        });
        for (claim, found) in [
            ("groups", &["a", "b"][..]),
            ("one", &["c"]),
            ("a.b", &["dotted"]),
            ("realm_access.roles", &["d"]),
            ("realm_access", &[]),
            ("realm_access.x.y", &[]),
            ("none", &[]),
            ("missing", &[]),
        ] {
            assert_eq!(groups(&claims, claim), found, "{claim}");
        }
    }

    #[test]
    fn an_address_that_nobody_checked_names_nobody() {
        let claims = |verified| json!({ "email": "a@b", "email_verified": verified });
        assert_eq!(name(&claims(true), "email").as_deref(), Some("a@b"));
        assert_eq!(name(&claims(false), "email"), None);
        assert_eq!(name(&json!({ "email": "a@b" }), "email").as_deref(), Some("a@b"));
    }

    #[test]
    fn only_forms_may_end_at_the_provider() {
        let issuer = Url::parse("https://login.example.org/realms/x").unwrap();
        let end = Url::parse("https://out.example.org:8443/end?x").unwrap();
        let both = policy([Some(&issuer), Some(&end)]).unwrap();
        let both = both.to_str().unwrap();
        assert!(
            both.contains(
                "form-action 'self' https://login.example.org https://out.example.org:8443;"
            ),
            "{both}"
        );
        assert_eq!(both.matches("example.org").count(), 2);
        let one = policy([Some(&issuer), Some(&issuer)]).unwrap();
        assert_eq!(one.to_str().unwrap().matches("example.org").count(), 1);
    }
}
