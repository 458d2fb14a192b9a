//! What no store shows: how statements are made, and that acts may run on any thread.

use std::sync::Arc;

use super::super::relay::{self, Relay};
use super::super::session::{Dialect, Row, Session, Statement, Value};
use super::acts::{Exchanging, Pump, Put};
use super::{Act, Answered, AnyAct, DispatchSession};
use soloist_domain::dispatch::Exchange;
use soloist_domain::time::Stamp;
use soloist_store::dispatch::Waiter;
use soloist_store::records::Line;
use soloist_store::{Result, StoreError};

/// A session on a server that never answers.
struct Silent;

fn silent<T>() -> Result<T> {
    Err(StoreError::Unavailable("silent".to_owned()))
}

impl Session for Silent {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(&mut self, _: &str, _: &[Value]) -> Result<Vec<Row>> {
        silent()
    }

    async fn execute_all(&mut self, _: &[Statement]) -> Result<()> {
        silent()
    }
}

impl DispatchSession for Silent {
    async fn query_at(&mut self, _: &str) -> Result<(Row, Stamp)> {
        silent()
    }

    async fn publish_wake(&mut self, _: &[Waiter]) -> Result<()> {
        silent()
    }

    async fn note(&mut self, _: &Line) -> Result<()> {
        silent()
    }
}

#[tokio::test]
async fn an_act_on_a_server_may_run_on_any_thread_and_ends_with_its_first_failure() {
    let exchanging = Exchanging { ask: Exchange::default(), in_hand: None };
    let acts: [Arc<dyn AnyAct>; 3] =
        [Answered::new(exchanging), Answered::new(Put(Vec::new())), Answered::new(Pump)];
    for act in acts {
        let (relay, asked) = relay::pair(Dialect::Postgres);
        let acted = tokio::spawn(async move { act.run(relay).await });
        assert!(!asked.serve(&mut Silent).await);
        let ended = acted.await.expect("no act panics");
        assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
    }
}

/// A session that finds its statements, and keeps those that change something.
#[derive(Default)]
struct Echo(Vec<String>);

impl Session for Echo {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(&mut self, sql: &str, _: &[Value]) -> Result<Vec<Row>> {
        Ok(vec![Row(vec![sql.into()])])
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.0.extend(statements.iter().map(|one| one.sql.to_string()));
        Ok(())
    }
}

impl DispatchSession for Echo {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        Ok((Row(vec![book.into()]), Stamp(7)))
    }

    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        self.0.extend(waiters.iter().map(|waiter| waiter.0.clone()));
        Ok(())
    }

    async fn note(&mut self, _: &Line) -> Result<()> {
        silent()
    }
}

/// Says something of each kind.
struct Talk;

impl Act for Talk {
    type Answer = Vec<String>;

    async fn run(&self, session: &mut Relay) -> Result<Self::Answer> {
        let plain = |sql: &'static str| Statement::new(sql, Vec::new());
        let (row, now) = session.query_at("book").await?;
        assert_eq!((row.text(0)?, now), ("book", Stamp(7)));
        let mut found = session.query("one", &[]).await?;
        found.extend(session.query_all(&[plain("two"), plain("three")]).await?.concat());
        session.execute_all(&[plain("four")]).await?;
        session.execute_all(&[plain("five"), plain("six")]).await?;
        session.publish_wake(&[Waiter("seven".to_owned())]).await?;
        found.into_iter().map(|mut row| row.take(0)).collect()
    }
}

#[tokio::test]
async fn a_relay_does_all_of_an_act_in_its_order_and_is_committed_in_any_task_and_at_once() {
    let (relay, asked) = relay::pair(Dialect::Postgres);
    let act = Answered::new(Talk);
    let acting = act.clone();
    let acted = tokio::spawn(async move { acting.run(relay).await });
    let mut there = Echo::default();
    assert!(asked.serve(&mut there).await, "it is to be committed");
    acted.await.expect("no panic").expect("the act succeeds");
    let mut here = Echo::default();
    let at_once = Answered::new(Talk);
    relay::at_once(&*at_once, &mut here).expect("the act succeeds");
    let found: Vec<String> = ["one", "two", "three"].map(String::from).into();
    assert_eq!((act.take(), at_once.take()), (Some(found.clone()), Some(found)));
    assert_eq!(there.0, ["four", "five", "six", "seven"]);
    assert_eq!(there.0, here.0);
}

