//! Looking: status, why, runs. Nothing here changes anything.

use super::office::{Office, at, no_job};
use super::output::{instant_in, json, print, print_json, table, visible};
use super::watch::Watch;
use super::{Failure, RunsArgs, StatusArgs};
use soloist_remote::address;
use soloist_store::journal::RUNS_KEPT;
use soloist_view::RunView;
use soloist_view::lists::Runs;
use soloist_view::status::{Status, StatusRow};
use soloist_view::words::At;

/// `status`.
pub(super) async fn status(office: &Office, args: &StatusArgs) -> Result<(), Failure> {
    if !args.watch {
        return print(&picture(office, args).await?);
    }
    let mut watch = Watch::start(office).await?;
    // A mistyped name is no reason to wait.
    let mut first = true;
    loop {
        match picture(office, args).await {
            Ok(text) => watch.show(&text)?,
            Err(problem @ (Failure::NotFound(_) | Failure::Refused(_))) if first => {
                return Err(problem);
            }
            Err(problem) => problem.say(),
        }
        first = false;
        if !watch.change().await? {
            return Ok(());
        }
    }
}

async fn picture(office: &Office, args: &StatusArgs) -> Result<String, Failure> {
    if args.list.json {
        // One object a line while watching, so that a reader can tell them apart.
        return match &args.job {
            Some(name) => json(&office.job(name).await?, args.watch),
            None => json(&office.jobs().await?, args.watch),
        };
    }
    let rows = rows(office, args.job.as_deref()).await?;
    if rows.is_empty() {
        return Ok("The configuration has no jobs.".to_owned());
    }
    let grouped = rows.iter().any(|row| row.group.is_some());
    let cells = rows.iter().map(|one| {
        let mut cells = row(one);
        cells.extend(grouped.then(|| one.group.clone().unwrap_or_else(|| "-".to_owned())));
        cells
    });
    let mut headings = vec!["JOB", "STATE", "NODE", "SINCE", "WANTED-BY", "NEXT"];
    headings.extend(grouped.then_some("GROUP"));
    let mut text = table(&headings, &cells.collect::<Vec<_>>());
    for row in &rows {
        for drift in &row.drift {
            text.push_str(&format!("drift: {}\n", visible(&drift.sentence(&row.job))));
        }
    }
    Ok(text)
}

/// The rows of the table: of all jobs, or of one.
async fn rows(office: &Office, only: Option<&str>) -> Result<Vec<StatusRow>, Failure> {
    let Status { mut rows, .. } = office.get("/api/v1/status").await?;
    let Some(name) = only else { return Ok(rows) };
    if !rows.iter().any(|row| row.job == name) {
        return Err(no_job(name, rows.iter().map(|row| row.job.as_str())));
    }
    rows.retain(|row| row.job == name);
    Ok(rows)
}

fn row(row: &StatusRow) -> Vec<String> {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let told = |at: At| instant_in(row.zone.as_deref(), at);
    let next = match row.next_at {
        Some(at) => format!("{} at {}", row.next, told(at)),
        None => row.next.clone(),
    };
    vec![
        row.job.clone(),
        row.state.as_str().to_owned(),
        or_dash(row.node.clone().unwrap_or_default()),
        or_dash(row.since.map(told).unwrap_or_default()),
        or_dash(row.wanted_by.join(", ")),
        or_dash(next),
    ]
}

/// `why`.
pub(super) async fn why(office: &Office, job: &str) -> Result<(), Failure> {
    print(&visible(&office.job(job).await?.why))
}

/// `runs`.
pub(super) async fn runs(office: &Office, args: &RunsArgs) -> Result<(), Failure> {
    let (mut runs, limit) = (Vec::<RunView>::new(), args.limit.clamp(1, RUNS_KEPT));
    while runs.len() < limit {
        let query = [
            ("limit", Some((limit - runs.len()).to_string())),
            ("before", runs.last().map(|run| run.id.clone())),
        ];
        let more: Runs = office.get(address(&at(&args.job, "/runs"), &query)).await?;
        if more.runs.is_empty() {
            break;
        }
        runs.extend(more.runs);
    }
    if args.list.json {
        return print_json(&Runs { runs });
    }
    if runs.is_empty() {
        return print(&format!("{} has not run yet.", args.job));
    }
    let schedule = office.job(&args.job).await.ok().and_then(|job| job.schedule);
    let zone = schedule.map(|schedule| schedule.zone.unwrap_or_else(|| "UTC".to_owned()));
    let rows: Vec<_> = runs.iter().map(|run| run_row(run, zone.as_deref())).collect();
    print(&table(&["RUN", "NODE", "STARTED", "ENDED", "END", "EXIT", "KILLED"], &rows))
}

fn run_row(run: &RunView, zone: Option<&str>) -> Vec<String> {
    let exit = match (run.exit.code, run.exit.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    };
    vec![
        run.id.clone(),
        run.node.clone(),
        instant_in(zone, run.started),
        run.ended.map_or_else(|| "-".to_owned(), |ended| instant_in(zone, ended)),
        match (run.end, run.folded) {
            (None, _) => "running".to_owned(),
            (Some(end), Some(folded @ 2..)) => format!("{}, {folded} alike", end.as_str()),
            (Some(end), _) => end.as_str().to_owned(),
        },
        exit,
        run.processes_killed.to_string(),
    ]
}
