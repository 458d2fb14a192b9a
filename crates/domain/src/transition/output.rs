//! Output and progress of a run, as its node reports them.
//!
//! Lines are numbered here, for each job, across runs and nodes, without a gap: readers follow the log by number.

use super::{Job, Now, Write};
use crate::event::EventKind;
use crate::journal::{LogLine, Output};
use crate::lease::Stale;
use crate::log::LogBounds;

/// Numbers and keeps the lines, lets the oldest go that are over the bounds, and sets the progress of the present run and when it
/// wrote something last.
///
/// # Errors
/// [`Stale`]; then nothing is to be written.
pub fn report(
    job: &mut Job,
    output: Output,
    bounds: LogBounds,
    now: Now,
) -> Result<Vec<Write>, Stale> {
    job.check(output.token)?;
    let Output { run: id, node, lines, progress, heard, .. } = output;
    let record = &mut job.record;
    let mut run = record.run.as_mut().filter(|run| run.id == id);
    let progressed = progress.is_some() && run.is_some();
    let heard = heard && run.is_some();
    if lines.is_empty() && !progressed && !heard {
        return Ok(Vec::new());
    }
    if let Some(run) = &mut run {
        run.progress = progress.or(run.progress.take());
        if heard || !lines.is_empty() {
            run.last_output = Some(now.at);
        }
    }
    if let Some(newest) = lines.last() {
        record.last_line = Some(newest.text.clone());
    }
    let mut writes = Vec::with_capacity(lines.len() + 2);
    for line in lines {
        record.log_seq += 1;
        let line = LogLine {
            seq: record.log_seq,
            at: now.at,
            run: id.clone(),
            node: node.clone(),
            stream: line.stream,
            text: line.text,
        };
        job.log.add(&line, bounds);
        writes.push(Write::AppendLine(line));
    }
    if !writes.is_empty() {
        writes.push(Write::DropLines(job.log.trim(record.log_seq, bounds)));
    }
    writes.push(job.publish(EventKind::RunProgressed));
    Ok(writes)
}
