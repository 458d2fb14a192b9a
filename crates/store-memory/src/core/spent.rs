//! Ticks that callers name, in random timed histories of processes that remember old records, beside what a few lines say of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::jobs::Dice;
use crate::MemoryStore;
use soloist_domain::grant::{Acquire, Acquired, Condition};
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::journal::{Ended, Then};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, TickText};
use soloist_domain::spent::{COUNTED_EVERY, KEPT, Once, Standing};
use soloist_domain::time::StoreTime;
use soloist_store::journal::Journal as _;
use soloist_store::leases::Leases as _;
use soloist_store::records::{Found, Look, OfAnyKind as _};
use soloist_store::spent::{Answer, SpentTicks as _};

const TTL: Duration = Duration::from_secs(5);

fn name() -> JobName {
    JobName::new("nightly").expect("a good name")
}

fn tick(number: u64) -> TickText {
    TickText::new(&format!("tick {number}")).expect("a good tick")
}

fn ask(owner: u64) -> Acquire {
    Acquire {
        job: name(),
        owner: Owner(format!("owner-{owner}")),
        node: NodeName::new(&format!("host-{owner}")).expect("a good name"),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    }
}

/// What became of a tick, as the history knows it.
#[derive(Debug, Clone, Copy)]
struct Told {
    owner: u64,
    token: Token,
    at: StoreTime,
    end: Option<RunEnd>,
}

/// Who holds the lease.
#[derive(Debug, Clone, Copy)]
struct Holder {
    owner: u64,
    token: Token,
    tick: u64,
    until: StoreTime,
}

#[derive(Default)]
struct History {
    ticks: BTreeMap<u64, Told>,
    holder: Option<Holder>,
}

impl History {
    fn standing(&self, tick: u64, now: StoreTime) -> Option<(u64, Standing)> {
        let told = self.ticks.get(&tick)?;
        let held = self.holder.filter(|holder| holder.until > now);
        let standing = match told.end {
            None if held.is_some_and(|held| held.token == told.token) => Standing::Running,
            _ if now.since(told.at) >= KEPT => return None,
            None | Some(RunEnd::Lost) => Standing::Lost,
            Some(RunEnd::Exited) => Standing::Done,
            Some(_) => Standing::Failed,
        };
        Some((told.owner, standing))
    }
}

