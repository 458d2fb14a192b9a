//! The sources that a transaction has read, as it has changed them. All of dispatch is its own until the commit: its next act need not ask
//! for them again, and each is written once.

use std::collections::BTreeMap;

use super::super::session::{Row, Statement, Value};
use super::{errand, source};

/// The memory of one transaction.
#[derive(Default)]
pub(super) struct KnownSources {
    /// By name, as [`source::SOURCES`] reads them.
    rows: BTreeMap<String, Row>,
    /// Every source of the ring is among them.
    has_ring: bool,
    /// Those that are not written yet, and whether their seats are to be written.
    unwritten: BTreeMap<String, bool>,
}

/// What is asked of sources, if it may be known.
enum Question<'q> {
    Named(Vec<&'q str>),
    Ring(usize),
}

impl Question<'_> {
    fn of(statement: &Statement) -> Option<Question<'_>> {
        let rest = statement.sql.strip_prefix(source::SOURCES)?;
        if rest == errand::RING {
            let [Value::Int(most)] = statement.params[..] else { return None };
            return Some(Question::Ring(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        let names = statement.params.iter().filter_map(|name| match name {
            Value::Text(name) => Some(name.as_str()),
            _ => None,
        });
        rest.starts_with(source::NAMED).then(|| Question::Named(names.collect()))
    }
}

impl KnownSources {
    /// What the server would answer, if that is known.
    pub(super) fn answer(&self, question: &Statement) -> Option<Vec<Row>> {
        match Question::of(question)? {
            Question::Named(names) => {
                names.into_iter().map(|name| self.rows.get(name).cloned()).collect()
            }
            Question::Ring(most) => {
                let in_ring = self.rows.values().filter_map(|row| Some((source::turn(row)?, row)));
                let in_ring: BTreeMap<i64, &Row> = in_ring.collect();
                self.has_ring.then(|| in_ring.into_values().take(most).cloned().collect())
            }
        }
    }

    /// The server answered so.
    pub(super) fn hear(&mut self, question: &Statement, rows: &[Row]) {
        match Question::of(question) {
            None => return,
            Some(Question::Ring(most)) => self.has_ring = rows.len() < most,
            Some(Question::Named(_)) => {}
        }
        let named = rows.iter().filter_map(|row| Some((row.text(0).ok()?.to_owned(), row.clone())));
        self.rows.extend(named);
    }

    /// Takes a statement that need not be sent yet.
    pub(super) fn keeps_back(&mut self, statement: &Statement) -> bool {
        let Some((name, values)) = source::saved(statement) else { return false };
        let Some(row) = self.rows.get_mut(name) else {
            // It may be of the ring.
            self.has_ring = false;
            return false;
        };
        let with_seat = source::put(row, values);
        *self.unwritten.entry(name.to_owned()).or_default() |= with_seat;
        true
    }

    /// What has to be written yet.
    pub(super) fn take_unwritten(&mut self) -> Vec<Statement> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let rows = unwritten.iter().filter_map(|(name, seat)| Some((self.rows.get(name)?, *seat)));
        rows.map(|(row, seat)| source::save_row(row, seat)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, turn: Option<i64>) -> Row {
        let mut values = vec![Value::from(name), "{}".into()];
        values.extend((0..14).map(Value::Int));
        values.extend([turn.into(), Value::Null, Value::Null]);
        Row(values)
    }

    fn named(names: &[&str]) -> Statement {
        let names = names.iter().map(|name| Value::from(*name)).collect();
        Statement::within(&format!("{}{}", source::SOURCES, source::NAMED), names, "")
    }

    fn ring(most: i64) -> Statement {
        Statement::new(format!("{}{}", source::SOURCES, errand::RING), vec![most.into()])
    }

    #[test]
    fn a_source_that_was_read_is_known_as_it_was_changed_and_written_once() {
        let mut known = KnownSources::default();
        assert_eq!(known.answer(&named(&["a"])), None);
        known.hear(&named(&["a", "b"]), &[row("a", Some(1))]);
        assert_eq!(known.answer(&named(&["a"])), Some(vec![row("a", Some(1))]));
        assert_eq!(known.answer(&named(&["a", "b"])), None, "one is not known");
        let mut changed = row("a", Some(1));
        changed.0[5] = Value::Int(70);
        assert!(known.keeps_back(&source::save_row(&changed, false)));
        changed.0[16] = Value::Int(9);
        changed.0[6] = Value::Int(80);
        assert!(known.keeps_back(&source::save_row(&changed, true)));
        assert_eq!(known.answer(&named(&["a"])), Some(vec![changed.clone()]));
        assert!(!known.keeps_back(&source::save_row(&row("b", None), false)), "not known");
        assert_eq!(known.take_unwritten(), [source::save_row(&changed, true)]);
        assert_eq!(known.take_unwritten(), []);
    }

    #[test]
    fn a_seat_that_did_not_change_is_not_written() {
        let mut known = KnownSources::default();
        known.hear(&named(&["a"]), &[row("a", Some(1))]);
        known.keeps_back(&source::save_row(&row("a", Some(1)), false));
        assert_eq!(known.take_unwritten(), [source::save_row(&row("a", Some(1)), false)]);
    }

    #[test]
    fn the_ring_is_known_in_its_order_when_all_of_it_was_read() {
        let mut known = KnownSources::default();
        let (a, b) = (row("a", Some(2)), row("b", Some(1)));
        known.hear(&ring(2), &[b.clone(), a.clone()]);
        assert_eq!(known.answer(&ring(2)), None, "there may be more");
        known.hear(&ring(3), &[b.clone(), a.clone()]);
        assert_eq!(known.answer(&ring(1)), Some(vec![b.clone()]));
        let last = row("b", Some(3));
        known.keeps_back(&source::save_row(&last, true));
        assert_eq!(known.answer(&ring(9)), Some(vec![a.clone(), last]));
        known.keeps_back(&source::save_row(&row("b", None), true));
        assert_eq!(known.answer(&ring(9)), Some(vec![a]), "it has left the ring");
        known.keeps_back(&source::save_row(&row("c", Some(4)), true));
        assert_eq!(known.answer(&ring(9)), None, "it may have entered the ring");
    }
}
