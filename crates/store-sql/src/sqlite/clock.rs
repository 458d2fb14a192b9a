//! The clock of dispatch, rotations and the audit, in microseconds: it never goes back.
//!
//! CLOCK_BOOTTIME plus an offset from the wall clock. A wall clock that is *ahead* of it by more than [`AHEAD_US`] was corrected (no battery, a
//! machine that was paused), and this clock jumps there. A wall clock that was set back moves nothing; a later boot continues from the newest
//! instant in the file.
//!
//! Leases of jobs do not depend on this clock (`deadline.rs`). What depends on it survives a jump: leases of tasks, gaps and windows move along,
//! and no turn begins for as long as one may last ([`doubt`]), so that a holder whose turn the jump ended has stopped by then.

use rusqlite::OptionalExtension;

use super::fault::SqliteResult;
use super::row::find;
use super::step::{Moment, Step};
use soloist_domain::time::Stamp;

/// Boots whose offsets are kept: containers on one machine may each show their own boot id.
const BOOTS_KEPT: i64 = 16;

/// Wall clocks that are kept right are steered, and set by less than this.
const AHEAD_US: i64 = 2_000_000;

/// What is moved along when this clock jumps by `?1` from `?2`: all that lasts for a while since something happened. What was planned for an
/// instant stays.
const ALONG: [&str; 4] = [
    "UPDATE tasks SET until = until + ?1 WHERE state = 'leased' AND until > ?2",
    "UPDATE claims SET until = until + ?1, forget = forget + ?1 WHERE until > ?2",
    "UPDATE sources SET last_start = last_start + ?1, opens = opens + ?1, \
     blocked_until = blocked_until + CASE WHEN blocked_until > ?2 THEN ?1 ELSE 0 END, \
     promised_until = promised_until + CASE WHEN promised_until > ?2 THEN ?1 ELSE 0 END",
    "UPDATE starts SET at = at + ?1 WHERE ?2 >= 0",
];

/// Now, for a reader.
pub(super) fn now(db: &rusqlite::Connection, at: &Moment) -> SqliteResult<Stamp> {
    let newest = find(db, "SELECT newest FROM dispatch", [])?.unwrap_or_default();
    let offset = find(db, "SELECT offset_us FROM clocks WHERE boot = ?", [&at.boot_id])?;
    Ok(read(at, offset, newest))
}

/// Now, for a writer; notes the offset at the first use in a boot, and when the wall clock was mended.
pub(super) fn take(step: &Step<'_>, newest: i64) -> SqliteResult<Stamp> {
    let at = &step.at;
    let offset = step
        .prepare_cached("SELECT offset_us FROM clocks WHERE boot = ?")?
        .query_row([&at.boot_id], |row| row.get(0))
        .optional()?;
    let now = read(at, offset, newest);
    let Some(offset) = offset else {
        step.prepare_cached("INSERT INTO clocks (boot, offset_us) VALUES (?, ?)")?
            .execute((&at.boot_id, now.0 - boot_us(at)))?;
        let added = step.last_insert_rowid();
        step.prepare_cached("DELETE FROM clocks WHERE n <= ?")?.execute([added - BOOTS_KEPT])?;
        return Ok(now);
    };
    let before = steady(at, offset).max(newest);
    if now.0 > before {
        step.execute(
            "UPDATE clocks SET offset_us = ?2 WHERE boot = ?1",
            (&at.boot_id, now.0 - boot_us(at)),
        )?;
        let by = (now.0 - before, before);
        for along in ALONG {
            step.execute(along, by)?;
        }
        doubt(step, now)?;
        tracing::warn!(
            by_s = by.0 / 1_000_000,
            "the wall clock was set forward, and the clock of dispatch with it"
        );
    }
    Ok(now)
}

/// A turn may be held of which nothing is written here.
pub(super) fn doubt(step: &Step<'_>, now: Stamp) -> SqliteResult<()> {
    step.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('forgot', ?)",
        [now.0.to_string()],
    )?;
    Ok(())
}

/// When that was found last.
pub(super) fn forgot(db: &rusqlite::Connection) -> SqliteResult<Option<Stamp>> {
    let at: Option<String> = find(db, "SELECT value FROM meta WHERE key = 'forgot'", [])?;
    Ok(at.and_then(|at| at.parse().ok()).map(Stamp))
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
pub(super) fn by_offset(at: &Moment, offset_us: i64) -> Stamp {
    read(at, Some(offset_us), 0)
}

/// Something was written down that carries `now`.
pub(super) fn keep(step: &Step<'_>, now: Stamp) -> SqliteResult<()> {
    step.prepare_cached("UPDATE dispatch SET newest = max(newest, ?)")?.execute([now.0])?;
    Ok(())
}

fn read(at: &Moment, offset_us: Option<i64>, newest: i64) -> Stamp {
    let now = match offset_us {
        Some(offset) if at.micros - steady(at, offset).max(newest) <= AHEAD_US => {
            steady(at, offset)
        }
        _ => at.micros,
    };
    Stamp(now.max(newest))
}

fn steady(at: &Moment, offset_us: i64) -> i64 {
    boot_us(at).saturating_add(offset_us)
}

fn boot_us(at: &Moment) -> i64 {
    i64::try_from(at.boot.0 / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use soloist_domain::time::{Boot, StoreTime};

    fn moment(boot_ms: u64, wall_ms: i64) -> Moment {
        let boot_id = "a".to_owned();
        let (boot, wall) = (Boot(boot_ms * 1_000_000), StoreTime(wall_ms));
        Moment { boot, boot_id, wall, micros: wall_ms * 1_000, quarantine: Duration::ZERO }
    }

    #[test]
    fn a_wall_clock_that_is_set_back_or_a_little_forward_moves_nothing() {
        let first = read(&moment(10, 5_000), None, 0);
        assert_eq!(first, Stamp(5_000_000));
        let offset = Some(first.0 - 10_000);
        for wall in [1, 5_007, 7_007] {
            assert_eq!(read(&moment(17, wall), offset, first.0), Stamp(5_007_000));
        }
    }

    #[test]
    fn a_wall_clock_that_was_mended_is_followed() {
        let offset = Some(5_000_000 - 10_000);
        assert_eq!(read(&moment(17, 900_000), offset, 5_001_000), Stamp(900_000_000));
    }

    #[test]
    fn the_clock_never_goes_back_behind_what_was_written_down() {
        assert_eq!(read(&moment(10, 5_000), None, 8_000_000), Stamp(8_000_000));
        assert_eq!(read(&moment(10, 5_000), Some(3), 8_000_000), Stamp(8_000_000));
    }
}
