//! Accounts, passwords, sessions and tokens over HTTP, for programs and for people.

use reqwest::Response;
use serde_json::{Value, json};
use soloist::domain::name::UserName;
use soloist::secrets;
use soloist::store::accounts::{Accounts, Role};
use soloist::store::credentials::Credentials;
use soloist::store::journal::Journal;

use super::{On, PASSWORD, Server, problem};
use crate::support::wait::until_async;

on_every_store! {
    an_admin_makes_changes_and_removes_accounts
    an_invited_person_sets_the_password_once
    a_password_is_changed_with_the_old_one_and_ends_other_sessions
    sessions_are_listed_and_ended
    people_make_and_revoke_their_own_tokens_and_no_token_makes_one
}

const STRONG: &str = "amber ferry under 9 moons";

/// One call with a token; status and JSON.
async fn call(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = server.ask(method, path).bearer_auth(token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    read(request.send().await.unwrap()).await
}

async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// A browser that is signed in.
pub(super) struct Browser<'a> {
    server: &'a Server,
    pub(super) cookie: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    pub(super) async fn of(server: &'a Server, user: &str) -> Self {
        let (cookie, csrf) = server.session(&UserName::new(user).unwrap()).await;
        Self { server, cookie, csrf }
    }

    pub(super) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.server.ask(method, path).header("cookie", &self.cookie);
        request = request.header("x-csrf-token", &self.csrf);
        if let Some(body) = body {
            request = request.json(&body);
        }
        read(request.send().await.unwrap()).await
    }

    pub(super) async fn page(&self, path: &str, language: &str) -> String {
        let request = self.server.ask("GET", path).header("cookie", &self.cookie);
        let response = request.header("accept-language", language).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    /// What a page without scripts sends; status, and the page or where it leads.
    pub(super) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let all = fields.iter().copied().chain([("csrf", self.csrf.as_str())]);
        let encode = |text: &str| {
            let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            };
            text.bytes().map(byte).collect::<String>()
        };
        let body: Vec<String> =
            all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let request = self.server.ask("POST", path).header("cookie", &self.cookie);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let response = request.body(body.join("&")).send().await.unwrap();
        let status = response.status().as_u16();
        match response.headers().get("location") {
            Some(to) => (status, to.to_str().unwrap().to_owned()),
            None => (status, response.text().await.unwrap()),
        }
    }
}

async fn sign_in(server: &Server, fields: &[(&str, &str)]) -> Response {
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+"))).collect();
    server
        .ask("POST", "/login")
        .header("origin", server.url(""))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.join("&"))
        .send()
        .await
        .unwrap()
}

async fn acts(server: &Server) -> Vec<String> {
    let audits = server.store().audits(None, None, 50).await.unwrap();
    audits
        .into_iter()
        .map(|entry| format!("{} {} {}", entry.who, entry.act, entry.target))
        .collect()
}

