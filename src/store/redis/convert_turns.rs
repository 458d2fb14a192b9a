//! Rotations of schema 2 and older, in which a rotation was a hash of fields with lists and queues beside it: each becomes a record.
//!
//! Rules, turns, past turns and counts are kept, so tokens go on growing and gaps and quotas go on. Who waits asks again within
//! half a minute. Each rotation is written in one step before its old keys are removed, so that an interrupted conversion is
//! finished by the next start.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue};

use super::RedisStore;
use super::link::Repeat;
use super::record::from_json;
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, TypeName};
use crate::domain::rotation::{Ending, Memory, PastTurn, Ring, Rotation, Rules, Starts, Turn};
use crate::domain::time::Stamp;
use crate::store::core::rotation::{Body, Endings, moved};
use crate::store::records::Records as _;
use crate::store::{Result, StoreError};

/// How turns end.
const ENDINGS: [Ending; 4] = [Ending::Done, Ending::Empty, Ending::Failed, Ending::Lost];

impl RedisStore {
    /// Makes schema 3 of rotations.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Unavailable`].
    pub(super) async fn convert_turns(&self) -> Result<()> {
        let names: Vec<String> = self.old("names", "ZRANGE", &["0", "-1"]).await?;
        let lost: Vec<String> = self.old("lost", "LRANGE", &["0", "-1"]).await?;
        for name in names {
            let name: RotationName = word("rotation", &name)?;
            let fields: HashMap<String, String> =
                self.old(&format!("r:{name}"), "HGETALL", &[]).await?;
            let rules: Option<String> = self.old("rules", "HGET", &[name.as_str()]).await?;
            let Some(rules) = rules.filter(|_| !fields.is_empty()) else { continue };
            let rules: Rules = from_json("rotation:rules", &rules)?;
            let mut starts = BTreeMap::new();
            for kind in rules.types.iter().map(|kind| &kind.name) {
                let list = format!("s:{name}:{kind}");
                let recent: Vec<i64> = self.old(&list, "LRANGE", &["0", "-1"]).await?;
                if let Some(newest) = fields.get(&format!("newest:{kind}")) {
                    let recent = recent.into_iter().rev().map(Stamp).collect();
                    let newest = Stamp(word(&list, newest)?);
                    starts.insert(kind.clone(), Starts { newest, recent });
                }
            }
            let past: Vec<String> =
                self.old(&format!("past:{name}"), "LRANGE", &["0", "-1"]).await?;
            let past: Vec<PastTurn> =
                past.iter().map(|line| past_turn(line)).collect::<Result<_>>()?;
            let lost = lost.chunks(2).filter(|pair| pair[0] == name.as_str());
            let lost = lost.filter_map(|pair| pair.get(1)).map(|line| turn(line));
            let lost: Vec<Turn> = lost.collect::<Result<_>>()?;
            let now = self.look(&[]).await?.at;
            let body = body(rules, starts, &fields, now)?;
            self.change(&moved(&name, body, &past, &lost, now)?).await?;
        }
        self.remove_old_turns().await
    }

    async fn remove_old_turns(&self) -> Result<()> {
        let names: Vec<String> = self.old("names", "ZRANGE", &["0", "-1"]).await?;
        for name in names {
            let fields: HashMap<String, String> =
                self.old(&format!("r:{name}"), "HGETALL", &[]).await?;
            // Those of types that are gone were removed with them.
            for kind in fields.get("types").iter().flat_map(|types| types.split(' ')) {
                self.old::<u8>(&format!("s:{name}:{kind}"), "DEL", &[]).await?;
            }
            self.old::<u8>(&format!("past:{name}"), "DEL", &[]).await?;
            self.old::<u8>(&format!("r:{name}"), "DEL", &[]).await?;
        }
        // Queues and requests end by themselves.
        for part in ["rules", "places", "silent", "lost", "timers", "names"] {
            self.old::<u8>(part, "DEL", &[]).await?;
        }
        Ok(())
    }

