//! What `soloist doctor` checks in a SQLite file: schema, journal, disk, files.

use nix::sys::statvfs::statvfs;

use super::{SqliteStore, clock, others, schema};
use soloist_store::Result;
use soloist_store::backend::Backend as _;
use soloist_store::examine::{Finding, Verdict};

/// Below this the write-ahead log may not find room when it is needed.
const LEAST_FREE: u64 = 64 << 20;
/// A clock that was set back by more than this shows in lists.
const LITTLE_AHEAD_MS: i64 = 2_500;
/// Below this it is time to look.
const LITTLE_FREE: u64 = 512 << 20;

impl SqliteStore {
    /// As [`Store::examine`](soloist_store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn findings(&self) -> Result<Vec<Finding>> {
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
        findings.extend(self.side_files());
        findings.push(self.clock().await?);
        Ok(findings)
    }

    /// Processes that still use files that are not at the path any more.
    fn side_files(&self) -> Option<Finding> {
        let held = others::holders(self.inner.place.path());
        let named: Vec<String> = held
            .iter()
            .filter(|held| held.removed)
            .map(|held| {
                let who = others::process(held.pid);
                format!("{who} has {} open, which was removed", held.file)
            })
            .collect();
        (!named.is_empty()).then(|| {
            Finding::bad(
                "files",
                named.join("; "),
                "stop these processes and start the nodes again: what they write nobody else sees",
            )
        })
    }

    /// The clock of dispatch, rotations and the audit beside the one of the machine.
    async fn clock(&self) -> Result<Finding> {
        let ahead =
            self.read(|db, at| Ok(clock::now(db, at)?.0.saturating_sub(at.micros) / 1_000)).await?;
        let what = format!("{ahead:+} ms beside this machine's, for tasks, turns and the audit");
        Ok(if ahead.abs() <= LITTLE_AHEAD_MS {
            Finding::ok("dispatch clock", what)
        } else {
            Finding::warn(
                "dispatch clock",
                what,
                "the machine's clock was set back; this one never goes back, and goes with it again when the machine has started anew and the time has come",
            )
        })
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
