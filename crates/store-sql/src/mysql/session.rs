//! Statements on one connection: a transaction is one text, sent and carried out as a whole.
//!
//! Values are part of the text: only this way several statements go in one COM_QUERY. The server's rules for strings are set when a connection
//! begins (`link.rs`). A statement that needs no transaction (a change of a job, a ring) is prepared at its first use on a connection: the
//! server then reads its text only once.

use std::time::Duration;

use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable as _;

use super::link;
use super::place::Place;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::follow::Hint;
use crate::sql::link::Wire;
use crate::sql::packet::{Answers, Around, Packet};
use crate::sql::row::corrupt;
use crate::sql::session::{Dialect, Row, Statement, Value};
use soloist_domain::time::Boot;
use soloist_process::clock;

/// Stands before a transaction that is a conversation. A process may be stopped in the middle of it: then the server ends the connection
/// after a second, and rolls back. MariaDB has `idle_transaction_timeout` for that, MySQL has this. A transaction that is sent as a
/// whole does not need it: the server has all of it, and waits for nothing.
const HURRY: &str = "SET wait_timeout = 1; ";
/// Stands behind the end of a conversation.
const AT_EASE: &str = "; SET wait_timeout = 31536000";
const CHANGE: &str = "START TRANSACTION READ WRITE; ";
/// The text, and how many statements it has.
const LOOK: (&str, usize) = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY; ",
    2,
);
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// Of what a server takes in one packet, at least 16 MiB.
const ONE_TEXT: usize = 8 << 20;
/// `ER_MAX_PREPARED_STMT_COUNT_REACHED`.
const TOO_MANY_PREPARED: u16 = 1461;
/// After this long in silence it checks that the server is still there.
const SILENT: Duration = Duration::from_millis(100);
const PING: Duration = Duration::from_secs(1);

/// How a conversation begins.
#[derive(Clone, Copy)]
enum Begin {
    Look,
    Change,
}

/// A connection, as its task owns it.
pub(crate) struct Conn {
    client: Option<mysql_async::Conn>,
    /// In the middle of something.
    busy: bool,
    /// What goes before the next statement: a transaction that begins needs no round trip of its own.
    first: Option<Begin>,
    used: Boot,
}

impl Conn {
    pub(super) fn new(client: mysql_async::Conn) -> Self {
        Self { client: Some(client), busy: false, first: None, used: clock::boot() }
    }

    /// Takes what goes before the next statement: the text, and how many statements it has.
    fn take_first(&mut self) -> (String, usize) {
        match self.first.take() {
            None => (String::new(), 0),
            Some(Begin::Look) => (LOOK.0.to_owned(), LOOK.1),
            Some(Begin::Change) => (format!("{HURRY}{CHANGE}"), 2),
        }
    }

    /// Sends `sql` as one text, and returns what each of its `count` statements found. A transaction in which one of them fails
    /// is rolled back.
    pub(super) async fn run(&mut self, sql: &str, count: usize) -> Outcome<Vec<Vec<Row>>> {
        let Some(client) = self.client.as_mut() else { return Err(closed()) };
        self.busy = true;
        let found = sets(client, sql, count).await;
        self.settle(found).await
    }

    /// One statement that finds no rows and needs no transaction; answers as [`Conn::run`] does.
    async fn run_prepared(&mut self, statement: &Statement) -> Outcome<Vec<Row>> {
        let Some(client) = self.client.as_mut() else { return Err(closed()) };
        self.busy = true;
        let found = prepared(client, statement).await;
        match self.settle(found).await? {
            Some(row) => Ok(vec![row]),
            None => self.query(&statement.sql, &statement.params).await,
        }
    }

    /// After a statement or several: nothing is left of what failed, or the connection is not used again.
    async fn settle<T>(&mut self, found: Outcome<T>) -> Outcome<T> {
        let rollback = format!("{ROLLBACK}{AT_EASE}");
        let Some(client) = self.client.as_mut() else { return Err(closed()) };
        let outcome = match found {
            // What failed may come up once more in front of the next statement.
            Err(fault) if !matches!(fault, Fault::Broken(_)) => {
                let mut back = client.query_drop(&rollback).await;
                if matches!(back, Err(mysql_async::Error::Server(_))) {
                    back = client.query_drop(&rollback).await;
                }
                match back {
                    Ok(()) => Err(fault),
                    Err(error) => Err(Fault::Broken(error.to_string())),
                }
            }
            other => other,
        };
        // Else it is dropped as what it is: in the middle of something.
        self.busy = matches!(outcome, Err(Fault::Broken(_)));
        self.used = clock::boot();
        outcome
    }

    /// What a statement of its own finds.
    pub(super) async fn query(&mut self, sql: &str, params: &[Value]) -> Outcome<Vec<Row>> {
        let mut whole = String::new();
        write(&mut whole, sql, params)?;
        Ok(self.run(&whole, 1).await?.pop().unwrap_or_default())
    }
}

