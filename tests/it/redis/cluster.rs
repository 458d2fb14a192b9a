//! A store, and nodes, on a real Redis Cluster whose masters die and whose slots move.

use std::collections::HashMap;
use std::time::Duration;

use soloist::clock;
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, RunId};
use soloist::domain::time::Began;
use soloist::store::events::{Events, StoreEvent};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, Journal, Started, Then};
use soloist::store::leases::{Acquire, Acquired, Leases, Renewal, Renewed};
use soloist::store::{Options, Store, StoreError};
use tokio::sync::mpsc;

use super::{TTL, ask, granted, granted_in_the_end, in_the_end, li, renew_one, renewal};
use crate::support::cluster::RedisCluster;
use crate::support::machine::{holds, judged, within};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until, until_async};
use crate::support::witness::{self, Witness};

judged! {
    a_lost_master_delays_only_its_own_jobs_and_its_replica_grants_nothing_twice
    a_slot_that_moves_takes_its_lease_along
    urls_that_do_not_fit_the_server_are_refused_with_the_one_that_does
    one_master_that_may_evict_leases_is_enough_to_be_refused
    a_guard_gives_a_lease_back_within_milliseconds_of_its_first_connection
    nodes_run_their_scripts_on_while_a_replica_is_promoted_and_one_takes_over_at_once
    a_script_whose_master_is_away_longer_than_its_lease_ends_in_time_and_starts_again_later
    a_master_that_was_emptied_holds_back_and_its_living_holder_goes_on
}

/// Masters count as failed after this; tests share two cores with a compiler.
const NODE_TIMEOUT_MS: u32 = 2_000;

async fn connect(cluster: &RedisCluster) -> Store {
    soloist::stores::connect(&cluster.url(), &Options::default()).await.expect("it connects")
}

/// A job for each master, by its place in the cluster.
fn one_on_each(cluster: &RedisCluster) -> Vec<JobName> {
    let mut found: HashMap<usize, JobName> = HashMap::new();
    for i in 0.. {
        let name = format!("job-{i}");
        let master = cluster.master_of(&format!("soloist:{{{name}}}:lease"), 0);
        found.entry(master).or_insert_with(|| JobName::new(&name).expect("a good name"));
        if found.len() == 3 {
            break;
        }
    }
    let mut places: Vec<_> = found.into_iter().collect();
    places.sort();
    places.into_iter().map(|(_, job)| job).collect()
}

fn ask_for(job: &JobName, node: &str) -> Acquire {
    let asked = ask(node, TTL);
    Acquire { job: job.clone(), ..asked }
}

