//! The only URL table: every address, who may use it, and who answers.
//!
//! The door reads the access from here and shuts whatever is not listed; a test walks every line without login and
//! with each role, another compares the lines under `/api/` with the OpenAPI document. What a name in an address names, and who may
//! know of it, is said in `named.rs`.

use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{Route as Handler, web};

use super::{
    BODY_MAX, LARGE_BODY_MAX, api, assets, asyncapi, badge, health, live, login, metrics, named,
    oidc, openapi, pages, sse,
};

/// Who may use an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// All clients; none is asked who it is.
    Open,
    /// All clients, but it matters who they are (signing in and out, preferences).
    Guest,
    /// Accounts that are signed in, whatever they may do: the call itself asks for more, as for a secret.
    Account,
    /// Accounts that are signed in and are no collectors.
    Login,
    /// Collectors, operators and admins: the calls of dispatch and rotations that collectors make.
    Collector,
    /// Operators and admins; which job is checked where it is known.
    Operator,
    /// Admins.
    Admin,
    /// As [`Access::Login`], and all clients on this machine.
    LoopbackOrLogin,
}

/// One line of the table.
pub struct Route {
    /// Its method; GET answers HEAD too.
    pub method: Method,
    /// Its pattern.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Largest body in bytes, of all methods at this path.
    body_max: usize,
    handler: fn() -> Handler,
}

impl Route {
    const fn get(path: &'static str, access: Access, handler: fn() -> Handler) -> Self {
        Self::new(Method::GET, path, access, handler)
    }
    const fn post(path: &'static str, access: Access, handler: fn() -> Handler) -> Self {
        Self::new(Method::POST, path, access, handler)
    }
    const fn put(path: &'static str, access: Access, handler: fn() -> Handler) -> Self {
        Self::new(Method::PUT, path, access, handler)
    }
    const fn patch(path: &'static str, access: Access, handler: fn() -> Handler) -> Self {
        Self::new(Method::PATCH, path, access, handler)
    }
    const fn delete(path: &'static str, access: Access, handler: fn() -> Handler) -> Self {
        Self::new(Method::DELETE, path, access, handler)
    }
    const fn new(
        method: Method,
        path: &'static str,
        access: Access,
        handler: fn() -> Handler,
    ) -> Self {
        Self { method, path, access, body_max: BODY_MAX, handler }
    }
    /// With more in it than elsewhere.
    const fn large(mut self) -> Self {
        self.body_max = LARGE_BODY_MAX;
        self
    }
}

use Access::{Account, Admin, Collector, Guest, Login, LoopbackOrLogin, Open, Operator};

