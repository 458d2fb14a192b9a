//! The port of what belongs to no job: random looks and changes, answered as the store in memory answers them. What goes by it (accounts,
//! credentials, nodes, alerts, the audit, timelines) is carried out by `store::core`, whose laws are held to it on two stores; here every
//! other store is held to what `core` needs of it.
//!
//! Nothing here depends on how much time passes: a change is asked for within an hour, or within an hour that is over.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use soloist::domain::name::Waiter;
use soloist::domain::time::Stamp;
use soloist::store::Store;
use soloist::store::records::{
    Changed, Check, Fold, Found, Line, Look, Looked, Plan, Records, Tell, Write,
};
use soloist_store_memory::World;

use super::Kind;
use crate::conformance::patient;

const STEPS: usize = 300;
const HISTORIES: u64 = 4;
const HOUR: Duration = Duration::from_secs(3_600);
const TABLES: [&str; 2] = ["shelf", "shelf:other"];
/// Names that a store could take for one another.
const ROWS: [&str; 9] = ["li", "Li", "lí", "li ", "l", "王", "a:b/c", "%", "_i"];
const TEXTS: [&str; 7] =
    ["{}", "{\"a\":1}", "{\"a\":1} ", "王\u{1f600}", "A", "a", "it's \\ \"so\"\n"];
/// In the first two who joins stands behind all others; in the last two a number says where.
const LISTS: [&str; 4] = ["queue", "queue:other", "due", "due:other"];
/// One counter numbers both.
const LOGS: [&str; 2] = ["book", "book:other"];
/// More than are written: when a store cuts a log, it may keep more than it must.
const KEPT: usize = 10_000;
/// So many entries of a log are compared.
const LOOKED_AT: usize = 30;
const SAID: [&str; 3] = ["\"act\":\"on\"", "\"act\":\"off\"", "\"act\":\"开\""];

fn one(of: &[&str], dice: &mut StdRng) -> String {
    (*of.choose(dice).expect("some")).to_owned()
}

/// All that there is, as far as a store must keep it.
fn everything() -> Vec<Look> {
    let mut looks = Vec::new();
    looks.extend(TABLES.map(|table| Look::Rows(table.to_owned())));
    looks.extend(LISTS.map(|list| Look::First(list.to_owned(), 99)));
    looks.extend(LOGS.map(|log| Look::Log(log.to_owned(), None, LOOKED_AT)));
    looks
}

fn look(dice: &mut StdRng, newest: u64) -> Look {
    let list = one(&LISTS, dice);
    let most = dice.random_range(1..4);
    match dice.random_range(0..9) {
        0 => Look::Row(one(&TABLES, dice), one(&ROWS, dice)),
        1 => Look::Rows(one(&TABLES, dice)),
        2 => Look::First(list, most),
        3 => Look::Last(list, most),
        4 => Look::Described { list, table: one(&TABLES, dice), most },
        5 => {
            Look::Count(LISTS[dice.random_range(0..4)..].iter().map(|&list| list.into()).collect())
        }
        6 => {
            let (of, text) = (one(&LISTS[..2], dice), one(&ROWS, dice));
            Look::Ahead { lists: LISTS[..2].iter().map(|&list| list.into()).collect(), of, text }
        }
        7 => Look::Log(one(&LOGS, dice), Some(newest + dice.random_range(0..2)), most),
        _ => Look::LogAfter(one(&LOGS, dice), newest.saturating_sub(dice.random_range(0..3)), most),
    }
}

fn check(dice: &mut StdRng, known: &Looked) -> Check {
    let (nth, list) = (dice.random_range(0..2), dice.random_range(0..4));
    let table = TABLES[nth].to_owned();
    let Found::Rows(rows) = &known.found[nth] else { panic!("rows") };
    let Found::Entries(entries) = &known.found[2 + list] else { panic!("entries") };
    let row = one(&ROWS, dice);
    let holds = dice.random_ratio(5, 6);
    match dice.random_range(0..6) {
        0 => Check::Empty { table },
        1 => {
            let begins = |text: &String| text.chars().take(dice.random_range(1..4)).collect();
            let with = rows.get(&row).filter(|_| holds).map(begins);
            Check::Begins { table, row, with: with.unwrap_or_else(|| one(&TEXTS, dice)) }
        }
        2 | 3 => {
            let most = dice.random_range(1..4);
            let mut are: Vec<_> = entries.iter().take(most).map(|(_, text)| text.clone()).collect();
            if !holds {
                are.pop();
            }
            Check::First { list: LISTS[list].to_owned(), most, are }
        }
        _ => {
            let is = rows.get(&row).cloned().filter(|_| holds);
            Check::Row { table, row, is }
        }
    }
}

