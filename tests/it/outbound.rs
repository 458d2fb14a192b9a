//! The example of the README: one long run that ships orders, waits for new ones, and ships each of them once.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::api::{Api, Live};
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

judged! {
    the_example_ships_every_order_once_across_take_overs_and_then_waits_for_more
    the_example_orders_a_few_things_by_itself_and_only_when_it_is_told_to
}

const JOB: &str = "outbound";

fn example(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/outbound").join(file)
}

/// The example's job, with its state in the ground.
fn job(env: &str) -> String {
    let (script, orders) = (example("ship.sh"), example("orders.csv"));
    format!(
        "[[job]]\nname = \"{JOB}\"\ncommand = [\"sh\", {script:?}]\nmin_uptime = \"100ms\"\n\
         env = {{ ORDERS = {orders:?}, STATE = \"state\", PAUSE = \"0.03\"{env} }}\n"
    )
}

fn shipped(ground: &Ground) -> Vec<String> {
    let text = std::fs::read_to_string(ground.path("state/shipped.csv")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().skip(1).map(id).collect()
}

fn id(line: &str) -> String {
    line.split(',').next().unwrap_or_default().to_owned()
}

async fn until_shipped(ground: &Ground, count: usize) {
    until_async(&format!("{count} orders are shipped"), async || {
        (shipped(ground).len() >= count).then_some(())
    })
    .await;
}

/// `order.sh`, and the numbers that it said.
fn order(ground: &Ground, many: usize) -> Vec<String> {
    let mut command = Command::new("sh");
    command.arg(example("order.sh")).arg(many.to_string());
    command.env("STATE", ground.path("state")).env_remove("ORDERS");
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    said.lines().filter_map(|line| line.strip_prefix("ordered ").map(str::to_owned)).collect()
}

/// It waits for orders, and the last of `done` in a row is shipped.
async fn until_idle(live: &mut Live, done: usize) -> Value {
    let idle = |job: &Value| {
        let progress = &job["run"]["progress"];
        progress["note"] == "waiting for orders" && progress["done"] == done
    };
    live.until(JOB, "it waits for orders", idle).await
}

/// Switched off, it ends by itself before any grace is over.
async fn ends_when_asked(api: &Api, live: &mut Live) {
    api.switch(JOB, false).await;
    let is_off = |job: &Value| job["state"] == "off" && !job["last_exit"].is_null();
    let off = live.until(JOB, "it is off", is_off).await;
    in_time(off["last_exit"]["code"] == 0, || format!("it was killed: {off}"));
    let runs = api.runs(JOB).await;
    assert_eq!(runs[0]["end"], "stopped", "{runs:?}");
}

async fn the_example_ships_every_order_once_across_take_overs_and_then_waits_for_more() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &job(""));
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let (a, b) = (ground.start("node-a"), ground.start("node-b"));
    a.api(&token).switch(JOB, true).await;
    until_shipped(&ground, 10).await;
    let holder = a.api(&token).get("/api/v1/jobs/outbound").await["lease"]["node"].clone();
    let (mut first, second) = if holder == "node-a" { (a, b) } else { (b, a) };
    let mut wanted: Vec<String> = std::fs::read_to_string(example("orders.csv"))
        .expect("the orders")
        .lines()
        .skip(1)
        .map(id)
        .collect();
    wanted.extend(order(&ground, 12));
    first.kill();
    let api = second.api(&token);
    let mut live = api.live().await;
    until_idle(&mut live, 12).await;
    let each_once = || {
        let shipped = shipped(&ground);
        let mut ids = shipped.clone();
        ids.sort_unstable();
        ids.dedup();
        holds(ids.len() == shipped.len(), || format!("shipped twice: {shipped:?}"));
        shipped
    };
    assert_eq!(each_once(), wanted, "each, in order");

    let fresh = order(&ground, 3);
    wanted.extend(fresh);
    until_shipped(&ground, wanted.len()).await;
    let idle = until_idle(&mut live, 3).await;
    assert_eq!(idle["state"], "running", "it is one long run: {idle}");
    assert_eq!(each_once(), wanted);
    let inbox = std::fs::read_dir(ground.path("state/inbox")).expect("the inbox");
    assert_eq!(inbox.count(), 0, "what was shipped is gone from the inbox");
    let runs = api.runs(JOB).await;
    in_time(runs.len() == 2, || format!("one run on each node: {runs:?}"));
    ends_when_asked(&api, &mut live).await;
}

async fn the_example_orders_a_few_things_by_itself_and_only_when_it_is_told_to() {
    let ground = Ground::new("sqlite:soloist.db", &job(", REFILL = \"1\""));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    api.switch(JOB, true).await;
    until_shipped(&ground, 64).await;
    let mut ids = shipped(&ground);
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() >= 64, "none twice: {ids:?}");
    // Not opened before: whoever reads nothing answers no ping.
    ends_when_asked(&api, &mut api.live().await).await;
}

#[test]
fn many_can_order_at_once_and_no_two_orders_have_one_number() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let ground = &ground;
    let mut all: Vec<String> = std::thread::scope(|scope| {
        let people: Vec<_> = (0..4).map(|_| scope.spawn(move || order(ground, 5))).collect();
        people.into_iter().flat_map(|one| one.join().expect("it ordered")).collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 20);
    let inbox = std::fs::read_dir(ground.path("state/inbox")).expect("the inbox");
    assert_eq!(inbox.count(), 20, "and nothing half-made is left");
}
