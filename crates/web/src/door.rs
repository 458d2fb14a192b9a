//! The one door: every request passes here before any handler, and every answer on its way out.
//!
//! It finds the entry of the URL table, finds out who is asking, and lets in only whom that entry admits; what is
//! not in the table is shut. An address of the table with a slash too many at its end leads to that address. It checks where a state-changing request comes from, words errors for machines or for
//! people, and puts the security headers on. Handlers trust it and check only what depends on a job.

use std::collections::HashMap;
use std::rc::Rc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{ConnectionType, Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _, web};

use super::Web;
use super::address::{self, Client};
use super::auth::{self, Admitted, Ask, Caller, Shown};
use super::body::Watch;
use super::cors;
use super::csrf;
use super::error::WebError;
use super::headers;
use super::here::Person;
use super::pages;
use super::refused;
use super::routes::{self, Access, Found};
use soloist_domain::detail::Detail;
use soloist_store::accounts::Role;

/// The middleware.
///
/// # Errors
/// Never by itself: refusals are answers.
pub async fn door(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(web) = request.app_data::<web::Data<Web>>().cloned() else {
        return Ok(request.into_response(HttpResponse::InternalServerError().finish()));
    };
    let config = web.config();
    let peer = request.peer_addr().map(|peer| peer.ip());
    let client = Client::of(peer, request.headers(), &config.doors);
    request.extensions_mut().insert(client);
    let watch = Watch::of(&mut request, &web.connections, &config.doors);
    if let Some(answer) = cors::preflight(&config, request.request()) {
        let mut response = request.into_response(answer);
        put_headers(&web, &mut response);
        part(&web, &mut response);
        return Ok(response);
    }
    let mut why = None;
    let mut response = match admit(&web, &mut request).await {
        Ok(()) => next.call(request).await?.map_into_boxed_body(),
        Err(Refusal::SignIn(location)) => request.into_response(
            HttpResponse::SeeOther().insert_header((header::LOCATION, location)).finish(),
        ),
        Err(Refusal::Moved(location)) => request.into_response(
            HttpResponse::PermanentRedirect().insert_header((header::LOCATION, location)).finish(),
        ),
        Err(Refusal::Away) => {
            let answer = pages::away::answer(&web, request.request());
            request.into_response(answer)
        }
        Err(Refusal::Error(error)) => {
            let answer = error_answer(&web, request.request(), &error);
            why = Some(error.to_string());
            request.into_response(answer)
        }
    };
    let late = watch.as_ref().and_then(Watch::too_late);
    let failed = response.response().error().map(WebError::from_framework);
    let failed = late.clone().or(failed);
    if let Some(error) = failed {
        if let WebError::Internal { detail } = &error {
            tracing::error!(%detail, path = response.request().path(), "a request failed");
        }
        let answer = error_answer(&web, response.request(), &error);
        why = Some(error.to_string());
        response = response.into_response(answer);
    }
    let (request, status) = (response.request(), response.status());
    refused::note(&web, request, status, || Reader::name(request), why.as_deref()).await;
    put_headers(&web, &mut response);
    part(&web, &mut response);
    if late.is_some() {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(match watch {
        Some(watch) => response.map_body(|_, body| watch.keep(body)),
        None => response,
    })
}

/// A node that is about to end says so with each answer: the client, or the balancer, sends its next request over another connection,
/// and so to another node. A request that arrives while the node hangs up is lost, so the node waits until no more requests come. A health
/// check does not make it wait.
fn part<B>(web: &Web, response: &mut ServiceResponse<B>) {
    if web.live.is_draining() {
        if !matches!(response.request().path(), "/healthz" | "/readyz") {
            web.connections.on_last_answer();
        }
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
}

enum Refusal {
    /// A person: to the sign-in page.
    SignIn(String),
    /// The address is another.
    Moved(HeaderValue),
    /// A person whose session cannot be checked, because the store is away.
    Away,
    Error(WebError),
}

/// Who reads the answer, for the words and the navigation around an error. Unlike [`Caller`] it gives no access.
struct Reader(Rc<Caller>);

impl Reader {
    fn name(request: &HttpRequest) -> Option<String> {
        request.extensions().get::<Self>().map(|Self(caller)| caller.user.to_string())
    }
}

impl From<WebError> for Refusal {
    fn from(error: WebError) -> Self {
        Self::Error(error)
    }
}

/// Whether people read the answers under this path.
fn is_page(path: &str) -> bool {
    let machine = ["/api/", "/badge/", "/live", "/metrics", "/healthz", "/readyz"];
    !machine.iter().any(|prefix| path.starts_with(prefix))
}

async fn admit(web: &Web, request: &mut ServiceRequest) -> Result<(), Refusal> {
    let method = request.method().clone();
    let looking = matches!(method, Method::GET | Method::HEAD);
    let found = routes::find(&method, request.match_pattern().as_deref());
    if let (Found::Nothing, Some(location)) = (&found, without_slash(&method, request.request())) {
        return Err(Refusal::Moved(location));
    }
    let access = match &found {
        Found::Route(route) => route.access,
        // What does not exist is not told to strangers.
        Found::Nothing | Found::OtherMethods(_) => Access::Login,
    };
    // A load balancer's check knows no names, and tells nothing.
    if matches!(request.path(), "/healthz" | "/readyz") && access == Access::Open {
        return Ok(());
    }
    let shown = Shown::in_request(request.request(), &web.config());
    // A page of another origin acts by a token or not at all.
    let by_cookie = matches!(shown, Some(Shown::Session { .. }));
    let shown =
        shown.filter(|_| !(by_cookie && cors::is_from_elsewhere(&web.config(), request.request())));
    let misnamed = foreign_name(web, request.request());
    // A client that holds a token is no page that was led here.
    let program = matches!(shown, Some(Shown::Token { .. }));
    if let Some(name) = misnamed.as_deref().filter(|_| !program) {
        let host: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let config = web.config();
        let args = [("host", host.as_str()), ("url", config.public_url.as_str())];
        return Err(WebError::told(StatusCode::MISDIRECTED_REQUEST, "error-host", &args).into());
    }
    if access == Access::Open {
        return Ok(());
    }
    let person = request.extensions().get::<Person>().map(Person::caller);
    let caller = match shown {
        _ if person.is_some() => person,
        None => None,
        Some(shown) => {
            match identify(web, &shown, access, ask_of(request.request(), looking)).await {
                Ok(caller) => caller.map(|caller| caller.of_request(request.request())),
                Err(_) if access == Access::Guest && looking => None,
                Err(WebError::Unavailable { .. }) if looking && is_page(request.path()) => {
                    return Err(Refusal::Away);
                }
                Err(error) => {
                    if let Some(reader) = web.identities.recall(&shown) {
                        let reader = Reader(Rc::new(reader.of_request(request.request())));
                        request.extensions_mut().insert(reader);
                    }
                    return Err(error.into());
                }
            }
        }
    };
    let caller = caller.map(Rc::new);
    if let Some(caller) = &caller {
        request.extensions_mut().insert(Reader(Rc::clone(caller)));
    }
    let loopback = access == Access::LoopbackOrLogin
        && misnamed.is_none()
        && auth::is_here(request.request(), &web.config());
    let stranger = caller.is_none() && access != Access::Guest && !loopback;
    if stranger && looking && is_page(request.path()) && web.feed.outage().is_some() {
        return Err(Refusal::Away);
    }
    if stranger {
        return Err(sign_in(request));
    }
    if let Some(caller) = &caller {
        check_role(access, caller)?;
        let of_people = looking && is_page(request.path()) && access != Access::Guest;
        if of_people && let Err(error) = caller.bound.check_reads_all("pages") {
            return Err(WebError::from(error).into());
        }
    }
    match found {
        Found::Route(_) => {}
        Found::Nothing => {
            return Err(WebError::told(StatusCode::NOT_FOUND, "error-no-address", &[]).into());
        }
        Found::OtherMethods(allow) => return Err(WebError::MethodNotAllowed { allow }.into()),
    }
    if !looking {
        check_coding(request)?;
    }
    if !looking && let Err(error) = check_source(web, request, caller.as_deref()).await {
        refused::as_forgery(request.request());
        return Err(error.into());
    }
    if access != Access::Guest && caller.as_deref().is_none_or(|caller| !caller.is_admin()) {
        web.live.know_hidden().await;
    }
    if let Some(caller) = caller {
        request.extensions_mut().insert(Admitted(caller));
    }
    Ok(())
}

async fn identify(
    web: &Web,
    shown: &Shown,
    access: Access,
    ask: Ask,
) -> Result<Option<Caller>, WebError> {
    // The busiest doors: two readings more for each would be most of what the store has to do.
    if matches!(access, Access::Collector | Access::Account)
        && let Some(caller) = web.identities.seen_just_now(shown)
    {
        return Ok(Some(caller));
    }
    // Every question would be waited for in vain.
    if ask.looking
        && web.feed.outage().is_some()
        && let Some(caller) = web.identities.recall(shown)
    {
        return Ok(Some(caller));
    }
    web.identities.identify(&web.store, shown, ask).await
}

/// A person loads a page or sends a form. What a page reads by itself (the live socket, calls of the API, the same page once
/// more) keeps no session alive: a tab that was left open would be signed in for ever.
fn ask_of(request: &HttpRequest, looking: bool) -> Ask {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let by_script = header("sec-fetch-dest") == Some(b"empty".as_slice())
        || header("x-requested-by") == Some(b"script".as_slice());
    Ask { looking, renews: !looking || (is_page(request.path()) && !by_script) }
}

fn check_role(access: Access, caller: &Caller) -> Result<(), WebError> {
    let role = caller.role.with_article();
    const LOOKS: &str = "may only look: ask an operator";
    let (why, told) = match access {
        Access::Open | Access::Guest | Access::Account => return Ok(()),
        Access::Collector if caller.role == Role::Viewer => (LOOKS, "refused-only-looks"),
        Access::Collector => return Ok(()),
        _ if caller.role == Role::Collector => {
            ("only claims, extends, reports, takes and passes turns", "refused-collector")
        }
        Access::Operator if !caller.is_operator() => (LOOKS, "refused-only-looks"),
        Access::Admin if !caller.is_admin() => {
            ("may not do this: ask an admin", "refused-only-admins")
        }
        _ => return Ok(()),
    };
    let text = Detail::new(format!("{} is {role} and {why}", caller.user));
    Err(WebError::forbidden(text.told(told, &[("user", &caller.user)])))
}

/// State-changing requests: from our own pages, or by a token.
async fn check_source(
    web: &Web,
    request: &mut ServiceRequest,
    caller: Option<&Caller>,
) -> Result<(), WebError> {
    if caller.is_some_and(|caller| !caller.by_session()) {
        return Ok(());
    }
    csrf::check_source(&web.config().public_url, request.headers())?;
    // The sign-in form brings a secret of its own, which login.rs checks.
    if let (Some(caller), false) = (caller, request.path() == "/login") {
        let field = form_field(request, "csrf").await?;
        csrf::check_secret(&caller.csrf, request.request(), field.as_deref())?;
    }
    Ok(())
}

/// Of a body that is compressed nothing is read: what it becomes may have any length.
fn check_coding(request: &ServiceRequest) -> Result<(), WebError> {
    let lines = request.headers().get_all(header::CONTENT_ENCODING);
    let lines = lines.map(|line| line.to_str().unwrap_or("unreadable"));
    let mut codings = lines.flat_map(|line| line.split(',')).map(str::trim);
    let plain = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    let Some(coding) = codings.find(|coding| !plain(coding)) else { return Ok(()) };
    let coding: String = coding.chars().filter(|c| !c.is_control()).take(32).collect();
    let args = [("coding", coding.as_str())];
    Err(WebError::told(StatusCode::UNSUPPORTED_MEDIA_TYPE, "error-encoded", &args))
}

/// Where an address leads that has slashes too many at its end, if the table answers this method there. Nothing else leads anywhere.
fn without_slash(method: &Method, request: &HttpRequest) -> Option<HeaderValue> {
    let path = request.uri().path();
    let shorter = path.trim_end_matches('/');
    if shorter.len() == path.len() || shorter.is_empty() {
        return None;
    }
    let pattern = request.resource_map().match_pattern(shorter);
    if !matches!(routes::find(method, pattern.as_deref()), Found::Route(_)) {
        return None;
    }
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    HeaderValue::from_str(&format!("{shorter}{query}")).ok()
}

/// Reads one field of a form and puts the body back for the handler.
async fn form_field(request: &mut ServiceRequest, name: &str) -> Result<Option<String>, WebError> {
    if request.content_type() != "application/x-www-form-urlencoded" {
        return Ok(None);
    }
    let body =
        request.extract::<web::Bytes>().await.map_err(|error| WebError::from_framework(&error))?;
    request.set_payload(Payload::from(body.clone()));
    let fields = std::str::from_utf8(&body)
        .ok()
        .and_then(|text| web::Query::<HashMap<String, String>>::from_query(text).ok());
    Ok(fields.and_then(|mut fields| fields.remove(name)))
}

fn sign_in(request: &ServiceRequest) -> Refusal {
    if !is_page(request.path()) {
        return Refusal::Error(WebError::Unauthorized);
    }
    let wanted = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let next = if request.method() == Method::GET { wanted } else { "/" };
    let query: String = next
        .bytes()
        .map(|byte| match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    if next == "/" {
        Refusal::SignIn("/login".to_owned())
    } else {
        Refusal::SignIn(format!("/login?next={query}"))
    }
}

/// A name that this request asks for and that is not ours.
fn foreign_name(web: &Web, request: &HttpRequest) -> Option<String> {
    let config = web.config();
    let hosts = request.headers().get_all(header::HOST);
    let hosts = hosts.map(|value| value.to_str().unwrap_or("unreadable"));
    let target = request.uri().authority().map(|authority| authority.host());
    let mut all = hosts.chain(target);
    all.find(|host| !address::is_our_name(host, &config)).map(str::to_owned)
}

fn error_answer(web: &Web, request: &HttpRequest, error: &WebError) -> HttpResponse {
    if !is_page(request.path()) {
        return error.error_response();
    }
    let status: StatusCode = error.status_code();
    let reader = request.extensions().get::<Reader>().map(|Reader(caller)| Rc::clone(caller));
    let html = pages::error::render(web, request, reader.as_deref(), error);
    let mut answer =
        HttpResponse::build(status).content_type("text/html; charset=utf-8").body(html);
    error.dress(&mut answer);
    answer
}

fn put_headers(web: &Web, response: &mut ServiceResponse) {
    let config = web.config();
    let cors = cors::headers(&config, response.request());
    let headers = response.headers_mut();
    for (name, value) in cors {
        headers.append(name, value);
    }
    for (name, value) in headers::always(&config) {
        headers.insert(name, value);
    }
    if let Some(policy) = web.sso.policy(&config) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
