//! What acts that share a transaction need not ask the server again. All of dispatch is theirs alone until the commit, and their instant
//! is one: what the first of them was answered still holds for the next, as long as nothing that was written changes it.
//!
//! It knows its questions by their texts, and answers no other one. The row of `dispatch`, and that of a source, is written once, with the
//! commit.

use super::super::session::{Row, Statement, Value};
use super::known_sources::KnownSources;
use super::{claims, desk, errand, waiters};

/// The memory of one transaction.
#[derive(Default)]
pub struct Remembered {
    /// The row of `dispatch`.
    book: Option<Row>,
    /// What writes that row, when it is not written yet.
    unwritten: Option<Statement>,
    /// The newest number of a claim.
    claim: Option<i64>,
    /// At this instant nothing is due.
    nothing_is_due: bool,
    /// At this instant no claim is so old that it goes.
    no_claim_is_old: bool,
    nobody_waits: bool,
    sources: KnownSources,
}

impl Remembered {
    /// An act begins, which asks this with the lock. Some acts make tasks due at the same instant, and do not ask what is due.
    pub(crate) fn begin(&mut self, asks: &[Statement]) {
        self.nothing_is_due &= asks.iter().any(|one| one.sql.starts_with(errand::OVERDUE));
    }

    /// What the server would answer, if that is known.
    pub(crate) fn answer(&self, question: &Statement) -> Option<Vec<Row>> {
        let number = |number| vec![Row(vec![Value::Int(number)])];
        match &*question.sql {
            claims::NEWEST => self.claim.map(number),
            claims::OLD => self.no_claim_is_old.then(Vec::new),
            waiters::ARE_THERE => self.nobody_waits.then(|| number(0)),
            sql if sql.starts_with(errand::OVERDUE) => self.nothing_is_due.then(|| number(0)),
            sql if sql.starts_with(desk::BOOK) => self.book.clone().map(|row| vec![row]),
            _ => self.sources.answer(question),
        }
    }

    /// The server answered so.
    pub(crate) fn hear(&mut self, question: &Statement, rows: &[Row]) {
        let is_no = || rows == [Row(vec![Value::Int(0)])];
        match &*question.sql {
            claims::NEWEST => {
                let newest = rows.first().map(|row| row.opt_int(0));
                self.claim = newest.and_then(|number| number.ok().map(Option::unwrap_or_default));
            }
            claims::OLD => self.no_claim_is_old = rows.is_empty(),
            waiters::ARE_THERE => self.nobody_waits = is_no(),
            sql if sql.starts_with(errand::OVERDUE) => self.nothing_is_due = is_no(),
            sql if sql.starts_with(desk::BOOK) => self.book = rows.first().cloned(),
            _ => self.sources.hear(question, rows),
        }
    }

    /// What of this is sent now: all, except for the row of `dispatch` and those of sources that are known.
    pub(crate) fn write(&mut self, statements: &[Statement]) -> Vec<Statement> {
        let mut now = Vec::with_capacity(statements.len());
        for one in statements {
            if one.sql == desk::SAVE_BOOK {
                self.book = Some(Row(one.params.clone()));
                self.unwritten = Some(one.clone());
                continue;
            }
            if self.sources.keeps_back(one) {
                continue;
            }
            if is_of_book(one) {
                now.extend(self.unwritten.take());
                self.book = None;
            }
            if is_of_sources(one) {
                now.extend(std::mem::take(&mut self.sources).take_unwritten());
            }
            if one.sql.starts_with(claims::ADD) {
                self.claim = match one.params.first() {
                    Some(Value::Int(n)) => Some(*n),
                    _ => None,
                };
            }
            self.nobody_waits &= !one.sql.starts_with(waiters::ADD);
            now.push(one.clone());
        }
        now
    }

    /// What must be written before `questions` are asked.
    pub(crate) fn before(&mut self, questions: &[Statement]) -> Vec<Statement> {
        let mut before = Vec::new();
        if questions.iter().any(is_of_sources) {
            before.extend(self.sources.take_unwritten());
        }
        if questions.iter().any(is_of_book) {
            before.extend(self.unwritten.take());
        }
        before
    }

    /// What has to be written yet.
    pub(crate) fn take_unwritten(&mut self) -> Vec<Statement> {
        let mut unwritten = self.sources.take_unwritten();
        unwritten.extend(self.unwritten.take());
        unwritten
    }
}

