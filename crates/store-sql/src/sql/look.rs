//! Looks as statements, and their results.

use std::collections::BTreeMap;

use super::log;
use super::packet::{Answers, Packet, only};
use super::row::int;
use super::session::{Row, Value};
use soloist_domain::rotation::Memory;
use soloist_domain::time::{Stamp, StoreTime};
use soloist_store::Result;
use soloist_store::records::{Found, Look};

/// The order of the entries of a list.
const FIRST: &str = "SELECT number, text FROM lists WHERE list = ? ORDER BY number, text LIMIT ?";

/// Adds `look`.
pub(super) fn add(packet: &mut Packet, look: &Look) {
    let most = |most: &usize| Value::Int(int(*most as u64));
    match look {
        Look::Row(table, name) => {
            packet.add(
                "SELECT text FROM cells WHERE kind = ? AND name = ?",
                vec![table.as_str().into(), name.as_str().into()],
            );
        }
        Look::Rows(table) => {
            packet.add("SELECT name, text FROM cells WHERE kind = ?", vec![table.as_str().into()]);
        }
        Look::First(list, limit) => {
            packet.add(FIRST, vec![list.as_str().into(), most(limit)]);
        }
        Look::Last(list, limit) => {
            packet.add(
                "SELECT number, text FROM lists WHERE list = ? ORDER BY number DESC, text DESC LIMIT ?",
                vec![list.as_str().into(), most(limit)],
            );
        }
        Look::Described { list, table, most: limit } => {
            packet.add(
                "SELECT lists.number, lists.text, cells.text FROM lists \
                 LEFT JOIN cells ON cells.kind = ? AND cells.name = lists.text \
                 WHERE lists.list = ? ORDER BY lists.number, lists.text LIMIT ?",
                vec![table.as_str().into(), list.as_str().into(), most(limit)],
            );
        }
        Look::Count(lists) => {
            for list in lists {
                packet.add("SELECT count(*) FROM lists WHERE list = ?", vec![list.as_str().into()]);
            }
        }
        Look::Ahead { lists, of, text } => {
            for list in lists {
                packet.add(
                    "SELECT count(*) FROM lists WHERE list = ? AND number < \
                     coalesce((SELECT number FROM lists WHERE list = ? AND text = ?), 9223372036854775807)",
                    vec![list.as_str().into(), of.as_str().into(), text.as_str().into()],
                );
            }
        }
        Look::Memory => {
            packet.add(
                "SELECT {server}, id, coalesce(doubted_ms, 0) FROM (SELECT 1 AS one) here LEFT JOIN epoch ON epoch.one = here.one",
                Vec::new(),
            );
        }
        Look::Log(name, below, limit) => {
            let below = below.map_or(i64::MAX, int);
            packet.add(log::NEWEST, vec![name.as_str().into(), below.into(), most(limit)]);
        }
        Look::LogAfter(name, above, limit) => {
            packet.add(log::AFTER, vec![name.as_str().into(), int(*above).into(), most(limit)]);
        }
    }
}

/// What `looks` found; `nth` is the first statement of theirs.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt).
pub(super) fn found(looks: &[Look], answers: &Answers, mut nth: usize) -> Result<Vec<Found>> {
    let mut all = Vec::with_capacity(looks.len());
    for look in looks {
        let took = match look {
            Look::Count(lists) | Look::Ahead { lists, .. } => lists.len(),
            _ => 1,
        };
        all.push(read(look, answers, nth..nth + took)?);
        nth += took;
    }
    Ok(all)
}

fn read(look: &Look, answers: &Answers, which: std::ops::Range<usize>) -> Result<Found> {
    let rows = answers.get(which.start).map(Vec::as_slice).unwrap_or_default();
    Ok(match look {
        Look::Row(..) => {
            Found::Row(rows.first().map(|row| row.text(0).map(str::to_owned)).transpose()?)
        }
        Look::Rows(_) => {
            let pair = |row: &Row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
            Found::Rows(rows.iter().map(pair).collect::<Result<BTreeMap<_, _>>>()?)
        }
        Look::First(..) => Found::Entries(rows.iter().map(entry).collect::<Result<_>>()?),
        Look::Last(..) => Found::Entries(rows.iter().rev().map(entry).collect::<Result<_>>()?),
        Look::Described { .. } => {
            let described = |row: &Row| {
                let (number, text) = entry(row)?;
                Ok((number, text, row.opt_text(2)?.map(str::to_owned)))
            };
            Found::Described(rows.iter().map(described).collect::<Result<_>>()?)
        }
        Look::Count(_) | Look::Ahead { .. } => {
            let mut sum = 0;
            for nth in which {
                sum += number(only(answers, nth)?, 0)?;
            }
            Found::Count(sum)
        }
        Look::Memory => {
            let row = only(answers, which.start)?;
            let forgot = Some(row.int(2)?).filter(|at| *at > 0);
            let forgot = forgot.map(|at| Stamp::from(StoreTime(at)));
            let memory = Memory { server: row.text(0)?.to_owned(), forgot };
            Found::Memory { memory, emptied: row.opt_text(1)?.is_none() }
        }
        Look::Log(..) | Look::LogAfter(..) => {
            Found::Log(rows.iter().map(log::read).collect::<Result<_>>()?)
        }
    })
}

fn entry(row: &Row) -> Result<(u64, String)> {
    Ok((number(row, 0)?, row.text(1)?.to_owned()))
}

/// A number that is never below zero.
pub(super) fn number(row: &Row, column: usize) -> Result<u64> {
    Ok(u64::try_from(row.int(column)?).unwrap_or(0))
}