/// The table.
pub static ROUTES: &[Route] = &[
    // Pages.
    Route::get("/", Login, || web::to(pages::dashboard::page)),
    Route::post("/bulk", Operator, || web::to(pages::bulk::act)),
    Route::get("/wall", Login, || web::to(pages::wall::page)),
    Route::get("/jobs/{job}", Login, || web::to(pages::job::page)),
    Route::get("/jobs/{job}/configuration", Login, || web::to(pages::job::configuration)),
    Route::get("/jobs/{job}/audit", Login, || web::to(pages::job::past)),
    Route::post("/jobs/{job}/participation", Operator, || web::to(pages::job::participation)),
    Route::post("/jobs/{job}/hold", Operator, || web::to(pages::job::hold)),
    Route::post("/jobs/{job}/resume", Operator, || web::to(pages::job::resume)),
    Route::post("/jobs/{job}/move", Operator, || web::to(pages::job::move_)),
    Route::post("/jobs/{job}/drill", Admin, || web::to(pages::job::drill)),
    Route::get("/jobs/{job}/run", Operator, || web::to(pages::run::page)),
    Route::post("/jobs/{job}/run", Operator, || web::to(pages::run::run)),
    Route::post("/jobs/{job}/take-back", Operator, || web::to(pages::run::take_back)),
    Route::get("/schedule", Login, || web::to(pages::schedule::page)),
    Route::get("/nodes", Login, || web::to(pages::nodes::page)),
    Route::post("/nodes/{node}/drain", Operator, || web::to(pages::nodes::drain)),
    Route::post("/nodes/{node}/forget", Operator, || web::to(pages::nodes::forget)),
    Route::get("/dispatch", Login, || web::to(pages::dispatch::page)),
    Route::post("/dispatch/sources/{source}/pause", Operator, || web::to(pages::dispatch::pause)),
    Route::post("/dispatch/sources/{source}/block", Operator, || web::to(pages::dispatch::block)),
    Route::post("/dispatch/sources/{source}/revive", Operator, || web::to(pages::dead::revive_all)),
    Route::post("/dispatch/remove", Operator, || web::to(pages::remove::source)),
    Route::get("/dispatch/new", Operator, || web::to(pages::source_rules::new)),
    Route::post("/dispatch/sources", Operator, || web::to(pages::source_rules::add)),
    Route::get("/dispatch/sources/{source}", Login, || web::to(pages::source::page)),
    Route::get("/dispatch/sources/{source}/rules", Login, || web::to(pages::source_rules::page)),
    Route::post("/dispatch/sources/{source}/rules", Operator, || {
        web::to(pages::source_rules::change)
    }),
    Route::post("/dispatch/sources/{source}/tasks", Operator, || web::to(pages::source::put)),
    Route::get("/dispatch/dead", Login, || web::to(pages::dead::page)),
    Route::post("/dispatch/dead/{id}/revive", Operator, || web::to(pages::dead::revive)),
    Route::get("/dispatch/tasks", Login, || web::to(pages::task::find)),
    Route::post("/dispatch/tasks", Operator, || web::to(pages::tasks::act)),
    Route::get("/dispatch/tasks/{id}", Login, || web::to(pages::task::page)),
    Route::get("/rotations", Login, || web::to(pages::rotations::page)),
    Route::post("/rotations", Operator, || web::to(pages::ring::add)),
    Route::get("/rotations/new", Operator, || web::to(pages::ring::new)),
    Route::get("/rotations/ring/{rotation}", Login, || web::to(pages::ring::page)),
    Route::get("/rotations/ring/{rotation}/rules", Login, || web::to(pages::ring::rules_page)),
    Route::post("/rotations/ring/{rotation}/rules", Operator, || web::to(pages::ring::change)),
    Route::post("/rotations/remove", Operator, || web::to(pages::remove::rotation)),
    Route::get("/alerts", Login, || web::to(pages::alerts::page)),
    Route::post("/alerts/{alert}/mute", Operator, || web::to(pages::alerts::mute)),
    Route::post("/alerts/{alert}/unmute", Operator, || web::to(pages::alerts::unmute)),
    Route::post("/alerts/channels/{channel}/test", Admin, || web::to(pages::alerts::test)),
    Route::get("/audit", Login, || web::to(pages::audit::page)),
    Route::get("/api", Login, || web::to(pages::api::page)),
    Route::get("/account", Login, || web::to(pages::account::page)),
    Route::post("/account/zone", Login, || web::to(pages::zone::save)),
    Route::post("/account/password", Login, || web::to(pages::account::password)),
    Route::post("/account/sessions/{id}/end", Login, || web::to(pages::account::end_session)),
    Route::post("/account/tokens", Login, || web::to(pages::account::new_token)),
    Route::post("/account/tokens/revoke", Login, || web::to(pages::account::revoke_all)),
    Route::post("/account/tokens/{id}/revoke", Login, || web::to(pages::account::revoke_token)),
    Route::get("/people", Admin, || web::to(pages::people::page)),
    Route::post("/people", Admin, || web::to(pages::people::add)),
    Route::get("/people/{user}", Admin, || web::to(pages::person::page)),
    Route::post("/people/{user}/name", Admin, || web::to(pages::person::name)),
    Route::post("/people/{user}/sessions/end", Admin, || web::to(pages::person::end_sessions)),
    Route::post("/people/{user}/sessions/{id}/end", Admin, || web::to(pages::person::end_session)),
    Route::post("/people/{user}/tokens/{id}/revoke", Admin, || web::to(pages::person::revoke)),
    Route::post("/people/{user}/link/withdraw", Admin, || web::to(pages::person::withdraw)),
    Route::post("/people/{user}/role", Admin, || web::to(pages::people::role)),
    Route::post("/people/{user}/link", Admin, || web::to(pages::people::link)),
    Route::post("/people/{user}/remove", Admin, || web::to(pages::people::remove)),
    Route::post("/preferences", Guest, || web::to(pages::preferences::save)),
    Route::get("/login", Guest, || web::to(login::form)),
    Route::post("/login", Guest, || web::to(login::sign_in)),
    Route::get("/login/oidc", Guest, || web::to(oidc::start)),
    Route::get("/login/oidc/callback", Guest, || web::to(oidc::callback)),
    Route::post("/logout", Guest, || web::to(login::sign_out)),
    Route::get("/static/{hash}/{path:.*}", Open, || web::to(assets::serve)),
    Route::get("/favicon.ico", Open, || web::to(assets::favicon)),
    Route::get("/robots.txt", Open, || web::to(assets::robots)),
    // Machines.
    Route::get("/healthz", Open, || web::to(health::healthz)),
    Route::get("/readyz", Open, || web::to(health::readyz)),
    Route::get("/badge/{job}.svg", Login, || web::to(badge::picture)),
    Route::get("/metrics", LoopbackOrLogin, || web::to(metrics::metrics)),
    Route::get("/live", Login, || web::to(live::connect)),
    Route::get("/api/v1/openapi.json", Login, || web::to(openapi::document)),
    Route::get("/api/v1/asyncapi.json", Login, || web::to(asyncapi::document)),
    Route::get("/api/v1/live", Login, || web::to(sse::connect)),
    Route::get("/api/v1/status", Login, || web::to(api::status::get)),
    Route::get("/api/v1/jobs", Login, || web::to(api::jobs::list)),
    Route::get("/api/v1/jobs/{job}", Login, || web::to(api::jobs::one)),
    Route::put("/api/v1/jobs/{job}/participation", Operator, || web::to(api::participation::put)),
    Route::get("/api/v1/jobs/{job}/next", Login, || web::to(api::ticks::next)),
    Route::get("/api/v1/jobs/{job}/ticks", Login, || web::to(api::ticks::list)),
    Route::post("/api/v1/jobs/{job}/runs", Operator, || web::to(api::ticks::post)),
    Route::delete("/api/v1/jobs/{job}/runs/{tick}", Operator, || web::to(api::ticks::delete)),
    Route::delete("/api/v1/jobs/{job}/taken", Admin, || web::to(api::ticks::reset)),
    Route::put("/api/v1/jobs/{job}/hold", Operator, || web::to(api::hold::put)),
    Route::delete("/api/v1/jobs/{job}/hold", Operator, || web::to(api::hold::delete)),
    Route::post("/api/v1/jobs/{job}/move", Operator, || web::to(api::moves::post)),
    Route::post("/api/v1/jobs/{job}/drill", Admin, || web::to(api::drill::post)),
    Route::get("/api/v1/jobs/{job}/drill", Login, || web::to(api::drill::get)),
    Route::get("/api/v1/jobs/{job}/runs", Login, || web::to(api::runs::list)),
    Route::get("/api/v1/jobs/{job}/log", Login, || web::to(api::log::list)),
    Route::get("/api/v1/jobs/{job}/log.txt", Login, || web::to(api::log::text)),
    Route::get("/api/v1/jobs/{job}/timeline", Login, || web::to(api::timeline::list)),
    Route::get("/api/v1/nodes", Login, || web::to(api::nodes::list)),
    Route::put("/api/v1/nodes/{node}/drain", Operator, || web::to(api::nodes::drain)),
    Route::delete("/api/v1/nodes/{node}/drain", Operator, || web::to(api::nodes::undrain)),
    Route::delete("/api/v1/nodes/{node}", Operator, || web::to(api::nodes::forget)),
    Route::get("/api/v1/leases", Login, || web::to(api::leases::list)),
    Route::post("/api/v1/leases/{name}", Collector, || web::to(api::leases::post)),
    Route::post("/api/v1/leases/{name}/renew", Collector, || web::to(api::leases::renew)),
    Route::post("/api/v1/renewals", Collector, || web::to(api::leases::renew_all)).large(),
    Route::post("/api/v1/leases/{name}/release", Account, || web::to(api::leases::release)),
    Route::get("/api/v1/alerts", Login, || web::to(api::alerts::list)),
    Route::put("/api/v1/alerts/{alert}/mute", Operator, || web::to(api::alerts::mute)),
    Route::post("/api/v1/channels/{channel}/test", Admin, || web::to(api::alerts::test)),
    Route::get("/api/v1/audit", Login, || web::to(api::audit::list)),
    // Accounts.
    Route::get("/api/v1/users", Admin, || web::to(api::users::list)),
    Route::post("/api/v1/users", Admin, || web::to(api::users::post)),
    Route::get("/api/v1/users/{user}", Admin, || web::to(api::users::one)),
    Route::patch("/api/v1/users/{user}", Admin, || web::to(api::users::patch)),
    Route::delete("/api/v1/users/{user}", Admin, || web::to(api::users::delete)),
    Route::get("/api/v1/me", Login, || web::to(api::me::get)),
    Route::put("/api/v1/me/password", Login, || web::to(api::me::password)),
    Route::get("/api/v1/me/sessions", Login, || web::to(api::me::sessions)),
    Route::delete("/api/v1/me/sessions/{id}", Login, || web::to(api::me::end_session)),
    Route::get("/api/v1/sessions", Admin, || web::to(api::sessions::list)),
    Route::delete("/api/v1/sessions/{id}", Admin, || web::to(api::sessions::end)),
    Route::get("/api/v1/tokens", Login, || web::to(api::tokens::list)),
    Route::post("/api/v1/tokens", Login, || web::to(api::tokens::post)),
    Route::delete("/api/v1/tokens/{id}", Login, || web::to(api::tokens::delete)),
    // Dispatch.
    Route::get("/api/v1/sources", Login, || web::to(api::sources::list)),
    Route::get("/api/v1/sources/{source}", Login, || web::to(api::sources::one)),
    Route::put("/api/v1/sources/{source}", Operator, || web::to(api::sources::put)),
    Route::delete("/api/v1/sources/{source}", Operator, || web::to(api::sources::remove)),
    Route::put("/api/v1/sources/{source}/pause", Operator, || web::to(api::sources::pause)),
    Route::delete("/api/v1/sources/{source}/pause", Operator, || web::to(api::sources::resume)),
    Route::post("/api/v1/sources/{source}/block", Collector, || web::to(api::sources::block)),
    Route::post("/api/v1/tasks", Collector, || web::to(api::tasks::post)).large(),
    Route::get("/api/v1/tasks", Login, || web::to(api::tasks::list)),
    Route::get("/api/v1/tasks/{id}", Login, || web::to(api::tasks::one)),
    Route::delete("/api/v1/tasks/{id}", Operator, || web::to(api::tasks::remove)),
    Route::post("/api/v1/claims", Collector, || web::to(api::claims::post)),
    Route::post("/api/v1/claims/{claim}/extend", Collector, || web::to(api::claims::extend)),
    Route::delete("/api/v1/claims/{claim}", Collector, || web::to(api::claims::give_back)),
    Route::post("/api/v1/results", Collector, || web::to(api::results::post)).large(),
    Route::get("/api/v1/dead", Login, || web::to(api::dead::list)),
    Route::post("/api/v1/dead/{id}/revive", Operator, || web::to(api::dead::revive)),
    Route::get("/api/v1/collectors", Login, || web::to(api::collectors::list)),
    // Rotations.
    Route::get("/api/v1/rotations", Login, || web::to(api::rotations::list)),
    Route::get("/api/v1/rotations/{rotation}", Login, || web::to(api::rotations::one)),
    Route::put("/api/v1/rotations/{rotation}", Operator, || web::to(api::rotations::put)),
    Route::delete("/api/v1/rotations/{rotation}", Operator, || web::to(api::rotations::remove)),
    Route::post("/api/v1/rotations/{rotation}/turns", Collector, || web::to(api::turns::take)),
    Route::post("/api/v1/rotations/{rotation}/turns/{turn}/extend", Collector, || {
        web::to(api::turns::extend)
    }),
    Route::post("/api/v1/rotations/{rotation}/turns/{turn}/pass", Collector, || {
        web::to(api::turns::pass)
    }),
];

