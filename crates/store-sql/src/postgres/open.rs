//! What is refused of a server, and the steps of its schema: applied in one transaction, with their number (`store/schema.rs`).

use super::fault::POOLER;
use super::session::Conn;
use super::{Postgres, link};
use crate::sql::fault::{Fault, Outcome};
use crate::sql::session::Value;
use soloist_process::clock;
use soloist_store::schema::Steps;
use soloist_store::{Options, Result, StoreError};

/// In order; never edited once released, only appended to.
const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// The first version in which everything is there that is used here.
const OLDEST: i64 = 130_000;

/// What the server says of itself.
pub(super) struct Facts {
    pub(super) version: String,
    number: i64,
    pub(super) settings: Settings,
    recovers: bool,
    /// Whether the server has it written down that this process listens: not behind a pooler of transactions.
    listens: bool,
    /// Our connection is one at the server, and ours alone.
    alone: bool,
    /// Processes that opened this store.
    witnesses: i64,
}

/// What was set there.
pub(super) struct Settings {
    pub(super) fsync: String,
    pub(super) synchronous_commit: String,
    pub(super) standbys: String,
    pub(super) encoding: String,
    takes_no_writes: bool,
}

/// How many connections of processes are there that have opened the store called `$1`.
const WITNESSES: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()";

/// How the connections of a process are called that has opened the store.
pub(super) fn witness(schema: &str) -> String {
    format!("soloist {schema}")
}

/// Asks, on a connection of its own.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub(super) async fn facts(server: &Postgres) -> Result<Facts> {
    let name = &server.place.name;
    let connect = || link::connect(&server.place, server.timeout, "soloist");
    let (mut conn, _) = connect().await.map_err(|fault| fault.told(name))?;
    let (mut other, _) = connect().await.map_err(|fault| fault.told(name))?;
    let asking = ask(&mut conn, &mut other, &server.place.schema);
    let late = || Fault::Ours(StoreError::Unavailable(format!("PostgreSQL at {name} is too slow")));
    let asked = tokio::time::timeout(server.timeout, asking).await;
    asked.unwrap_or_else(|_| Err(late())).map_err(|fault| fault.told("PostgreSQL"))
}

async fn ask(conn: &mut Conn, other: &mut Conn, schema: &str) -> std::result::Result<Facts, Fault> {
    let channel = format!("LISTEN \"{schema}_trial\"");
    conn.client.batch_execute(&channel).await?;
    let sql = "SELECT current_setting('server_version'), current_setting('server_version_num')::bigint, current_setting('fsync'), \
        current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('server_encoding'), \
        pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', \
        EXISTS (SELECT 1 FROM pg_listening_channels() AS channel WHERE channel = ?)";
    let rows = conn.query(sql, &[Value::Text(format!("{schema}_trial"))]).await?;
    let witnesses = conn.client.query_one(WITNESSES, &[&witness(schema)]).await?.get(0);
    let empty = || StoreError::Corrupt("PostgreSQL: an answer is missing".to_owned());
    let row = rows.first().ok_or_else(empty)?;
    let alone = is_alone(conn, other).await?;
    let word = |nth| row.text(nth).map(str::to_owned);
    Ok(Facts {
        // `15.13 (Debian 15.13-0+deb12u1)`
        version: word(0)?.split(' ').next().unwrap_or_default().to_owned(),
        number: row.int(1)?,
        settings: Settings {
            fsync: word(2)?,
            synchronous_commit: word(3)?,
            standbys: word(4)?,
            encoding: word(5)?,
            takes_no_writes: row.int(7)? == 1,
        },
        recovers: row.int(6)? == 1,
        listens: row.int(8)? == 1,
        alone,
        witnesses,
    })
}

