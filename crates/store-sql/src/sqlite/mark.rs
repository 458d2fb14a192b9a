//! Detects an older copy. `sqlite3 soloist.db ".restore backup.db"` restores one while nodes run, and SQLite writes it as one more transaction:
//! then a held lease may be over in there, or was never there.
//!
//! Two numbers only grow: that of the newest event, which each grant and release has, and how often leases were kept. Both are in `PATH-wake` too
//! (`record.rs`), which no restore touches. Each writing transaction compares them before anything else. If the store is behind, nothing is
//! granted for one lease, and the store gets another epoch, so that every node reads all of it anew.

use rusqlite::Connection;

use super::fault::SqliteResult;

/// All that processes know of the store is outdated.
pub(super) const NEW_EPOCH: &str =
    "UPDATE meta SET value = lower(hex(randomblob(16))) WHERE key = 'epoch'";

/// See the head of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The number of the newest event.
    pub(super) event: i64,
    /// How often leases were kept.
    pub(super) keeps: i64,
}

impl Mark {
    pub(super) fn read(db: &Connection) -> SqliteResult<Self> {
        let mut mark = db.prepare_cached(
            "SELECT coalesce((SELECT max(seq) FROM events), 0), \
             coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'keeps'), 0)",
        )?;
        Ok(mark.query_row([], |row| Ok(Self { event: row.get(0)?, keeps: row.get(1)? }))?)
    }

    /// Counts one more time that leases were kept; how many there were.
    pub(super) fn count_keep(db: &Connection) -> SqliteResult<i64> {
        let mut count = db.prepare_cached(
            "INSERT INTO meta (key, value) VALUES ('keeps', '1') \
             ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) \
             RETURNING CAST(value AS INTEGER)",
        )?;
        Ok(count.query_row([], |row| row.get(0))?)
    }

    /// Whether the store at `self` has lost something that it had at `other`.
    pub(super) fn is_behind(self, other: Self) -> bool {
        self.event < other.event || self.keeps < other.keeps
    }

    /// The further one in each number.
    pub(super) fn newest(self, other: Self) -> Self {
        Self { event: self.event.max(other.event), keeps: self.keeps.max(other.keeps) }
    }
}