/// The driver says farewell to the server, and waits until it hears the end of what it asked: a connection that was given up is closed
/// at once. The driver does that where no task can be started.
impl Drop for Conn {
    fn drop(&mut self) {
        if let (true, Some(client)) = (self.busy, self.client.take()) {
            let closer = std::thread::Builder::new().name("mysql-closes".to_owned());
            if let Err(error) = closer.spawn(move || drop(client)) {
                tracing::debug!(%error, "a connection ends as the driver likes it");
            }
        }
    }
}

fn closed() -> Fault {
    Fault::Broken("the connection was closed".to_owned())
}

/// The rows of each statement. One that has none answers one: how many it changed, and what it gave to `LAST_INSERT_ID`.
async fn sets(client: &mut mysql_async::Conn, sql: &str, count: usize) -> Outcome<Vec<Vec<Row>>> {
    let mut answer = client.query_iter(sql).await?;
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let changed = answer
            .columns_ref()
            .is_empty()
            .then(|| changed(answer.affected_rows(), answer.last_insert_id()));
        let rows: Vec<mysql_async::Row> = answer.collect().await?;
        let rows = rows.into_iter().map(row).chain(changed.map(Ok));
        found.push(rows.collect::<Outcome<_>>()?);
    }
    answer.drop_result().await?;
    Ok(found)
}

/// What a statement without rows answers.
fn changed(rows: u64, last_insert_id: Option<u64>) -> Row {
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    Row(vec![number(rows), number(last_insert_id.unwrap_or_default())])
}

