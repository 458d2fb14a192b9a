//! The schema: numbered migrations, each applied once in one transaction; the number is `user_version`.
//!
//! A file of a newer program, or of another program, is refused and not touched.

use rusqlite::{Connection, TransactionBehavior};

use super::fault::Outcome;
use super::file::Place;
use crate::store::StoreError;

/// In order; never edited once released, only appended to.
pub(super) const MIGRATIONS: [&str; 9] = [
    include_str!("migrations/0001_start.sql"),
    include_str!("migrations/0002_drill.sql"),
    include_str!("migrations/0003_dispatch.sql"),
    include_str!("migrations/0004_bound_tokens.sql"),
    include_str!("migrations/0005_rotations.sql"),
    include_str!("migrations/0006_folded_runs.sql"),
    include_str!("migrations/0007_definitions.sql"),
    include_str!("migrations/0008_records.sql"),
    include_str!("migrations/0009_turns.sql"),
];

/// "SOLO": tells our files from those of others.
const APPLICATION_ID: i64 = 0x534f_4c4f;

/// The schema this program knows.
#[expect(clippy::cast_possible_truncation, reason = "there will never be that many")]
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Refuses a file of another program. Asked before anything is written to it, as the journal mode is.
pub(super) fn refuse_strangers(db: &Connection, place: &Place) -> Outcome<()> {
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

/// Applies what is missing.
pub(super) fn migrate(db: &mut Connection, place: &Place) -> Outcome<()> {
    loop {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        refuse_strangers(&tx, place)?;
        let found = version(&tx)?;
        if found > KNOWN {
            return Err(StoreError::NewerSchema { found, known: KNOWN }.into());
        }
        let Some(migration) = MIGRATIONS.get(found as usize) else { return Ok(()) };
        tx.execute_batch(migration)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", found + 1)?;
        tx.commit()?;
    }
}
