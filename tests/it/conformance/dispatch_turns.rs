//! Laws of fairness between sources, and of counts that add up.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist::domain::dispatch::{Backoff, Rules, TaskOutcome, Window};
use soloist::domain::name::SourceName;
use soloist::store::dispatch::{
    ClaimAsk, Claimed, Dispatch, Handed, NewTask, Report, Reported, Sources,
};

use super::dispatch::*;
use super::*;

pub(super) async fn a_large_source_does_not_hold_up_small_ones(fresh: Fresh) {
    let store = fresh.connect().await;
    // A name that sorts first, middle or last must not matter.
    define(&store, "m-big", &free()).await;
    put_many(&store, "m-big", 1_000).await;
    let small: Vec<String> =
        (0..20).map(|n| format!("{}-{n}", if n < 10 { "a" } else { "z" })).collect();
    for name in &small {
        define(&store, name, &free()).await;
        put_many(&store, name, 1).await;
    }
    let mut served = BTreeMap::<String, u32>::new();
    for _ in 0..40 {
        *served.entry(take(&store).await.source.to_string()).or_default() += 1;
    }
    for name in &small {
        assert_eq!(served.get(name), Some(&1), "{name} within the first 40 claims: {served:?}");
    }
}

pub(super) async fn backlogged_sources_are_served_in_turn(fresh: Fresh) {
    let store = fresh.connect().await;
    for name in ["a", "b", "c", "d"] {
        define(&store, name, &free()).await;
        put_many(&store, name, 10).await;
    }
    let mut order = Vec::new();
    for _ in 0..40 {
        order.push(take(&store).await.source.to_string());
    }
    for round in order.chunks(4) {
        assert_eq!(round, &order[..4], "always in the same order: {order:?}");
    }
}

pub(super) async fn one_claim_takes_from_every_source(fresh: Fresh) {
    let store = fresh.connect().await;
    for name in ["a", "b", "c", "d"] {
        define(&store, name, &free()).await;
        put_many(&store, name, 100).await;
    }
    let mut served = BTreeMap::<String, usize>::new();
    for task in handed(&store, &request(10)).await {
        *served.entry(task.source.to_string()).or_default() += 1;
    }
    assert_eq!(served.len(), 4, "{served:?}");
    assert_eq!(served.values().sum::<usize>(), 10);
    // What one cannot give, the others do.
    define(&store, "a", &Rules { cap: Some(1), ..free() }).await;
    define(&store, "b", &Rules { gap: LONG, ..free() }).await;
    assert_eq!(handed(&store, &request(100)).await.len(), 100);
}

/// Sources of these backlogs, free of limits: `a`, `b`, `c` and so on.
async fn backlogs(store: &Store, counts: &[usize]) {
    for (name, count) in ('a'..='z').zip(counts) {
        define(store, &name.to_string(), &free()).await;
        put_many(store, &name.to_string(), *count).await;
    }
}

/// How many of each source, in the order of their names, a claim of `max` gets.
async fn division(store: &Store, ask: &ClaimAsk, sources: usize) -> Vec<usize> {
    let tasks = handed(store, ask).await;
    let of = |name: SourceName| tasks.iter().filter(|task| task.source == name).count();
    ('a'..='z').take(sources).map(|name| of(source(&name.to_string()))).collect()
}

pub(super) async fn a_claim_is_divided_alike_among_backlogged_sources(fresh: Fresh) {
    let store = fresh.connect().await;
    backlogs(&store, &[200; 3]).await;
    assert_eq!(division(&store, &request(10), 3).await, [4, 3, 3]);
    // The next claim begins where the last one ended.
    assert_eq!(division(&store, &request(10), 3).await, [3, 4, 3]);
    assert_eq!(division(&store, &request(100), 3).await, [33, 33, 34]);
    assert_eq!(division(&store, &request(2), 3).await, [1, 1, 0]);
    assert_eq!(division(&store, &request(2), 3).await, [1, 0, 1]);
    let named = |sources: &[&str]| sources.iter().map(|name| source(name)).collect::<Vec<_>>();
    // One that is named twice gets no more.
    let ask = ClaimAsk { sources: named(&["c", "a", "c"]), ..request(11) };
    assert_eq!(division(&store, &ask, 3).await, [5, 0, 6]);
    let ask = ClaimAsk { sources: named(&["a", "b", "c"]), ..request(100) };
    let mut shares = division(&store, &ask, 3).await;
    shares.sort_unstable();
    assert_eq!(shares, [33, 33, 34]);
}

pub(super) async fn what_one_source_cannot_give_is_divided_among_the_others(fresh: Fresh) {
    let store = fresh.connect().await;
    backlogs(&store, &[1, 200, 5, 200]).await;
    assert_eq!(division(&store, &request(31), 4).await, [1, 13, 5, 12]);
    // Limits are like short backlogs: `a` may start one at a time, `b` three, `c` two in a window; `d` gives the rest.
    let limits = [
        ("a", Rules { gap: LONG, ..free() }),
        ("b", Rules { cap: Some(13 + 3), ..free() }),
        ("c", Rules { window: Some(Window { count: 2, span: LONG }), ..free() }),
    ];
    for (name, rules) in &limits {
        define(&store, name, rules).await;
        put(&store, &(0..50).map(|n| task(name, &format!("{name}-new-{n}"))).collect::<Vec<_>>())
            .await;
    }
    define(&store, "e", &free()).await;
    put_many(&store, "e", 100).await;
    let shares = division(&store, &request(40), 5).await;
    assert_eq!((shares[1], shares.iter().sum::<usize>()), (3, 40), "{shares:?}");
    assert!(shares[0] <= 1 && shares[2] <= 2, "{shares:?}");
    assert!(shares[3].abs_diff(shares[4]) <= 1, "{shares:?}");
}

