//! Whoever is refused something on a page is told why, and what to do, in the language of that page and in no other.

use std::collections::BTreeSet;

use serde_json::json;
use soloist::store::accounts::{Accounts as _, Changes, Role};
use soloist::web::routes::ROUTES;

use super::Server;
use super::accounts::Browser;
use super::dispatch::{claim, define, put};
use super::rotations::{granted, three};
use super::truth::beat_of;
use crate::support::api::Api;

/// What machines read is in English.
const MACHINES: [&str; 6] = ["/api/", "/live", "/metrics", "/healthz", "/readyz", "/badge/"];

/// Of a form: names and what was typed.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// What the forms of all pages have, so that what is missing is the thing itself.
const FILLED: Fields<'_> = &[
    ("confirm", "yes"),
    ("on", "true"),
    ("reason", "stocktaking"),
    ("act", "remove"),
    ("role", "viewer"),
    ("display_name", "Li"),
    ("for", "1m"),
    ("lasting", "1h"),
    // Nothing is made by it.
    ("name", "Not A Name"),
    ("key", "one"),
];

/// The sentences of a page that refuse something: an error's own page, a notice on a form, a line of a list that failed.
fn refusals(page: &str) -> Vec<String> {
    let places =
        [("data-detail>", "</div>"), ("role=\"alert\">", "</p>"), ("class=\"error\">", "<")];
    let found = places.into_iter().flat_map(|(begin, end)| {
        page.split(begin).skip(1).map(move |rest| rest.split(end).next().unwrap_or("").to_owned())
    });
    found.collect()
}

/// What is wrong with an answer to somebody who reads Chinese; nothing if it does not refuse.
fn fault(asked: &str, status: u16, page: &str) -> Option<String> {
    let said = refusals(page);
    if said.is_empty() {
        return (status >= 400).then(|| format!("{asked}: {status} says nothing: {page}"));
    }
    let chinese = |text: &String| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let wrong = said
        .iter()
        .find(|text| !chinese(text) || text.contains("lang=\"en\"") || text.contains("{$"));
    wrong.map(|text| format!("{asked}: {status}: {text}"))
}

/// An account that reads Chinese, signed in.
async fn reader<'a>(server: &'a Server, name: &str, role: Role) -> Browser<'a> {
    let user = server.user(name, role).await;
    let changes = Changes { language: Some("zh".to_owned()), ..Changes::default() };
    server.store().change_user(&user, &changes).await.unwrap();
    Browser::of(server, name).await
}

