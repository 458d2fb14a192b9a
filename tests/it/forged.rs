//! Two nodes on one store, and a collector that makes up secrets for a job of others: the job never runs twice.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::wait::until_async;

/// So many runs, and the forging in all the moments between them.
const RUNS: usize = 12;

/// Each run says when it begins and ends.
const BEAT: &str = r#"[[job]]
name = "beat"
command = ["sh", "-c", "echo begin $SOLOIST_RUN >> acts; sleep 0.2; echo end $SOLOIST_RUN >> acts"]
repeat = "150ms"
min_uptime = "100ms"
lease_ttl = "2s"
operators = ["ada"]
"#;

/// Sends invented secrets for the job until it is dropped; says how many were not answered by 409.
async fn forge(api: Api, every: Duration, seed: u64) -> (usize, usize) {
    let (mut sent, mut taken) = (0, 0);
    loop {
        for token in [(1 << 53) - 6, (1 << 53) - 1, 2_000_000_000_000_000 + seed + sent as u64] {
            let kind = if sent % 2 == 0 { "p" } else { "j" };
            let secret = format!("{token}.600000.{kind}.0123456789abcdef0123456789abcdef");
            let body = json!({ "secret": secret });
            let renew = "/api/v1/leases/beat/renew";
            let (status, _) = api.call(Method::POST, renew, Some(body.clone())).await;
            taken += usize::from(status != 409);
            if status == 200 {
                // A hit is released at once, so that the next run begins beside the present one.
                api.call(Method::POST, "/api/v1/leases/beat/release", Some(body)).await;
            }
            sent += 1;
        }
        if sent >= 3 * 400 {
            return (sent, taken);
        }
        tokio::time::sleep(every).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_others_never_runs_twice_while_a_collector_makes_up_its_secrets() {
    let ground = Ground::new("sqlite:soloist.db", BEAT);
    ground.add_user("ada", "operator");
    ground.add_user("carl", "collector");
    let (ada, carl) = (ground.token("ada"), ground.token("carl"));
    let (a, b) = (ground.start("node-a"), ground.start("node-b"));
    a.api(&ada).switch("beat", true).await;
    let every = Duration::from_millis(10);
    let forging =
        [(&a, 1), (&b, 7)].map(|(node, seed)| tokio::spawn(forge(node.api(&carl), every, seed)));
    let acts = ground.path("acts");
    let lines = || std::fs::read_to_string(&acts).unwrap_or_default();
    until_async("it has run", async || (lines().matches("end").count() >= RUNS).then_some(()))
        .await;
    for forging in forging {
        let (sent, taken) = forging.await.expect("it goes on");
        assert_eq!(taken, 0, "of {sent} invented secrets");
    }
    a.api(&ada).switch("beat", false).await;
    let mut open: Option<String> = None;
    for line in lines().lines() {
        let (what, run) = line.split_once(' ').expect("two words");
        match what {
            "begin" => {
                assert_eq!(open, None, "{run} begins while another runs: {}", lines());
                open = Some(run.to_owned());
            }
            _ => assert_eq!(open.take().as_deref(), Some(run), "{}", lines()),
        }
    }
    let leases = a.api(&ada).get("/api/v1/leases").await;
    let strangers = leases["leases"].as_array().expect("leases").iter();
    let unknown = strangers.filter(|lease| lease["holder"] == "unknown").count();
    assert_eq!(unknown, 0, "{leases}");
}