/// Whether `conn` is one connection at the server. In a pool of transactions `other` gets what `conn` has left, and `conn` something else; more
/// than once, as others of the pool may come between.
async fn is_alone(conn: &mut Conn, other: &mut Conn) -> std::result::Result<bool, Fault> {
    async fn process(of: &mut Conn) -> std::result::Result<i64, Fault> {
        let rows = of.query("SELECT pg_backend_pid()", &[]).await?;
        let empty = || StoreError::Corrupt("PostgreSQL: an answer is missing".to_owned());
        Ok(rows.first().ok_or_else(empty)?.int(0)?)
    }
    for _ in 0..3 {
        let ours = process(conn).await?;
        other.client.batch_execute("BEGIN").await?;
        let theirs = process(other).await?;
        let again = process(conn).await?;
        other.client.batch_execute("ROLLBACK").await?;
        if ours != again || ours == theirs {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses what cannot keep the promise.
///
/// # Errors
/// [`StoreError::Unsupported`]; [`StoreError::Unavailable`] for a replica, which may be promoted.
pub(super) fn check(server: &Postgres, facts: &Facts) -> Result<()> {
    let name = &server.place.name;
    let refused =
        |why: String| Err(StoreError::Unsupported(format!("PostgreSQL at {name}: {why}")));
    if !facts.listens || !facts.alone {
        return Err(StoreError::Unsupported(POOLER.to_owned()));
    }
    if facts.number < OLDEST {
        return refused(format!("version {} is too old: upgrade it to 13 or later", facts.version));
    }
    if facts.recovers {
        return Err(StoreError::Unavailable(format!(
            "PostgreSQL at {name} is a replica: name the address of the primary"
        )));
    }
    let Settings { fsync, synchronous_commit, encoding, takes_no_writes, .. } = &facts.settings;
    if *takes_no_writes {
        return Err(StoreError::Unavailable(format!(
            "PostgreSQL at {name} takes no writes (default_transaction_read_only), as a replica does: name the address of the primary"
        )));
    }
    if fsync != "on" {
        return refused("fsync is off, so a power cut takes leases that were granted: set fsync = on in postgresql.conf".to_owned());
    }
    if synchronous_commit == "off" {
        return refused("synchronous_commit is off, and this user may not set it: ALTER ROLE ... SET synchronous_commit = on".to_owned());
    }
    if encoding != "UTF8" {
        return refused(format!(
            "the encoding of the database is {encoding}: make one with createdb -E UTF8 -T template0"
        ));
    }
    Ok(())
}

/// What deserves a warning.
pub(super) fn warnings(facts: &Facts) -> Vec<String> {
    let Settings { synchronous_commit, standbys, .. } = &facts.settings;
    let mut warnings = Vec::new();
    if !standbys.is_empty() && synchronous_commit == "local" {
        warnings.push("there are synchronous replicas, and synchronous_commit is local: a promoted one may have forgotten leases; set it to on".to_owned());
    }
    warnings
}

/// Checks the server and applies the steps that its tables lack; returns whether nothing shows that anybody uses them.
///
/// # Errors
/// As [`Store::open`](soloist_store::Store::open).
pub(super) async fn open(server: &Postgres, options: &Options) -> Result<bool> {
    let facts = facts(server).await?;
    check(server, &facts)?;
    let (schema, name) = (server.place.schema.clone(), server.place.name.clone());
    let steps = Steps::new(format!("PostgreSQL {name}"), &STEPS, options);
    // Making tables takes longer than a call.
    let until = clock::boot() + server.timeout.max(std::time::Duration::from_secs(30));
    let upgraded = server
        .links
        .rest
        .call(until, move |conn: &mut Conn| {
            Box::pin(async move {
                let upgraded = upgrade(conn, &schema, &name, &steps).await;
                if upgraded.is_err() {
                    conn.client.batch_execute("ROLLBACK").await?;
                }
                upgraded
            })
        })
        .await;
    upgraded.map_err(|fault| fault.told(&server.place.name))?;
    Ok(facts.witnesses == 0)
}

async fn upgrade(conn: &mut Conn, schema: &str, name: &str, steps: &Steps) -> Outcome<()> {
    let client = &conn.client;
    // One process after the other, in the order in which they come; it lasts until the end of the transaction.
    client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(hashtext('soloist'))").await?;
    let there = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    if client.query_opt(there, &[&schema]).await?.is_none() {
        steps.missing(0)?;
        client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    let tables = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";
    let tables: Vec<String> =
        client.query(tables, &[&schema]).await?.iter().map(|row| row.get(0)).collect();
    let has = |name: &str| tables.iter().any(|table| table == name);
    let found = if has("soloist_store") {
        let row = client.query_one("SELECT number FROM soloist_store", &[]).await?;
        u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX)
    } else if has("soloist_schema") {
        return Err(steps.development().into());
    } else if tables.is_empty() {
        0
    } else {
        return Err(Fault::Ours(StoreError::Unsupported(format!(
            "PostgreSQL at {name}: the schema has tables of another program: name another one with ?schema=NAME"
        ))));
    };
    let missing = steps.missing(found)?;
    if !missing.is_empty() {
        if found > 0 && client.query_one(WITNESSES, &[&witness(schema)]).await?.get::<_, i64>(0) > 0
        {
            return Err(steps.in_use(found).into());
        }
        // As long as it takes.
        client.batch_execute("SET LOCAL statement_timeout = 0").await?;
        for step in missing {
            client.batch_execute(step).await?;
        }
        client
            .batch_execute(&format!(
                "CREATE TABLE IF NOT EXISTS soloist_store (number BIGINT NOT NULL); DELETE FROM soloist_store; \
                 INSERT INTO soloist_store VALUES ({})",
                steps.known()
            ))
            .await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(())
}
