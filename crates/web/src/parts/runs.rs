//! *Runs*: how each ended, how long it lasted and who ended it; page by page, with a picture of the page.

use std::time::Duration;

use askama::Template;

use super::endings::{self, Acts, Endings};
use super::lanes::about;
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::time::StoreTime;
use soloist_store::journal::RunEntry;
use soloist_view::words::{Arg, Language, Piece, clock, day_clock, say};

/// Rows of a page.
pub const ROWS: usize = 20;
/// Runs alike in a row are one row from this many on, if each is shorter than [`SHORT`].
const ALIKE: usize = 3;
const SHORT: Duration = Duration::from_secs(60);
/// Bars of the picture, at most, and their heights in pixels.
const BARS: usize = 60;
const LOWEST: u128 = 4;
const HEIGHT: u128 = 32;

/// A page of the history.
#[derive(Template)]
#[template(path = "parts/runs.html")]
pub struct Runs {
    pub(crate) lang: Language,
    pub(crate) rows: Vec<RunRow>,
    pub(crate) bars: Vec<Bar>,
    /// The heading over where runs were: the message's id.
    pub(crate) place: &'static str,
    /// It could not be read.
    pub(crate) unread: bool,
    /// Addresses of the pages beside.
    pub(crate) older: Option<String>,
    pub(crate) newer: Option<String>,
    /// What the newest drill measured.
    pub(crate) drilled: Option<Vec<Piece>>,
}

impl Runs {
    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }
}

/// One run in the picture.
pub struct Bar {
    pub(crate) state: &'static str,
    pub(crate) x: String,
    pub(crate) width: String,
    pub(crate) y: u128,
    pub(crate) height: u128,
    pub(crate) title: String,
}

/// The newest runs of `runs` (newest first), oldest at the left; the longer, the higher.
pub(crate) fn bars(runs: &[RunEntry], lang: Language) -> Vec<Bar> {
    let shown: Vec<&RunEntry> = runs.iter().filter(|run| run.folded < 2).take(BARS).collect();
    let lasted = |run: &RunEntry| run.ended.map(|ended| ended.since(run.started));
    let longest = shown.iter().filter_map(|run| lasted(run)).max().unwrap_or_default();
    let room = 100_000 / shown.len().max(12);
    let bar = |(nth, run): (usize, &&RunEntry)| {
        // The area tells; a run of an hour would hide those of a second.
        let share = lasted(run).unwrap_or(longest).as_millis().max(1).isqrt();
        let height = (share * HEIGHT / longest.as_millis().max(1).isqrt()).clamp(LOWEST, HEIGHT);
        let mut title = ended(lang, run);
        if let Some(lasted) = lasted(run) {
            title = format!("{title} · {}", about(lang, lasted));
        }
        let percent =
            |thousandth: usize| format!("{}.{:03}%", thousandth / 1_000, thousandth % 1_000);
        Bar {
            state: run.end.map_or("running", RunEnd::as_str),
            x: percent(nth * room),
            width: percent(room * 4 / 5),
            y: HEIGHT - height,
            height,
            title,
        }
    };
    shown.iter().rev().enumerate().map(bar).collect()
}

/// Newest first, with short runs alike in a row as one entry, which has the id of the oldest of them.
#[must_use]
pub(crate) fn folded(runs: &[RunEntry]) -> Vec<RunEntry> {
    let mut rows: Vec<RunEntry> = Vec::new();
    let mut rest = runs;
    while let Some(newest) = rest.first() {
        let alike = rest.iter().take_while(|run| is_alike(newest, run)).count();
        let taken = if alike >= ALIKE { alike } else { 1 };
        let (these, others) = rest.split_at(taken);
        rest = others;
        match these {
            [_, .., oldest] => rows.push(RunEntry {
                id: oldest.id.clone(),
                started: oldest.started,
                folded: u32::try_from(taken).unwrap_or(u32::MAX),
                ..newest.clone()
            }),
            _ => rows.push(newest.clone()),
        }
    }
    rows
}

fn is_alike(one: &RunEntry, other: &RunEntry) -> bool {
    let is_short = |run: &RunEntry| run.ended.is_some_and(|at| at.since(run.started) < SHORT);
    let by_itself = matches!(one.end, Some(RunEnd::Exited | RunEnd::Crashed | RunEnd::TimedOut));
    by_itself
        && (one.end, one.exit, &one.node) == (other.end, other.exit, &other.node)
        && [one, other]
            .iter()
            .all(|run| is_short(run) && run.folded < 2 && run.processes_killed == 0)
}

/// A line of the history.
pub(crate) struct RunRow {
    pub(crate) state: &'static str,
    pub(crate) began: Vec<Piece>,
    pub(crate) node: String,
    pub(crate) lasted: Vec<Piece>,
    pub(crate) ended: String,
    pub(crate) killed: Option<String>,
    /// Who stopped it.
    pub(crate) stopped: Option<String>,
    /// How many runs alike it stands for, and from when to when.
    pub(crate) folded: Option<Vec<Piece>>,
    pub(crate) id: String,
    /// The rule in the output before its first line.
    pub(crate) rule: Option<String>,
}

