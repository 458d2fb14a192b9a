//! Jobs as members of a rotation: each run is one turn, whatever becomes of the nodes that have it.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use soloist::domain::name::{JobName, RequestId, RotationName, TypeName, WorkerName};
use soloist::domain::rotation::{Ending, Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::store::rotation::{
    Kept, Pass, PastTurn, RotationView, Rotations as _, Taken, TurnAsk,
};
use soloist::store::{Options, Store};

use crate::support::api::Api;
use crate::support::machine::judged;
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until, until_async};
use crate::support::witness::{self, Witness};

judged! {
    two_jobs_take_turns_and_keep_the_gap_on_sqlite
    two_jobs_of_two_nodes_take_turns_and_keep_the_gap_on_redis
    a_member_that_waits_says_for_whom_and_off_leaves_neither_run_nor_waiter
    a_member_whose_rotation_is_not_there_waits_and_goes_on_when_it_is
    a_crash_fails_its_turn_and_counts_from_the_start_of_the_script_not_from_the_wait
    kill_9_of_the_node_that_has_the_turn_ends_the_script_and_the_order_goes_on
    a_paused_node_loses_the_script_before_its_turn_is_another_s
    a_turn_that_somebody_else_ends_kills_the_script_which_is_no_crash
    a_terminated_node_passes_its_turn_as_done_and_another_takes_the_next
    a_node_that_is_terminated_while_it_waits_gives_the_lease_back_at_once
}

const ROTATION: &str = "supplier-api";
/// Long: whoever waited for it would fail the test by its patience.
const LONG: Duration = Duration::from_secs(120);
/// Too short for any patience of this machine to hide behind.
const GAP: Duration = Duration::from_millis(200);

fn rotation() -> RotationName {
    RotationName::new(ROTATION).expect("a valid name")
}

fn kind(name: &str) -> TypeName {
    TypeName::of(&JobName::new(name).expect("a valid name"))
}

fn rules(types: &[&str], min_gap: Duration, lease: Duration) -> Rules {
    let types =
        types.iter().map(|name| TypeRules { name: kind(name), gap: Duration::ZERO, quota: None });
    Rules { types: types.collect(), min_gap, lease, skip: Skip::Absent }
}

/// A member of [`ROTATION`]; `more` are further keys.
fn member(name: &str, mode: &str, more: &str) -> String {
    witness::job(name, mode, &format!("rotation = \"{ROTATION}\"\nrepeat = \"20ms\"\n{more}"))
}

/// A store, a configuration, a person, and the test's own door to the store.
struct House {
    redis: Option<RedisServer>,
    ground: Ground,
    li: String,
    store: Store,
}

impl House {
    async fn on_redis(jobs: &str) -> Self {
        let redis = RedisServer::start(&[]);
        let ground = Ground::new(&redis.url(), jobs);
        Self::open(Some(redis), ground).await
    }

    async fn on_sqlite(jobs: &str) -> Self {
        Self::open(None, Ground::new("sqlite:soloist.db", jobs)).await
    }

    async fn open(redis: Option<RedisServer>, ground: Ground) -> Self {
        witness::place(&ground);
        ground.add_user("li", "operator");
        let li = ground.token("li");
        let file = || format!("sqlite:{}", ground.path("soloist.db").display());
        let url = redis.as_ref().map_or_else(file, RedisServer::url);
        let store = soloist::stores::connect(&url, &Options::default()).await.expect("the store");
        Self { redis, ground, li, store }
    }

    fn start(&self, name: &str) -> (Node, Api) {
        let node = self.ground.start(name);
        let api = node.api(&self.li);
        (node, api)
    }

    fn witness(&self, job: &str) -> Witness {
        Witness::of(&self.ground, job)
    }

    async fn define(&self, rules: &Rules) {
        self.store.put_rotation(&rotation(), rules).await.expect("defined");
    }

    async fn view(&self) -> RotationView {
        let views = self.store.rotations(Some(&rotation()), 200).await.expect("readable");
        views.into_iter().next().expect("the rotation")
    }

    /// Takes the turn for a stranger, as a collector would.
    async fn take(&self, name: &str) -> Turn {
        let ask = TurnAsk {
            rotation: rotation(),
            kind: kind(name),
            worker: WorkerName::new("stranger").expect("a valid name"),
            request: RequestId::new("only").expect("a valid name"),
            wait: None,
        };
        until_async("the stranger has the turn", async || {
            match self.store.take_turn(&ask).await.expect("an answer") {
                Taken::Granted(turn) => Some(turn),
                Taken::Over(_) | Taken::Waiting { .. } => None,
            }
        })
        .await
    }

