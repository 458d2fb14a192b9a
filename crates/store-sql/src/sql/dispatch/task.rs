//! A task's rows: read, put, written back, shown.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::relay::Relay;
use super::super::row::{corrupt, count, int, uint, word as read_word};
use super::super::session::{Dialect, Row, Statement, Value};
use super::source;
use soloist_domain::dispatch::{Place, Task, TaskState};
use soloist_domain::lease::Token;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::{ClaimId, NewTask, Past, PastEvent, TaskId, TaskView};

macro_rules! columns {
    () => {
        "SELECT t.n, t.id, t.source, t.state, t.priority, t.place, t.at, t.until, t.attempt, t.token, t.accepted, t.collector, \
         t.every_us, t.created, t.changed, t.error, t.lease_us"
    };
}
/// What [`read`] reads; the claim is named while it lasts.
pub(super) const TASKS: &str = concat!(
    columns!(),
    ", c.claim FROM tasks t LEFT JOIN claims c ON c.n = t.claim AND t.state = 'leased' WHERE "
);
/// The same of tasks that are in no claim, and for [`text`] their keys and payloads.
pub(super) const FREE: &str = concat!(
    columns!(),
    ", NULL, p.key, p.payload FROM tasks t JOIN payloads p ON p.task = t.n WHERE "
);
/// What [`views`] reads.
const VIEWS: &str = "SELECT t.n, t.id, p.key, t.source, p.payload, t.priority, t.state, t.attempt, t.token, t.every_us, t.created, \
     t.changed, t.at, t.collector, c.claim, t.until, t.error FROM tasks t JOIN payloads p ON p.task = t.n \
     LEFT JOIN claims c ON c.n = t.claim AND t.state = 'leased' WHERE ";
const NEW: &str = "INSERT INTO tasks (n, id, source, state, priority, place, at, attempt, token, accepted, \
     every_us, created, changed)";
/// Tasks that one statement forgets.
const FORGOTTEN_AT_ONCE: usize = 256;
/// Histories that one statement reads.
const HISTORIES: usize = 256;

/// A task, and the number of its row.
pub(super) fn read(mut row: Row) -> Result<(i64, Task)> {
    let stamp =
        |row: &Row, column| Ok::<_, soloist_store::StoreError>(row.opt_int(column)?.map(Stamp));
    let task = Task {
        id: TaskId(row.take(1)?),
        source: source::name(row.text(2)?)?,
        state: state(row.text(3)?)?,
        priority: small(row.int(4)?),
        place: row.opt_int(5)?.map(|place| Place(uint(place))),
        at: stamp(&row, 6)?,
        until: stamp(&row, 7)?,
        attempt: small(row.int(8)?),
        token: Token(uint(row.int(9)?)),
        accepted: Token(uint(row.int(10)?)),
        collector: row.opt_text(11)?.map(collector).transpose()?,
        every: row.opt_int(12)?.map(every),
        created: Stamp(row.int(13)?),
        changed: Stamp(row.int(14)?),
        error: row.opt_take(15)?,
        lease: row.opt_int(16)?.map(every),
        claim: row.opt_take(17)?.map(ClaimId),
    };
    Ok((row.int(0)?, task))
}

/// Key and payload of a row of [`FREE`].
pub(super) fn text(row: &mut Row) -> Result<(String, String)> {
    Ok((row.take(18)?, row.take(19)?))
}

/// What may change of a task.
const CHANGING: [&str; 12] = [
    "state",
    "place",
    "at",
    "until",
    "lease_us",
    "attempt",
    "token",
    "accepted",
    "collector",
    "claim",
    "changed",
    "error",
];
/// Those that are alike where tasks share a statement: not the place, the token and the one that was accepted.
const COMMON: [usize; 9] = [0, 2, 3, 4, 5, 8, 9, 10, 11];
/// Where a statement stays prepared there are few different ones; ten is what collectors ask for.
const PREPARED: [usize; 7] = [64, 32, 16, 10, 4, 2, 1];

