//! Accounts, tokens and links from the command line.

use std::time::Duration;

use serde_json::Value;
use soloist::store::credentials::{Credentials, Session};
use soloist::store::nodes::Nodes as _;

use super::{JOBS, PASSWORD, Place, user};

#[test]
fn a_password_is_long_enough_and_never_asked_for_without_a_terminal() {
    let place = Place::new(JOBS);
    let add = ["user", "add", "li", "--role", "operator"];
    let message = place.run(&add).fails(2);
    assert!(message.contains("--password-stdin"), "{message}");
    let piped = ["user", "add", "li", "--role", "operator", "--password-stdin"];
    let message = place.fed(&piped, "123456789\n").fails(2);
    assert!(message.contains("at least 10"), "{message}");
    for weak in ["1234567890\n", "password12\n", "soloist-li-li\n"] {
        let message = place.fed(&piped, weak).fails(2);
        assert!(message.contains("too easy to guess"), "{weak}: {message}");
    }
    place.fed(&piped, "tnqvxkzmwpbf\n").ok();
    let message = place.fed(&piped, PASSWORD).fails(4);
    assert!(message.contains("already"), "{message}");
    place.fed(&["user", "passwd", "nobody", "--password-stdin"], PASSWORD).fails(3);
}

#[tokio::test]
async fn a_new_password_or_role_signs_the_account_out() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let session = Session::new(user("li"), "c".to_owned(), String::new(), None);
    let hour = Duration::from_secs(3600);
    for change in [
        &["user", "passwd", "li", "--password-stdin"][..],
        &["user", "role", "li", "viewer"],
        &["user", "remove", "li"],
    ] {
        store.open_session("hash", &session, hour).await.expect("opened");
        assert!(store.session("hash", hour).await.expect("an answer").is_some());
        place.fed(change, "amber ferry under 9 moons").ok();
        assert_eq!(store.session("hash", hour).await.expect("an answer"), None, "{change:?}");
    }
}

#[tokio::test]
async fn the_last_admin_can_neither_be_removed_nor_demoted() {
    let place = Place::with_accounts().await;
    for args in [&["user", "remove", "ada"][..], &["user", "role", "ada", "viewer"]] {
        let message = place.run(args).fails(4);
        assert!(message.contains("last admin"), "{message}");
    }
    place.run(&["user", "role", "li", "admin"]).ok();
    place.run(&["user", "remove", "ada"]).ok();
    place.run(&["user", "remove", "li"]).fails(4);
    place.run(&["user", "remove", "ada"]).fails(3);
    let names: Vec<Value> = place.run(&["user", "list", "--json"]).json()["users"]
        .as_array()
        .expect("users")
        .iter()
        .map(|user| user["name"].clone())
        .collect();
    assert_eq!(names, ["eve", "li", "wang"]);
}

#[tokio::test]
async fn removing_an_account_ends_what_it_wanted() {
    let place = Place::with_accounts().await;
    place.run(&["on", "outbound", "--user", "li"]).ok();
    let said = place.run(&["user", "remove", "li"]).ok();
    assert!(said.contains("outbound (was the last"), "{said}");
    assert_eq!(place.run(&["status", "outbound", "--json"]).json()["wanted"], false);
}

#[tokio::test]
async fn a_new_token_stands_alone_on_standard_output() {
    let place = Place::with_accounts().await;
    let new = ["token", "new", "--user", "li", "--name", "laptop", "--expires", "90d"];
    let done = place.run(&new);
    assert!(done.err.contains("not shown again"), "{}", done.err);
    let secret = done.ok();
    let secret = secret.strip_suffix('\n').expect("a line");
    assert!(
        secret.starts_with("sol_") && secret.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    );

    let listed = place.run(&["token", "list", "--json"]);
    assert!(!listed.out.contains(secret), "a list never shows a secret");
    let listed = listed.json();
    let token = &listed["tokens"][0];
    assert_eq!((&token["user"], &token["name"]), (&Value::from("li"), &Value::from("laptop")));
    assert!(token["expires"].as_str().expect("an instant").ends_with('Z'));
    assert_eq!((&token["collector"], &token["sources"]), (&Value::Null, &serde_json::json!([])));
    let id = token["id"].as_str().expect("an id");
    let bound = ["token", "new", "--user", "li", "--collector", "c1"];
    place.run(&[&bound[..], &["--source", "shop", "--source", "mail"]].concat()).ok();
    let listed = place.run(&["token", "list"]).ok();
    assert!(listed.contains("collector c1, source mail, source shop"), "{listed}");
    place.run(&["token", "revoke", id]).ok();
    place.run(&["token", "revoke", id]).fails(3);
    place.run(&["token", "new", "--user", "nobody"]).fails(3);
}

