//! What `soloist doctor` checks in a PostgreSQL store: version, possible losses, replicas, long transactions.

use super::Postgres;
use super::open::{self, Settings};
use crate::sql::Server as _;
use crate::sql::packet::{Packet, Repeat, only};
use soloist_store::Result;
use soloist_store::engine::Way;
use soloist_store::examine::Finding;

/// Older than this, a transaction keeps dead rows from being removed, and every change gets slower.
const LONG_MINUTES: i64 = 10;

impl Postgres {
    /// As [`Store::examine`](soloist_store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn findings(&self) -> Result<Vec<Finding>> {
        let facts = open::facts(self).await?;
        let mut findings = vec![Finding::ok(
            "store",
            format!("PostgreSQL {} at {}", facts.version, self.place.name),
        )];
        let Settings { fsync, synchronous_commit, standbys, .. } = &facts.settings;
        findings.push(match open::check(self, &facts) {
            Ok(()) => Finding::ok(
                "persistence",
                format!("fsync {fsync}, synchronous_commit {synchronous_commit} on our connections: what was answered survives a crash"),
            ),
            Err(error) => Finding::bad("persistence", error.to_string(), "put it right, then restart the nodes"),
        });
        let warnings = open::warnings(&facts);
        findings.push(match (standbys.as_str(), warnings.first()) {
            (_, Some(warning)) => Finding::warn("replication", warning.clone(), "set synchronous_commit = on"),
            ("", None) => Finding::ok(
                "replication",
                "no synchronous replica: after a promotion nothing is granted for the longest lease (set synchronous_standby_names to lose nothing)",
            ),
            (names, None) => Finding::ok("replication", format!("synchronous: {names}")),
        });
        findings.push(self.long_transactions().await?);
        Ok(findings)
    }

    async fn long_transactions(&self) -> Result<Finding> {
        let mut packet = Packet::look(self.dialect());
        packet.add(
            "SELECT coalesce(max(extract(epoch from clock_timestamp() - xact_start))::bigint / 60, 0), \
             current_setting('max_connections')::bigint, (SELECT count(*) FROM pg_stat_activity), \
             pg_has_role(current_user, 'pg_read_all_stats', 'usage') \
             FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()",
            Vec::new(),
        );
        let answers = self.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let row = only(&answers, 0)?;
        let (minutes, most, used) = (row.int(0)?, row.int(1)?, row.int(2)?);
        let none = if row.int(3)? == 1 {
            "none is long"
        } else {
            "none of this user is long (those of others are hidden from it: GRANT pg_read_all_stats TO it)"
        };
        Ok(if minutes >= LONG_MINUTES {
            Finding::warn(
                "transactions",
                format!(
                    "a transaction is open for {minutes} minutes: dead rows pile up, and changes get slower"
                ),
                "end it: SELECT pid, query FROM pg_stat_activity WHERE backend_xmin IS NOT NULL ORDER BY xact_start",
            )
        } else {
            Finding::ok("transactions", format!("{none}; {used} of {most} connections are in use"))
        })
    }
}
