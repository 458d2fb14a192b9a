//! One change of a job as a packet: its row locked, everything compared, all of it written or nothing.

use super::engine::{COLUMNS, micros_span, span};
use super::packet::Packet;
use super::plan;
use super::row::int;
use super::session::{Dialect, Row, Value};
use super::trust;
use crate::store::Result;
use crate::store::core::FOLDED;
use crate::store::engine::{Beside, Change, LeaseWrite, Stored, StoredLease};
use crate::store::memory::Asked;

/// The row of a job that stands in [`COLUMNS`]; the lease only while it lasts.
pub(super) fn stored(row: &Row, now: i64) -> Result<Stored> {
    let lease = match (row.opt_text(3)?, row.opt_int(4)?) {
        (Some(text), Some(ends)) if ends > now => {
            Some(StoredLease { text: text.to_owned(), left: micros_span(ends - now) })
        }
        _ => None,
    };
    Ok(Stored { head: row.text(1)?.to_owned(), body: row.text(2)?.to_owned(), lease })
}

/// What extends leases: of the jobs in the JSON array that are as `mine` says.
pub(super) fn kept(dialect: Dialect, mine: &str) -> String {
    let each = dialect.each_lease();
    if dialect == Dialect::Mysql {
        return format!(
            "UPDATE jobs JOIN {each} ON asked.job = jobs.job SET jobs.ends = {{at}} + asked.ttl WHERE {mine} AND jobs.ends > {{at}} AND {{holds}}"
        );
    }
    format!(
        "UPDATE jobs SET ends = {{at}} + asked.ttl FROM {each} WHERE asked.job = jobs.job AND {mine} AND jobs.ends > {{at}} AND {{holds}}"
    )
}

/// `asked`: what the store must be known for, when a lease is asked for. The last two statements are the outcome and the row; the
/// one before them is the row of the epoch, if that matters.
///
/// # Errors
/// [`StoreError::Corrupt`](crate::store::StoreError::Corrupt): a note is not JSON.
pub(super) fn packet(
    dialect: Dialect,
    change: &Change<'_>,
    asked: Option<&Asked>,
) -> Result<Packet> {
    let mut packet = Packet::change(dialect);
    let job: Value = change.job.as_str().into();
    if change.head.is_empty() {
        // There must be something to lock; a row without a head is no record.
        packet.add(
            format!(
                "INSERT INTO jobs (job, head, body) VALUES (?, '', ''){}",
                dialect.or_stay("job")
            ),
            vec![job.clone()],
        );
    }
    packet.add("SELECT 1 FROM jobs WHERE job = ? FOR UPDATE", vec![job.clone()]);
    if !change.notes.is_empty() {
        packet.through_the_gate("gate");
    }
    packet.at_this_instant();
    conditions(&mut packet, change, &job);
    if let Some(asked) = asked {
        trust::as_seen(&mut packet, asked);
    }
    if change.calm {
        packet.only_if("NOT EXISTS (SELECT 1 FROM epoch WHERE until_ms > {at_ms})", Vec::new());
    }
    write_job(&mut packet, change, &job);
    for one in &change.beside {
        write_beside(&mut packet, &job, one);
    }
    for note in &change.notes {
        plan::write(&mut packet, note)?;
    }
    if asked.is_some() {
        trust::ask(&mut packet);
    }
    packet.ask_outcome();
    packet.add(format!("SELECT {COLUMNS} FROM jobs WHERE job = ?"), vec![job]);
    Ok(packet)
}

/// That record and lease are those that were looked at, and that it is the time that was expected.
fn conditions(packet: &mut Packet, change: &Change<'_>, job: &Value) {
    let window = vec![Value::Int(change.window.start.0), Value::Int(change.window.end.0)];
    packet.only_if("{at_ms} >= ? AND {at_ms} < ?", window);
    packet.only_if(
        "EXISTS (SELECT 1 FROM jobs WHERE job = ? AND head = ?)",
        vec![job.clone(), change.head.into()],
    );
    let lasting = "SELECT 1 FROM jobs WHERE job = ? AND lease IS NOT NULL AND ends > {at}";
    if change.lease.is_empty() {
        packet.only_if(&format!("NOT EXISTS ({lasting})"), vec![job.clone()]);
    } else {
        packet.only_if(
            &format!("EXISTS ({lasting} AND left(lease, char_length(?)) = ?)"),
            vec![job.clone(), change.lease.into(), change.lease.into()],
        );
    }
}

fn write_job(packet: &mut Packet, change: &Change<'_>, job: &Value) {
    if let Some((version, body)) = change.record {
        packet.add(
            "UPDATE jobs SET head = concat(?, {at}), body = ? WHERE job = ? AND {holds}",
            vec![Value::Text(format!("{version} ")), body.into(), job.clone()],
        );
    }
    match &change.lease_write {
        LeaseWrite::None => {}
        LeaseWrite::For(text, ttl) => {
            packet.add(
                "UPDATE jobs SET lease = ?, ends = {at} + ? WHERE job = ? AND {holds}",
                vec![text.as_str().into(), Value::Int(span(*ttl)), job.clone()],
            );
        }
        LeaseWrite::Text(text) => {
            packet.add(
                "UPDATE jobs SET lease = ? WHERE job = ? AND {holds}",
                vec![text.as_str().into(), job.clone()],
            );
        }
        LeaseWrite::Drop => {
            packet.add(
                "UPDATE jobs SET lease = NULL, ends = NULL WHERE job = ? AND {holds}",
                vec![job.clone()],
            );
        }
    }
}

fn write_beside(packet: &mut Packet, job: &Value, one: &Beside) {
    let dialect = packet.dialect;
    match one {
        Beside::Index { number, text } => packet.add(
            format!(
                "INSERT INTO runs (job, number, folded, text) SELECT job, ?, ?, ? FROM jobs WHERE job = ? AND {{holds}}{}",
                dialect.or_change("job, number", &["folded", "text"])
            ),
            vec![
                Value::Int(int(*number)),
                Value::Int(i64::from(text.contains(FOLDED))),
                text.as_str().into(),
                job.clone(),
            ],
        ),
        Beside::Unindex { number } => packet.add(
            "DELETE FROM runs WHERE job = ? AND number = ? AND {holds}",
            vec![job.clone(), Value::Int(int(*number))],
        ),
        // The record counts the lines. One that was put back by hand counts some again; that must not stop the output.
        Beside::Append { number, text } => packet.add(
            format!(
                "INSERT INTO output (job, number, text) SELECT job, ?, ? FROM jobs WHERE job = ? AND {{holds}}{}",
                dialect.or_change("job, number", &["text"])
            ),
            vec![Value::Int(int(*number)), text.as_str().into(), job.clone()],
        ),
        Beside::Trim(kept) => packet.add(
            "DELETE FROM output WHERE job = ? AND number <= \
             (SELECT newest FROM (SELECT max(number) AS newest FROM output WHERE job = ?) last) - ? AND {holds}",
            vec![job.clone(), job.clone(), Value::Int(int(*kept as u64))],
        ),
    };
}
