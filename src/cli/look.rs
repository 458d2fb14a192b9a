//! Looking: status, why, logs, runs. Nothing here changes anything.

use super::output::{json, local, print, print_json, table, visible};
use super::watch::Watch;
use super::{CommandContext, Failure, LogsArgs, RunsArgs, StatusArgs};
use crate::clock;
use crate::config::JobConfig;
use crate::domain::job::{NextWhat, RunPhase, State, Viewpoint, state};
use crate::feed::Seen;
use crate::store::accounts::Accounts as _;
use crate::store::journal::{Journal, LOG_LINES, LogLine, RUNS_KEPT, RunEntry};
use crate::view::lists::{Jobs, Log, Runs};
use crate::view::people::display_names;
use crate::view::{DriftView, JobView, LogLineView, RunView, viewpoint};
use crate::words::Language;

/// `status`.
pub(super) async fn status(context: &CommandContext, args: &StatusArgs) -> Result<(), Failure> {
    let jobs: Vec<&JobConfig> = match &args.job {
        Some(name) => vec![context.job(name)?],
        None => context.jobs(),
    };
    if !args.watch {
        return print(&picture(context, &jobs, args).await?);
    }
    let mut watch = Watch::start(context).await?;
    loop {
        match picture(context, &jobs, args).await {
            Ok(text) => watch.show(&text)?,
            Err(problem) => problem.say(),
        }
        if !watch.change().await? {
            return Ok(());
        }
    }
}

async fn picture(
    context: &CommandContext,
    jobs: &[&JobConfig],
    args: &StatusArgs,
) -> Result<String, Failure> {
    let seen = context.see(jobs).await?;
    let nodes = context.nodes().await?;
    let rotations = context.rotations(jobs).await?;
    let rotations = rotations.as_deref();
    if !args.list.json {
        if jobs.is_empty() {
            return Ok("The configuration has no jobs.".to_owned());
        }
        let row = |(seen, job): (&Seen, &&JobConfig)| {
            let view = viewpoint(seen, job, &nodes, rotations, clock::boot());
            row(seen, job, &view)
        };
        let rows: Vec<_> = seen.iter().zip(jobs).map(row).collect();
        let mut text = table(&["JOB", "STATE", "NODE", "SINCE", "WANTED-BY", "NEXT"], &rows);
        let nodes = context.nodes().await?;
        for job in jobs {
            for drift in DriftView::of(&job.name, &nodes) {
                text.push_str(&format!("drift: {}\n", drift.sentence(job.name.as_str())));
            }
        }
        return Ok(text);
    }
    let names = display_names(context.store.users().await?);
    let view = |(seen, job): (&Seen, &&JobConfig)| {
        JobView::of(seen, job, &nodes, rotations, Language::En, clock::boot()).with_names(&names)
    };
    let mut views: Vec<JobView> = seen.iter().zip(jobs).map(view).collect();
    // One object a line while watching, so that a reader can tell them apart.
    match &args.job {
        Some(_) => views.pop().map_or(Ok(String::new()), |view| json(&view, args.watch)),
        None => json(&Jobs { jobs: views }, args.watch),
    }
}

fn row(seen: &Seen, job: &JobConfig, view: &Viewpoint) -> Vec<String> {
    let record = &seen.record;
    let state = state(record, view);
    let since = match (&record.lease, &record.run, state) {
        (Some(lease), Some(run), _) if run.token == lease.token => Some(run.started),
        (Some(lease), _, _) => Some(lease.since),
        (None, _, State::Held) => record.hold.as_ref().map(|hold| hold.since),
        (None, _, State::BackingOff | State::GivenUp) => {
            record.last_exit.as_ref().map(|last| last.at)
        }
        (None, _, State::Waiting | State::Resting) => record.free_since(),
        _ => record.last_switch.as_ref().map(|last| last.at),
    };
    let wanted_by: Vec<&str> = record.participants.iter().map(|p| p.user.as_str()).collect();
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    vec![
        job.name.to_string(),
        state.as_str().to_owned(),
        or_dash(record.lease.as_ref().map(|lease| lease.node.to_string()).unwrap_or_default()),
        or_dash(since.map(local).unwrap_or_default()),
        or_dash(wanted_by.join(", ")),
        or_dash(next(seen, job, view, state)),
    ]
}

