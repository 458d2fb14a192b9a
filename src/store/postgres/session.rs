//! Statements on one connection: prepared once, sent in one go as a packet or one after the other in a transaction.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Statement as Prepared};

use super::fault::Fault;
use crate::store::sql::packet::{Answers, Packet};
use crate::store::sql::session::{Dialect, Row, Session, Statement, Value};
use crate::store::{Result, StoreError};

/// More than this is never prepared; the texts of our statements are fixed.
const MOST_STATEMENTS: usize = 1_000;

/// A connection, as its task owns it.
pub(super) struct Conn {
    pub(super) client: Client,
    statements: HashMap<(String, Vec<Type>), Prepared>,
    /// What the last statement of a transaction ended with, so that the task knows what became of it.
    fault: Option<Fault>,
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = std::result::Result<Vec<tokio_postgres::Row>, Fault>> + Send + 'a>>;

impl Conn {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: HashMap::new(), fault: None }
    }

    /// Carries a packet out, in one transaction that is sent as a whole: the server waits for nobody between its statements.
    pub(super) async fn carry_out(
        &mut self,
        packet: &Packet,
    ) -> std::result::Result<Answers, Fault> {
        let begin = if packet.looks {
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        } else {
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
        };
        self.in_one_go(Some(begin), &packet.statements, Some("COMMIT")).await
    }

    /// Sends all of it before the first answer is awaited.
    async fn in_one_go(
        &mut self,
        before: Option<&'static str>,
        statements: &[Statement],
        after: Option<&'static str>,
    ) -> std::result::Result<Answers, Fault> {
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
        let found = in_order(answers).await?;
        let found = found.into_iter().skip(usize::from(before.is_some())).take(statements.len());
        found.map(|rows| rows.iter().map(row).collect()).collect()
    }

    async fn prepared(
        &mut self,
        sql: &str,
        params: &[Value],
    ) -> std::result::Result<Prepared, Fault> {
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

    /// What the first fault in the present transaction was.
    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Notes a fault; what the caller hears of it.
    fn noted(&mut self, fault: Fault) -> StoreError {
        let told = fault.clone().told("PostgreSQL");
        self.fault.get_or_insert(fault);
        told
    }
}

impl Session for Conn {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let found = async {
            let sql = Dialect::Postgres.said(sql);
            let statement = self.prepared(&sql, params).await?;
            let rows = self.client.query(&statement, &refs(params)).await?;
            rows.iter().map(row).collect::<std::result::Result<Vec<_>, Fault>>()
        };
        let found = found.await;
        found.map_err(|fault| self.noted(fault))
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let done = async {
            let sql = Dialect::Postgres.said(sql);
            let statement = self.prepared(&sql, params).await?;
            Ok(self.client.execute(&statement, &refs(params)).await?)
        };
        let done: std::result::Result<u64, Fault> = done.await;
        done.map_err(|fault| self.noted(fault))
    }

    async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        let found = self.in_one_go(None, statements, None).await;
        found.map_err(|fault| self.noted(fault))
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.query_all(statements).await.map(drop)
    }
}

/// Sends all of it before the first answer is awaited, in this order; then awaits the answers.
async fn in_order(
    mut answers: Vec<Answer<'_>>,
) -> std::result::Result<Vec<Vec<tokio_postgres::Row>>, Fault> {
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
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
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
fn row(row: &tokio_postgres::Row) -> std::result::Result<Row, Fault> {
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
    each.collect::<std::result::Result<_, Fault>>().map(Row)
}
