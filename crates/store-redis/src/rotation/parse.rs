//! From what the scripts of rotations answer to views; what cannot be read names where it stands.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use ::redis::{FromRedisValue, Value, from_redis_value};

use super::super::dispatch::parse::Answer;
use soloist_domain::lease::Token;
use soloist_domain::name::{NodeName, TypeName};
use soloist_domain::rotation::{Ending, Reason, Ring, Rules, Starts, Turn};
use soloist_domain::time::Stamp;
use soloist_store::rotation::{PastTurn, RotationView, TypeView, WaiterView};
use soloist_store::{Result, StoreError};

fn corrupt(what: &str, why: &dyn Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {why}"))
}

/// One word of an answer.
pub(super) fn word<T: FromStr<Err: Display>>(what: &str, text: &str) -> Result<T> {
    text.parse().map_err(|error| corrupt(what, &error))
}

/// What is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn stamp(text: &str) -> Result<Stamp> {
    word("an instant", text).map(Stamp)
}

/// A turn, as `open_rotation.lua` writes it.
pub(super) fn turn(line: &str) -> Result<Turn> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [token, kind, worker, request, since, until, ttl] = parts[..] else {
        return Err(corrupt("a turn", &line));
    };
    Ok(Turn {
        token: Token(word("a turn's token", token)?),
        kind: word("a turn's type", kind)?,
        worker: word("a turn's worker", worker)?,
        request: word("a turn's request", request)?,
        since: stamp(since)?,
        until: stamp(until)?,
        lease: Duration::from_micros(word("a turn's lease", ttl)?),
    })
}

/// The same, or no turn.
pub(super) fn holder(line: &str) -> Result<Option<Turn>> {
    (!line.is_empty()).then(|| turn(line)).transpose()
}

/// A turn that ended.
pub(super) fn past(line: &str) -> Result<PastTurn> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [token, kind, worker, since, ended, ending] = parts[..] else {
        return Err(corrupt("a past turn", &line));
    };
    Ok(PastTurn {
        token: Token(word("a past turn's token", token)?),
        kind: word("a past turn's type", kind)?,
        worker: word("a past turn's worker", worker)?,
        since: stamp(since)?,
        ended: stamp(ended)?,
        ending: match ending {
            "done" => Ending::Done,
            "empty" => Ending::Empty,
            "failed" => Ending::Failed,
            "lost" => Ending::Lost,
            other => return Err(corrupt("how a turn ended", &other)),
        },
    })
}

/// Why a worker waits.
pub(super) fn reason(text: &str) -> Result<Reason> {
    Ok(match text {
        "held" => Reason::Held,
        "gap" => Reason::Gap,
        "quota" => Reason::Quota,
        "not_before" => Reason::NotBefore,
        "recovery" => Reason::Recovery,
        "order" => Reason::Order,
        "absent" => Reason::Absent,
        other => return Err(corrupt("reason", &other)),
    })
}

fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| corrupt("read_rotations", &error))
}

/// One rotation of `read_rotations.lua`.
pub(super) fn view(value: Value, now: Stamp) -> Result<RotationView> {
    let mut answer = Answer::of("read_rotations", value)?;
    let (name, rules) = (answer.text()?, answer.text()?);
    let of = |what: &str| format!("rotation {name}, {what}");
    let rules: Rules =
        serde_json::from_str(&rules).map_err(|error| corrupt(&of("rules"), &error))?;
    let fields: HashMap<String, String> = read(next(&mut answer)?)?;
    let mut starts: BTreeMap<TypeName, Starts> = BTreeMap::new();
    let recent: Vec<(String, Vec<i64>)> = read(next(&mut answer)?)?;
    for (kind, stamps) in recent {
        if let Some(newest) = fields.get(&format!("newest:{kind}")) {
            let recent = stamps.into_iter().rev().map(Stamp).collect();
            let newest = stamp(newest)?;
            starts.insert(word("a type", &kind)?, Starts { newest, recent });
        }
    }
    let counts: HashMap<String, u64> = read(next(&mut answer)?)?;
    let waiters: Vec<(String, String, String)> = read(next(&mut answer)?)?;
    let waiters = waiters.iter().map(|(kind, waiter, known)| waiting(kind, waiter, known));
    let waiters = waiters.collect::<Result<Vec<_>>>()?;
    let lines: Vec<String> = read(next(&mut answer)?)?;
    let types = rules.types.iter().map(|kind| {
        let count = |ending: &str| {
            let field = fields.get(&format!("{ending}:{}", kind.name));
            field.and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        TypeView {
            kind: kind.name.clone(),
            waiting: counts.get(kind.name.as_str()).copied().unwrap_or(0),
            done: count("done"),
            empty: count("empty"),
            failed: count("failed"),
            lost: count("lost"),
        }
    });
    Ok(RotationView {
        types: types.collect(),
        waiters,
        past: lines.iter().map(|line| past(line)).collect::<Result<_>>()?,
        ring: ring(&fields, starts)?,
        name: word("a rotation's name", &name)?,
        rules,
        now,
    })
}

fn next(answer: &mut Answer) -> Result<Value> {
    answer.rest().next().ok_or_else(|| corrupt("read_rotations", &"an answer that is too short"))
}

fn waiting(kind: &str, waiter: &str, known: &str) -> Result<WaiterView> {
    let mut parts = known.split(' ').skip(1);
    let (since, worker) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("-"));
    Ok(WaiterView {
        kind: word("a waiter's type", kind)?,
        worker: word("a waiter's name", worker)?,
        node: word::<NodeName>("a waiter's node", waiter.split('/').next().unwrap_or_default())?,
        since: stamp(since)?,
    })
}

fn ring(fields: &HashMap<String, String>, starts: BTreeMap<TypeName, Starts>) -> Result<Ring> {
    let field = |name: &str| fields.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let kind = |name: &str| field(name).map(|text| word("a type", text)).transpose();
    let line = ["turn", "kind", "worker", "request", "since", "until", "ttl"];
    let turn = match field("turn") {
        Some(_) => {
            let parts: Vec<&str> = line.iter().map(|name| field(name).unwrap_or("")).collect();
            Some(turn(&parts.join(" "))?)
        }
        None => None,
    };
    Ok(Ring {
        token: Token(word("a token", field("token").unwrap_or("0"))?),
        turn,
        after: kind("after")?,
        last_start: field("last").map(stamp).transpose()?,
        next: kind("next")?,
        not_before: stamp(field("not_before").unwrap_or("0"))?,
        recovered_at: stamp(field("recovered").unwrap_or("0"))?,
        starts,
    })
}
