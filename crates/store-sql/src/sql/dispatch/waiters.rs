//! Who waits for work, in which order. Who is woken is decided in `domain::dispatch`.

use super::super::row::{corrupt, count, text, uint};
use super::super::session::{Row, Statement, Value};
use soloist_domain::dispatch::Waiting;
use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::Waiter;

/// In `waits`: any source.
const ANY: &str = "";

/// Whether anybody waits, or did until now: 1 or 0.
pub(super) const ARE_THERE: &str =
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM waiters) THEN 1 ELSE 0 END";

/// A new one.
pub(super) const ADD: &str = "INSERT INTO waiters (n, waiter, sources, until) VALUES (?, ?, ?, ?)";

/// A waiter: the number of its row (lower came earlier), and for which sources.
#[derive(Debug, Clone)]
pub(super) struct Place {
    n: i64,
    sources: Vec<SourceName>,
}

/// A new one of that number, and what makes it wait until then.
pub(super) fn enter(
    n: i64,
    waiter: &Waiter,
    sources: &[SourceName],
    until: Stamp,
) -> Result<(Place, Vec<Statement>)> {
    let place = Place { n, sources: sources.to_vec() };
    let mut statements = vec![Statement::new(
        ADD,
        vec![n.into(), waiter.0.as_str().into(), text(sources)?.into(), until.0.into()],
    )];
    let waits = place.names().into_iter().map(|source| vec![source.into(), n.into()]).collect();
    statements.extend(Statement::insert("INSERT INTO waits (source, waiter)", 2, waits));
    Ok((place, statements))
}

impl Place {
    /// It waits until then, and keeps its place.
    pub(super) fn stay(&self, until: Stamp) -> Statement {
        let params = vec![until.0.into(), self.n.into()];
        Statement::new("UPDATE waiters SET until = ? WHERE n = ?", params)
    }

    /// It waits no more.
    pub(super) fn leave(&self) -> Vec<Statement> {
        let n = self.n;
        let mut statements =
            vec![Statement::new("DELETE FROM waiters WHERE n = ?", vec![n.into()])];
        let forget = "DELETE FROM waits WHERE source = ? AND waiter = ?";
        let waits = self.names().into_iter().map(|source| vec![source.into(), n.into()]);
        statements.extend(waits.map(|params| Statement::new(forget, params)));
        statements
    }

    /// As `waits` names them, each once.
    fn names(&self) -> Vec<&str> {
        if self.sources.is_empty() {
            return vec![ANY];
        }
        let mut names: Vec<&str> = self.sources.iter().map(SourceName::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Those of these who wait, for [`known`].
pub(super) fn named(waiters: &[&Waiter]) -> Statement {
    let waiters = waiters.iter().map(|waiter| Value::from(waiter.0.as_str())).collect();
    Statement::within("SELECT n, sources, waiter FROM waiters WHERE waiter", waiters, "")
}

/// Those whose time is over, at most `most`, for [`known`].
pub(super) fn expired(now: Stamp, most: usize) -> Statement {
    Statement::new(
        "SELECT n, sources, waiter FROM waiters WHERE until <= ? ORDER BY until LIMIT ?",
        vec![now.0.into(), count(most).into()],
    )
}

/// All who wait for a source, for [`known`].
pub(super) fn all_of(source: &SourceName) -> Statement {
    Statement::new(
        "SELECT w.n, w.sources, w.waiter FROM waits s JOIN waiters w ON w.n = s.waiter WHERE s.source = ?",
        vec![source.as_str().into()],
    )
}

/// One who waits.
pub(super) fn known(mut row: Row) -> Result<(Waiter, Place)> {
    let sources = serde_json::from_str(row.text(1)?)
        .map_err(|why| corrupt("waiters.sources", &why.to_string()))?;
    Ok((Waiter(row.take(2)?), Place { n: row.int(0)?, sources }))
}

/// The first who wait for a source, or (none) for any, and whose time is not over; for [`waiting`].
pub(super) fn first(now: Stamp, source: Option<&SourceName>, most: usize) -> Statement {
    Statement::new(
        "SELECT s.waiter, w.waiter FROM waits s JOIN waiters w ON w.n = s.waiter \
         WHERE s.source = ? AND w.until > ? ORDER BY s.waiter LIMIT ?",
        vec![source.map_or(ANY, SourceName::as_str).into(), now.0.into(), count(most).into()],
    )
}

/// One of them.
pub(super) fn waiting(mut row: Row) -> Result<Waiting> {
    Ok(Waiting { place: uint(row.int(0)?), waiter: Waiter(row.take(1)?) })
}