/// A task that changed.
pub(super) struct Changed<'t> {
    /// Its row.
    pub(super) n: i64,
    pub(super) task: &'t Task,
    /// The row of its claim.
    pub(super) claim: Option<i64>,
    /// The token that is in the row.
    pub(super) token: Option<Token>,
}

/// Writes what may change of tasks in their rows.
pub(super) fn save(dialect: Dialect, tasks: &[Changed<'_>]) -> Vec<Statement> {
    match dialect {
        Dialect::Sqlite => save_each(tasks),
        Dialect::Postgres => save_alike(tasks, &PREPARED),
        Dialect::Mysql => save_alike(tasks, &[usize::MAX]),
    }
}

/// Statements cost nothing on the way to SQLite, and it may refuse a row by another index first.
fn save_each(tasks: &[Changed<'_>]) -> Vec<Statement> {
    let set = CHANGING.map(|column| format!("{column} = ?")).join(", ");
    let sql = format!("UPDATE tasks SET {set} WHERE n = ?");
    let each = tasks.iter().map(|one| {
        let params = changing(one).into_iter().chain([one.n.into()]);
        Statement::new(sql.clone(), params.collect())
    });
    each.collect()
}

/// What tasks have in common is said once: a text is parsed each time, a value is bound. Tokens and places are each task's own. `at_once` are the
/// numbers of tasks for which there is a statement, the greatest first.
fn save_alike(tasks: &[Changed<'_>], at_once: &[usize]) -> Vec<Statement> {
    let mut alike: Vec<(Vec<Value>, Vec<&Changed<'_>>)> = Vec::new();
    for one in tasks {
        let row = changing(one);
        let same: Vec<Value> =
            COMMON.into_iter().filter_map(|column| row.get(column).cloned()).collect();
        match alike.iter_mut().find(|(common, _)| *common == same) {
            Some((_, rows)) => rows.push(one),
            None => alike.push((same, vec![one])),
        }
    }
    let mut statements = Vec::new();
    for (_, rows) in &alike {
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let many = at_once.iter().find(|many| **many <= rest.len());
            let (some, more) = rest.split_at(many.copied().unwrap_or(rest.len()));
            statements.push(save_together(some));
            rest = more;
        }
    }
    statements
}

fn save_together(rows: &[&Changed<'_>]) -> Statement {
    let (mut set, mut params) = (Vec::with_capacity(CHANGING.len()), Vec::new());
    let keeps_token = rows.iter().all(|one| one.token == Some(one.task.token));
    let accepts_it = rows.iter().all(|one| one.task.accepted == one.task.token);
    for (column, name) in CHANGING.iter().enumerate() {
        match *name {
            "token" if keeps_token => continue,
            "accepted" if keeps_token && accepts_it => {
                set.push("accepted = token".to_owned());
                continue;
            }
            _ => {}
        }
        let value = |one: &Changed<'_>| changing(one).into_iter().nth(column).unwrap_or_default();
        let first = rows.first().map(|one| value(one)).unwrap_or_default();
        if rows.iter().all(|one| value(one) == first) {
            set.push(format!("{name} = ?"));
            params.push(first);
        } else {
            set.push(format!("{name} = CASE n{} END", " WHEN ? THEN ?".repeat(rows.len())));
            params.extend(rows.iter().flat_map(|one| [one.n.into(), value(one)]));
        }
    }
    params.extend(rows.iter().map(|one| Value::from(one.n)));
    let places = vec!["?"; rows.len()].join(", ");
    Statement::new(format!("UPDATE tasks SET {} WHERE n IN ({places})", set.join(", ")), params)
}

/// In the order of [`CHANGING`].
fn changing(Changed { task, claim, .. }: &Changed<'_>) -> [Value; 12] {
    [
        task.state.as_str().into(),
        task.place.map(|place| int(place.0)).into(),
        task.at.map(|at| at.0).into(),
        task.until.map(|until| until.0).into(),
        task.lease.map(in_micros).into(),
        i64::from(task.attempt).into(),
        int(task.token.0).into(),
        int(task.accepted.0).into(),
        task.collector.as_ref().map(CollectorName::as_str).into(),
        (*claim).into(),
        task.changed.0.into(),
        task.error.as_deref().into(),
    ]
}

fn in_micros(every: Duration) -> i64 {
    i64::try_from(every.as_micros()).unwrap_or(i64::MAX)
}

/// Adds new tasks, with their keys and payloads; before each, the number of its row.
pub(super) fn add(dialect: Dialect, new: Vec<(i64, Box<Task>, &NewTask)>) -> Vec<Statement> {
    let (mut tasks, mut payloads) = (Vec::with_capacity(new.len()), Vec::with_capacity(new.len()));
    for (n, task, new) in new {
        payloads.push(vec![n.into(), new.key.as_str().into(), new.payload.as_str().into()]);
        let every = task.every.map(in_micros);
        tasks.push(vec![
            n.into(),
            task.id.0.into(),
            task.source.as_str().into(),
            task.state.as_str().into(),
            i64::from(task.priority).into(),
            task.place.map(|place| int(place.0)).into(),
            task.at.map(|at| at.0).into(),
            0.into(),
            0.into(),
            0.into(),
            every.into(),
            task.created.0.into(),
            task.created.0.into(),
        ]);
    }
    let mut statements = Statement::insert_on(dialect, NEW, 13, tasks);
    // `key` is a reserved word of MySQL: all columns, in their order.
    statements.extend(Statement::insert_on(dialect, "INSERT INTO payloads", 3, payloads));
    statements
}

/// The keys and payloads of the tasks in these rows, for [`read_texts`].
pub(super) fn texts(rows: Vec<i64>) -> Statement {
    let head = "SELECT p.task, p.key, p.payload FROM payloads p WHERE p.task";
    Statement::within(head, rows.into_iter().map(Value::Int).collect(), "")
}

/// By the rows of their tasks.
pub(super) fn read_texts(rows: Vec<Row>) -> Result<BTreeMap<i64, (String, String)>> {
    let text = |mut row: Row| Ok((row.int(0)?, (row.take(1)?, row.take(2)?)));
    rows.into_iter().map(text).collect()
}

/// What is remembered is that they were done, not how they looked.
pub(super) fn drop_payloads(rows: Vec<i64>) -> Statement {
    let head = "UPDATE payloads SET payload = 'null' WHERE task";
    Statement::within(head, rows.into_iter().map(Value::Int).collect(), "")
}

/// Forgets tasks and all about them.
pub(super) fn forget(rows: &[i64]) -> Vec<Statement> {
    let heads = [
        "DELETE FROM tasks WHERE n",
        "DELETE FROM payloads WHERE task",
        "DELETE FROM pasts WHERE task",
    ];
    let chunks = rows.chunks(FORGOTTEN_AT_ONCE);
    chunks.flat_map(|rows| heads.map(|head| Statement::of_rows(head, rows))).collect()
}

/// It is in no claim that it was lost from.
pub(super) fn forget_grants(row: i64) -> Statement {
    Statement::new("DELETE FROM grants WHERE task = ?", vec![row.into()])
}

/// At most so many tasks of a source in this state.
pub(super) fn some_of(source: &SourceName, state: TaskState, most: usize) -> Statement {
    // A word and not a parameter, so that the index of that state is used.
    let select =
        format!("SELECT id FROM tasks WHERE state = '{}' AND source = ? LIMIT ?", state.as_str());
    Statement::new(select, vec![source.as_str().into(), count(most).into()])
}

/// The number of the newest entry of its history; NULL when it has none.
pub(super) fn newest_past(row: i64) -> Statement {
    Statement::new("SELECT max(n) FROM pasts WHERE task = ?", vec![row.into()])
}

/// Adds an entry of that number to its history.
pub(super) fn note(row: i64, n: i64, past: &Past) -> Statement {
    Statement::new(
        "INSERT INTO pasts (task, n, at, event, attempt, collector, error) VALUES (?, ?, ?, ?, ?, ?, ?)",
        vec![
            row.into(),
            n.into(),
            past.at.0.into(),
            event_word(past.event).into(),
            i64::from(past.attempt).into(),
            past.collector.as_ref().map(CollectorName::as_str).into(),
            past.error.as_deref().into(),
        ],
    )
}

/// Forgets the entries of its history up to that number.
pub(super) fn cut_history(row: i64, n: i64) -> Statement {
    Statement::new("DELETE FROM pasts WHERE task = ? AND n <= ?", vec![row.into(), n.into()])
}

/// Tasks as callers see them; `rest` of a query about `t`.
pub(super) async fn views(
    session: &mut Relay,
    rest: &str,
    params: Vec<Value>,
) -> Result<Vec<TaskView>> {
    let found = session.query(&format!("{VIEWS}{rest}"), &params).await?;
    let rows: Vec<i64> = found.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
    let mut histories = histories(session, &rows).await?;
    let mut views = Vec::with_capacity(found.len());
    for mut row in found {
        let holder = row.opt_text(13)?.map(collector).transpose()?;
        let held = match (holder, row.opt_take(14)?, row.opt_int(15)?) {
            (Some(name), Some(claim), Some(until)) => Some((name, ClaimId(claim), Stamp(until))),
            _ => None,
        };
        views.push(TaskView {
            id: TaskId(row.take(1)?),
            key: row.take(2)?,
            source: source::name(row.text(3)?)?,
            payload: row.take(4)?,
            priority: small(row.int(5)?),
            state: state(row.text(6)?)?,
            attempt: small(row.int(7)?),
            token: Token(uint(row.int(8)?)),
            every: row.opt_int(9)?.map(every),
            created: Stamp(row.int(10)?),
            changed: Stamp(row.int(11)?),
            at: row.opt_int(12)?.map(Stamp),
            held,
            error: row.opt_take(16)?,
            history: histories.remove(&row.int(0)?).unwrap_or_default(),
        });
    }
    Ok(views)
}

/// By the rows of tasks, oldest first.
pub(super) async fn histories(
    session: &mut Relay,
    tasks: &[i64],
) -> Result<BTreeMap<i64, Vec<Past>>> {
    let head = "SELECT task, at, event, attempt, collector, error FROM pasts WHERE task";
    let asks: Vec<Statement> = tasks
        .chunks(HISTORIES)
        .map(|tasks| {
            let tasks = tasks.iter().copied().map(Value::Int).collect();
            Statement::within(head, tasks, " ORDER BY task, n")
        })
        .collect();
    let mut histories: BTreeMap<i64, Vec<Past>> = BTreeMap::new();
    for mut row in session.query_all(&asks).await?.into_iter().flatten() {
        histories.entry(row.int(0)?).or_default().push(Past {
            at: Stamp(row.int(1)?),
            event: read_word("pasts.event", row.text(2)?)?,
            attempt: small(row.int(3)?),
            collector: row.opt_text(4)?.map(collector).transpose()?,
            error: row.opt_take(5)?,
        });
    }
    Ok(histories)
}

/// The name in a row.
pub(super) fn collector(text: &str) -> Result<CollectorName> {
    CollectorName::new(text).map_err(|why| corrupt("a collector", &why.to_string()))
}

/// Priorities and attempts, which never come near their ends.
fn small<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}

fn every(us: i64) -> Duration {
    Duration::from_micros(uint(us))
}

fn state(word: &str) -> Result<TaskState> {
    word.parse().map_err(|_| corrupt("tasks.state", word))
}

pub(super) fn event_word(event: PastEvent) -> &'static str {
    match event {
        PastEvent::Retried => "retried",
        PastEvent::Expired => "expired",
        PastEvent::Died => "died",
        PastEvent::Revived => "revived",
    }
}