/// What the table says of a request.
pub enum Found {
    /// This line.
    Route(&'static Route),
    /// The address exists, for these methods.
    OtherMethods(String),
    /// No such address.
    Nothing,
}

/// Looks a request up; `pattern` is the one that its path matched.
#[must_use]
pub fn find(method: &Method, pattern: Option<&str>) -> Found {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let same_path = || ROUTES.iter().filter(|route| Some(route.path) == pattern);
    if let Some(route) = same_path().find(|route| route.method == *method) {
        return Found::Route(route);
    }
    let allow: Vec<&str> = same_path().map(|route| route.method.as_str()).collect();
    if allow.is_empty() { Found::Nothing } else { Found::OtherMethods(allow.join(", ")) }
}

/// Mounts every line of the table. Addresses without a name in them come first: they are compared, the others matched one
/// after the other until one fits, and of these the calls of programs first.
pub fn mount(app: &mut web::ServiceConfig) {
    mount_under("/", app);
}

/// As [`mount`], but only the lines of programs: no page, no live socket.
pub(super) fn mount_api(app: &mut web::ServiceConfig) {
    mount_under("/api/", app);
}

fn mount_under(prefix: &str, app: &mut web::ServiceConfig) {
    let mut mounted: Vec<&str> = Vec::new();
    let named = |route: &&Route| route.path.contains('{');
    let lines = || ROUTES.iter().filter(|route| route.path.starts_with(prefix));
    let plain = lines().filter(|route| !named(route));
    let mut others: Vec<&Route> = lines().filter(named).collect();
    others.sort_by_key(|route| !matches!(route.access, Collector | Account));
    for route in plain.chain(others) {
        if mounted.contains(&route.path) {
            continue;
        }
        mounted.push(route.path);
        let mut resource =
            web::resource(route.path).app_data(web::PayloadConfig::new(route.body_max));
        for line in ROUTES.iter().filter(|line| line.path == route.path) {
            resource = resource.route((line.handler)().method(line.method.clone()));
            if line.method == Method::GET && line.path != "/live" {
                resource = resource.route((line.handler)().method(Method::HEAD));
            }
        }
        match named::is_asked(route.path) {
            true => app.service(resource.wrap(from_fn(named::ask))),
            false => app.service(resource),
        };
    }
}
