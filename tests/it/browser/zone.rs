//! Instants as a browser shows them: in its own zone, or in that which the account has chosen, also in what is pushed.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::Driver;
use crate::support::browser::Window;
use crate::support::node::Ground;
use crate::support::wait::until_async;

const JOBS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", \"echo shipped; exec sleep 1000\"]\n\
    [[job]]\nname = \"labels\"\ncommand = [\"false\"]\n";

/// Each instant that is shown: when it is, in which form, and what is read.
const INSTANTS: &str = "return [...document.querySelectorAll('time[data-clock]')].map((one) => [one.dateTime, one.dataset.clock, one.textContent, Boolean(one.closest(arguments[0]))])";

/// Asserts that all instants of the page are said in `zone`, and that some stand within `css`.
async fn all_in(window: &Window, zone: &str, css: &str) {
    let all = window.client.execute(INSTANTS, vec![json!(css)]).await.expect("an answer");
    let all = all.as_array().expect("a list");
    assert!(all.iter().any(|one| one[3] == true), "no instant in {css}: {all:?}");
    for one in all {
        let text = |nth: usize| one[nth].as_str().expect("text");
        let at: Timestamp = text(0).parse().expect("an instant");
        let at = at.to_zoned(TimeZone::get(zone).expect("a zone"));
        let pattern = if text(1) == "minute" { "%H:%M" } else { "%H:%M:%S" };
        assert!(text(2).ends_with(&at.strftime(pattern).to_string()), "{one} in {zone}");
        if text(1) == "day" {
            assert_eq!(text(2), at.strftime("%Y-%m-%d %H:%M:%S").to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instants_are_in_the_zone_of_the_browser_until_the_account_has_chosen_one() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "admin");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let li = driver.window("li").await;
    let elsewhere = json!({"timezoneId": "America/St_Johns"});
    li.devtools("Emulation.setTimezoneOverride", elsewhere).await;
    li.sign_in(&node, "li").await;
    let open = async |path: &str| {
        li.client.goto(&format!("{}{path}", node.url)).await.expect("the page opens");
        li.element(".mark[data-mark='live']").await;
    };
    ground.must(&["on", "outbound", "--user", "li"]);
    li.element("#job-outbound[data-state='running'] time").await;
    all_in(&li, "America/St_Johns", "#job-outbound").await;

    open("/account").await;
    all_in(&li, "America/St_Johns", ".mine").await;
    let zone = li.element("#zone").await;
    assert_eq!(zone.prop("value").await.expect("an answer").as_deref(), Some(""));
    zone.select_by_label("Asia/Kathmandu").await.expect("chosen");
    li.element("form[action='/account/zone'] button").await.click().await.expect("clicked");
    li.element("[role=status].good").await;
    all_in(&li, "Asia/Kathmandu", ".mine").await;

    // What is pushed comes in the zone of the node; lines of the output with an instant alone.
    open("/").await;
    ground.must(&["hold", "labels", "--user", "li", "--reason", "stocktaking"]);
    li.element("#job-labels[data-state='held'] time").await;
    all_in(&li, "Asia/Kathmandu", "#job-labels").await;
    open("/jobs/outbound").await;
    ground.must(&["off", "outbound", "--user", "li"]);
    ground.must(&["on", "outbound", "--user", "li"]);
    until_async("a line of the second run is there", async || {
        let lines = "return new Set([...document.querySelectorAll('.log [data-run]')].map((one) => one.dataset.run)).size";
        (li.told(lines).await == 2).then_some(())
    })
    .await;
    all_in(&li, "Asia/Kathmandu", ".log").await;
    for path in ["/audit", "/nodes", "/people"] {
        open(path).await;
        all_in(&li, "Asia/Kathmandu", "main").await;
    }

    // As the browser again.
    open("/account").await;
    li.element("#zone").await.select_by_index(0).await.expect("chosen");
    li.element("form[action='/account/zone'] button").await.click().await.expect("clicked");
    li.element("[role=status].good").await;
    all_in(&li, "America/St_Johns", ".mine").await;
    let chosen = li.told("return document.querySelector('#zone').value").await;
    assert_eq!(chosen, Value::from(""));
    li.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_is_read_in_the_zone_that_the_page_shows() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "admin");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": "America/St_Johns"})).await;
    li.sign_in(&node, "li").await;
    ground.must(&["on", "outbound", "--user", "li"]);
    li.element("#job-outbound[data-state='running']").await;
    let zone = TimeZone::get("America/St_Johns").expect("a zone");
    let wall = |minutes: i64| {
        let at = Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
        at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M").to_string()
    };
    let says = "UTC-0";
    for (path, field, found) in [
        ("/audit?act=participation.on", "#sift-from", "table.audit tbody tr"),
        ("/jobs/outbound", "#output-since", "#output .log [data-run]"),
    ] {
        for (minutes, wanted) in [(-2, true), (3, false)] {
            li.client.goto(&format!("{}{path}", node.url)).await.expect("the page opens");
            li.element(".mark[data-mark='live']").await;
            let typed = wall(minutes);
            let type_in = format!("document.querySelector('{field}').value = '{typed}'");
            li.told(&type_in).await;
            let label =
                format!("return document.querySelector('label[for={}]').textContent", &field[1..]);
            let label = li.told(&label).await;
            assert!(label.as_str().expect("text").contains(says), "{label}");
            let send = format!(
                "document.querySelector('{field}').form.requestSubmit(document.querySelector('{field}').form.querySelector('button:not([type=button])'))"
            );
            li.told(&send).await;
            until_async("what was asked for is in the address", async || {
                let address = li.client.current_url().await.ok()?;
                address.as_str().contains("Z").then_some(())
            })
            .await;
            li.element(".mark[data-mark='live']").await;
            let seen =
                li.told(&format!("return document.querySelectorAll('{found}').length")).await;
            assert_eq!(seen.as_u64() > Some(0), wanted, "{path} from {typed}: {seen}");
            let kept = li.told(&format!("return document.querySelector('{field}').value")).await;
            assert_eq!(kept, Value::from(typed), "it stays in the form as it was typed");
        }
    }
    li.close().await;
}
