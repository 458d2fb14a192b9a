//! What `soloist doctor` looks at in a SQLite file: schema, journal, disk, files.

use nix::sys::statvfs::statvfs;

use super::{SqliteStore, schema};
use crate::store::Result;
use crate::store::examine::{Finding, Verdict};

/// Below this the write-ahead log may not find room when it is needed.
const LEAST_FREE: u64 = 64 << 20;
/// Below this it is time to look.
const LITTLE_FREE: u64 = 512 << 20;

impl SqliteStore {
    /// As [`Store::examine`](crate::store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    pub async fn examine(&self) -> Result<Vec<Finding>> {
        let (version, journal) = self
            .inner
            .reader
            .call(|db, _| {
                let journal: String =
                    db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
                Ok((schema::version(db)?, journal))
            })
            .await?;
        let about = self.describe().await?;
        let what = format!("{} (schema {version})", about.what);
        let mut findings = vec![
            Finding::ok("store", what),
            Finding::ok("persistence", "every change is in the file before it is answered"),
            match journal.as_str() {
                "wal" => Finding::ok("journal", "write-ahead log, on a local file system"),
                other => Finding::bad(
                    "journal",
                    format!("journal_mode is {other}: readers and writers stop each other"),
                    "another program has changed it: end that program and restart the nodes",
                ),
            },
            Finding::ok(
                "replication",
                "none: the store is one file on this machine, so no other machine can take over (use redis:// for that)",
            ),
        ];
        // Each says its own remedy.
        let verdict = Verdict::Warn;
        findings.extend(about.warnings.into_iter().map(|what| Finding {
            check: "files",
            verdict,
            what,
            remedy: None,
        }));
        findings.extend(self.disk());
        Ok(findings)
    }

    fn disk(&self) -> Option<Finding> {
        let dir = self.inner.place.path().parent()?;
        let found = statvfs(dir).ok()?;
        let free = found.blocks_available() * found.fragment_size();
        let what = format!("{} MiB free in {}", free >> 20, dir.display());
        let remedy = "free space there: a full disk refuses every write, and jobs stop";
        Some(match free {
            0..LEAST_FREE => Finding::bad("disk", what, remedy),
            LEAST_FREE..LITTLE_FREE => Finding::warn("disk", what, remedy),
            _ => Finding::ok("disk", what),
        })
    }
}
