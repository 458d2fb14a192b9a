//! A provider of OpenID Connect in this process: discovery, keys, authorization, tokens, user info. It checks what a client must
//! send, PKCE among it, and on demand answers what no provider may. Keys and signatures are those of `openidconnect`.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreHmacKey, CoreJwsSigningAlgorithm};
use openidconnect::{
    AccessToken, AccessTokenHash, JsonWebKeyId, JsonWebKeySet, PkceCodeChallenge, PkceCodeVerifier,
    PrivateSigningKey as _,
};
use serde_json::{Value, json};

/// What every client of the tests is called.
pub(super) const CLIENT: &str = "soloist";
/// With characters that a form has to escape.
pub(super) const SECRET: &str = "a secret+of/the client:ß";

/// What is wrong with the next tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Nonce,
    NoNonce,
    Expired,
    Audience,
    SecondAudience,
    NoAudience,
    Issuer,
    Unsigned,
    ForeignKey,
    ChangedAfterSigning,
    SignedWithTheSecret,
    AccessTokenOfAnother,
    NoIdToken,
    NoSubject,
    /// The token endpoint says no, with this much text.
    Says(usize),
    /// Discovery answers more than anybody needs.
    Huge,
    /// Discovery sends the caller elsewhere.
    Moved,
    /// Discovery names another issuer.
    OtherName,
}

/// A code that was given out.
struct Issued {
    client: String,
    redirect: String,
    challenge: String,
    nonce: Option<String>,
}

pub(super) struct State {
    /// The claims of whoever signs in next.
    pub(super) person: Value,
    /// What only `/userinfo` tells.
    pub(super) told: Value,
    pub(super) fault: Fault,
    /// Codes are given out for this client.
    pub(super) client: String,
    key: CoreEdDsaPrivateSigningKey,
    foreign: CoreEdDsaPrivateSigningKey,
    codes: HashMap<String, Issued>,
    /// What was wrong with what clients sent.
    pub(super) complaints: Vec<String>,
    /// Tokens that were asked for.
    pub(super) exchanges: usize,
}

/// A running provider; its server ends with the test.
#[derive(Clone)]
pub(super) struct Provider {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
}

impl Provider {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = State {
            person: json!({}),
            told: json!({}),
            fault: Fault::None,
            client: CLIENT.to_owned(),
            key: key("one"),
            foreign: key("one"),
            codes: HashMap::new(),
            complaints: Vec::new(),
            exchanges: 0,
        };
        let provider = Self { url, state: Arc::new(Mutex::new(state)) };
        let data = web::Data::new(provider.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .route("/.well-known/openid-configuration", web::get().to(discovery))
                .route("/jwks", web::get().to(jwks))
                .route("/authorize", web::get().to(authorize))
                .route("/token", web::post().to(token))
                .route("/userinfo", web::get().to(user_info))
                .route("/end", web::get().to(async || "signed out"))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)
        .unwrap()
        .run();
        tokio::spawn(server);
        provider
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whoever signs in next.
    pub(super) fn person(&self, subject: &str, name: &str, groups: &[&str]) {
        self.state().person = json!({
            "sub": subject, "preferred_username": name, "name": "Li Wei", "groups": groups,
        });
    }

    /// Another key from now on, under another name.
    pub(super) fn rotate(&self) {
        self.state().key = key("two");
    }
}

async fn discovery(provider: web::Data<Provider>, request: HttpRequest) -> HttpResponse {
    let url = &provider.url;
    let fault = provider.state().fault;
    let issuer = if fault == Fault::OtherName { "https://other.example.org" } else { url };
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{url}/authorize?tenant=a"),
        "token_endpoint": format!("{url}/token"),
        "userinfo_endpoint": format!("{url}/userinfo"),
        "jwks_uri": format!("{url}/jwks"),
        "end_session_endpoint": format!("{url}/end"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // A careless provider: what it lists must not matter.
        "id_token_signing_alg_values_supported": ["EdDSA", "HS256", "none"],
    });
    match fault {
        Fault::Moved if request.query_string().is_empty() => {
            let there = format!("{url}/.well-known/openid-configuration?moved");
            return HttpResponse::Found().insert_header(("location", there)).finish();
        }
        Fault::Huge => document["padding"] = json!("x".repeat(2 * 1024 * 1024)),
        _ => {}
    }
    HttpResponse::Ok().json(document)
}

