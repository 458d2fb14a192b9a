//! The clock of dispatch and rotations, in microseconds: it never goes back, and setting the wall clock moves nothing.
//!
//! CLOCK_BOOTTIME plus an offset that is taken from the wall clock once a boot. A later boot may find the wall clock
//! set back; then the clock goes on from the newest instant in the file.

use rusqlite::OptionalExtension;

use super::fault::SqliteResult;
use super::row::find;
use super::step::{Moment, Step};
use crate::domain::time::Stamp;

/// Boots whose offsets are kept: containers on one machine may each show their own boot id.
const BOOTS_KEPT: i64 = 16;

/// Now, for a reader.
pub(super) fn now(db: &rusqlite::Connection, at: &Moment) -> SqliteResult<Stamp> {
    let newest = find(db, "SELECT newest FROM dispatch", [])?.unwrap_or_default();
    let offset = find(db, "SELECT offset_us FROM clocks WHERE boot = ?", [&at.boot_id])?;
    Ok(read(at, offset, newest))
}

/// Now, for a writer; notes the offset at the first use in a boot.
pub(super) fn take(step: &Step<'_>, newest: i64) -> SqliteResult<Stamp> {
    let at = &step.at;
    let offset = step
        .prepare_cached("SELECT offset_us FROM clocks WHERE boot = ?")?
        .query_row([&at.boot_id], |row| row.get(0))
        .optional()?;
    let now = read(at, offset, newest);
    if offset.is_none() {
        step.prepare_cached("INSERT INTO clocks (boot, offset_us) VALUES (?, ?)")?
            .execute((&at.boot_id, now.0 - boot_us(at)))?;
        let added = step.last_insert_rowid();
        step.prepare_cached("DELETE FROM clocks WHERE n <= ?")?.execute([added - BOOTS_KEPT])?;
    }
    Ok(now)
}

/// Now, for a change of what belongs to no job; noted as the newest instant.
pub(super) fn of_writer(step: &Step<'_>) -> SqliteResult<Stamp> {
    let newest = step.query_row("SELECT newest FROM dispatch", [], |row| row.get(0))?;
    let now = take(step, newest)?;
    keep(step, now)?;
    Ok(now)
}

/// How far `now` is ahead of CLOCK_BOOTTIME at `at`, in microseconds.
pub(super) fn offset(at: &Moment, now: Stamp) -> i64 {
    now.0 - boot_us(at)
}

/// Now, by an offset that is known.
pub(super) fn by_offset(offset_us: i64) -> Stamp {
    let boot = i64::try_from(crate::clock::boot().0 / 1_000).unwrap_or(i64::MAX);
    Stamp(boot.saturating_add(offset_us))
}

/// Something was written down that carries `now`.
pub(super) fn keep(step: &Step<'_>, now: Stamp) -> SqliteResult<()> {
    step.prepare_cached("UPDATE dispatch SET newest = max(newest, ?)")?.execute([now.0])?;
    Ok(())
}

fn read(at: &Moment, offset_us: Option<i64>, newest: i64) -> Stamp {
    let now = match offset_us {
        Some(offset) => boot_us(at).saturating_add(offset),
        None => Stamp::from(at.wall).0,
    };
    Stamp(now.max(newest))
}

fn boot_us(at: &Moment) -> i64 {
    i64::try_from(at.boot.0 / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::{Boot, StoreTime};

    fn moment(boot_ms: u64, wall_ms: i64) -> Moment {
        let boot_id = "a".to_owned();
        let (boot, wall) = (Boot(boot_ms * 1_000_000), StoreTime(wall_ms));
        Moment { boot, boot_id, wall, micros: wall_ms * 1_000 }
    }

    #[test]
    fn the_offset_counts_and_not_the_wall_clock() {
        let first = read(&moment(10, 5_000), None, 0);
        assert_eq!(first, Stamp(5_000_000));
        let offset = Some(first.0 - 10_000);
        for wall in [1, 5_007, 900_000] {
            assert_eq!(read(&moment(17, wall), offset, first.0), Stamp(5_007_000));
        }
    }

    #[test]
    fn the_clock_never_goes_back_behind_what_was_written_down() {
        assert_eq!(read(&moment(10, 5_000), None, 8_000_000), Stamp(8_000_000));
        assert_eq!(read(&moment(10, 5_000), Some(3), 8_000_000), Stamp(8_000_000));
    }
}
