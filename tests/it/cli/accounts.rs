//! Accounts, tokens and links from the command line.

use std::time::Duration;

use serde_json::Value;
use soloist::domain::time::StoreTime;
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
    place.fed(&piped, "1234567890\n").ok();
    let message = place.fed(&piped, PASSWORD).fails(4);
    assert!(message.contains("already"), "{message}");
    place.fed(&["user", "passwd", "nobody", "--password-stdin"], PASSWORD).fails(3);
}

#[tokio::test]
async fn a_new_password_or_role_signs_the_account_out() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let session = Session {
        user: user("li"),
        csrf: "c".to_owned(),
        created: StoreTime(0),
        expires: StoreTime(0),
    };
    let hour = Duration::from_secs(3600);
    for change in [
        &["user", "passwd", "li", "--password-stdin"][..],
        &["user", "role", "li", "viewer"],
        &["user", "remove", "li"],
    ] {
        store.open_session("hash", &session, hour).await.expect("opened");
        assert!(store.session("hash", hour).await.expect("an answer").is_some());
        place.fed(change, "another password").ok();
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
async fn a_link_is_for_the_first_admin_and_later_for_admins_only() {
    let place = Place::new("public_url = \"https://jobs.example.org\"\n");
    let done = place.run(&["link"]);
    assert!(done.err.contains("first admin"), "{}", done.err);
    let url = done.ok();
    assert!(url.starts_with("https://jobs.example.org/login?"), "{url}");
    assert_eq!(url.lines().count(), 1);

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