async fn play(seed: u64, acts: usize) {
    let mut dice = Dice(seed);
    let first = MemoryStore::new();
    let processes = [first.clone(), first.beside(), first.beside()];
    let mut history = History::default();
    let (mut granted, mut refused) = (0, 0);
    for act in 0..acts {
        let engine = &processes[usize::try_from(dice.roll(3)).expect("small")];
        let now = engine.shows();
        let at = format!("seed {seed}, act {act}");
        let held = history.holder.filter(|holder| holder.until > now);
        match (dice.roll(10), held) {
            (0..=5, _) => {
                let number = dice.roll(40);
                // Who asks again asks for the same.
                let owner = number * 100 + dice.roll(3);
                let once = Once { tick: tick(number), retry_failed: dice.roll(2) == 0 };
                let own = held.filter(|held| held.owner == owner && held.tick == number);
                let answer = engine.law().acquire_once(&ask(owner), &once).await.expect("answers");
                // Its lease ran out before it began anything, and nobody came since.
                let unused = history
                    .holder
                    .filter(|last| last.until <= now && last.owner == owner && last.tick == number);
                let known = history.standing(number, now).filter(|_| unused.is_none());
                let refuses = known.filter(|(_, standing)| once.is_refused(*standing));
                match (answer, refuses, held) {
                    (Answer::Lease(Acquired::Granted { token, .. }), _, Some(held))
                        if own.is_some() =>
                    {
                        assert_eq!(token, held.token, "{at}");
                        let until = now + TTL;
                        history.holder = Some(Holder { until, ..held });
                    }
                    (Answer::Spent { spent, standing, .. }, Some((by, stands)), _) => {
                        assert_eq!((spent.by, standing), (ask(by).node, stands), "{at}");
                        refused += 1;
                    }
                    (Answer::Lease(Acquired::Busy { .. }), None, Some(held)) => {
                        assert_ne!(held.owner, owner, "{at}");
                    }
                    (Answer::Lease(Acquired::Granted { token, .. }), None, held) => {
                        assert!(held.is_none(), "{at}: {held:?}");
                        granted += 1;
                        let told = Told { owner, token, at: now, end: None };
                        history.ticks.insert(number, told);
                        let until = now + TTL;
                        history.holder = Some(Holder { owner, token, tick: number, until });
                    }
                    (answer, ..) => panic!("{at}: {answer:?} where {known:?} and {held:?}"),
                }
            }
            (6 | 7, Some(held)) => {
                let end = [RunEnd::Exited, RunEnd::Crashed, RunEnd::Lost];
                let end = end[usize::try_from(dice.roll(3)).expect("small")];
                let ended = Ended {
                    job: name(),
                    owner: ask(held.owner).owner,
                    token: held.token,
                    run: RunId(format!("run-{}", held.token)),
                    exit: Exit::default(),
                    end,
                    processes_killed: 0,
                    then: Then::Nothing,
                    began: None,
                };
                engine.law().record_ended(&ended).await.expect("its own");
                history.holder = None;
                if let Some(told) = history.ticks.get_mut(&held.tick)
                    && told.token == held.token
                {
                    told.end = Some(end);
                }
            }
            (8, Some(held)) => {
                engine.law().release(&name(), &ask(held.owner).owner).await.expect("released");
                history.holder = None;
                let unused = |told: &Told| told.token == held.token;
                if history.ticks.get(&held.tick).is_some_and(unused) {
                    history.ticks.remove(&held.tick);
                }
            }
            (9, _) if dice.roll(40) == 0 => first.pass(KEPT / 3),
            _ => first.pass(Duration::from_millis(dice.roll(4_000))),
        }
    }
    assert!(granted > acts / 40 && refused > acts / 40, "{granted} granted, {refused} refused");
}

#[tokio::test]
async fn a_tick_is_granted_as_a_list_of_all_of_them_would_have_it() {
    for seed in 0..60 {
        play(seed, 1_200).await;
    }
}

#[tokio::test]
async fn ticks_that_were_kept_for_400_days_are_dropped_when_others_come() {
    let store = MemoryStore::new();
    let count = async || {
        let looks = [Look::Count(vec!["spent:nightly".to_owned()])];
        let rows = [Look::Rows("spent:at:nightly".to_owned())];
        let found = store.rows().look(&[looks, rows].concat()).await.expect("a look").found;
        match found.as_slice() {
            [Found::Count(count), Found::Rows(rows)] => {
                assert_eq!(usize::try_from(*count).expect("few"), rows.len());
                rows.len()
            }
            other => panic!("{other:?}"),
        }
    };
    let mut number = 0;
    let mut spend = async |ticks: u64| {
        for _ in 0..ticks {
            number += 1;
            let once = Once { tick: tick(number), retry_failed: false };
            let ask = ask(number);
            let answer = store.law().acquire_once(&ask, &once).await.expect("answers");
            let Answer::Lease(Acquired::Granted { token, .. }) = answer else {
                panic!("{answer:?}")
            };
            let done = soloist_domain::spent::Outcome {
                how: soloist_domain::spent::How::Done,
                exit: Exit::default(),
            };
            store.law().release_under(&name(), &ask.owner, token, done).await.expect("released");
        }
    };
    spend(100).await;
    assert_eq!(count().await, 99, "the newest stands in the record");
    store.pass(KEPT);
    // Of each so many are dropped that none is left soon.
    spend(4 * u64::from(COUNTED_EVERY)).await;
    assert_eq!(count().await, 4 * COUNTED_EVERY as usize - 1);
}
