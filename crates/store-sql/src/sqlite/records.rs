//! The port of records without a job, on SQLite: three tables, and one transaction for each change.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use rusqlite::Connection;

use super::fault::SqliteResult;
use super::row::{find, int, uint};
use super::step::{Moment, Step};
use super::{SqliteStore, clock};
use soloist_domain::rotation::Memory;
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::core::KnownTurns;
use soloist_store::journal::AuditEntry;
use soloist_store::records::{
    Changed, Check, FOLDS_KEPT, Fold, Found, Line, Look, Looked, Plan, Records, SPARE, Tell, Write,
    folds,
};

#[async_trait]
impl Records for SqliteStore {
    fn note(&self) -> Option<&AuditEntry> {
        self.note.as_deref()
    }

    fn latest(&self) -> Option<Stamp> {
        let offset = self.inner.offset_us.load(Ordering::Relaxed);
        (offset != i64::MIN).then(|| clock::by_offset(&Moment::now(&self.inner.place), offset))
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        let looks = looks.to_vec();
        self.read(move |db, at| look_at(db, &looks, clock::now(db, at)?)).await
    }

    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        let (done, refused) = (done.to_vec(), refused.to_vec());
        let (checks, within) = (plan.checks.clone(), plan.within.clone());
        let (writes, tells) = (plan.writes.clone(), plan.tells.clone());
        let inner = std::sync::Arc::clone(&self.inner);
        self.write(move |step| {
            let now = clock::of_writer(step)?;
            inner.offset_us.store(clock::offset(&step.at, now), Ordering::Relaxed);
            let mut holds_all = within.is_none_or(|within| within.contains(&now));
            for check in &checks {
                holds_all = holds_all && holds(step, check)?;
            }
            if !holds_all {
                return Ok((Changed::Refused, look_at(step, &refused, now)?));
            }
            writes.iter().try_for_each(|one| write(step, one, now))?;
            tells.iter().try_for_each(|one| tell(step, one))?;
            Ok((Changed::Done, look_at(step, &done, now)?))
        })
        .await
    }

    fn turns(&self) -> &KnownTurns {
        &self.inner.turns
    }
}

fn look_at(db: &Connection, looks: &[Look], now: Stamp) -> SqliteResult<Looked> {
    let found = looks.iter().map(|one| look(db, one)).collect::<SqliteResult<_>>()?;
    Ok(Looked { at: now, found })
}

fn look(db: &Connection, look: &Look) -> SqliteResult<Found> {
    Ok(match look {
        Look::Row(table, name) => Found::Row(row(db, table, name)?),
        Look::Rows(table) => {
            let mut found = db.prepare_cached("SELECT name, text FROM rows WHERE kind = ?")?;
            let rows = found.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Found::Rows(rows.collect::<rusqlite::Result<BTreeMap<_, _>>>()?)
        }
        Look::First(list, most) => Found::Entries(first(db, list, *most)?),
        Look::Last(list, most) => {
            let mut found = db.prepare_cached(
                "SELECT number, text FROM lists WHERE list = ? ORDER BY number DESC, text DESC LIMIT ?",
            )?;
            let rows = found
                .query_map((list, int(*most as u64)), |row| Ok((uint(row.get(0)?), row.get(1)?)))?;
            let mut entries = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            entries.reverse();
            Found::Entries(entries)
        }
        Look::Described { list, table, most } => {
            let mut found = db.prepare_cached(
                "SELECT number, lists.text, rows.text FROM lists \
                 LEFT JOIN rows ON rows.kind = ? AND rows.name = lists.text \
                 WHERE list = ? ORDER BY number, lists.text LIMIT ?",
            )?;
            let rows = found.query_map((table, list, int(*most as u64)), |row| {
                Ok((uint(row.get(0)?), row.get(1)?, row.get(2)?))
            })?;
            Found::Described(rows.collect::<rusqlite::Result<_>>()?)
        }
        Look::Count(lists) => Found::Count(count(db, lists, i64::MAX)?),
        Look::Ahead { lists, of, text } => {
            let place =
                find(db, "SELECT number FROM lists WHERE list = ? AND text = ?", [of, text])?;
            Found::Count(count(db, lists, place.unwrap_or(i64::MAX))?)
        }
        Look::Memory => Found::Memory { memory: memory(db)?, emptied: false },
        Look::Log(log, below, most) => {
            let mut found = db.prepare_cached(
                "SELECT text FROM logs WHERE log = ? AND id < ? ORDER BY id DESC LIMIT ?",
            )?;
            let below = below.map_or(i64::MAX, int);
            let texts = found.query_map((log, below, int(*most as u64)), |row| row.get(0))?;
            Found::Log(texts.collect::<rusqlite::Result<_>>()?)
        }
        Look::LogAfter(log, above, most) => {
            let mut found = db.prepare_cached(
                "SELECT text FROM logs WHERE log = ? AND id > ? ORDER BY id LIMIT ?",
            )?;
            let texts = found.query_map((log, int(*above), int(*most as u64)), |row| row.get(0))?;
            Found::Log(texts.collect::<rusqlite::Result<_>>()?)
        }
    })
}

