//! The start of a connection: its settings at the server, and how a process shows others that it uses the store.

use std::time::Duration;

use super::place::Place;
use super::session::Conn;
use crate::sql::fault::{Fault, Outcome};

/// Names of the locks of witnesses; more processes than that need none of their own.
const WITNESSES: usize = 64;

/// A new connection, set up for our statements; one with a name is a witness that this database is used.
///
/// # Errors
/// [`Fault`].
pub(super) async fn connect(place: &Place, timeout: Duration, called: &str) -> Outcome<Conn> {
    let connecting = async {
        let mut conn = Conn::new(mysql_async::Conn::new(place.opts.clone()).await?);
        let (set, count) = settings(timeout);
        conn.run(&set, count).await?;
        if !called.is_empty() {
            let sql = format!("SELECT {}", each_witness(|name| format!("GET_LOCK({name}, 0)")));
            conn.run(&sql, 1).await?;
        }
        Ok(conn)
    };
    let late = || Fault::Broken(format!("no connection within {timeout:?}"));
    tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late()))
}

/// What says, as 1 or 0, whether a process uses this database.
pub(super) fn is_used() -> String {
    each_witness(|name| format!("IS_USED_LOCK({name}) IS NOT NULL"))
}

/// The first that is so ends the search. Named locks need no privilege and end with their connections; no lease depends on one.
fn each_witness(is_so: impl Fn(&str) -> String) -> String {
    let each = (0..WITNESSES).map(|nth| is_so(&lock(&format!("witness {nth}"))));
    each.collect::<Vec<_>>().join(" OR ")
}

/// A name of a lock has at most 64 letters. MySQL 9.6 and later has no `MD5`.
const DATABASE_HASH: &str = "/*M!MD5(DATABASE())*//*!80000 LEFT(SHA2(DATABASE(), 256), 32)*/";

/// A named lock of this database.
pub(super) fn lock(what: &str) -> String {
    format!("CONCAT('soloist ', {DATABASE_HASH}, ' {what}')")
}

/// And of how many statements it is. `/*M! */` is read by MariaDB alone, `/*!80000 */` by MySQL alone.
fn settings(timeout: Duration) -> (String, usize) {
    let ms = timeout.as_millis().max(1);
    let seconds = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    let all = [
        // Local time has an hour twice a year; without these modes texts that are too long were cut, and '\' meant something else.
        "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1".to_owned(),
        "SET NAMES utf8mb4 COLLATE {bytes}".replace("{bytes}", BYTES),
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned(),
        // A lock of a transaction that is sent as a whole is held for milliseconds.
        "SET innodb_lock_wait_timeout = 1, net_write_timeout = 1, wait_timeout = 31536000".to_owned(),
        format!("SET /*M!max_statement_time = {seconds}*//*!80000 max_execution_time = {ms}*/"),
    ];
    let count = all.len();
    (all.join("; "), count)
}

/// The collation by which texts are compared byte by byte, trailing blanks included.
pub(super) const BYTES: &str = "/*M!utf8mb4_nopad_bin*//*!80000 utf8mb4_0900_bin*/";