async fn until_heard(
    events: &mut mpsc::Receiver<StoreEvent>,
    wanted: impl Fn(&StoreEvent) -> bool,
) {
    let heard = async {
        loop {
            let event = events.recv().await.expect("the subscription lives");
            if wanted(&event) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("heard in time");
}

fn about(job: &JobName) -> impl Fn(&StoreEvent) -> bool {
    move |event| matches!(event, StoreEvent::Job(event) if event.job == *job)
}

/// Renews one lease ten times a second, as a keeper does, until told to stop; every answer that came.
fn keep(
    store: &Store,
    mine: Renewal,
    stop: tokio::sync::watch::Receiver<bool>,
) -> tokio::task::JoinHandle<Vec<Result<Renewed, StoreError>>> {
    let store = store.clone();
    tokio::spawn(async move {
        let mut answers = Vec::new();
        while !*stop.borrow() {
            let answer = store.renew(std::slice::from_ref(&mine)).await;
            answers.push(answer.map(|renewed| renewed[0]));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        answers
    })
}

async fn a_lost_master_delays_only_its_own_jobs_and_its_replica_grants_nothing_twice() {
    let mut cluster = RedisCluster::start(NODE_TIMEOUT_MS);
    let jobs = one_on_each(&cluster);
    let (a, b) = (connect(&cluster).await, connect(&cluster).await);
    let mut events = a.subscribe(&jobs).await.expect("subscribed");
    until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let lease = format!("soloist:{{{}}}:lease", jobs[0]);
    let mut mine = Vec::new();
    let mut keepers = Vec::new();
    for job in &jobs {
        let asked = ask_for(job, "node-a");
        let token = granted(&a, &asked).await;
        mine.push((asked.clone(), token));
        keepers.push(keep(&a, renewal(&asked, token), stopping.clone()));
    }
    let epoch = a.snapshot(&jobs).await.expect("a snapshot").epoch;
    let [lost, healthy, _] = &jobs[..] else { panic!("three masters") };

    cluster.members[0].kill();
    let killed = clock::boot();
    until_heard(&mut events, |event| *event == StoreEvent::Interrupted).await;
    let listed = b.held().await;
    holds(matches!(listed, Err(StoreError::Unavailable(_))), || format!("with gaps: {listed:?}"));
    // While nobody serves the lost slots, the others are heard and served.
    assert!(b.participate(healthy, &li(), true, None).await.expect("served"));
    until_heard(&mut events, about(healthy)).await;
    // Another asks for the lost job all the time, from before its replica is promoted until well after.
    let other = ask_for(lost, "node-b");
    let mut promoted = None;
    let mut known_to_the_cluster = None;
    while promoted.is_none_or(|at| clock::boot().since(at) < TTL * 3) {
        if known_to_the_cluster.is_none() && cluster.master_of(&lease, 1) != 0 {
            known_to_the_cluster = Some(clock::boot());
        }
        match b.acquire(&other).await {
            Ok(Acquired::Busy { .. } | Acquired::Quarantined { .. }) => {
                promoted.get_or_insert_with(clock::boot);
            }
            Err(StoreError::Unavailable(_)) => {}
            answer => panic!("{answer:?}"),
        }
        assert!(clock::boot().since(killed) < PATIENCE, "no replica is promoted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.send(true).expect("keepers listen");
    let mut answers = Vec::new();
    for keeper in keepers {
        answers.push(keeper.await.expect("it ends"));
    }
    let last = clock::boot();
    let own = &answers[0];
    assert!(own.iter().any(|answer| matches!(answer, Err(StoreError::Unavailable(_)))));
    assert!(!own.iter().any(|answer| matches!(answer, Ok(Renewed::Lost))), "{own:?}");
    assert!(matches!(own.last(), Some(Ok(Renewed::Kept { .. }))), "it goes on: {own:?}");
    for answers in &answers[1..] {
        assert!(answers.len() > 20, "{}", answers.len());
        for answer in answers {
            // Nothing left would mean that the lease had lapsed.
            let kept = matches!(answer, Ok(Renewed::Kept { margin, .. }) if !margin.is_zero());
            assert!(kept, "another master's lease: {answer:?}");
        }
    }
    let (known, used) = known_to_the_cluster.zip(promoted).expect("both happened");
    println!("promoted after {:?}, in use {:?} later", known.since(killed), used.since(known));
    within(used.since(known), Duration::from_secs(2), "the new master is used");

    // The holder falls silent: its lease runs out, and only then it is another's.
    let (newer, _) = granted_in_the_end(&b, &other).await;
    holds(newer > mine[0].1, || "a token is greater than every earlier one".to_owned());
    let waited = clock::boot().since(last);
    holds(waited + Duration::from_millis(300) >= TTL, || format!("granted after {waited:?}"));
    assert_eq!(renew_one(&a, &renewal(&mine[0].0, mine[0].1)).await, Renewed::Lost);

    until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
    let li = li();
    in_the_end(|| b.participate(lost, &li, true, None)).await;
    until_heard(&mut events, about(lost)).await;
    let now = in_the_end(|| a.snapshot(&jobs)).await.epoch;
    assert_ne!(now, epoch, "versions from before may have been lost");

    // The old master comes back as a replica, and is asked nothing.
    cluster.members[0].restart();
    cluster.until_healthy();
    assert!(in_the_end(|| a.snapshot(&jobs)).await.jobs[1].participants.len() == 1);
    let what = a.describe().await.expect("a description").what;
    assert!(what.contains(&format!(":{}", cluster.members[3].port())), "{what}");
    assert!(!what.contains(&format!(":{}", cluster.members[0].port())), "{what}");
}

async fn a_slot_that_moves_takes_its_lease_along() {
    let cluster = RedisCluster::start(15_000);
    let jobs = one_on_each(&cluster);
    let moving = &jobs[0];
    let (a, b) = (connect(&cluster).await, connect(&cluster).await);
    let mut events = b.subscribe(&jobs).await.expect("subscribed");
    until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
    let asked = ask_for(moving, "node-a");
    let token = granted(&a, &asked).await;
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let keeper = keep(&a, renewal(&asked, token), stopping);

    let [from, to] = [&cluster.members[0], &cluster.members[1]];
    let slot: u16 = from.run(&["CLUSTER", "KEYSLOT", moving.as_str()]);
    let slot = slot.to_string();
    let id = |member: &RedisServer| member.run::<String>(&["CLUSTER", "MYID"]);
    let set = |member: &RedisServer, how: &str, whose: &RedisServer| {
        member.run::<()>(&["CLUSTER", "SETSLOT", &slot, how, &id(whose)]);
    };
    set(to, "IMPORTING", from);
    set(from, "MIGRATING", to);
    let port = to.port().to_string();
    for key in from.run::<Vec<String>>(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]) {
        from.run::<String>(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]);
    }
    set(to, "NODE", to);
    set(from, "NODE", to);
    // The third master hears of it by itself, and until then a majority knows.
    until_heard(&mut events, |event| *event == StoreEvent::Interrupted).await;
    until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
    let other = ask_for(moving, "node-b");
    let begun = clock::boot();
    while clock::boot().since(begun) < TTL * 2 {
        let answer = in_the_end(|| b.acquire(&other)).await;
        let refused = matches!(answer, Acquired::Busy { .. } | Acquired::Quarantined { .. });
        assert!(refused, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(a.participate(moving, &li(), true, None).await.expect("served"));
    until_heard(&mut events, about(moving)).await;
    stop.send(true).expect("the keeper listens");
    let answers = keeper.await.expect("it ends");
    assert!(!answers.iter().any(|answer| matches!(answer, Ok(Renewed::Lost))), "{answers:?}");
    assert!(matches!(answers.last(), Some(Ok(Renewed::Kept { .. }))), "{answers:?}");
    a.release(moving, &asked.owner).await.expect("given back");
    let (newer, _) = granted_in_the_end(&b, &other).await;
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}

async fn urls_that_do_not_fit_the_server_are_refused_with_the_one_that_does() {
    let cluster = RedisCluster::shared();
    let refused =
        soloist::stores::connect(&cluster.members[1].url(), &Options::default()).await.err();
    let fits = format!("redis+cluster://127.0.0.1:{}/", cluster.members[1].port());
    assert!(
        matches!(&refused, Some(StoreError::Unsupported(why)) if why.contains(&fits)),
        "{refused:?}"
    );
    let alone = RedisServer::start(&[]);
    let url = format!("redis+cluster://127.0.0.1:{}/", alone.port());
    let begun = clock::boot();
    let refused = soloist::stores::connect(&url, &Options::default()).await.err().expect("refused");
    assert!(refused.to_string().contains("redis://"), "{refused}");
    assert!(clock::boot().since(begun) < PATIENCE);

    // Any member is enough to find the others, a replica too.
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.members[5].port());
    let options = Options { prefix: "described:".to_owned(), ..Options::default() };
    let about =
        soloist::stores::connect(&url, &options).await.expect("it connects").describe().await;
    let about = about.expect("a description");
    assert!(about.what.starts_with("Redis Cluster 7") || about.what.starts_with("Redis Cluster 8"));
    assert!(about.what.contains("3 masters") && about.shared, "{about:?}");
    assert!(about.warnings.iter().any(|warning| warning.contains("appendonly yes")), "{about:?}");
    let braces = Options { prefix: "a{b}:".to_owned(), ..Options::default() };
    let refused = soloist::stores::connect(&url, &braces).await.err();
    assert!(matches!(refused, Some(StoreError::Unsupported(_))), "{refused:?}");
}

async fn one_master_that_may_evict_leases_is_enough_to_be_refused() {
    let cluster = RedisCluster::start(15_000);
    cluster.members[2].run::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let refused = soloist::stores::connect(&cluster.url(), &Options::default()).await.err();
    let port = cluster.members[2].port().to_string();
    assert!(
        matches!(&refused, Some(StoreError::Unsupported(why)) if why.contains(&port)),
        "{refused:?}"
    );
}

async fn a_guard_gives_a_lease_back_within_milliseconds_of_its_first_connection() {
    let cluster = RedisCluster::shared();
    let options = Options { prefix: "guard:".to_owned(), ..Options::default() };
    let store = soloist::stores::connect(&cluster.url(), &options).await.expect("it connects");
    let asked = ask("node-a", Duration::from_secs(30));
    let mut took = Vec::new();
    for i in 0..20 {
        let token = granted(&store, &asked).await;
        let run = RunId(format!("01J{i:02}"));
        let (job, node) = (asked.job.clone(), asked.node.clone());
        let began = Began::at_boot(clock::boot());
        let started = Started { job: job.clone(), token, run: run.clone(), node, pid: 7, began };
        store.record_started(&started).await.expect("recorded");
        let ended = Ended {
            job,
            owner: asked.owner.clone(),
            token,
            run,
            exit: Exit { code: None, signal: Some(9) },
            end: RunEnd::Lost,
            processes_killed: 1,
            then: Then::Nothing,
            began: None,
        };
        let begun = clock::boot();
        // As a guard does, whose node had checked the store.
        let checked = Options { checked: true, ..options.clone() };
        let fresh = soloist::stores::connect(&cluster.url(), &checked).await.expect("it connects");
        fresh.record_ended(&ended).await.expect("recorded");
        took.push(clock::boot().since(begun));
    }
    took.sort();
    println!("median {:?}, longest {:?}", took[took.len() / 2], took[took.len() - 1]);
    within(took[took.len() / 2], Duration::from_millis(250), "the median of twenty");
}

/// Two nodes on a cluster, and a job on each of two masters.
struct Nodes {
    cluster: RedisCluster,
    _ground: Ground,
    nodes: Vec<Node>,
    token: String,
    jobs: Vec<JobName>,
    witnesses: Vec<Witness>,
}

impl Nodes {
    fn start(more: &str) -> Self {
        let cluster = RedisCluster::start(NODE_TIMEOUT_MS);
        let mut jobs = one_on_each(&cluster);
        // Accounts are about no job, and live on one master; the test is about a master that has only jobs.
        let global = cluster.master_of("soloist:{~}:users", 0);
        let lost = (global + 1) % 3;
        jobs = vec![jobs[lost].clone(), jobs[(global + 2) % 3].clone()];
        let toml: Vec<_> = jobs.iter().map(|j| witness::job(j.as_str(), "beat", more)).collect();
        let ground = Ground::new(&cluster.url(), &toml.join("\n"));
        witness::place(&ground);
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let nodes = vec![ground.start("node-a"), ground.start("node-b")];
        let witnesses = jobs.iter().map(|job| Witness::of(&ground, job.as_str())).collect();
        Self { cluster, _ground: ground, nodes, token, jobs, witnesses }
    }

    async fn switch_on(&self) {
        for job in &self.jobs {
            self.nodes[0].api(&self.token).switch(job.as_str(), true).await;
        }
    }
}

async fn nodes_run_their_scripts_on_while_a_replica_is_promoted_and_one_takes_over_at_once() {
    let mut place = Nodes::start("lease_ttl = \"12s\"");
    place.switch_on().await;
    let first: Vec<_> = place.witnesses.iter().map(|witness| witness.until_started(1)).collect();
    let key = format!("soloist:{{{}}}:lease", place.jobs[0]);
    let lost = place.cluster.master_of(&key, 0);
    let asked = (lost + 1) % 3;
    place.cluster.members[lost].kill();
    until("a replica is promoted", || (place.cluster.master_of(&key, asked) != lost).then_some(()));
    // Longer than the lease: only renewals at the new master can explain that it goes on.
    let deadline = first[0].at + 18.0;
    until("a lease and a half has passed", || {
        let acts = place.witnesses[0].acts();
        acts.last().is_some_and(|act| act.at > deadline).then_some(())
    });
    for (witness, first) in place.witnesses.iter().zip(&first) {
        assert_eq!(witness.starts(), 1, "the same run goes on");
        witness.until_more(first.token, 20);
    }

    // Every picture is fresh again, on both nodes.
    for node in &place.nodes {
        let api = node.api(&place.token);
        for job in &place.jobs {
            until_async("running", async || {
                let job = api.get(&format!("/api/v1/jobs/{job}")).await;
                (job["state"] == "running").then_some(())
            })
            .await;
        }
    }
    let holder = place.nodes.iter().position(|node| node.name == first[0].node).expect("a node");
    place.nodes[holder].kill();
    let second = place.witnesses[0].until_started(2);
    let acts = place.witnesses[0].acts();
    let end = acts.iter().rev().find(|act| act.token == first[0].token).expect("acts");
    let gap = second.at - end.at;
    println!("taken over {:.0} ms after the last beat of the dead", gap * 1_000.0);
    assert!(second.token > first[0].token);
    assert!(gap < 6.0, "long before the lease: {gap} s");
    for witness in &place.witnesses {
        witness.check();
    }
}

async fn a_script_whose_master_is_away_longer_than_its_lease_ends_in_time_and_starts_again_later() {
    // Promotion takes longer than this lease.
    let mut place = Nodes::start("lease_ttl = \"2s\"\nrepeat = \"100ms\"");
    place.switch_on().await;
    let first: Vec<_> = place.witnesses.iter().map(|witness| witness.until_started(1)).collect();
    let key = format!("soloist:{{{}}}:lease", place.jobs[0]);
    let lost = place.cluster.master_of(&key, 0);
    place.cluster.members[lost].kill();
    let second = place.witnesses[0].until_started(2);
    assert!(second.token > first[0].token);
    place.witnesses[0].until_more(second.token, 20);
    assert_eq!(place.witnesses[1].starts(), 1, "the job of another master is not touched");
    place.witnesses[1].until_more(first[1].token, 20);
    for witness in &place.witnesses {
        witness.check();
    }
}

/// Tokens only grow, whatever the cluster forgets.
async fn a_master_that_was_emptied_holds_back_and_its_living_holder_goes_on() {
    let cluster = RedisCluster::start(15_000);
    let jobs = one_on_each(&cluster);
    let (a, b) = (connect(&cluster).await, connect(&cluster).await);
    let asked = ask_for(&jobs[0], "node-a");
    let token: Token = granted(&a, &asked).await;
    b.observe(&jobs).await.expect("observed");
    let before = b.snapshot(&jobs).await.expect("a snapshot").epoch;
    cluster.members[0].run::<()>(&["FLUSHALL"]);
    let other = ask_for(&jobs[0], "node-b");
    let answer = in_the_end(|| b.acquire(&other)).await;
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    let mine = renewal(&asked, token);
    assert_eq!(renew_one(&a, &mine).await, Renewed::Kept { margin: Duration::ZERO, forgot: true });
    // The others know nothing of it.
    granted(&b, &ask_for(&jobs[1], "node-b")).await;
    assert_ne!(b.snapshot(&jobs).await.expect("a snapshot").epoch, before);
    a.release(&jobs[0], &asked.owner).await.expect("given back");
    let (newer, _) = granted_in_the_end(&b, &other).await;
    holds(newer > token, || "a token is greater than every earlier one".to_owned());
}