pub(super) async fn consecutive_claims_serve_every_source_alike(fresh: Fresh) {
    let store = fresh.connect().await;
    backlogs(&store, &[400; 7]).await;
    let mut served = [0_usize; 7];
    for max in (1..=40).chain([100, 3, 100, 50]) {
        let shares = division(&store, &request(max), 7).await;
        served.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        let (least, most) = (served.iter().min(), served.iter().max());
        let apart = most.zip(least).map(|(most, least)| most - least);
        assert!(apart <= Some(1), "after a claim of {max}: {served:?}");
    }
}

pub(super) async fn a_claim_names_its_sources_and_gets_no_others(fresh: Fresh) {
    let store = fresh.connect().await;
    for name in ["a", "b", "c"] {
        define(&store, name, &free()).await;
        put_many(&store, name, 5).await;
    }
    let ask = ClaimAsk { sources: vec![source("c"), source("a"), source("c")], ..request(100) };
    let tasks = handed(&store, &ask).await;
    assert_eq!(tasks.len(), 10);
    assert!(tasks.iter().all(|task| task.source != source("b")), "{tasks:?}");
    assert_eq!(counts(&store, "b").await, [5, 0, 0, 0, 0]);
    assert_eq!(handed(&store, &request(100)).await.len(), 5);
}

pub(super) async fn a_source_that_was_named_has_had_its_turn(fresh: Fresh) {
    let store = fresh.connect().await;
    backlogs(&store, &[9; 3]).await;
    let ask = ClaimAsk { sources: vec![source("a")], ..request(2) };
    assert_eq!(division(&store, &ask, 3).await, [2, 0, 0]);
    assert_eq!(division(&store, &request(2), 3).await, [0, 1, 1]);
}

pub(super) async fn a_source_that_was_emptied_comes_last_when_it_has_tasks_again(fresh: Fresh) {
    let store = fresh.connect().await;
    backlogs(&store, &[2, 0]).await;
    assert_eq!(division(&store, &request(2), 2).await, [2, 0]);
    put(&store, &[task("b", "b-1"), task("b", "b-2")]).await;
    put(&store, &[task("a", "a-1"), task("a", "a-2")]).await;
    assert_eq!(division(&store, &request(1), 2).await, [0, 1]);
    assert_eq!(division(&store, &request(3), 2).await, [2, 1]);
}

/// A small generator of its own, so that a failure can be repeated from the seed it prints.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

pub(super) async fn counts_add_up_whatever_happens(fresh: Fresh) {
    let seed = 0x0501_0157;
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let store = fresh.connect().await;
    let names = ["a", "b", "c"];
    let backoff = Backoff { first: Duration::ZERO, max: MS };
    let rules = Rules { lease: MS * 100, max_attempts: 3, backoff, ..Rules::default() };
    for name in names {
        define(&store, name, &Rules { cap: (name == "b").then_some(4), ..rules.clone() }).await;
    }
    let mut created = BTreeMap::<&str, u64>::new();
    let mut held: Vec<(ClaimAsk, Vec<Handed>)> = Vec::new();
    for step in 0..250 {
        let name = names[usize::try_from(dice.roll(3)).expect("small")];
        match dice.roll(8) {
            0 | 1 => {
                let every = (dice.roll(4) == 0).then_some(MS);
                let key = format!("{}", dice.roll(60));
                let new = put(&store, &[NewTask { every, ..task(name, &key) }]).await;
                *created.entry(name).or_default() += u64::from(new[0]);
            }
            2 | 3 => {
                let ask = request(1 + u32::try_from(dice.roll(4)).expect("small"));
                if let Claimed::Granted { tasks, .. } = claim(&store, &ask).await {
                    held.push((ask, tasks));
                }
            }
            4 | 5 if !held.is_empty() => {
                let (_, tasks) =
                    held.swap_remove(usize::try_from(dice.roll(held.len() as u64)).expect("small"));
                let outcome = [TaskOutcome::Done, TaskOutcome::Retry, TaskOutcome::Dead]
                    [usize::try_from(dice.roll(3)).expect("small")];
                let reports: Vec<Report> = tasks.iter().map(|task| report(task, outcome)).collect();
                let answers = say(&store, &reports).await;
                assert!(!answers.contains(&Reported::Unknown), "{answers:?}");
            }
            6 if !held.is_empty() => {
                let (ask, _) = held.swap_remove(0);
                store.give_back(&ask.id(), None).await.expect("given back");
            }
            _ => {
                store.pump().await.expect("pumped");
                if let Some(dead) = store.dead(None, 0, 1).await.expect("answered").first() {
                    store.revive(&dead.id).await.expect("revived");
                }
            }
        }
        let mut flying = 0;
        for name in names {
            let view = view(&store, name).await;
            let sum = view.ready + view.due + view.in_flight + view.dead + view.done;
            assert_eq!(
                sum,
                created.get(name).copied().unwrap_or_default(),
                "step {step}: {view:?}"
            );
            assert!(name != "b" || view.in_flight <= 4, "step {step}: {view:?}");
            flying += view.in_flight;
        }
        let collectors = store.collectors().await.expect("collectors");
        assert_eq!(collectors.iter().map(|one| one.in_flight).sum::<u64>(), flying, "step {step}");
    }
}
