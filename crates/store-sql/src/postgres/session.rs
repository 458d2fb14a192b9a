//! Statements on one connection: prepared once, sent in one go as a packet or one after the other in a transaction.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Statement as Prepared};

use super::events;
use super::link;
use super::place::Place;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::follow::Hint;
use crate::sql::link::Wire;
use crate::sql::packet::{Answers, Around, Packet};
use crate::sql::session::{Dialect, Row, Statement, Value};
use soloist_store::StoreError;

/// More than this is never prepared; the texts of our statements are fixed.
const MOST_STATEMENTS: usize = 1_000;
const CHANGE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Ends our own transactions whose process says nothing. The server does that by itself between two statements; in the middle of one, whose
/// rest does not come because a process was stopped or a network was cut there, no time-out of the server counts.
const CLEAR: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid() AND wait_event = 'ClientRead' \
     AND state <> 'idle' AND xact_start < clock_timestamp() - interval '900 milliseconds'";

/// A connection, as its task owns it.
pub(crate) struct Conn {
    pub(super) client: Client,
    statements: HashMap<(String, Vec<Type>), Prepared>,
    /// What goes before the next statement: a transaction that begins needs no round trip of its own.
    first: Option<&'static str>,
    /// A lock was not released in time.
    held_up: bool,
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<tokio_postgres::Row>, Fault>> + Send + 'a>>;

impl Conn {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: HashMap::new(), first: None, held_up: false }
    }

    /// Sends all of it before the first answer is awaited.
    async fn in_one_go(
        &mut self,
        before: Option<&'static str>,
        statements: &[Statement],
        after: Option<&'static str>,
    ) -> Result<Answers, Fault> {
        let mut prepared = Vec::with_capacity(statements.len());
        for one in statements {
            let sql = Dialect::Postgres.said(&one.sql);
            prepared.push((self.prepared(&sql, &one.params).await?, &one.params));
        }
        let client = &self.client;
        let plain = |sql: &'static str| -> Answer<'_> {
            Box::pin(async move {
                client.batch_execute(sql).await?;
                Ok(Vec::new())
            })
        };
        let mut answers: Vec<Answer<'_>> = before.map(plain).into_iter().collect();
        for (statement, params) in &prepared {
            answers
                .push(Box::pin(async move { Ok(client.query(statement, &refs(params)).await?) }));
        }
        answers.extend(after.map(plain));
        let found = in_order(answers).await;
        self.held_up |= matches!(found, Err(Fault::Again(_)));
        let found = found?.into_iter().skip(usize::from(before.is_some())).take(statements.len());
        found.map(|rows| rows.iter().map(row).collect()).collect()
    }

    /// After a lock was not released in time, before the next attempt.
    async fn clear(&mut self) -> Result<(), Fault> {
        if std::mem::take(&mut self.held_up) {
            self.client.batch_execute(CLEAR).await?;
        }
        Ok(())
    }

    async fn prepared(&mut self, sql: &str, params: &[Value]) -> Result<Prepared, Fault> {
        if let Some(Value::Text(bad)) =
            params.iter().find(|value| matches!(value, Value::Text(text) if text.contains('\0')))
        {
            return Err(Fault::Ours(StoreError::Corrupt(format!(
                "{bad:?} has a NUL, which PostgreSQL cannot keep"
            ))));
        }
        let types: Vec<Type> = params.iter().map(kind).collect();
        let key = (sql.to_owned(), types);
        if let Some(statement) = self.statements.get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare_typed(&numbered(sql), &key.1).await?;
        if self.statements.len() >= MOST_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(key, statement.clone());
        Ok(statement)
    }

    /// What a statement of its own finds.
    pub(super) async fn query(&mut self, sql: &str, params: &[Value]) -> Outcome<Vec<Row>> {
        let sql = Dialect::Postgres.said(sql);
        let statement = self.prepared(&sql, params).await?;
        let rows = self.client.query(&statement, &refs(params)).await?;
        rows.iter().map(row).collect()
    }
}

