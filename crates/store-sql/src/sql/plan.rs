//! A plan as a packet: its checks as conditions, its writes as statements that happen only if all of them hold.

use super::follow::Hint;
use super::log;
use super::packet::Packet;
use super::row::int;
use super::session::Value;
use soloist_store::Result;
use soloist_store::records::{Check, Plan, Tell, Write};

/// Adds the lock, the checks and the writes of `plan`.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt): an entry of a log is not a JSON object.
pub(super) fn add(packet: &mut Packet, plan: &Plan) -> Result<()> {
    packet.through_the_gate(gate(plan));
    packet.at_this_instant();
    if let Some(within) = &plan.within {
        let within = vec![Value::Int(within.start.0), Value::Int(within.end.0)];
        packet.only_if("{at} >= ? AND {at} < ?", within);
    }
    plan.checks.iter().for_each(|one| check(packet, one));
    plan.writes.iter().try_for_each(|one| write(packet, one))?;
    plan.tells.iter().try_for_each(|one| tell(packet, one))
}

/// Rotations have nothing in common with the rest but the audit, whose counter is a lock of its own.
fn gate(plan: &Plan) -> &'static str {
    let name = |write: &Write| match write {
        Write::Set { table, .. } | Write::Unset { table, .. } => of_turns(table),
        Write::Add { list, .. } | Write::Join { list, .. } => of_turns(list),
        Write::Strike { list, .. } | Write::Cut { list, .. } => of_turns(list),
        Write::Log(_) | Write::Entry(_) => false,
    };
    if plan.writes.iter().any(name) { "gate:turns" } else { "gate" }
}

fn of_turns(name: &str) -> bool {
    name == "rotations" || name.starts_with("turns:")
}

fn check(packet: &mut Packet, check: &Check) {
    match check {
        Check::Row { table, row, is: Some(text) } => packet.only_if(
            "EXISTS (SELECT 1 FROM cells WHERE kind = ? AND name = ? AND text = ?)",
            vec![table.as_str().into(), row.as_str().into(), text.as_str().into()],
        ),
        Check::Row { table, row, is: None } => packet.only_if(
            "NOT EXISTS (SELECT 1 FROM cells WHERE kind = ? AND name = ?)",
            vec![table.as_str().into(), row.as_str().into()],
        ),
        Check::Begins { table, row, with } => packet.only_if(
            "EXISTS (SELECT 1 FROM cells WHERE kind = ? AND name = ? AND left(text, char_length(?)) = ?)",
            vec![
                table.as_str().into(),
                row.as_str().into(),
                with.as_str().into(),
                with.as_str().into(),
            ],
        ),
        Check::Memory(memory) => {
            let forgot = memory.forgot.map_or(0, |at| at.0);
            packet.only_if(
                "{server} = ? AND NOT EXISTS (SELECT 1 FROM epoch WHERE doubted_ms * 1000 > ?)",
                vec![memory.server.as_str().into(), forgot.into()],
            );
        }
        Check::Empty { table } => packet.only_if(
            "NOT EXISTS (SELECT 1 FROM cells WHERE kind = ?)",
            vec![table.as_str().into()],
        ),
        Check::First { list, most, are } => check_first(packet, list, *most, are),
    }
}

/// One condition for each place, so that every plan has the same few statements.
fn check_first(packet: &mut Packet, list: &str, most: usize, are: &[String]) {
    const PLACE: &str =
        "SELECT text FROM lists WHERE list = ? ORDER BY number, text LIMIT 1 OFFSET ?";
    for (nth, text) in (0..).zip(are) {
        packet.only_if(
            &format!("coalesce(({PLACE}) = ?, 1 = 0)"),
            vec![list.into(), Value::Int(nth), text.as_str().into()],
        );
    }
    if are.len() < most {
        let end = Value::Int(int(are.len() as u64));
        packet.only_if(&format!("({PLACE}) IS NULL"), vec![list.into(), end]);
    }
}

/// Adds one write.
///
/// # Errors
/// As [`add`].
pub(super) fn write(packet: &mut Packet, write: &Write) -> Result<()> {
    let dialect = packet.dialect;
    match write {
        Write::Set { table, row, text } => packet.add(
            format!(
                "INSERT INTO cells (kind, name, text) SELECT ?, ?, ? FROM (SELECT 1 AS one) here WHERE {{holds}}{}",
                dialect.or_change("kind, name", &["text"])
            ),
            vec![table.as_str().into(), row.as_str().into(), text.as_str().into()],
        ),
        Write::Unset { table, row } => packet.add(
            "DELETE FROM cells WHERE kind = ? AND name = ? AND {holds}",
            vec![table.as_str().into(), row.as_str().into()],
        ),
        Write::Add { list, number, text } => packet.add(
            format!(
                "INSERT INTO lists (list, number, text) SELECT ?, ?, ? FROM (SELECT 1 AS one) here WHERE {{holds}}{}",
                dialect.or_change("list, text", &["number"])
            ),
            vec![list.as_str().into(), Value::Int(int(*number)), text.as_str().into()],
        ),
        Write::Join { list, counter, text } => {
            // A number that is not used is no harm: numbers only say who came first.
            count(packet, counter, "{holds}");
            packet.add(
                format!(
                    "INSERT INTO lists (list, number, text) SELECT ?, newest, ? FROM numbers WHERE name = ? AND {{holds}}{}",
                    dialect.or_stay("list")
                ),
                vec![list.as_str().into(), text.as_str().into(), counter.as_str().into()],
            )
        }
        Write::Strike { list, text } => packet.add(
            "DELETE FROM lists WHERE list = ? AND text = ? AND {holds}",
            vec![list.as_str().into(), text.as_str().into()],
        ),
        Write::Cut { list, kept } => packet.add(
            "DELETE FROM lists WHERE list = ? AND {holds} AND text IN (SELECT text FROM (SELECT text FROM lists \
             WHERE list = ? ORDER BY number DESC, text DESC LIMIT 1000000 OFFSET ?) over_it)",
            vec![list.as_str().into(), list.as_str().into(), Value::Int(int(*kept as u64))],
        ),
        Write::Log(line) => {
            log::add(packet, line)?;
            0
        }
        Write::Entry(entry) => log::copy(packet, entry)?,
    };
    Ok(())
}

/// One more under `counter`, if `when`.
pub(super) fn count(packet: &mut Packet, counter: &str, when: &str) {
    let more = if packet.dialect == super::session::Dialect::Mysql {
        " ON DUPLICATE KEY UPDATE newest = newest + 1"
    } else {
        " ON CONFLICT (name) DO UPDATE SET newest = numbers.newest + 1"
    };
    packet.add(
        format!("INSERT INTO numbers (name, newest) SELECT ?, 1 FROM (SELECT 1 AS one) here WHERE {when}{more}"),
        vec![counter.into()],
    );
}

/// Notes what the sweep finds when the hint is lost, and tells it where the commit does that.
fn tell(packet: &mut Packet, tell: &Tell) -> Result<()> {
    let (key, counter) = match tell {
        Tell::Nodes => ("nodes", "told:nodes"),
        Tell::Accounts => ("accounts", "told:accounts"),
        Tell::Wake(waiters) => {
            return packet.ring(&Hint { wake: waiters.clone(), ..Hint::default() });
        }
    };
    count(packet, counter, "{holds}");
    packet.ring_how_manieth(key, counter);
    Ok(())
}
