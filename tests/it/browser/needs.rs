//! What needs somebody, on an open page: one thing while the store is away, and rows that stay where they are.

use serde_json::json;

use super::Driver;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

const JOBS: &str = "[[job]]\nname = \"outbound\"\ngroup = \"Warehouse\"\ncommand = [\"sleep\", \"1000\"]\nmin_uptime = \"500ms\"\n\
    [[job]]\nname = \"crashed\"\ncommand = [\"false\"]\ngive_up_after = 1\n\
    [[job]]\nname = \"labels\"\ngroup = \"Warehouse\"\ncommand = [\"true\"]\n\
    [[job]]\nname = \"prices\"\ncommand = [\"true\"]\n";

/// The rows in their order with their headings, the number of things that need somebody, and what of them is no job.
const SEEN: &str = "return { rows: [...document.querySelectorAll('[data-rows] > *')].map((one) => one.dataset.job ?? one.textContent), \
    needs: document.querySelector('[data-summary] [data-state=trouble] strong')?.textContent ?? '0', \
    states: [...new Set([...document.querySelectorAll('[data-rows] > .row')].map((one) => one.dataset.state))], \
    lost: document.querySelectorAll('[data-fact=lost]').length, \
    others: [...document.querySelectorAll('[data-needs-list] .need')].map((one) => one.dataset.need) }";

/// Counts every line that says a node is lost, from now on.
const WATCH: &str = "window.lost = 0; new MutationObserver(() => (window.lost += document.querySelectorAll('[data-fact=lost]').length)).observe(document.querySelector('[data-truth]'), { childList: true, subtree: true })";

#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_is_away_one_thing_needs_somebody_and_afterwards_nobody_is_called_lost() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOBS);
    ground.add_user("li", "operator");
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&a, "li").await;
    for job in ["outbound", "crashed"] {
        ground.must(&["on", job, "--user", "li"]);
    }
    li.element("#job-outbound[data-state='running']").await;
    li.element("#job-crashed[data-state='given_up'][data-needs]").await;
    let before = li.told(SEEN).await;
    assert_eq!(before["needs"], "1", "{before}");
    li.told(WATCH).await;

    redis.pause();
    li.element("[data-needs-list] .need[data-need='store']").await;
    let away = until_async("nothing is known of any job", async || {
        let seen = li.told(SEEN).await;
        (seen["states"] == json!(["unknown"]) && seen["needs"] == "1").then_some(seen)
    })
    .await;
    assert_eq!(away["rows"], before["rows"], "{away}");
    assert_eq!(away["others"], json!(["store"]));

    // Longer than a node may be silent: each has missed several reports.
    until_async("the outage was longer than a node may be silent", async || {
        let since =
            "return Number(document.querySelector('[data-fact=store] [data-since]').dataset.since)";
        let now = jiff::Timestamp::now().as_millisecond();
        (now - li.told(since).await.as_i64()? > 7_000).then_some(())
    })
    .await;
    redis.resume();
    li.element("#job-outbound[data-state='running']").await;
    until_async("all is as before", async || (li.told(SEEN).await == before).then_some(())).await;
    let api = a.api(&ground.token("li"));
    let nodes = api.get("/api/v1/nodes").await;
    let alive = nodes["nodes"].as_array().expect("nodes").iter().all(|node| node["alive"] == true);
    assert!(alive, "{nodes}");
    assert_eq!(li.told("return window.lost").await, 0, "somebody was called lost");
    li.close().await;
}