    async fn pass(&self, turn: &Turn) {
        let pass = Pass {
            rotation: rotation(),
            turn: turn.token,
            only: None,
            outcome: TurnOutcome::Done,
            next: None,
            not_before: None,
        };
        let kept = self.store.pass_turn(&pass).await.expect("an answer");
        assert!(matches!(kept, Kept::Yes(_)), "{kept:?}");
    }

    /// Waits for the turn that a job has.
    async fn turn_of(&self, job: &str) -> Turn {
        until_async("the job has the turn", async || {
            self.view().await.ring.turn.filter(|turn| turn.kind == kind(job))
        })
        .await
    }

    /// Waits until so many turns have ended; oldest first.
    async fn ended(&self, count: usize) -> Vec<PastTurn> {
        until_async("enough turns have ended", async || {
            let mut past = self.view().await.past;
            past.reverse();
            (past.len() >= count).then_some(past)
        })
        .await
    }

    /// The paragraph of `soloist why`, once it says all `parts`; the API says the same.
    async fn until_why(&self, api: &Api, job: &str, parts: &[&str]) -> Value {
        until(&format!("why says {parts:?}"), || {
            let why = self.ground.must(&["why", job]);
            parts.iter().all(|part| why.contains(part)).then_some(())
        });
        until_async(&format!("the API says {parts:?}"), async || {
            let job = api.get(&format!("/api/v1/jobs/{job}")).await;
            let why = job["why"].as_str().expect("a paragraph");
            parts.iter().all(|part| why.contains(part)).then_some(job.clone())
        })
        .await
    }
}

/// Every turn follows the one before it by at least the gap, and begins only when that has ended.
fn check_turns(turns: &[PastTurn], gap: Duration) {
    for pair in turns.windows(2) {
        assert!(pair[1].since.since(pair[0].since) >= gap, "too soon: {pair:?}");
        assert!(pair[1].since >= pair[0].ended, "two at a time: {pair:?}");
    }
}

/// No act of one job falls between the first and the last act of one run of the other; `/proc/uptime` has hundredths.
fn check_apart(one: &Witness, other: &Witness) {
    let spans = |witness: &Witness| {
        let mut spans: Vec<(u64, f64, f64)> = Vec::new();
        for act in witness.acts() {
            match spans.last_mut() {
                Some(span) if span.0 == act.token => span.2 = act.at,
                _ => spans.push((act.token, act.at, act.at)),
            }
        }
        spans
    };
    for a in spans(one) {
        for b in spans(other) {
            assert!(a.2 < b.1 + 0.011 || b.2 < a.1 + 0.011, "at one time: {a:?} and {b:?}");
        }
    }
}

async fn alternate(house: House) {
    let mut strict = rules(&["stock", "prices"], GAP, Duration::from_secs(10));
    // Or one of them could have two turns in a row while the other comes back from its pause.
    strict.skip = Skip::Never;
    house.define(&strict).await;
    let (_a, api) = house.start("node-a");
    let _b = house.redis.is_some().then(|| house.start("node-b"));
    api.switch("stock", true).await;
    api.switch("prices", true).await;
    let turns = house.ended(6).await;
    check_turns(&turns, GAP);
    for (nth, turn) in turns.iter().enumerate() {
        assert_eq!(turn.kind, kind(["stock", "prices"][nth % 2]), "{turns:?}");
        assert_eq!(turn.worker.as_str(), format!("job/{}", turn.kind));
        assert_eq!(turn.ending, Ending::Done);
    }
    let (stock, prices) = (house.witness("stock"), house.witness("prices"));
    check_apart(&stock, &prices);
    stock.check();
    prices.check();
    let runs = api.runs("stock").await;
    assert!(runs.iter().all(|run| run["end"] == "exited" || run["end"].is_null()), "{runs:?}");
}

async fn two_jobs_take_turns_and_keep_the_gap_on_sqlite() {
    let jobs = member("stock", "once", "") + &member("prices", "once", "");
    alternate(House::on_sqlite(&jobs).await).await;
}

async fn two_jobs_of_two_nodes_take_turns_and_keep_the_gap_on_redis() {
    let jobs = member("stock", "once", "") + &member("prices", "once", "");
    alternate(House::on_redis(&jobs).await).await;
}

