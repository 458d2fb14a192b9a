//! Load, decide, write: how every transition of a job is carried out.
//!
//! The decision is `domain::transition`'s. Nothing that happens here depends on what is in a record.

use rusqlite::params;

use super::fault::Outcome;
use super::history::{drop_run, keep_run};
use super::row::{Row, int};
use super::step::Step;
use crate::domain::journal::LogLine;
use crate::domain::name::JobName;
use crate::domain::transition::{Job, Now, Write};

/// Loads the job, lets `transition` decide, and writes what it says. When it refuses, nothing is written.
pub(super) fn decide<T>(
    step: &Step<'_>,
    name: &JobName,
    transition: impl FnOnce(&mut Job, Now) -> Outcome<(T, Vec<Write>)>,
) -> Outcome<T> {
    let mut row = Row::load(step, name, &step.at)?;
    let (answer, writes) = transition(&mut row.job, step.at.instant())?;
    for one in &writes {
        write(step, name, one)?;
    }
    row.save(step, &step.at)?;
    Ok(answer)
}

fn write(step: &Step<'_>, job: &JobName, one: &Write) -> Outcome<()> {
    match one {
        Write::Publish(event) => step.publish(event),
        Write::KeepRun(entry) => keep_run(step, entry),
        Write::DropRun(id) => drop_run(step, job, id),
        Write::AppendLine(line) => append_line(step, job, line),
        Write::DropLines(last) => {
            step.prepare_cached("DELETE FROM lines WHERE job = ? AND seq <= ?")?
                .execute(params![job.as_str(), int(*last)])?;
            Ok(())
        }
    }
}

fn append_line(step: &Step<'_>, job: &JobName, line: &LogLine) -> Outcome<()> {
    step.prepare_cached(
        "INSERT INTO lines (job, seq, at, run, node, stream, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        job.as_str(),
        int(line.seq),
        line.at.0,
        line.run.as_str(),
        line.node.as_str(),
        line.stream.as_str(),
        line.text
    ])?;
    Ok(())
}
