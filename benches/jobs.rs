//! What the steps of a job cost on SQLite, one after the other as one caller sees them.
//!
//! `cargo bench --features full --bench jobs [-- --rounds N]`
//!
//! One process, one file in the temporary directory, a thousand jobs that were touched before. Every step is timed by itself;
//! printed are the median and the tenth slowest of a hundred, in microseconds. Compare two programs only in turns on one machine.

use std::time::Duration;

use soloist::clock;
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::Began;
use soloist::feed::{Feed, Followed};
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::{Ended, Journal as _, NewLine, Output, Started, Stream, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal};
use soloist::store::{Options, Store};

const TTL: Duration = Duration::from_secs(600);
const JOBS: usize = 1_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let at = words.iter().position(|word| word == "--rounds");
    let rounds = at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(2_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(rounds));
}

fn job(nth: usize) -> JobName {
    JobName::new(&format!("job-{nth:05}")).expect("a good name")
}

fn node() -> NodeName {
    NodeName::new("node-a").expect("a good name")
}

fn li() -> UserName {
    UserName::new("li").expect("a good name")
}

/// How long each of some calls took.
struct Times {
    what: &'static str,
    each: Vec<Duration>,
}

impl Times {
    fn new(what: &'static str) -> Self {
        Self { what, each: Vec::new() }
    }

    async fn time<T>(&mut self, call: impl Future<Output = T>) -> T {
        let begun = clock::boot();
        let answer = call.await;
        self.each.push(clock::boot().since(begun));
        answer
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        self.each.sort();
        let at = |share: usize| self.each[self.each.len() * share / 100].as_secs_f64() * 1e6;
        println!("{:<44} {:>9.1} {:>9.1}", self.what, at(50), at(90));
    }
}

async fn take(store: &Store, job: &JobName, owner: &str) -> Token {
    let ask = Acquire {
        job: job.clone(),
        owner: Owner(owner.to_owned()),
        node: node(),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    };
    match store.acquire(&ask).await.expect("an answer") {
        Acquired::Granted { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

async fn measure(rounds: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
    let store = soloist::stores::connect(&url, &Options::default()).await.expect("the store");
    let names: Vec<JobName> = (0..JOBS).map(job).collect();
    for name in &names {
        store.participate(name, &li(), true, Some("spring sale")).await.expect("on");
    }
    println!("{:<44} {:>9} {:>9}   us", "", "median", "90 %");
    let mut switch = Times::new("switch");
    for round in 0..rounds {
        let name = &names[round % 10];
        switch.time(store.participate(name, &li(), round / 10 % 2 == 1, None)).await.expect("done");
    }
    drop(switch);
    commands(&url, &names, rounds / 10).await;
    cycle(&store, rounds).await;
    many(&store, &names, rounds / 20).await;
    shown(&store, &url, rounds / 4).await;
}

/// As a command does it, which has seen nothing of the job before.
async fn commands(url: &str, names: &[JobName], rounds: usize) {
    let mut switch = Times::new("switch by a process that knows nothing yet");
    for round in 0..rounds {
        let store = soloist::stores::connect(url, &Options::default()).await.expect("the store");
        let on = round % 2 == 1;
        switch.time(store.participate(&names[20], &li(), on, None)).await.expect("done");
    }
}

async fn cycle(store: &Store, rounds: usize) {
    let name = job(50);
    let mut acquire = Times::new("acquire");
    let mut started = Times::new("record_started");
    let mut line = Times::new("record_output, one line");
    let mut ended = Times::new("record_ended");
    for round in 0..rounds {
        let owner = Owner(format!("8d0a6ceb3583567237cfbc921392335d/{round}"));
        let token = acquire.time(take(store, &name, &owner.0)).await;
        let run = RunId(format!("01M81QMQ2XM1FJQ77QM{round:07}"));
        let began = Began::at_boot(clock::boot());
        let start =
            Started { job: name.clone(), token, run: run.clone(), node: node(), pid: 7, began };
        started.time(store.record_started(&start)).await.expect("started");
        let output = Output {
            job: name.clone(),
            token,
            run: run.clone(),
            node: node(),
            lines: vec![NewLine {
                stream: Stream::Stdout,
                text: format!("order {round} is shipped to the warehouse in the north"),
            }],
            progress: None,
            heard: false,
        };
        line.time(store.record_output(&output)).await.expect("written");
        let end = Ended {
            job: name.clone(),
            owner,
            token,
            run,
            exit: Exit { code: Some(0), signal: None },
            end: RunEnd::Exited,
            processes_killed: 0,
            then: Then::Nothing,
            began: None,
        };
        ended.time(store.record_ended(&end)).await.expect("ended");
    }
}

async fn many(store: &Store, names: &[JobName], rounds: usize) {
    let mut renewals = Vec::new();
    for name in names {
        let owner = format!("8d0a6ceb3583567237cfbc921392335d/{name}");
        let token = take(store, name, &owner).await;
        let since = Began { boot: clock::boot(), at: None };
        let (job, owner, run) = (name.clone(), Owner(owner), None);
        renewals.push(Renewal { job, owner, node: node(), token, ttl: TTL, since, run });
    }
    let mut renew = Times::new("renew, 1,000 leases in one call");
    let mut observe = Times::new("observe, 1,000 jobs");
    let mut snapshot = Times::new("snapshot, 1,000 jobs");
    let mut held = Times::new("held, 1,000 leases");
    for _ in 0..rounds {
        renew.time(store.renew(&renewals)).await.expect("renewed");
        observe.time(store.observe(names)).await.expect("observed");
        snapshot.time(store.snapshot(names)).await.expect("read");
        held.time(store.held()).await.expect("read");
    }
}

/// From the call until the feed of another connection shows the change.
async fn shown(store: &Store, url: &str, rounds: usize) {
    let other = soloist::stores::connect(url, &Options::default()).await.expect("the store");
    let name = job(30);
    let followed = Followed {
        job: name.clone(),
        timing: Timing::from_ttl(TTL).expect("safe"),
        min_uptime: Duration::ZERO,
        takes_turns: false,
        external: false,
        schedule: None,
    };
    let feed = Feed::start(other, vec![followed]).await;
    let mut changes = feed.subscribe();
    let mut switch = Times::new("switch, until the feed of another shows it");
    for round in 0..rounds {
        let version = feed.job(&name).expect("it is followed").record.version;
        switch
            .time(async {
                store.participate(&name, &li(), round % 2 == 1, None).await.expect("done");
                while feed.job(&name).is_none_or(|seen| seen.record.version == version) {
                    drop(changes.recv().await);
                }
            })
            .await;
    }
}