async fn a_member_that_waits_says_for_whom_and_off_leaves_neither_run_nor_waiter() {
    let house = House::on_sqlite(&member("stock", "once", "")).await;
    house.define(&rules(&["stock", "prices"], Duration::ZERO, LONG)).await;
    let (_node, api) = house.start("node-a");
    let turn = house.take("prices").await;
    let mut live = api.live().await;
    api.switch("stock", true).await;
    let held =
        ["waits for its turn in rotation supplier-api: prices has it since ", "Wanted by li"];
    let job = house.until_why(&api, "stock", &held).await;
    assert_eq!(
        (&job["state"], &job["lease"]["node"], &job["run"]),
        (&"resting".into(), &"node-a".into(), &Value::Null)
    );
    live.until("stock", "the push says it, too", |job| {
        held.iter().all(|part| job["why"].as_str().unwrap_or_default().contains(part))
    })
    .await;
    let status = house.ground.must(&["status", "stock"]);
    assert!(status.contains("waits for its turn in supplier-api"), "{status}");
    assert!(live.seen.iter().all(|(_, state)| state != "starting"), "{:?}", live.seen);
    let metrics =
        crate::support::http::get(format!("{}/metrics", _node.url)).await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    let waited = "soloist_job_wanted_not_running_seconds{job=\"stock\"} ";
    let waited = metrics.lines().find_map(|line| line.strip_prefix(waited)).expect("the metric");
    assert_eq!(waited, "0", "who rests is in no trouble");
    assert_eq!(house.view().await.types[0].waiting, 1);

    api.switch("stock", false).await;
    let off = live.until_state("stock", "off").await;
    assert_eq!((&off["last_exit"], &off["lease"]), (&Value::Null, &Value::Null));
    assert_eq!(api.runs("stock").await, [Value::Null; 0]);
    until_async("nobody waits", async || (house.view().await.types[0].waiting == 0).then_some(()))
        .await;
    assert_eq!(house.witness("stock").starts(), 0);

    api.switch("stock", true).await;
    house.pass(&turn).await;
    let turns = house.ended(2).await;
    assert_eq!((turns[1].kind.as_str(), turns[1].ending), ("stock", Ending::Done));
}

async fn a_member_whose_rotation_is_not_there_waits_and_goes_on_when_it_is() {
    let house = House::on_sqlite(&member("stock", "once", "")).await;
    let (_node, api) = house.start("node-a");
    api.switch("stock", true).await;
    let remedy = "PUT /api/v1/rotations/supplier-api";
    house.until_why(&api, "stock", &["the rotation is not defined", remedy]).await;
    house.define(&rules(&["prices"], Duration::ZERO, LONG)).await;
    house.until_why(&api, "stock", &["it has no type stock", remedy]).await;
    house.define(&rules(&["stock"], Duration::ZERO, Duration::from_millis(600))).await;
    let job = house.until_why(&api, "stock", &["its turns last 600 ms", remedy]).await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(house.view().await.past, [], "no turn was taken for nothing");
    house.define(&rules(&["stock"], Duration::ZERO, LONG)).await;
    let _started = house.witness("stock").until_started(1);
}

async fn a_crash_fails_its_turn_and_counts_from_the_start_of_the_script_not_from_the_wait() {
    // Longer than min_uptime: whoever counts from the lease takes each crash for the first.
    let gap = Duration::from_millis(700);
    let crash = "give_up_after = 3\nbackoff = { first = \"10ms\", max = \"10ms\" }";
    let house = House::on_sqlite(&member("stock", "crash", crash)).await;
    house.define(&rules(&["stock"], gap, LONG)).await;
    let (_node, api) = house.start("node-a");
    let mut live = api.live().await;
    api.switch("stock", true).await;
    live.until_state("stock", "given_up").await;
    let turns = house.ended(3).await;
    assert_eq!(house.witness("stock").starts(), 3);
    assert!(turns.iter().all(|turn| turn.ending == Ending::Failed), "{turns:?}");
    check_turns(&turns, gap);
}

async fn kill_9_of_the_node_that_has_the_turn_ends_the_script_and_the_order_goes_on() {
    let jobs =
        member("stock", "stubborn", "lease_ttl = \"120s\"\nnodes = [\"node-a\", \"node-b\"]")
            + &member("prices", "once", "nodes = [\"node-c\"]");
    let house = House::on_redis(&jobs).await;
    house.define(&rules(&["stock", "prices"], GAP, LONG)).await;
    let (a, _) = house.start("node-a");
    let (b, _) = house.start("node-b");
    let (_c, api) = house.start("node-c");
    let stock = house.witness("stock");
    api.switch("stock", true).await;
    let first = stock.until_started(1);
    let turn = house.turn_of("stock").await;
    api.switch("prices", true).await;
    house.until_why(&api, "prices", &["stock has it since"]).await;
    let (mut dying, _living) = if a.name == first.node { (a, b) } else { (b, a) };
    dying.kill();
    let second = stock.until_started(2);
    assert_ne!(second.node, first.node);
    assert_eq!(stock.living_under(first.token), [0; 0]);
    let turns = house.ended(2).await;
    assert_eq!((turns[0].token, turns[0].ending), (turn.token, Ending::Failed), "{turns:?}");
    assert_eq!((turns[1].kind.as_str(), turns[1].ending), ("prices", Ending::Done), "{turns:?}");
    check_turns(&turns, GAP);
    check_apart(&stock, &house.witness("prices"));
    stock.check();
}

