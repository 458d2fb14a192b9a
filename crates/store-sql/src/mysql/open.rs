//! What is refused of a server, and the steps of its schema: applied under a lock (`store/schema.rs`). A server of this kind changes tables
//! without a transaction: an interrupted step is continued.

use std::collections::BTreeMap;

use super::session::Conn;
use super::{Mysql, link};
use crate::sql::fault::{Fault, Outcome};
use crate::sql::row::corrupt;
use soloist_process::clock;
use soloist_store::schema::Steps;
use soloist_store::{Options, Result, StoreError};

/// In order; never edited once released, only appended to. Each may be carried out again from its beginning.
const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// The first versions in which everything is there that is used here: `JSON_TABLE`, and a collation of bytes without padding.
const OLDEST_MARIADB: (u64, u64, u64) = (10, 6, 0);
const OLDEST_MYSQL: (u64, u64, u64) = (8, 0, 17);

/// 4 MiB of tasks are put in one step, and each of their bytes may need two.
const LEAST_PACKET: u64 = 16 << 20;

/// What is asked of the server.
const ASKED: [&str; 14] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "debug_no_sync",
    "log_bin",
    "sync_binlog",
    "binlog_format",
    "max_allowed_packet",
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "wsrep_on",
    "max_connections",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
];

/// What the server says of itself.
pub(super) struct Facts {
    version: String,
    settings: BTreeMap<String, String>,
    /// `SYSDATE()` stands still while a statement lasts.
    stands_still: bool,
    /// A process has opened this store.
    used: bool,
    /// Tables of another engine.
    strange: Vec<String>,
}

impl Facts {
    /// Of a setting that the server has.
    pub(super) fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(self.setting(name), "ON" | "1")
    }

    fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }

    /// `MariaDB 10.11.19`.
    pub(super) fn product(&self) -> String {
        let kind = if self.is_mariadb() { "MariaDB" } else { "MySQL" };
        format!("{kind} {}", self.version.split('-').next().unwrap_or_default())
    }

    fn number(&self) -> (u64, u64, u64) {
        let plain = self.version.split('-').next().unwrap_or_default();
        let mut parts = plain.split('.').map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        (next(), next(), next())
    }
}

/// Asks, on a connection of its own.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub(super) async fn facts(server: &Mysql) -> Result<Facts> {
    let name = &server.place.name;
    let asking = async {
        let mut conn = link::connect(&server.place, server.timeout, "").await?;
        ask(&mut conn).await
    };
    let late = || Fault::Ours(StoreError::Unavailable(format!("MySQL at {name} is too slow")));
    let asked = tokio::time::timeout(server.timeout * 2, asking).await;
    asked.unwrap_or_else(|_| Err(late())).map_err(|fault| fault.told(name))
}

async fn ask(conn: &mut Conn) -> Outcome<Facts> {
    // Columns are read from the left to the right.
    let first = format!("SELECT VERSION(), SLEEP(0.003), SYSDATE(6) = NOW(6), {}", link::is_used());
    let found = conn.query(&first, &[]).await?;
    let row = found.first().ok_or_else(|| corrupt("MySQL", "an answer is missing"))?;
    let names = ASKED.map(|name| format!("'{name}'")).join(", ");
    let show = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
    let mut settings = BTreeMap::new();
    for mut row in conn.query(&show, &[]).await? {
        settings.insert(row.take(0)?.to_lowercase(), row.take(1)?);
    }
    let strange = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB'";
    let strange = conn.query(strange, &[]).await?;
    Ok(Facts {
        version: row.text(0)?.to_owned(),
        stands_still: row.int(2)? == 1,
        used: row.int(3)? == 1,
        settings,
        strange: strange.into_iter().map(|mut row| row.take(0)).collect::<Result<_>>()?,
    })
}

/// Refuses what cannot keep the promise.
///
/// # Errors
/// [`StoreError::Unsupported`]; [`StoreError::Unavailable`] for a replica, which may be promoted.
pub(super) fn check(server: &Mysql, facts: &Facts) -> Result<()> {
    let name = &server.place.name;
    if ["read_only", "super_read_only", "innodb_read_only"].iter().any(|one| facts.is_on(one)) {
        return Err(StoreError::Unavailable(format!(
            "MySQL at {name} takes no writes (read_only), as a replica does: name the address of the primary"
        )));
    }
    match refusal(facts) {
        Some(why) => Err(StoreError::Unsupported(format!("MySQL at {name}: {why}"))),
        None => Ok(()),
    }
}

