//! Append-only logs. A repeated entry within a time window is counted in place instead of added.
//!
//! What the store sets (`id`, `at`, `count`, `until`) is in columns and is added to the JSON object when it is read: no server's JSON functions
//! are used.

use super::packet::Packet;
use super::plan::count;
use super::row::int;
use super::session::{Row, Value};
use soloist_store::records::{Entry, FOLDS_KEPT, Fold, Line, SPARE};
use soloist_store::{Result, StoreError};

pub(super) const NEWEST: &str = "SELECT id, at, times, until, entry FROM logs WHERE log = ? AND id < ? ORDER BY id DESC LIMIT ?";
pub(super) const AFTER: &str =
    "SELECT id, at, times, until, entry FROM logs WHERE log = ? AND id > ? ORDER BY id LIMIT ?";

/// The earlier entry that a new one repeats: log, key, text, milliseconds.
const SAME: &str = "SELECT folds.id FROM folds JOIN logs ON logs.log = folds.log AND logs.id = folds.id \
    WHERE folds.log = ? AND folds.topic = ? AND folds.same = ? AND {at_ms} - logs.at BETWEEN 0 AND ?";

/// The JSON of a row of [`NEWEST`] or [`AFTER`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn read(row: &Row) -> Result<String> {
    let (id, at, times, inside) = (row.int(0)?, row.int(1)?, row.int(2)?, row.text(4)?);
    let until = row.opt_int(3)?.map(|until| format!("\"until\":{until},")).unwrap_or_default();
    Ok(format!("{{\"id\":{id},\"at\":{at},\"count\":{times},{until}{inside}}}"))
}

/// Adds `line` to its log, behind the gate.
///
/// # Errors
/// [`StoreError::Corrupt`]: it is not a JSON object.
pub(crate) fn add(packet: &mut Packet, line: &Line) -> Result<()> {
    let Line { log, counter, entry, count: times, kept, fold } = line;
    let inside = entry.strip_prefix('{').and_then(|entry| entry.strip_suffix('}'));
    let inside =
        inside.ok_or_else(|| StoreError::Corrupt(format!("{log}: {entry:?} is no JSON object")))?;
    let dialect = packet.dialect;
    match fold {
        None => packet.add(dialect.remember("fresh", "1"), Vec::new()),
        Some(fold) => again(packet, log, fold, inside, int(*times)),
    };
    count(packet, counter, "{holds} AND {fresh}");
    packet.add(
        "INSERT INTO logs (log, id, at, times, entry) SELECT ?, newest, {at_ms}, ?, ? FROM numbers \
         WHERE name = ? AND {holds} AND {fresh}",
        vec![log.as_str().into(), Value::Int(int(*times)), inside.into(), counter.as_str().into()],
    );
    if let Some(fold) = fold {
        remember(packet, line, fold);
    }
    let kept = Value::Int(int(*kept as u64));
    // Numbers of other logs lie between: entries are counted, and only now and then.
    count(packet, &format!("{log}:added"), "{holds} AND {fresh}");
    packet.add(
        "DELETE FROM logs WHERE log = ? AND {holds} AND {fresh} \
         AND EXISTS (SELECT 1 FROM numbers WHERE name = ? AND newest % ? = 0) AND id <= \
         (SELECT id FROM (SELECT id FROM logs WHERE log = ? ORDER BY id DESC LIMIT 1 OFFSET ?) oldest)",
        vec![
            log.as_str().into(),
            Value::Text(format!("{log}:added")),
            Value::Int(int(SPARE)),
            log.as_str().into(),
            kept,
        ],
    );
    Ok(())
}

/// Adds an entry as another store has it, behind the gate; returns which statement counts it.
///
/// # Errors
/// As [`add`].
pub(super) fn copy(packet: &mut Packet, entry: &Entry) -> Result<usize> {
    let id = Value::Int(int(entry.id));
    packet.add(
        "INSERT INTO logs (log, id, at, times, until, entry) SELECT ?, ?, ?, ?, ?, ? FROM (SELECT 1 AS one) here WHERE {holds}",
        vec![
            entry.log.as_str().into(),
            id.clone(),
            entry.at.0.into(),
            Value::Int(int(entry.count)),
            entry.until.map(|until| until.0).into(),
            entry.inside()?.into(),
        ],
    );
    let change = packet.dialect.or_change("name", &["newest"]);
    Ok(packet.add(
        format!(
            "INSERT INTO numbers (name, newest) SELECT ?, ? FROM (SELECT 1 AS one) here WHERE {{holds}}{change}"
        ),
        vec![entry.counter.as_str().into(), id],
    ))
}

/// What was written a short time before is written again.
fn again(packet: &mut Packet, log: &str, fold: &Fold, inside: &str, times: i64) -> usize {
    let same: Vec<Value> = vec![
        log.into(),
        fold.key.as_str().into(),
        fold.same.as_str().into(),
        Value::Int(int(fold.within_ms)),
    ];
    let fresh =
        packet.dialect.remember("fresh", &format!("CASE WHEN EXISTS ({SAME}) THEN 0 ELSE 1 END"));
    packet.add(fresh, same.clone());
    let mut params = vec![Value::Int(times), inside.into(), log.into()];
    params.extend(same);
    packet.add(
        format!(
            "UPDATE logs SET times = times + ?, until = {{at_ms}}, entry = ? \
             WHERE log = ? AND {{holds}} AND id = (SELECT id FROM ({SAME}) before_it)"
        ),
        params,
    )
}

/// Under which key the entry stands.
fn remember(packet: &mut Packet, line: &Line, fold: &Fold) {
    let log: Value = line.log.as_str().into();
    packet.add(
        "DELETE FROM folds WHERE log = ? AND {holds} AND {fresh} \
         AND (SELECT counted FROM (SELECT count(*) AS counted FROM folds WHERE log = ?) all_of_them) >= ?",
        vec![log.clone(), log.clone(), Value::Int(int(FOLDS_KEPT as u64))],
    );
    let change = packet.dialect.or_change("log, topic", &["same", "id"]);
    packet.add(
        format!(
            "INSERT INTO folds (log, topic, same, id) SELECT ?, ?, ?, newest FROM numbers WHERE name = ? AND {{holds}} AND {{fresh}}{change}"
        ),
        vec![
            log,
            fold.key.as_str().into(),
            fold.same.as_str().into(),
            line.counter.as_str().into(),
        ],
    );
}