/// Carries out a statement that the server reads once a connection; `None`, and nothing done, where it keeps no more of them
/// (`max_prepared_stmt_count`).
async fn prepared(client: &mut mysql_async::Conn, statement: &Statement) -> Outcome<Option<Row>> {
    let known = match client.prep(&*Dialect::Mysql.said(&statement.sql)).await {
        Err(mysql_async::Error::Server(said)) if said.code == TOO_MANY_PREPARED => return Ok(None),
        known => known?,
    };
    let values = statement.params.iter().map(|value| match value {
        Value::Null => mysql_async::Value::NULL,
        Value::Int(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    });
    client.exec_drop(&known, values.collect::<Vec<_>>()).await?;
    Ok(Some(changed(client.affected_rows(), client.last_insert_id())))
}

impl Wire for Conn {
    type Place = Place;

    const DIALECT: Dialect = Dialect::Mysql;
    const KIND: &'static str = "MySQL";

    fn name(place: &Place) -> &str {
        &place.name
    }

    async fn connect(place: &Place, timeout: Duration, called: &str) -> Outcome<Self> {
        link::connect(place, timeout, called).await
    }

    async fn is_alive(&mut self) -> bool {
        let Some(client) = self.client.as_mut() else { return false };
        if self.busy || clock::boot().since(self.used) < SILENT {
            return !self.busy;
        }
        self.busy = true;
        self.busy = !matches!(tokio::time::timeout(PING, client.ping()).await, Ok(Ok(())));
        !self.busy
    }

    async fn carry_out(&mut self, packet: &Packet) -> Outcome<Answers> {
        if let (Around::Nothing, [only]) = (packet.around, packet.statements.as_slice()) {
            return Ok(vec![self.run_prepared(only).await?]);
        }
        let (begin, before, end) = match packet.around {
            Around::Look => (LOOK.0, LOOK.1, COMMIT),
            Around::Change => (CHANGE, 1, COMMIT),
            Around::Nothing => ("", 0, ""),
        };
        let mut whole = begin.to_owned();
        join(&mut whole, &packet.statements)?;
        if !end.is_empty() {
            whole += "; ";
            whole += end;
        }
        let count = packet.statements.len();
        let found = self.run(&whole, before + count + usize::from(!end.is_empty())).await?;
        Ok(found.into_iter().skip(before).take(count).collect())
    }

    async fn begin(&mut self, looks: bool) -> Outcome<()> {
        self.first = Some(if looks { Begin::Look } else { Begin::Change });
        Ok(())
    }

    async fn end(&mut self, last: &[Statement], commit: bool) -> Outcome<()> {
        if self.first.is_some() && last.is_empty() {
            self.first = None;
            return Ok(());
        }
        let first = self.first;
        let (mut whole, mut count) = self.take_first();
        join(&mut whole, last)?;
        count += last.len();
        if whole.len() > ONE_TEXT {
            self.first = first;
            self.ask_all(last).await?;
            (whole, count) = (String::new(), 0);
        } else if !last.is_empty() {
            whole += "; ";
        }
        whole += if commit { COMMIT } else { ROLLBACK };
        whole += AT_EASE;
        self.run(&whole, count + 2).await.map(drop)
    }

    async fn ask_all(&mut self, statements: &[Statement]) -> Outcome<Vec<Vec<Row>>> {
        let mut found = Vec::with_capacity(statements.len());
        let mut rest = statements.iter().peekable();
        while rest.peek().is_some() {
            let (mut whole, before) = self.take_first();
            let mut count = before;
            while whole.len() < ONE_TEXT {
                let Some(one) = rest.next() else { break };
                if count > before {
                    whole += "; ";
                }
                write(&mut whole, &one.sql, &one.params)?;
                count += 1;
            }
            found.extend(self.run(&whole, count).await?.into_iter().skip(before));
        }
        Ok(found)
    }

    async fn tell(&mut self, _: &Place, hint: Hint) -> Outcome<()> {
        match Dialect::Mysql.ring(&hint, "1 = 1")? {
            Some(ring) => self.run_prepared(&ring).await.map(drop),
            None => Ok(()),
        }
    }
}

/// Adds statements, with a semicolon between them.
fn join(whole: &mut String, statements: &[Statement]) -> Outcome<()> {
    for (nth, one) in statements.iter().enumerate() {
        if nth > 0 {
            whole.push_str("; ");
        }
        write(whole, &one.sql, &one.params)?;
    }
    Ok(())
}

/// Adds a statement with its values. None of our statements has a question mark otherwise.
fn write(whole: &mut String, sql: &str, params: &[Value]) -> Outcome<()> {
    let said = Dialect::Mysql.said(sql);
    let mut parts = said.split('?');
    whole.push_str(parts.next().unwrap_or_default());
    let mut params = params.iter();
    for part in parts {
        match params.next() {
            Some(Value::Null) => whole.push_str("NULL"),
            Some(Value::Int(number)) => whole.push_str(&number.to_string()),
            Some(Value::Text(text)) => quote(whole, text),
            None => return Err(corrupt(sql, "a value is missing").into()),
        }
        whole.push_str(part);
    }
    if params.next().is_some() {
        return Err(corrupt(sql, "there is a value too many").into());
    }
    Ok(())
}

/// As utf8mb4 without NO_BACKSLASH_ESCAPES reads it.
fn quote(whole: &mut String, text: &str) {
    whole.reserve(text.len() + 2);
    whole.push('\'');
    for letter in text.chars() {
        match letter {
            '\0' => whole.push_str("\\0"),
            '\'' | '\\' => {
                whole.push('\\');
                whole.push(letter);
            }
            _ => whole.push(letter),
        }
    }
    whole.push('\'');
}

/// A row in our three kinds of values.
fn row(row: mysql_async::Row) -> Outcome<Row> {
    let columns = row.columns();
    let values = columns.iter().zip(row.unwrap()).map(|(column, value)| match value {
        mysql_async::Value::NULL => Ok(Value::Null),
        mysql_async::Value::Bytes(bytes) => {
            let unreadable = |why: &str| Fault::from(corrupt(&column.name_str(), why));
            let text = String::from_utf8(bytes).map_err(|why| unreadable(&why.to_string()))?;
            if is_number(column.column_type()) {
                // A decimal may say `.0000`.
                let whole = text.split('.').next().unwrap_or_default();
                whole.parse().map(Value::Int).map_err(|_| unreadable(&text))
            } else {
                Ok(Value::Text(text))
            }
        }
        other => Err(corrupt(&column.name_str(), &format!("{other:?}")).into()),
    });
    values.collect::<Outcome<_>>().map(Row)
}

fn is_number(kind: ColumnType) -> bool {
    use ColumnType as T;
    matches!(
        kind,
        T::MYSQL_TYPE_TINY
            | T::MYSQL_TYPE_SHORT
            | T::MYSQL_TYPE_INT24
            | T::MYSQL_TYPE_LONG
            | T::MYSQL_TYPE_LONGLONG
            | T::MYSQL_TYPE_DECIMAL
            | T::MYSQL_TYPE_NEWDECIMAL
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_a_value_whatever_is_in_it() {
        let mut whole = String::new();
        let params = ["' OR 1=1; --", "\\", "a\\'?", "\0", "?"].map(Value::from);
        write(&mut whole, "SELECT ?, ?, ?, ?, ?", &params).unwrap();
        assert_eq!(whole, r"SELECT '\' OR 1=1; --', '\\', 'a\\\'?', '\0', '?'");
        let mut whole = String::new();
        write(&mut whole, "SELECT ?, ?", &[Value::Null, Value::Int(-7)]).unwrap();
        assert_eq!(whole, "SELECT NULL, -7");
        assert!(write(&mut String::new(), "SELECT ?", &[]).is_err());
        assert!(write(&mut String::new(), "SELECT 1", &[Value::Null]).is_err());
    }
}