async fn jwks(provider: web::Data<Provider>) -> HttpResponse {
    let key = provider.state().key.as_verification_key();
    HttpResponse::Ok().json(JsonWebKeySet::new(vec![key]))
}

type Fields = HashMap<String, String>;

async fn authorize(provider: web::Data<Provider>, asked: web::Query<Fields>) -> HttpResponse {
    let mut state = provider.state();
    let get = |name: &str| asked.get(name).cloned().unwrap_or_default();
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("code_challenge_method", "S256"),
        ("tenant", "a"),
    ] {
        if get(name) != value {
            state.complaints.push(format!("{name} is {:?}", get(name)));
        }
    }
    if !get("scope").split(' ').any(|scope| scope == "openid") {
        state.complaints.push(format!("scope is {:?}", get("scope")));
    }
    let code = format!("code-{}", rand::random::<u64>());
    let issued = Issued {
        client: state.client.clone(),
        redirect: get("redirect_uri"),
        challenge: get("code_challenge"),
        nonce: asked.get("nonce").cloned(),
    };
    state.codes.insert(code.clone(), issued);
    let back = format!("{}?code={code}&state={}", get("redirect_uri"), get("state"));
    HttpResponse::Found().insert_header(("location", back)).finish()
}

async fn token(
    provider: web::Data<Provider>,
    request: HttpRequest,
    sent: web::Form<Fields>,
) -> HttpResponse {
    let mut state = provider.state();
    state.exchanges += 1;
    let get = |name: &str| sent.get(name).cloned().unwrap_or_default();
    let no = |error: &str, text: String| {
        HttpResponse::BadRequest().json(json!({ "error": error, "error_description": text }))
    };
    if let Fault::Says(length) = state.fault {
        return no("access_denied", format!("<b>never</b>\u{202e}{}", "x".repeat(length)));
    }
    // RFC 6749, section 2.3.1: both parts are escaped as in a form.
    let escaped =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let wanted = format!("{}:{}", escaped(CLIENT), escaped(SECRET));
    let wanted = format!("Basic {}", base64(wanted.as_bytes(), b"+/", true));
    let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    if header != Some(wanted.as_str()) {
        state.complaints.push(format!("the client says it is {header:?}"));
        return no("invalid_client", "who are you?".to_owned());
    }
    // Good once, whatever comes of it.
    let Some(issued) = state.codes.remove(&get("code")) else {
        return no("invalid_grant", "no such code".to_owned());
    };
    let verifier = PkceCodeVerifier::new(get("code_verifier"));
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    if issued.client != CLIENT || challenge.as_str() != issued.challenge {
        return no("invalid_grant", "the code is another client's".to_owned());
    }
    if get("redirect_uri") != issued.redirect || get("grant_type") != "authorization_code" {
        state.complaints.push(format!("asked with {sent:?}"));
        return no("invalid_grant", "another redirect_uri".to_owned());
    }
    let access = format!("access-{}", rand::random::<u64>());
    let mut answer = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 60 });
    if state.fault != Fault::NoIdToken {
        answer["id_token"] = json!(id_token(&provider.url, &state, issued.nonce, &access));
    }
    HttpResponse::Ok().json(answer)
}

