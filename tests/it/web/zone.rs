//! The time zone of an account: what the server says and reads in it, without any script.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use soloist::store::accounts::Role;

use super::accounts::Browser;
use super::{On, Server};

on_every_store! {
    every_instant_of_a_page_is_in_the_zone_of_the_account_and_of_nobody_else
    what_is_typed_into_a_form_is_in_the_zone_of_the_account
}

/// Five hours and three quarters before UTC: no machine of ours has it.
const ZONE: &str = "Asia/Kathmandu";

/// When each `<time>` of a page is, and what it says.
fn instants(page: &str) -> Vec<(Timestamp, String, String)> {
    let of = |tag: &str, name: &str| {
        let (_, value) = tag.split_once(&format!("{name}=\"")).unwrap();
        value.split_once('"').unwrap().0.to_owned()
    };
    let tags = page.split("<time ").skip(1).map(|rest| {
        let (tag, text) = rest.split_once('>').unwrap();
        let text = text.split_once('<').unwrap().0.to_owned();
        (of(tag, "datetime").parse().unwrap(), of(tag, "data-clock"), text)
    });
    tags.collect()
}

fn said(at: Timestamp, form: &str, zone: &TimeZone) -> String {
    let pattern = if form == "minute" { "%H:%M" } else { "%H:%M:%S" };
    at.to_zoned(zone.clone()).strftime(pattern).to_string()
}

async fn choose(li: &Browser<'_>, zone: &str) -> (u16, String) {
    li.form("/account/zone", &[("zone", zone)]).await
}

async fn every_instant_of_a_page_is_in_the_zone_of_the_account_and_of_nobody_else(on: On) {
    let server = Server::on(on).await;
    server.user("li", Role::Admin).await;
    server.user("wang", Role::Admin).await;
    let (li, wang) = (Browser::of(&server, "li").await, Browser::of(&server, "wang").await);
    let switch = Some(json!({"on": true}));
    li.call("PUT", "/api/v1/jobs/outbound/participation", switch).await;
    let zone = TimeZone::get(ZONE).unwrap();
    assert_eq!(choose(&li, ZONE).await, (303, "/account?said=zone".to_owned()));
    for path in ["/", "/jobs/outbound", "/audit", "/account?said=zone", "/people", "/alerts"] {
        let page = li.page(path, "en").await;
        assert!(page.contains(&format!("<meta name=\"zone\" content=\"{ZONE}\">")), "{path}");
        assert!(page.contains("(UTC+05:45)"), "{path} says in which zone its picture is");
        let all = instants(&page);
        assert!(!all.is_empty() || ["/", "/alerts"].contains(&path), "{path} has instants");
        for (at, form, text) in all {
            assert!(text.ends_with(&said(at, &form, &zone)), "{path}: {at} {form} is {text}");
        }
        let page = wang.page(path, "en").await;
        assert!(page.contains("<meta name=\"zone\" content=\"\">"), "{path}");
        for (at, form, text) in instants(&page) {
            let here = said(at, &form, &TimeZone::system());
            assert!(text.ends_with(&here), "{path} for wang: {at} {form} is {text}");
        }
    }
    let page = li.page("/account", "zh").await;
    assert!(page.contains(&format!("<option selected>{ZONE}</option>")), "{page}");
    assert!(page.contains("跟随浏览器"), "{page}");

    // Only zones; and back to that of the browser.
    for wrong in ["Asia/Nowhere", "asia/kathmandu", "UTC+1", "../../etc/passwd"] {
        let (status, page) = choose(&li, wrong).await;
        assert!(status == 400 && page.contains("Unknown time zone"), "{wrong}: {page}");
    }
    assert!(li.page("/account", "en").await.contains(&format!("selected>{ZONE}<")));
    assert_eq!(choose(&li, "").await.0, 303);
    assert!(li.page("/", "en").await.contains("<meta name=\"zone\" content=\"\">"));
}

async fn what_is_typed_into_a_form_is_in_the_zone_of_the_account(on: On) {
    let server = Server::on(on).await;
    server.user("li", Role::Admin).await;
    let li = Browser::of(&server, "li").await;
    let switch = Some(json!({"on": true}));
    li.call("PUT", "/api/v1/jobs/outbound/participation", switch).await;
    choose(&li, ZONE).await;
    let typed = |minutes: i64| {
        let at = Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
        let wall = at.to_zoned(TimeZone::get(ZONE).unwrap());
        wall.strftime("%Y-%m-%dT%H:%M").to_string()
    };
    let (earlier, later) = (typed(-10), typed(10));
    let found = async |from: &str| {
        let page = li.page(&format!("/audit?act=participation.on&from={from}"), "en").await;
        assert!(page.contains(&format!("value=\"{from}\"")), "it stays in the form: {page}");
        assert!(page.contains("from (UTC+05:45)"), "{page}");
        !instants(&page).is_empty()
    };
    assert!(found(&earlier).await && !found(&later).await);
    let output = li.page(&format!("/jobs/outbound?since={later}"), "en").await;
    assert!(output.contains(&format!("value=\"{later}\"")), "{output}");
    assert!(output.contains("from (UTC+05:45)"), "{output}");

    let token = server.token("ada", Role::Admin).await;
    let rules = server.ask("PUT", "/api/v1/sources/shop").bearer_auth(&token).json(&json!({}));
    assert!(rules.send().await.unwrap().status().is_success());
    let put = [("key", "one"), ("payload", "{}"), ("at", later.as_str())];
    assert_eq!(li.form("/dispatch/sources/shop/tasks", &put).await.0, 303);
    let page = li.page("/dispatch/sources/shop", "en").await;
    assert!(page.contains("2026-12-01T08:00 (UTC+05:45)"), "{page}");
    let hour = later.split_once('T').unwrap().1;
    let due = instants(&page).into_iter().find(|(_, _, text)| text.contains(hour));
    let (at, ..) = due.unwrap_or_else(|| panic!("no task is due at {hour}: {page}"));
    let wait = at.duration_since(Timestamp::now()).as_secs();
    assert!((400..=610).contains(&wait), "{wait} s");
}
