//! Who may switch a job, and what they are told.

use std::process::Stdio;

use super::{Done, Place};

#[tokio::test]
async fn a_job_runs_for_as_long_as_somebody_wants_it() {
    let place = Place::with_accounts().await;
    place.run(&["on", "outbound", "--user", "li", "--reason", "orders"]).ok();
    let said = place.run(&["on", "outbound", "--user", "wang"]);
    assert!(said.err.contains("no living node"), "{}", said.err);
    said.ok();
    assert_eq!(place.run(&["status", "outbound", "--json"]).json()["wanted"], true);

    let said = place.run(&["off", "outbound", "--user", "li"]).ok();
    assert!(said.contains("still wanted by wang"), "{said}");
    let said = place.run(&["off", "outbound", "--user", "ada"]).ok();
    assert!(said.contains("nothing changed"), "{said}");
    assert_eq!(place.run(&["status", "outbound", "--json"]).json()["wanted"], true);
    let said = place.run(&["off", "outbound", "--user", "wang"]).ok();
    assert!(said.contains("this stops it"), "{said}");
    assert_eq!(place.run(&["status", "outbound", "--json"]).json()["state"], "off");
}

#[tokio::test]
async fn the_user_is_the_option_then_the_environment() {
    let place = Place::with_accounts().await;
    let on = |args: &[&str]| -> Done {
        let mut command = place.command(args);
        command.env("SOLOIST_USER", "li").stdin(Stdio::null()).output().expect("it starts").into()
    };
    assert!(on(&["on", "outbound"]).ok().starts_with("li "));
    assert!(on(&["on", "outbound", "--user", "wang"]).ok().starts_with("wang "));
}

#[tokio::test]
async fn who_may_not_switch_is_refused_and_told_why() {
    let place = Place::with_accounts().await;
    let message = place.run(&["on", "outbound", "--user", "nobody"]).fails(3);
    assert!(message.contains("soloist user add nobody --role operator"), "{message}");
    let message = place.run(&["on", "outbound", "--user", "eve"]).fails(4);
    assert!(message.contains("viewer"), "{message}");
    let message = place.run(&["on", "inbound", "--user", "li"]).fails(4);
    assert!(message.contains("operators of inbound (wang)"), "{message}");
    place.run(&["hold", "inbound", "--user", "li", "--reason", "x"]).fails(4);
    place.run(&["on", "inbound", "--user", "wang"]).ok();
    place.run(&["on", "inbound", "--user", "ada"]).ok();
}

#[tokio::test]
async fn an_unknown_job_is_not_found_and_the_known_ones_are_named() {
    let place = Place::with_accounts().await;
    for args in [
        &["status", "outbond"][..],
        &["why", "outbond"],
        &["on", "outbond", "--user", "li"],
        &["hold", "outbond", "--reason", "x"],
        &["resume", "outbond"],
        &["move", "outbond"],
        &["logs", "outbond"],
        &["runs", "outbond"],
    ] {
        let message = place.run(args).fails(3);
        assert!(message.contains("outbound, inbound"), "{message}");
    }
}

#[tokio::test]
async fn a_held_job_says_who_holds_it_and_why() {
    let place = Place::with_accounts().await;
    place.run(&["hold", "outbound", "--user", "li", "--reason", "stock-taking"]).ok();
    let said = place.run(&["on", "outbound", "--user", "wang"]);
    assert!(said.err.contains("held by li (stock-taking)"), "{}", said.err);
    said.ok();
    let table = place.run(&["status"]).ok();
    let row = table.lines().find(|line| line.starts_with("outbound")).expect("a row");
    assert!(row.contains("held") && row.contains("held by li: stock-taking"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
    place.run(&["hold", "outbound", "--user", "li", "--reason", " "]).fails(2);
    let said = place.run(&["resume", "outbound", "--user", "li"]).ok();
    assert!(said.contains("no longer held"), "{said}");
    assert_eq!(place.run(&["status", "outbound", "--json"]).json()["state"], "waiting");
}