async fn user_info(provider: web::Data<Provider>, request: HttpRequest) -> HttpResponse {
    let state = provider.state();
    let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    if !bearer.is_some_and(|value| value.starts_with("Bearer access-")) {
        return HttpResponse::Unauthorized().finish();
    }
    let mut told = json!({ "sub": state.person["sub"] });
    merge(&mut told, &state.told);
    HttpResponse::Ok().json(told)
}

fn merge(into: &mut Value, from: &Value) {
    let into = into.as_object_mut().unwrap();
    from.as_object().unwrap().iter().for_each(|(name, value)| {
        into.insert(name.clone(), value.clone());
    });
}

fn id_token(url: &str, state: &State, nonce: Option<String>, access: &str) -> String {
    let now = jiff::Timestamp::now().as_second();
    let fault = state.fault;
    let algorithm = CoreJwsSigningAlgorithm::EdDsa;
    let key = if fault == Fault::ForeignKey { &state.foreign } else { &state.key };
    let access = if fault == Fault::AccessTokenOfAnother { "another" } else { access };
    let hash = AccessTokenHash::from_token(
        &AccessToken::new(access.to_owned()),
        &algorithm,
        &key.as_verification_key(),
    );
    let mut claims = json!({
        "iss": if fault == Fault::Issuer { "https://other.example.org" } else { url },
        "aud": match fault {
            Fault::Audience => json!("another"),
            Fault::SecondAudience => json!([CLIENT, "another"]),
            Fault::NoAudience => json!([]),
            _ => json!(CLIENT),
        },
        "iat": now - 5,
        "exp": if fault == Fault::Expired { now - 1 } else { now + 60 },
        "at_hash": hash.unwrap(),
    });
    if let Some(nonce) = nonce.filter(|_| fault != Fault::NoNonce) {
        claims["nonce"] = json!(if fault == Fault::Nonce { "another".to_owned() } else { nonce });
    }
    merge(&mut claims, &state.person);
    if fault == Fault::NoSubject {
        claims.as_object_mut().unwrap().remove("sub");
    }
    let kid = serde_json::to_value(key.as_verification_key()).unwrap()["kid"].clone();
    let alg = match fault {
        Fault::Unsigned => "none",
        Fault::SignedWithTheSecret => "HS256",
        _ => "EdDSA",
    };
    let url64 = |bytes: &[u8]| base64(bytes, b"-_", false);
    let part = |value: &Value| url64(value.to_string().as_bytes());
    let signed = format!("{}.{}", part(&json!({ "alg": alg, "kid": kid })), part(&claims));
    let signature = match fault {
        Fault::Unsigned => Vec::new(),
        Fault::SignedWithTheSecret => CoreHmacKey::new(SECRET)
            .sign(&CoreJwsSigningAlgorithm::HmacSha256, signed.as_bytes())
            .unwrap(),
        _ => key.sign(&algorithm, signed.as_bytes()).unwrap(),
    };
    let signed = match fault {
        Fault::ChangedAfterSigning => {
            claims["groups"] = json!(["soloist-admins"]);
            format!("{}.{}", part(&json!({ "alg": alg, "kid": kid })), part(&claims))
        }
        _ => signed,
    };
    format!("{signed}.{}", url64(&signature))
}

/// A new key (RFC 8410), whose name is `kid`.
fn key(kid: &str) -> CoreEdDsaPrivateSigningKey {
    let mut der = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    der.extend(rand::random::<[u8; 32]>());
    let kind = "PRIVATE KEY";
    let body = base64(&der, b"+/", true);
    let pem = format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new(kid.to_owned())))
        .unwrap()
}

/// RFC 4648, with these two last characters.
fn base64(bytes: &[u8], last: &[u8; 2], pad: bool) -> String {
    let alphabet: Vec<u8> =
        (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*last).collect();
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_usize, |all, byte| (all << 8) | usize::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..4 {
            match place <= three.len() {
                true => out.push(char::from(alphabet[(number >> (18 - 6 * place)) & 63])),
                false if pad => out.push('='),
                false => {}
            }
        }
    }
    out
}
