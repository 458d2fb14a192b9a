//! Who held a job, and its runs: over the API, and on the page without any script.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{NodeName, Owner, RunId, UserName};
use soloist::domain::time::Began;
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, Journal, Started, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use tokio_tungstenite::tungstenite::Message;

use super::Server;
use super::live::{hear, heard_nothing, socket_of_a_page};
use crate::support::wait::until_async;

const PAGE: &str = "/jobs/outbound";
const TIMELINE: &str = "/api/v1/jobs/outbound/timeline";

/// One run of `outbound`, as a node reports it; its token.
async fn run(server: &Server, nth: u64, node: &str, end: Option<RunEnd>) -> Token {
    let store = server.store();
    let ask = Acquire {
        job: "outbound".parse().unwrap(),
        owner: Owner(format!("owner-{nth}")),
        node: NodeName::new(node).unwrap(),
        ttl: Duration::from_secs(60),
        condition: Condition::None,
        seen: Token(0),
    };
    let Acquired::Granted { token, .. } = store.acquire(&ask).await.unwrap() else {
        panic!("it was not granted");
    };
    let started = Started {
        job: ask.job.clone(),
        token,
        run: RunId(format!("run-{nth:06}")),
        node: ask.node.clone(),
        pid: 7,
        began: Began::at_boot(soloist::clock::boot()),
    };
    store.record_started(&started).await.unwrap();
    if let Some(end) = end {
        ended(server, nth, token, end).await;
    }
    token
}