fn next(seen: &Seen, job: &JobConfig, view: &Viewpoint, state: State) -> String {
    let record = &seen.record;
    if let Some(hold) = &record.hold
        && record.lease.is_none()
    {
        return format!("held by {}: {}", hold.by, hold.reason);
    }
    if let Some(run) = record.run.as_ref().filter(|_| record.lease.is_some())
        && let RunPhase::Stopping { kill_at } = run.phase
    {
        return format!("KILL at {}", local(kill_at));
    }
    if let Some(to) = record.moving.as_ref().filter(|_| record.lease.is_some()) {
        return match &to.to {
            Some(node) => format!("moves to {node}"),
            None => "moves to another node".to_owned(),
        };
    }
    if let (State::Resting | State::Waiting, Some(_), Some(rotation)) =
        (state, &record.lease, &job.rotation)
    {
        return format!("waits for its turn in {rotation}");
    }
    match (state, record.next) {
        (State::GivenUp, _) => format!("{} crashes in a row: switch on again", record.crashes),
        (State::Resting | State::BackingOff, Some(next)) => {
            let what = match next.what {
                NextWhat::Repeat => "repeat",
                NextWhat::Retry => "retry",
            };
            format!("{what} at {}", local(next.at))
        }
        (State::Waiting, _) if !view.can_run => "starts when a node may take it".to_owned(),
        (State::Waiting, _) => "starts when a node takes it".to_owned(),
        (State::FailingOver, _) => "another node takes over".to_owned(),
        _ => String::new(),
    }
}

/// `why`.
pub(super) async fn why(context: &CommandContext, job: &str) -> Result<(), Failure> {
    let job = context.job(job)?;
    print(&visible(&context.sentence(job).await?))
}

/// `logs`.
pub(super) async fn logs(context: &CommandContext, args: &LogsArgs) -> Result<(), Failure> {
    let job = &context.job(&args.job)?.name;
    // Subscribed before the first reading: a line printed in between is not missed.
    let watch = if args.follow { Some(Watch::start(context).await?) } else { None };
    let limit = args.lines.min(LOG_LINES);
    let lines = match limit {
        0 => Vec::new(),
        limit => context.store.log(job, None, limit).await?,
    };
    let mut last = match lines.last() {
        Some(line) => line.seq,
        None => context.store.log(job, None, 1).await?.last().map_or(0, |line| line.seq),
    };
    let Some(mut watch) = watch else {
        if args.json {
            let lines = lines.into_iter().map(LogLineView::from).collect();
            return print_json(&Log { lines });
        }
        return if lines.is_empty() { Ok(()) } else { print(&text(&lines)) };
    };
    print_lines(lines, args.json)?;
    while watch.change().await? {
        loop {
            let lines = match context.store.log(job, Some(last), LOG_LINES).await {
                Ok(lines) => lines,
                Err(problem) => {
                    Failure::from(problem).say();
                    break;
                }
            };
            let Some(newest) = lines.last() else { break };
            last = newest.seq;
            print_lines(lines, args.json)?;
        }
    }
    Ok(())
}

fn print_lines(lines: Vec<LogLine>, as_json: bool) -> Result<(), Failure> {
    if !as_json {
        return if lines.is_empty() { Ok(()) } else { print(&text(&lines)) };
    }
    lines.into_iter().try_for_each(|line| print(&json(&LogLineView::from(line), true)?))
}

fn text(lines: &[LogLine]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let stream = line.stream.as_str();
        let said = visible(&line.text);
        text.push_str(&format!("{} {} {stream:7} {said}\n", local(line.at), line.node));
        text
    })
}

/// `runs`.
pub(super) async fn runs(context: &CommandContext, args: &RunsArgs) -> Result<(), Failure> {
    let job = &context.job(&args.job)?.name;
    let runs = context.store.runs(job, None, args.limit.clamp(1, RUNS_KEPT)).await?;
    if args.list.json {
        return print_json(&Runs { runs: runs.into_iter().map(RunView::from).collect() });
    }
    if runs.is_empty() {
        return print(&format!("{job} has not run yet."));
    }
    let rows: Vec<_> = runs.iter().map(run_row).collect();
    print(&table(&["RUN", "NODE", "STARTED", "ENDED", "END", "EXIT", "KILLED"], &rows))
}

fn run_row(run: &RunEntry) -> Vec<String> {
    let exit = match (run.exit.code, run.exit.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    };
    vec![
        run.id.to_string(),
        run.node.to_string(),
        local(run.started),
        run.ended.map_or_else(|| "-".to_owned(), local),
        match (run.end, run.folded) {
            (None, _) => "running".to_owned(),
            (Some(end), 2..) => format!("{}, {} alike", end.as_str(), run.folded),
            (Some(end), _) => end.as_str().to_owned(),
        },
        exit,
        run.processes_killed.to_string(),
    ]
}