fn detail(answer: &Value) -> &str {
    answer["detail"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

async fn an_admin_makes_changes_and_removes_accounts(on: On) {
    let server = Server::on(on).await;
    let ada = server.token("ada", Role::Admin).await;
    let (status, made) = call(
        &server,
        &ada,
        "POST",
        "/api/v1/users",
        Some(
            json!({"name": "li", "role": "operator", "password": STRONG, "display_name": " 李伟 "}),
        ),
    )
    .await;
    assert_eq!(status, 201, "{made}");
    assert_eq!((&made["name"], &made["display_name"]), (&json!("li"), &json!("李伟")));
    assert_eq!((&made["has_password"], &made["link"]), (&json!(true), &Value::Null));
    assert!(!made.to_string().contains("argon2"), "{made}");
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", STRONG)]).await.status(), 303);
    for (body, status, says) in [
        (json!({"name": "li", "role": "viewer"}), 409, "li already"),
        (json!({"name": "Li", "role": "viewer"}), 400, "field name"),
        (json!({"name": "wang", "role": "boss"}), 400, "field role"),
        (json!({"name": "wang"}), 400, "`role`"),
        (json!({"name": "wang", "role": "viewer", "display_name": "a\u{202e}b"}), 400, "U+202E"),
        (json!({"name": "wang", "role": "viewer", "password": "1234567890"}), 400, "most used"),
        (json!({"name": "wang", "role": "viewer", "password": "password12"}), 400, "easy to guess"),
        (
            json!({"name": "wang", "role": "viewer", "password": "soloist-wang"}),
            400,
            "easy to guess",
        ),
        (json!({"name": "wang", "role": "viewer", "password": "short"}), 400, "at least 10"),
    ] {
        let (answered, answer) = call(&server, &ada, "POST", "/api/v1/users", Some(body)).await;
        assert_eq!(answered, status, "{answer}");
        assert!(detail(&answer).contains(says), "{says}: {answer}");
    }
    assert_eq!(server.store().users().await.unwrap().len(), 2);

    let li = "/api/v1/users/li";
    let (status, changed) =
        call(&server, &ada, "PATCH", li, Some(json!({"role": "viewer", "display_name": ""}))).await;
    assert_eq!((status, &changed["role"]), (200, &json!("viewer")), "{changed}");
    assert!(changed.get("display_name").is_none(), "{changed}");
    let new = "nine amber ferries and a moon";
    let (status, _) = call(&server, &ada, "PATCH", li, Some(json!({ "password": new }))).await;
    assert_eq!(status, 200);
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", STRONG)]).await.status(), 401);
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", new)]).await.status(), 303);
    let (status, answer) =
        call(&server, &ada, "PATCH", "/api/v1/users/ada", Some(json!({"role": "viewer"}))).await;
    assert_eq!(status, 409, "{answer}");
    assert!(detail(&answer).contains("last admin"), "{answer}");
    assert_eq!(call(&server, &ada, "DELETE", "/api/v1/users/ada", None).await.0, 409);
    let (status, answer) = call(&server, &ada, "GET", "/api/v1/users/nobody", None).await;
    assert_eq!(status, 404, "{answer}");
    assert_eq!(call(&server, &ada, "DELETE", li, None).await.0, 204);
    assert_eq!(call(&server, &ada, "DELETE", li, None).await.0, 404);
    let (_, users) = call(&server, &ada, "GET", "/api/v1/users", None).await;
    assert_eq!(users["users"].as_array().unwrap().len(), 1, "{users}");
    let said = acts(&server).await;
    for act in ["user.add", "user.role", "user.display", "user.passwd", "user.remove"] {
        assert!(said.contains(&format!("ada {act} li")), "{act}: {said:?}");
    }
    // A bound token of an admin is for what it is bound to.
    let bound = server.bound_token("bot", Role::Admin, None, &["shop"]).await;
    let (status, answer) = call(&server, &bound, "GET", "/api/v1/users", None).await;
    assert_eq!(status, 403, "{answer}");
}

async fn an_invited_person_sets_the_password_once(on: On) {
    let server = Server::on(on).await;
    let ada = server.token("ada", Role::Admin).await;
    let invite = json!({"name": "li", "role": "operator"});
    let (status, made) = call(&server, &ada, "POST", "/api/v1/users", Some(invite)).await;
    assert_eq!((status, &made["has_password"]), (201, &json!(false)), "{made}");
    let link = made["link"].as_str().unwrap();
    let path = link.strip_prefix(&server.url("")).unwrap().to_owned();
    let secret = path.split_once('=').unwrap().1.to_owned();
    let page = server.ask("GET", &path).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Set the password of li") && page.contains("new-password"), "{page}");
    // Nobody signs in without a password.
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", "!")]).await.status(), 401);
    let set = async |password: &str, again: &str| {
        let fields = [("link", secret.as_str()), ("password", password), ("again", again)];
        sign_in(&server, &fields).await
    };
    assert_eq!(set(STRONG, "another").await.status(), 400);
    let weak = set("password12", "password12").await;
    assert_eq!(weak.status(), 400);
    assert!(weak.text().await.unwrap().contains("too easy to guess"));
    // Both send it at once; one password counts.
    let other = "nine amber ferries and a moon";
    let (one, two) = tokio::join!(set(STRONG, STRONG), set(other, other));
    let mut statuses = [one.status().as_u16(), two.status().as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 403]);
    assert_eq!(set(STRONG, STRONG).await.status(), 403);
    let good = if one.status() == 303 { STRONG } else { other };
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", good)]).await.status(), 303);

    // A reset takes everything away at once, and gives another link.
    let li = Browser::of(&server, "li").await;
    let (status, token) = li.call("POST", "/api/v1/tokens", Some(json!({"name": "ci"}))).await;
    assert_eq!(status, 201, "{token}");
    let reset = Some(json!({"reset": true}));
    let (status, answer) = call(&server, &ada, "PATCH", "/api/v1/users/li", reset).await;
    assert_eq!((status, &answer["has_password"]), (200, &json!(false)), "{answer}");
    assert!(answer["link"].as_str().unwrap().contains("/login?link="), "{answer}");
    assert_eq!(sign_in(&server, &[("name", "li"), ("password", good)]).await.status(), 401);
    assert_eq!(li.call("GET", "/api/v1/me", None).await.0, 401);
    let token = token["secret"].as_str().unwrap();
    assert_eq!(call(&server, token, "GET", "/api/v1/me", None).await.0, 401);
    // Programs have no password to set.
    let bot = json!({"name": "bot", "role": "collector"});
    let (status, made) = call(&server, &ada, "POST", "/api/v1/users", Some(bot)).await;
    assert_eq!((status, &made["link"]), (201, &Value::Null), "{made}");
    let reset = Some(json!({"reset": true}));
    assert_eq!(call(&server, &ada, "PATCH", "/api/v1/users/bot", reset).await.0, 409);
}

async fn a_password_is_changed_with_the_old_one_and_ends_other_sessions(on: On) {
    let server = Server::on(on).await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("li", Role::Operator, phc).await;
    let (here, there) = (Browser::of(&server, "li").await, Browser::of(&server, "li").await);
    let put = async |old: &str, new: &str| {
        here.call("PUT", "/api/v1/me/password", Some(json!({"old": old, "new": new}))).await
    };
    let (status, answer) = put("a wrong old password", STRONG).await;
    assert_eq!(status, 403, "{answer}");
    assert!(detail(&answer).contains("present password"), "{answer}");
    assert_eq!(put(PASSWORD, "1234567890").await.0, 400);
    assert_eq!(there.call("GET", "/api/v1/me", None).await.0, 200);
    assert_eq!(put(PASSWORD, STRONG).await.0, 204);
    assert_eq!(there.call("GET", "/api/v1/me", None).await.0, 401, "signed out elsewhere");
    let (_, me) = here.call("GET", "/api/v1/me", None).await;
    assert_eq!(
        (&me["name"], &me["role"], &me["by"]),
        (&json!("li"), &json!("operator"), &json!("session"))
    );
    // By the page, which says what was wrong.
    let form = [("old", STRONG), ("password", "password12"), ("again", "password12")];
    let (status, page) = here.form("/account/password", &form).await;
    assert_eq!(status, 400);
    assert!(page.contains("too easy to guess"), "{page}");
    let form = [("old", STRONG), ("password", PASSWORD), ("again", PASSWORD)];
    let done = here.form("/account/password", &form).await;
    assert_eq!(done, (303, "/account?said=password".to_owned()));
    let said = acts(&server).await;
    assert_eq!(said.iter().filter(|act| *act == "li user.passwd.own li").count(), 2, "{said:?}");
    assert!(said.contains(&"li user.passwd.failed li".to_owned()), "{said:?}");
    // As slow as a sign-in.
    let mut last = 0;
    for _ in 0..8 {
        last = put("a wrong old password", STRONG).await.0;
        if last == 429 {
            break;
        }
    }
    assert_eq!(last, 429);
    // A token changes no password.
    let token = server.token("olga", Role::Operator).await;
    let body = Some(json!({"old": PASSWORD, "new": STRONG}));
    assert_eq!(call(&server, &token, "PUT", "/api/v1/me/password", body).await.0, 403);
}

async fn sessions_are_listed_and_ended(on: On) {
    let server = Server::on(on).await;
    for name in ["li", "wang"] {
        server.user(name, Role::Viewer).await;
    }
    let (here, there) = (Browser::of(&server, "li").await, Browser::of(&server, "li").await);
    let wang = Browser::of(&server, "wang").await;
    let (_, listed) = here.call("GET", "/api/v1/me/sessions", None).await;
    let sessions = listed["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), 2, "{listed}");
    for browser in [&here, &there] {
        let hash = secrets::sha256_hex(browser.cookie.split_once('=').unwrap().1);
        assert!(!listed.to_string().contains(&hash), "the key is not shown");
    }
    let mut current = sessions.iter().filter(|one| one["current"] == true);
    let mine = current.next().unwrap()["id"].clone();
    assert!(current.next().is_none());
    assert_eq!(here.call("GET", "/api/v1/me", None).await.1["session"], mine);
    let other = sessions.iter().find(|one| one["current"] == false).unwrap()["id"].clone();
    let path = format!("/api/v1/me/sessions/{}", other.as_str().unwrap());
    assert_eq!(wang.call("DELETE", &path, None).await.0, 404, "nobody else's");
    assert_eq!(here.call("DELETE", &path, None).await.0, 204);
    assert_eq!(there.call("GET", "/api/v1/me", None).await.0, 401);
    assert_eq!(here.call("DELETE", &path, None).await.0, 404);
    let page = here.page("/account", "zh").await;
    assert!(page.contains("当前会话"), "{page}");
    let end = format!("/account/sessions/{}/end", mine.as_str().unwrap());
    assert_eq!(here.form(&end, &[]).await.0, 303);
    assert_eq!(here.call("GET", "/api/v1/me", None).await.0, 401);
    assert_eq!(wang.call("GET", "/api/v1/me", None).await.0, 200);
}

async fn people_make_and_revoke_their_own_tokens_and_no_token_makes_one(on: On) {
    let server = Server::on(on).await;
    for (name, role) in [("li", Role::Operator), ("vera", Role::Viewer), ("ada", Role::Admin)] {
        server.user(name, role).await;
    }
    let li = Browser::of(&server, "li").await;
    let make = json!({"name": "nightly", "expires_in_ms": 3_600_000});
    let (status, made) = li.call("POST", "/api/v1/tokens", Some(make)).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!((&made["user"], &made["name"]), (&json!("li"), &json!("nightly")));
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert_eq!(call(&server, &secret, "GET", "/api/v1/me", None).await.1["by"], "token");
    // A token makes none, ends no session, and revokes none, not even its own account's.
    let none = Some(json!({"name": "more"}));
    assert_eq!(call(&server, &secret, "POST", "/api/v1/tokens", none).await.0, 403);
    let id = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(call(&server, &secret, "DELETE", &id, None).await.0, 403);
    // Its use is noted soon.
    until_async("its use is noted", async || {
        let (_, listed) = li.call("GET", "/api/v1/tokens", None).await;
        assert!(!listed.to_string().contains(&secret), "{listed}");
        listed["tokens"][0]["last_used"].is_string().then_some(())
    })
    .await;
    for (body, says) in [
        (json!({"expires_in_ms": null}), "admins"),
        (json!({"expires_in_ms": 0}), "zero"),
        (json!({"expires_in_ms": 157_766_400_000_000_u64}), "5 years"),
        (json!({"name": "a\u{2066}b"}), "U+2066"),
    ] {
        let (status, answer) = li.call("POST", "/api/v1/tokens", Some(body)).await;
        assert_eq!(status, 400, "{answer}");
        assert!(detail(&answer).contains(says), "{answer}");
    }
    // Unless it is said, it ends.
    let (_, usual) = li.call("POST", "/api/v1/tokens", Some(json!({}))).await;
    assert!(usual["expires"].is_string(), "{usual}");
    // Of others only admins know and make.
    let vera = Browser::of(&server, "vera").await;
    let of_li = Some(json!({"user": "li"}));
    assert_eq!(vera.call("POST", "/api/v1/tokens", of_li.clone()).await.0, 403);
    assert_eq!(vera.call("GET", "/api/v1/tokens?user=li", None).await.0, 403);
    assert_eq!(vera.call("GET", "/api/v1/tokens", None).await.1, json!({"tokens": []}));
    assert_eq!(vera.call("DELETE", &id, None).await.0, 404);
    let ada = Browser::of(&server, "ada").await;
    assert_eq!(ada.call("POST", "/api/v1/tokens", of_li).await.0, 201);
    let never = Some(json!({"user": "vera", "expires_in_ms": null}));
    assert_eq!(ada.call("POST", "/api/v1/tokens", never).await.1["expires"], Value::Null);
    let (_, all) = ada.call("GET", "/api/v1/tokens", None).await;
    assert_eq!(all["tokens"].as_array().unwrap().len(), 4, "{all}");
    assert_eq!(li.call("DELETE", &id, None).await.0, 204);
    assert_eq!(call(&server, &secret, "GET", "/api/v1/me", None).await.0, 401);
    // By the page: the secret is in the answer, and on no later page.
    let (status, page) = li.form("/account/tokens", &[("name", "laptop"), ("expires", "30")]).await;
    assert_eq!(status, 200);
    let from = page.find("sol_").expect("the secret");
    let shown = &page[from..from + 68];
    assert_eq!(call(&server, shown, "GET", "/api/v1/me", None).await.0, 200);
    assert!(!li.page("/account", "en").await.contains("sol_"));
    let (_, asked) = li.form("/account/tokens/revoke", &[]).await;
    assert!(asked.contains("Revoke all your tokens?"), "{asked}");
    assert_eq!(li.form("/account/tokens/revoke", &[("confirm", "yes")]).await.0, 303);
    assert_eq!(call(&server, shown, "GET", "/api/v1/me", None).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_tab_keeps_no_session_alive_and_a_page_load_does() {
    let server = Server::start().await;
    server.user("li", Role::Viewer).await;
    let li = Browser::of(&server, "li").await;
    let hash = secrets::sha256_hex(li.cookie.split_once('=').unwrap().1);
    // As if it had last been used long ago.
    let used = || async {
        let open = server.store().sessions(None, soloist::web::auth::SESSION_IDLE).await.unwrap();
        open.into_iter().find(|one| one.hash == hash).unwrap().used
    };
    server.redis.run(&["EVAL", AGE, "1", "soloist:sessions", &hash]);
    let old = used().await;
    let ask = |path: &str, name: &'static str, value: &'static str| {
        server.ask("GET", path).header("cookie", &li.cookie).header(name, value).send()
    };
    for answer in [
        ask("/api/v1/nodes", "accept", "*/*").await,
        ask("/", "x-requested-by", "script").await,
        ask("/", "sec-fetch-dest", "empty").await,
    ] {
        assert_eq!(answer.unwrap().status(), 200);
        assert_eq!(used().await, old);
    }
    assert_eq!(ask("/", "sec-fetch-dest", "document").await.unwrap().status(), 200);
    assert!(used().await > old, "a person loaded a page");
}

/// Makes the session look unused for six hours.
const AGE: &str = "local s = cjson.decode(redis.call('HGET', KEYS[1], ARGV[1])) \
    s.used = s.used - 21600000 redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(s)) return 1";

#[tokio::test(flavor = "multi_thread")]
async fn people_are_called_as_they_say_beside_their_name() {
    let server = Server::start().await;
    for (name, role) in [("li", Role::Operator), ("wang", Role::Operator), ("ada", Role::Admin)] {
        server.user(name, role).await;
    }
    let li = Browser::of(&server, "li").await;
    let switch = Some(json!({"on": true}));
    for name in ["li", "wang"] {
        let one = Browser::of(&server, name).await;
        one.call("PUT", "/api/v1/jobs/outbound/participation", switch.clone()).await;
    }
    let refused = li.form("/preferences", &[("display_name", "a\u{200b}b")]).await;
    assert_eq!(refused.0, 400, "{}", refused.1);
    let (status, _) =
        li.form("/preferences", &[("display_name", "李伟"), ("back", "/account")]).await;
    assert_eq!(status, 303);
    until_async("every page knows", async || {
        li.page("/", "en").await.contains("李伟 (li)").then_some(())
    })
    .await;
    let (_, job) = li.call("GET", "/api/v1/jobs/outbound", None).await;
    let called: Vec<_> = job["participants"].as_array().unwrap().iter().collect();
    assert_eq!(called[0]["display_name"], "李伟", "{job}");
    assert!(called[1].get("display_name").is_none(), "only if it is set: {job}");
    assert!(li.page("/jobs/outbound", "zh").await.contains("李伟（li）"));
    // Nothing else of the account is changed by that form.
    let (_, me) = li.call("GET", "/api/v1/me", None).await;
    assert_eq!((&me["role"], &me["display_name"]), (&json!("operator"), &json!("李伟")));
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_add_change_and_remove_people_without_scripts() {
    let server = Server::start().await;
    let ada = server.user("ada", Role::Admin).await;
    server.user("vera", Role::Viewer).await;
    let vera = Browser::of(&server, "vera").await;
    let look = server.ask("GET", "/people").header("cookie", &vera.cookie).send().await.unwrap();
    assert_eq!(look.status(), 403);
    let ada = Browser::of(&server, ada.as_str()).await;
    let form = [("name", "li"), ("display_name", "李伟"), ("role", "operator")];
    let (status, page) = ada.form("/people", &form).await;
    assert_eq!(status, 200);
    assert!(page.contains("/login?link=") && page.contains("has not set a password yet"), "{page}");
    assert!(!ada.page("/people", "en").await.contains("/login?link="), "shown once");
    let (status, page) = ada.form("/people", &form).await;
    assert!(status == 409 && page.contains("value=\"李伟\""), "what was typed stays: {page}");
    assert_eq!(ada.form("/people/li/role", &[("role", "viewer")]).await.0, 303);
    let (status, page) = ada.form("/people/ada/role", &[("role", "viewer")]).await;
    assert!(status == 409 && page.contains("last admin"), "{page}");
    let (_, asked) = ada.form("/people/vera/link", &[]).await;
    assert!(asked.contains("Reset the password of vera?"), "{asked}");
    assert_eq!(vera.call("GET", "/api/v1/me", None).await.0, 200, "only asked");
    let (_, page) = ada.form("/people/vera/link", &[("confirm", "yes")]).await;
    assert!(page.contains("/login?link="), "{page}");
    assert_eq!(vera.call("GET", "/api/v1/me", None).await.0, 401);
    let (_, asked) = ada.form("/people/li/remove", &[]).await;
    assert!(asked.contains("Remove the account li?"), "{asked}");
    assert_eq!(ada.form("/people/li/remove", &[("confirm", "yes")]).await.0, 303);
    assert_eq!(server.store().user(&UserName::new("li").unwrap()).await.unwrap(), None);
    let gone = server.ask("DELETE", "/api/v1/users/li").header("cookie", &ada.cookie);
    let gone = gone.header("x-csrf-token", &ada.csrf).send().await.unwrap();
    assert_eq!(problem(gone).await.0, 404);
}
