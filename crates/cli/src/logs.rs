//! `soloist logs`: what a job's script printed; the newest of it, what is sought in it, or as it comes.

use std::time::Duration;

use clap::Args;

use super::office::{Office, at};
use super::output::{json, local, print, print_json, visible};
use super::watch::Watch;
use super::{Failure, duration};
use soloist_domain::name::{NodeName, RunId};
use soloist_domain::terminal;
use soloist_domain::time::StoreTime;
use soloist_remote::address;
use soloist_store::journal::{LOG_LINES, LogFilter, LogFrom, LogLine};
use soloist_view::LogLineView;
use soloist_view::lists::Log;
use soloist_view::words::iso;

/// Lines to begin with when nothing is said.
const LINES: usize = 100;

pub(super) const HELP: &str = "\
Examples:
  soloist logs outbound --lines 20 --follow
  soloist logs outbound --since 10m --grep error
  soloist logs outbound --run 01JV3Q --json

--grep looks for plain text, in capitals or not, in what a terminal would show. All of what the store keeps is searched (`log_lines` and
`log_bytes` of the configuration).";

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Name of the job, as in the configuration
    pub job: String,
    /// Go on with new lines as they come, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// How many of the newest lines to begin with [default: 100; with --since, --run or --grep all]
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// Not before this: so long ago (10m, 2h) by this machine's clock, or an instant (2026-05-04T01:02:03Z)
    #[arg(long, value_name = "DURATION|INSTANT", value_parser = since)]
    pub since: Option<StoreTime>,
    /// Only of the run with this id, as `soloist runs` shows it
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Only lines with this text
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Print JSON; with --follow one object a line
    #[arg(long)]
    pub json: bool,
}

fn since(text: &str) -> Result<StoreTime, String> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(StoreTime(at.as_millisecond()));
    }
    let ago: Duration = duration(text).map_err(|_| {
        "use how long ago, as in 10m, or an instant, as in 2026-05-04T01:02:03Z".to_owned()
    })?;
    Ok(StoreTime(jiff::Timestamp::now().as_millisecond()) - ago)
}

impl LogsArgs {
    fn filter(&self) -> LogFilter {
        LogFilter {
            run: self.run.clone().map(RunId),
            grep: self.grep.clone().filter(|text| !text.is_empty()),
            since: self.since,
            until: None,
        }
    }
}

/// `logs`.
pub(super) async fn logs(office: &Office, args: &LogsArgs) -> Result<(), Failure> {
    let (job, filter) = (&args.job, args.filter());
    // Subscribed before the first reading: a line printed in between is not missed.
    let watch = if args.follow { Some(Watch::start(office).await?) } else { None };
    let every = if filter.is_all() { LINES } else { usize::MAX };
    // Asked also when none is to be shown: the job may not exist.
    let all = LogFilter::default();
    let newest = page(office, job, &all, LogFrom::Before(None), 1).await?.lines;
    let mut last = newest.last().map_or(0, |line| line.seq);
    let lines = found(office, job, &filter, last, args.lines.unwrap_or(every)).await?;
    let Some(mut watch) = watch else {
        if args.json {
            return print_json(&Log { lines, next_before: None, next_after: None });
        }
        return if lines.is_empty() { Ok(()) } else { print(&text(&lines)) };
    };
    print_lines(lines, args.json)?;
    while watch.change().await? {
        loop {
            let page = match page(office, job, &all, LogFrom::After(last), LOG_LINES).await {
                Ok(page) => page,
                Err(problem) => {
                    problem.say();
                    break;
                }
            };
            let Some(newest) = page.lines.last() else { break };
            last = newest.seq;
            let admitted = page.lines.into_iter().filter(|line| admits(&filter, line));
            print_lines(admitted.collect(), args.json)?;
        }
    }
    Ok(())
}

/// The newest `most` lines that are asked for, up to line `last`, oldest first.
async fn found(
    office: &Office,
    job: &str,
    filter: &LogFilter,
    last: u64,
    most: usize,
) -> Result<Vec<LogLineView>, Failure> {
    let (mut lines, mut before) = (Vec::new(), Some(last + 1));
    while lines.len() < most && before.is_some() {
        let rest = (most - lines.len()).min(LOG_LINES);
        let page = page(office, job, filter, LogFrom::Before(before), rest).await?;
        lines.extend(page.lines.into_iter().rev());
        before = page.next_before;
    }
    lines.reverse();
    Ok(lines)
}

/// Whether a line that was read is asked for.
fn admits(filter: &LogFilter, line: &LogLineView) -> bool {
    let Ok(node) = NodeName::new(&line.node) else { return filter.is_all() };
    let (seq, at, run) = (line.seq, line.at.0, RunId(line.run.clone()));
    filter.admits(&LogLine { seq, at, run, node, stream: line.stream, text: line.text.clone() })
}

/// At most `limit` lines of output that `filter` admits, and where to go on.
async fn page(
    office: &Office,
    job: &str,
    filter: &LogFilter,
    from: LogFrom,
    limit: usize,
) -> Result<Log, Failure> {
    let number = |seq: u64| Some(seq.to_string());
    let (before, after) = match from {
        LogFrom::Before(before) => (before.and_then(number), None),
        LogFrom::After(after) => (None, number(after)),
    };
    let query = [
        ("before", before),
        ("after", after),
        ("limit", Some(limit.to_string())),
        ("run", filter.run.as_ref().map(ToString::to_string)),
        ("grep", filter.grep.clone()),
        ("since", filter.since.map(iso)),
        ("until", filter.until.map(iso)),
    ];
    office.get(address(&at(job, "/log"), &query)).await
}

fn print_lines(lines: Vec<LogLineView>, as_json: bool) -> Result<(), Failure> {
    if !as_json {
        return if lines.is_empty() { Ok(()) } else { print(&text(&lines)) };
    }
    lines.into_iter().try_for_each(|line| print(&json(&line, true)?))
}

fn text(lines: &[LogLineView]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let stream = line.stream.as_str();
        let plain = terminal::plain(&line.text);
        let (said, node) = (visible(&plain), visible(&line.node));
        text.push_str(&format!("{} {node} {stream:7} {said}\n", local(line.at)));
        text
    })
}
