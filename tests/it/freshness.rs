//! When the store is out of reach: a node says of its own runs what it knows, at once, and of nobody's run anything that is older than
//! the lease and half a second. On the API, on sockets, on the page and in the metrics alike.

use std::time::Duration;

use serde_json::Value;
use soloist::clock;
use soloist::domain::time::Boot;

use crate::support::api::{Api, Live};
use crate::support::machine::{judged, within};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::relay::Relay;
use crate::support::wait::{until, until_async};

judged! {
    a_node_says_at_once_that_its_guard_stopped_a_script_and_every_other_within_the_lease_and_a_half_second
    a_holder_that_is_cut_off_says_at_once_that_its_script_is_stopped
}

const JOB: &str = "beat";
const JOBS: &str = "lease_ttl = \"2s\"\n[[job]]\nname = \"beat\"\nstop_grace = \"100ms\"\nmin_uptime = \"1s\"\ncommand = [\"sh\", \"-c\", \"while :; do read -r up _ </proc/uptime; echo $up >up.new; mv up.new up; sleep 0.02; done\"]\n";
/// Lease and half a second: promise 6.
const LATEST: Duration = Duration::from_millis(2_500);
/// From the last act of a script to its end on every surface. A guard kills some hundred milliseconds after TERM.
const AT_ONCE: Duration = Duration::from_millis(400);

/// When a socket of a node said `unknown` for the first time, when the API and the metrics said something else for the last time, and what
/// the API said then. An answer may take a while when the store is away; it is true when it comes.
struct Seen {
    socket: Boot,
    api: Boot,
    metrics: Boot,
    job: Value,
}

async fn watch(mut live: Live, api: &Api, url: &str) -> Seen {
    let socket = async {
        live.until_state(JOB, "unknown").await;
        clock::boot()
    };
    let mut last = clock::boot();
    let asked = until_async("the API says unknown", async || {
        let job = api.get(&format!("/api/v1/jobs/{JOB}")).await;
        if job["state"] == "unknown" {
            return Some((last, job));
        }
        last = clock::boot();
        None
    });
    let mut last = clock::boot();
    let metrics = until_async("the metrics say unknown", async || {
        let text = crate::support::http::get(format!("{url}/metrics"))
            .await
            .expect("an answer")
            .text()
            .await;
        let line = format!("soloist_job_state{{job=\"{JOB}\",state=\"unknown\"}} 1");
        if text.expect("text").contains(&line) {
            return Some(last);
        }
        last = clock::boot();
        None
    });
    let (socket, (api, job), metrics) = futures_util::join!(socket, asked, metrics);
    Seen { socket, api, metrics, job }
}

impl Seen {
    /// Each within `most` of `since`.
    fn all_within(&self, since: Boot, most: Duration, what: &str) {
        for (surface, at) in [("socket", self.socket), ("API", self.api), ("metrics", self.metrics)]
        {
            within(at.since(since), most, &format!("{what}: {surface}"));
        }
    }
}

/// CLOCK_BOOTTIME when the script acted last.
fn last_act(ground: &Ground) -> Boot {
    let text = until("it has acted", || std::fs::read_to_string(ground.path("up")).ok());
    let seconds: f64 = text.trim().parse().expect("a number");
    Boot(0) + Duration::from_secs_f64(seconds)
}

/// node-a runs the job; its account, and where it is.
async fn running(ground: &Ground, node: &Node, token: &str) -> Api {
    let li = node.api(token);
    li.switch(JOB, true).await;
    until_async("node-a runs it", async || {
        let job = li.get(&format!("/api/v1/jobs/{JOB}")).await;
        (job["state"] == "running" && job["lease"]["node"] == "node-a").then_some(())
    })
    .await;
    last_act(ground);
    li
}

fn says_where_it_was_stopped(seen: &Seen) {
    let why = seen.job["why"].as_str().expect("a sentence");
    assert!(why.contains("the script was stopped here at"), "{why}");
    assert!(why.contains("The store does not know yet"), "{why}");
}

async fn a_node_says_at_once_that_its_guard_stopped_a_script_and_every_other_within_the_lease_and_a_half_second()
 {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOBS);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let a = ground.start("node-a");
    let li = running(&ground, &a, &token).await;
    let b = ground.start("node-b");
    let other = b.api(&token);
    until_async("node-b sees it", async || {
        let job = other.get(&format!("/api/v1/jobs/{JOB}")).await;
        (job["state"] == "running").then_some(())
    })
    .await;
    let (at_a, at_b) = (li.live().await, other.live().await);
    redis.pause();
    let cut = clock::boot();
    let (here, there) = tokio::join!(watch(at_a, &li, &a.url), watch(at_b, &other, &b.url));
    let died = last_act(&ground);
    assert!(here.socket > died, "nobody says it before it is so");
    says_where_it_was_stopped(&here);
    here.all_within(died, AT_ONCE, "from the last act, at its own node");
    here.all_within(cut, LATEST, "from the cut, at its own node");
    there.all_within(cut, LATEST, "from the cut, at another node");
    redis.resume();
    until_async("it runs again", async || {
        let job = li.get(&format!("/api/v1/jobs/{JOB}")).await;
        (job["state"] == "running").then_some(())
    })
    .await;
}

async fn a_holder_that_is_cut_off_says_at_once_that_its_script_is_stopped() {
    let redis = RedisServer::start(&[]);
    let relay = Relay::before(redis.port());
    let ground = Ground::new(&relay.url_of(&redis.url()), JOBS);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let a = ground.start("node-a");
    let li = running(&ground, &a, &token).await;
    let at_a = li.live().await;
    relay.stop_after(0, false);
    until("nothing goes through", || relay.has_stopped().then_some(()));
    let cut = clock::boot();
    let seen = watch(at_a, &li, &a.url).await;
    says_where_it_was_stopped(&seen);
    seen.all_within(last_act(&ground), AT_ONCE, "from the last act");
    seen.all_within(cut, LATEST, "from the cut");
}