fn write(dice: &mut StdRng) -> Write {
    let (table, row, list) = (one(&TABLES, dice), one(&ROWS, dice), one(&LISTS, dice));
    match dice.random_range(0..12) {
        0..=2 => Write::Set { table, row, text: one(&TEXTS, dice) },
        3 => Write::Unset { table, row },
        4 | 5 => {
            Write::Add { list: one(&LISTS[2..], dice), number: dice.random_range(0..40), text: row }
        }
        6 | 7 => {
            let counter = "places".to_owned();
            Write::Join { list: one(&LISTS[..2], dice), counter, text: row }
        }
        8 => Write::Strike { list, text: row },
        9 if dice.random_ratio(1, 3) => Write::Cut { list, kept: dice.random_range(0..4) },
        _ => {
            let (key, same) = (one(&ROWS, dice), one(&SAID, dice));
            let within_ms = u64::try_from(HOUR.as_millis()).expect("small");
            Write::Log(Line {
                log: one(&LOGS, dice),
                counter: "pages".to_owned(),
                entry: format!("{{\"who\":\"{}\",{same}}}", key.trim()),
                count: dice.random_range(1..3),
                kept: KEPT,
                fold: dice.random_bool(0.5).then_some(Fold { key, same, within_ms }),
            })
        }
    }
}

/// Without the instants, which are those of two clocks, and without the numbers that stores give: only their order means something.
fn timeless(looks: &[Look], found: &[Found]) -> Vec<Found> {
    let strip = |text: &String| {
        let mut entry: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).expect("an object");
        assert!(entry.remove("at").is_some_and(|at| at.is_u64()), "{text}");
        entry.remove("until");
        serde_json::to_string(&entry).expect("JSON")
    };
    let alike = |list: &str, number: u64| if LISTS[..2].contains(&list) { 0 } else { number };
    let one = |(look, found): (&Look, &Found)| match (look, found) {
        (_, Found::Log(entries)) => Found::Log(entries.iter().map(strip).collect()),
        (Look::First(list, _) | Look::Last(list, _), Found::Entries(entries)) => {
            let one = |(number, text): &(u64, String)| (alike(list, *number), text.clone());
            Found::Entries(entries.iter().map(one).collect())
        }
        (Look::Described { list, .. }, Found::Described(entries)) => {
            let one = |(number, text, row): &(u64, String, Option<String>)| {
                (alike(list, *number), text.clone(), row.clone())
            };
            Found::Described(entries.iter().map(one).collect())
        }
        (_, other) => other.clone(),
    };
    assert_eq!(looks.len(), found.len());
    looks.iter().zip(found).map(one).collect()
}

/// The newest number of any log, as `everything` has it.
fn newest(known: &Looked) -> u64 {
    let of = |found: &Found| match found {
        Found::Log(entries) => entries.first().and_then(|text| {
            serde_json::from_str::<serde_json::Value>(text).expect("JSON")["id"].as_u64()
        }),
        _ => None,
    };
    known.found.iter().filter_map(of).max().unwrap_or(0)
}

fn hour(around: Stamp, open: bool) -> Range<Stamp> {
    let ago = |span: Duration| Stamp(around.0 - i64::try_from(span.as_micros()).expect("small"));
    if open { ago(HOUR)..around + HOUR } else { ago(HOUR)..ago(HOUR / 2) }
}

