//! One change of a job as a packet: its row is locked, everything is compared, all of it is written or nothing.

use std::time::Duration;

use super::engine::{COLUMNS, micros_span, span};
use super::packet::{Answers, Condition, Packet, only};
use super::plan;
use super::row::int;
use super::session::{Dialect, Row, Statement, Value};
use super::trust;
use soloist_domain::name::JobName;
use soloist_store::Result;
use soloist_store::core::FOLDED;
use soloist_store::engine::{Beside, Change, Keep, LeaseWrite, Stored, StoredLease};
use soloist_store::memory::Asked;

/// The row of a job in [`COLUMNS`]; the lease only while it is valid.
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

/// MySQL alone: what counts rows that are found, and whether they are as many as that.
pub(super) const COUNT: &str = "SET @soloist_found = 0";
pub(super) const COUNTED: &str = ", @soloist_found := @soloist_found + 1";
pub(super) const COUNT_IS: &str = "@soloist_found = ?";

/// As [`kept`], for a batch of which every lease was found to be its holder's, and for one span. MySQL changes the rows of a join in two
/// passes, with a table of its own in between. It needs one pass for this statement.
pub(super) fn all_kept(batch: &[Keep<'_>], ttl: Duration) -> Statement {
    let each = vec!["?"; batch.len()].join(", ");
    let sql = format!(
        "UPDATE jobs SET ends = {{at}} + ? WHERE job IN ({each}) AND ends > {{at}} AND {{holds}}"
    );
    let jobs = batch.iter().map(|keep| keep.job.as_str().into());
    Statement::new(sql, std::iter::once(Value::Int(span(ttl))).chain(jobs).collect())
}

/// `asked`: what the store must be known for, when a lease is asked for. The last statement is for [`outcome`], and says what the store
/// is known for, if that matters.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt): a note is not JSON.
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
    let (row, mut values) = of_the_row(change);
    values.insert(0, job.clone());
    let row = (format!("EXISTS (SELECT 1 FROM jobs WHERE job = ? AND {row})"), values);
    packet.at_this_instant_if(std::iter::once(row).chain(of_the_store(change, asked)).collect());
    if let Some((set, mut values)) = set(change) {
        values.push(job.clone());
        packet.add(format!("UPDATE jobs SET {set} WHERE job = ? AND {{holds}}"), values);
    }
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

/// The same as one statement, which compares and writes, for a change of a record and its lease alone, such as a grant. `None`: the change
/// is more than that. A statement that changed nothing does not say why; the caller sends a [`packet`] then, which does.
///
/// The server reads the clock before it locks the row. When it had to wait for the lock, the instant is a little old. That is safe: the
/// lease of before counts a little longer, and the new one ends a little sooner.
pub(super) fn at_once(
    dialect: Dialect,
    change: &Change<'_>,
    asked: Option<&Asked>,
) -> Option<Packet> {
    if change.head.is_empty() || !change.beside.is_empty() || !change.notes.is_empty() {
        return None;
    }
    let (set, mut values) = set(change)?;
    let (row, of_row) = of_the_row(change);
    values.push(change.job.as_str().into());
    values.extend(of_row);
    let mut holds = vec!["job = ?".to_owned(), row];
    for (term, of_term) in of_the_store(change, asked) {
        holds.push(format!("({term})"));
        values.extend(of_term);
    }
    Some(Packet::at_once(dialect, "jobs", &set, &holds.join(" AND "), values))
}

/// Removes a row whose record says nothing any more, if its head is this one and no lease lasts in it. Which statement says whether it did.
pub(super) fn forgetting(dialect: Dialect, job: &JobName, head: &str) -> (Packet, usize) {
    let mut packet = Packet::change(dialect);
    let job: Value = job.as_str().into();
    packet.add("SELECT 1 FROM jobs WHERE job = ? FOR UPDATE", vec![job.clone()]);
    let same = "EXISTS (SELECT 1 FROM jobs WHERE job = ? AND head = ? AND (lease IS NULL OR ends <= {at}))";
    packet.at_this_instant_if(vec![(same.to_owned(), vec![job.clone(), head.into()])]);
    packet.add("DELETE FROM jobs WHERE job = ? AND {holds}", vec![job]);
    let said = packet.ask_outcome();
    (packet, said)
}

/// What became of it: the instant in microseconds, if it was done.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt).
pub(super) fn done_at(answers: &Answers) -> Result<Option<i64>> {
    match answers.last().and_then(|rows| rows.first()) {
        Some(row) if row.int(0)? > 0 => row.int(1).map(Some),
        _ => Ok(None),
    }
}

/// What became of a [`packet`]: whether it was done, the instant in microseconds, and the row if it was not.
///
/// # Errors
/// [`StoreError::Corrupt`](soloist_store::StoreError::Corrupt).
pub(super) fn outcome(answers: &Answers) -> Result<(bool, i64, Stored)> {
    let row = only(answers, answers.len().saturating_sub(1))?;
    let (done, at) = (row.int(5)? == 1, row.int(6)?);
    // A job without a row is one that nobody has written.
    let stored = if row.opt_text(0)?.is_some() { stored(row, at)? } else { Stored::default() };
    Ok((done, at, stored))
}

/// That record and lease, two columns each of one row, are those that were read.
fn of_the_row(change: &Change<'_>) -> Condition {
    let (head, lease) = (Value::from(change.head), Value::from(change.lease));
    if change.lease.is_empty() {
        ("head = ? AND (lease IS NULL OR ends <= {at})".to_owned(), vec![head])
    } else {
        let begins = "head = ? AND ends > {at} AND left(lease, char_length(?)) = ?";
        (begins.to_owned(), vec![head, lease.clone(), lease])
    }
}

/// That it is the time that was expected, and that the store may be believed, where that matters.
fn of_the_store(change: &Change<'_>, asked: Option<&Asked>) -> Vec<Condition> {
    let window = vec![Value::Int(change.window.start.0), Value::Int(change.window.end.0)];
    let mut all = vec![("{at_ms} >= ? AND {at_ms} < ?".to_owned(), window)];
    match asked {
        Some(asked) if change.calm => all.push(trust::as_seen_and_calm(asked)),
        Some(asked) => all.push(trust::as_seen(asked)),
        None if change.calm => all.push((trust::CALM.to_owned(), Vec::new())),
        None => {}
    }
    all
}

/// What is written of record and lease; `None`: nothing.
fn set(change: &Change<'_>) -> Option<Condition> {
    let (mut set, mut values) = (Vec::new(), Vec::new());
    if let Some((version, body)) = change.record {
        set.push("head = concat(?, {at}), body = ?");
        values.extend([Value::Text(format!("{version} ")), body.into()]);
    }
    match &change.lease_write {
        LeaseWrite::None => {}
        LeaseWrite::For(text, ttl) => {
            set.push("lease = ?, ends = {at} + ?");
            values.extend([text.as_str().into(), Value::Int(span(*ttl))]);
        }
        LeaseWrite::Text(text) => {
            set.push("lease = ?");
            values.push(text.as_str().into());
        }
        LeaseWrite::Drop => set.push("lease = NULL, ends = NULL"),
    }
    (!set.is_empty()).then(|| (set.join(", "), values))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use soloist_domain::time::StoreTime;
    use soloist_store::engine::Way;

    fn change(job: &JobName) -> Change<'_> {
        Change {
            job,
            way: Way::Lease,
            head: "7 1000",
            lease: "",
            window: StoreTime(1)..StoreTime(2),
            grant: None,
            reach: Duration::ZERO,
            calm: false,
            unlisted: None,
            record: Some((8, "{}")),
            expires: None,
            lease_write: LeaseWrite::For("a".to_owned(), Duration::from_secs(1)),
            beside: Vec::new(),
            tell: &[],
            once: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_record_and_its_lease_alone_are_one_statement_which_reads_the_clock_once() {
        let job = JobName::new("ship").unwrap();
        for (dialect, clock, clocks) in
            [(Dialect::Postgres, "{clock}", 1..2), (Dialect::Mysql, "{began}", 1..9)]
        {
            let one = at_once(dialect, &change(&job), None).expect("one statement");
            let [statement] = one.statements.as_slice() else { panic!("{one:?}") };
            let sql = &statement.sql;
            // What MySQL calls NOW is one instant in all of a statement.
            assert!(clocks.contains(&sql.matches(clock).count()), "{sql}");
            let other = if dialect == Dialect::Mysql { "{clock}" } else { "{began}" };
            assert!(!sql.contains(other), "two clocks: {sql}");
            assert!(!sql.contains("{at"), "no instant of a transaction: {sql}");
            assert_eq!(sql.matches('?').count(), statement.params.len(), "{statement:?}");
        }
    }

    #[test]
    fn what_is_more_than_that_is_a_packet() {
        let job = JobName::new("ship").unwrap();
        let new = Change { head: "", ..change(&job) };
        let beside = Change { beside: vec![Beside::Unindex { number: 1 }], ..change(&job) };
        let nothing = Change { record: None, lease_write: LeaseWrite::None, ..change(&job) };
        for more in [new, beside, nothing] {
            assert!(at_once(Dialect::Postgres, &more, None).is_none(), "{more:?}");
        }
    }
}
