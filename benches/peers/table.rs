//! Outcomes as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use super::TTL;
use super::round::Outcome;

/// What one system did.
pub(crate) struct Row {
    pub name: String,
    pub defaults: &'static str,
    pub killed: Vec<Outcome>,
    pub stopped: Vec<Outcome>,
    pub paused: Vec<Outcome>,
    pub cut: Vec<Outcome>,
}

/// Both tables.
pub(crate) fn render(rows: &[Row], kills: usize, pauses: usize) -> String {
    let mut text = format!(
        "Lease {TTL:?} for all. {kills} rounds of kill -9 and of SIGTERM, {pauses} of pause and of cut-off.\n\n\
         | take-over, ms: p50 / max | `kill -9` of the holder | SIGTERM to the holder | its own defaults |\n\
         | --- | --- | --- | --- |\n"
    );
    for row in rows {
        let (killed, stopped) = (takeover(&row.killed), takeover(&row.stopped));
        writeln!(text, "| {} | {killed} | {stopped} | {} |", row.name, row.defaults).expect("text");
    }
    text.push_str(
        "\n| the first child: lives beside the second for, ms at most; outlives the watch | `kill -9` | SIGTERM | paused | cut off from the store |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let cells = [&row.killed, &row.stopped, &row.paused, &row.cut].map(|all| child(all));
        writeln!(text, "| {} | {} |", row.name, cells.join(" | ")).expect("text");
    }
    text
}

fn ms(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1000.0)
}

fn takeover(outcomes: &[Outcome]) -> String {
    let mut times: Vec<Duration> = outcomes.iter().filter_map(|one| one.takeover).collect();
    times.sort_unstable();
    let none = outcomes.len() - times.len();
    let text = match times.as_slice() {
        [] => "never".to_owned(),
        [.., max] => format!("{} / {}", ms(times[(times.len() - 1) / 2]), ms(*max)),
    };
    if none > 0 && !times.is_empty() { format!("{text}, {none} never") } else { text }
}

fn child(outcomes: &[Outcome]) -> String {
    let overlap = outcomes.iter().map(|one| one.overlap).max().unwrap_or_default();
    let survive = outcomes.iter().filter(|one| one.survives).count();
    if survive > 0 {
        return format!("**{}**, {survive} of {} run on", ms(overlap), outcomes.len());
    }
    if overlap.is_zero() { "0".to_owned() } else { format!("**{}**", ms(overlap)) }
}