async fn play(store: &Store, seed: u64) {
    let memory = World::new(&patient()).connect(&patient());
    let (real, model): (&dyn Records, &dyn Records) = (store.rows(), memory.rows());
    let mut dice = StdRng::seed_from_u64(seed);
    let mut done = 0;
    for step in 0..STEPS {
        let at = format!("seed {seed}, step {step}");
        let all = everything();
        let known = real.look(&all).await.expect("it looks");
        let beside = model.look(&all).await.expect("it looks");
        assert_eq!(timeless(&all, &known.found), timeless(&all, &beside.found), "{at}: everything");
        let within = dice.random_ratio(1, 3).then(|| dice.random_ratio(4, 5));
        let waiter = Waiter("node-a/x/1".to_owned());
        let plan = Plan {
            checks: (0..dice.random_range(0..3)).map(|_| check(&mut dice, &known)).collect(),
            within: None,
            writes: (0..dice.random_range(0..5)).map(|_| write(&mut dice)).collect(),
            tells: match dice.random_range(0..6) {
                0 => vec![Tell::Nodes, Tell::Accounts],
                1 => vec![Tell::Wake(vec![waiter])],
                _ => Vec::new(),
            },
            once: dice.random_bool(0.3),
        };
        let mut looks = || -> Vec<Look> {
            let most = dice.random_range(0..4);
            (0..most).map(|_| look(&mut dice, newest(&known))).collect()
        };
        let (after, instead) = (looks(), looks());
        let by = |at: Stamp| Plan { within: within.map(|open| hour(at, open)), ..plan.clone() };
        let said = real.change_and_look(&by(known.at), &after, &instead).await.expect("it answers");
        let law =
            model.change_and_look(&by(beside.at), &after, &instead).await.expect("it answers");
        assert_eq!(said.0, law.0, "{at}: {plan:?}, {within:?}");
        let looks = if said.0 == Changed::Done { &after } else { &instead };
        let (said_so, law_says) = (timeless(looks, &said.1.found), timeless(looks, &law.1.found));
        assert_eq!(said_so, law_says, "{at}: {plan:?}, {looks:?}");
        assert!(said.1.at >= known.at, "{at}: the clock went back");
        done += usize::from(said.0 == Changed::Done);
    }
    assert!((STEPS / 4..STEPS).contains(&done), "seed {seed}: {done} changes of {STEPS} were done");
}

/// Of several who saw the same and change it at once, one does, and what it wrote is whole.
async fn one_of_many(store: &Store) {
    let rows = store.rows();
    for round in 0..20 {
        let is = (round > 0).then(|| format!("{}", round - 1));
        let change = async |nth: usize| {
            let text = |table: &str| Write::Set {
                table: table.to_owned(),
                row: format!("of {nth}"),
                text: format!("{round}"),
            };
            let seen = Check::Row { table: TABLES[0].into(), row: "seen".into(), is: is.clone() };
            let next = Write::Set {
                table: TABLES[0].into(),
                row: "seen".into(),
                text: format!("{round}"),
            };
            let writes = vec![text(TABLES[0]), next, text(TABLES[1])];
            let plan = Plan { checks: vec![seen], writes, ..Plan::default() };
            (nth, rows.change(&plan).await.expect("it answers"))
        };
        let ended = futures_util::future::join_all((0..8).map(change)).await;
        let done: Vec<usize> = ended
            .iter()
            .filter(|(_, ended)| *ended == Changed::Done)
            .map(|(nth, _)| *nth)
            .collect();
        let [winner] = done[..] else { panic!("round {round}: {done:?} were done") };
        let looks = TABLES.map(|table| Look::Rows(table.to_owned()));
        for found in rows.look(&looks).await.expect("it looks").found {
            let Found::Rows(rows) = found else { panic!("rows") };
            let wrote = |nth| rows.get(&format!("of {nth}")) == Some(&format!("{round}"));
            assert_eq!((0..8).filter(|nth| wrote(*nth)).collect::<Vec<_>>(), [winner]);
        }
    }
}

async fn held(kind: Kind) {
    let (stores, _guard) = super::stores(kind, super::seeds(HISTORIES + 1)).await;
    let (last, histories) = stores.split_last().expect("some");
    let plays =
        histories.iter().zip(super::seeds(HISTORIES)).map(|(store, seed)| play(store, seed));
    futures_util::future::join_all(plays).await;
    one_of_many(last).await;
}

macro_rules! on_every_store {
    ($($test:ident $kind:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            held(Kind::$kind).await;
        })*
    };
}

on_every_store! {
    memory_is_what_the_others_are_held_to Memory
    sqlite_answers_as_memory_does Sqlite
    redis_answers_as_memory_does Redis
    a_cluster_answers_as_memory_does Cluster
    postgres_answers_as_memory_does Postgres
    mariadb_answers_as_memory_does Mariadb
}
