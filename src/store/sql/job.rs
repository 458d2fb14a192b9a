//! One change of a job as a packet: its row locked, everything compared, all of it written or nothing.

use super::engine::{COLUMNS, micros_span, span};
use super::packet::{Answers, Condition, Packet, only};
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

/// `asked`: what the store must be known for, when a lease is asked for. The last statement is for [`outcome`], and says what the store
/// is known for, if that matters.
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
    let mut all = conditions(change, &job);
    all.extend(asked.map(trust::as_seen));
    if change.calm {
        let calm = "NOT EXISTS (SELECT 1 FROM epoch WHERE until_ms > {at_ms})";
        all.push((calm.to_owned(), Vec::new()));
    }
    packet.at_this_instant_if(all);
    write_job(&mut packet, change, &job);
    for one in &change.beside {
        write_beside(&mut packet, &job, one);
    }
    for note in &change.notes {
        plan::write(&mut packet, note)?;
    }
    let (more, from) = match asked {
        Some(_) => (format!(", {}", trust::COLUMNS), trust::FROM),
        None => (String::new(), "FROM (SELECT 1 AS one) here"),
    };
    packet.add(
        format!(
            "SELECT {COLUMNS}, CASE WHEN {{holds}} THEN 1 ELSE 0 END, {{at}}{more} \
             {from} LEFT JOIN jobs ON job = ? AND NOT {{holds}}"
        ),
        vec![job],
    );
    Ok(packet)
}

/// What became of a [`packet`]: whether it was done, the instant in microseconds, and the row if it was not.
///
/// # Errors
/// [`StoreError::Corrupt`](crate::store::StoreError::Corrupt).
pub(super) fn outcome(answers: &Answers) -> Result<(bool, i64, Stored)> {
    let row = only(answers, answers.len().saturating_sub(1))?;
    let (done, at) = (row.int(5)? == 1, row.int(6)?);
    // A job without a row is one that nobody has written.
    let stored = if row.opt_text(0)?.is_some() { stored(row, at)? } else { Stored::default() };
    Ok((done, at, stored))
}

/// That record and lease are those that were looked at, and that it is the time that was expected.
fn conditions(change: &Change<'_>, job: &Value) -> Vec<Condition> {
    let window = vec![Value::Int(change.window.start.0), Value::Int(change.window.end.0)];
    let record = "EXISTS (SELECT 1 FROM jobs WHERE job = ? AND head = ?)";
    let lasting = "SELECT 1 FROM jobs WHERE job = ? AND lease IS NOT NULL AND ends > {at}";
    let lease = if change.lease.is_empty() {
        (format!("NOT EXISTS ({lasting})"), vec![job.clone()])
    } else {
        (
            format!("EXISTS ({lasting} AND left(lease, char_length(?)) = ?)"),
            vec![job.clone(), change.lease.into(), change.lease.into()],
        )
    };
    vec![
        ("{at_ms} >= ? AND {at_ms} < ?".to_owned(), window),
        (record.to_owned(), vec![job.clone(), change.head.into()]),
        lease,
    ]
}

/// Record and lease are columns of one row.
fn write_job(packet: &mut Packet, change: &Change<'_>, job: &Value) {
    let (mut set, mut params) = (Vec::new(), Vec::new());
    if let Some((version, body)) = change.record {
        set.push("head = concat(?, {at}), body = ?");
        params.extend([Value::Text(format!("{version} ")), body.into()]);
    }
    match &change.lease_write {
        LeaseWrite::None => {}
        LeaseWrite::For(text, ttl) => {
            set.push("lease = ?, ends = {at} + ?");
            params.extend([text.as_str().into(), Value::Int(span(*ttl))]);
        }
        LeaseWrite::Text(text) => {
            set.push("lease = ?");
            params.push(text.as_str().into());
        }
        LeaseWrite::Drop => set.push("lease = NULL, ends = NULL"),
    }
    if !set.is_empty() {
        params.push(job.clone());
        packet
            .add(format!("UPDATE jobs SET {} WHERE job = ? AND {{holds}}", set.join(", ")), params);
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