/// What was committed survives every crash of a process; but a jump of the clock, or other files at the path, end turns that somebody
/// may still hold.
fn memory(db: &Connection) -> SqliteResult<Memory> {
    Ok(Memory { forgot: clock::forgot(db)?, ..Memory::default() })
}

fn row(db: &Connection, table: &str, name: &str) -> SqliteResult<Option<String>> {
    find(db, "SELECT text FROM rows WHERE kind = ? AND name = ?", [table, name])
}

fn first(db: &Connection, list: &str, most: usize) -> SqliteResult<Vec<(u64, String)>> {
    let mut found = db.prepare_cached(
        "SELECT number, text FROM lists WHERE list = ? ORDER BY number, text LIMIT ?",
    )?;
    let entries =
        found.query_map((list, int(most as u64)), |row| Ok((uint(row.get(0)?), row.get(1)?)))?;
    Ok(entries.collect::<rusqlite::Result<_>>()?)
}

/// How many entries of some lists have a number below that.
fn count(db: &Connection, lists: &[String], below: i64) -> SqliteResult<u64> {
    let mut found =
        db.prepare_cached("SELECT count(*) FROM lists WHERE list = ? AND number < ?")?;
    let mut sum = 0;
    for list in lists {
        sum += found.query_row((list, below), |row| row.get::<_, i64>(0).map(uint))?;
    }
    Ok(sum)
}

fn holds(db: &Connection, check: &Check) -> SqliteResult<bool> {
    Ok(match check {
        Check::Row { table, row: name, is } => row(db, table, name)? == *is,
        Check::Begins { table, row: name, with } => {
            row(db, table, name)?.is_some_and(|text| text.starts_with(with))
        }
        Check::Memory(known) => *known == memory(db)?,
        Check::Empty { table } => {
            find::<i64>(db, "SELECT 1 FROM rows WHERE kind = ? LIMIT 1", [table])?.is_none()
        }
        Check::First { list, most, are } => {
            first(db, list, *most)?.into_iter().map(|(_, text)| text).eq(are.iter().cloned())
        }
    })
}

pub(super) fn write(step: &Step<'_>, write: &Write, now: Stamp) -> SqliteResult<()> {
    match write {
        Write::Set { table, row, text } => {
            step.prepare_cached("INSERT OR REPLACE INTO rows (kind, name, text) VALUES (?, ?, ?)")?
                .execute([table, row, text])?;
        }
        Write::Unset { table, row } => {
            step.prepare_cached("DELETE FROM rows WHERE kind = ? AND name = ?")?
                .execute([table, row])?;
        }
        Write::Add { list, number, text } => {
            step.prepare_cached(
                "INSERT OR REPLACE INTO lists (list, number, text) VALUES (?, ?, ?)",
            )?
            .execute((list, int(*number), text))?;
        }
        Write::Join { list, counter, text } => {
            let stands: Option<i64> =
                find(step, "SELECT 1 FROM lists WHERE list = ? AND text = ?", [list, text])?;
            if stands.is_none() {
                let next = next(step, counter)?;
                step.prepare_cached("INSERT INTO lists (list, number, text) VALUES (?, ?, ?)")?
                    .execute((list, next, text))?;
            }
        }
        Write::Strike { list, text } => {
            step.prepare_cached("DELETE FROM lists WHERE list = ? AND text = ?")?
                .execute([list, text])?;
        }
        Write::Cut { list, kept } => {
            step.prepare_cached(
                "DELETE FROM lists WHERE list = ?1 AND text IN (SELECT text FROM lists WHERE list = ?1 \
                 ORDER BY number DESC, text DESC LIMIT -1 OFFSET ?2)",
            )?
            .execute((list, int(*kept as u64)))?;
        }
        Write::Log(line) => log(step, line, now)?,
        Write::Entry(entry) => {
            step.prepare_cached("INSERT INTO logs (log, id, text) VALUES (?, ?, ?)")?.execute((
                &entry.log,
                int(entry.id),
                entry.text()?,
            ))?;
            step.prepare_cached("INSERT OR REPLACE INTO numbers (log, newest) VALUES (?, ?)")?
                .execute((&entry.counter, int(entry.id)))?;
        }
    }
    Ok(())
}

