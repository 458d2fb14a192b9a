//! The schema: numbered migrations, each applied once in one transaction; the number is `user_version`.
//!
//! A file of a newer program, or of another program, is refused and not touched. One from before jobs were records is converted
//! (`convert.rs`) only while no other process has it open, and not by a program that only looks.

use rusqlite::{Connection, TransactionBehavior};

use super::convert;
use super::fault::SqliteResult;
use super::file::Place;
use crate::store::StoreError;

/// In order; never edited once released, only appended to.
pub(in crate::store) const MIGRATIONS: [&str; 10] = [
    include_str!("migrations/0001_start.sql"),
    include_str!("migrations/0002_drill.sql"),
    include_str!("migrations/0003_dispatch.sql"),
    include_str!("migrations/0004_bound_tokens.sql"),
    include_str!("migrations/0005_rotations.sql"),
    include_str!("migrations/0006_folded_runs.sql"),
    include_str!("migrations/0007_definitions.sql"),
    include_str!("migrations/0008_jobs.sql"),
    include_str!("migrations/0009_records.sql"),
    include_str!("migrations/0010_turns.sql"),
];

/// "SOLO": tells our files from those of others.
const APPLICATION_ID: i64 = 0x534f_4c4f;

/// The first schema in which jobs are records.
const JOBS_ARE_RECORDS: u32 = 8;

/// The schema this program knows.
#[expect(clippy::cast_possible_truncation, reason = "there will never be that many")]
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Refuses a file of another program. Asked before anything is written to it, as the journal mode is.
pub(super) fn refuse_strangers(db: &Connection, place: &Place) -> SqliteResult<()> {
    // Other programs may count below zero.
    let number = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let strange = number("application_id")? != APPLICATION_ID;
    if strange && (number("user_version")? != 0 || tables != 0) {
        return Err(StoreError::Unsupported(format!(
            "{place} is a database of another program: name another file in `store`"
        ))
        .into());
    }
    Ok(())
}

/// The schema of `db`.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses to convert a file for who only looks, or under the feet of a process that would go on with what is there now.
pub(super) fn may_convert(db: &Connection, place: &Place, make: bool) -> SqliteResult<()> {
    if !(1..KNOWN).contains(&version(db)?) {
        return Ok(());
    }
    if !make {
        return Err(StoreError::Unsupported(format!(
            "{place} was written by the version before: start a node of this version (soloist serve), which converts it; looking changes nothing"
        ))
        .into());
    }
    // A process that leaves the write-ahead log must be alone: SQLite refuses it while any other connection is open, and no
    // other opens meanwhile, because each opens under the lock that this process holds. https://sqlite.org/wal.html
    let alone = db.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
    match alone {
        Ok(mode) if mode == "delete" => Ok(()),
        Err(error) if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(error.into())
        }
        _ => Err(StoreError::Unsupported(format!(
            "{place} was written by the version before, and another process has it open: stop every node of that version and whatever else reads the file, then start this one, which converts it (back it up before: the version before cannot read it afterwards)"
        ))
        .into()),
    }
}

/// Applies what is missing.
pub(super) fn migrate(db: &mut Connection, place: &Place) -> SqliteResult<()> {
    loop {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        refuse_strangers(&tx, place)?;
        let found = version(&tx)?;
        if found > KNOWN {
            return Err(StoreError::NewerSchema { found, known: KNOWN }.into());
        }
        let Some(migration) = MIGRATIONS.get(found as usize) else { return Ok(()) };
        tx.execute_batch(migration)?;
        if found + 1 == JOBS_ARE_RECORDS {
            convert::convert(&tx, place)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", found + 1)?;
        tx.commit()?;
    }
}
