//! Two people, two browsers, two nodes: a click in one window is seen in the other.

mod acts;
mod administer;
mod axe;
mod comfort;
mod menu;
mod needs;
mod output;
mod world;
mod zone;

use fantoccini::Locator;
use nix::sys::signal::Signal;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::lifecycle::{JOB, Pair};
use crate::support::browser::Driver;
use crate::support::node::Ground;
use crate::support::wait::until_async;

/// The state that the row of the job shows, by its `data-state`.
const ROW: &str = "[data-job='outbound']";

async fn shows(window: &crate::support::browser::Window, state: &str) {
    until_async(&format!("the row shows {state}"), async || {
        let row = window.client.find(Locator::Css(ROW)).await.ok()?;
        // The row may be replaced between finding and asking; then it is looked for again.
        let found = row.attr("data-state").await.ok()??;
        (found == state).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_on_the_switch_in_one_window_is_seen_in_another() {
    let pair = Pair::start("beat", "");
    let driver = Driver::start();
    let (li, wang) = (driver.window("li").await, driver.window("wang").await);
    li.sign_in(&pair.a, "li").await;
    wang.sign_in(&pair.b, "wang").await;
    shows(&wang, "off").await;

    let switch = format!("{ROW} .switch");
    // A mark that only this document has: if it is there at the end, nothing was loaded again.
    wang.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");
    li.element(&switch).await.click().await.expect("clicked");
    let _first = pair.witness.until_started(1);
    shows(&wang, "running").await;
    shows(&li, "running").await;
    let row = wang.element(ROW).await.text().await.expect("text");
    assert!(row.contains("li"), "the row says who wants it: {row}");

    wang.element(&switch).await.click().await.expect("clicked");
    until_async("li sees that wang wants it too", async || {
        let row = li.client.find(Locator::Css(ROW)).await.ok()?;
        row.text().await.ok()?.contains("wang").then_some(())
    })
    .await;
    assert_eq!(pair.witness.starts(), 1);
    let mark = wang.client.execute("return window.soloistTest", vec![]).await.expect("a value");
    assert_eq!(mark, 1, "the page was never loaded again");
    let job = pair.li().get(&format!("/api/v1/jobs/{JOB}")).await;
    assert_eq!(job["participants"].as_array().map(Vec::len), Some(2));
    li.close().await;
    wang.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_work_is_seen_on_the_page_of_dispatch_and_a_source_is_paused_there() {
    let pair = Pair::start("beat", "");
    let api = pair.wang();
    let define = api.call(Method::PUT, "/api/v1/sources/pages", Some(json!({}))).await;
    assert_eq!(define.0, StatusCode::OK, "{}", define.1);
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&pair.a, "li").await;
    li.client.goto(&format!("{}/dispatch", pair.a.url)).await.expect("the page opens");
    li.element("#source-pages[data-state='empty']").await;
    li.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");

    let tasks = json!({"tasks": [{"source": "pages", "key": "one", "payload": null},
                                 {"source": "pages", "key": "<b>two", "payload": null}]});
    let put = api.call(Method::POST, "/api/v1/tasks", Some(tasks)).await;
    assert!(put.0.is_success(), "{}", put.1);
    li.element("#source-pages[data-state='open']").await;
    let row = li.element("#source-pages").await.text().await.expect("text");
    assert!(row.contains("2 are ready"), "{row}");

    li.element("#source-pages form[action$='/pause'] button").await.click().await.expect("clicked");
    let question = li.element("dialog[open]").await.text().await.expect("text");
    assert!(question.contains("Pause pages?"), "{question}");
    li.element("dialog[open] button[value=yes]").await.click().await.expect("clicked");
    li.element("#source-pages[data-state='paused']").await;
    let source = api.get("/api/v1/sources/pages").await;
    assert_eq!(source["paused"], true);
    li.element("#source-pages form[action$='/pause'] button").await.click().await.expect("clicked");
    li.element("#source-pages[data-state='open']").await;
    let mark = li.client.execute("return window.soloistTest", vec![]).await.expect("a value");
    assert_eq!(mark, 1, "the page was never loaded again");
    li.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_seen_as_they_are_taken_and_what_was_opened_stays_open() {
    let pair = Pair::start("beat", "rotation = \"api\"\n");
    let api = pair.wang();
    let rules = json!({"types": [{"name": "outbound"}, {"name": "stock"}], "lease_ms": 60_000});
    let defined = api.call(Method::PUT, "/api/v1/rotations/api", Some(rules)).await;
    assert_eq!(defined.0, StatusCode::OK, "{}", defined.1);
    let turns = "/api/v1/rotations/api/turns";
    let take = async |request: &str| {
        let ask = json!({"type": "stock", "worker": "<b>w", "request_id": request});
        let taken = api.call(Method::POST, turns, Some(ask)).await;
        assert!(taken.1["turn"].is_string(), "{}", taken.1);
        taken.1
    };
    let driver = Driver::start();
    let (li, wang) = (driver.window("li").await, driver.window("wang").await);
    li.sign_in(&pair.a, "li").await;
    li.element("[data-job='outbound'] .ring [data-mark='idle']").await;
    wang.sign_in(&pair.b, "wang").await;
    wang.client.goto(&format!("{}/rotations", pair.b.url)).await.expect("the page opens");
    wang.element("#rotation-api[data-state='idle']").await;
    for window in [&li, &wang] {
        window.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");
    }

    let first = take("one").await;
    wang.element("#rotation-api[data-state='taken'] rect.bar-now").await;
    li.element("[data-job='outbound'] .ring [data-mark='now']").await;
    wang.element("#rotation-api summary").await.click().await.expect("clicked");
    wang.element("#rotation-api details[open] tr[data-outcome='now']").await;
    let pass = format!("{turns}/{}/pass", first["turn"].as_str().expect("an id"));
    let done = json!({"token": first["token"], "outcome": "failed"});
    let passed = api.call(Method::POST, &pass, Some(done)).await;
    assert!(passed.0.is_success(), "{}", passed.1);
    wang.element("#rotation-api details[open] tr[data-outcome='failed']").await;
    take("two").await;
    wang.element("#rotation-api details[open] tr[data-outcome='now']").await;
    let table = wang.element("#rotation-api .past-turns").await.text().await.expect("text");
    assert!(table.contains("<b>w"), "{table}");

    // A change of the job leaves the ring in its row alone.
    li.element("[data-job='outbound'] .switch").await.click().await.expect("click");
    li.element("[data-job='outbound'] [aria-checked='true']").await;
    li.element("[data-job='outbound'] .ring [data-mark='now']").await;
    for window in [&li, &wang] {
        let mark = window.client.execute("return window.soloistTest", vec![]).await.expect("one");
        assert_eq!(mark, 1, "the page was never loaded again");
    }
    li.close().await;
    wang.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_when_its_store_its_session_or_its_node_is_gone() {
    let mut pair = Pair::start("beat", "");
    let driver = Driver::start();
    let (li, wang) = (driver.window("li").await, driver.window("wang").await);
    li.sign_in(&pair.a, "li").await;
    wang.sign_in(&pair.b, "wang").await;
    let titled = async |words: &str| {
        until_async(&format!("the title is {words}"), async || {
            (li.client.title().await.ok()? == words).then_some(())
        })
        .await;
    };
    li.element(".mark[data-mark='live'][data-store='ok']").await;
    titled("Jobs · Soloist").await;

    pair.redis.pause();
    li.element(".mark[data-mark='connected'][data-store='away']").await;
    let bar = li.element("[data-truth] [data-fact='store']").await.text().await.expect("text");
    assert!(bar.contains("what you see is old"), "{bar}");
    titled("(1!) Jobs · Soloist").await;
    pair.redis.resume();
    li.element(".mark[data-mark='live'][data-store='ok']").await;
    titled("Jobs · Soloist").await;

    pair.ground.must(&["user", "role", "li", "viewer"]);
    li.element("[data-page-fact]:not([hidden]) [data-sign-in]:not([hidden])").await;
    li.element(".mark[data-mark='old']").await;
    wang.element(".mark[data-mark='live']").await;

    pair.b.kill();
    wang.element("[data-page-fact]:not([hidden]) [data-now]:not([hidden])").await;
    let line = wang.element("[data-page-fact]").await.text().await.expect("text");
    assert!(line.contains("No word from this page’s node"), "{line}");
    li.close().await;
    wang.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_jobs_keeps_its_filter_its_ticks_and_its_place() {
    let jobs: Vec<String> = (100..300)
        .map(|nth| format!("[[job]]\nname = \"ship-{nth}\"\nrunner = \"external\"\n"))
        .collect();
    let ground = Ground::new("sqlite:soloist.db", &jobs.concat());
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&node, "li").await;
    let shown = async |css: &str, n: u64| {
        until_async(&format!("{n} of {css}"), async || {
            let count = format!("return document.querySelectorAll({css:?}).length");
            (li.client.execute(&count, vec![]).await.ok()? == n).then_some(())
        })
        .await;
    };
    shown("[data-rows] > .row", 200).await;
    let switch = async |job: &str| {
        li.element(&format!("#job-{job} .switch")).await.click().await.expect("clicked");
    };

    // The place is kept when somebody comes back.
    li.element(".mark[data-mark='live']").await;
    li.client
        .execute("document.getElementById('job-ship-250').scrollIntoView()", vec![])
        .await
        .expect("scrolled");
    let place = async || {
        let top = "return Math.round(document.getElementById('job-ship-250').getBoundingClientRect().top)";
        li.client.execute(top, vec![]).await.expect("a place").as_f64().expect("pixels")
    };
    let before = place().await;
    li.element("#job-ship-251 .title a").await.click().await.expect("clicked");
    li.element("#head").await;
    li.client.back().await.expect("back");
    until_async("the place is as before", async || {
        ((place().await - before).abs() < 3.0).then_some(())
    })
    .await;

    // Slash searches; the address says what is shown, and the list follows it.
    li.element(".mark[data-mark='live']").await;
    li.client.active_element().await.expect("an element").send_keys("/").await.expect("typed");
    let search = li.client.active_element().await.expect("an element");
    assert_eq!(search.attr("name").await.expect("an answer").as_deref(), Some("q"));
    search.send_keys("ship-10\n").await.expect("typed");
    shown("[data-rows] > .row", 10).await;
    li.client.goto(&format!("{}/?q=ship-10&state=off", node.url)).await.expect("the page opens");
    shown("[data-rows] > .row", 10).await;
    li.element(".mark[data-mark='live']").await;
    li.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");
    li.element("#job-ship-104 .tick-box").await.click().await.expect("clicked");
    switch("ship-105").await;
    shown("[data-rows] > .row", 9).await;
    shown("#job-ship-105", 0).await;
    ground.must(&["on", "ship-104", "--user", "li"]);
    shown("[data-rows] > .row", 8).await;
    ground.must(&["off", "ship-105", "--user", "li"]);
    let order = "return [...document.querySelectorAll('[data-rows] > .row')].map((row) => row.dataset.job.slice(5)).join()";
    until_async("it is back where it was", async || {
        (li.client.execute(order, vec![]).await.ok()? == "100,101,102,103,105,106,107,108,109")
            .then_some(())
    })
    .await;

    // What is ticked stays ticked while rows change.
    for job in ["106", "107"] {
        li.element(&format!("#job-ship-{job} .tick-box")).await.click().await.expect("clicked");
    }
    ground.must(&["hold", "ship-106", "--reason", "stocktaking"]);
    shown("#job-ship-106", 0).await;
    shown(".tick-box:checked", 1).await;
    let mark = li.client.execute("return window.soloistTest", vec![]).await.expect("a value");
    assert_eq!(mark, 1, "the page was never loaded again");
    li.element("#bulk button[value=off]").await.click().await.expect("clicked");
    // The dashboard has a heading, too: a click does not wait for the page that it leads to.
    until_async("the question what becomes of the one that is ticked", async || {
        let asked = li.element("main h1").await.text().await.ok()?;
        (asked == "Switch off 1 job?").then_some(())
    })
    .await;
    li.close().await;
}

/// The state that the row says, and whether it has the colour of nothing.
async fn colour(window: &crate::support::browser::Window) -> serde_json::Value {
    let ask = "const row = document.querySelector('[data-job]');\
               const of = (element, name) => getComputedStyle(element).getPropertyValue(name);\
               return [row.dataset.state, of(row, '--state') === of(document.documentElement, '--idle')]";
    window.client.execute(ask, vec![]).await.expect("a value")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_back_within_seconds_of_its_node_and_at_once_when_asked() {
    let mut pair = Pair::start("beat", "");
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&pair.a, "li").await;
    li.element(".mark[data-mark='live']").await;
    li.element(&format!("{ROW} .switch")).await.click().await.expect("clicked");
    shows(&li, "running").await;
    assert_eq!(colour(&li).await, json!(["running", false]));
    pair.a.kill();
    let line = li.element("[data-page-fact]:not([hidden])").await;
    let said = line.text().await.expect("text");
    assert!(said.contains("Trying again.") && !said.contains("again in"), "no countdown: {said}");
    let there = li.element("[data-page-fact] [data-open-at]:not([hidden])").await;
    assert_eq!(there.text().await.expect("text"), "Open it at node-b →");
    let href = there.prop("href").await.expect("an answer").expect("an address");
    assert_eq!(href, format!("{}/", pair.b.url), "a living node shows the same page");
    // Old rows lose their colour.
    li.element("html[data-stale]").await;
    assert_eq!(colour(&li).await, json!(["running", true]));
    let listen = pair.a.url.trim_start_matches("http://").to_owned();
    pair.a = pair.ground.start_at("node-a", &listen);
    let began = soloist::clock::boot();
    li.element("[data-page-fact] [data-now]").await.click().await.ok();
    li.element(".mark[data-mark='live']").await;
    li.element("html:not([data-stale])").await;
    assert!(
        soloist::clock::boot().since(began) < std::time::Duration::from_secs(10),
        "{:?}",
        soloist::clock::boot().since(began)
    );
    li.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headings_of_groups_come_and_go_with_the_configuration_on_an_open_page() {
    let job = |name: &str, group: &str| {
        format!("[[job]]\nname = {name:?}\nrunner = \"external\"\n{group}\n")
    };
    let (books, stock) = ("group = \"Books\"", "group = \"Stock\"");
    let ground =
        Ground::new("sqlite:soloist.db", &[job("alone", ""), job("bills", books)].concat());
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&node, "li").await;
    li.client.execute("window.soloistTest = 1", vec![]).await.expect("a mark");
    let shown = async |order: &[&str]| {
        until_async(&format!("the page shows {order:?}"), async || {
            let children = "return [...document.querySelector('[data-rows]').children]\
                            .map((one) => one.id || one.textContent)";
            let found = li.client.execute(children, vec![]).await.ok()?;
            (found == json!(order)).then_some(())
        })
        .await;
    };
    shown(&["Books", "job-bills", "job-alone"]).await;

    let file = ground.path("soloist.toml");
    let text = std::fs::read_to_string(&file).expect("the configuration");
    let head = text.split("[[job]]").next().expect("what stands before the jobs").to_owned();
    let jobs = [job("alone", stock), job("bills", books), job("dues", books)];
    std::fs::write(&file, format!("{head}{}", jobs.concat())).expect("written");
    node.signal(Signal::SIGHUP);
    shown(&["Stock", "job-alone", "Books", "job-bills", "job-dues"]).await;

    std::fs::write(&file, format!("{head}{}", job("alone", ""))).expect("written");
    node.signal(Signal::SIGHUP);
    shown(&["job-alone"]).await;
    let mark = li.client.execute("return window.soloistTest", vec![]).await.expect("a value");
    assert_eq!(mark, 1, "the page was never loaded again");
    li.close().await;
}
