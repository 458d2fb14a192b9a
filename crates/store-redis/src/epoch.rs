//! The record that a store has of itself, on its way to and from `trust_store.lua`.

use std::collections::HashMap;
use std::time::Duration;

use ::redis::Value;

use super::lane::Call;
use super::record::parsed;
use soloist_domain::doubt::Epoch;
use soloist_domain::time::StoreTime;
use soloist_store::memory::{Asked, Seen};
use soloist_store::{Result, StoreError};

/// What the server says of the store.
pub(super) struct Answer {
    pub(super) now: StoreTime,
    pub(super) what: What,
}

/// Whether the store is as the caller knew it.
pub(super) enum What {
    Trusted {
        /// That were online.
        replicas: u64,
    },
    /// It is so, and nothing was done.
    Doubted(Seen),
}

/// Adds what the script wants to know.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn write(call: &mut Call, asked: &Asked) -> Result<()> {
    let Asked { seen, judged, write, .. } = asked;
    let record = seen.as_ref().and_then(|seen| seen.record.as_ref());
    call.arg(record.map_or("", |record| &record.id))
        .arg(record.map(|record| version(record.version)).unwrap_or_default())
        .arg(seen.as_ref().map_or("", |seen| &seen.server))
        .arg(judged.until);
    let next = if *write { fields(judged)? } else { Vec::new() };
    call.arg(next);
    Ok(())
}

/// A record of a version that counted none has none.
fn version(version: u64) -> String {
    if version == 0 { String::new() } else { version.to_string() }
}

fn fields(epoch: &Epoch) -> Result<Vec<u8>> {
    let Epoch { id, server, since, until, longest, before, turned, doubted, version } = epoch;
    let numbers = [since, until, longest, before, turned, doubted].map(i64::to_string);
    let [since, until, longest, before, turned, doubted] = numbers;
    let version = version.to_string();
    let named = [
        ("id", id),
        ("run_id", server),
        ("since", &since),
        ("until", &until),
        ("longest", &longest),
        ("before", &before),
        ("turned", &turned),
        ("doubted", &doubted),
        ("version", &version),
    ];
    let flat: Vec<&str> = named.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect();
    rmp_serde::to_vec(&flat).map_err(|error| StoreError::Corrupt(format!("epoch: {error}")))
}

/// What the script answered first.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn read(key: &str, value: Value) -> Result<Answer> {
    let mut values: Vec<Value> = parsed(key, value)?;
    if values.len() == 3 {
        let (_, now, replicas): (String, i64, u64) = parsed(key, Value::Array(values))?;
        return Ok(Answer { now: StoreTime(now), what: What::Trusted { replicas } });
    }
    let record = values.pop().unwrap_or(Value::Nil);
    let (_, now, server, up): (String, i64, String, u64) = parsed(key, Value::Array(values))?;
    let map: HashMap<String, String> = parsed(key, record)?;
    let record = (!map.is_empty()).then(|| epoch(key, &map)).transpose()?;
    let seen = Seen { record, server, up: Duration::from_secs(up) };
    Ok(Answer { now: StoreTime(now), what: What::Doubted(seen) })
}

fn epoch(key: &str, map: &HashMap<String, String>) -> Result<Epoch> {
    let text = |name: &str| map.get(name).cloned().unwrap_or_default();
    let number = |name: &str| match map.get(name).map(String::as_str) {
        None | Some("") => Ok(0),
        // What another version wrote may have a fraction.
        Some(text) => text
            .parse::<f64>()
            .map(|number| number.floor())
            .map_err(|error| StoreError::Corrupt(format!("{key}, field {name}: {text:?}: {error}")))
            .map(whole),
    };
    Ok(Epoch {
        id: text("id"),
        server: text("run_id"),
        since: number("since")?,
        until: number("until")?,
        longest: number("longest")?,
        before: number("before")?,
        turned: number("turned")?,
        doubted: number("doubted")?,
        version: u64::try_from(number("version")?).unwrap_or(0),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a clock are far below 2^53")]
fn whole(number: f64) -> i64 {
    number as i64
}