#[tokio::test]
async fn an_invitation_stands_alone_on_standard_output_and_ends_with_the_next() {
    let place = Place::new("public_url = \"https://jobs.example.org\"\n");
    let add = ["user", "add", "li", "--role", "operator", "--invite", "--display-name", "李伟"];
    let done = place.run(&add);
    assert!(done.err.contains("once, for 48 hours"), "{}", done.err);
    let first = done.ok();
    assert!(first.starts_with("https://jobs.example.org/login?link="), "{first}");
    assert_eq!(first.lines().count(), 1);
    let li = place.run(&["user", "list", "--json"]).json()["users"][0].clone();
    assert_eq!((&li["display_name"], &li["has_password"]), (&"李伟".into(), &false.into()));
    let second = place.run(&["user", "passwd", "li", "--invite"]).ok();
    let store = place.store().await;
    let good = async |link: &str| {
        let secret = link.trim().split_once('=').expect("a link").1;
        store.link(&soloist::secrets::sha256_hex(secret), false).await.expect("answered").is_some()
    };
    assert!(!good(&first).await && good(&second).await);
    place.run(&["user", "add", "bot", "--role", "collector", "--invite"]).fails(4);
    let hidden =
        ["user", "add", "eve", "--role", "viewer", "--invite", "--display-name", "a\u{202e}b"];
    assert!(place.run(&hidden).fails(2).contains("U+202E"));
}

#[tokio::test]
async fn sessions_are_listed_and_ended_and_tokens_end_with_a_reset() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    for (hash, name) in [("first", "li"), ("other", "wang")] {
        let session = Session::new(user(name), "c".to_owned(), "192.0.2.7".to_owned(), None);
        store.open_session(hash, &session, Duration::from_secs(3600)).await.expect("opened");
    }
    let listed = place.run(&["session", "list", "--user", "li", "--json"]).json();
    assert_eq!(listed["sessions"].as_array().expect("sessions").len(), 1, "{listed}");
    assert_eq!(listed["sessions"][0]["from"], "192.0.2.7");
    let id = listed["sessions"][0]["id"].as_str().expect("an id").to_owned();
    place.run(&["session", "revoke", &id]).ok();
    place.run(&["session", "revoke", &id]).fails(3);
    place.run(&["session", "list", "--user", "nobody"]).fails(3);
    assert!(place.run(&["session", "list"]).ok().contains("wang"));
    place.run(&["token", "new", "--user", "li"]).ok();
    let expires = place.run(&["token", "list", "--json"]).json()["tokens"][0]["expires"].clone();
    assert!(expires.is_string(), "unless it is said, a token ends: {expires}");
    place.run(&["token", "new", "--user", "li", "--expires", "never"]).ok();
    place.run(&["token", "new", "--user", "li", "--expires", "6y"]).fails(2);
    place.fed(&["user", "passwd", "li", "--password-stdin"], PASSWORD).ok();
    assert_eq!(place.run(&["token", "list", "--json"]).json()["tokens"], serde_json::json!([]));
}

#[tokio::test]
async fn a_link_is_for_the_first_admin_and_later_for_admins_only() {
    let place = Place::new("public_url = \"https://jobs.example.org\"\n");
    let done = place.run(&["link"]);
    assert!(done.err.contains("first admin"), "{}", done.err);
    let url = done.ok();
    assert!(url.starts_with("https://jobs.example.org/login?"), "{url}");
    assert_eq!(url.lines().count(), 1);

    // An account of a program makes no admin.
    let place = Place::new("");
    place.fed(&["user", "add", "shop", "--role", "collector", "--password-stdin"], PASSWORD).ok();
    let done = place.run(&["link"]);
    let words = "this link makes the first admin, as soloist user add NAME --role admin does";
    assert!(done.err.contains(words), "{}", done.err);
    done.ok();

    let place = Place::with_accounts().await;
    let done = place.run(&["link"]);
    assert!(done.err.contains("ada"), "{}", done.err);
    done.ok();
    place.run(&["link", "--user", "li"]).fails(4);
    place.run(&["link", "--user", "nobody"]).fails(3);
}

#[tokio::test]
async fn a_link_leads_to_where_a_node_serves() {
    let place = Place::new("public_url = \"http://127.0.0.1:8080\"\n");
    assert!(place.run(&["link"]).ok().starts_with("http://127.0.0.1:8080/login?"));
    // `serve --listen 127.0.0.1:9000`, as its node says.
    let mut beat = super::beat("node-a");
    beat.url = "http://127.0.0.1:9000".to_owned();
    let store = place.store().await;
    store.beat(&beat).await.expect("heard");
    assert!(place.run(&["link"]).ok().starts_with("http://127.0.0.1:9000/login?"));
    // Several: the configured one, if somebody serves there.
    let mut other = super::beat("node-b");
    other.url = "http://127.0.0.1:8080".to_owned();
    store.beat(&other).await.expect("heard");
    assert!(place.run(&["link"]).ok().starts_with("http://127.0.0.1:8080/login?"));
}