async fn a_paused_node_loses_the_script_before_its_turn_is_another_s() {
    let jobs = member("stock", "stubborn", "lease_ttl = \"120s\"\nnodes = [\"node-a\"]")
        + &member("prices", "beat", "lease_ttl = \"120s\"\nnodes = [\"node-b\"]");
    let house = House::on_redis(&jobs).await;
    house.define(&rules(&["stock", "prices"], GAP, Duration::from_secs(2))).await;
    let (paused, _) = house.start("node-a");
    let (_b, api) = house.start("node-b");
    let (stock, prices) = (house.witness("stock"), house.witness("prices"));
    api.switch("stock", true).await;
    let first = stock.until_started(1);
    let turn = house.turn_of("stock").await;
    api.switch("prices", true).await;
    house.until_why(&api, "prices", &["stock has it since"]).await;
    paused.signal(Signal::SIGSTOP);
    let _other = prices.until_started(1);
    assert_eq!(stock.living_under(first.token), [0; 0], "it is gone, and its node still sleeps");
    let turns = house.ended(1).await;
    assert_eq!((turns[0].token, turns[0].ending), (turn.token, Ending::Lost));
    paused.signal(Signal::SIGCONT);
    // Its lease was never lost: it waits for the next turn, and has it when that is passed.
    house.until_why(&api, "stock", &["prices has it since"]).await;
    let runs = api.runs("stock").await;
    assert_eq!(runs[0]["end"], "fenced", "{runs:?}");
    api.switch("prices", false).await;
    let _again = stock.until_started(2);
    check_turns(&house.ended(2).await, GAP);
    check_apart(&stock, &prices);
    stock.check();
}

async fn a_turn_that_somebody_else_ends_kills_the_script_which_is_no_crash() {
    let house = House::on_redis(&member("stock", "stubborn", "stop_grace = \"60s\"")).await;
    house.define(&rules(&["stock", "prices"], Duration::ZERO, Duration::from_secs(3))).await;
    let (_node, api) = house.start("node-a");
    let stock = house.witness("stock");
    api.switch("stock", true).await;
    let first = stock.until_started(1);
    let turn = house.turn_of("stock").await;
    house.pass(&turn).await;
    let foreign = house.take("prices").await;
    until("the script is gone", || stock.living_under(first.token).is_empty().then_some(()));
    let job = house.until_why(&api, "stock", &["prices has it since"]).await;
    assert_eq!(job["state"], "resting", "no crash, so nothing to back off from: {job}");
    assert_eq!(api.runs("stock").await[0]["end"], "fenced");
    house.pass(&foreign).await;
    let _again = stock.until_started(2);
    stock.check();
}

async fn a_terminated_node_passes_its_turn_as_done_and_another_takes_the_next() {
    let house = House::on_redis(&member("stock", "beat", "lease_ttl = \"120s\"")).await;
    house.define(&rules(&["stock"], Duration::ZERO, LONG)).await;
    let (a, _) = house.start("node-a");
    let (b, _) = house.start("node-b");
    let stock = house.witness("stock");
    a.api(&house.li).switch("stock", true).await;
    let first = stock.until_started(1);
    let (mut leaving, staying) = if a.name == first.node { (a, b) } else { (b, a) };
    assert_eq!(leaving.terminate(), Some(0));
    let second = stock.until_started(2);
    assert_eq!(second.node, staying.name);
    let turns = house.ended(1).await;
    assert_eq!(turns[0].ending, Ending::Done, "it was asked to stop: {turns:?}");
    stock.check();
}

async fn a_node_that_is_terminated_while_it_waits_gives_the_lease_back_at_once() {
    let house = House::on_redis(&member("stock", "beat", "lease_ttl = \"120s\"")).await;
    house.define(&rules(&["stock", "prices"], Duration::ZERO, LONG)).await;
    let (mut a, _) = house.start("node-a");
    let turn = house.take("prices").await;
    a.api(&house.li).switch("stock", true).await;
    house.until_why(&a.api(&house.li), "stock", &["On node-a it waits"]).await;
    let (b, api) = house.start("node-b");
    assert_eq!(a.terminate(), Some(0));
    house.until_why(&api, "stock", &["On node-b it waits"]).await;
    house.pass(&turn).await;
    assert_eq!(house.witness("stock").until_started(1).node, b.name);
    let runs = api.runs("stock").await;
    assert_eq!(runs.len(), 1, "no run of node-a is told of: {runs:?}");
    assert!(LONG > PATIENCE, "or nothing of this was shown");
}
