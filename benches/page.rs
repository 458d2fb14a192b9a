//! The dashboard of a thousand jobs in Chromium: what it costs the reader's machine, and how soon a change is painted.
//!
//! `cargo bench --features full --bench page [-- --jobs N --changes N --seconds N]`
//!
//! One node on SQLite, one headless Chromium without a graphics card. Bytes are those on the wire; times of the main thread are
//! DevTools' `Performance.getMetrics`. A change is timed in the page, by one clock: from before the request that switches a job, to after the frame in
//! which its row is painted. Frames of the scroll are those that `requestAnimationFrame` was given; one that comes later than 25 ms counts as dropped.

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::time::Duration;

use serde_json::{Value, json};

use support::api::Api;
use support::browser::{Driver, Window};
use support::node::Ground;

/// Switches a job from the page itself and waits for the paint: the task after the frame that shows it.
const CHANGE: &str = "const [job, on, done] = arguments;
    const row = document.getElementById(`job-${job}`);
    row.scrollIntoView({ block: 'center' });
    const csrf = document.querySelector('meta[name=csrf]').content;
    requestAnimationFrame(() => setTimeout(() => {
        const began = performance.now();
        new MutationObserver((_, watch) => {
            if (row.querySelector('.switch').getAttribute('aria-checked') !== String(on)) return;
            watch.disconnect();
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
        }).observe(row, { subtree: true, attributes: true, childList: true });
        fetch(`/api/v1/jobs/${job}/participation`, { method: 'PUT', headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf }, body: JSON.stringify({ on }) });
    }));";

/// Scrolls through the page for some seconds; gives frames and those that came late.
const SCROLL: &str = "const [milliseconds, done] = arguments;
    const began = performance.now();
    let [frames, late, last] = [0, 0, began];
    scrollTo(0, 0);
    const step = (now) => {
        frames += 1;
        if (now - last > 25) late += Math.round((now - last) / 16.7) - 1;
        last = now;
        scrollBy(0, 60);
        if (scrollY + innerHeight >= document.documentElement.scrollHeight) scrollTo(0, 0);
        if (now - began < milliseconds) requestAnimationFrame(step);
        else done([frames, late]);
    };
    requestAnimationFrame(step);";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let number = |flag: &str, usual: usize| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).and_then(|word| word.parse().ok()).unwrap_or(usual)
    };
    let (jobs, changes) = (number("--jobs", 1_000), number("--changes", 100));
    let seconds = u32::try_from(number("--seconds", 10)).expect("a short time");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(jobs, changes, seconds));
}

fn name(nth: usize) -> String {
    format!("shipping-{}-{nth}", ["north", "south", "post"][nth % 3])
}

async fn measure(jobs: usize, changes: usize, seconds: u32) {
    let one = |nth| {
        let (name, group) = (name(nth), ["Warehouse", "Books", "Shop"][nth * 3 / jobs]);
        let title = format!("Shipping of orders, part {nth}");
        format!(
            "[[job]]\nname = {name:?}\ngroup = {group:?}\nrunner = \"external\"\ntitle = {{ en = {title:?}, zh = {title:?} }}\n"
        )
    };
    let ground = Ground::new("sqlite:soloist.db", &(0..jobs).map(one).collect::<String>());
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    for nth in (0..jobs).step_by(9) {
        api.switch(&name(nth), true).await;
    }
    let driver = Driver::start();
    let li = driver.window("li").await;
    li.sign_in(&node, "li").await;
    // As for the first time, and as for everybody who comes back.
    li.devtools("Network.clearBrowserCache", json!({})).await;
    li.devtools("Performance.enable", json!({})).await;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    println!("| {jobs} jobs, a {build} node | measured |\n| --- | --- |");
    for visit in ["first visit", "next visit"] {
        load(&li, &node.url, visit).await;
    }
    li.told("scrollTo(0, 0)").await;
    let idle = busy(&li, seconds, None).await;
    println!("| main thread while nothing changes, of a second | {idle:.1} ms |");
    let moving = busy(&li, seconds, Some((&api, jobs))).await;
    println!("| main thread while one row changes each second, of a second | {moving:.1} ms |");
    let milliseconds = json!(u64::from(seconds) * 1_000);
    let scrolled = li.client.execute_async(SCROLL, vec![milliseconds]).await.expect("it scrolls");
    println!("| scrolling for {seconds} s | {} frames, {} dropped |", scrolled[0], scrolled[1]);
    let mut took = Vec::new();
    for nth in 0..changes {
        // Two that were off: each is switched on, then off, and so on.
        let (job, on) = ([3, jobs - 2][nth % 2], nth / 2 % 2 == 0);
        let change = vec![json!(name(job)), json!(on)];
        let painted = li.client.execute_async(CHANGE, change).await.expect("it is painted");
        took.extend(painted.as_f64());
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = took.len().saturating_sub(1);
        took[(last as f64 * share).round() as usize]
    };
    println!(
        "| switched -> its row painted ({changes}), p50 / p99 / max | {:.1} / {:.1} / {:.1} ms |",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    li.close().await;
}

/// Opens the page and says what that cost.
async fn load(window: &Window, url: &str, visit: &str) {
    window.client.goto(&format!("{url}/")).await.expect("the page opens");
    window.element(".mark[data-mark='live']").await;
    let asked = "const [page] = performance.getEntriesByType('navigation');
        const files = performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0);
        const [paint] = performance.getEntriesByName('first-contentful-paint');
        return [page.transferSize, files, Math.round(paint.startTime), Math.round(page.responseEnd)]";
    let told = window.told(asked).await;
    println!("| {visit}: page, files, on the wire | {} and {} bytes |", told[0], told[1]);
    println!("| {visit}: whole answer, first paint | {} and {} ms |", told[3], told[2]);
    let metrics = metrics(window).await;
    let of = |name: &str| metrics[name].as_f64().unwrap_or(0.0) * 1_000.0;
    println!(
        "| {visit}: main thread until live (script, style, layout) | {:.0} ms ({:.0}, {:.0}, {:.0}) |",
        of("TaskDuration"),
        of("ScriptDuration"),
        of("RecalcStyleDuration"),
        of("LayoutDuration")
    );
}

/// DevTools' figures by name; times in seconds since the page began.
async fn metrics(window: &Window) -> Value {
    let told = window.devtools("Performance.getMetrics", json!({})).await;
    let all = told["metrics"].as_array().into_iter().flatten();
    all.filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["value"].clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Milliseconds of the main thread in a second, over some seconds; with an API, a row changes in each.
async fn busy(window: &Window, seconds: u32, change: Option<(&Api, usize)>) -> f64 {
    let spent = async || metrics(window).await["TaskDuration"].as_f64().unwrap_or(0.0);
    let before = spent().await;
    for second in 0..seconds {
        if let Some((api, jobs)) = change {
            let nth = 2 + (second as usize * 9) % (jobs - 2);
            api.switch(&name(nth), true).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    (spent().await - before) * 1_000.0 / f64::from(seconds)
}