async fn ended(server: &Server, nth: u64, token: Token, end: RunEnd) {
    let ended = Ended {
        job: "outbound".parse().unwrap(),
        owner: Owner(format!("owner-{nth}")),
        token,
        run: RunId(format!("run-{nth:06}")),
        exit: Exit { code: Some(1), signal: None },
        end,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    server.store().record_ended(&ended).await.unwrap();
}

async fn switch(server: &Server, who: &str, on: bool) {
    let user = UserName::new(who).unwrap();
    server.store().participate(&"outbound".parse().unwrap(), &user, on, None).await.unwrap();
}

async fn get(server: &Server, path: &str, token: &str) -> Value {
    let answer = server.get(path, token).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_tells_who_held_a_job_who_wanted_it_and_how_long_a_take_over_took() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let empty = get(&server, TIMELINE, &token).await;
    let nothing = json!({"spans": [], "participations": [], "holds": [], "known_since": null});
    assert_eq!(empty, nothing);
    switch(&server, "li", true).await;
    run(&server, 1, "node-a", Some(RunEnd::Lost)).await;
    let last = run(&server, 2, "node-b", None).await;
    switch(&server, "wang", true).await;
    switch(&server, "wang", false).await;
    let told = get(&server, TIMELINE, &token).await;
    let spans = told["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 2, "{told}");
    assert_eq!((&spans[0]["node"], &spans[0]["end"]), (&json!("node-a"), &json!("lost")));
    assert_eq!((&spans[0]["runs"], &spans[0]["failed"]), (&json!(1), &json!(1)));
    assert_eq!(spans[0]["takeover_ms"], Value::Null);
    assert_eq!((&spans[1]["node"], &spans[1]["token"]), (&json!("node-b"), &json!(last.0)));
    assert_eq!((&spans[1]["to"], &spans[1]["end"]), (&Value::Null, &Value::Null));
    assert!(spans[1]["takeover_ms"].as_u64().is_some_and(|ms| ms < 60_000), "{told}");
    let people: Vec<_> = told["participations"].as_array().unwrap().iter().collect();
    assert_eq!((&people[0]["user"], &people[0]["to"]), (&json!("li"), &Value::Null));
    assert_eq!(people[1]["user"], "wang");
    assert!(people[1]["to"].is_string(), "{told}");
    let to = spans[0]["to"].as_str().unwrap();
    let later = get(&server, &format!("{TIMELINE}?from={to}"), &token).await;
    assert_eq!(later["spans"].as_array().unwrap().len(), 1, "{later}");
    assert_eq!(later["spans"][0]["takeover_ms"], spans[1]["takeover_ms"]);
    let before = get(
        &server,
        &format!("{TIMELINE}?from=2000-01-01T00:00:00Z&to=2000-01-02T00:00:00Z"),
        &token,
    )
    .await;
    assert_eq!(before["spans"].as_array().map(Vec::len), Some(0), "{before}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_draws_who_held_it_and_says_the_same_in_a_table_without_any_script() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let empty = server.page(PAGE, &token, "en").await;
    assert!(empty.contains("Nobody held it or wanted it"), "{empty}");
    switch(&server, "li", true).await;
    run(&server, 1, "node-a", Some(RunEnd::Lost)).await;
    run(&server, 2, "node-b", None).await;
    for (lang, words) in [
        ("en", ["Who held it", "wanted by li", "took over from node-a in", "As a table"]),
        ("zh", ["由谁运行", "li 需要", "内从 node-a 接管", "以表格查看"]),
    ] {
        let page = server.page(&format!("{PAGE}?hold=1h"), &token, lang).await;
        let held = page.split("id=\"held\"").nth(1).unwrap().split("</section>").next().unwrap();
        for word in words {
            assert!(held.contains(word), "{word}: {held}");
        }
        assert!(held.contains("href=\"?hold=7d#held\"") && held.contains("class=\"takeover\""));
        assert!(held.contains("<table>") && !held.contains("style="), "{held}");
        let hour = held.split("?hold=1h#held\"").nth(1).unwrap();
        assert!(hour.trim_start().starts_with("aria-current"), "the hour is chosen: {hour}");
    }
    let side = server.page(&format!("{PAGE}?part=side"), &token, "en").await;
    assert!(side.contains("id=\"held\"") && side.contains("id=\"runs\""), "{side}");
    assert!(!side.contains("<html") && !side.contains("data-log") && !side.contains("data-head"));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_paged_by_links_and_each_is_on_one_page() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    // No two neighbours are alike, so each has a row.
    for nth in 0..65 {
        run(&server, nth, ["node-a", "node-b"][nth as usize % 2], Some(RunEnd::Crashed)).await;
    }
    let (mut path, mut seen, mut pages) = (PAGE.to_owned(), BTreeSet::new(), Vec::new());
    loop {
        let page = server.page(&path, &token, "en").await;
        let rows: Vec<String> = ids(&page);
        assert!(rows.len() <= 20, "{}", rows.len());
        for id in &rows {
            assert!(seen.insert(id.clone()), "{id} is on two pages");
        }
        pages.push((path.clone(), rows));
        match link(&page, "next") {
            Some(older) => path = format!("{PAGE}{older}"),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages.len()), (65, 4));
    for nth in (1..pages.len()).rev() {
        let page = server.page(&pages[nth].0, &token, "en").await;
        let newer = link(&page, "prev").expect("a way back");
        let before = server.page(&format!("{PAGE}{newer}"), &token, "en").await;
        assert_eq!(ids(&before), pages[nth - 1].1, "back from page {nth}");
    }
    assert!(link(&server.page(PAGE, &token, "en").await, "prev").is_none());
    let gone = server.page(&format!("{PAGE}?before=nobody"), &token, "en").await;
    assert_eq!(ids(&gone), [""; 0]);
}

fn ids(page: &str) -> Vec<String> {
    let runs = page.split("id=\"runs\"").nth(1).unwrap().split("data-run=\"").skip(1);
    runs.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Where the link of that relation leads.
fn link(page: &str, rel: &str) -> Option<String> {
    let end = page.find(&format!("\" rel=\"{rel}\""))?;
    let begin = page[..end].rfind("href=\"")? + 6;
    let address = page[begin..end].replace("&#38;", "&").replace("&amp;", "&");
    Some(address.split('#').next()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn short_runs_alike_share_a_row_and_a_time_below_a_second_is_told() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    for nth in 0..7 {
        run(&server, nth, "node-a", Some(RunEnd::Crashed)).await;
    }
    run(&server, 8, "node-b", Some(RunEnd::Crashed)).await;
    let page = server.page(PAGE, &token, "en").await;
    assert_eq!(ids(&page), ["run-000008", "run-000000"]);
    assert!(page.contains("7 runs alike"), "{page}");
    let share = "0 % of 8 runs in 24 h went well";
    assert!(page.contains(share), "{page}");
    let row = page.split("data-run=\"run-000008\"").nth(1).unwrap();
    let row = row.split("</tr>").next().unwrap();
    assert!(row.contains(" ms<") || row.contains(">0 s<"), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_shows_its_last_hour_from_what_the_node_knows() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    switch(&server, "li", true).await;
    let shows = async |nodes: &[&str]| {
        until_async("the strip shows its nodes", async || {
            let page = server.page("/", &token, "en").await;
            let row = page.split("id=\"job-outbound\"").nth(1)?.split("</article>").next()?;
            let strip = row.split("class=\"strip\"").nth(1)?;
            let label = strip.split("The last hour: ").nth(1)?.split('"').next()?;
            nodes.iter().all(|node| label.contains(node)).then_some(())
        })
        .await;
    };
    // Which run came and went unseen, it would read in a minute.
    let first = run(&server, 1, "node-a", None).await;
    shows(&["node-a"]).await;
    ended(&server, 1, first, RunEnd::Crashed).await;
    run(&server, 2, "node-b", None).await;
    shows(&["node-a", "node-b"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_dashboard_draws_the_last_hour_of_a_job_anew_when_a_run_begins() {
    let server = Server::start().await;
    let li = server.user("li", Role::Operator).await;
    let (cookie, _) = server.session(&li).await;
    let mut socket = socket_of_a_page(&server, "/live", &cookie).await;
    heard_nothing(&mut socket, "hour").await;
    switch(&server, "li", true).await;
    run(&server, 1, "node-a", None).await;
    let drawn = async {
        loop {
            let Message::Text(text) = hear(&mut socket).await else { panic!("no text") };
            let frame: Value = serde_json::from_str(&text).unwrap();
            let html = match frame["type"].as_str() {
                Some("hour") => {
                    assert_eq!(frame["job"], "outbound");
                    let html = frame["html"].as_str().unwrap();
                    assert!(html.starts_with("<svg") && !html.contains("style="), "{html}");
                    html.to_owned()
                }
                // A page that missed something is told all of it: its rows come with their hours.
                Some("snapshot") => frame["rows"].to_string(),
                _ => continue,
            };
            // What is drawn before a node holds it is not looked at.
            if html.contains("stint ok") {
                return;
            }
        }
    };
    let drawn = tokio::time::timeout(Duration::from_secs(30), drawn).await;
    drawn.expect("the hour was drawn anew");
}