/// What is wrong with it, and the remedy.
fn refusal(facts: &Facts) -> Option<String> {
    let (oldest, kind) = if facts.is_mariadb() {
        (OLDEST_MARIADB, "MariaDB 10.6")
    } else {
        (OLDEST_MYSQL, "MySQL 8.0.17")
    };
    let flush = facts.setting("innodb_flush_log_at_trx_commit");
    let method = facts.setting("innodb_flush_method");
    let packet = facts.setting("max_allowed_packet").parse().unwrap_or(u64::MAX);
    let binlog = facts.is_on("log_bin");
    Some(if facts.number() < oldest {
        format!("version {} is too old: upgrade it to {kind} or later", facts.version)
    } else if flush != "1" {
        format!(
            "innodb_flush_log_at_trx_commit is {flush}, so a crash takes leases that were granted: set innodb_flush_log_at_trx_commit = 1"
        )
    } else if facts.is_on("debug_no_sync") || method.contains("nosync") {
        format!(
            "the server waits for no disk (debug_no_sync, innodb_flush_method {method}), so a power cut takes leases that were granted: set debug_no_sync = OFF and another innodb_flush_method"
        )
    } else if binlog && facts.setting("sync_binlog") != "1" {
        format!(
            "the binary log is on and sync_binlog is {}, so a crash parts it from the tables: set sync_binlog = 1, or switch the binary log off",
            facts.setting("sync_binlog")
        )
    } else if binlog && facts.setting("binlog_format") == "STATEMENT" {
        "binlog_format is STATEMENT, with which the server takes no writes at READ COMMITTED: set binlog_format = ROW or MIXED".to_owned()
    } else if facts.stands_still {
        "sysdate-is-now is set, so the clock stands still while a statement waits: start the server without it".to_owned()
    } else if packet < LEAST_PACKET {
        format!(
            "max_allowed_packet is {packet}, too small for what is written in one step: set max_allowed_packet = 64M (16M is the least)"
        )
    } else if let Some(table) = facts.strange.first() {
        format!(
            "the table {table} is not of InnoDB: ALTER TABLE {table} ENGINE = InnoDB, or name another database"
        )
    } else {
        return None;
    })
}

/// What deserves a warning.
pub(super) fn warnings(facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    if facts.is_on("wsrep_on") {
        warnings.push("this is a node of a Galera cluster: all nodes of Soloist must name this one, because two that write at two of them take the store for another one in turns, and nothing is granted".to_owned());
    }
    warnings
}

/// Checks the server and applies the steps that its tables lack; returns whether nothing shows that anybody uses them.
///
/// # Errors
/// As [`Store::open`](soloist_store::Store::open).
pub(super) async fn open(server: &Mysql, options: &Options) -> Result<bool> {
    let facts = facts(server).await?;
    check(server, &facts)?;
    let name = server.place.name.clone();
    let steps = Steps::new(format!("MySQL {name}"), &STEPS, options);
    // Making tables takes longer than a call.
    let until = clock::boot() + server.timeout.max(std::time::Duration::from_secs(30));
    let upgraded = server
        .links
        .rest
        .call(until, move |conn: &mut Conn| {
            Box::pin(async move {
                // One process after the other, in the order in which they come.
                let lock = link::lock("tables");
                let got = conn.query(&format!("SELECT GET_LOCK({lock}, 20)"), &[]).await?;
                if got.first().map(|row| row.opt_int(0)).transpose()?.flatten() != Some(1) {
                    return Err(Fault::Again("others make the tables".to_owned()));
                }
                let upgraded = upgrade(conn, &name, &steps).await;
                let freed = conn.query(&format!("SELECT RELEASE_LOCK({lock})"), &[]).await;
                upgraded.and(freed.map(drop))
            })
        })
        .await;
    upgraded.map_err(|fault| fault.told(&server.place.name))?;
    Ok(!facts.used)
}

async fn upgrade(conn: &mut Conn, name: &str, steps: &Steps) -> Outcome<()> {
    let tables = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
    let mut names = Vec::new();
    for mut row in conn.query(tables, &[]).await? {
        names.push(row.take(0)?);
    }
    let has = |name: &str| names.iter().any(|table| table == name);
    // The schema that the store is to have, and the one that all of it has.
    let (number, done) = if has("soloist_store") {
        let rows = conn.query("SELECT number, done FROM soloist_store", &[]).await?;
        // The process that made the table died before it wrote the numbers.
        let of = |nth| rows.first().map_or(Ok(0), |row| row.int(nth));
        let whole = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        (whole(of(0)?), whole(of(1)?))
    } else if has("soloist_schema") {
        return Err(steps.development().into());
    } else if names.is_empty() {
        (0, 0)
    } else {
        return Err(Fault::Ours(StoreError::Unsupported(format!(
            "MySQL at {name}: the database has tables of another program: make one for Soloist alone, and name it in the store URL"
        ))));
    };
    let missing = steps.missing(number).and_then(|_| steps.missing(done))?;
    if missing.is_empty() {
        return Ok(());
    }
    if done > 0 {
        let used = conn.query(&format!("SELECT {}", link::is_used()), &[]).await?;
        if used.first().map(|row| row.int(0)).transpose()? == Some(1) {
            return Err(steps.in_use(done).into());
        }
    }
    let table = format!("ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {}", link::BYTES);
    let numbers =
        "CREATE TABLE IF NOT EXISTS soloist_store (number BIGINT NOT NULL, done BIGINT NOT NULL)";
    conn.query(&format!("{numbers} {table}"), &[]).await?;
    // First, so that what is begun is known as ours, and is nobody's who knows less.
    let known = steps.known();
    let begun =
        format!("DELETE FROM soloist_store; INSERT INTO soloist_store VALUES ({known}, {done})");
    conn.run(&format!("START TRANSACTION; {begun}; COMMIT"), 4).await?;
    for step in missing {
        let lines = step.lines().filter(|line| !line.starts_with("--"));
        let whole = lines.collect::<Vec<_>>().join("\n").replace("{table}", &table);
        for statement in whole.split(";\n").filter(|statement| !statement.trim().is_empty()) {
            let statement = statement.trim().trim_end_matches(';');
            // As long as it takes.
            let patient = "/*M!SET STATEMENT max_statement_time = 0 FOR */";
            conn.query(&format!("{patient} {statement}"), &[]).await?;
        }
    }
    conn.query("UPDATE soloist_store SET done = number", &[]).await.map(drop)
}