impl RunRow {
    pub(crate) fn of(
        run: &RunEntry,
        acts: Acts<'_>,
        endings: &Endings,
        lang: Language,
        now: Option<StoreTime>,
    ) -> Self {
        let at = |at| match now {
            Some(now) => clock(lang, at, now),
            None => day_clock(at),
        };
        let alike = endings::alike(run, at, lang);
        let lasted = match (run.ended, now) {
            _ if alike.is_some() => Piece::text("–"),
            (Some(ended), _) => Piece::Text(about(lang, ended.since(run.started))),
            (None, now) => Piece::Since {
                ms: run.started.0,
                text: now.map_or_else(String::new, |now| about(lang, now.since(run.started))),
            },
        };
        let killed = i64::from(run.processes_killed);
        Self {
            state: run.end.map_or("running", RunEnd::as_str),
            began: vec![at(run.started)],
            node: run.node.to_string(),
            lasted: vec![lasted],
            ended: ended(lang, run),
            killed: (killed > 0).then(|| say(lang, "end-killed", &[("n", Arg::from(killed))])),
            stopped: endings::stopped(run, acts, lang),
            folded: alike,
            id: run.id.to_string(),
            rule: endings.rule(None, &run.id.0, &run.node, lang),
        }
    }
}

impl RunRow {
    /// In the words for a run of an external program.
    pub(crate) fn of_a_program(self, lang: Language) -> Self {
        match self.ended == say(lang, "end-lost", &[]) {
            true => Self { ended: say(lang, "end-lost-program", &[]), ..self },
            false => self,
        }
    }
}

fn ended(lang: Language, run: &RunEntry) -> String {
    match run.end {
        None => say(lang, "end-running", &[]),
        Some(RunEnd::Exited) => say(lang, "end-exited", &[]),
        Some(RunEnd::Stopped) => say(lang, "end-stopped", &[]),
        Some(RunEnd::Lost) => say(lang, "end-lost", &[]),
        Some(RunEnd::Died) if run.exit.signal.is_some() => say(lang, "end-guard-died", &[]),
        Some(RunEnd::Died) => say(lang, "end-died", &[]),
        Some(RunEnd::Fenced) => say(lang, "end-fenced", &[]),
        Some(RunEnd::TimedOut) => say(lang, "end-timed-out", &[]),
        Some(RunEnd::Crashed) => {
            let number = |n: i32| [("n", Arg::from(n.to_string()))];
            let exit = match run.exit {
                Exit { code: Some(code), .. } => say(lang, "exit-code", &number(code)),
                Exit { signal: Some(signal), .. } => say(lang, "exit-signal", &number(signal)),
                _ => say(lang, "exit-none", &[]),
            };
            say(lang, "end-crashed", &[("exit", Arg::from(exit))])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::lease::Token;
    use soloist_domain::name::{JobName, NodeName, RunId};

    fn run(nth: u64, node: &str, lasted: i64, end: RunEnd) -> RunEntry {
        let started = StoreTime(i64::try_from(nth).expect("small") * 1_000_000);
        RunEntry {
            id: RunId(format!("r{nth}")),
            job: JobName::new("outbound").expect("a valid name"),
            node: NodeName::new(node).expect("a valid name"),
            token: Token(nth),
            started,
            ended: Some(StoreTime(started.0 + lasted)),
            exit: Exit { code: Some(i32::from(end != RunEnd::Exited)), signal: None },
            end: Some(end),
            processes_killed: 0,
            folded: 0,
        }
    }

    #[test]
    fn short_runs_alike_are_one_row_and_nothing_else_is() {
        let mut runs: Vec<_> =
            (10..15).rev().map(|nth| run(nth, "node-a", 400, RunEnd::Exited)).collect();
        runs.push(run(9, "node-a", 400, RunEnd::Crashed));
        runs.extend((7..9).rev().map(|nth| run(nth, "node-a", 400, RunEnd::Exited)));
        runs.extend((4..7).rev().map(|nth| run(nth, "node-b", 400, RunEnd::Exited)));
        runs.extend((1..4).rev().map(|nth| run(nth, "node-b", 90_000, RunEnd::Exited)));
        let rows = folded(&runs);
        let told: Vec<_> = rows.iter().map(|row| (row.id.0.as_str(), row.folded)).collect();
        assert_eq!(
            told,
            [
                ("r10", 5),
                ("r9", 0),
                ("r8", 0),
                ("r7", 0),
                ("r4", 3),
                ("r3", 0),
                ("r2", 0),
                ("r1", 0),
            ]
        );
        assert_eq!((rows[0].started, rows[0].ended), (runs[4].started, runs[0].ended));
    }

    #[test]
    fn bars_stand_from_the_oldest_to_the_newest_and_are_to_be_seen() {
        let runs = [
            run(3, "node-a", 1, RunEnd::Crashed),
            run(2, "node-a", 3_600_000, RunEnd::Exited),
            run(1, "node-a", 900_000, RunEnd::Stopped),
        ];
        let bars = bars(&runs, Language::En);
        let told: Vec<_> = bars.iter().map(|bar| (bar.state, bar.height)).collect();
        assert_eq!(told, [("stopped", 15), ("exited", 32), ("crashed", 4)]);
        assert_eq!(bars[2].title, "crashed: exit 1 · 1 ms");
    }
}
