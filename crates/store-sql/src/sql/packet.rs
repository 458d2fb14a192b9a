//! A packet: a transaction that is sent as a whole, so that no lock waits for the client.
//!
//! A packet that changes begins with its locks, then reads the clock ([`Packet::at_this_instant`]), then gives its condition
//! ([`Packet::only_if`]). Every statement after that has `{holds}` in its `WHERE`, so a packet whose condition fails commits and has changed
//! nothing. That needs no error: an error would be in the server's log for each lost race.
//!
//! What one statement can compare and write needs no transaction around it ([`Packet::at_once`]).

use std::borrow::Cow;

use super::follow::Hint;
use super::session::{Dialect, Row, Statement, Value};
use soloist_store::{Result, StoreError};

/// Statements of one transaction, with the words of [`Dialect::said`].
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) dialect: Dialect,
    /// What is around its statements.
    pub(crate) around: Around,
    pub(crate) statements: Vec<Statement>,
}

/// What is around the statements of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    /// A transaction that only looks: at one instant, and locks nothing.
    Look,
    /// A transaction that changes.
    Change,
    /// Nothing: one of them changes, and is a transaction by itself.
    Nothing,
}

/// What each statement of a packet answered.
pub(crate) type Answers = Vec<Vec<Row>>;

/// What must be so, and what stands for its `?`.
pub(crate) type Condition = (String, Vec<Value>);

/// How often a packet may be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Twice does what once does: sent again when the connection broke.
    Harmless,
    /// Twice would be wrong: the caller learns that the outcome is unknown.
    Never,
}

impl Packet {
    /// One that reads everything at one instant.
    pub(crate) fn look(dialect: Dialect) -> Self {
        Self { dialect, around: Around::Look, statements: Vec::new() }
    }

    /// One that changes.
    pub(crate) fn change(dialect: Dialect) -> Self {
        Self { dialect, around: Around::Change, statements: Vec::new() }
    }

    /// One statement that changes a row of `table` as `set` says, if `holds`. `values` stand for the `?` of both, in this order. `{at}` is
    /// the server's clock, which the server reads once, before it locks the row. When a row was changed, the answer has a row: a
    /// number above 0, and that instant. MySQL changes no row and returns it as well: it tells beside its "OK" how many rows it changed, and
    /// what it gave to `LAST_INSERT_ID`.
    pub(crate) fn at_once(
        dialect: Dialect,
        table: &str,
        set: &str,
        holds: &str,
        values: Vec<Value>,
    ) -> Self {
        let mut packet = Self { dialect, around: Around::Nothing, statements: Vec::new() };
        let (at, at_ms) = match dialect {
            Dialect::Mysql => ("{began}", "({began} DIV 1000)"),
            Dialect::Sqlite | Dialect::Postgres => ("now.at", "(now.at / 1000)"),
        };
        let here = |sql: &str| sql.replace("{at}", at).replace("{at_ms}", at_ms);
        let (set, holds) = (here(set), here(holds));
        let sql = match dialect {
            Dialect::Mysql => {
                format!("UPDATE {table} SET {set} WHERE {holds} AND LAST_INSERT_ID({at}) > 0")
            }
            Dialect::Sqlite | Dialect::Postgres => format!(
                "WITH now AS MATERIALIZED (SELECT {{clock}} AS at) UPDATE {table} SET {set} FROM now WHERE {holds} RETURNING 1, {at}"
            ),
        };
        packet.add(sql, values);
        packet
    }

    /// Adds a statement; returns which it is.
    pub(crate) fn add(&mut self, sql: impl Into<Cow<'static, str>>, params: Vec<Value>) -> usize {
        self.statements.push(Statement { sql: sql.into(), params });
        self.statements.len() - 1
    }

    /// After the locks: the clock is read, once for all of it; `{at}` from then on, in microseconds.
    pub(crate) fn at_this_instant(&mut self) {
        self.at_this_instant_if(Vec::new());
    }

    /// The same, with the first conditions, as [`Packet::only_if`] takes them, in one statement: each costs the server as much as they do together.
    pub(crate) fn at_this_instant_if(&mut self, conditions: Vec<Condition>) {
        let sql = self.dialect.remember("at", "{clock}");
        self.add(sql, Vec::new());
        let (terms, params): (Vec<_>, Vec<_>) = conditions.into_iter().unzip();
        let all: Vec<String> = terms.iter().map(|term| format!("({term})")).collect();
        let holds = match all.as_slice() {
            [] => "1".to_owned(),
            all => format!("CASE WHEN {} THEN 1 ELSE 0 END", all.join(" AND ")),
        };
        let sql = self.dialect.remember("holds", &holds);
        self.add(sql, params.concat());
    }

    /// One condition more: what comes after is written only if `condition` holds as well.
    pub(crate) fn only_if(&mut self, condition: &str, params: Vec<Value>) {
        let and = format!("CASE WHEN {{holds}} AND ({condition}) THEN 1 ELSE 0 END");
        let sql = self.dialect.remember("holds", &and);
        self.add(sql, params);
    }

    /// Where transactions do that: everybody is told `hint` if everything held. See [`Dialect::ring`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn ring(&mut self, hint: &Hint) -> Result<()> {
        self.statements.extend(self.dialect.ring(hint, "{holds}")?);
        Ok(())
    }

    /// The same of a hint that has one number under `key`: what `counter` says when it is told.
    pub(crate) fn ring_how_manieth(&mut self, key: &str, counter: &'static str) {
        if self.dialect.rings_in_commits() {
            let hint = format!("concat('{{\"{key}\":', newest, '}}')");
            let sql = format!(
                "INSERT INTO rings (hint) SELECT {hint} FROM numbers WHERE name = ? AND {{holds}}"
            );
            self.add(sql, vec![counter.into()]);
        }
    }

    /// Whether everything held, and the instant; returns which statement says so. See [`outcome`].
    pub(crate) fn ask_outcome(&mut self) -> usize {
        self.add("SELECT CASE WHEN {holds} THEN 1 ELSE 0 END, {at}", Vec::new())
    }

    /// Holds until the end the lock of everything that belongs to no job (`turns`: of rotations).
    pub(crate) fn through_the_gate(&mut self, gate: &'static str) {
        self.add("SELECT newest FROM numbers WHERE name = ? FOR UPDATE", vec![gate.into()]);
    }
}

/// The first row of a statement that has one always.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(crate) fn only(answers: &Answers, nth: usize) -> Result<&Row> {
    let row = answers.get(nth).and_then(|rows| rows.first());
    row.ok_or_else(|| StoreError::Corrupt(format!("statement {nth}: an answer is missing")))
}

/// What [`Packet::ask_outcome`] asked: whether it was done, and the instant in microseconds.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(crate) fn outcome(answers: &Answers, nth: usize) -> Result<(bool, i64)> {
    let row = only(answers, nth)?;
    Ok((row.int(0)? == 1, row.int(1)?))
}
