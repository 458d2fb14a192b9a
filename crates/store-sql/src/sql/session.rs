//! A transaction on an SQL store: statements with `?` for parameters, and rows of three kinds of values.
//!
//! All of it sees and makes one state, or nothing; the driver begins and ends it. Its user never waits for anything but its statements.

use std::borrow::Cow;

use soloist_store::{Result, StoreError};

/// A parameter, or a value of a row. Instants are integers, and so are truth values (0, 1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// A signed integer of 64 bits.
    Int(i64),
    /// A text without NUL.
    Text(String),
}

/// A row, in the order of the columns that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

/// Which server it is, where the statements differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite 3.
    Sqlite,
    /// PostgreSQL 13 and later.
    Postgres,
    /// MySQL 8, MariaDB 10.6 and later.
    Mysql,
}

/// A statement, and what stands for its `?`, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// One statement; drivers may keep it prepared, so there are few different ones.
    pub sql: Cow<'static, str>,
    /// As many as it has `?`.
    pub params: Vec<Value>,
}

/// A transaction under way.
#[expect(
    async_fn_in_trait,
    reason = "one thread or task runs each session; the acts reach it by a relay"
)]
pub trait Session {
    /// Which server it is.
    fn dialect(&self) -> Dialect;

    /// The rows that a statement finds.
    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>>;

    /// What several statements find, none of which needs the answer of another: a driver may send them together.
    async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        let mut found = Vec::with_capacity(statements.len());
        for one in statements {
            found.push(self.query(&one.sql, &one.params).await?);
        }
        Ok(found)
    }

    /// Executes several statements in this order, whose answers are not needed: a driver may send them together.
    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()>;
}

impl Dialect {
    /// What ends a query of rows that no other transaction may change before this one ends. SQLite has one writer anyhow.
    pub fn lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres | Self::Mysql => " FOR UPDATE",
        }
    }

    /// The same for a query of several tables, of one alone where a server can do that. MySQL locks no table that is made of JSON, and refuses
    /// a statement that does not name the table to lock. MariaDB has no word for that.
    pub fn lock_of(self, table: &str) -> String {
        match self {
            Self::Postgres => format!(" FOR UPDATE OF {table}"),
            Self::Mysql => format!(" FOR UPDATE/*!80000 OF {table}*/"),
            Self::Sqlite => String::new(),
        }
    }
}

impl Statement {
    /// Of these words and values.
    pub fn new(sql: impl Into<Cow<'static, str>>, params: Vec<Value>) -> Self {
        Self { sql: sql.into(), params }
    }

    /// `head` ends with a column; it must be one of `values`. There are few such statements, whatever the number of values:
    /// the list is filled up to a power of two with NULL, which no column equals.
    pub fn within(head: &str, values: Vec<Value>, tail: &str) -> Self {
        let mut params = values;
        let places = params.len().next_power_of_two();
        params.resize(places, Value::Null);
        let sql = format!("{head} IN ({}){tail}", vec!["?"; places].join(", "));
        Self::new(sql, params)
    }

    /// `head` ends with a column that has numbers of rows; it must be one of these.
    pub fn of_rows(head: &str, rows: &[i64]) -> Self {
        Self::within(head, rows.iter().copied().map(Value::Int).collect(), "")
    }

    /// Inserts rows, each of `width` values, in few statements of few different kinds; `head` ends with the columns.
    pub fn insert(head: &str, width: usize, rows: Vec<Vec<Value>>) -> Vec<Self> {
        Self::insert_on(Dialect::Sqlite, head, width, rows)
    }

    /// The same, in the fewest statements where they are prepared each time anyhow.
    pub fn insert_on(
        dialect: Dialect,
        head: &str,
        width: usize,
        rows: Vec<Vec<Value>>,
    ) -> Vec<Self> {
        let row = format!("({})", vec!["?"; width].join(", "));
        let mut statements = Vec::new();
        let whole = if dialect == Dialect::Mysql { rows.len().min(64) } else { 64 };
        let mut rows = rows.into_iter();
        // Ten is what collectors ask for.
        for at_once in [whole, 32, 16, 10, 8, 4, 2, 1] {
            while rows.len() >= at_once && at_once > 0 {
                let all = vec![row.as_str(); at_once].join(", ");
                let sql = format!("{head} VALUES {all}");
                let params = rows.by_ref().take(at_once).flatten().collect();
                statements.push(Self::new(sql, params));
            }
        }
        statements
    }
}

impl Row {
    /// An integer. Errors: [`StoreError::Corrupt`] when it is none.
    pub fn int(&self, column: usize) -> Result<i64> {
        self.opt_int(column)?.ok_or_else(|| unexpected(column, "no number"))
    }

    /// An integer or nothing. Errors: as [`Row::int`].
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            Some(Value::Text(_)) | None => Err(unexpected(column, "no number")),
        }
    }

    /// A text, taken out of the row. Errors: as [`Row::text`].
    pub fn take(&mut self, column: usize) -> Result<String> {
        self.opt_take(column)?.ok_or_else(|| unexpected(column, "no text"))
    }

    /// A text or nothing, taken out of the row. Errors: as [`Row::text`].
    pub fn opt_take(&mut self, column: usize) -> Result<Option<String>> {
        match self.0.get_mut(column).map(std::mem::take) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            Some(Value::Int(_)) | None => Err(unexpected(column, "no text")),
        }
    }

    /// A text. Errors: [`StoreError::Corrupt`] when it is none.
    pub fn text(&self, column: usize) -> Result<&str> {
        self.opt_text(column)?.ok_or_else(|| unexpected(column, "no text"))
    }

    /// A text or nothing. Errors: as [`Row::text`].
    pub fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            Some(Value::Int(_)) | None => Err(unexpected(column, "no text")),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

fn unexpected(column: usize, what: &str) -> StoreError {
    StoreError::Corrupt(format!("column {column}: {what}"))
}