/// Whether it reads or writes sources.
fn is_of_sources(statement: &Statement) -> bool {
    ["FROM sources", "UPDATE sources", "INTO sources"].iter().any(|of| statement.sql.contains(of))
}

/// Whether it reads or writes the row of `dispatch`.
fn is_of_book(statement: &Statement) -> bool {
    statement.sql.contains("FROM dispatch") || statement.sql.contains("UPDATE dispatch")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(sql: impl Into<std::borrow::Cow<'static, str>>) -> Statement {
        Statement::new(sql, Vec::new())
    }

    fn number(number: i64) -> Vec<Row> {
        vec![Row(vec![Value::Int(number)])]
    }

    fn book(token: i64) -> Statement {
        Statement::new(desk::SAVE_BOOK, [7, token, 0, 0].map(Value::Int).into())
    }

    #[test]
    fn the_row_of_dispatch_is_written_once_and_known_meanwhile() {
        let mut memory = Remembered::default();
        let asks = ask(format!("{} FOR UPDATE", desk::BOOK));
        assert_eq!(memory.answer(&asks), None);
        assert_eq!(memory.write(&[ask("UPDATE tasks"), book(1)]), [ask("UPDATE tasks")]);
        assert_eq!(memory.write(&[book(2)]), []);
        assert_eq!(memory.answer(&asks), Some(vec![Row(book(2).params)]));
        assert_eq!(memory.take_unwritten(), [book(2)]);
        assert_eq!(memory.take_unwritten(), []);
    }

    #[test]
    fn another_statement_on_that_row_comes_after_what_was_kept_back() {
        let mut memory = Remembered::default();
        let other = ask("UPDATE dispatch SET token = 9");
        memory.write(&[book(1)]);
        assert_eq!(memory.write(std::slice::from_ref(&other)), [book(1), other]);
        assert_eq!(memory.answer(&ask(desk::BOOK)), None, "it is asked for again");
        memory.write(&[book(2)]);
        assert_eq!(memory.before(&[ask("SELECT n FROM tasks")]), []);
        assert_eq!(memory.before(&[ask("SELECT token FROM dispatch")]), [book(2)]);
    }

    #[test]
    fn a_number_of_a_claim_is_never_given_twice() {
        let mut memory = Remembered::default();
        memory.hear(&ask(claims::NEWEST), &[Row(vec![Value::Null])]);
        assert_eq!(memory.answer(&ask(claims::NEWEST)), Some(number(0)));
        memory.write(&[Statement::new(claims::ADD, vec![Value::Int(5)])]);
        assert_eq!(memory.answer(&ask(claims::NEWEST)), Some(number(5)));
    }

    #[test]
    fn who_begins_to_wait_is_seen_by_the_next() {
        let mut memory = Remembered::default();
        memory.hear(&ask(waiters::ARE_THERE), &number(1));
        assert_eq!(memory.answer(&ask(waiters::ARE_THERE)), None);
        memory.hear(&ask(waiters::ARE_THERE), &number(0));
        assert_eq!(memory.answer(&ask(waiters::ARE_THERE)), Some(number(0)));
        memory.write(&[ask(waiters::ADD)]);
        assert_eq!(memory.answer(&ask(waiters::ARE_THERE)), None);
    }

    #[test]
    fn what_is_due_is_asked_again_after_an_act_that_did_not_ask() {
        let mut memory = Remembered::default();
        let due = ask(format!("{} ...", errand::OVERDUE));
        memory.hear(&due, &number(0));
        memory.begin(std::slice::from_ref(&due));
        assert_eq!(memory.answer(&due), Some(number(0)));
        memory.begin(&[]);
        assert_eq!(memory.answer(&due), None);
        memory.hear(&due, &number(1));
        assert_eq!(memory.answer(&due), None);
    }

    #[test]
    fn old_claims_are_looked_for_until_there_are_none() {
        let mut memory = Remembered::default();
        memory.hear(&ask(claims::OLD), &number(3));
        assert_eq!(memory.answer(&ask(claims::OLD)), None);
        memory.hear(&ask(claims::OLD), &[]);
        assert_eq!(memory.answer(&ask(claims::OLD)), Some(Vec::new()));
    }
}
