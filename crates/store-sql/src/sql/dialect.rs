//! The placeholders in which servers differ.
//!
//! | word | what it stands for |
//! | --- | --- |
//! | `{clock}` | the server's clock now, in microseconds since 1970 |
//! | `{began}` | MySQL alone: the same when the statement began, wherever it stands in it |
//! | `{at}` | the instant of this transaction, as [`Packet::at_this_instant`](super::packet::Packet::at_this_instant) read it |
//! | `{at_ms}` | the same in whole milliseconds, rounded down |
//! | `{holds}` | all conditions so far hold |
//! | `{fresh}` | the entry of a log is not one of before, told again |
//! | `{server}` | names the server and its history: another one may have forgotten something |
//! | `{place}`, `{due}`, `{until}`, `{changed}` | the column of `tasks` by which those are in order that are ready, due, leased, dead or done |

use std::borrow::Cow;

use super::follow::Hint;
use super::row::text;
use super::session::{Dialect, Statement, Value};
use soloist_store::Result;

/// System identifier and timeline. The identifier cannot change while a connection lasts, and costs the server more than the rest of a
/// condition, because it reads a file for it: it is kept when a connection begins (`postgres/link.rs`). The timeline of
/// `pg_control_checkpoint()` is the old one for a second after a promotion.
const POSTGRES_SERVER: &str = "(current_setting('soloist.system') || ':' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))";

const POSTGRES: [(&str, &str); 6] = [
    ("{clock}", "((extract(epoch from clock_timestamp()) * 1000000)::bigint)"),
    ("{at}", "(current_setting('soloist.at')::bigint)"),
    ("{at_ms}", "(current_setting('soloist.at')::bigint / 1000)"),
    ("{holds}", "(current_setting('soloist.holds') = '1')"),
    ("{fresh}", "(current_setting('soloist.fresh') = '1')"),
    ("{server}", POSTGRES_SERVER),
];

/// MySQL names each server by itself. MariaDB does not: a replica has another `server_id` than its primary, or there is no replication,
/// and two servers of one machine have two ports and two directories. The history of neither shows in any name.
/// `GLOBAL`: a session keeps the `server_id` that it began with.
const MYSQL_SERVER: &str = "(/*M!CONCAT_WS(':', @@GLOBAL.server_id, @@hostname, @@port, @@datadir)*//*!80000 @@server_uuid*/)";

/// MySQL has no indexes on some rows alone: one column has what the tasks of a state are in order by, so that two indexes are enough for all.
const MYSQL: [(&str, &str); 11] = [
    ("{clock}", "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', SYSDATE(6))"),
    ("{began}", "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', NOW(6))"),
    ("{at}", "@soloist_at"),
    ("{at_ms}", "(@soloist_at DIV 1000)"),
    ("{holds}", "(@soloist_holds = 1)"),
    ("{fresh}", "(@soloist_fresh = 1)"),
    ("{server}", MYSQL_SERVER),
    ("{place}", "in_order"),
    ("{due}", "in_order"),
    ("{until}", "in_order"),
    ("{changed}", "in_order"),
];

/// Where each order has a column of its own.
const OWN: [(&str, &str); 4] =
    [("{place}", "place"), ("{due}", "at"), ("{until}", "until"), ("{changed}", "changed")];

impl Dialect {
    /// `sql` as this server understands it; `?` stays.
    pub(crate) fn said(self, sql: &str) -> Cow<'_, str> {
        if !sql.contains('{') {
            return Cow::Borrowed(sql);
        }
        let (words, own): (&[_], &[_]) = match self {
            Self::Sqlite => (&[], &OWN),
            Self::Postgres => (&POSTGRES, &OWN),
            Self::Mysql => (&MYSQL, &[]),
        };
        let words = words.iter().chain(own);
        Cow::Owned(words.fold(sql.to_owned(), |sql, (word, means)| sql.replace(word, means)))
    }

    /// What keeps a number under `name` until the end of the transaction.
    pub(crate) fn remember(self, name: &str, number: &str) -> String {
        match self {
            Self::Mysql => format!("SET @soloist_{name} = {number}"),
            Self::Sqlite | Self::Postgres => {
                format!("SELECT set_config('soloist.{name}', ({number})::text, true)")
            }
        }
    }

    /// The same, which answers the number.
    pub(crate) fn remember_and_say(self, name: &str, number: &str) -> String {
        match self {
            Self::Mysql => format!("SELECT @soloist_{name} := {number}"),
            Self::Sqlite | Self::Postgres => {
                format!("SELECT set_config('soloist.{name}', ({number})::text, true)::bigint")
            }
        }
    }

    /// Whether the bell is a table, so that a transaction of records or of dispatch tells everybody by what it writes ([`Dialect::ring`]).
    /// Elsewhere, and of jobs, who committed rings after it.
    pub(crate) fn rings_in_commits(self) -> bool {
        self == Self::Mysql
    }

    /// What writes, `when`, that `hint` is told with the commit; nothing where it is told after it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt): never of a hint of ours.
    pub(crate) fn ring(self, hint: &Hint, when: &str) -> Result<Option<Statement>> {
        if !self.rings_in_commits() || *hint == Hint::default() {
            return Ok(None);
        }
        let sql = format!("INSERT INTO rings (hint) SELECT ? FROM DUAL WHERE {when}");
        Ok(Some(Statement::new(sql, vec![Value::Text(text(hint)?)])))
    }

    /// The end of an `INSERT`: a row with the same `key` gets the new values of `columns` instead.
    pub(crate) fn or_change(self, key: &str, columns: &[&str]) -> String {
        let (begin, new) = match self {
            Self::Mysql => (" ON DUPLICATE KEY UPDATE ".to_owned(), ("VALUES(", ")")),
            Self::Sqlite | Self::Postgres => {
                (format!(" ON CONFLICT ({key}) DO UPDATE SET "), ("excluded.", ""))
            }
        };
        let set = columns.iter().map(|column| format!("{column} = {}{column}{}", new.0, new.1));
        begin + &set.collect::<Vec<_>>().join(", ")
    }

    /// The end of an `INSERT`: a row with the same `key` stays.
    pub(crate) fn or_stay(self, key: &str) -> String {
        match self {
            Self::Mysql => format!(" ON DUPLICATE KEY UPDATE {key} = {key}"),
            Self::Sqlite | Self::Postgres => " ON CONFLICT DO NOTHING".to_owned(),
        }
    }

    /// The texts of the JSON array that is the next parameter, as a table with a column `one`.
    pub(crate) fn each_text(self) -> &'static str {
        match self {
            Self::Mysql => "JSON_TABLE(?, '$[*]' COLUMNS (one VARCHAR(512) PATH '$')) AS asked",
            Self::Sqlite | Self::Postgres => "json_array_elements_text((?)::json) AS asked (one)",
        }
    }

    /// The objects of the JSON array that is the next parameter, as a table `asked` of `job`, `begins` and `ttl`.
    pub(crate) fn each_lease(self) -> &'static str {
        match self {
            Self::Mysql => {
                "JSON_TABLE(?, '$[*]' COLUMNS (job VARCHAR(512) PATH '$.job', begins TEXT PATH '$.begins', ttl BIGINT PATH '$.ttl')) AS asked"
            }
            Self::Sqlite | Self::Postgres => {
                "json_to_recordset((?)::json) AS asked (job text, begins text, ttl bigint)"
            }
        }
    }
}