/// Writes down what goes with an act of dispatch.
pub(super) fn note(step: &Step<'_>, line: &Line) -> SqliteResult<()> {
    let now = clock::of_writer(step)?;
    log(step, line, now)
}

fn log(step: &Step<'_>, line: &Line, now: Stamp) -> SqliteResult<()> {
    let Line { log, counter, entry, count, kept, fold } = line;
    let at = now.floor().0;
    if let Some(fold) = fold
        && folded(step, line, fold, at)?
    {
        return Ok(());
    }
    let id = next(step, counter)?;
    step.prepare_cached(
        "INSERT INTO logs (log, id, text) VALUES (?1, ?2, json_set(?3, '$.id', ?2, '$.at', ?4, '$.count', ?5))",
    )?
    .execute((log, id, entry, at, int(*count)))?;
    if let Some(fold) = fold {
        let table = folds(log);
        step.prepare_cached(
            "DELETE FROM rows WHERE kind = ?1 AND (SELECT count(*) FROM rows WHERE kind = ?1) >= ?2",
        )?
        .execute((&table, int(FOLDS_KEPT as u64)))?;
        step.prepare_cached("INSERT OR REPLACE INTO rows (kind, name, text) VALUES (?, ?, ?)")?
            .execute((&table, &fold.key, format!("{id} {}", fold.same)))?;
    }
    // Numbers of other logs lie between: entries are counted, and cut only now and then.
    if uint(next(step, &format!("{log}:added"))?).is_multiple_of(SPARE) {
        step.prepare_cached(
            "DELETE FROM logs WHERE log = ?1 AND id <= (SELECT id FROM logs WHERE log = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute((log, int(*kept as u64)))?;
    }
    Ok(())
}

/// Rewrites the entry under the same key, if it is young enough.
fn folded(step: &Step<'_>, line: &Line, fold: &Fold, at: i64) -> SqliteResult<bool> {
    let newest = row(step, &folds(&line.log), &fold.key)?;
    let newest = newest.as_deref().and_then(|newest| newest.split_once(' '));
    let Some((id, _)) = newest.filter(|(_, said)| *said == fold.same) else { return Ok(false) };
    let again = step
        .prepare_cached(
            "UPDATE logs SET text = json_set(?3, '$.id', id, '$.at', text ->> '$.at', \
             '$.count', coalesce(text ->> '$.count', 1) + ?6, '$.until', ?4) \
             WHERE log = ?1 AND id = CAST(?2 AS INTEGER) AND ?4 - (text ->> '$.at') BETWEEN 0 AND ?5",
        )?
        .execute((&line.log, id, &line.entry, at, int(fold.within_ms), int(line.count)))?;
    Ok(again > 0)
}

/// One more than the last of that name.
fn next(step: &Step<'_>, name: &str) -> SqliteResult<i64> {
    let next = step
        .prepare_cached(
            "INSERT INTO numbers (log, newest) VALUES (?, 1) \
             ON CONFLICT (log) DO UPDATE SET newest = newest + 1 RETURNING newest",
        )?
        .query_row([name], |row| row.get(0))?;
    Ok(next)
}

fn tell(step: &Step<'_>, tell: &Tell) -> SqliteResult<()> {
    match tell {
        Tell::Nodes => step.publish_nodes(),
        Tell::Accounts => step.publish_accounts(),
        Tell::Wake(waiters) => step.publish_wake(waiters),
    }
}
