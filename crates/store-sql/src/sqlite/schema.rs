//! The schema: steps, applied together in one transaction; the number is `user_version` (`store/schema.rs`).
//!
//! A file of a newer program, of a development version or of another program is refused and not touched. One of an older program is
//! upgraded only while no other process has it open.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::fault::SqliteResult;
use super::file::Place;
use soloist_store::StoreError;
use soloist_store::schema::Steps;

/// In order; never edited once released, only appended to.
pub const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// "SOL1": tells our files from those of others.
const APPLICATION_ID: i64 = 0x534f_4c31;

/// "SOLO": of the builds before 1.0.
const DEVELOPMENT: i64 = 0x534f_4c4f;

/// Refuses a file of another program. Asked before anything is written to it, as the journal mode is.
pub(super) fn refuse_strangers(db: &Connection, place: &Place, steps: &Steps) -> SqliteResult<()> {
    // Other programs may count below zero.
    let number = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match number("application_id")? {
        APPLICATION_ID => Ok(()),
        DEVELOPMENT => Err(steps.development().into()),
        _ if number("user_version")? == 0 && tables == 0 => Ok(()),
        _ => Err(StoreError::Unsupported(format!(
            "{place} is a database of another program: name another file in `store`"
        ))
        .into()),
    }
}

/// The schema of `db`.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Upgrades a file that an older program made, but not under the feet of a process that would go on with what is there now. Done while there
/// is no log: one that a killed process leaves must be the one that is written down (`record.rs`).
pub(super) fn upgrade_alone(db: &mut Connection, place: &Place, steps: &Steps) -> SqliteResult<()> {
    let found = version(db)?;
    if found == 0 || steps.missing(found)?.is_empty() {
        return Ok(());
    }
    // A process that leaves the write-ahead log must be alone: SQLite refuses it while any other connection is open, and no
    // other opens meanwhile, because each opens under the lock that this process holds. https://sqlite.org/wal.html
    let alone = db.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
    match alone {
        Ok(mode) if mode == "delete" => upgrade(db, place, steps),
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
            Err(error.into())
        }
        _ => Err(steps.in_use(found).into()),
    }
}

/// Applies the steps that are missing.
pub(super) fn upgrade(db: &mut Connection, place: &Place, steps: &Steps) -> SqliteResult<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    refuse_strangers(&tx, place, steps)?;
    let missing = steps.missing(version(&tx)?)?;
    if missing.is_empty() {
        return Ok(());
    }
    for step in missing {
        tx.execute_batch(step)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", steps.known())?;
    Ok(tx.commit()?)
}
