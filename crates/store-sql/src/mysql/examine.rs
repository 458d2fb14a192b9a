//! What `soloist doctor` checks in a MySQL or MariaDB store: version, possible losses, replicas, Galera, connections.

use super::Mysql;
use super::open;
use crate::sql::Server as _;
use crate::sql::packet::{Packet, Repeat};
use soloist_store::Result;
use soloist_store::engine::Way;
use soloist_store::examine::Finding;

impl Mysql {
    /// As [`Store::examine`](soloist_store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn findings(&self) -> Result<Vec<Finding>> {
        let facts = open::facts(self).await?;
        let mut findings =
            vec![Finding::ok("store", format!("{} at {}", facts.product(), self.place.name))];
        findings.push(match open::check(self, &facts) {
            Ok(()) => Finding::ok(
                "persistence",
                format!(
                    "innodb_flush_log_at_trx_commit 1{}: what was answered survives a crash",
                    if facts.is_on("log_bin") { ", sync_binlog 1" } else { "" }
                ),
            ),
            Err(error) => Finding::bad(
                "persistence",
                error.to_string(),
                "put it right, then restart the nodes",
            ),
        });
        let waits = ["rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"];
        findings.push(match open::warnings(&facts).into_iter().next() {
            Some(warning) => {
                Finding::warn("replication", warning, "name the same address in `store` everywhere")
            }
            None if waits.iter().any(|one| facts.is_on(one)) => Finding::ok(
                "replication",
                "semi-synchronous; it falls back to asynchronous by itself, so after a promotion nothing is granted for the longest lease",
            ),
            None => Finding::ok(
                "replication",
                "asynchronous or none: after a promotion nothing is granted for the longest lease",
            ),
        });
        let mut packet = Packet::look(self.dialect());
        packet.add("SHOW GLOBAL STATUS LIKE 'Threads_connected'", Vec::new());
        let answers = self.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let used = answers.first().and_then(|rows| rows.first()).map(|row| row.text(1));
        let (used, most) = (used.transpose()?.unwrap_or("?"), facts.setting("max_connections"));
        findings.push(Finding::ok(
            "connections",
            format!("{used} of {most} are in use; each node needs six"),
        ));
        Ok(findings)
    }
}