/// The answer to a page's address, or to its form without scripts.
async fn ask(
    server: &Server,
    who: &Browser<'_>,
    method: &str,
    path: &str,
    fields: Fields<'_>,
) -> (u16, String) {
    if method == "POST" {
        return who.form(path, fields).await;
    }
    let answer = server.ask(method, path).header("cookie", &who.cookie).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Names that are nothing, of every line of the URL table that people use.
fn nothing(path: &str) -> String {
    let mut parts = path.split('/').map(|part| match part {
        "{id}" => "0123456789abcdef0123456789abcdef",
        part if part.starts_with('{') => "no-such",
        part => part,
    });
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |path, part| format!("{path}/{part}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_address_names_and_is_not_there_is_said_in_the_readers_language() {
    let server = Server::start().await;
    let wang = reader(&server, "wang", Role::Admin).await;
    let vera = reader(&server, "vera", Role::Viewer).await;
    let (mut faults, mut missing) = (Vec::new(), BTreeSet::new());
    for route in ROUTES {
        let machine = MACHINES.iter().any(|start| route.path.starts_with(start));
        // What strangers are told is in the language of their browser, not in that of an account.
        if machine || ["/static/{hash}/{path:.*}", "/login", "/logout"].contains(&route.path) {
            continue;
        }
        let (method, path) = (route.method.as_str(), nothing(route.path));
        for (who, reader) in [("wang", &wang), ("vera", &vera)] {
            let (status, page) = ask(&server, reader, method, &path, FILLED).await;
            faults.extend(fault(&format!("{who}: {method} {path}"), status, &page));
            if status == 404 && route.path.contains('{') {
                missing.insert(route.path);
            }
        }
    }
    for (method, path) in [
        ("GET", "/no-such-page"),
        ("GET", "/Jobs/A B"),
        ("GET", "/jobs/Not-A-Name"),
        ("GET", "/dispatch/sources/Not-A-Name"),
        ("GET", "/rotations/ring/Not-A-Name"),
        ("POST", "/nodes/Not-A-Name/drain"),
        ("DELETE", "/jobs/outbound"),
        ("GET", "/audit?kind=none"),
        ("GET", "/audit?from=yesterday"),
        ("GET", "/audit?from=2026-05-04T00:00:00Z&to=2026-05-03T00:00:00Z"),
        ("GET", "/audit?kind=refusal"),
        ("GET", "/jobs/outbound?line=last"),
        ("GET", "/jobs/outbound?since=yesterday"),
    ] {
        for (who, reader) in [("wang", &wang), ("vera", &vera)] {
            let (status, page) = ask(&server, reader, method, path, &[]).await;
            faults.extend(fault(&format!("{who}: {method} {path}"), status, &page));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for path in ["/jobs/{job}", "/nodes/{node}/drain", "/people/{user}", "/alerts/{alert}/mute"] {
        assert!(missing.contains(path), "{path} was not asked for what is not there: {missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_that_is_refused_is_refused_in_the_readers_language() {
    let server = Server::start().await;
    let api = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let wang = reader(&server, "wang", Role::Admin).await;
    let oscar = reader(&server, "oscar", Role::Operator).await;
    server.user("machine", Role::Collector).await;
    define(&api, "shop", json!({"lease_ms": 60_000})).await;
    put(&api, &["one", "two"]).await;
    claim(&api, "1", json!({"max": 1})).await;
    let rules = three(json!({"lease_ms": 60_000}));
    super::dispatch::ok(&api, reqwest::Method::PUT, super::rotations::SUPPLIER, rules).await;
    granted(&api, "a", "one", json!({})).await;
    beat_of(&server, "node-a", &["outbound", "inbound"]).await;
    let long = "x".repeat(501);
    let mark = "a\u{202e}b";
    let mut faults = Vec::new();
    let yes = ("confirm", "yes");
    let cases: &[(&Browser<'_>, &str, Fields<'_>)] = &[
        (&oscar, "/jobs/inbound/participation", &[("on", "true")]),
        (&oscar, "/jobs/inbound/hold", &[("reason", "stock")]),
        (&wang, "/jobs/outbound/participation", &[("on", "true"), ("reason", &long)]),
        (&wang, "/jobs/outbound/participation", &[("on", "true"), ("reason", mark)]),
        (&wang, "/jobs/outbound/hold", &[("reason", " ")]),
        (&wang, "/jobs/outbound/move", &[("to", "")]),
        (&wang, "/jobs/outbound/move", &[("to", "no-such")]),
        (&wang, "/jobs/outbound/move", &[("to", "Not A Name")]),
        (&wang, "/jobs/outbound/drill", &[yes]),
        (&oscar, "/jobs/outbound/drill", &[yes]),
        (&oscar, "/people", &[("name", "x"), ("role", "viewer"), ("display_name", "")]),
        (&wang, "/nodes/node-a/forget", &[yes]),
        (&wang, "/bulk", &[("act", "hold"), ("job", "outbound"), ("reason", ""), yes]),
        (&oscar, "/bulk", &[("act", "on"), ("job", "inbound"), yes]),
        (&wang, "/bulk", &[("act", "none"), ("job", "outbound")]),
        (&wang, "/dispatch/sources/shop/block", &[("for", "soon")]),
        (&wang, "/dispatch/sources/shop/block", &[("for", "2days"), yes]),
        (&wang, "/dispatch/sources/shop/tasks", &[("key", "")]),
        (&wang, "/dispatch/sources", &[("name", "Not A Name")]),
        (&wang, "/dispatch/sources", &[("name", "shop"), ("gap", "1s")]),
        (&wang, "/dispatch/sources", &[("name", "new"), ("gap", "soon")]),
        (&wang, "/dispatch/sources", &[("name", "new"), ("reason", &long)]),
        (&wang, "/dispatch/tasks", &[("act", "none")]),
        (&wang, "/rotations", &[("name", "supplier"), ("type-0", "a")]),
        (&wang, "/rotations", &[("name", "new")]),
        (&wang, "/people", &[("name", "Not A Name"), ("role", "viewer"), ("display_name", "")]),
        (&wang, "/people", &[("name", "oscar"), ("role", "viewer"), ("display_name", "")]),
        (&wang, "/people", &[("name", "x"), ("role", "king"), ("display_name", "")]),
        (&wang, "/people", &[("name", "x"), ("role", "viewer"), ("display_name", mark)]),
        (&wang, "/people/machine/link", &[yes]),
        (&wang, "/people/wang/link", &[yes]),
        (&wang, "/people/machine/link/withdraw", &[]),
        (&wang, "/people/oscar/tokens/none/revoke", &[]),
        (&wang, "/people/oscar/role", &[("role", "king")]),
        (&wang, "/account/zone", &[("zone", "Mars/Base")]),
        (&wang, "/account/tokens", &[("name", mark), ("expires", "90d")]),
        (&wang, "/account/password", &[("old", "x"), ("new", "short"), ("again", "short")]),
        (&wang, "/preferences", &[("language", "tlh")]),
        (&wang, "/preferences", &[("theme", "pink")]),
    ];
    for (who, path, fields) in cases {
        let (status, page) = who.form(path, fields).await;
        let asked = format!("POST {path} {fields:?}");
        if refusals(&page).is_empty() {
            faults.push(format!("{asked}: {status}, and nothing is refused: {page}"));
        }
        faults.extend(fault(&asked, status, &page));
    }
    // Where a form is not sent by a page of ours.
    let request = server.ask("POST", "/jobs/outbound/hold").header("cookie", &wang.cookie);
    let form = "application/x-www-form-urlencoded";
    for (name, value) in [("origin", "http://elsewhere.example"), ("x-csrf-token", "guessed")] {
        let request = request.try_clone().unwrap().header("content-type", form);
        let answer = request.header(name, value).body("reason=x").send().await.unwrap();
        let status = answer.status().as_u16();
        assert_eq!(status, 403, "{name}");
        faults.extend(fault(name, status, &answer.text().await.unwrap()));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// The last one who can give everybody their rights back.
#[tokio::test(flavor = "multi_thread")]
async fn that_the_last_admin_stays_is_said_in_the_readers_language() {
    let server = Server::start().await;
    let hash = "$argon2id$a-password".to_owned();
    let ada = server.account("ada", Role::Admin, hash).await;
    let changes = Changes { language: Some("zh".to_owned()), ..Changes::default() };
    server.store().change_user(&ada, &changes).await.unwrap();
    let ada = Browser::of(&server, "ada").await;
    for (path, fields) in [
        ("/people/ada/role", vec![("role", "viewer")]),
        ("/people/ada/remove", vec![("confirm", "yes")]),
    ] {
        let (status, page) = ada.form(path, &fields).await;
        assert_eq!(fault(path, status, &page), None);
        assert!(page.contains("最后一个有密码的管理员"), "{path}: {status} {page}");
    }
}

/// A program is told what a program can do.
#[tokio::test(flavor = "multi_thread")]
async fn programs_are_told_in_english_and_people_what_to_press() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let (status, detail) = super::problem(server.get("/api/v1/jobs/no-such", &token).await).await;
    assert!(status == 404 && detail.contains("GET /api/v1/jobs lists them"), "{detail}");
    let li = Browser::of(&server, "li").await;
    let answer = server.ask("GET", "/jobs/no-such").header("cookie", &li.cookie);
    let page = answer.header("accept-language", "en").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("There is no job no-such") && !page.contains("GET /api"), "{page}");
}