    /// A command about an old key.
    async fn old<T: FromRedisValue>(&self, part: &str, command: &str, rest: &[&str]) -> Result<T> {
        let key = self.keys().global(&format!("rotation:{part}"));
        let mut whole = Cmd::new();
        whole.arg(command).arg(&key).arg(rest);
        self.shared.rest.command(&key, &whole, Repeat::Harmless).await
    }
}

fn body(
    rules: Rules,
    starts: BTreeMap<TypeName, Starts>,
    fields: &HashMap<String, String>,
    now: Stamp,
) -> Result<Body> {
    let mut ended: BTreeMap<TypeName, Endings> = BTreeMap::new();
    for (field, count) in fields {
        let Some((ending, kind)) = field.split_once(':') else { continue };
        if let Some(ending) = ENDINGS.into_iter().find(|one| one.as_str() == ending) {
            let kind = word::<TypeName>(field, kind)?;
            *ended.entry(kind).or_default().of(ending) = word(field, count)?;
        }
    }
    let ring = ring(fields, starts)?;
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let doubted = stamp(fields, "doubted")?;
    let known = Memory { server: text("server"), forgot: (doubted > Stamp(0)).then_some(doubted) };
    let rotation = Rotation {
        due: Some(ring.turn.as_ref().map_or(now, |turn| turn.until)),
        seen: text("seen") == "1",
        promise: None,
        silent: BTreeMap::new(),
        rules,
        ring,
        known,
    };
    Ok(Body { rotation, incarnations: std::collections::BTreeSet::new(), ended })
}

fn ring(fields: &HashMap<String, String>, starts: BTreeMap<TypeName, Starts>) -> Result<Ring> {
    let field = |name: &str| fields.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let kind = |name: &str| field(name).map(|text| word(name, text)).transpose();
    let line = ["turn", "kind", "worker", "request", "since", "until", "ttl"];
    let parts = line.map(|name| field(name).unwrap_or_default());
    Ok(Ring {
        token: Token(word("token", field("token").unwrap_or("0"))?),
        turn: field("turn").map(|_| turn(&parts.join(" "))).transpose()?,
        after: kind("after")?,
        last_start: field("last").map(|at| word("last", at).map(Stamp)).transpose()?,
        next: kind("next")?,
        not_before: stamp(fields, "not_before")?,
        recovered_at: stamp(fields, "recovered")?,
        starts,
    })
}

fn stamp(fields: &HashMap<String, String>, name: &str) -> Result<Stamp> {
    let text = fields.get(name).map_or("0", String::as_str);
    word(name, if text.is_empty() { "0" } else { text }).map(Stamp)
}

/// `TOKEN TYPE WORKER REQUEST SINCE UNTIL LEASE`.
fn turn(line: &str) -> Result<Turn> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [token, kind, worker, request, since, until, lease] = parts[..] else {
        return Err(corrupt("a turn", &line));
    };
    Ok(Turn {
        token: Token(word("a turn's token", token)?),
        kind: word("a turn's type", kind)?,
        worker: word("a turn's worker", worker)?,
        request: word("a turn's request", request)?,
        since: Stamp(word("a turn's beginning", since)?),
        until: Stamp(word("a turn's end", until)?),
        lease: Duration::from_micros(word("a turn's lease", lease)?),
    })
}

/// `TOKEN TYPE WORKER SINCE ENDED ENDING`.
fn past_turn(line: &str) -> Result<PastTurn> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [token, kind, worker, since, ended, ending] = parts[..] else {
        return Err(corrupt("a past turn", &line));
    };
    let how = ENDINGS.into_iter().find(|one| one.as_str() == ending);
    Ok(PastTurn {
        token: Token(word("a past turn's token", token)?),
        kind: word("a past turn's type", kind)?,
        worker: word("a past turn's worker", worker)?,
        since: Stamp(word("a past turn's beginning", since)?),
        ended: Stamp(word("a past turn's end", ended)?),
        ending: how.ok_or_else(|| corrupt("how a turn ended", &ending))?,
    })
}

fn word<T: FromStr<Err: Display>>(what: &str, text: &str) -> Result<T> {
    text.parse().map_err(|why| corrupt(what, &why))
}

fn corrupt(what: &str, why: &dyn Display) -> StoreError {
    StoreError::Corrupt(format!("rotations of the version before, {what}: {why}"))
}
