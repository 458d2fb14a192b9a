//! Deny by default: every line of the URL table, without login and with each role; headers; CSRF.

use soloist::store::accounts::Role;
use soloist::store::credentials::ApiToken;
use soloist::web::csrf::repeats;
use soloist::web::headers::CONTENT_SECURITY_POLICY;
use soloist::web::routes::{Access, ROUTES};

use super::{Server, problem};

pub(super) fn concrete(path: &str) -> String {
    path.replace("{job}", "outbound")
        .replace("{node}", "node-a")
        .replace("{source}", "shop")
        .replace("{claim}", "none")
        .replace("{rotation}", "supplier")
        .replace("{turn}", "1")
        .replace("{user}", "nobody")
        .replace("{alert}", "given_up")
        .replace("{channel}", "ops")
        .replace("{id}", "none")
        .replace("{hash}", "0")
        .replace("{path:.*}", "none.css")
}

fn is_page(path: &str) -> bool {
    !["/api/", "/badge/", "/live", "/metrics", "/healthz", "/readyz"]
        .iter()
        .any(|machine| path.starts_with(machine))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_listed_doors_opens_without_login() {
    let server = Server::start().await;
    for route in ROUTES {
        let path = concrete(route.path);
        let response = server.ask(route.method.as_str(), &path).send().await.unwrap();
        let status = response.status().as_u16();
        let line = format!("{} {path} -> {status}", route.method);
        match route.access {
            Access::Open | Access::Guest | Access::LoopbackOrLogin => {
                assert_ne!(status, 401, "{line}");
            }
            _ if is_page(route.path) => {
                assert_eq!(status, 303, "{line}");
                let location = response.headers()["location"].to_str().unwrap();
                assert!(location.starts_with("/login"), "{line} to {location}");
            }
            _ => assert_eq!(problem(response).await.0, 401, "{line}"),
        }
    }
    for (method, path) in [("GET", "/nowhere"), ("GET", "/Jobs/outbound"), ("GET", "//")] {
        let status = server.ask(method, path).send().await.unwrap().status().as_u16();
        assert_eq!(status, 303, "{method} {path}");
    }
    let unlisted = server.ask("GET", "/api/v1/nowhere").send().await.unwrap();
    assert_eq!(problem(unlisted).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_passes_exactly_the_doors_it_may() {
    let server = Server::start().await;
    let roles = [
        (Role::Viewer, server.token("vera", Role::Viewer).await),
        (Role::Operator, server.token("olga", Role::Operator).await),
        (Role::Admin, server.token("ada", Role::Admin).await),
        (Role::Collector, server.token("carl", Role::Collector).await),
    ];
    for route in ROUTES.iter().filter(|route| route.path != "/live") {
        for (role, token) in &roles {
            let path = concrete(route.path);
            let request = server.ask(route.method.as_str(), &path).bearer_auth(token);
            let status = request.send().await.unwrap().status().as_u16();
            let allowed = match route.access {
                Access::Open | Access::Guest => continue,
                Access::Account => true,
                Access::Login | Access::LoopbackOrLogin => *role != Role::Collector,
                Access::Collector => *role != Role::Viewer,
                Access::Operator => matches!(role, Role::Operator | Role::Admin),
                Access::Admin => *role == Role::Admin,
            };
            let line = format!("{} {path} as {} -> {status}", route.method, role.as_str());
            if allowed {
                assert!(![401, 403].contains(&status), "{line}");
            } else {
                assert_eq!(status, 403, "{line}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_404_and_other_methods_are_405() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    assert_eq!(problem(server.get("/api/v1/nowhere", &token).await).await.0, 404);
    assert_eq!(server.get("/nowhere", &token).await.status(), 404);
    assert_eq!(server.get("/jobs/outbound/nothing", &token).await.status(), 404);
    // A slash too many is no other address; the whole table: `odd`.
    assert_eq!(server.get("/jobs/outbound/", &token).await.status(), 308);
    let response =
        server.ask("PATCH", "/api/v1/jobs/outbound/hold").bearer_auth(&token).send().await.unwrap();
    assert_eq!(response.headers()["allow"], "PUT, DELETE");
    assert_eq!(problem(response).await.0, 405);
    let head = server.ask("HEAD", "/api/v1/jobs").bearer_auth(&token).send().await.unwrap();
    assert_eq!(head.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_the_security_headers() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    for (path, token) in [
        ("/", Some(&token)),
        ("/", None),
        ("/login", None),
        ("/healthz", None),
        ("/api/v1/jobs", Some(&token)),
        ("/api/v1/jobs", None),
        ("/nowhere", Some(&token)),
        ("/static/0/none.css", None),
    ] {
        let mut request = server.ask("GET", path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let headers = response.headers();
        assert_eq!(headers["content-security-policy"], CONTENT_SECURITY_POLICY, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "same-origin", "{path}");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{path}");
        assert!(headers.contains_key("cache-control"), "{path}");
        assert!(!headers.contains_key("strict-transport-security"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_cookies_and_headers_insist_on_it() {
    let server =
        Server::with(|config| config.public_url = "https://soloist.example".to_owned()).await;
    let response = server.ask("GET", "/login").send().await.unwrap();
    assert!(response.headers().contains_key("strict-transport-security"));
    let user = server.user("li", Role::Viewer).await;
    let (cookie, _) = server.session(&user).await;
    assert!(cookie.starts_with("__Host-soloist="));
    let set = response.headers()["set-cookie"].to_str().unwrap();
    for part in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(set.contains(part), "{set} lacks {part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_changes_nothing_without_its_secret_or_from_another_site() {
    let server = Server::start().await;
    let user = server.user("li", Role::Operator).await;
    let (cookie, csrf) = server.session(&user).await;
    let path = "/api/v1/jobs/outbound/participation";
    let put =
        |cookie: &str| server.ask("PUT", path).header("cookie", cookie).body(r#"{"on":true}"#);
    assert_eq!(problem(put(&cookie).send().await.unwrap()).await.0, 403);
    let wrong = put(&cookie).header("x-csrf-token", "0".repeat(64)).send().await.unwrap();
    assert_eq!(problem(wrong).await.0, 403);
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let request = put(&cookie).header("x-csrf-token", &csrf).header(name, value);
        assert_eq!(problem(request.send().await.unwrap()).await.0, 403, "{name}: {value}");
    }
    let right = put(&cookie)
        .header("x-csrf-token", &csrf)
        .header("origin", server.url(""))
        .header("sec-fetch-site", "same-origin");
    assert_eq!(right.send().await.unwrap().status(), 200);
    // Forms repeat it in a field; reading it must leave the body for the handler.
    let form = server
        .ask("POST", "/jobs/outbound/participation")
        .header("cookie", &cookie)
        .header("content-type", "application/x-www-form-urlencoded");
    let refused = form.try_clone().unwrap().body("on=false&csrf=0").send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let done = form.body(format!("on=false&csrf={csrf}")).send().await.unwrap();
    assert!(done.status().as_u16() < 400, "{}", done.status());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_that_posts_carries_the_secret_of_its_session() {
    let server = Server::start().await;
    let user = server.user("ada", Role::Admin).await;
    let (cookie, csrf) = server.session(&user).await;
    let mut jobs = 0;
    let pages = ROUTES.iter().filter(|route| route.method == "GET" && is_page(route.path));
    for path in pages.map(|route| concrete(route.path)).filter(|path| path != "/login") {
        let response = server.ask("GET", &path).header("cookie", &cookie).send().await.unwrap();
        let page = response.text().await.unwrap();
        for form in page.split("<form").skip(1).map(|form| form.split("</form>").next().unwrap()) {
            let posts = form.split('>').next().unwrap().contains("method=\"post\"");
            let fields: Vec<&str> = form.split("name=\"csrf\" value=\"").skip(1).collect();
            assert_eq!(fields.len(), usize::from(posts), "{path}: {form}");
            for field in fields {
                let given = field.split('"').next().unwrap();
                // Compressed pages do not show it as it is.
                assert!(given != csrf && repeats(&csrf, given), "{path}: {form}");
            }
            jobs += usize::from(form.contains("/jobs/") || form.contains("id=\"acts\""));
        }
    }
    assert!(jobs >= 3, "the form of all rows, and the forms of one job");
    // The sign-in form has a secret of its own.
    let page = server.ask("GET", "/login").send().await.unwrap();
    let own = page.headers()["set-cookie"].to_str().unwrap().to_owned();
    let own = own.split(['=', ';']).nth(1).unwrap();
    assert!(page.text().await.unwrap().contains(&format!("name=\"csrf\" value=\"{own}\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_open_and_metrics_are_for_this_machine_or_a_login() {
    let server = Server::start().await;
    assert_eq!(server.ask("GET", "/healthz").send().await.unwrap().status(), 200);
    assert_eq!(server.ask("GET", "/readyz").send().await.unwrap().status(), 200);
    let metrics = server.ask("GET", "/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(text.contains("soloist_job_state{job=\"outbound\",state=\"off\"} 1"), "{text}");
    assert!(text.contains("soloist_live_connections 0"), "{text}");
}

/// Every address that changes something, by whom it may be used.
fn changing() -> impl Iterator<Item = (&'static str, String, Access)> {
    let lines = ROUTES.iter().filter(|route| route.method != "GET");
    lines.map(|route| (route.method.as_str(), concrete(route.path), route.access))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_changes_anything_at_any_address_from_elsewhere_or_without_its_secret() {
    let server = Server::start().await;
    let user = server.user("ada", Role::Admin).await;
    let (cookie, csrf) = server.session(&user).await;
    let own = server.url("");
    for (method, path, _) in changing().filter(|(_, path, _)| path != "/login") {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let ask = |headers: &[(&str, &str)]| {
            let request =
                server.ask(method, &path).header("cookie", &cookie).header(form.0, form.1);
            let request = headers.iter().fold(request, |r, (name, value)| r.header(*name, *value));
            request.body("on=true&confirm=yes")
        };
        let right = ("x-csrf-token", csrf.as_str());
        for headers in [
            &[("origin", own.as_str())][..],
            &[("x-csrf-token", "0000"), ("origin", &own)],
            &[right, ("origin", "https://evil.example")],
            &[right, ("origin", "null")],
            &[right, ("origin", &own), ("sec-fetch-site", "cross-site")],
            &[right, ("origin", &own), ("sec-fetch-site", "same-site")],
        ] {
            let status = ask(headers).send().await.unwrap().status();
            assert_eq!(status, 403, "{method} {path} with {headers:?}");
        }
    }
    let session = server.ask("GET", "/api/v1/me").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(session.status(), 200, "nothing ended the session either");
}

/// How a token is bound to one name, of each kind.
pub(super) const KINDS: [fn(&mut ApiToken); 4] = [
    |token| token.sources = vec!["its-own".parse().unwrap()],
    |token| token.rotations = vec!["its-own".parse().unwrap()],
    |token| token.jobs = vec!["its-own".parse().unwrap()],
    |token| token.leases = vec!["its-own".parse().unwrap()],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_bound_to_a_name_changes_nothing_at_any_other_address() {
    let server = Server::start().await;
    for (nth, bind) in KINDS.iter().enumerate() {
        let name = |role: &str| format!("{role}-{nth}");
        let operator = server.token_that(&name("olga"), Role::Operator, bind).await;
        let admin = server.token_that(&name("ada"), Role::Admin, bind).await;
        let mut refused = 0;
        for token in [&operator, &admin] {
            for (method, path, access) in changing().filter(|(.., access)| *access != Access::Guest)
            {
                // A claim is only its own token's: to give back what is another's, or none, is to give back nothing.
                if path.starts_with("/api/v1/claims/") {
                    continue;
                }
                let request = server.ask(method, &path).bearer_auth(token);
                let request = match path.starts_with("/api/") {
                    true => request.header("content-type", "application/json").body("{}"),
                    false => request
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body("on=true&confirm=yes&name=x&role=viewer"),
                };
                let status = request.send().await.unwrap().status().as_u16();
                refused += usize::from(status == 403);
                assert!((400..500).contains(&status), "{method} {path} ({access:?}) -> {status}");
            }
        }
        assert!(refused > 40, "only {refused} were refused for their bounds");
    }
}