#[tokio::test]
async fn an_act_that_fails_or_is_given_up_is_not_committed() {
    let (relay, asked) = relay::pair(Dialect::Postgres);
    let acted = tokio::spawn(async move { Answered::new(Pump).run(relay).await });
    assert!(!asked.serve(&mut Silent).await);
    assert!(matches!(acted.await.expect("no panic"), Err(StoreError::Unavailable(_))));

    let (relay, asked) = relay::pair(Dialect::Postgres);
    drop(relay);
    assert!(!asked.serve(&mut Echo::default()).await);

    let (relay, asked) = relay::pair(Dialect::Postgres);
    drop(asked);
    let given_up = Answered::new(Talk).run(relay).await;
    assert!(matches!(given_up, Err(StoreError::Unavailable(_))));
}

#[test]
fn a_list_of_values_is_filled_up_to_a_power_of_two_with_null() {
    let one = Statement::within("SELECT 1 FROM t WHERE n", vec![7.into()], " ORDER BY n");
    assert_eq!(one, Statement::new("SELECT 1 FROM t WHERE n IN (?) ORDER BY n", vec![7.into()]));
    let three = Statement::within("SELECT 1 FROM t WHERE n", (1..=3).map(Value::Int).collect(), "");
    assert_eq!(three.sql, "SELECT 1 FROM t WHERE n IN (?, ?, ?, ?)");
    assert_eq!(three.params, [1.into(), 2.into(), 3.into(), Value::Null]);
}

#[test]
fn rows_are_inserted_in_their_order_by_few_kinds_of_statements() {
    let rows = (0..75).map(|n| vec![Value::Int(n), Value::Int(-n)]).collect();
    let statements = Statement::insert("INSERT INTO t (a, b)", 2, rows);
    let places = |one: &Statement| one.sql.matches('?').count();
    assert_eq!(statements.iter().map(places).collect::<Vec<_>>(), [128, 20, 2]);
    let params = statements.iter().flat_map(|one| one.params.clone());
    assert!(params.eq((0..75).flat_map(|n| [Value::Int(n), Value::Int(-n)])));
    assert_eq!(statements[2].sql, "INSERT INTO t (a, b) VALUES (?, ?)");
    assert!(Statement::insert("INSERT INTO t (a, b)", 2, Vec::new()).is_empty());
}

#[test]
fn the_schema_of_servers_has_the_tables_and_columns_of_sqlite() {
    let mut sqlite = tables(include_str!("../../sqlite/schema.sql"));
    sqlite.retain(|(name, _)| *name != "clocks");
    assert!(sqlite.len() > 10, "{sqlite:?}");
    assert_eq!(tables(include_str!("../../postgres/schema.sql")), sqlite);
    // One column more, made of the others, by which two indexes are in order.
    let mysql = include_str!("../../mysql/schema.sql");
    let generated: Vec<_> = mysql.lines().filter(|line| !line.contains(" AS (CASE")).collect();
    assert_eq!(generated.len() + 1, mysql.lines().count());
    assert_eq!(tables(&generated.join("\n")), sqlite);
}

/// The tables of dispatch that a schema makes, each with its columns in order.
fn tables(schema: &str) -> Vec<(&str, Vec<&str>)> {
    let mut tables = Vec::new();
    let (_, dispatch) = schema.split_once("-- Dispatch.").expect("a part for it");
    for table in dispatch.split("CREATE TABLE ").skip(1) {
        let (name, columns) = table.split_once(" (\n").expect("a table has columns");
        let name = name.trim_start_matches("IF NOT EXISTS ");
        let columns = columns.lines().take_while(|line| line.starts_with("    "));
        let columns = columns.filter_map(|line| line.split_whitespace().next());
        let columns = columns.filter(|word| !["PRIMARY", "UNIQUE", "KEY"].contains(word));
        tables.push((name, columns.map(|word| word.trim_matches('`')).collect()));
    }
    tables
}
