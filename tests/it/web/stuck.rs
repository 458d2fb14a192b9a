//! A run that stands still: under *needs you* by time alone, in both languages and with what can be done, until it gets on.

use std::time::Duration;

use serde_json::Value;
use soloist::domain::job::Progress;
use soloist::domain::lease::Timing;
use soloist::domain::name::UserName;
use soloist::store::accounts::Role;
use soloist::store::journal::{Journal as _, Output};

use super::Server;
use super::live::{Going, Socket, begin, hear_type, of_a_page};

/// Tells how far the run is, as its node does.
async fn tell(server: &Server, (token, run, node): &Going, done: u64) {
    let output = Output {
        job: "outbound".parse().unwrap(),
        token: *token,
        run: run.clone(),
        node: node.clone(),
        lines: Vec::new(),
        progress: Some(Progress { done, total: 9, note: String::new() }),
        heard: false,
    };
    server.store().record_output(&output).await.unwrap();
}

/// The next row of the job that runs and needs somebody, or that does not. Without a node it needed one before it ran.
async fn row(socket: &mut Socket, needs: bool) -> Value {
    let heard = async {
        loop {
            let row = hear_type(socket, "row").await;
            let runs = row["job"] == "outbound" && row["state"] == "running";
            if runs && row["needs"].as_bool().unwrap_or(false) == needs {
                return row;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), heard).await.expect("such a row in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stands_still_needs_somebody_without_any_event_until_it_gets_on() {
    let server = Server::with(|config| {
        config.jobs[0].timing = Timing::from_ttl(Duration::from_secs(60)).unwrap();
        config.jobs[0].stuck_after = Some(Duration::from_secs(2));
    })
    .await;
    let (mut socket, cookie, _) = of_a_page(&server, "li", Role::Operator).await;
    let li = UserName::new("li").unwrap();
    let going = begin(&server, &"outbound".parse().unwrap(), &li).await;
    tell(&server, &going, 3).await;
    let stuck = row(&mut socket, true).await;
    assert_eq!(stuck["under"], "Needs you");
    let now = stuck["now"].as_str().or(stuck["html"].as_str()).unwrap().to_owned();
    assert!(now.contains(">Stuck<") && now.contains("no output and no progress for"), "{now}");
    assert!(now.contains("move it, or hold and resume it"), "what to press: {now}");
    // What was told before is no progress.
    tell(&server, &going, 3).await;
    let get = async |path: &str, language: &str| {
        let page = server.ask("GET", path).header("cookie", &cookie);
        let page = page.header("accept-language", language).send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}");
        page.text().await.unwrap()
    };
    let list = get("/", "zh").await;
    for part in ["需要处理", ">停滞<", "没有输出也没有进展", "先禁止再恢复"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    for (language, why) in [("en", "It is stuck: no output"), ("zh", "它停滞不前")] {
        let page = get("/jobs/outbound", language).await;
        assert!(page.contains(why) && page.contains("data-needs"), "{page}");
    }
    let json: Value = serde_json::from_str(&get("/api/v1/jobs/outbound", "en").await).unwrap();
    assert_eq!(json["state"], "running");
    assert!(json["why"].as_str().unwrap().contains("It is stuck"), "{json}");

    tell(&server, &going, 4).await;
    let well = row(&mut socket, false).await;
    let now = well["now"].as_str().or(well["html"].as_str()).unwrap();
    assert!(!now.contains("Stuck") && well["under"].is_null(), "{well}");
    assert!(!get("/jobs/outbound", "en").await.contains("It is stuck"));
}
