//! Signing in and out: the password, the link, the throttle.

use reqwest::{RequestBuilder, Response};
use soloist::domain::name::UserName;
use soloist::secrets;
use soloist::store::accounts::{Accounts, Role};
use soloist::store::journal::Journal;

use super::{PASSWORD, Server};

/// What a browser sends with our form.
fn form(server: &Server, fields: &[(&str, &str)]) -> RequestBuilder {
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+"))).collect();
    server
        .ask("POST", "/login")
        .header("origin", server.url(""))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.join("&"))
}

async fn sign_in(server: &Server, name: &str, password: &str) -> Response {
    form(server, &[("name", name), ("password", password)]).send().await.unwrap()
}

fn session_cookie(response: &Response) -> Option<String> {
    response
        .headers()
        .get_all("set-cookie")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .find(|value| value.starts_with("soloist=") && !value.starts_with("soloist=;"))
        .map(str::to_owned)
}

async fn acts(server: &Server) -> Vec<String> {
    let audits = server.store().audits(None, None, 50).await.unwrap();
    audits.into_iter().map(|entry| format!("{} {}", entry.who, entry.act)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_with_the_password_and_ends_with_signing_out() {
    let server = Server::start().await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    let user = server.account("li", Role::Operator, phc).await;
    let wrong = sign_in(&server, "li", "something else").await;
    assert_eq!(wrong.status(), 401);
    assert!(session_cookie(&wrong).is_none());
    let (old, _) = server.session(&user).await;
    let fields = [("name", "li"), ("password", PASSWORD), ("next", "/jobs/outbound")];
    let right = form(&server, &fields).header("cookie", &old).send().await.unwrap();
    assert_eq!(right.status(), 303);
    assert_eq!(right.headers()["location"], "/jobs/outbound");
    let set = session_cookie(&right).unwrap();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "{set}");
    let cookie = set.split(';').next().unwrap().to_owned();
    let look = |cookie: String| server.ask("GET", "/api/v1/jobs").header("cookie", cookie).send();
    assert_eq!(look(cookie.clone()).await.unwrap().status(), 200);
    assert_eq!(look(old).await.unwrap().status(), 401, "the session before is gone");
    // Also of somebody else, whose browser it was before.
    let wang = server.user("wang", Role::Operator).await;
    let (of_wang, _) = server.session(&wang).await;
    let fields = [("name", "li"), ("password", PASSWORD)];
    let again = form(&server, &fields).header("cookie", &of_wang).send().await.unwrap();
    assert_eq!(again.status(), 303);
    assert_eq!(look(of_wang).await.unwrap().status(), 401, "nobody is signed in twice");
    let hash = secrets::sha256_hex(cookie.split_once('=').unwrap().1);
    let csrf = {
        use soloist::store::credentials::Credentials;
        server.store().session(&hash, soloist::web::auth::SESSION_IDLE).await.unwrap().unwrap().csrf
    };
    let out = server
        .ask("POST", "/logout")
        .header("cookie", &cookie)
        .header("x-csrf-token", csrf)
        .send()
        .await
        .unwrap();
    assert_eq!(out.status(), 303);
    assert_eq!(out.headers()["clear-site-data"], "\"storage\"");
    assert_eq!(look(cookie).await.unwrap().status(), 401);
    assert_eq!(acts(&server).await, ["li logout", "li login", "li login", "li login.failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_from_elsewhere_signs_nobody_in() {
    let server = Server::start().await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("li", Role::Operator, phc).await;
    let body = format!("name=li&password={}", PASSWORD.replace(' ', "+"));
    let plain =
        || server.ask("POST", "/login").header("content-type", "application/x-www-form-urlencoded");
    let foreign = plain().header("origin", "http://evil.example").body(body.clone());
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    assert_eq!(plain().body(body.clone()).send().await.unwrap().status(), 403);
    // Without an origin the secret of the form counts, together with its cookie.
    let shown = server.ask("GET", "/login").send().await.unwrap();
    let set = shown.headers()["set-cookie"].to_str().unwrap().to_owned();
    let cookie = set.split(';').next().unwrap().to_owned();
    let secret = cookie.split_once('=').unwrap().1.to_owned();
    assert!(shown.text().await.unwrap().contains(&secret));
    let own = plain().header("cookie", cookie).body(format!("{body}&csrf={secret}"));
    assert_eq!(own.send().await.unwrap().status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_elsewhere_after_signing_in() {
    let server = Server::start().await;
    let user = server.user("li", Role::Viewer).await;
    let (cookie, _) = server.session(&user).await;
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX:1", ""] {
        let path = format!("/login?next={next}");
        let response = server.ask("GET", &path).header("cookie", &cookie).send().await.unwrap();
        assert_eq!(response.status(), 303, "{next}");
        assert_eq!(response.headers()["location"], "/", "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down_for_known_and_unknown_names() {
    let server = Server::start().await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("li", Role::Operator, phc).await;
    for name in ["li", "nobody"] {
        let mut refused = None;
        for _ in 0..8 {
            let response = sign_in(&server, name, "wrong password").await;
            if response.status() == 429 {
                refused = Some(response);
                break;
            }
            assert_eq!(response.status(), 401);
        }
        let refused = refused.unwrap_or_else(|| panic!("{name} was never throttled"));
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=120).contains(&wait), "{wait}");
        let right = sign_in(&server, name, PASSWORD).await;
        assert_eq!(right.status(), 429, "the right password has to wait too");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_makes_the_first_admin_once_and_looking_does_not_use_it_up() {
    let server = Server::start().await;
    let url = secrets::new_link(server.store(), None, &server.url("")).await.unwrap();
    let path = url.strip_prefix(&server.url("")).unwrap().to_owned();
    let link = path.split_once('=').unwrap().1.to_owned();
    for _ in 0..2 {
        assert_eq!(server.ask("GET", &path).send().await.unwrap().status(), 200);
    }
    let send = |name: &'static str, password: &'static str| {
        form(&server, &[("link", &link), ("name", name), ("password", password)]).send()
    };
    assert_eq!(send("ada", "too short").await.unwrap().status(), 400);
    assert_eq!(send("NOT A NAME", PASSWORD).await.unwrap().status(), 400);
    // Both hold the form at once; one of them becomes the admin.
    let (one, two) = tokio::join!(send("ada", PASSWORD), send("bob", PASSWORD));
    let mut statuses = [one.unwrap().status().as_u16(), two.unwrap().status().as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses[0], 303);
    assert!([403, 409].contains(&statuses[1]), "{statuses:?}");
    let users = server.store().users().await.unwrap();
    assert_eq!(users.len(), 1);
    assert_eq!(users[0].role, Role::Admin);
    assert_eq!(server.ask("GET", &path).send().await.unwrap().status(), 403);
    assert_eq!(send("eve", PASSWORD).await.unwrap().status(), 403);
    let late = secrets::new_link(server.store(), None, &server.url("")).await.unwrap();
    let late = late.split_once('=').unwrap().1.to_owned();
    let fields = [("link", late.as_str()), ("name", "eve"), ("password", PASSWORD)];
    assert_eq!(form(&server, &fields).send().await.unwrap().status(), 409);
}

/// The order of docs/embedding.md: the program's account first, then the page.
#[tokio::test(flavor = "multi_thread")]
async fn the_link_for_the_first_admin_stays_good_beside_accounts_that_are_no_admins() {
    let server = Server::start().await;
    let url = secrets::new_link(server.store(), None, &server.url("")).await.unwrap();
    let path = url.strip_prefix(&server.url("")).unwrap().to_owned();
    let link = path.split_once('=').unwrap().1.to_owned();
    server.user("shop", Role::Collector).await;
    server.user("li", Role::Operator).await;
    let page = server.ask("GET", &path).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("Make the first admin"));
    let send = async |name: &str| {
        let fields = [("link", link.as_str()), ("name", name), ("password", PASSWORD)];
        form(&server, &fields).send().await.unwrap()
    };
    // A name that is taken does not use the link up.
    let taken = send("shop").await;
    assert_eq!(taken.status(), 409);
    assert!(taken.text().await.unwrap().contains("There is an account shop already"));
    assert_eq!(send("ada").await.status(), 303);
    let users = server.store().users().await.unwrap();
    assert!(users.iter().any(|user| user.name.as_str() == "ada" && user.role == Role::Admin));
    assert_eq!(send("eve").await.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_for_an_admin_signs_that_admin_in_once() {
    let server = Server::start().await;
    let ada = server.user("ada", Role::Admin).await;
    server.user("vera", Role::Viewer).await;
    let link = |url: String| url.split_once('=').unwrap().1.to_owned();
    let good = link(secrets::new_link(server.store(), Some(ada), "").await.unwrap());
    let signed = form(&server, &[("link", &good)]).send().await.unwrap();
    assert_eq!(signed.status(), 303);
    assert!(session_cookie(&signed).is_some());
    assert_eq!(form(&server, &[("link", &good)]).send().await.unwrap().status(), 403);
    let vera = UserName::new("vera").unwrap();
    let not_admin = link(secrets::new_link(server.store(), Some(vera), "").await.unwrap());
    assert_eq!(form(&server, &[("link", &not_admin)]).send().await.unwrap().status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sign_in_page_says_what_is_true_of_accounts_and_links() {
    let server = Server::start().await;
    let page = async |path: &str, language: &str| {
        let ask = server.ask("GET", path).header("accept-language", language);
        ask.send().await.unwrap().text().await.unwrap()
    };
    let nobody = page("/login", "en").await;
    assert!(
        nobody.contains("No account exists yet") && nobody.contains("soloist link"),
        "{nobody}"
    );
    assert!(!nobody.contains("An admin adds one"), "there is no admin");
    let url = secrets::new_link(server.store(), None, &server.url("")).await.unwrap();
    let path = url.strip_prefix(&server.url("")).unwrap().to_owned();
    assert!(page(&path, "en").await.contains("There is no admin yet"));

    // `soloist user add --role admin`, before anybody used the link.
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("li", Role::Admin, phc).await;
    let link = path.split_once('=').unwrap().1.to_owned();
    let fields = [("link", link.as_str()), ("name", "ada"), ("password", PASSWORD)];
    for _ in 0..2 {
        let late = page(&path, "en").await;
        assert!(late.contains("there is one already: sign in with your own account"), "{late}");
        assert!(!late.contains("There is no admin yet") && !late.contains("30 minutes"));
        let sent = form(&server, &fields).send().await.unwrap();
        assert_eq!(sent.status(), 409);
        assert!(sent.text().await.unwrap().contains("there is one already"));
    }
    assert!(page(&path, "zh").await.contains("请用自己的账号登录"));
    assert!(page("/login", "en").await.contains("An admin adds one"));
    assert_eq!(sign_in(&server, "li", PASSWORD).await.status(), 303);
}
