//! The wall as it changes, and notices of the browser: off until somebody wants them.

use serde_json::{Value, json};

use super::Driver;
use crate::support::browser::Window;
use crate::support::node::Ground;
use crate::support::wait::until_async;

const JOBS: &str = "[[job]]\nname = \"calm\"\ncommand = [\"sleep\", \"1000\"]\n\
    [[job]]\nname = \"labels\"\ncommand = [\"false\"]\ngive_up_after = 1\n\
    [[job]]\nname = \"stock\"\ncommand = [\"false\"]\ngive_up_after = 1\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_follows_by_itself_is_read_from_afar_and_shows_first_who_needs_somebody() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "viewer");
    ground.add_user("ada", "admin");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let wall = driver.window("li").await;
    wall.sign_in(&node, "li").await;
    wall.resize(1920, 1080).await;
    wall.client.goto(&format!("{}/wall", node.url)).await.expect("the page opens");
    wall.element(".mark[data-mark='live']").await;
    wall.told("window.soloistTest = 1").await;
    ground.must(&["on", "calm", "--user", "ada"]);
    wall.element("#job-calm[data-state='running']").await;
    ground.must(&["on", "stock", "--user", "ada"]);
    wall.element("#job-stock[data-needs]").await;
    let first = "return document.querySelector('[data-rows] > .row').id";
    until_async("it comes first", async || (wall.told(first).await == "job-stock").then_some(()))
        .await;
    assert_eq!(wall.told("return window.soloistTest").await, 1, "the page was never loaded again");

    // A letter is read from 200 times its height: at 5 m 25 mm, which are some 40 px of a screen of 55 inches.
    let size = "return ['.row .title', '.row .evidence .word'].map((css) => parseFloat(getComputedStyle(document.querySelector(css)).fontSize))";
    let sizes = wall.told(size).await;
    let sizes: Vec<f64> = sizes.as_array().expect("two").iter().filter_map(Value::as_f64).collect();
    assert!(sizes[0] >= 36.0 && sizes[1] >= 36.0, "{sizes:?}");
    let pressed = "return [...document.querySelectorAll('main button, main input')].filter((one) => one.checkVisibility()).length";
    assert_eq!(wall.told(pressed).await, 0, "nothing to press");
    let mut grounds = Vec::new();
    for theme in ["light", "dark"] {
        wall.told(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
        grounds.push(
            wall.told("return getComputedStyle(document.documentElement).backgroundColor").await,
        );
    }
    assert_ne!(grounds[0], grounds[1]);
    wall.close().await;
}

/// Stands in for the browser's own, which shows nothing without a screen.
const STANDS_IN: &str = "window.toldOf = [];
    window.Notification = class { static permission = 'default';
        static requestPermission() { Notification.permission = sessionStorage.answer ?? 'granted'; sessionStorage.granted = Notification.permission; return Promise.resolve(Notification.permission); }
        constructor(title, { body }) { toldOf.push(`${title} ${body}`); } };
    if (sessionStorage.granted) Notification.permission = sessionStorage.granted;";

async fn open(window: &Window, url: &str, path: &str) {
    window.client.goto(&format!("{url}{path}")).await.expect("the page opens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_comes_only_after_it_was_asked_for_and_only_to_a_page_that_nobody_looks_at() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let driver = Driver::start();
    let li = driver.window("li").await;
    let script = json!({"source": STANDS_IN});
    li.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
    li.sign_in(&node, "li").await;

    // Nobody asked for any.
    li.told("sessionStorage.granted = 'granted'").await;
    let gives_up = async |job: &str| {
        ground.must(&["on", job, "--user", "li"]);
        li.element(&format!("#job-{job}[data-needs]")).await;
        let told = li.told("return toldOf").await;
        ground.must(&["off", job, "--user", "li"]);
        li.element(&format!("#job-{job}[data-state='off']")).await;
        told
    };
    let away = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })";
    open(&li, &node.url, "/").await;
    li.element(".mark[data-mark='live']").await;
    li.told(away).await;
    assert_eq!(gives_up("labels").await, json!([]), "nobody asked for any");

    li.told("delete sessionStorage.granted; sessionStorage.answer = 'denied'").await;
    open(&li, &node.url, "/account").await;
    let switch = "[data-notices]:not([hidden]) .switch";
    li.element(switch).await.click().await.expect("clicked");
    let off = li.element(switch).await.attr("aria-checked").await.expect("an answer");
    assert_eq!(off.as_deref(), Some("false"), "the browser refused");
    li.told("sessionStorage.answer = 'granted'").await;
    li.element(switch).await.click().await.expect("clicked");
    li.element("[data-notices] .switch[aria-checked='true']").await;

    open(&li, &node.url, "/").await;
    li.element(".mark[data-mark='live']").await;
    assert_eq!(gives_up("labels").await, json!([]), "somebody looks at the page");
    li.told(away).await;
    assert_eq!(gives_up("labels").await, json!(["labels needs you"]));
    assert_eq!(gives_up("stock").await, json!(["labels needs you", "stock needs you"]));

    open(&li, &node.url, "/account").await;
    li.element(switch).await.click().await.expect("clicked");
    li.element("[data-notices] .switch[aria-checked='false']").await;
    open(&li, &node.url, "/").await;
    li.element(".mark[data-mark='live']").await;
    li.told(away).await;
    assert_eq!(gives_up("labels").await, json!([]), "switched off again");
    li.close().await;
}