impl Wire for Conn {
    type Place = Place;

    const DIALECT: Dialect = Dialect::Postgres;
    const KIND: &'static str = "PostgreSQL";

    fn name(place: &Place) -> &str {
        &place.name
    }

    async fn connect(place: &Place, timeout: Duration, called: &str) -> Outcome<Self> {
        Ok(link::connect(place, timeout, called).await?.0)
    }

    async fn is_alive(&mut self) -> bool {
        !self.client.is_closed()
    }

    async fn carry_out(&mut self, packet: &Packet) -> Outcome<Answers> {
        self.clear().await?;
        let (begin, end) = match packet.around {
            Around::Look => (Some(LOOK), Some("COMMIT")),
            Around::Change => (Some(CHANGE), Some("COMMIT")),
            Around::Nothing => (None, None),
        };
        self.in_one_go(begin, &packet.statements, end).await
    }

    async fn begin(&mut self, looks: bool) -> Outcome<()> {
        self.clear().await?;
        self.first = Some(if looks { LOOK } else { CHANGE });
        Ok(())
    }

    async fn end(&mut self, last: &[Statement], commit: bool) -> Outcome<()> {
        let first = self.first.take();
        if first.is_some() && last.is_empty() {
            return Ok(());
        }
        let end = if commit { "COMMIT" } else { "ROLLBACK" };
        self.in_one_go(first, last, Some(end)).await.map(drop)
    }

    async fn ask_all(&mut self, statements: &[Statement]) -> Outcome<Vec<Vec<Row>>> {
        let first = self.first.take();
        self.in_one_go(first, statements, None).await
    }

    async fn tell(&mut self, place: &Place, hint: Hint) -> Outcome<()> {
        for payload in events::payloads(hint) {
            self.client.query("SELECT pg_notify($1, $2)", &[&place.schema, &payload]).await?;
        }
        Ok(())
    }
}

/// Sends all of it before the first answer is awaited, in this order; then awaits the answers.
async fn in_order(mut answers: Vec<Answer<'_>>) -> Result<Vec<Vec<tokio_postgres::Row>>, Fault> {
    let mut done: Vec<Option<_>> = Vec::new();
    poll_fn(|context| {
        done = answers
            .iter_mut()
            .map(|answer| match answer.as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            })
            .collect();
        Poll::Ready(())
    })
    .await;
    let (mut found, mut first) = (Vec::with_capacity(answers.len()), None);
    for (answer, done) in answers.iter_mut().zip(done) {
        let answered = match done {
            Some(answered) => answered,
            None => answer.as_mut().await,
        };
        match answered {
            Ok(rows) => found.push(rows),
            // Everything after it fails because of it.
            Err(fault) => {
                first.get_or_insert(fault);
            }
        }
    }
    first.map_or(Ok(found), Err)
}

/// `?` as `$1`, `$2` and so on. None of our statements has a question mark otherwise.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for (nth, part) in (1..).zip(parts) {
        whole += &format!("${nth}{part}");
    }
    whole
}

fn kind(value: &Value) -> Type {
    match value {
        // The server finds out by itself.
        Value::Null => Type::UNKNOWN,
        Value::Int(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
    }
}

fn refs(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row in our three kinds of values.
fn row(row: &tokio_postgres::Row) -> Result<Row, Fault> {
    let each = row.columns().iter().enumerate().map(|(nth, column)| {
        let int = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
        Ok(match *column.type_() {
            Type::INT8 => int(row.try_get(nth)?),
            Type::INT4 => int(row.try_get::<_, Option<i32>>(nth)?.map(i64::from)),
            Type::BOOL => int(row.try_get::<_, Option<bool>>(nth)?.map(i64::from)),
            Type::VOID => Value::Null,
            _ => row.try_get::<_, Option<String>>(nth)?.map_or(Value::Null, Value::Text),
        })
    });
    each.collect::<Result<_, Fault>>().map(Row)
}
